"""Theorem E with thresholds: against the definition, its checker, and its proof cycle by cycle."""

import json
import random
from collections import Counter
from dataclasses import replace
from itertools import chain, count, repeat

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makespan.model.instance import Instance
from makespan.model.machine import (
    DELAY,
    Latency,
    Machine,
    PortResource,
    SchedulerPromise,
    UnitClass,
    Use,
    WarpAssignment,
)
from makespan.model.program import InstructionTiming, Program, ProgramPlace
from makespan.model.result import Upper
from makespan.model.strings import parse_string
from makespan.proof.bounds import pessimistic, theorem_e
from makespan.proof.bounds import thresholds as module
from makespan.proof.bounds.theorem_1s import theorem_1s
from makespan.proof.bounds.thresholds import _ThresholdQuestion, issue_gaps
from makespan.proof.engines import solve
from makespan.proof.engines.limits import Limits
from makespan.report.result.bundle import result_bundle
from makespan.verify import Outcome, pairs, verify
from makespan.verify import paths as checker
from makespan.verify.refusal import ProofSteps, Refused
from tests.bounds.threshold_ledger import Ledger, longest_gaps, random_run
from tests.forgery import forged
from tests.oracle import brute_force

SUBCORE = Machine("subcore", (UnitClass("C", 1, 2, Latency(4, 4)), UnitClass("L", 1, 2, Latency(30, 30))), 1)
FORTY = "CCLCCLCCLLLLCCCLCCCLCCCCLCLLLCLLLCLCCCLC"


def machine(draw: random.Random, *, slot: bool) -> Machine:
    """Classes that pairs know; with a slot also some of which a port is always free."""
    units = []
    most = draw.randint(1, 4)
    for name in "CLS"[: draw.choice((2, 2, 3))]:
        ports = 1 if draw.random() < 0.75 else 2
        interval = draw.randint(1, 4) if ports == 1 else draw.randint(1, 2) if slot else 1
        least = draw.randint(1, most)
        units.append(UnitClass(name, ports, interval, Latency(least, draw.choice((least, draw.randint(least, most))))))
    return Machine("random", tuple(units), 1 if slot else None)


def program(draw: random.Random, units: str, length: int, *, automata: bool = True) -> Program:
    """A string or an automaton that blocks, or runs ahead with a few tokens."""
    letters = [draw.choice(units) for _ in range(length)]
    found = Program.chain("".join(letters))
    if automata and draw.random() < 0.3:
        after = [tuple(sorted({at + 1, min(length, at + draw.randint(1, 3))})) for at in range(length)]
        found = Program(tuple(map(ProgramPlace, letters, after)))
    if draw.random() < 0.3:
        return found
    rules = []
    for _ in range(length):
        least = draw.randint(1, 5)
        tokens = [tuple(token for token in range(4) if draw.random() < 0.3) for _ in range(2)]
        rules.append(
            InstructionTiming(draw.choice((1, 1, 2, 3)), (least, draw.choice((least, least, least + 1))), *tokens)
        )
    return replace(found, timings=tuple(rules))


def instance(draw: random.Random, warps: int, letters: int, *, automata: bool = True) -> Instance:
    chosen = machine(draw, slot=draw.random() < 0.7)
    units = "".join(chosen.capacities)
    if draw.random() < 0.5:
        return Instance.of(program(draw, units, letters, automata=automata), warps, chosen)
    groups = [(program(draw, units, draw.randint(1, letters), automata=automata), 1) for _ in range(warps)]
    return Instance.merged(groups, chosen)


def small(draw: random.Random) -> Instance:
    warps = draw.choice((2, 2, 3))
    return instance(draw, warps, draw.randint(2, 5 if warps == 2 else 4))


# Against the definition


@given(st.randoms(use_true_random=False))
@settings(max_examples=50, deadline=None)
def test_it_is_never_below_brute_force_and_the_checker_agrees(draw: random.Random) -> None:
    one = small(draw)
    found = theorem_e(one)
    if found is not None:
        assert pairs.bound(one, found.weights) == found.upper
        assert brute_force(one).upper <= found.upper


