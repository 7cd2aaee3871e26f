"""The lowered form of a machine beside what a plain reading of the machine says, and beside the definition."""

import random
from collections.abc import Iterator
from itertools import product

import pytest

from benchmarks import multiprocessors
from makespan.model.lowered import ISSUE_SLOT, LoweredMachine
from makespan.model.machine import Machine, shipped_machines
from makespan.model.program import Program, ProgramPlace
from makespan.model.simulate import semantics

Home = tuple[str, int | None]
"""A pool: what has the ports, and the partition; None is all of them."""

Held = tuple[Home, int, int]
"""A pool of which an instruction holds a port, for at least and for at most so many cycles."""


def machines() -> Iterator[Machine]:
    yield from (file.machine for file in shipped_machines().values())
    draw = random.Random(7)
    yield from (multiprocessors.machine(draw) for _ in range(1000))


def pools(machine: Machine) -> dict[Home, int]:
    found: dict[Home, int] = {}
    for partition in range(machine.partitions):
        for ports in machine.ports:
            found[ports.name, None if ports.shared or machine.partitions == 1 else partition] = ports.capacity
        if machine.issue_width is not None:
            found["", None if machine.partitions == 1 else partition] = machine.issue_width
    return found


def ways(machine: Machine, name: str, partition: int) -> dict[tuple[int, ...], set[Held]]:
    """By which resource is chosen for each use, all that is held then."""
    (unit,) = (unit for unit in machine.units if unit.name == name)
    homes = {name: home for name, home in pools(machine) if home in (None, partition)}
    found = {}
    for chosen in product(*(range(len(use.resources)) for use in unit.uses)):
        held = {((name, homes[name]), unit.interval, unit.interval)}
        for use, which in zip(unit.uses, chosen, strict=True):
            held.add(((use.resources[which], homes[use.resources[which]]), use.least, use.most))
        if machine.issue_width is not None:
            held.add((("", homes[""]), 1, 1))
        found[chosen] = held
    return found


@pytest.fixture(scope="module")
def lowered() -> list[tuple[Machine, LoweredMachine]]:
    return [(machine, LoweredMachine.of(machine)) for machine in machines()]


def test_pools_are_those_of_the_machine_and_its_issue_slots(lowered: list[tuple[Machine, LoweredMachine]]) -> None:
    for machine, form in lowered:
        assert {(pool.name, pool.partition): pool.capacity for pool in form.pools} == pools(machine)
        assert len(form.pools) == len(pools(machine))
        assert form.capacities == {name: capacity for (name, _), capacity in pools(machine).items()}
        assert form.shared == {ports.name for ports in machine.ports if ports.shared}


def test_every_way_to_serve_an_instruction_is_there_once(lowered: list[tuple[Machine, LoweredMachine]]) -> None:
    choices = 0
    for machine, form in lowered:
        for name, reservation in form.by_class.items():
            for partition in range(machine.partitions):
                found = list(form.ways(reservation, partition))
                expected = ways(machine, name, partition)
                assert len(found) == len(expected)
                for way in found:
                    homes = [(form.pools[n].name, form.pools[n].partition) for n in way.pools]
                    cycles = {home: {each[n] for each in way.cycles} for n, home in enumerate(homes)}
                    assert {(home, min(each), max(each)) for home, each in cycles.items()} == expected[way.chosen]
                    assert len(way.cycles) == len(set(way.cycles))
                assert sum(len(way.cycles) for way in found) == reservation.choices
                choices += reservation.choices > 1
            assert reservation.longest == max(most for held in ways(machine, name, 0).values() for _, _, most in held)
    assert choices > 100


def test_pools_are_numbered_as_the_definition_takes_ports(lowered: list[tuple[Machine, LoweredMachine]]) -> None:
    for machine, form in lowered:
        for unit, partition in product(machine.units, range(machine.partitions)):
            for way in form.ways(form.by_class[unit.name], partition):
                taken = semantics.pools_taken(machine, unit, partition, way.chosen)
                mine = [form.pools[number] for number in way.pools if form.pools[number].name != ISSUE_SLOT]
                assert mine == [machine.pools[number] for number in taken]


def test_an_instruction_holds_what_its_class_says_and_a_barrier_nothing() -> None:
    form = LoweredMachine.of(Machine.of({"C": 2, "L": 1, "S": 1}))
    program = Program((ProgramPlace("L", (1,)), ProgramPlace("|", (2,)), ProgramPlace("C", (3,))))
    of_load, of_barrier, of_compute = (form.reservation(program, at) for at in range(3))
    assert (of_load, of_barrier.holds, of_compute) == (form.by_class["L"], (), form.by_class["C"])
    assert form.reservations(program, Program.chain("CC")) == (form.by_class["C"], form.by_class["L"])
