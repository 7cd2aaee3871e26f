"""Theorem F, for the checker: what a fair scheduler of one issue slot costs the last finisher.

Premises: the machine says that its scheduler is fair, one instruction is issued per cycle, every instruction holds its
port for that cycle only, and there are no barriers. Which classes are cheap is no premise: any choice proves a bound.

Proof: docs/theory.md, 6.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations

from makespan.model.instance import Instance
from makespan.model.machine import SchedulerPromise, UnitClass
from makespan.verify.paths import total
from makespan.verify.refusal import ProofSteps, TooMuchWork

MOST_STEPS = 20_000_000


def theorem_f(instance: Instance) -> int | None:
    """Return the upper bound, in cycles; None where a premise fails, or where it would take too long."""
    machine = instance.machine
    used = {name for group in instance.groups for name in group.program.units}
    units = [unit for unit in machine.units if unit.name in used]
    if machine.scheduler is not SchedulerPromise.FAIR or machine.issue_width != 1 or instance.has_barriers:
        return None
    if instance.warps == 1 or any(unit.interval != 1 for unit in units):
        return None
    work = ProofSteps(MOST_STEPS)
    try:
        proven: list[list[int]] = []
        for cheap in _stretches(units):
            work.spend(2 * sum(group.program.end for group in instance.groups))
            proven.append(_bounds(instance, units, cheap))
    except TooMuchWork:
        return None
    sharpest: map[int] = map(min, zip(*proven, strict=True))
    return max(sharpest)


def _stretches(units: Sequence[UnitClass]) -> Iterator[list[UnitClass]]:
    """Classes whose latencies are neighbours, in order of the largest and then of the smallest; and none."""
    spans = sorted({(unit.latency.most, unit.latency.least) for unit in units})
    yield []
    for first, last in combinations(range(len(spans) + 1), 2):
        yield [unit for unit in units if (unit.latency.most, unit.latency.least) in spans[first:last]]


def _bounds(instance: Instance, units: Sequence[UnitClass], cheap: Sequence[UnitClass]) -> list[int]:
    """For every group as the one of z. The others' instructions have prices of which W - 1 are a cycle of z."""
    warps = instance.warps
    gap = {unit.name: warps - 1 for unit in units}
    gap.update((unit.name, max(warps - unit.latency.most, 0)) for unit in cheap)
    price = {}
    for unit in units:
        inside = [warps - 1 for one in cheap if unit.latency.least < one.latency.most]
        astride = [one.latency.most - 1 for one in cheap if one.latency.most < unit.latency.most]
        price[unit.name] = min(warps - 1, max(inside + astride, default=0))
    last = [{unit for unit, after in group.program.places if group.program.end in after} for group in instance.groups]
    paid = [
        total(group.program, price) - min(price[name] for name in ends)
        for group, ends in zip(instance.groups, last, strict=True)
    ]
    everybody = sum(group.warps * own for group, own in zip(instance.groups, paid, strict=True))
    spans = {unit.name: unit.latency.most + gap[unit.name] for unit in units}
    found = []
    for group, ends, own in zip(instance.groups, last, paid, strict=True):
        saved = min(gap[name] for name in ends)  # after its last instruction z waits for nothing
        found.append(total(group.program, spans) + warps - 1 - saved + (everybody - own) // (warps - 1))
    return found
