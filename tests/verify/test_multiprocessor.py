"""The independent checker on real multiprocessors: partitions, resources, warps that run ahead."""

import copy
import json
import random
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makespan.model.gpu import GpuInstance, Grid
from makespan.model.instance import Instance
from makespan.model.machine import Latency, Machine, PortResource, UnitClass, Use, WarpAssignment
from makespan.model.program import InstructionTiming, Program, ProgramPlace
from makespan.model.result import Bounds, Result, Upper
from makespan.model.schedule import Schedule
from makespan.model.strings import parse_string
from makespan.proof.bounds import best_case, pessimistic, theorem_1s
from makespan.proof.bounds.best_case import least_possible
from makespan.proof.bounds.theorem_e import theorem_e
from makespan.proof.engines import solve
from makespan.report.result.bundle import result_bundle
from makespan.verify import (
    Outcome,
    Refused,
    interference,
    lower_bounds,
    pairs,
    parse,
    partitions,
    phases,
    reading,
    states,
    verify,
)
from makespan.verify.alone import longest_alone
from makespan.verify.refusal import ProofSteps, TooMuchWork
from makespan.verify.witness import replay
from tests.forgery import Document, forged, set_bounds
from tests.oracle import brute_force, brute_force_gpu, obeys
from tests.strategies import multiprocessor_instances, runs

PLAIN = UnitClass("C", 1)
MEMORY = UnitClass("L", 1, 1, Latency(3, 3), shared=True, uses=(Use(("port",), 1, 2),))
EITHER = UnitClass("C", 2, uses=(Use(("alu", "fma"), 2, 2),))
SHARED = Machine(
    "shared",
    (PLAIN, MEMORY),
    1,
    partitions=2,
    assignment=WarpAssignment.MODULO,
    resources=(PortResource("port", 1, True),),
)
SPREAD = Machine(
    "spread",
    (EITHER, UnitClass("L", 1, 1, Latency(2, 3))),
    1,
    partitions=2,
    resources=(PortResource("alu", 1), PortResource("fma", 1)),
)
ONCE = UnitClass("C", 2, 1, Latency(2, 2), uses=(Use(("alu", "fma"), 1, 1),))
ONE_OF_BOTH = Machine("one of both", (ONCE, UnitClass("L", 2, uses=(Use(("alu",), 2, 2),))), resources=SPREAD.resources)
ALONE = Machine("alone", (PLAIN, UnitClass("L", 1, 2, Latency(4, 4))), 1, partitions=2)


def asked(machine: Machine, *warps: tuple[str, int], blocks: int = 1) -> Instance:
    return Instance.merged(
        [(parse_string(string, machine), number) for string, number in warps], machine, blocks=blocks
    )


# Witnesses


def changed(draw: random.Random, instance: Instance, schedule: Schedule) -> Schedule:
    """One or two changes, of whatever a schedule says."""
    cycles, latencies = [list(warps) for warps in schedule.cycles], [list(row) for row in schedule.latencies]
    parts, uses = list(schedule.partitions), [[list(held) for held in row] for row in schedule.uses]
    kinds = ["drop", "add", "insert", "cut", "swap", "move", "turn"]
    kinds += ["latency"] * 3 * bool(latencies) + ["use"] * 3 * bool(uses) + ["part"] * 2 * bool(parts)
    for _ in range(draw.choice((1, 1, 2))):
        a, b = draw.randrange(len(cycles)), draw.randrange(len(cycles))
        match draw.choice(kinds):
            case "drop" if cycles[a]:
                cycles[a].pop()
            case "add":
                cycles[a].append(draw.randrange(instance.warps))
            case "insert":
                cycles.insert(draw.randrange(len(cycles) + 1), [])
            case "cut" if len(cycles) > 1:
                del cycles[a]
            case "swap":
                cycles[a], cycles[b] = cycles[b], cycles[a]
            case "move" if cycles[a]:
                cycles[b].append(cycles[a].pop())
            case "turn" if cycles[a]:
                cycles[a][draw.randrange(len(cycles[a]))] = draw.randrange(instance.warps)
            case "latency":
                row = draw.choice(latencies)
                row[draw.randrange(len(row))] += draw.choice((-1, 1))
            case "use":
                held = draw.choice(draw.choice(uses))
                if held:
                    at, (which, times) = draw.randrange(len(held)), draw.choice(held)
                    held[at] = draw.choice(((which, times + 1), (which, max(1, times - 1)), (1 - which, times)))
            case "part":
                parts[draw.randrange(len(parts))] = draw.randrange(instance.machine.partitions)
            case _:
                pass
    return replace(
        schedule,
        cycles=tuple(tuple(sorted(set(warps))) for warps in cycles),
        latencies=tuple(map(tuple, latencies)),
        partitions=tuple(parts),
        uses=tuple(tuple(map(tuple, row)) for row in uses),
    )


