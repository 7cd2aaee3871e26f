"""The sums of weights along paths of a program, and the gaps between the instructions of a warp.

Places are numbered so that successors come later. So the least labels that satisfy `label(p) >= weight(p) + label(q)`
for every edge from p to q are found in one pass backwards; whoever wants labels to check finds them here.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from makespan.model.machine import UnitClass
from makespan.model.program import Program
from makespan.verify.machine_form import place_timings
from makespan.verify.refusal import ProofSteps

Choose = Callable[[Iterable[int]], int]
_PoolOrToken = TypeVar("_PoolOrToken")


class PhaseRegion(NamedTuple):
    """The places where a phase may begin, and the instructions that may be executed in it, both increasing."""

    begins: tuple[int, ...]
    inside: Sequence[int]


def along(program: Program, weights: Sequence[int], choose: Choose = max, phase: PhaseRegion | None = None) -> int:
    """Return the largest (or smallest) sum of what places weigh on a path, or on its part in a phase."""
    begins, inside = phase or (program.starts, range(program.end))
    ahead = dict[int, int]()
    for at in reversed(inside):  # successors have larger numbers, so they are done; outside of the phase they count 0
        ahead[at] = weights[at] + choose(ahead.get(after, 0) for after in program.places[at].successors)
    return choose(ahead.get(begin, 0) for begin in begins)


def total(program: Program, weights: Mapping[str, int], choose: Choose = max) -> int:
    """Return the same for the weights of the classes of instructions; 0 where none is given."""
    return along(program, [weights.get(place.unit, 0) for place in program.places], choose)


def keep_latest(known: dict[_PoolOrToken, int], others: Mapping[_PoolOrToken, int]) -> None:
    """Raise what is known to the later of both cycles."""
    # Where paths join, the maximum of all that was seen suffices, since a max-plus map commutes with maxima.
    for key, cycle in others.items():
        if cycle > known.get(key, 0):
            known[key] = cycle


def longest_gaps(program: Program, units: Mapping[str, UnitClass], work: ProofSteps) -> list[int]:
    """Return the most cycles from the issue at each place until its warp is ready for whatever follows."""
    # A result that is `latency` cycles away when its instruction is issued comes nearer by each stall on the way.
    # Whoever awaits its token has it at his issue, so no warp waits for it any more behind that issue.
    timings = place_timings(program, units, longest=True)
    found = [timing.stall for timing in timings]
    awaited = {token for timing in timings for token in timing.awaits}
    for setter, timing in enumerate(timings):
        for token in awaited.intersection(timing.sets):
            away, at = {setter: timing.latency[1]}, setter
            while away:
                at = min(away)  # all paths to it are done, as successors have larger numbers
                cycles = away.pop(at)
                work.spend(len(program.places[at].successors) + len(away))
                for after in program.places[at].successors:
                    if after == program.end:
                        continue
                    if token in timings[after].awaits:
                        found[at] = max(found[at], cycles)
                    elif (left := cycles - timings[at].stall) > 0:
                        away[after] = max(left, away.get(after, 0))
    return found


def shortest_gaps(program: Program, units: Mapping[str, UnitClass]) -> list[int]:
    """Return the fewest: the stall, and the latency of an instruction whose result everything behind it needs."""
    timings, found = place_timings(program, units, longest=False), []
    for timing, (_, successors) in zip(timings, program.places, strict=True):
        awaits = [timings[after].awaits for after in successors if after < program.end]
        needed = all(not set(timing.sets).isdisjoint(tokens) for tokens in awaits)
        found.append(max(timing.stall, timing.latency[0]) if needed else timing.stall)
    return found
