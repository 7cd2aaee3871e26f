"""Phases of real multiprocessors: where barriers cut them, against the definition of the whole."""

import sys
from dataclasses import replace
from importlib import import_module

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from makespan.model.instance import Instance
from makespan.model.machine import (
    PAPER,
    Latency,
    Machine,
    PortResource,
    SchedulerPromise,
    UnitClass,
    Use,
    WarpAssignment,
)
from makespan.model.program import BARRIER, InstructionTiming, Program, ProgramPlace
from makespan.model.result import Bounds, Status, Upper
from makespan.model.schedule import Schedule
from makespan.model.simulate import replay
from makespan.model.strings import parse_string
from makespan.proof.bounds import least_possible, pessimistic, phases
from makespan.proof.engines import Limits, phased, solve
from makespan.proof.engines.search import sm_states
from makespan.report.result.bundle import result_bundle
from makespan.verify import Outcome, verify
from makespan.verify import phases as checked
from tests.forgery import Document, forged
from tests.oracle import brute_force
from tests.strategies import multiprocessors, running_ahead

phases_module = import_module("makespan.proof.bounds.phases")  # its function has its name

ONE = Machine("one", (UnitClass("C", 1), UnitClass("L", 1)), issue_width=1)
HELD = Machine("held", (UnitClass("C", 1, 2), UnitClass("L", 1)), issue_width=1)
LONG = Machine("long", (UnitClass("C", 1, 4), UnitClass("L", 1)), issue_width=1)
PIPED = Machine(
    "piped",
    (UnitClass("C", 1, 2, uses=(Use(("pipe",), 4, 4),)), UnitClass("L", 1)),
    1,
    resources=(PortResource("pipe", 1),),
)
PAIR = replace(HELD, partitions=2)
SHARED = replace(PAIR, units=(UnitClass("C", 1, 2, shared=True), UnitClass("L", 1)))


def asked(machine: Machine, *warps: tuple[str, int], blocks: int = 1) -> Instance:
    """Strings, of which those with parentheses run ahead."""
    return Instance.merged([(parse_string(text, machine), count) for text, count in warps], machine, blocks=blocks)


@st.composite
def chained(draw: st.DrawFn) -> Instance:
    """Up to three warps of strings with a barrier or two, mostly of one kind."""
    machine = draw(multiprocessors())
    letters = st.text("".join(machine.capacities), min_size=1, max_size=2)
    pieces = st.lists(letters, min_size=2, max_size=3).map(BARRIER.join).map(Program.chain).flatmap(running_ahead)
    groups = [(draw(pieces), draw(st.integers(1, 3)))]
    if groups[0][1] == 1 and draw(st.booleans()):
        groups.append((draw(pieces), 1))
    return Instance.merged(groups, machine)


@settings(max_examples=60)
@given(chained())
def test_the_phases_bound_the_whole_and_their_schedules_follow_each_other(instance: Instance) -> None:
    cut = phases(instance)
    again = checked.cut(instance)
    assert again == (None if cut is None else [(phase.instance, phase.lag) for phase in cut])
    assume(cut is not None and len(cut) > 1)
    assert cut is not None
    found = [sm_states.solve(phase.instance, Limits()) for phase in cut]
    most = sum((one.upper or 0) + phase.lag for one, phase in zip(found, cut, strict=True))
    truth = brute_force(instance)
    assert truth.upper <= most
    schedule = phased.join_phases(instance, cut, [one.witness for one in found if one.witness is not None])
    if schedule is not None:
        replay(instance, schedule)
        assert schedule.makespan <= truth.upper
        assert schedule.makespan == most or any(phase.lag for phase in cut)
    result = solve(instance, best_case=True)
    assert result.bounds == Bounds(truth.upper, truth.upper)
    assert result.best_case == Bounds(truth.lower, truth.lower)
    assert verify(result_bundle(result)).outcome is Outcome.ACCEPTED


