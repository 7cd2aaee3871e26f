"""The control flow of a kernel: basic blocks, and dominators on request.

Blocks are numbered in text order, so the entry is block 0; the number after the last block is the virtual exit, at
which every path ends. Instructions and statements are numbered in text order, too.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from makespan.errors import InputError
from makespan.ptx.calls import inlined, is_inlined
from makespan.ptx.module import Brace, Directive, Instruction, Kernel, Label, Note, Statement

if TYPE_CHECKING:
    import networkx as nx

ENDS = frozenset({"ret", "exit", "trap"})
"""Instructions after which a warp executes nothing more."""

JUMPS = ENDS | {"bra", "brx"}
"""Instructions that end a block, besides guarded calls that are inlined."""

_TARGETS = ".branchtargets "


class Block(NamedTuple):
    """Statements that are always executed together; instructions `first` to `stop - 1` are among them.

    Every label begins a block, so one before another label has a block without instructions: loops that begin at the
    same instruction are told apart by their labels. If the last instruction has a guard, it decides: the first
    successor if it is taken, the last if not. An indirect branch has any number of successors.
    """

    statements: range
    first: int
    stop: int
    label: str | None
    line: int
    successors: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Flow:
    """The control flow graph of a kernel, whose calls are replaced by what they call where that is known.

    Args:
        memo: what was found out of it before, such as `runs.Runs` by launch.
    """

    kernel: Kernel
    code: tuple[Instruction, ...]
    blocks: tuple[Block, ...]
    memo: dict[str, object] = field(default_factory=dict, compare=False, repr=False)

    @property
    def exit(self) -> int:
        """The virtual exit."""
        return len(self.blocks)

    def instructions(self, block: int) -> tuple[Instruction, ...]:
        """The instructions of a block."""
        return self.code[self.blocks[block].first : self.blocks[block].stop]

    def last(self, block: int) -> Instruction:
        """The instruction that ends a block, or the last one before it."""
        return self.code[self.blocks[block].stop - 1]

    def is_branch(self, block: int) -> bool:
        """Whether the block ends in a conditional branch, be it to the end of the kernel."""
        successors, stop = self.blocks[block].successors, self.blocks[block].stop
        return len(successors) == 2 and self.code[stop - 1].guard is not None

    @property
    def is_plain(self) -> bool:
        """Whether it has branches to labels and ends alone: no indirect branch, and no call that was inlined."""
        return not any(i.name == "brx" or is_inlined(i) for i in self.code)

    def name(self, block: int) -> str:
        """What to call a block: its label, or `line:N`."""
        return self.blocks[block].label or f"line:{self.blocks[block].line}"


def flow(kernel: Kernel | Flow) -> Flow:
    """The control flow of a kernel; one that is at hand keeps what was found out of it.

    Raises:
        InputError: a branch to nowhere, a label declared twice in one block.
        UnsupportedError: recursion.
    """
    if isinstance(kernel, Flow):
        return kernel
    kernel = inlined(kernel)
    statements, code = kernel.statements, kernel.instructions
    targets = _targets(kernel)
    ranges = list(_ranges(statements))
    number_at = {span.start: number for number, span in enumerate(ranges)}
    blocks: list[Block] = []
    stop = 0
    for number, span in enumerate(ranges):
        first, stop = stop, stop + sum(isinstance(statements[at], Instruction) for at in span)
        successors: tuple[int, ...] = (number + 1,)
        last = code[stop - 1] if stop > first else None
        if last is not None and _ends_block(last):
            taken = tuple(dict.fromkeys(number_at[at] for at in targets.get(stop - 1, ()))) or (len(ranges),)
            if last.name == "call":
                successors = (number + 1, *taken)
            else:
                successors = (*taken, number + 1) if last.guard else taken
        begin = statements[span.start]
        label = begin.name if isinstance(begin, Label) else None
        blocks.append(Block(span, first, stop, label, begin.line, successors))
    return Flow(kernel, code, tuple(blocks))


def graph(flow: Flow) -> "nx.DiGraph[int]":
    """The blocks and the virtual exit as a networkx graph."""
    import networkx as nx

    edges = ((number, after) for number, block in enumerate(flow.blocks) for after in block.successors)
    found: nx.DiGraph[int] = nx.DiGraph()
    found.add_nodes_from(range(flow.exit + 1))
    found.add_edges_from(edges)
    return found


def immediate_dominators(flow: Flow) -> Mapping[int, int]:
    """The immediate dominator of every block that can be reached, but for the entry."""
    import networkx as nx

    found = nx.immediate_dominators(graph(flow), 0)
    return {block: above for block, above in found.items() if block != 0}


def _ranges(statements: Sequence[Statement]) -> Iterator[range]:
    """The statements of each block: one begins at every label, and after every jump.

    A comment on the line of a jump belongs to the block of the jump.
    """
    begin, jump = None, None
    for at, statement in enumerate(statements):
        if isinstance(statement, Label) or (jump is not None and not _trails(statement, jump)):
            if begin is not None:
                yield range(begin, at)
            begin, jump = None, None
        if begin is None and isinstance(statement, Instruction | Label | Note):
            begin = at
        if isinstance(statement, Instruction) and _ends_block(statement):
            jump = statement
    if begin is not None:
        yield range(begin, len(statements))


def _ends_block(instruction: Instruction) -> bool:
    is_conditional_call = instruction.name == "call" and instruction.guard is not None and is_inlined(instruction)
    return instruction.name in JUMPS or is_conditional_call


def _trails(statement: Statement, jump: Instruction) -> bool:
    return isinstance(statement, Note) and statement.line == jump.line


class _Scope:
    """The labels of one `{ }` block, by name, as numbers of statements."""

    def __init__(self, outer: "_Scope | None" = None) -> None:
        self.outer = outer
        self.labels: dict[str, int] = {}

    def find(self, name: str) -> int | None:
        """The label of this name that is seen from here."""
        scope: _Scope | None = self
        while scope is not None and name not in scope.labels:
            scope = scope.outer
        return scope.labels[name] if scope else None


def _targets(kernel: Kernel) -> dict[int, tuple[int, ...]]:
    """The labels to which a branch may go, as numbers of statements, by number of the branching instruction."""
    scope, count = _Scope(), 0
    branches: list[tuple[int, Instruction, _Scope]] = []
    scopes: dict[int, _Scope] = {}
    for at, statement in enumerate(kernel.statements):
        match statement:
            case Brace(opens=True):
                scope = _Scope(scope)
            case Brace():
                scope = scope.outer or scope
            case Label(name, line):
                if name in scope.labels:
                    first = kernel.statements[scope.labels[name]].line
                    raise InputError(f"{kernel.file}:{line}: label {name} is already declared in line {first}")
                scope.labels[name] = at
                scopes[at] = scope
            case Instruction():
                if statement.name in ("bra", "brx") or is_inlined(statement):
                    branches.append((count, statement, scope))
                count += 1
            case _:
                pass
    return {number: _target(branch, seen_from, kernel, scopes) for number, branch, seen_from in branches}


def _target(branch: Instruction, scope: _Scope, kernel: Kernel, scopes: Mapping[int, _Scope]) -> tuple[int, ...]:
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
    found = [scopes[target].find(name) for name in names]
    if None in found:
        raise InputError(f"{where} may go to label {names[found.index(None)]}, which is not declared here")
    return tuple(at for at in found if at is not None)
