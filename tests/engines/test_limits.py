"""Budgets, on a clock that the test sets."""

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType

import pytest

from makespan.model.instance import Instance
from makespan.model.machine import Machine, UnitClass
from makespan.model.program import Program, ProgramPlace
from makespan.proof.engines import Limits
from makespan.proof.engines.engine import Finding
from makespan.proof.engines.search import choose
from makespan.proof.engines.search import states as by_states
from makespan.proof.engines.two_warps import events as two_warps_events


@dataclass
class Clock:
    now: float = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_budget_starts_when_it_is_made_and_ends_when_it_is_spent() -> None:
    clock = Clock()
    limits = Limits(10, clock=clock)
    clock.now += 4
    assert (limits.elapsed, limits.remaining, limits.expired) == (4, 6, False)
    clock.now += 6
    assert (limits.remaining, limits.expired) == (0, True)


def test_a_part_has_its_own_clock_and_ends_with_the_whole() -> None:
    clock = Clock()
    whole = Limits(10, clock=clock)
    clock.now += 2
    part = whole.part(0.5)
    assert (part.elapsed, part.remaining) == (0, 4)
    clock.now += 4
    assert part.expired
    assert not whole.expired
    last = whole.part(1)
    whole.interrupt()
    assert last.expired


def test_what_depends_on_the_installation_alone_does_not_count() -> None:
    clock = Clock()
    whole = Limits(10, clock=clock)
    part = whole.part(0.5)
    clock.now += 1
    with part.preparing():
        clock.now += 1000
    assert (part.elapsed, whole.elapsed) == (1, 1)


def by_search(limits: Limits) -> Finding:
    fork = Program((ProgramPlace("C", (1, 2)), ProgramPlace("L", (2,))))  # which no table takes
    return choose.solve(Instance.of(fork, 3), limits, certificate=None, incumbent=0)


def by_events(limits: Limits) -> Finding:
    return two_warps_events.solve(
        Instance.of("CL", 2, Machine("slow", (UnitClass("C", 1, 2), UnitClass("L", 1)))), limits
    )


@pytest.mark.parametrize(("engine", "find"), [(by_states, by_search), (two_warps_events, by_events)])
def test_an_engine_is_loaded_before_its_clock_starts(
    engine: ModuleType, find: Callable[[Limits], Finding], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()

    def load() -> None:
        clock.now += 30

    monkeypatch.setattr(engine, "load", load)
    assert find(Limits(1, clock=clock)).upper is not None
    assert clock.now == 130
