"""The gaps of a warp: the cycles from an issue until it is ready to issue again, whatever others do to it."""

from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple

from makespan.model.machine import Latency
from makespan.model.program import Program

MOST_TOKENS = 2_000_000
"""That are looked at, over all places and successors."""


class IssueGap(NamedTuple):
    """Cycles behind an instruction, on any path and at any latencies."""

    least: int
    most: int


def gaps(program: Program, latencies: Mapping[str, Latency]) -> list[IssueGap] | None:
    """Return the gap behind every instruction of a program without barriers; None if it has too many tokens.

    A warp that runs ahead is ready when the stall has passed and no token is pending that it awaits. How long one may
    still be pending is known from place to place: each takes the stall off at least, and what a place awaits is there
    when it is left. Whoever is kept waiting by others has less to wait for afterwards.

    >>> from makespan.model.machine import Machine
    >>> from makespan.model.strings import parse_string
    >>> ahead = parse_string("L()@9L()@9C(1)C(2)C(4)", Machine.of({"C": 1, "L": 1}))
    >>> [tuple(gap) for gap in gaps(ahead, {})]
    [(1, 1), (1, 8), (1, 8), (1, 1), (1, 1)]
    """
    if not program.timings:
        return [IssueGap(latencies[place.unit].least, latencies[place.unit].most) for place in program.places]
    timings = program.timings
    awaited = {token for timing in timings for token in timing.awaits}
    coming: defaultdict[int, dict[int, int]] = defaultdict(dict)  # by token the cycles for which it may be pending
    found, looked = list[IssueGap](), 0
    for at, (place, timing) in enumerate(zip(program.places, timings, strict=True)):
        pending = coming.pop(at, {})
        for token in timing.awaits:
            pending.pop(token, None)
        for token in awaited.intersection(timing.sets):
            pending[token] = max(pending.get(token, 0), timing.latency[1])
        behind = [timings[after].awaits for after in place.successors if after < program.end]
        least = min((timing.latency[0] if set(timing.sets) & set(awaits) else 1 for awaits in behind), default=1)
        most = max((pending.get(token, 0) for awaits in behind for token in awaits), default=0)
        found.append(IssueGap(max(timing.stall, least), max(timing.stall, most)))
        looked += len(pending) * len(place.successors)
        if looked > MOST_TOKENS:
            return None
        for after in place.successors:
            left = coming[after]
            for token, cycles in pending.items():
                if cycles > timing.stall:
                    left[token] = max(left.get(token, 0), cycles - timing.stall)
    return found
