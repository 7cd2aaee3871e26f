"""How often a warp executes each block, from loops and branches alone.

A loop runs as often as its bound says. At a branch at which lanes may part, the warp executes both sides; at one that
all lanes take alike, in an unknown direction, the longer side counts.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from makespan.host.errors import InputError
from makespan.kernels.flow import Flow, LoopInfo, LoopNest

if TYPE_CHECKING:
    import networkx as nx

_END = -1


@dataclass(slots=True)
class _Pass:
    """A pass through a loop, or through the kernel, with each inner loop as one step.

    Args:
        region: the loop; None for the kernel.
        after: where the pass goes on; ways back to the head or out of the loop lead to the end.
        meets: by block, where its ways come together.
    """

    region: int | None
    begin: int
    after: "nx.DiGraph[int]"
    meets: Mapping[int, int]
    known: dict[tuple[int, int], Counter[int]] = field(default_factory=dict)


@dataclass(slots=True)
class Structure:
    """The counts of one warp by block.

    Args:
        divergent: the branches at which lanes may part.
        decided: the side of each branch that always goes the same way.
        notes: what was chosen, for people.
    """

    flow: Flow
    nest: LoopNest
    infos: tuple[LoopInfo, ...]
    divergent: frozenset[int]
    decided: Mapping[int, int]
    notes: list[str] = field(default_factory=list)
    _loops: dict[int, Counter[int]] = field(default_factory=dict)

    def counts(self) -> Counter[int]:
        """Return how often a warp executes each block.

        Raises:
            InputError: a loop without bound; lists the labels.
        """
        unknown = [info for info in self.infos if info.bound is None]
        if unknown:
            labels = ", ".join(f"{info.label} (line {info.line})" for info in unknown)
            raise InputError(
                f"{self.flow.kernel.file}: it is not known how often loop{'s' * (len(unknown) > 1)} {labels}"
                f" repeat{'s' * (len(unknown) == 1)}; give --loop-bound {unknown[0].label}=N,"
                " or the parameters that decide with --param NAME=N"
            )
        for info in self.infos:
            if info.bound is not None and not info.bound.exact:
                self.notes.append(f"loop {info.label} is taken to run its maximum, {info.bound}")
        whole = self._pass(None)
        return self._from(whole, whole.begin, _END)

    def _pass(self, region: int | None) -> _Pass:
        import networkx as nx

        loop = None if region is None else self.nest.loops[region]
        inside = range(self.flow.exit) if loop is None else loop.blocks
        begin = 0 if loop is None else loop.header
        after: nx.DiGraph[int] = nx.DiGraph()
        for block in inside:
            inner = self._inner(block, region)
            if inner is not None:
                ways = tuple(way for _, way in self.nest.loops[inner].exits)
            elif self.nest.innermost.get(block) == region:
                ways = self.flow.blocks[block].successors
                ways = (ways[self.decided[block]],) if block in self.decided else ways
            else:
                continue
            ends = {self.flow.exit, None if loop is None else loop.header}  # so a pass has no cycle
            after.add_edges_from((block, way if way in inside and way not in ends else _END) for way in ways)
        after = after.subgraph({begin} | nx.descendants(after, begin))
        # dominators of the reversed graph are post-dominators
        return _Pass(region, begin, after, dict(nx.immediate_dominators(after.reverse(), _END)))

    def _inner(self, block: int, region: int | None) -> int | None:
        """Return the loop that begins at a block, directly inside another or the kernel."""
        loops = self.nest.loops
        return next((n for n, loop in enumerate(loops) if loop.header == block and loop.outer == region), None)

    def _from(self, inside: _Pass, block: int, stop: int) -> Counter[int]:
        """Return the counts from a block on until another."""
        if (block, stop) in inside.known:
            return inside.known[block, stop]
        found, here = Counter[int](), block
        while here not in (stop, _END):
            found += self._own(inside, here)
            ways = list(inside.after.successors(here))
            meet = inside.meets[here] if len(ways) > 1 else ways[0]
            if len(ways) > 1:
                found += self._chosen(inside, here, [self._from(inside, way, meet) for way in ways])
            here = meet
        inside.known[block, stop] = found
        return found

    def _own(self, inside: _Pass, block: int) -> Counter[int]:
        inner = self._inner(block, inside.region)
        return Counter({block: 1}) if inner is None else self._loop(inner)

    def _loop(self, number: int) -> Counter[int]:
        if number not in self._loops:
            once, bound = self._pass(number), self.infos[number].bound
            assert bound is not None  # noqa: S101 - counts() looked
            whole = self._from(once, once.begin, _END)
            found = Counter({block: count * bound.maximum for block, count in whole.items()})
            if not self.nest.loops[number].is_bottom_tested:  # the test at the head is executed once more
                found += self._last(once, {source for source, _ in self.nest.loops[number].exits})
            self._loops[number] = found
        return self._loops[number]

    def _last(self, once: _Pass, exits: set[int]) -> Counter[int]:
        """Return the pass that leaves a loop that tests before its body: from the head to the farthest exit."""
        import networkx as nx

        longest: dict[int, Counter[int]] = {}
        for block in reversed([block for block in nx.topological_sort(once.after) if block != _END]):
            ways = [longest[way] for way in once.after.successors(block) if way in longest]
            if ways or exits & self._sources(once, block, whole=True):
                longest[block] = self._own(once, block) + max(ways, key=self._length, default=Counter())
        return longest.get(once.begin, Counter())

    def _sources(self, inside: _Pass, block: int, *, whole: bool = False) -> set[int]:
        """Return the blocks from which a step goes on: the block, or those of the exits of the loop that begins there.

        Args:
            whole: all blocks of that loop.
        """
        inner = self._inner(block, inside.region)
        if inner is None:
            return {block}
        loop = self.nest.loops[inner]
        return set(loop.blocks) if whole else {source for source, _ in loop.exits}

    def _length(self, counts: Mapping[int, int]) -> int:
        blocks = self.flow.blocks
        return sum(count * (blocks[block].stop - blocks[block].first) for block, count in counts.items())

    def _chosen(self, inside: _Pass, block: int, sides: list[Counter[int]]) -> Counter[int]:
        """Return both sides where lanes may part, else the longer one."""
        sources = self._sources(inside, block)
        if sources & self.divergent:
            return sum(sides, Counter[int]())  # the warp executes both, one after the other
        note = f"line {self.flow.last(max(sources)).line}: which way all lanes go is not known; the longer side counts"
        if note not in self.notes:
            self.notes.append(note)
        return max(sides, key=self._length)