@pytest.mark.parametrize(
    ("instance", "sizes", "lags"),
    [
        (asked(ONE, ("L()@3C()C(1)|C()@2C(4)", 2)), [3, 2], [0, 0]),
        (asked(ONE, ("L()@5C()|C()C()C(1)", 2)), None, None),  # awaited behind the barrier, too early
        (asked(ONE, ("L()@5C()|C()C()C()C(1)", 2)), [2, 4], [0, 0]),  # and when it is there in any case
        (asked(ONE, ("L()@4C()|(1)C()C()C()", 2)), [2, 3], [0, 0]),  # by the barrier
        (asked(ONE, ("L()@4C()|C()|(1)C()", 2)), None, None),  # by the next one
        (asked(ONE, ("L()@5C()|C()C()C()", 2)), [2, 3], [0, 0]),  # by the end, in 4 cycles or later
        (asked(ONE, ("L()@6C()|C()C()C()", 2)), None, None),
        (asked(ONE, ("L()@9C()|(1)C()|C()", 2)), [2, 1, 1], [0, 0, 0]),
        (asked(HELD, ("C()|C()", 2)), [1, 1], [0, 1]),  # the port is held for a cycle more
        (asked(replace(HELD, units=(UnitClass("C", 2, 2),)), ("C()|C()", 2)), None, None),  # the other port is free
        (asked(HELD, ("C()|L()C()", 2)), [1, 2], [0, 0]),  # for nobody
        (asked(PIPED, ("C()|C()", 2)), [1, 1], [0, 3]),  # one port for 1 cycle more, another one for 3
        (asked(LONG, ("C()|L()|C()|C()+4", 2)), [1, 1, 1, 1], [0, 0, 2, 3]),  # over several barriers
        (asked(HELD, ("C()|C()", 1), ("C()|L()", 1)), None, None),  # for one of two only
        (asked(LONG, ("C()|L()+3C()", 2)), [1, 2], [0, 0]),  # for nobody: C comes when the port is free again
        (asked(HELD, ("C()L()|C()", 2)), [2, 1], [0, 0]),
        (asked(HELD, ("C()+2|C()", 2)), [1, 1], [0, 0]),
        (asked(PAIR, ("C()|C()", 3)), [1, 1], [0, 1]),
        (asked(SHARED, ("C()|C()", 3)), None, None),  # partitions that meet, and begin at different times
        (asked(SHARED, ("C()|L()C()", 3)), [1, 2], [0, 0]),
        (asked(PAIR, ("C()L()|L()", 2), ("C()L()", 2)), None, None),  # two in one partition, or not
        (asked(HELD, ("C()L()|L()", 2), ("C()L()", 2)), [2, 1], [0, 0]),
        (asked(PAIR, ("C()L()|L()", 2), ("L()C()L()|L()C()", 2)), [None, None], [0, 0]),
        (asked(replace(PAIR, assignment=WarpAssignment.MODULO), ("CL()|L()", 2), ("LCL()|L()", 2)), None, None),
        (asked(replace(HELD, scheduler=SchedulerPromise.FAIR), ("C()L()|L()", 2)), None, None),
        (asked(ONE, ("C()|L()", 2), blocks=2), None, None),
    ],
)
def test_what_reaches_over_a_barrier_decides(
    instance: Instance, sizes: list[int | None] | None, lags: list[int] | None
) -> None:
    cut = phases(instance)
    again = checked.cut(instance)
    if sizes is None or lags is None:
        assert cut is None
        assert again is None
        return
    assert cut is not None
    assert again == [(phase.instance, phase.lag) for phase in cut]
    assert [phase.lag for phase in cut] == lags
    programs = [[group.program.end for group in phase.instance.groups] for phase in cut]
    assert all(size in (None, *ends) for size, ends in zip(sizes, programs, strict=True))
    assert brute_force(instance).upper <= sum(brute_force(phase.instance).upper + phase.lag for phase in cut)


