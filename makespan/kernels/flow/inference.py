"""Loop bounds that follow from the code and the launch."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from makespan.kernels.flow.graph import Flow
from makespan.kernels.flow.grid import Launch, ThreadRegisters, dim3_text
from makespan.kernels.flow.loop_bound import MAX_ITERATIONS, BoundBasis, LoopBound, iterations_text
from makespan.kernels.flow.loops import Loop, LoopNest
from makespan.kernels.flow.runs import AbstractRun, AbstractRuns


class ProvenIterations(NamedTuple):
    """The iterations that every entry to a loop makes, as the code proves, counted like those of a bound.

    Args:
        least: the fewest iterations.
        most: the most iterations; None if no end is in sight.
        source: the facts that this follows from, as text.
        is_entered: false if this launch never comes to the loop, whatever `least` and `most` say.
    """

    least: int
    most: int | None
    source: str
    is_entered: bool = True

    @property
    def bound(self) -> LoopBound | None:
        """Return the bound that follows; None if no end is in sight, or only a very far one."""
        if self.most is None or self.most > MAX_ITERATIONS:
            return None
        never = "" if self.is_entered else ", never entered"
        return LoopBound(
            self.most, self.is_entered and self.least == self.most, f"{self.source}{never}", BoundBasis.CODE
        )

    def implies(self, said: LoopBound) -> bool:
        """Return whether the code proves a bound that was given."""
        own = self.bound
        if own is None:
            return False
        return (own.exact and own.maximum == said.maximum) if said.exact else own.maximum <= said.maximum

    def disproof(self, said: LoopBound) -> str | None:
        """Return in words what the code makes instead; None where it does not contradict a bound."""
        too_few = said.maximum < self.least  # an upper bound below what surely happens
        too_many = said.exact and self.most is not None and said.maximum > self.most
        if not self.is_entered or not (too_few or too_many):
            return None
        if self.least == self.most:
            return f"{iterations_text('exactly', self.least)} ({self.source})"
        limit = iterations_text("at least", self.least) if too_few else iterations_text("at most", self.most or 0)
        return f"{limit} ({self.source})"


def infer_iterations(
    flow: Flow, nest: LoopNest, launch: Launch, warp: int | None = None
) -> dict[int, ProvenIterations]:
    """Return what can be proven, by number of the loop; `warp` restricts it to one warp of the block.

    It holds for every entry to the loop, by every warp of every block. A loop that this launch never enters gets the
    least bound there is.

    Raises:
        InputError: a launch that does not fit the kernel, or a warp that the block does not have.
    """
    if not nest.loops:
        return {}
    runs = AbstractRuns.of(flow, launch)
    source = _source(runs, flow.semantics.instruction_set.registers)
    found: dict[int, ProvenIterations] = {}
    for tried in runs.tries(warp):
        proven = {number: _proven(nest.loops[number], tried, number, source) for number in _followed_loops(nest, tried)}
        # more detail comes first; less detail may still end loops that it gave up
        found = proven | {number: one for number, one in found.items() if one.most is not None or number not in proven}
        if not any(run.seen.given_up for run in tried):
            break  # less detail finds no more
    return dict(sorted(found.items()))


def _followed_loops(nest: LoopNest, tried: Iterable[AbstractRun]) -> Iterator[int]:
    given_up = set[int]().union(*(run.seen.given_up for run in tried))
    return (number for number in range(len(nest.loops)) if number not in given_up)


def _proven(loop: Loop, tried: Iterable[AbstractRun], number: int, source: str) -> ProvenIterations:
    """Return what all threads together did, in the iterations of `walk.BoundedFlow.most_repeats`."""
    first = int(loop.is_bottom_tested)  # one iteration has begun before the first back edge
    counts = [run.seen.counts[number] for run in tried if number in run.seen.counts]
    endless = [run.seen.endless[number] for run in tried if number in run.seen.endless]
    if not counts and not endless:
        return ProvenIterations(first, first, source, is_entered=False)
    least = min([*endless, *(count.least for count in counts if count.least is not None)], default=None)
    most = max(count.most for count in counts) if not endless else None
    if least is None:  # nothing leaves the loop
        return ProvenIterations(first, None if most is None else most + first, source)
    return ProvenIterations(least + first, None if most is None else most + first, source)


def _source(runs: AbstractRuns, special: ThreadRegisters) -> str:
    launch, matter = runs.launch, runs.code.registers
    said = [
        f"{name}={launch.parameters[name]}"
        for name, parameter in runs.parameters.items()
        if not matter.isdisjoint(parameter.words or (name,))
    ]
    for option, extent, names in (
        ("block", launch.block, (*special.thread, *special.block_size)),
        ("grid", launch.grid, (*special.block, *special.grid_size)),
    ):
        if extent is not None and not _wholes(names).isdisjoint(_wholes(matter)):
            said.append(f"{option} {dim3_text(extent)}")
    return f"inferred: {', '.join(said) or 'from the code alone'}"


def _wholes(registers: Iterable[str]) -> set[str]:
    return {name.partition(".")[0] for name in registers}
