"""How often a warp executes each block, from loops and branches alone.

A loop runs as often as its bound says. At a branch at which lanes may part, the warp executes both sides; at one that
all lanes take alike, in an unknown direction, the longer side counts.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from makespan.host.errors import InputError
from makespan.kernels.flow import Flow, LoopInfo, LoopNest

_END = -1


@dataclass(slots=True)
class _Pass:
    """A pass through a loop, or through the kernel, with each inner loop as one step.

    Args:
        region: the loop; None for the kernel.
        after: by block, where the pass goes on; ways back to the head or out of the loop lead to the end.
        meets: by block, where its ways come together.
    """

    region: int | None
    begin: int
    after: Mapping[int, tuple[int, ...]]
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
        loop = None if region is None else self.nest.loops[region]
        inside = range(self.flow.exit) if loop is None else loop.blocks
        after: dict[int, tuple[int, ...]] = {}
        for block in inside:
            inner = self._inner(block, region)
            if inner is not None:
                ways = tuple(way for _, way in self.nest.loops[inner].exits)
            elif self.nest.innermost.get(block) == region:
                ways = self._ways(block)
            else:
                continue
            ends = {self.flow.exit, None if loop is None else loop.header}  # so a pass has no cycle
            kept = (way if way in inside and way not in ends else _END for way in ways)
            after[block] = tuple(dict.fromkeys(kept))
        begin = 0 if loop is None else loop.header
        return _Pass(region, begin, after, _meeting_points(after, begin))

    def _ways(self, block: int) -> tuple[int, ...]:
        ways = self.flow.blocks[block].successors
        return (ways[self.decided[block]],) if block in self.decided else ways

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
            ways = inside.after[here]
            if len(ways) > 1:
                meet = inside.meets[here]
                found += self._chosen(inside, here, [self._from(inside, way, meet) for way in ways])
                here = meet
            else:
                here = ways[0]
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
                found += self._last(once)
            self._loops[number] = found
        return self._loops[number]

    def _last(self, once: _Pass) -> Counter[int]:
        """Return the pass that leaves a loop that tests before its body: from the head to the farthest exit."""
        assert once.region is not None  # noqa: S101 - the kernel is no loop
        leaving = {block for block in once.after if self._leaves(once, block)}
        longest: dict[int, Counter[int]] = {}
        for block in reversed(_order(once.after, once.begin)):
            ways = [longest[way] for way in once.after[block] if way in longest]
            if ways or block in leaving:
                longest[block] = self._own(once, block) + max(ways, key=self._length, default=Counter())
        return longest.get(once.begin, Counter())

    def _leaves(self, once: _Pass, block: int) -> bool:
        """Return whether a block, or a loop in it that begins there, has a way out of the loop around."""
        assert once.region is not None  # noqa: S101 - the kernel is no loop
        inner = self._inner(block, once.region)
        blocks = {block} if inner is None else self.nest.loops[inner].blocks
        return any(source in blocks for source, _ in self.nest.loops[once.region].exits)

    def _length(self, counts: Mapping[int, int]) -> int:
        blocks = self.flow.blocks
        return sum(count * (blocks[block].stop - blocks[block].first) for block, count in counts.items())

    def _chosen(self, inside: _Pass, block: int, sides: list[Counter[int]]) -> Counter[int]:
        """Return both sides where lanes may part, else the longer one."""
        inner = self._inner(block, inside.region)
        sources = {block} if inner is None else {source for source, _ in self.nest.loops[inner].exits}
        if sources & self.divergent:
            return sum(sides, Counter[int]())  # the warp executes both, one after the other
        note = f"line {self.flow.last(max(sources)).line}: which way all lanes go is not known; the longer side counts"
        if note not in self.notes:
            self.notes.append(note)
        return max(sides, key=self._length)


def _order(after: Mapping[int, tuple[int, ...]], begin: int) -> list[int]:
    """Return the blocks in reach, each before those that follow it."""
    found: list[int] = []
    seen = {begin}
    stack: list[tuple[int, Iterator[int]]] = [(begin, iter(after[begin]))]
    while stack:
        block, ways = stack[-1]
        step = next((way for way in ways if way != _END and way not in seen), None)
        if step is None:
            found.append(block)
            stack.pop()
        else:
            seen.add(step)
            stack.append((step, iter(after[step])))
    return found[::-1]


def _meeting_points(after: Mapping[int, tuple[int, ...]], begin: int) -> dict[int, int]:
    """Return the immediate post-dominator of each block that is reached, within one pass."""
    import networkx as nx

    backwards: nx.DiGraph[int] = nx.DiGraph()
    backwards.add_node(_END)
    # dominators of the reversed graph: post-dominators
    backwards.add_edges_from((way, block) for block in _order(after, begin) for way in after[block])
    return dict(nx.immediate_dominators(backwards, _END))
