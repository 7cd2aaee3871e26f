"""Where the ways that part at a branch come together again, and what they may have written by then."""

from collections.abc import Mapping, Set
from dataclasses import dataclass

from makespan.kernels.flow.graph import Flow, networkx_graph
from makespan.kernels.flow.loops import LoopNest


@dataclass(slots=True)
class Partings:
    """The partings of a kernel; use `of`.

    Args:
        matter: the registers that count.
        work_left: how many blocks and registers may still be looked at; whoever asks stops where nothing is left.
    """

    flow: Flow
    nest: LoopNest
    matter: Set[str]
    work_left: int
    _meets: Mapping[int, int]
    _before: Mapping[int, int]

    @classmethod
    def of(cls, flow: Flow, nest: LoopNest, matter: Set[str], work: int) -> "Partings":
        """Return the partings of a kernel, which may take this much work."""
        before: dict[int, int] = {}
        for block in flow.blocks:
            for after in set(block.successors):
                before[after] = before.get(after, 0) + 1
        return cls(flow, nest, matter, work, _meeting_points(flow), before)

    def written(self, block: int, *, by_iteration: bool = False) -> dict[int, set[str]]:
        """Return what the ways from the end of a block may write before they join, by block where they join.

        Behind a loop that is left in different iterations, that is all which the loop writes.

        Args:
            by_iteration: whether ways that come together at the head of a loop around the block do so in one iteration,
                and not after any number of them.
        """
        flow = self.flow
        successors = flow.blocks[block].successors
        if flow.exit in successors:  # one way ends here, and all that goes on goes the other way
            return {}
        meet = self._meets.get(block, flow.exit)
        sides = [self._closure(after, {meet}) for after in successors]
        region = sides[0] | sides[1]
        joins = {b for b in sides[0] & sides[1] if self._before[b] > 1} | ({meet} - {flow.exit})
        found = {join: self.written_in(region) for join in joins}
        heads = {self.nest.loops[number].header for number in self.nest.around(block)} if by_iteration else set()
        if joins & heads:
            once = self.written_in({b for after in successors for b in self._closure(after, {meet, *heads})})
            found |= dict.fromkeys(joins & heads, once)
        for number in self.nest.around(block):
            loop = self.nest.loops[number]
            if any(source == block or source in region for source, _ in loop.exits):
                inside = self.written_in(loop.blocks)
                for _, after in loop.exits:
                    found[after] = found.get(after, set()) | inside
        return found

    def written_in(self, blocks: Set[int]) -> set[str]:
        """Return the registers that count and that these blocks may write."""
        numbers = (number for block in blocks for number in self.flow.numbers(block))
        found = {name for number in numbers for name in self.flow.effects[number].writes}
        self.work_left -= len(found)
        return found & self.matter

    def _closure(self, begin: int, avoided: Set[int]) -> set[int]:
        found, waiting = set[int](), [begin]
        while waiting:
            block = waiting.pop()
            if block != self.flow.exit and block not in avoided and block not in found:
                found.add(block)
                waiting += self.flow.blocks[block].successors
        self.work_left -= len(found)
        return found


def _meeting_points(flow: Flow) -> dict[int, int]:
    """Return the immediate post-dominator of every block from which a way leads to the end."""
    import networkx as nx

    return dict(nx.immediate_dominators(networkx_graph(flow).reverse(copy=False), flow.exit))
