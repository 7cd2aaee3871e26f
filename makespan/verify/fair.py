"""Theorem F: how long a fair scheduler of one issue slot makes the last finisher wait (docs/theory.md, 6).

Premises: the machine says that its scheduler is fair, one instruction is issued per cycle, every instruction holds its
port for that cycle only, and there are no barriers. Which classes are cheap is no premise: any choice proves a bound,
so the checker tries some of its own.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations

from makespan.model.instance import Instance
from makespan.model.machine import SchedulerPromise, UnitClass
from makespan.model.result import Upper
from makespan.verify.machine_form import used_units
from makespan.verify.paths import total
from makespan.verify.refusal import ProofSteps, TooMuchWork
from makespan.verify.rule import of_instance

MOST_STEPS = 20_000_000


def theorem_f(instance: Instance) -> int | None:
    """Return the bound of theorem F, in cycles; None where a premise fails, or where it would take too long."""
    machine = instance.machine
    units = list(used_units(instance).values())
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
    # any set of cheap classes proves a bound, also another one for each group of z
    sharpest: map[int] = map(min, zip(*proven, strict=True))
    return max(sharpest)


def _stretches(units: Sequence[UnitClass]) -> Iterator[list[UnitClass]]:
    """Yield sets of classes to take as cheap: none, and those whose latencies are neighbours in their order."""
    spans = sorted({(unit.latency.most, unit.latency.least) for unit in units})
    yield []
    for first, last in combinations(range(len(spans) + 1), 2):
        yield [unit for unit in units if (unit.latency.most, unit.latency.least) in spans[first:last]]


def _bounds(instance: Instance, units: Sequence[UnitClass], cheap: Sequence[UnitClass]) -> list[int]:
    """Return for every group, as that of z, the bound with these cheap classes."""
    # Prices are whole: W - 1 of them are a cycle of z.
    warps = instance.warps
    # g: what z may wait after an instruction of its own, the slot or the latency, whichever is longer
    gap = dict.fromkeys((unit.name for unit in units), warps - 1)
    gap |= {unit.name: max(warps - unit.latency.most, 0) for unit in cheap}
    price = {unit.name: _price(unit, cheap, warps - 1) for unit in units}
    last = [{unit for unit, after in group.program.places if group.program.end in after} for group in instance.groups]
    # behind the last letter of a warp nothing is issued, so it pays nothing: the least of any last place is left out
    paid = [
        total(group.program, price) - min(map(price.__getitem__, ends))
        for group, ends in zip(instance.groups, last, strict=True)
    ]
    everybody = sum(group.warps * own for group, own in zip(instance.groups, paid, strict=True))
    spans = {unit.name: unit.latency.most + gap[unit.name] for unit in units}
    # after its last instruction z waits for nothing
    alone = [
        total(group.program, spans) - min(map(gap.__getitem__, ends))
        for group, ends in zip(instance.groups, last, strict=True)
    ]
    return [cycles + warps - 1 + (everybody - own) // (warps - 1) for cycles, own in zip(alone, paid, strict=True)]


def _price(unit: UnitClass, cheap: Sequence[UnitClass], others: int) -> int:
    """Return p: what a letter of another warp counts inside a gap of a cheap class, or astride of one."""
    inside = [others for one in cheap if unit.latency.least < one.latency.most]
    astride = [one.latency.most - 1 for one in cheap if one.latency.most < unit.latency.most]
    return min(others, max(inside + astride, default=0))


RULE = of_instance(Upper.THEOREM_F, "theorem F", lambda instance, _: theorem_f(instance))
