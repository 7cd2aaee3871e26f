"""The control flow of a kernel: basic blocks, and dominators on request.

Blocks are numbered in text order, so the entry is block 0; the number after the last block is the virtual exit, at
which every path ends. Instructions are numbered in text order, too.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

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
