"""Virtual SMs of which nobody knows anything, and two schedulers that share lanes, described a second time."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

from makespan.estimates.dual_issue.arbiter import Arbiter, Bubbles, Pattern
from makespan.estimates.dual_issue.device import CODES, SINGLE_ISSUE
from makespan.estimates.dual_issue.pattern_ranking import Codes
from makespan.estimates.dual_issue.registers import ZERO
from makespan.estimates.dual_issue.truth import Conflicts, Truth

GK110_CODES = Codes(dual=0x04, partner=0x05, single=0x05)
GROUPS_PER_PAIR = 3
"""Two schedulers with a group of lanes each, and the shared group: FFMAs of a pair per cycle at most."""


@dataclass(frozen=True, slots=True)
class Meshing:
    """Two schedulers with one pattern.

    Args:
        efficiency: FFMAs executed, of the most that the lanes could.
        lost: issue cycles that each scheduler lost to the other.
    """

    efficiency: float
    lost: tuple[int, int]


def mesh(pattern: Pattern, *, cycles: int, arbiter: Arbiter = Arbiter.FIXED, bubbles: Bubbles | None = None) -> Meshing:
    """Execute a pattern on both schedulers of a pair, cycle by cycle."""
    slots = (*pattern, *[0] * (bubbles or Bubbles()).of(pattern))
    at, lost, executed, loser = [0, 0], [0, 0], 0, 1
    for _ in range(cycles):
        now = [slots[place % len(slots)] for place in at]
        waits = loser if now == [2, 2] else None
        for scheduler, issued in enumerate(now):
            if scheduler == waits:
                lost[scheduler] += 1
            else:
                executed += issued
                at[scheduler] += 1
        if waits is not None and arbiter is Arbiter.ROUND_ROBIN:
            loser = 1 - loser
    return Meshing(executed / (GROUPS_PER_PAIR * cycles), (lost[0], lost[1]))


def meshed_efficiency(pattern: Pattern, bubbles: Bubbles) -> float:
    """What `mesh` tends to with a fixed winner, for patterns of two single and two dual issues."""
    return 2 * sum(pattern) / (GROUPS_PER_PAIR * (len(pattern) + bubbles.of(pattern)))


def field_gaps(
    *, shift: int, width: int, slope: int, dual: int, applies: Callable[[int], bool] = lambda _: True
) -> tuple[int, ...]:
    """A table with one stall field, for the codes of which `applies` holds, and one code that opens a dual issue."""
    mask = (1 << width) - 1
    table = [1 + slope * (code >> shift & mask) * applies(code) for code in range(CODES)]
    table[dual] = 0
    return tuple(table)


def random_truth(seed: int) -> Truth:
    """An SM of which nobody knows anything but that code 0x20 is single issue.

    Banks: 1 to 8, any map. One stall field at bit 0..3, 3..5 bits wide, of slope 1 or 2, behind a bit that turns it
    on; any other code opens dual issues; any bubbles.
    """
    draw = random.Random(seed)
    count = draw.randint(1, 8)
    shift, width = draw.choice(list(product(range(4), range(3, 6))))
    gates = [bit for bit in range(8) if not shift <= bit < shift + width and 1 << bit != SINGLE_ISSUE]
    gate = 1 << draw.choice(gates)
    dual = draw.choice([code for code in range(CODES) if code != SINGLE_ISSUE])
    slope = draw.randint(1, 2)
    return Truth(
        banks=tuple(draw.randrange(count) for _ in range(ZERO)),
        gaps=field_gaps(shift=shift, width=width, slope=slope, dual=dual, applies=lambda code: bool(code & gate)),
        keeps=frozenset((dual,)),
        bubbles=Bubbles(draw.randint(0, 5), draw.randint(0, 5)),
        latency=draw.randint(4, 20),
        conflicts=draw.choice(list(Conflicts)),
    )