@given(st.data(), multiprocessor_instances(promises=True), st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_a_witness_is_accepted_exactly_if_the_definition_allows_it(
    data: st.DataObject, instance: Instance, draw: random.Random
) -> None:
    schedule = data.draw(runs(instance))
    assert replay(instance, schedule) == schedule.makespan
    for _ in range(3):
        other = changed(draw, instance, schedule)
        try:
            allowed = replay(instance, other) == other.makespan
        except Refused:
            allowed = False
        assert allowed == obeys(instance, other)


AHEAD = asked(ALONE, ("L()C()C(1)", 2))
LONG = Machine("long", (UnitClass("C", 2, 3), UnitClass("L", 1, 5)))
FIXED = asked(replace(ALONE, assignment=WarpAssignment.MODULO), ("C", 2))
HELD = asked(SPREAD, ("C()", 3))


@pytest.mark.parametrize(
    ("instance", "schedule", "why"),
    [
        (AHEAD, Schedule(((0, 1), (0, 1), (), (), (0, 1)), ((0, 1, 2),) * 2, partitions=(0, 1)), None),
        (AHEAD, Schedule(((0, 1), (0, 1), (), (0,)), ((0, 1, 2),) * 2, partitions=(0, 1)), "a stall or a result"),
        (AHEAD, Schedule(((0, 1), (0,)), ((0, 1, 2),) * 2, partitions=(0, 1)), "class C is left out although all"),
        (AHEAD, Schedule(((0, 1),), ((0, 1, 2),) * 2, partitions=(0, 0)), r"not spread evenly .*: \[2, 0\]"),
        (AHEAD, Schedule(((0, 1),), ((0, 1, 2),) * 2, partitions=(0, 2)), "2 partitions in 0..1 for 2 warps"),
        (AHEAD, Schedule(((0, 1),), ((0, 1, 2),) * 2), "0 partitions in 0..1 for 2 warps"),
        (FIXED, Schedule(((0, 1),), ((0,),) * 2, partitions=(1, 0)), "leaves no choice of a part"),
        (HELD, Schedule((), ((0,),) * 3, ((1,),) * 3, (0, 0, 1), ((((0, 2),),),) * 2), "uses of 2 warps for 3"),
        (HELD, Schedule((), ((0,),) * 3, ((1,),) * 3, (0, 0, 1)), "uses of 0 warps for 3"),
        (HELD, Schedule((), ((0,),) * 3, ((1,),) * 3, (0, 0, 1), ((((0, 2),),),) * 2 + ((),)), "of 0 instructions"),
        (HELD, Schedule((), ((0,),) * 3, ((1,),) * 3, (0, 0, 1), ((((0, 2),),),) * 2 + ((((2, 2),),),)), "uses .*C"),
        (HELD, Schedule((), ((0,),) * 3, ((1,),) * 3, (0, 0, 1), ((((0, 2),),),) * 2 + ((((0, 1),),),)), "uses .*C"),
        (HELD, Schedule((), ((0,),) * 3, ((1,),) * 3, (0, 0, 1), (((),),) * 3), r"uses \(\) for class C"),
        (HELD, Schedule((), ((0,),) * 3, ((1,),) * 3, (0, 0, 1), ((((0, 2), (0, 2)),),) * 3), "uses .* for class C"),
        (FIXED, Schedule(((0, 1),), ((0,),) * 2, ((1,), (2,))), "a latency of 2 for class C of warp 1"),
        (HELD, Schedule((), ((0,),) * 3, ((1,),) * 3, (0, 0, 1), ((((-1, 2),),),) * 3), "uses .* for class C"),
        (FIXED, Schedule(((0, 1),), ((0,),) * 2, uses=((((0, 1),),), ((),))), "uses .* for class C of warp 0"),
        (
            HELD,
            Schedule(((0, 2), (1,)), ((0,),) * 3, ((1,),) * 3, (0, 0, 1), ((((0, 2),),),) * 3),
            "cycle 1: warp 1 finds no free port of alu",
        ),
        (
            HELD,
            Schedule(((0, 2), (1,)), ((0,),) * 3, ((1,),) * 3, (0, 0, 1), ((((0, 2),),), *[(((1, 2),),)] * 2)),
            None,
        ),
    ],
)  # fmt: skip
def test_every_rule_of_a_multiprocessor_is_checked(instance: Instance, schedule: Schedule, why: str | None) -> None:
    if why is None:
        assert replay(instance, schedule) == schedule.makespan
    else:
        with pytest.raises(Refused, match=why):
            replay(instance, schedule)


# Proofs


@given(multiprocessor_instances())
@settings(max_examples=60, deadline=None)
def test_its_theorem_and_its_enumeration_bound_the_truth(instance: Instance) -> None:
    truth = brute_force(instance)
    assert states.shortest_and_longest(instance, 10**6) == (truth.lower, truth.upper)
    proven = interference.bound(instance)
    assert truth.upper <= min(proven, interference.one_after_another(instance))
    if instance.is_multiprocessor:
        assert proven <= pessimistic(instance)
    assert lower_bounds.least_makespan(instance) <= truth.lower
    questions = partitions.questions(instance)
    if questions is not None:
        assert truth.upper == max(brute_force(question).upper for question in questions)


@pytest.mark.parametrize(
    ("instance", "value"),
    [
        (asked(replace(ALONE, partitions=1), ("L()C()", 3)), 4 + 6),  # each other: its slots, and L for a cycle more
        (asked(ALONE, ("L()C()", 4)), 4 + 3),
        (asked(ALONE, ("C", 2)), 1),  # nobody beside it
        (asked(SHARED, ("L()", 2)), 3 + 2),  # the port of the other partition, for up to two cycles
        (asked(replace(ALONE, partitions=1), ("L()|C", 1)), 4),  # the load is pending over the barrier
        (asked(replace(ALONE, partitions=1), ("L()|", 1)), 4),
        (asked(LONG, ("C()C()C()", 1)), 3 + 3),  # it fills both ports itself: each instruction for two cycles more
        (asked(LONG, ("L()|L()", 1)), 1 + 5),  # the port is held over the barrier
        (asked(replace(ALONE, partitions=1), ("C()", 1), ("L()@1", 1)), 2),  # one slot for two ports
        (asked(ONE_OF_BOTH, ("C", 1), ("L", 1)), 2),  # nobody else takes the fma: C is not left out
    ],
)
def test_theorem_1s_by_hand(instance: Instance, value: int) -> None:
    assert brute_force(instance).upper <= interference.bound(instance) == value


@pytest.mark.parametrize("waiting", [InstructionTiming(1, (1, 1), (), (0,)), InstructionTiming()])
def test_a_result_is_there_when_the_last_that_sets_it_is_done(waiting: InstructionTiming) -> None:
    """Two results of one token, or of two; somebody waits for it, or nobody does but the end."""
    for second in (SOON, SOON._replace(sets=(1,))):
        instance = ahead(automaton("C 1", "C 2", "C 3"), LATE, second, waiting)
        longest = 9 + bool(waiting.awaits)
        assert states.shortest_and_longest(instance, 100) == (longest, longest)
        assert brute_force(instance) == Bounds(longest, longest)
        assert longest_alone(instance.groups[0].program, instance.machine, ProofSteps(100)) == longest


def test_a_port_is_free_when_the_last_that_holds_it_is_done() -> None:
    """R waits for P, which holds its port for longer than X would."""
    instance = asked(AGAIN, ("PXR", 1))
    assert longest_alone(instance.groups[0].program, AGAIN, ProofSteps(100)) == 8 + 1 == brute_force(instance).upper


def test_what_would_take_too_long_is_bounded_by_the_sum_or_not_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = asked(SHARED, ("L()C(1)", 4))
    monkeypatch.setattr(interference, "MOST_STEPS", 10)
    assert interference.bound(instance) == 4 * (3 + 1)
    assert states.shortest_and_longest(instance, 5) is None
    assert states.shortest_and_longest(asked(SHARED, ("C", 201)), 10**6) == (101, 101)
    many = asked(ALONE, *(("C" * number, 1) for number in range(1, 40)))
    assert partitions.questions(many) is None
    with pytest.raises(TooMuchWork):
        states.StateWalker(instance, ProofSteps(2)).starts()


def test_ports_that_may_be_held_for_many_different_times_are_followed() -> None:
    either = (PortResource("a", 1), PortResource("b", 1))
    machine = Machine("m", (UnitClass("L", 1, uses=(Use(("a", "b"), 1, 600),)),), resources=either)
    assert states.shortest_and_longest(Instance.of("L", 2, machine), 100_000) == (2, 2)


def test_prices_for_which_there_is_no_time_are_left_out() -> None:
    instance = asked(SPREAD, ("C()C()", 2), ("C()C()C()", 2))
    proven = []
    for steps in range(1, 400):
        try:
            proven.append(interference.HitBound(instance, ProofSteps(steps)).bound())
        except TooMuchWork:
            assert not proven
    assert proven == sorted(proven, reverse=True)
    assert proven[-1] == interference.bound(instance)


BOTH = Machine(
    "both",
    (UnitClass("C", 1, uses=(Use(("port",)),)), UnitClass("L", 2, uses=(Use(("port",), 3, 3),))),
    resources=(PortResource("port", 1),),
)
ONE = replace(ALONE, partitions=1)
WIDE = Machine("wide", (PLAIN, UnitClass("L", 9)), partitions=2)
ANY_PORT = UnitClass("C", 2, uses=(Use(("all", "own"), 2, 2),))
MIXED = Machine(
    "mixed",
    (ANY_PORT, UnitClass("L", 1)),
    partitions=2,
    assignment=WarpAssignment.MODULO,
    resources=(PortResource("all", 1, True), PortResource("own", 1)),
)
EACH = UnitClass("X", 3, uses=(Use(("a",)), Use(("b",), 3, 3)))
EITHER_OF = UnitClass("Y", 3, uses=(Use(("a", "b"), 3, 3),))
TWICE = Machine("twice", (EACH, EITHER_OF), resources=(PortResource("a", 1), PortResource("b", 1)))


def automaton(*places: str, starts: tuple[int, ...] = (0,), machine: Machine = ONE) -> Instance:
    """One warp: of each place its class, and those that may follow."""
    rows = [place.split() for place in places]
    program = Program(tuple(ProgramPlace(unit, tuple(map(int, after))) for unit, *after in rows), starts)
    return Instance.of(program, 1, machine)


def ahead(instance: Instance, *timings: InstructionTiming) -> Instance:
    """The same warp, which runs ahead."""
    return Instance.of(replace(instance.groups[0].program, timings=timings), 1, instance.machine)


BUS = Machine(
    "bus",
    (PLAIN, UnitClass("S", 1, uses=(Use(("bus",), 3, 6),)), UnitClass("L", 1, uses=(Use(("bus",), 2, 2),))),
    resources=(PortResource("bus", 1),),
)
AGAIN = Machine(
    "again",
    (
        UnitClass("P", 1, uses=(Use(("a",), 8, 8),)),
        UnitClass("X", 1, 1, Latency(5, 5), uses=(Use(("a", "b")),)),
        UnitClass("R", 1, uses=(Use(("a",)),)),
        UnitClass("T", 1, uses=(Use(("a",)), Use(("b",)))),
    ),
    resources=TWICE.resources,
)
LATE, SOON, OPEN = InstructionTiming(1, (9, 9), (0,)), InstructionTiming(1, (2, 2), (0,)), InstructionTiming(0, (0, 0))
WAITS, NEEDS = InstructionTiming(0, (0, 0), (), (0,)), InstructionTiming(1, (1, 1), (), (0,))


@pytest.mark.parametrize(
    ("instance", "value"),
    [
        (asked(AGAIN, ("X", 1), ("T", 1)), 1 + 5),  # one instruction takes both ports of which the other needs one
        (automaton("S 2", "L 2", "| 3", "L 4", starts=(0, 1), machine=BUS), 6 + 1),  # held over the barrier by S
        (ahead(automaton("C 1", "C 2", "| 3", "C 4"), LATE, SOON, OPEN, NEEDS), 9 + 1),
        # two barriers, one of which waits for what is pending; or one, and what is pending is there at the end
        (
            ahead(
                automaton("C 1", "| 2 3", "| 5", "C 4", "| 5", "C 6"),
                LATE,
                OPEN,
                WAITS,
                InstructionTiming(),
                OPEN,
                InstructionTiming(),
            ),
            1 + 8 + 7,
        ),
        # the second place comes to the barrier later, with less of what is pending
        (
            ahead(automaton("C 1 2", "| 4", "C 3", "| 4", "C 5"), LATE, OPEN, InstructionTiming(3), OPEN, NEEDS),
            4 + 8 + 1,
        ),
        (asked(AGAIN, ("PXR", 1)), 8 + 1),  # X takes the other port, and R waits for the one that P holds
        (automaton("C 1 2", "L 3", "C 3", "C 4"), 1 + 4 + 1),  # the longer of two ways is the first
    ],
)
def test_the_latest_of_all_that_a_warp_waits_for_counts(instance: Instance, value: int) -> None:
    assert brute_force(instance).upper <= interference.bound(instance) == value
    found = theorem_1s(instance)
    assert found is None or found.upper == value


@pytest.mark.parametrize("ways", [(LATE, SOON), (SOON, LATE)])
def test_the_soonest_way_to_a_result_counts_in_the_shortest_schedule(
    ways: tuple[InstructionTiming, InstructionTiming],
) -> None:
    instance = ahead(automaton("C 2", "C 2", "C 3", starts=(0, 1)), *ways, NEEDS)
    assert brute_force(instance).lower == lower_bounds.least_makespan(instance) == least_possible(instance) == 2 + 1


@pytest.mark.parametrize(
    ("instance", "value"),
    [
        (asked(ALONE, ("L()C()C(1)", 2)), 5),  # the load, and whoever needs it
        (asked(ALONE, ("L()|C", 5)), 4 + 4),  # three loads on one port, 2 cycles each, the last for 4
        (asked(SHARED, ("L()", 4)), 3 + 3),  # one port for all
        (asked(ALONE, ("CCC", 3)), 6),
        (asked(LONG, ("L()L()C(2)", 1)), 5 + 1 + 1),  # the port that it holds itself, and what it waits for then
        (asked(LONG, ("C()C()", 1)), 2),  # of two ports it holds one
        (asked(LONG, ("C", 1)), 1),
        (asked(LONG, ("L|", 1), ("C", 1)), 1),  # nothing is behind the barrier
        (asked(ONE_OF_BOTH, ("C()C()", 1)), 1 + 2),  # it may take the other of both
        (asked(SPREAD, ("C()C()", 1)), 2),
        (asked(BOTH, ("L()L()C(1)", 1)), 3 + 3 + 1),  # the other port of L is free, but not the resource
        (asked(BOTH, ("C", 3), ("L", 1)), 4),  # L holds it for longer, and may be the last
        (asked(TWICE, ("X", 1), ("Y", 3)), 2),  # four on two ports; of what X holds the shorter counts
        (asked(ONE, ("L()@2..5", 3)), 2 * 2 + 2),
        (asked(replace(BOTH, resources=(PortResource("port", 9),)), ("C()@2", 5), ("C()@5", 1)), 5 + 2),
        (asked(ALONE, ("CCC", 1), ("L", 1), ("CC", 1)), 4),  # the load is longer
        (asked(replace(ALONE, assignment=WarpAssignment.MODULO), ("CCC", 1), ("L", 1), ("CC", 1)), 3 + 2),
        (asked(LONG, ("C", 5)), 2 * 3 + 1),
        (asked(ONE, ("L()@5", 2), ("C", 1)), 2 + 5),
        (asked(replace(ALONE, partitions=3), ("C", 4)), 2),
        (asked(WIDE, ("CC", 2), ("C", 1), ("L", 3)), 3),  # of five C one partition has three
        (asked(MIXED, ("CCC", 1), ("L", 1), ("CC", 1)), 2 + 1),  # three ports for two partitions
        (automaton("C 1 3", "| 2", "C 3"), 1),  # or a barrier, and more
        (automaton("C 2", "C 2", "L 3", starts=(0, 1)), 1 + 4),
        (automaton("C 3", "C 2", "C 3", starts=(0, 1)), 1),  # the first of two ways to begin
        (automaton("C 1 3", "| 2", "L 4", "C 4"), 2),  # the barrier is not on every path
        (automaton("C 1 2", "| 4", "L 3", "| 4", "C 5"), 2),  # the load is on one of the paths to a barrier
    ],
)
def test_the_shortest_schedule_by_hand(instance: Instance, value: int) -> None:
    assert brute_force(instance).lower >= lower_bounds.least_makespan(instance) == value


def test_a_token_is_pending_for_its_own_instructions() -> None:
    """The third instruction waits for the second one, whose result is there at once, and not for the first one."""
    timings = (
        InstructionTiming(1, (5, 5), (0,)),
        InstructionTiming(1, (1, 1), (1,)),
        InstructionTiming(1, (5, 5), (1,), (1,)),
    )
    program = Program(
        (ProgramPlace("C", (1,)), ProgramPlace("C", (2,)), ProgramPlace("C", (3,))), (0,), timings=timings
    )
    alone = Instance.of(program, 1, ONE)
    assert lower_bounds.least_makespan(alone) == brute_force(alone).lower == 2 + 5


@pytest.mark.parametrize(
    ("gpu", "value"),
    [
        (GpuInstance.of([(Program.chain("CCCC"), 1)], 3, Machine.of({"C": 4}), sms=1, resident=2), 4 + 4),
        (GpuInstance.of([(Program.chain("CC"), 1)], 3, Machine.of({"C": 1}), sms=2, resident=2), 2 + 2),
        (
            GpuInstance(
                tuple(Grid(((Program.chain(letters), 1),), 1, (1,)) for letters in ("CC", "CCC")),
                Machine.of({"C": 1}), 2, (1,),
            ),
            3,
        ),
        (
            GpuInstance.of(
                [(Program.chain("CC"), 2), (Program.chain("C"), 1)], 3, Machine.of({"C": 1}), sms=2, resident=1
            ),
            2 * 5,
        ),
        (
            GpuInstance(
                (Grid(((Program.chain("C"), 3),), 2, (1,)), Grid(((Program.chain("CC"), 1),), 1, (1,))),
                Machine.of({"C": 1}), 1, (9,),
            ),
            2 * 3 + 2,
        ),
    ],
)  # fmt: skip
def test_the_shortest_schedule_of_a_gpu_by_hand(gpu: GpuInstance, value: int) -> None:
    """A slot has two blocks, an SM has two blocks, each grid has an SM of its own, or all share one."""
    assert (
        brute_force_gpu(gpu).lower
        == lower_bounds.least_makespan_of_gpu(gpu)
        == best_case.least_possible_gpu(gpu)
        == value
    )


def test_blocks_keep_their_room_for_as_long_as_they_take() -> None:
    """Two blocks take 2 of 4 for 2 cycles, and two take 3 for 3 cycles: 8 + 18, for which 6 cycles are too few."""
    late = Machine("late", tuple(UnitClass(name, 4, 1, Latency(n, n)) for name, n in (("C", 2), ("L", 3))))
    grids = Grid(((Program.chain("C"), 1),), 2, (2,)), Grid(((Program.chain("L"), 1),), 2, (3,))
    gpu = GpuInstance(grids, late, 1, (4,))
    assert (
        brute_force_gpu(gpu).lower
        == 8
        > lower_bounds.least_makespan_of_gpu(gpu)
        == best_case.least_possible_gpu(gpu)
        == 7
    )


@given(multiprocessor_instances(most_warps=2, most=5))
@settings(max_examples=120, deadline=None)
def test_no_schedule_of_one_warp_is_shorter_than_its_floor(instance: Instance) -> None:
    alone = Instance.of(instance.groups[0].program, 1, instance.machine)
    assert lower_bounds.least_makespan(alone) <= brute_force(alone).lower


def test_pairs_without_thresholds_prove_nothing_of_resources() -> None:
    instance = asked(replace(SPREAD, issue_width=None), ("CL", 3))
    with pytest.raises(Refused, match="theorem E needs thresholds"):
        pairs.bound(instance, [pairs.disjoint(instance)])


SHARING = Machine("sharing", (PLAIN, UnitClass("L", 1, 5, shared=True)), 1, partitions=2)


@pytest.mark.parametrize(
    ("instance", "late"),
    [
        (asked(LONG, ("L()|L()", 1)), 4),  # all wait for the port that the last L holds
        (asked(LONG, ("C()|C()", 2)), None),  # one of two ports may be free
        (asked(SHARING, ("L()|L()", 2)), None),  # and then another partition begins later
        (asked(SHARING, ("L()|C", 2)), 0),
        (asked(replace(LONG, partitions=2), ("L()|L()", 2)), 4),  # each has its own
    ],
)
def test_a_port_that_is_held_over_a_barrier_delays_all_or_joins_the_phases(
    instance: Instance, late: int | None
) -> None:
    cut = phases.cut(instance)
    assert late == (None if cut is None else sum(cycles for _, cycles in cut))
    if cut is not None:
        alone = sum(brute_force(question).upper + cycles for question, cycles in cut)
        assert brute_force(instance).upper <= alone


def test_a_pool_that_is_shared_joins_the_partitions() -> None:
    assert partitions.questions(asked(SHARED, ("LC", 2))) is None
    assert partitions.questions(asked(SHARED, ("C", 2))) is not None  # nobody uses what is shared
    assert partitions.questions(asked(ALONE, ("C|L", 2))) is None
    assert partitions.questions(asked(replace(ALONE, partitions=1), ("CL()", 2))) is None


# Bundles


@cache
def results() -> tuple[Result, ...]:
    """One for every part of a bundle that only multiprocessors have."""
    return (
        solve(asked(SHARED, ("L()C()C(1)", 4)), best_case=True),
        solve(asked(SPREAD, ("C()L()@2..3C(2)", 3))),
        solve(asked(ALONE, ("L()C(1)L()", 4), ("LC", 1))),
        solve(asked(SHARED, ("L()|(1)C()", 4), blocks=2)),
        by_theorem_1s(asked(SHARED, ("L()C()C(1)", 4))),
        solve(asked(SHARED, ("L()C()", 1), ("C()C(1)", 2), ("L()C()", 1)), best_case=True),
    )


def by_theorem_1s(instance: Instance) -> Result:
    found = solve(instance)
    bounds = Bounds(found.bounds.lower, interference.bound(instance))
    return replace(found, bounds=bounds, upper_evidence=Upper.THEOREM_1S, history=(), partitions=())


@cache
def bundles() -> tuple[Document, ...]:
    return tuple(json.loads(json.dumps(result_bundle(result))) for result in results())


def test_bundles_of_multiprocessors_are_read_as_they_were_written_and_accepted() -> None:
    for result, document in zip(results(), bundles(), strict=True):
        read = reading.bundle(document)
        assert read.instance == result.instance
        assert read.witness == result.witness
        assert [bound for _, bound in dict(read.bound.partitions).items()] == list(result.partitions)
        checked = verify(document)
        assert checked.outcome is Outcome.ACCEPTED, checked
        assert (checked.lower, checked.claim and checked.claim.upper) == (result.bounds.lower, result.bounds.upper)
    assert results()[2].upper_evidence == Upper.PARTITIONS
    assert bundles()[5]["instance"]["order"] == [[0, 1], [1, 2], [0, 1]]


def test_what_is_held_for_a_single_cycle_is_read() -> None:
    result = solve(asked(ONE_OF_BOTH, ("C", 3)))
    assert {cycles for row in result.witness.uses for held in row for _, cycles in held} == {1}
    assert verify(json.loads(json.dumps(result_bundle(result)))).outcome is Outcome.ACCEPTED


def test_pairs_with_thresholds_are_proven_again_where_warps_run_ahead() -> None:
    machine = Machine("ahead", (PLAIN, UnitClass("L", 1, 2, Latency(4, 4))))
    instance = asked(machine, ("L()C()C(1)L()C(3)", 4))
    proof = theorem_e(instance)
    assert proof is not None
    result = replace(solve(instance), upper_evidence=Upper.THEOREM_E, weights=proof.weights, history=())
    claimed = replace(result, bounds=Bounds(result.bounds.lower, proof.upper))
    checked = verify(json.loads(json.dumps(result_bundle(claimed))))
    assert checked.outcome is Outcome.ACCEPTED, checked
    assert checked.claim is not None
    assert dict(checked.uppers)[Upper.THEOREM_E] <= proof.upper


@given(multiprocessor_instances(), st.booleans())
@settings(max_examples=12, deadline=None)
def test_what_is_solved_is_proven_again(instance: Instance, best_case: bool) -> None:
    content = json.dumps(result_bundle(solve(instance, best_case=best_case))).encode()
    checked = verify(parse(content))
    assert checked.outcome is Outcome.ACCEPTED, checked


def numbers(part: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths to all whole numbers."""
    entries = list(part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ())
    found = [(*path, key) for key, value in entries if type(value) is int]
    return found + [inner for key, value in entries for inner in numbers(value, (*path, key))]


def number_changed(draw: random.Random, document: Document) -> Document:
    """A copy with one number of the instance, the claim, the witness or the evidence one off."""
    parts = [part for part in ("instance", "result", "witness", "partitions") if document.get(part)]
    part = draw.choice(parts)
    path = draw.choice(numbers(document[part]))

    def change(copied: Document) -> None:
        at = copied[part]
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] += draw.choice((-1, 1))
        if part == "instance" and path[0] == "order":
            copied["result"]["order"] = copy.deepcopy(copied["instance"]["order"])
        if part == "instance" and path[0] == "machine" and draw.random() < 0.9:  # everywhere
            copied["result"] |= {key: copy.deepcopy(copied["instance"]["machine"][key]) for key in said(copied)}

    return forged(document, change)


def said(document: Document) -> list[str]:
    """What a result repeats of its machine."""
    return [key for key in document["instance"]["machine"] if key in document["result"] and key != "name"]


def bound_changed(draw: random.Random, document: Document) -> Document:
    """A copy that claims one cycle less, or more, of whatever evidence."""

    def change(copied: Document) -> None:
        result = copied["result"]
        lower, upper = result["lower"], result["upper"]
        match draw.randrange(4):
            case 0:
                set_bounds(copied, min(lower, upper - 1), upper - 1)
            case 1:
                set_bounds(copied, lower + 1, max(upper, lower + 1))
                draw.choice(copied["witness"]["cycles"])[0] += 1
            case 2:
                result["pessimistic"] -= 1
            case _:
                result["evidence"]["upper"] = draw.choice(["theorem-1s", "partitions", "pessimistic", "two-warp-dp"])
                set_bounds(copied, lower, max(lower, upper - draw.randrange(2)))

    return forged(document, change)


def holds(document: Document) -> bool:
    """Whether a bundle that was accepted claims the truth of whatever question it now has."""
    read = reading.bundle(document)
    truth = brute_force(read.instance)
    best = read.claim.best_case or (truth.lower, truth.lower)
    return (
        read.claim.lower <= truth.upper <= min(read.claim.upper, read.claim.pessimistic)
        and best[0] <= truth.lower <= best[1]
        and obeys(read.instance, read.witness)
    )


def test_a_changed_bundle_is_rejected_unless_it_is_still_true() -> None:
    draw, rejected = random.Random(1), 0
    for number in range(80):
        document = draw.choice(bundles())
        change = bound_changed if number % 3 == 0 else number_changed
        other = change(draw, document)
        checked = verify(other)
        if checked.outcome is not Outcome.REJECTED:
            assert holds(other), checked
        rejected += checked.outcome is Outcome.REJECTED
    assert rejected > 50


MACHINE, WITNESS = ("instance", "machine"), ("witness",)


@pytest.mark.parametrize(
    ("number", "path", "value", "why"),
    [
        (0, (*MACHINE, "partitions"), 1, "partitions is not a whole number in 2..64"),
        (0, (*MACHINE, "partitions"), 65, "partitions is not a whole number in 2..64"),
        (0, (*MACHINE, "assignment"), "all", "the assignment is not known: 'all'"),
        (0, (*MACHINE, "assignment"), None, "the assignment is not known: None"),
        (0, (*MACHINE, "shared"), [], "shared is not a list of 1"),
        (0, (*MACHINE, "shared"), ["port", "L"], "shared does not name classes and resources in their order"),
        (0, (*MACHINE, "shared"), ["L", "L"], "shared does not name classes and resources in their order"),
        (0, (*MACHINE, "shared"), ["L", "x"], "shared does not name classes and resources in their order"),
        (0, (*MACHINE, "resources"), {}, "resources are not an object of 1..64 names"),
        (0, (*MACHINE, "resources"), {"port": 1, "Q": 1}, "a resource is named by small letters"),
        (0, (*MACHINE, "resources", "port"), True, "capacity is not a whole number"),
        (0, (*MACHINE, "resources"), {"other": 1}, "shared does not name classes and resources in their order"),
        (0, (*MACHINE, "uses"), {}, "uses are not an object of classes"),
        (0, (*MACHINE, "uses"), {"S": [[["port"], 1, 1]]}, "uses are not an object of classes"),
        (0, (*MACHINE, "uses", "L"), [[["none"], 1, 1]], "no resource none, which class L uses"),
        (0, (*MACHINE, "uses", "L"), [[["port"], 2, 1]], "a range of intervals is"),
        (0, (*MACHINE, "uses", "L"), [[["port"], 1]], "use is not a list of 3..3 items"),
        (0, ("instance", "groups", 0, "timings"), [], "timings are given, but none"),
        (0, ("instance", "groups", 0, "timings", 0, 0), 0, "place 0: a stall of 0 cycles"),
        (0, ("instance", "groups", 0, "timings", 0, 1), [3, 2], "place 0: a latency is a range"),
        (0, ("instance", "groups", 0, "timings", 0, 2), [1, 0], "place 0: tokens are whole numbers"),
        (0, ("instance", "groups", 0, "timings", 2, 3), [-1], "tokens holds something that is not a whole number"),
        (0, ("instance", "groups", 0, "timings", 2, 3), list(range(65)), "tokens is not a list of 0..64 items"),
        (0, ("instance", "groups", 0, "timings"), [[1, [1, 1], [], []]], "3 places but 1 timings"),
        (0, (*WITNESS, "uses"), None, "uses is not a list of 1..4 items"),
        (0, (*WITNESS, "uses"), [[1, [[], [], []]]], "uses of 1 warps for 4 warps"),
        (0, (*WITNESS, "uses"), [[4, [[[0, 1, 1]], [], []]]], "use is not a list of 2..2 items"),
        (0, (*WITNESS, "uses"), [[4, [[[64, 1]], [], []]]], "resource is not a whole number in 0..63"),
        (0, (*WITNESS, "partitions"), [0, 1, 0, 1], "witness has the unknown key 'partitions'"),
        (1, (*WITNESS, "partitions"), [0, 1], "2 partitions for 3 warps"),
        (1, (*WITNESS, "partitions"), [0, 1, 2], "partitions holds something that is not a whole number in 0..1"),
        (1, (*WITNESS, "partitions"), [0, 0, 0], r"the warps are not spread evenly over the partitions: \[3, 0\]"),
        (1, (*WITNESS, "latencies"), None, "latencies is not a list"),
        (2, ("partitions",), [], "upper is reported by partitions, but none are given"),
        (0, ("partitions",), [{}], "1 partitions are given, but the machine makes 0 different ones"),
        (4, ("result", "evidence", "upper"), "issue-slots", "theorem O1 or O2 does not apply"),
        (4, ("result", "evidence", "upper"), "theorem-e", "theorem E needs weights"),
        (4, ("result", "evidence", "upper"), "theorem-l", "theorem L does not apply"),
        (2, ("result", "shared"), ["C"], "result has the unknown key 'shared'"),
        (0, ("result", "uses", "L", 0, 2), 1, "uses does not follow from the instance"),
    ],
)  # fmt: skip
def test_a_forged_bundle_of_a_multiprocessor_is_rejected(
    number: int, path: tuple[Any, ...], value: object, why: str
) -> None:
    def change(document: Document) -> None:
        at = document
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = value

    checked = verify(forged(bundles()[number], change))
    assert checked.outcome is Outcome.REJECTED
    assert checked.reason, checked
    with pytest.raises(AssertionError, match=why):
        raise AssertionError(checked.reason)


def test_potentials_prove_nothing_of_a_multiprocessor() -> None:
    potential = {"last_group": 0, "classes": ["C"], "thresholds": [1], "front": 0, "tables": [], "nodes": []}
    certificate = {"upper": 99, "potentials": [potential]}
    checked = verify(forged(bundles()[0], lambda document: document.update(certificate=certificate)))
    assert "potentials do not speak of partitions" in checked.reason


def test_bundles_of_other_machines_say_nothing_of_all_this() -> None:
    document = result_bundle(solve(Instance.of("CLC", 2)))
    assert "partitions" not in document
    assert document["instance"]["machine"].keys() == {"name", "capacity", "interval", "latency", "issue_width"}
    assert document["witness"].keys() == {"paths", "latencies", "cycles"}
