"""Latencies as places, for the checker: an instance in which every instruction is over after one cycle.

A class of latencies least..most makes of each of its places p a row of `most` places: p itself, then `most - 1` places
of the class `DELAY`, each followed by the next and the last one by whatever follows p. The warp goes from p to one
of these so that it spends least - 1 .. most - 1 cycles on delays; with least = 1 it may also skip them all. Barriers
stay single places. No warp waits on a delay, so there is no need to count units for it: see `states`. Schedules of both
instances correspond one to one, cycle by cycle (docs/theory.md, 1), so a bound of one is a bound of the other.
"""

from collections.abc import Iterator
from dataclasses import replace
from operator import mul

from makespan.host.errors import InputError
from makespan.model.instance import MAX_WARP_INSTRUCTIONS, Group, Instance
from makespan.model.machine import DELAY, Latency, Machine, UnitClass
from makespan.model.program import MAX_PLACES, Program, ProgramPlace
from makespan.verify.machine_form import binding_width
from makespan.verify.refusal import TooMuchWork

_ONE = Latency(1, 1)


def sizes(instance: Instance) -> list[int]:
    """Return how many places each group has with its latencies as places."""
    rows = {unit.name: unit.latency.most for unit in instance.machine.units}
    return [sum(rows.get(place.unit, 1) for place in group.program.places) for group in instance.groups]


def with_delay_places(instance: Instance) -> Instance:
    """Return the instance with its latencies as places.

    Raises:
        TooMuchWork: more places than an instance may have.
    """
    latencies = {unit.name: unit.latency for unit in instance.machine.units}
    if all(latency == _ONE for latency in latencies.values()):
        return instance
    grown = sizes(instance)
    if max(grown) > MAX_PLACES or sum(map(mul, grown, (g.warps for g in instance.groups))) > MAX_WARP_INSTRUCTIONS:
        raise TooMuchWork
    units = [replace(unit, latency=_ONE) for unit in instance.machine.units]
    machine = Machine(instance.machine.name, (*units, UnitClass.of_delays(instance.warps)), binding_width(instance))
    groups = tuple(Group(_program_with_delays(group.program, latencies), group.warps) for group in instance.groups)
    try:
        return Instance(groups, machine, instance.blocks)
    except InputError:  # ports that could be held for too long
        raise TooMuchWork from None


def _program_with_delays(program: Program, latencies: dict[str, Latency]) -> Program:
    ranges = [latencies.get(place.unit, _ONE) for place in program.places]
    number = [0]  # the new numbers of all places and of the end
    for cycles in ranges:
        number.append(number[-1] + cycles.most)
    places: list[ProgramPlace] = []
    for (unit, successors), cycles in zip(program.places, ranges, strict=True):
        places += _row(unit, len(places), cycles, tuple(number[after] for after in successors))
    return Program(tuple(places), tuple(number[start] for start in program.starts))


def _row(unit: str, first: int, cycles: Latency, then: tuple[int, ...]) -> Iterator[ProgramPlace]:
    after = first + cycles.most
    # from the issue on, a latency of `cycles` is one cycle at the place itself and the others on delays
    entered = [after - delays for delays in range(max(1, cycles.least - 1), cycles.most)]
    yield ProgramPlace(unit, (*sorted(entered), *(then if cycles.least == 1 else ())))
    for delay in range(first + 1, after):
        yield ProgramPlace(DELAY, (delay + 1,) if delay + 1 < after else then)
