"""One or two warps that run ahead, against the definition."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makespan.model.instance import Instance
from makespan.model.machine import Latency, Machine, PortResource, UnitClass, Use
from makespan.model.program import BARRIER, InstructionTiming, Program, ProgramPlace
from makespan.model.result import Bounds
from makespan.model.simulate import replay
from makespan.model.strings import parse_string
from makespan.proof.engines import Limits
from makespan.proof.engines.two_warps import events, running_ahead, situations
from makespan.proof.engines.two_warps.holdings import Holdings
from makespan.proof.engines.two_warps.situations import Situations
from tests.oracle import brute_force, obeys
from tests.strategies import multiprocessor_instances

NARROW = Machine("narrow", (UnitClass("C", 1), UnitClass("L", 1)), 1)
SLOTS = Machine("slots", (UnitClass("C", 2, 2), UnitClass("L", 1)), 1)
PIPES = Machine(
    "pipes",
    (UnitClass("C", 2, uses=(Use(("left", "right"), 2, 3),)), UnitClass("L", 2, uses=(Use(("left",), 1, 3),))),
    resources=(PortResource("left", 1), PortResource("right", 1)),
)


def pair(first: str, second: str, machine: Machine = NARROW) -> Instance:
    return Instance.merged([(parse_string(string, machine), 1) for string in (first, second)], machine)


def is_right(instance: Instance) -> bool:
    truth, found = brute_force(instance), running_ahead.solve(instance, Limits())
    if found.witness is None or not obeys(instance, found.witness):
        return False
    is_exact = found.best_case == Bounds(truth.lower, truth.lower) and found.upper == truth.upper
    return is_exact and replay(instance, found.witness) == truth.upper


@given(multiprocessor_instances(most_warps=2, most=4).filter(running_ahead.applies))
def test_one_or_two_warps_are_exact(instance: Instance) -> None:
    assert is_right(instance)


@settings(max_examples=15)
@given(
    st.lists(st.tuples(st.sampled_from("CL"), st.integers(1, 5), st.integers(0, 3)), max_size=3),
    st.sampled_from([NARROW, SLOTS, PIPES]),
)
def test_equal_strings_with_long_latencies_are_exact(written: list[tuple[str, int, int]], machine: Machine) -> None:
    """Each instruction may need the one that stands so many places before it."""
    needs = [f"({at - back + 2})" if 0 < back <= at + 1 else "()" for at, (_, _, back) in enumerate(written)]
    string = "L()@6" + "".join(f"{u}{need}@{cycles}" for need, (u, cycles, _) in zip(needs, written, strict=True))
    assert is_right(Instance.of(parse_string(string, machine), 2, machine))


TWO_RESULTS = Program(
    (ProgramPlace("C", (1,)), ProgramPlace("L", (2,)), ProgramPlace("C", (3,))),
    timings=(
        InstructionTiming(1, (3, 6), (0, 1)),
        InstructionTiming(1, (1, 1), (), (0,)),
        InstructionTiming(1, (1, 2), (), (1,)),
    ),
)
"""One instruction sets two tokens, so that neither is pending any more once the other one has been waited for."""

AT_A_BARRIER = Program(
    (ProgramPlace("C", (1,)), ProgramPlace(BARRIER, (2,))),
    timings=(InstructionTiming(1, (5, 7), (0, 1)), InstructionTiming(0, (0, 0), (), (0,))),
)
"""The same, where only the end waits for the other token."""

EITHER_WAY = Program(
    (
        ProgramPlace("L", (1,)),
        ProgramPlace("C", (2, 4)),
        ProgramPlace("C", (3,)),
        ProgramPlace("C", (5,)),
        ProgramPlace("C", (5,)),
    ),
    timings=(
        InstructionTiming(1, (5, 5), (0,)),
        InstructionTiming(),
        InstructionTiming(5),
        InstructionTiming(1, (1, 1), (), (0,)),
        InstructionTiming(1, (1, 1), (), (0,)),
    ),
)
"""On two ways a result is waited for, and sooner on the way whose place has the larger number."""

CASES = {
    "two loads on the way": pair("L()@9L()@9C(1)@2C(2)@2", "C()C()C()L()@7C(4)"),
    "a result that is there a cycle too late": pair("L()@4C()C()C(1)", "C"),
    "a port of its own": pair("C()@4C()C(1)@3", "L()@5C(1)C()", SLOTS),
    "one result under two names": Instance.of(TWO_RESULTS, 2, NARROW),
    "one result under two names at a barrier": Instance.merged(
        [(AT_A_BARRIER, 1), (parse_string("C()@2|()", NARROW), 1)], NARROW
    ),
    "a result waited for on either way": Instance.merged(
        [(EITHER_WAY, 1), (parse_string("C()@3C(1)L()", NARROW), 1)], NARROW
    ),
    "a range that is waited for": pair("L()@3..6C()C(1)@2", "C()@2C()L(1)@1..3"),
    "a store until the end": pair("L()@9C()C()", "C()C()C()L()@2"),
    "resources to choose": pair("C()@2C()L(1)@3", "L()@4C()C(1)@2", PIPES),
    "a barrier that waits for results": pair("L()@5|(1)C()@2", "C()@2C()|()L()"),
    "a barrier that somebody skips": pair("L()@5C()|(1)C()@2", "C()@4..6"),
    "blocking beside running ahead": Instance.merged(
        [(Program.chain("CL"), 1), (parse_string("L()C()C(1)", PIPES), 1)], PIPES
    ),
    "one warp": Instance.of(parse_string("L()@4..6C()C(1)L()", PIPES), 1, PIPES),
    "ranges of classes": Instance.of(
        Program.chain("CLC"),
        2,
        Machine(
            "both",
            (
                UnitClass(
                    "C",
                    1,
                    2,
                    Latency(1, 3),
                    uses=(
                        Use(
                            ("bus",),
                        ),
                    ),
                ),
                UnitClass("L", 1, uses=(Use(("bus",), 2, 2),)),
            ),
            resources=(PortResource("bus", 1),),
        ),
    ),
}


@pytest.mark.parametrize("instance", CASES.values(), ids=CASES)
def test_cases_worked_out_to_break_it_are_exact(instance: Instance) -> None:
    assert running_ahead.applies(instance)
    assert is_right(instance)


def test_running_ahead_can_be_worse_than_waiting() -> None:
    """`CLC`, where an instruction of C holds its port for two cycles."""
    machine = Machine("slow", (UnitClass("C", 1, 2), UnitClass("L", 1, 1, Latency(3, 3))), 1)
    ahead_of_results = running_ahead.solve(Instance.of(parse_string("C()L()C()", machine), 2, machine), Limits())
    assert (events.solve(Instance.of("CLC", 2, machine), Limits()).upper, ahead_of_results.upper) == (7, 8)


class Fault:
    """A change to the code that some of the cases must show."""

    def __init__(self, owner: Any, name: str, change: Any) -> None:
        self.owner, self.name, self.change = owner, name, change


def _dropped(_: Situations, place: int, ready: int, pending: dict[int, Any]) -> Iterator[Any]:
    yield from ()


FAULTS = {
    "a result under two names is two results": Fault(situations, "_by_results", lambda timings: timings),
    "what is waited for on one way only counts for both": Fault(
        Situations,
        "_first",
        property(
            lambda self: [{token: frozenset((min(where),)) for token, where in first.items()} for first in self._true],
            lambda self, true: setattr(self, "_true", true),
        ),
    ),
    "nothing is pending behind the next place": Fault(Situations, "_mattering", _dropped),
    "what is pending is dropped a cycle too early": Fault(
        Situations,
        "_needed",
        lambda self, *args, true=Situations._needed: {token: at + 1 for token, at in true(self, *args).items()},
    ),
    "no port is held after the cycle of issue": Fault(Holdings, "_left", lambda self, number: 0),
    "ports are free a cycle late": Fault(
        Holdings, "_free", lambda self, *args, true=Holdings._free: true(self, *args) + 1
    ),
    "time stands still for those who take no part": Fault(Situations, "later", lambda self, number, cycle: number),
    "the last way to take ports is forgotten": Fault(
        Holdings, "_taken", lambda self, *args, true=Holdings._taken: true(self, *args)[:1]
    ),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_the_cases_show_faults(fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fault.owner, fault.name, fault.change, raising=False)
    assert not all(map(is_right, CASES.values()))


@pytest.mark.parametrize("limits", [Limits(0), Limits(memory_bytes=100)], ids=["time", "memory"])
def test_nothing_is_proven_where_limits_do_not_suffice(limits: Limits) -> None:
    instance = CASES["two loads on the way"]
    assert running_ahead.solve(instance, limits).upper is None
    assert running_ahead.best_case(instance, limits) is None


def test_long_loads_make_no_states() -> None:
    """A load of 40,000 cycles in the place of 400 makes the makespan longer, and nothing else."""
    found = [
        running_ahead.solve(
            Instance.of(parse_string(f"L()@{cycles}C()C(1)C()L(2)@{cycles}C(5)", NARROW), 2, NARROW), Limits()
        )
        for cycles in (400, 40_000)
    ]
    assert [(one.upper, one.best_case) for one in found] == [(n, Bounds(n, n)) for n in (806, 80_006)]


def test_what_would_need_large_tables_beforehand_is_refused() -> None:
    """Many results that are waited for everywhere, many ways to begin, and many ways to hold resources."""
    waiting = "".join(f"L({at // 2})" if at > 1 else "L()" for at in range(4000))
    begin = Program(
        tuple(ProgramPlace("C", (1100,)) for _ in range(1100)),
        tuple(range(1100)),
        timings=(InstructionTiming(),) * 1100,
    )
    uses = tuple(Use((name,), 1, 40) for name in ("left", "right"))
    holding = Machine("holding", (UnitClass("C", 1, uses=uses),), resources=PIPES.resources)
    assert not running_ahead.applies(Instance.of(parse_string(waiting, NARROW), 2, NARROW))
    assert running_ahead.applies(Instance.of(begin, 1, NARROW))
    assert not running_ahead.applies(Instance.of(begin, 2, NARROW))
    assert not running_ahead.applies(Instance.of("C", 2, holding))
