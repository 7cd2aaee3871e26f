"""From the control flow of a kernel to the instructions that the main thread of a warp executes, in order.

A branch that the launch decides goes one way. Where lanes part, both sides follow each other; where all lanes go the
same unknown way, the longer side counts. A loop runs as often as its bound says; ways out of it in the
middle of its body are not taken.
"""

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field
from itertools import chain

from makespan.estimates.kleimenov_popova.thread_time import Repeat, Sequence, SequenceStep, Single
from makespan.host.errors import Naming, UnsupportedError
from makespan.kernels.flow import BoundedFlow, Flow, refuse_unbounded

MAX_STEPS = 200_000
MAX_DEPTH = 200
_END = -1  # the end of an iteration, or of the kernel


@dataclass(slots=True)
class ControlFlow:
    """The control flow of one warp, as the sequence that its main thread executes.

    Args:
        singles: every instruction, by its number.
        decided: the side of each branch that always has the same outcome, by block.
        uniform: the blocks at whose end no lanes part.
        length: of a sequence, to tell which of two sides is the longer.
        named: what the user calls a field of the question.
    """

    terrain: BoundedFlow
    singles: tuple[Single, ...]
    decided: Mapping[int, int]
    uniform: Set[int]
    length: Callable[[Sequence], float]
    named: Naming = str
    steps_left: int = MAX_STEPS
    choices: set[int] = field(default_factory=set)
    _meets: dict[int | None, Mapping[int, int]] = field(default_factory=dict)
    _done: dict[int, Repeat] = field(default_factory=dict)

    def sequence(self) -> Sequence:
        """Return the steps that are executed from the entry to the end.

        Raises:
            InputError: a loop without a bound.
            UnsupportedError: branches that are nested too deeply, or paths that are too long.
        """
        return Sequence(tuple(self._path(None, self._begin(None), _END, 0)))

    @property
    def _flow(self) -> Flow:
        return self.terrain.flow

    def _begin(self, region: int | None) -> int:
        return 0 if region is None else self.terrain.nest.loops[region].header

    def _path(self, region: int | None, node: int, stop: int, depth: int) -> list[SequenceStep]:
        """Return the steps from a block to where lanes meet, within a loop or the kernel."""
        if depth > MAX_DEPTH:
            raise self._refused(f"branches nest deeper than {MAX_DEPTH}")
        found: list[SequenceStep] = []
        while node not in (stop, _END):
            found += self._steps(region, node)
            ways = self._ways(region, node)
            if len(ways) == 1:
                node = ways[0]
                continue
            meet = self._meeting(region).get(node, _END)
            sides = [self._path(region, way, meet, depth + 1) for way in sorted(ways)]
            if self._may_part(region, node):
                found += chain.from_iterable(sides)  # lanes diverge, and the warp executes both sides
            else:
                self.choices.add(self._flow.last(node).line)
                # all lanes take one side: the longer one counts
                found += max(sides, key=lambda side: self.length(Sequence(tuple(side))))
            node = meet
        return found

    def _steps(self, region: int | None, node: int) -> list[SequenceStep]:
        inner = self._inner(region, node)
        if inner is not None:
            return [self._loop(inner)]
        block = self._flow.blocks[node]
        found: list[SequenceStep] = list(self.singles[block.first : block.stop])
        self.steps_left -= len(found)
        if self.steps_left < 0:
            raise self._refused(f"a thread follows more than {MAX_STEPS} instructions, loops counted once")
        return found

    def _loop(self, number: int) -> Repeat:
        if number not in self._done:
            loop = self.terrain.nest.loops[number]
            refuse_unbounded(self.terrain, {loop.header}, self.named)
            body = Sequence(tuple(self._path(number, loop.header, _END, 0)))
            # a loop that is met again is read once
            self._done[number] = Repeat(self.terrain.infos[number].label, body, self._trips(number))
        return self._done[number]

    def _trips(self, number: int) -> int:
        """Return how often the body is executed as a whole: a last time beyond the back edges if a latch can leave."""
        loop = self.terrain.nest.loops[number]
        is_whole = any(source in loop.latches for source, _ in loop.exits)
        return (self.terrain.most_repeats(number) or 0) + is_whole

    def _inner(self, region: int | None, node: int) -> int | None:
        """Return the loop that begins at a node of a region and is not the region itself."""
        around = list(self.terrain.nest.around(node))
        heads = [n for n in around if self.terrain.nest.loops[n].header == node and n != region]
        return heads[0] if heads else None

    def _ways(self, region: int | None, node: int) -> list[int]:
        """Return the successors, each once: blocks, heads of inner loops, or the end."""
        inner = self._inner(region, node)
        if inner is None:
            edges = [(node, after) for after in self._taken(node)]
        else:
            edges = [(source, after) for source, after in self.terrain.nest.loops[inner].exits]
            edges = [(source, after) for source, after in edges if after in self._taken(source)] or edges
        return self._staying(region, [after for _, after in edges])

    def _taken(self, block: int) -> tuple[int, ...]:
        successors = self._flow.blocks[block].successors
        return (successors[self.decided[block]],) if block in self.decided else successors

    def _staying(self, region: int | None, afters: list[int]) -> list[int]:
        """Return the successors that do not leave the loop, or the end if all leave it."""
        if region is None:
            return list(dict.fromkeys(_END if after == self._flow.exit else after for after in afters))
        loop = self.terrain.nest.loops[region]
        inside = [_END if after == loop.header else after for after in afters if after in loop.blocks]
        return list(dict.fromkeys(inside)) or [_END]

    def _may_part(self, region: int | None, node: int) -> bool:
        """Return whether lanes may diverge at the end of a block, or leave an inner loop at different exits."""
        inner = self._inner(region, node)
        sources = {node} if inner is None else {source for source, _ in self.terrain.nest.loops[inner].exits}
        return any(source not in self.uniform and source not in self.decided for source in sources)

    def _meeting(self, region: int | None) -> Mapping[int, int]:
        if region not in self._meets:
            import networkx as nx

            backwards: nx.DiGraph[int] = nx.DiGraph()
            waiting, seen = [self._begin(region)], {_END}
            while waiting:
                node = waiting.pop()
                if node not in seen:
                    seen.add(node)
                    ways = self._ways(region, node)
                    if not ways:
                        raise self._refused(f"the loop at {self._flow.name(node)} never ends")
                    # dominators of the reversed graph: post-dominators
                    backwards.add_edges_from((way, node) for way in ways)
                    waiting += ways
            self._meets[region] = dict(nx.immediate_dominators(backwards, _END))
        return self._meets[region]

    def _refused(self, what: str) -> UnsupportedError:
        kernel = self._flow.kernel
        return UnsupportedError(f"{kernel.file}:{kernel.line}: {what} in kernel {kernel.name}; restructure it")