@pytest.mark.soak
def test_it_is_never_below_brute_force_in_a_long_campaign() -> None:
    draw, found = random.Random(1), Counter[str]()
    for _ in range(20_000):
        one = small(draw)
        bound = theorem_e(one)
        if bound is not None:
            exact = brute_force(one).upper
            found.update(below=bound.upper < exact, attained=bound.upper == exact, all=1)
    print(found)
    assert not found["below"]


@pytest.mark.parametrize(
    ("string", "warps", "cycles"),
    [
        ("CLCL", 3, 4 + 30 + 4 + 30 + 2 * (8 - 2)),  # of 2 + 2 cycles a pair takes one
        (FORTY, 12, 23 * 4 + 17 * 30 + 11 * (80 - 12)),
        (FORTY, 48, 23 * 4 + 17 * 30 + 47 * (80 - 12)),  # M^L + M^C: 4362
    ],
)
def test_one_slot_by_hand(string: str, warps: int, cycles: int) -> None:
    found = theorem_e(Instance.of(string, warps, SUBCORE))
    assert found is not None
    assert found.upper == cycles < pessimistic(Instance.of(string, warps, SUBCORE))


def test_warps_that_run_ahead_by_hand() -> None:
    """Alone they begin in cycles 0, 1, 2 and 32. Pairs have gaps of 1, 1 and 30; the first or second one counts."""
    ahead = parse_string("L()C()L()C(1,3)", SUBCORE)
    found = theorem_e(Instance.of(ahead, 3, SUBCORE))
    assert found is not None
    assert found.upper == (32 + 4) + 2 * (2 - 1) + 2 * (8 - 1)  # z turns behind two gaps that are shorter than 2
    assert found.weights[0].thresholds == (2, 2)


def test_the_smallest_instance_that_a_slot_makes_longer() -> None:
    """With every cycle of an instruction in pairs, or without the threshold, it would say less than the truth."""
    narrow = Machine("m", (UnitClass("C", 1, 2, Latency(2, 2)), UnitClass("L", 1, 2, Latency(2, 2))), 1)
    one = Instance.of("CLCL", 3, narrow)
    found = theorem_e(one)
    without = theorem_e(Instance.of("CLCL", 3, replace(narrow, issue_width=None)))
    assert found is not None
    assert without is not None
    assert without.upper < brute_force(one).upper <= found.upper


def test_thresholds_are_tried_one_class_after_another_beginning_with_the_best_so_far() -> None:
    """Behind C gaps are 4 (its interval, which costs nothing) to 22 cycles, of which every third one is tried.

    Then both behind L, with 13 for C: eight of the gaps are that long.
    """
    machine = replace(SUBCORE, units=(UnitClass("C", 1, 4), UnitClass("L", 1, 2)))
    numbers = count(1)
    loads = chain([31], repeat(30))
    lengths = *range(5, 23), *[13] * 7
    rest = (f"L({next(numbers)})@{next(loads)}C({next(numbers)})@{gap}" for gap in lengths)
    one = Instance.of(parse_string(f"C()@4{''.join(rest)}L({next(numbers)})", machine), 9, machine)
    question = _ThresholdQuestion.of(one)
    assert question is not None
    proofs = list(question.proofs())
    tried = [(4, 2), *((gap, 2) for gap in (7, 10, 13, 16, 19, 22)), (13, 30), (13, 31)]
    assert [tuple(proof.thresholds.values()) for proof in proofs] == tried
    assert min(proofs[:-2], key=lambda proof: proof.upper) is proofs[3]
    found = theorem_e(one)
    assert found is not None
    assert found.upper == min(proofs[-2].upper, proofs[-1].upper) < proofs[3].upper


