"""Partitions that share nothing, against the definition of the whole."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from makespan.model.instance import Instance
from makespan.model.machine import Latency, Machine, PortResource, UnitClass, Use, WarpAssignment
from makespan.model.program import Program
from makespan.model.result import Status, Upper
from makespan.model.simulate import replay
from makespan.proof.bounds.partitions import partitions, spreads
from makespan.proof.engines import Limits, phased, solve
from makespan.proof.engines.search import sm_states
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
    found = {content: sm_states.solve(question, Limits()) for content, question in cut.questions.items()}
    worst = max(one.upper or 0 for one in found.values())
    assert worst == truth.upper
    assert phased.fastest(cut, (one.best_case.lower for one in found.values() if one.best_case)) == truth.lower
    witnesses = {content: one.witness for content, one in found.items() if one.witness is not None}
    for spread in cut.spreads:
        schedule = phased.join_partitions(instance, spread, witnesses)
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
        machine = Machine("m", units, partitions=2, resources=(PortResource("unit", 1, shared_unit),))
        return partitions(Instance.of(string, 4, machine)) is not None

    assert cut("CL")
    assert not cut("CL", shared_class=True)
    assert not cut("CL", shared_unit=True)
    assert cut("CC", shared_class=True, shared_unit=True)  # nobody uses it
    assert not cut("C|L")


def test_a_partition_is_a_machine_of_its_own_with_what_is_used() -> None:
    units = UnitClass("C", 1, interval=2), UnitClass("L", 1, shared=True)
    machine = Machine("m", units, issue_width=1, partitions=4, assignment=WarpAssignment.MODULO)
    cut = partitions(Instance.of("CC", 6, machine))
    assert cut is not None
    alone = Machine("m", units[:1], issue_width=1)
    assert cut.questions == {(2,): Instance.of("CC", 2, alone), (1,): Instance.of("CC", 1, alone)}


def test_partitions_with_more_warps_or_with_those_of_earlier_groups_come_first() -> None:
    machine = Machine("m", (UnitClass("C", 1),), partitions=2)
    cut = partitions(Instance.merged([(Program.chain("C"), 2), (Program.chain("CC"), 2)], machine))
    assert cut is not None
    assert list(cut.questions) == [(2, 0), (1, 1), (0, 2)]


def test_every_different_partition_is_asked_once_and_the_slowest_is_the_answer() -> None:
    machine = Machine("m", (UnitClass("C", 1, interval=2), UnitClass("L", 1)), issue_width=1, partitions=4)
    instance = Instance.of("CLCCLLCLCLCC", 9, machine)
    result = solve(instance, best_case=True)
    assert result.status is Status.EXACT
    assert result.upper_evidence == Upper.PARTITIONS
    cut = partitions(instance)
    assert cut is not None
    each = [solve(question, best_case=True) for question in cut.questions.values()]
    assert [one.upper for one in result.partitions] == [one.bounds.upper for one in each]
    assert result.bounds.upper == max(one.bounds.upper for one in each)
    assert replay(instance, result.witness) == result.bounds.upper
    assert result.best_case == max((one.best_case for one in each if one.best_case), key=lambda best: best.lower)


def test_the_adversary_puts_the_warps_together_that_take_longest() -> None:
    machine = Machine("m", (UnitClass("C", 1, interval=4), UnitClass("L", 1, interval=4)), issue_width=1, partitions=2)
    instance = Instance.merged([(Program.chain("CC"), 2), (Program.chain("LL"), 2)], machine)
    together = solve(instance, best_case=True)
    assert together.bounds.upper == solve(Instance.of("LL", 2, replace(machine, partitions=1))).bounds.upper
    assert together.witness.partitions[2] == together.witness.partitions[3]
    modulo = replace(instance, machine=replace(machine, assignment=WarpAssignment.MODULO))
    apart = solve(modulo, best_case=True)
    assert together.best_case == apart.best_case
    assert apart.bounds.upper < together.bounds.upper


def test_a_schedule_says_choices_that_only_another_partition_has() -> None:
    units = (
        UnitClass("C", 1, latency=Latency(2, 2)),
        UnitClass("L", 1, latency=Latency(1, 3), uses=(Use(("bus",), 1, 2),)),
    )
    machine = Machine(
        "m", units, 1, (), partitions=2, assignment=WarpAssignment.MODULO, resources=(PortResource("bus", 1),)
    )
    result = solve(Instance.merged([(Program.chain("CC"), 1), (Program.chain("LL"), 1)], machine))
    assert result.witness.latencies == ((2, 2), (3, 3))
    assert len(result.witness.uses[0]) == 2
    assert replay(result.instance, result.witness) == result.bounds.upper == 6
