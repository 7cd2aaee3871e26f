"""The control flow of a PTX kernel: its calls inlined, its statements in basic blocks.

An inlined call keeps its instruction, which is issued, and gets one more operand: the label behind the function, to
which the `ret` of the function goes. With a guard it is a branch, past the function for the lanes that fail.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from makespan.host.errors import InputError, UnsupportedError
from makespan.kernels.flow import BasicBlock, Flow, SourceLine
from makespan.kernels.ptx.effects import JUMPS, RETURN, call_name, is_inlined, ptx_effect, register_accesses
from makespan.kernels.ptx.module import (
    Brace,
    Directive,
    Note,
    PtxInstruction,
    PtxKernel,
    PtxLabel,
    Statement,
)
from makespan.kernels.ptx.semantics import PtxSemantics, source_lines

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
                    circle = " calls ".join([*names, function.name])
                    raise UnsupportedError(
                        f"{self._kernel.file}:{statement.line}: `{statement}` is recursive ({circle}), and its depth is"
                        " not bounded; rewrite it as a loop"
                    )
                found += [replace(statement, operands=(*statement.operands, behind)), Brace(opens=True)]
                found += (*(function.returns or ()), *(function.parameters or ()))
                opened.append((function.name, behind, iter(function.statements)))
            if len(found) > MAX_STATEMENTS:  # calls can multiply code exponentially
                raise UnsupportedError(
                    f"{self._kernel.file}:{self._kernel.line}: with the functions that it calls, {self._kernel.name}"
                    f" has more than {MAX_STATEMENTS} statements"
                )
        return tuple(found)

    def _line(self, found: list[Statement]) -> int:
        return next((s.line for s in reversed(found) if isinstance(s, PtxInstruction)), self._kernel.line)


_TARGETS = ".branchtargets "


@dataclass(frozen=True, slots=True)
class PtxFlow(Flow):
    """The control flow graph of a PTX kernel, whose calls are replaced by what they call where that is known."""

    kernel: PtxKernel
    code: tuple[PtxInstruction, ...]


def flow(kernel: PtxKernel | PtxFlow) -> PtxFlow:
    """Return the control flow of a kernel; a flow is returned as it is, with all that was found out of it.

    Raises:
        InputError: a branch to nowhere, a label declared twice in one block.
        UnsupportedError: recursion.
    """
    if isinstance(kernel, PtxFlow):
        return kernel
    kernel = inline_calls(kernel)  # from here on a call is a branch, or is refused
    code, found, sources = kernel.instructions, register_accesses(kernel), source_lines(kernel)
    ranges = tuple(_ranges(kernel.statements))
    lines = (line for line, said in zip(sources, kernel.statements, strict=True) if isinstance(said, PtxInstruction))
    effects = tuple(map(ptx_effect, code, found, lines))
    blocks = tuple(_blocks(kernel, code, ranges, sources))
    return PtxFlow(kernel, code, effects, blocks, PtxSemantics(kernel, code, found, ranges))


def _blocks(
    kernel: PtxKernel, code: Sequence[PtxInstruction], ranges: Sequence[range], sources: Sequence[SourceLine | None]
) -> Iterator[BasicBlock]:
    statements, targets = kernel.statements, _targets(kernel)
    number_at = {span.start: number for number, span in enumerate(ranges)}
    stop = 0
    for number, span in enumerate(ranges):
        first, stop = stop, stop + sum(isinstance(statements[at], PtxInstruction) for at in span)
        successors: tuple[int, ...] = (number + 1,)
        last = code[stop - 1] if stop > first else None
        if last is not None and _ends_block(last):
            taken = tuple(dict.fromkeys(number_at[at] for at in targets.get(stop - 1, ()))) or (len(ranges),)
            if last.name == "call":
                successors = (number + 1, *taken)  # lanes that pass the guard go into the function, which follows
            else:
                successors = (*taken, number + 1) if last.guard else taken
        begin = statements[span.start]
        label = begin.name if isinstance(begin, PtxLabel) else None
        shown = next((at for at in span if isinstance(statements[at], PtxInstruction)), span[-1])
        yield BasicBlock(first, stop, label, begin.line, successors, sources[shown])


def _ranges(statements: Sequence[Statement]) -> Iterator[range]:
    """Yield the statements of each block: one begins at every label, and after every jump.

    A comment on the line of a jump belongs to the block of the jump.
    """
    begin, jump = None, None
    for at, statement in enumerate(statements):
        trails = isinstance(statement, Note) and jump is not None and statement.line == jump.line
        if isinstance(statement, PtxLabel) or (jump is not None and not trails):
            if begin is not None:
                yield range(begin, at)
            begin, jump = None, None
        if begin is None and isinstance(statement, PtxInstruction | PtxLabel | Note):
            begin = at
        if isinstance(statement, PtxInstruction) and _ends_block(statement):
            jump = statement
    if begin is not None:
        yield range(begin, len(statements))


def _ends_block(instruction: PtxInstruction) -> bool:
    is_conditional_call = instruction.name == "call" and instruction.guard is not None and is_inlined(instruction)
    return instruction.name in JUMPS or is_conditional_call


class _LabelScope:
    """The labels of one `{ }` block, by name, as numbers of statements."""

    def __init__(self, outer: "_LabelScope | None" = None) -> None:
        self.outer = outer
        self.labels: dict[str, int] = {}

    def find(self, name: str) -> int | None:
        scope: _LabelScope | None = self
        while scope is not None and name not in scope.labels:  # inner names hide outer ones
            scope = scope.outer
        return scope.labels[name] if scope else None


def _targets(kernel: PtxKernel) -> dict[int, tuple[int, ...]]:
    scope, count = _LabelScope(), 0
    branches: list[tuple[int, PtxInstruction, _LabelScope]] = []
    scopes: dict[int, _LabelScope] = {}
    for at, statement in enumerate(kernel.statements):
        match statement:
            case Brace(opens=True):
                scope = _LabelScope(scope)
            case Brace():
                scope = scope.outer or scope
            case PtxLabel(name, line):
                if name in scope.labels:
                    first = kernel.statements[scope.labels[name]].line
                    raise InputError(f"{kernel.file}:{line}: label {name} is already declared in line {first}")
                scope.labels[name] = at
                scopes[at] = scope
            case PtxInstruction():
                if statement.name in ("bra", "brx") or is_inlined(statement):
                    branches.append((count, statement, scope))
                count += 1
            case _:
                pass
    return {number: _target(branch, seen_from, kernel, scopes) for number, branch, seen_from in branches}


def _target(
    branch: PtxInstruction, scope: _LabelScope, kernel: PtxKernel, scopes: Mapping[int, _LabelScope]
) -> tuple[int, ...]:
    where = f"{kernel.file}:{branch.line}: `{branch}`"
    if branch.name == "bra" and len(branch.operands) != 1:
        raise InputError(f"{where} must name one label")
    if branch.name == "brx" and len(branch.operands) != 2:
        raise InputError(f"{where} must name an index and a list of targets")
    target = scope.find(branch.operands[-1])
    if target is None:
        raise InputError(f"{where} goes to a label that is not declared here")
    if branch.name != "brx":
        return (target,)
    listed = next((s for s in kernel.statements[target + 1 : target + 2] if isinstance(s, Directive)), None)
    if listed is None or not listed.text.startswith(_TARGETS):
        raise InputError(f"{where} goes to {branch.operands[-1]}, which is no list of .branchtargets")
    names = [name.strip() for name in listed.text[len(_TARGETS) :].rstrip(";").split(",")]
    found = [scopes[target].find(name) for name in names]  # names are seen from where the list stands
    if None in found:
        raise InputError(f"{where} may go to label {names[found.index(None)]}, which is not declared here")
    return tuple(at for at in found if at is not None)