def test_thresholds_are_gaps_behind_a_class_before_another_one_on_some_path() -> None:
    """Behind the first C, after 5 cycles, only another C follows; the second one may skip the third."""
    awaited = (
        InstructionTiming(1, (5, 5), (2,)),
        InstructionTiming(1, (7, 7), (0,), (2,)),
        InstructionTiming(1, (9, 9), (1,)),
        InstructionTiming(1, (1, 1), (), (0, 1)),
    )
    places = ProgramPlace("C", (1,)), ProgramPlace("C", (2, 3)), ProgramPlace("C", (3,)), ProgramPlace("L", (4,))
    skipping = Program(places, timings=awaited)
    question = _ThresholdQuestion.of(Instance.of(skipping, 2, SUBCORE))
    assert question is not None
    assert (question._values("C"), question._values("L")) == ({7, 9}, set())


# What it needs


LOADS = UnitClass("L", 1, 2)
DELAYED = Machine("delayed", (UnitClass("C", 1, 2), LOADS, UnitClass.of_delays(3)))
PIPE = Use(("pipe",))
HALVES = Machine("halves", (UnitClass("C", 1, 2), LOADS), 1, partitions=2, resources=(PortResource("pipe", 1),))


@pytest.mark.parametrize(
    ("one", "applies"),
    [
        (Instance.of("CL", 3, SUBCORE), True),
        (Instance.of("CL", 3, replace(SUBCORE, units=(*SUBCORE.units, UnitClass("S", 2, 2)))), True),
        (Instance.of("CLS", 3, replace(SUBCORE, units=(*SUBCORE.units, UnitClass("S", 2, 2)))), True),  # S never binds
        (Instance.of("CLS", 3, replace(SUBCORE, units=(*SUBCORE.units, UnitClass("S", 2, 3)))), False),  # it may
        (Instance.of("CL", 3, replace(SUBCORE, issue_width=2)), True),  # cannot bind
        (Instance.of("CL", 3, Machine("m", (UnitClass("C", 2), LOADS), 2)), False),
        (Instance.of("CS", 3, replace(SUBCORE, units=(*SUBCORE.units, UnitClass("S", 2, 2)))), False),  # no pair
        (Instance.of("C|L", 3, SUBCORE), False),
        (Instance.of(parse_string("C()L(1)", SUBCORE), 3, replace(SUBCORE, issue_width=None)), True),
        (Instance.of(parse_string("C()|(1)L()", SUBCORE), 3, replace(SUBCORE, issue_width=None)), False),
        (Instance.of(parse_string("C()L(1)", SUBCORE), 3, Machine("m", (UnitClass("C", 2), LOADS))), True),
        (Instance.of(parse_string("C()L(1)", SUBCORE), 3, Machine("m", (UnitClass("C", 2, 2), LOADS))), False),
        (Instance.of("CLS", 9, replace(SUBCORE, units=(*SUBCORE.units, UnitClass("S", 3)), issue_width=2)), False),
        (Instance.of(parse_string(f"C(){DELAY}()L(1)", DELAYED), 3, DELAYED), False),
        (Instance.of("CL", 4, HALVES), True),
        (Instance.of("CL", 4, replace(HALVES, issue_width=None)), False),
        (Instance.of("CL", 4, replace(HALVES, issue_width=2)), False),
        (Instance.of("C|L", 4, HALVES), False),
        (Instance.of("CL", 4, replace(HALVES, units=(HALVES.units[0], replace(LOADS, shared=True)))), False),
        (Instance.of("CL", 4, replace(HALVES, units=(HALVES.units[0], replace(LOADS, uses=(PIPE,))))), False),
        (Instance.of("CL", 4, replace(HALVES, units=(UnitClass("C", 2, 2), LOADS))), False),
    ],
)
def test_where_it_applies(one: Instance, applies: bool) -> None:
    assert (theorem_e(one) is not None) == applies


def test_it_does_not_apply_where_there_are_too_many_tokens_to_look_at(monkeypatch: pytest.MonkeyPatch) -> None:
    one = Instance.of(parse_string("C()L(1)", SUBCORE), 3, replace(SUBCORE, issue_width=None))
    monkeypatch.setattr(module, "MOST_TOKENS", 0)
    assert theorem_e(one) is None


