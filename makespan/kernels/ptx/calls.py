"""Calls, replaced by the functions that they call.

An inlined call keeps its instruction, which is issued, and gets one more operand: the label behind the function, to
which the `ret` of the function goes. With a guard it is a branch, past the function for the lanes that fail.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from makespan.host.errors import UnsupportedError
from makespan.kernels.ptx.module import Brace, Declaration, PtxInstruction, PtxKernel, PtxLabel, Statement, declares

RETURN = "%return_"
"""The beginning of the labels behind inlined functions."""

MAX_STATEMENTS = 200_000


def inline_calls(kernel: PtxKernel) -> PtxKernel:
    """Return the kernel with every call replaced for which the module has a body; other calls stay as they are.

    Raises:
        UnsupportedError: functions that call each other in a circle, or too much code.
    """
    functions = {function.name: function for function in kernel.functions if function.body is not None}
    if kernel.body is None or not any(_called_function(s, functions) for s in kernel.body):  # most kernels need no copy
        return kernel
    return replace(kernel, body=_Inliner(kernel, functions).body())


def is_inlined(instruction: PtxInstruction) -> bool:
    """Return whether this is the call or the return of a function that was inlined."""
    return instruction.name in ("call", "ret") and instruction.operands[-1:] != () and _is_label(instruction)


def call_name(instruction: PtxInstruction) -> str:
    """Return the name of the function that a call calls, or the register that points to it."""
    return next((text for text in instruction.operands if not text.startswith("(")), "")


def is_indirect(kernel: PtxKernel, call: PtxInstruction) -> bool:
    """Return whether a call goes to wherever a register points."""
    declared = (s for s in (*kernel.variables, *kernel.statements) if isinstance(s, Declaration) and s.is_register)
    registers = {name: count for declaration in declared for name, count in declaration.names}
    return declares(registers, call_name(call))


def _is_label(instruction: PtxInstruction) -> bool:
    return instruction.operands[-1].startswith(RETURN)


def _called_function(statement: Statement, functions: Mapping[str, PtxKernel]) -> PtxKernel | None:
    is_call = isinstance(statement, PtxInstruction) and statement.name == "call"
    return functions.get(call_name(statement)) if is_call and isinstance(statement, PtxInstruction) else None


class _Inliner:
    def __init__(self, kernel: PtxKernel, functions: Mapping[str, PtxKernel]) -> None:
        self._kernel, self._functions = kernel, functions
        self._calls = 0

    def body(self) -> tuple[Statement, ...]:
        found: list[Statement] = []
        opened: list[tuple[str, str, Iterator[Statement]]] = [(self._kernel.name, "", iter(self._kernel.statements))]
        while opened:
            _, label, statements = opened[-1]
            statement = next(statements, None)
            if statement is None:
                opened.pop()
                if label:
                    found += [Brace(opens=False), PtxLabel(label, self._line(found))]
                continue
            if label and isinstance(statement, PtxInstruction) and statement.name == "ret":
                statement = replace(statement, operands=(label,))  # a return is a branch behind the call
            function = _called_function(statement, self._functions)
            if function is None or not isinstance(statement, PtxInstruction):
                found.append(statement)
            else:
                self._calls += 1
                behind = f"{RETURN}{self._calls}"
                if function.name in (names := [name for name, _, _ in opened]):  # an inlined circle would never end
                    raise self._circular(statement, [*names, function.name])
                found += [replace(statement, operands=(*statement.operands, behind)), Brace(opens=True)]
                found += _declarations(function)
                opened.append((function.name, behind, iter(function.statements)))
            if len(found) > MAX_STATEMENTS:  # calls can multiply code exponentially
                raise UnsupportedError(
                    f"{self._kernel.file}:{self._kernel.line}: with the functions that it calls, {self._kernel.name}"
                    f" has more than {MAX_STATEMENTS} statements"
                )
        return tuple(found)

    def _line(self, found: list[Statement]) -> int:
        return next((s.line for s in reversed(found) if isinstance(s, PtxInstruction)), self._kernel.line)

    def _circular(self, call: PtxInstruction, names: list[str]) -> UnsupportedError:
        return UnsupportedError(
            f"{self._kernel.file}:{call.line}: `{call}` is recursive ({' calls '.join(names)}), and its depth is not"
            " bounded; rewrite it as a loop"
        )


def _declarations(function: PtxKernel) -> tuple[Declaration, ...]:
    return (*(function.returns or ()), *(function.parameters or ()))
