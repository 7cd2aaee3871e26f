"""Theorem 1S against the definition: partitions, resources, and warps that run ahead."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makespan.bounds import closed_form, least_possible, pessimistic, theorem_1s
from makespan.errors import UnsupportedError
from makespan.instance import Instance
from makespan.machine import Machine, UnitClass
from tests.oracle import brute_force
from tests.strategies import instances, multiprocessor_instances


@given(st.one_of(multiprocessor_instances(), multiprocessor_instances(barriers=False)))
@settings(max_examples=60)
def test_no_schedule_is_longer_than_the_bound_or_shorter_than_the_least_possible(instance: Instance) -> None:
    truth = brute_force(instance)
    assert pessimistic(instance) >= truth.upper
    assert closed_form(instance).upper >= truth.upper
    assert least_possible(instance) <= truth.lower


@given(multiprocessor_instances(most_warps=1, most=5, barriers=False))
@settings(max_examples=40)
def test_one_warp_alone_is_known_exactly_where_every_pool_has_one_port(instance: Instance) -> None:
    machine = instance.machine
    units = tuple(
        replace(unit, capacity=1, uses=tuple(replace(use, resources=use.resources[:1]) for use in unit.uses))
        for unit in machine.units
    )
    single = replace(
        machine, units=units, resources=tuple(replace(resource, capacity=1) for resource in machine.resources)
    )
    alone = Instance(instance.groups, replace(single, partitions=2))
    truth = brute_force(alone)
    assert pessimistic(alone) == truth.upper
    if alone.groups[0].program.is_chain:
        assert least_possible(alone) == truth.lower


@given(instances())
@settings(max_examples=20)
def test_it_leaves_other_machines_to_theorem_1(instance: Instance) -> None:
    assert theorem_1s(instance) is None


def test_delays_need_no_slot_which_it_does_not_know() -> None:
    units = UnitClass("C", 1), UnitClass.of_delays(3)
    delayed = Instance.of("C~C", 3, Machine("delays", units, issue_width=1, partitions=2))
    assert theorem_1s(delayed) is None
    with pytest.raises(UnsupportedError, match="delay"):
        pessimistic(delayed)