def divided(draw: random.Random) -> Instance:
    """Partitions that may share a class or a resource, and classes that hold further ports."""
    resources = tuple(PortResource(name, draw.choice((1, 1, 2)), draw.random() < 0.5) for name in ("bus", "pipe"))
    units = list(machine(draw, slot=True).units)
    for number, unit in enumerate(units[1:], start=1):
        least = draw.randint(1, 3)
        names = draw.choice([("bus",), ("pipe",), ("bus", "pipe")])
        uses = (Use(names, least, draw.choice((least, 3))),) if draw.random() < 0.6 else ()
        units[number] = replace(unit, shared=draw.random() < 0.2, uses=uses)
    partitions = draw.choice((1, 2))
    assignment = draw.choice(list(WarpAssignment))
    chosen = Machine("divided", tuple(units), 1, (), SchedulerPromise.ANY, partitions, assignment, resources)
    classes, warps = "".join(chosen.capacities), draw.choice((2, 3))
    if draw.random() < 0.5:
        return Instance.of(program(draw, classes, draw.randint(2, 3)), warps, chosen)
    return Instance.merged([(program(draw, classes, draw.randint(1, 3)), 1) for _ in range(warps)], chosen)


def test_partitions_and_resources() -> None:
    """Pairs are of classes with a port for each partition; whatever else is held counts as in theorem 1S."""
    draw, found = random.Random(4), Counter[str]()
    while found["all"] < 30:
        one = divided(draw)
        bound = theorem_e(one)
        if bound is not None:
            assert pairs.bound(one, bound.weights) == bound.upper
            exact = brute_force(one).upper
            assert exact <= bound.upper, one
            first = theorem_1s(one)
            found.update(all=1, attained=exact == bound.upper, sharper=first is not None and bound.upper < first.upper)
    assert found["attained"]


def test_a_partitioned_machine_by_hand() -> None:
    """Four schedulers, six warps each: two pairs CI of each of five warps beside z; all share L."""
    units = UnitClass("C", 1, 2), UnitClass("I", 1, 2), UnitClass("L", 1, shared=True)
    four = Machine("four", units, 1, partitions=4)
    one = Instance.of(parse_string("C()@4I()@4C(1)@4I(2)@4L(4)@9", four), 24, four)
    first, found = theorem_1s(one), theorem_e(one)
    assert first is not None
    assert found is not None
    assert first.upper == (4 + 1 + 4 + 9) + 5 * (4 * 2 + 1) + 18 * 1
    assert found.upper == first.upper - 5 * 2 + (2 + 1 + 2)  # behind gaps of 1 instead of 3, 2 and 3
    assert pairs.bound(one, found.weights) == found.upper
    result = solve(one, limits=Limits(0))
    assert (result.bounds.upper, result.upper_evidence) == (found.upper, Upper.THEOREM_E)
    document = json.loads(json.dumps(result_bundle(result)))
    assert verify(document).outcome is Outcome.ACCEPTED
    lower = forged(document, lambda copied: copied["result"].update(upper=found.upper - 1))
    assert verify(lower).outcome is not Outcome.ACCEPTED


def test_what_other_partitions_hold_of_shared_ports_is_needed() -> None:
    """Each of two partitions has one warp; both come to the shared M in the same cycle, and one of them waits."""
    slow = Latency(4, 4)
    units = UnitClass("C", 1, 2, slow), UnitClass("L", 1, 2, slow), UnitClass("M", 1, 1, Latency(5, 5), shared=True)
    one = Instance.of("CLM", 2, Machine("two", units, 1, partitions=2))
    found = theorem_e(one)
    assert found is not None
    assert found.upper == (4 + 4 + 5) + 1 == brute_force(one).upper
    assert pairs.bound(one, found.weights) == found.upper


def test_of_all_paths_the_one_that_holds_most_of_shared_ports_counts() -> None:
    """The same where a warp may do without M, or without all but a C."""
    slow = Latency(4, 4)
    units = UnitClass("C", 1, 2, slow), UnitClass("L", 1, 2, slow), UnitClass("M", 1, 1, Latency(5, 5), shared=True)
    places = ProgramPlace("C", (1,)), ProgramPlace("L", (2, 4)), ProgramPlace("M", (4,)), ProgramPlace("C", (4,))
    one = Instance.of(Program(places, (0, 3)), 2, Machine("two", units, 1, partitions=2))
    found = theorem_e(one)
    assert found is not None
    assert found.upper == (4 + 4 + 5) + 1 == brute_force(one).upper


