"""Latencies as delay places: an instance whose instructions all take one cycle, and the way back (docs/model.md).

An instruction of latency l is followed by l - 1 places of the class `DELAY`, of which there is a unit for every warp.
Of a range of latencies the longest chain is there once, and the warp may enter it where the range allows. Latencies
alone so lead to an instance with capacities only; intervals and the issue width stay.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from makespan.host.errors import InputError
from makespan.model.feature import BARRIERS, DELAYS, PROGRAMS, TIMES
from makespan.model.instance import Instance, requires
from makespan.model.machine import DELAY, ONE_CYCLE, Latency, UnitClass
from makespan.model.program import BARRIER, MAX_PLACES, Program, ProgramPlace
from makespan.model.schedule import Schedule

KNOWS = PROGRAMS | TIMES | BARRIERS | DELAYS


@dataclass(frozen=True, slots=True)
class Expansion:
    """An instance of which every instruction has latency 1.

    Args:
        original: the instance as it was.
        instance: with the class `DELAY`; the original itself if all its latencies are 1.
        origins: for every group and place, the place of the original program that it is or whose latency it is part of.
    """

    original: Instance
    instance: Instance
    origins: tuple[tuple[int, ...], ...]


def places(instance: Instance) -> int:
    """Return how many places the programs of the expansion have in all."""
    longest = {unit.name: unit.latency.most for unit in instance.machine.units}
    return sum(longest.get(place.unit, 1) for group in instance.groups for place in group.program.places)


@requires(KNOWS, "the expansion of latencies")
def expand_latencies(instance: Instance) -> Expansion | None:
    """Return the instance with its latencies as places; None if these are more than an instance may have.

    Programs that differ stay different: their places with an instruction are in the same order as before.
    """
    if all(unit.latency == ONE_CYCLE for unit in instance.machine.units):
        return Expansion(instance, instance, tuple(tuple(range(group.program.end)) for group in instance.groups))
    return _with_delays(instance)


@lru_cache(maxsize=2)  # every engine asks, for the same instance
def _with_delays(instance: Instance) -> Expansion | None:
    latencies = {unit.name: unit.latency for unit in instance.machine.units}
    if places(instance) > MAX_PLACES:
        return None
    found = [_expand_program(group.program, latencies) for group in instance.groups]
    units = tuple(replace(unit, latency=ONE_CYCLE) for unit in instance.machine.units)
    # a delay never waits: it has a port for every warp, and takes no issue slot
    delays = UnitClass.of_delays(instance.warps)
    machine = replace(instance.machine, units=(*units, delays), issue_width=instance.issue_width)
    groups = tuple(replace(group, program=program) for group, (program, _) in zip(instance.groups, found, strict=True))
    try:
        whole = Instance(groups, machine, instance.blocks)
    except InputError:  # too many warp-instructions
        return None
    return Expansion(instance, whole, tuple(origins for _, origins in found))


def _expand_program(program: Program, latencies: dict[str, Latency]) -> tuple[Program, tuple[int, ...]]:
    """Return the program with delays, and for each of its places the original one."""
    longest = [latencies[place.unit].most if place.unit != BARRIER else 1 for place in program.places]
    first, total = [], 0
    for cycles in longest:
        first.append(total)
        total += cycles
    first.append(total)  # the end
    new, origins = [], []
    for at, place in enumerate(program.places):
        after = tuple(first[target] for target in place.successors)
        new.append(ProgramPlace(place.unit, _entries(first[at], latencies.get(place.unit, ONE_CYCLE), after)))
        new += [ProgramPlace(DELAY, (number + 1,)) for number in range(first[at] + 1, first[at] + longest[at] - 1)]
        if longest[at] > 1:
            new.append(ProgramPlace(DELAY, after))
        origins += [at] * longest[at]
    return Program(tuple(new), tuple(first[start] for start in program.starts)), tuple(origins)


def _entries(at: int, latency: Latency, after: tuple[int, ...]) -> tuple[int, ...]:
    """Return where a warp may be after the instruction at `at`: as many delays before the end as its latency asks."""
    end = at + latency.most  # the chain is that of the longest latency; a shorter one enters it further behind
    delayed = tuple(end - delays for delays in range(latency.most - 1, max(latency.least, 2) - 2, -1))
    return (*delayed, *after) if latency.least == 1 else delayed


def contract_schedule(expansion: Expansion, schedule: Schedule) -> Schedule:
    """Return a schedule of the expansion as one of the original instance."""
    if expansion.instance is expansion.original:
        return schedule
    rows = []
    for program, group, path in zip(
        expansion.instance.programs(), expansion.instance.group_of_warp(), schedule.paths, strict=True
    ):
        rows.append([(program.places[place].unit, expansion.origins[group][place]) for place in path])
    paths = tuple(tuple(place for unit, place in row if unit != DELAY) for row in rows)
    fixed = expansion.original.machine.fixed_latencies
    latencies = () if fixed else tuple(_latencies([unit for unit, _ in row]) for row in rows)
    cycles = _issuing(schedule, [[unit for unit, _ in row if unit != BARRIER] for row in rows])
    return Schedule(cycles, paths, latencies)


def _latencies(units: Sequence[str]) -> tuple[int, ...]:
    """Return the latency of every instruction: itself and the delays behind it."""
    found: list[int] = []
    for unit in units:
        if unit == DELAY:
            found[-1] += 1  # one more cycle until the warp may go on
        elif unit != BARRIER:
            found.append(1)
    return tuple(found)


def _issuing(schedule: Schedule, units: Sequence[Sequence[str]]) -> tuple[tuple[int, ...], ...]:
    coming = [iter(own) for own in units]
    return tuple(tuple(warp for warp in executing if next(coming[warp]) != DELAY) for executing in schedule.cycles)
