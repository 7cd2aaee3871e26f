"""Theorem F: under a fair scheduler of one issue slot a warp waits at short latencies only while it needs the slot.

Let W warps share the slot, and let z finish last. Between two issues of z the others issue k instructions. Either the
slot is busy all the time, which takes k + 1 cycles, or it was idle once, and then whoever is served before z arrived
since. He went on from an instruction of a *longer* latency than that of z, issued before it, or issues again within
this time, after one of a *shorter* latency; else he costs z nothing. A fair scheduler never lets z wait for anybody
twice. So choose classes that are *cheap*. After an instruction of z with latency h, z waits at most W - 1 cycles, and

    max(0, W - h) + the others' instructions that count here

cycles if its class is cheap. An instruction of another warp counts once: 1 if its latency may be shorter than one of a
cheap class, else min(1, (h - 1) / (W - 1)) if it may be longer than h of one, else 0.

Proof: docs/theory.md, 6.
"""

from collections.abc import Iterator, Mapping
from itertools import combinations

from makespan.model.feature import PROGRAMS, SCHEDULER, TIMES
from makespan.model.instance import Instance
from makespan.model.machine import SchedulerPromise, UnitClass
from makespan.model.program import Program
from makespan.model.result import Upper, UpperBound

KNOWS = PROGRAMS | TIMES | SCHEDULER

MOST_STEPS = 2_000_000
"""Places times choices of cheap classes."""


def theorem_f(instance: Instance) -> UpperBound | None:
    """Return the bound of theorem F; None where it does not apply, or with too many places.

    >>> from makespan.proof.bounds import pessimistic
    >>> from makespan.model.machine import Latency, Machine
    >>> units = UnitClass("C", 1, latency=Latency(4, 4)), UnitClass("L", 1, latency=Latency(20, 30))
    >>> machine = Machine("partition", units, issue_width=1, scheduler=SchedulerPromise.FAIR)
    >>> kernel = Instance.of("CCCCLCCCC", warps=4, machine=machine)
    >>> pessimistic(kernel), theorem_f(kernel).upper
    (89, 71)
    """
    machine, others = instance.machine, instance.warps - 1
    used = set().union(*(group.program.units for group in instance.groups))
    units = [unit for unit in machine.units if unit.name in used]
    if (
        instance.beyond(KNOWS)
        or machine.scheduler is not SchedulerPromise.FAIR
        or machine.issue_width != 1
        or not others
    ):
        return None
    choices = list(_choices(units))  # every set of cheap classes is sound, so the smallest bound counts
    places = sum(group.program.end for group in instance.groups)
    if any(unit.interval > 1 for unit in units) or len(choices) * places > MOST_STEPS:
        return None
    by_choice = [_by_group(instance, units, cheap) for cheap in choices]
    return UpperBound(max(map(min, zip(*by_choice, strict=True))), Upper.THEOREM_F)


def _choices(units: list[UnitClass]) -> Iterator[frozenset[str]]:
    """Yield sets of cheap classes: none, or those of neighbouring ranges of latencies."""
    yield frozenset()
    ranges = sorted({unit.latency for unit in units}, key=lambda latency: (latency.most, latency.least))
    for first, end in combinations(range(len(ranges) + 1), 2):
        yield frozenset(unit.name for unit in units if unit.latency in ranges[first:end])


def _by_group(instance: Instance, units: list[UnitClass], cheap: frozenset[str]) -> list[int]:
    """Return the bound for a last finisher of each group; what others count is in units of 1 / (W - 1)."""
    others = instance.warps - 1
    # g_X: after an instruction of a cheap class z waits only where its latency is shorter than a turn of all
    waits = {unit.name: max(0, others + 1 - unit.latency.most) if unit.name in cheap else others for unit in units}
    alone = {unit.name: unit.latency.most + waits[unit.name] for unit in units}
    counts = {unit.name: _count(unit, [one for one in units if one.name in cheap], others) for unit in units}
    # after its last instruction a warp does not wait, and makes no other warp wait
    most = [group.program.heaviest(counts) - _least_last(group.program, counts) for group in instance.groups]
    every = sum(group.warps * own for group, own in zip(instance.groups, most, strict=True))
    # the first others: before its first issue z waits for each other warp once, by fairness (1)
    return [
        others + group.program.heaviest(alone) - _least_last(group.program, waits) + (every - own) // others
        for group, own in zip(instance.groups, most, strict=True)
    ]


def _least_last(program: Program, weights: Mapping[str, int]) -> int:
    return min(weights[place.unit] for place in program.places if program.end in place.successors)


def _count(unit: UnitClass, cheap: list[UnitClass], others: int) -> int:
    """Return p_Y of theorem F, times W - 1: what an instruction of another warp counts at most."""
    # inside a gap of z, by fairness only after a shorter latency (2); astride, only after a longer one (4)
    if any(unit.latency.least < one.latency.most for one in cheap):
        return others
    return max((min(others, one.latency.most - 1) for one in cheap if unit.latency.most > one.latency.most), default=0)