def test_alone_a_warp_waits_for_a_resource_that_it_holds_itself() -> None:
    """Alone 9 + 1 + 1 + 1, with turns behind gaps of 1 of M and C; beside it 9 + 9 + 2 + 2 less a pair."""
    units = UnitClass("C", 1, 2), UnitClass("L", 1, 2), UnitClass("M", 1, uses=(Use(("bus",), 9, 9),))
    one = Instance.of("MMCL", 2, Machine("m", units, 1, resources=(PortResource("bus", 1),)))
    found = theorem_e(one)
    assert found is not None
    assert brute_force(one).upper == 30 <= found.upper == (12 + 1 + 1) + (9 + 9 + 2 + 2 - 1)


def test_a_class_of_which_a_port_is_always_free_counts_for_its_latency() -> None:
    """z takes 2 cycles for C and L each, and S twice 1; the other one as much, less a pair."""
    one = Instance.of("CLSS", 2, Machine("m", (UnitClass("C", 1, 2), LOADS, UnitClass("S", 1)), 1))
    found = theorem_e(one)
    assert found is not None
    assert found.upper == (2 + 2 + 1 + 1) + (2 + 2 + 1 + 1 - 1)


def test_what_the_last_finisher_holds_itself_is_needed() -> None:
    """It fills one of two ports, the other warp the other one; without what it holds the bound would be 28."""
    either = Use(("bus", "pipe"), 9, 9)
    units = UnitClass("C", 1, 2), UnitClass("L", 1, 2), UnitClass("M", 1, uses=(either,))
    machine = Machine("m", units, 1, resources=(PortResource("bus", 1), PortResource("pipe", 1)))
    one = Instance.merged([(Program.chain("MMLMC"), 1), (Program.chain("MMMM"), 1)], machine)
    found = theorem_e(one)
    assert found is not None
    assert 28 < brute_force(one).upper == 29 <= found.upper
    assert pairs.bound(one, found.weights) == found.upper


# Gaps


def test_gaps_of_strings_against_looking_back() -> None:
    draw = random.Random(5)
    for _ in range(300):
        one = program(draw, "CL", draw.randint(2, 9), automata=False)
        if one.timings:
            latencies = {"C": Latency(1, 1), "L": Latency(1, 1)}
            units = {name: UnitClass(name, 1) for name in latencies}
            found = issue_gaps(one, latencies)
            assert found is not None
            assert (
                [gap.most for gap in found[:-1]]
                == longest_gaps(one.timings)
                == checker.longest_gaps(one, units, ProofSteps(10**6))[:-1]
            )
            assert [gap.least for gap in found[:-1]] == checker.shortest_gaps(one, units)[:-1]


def test_the_last_finisher_holds_ports_from_its_stall_on_though_it_waits_for_the_result() -> None:
    """Alone 8; C and M turn behind gaps of 1. The other: M twice 10 halves, L and C 2 * 4 less a pair; z: M twice 8."""
    units = UnitClass("C", 1, 2), UnitClass("L", 1, 2), UnitClass("M", 1, uses=(Use(("bus", "pipe"), 9, 9),))
    machine = Machine("m", units, 1, resources=(PortResource("bus", 1), PortResource("pipe", 1)))
    one = Instance.of(parse_string("M()@5M(1)L()C()", machine), 2, machine)
    found = theorem_e(one)
    assert found is not None
    assert found.upper == (8 + 1 + 1) + (10 + 10 + 8 - 2 + 8 + 8) // 2
    assert pairs.bound(one, found.weights) == found.upper


