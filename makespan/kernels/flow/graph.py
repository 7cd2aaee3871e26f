"""The control flow of a kernel: basic blocks, and the points at which lanes that parted reconverge.

Blocks are numbered in text order, so the entry is block 0; the number after the last block is the virtual exit, at
which every path ends. Instructions are numbered in text order, too.

Lanes reconverge at the immediate post-dominator of the branch that parted them. A lane that ends early blurs what that
is: hardware may count its end as a way to the end of the kernel, or take the lane out and let the others reconverge as
if it had never been there. Which of these an assembler chooses is not documented, so each is a `Reconvergence` of its
own, and what a warp may issue is the union over them.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from makespan.host.errors import UnsupportedError
from makespan.kernels.flow.instruction_set import (
    ControlTransfer,
    Effect,
    Instruction,
    Routine,
    Semantics,
    SourceLine,
    TransferredBound,
)

if TYPE_CHECKING:
    import networkx as nx

_Node = TypeVar("_Node", bound=Hashable)


def reach(begin: Iterable[_Node], after: Callable[[_Node], Iterable[_Node]]) -> set[_Node]:
    """Return everything to which ways lead from where they begin, that included."""
    found, waiting = set[_Node](), list(begin)
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting += after(node)
    return found


class BasicBlock(NamedTuple):
    """Instructions `first` to `stop - 1`, which are always executed together.

    Every label begins a block, so one before another label has a block without instructions: loops that begin at the
    same instruction are told apart by their labels. If the last instruction has a guard, it decides: the first
    successor if it is taken, the last if not. An indirect branch has any number of successors.
    """

    first: int
    stop: int
    label: str | None
    line: int
    successors: tuple[int, ...]
    source: SourceLine | None = None


@dataclass(frozen=True, slots=True)
class Flow:
    """The control flow graph of a kernel, which a language makes of its text.

    Args:
        code: the instructions as messages show them.
        effects: what each of them does.
        blocks: which hold every instruction, in text order.
        meetings: where the lanes that part at the end of a block meet, by number of that block, if the code says it.
        told: what is known of loops from outside, by the block at their head.
        memo: what was found out of it before, such as `runs.Runs` by launch.

    Raises:
        ValueError: blocks that leave out code or lead to nowhere, or effects of other code.
    """

    kernel: Routine
    code: Sequence[Instruction]
    effects: Sequence[Effect]
    blocks: tuple[BasicBlock, ...]
    semantics: Semantics = field(compare=False, repr=False)
    meetings: Mapping[int, int] | None = None
    transferred: Mapping[int, TransferredBound] = field(default_factory=dict)
    memo: dict[str, object] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        stops = [0, *(block.stop for block in self.blocks)]
        if stops != [*(block.first for block in self.blocks), len(self.code)]:
            raise ValueError(f"{self.kernel.name}: the blocks do not hold every instruction in order")
        if any(
            not block.successors or min(block.successors) < 0 or max(block.successors) > self.exit
            for block in self.blocks
        ):
            raise ValueError(f"{self.kernel.name}: a block leads to nowhere")
        if len(self.effects) != len(self.code):
            raise ValueError(f"{self.kernel.name}: {len(self.effects)} effects of {len(self.code)} instructions")

    @property
    def exit(self) -> int:
        """Return the number of the virtual exit."""
        return len(self.blocks)

    def numbers(self, block: int) -> range:
        """Return the numbers of the instructions of a block."""
        return range(self.blocks[block].first, self.blocks[block].stop)

    def last(self, block: int) -> Instruction:
        """Return the instruction that ends a block, or the last one before it."""
        return self.code[self.blocks[block].stop - 1]

    def ending(self, block: int) -> Effect:
        """Return the effect of the instruction that ends a block."""
        return self.effects[self.blocks[block].stop - 1]

    def is_branch(self, block: int) -> bool:
        """Return whether the block ends in a conditional branch, perhaps to the end of the kernel."""
        return len(self.blocks[block].successors) == 2 and self.ending(block).guard is not None

    def has_sides(self, block: int) -> bool:
        """Return whether more than one block may follow."""
        return len(set(self.blocks[block].successors)) > 1

    @property
    def is_plain(self) -> bool:
        """Return whether control goes only to labels and ends: no indirect branch, and no call that was inlined."""
        return all(effect.transfer in (None, ControlTransfer.DIRECT) for effect in self.effects)

    def at(self, *places: int) -> str:
        """Return places of the text in words."""
        return self.semantics.instruction_set.at(*places)

    def name(self, block: int) -> str:
        """Return the label of a block, or `line:N` if it has none."""
        return self.blocks[block].label or f"line:{self.blocks[block].line}"


def networkx_graph(flow: Flow) -> "nx.DiGraph[int]":
    """Return the blocks and the virtual exit as a networkx graph."""
    import networkx as nx

    edges = ((number, after) for number, block in enumerate(flow.blocks) for after in block.successors)
    found: nx.DiGraph[int] = nx.DiGraph()
    found.add_nodes_from(range(flow.exit + 1))
    found.add_edges_from(edges)
    return found


def immediate_dominators(flow: Flow) -> Mapping[int, int]:
    """Return the immediate dominator of every block that can be reached, but for the entry."""
    import networkx as nx

    found = nx.immediate_dominators(networkx_graph(flow), 0)
    return {block: above for block, above in found.items() if block != 0}


def closure(flow: Flow, begin: Iterable[int], avoided: Collection[int] = ()) -> frozenset[int]:
    """Return the blocks to which ways lead from some blocks, those included, without passing any that are avoided."""

    def kept(blocks: Iterable[int]) -> list[int]:
        return [block for block in blocks if block != flow.exit and block not in avoided]

    return frozenset(reach(kept(begin), lambda block: kept(flow.blocks[block].successors)))


MAX_BLOCKS = 5_000


@dataclass(frozen=True, slots=True)
class Reconvergence:
    """The block at which the lanes that part at the end of a block wait for each other, by number of that block.

    It is the virtual exit where they never meet again. `drops` tells whether lanes may end before they come to their
    point, which then no longer waits for them.
    """

    points: Mapping[int, int]
    drops: bool


def reconvergences(flow: Flow) -> tuple[Reconvergence, ...]:
    """Return every way in which hardware may choose the points, without repetitions: one, unless lanes end early.

    Where the code itself says the points, there is that way alone, and lanes that end are waited for no longer.

    All ends of the kernel count as one; or a guarded end only takes lanes out; or only the last end of the text counts.

    Raises:
        UnsupportedError: flow from which no way leads to the end, or too many blocks.
    """
    reached = reachable(flow)
    if len(reached) > MAX_BLOCKS:  # dominators and closures of more blocks would take too long
        kernel = flow.kernel
        raise UnsupportedError(
            f"{kernel.file}:{kernel.line}: {kernel.name} has {len(reached)} basic blocks; divergent branches are"
            f" followed in up to {MAX_BLOCKS}: fix one path with --take or --trace"
        )
    ends = [block for block in reached if flow.exit in flow.blocks[block].successors]
    unconditional = [block for block in ends if set(flow.blocks[block].successors) == {flow.exit}]
    _refuse_endless(flow, reached)  # a block without a way to the end has no post-dominator
    if flow.meetings is not None:
        return (Reconvergence(flow.meetings, drops=True),)
    found: list[dict[int, int]] = []
    for counted in (ends, unconditional, [max(unconditional)] if unconditional else []):
        points = _points(flow, reached, frozenset(counted))
        if points not in found:  # the same points give the same sequences
            found.append(points)
    # with all ends counted, no lane can end before its point
    return tuple(Reconvergence(points, drops=number > 0) for number, points in enumerate(found))


def reachable(flow: Flow) -> frozenset[int]:
    """Return the blocks to which a way leads from the entry."""
    return closure(flow, [0] if flow.blocks else [])


def blocks_between(flow: Flow, block: int, point: int) -> frozenset[int]:
    """Return the blocks that lanes may execute between parting at the end of `block` and meeting at `point`."""
    return closure(flow, flow.blocks[block].successors, [point])


def _points(flow: Flow, reached: Set[int], ends: Set[int]) -> dict[int, int]:
    """Return the immediate post-dominators of the blocks that branch, where only `ends` lead to the virtual exit."""
    import networkx as nx

    backwards: nx.DiGraph[int] = nx.DiGraph()
    backwards.add_node(flow.exit)
    for block in reached:
        afters = (after for after in flow.blocks[block].successors if after != flow.exit or block in ends)
        backwards.add_edges_from((after, block) for after in afters)
    above = nx.immediate_dominators(backwards, flow.exit)  # dominators of the reversed graph are post-dominators
    return {block: above.get(block, flow.exit) for block in sorted(reached) if len(flow.blocks[block].successors) > 1}


def _refuse_endless(flow: Flow, reached: Set[int]) -> None:
    before: dict[int, list[int]] = {}
    for block in reached:
        for after in flow.blocks[block].successors:
            before.setdefault(after, []).append(block)
    if endless := sorted(reached - reach([flow.exit], lambda block: before.get(block, []))):
        raise UnsupportedError(
            f"{flow.kernel.file}:{flow.blocks[endless[0]].line}: from {flow.name(endless[0])} on, kernel"
            f" {flow.kernel.name} never ends: no way leads to a {flow.semantics.instruction_set.ends}"
        )
