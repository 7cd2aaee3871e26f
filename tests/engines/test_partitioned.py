"""Partitions that share nothing, against the definition of the whole."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from makespan.bounds.partitions import partitions, spreads
from makespan.engines import Limits, partitioned
from makespan.engines.search import whole
from makespan.instance import Instance
from makespan.machine import Assignment, Machine, Resource, UnitClass, Use
from makespan.program import Program
from makespan.simulate import replay
from tests.oracle import brute_force
from tests.strategies import multiprocessor_instances


def private(instance: Instance) -> Instance:
    """The same on two or three partitions that share nothing."""
    machine = instance.machine
    units = tuple(replace(unit, shared=False) for unit in machine.units)
    resources = tuple(replace(resource, shared=False) for resource in machine.resources)
    parts = max(2, machine.partitions)
    return replace(instance, machine=replace(machine, units=units, resources=resources, partitions=parts))


@settings(max_examples=15)
@given(multiprocessor_instances(barriers=False).map(private))
def test_the_slowest_partition_decides_and_schedules_stand_side_by_side(instance: Instance) -> None:
    cut = partitions(instance)
    assert cut is not None
    truth = brute_force(instance)
    found = {content: whole.solve(question, Limits()) for content, question in cut.questions.items()}
    worst = max(one.upper or 0 for one in found.values())
    assert worst == truth.upper
    assert partitioned.fastest(cut, (one.best_case.lower for one in found.values() if one.best_case)) == truth.lower
    witnesses = {content: one.witness for content, one in found.items() if one.witness is not None}
    for spread in cut.spreads:
        schedule = partitioned.joined(instance, spread, witnesses)
        assert replay(instance, schedule) == max(witnesses[content].makespan for content in spread if any(content))


@settings(max_examples=15)
@given(st.integers(1, 3), st.integers(0, 3), st.integers(1, 3))
def test_spreads_are_the_assignments_without_names(first: int, second: int, parts: int) -> None:
    machine = Machine("m", (UnitClass("C", 1),), partitions=parts)
    groups = [(Program.chain("C"), first), *([(Program.chain("CC"), second)] if second else [])]
    instance = Instance.merged(groups, machine)
    group_of = instance.group_of_warp()

    def anonymous(partition_of: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
        counts = [[0] * len(groups) for _ in range(parts)]
        for group, part in zip(group_of, partition_of, strict=True):
            counts[part][group] += 1
        return tuple(sorted(map(tuple, counts), reverse=True))

    assert sorted(spreads(instance)) == sorted({anonymous(one) for one in instance.assignments()})


def test_what_is_shared_or_waits_at_a_barrier_is_not_cut() -> None:
    def cut(string: str, *, shared_class: bool = False, shared_unit: bool = False) -> bool:
        units = UnitClass("C", 1), UnitClass("L", 1, shared=shared_class, uses=(Use(("unit",)),))
        machine = Machine("m", units, partitions=2, resources=(Resource("unit", 1, shared_unit),))
        return partitions(Instance.of(string, 4, machine)) is not None

    assert cut("CL")
    assert not cut("CL", shared_class=True)
    assert not cut("CL", shared_unit=True)
    assert cut("CC", shared_class=True, shared_unit=True)  # nobody uses it
    assert not cut("C|L")


def test_a_partition_is_a_machine_of_its_own_with_what_is_used() -> None:
    units = UnitClass("C", 1, interval=2), UnitClass("L", 1, shared=True)
    machine = Machine("m", units, issue_width=1, partitions=4, assignment=Assignment.MODULO)
    cut = partitions(Instance.of("CC", 6, machine))
    assert cut is not None
    alone = Machine("m", units[:1], issue_width=1)
    assert cut.questions == {(2,): Instance.of("CC", 2, alone), (1,): Instance.of("CC", 1, alone)}