@pytest.mark.parametrize(("shared", "cycles"), [(False, 6 + 5), (True, 6 + (12 + 2 * 4 + 2) // 2)])
def test_ports_that_always_one_is_left_of_count_for_a_cycle_if_they_are_those_of_a_partition(
    shared: bool, cycles: int
) -> None:
    """With one slot, two ports that are held for two cycles are never all held; shared by two partitions they may be.

    Alone 4, and 2 behind gaps of 1. Beside z is a warp of C and L, 2 each, less a pair, and S twice 1; or, in halves,
    4 + 4 - 2 and S twice 3, elsewhere two warps of S twice 2, and z itself holds S twice 1.
    """
    machine = replace(HALVES, units=(*HALVES.units, UnitClass("S", 2, 2, shared=shared)))
    one = Instance.of("CLSS", 4, machine)
    found = theorem_e(one)
    assert found is not None
    assert found.upper == cycles
    assert pairs.bound(one, found.weights) == cycles


# Forgers


def test_forged_thresholds_prove_nothing_that_is_not_true() -> None:
    draw, outcomes = random.Random(3), Counter[str]()
    while outcomes["accepted"] < 30 or outcomes["refused"] < 30:
        one = small(draw)
        found = theorem_e(one)
        if found is None or not found.weights[0].thresholds:
            continue
        (weights,) = found.weights
        rows = [list(row) for row in weights.reserves]
        for row in rows:
            row[draw.randrange(len(row))] = draw.choice([(0,), (1,), (2,), (0, 1)])
        thresholds = tuple(max(1, limit + draw.randint(-3, 3)) for limit in weights.thresholds)
        caps = tuple(cap + (draw.random() < 0.1) for cap in weights.caps)
        forgery = replace(weights, caps=caps, thresholds=thresholds, reserves=tuple(map(tuple, rows)))
        try:
            bound = pairs.bound(one, [forgery])
        except Refused:
            outcomes["refused"] += 1
            continue
        outcomes["accepted"] += 1
        assert bound is not None
        assert brute_force(one).upper <= bound


def test_a_bundle_rests_on_thresholds() -> None:
    result = solve(Instance.of(FORTY, 12, SUBCORE), backend="certificate", limits=Limits(0))
    assert result.upper_evidence == Upper.THEOREM_E
    document = json.loads(json.dumps(result_bundle(result)))
    assert document["weights"][0]["thresholds"] == [4, 30]
    assert verify(document).outcome is Outcome.ACCEPTED
    lower = forged(document, lambda copied: copied["result"].update(upper=result.bounds.upper - 1))
    assert verify(lower).outcome is not Outcome.ACCEPTED
    without = forged(document, lambda copied: copied["weights"][0].pop("thresholds"))
    assert "thresholds" in (verify(without).reason or "")
    higher = forged(document, lambda copied: copied["weights"][0].update(thresholds=[4, 31]))
    assert verify(higher).outcome is not Outcome.ACCEPTED  # each turn of z costs a cycle more


# Its proof


def ledgers(count: int, without: str = "") -> Counter[str]:
    """How often each inequality was evaluated, held with equality, and was violated."""
    draw, found = random.Random(count), Counter[str]()
    for _ in range(count):
        one = instance(draw, draw.randint(2, 8), draw.randint(2, 12), automata=False)
        thresholds = {name: draw.randint(1, 6) for name in one.machine.capacities}
        for name, left in Ledger(one, random_run(draw, one), thresholds, without).inequalities():
            found[name] += 1
            found[f"{name} tight"] += left == 0
            found[f"{name} violated"] += left < 0
    return found


def test_the_inequalities_of_the_proof_hold_before_every_cycle() -> None:
    found = ledgers(120)
    assert not any(found[name] for name in found if name.endswith("violated")), found
    assert found["I tight"] > 100
    assert found["J"] > 1000


@pytest.mark.parametrize("without", ["slack", "first cycle", "thresholds"])
def test_the_inequalities_notice_what_is_left_out(without: str) -> None:
    found = ledgers(250, without)
    assert any(found[name] for name in found if name.endswith("violated"))


@pytest.mark.soak
def test_the_inequalities_of_the_proof_in_a_long_campaign() -> None:
    found = ledgers(20_000)
    print(dict(found))
    assert not any(found[name] for name in found if name.endswith("violated")), found
