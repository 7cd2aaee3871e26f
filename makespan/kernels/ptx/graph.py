"""The control flow of a PTX kernel: its calls inlined, its statements in basic blocks; its loops and branches."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from makespan.host.errors import InputError
from makespan.kernels.flow import BasicBlock, Flow, LanguageAnalysis, SourceLine
from makespan.kernels.ptx.calls import inline_calls, is_inlined
from makespan.kernels.ptx.effects import JUMPS, ptx_effect
from makespan.kernels.ptx.module import Brace, Directive, Note, PtxInstruction, PtxKernel, PtxLabel, Statement
from makespan.kernels.ptx.registers import register_accesses
from makespan.kernels.ptx.semantics import PtxSemantics, source_lines

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
        if isinstance(statement, PtxLabel) or (jump is not None and not _trails(statement, jump)):
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


def _trails(statement: Statement, jump: PtxInstruction) -> bool:
    return isinstance(statement, Note) and statement.line == jump.line


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


_OF_PTX = LanguageAnalysis[PtxKernel, PtxFlow](flow, "PTX")
loops = _OF_PTX.loops
branches = _OF_PTX.branches
bounds_for = _OF_PTX.bounds_for
bounds_template = _OF_PTX.bounds_template