def test_a_port_is_held_over_the_barrier_from_the_path_that_comes_to_it_first() -> None:
    """C holds its port for four cycles, and comes to the barrier behind it or behind an L."""
    places = ProgramPlace("C", (1, 2)), ProgramPlace("L", (2,)), ProgramPlace(BARRIER, (3,)), ProgramPlace("C", (4,))
    instance = Instance.of(
        Program(places, timings=(InstructionTiming(),) * 2 + (InstructionTiming(0, (0, 0)), InstructionTiming())),
        1,
        LONG,
    )
    cut = phases(instance)
    assert cut is not None
    assert [phase.lag for phase in cut] == [0, 3]
    assert checked.cut(instance) == [(phase.instance, phase.lag) for phase in cut]
    assert brute_force(instance).upper == 1 + 3 + 1


def test_a_result_that_is_left_behind_on_one_path_and_awaited_on_another_joins_the_phases() -> None:
    """As the end of its phase would wait for it on the path on which nobody does."""
    places = (
        ProgramPlace("L", (1, 2)),
        ProgramPlace("C", (2,)),
        ProgramPlace(BARRIER, (3,)),
        *(ProgramPlace("C", (n,)) for n in range(4, 10)),
    )
    ahead = InstructionTiming(1, (6, 6), (0,))
    timings = (
        ahead,
        InstructionTiming(awaits=(0,)),
        InstructionTiming(0, (0, 0)),
        *(InstructionTiming() for _ in range(6)),
    )
    instance = Instance.of(Program(places, timings=timings), 1, ONE)
    assert phases(instance) is None
    assert checked.cut(instance) is None
    always = replace(instance.groups[0].program, places=(ProgramPlace("L", (1,)), *places[1:]))
    assert phases(Instance.of(always, 1, ONE)) is not None


def test_phases_with_other_tokens_are_one_question() -> None:
    instance = asked(ONE, ("L()@3C(1)|L()@3C(3)|L()@3C(5)", 2))
    cut = phases(instance)
    assert cut is not None
    assert len({phase.instance for phase in cut}) == 1
    assert len(solve(instance).phases) == 1


@pytest.mark.parametrize("machine", [PAPER, ONE], ids=["base case", "runs ahead"])
def test_of_too_many_places_of_phases_no_phases_are_told_apart(
    monkeypatch: pytest.MonkeyPatch, machine: Machine
) -> None:
    """Two phases, each of an instruction and a barrier or the end: six. Without them one cycle for each instruction."""
    instance = asked(machine, ("C|C" if machine is PAPER else "C()|C()", 2))
    monkeypatch.setattr(phases_module, "MOST_PLACES", 6)
    assert phases(instance) is not None
    monkeypatch.setattr(phases_module, "MOST_PLACES", 5)
    assert phases(instance) is None
    assert pessimistic(instance) == brute_force(instance).upper == 4
    assert least_possible(instance) <= brute_force(instance).lower


def test_too_long_a_look_ahead_joins_the_phases(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = asked(ONE, ("L()@9C()C()C()C(1)|C()", 2))
    assert phases(instance) is not None
    monkeypatch.setattr(sys.modules[phases.__module__], "MOST_STEPS", 3)
    assert phases(instance) is None


def loaded(partitions: int = 4) -> Machine:
    """A scheduler, or several, with a memory pipe of two cycles."""
    memory = UnitClass("L", 1, 2, Latency(4, 4), uses=(Use(("pipe",), 1, 2),))
    pipe = (PortResource("pipe", 1),)
    return Machine("sm", (UnitClass("C", 1), memory), issue_width=1, partitions=partitions, resources=pipe)


def test_eight_warps_on_four_schedulers_are_exact_with_a_store_before_and_a_load_behind_each_barrier() -> None:
    machine = loaded()
    instance = asked(machine, ("L()@20C(1)@4L(2)@2|L()@9L()@9C(4,5)@4L(6)@2|L()@30C(8)", 8))
    result = solve(instance)
    assert result.upper_evidence is Upper.PHASES
    assert result.status is Status.EXACT
    pair = asked(machine, ("L()@20C(1)@4L(2)@2|L()@9L()@9C(4,5)@4L(6)@2|L()@30C(8)", 2))
    alone = replace(pair, machine=replace(machine, partitions=1))
    assert result.bounds == Bounds(brute_force(alone).upper, brute_force(alone).upper)


def test_a_machine_that_leaves_no_choice_of_partitions_is_joined_as_it_is() -> None:
    machine = replace(loaded(2), assignment=WarpAssignment.MODULO)
    result = solve(asked(machine, ("L()@6C(1)@4L(2)@2|L()@3C(4)", 3)))
    assert result.witness.partitions == ()
    assert result.status is Status.EXACT


def nested() -> Document:
    """A bundle of phases of partitions; one phase begins late."""
    instance = asked(loaded(2), ("L()@6C(1)@4L(2)@2|L()@3C(4)", 4))
    cut = phases(instance)
    assert cut is not None
    assert [phase.lag for phase in cut] == [0, 1]
    return result_bundle(solve(instance))


def test_a_bundle_proves_each_partition_of_each_phase() -> None:
    document = nested()
    assert [phase["evidence"] for phase in document["phases"]] == [Upper.PARTITIONS] * 2
    assert all(len(phase["partitions"]) == 1 for phase in document["phases"])
    assert verify(document).outcome is Outcome.ACCEPTED


def test_forged_phases_of_partitions_are_rejected() -> None:
    def lower(document: Document) -> None:
        document["phases"][0]["upper"] -= 1
        document["phases"][0]["partitions"][0]["upper"] -= 1

    def no_partitions(document: Document) -> None:
        del document["phases"][0]["partitions"]

    def nest(document: Document) -> None:
        one = document["phases"][0]["partitions"][0]
        one["partitions"] = [dict(one)]

    def without_lag(document: Document) -> None:
        result, upper = document["result"], document["result"]["upper"] - 1
        result["upper"] = result["history"][-1]["upper"] = upper
        result["lower"] = result["history"][-1]["lower"] = min(upper, result["lower"])

    for change, reason in [
        (lower, "is wrong"),
        (no_partitions, "none are given"),
        (nest, "unknown key 'partitions'"),
        (without_lag, "lower bound says"),
    ]:
        verdict = verify(forged(nested(), change))
        assert verdict.outcome is Outcome.REJECTED
        assert reason in verdict.reason


def test_what_a_phase_waits_for_at_its_beginning_is_part_of_the_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here the barrier waits until the port is free, which the cut does not see; all states would."""
    monkeypatch.setattr(phased, "_is_exact", lambda _: True)
    result = solve(asked(loaded(), ("L()@20C(1)@4L(2)@2|(3)L()@9L()@9C(4,5)@4", 8)))
    assert result.bounds.lower == result.bounds.upper - 1

    def lower(document: Document) -> None:
        upper = document["result"]["upper"] - 1
        document["result"]["upper"] = document["result"]["history"][-1]["upper"] = upper
        document["result"]["status"] = "exact"

    verdict = verify(forged(result_bundle(result), lower))
    assert verdict.outcome is Outcome.REJECTED
    assert "add up to" in verdict.reason


def test_joined_schedules_begin_late_in_each_partition_by_itself() -> None:
    instance = asked(PAIR, ("C()|C()L()", 3))
    cut = phases(instance)
    assert cut is not None
    found = [solve(phase.instance).witness for phase in cut]
    schedule = phased.join_phases(instance, cut, found)
    assert isinstance(schedule, Schedule)
    assert replay(instance, schedule) == brute_force(instance).upper
