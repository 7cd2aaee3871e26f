"""The independent checker on machines with latencies, intervals and an issue width."""

import copy
import random
import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from makespan.host.errors import InvalidScheduleError
from makespan.model.instance import Instance
from makespan.model.machine import Latency, Machine, UnitClass
from makespan.model.program import Program
from makespan.model.result import Bounds, Result, Upper
from makespan.model.schedule import Schedule
from makespan.model.simulate import replay as engine_replay
from makespan.proof.bounds import delays as engine_delays
from makespan.proof.bounds import least_possible, pessimistic
from makespan.proof.bounds import phases as engine_phases
from makespan.proof.engines import Limits
from makespan.proof.engines.certificate import improve
from makespan.proof.engines.search import plain as search
from makespan.report.result.bundle import result_bundle
from makespan.verify import (
    Outcome,
    Refused,
    delays,
    digest,
    lower_bounds,
    pairs,
    phases,
    potential,
    proofs,
    reading,
    states,
    two_warps,
    verify,
)
from makespan.verify import pessimistic as again
from makespan.verify.refusal import ProofSteps, TooMuchWork
from makespan.verify.witness import replay
from tests.forgery import Document, forged, set_bounds
from tests.oracle import brute_force, obeys
from tests.potentials import by_hand
from tests.strategies import barrier_instances, general_barrier_instances, general_instances, instances, runs

ANY = st.one_of(general_instances(), general_barrier_instances(), instances(), barrier_instances())
CACHED = Machine("cached", (UnitClass("C", 1), UnitClass("L", 1, 2, Latency(2, 4))))
NARROW = Machine("narrow", (UnitClass("C", 2, 1, Latency(2, 2)), UnitClass("L", 1, 3, Latency(1, 3))), issue_width=1)
AWAY = Machine("away", (UnitClass("C", 1), UnitClass("L", 2, 1, Latency(3, 3))))
HELD = Machine("held", (UnitClass("C", 1), UnitClass("L", 2, 4, Latency(2, 2))))


# What it computes


@given(st.one_of(general_instances(), general_barrier_instances()))
@settings(deadline=None)
def test_latencies_become_the_places_that_certificates_speak_of(instance: Instance) -> None:
    found = delays.with_delay_places(instance)
    expansion = engine_delays.expand_latencies(instance)
    assert expansion is not None
    assert found == expansion.instance
    assert delays.sizes(instance) == [group.program.end for group in found.groups]


def test_latencies_of_more_places_than_an_instance_may_have_are_refused() -> None:
    slow = Machine("slow", (UnitClass("C", 1, 1, Latency(10_000, 10_000)),))
    for string, warps in (("C" * 101, 1), ("C" * 9, 60)):
        with pytest.raises(TooMuchWork):
            delays.with_delay_places(Instance.of(string, warps, slow))
        assert states.shortest_and_longest(Instance.of(string, warps, slow), 10) is None
    one_is_long = Instance.merged([(Program.chain("C" * 101), 1), (Program.chain("C"), 1)], slow)
    with pytest.raises(TooMuchWork):
        delays.with_delay_places(one_is_long)
    held = Instance.of("C", 500, Machine("held", (UnitClass("C", 1, 1024, Latency(100, 100)),)))
    assert delays.with_delay_places(held).warps == 500  # each place counts for what it holds, and delays hold nothing


@given(ANY)
@settings(max_examples=200, deadline=None)
def test_its_bounds_are_those_of_the_engines(instance: Instance) -> None:
    assert again.pessimistic(instance) == pessimistic(instance)
    assert lower_bounds.least_makespan(instance) == least_possible(instance)
    if not instance.machine.is_basic:
        assert pairs.theorem_a(instance) is None


@given(st.one_of(general_instances(), general_barrier_instances()))
@settings(max_examples=120, deadline=None)
def test_its_enumeration_finds_both_extremes(instance: Instance) -> None:
    truth = brute_force(instance)
    assert states.shortest_and_longest(instance, 10**6) == (truth.lower, truth.upper)
    assert lower_bounds.least_makespan(instance) <= truth.lower
    assert again.pessimistic(instance) >= truth.upper
    if instance.warps == 2 and not instance.has_barriers:
        assert two_warps.two_warps(instance) == truth.upper
        assert two_warps.two_warps(instance, min) == truth.lower


def test_nobody_waits_for_a_class_that_only_others_use() -> None:
    instance = Instance.merged([(Program.chain("LL"), 1), (Program.chain("C"), 1)], AWAY)
    assert brute_force(instance).upper == again.pessimistic(instance) == pessimistic(instance) == 3 + 3


def test_two_warps_where_ports_are_held_for_different_times() -> None:
    machine = Machine("two slow", (UnitClass("C", 1, 1, Latency(3, 3)), UnitClass("L", 1, 3), UnitClass("S", 1, 5)))
    instance = Instance.merged([(Program.chain("SCCS"), 1), (Program.chain("LCSL"), 1)], machine)
    assert brute_force(instance) == Bounds(11, 11)
    assert (two_warps.two_warps(instance), two_warps.two_warps(instance, min)) == (11, 11)


@given(general_barrier_instances())
@settings(deadline=None)
def test_phases_are_questions_where_no_port_is_held_over_a_barrier(instance: Instance) -> None:
    assume(instance.has_barriers)
    cut, questions = engine_phases(instance), phases.questions(instance)
    if any(unit.interval > unit.latency.least for unit in instance.machine.units):
        assert questions is None
    assert questions == (None if cut is None else [phase.instance for phase in cut])
    if questions is not None:
        assert brute_force(instance).upper <= sum(brute_force(question).upper for question in questions)


@pytest.mark.parametrize(
    "instance",
    [
        Instance.merged([(Program.chain("C|L"), 4)], blocks=2),  # each block opens its own
        Instance.merged([(Program.chain("LC|L"), 2), (Program.chain("C|CL"), 2)], blocks=2),
        Instance.merged([(Program.chain("CL|CL"), 2), (Program.chain("CLL"), 1)]),  # one takes part in the first only
    ],
)
def test_barriers_of_blocks_and_of_programs_that_end_before(instance: Instance) -> None:
    truth = brute_force(instance)
    assert states.shortest_and_longest(instance, 10**6) == (truth.lower, truth.upper)
    assert truth.upper <= again.pessimistic(instance) == pessimistic(instance)
    assert two_warps.two_warps(replace(instance, groups=instance.groups[:1], blocks=1)) is None


@pytest.mark.parametrize("warps", [{"CL": 1, "LL": 3}, {"LC": 3, "CL": 1}, {"CLL": 2, "LC": 2}])
@pytest.mark.parametrize("ports", [{"C": 1, "L": 3}, {"L": 2, "C": 1}, {"C": 2, "L": 2, "S": 1}])
def test_classes_share_issue_slots(warps: dict[str, int], ports: dict[str, int]) -> None:
    units = tuple(UnitClass(name, count) for name, count in ports.items())
    groups = [(Program.chain(string), count) for string, count in warps.items()]
    instance = Instance.merged(groups, Machine("slots", units, issue_width=2))
    truth = brute_force(instance)
    assert states.shortest_and_longest(instance, 10**6) == (truth.lower, truth.upper)


@pytest.mark.parametrize("strings", [("CLC", "LLC"), ("LCL", "CCL"), ("CCLL", "LCC")])
@pytest.mark.parametrize(
    "ports", [((1, 2), (2, 3)), ((2, 3), (1, 2)), ((1, 2), (1, 2)), ((1, 3), (3, 4)), ((2, 2), (1, 4))]
)
def test_ports_of_two_classes_are_held(strings: tuple[str, str], ports: tuple[tuple[int, int], ...]) -> None:
    units = tuple(UnitClass(name, count, cycles) for name, (count, cycles) in zip("CL", ports, strict=True))
    groups = [(Program.chain(string), 2) for string in strings]
    instance = Instance.merged(groups, Machine("held", units))
    truth = brute_force(instance)
    assert states.shortest_and_longest(instance, 10**6) == (truth.lower, truth.upper)


def test_a_port_that_is_held_over_a_barrier_joins_the_phases() -> None:
    instance = Instance.of("L|L", 1, Machine("m", (UnitClass("L", 1, 3),)))
    assert brute_force(instance).upper == 4
    assert phases.questions(instance) is None
    assert phases.questions(Instance.of("L|L", 1, Machine("m", (UnitClass("L", 1, 3, Latency(3, 3)),)))) is not None


# Witnesses


def changed_schedule(draw: random.Random, instance: Instance, schedule: Schedule) -> Schedule:
    cycles = [list(warps) for warps in schedule.cycles]
    latencies = [list(row) for row in schedule.latencies]
    for _ in range(draw.choice((1, 1, 2))):
        a, b = draw.randrange(len(cycles)), draw.randrange(len(cycles))
        match draw.choice(("drop", "add", "insert", "cut", "latency", "swap", "move", "row")):
            case "drop" if cycles[a]:
                cycles[a].pop()
            case "add":
                cycles[a].append(draw.randrange(instance.warps))
            case "insert":
                cycles.insert(draw.randrange(len(cycles) + 1), [])
            case "cut" if len(cycles) > 1:
                del cycles[a]
            case "latency" if latencies:
                row = draw.choice(latencies)
                if row:
                    row[draw.randrange(len(row))] += draw.choice((-1, 1))
            case "swap":
                cycles[a], cycles[b] = cycles[b], cycles[a]
            case "move" if cycles[a]:
                cycles[b].append(cycles[a].pop())
            case "row" if latencies and draw.random() < 0.3:
                draw.choice((lambda: latencies.pop(), lambda: latencies[0].append(1)))()
    return Schedule(tuple(tuple(sorted(w)) for w in cycles), schedule.paths, tuple(map(tuple, latencies)))


@given(st.data(), ANY, st.integers(0, 2**32))
@settings(max_examples=300, deadline=None)
def test_a_witness_is_judged_as_by_the_definition(data: st.DataObject, instance: Instance, seed: int) -> None:
    schedule = data.draw(runs(instance))
    assert replay(instance, schedule) == schedule.makespan
    changed = changed_schedule(random.Random(seed), instance, schedule)
    try:
        expected: int | None = engine_replay(instance, changed)
    except InvalidScheduleError:
        expected = None
    if len(changed.latencies) == len(schedule.latencies) and list(map(len, changed.latencies)) == list(
        map(len, schedule.latencies)
    ):
        assert (expected is not None) == obeys(instance, changed)
    try:
        assert replay(instance, changed) == expected
    except Refused as refusal:
        assert expected is None, refusal  # noqa: PT017


@pytest.mark.parametrize(
    ("machine", "cycles", "latencies", "why"),
    [
        (CACHED, [(0,), (), (0, 1), (), (1,)], ((2, 1), (2, 1)), None),
        (CACHED, [(0,), (), (0, 1), (), (), (1,)], ((2, 1), (3, 1)), None),
        (CACHED, [(0,), (0,), (1,), (), (1,)], ((2, 1), (2, 1)), "cycle 1: warp 0 waits for a latency"),
        (CACHED, [(0,), (1,)], ((2, 1), (2, 1)), "cycle 1: warp 1 finds no free port of L"),
        (CACHED, [(0,), (), (), (0, 1)], ((3, 1), (2, 1)), "cycle 2: an instruction of class L is left out"),
        (CACHED, [(0,), (), (0, 1), (), (1,)], ((1, 1), (2, 1)), "a latency of 1 for class L of warp 0"),
        (CACHED, [(0,), (), (0, 1), (), (1,)], ((2, 1), (5, 1)), "a latency of 5 for class L of warp 1"),
        (CACHED, [(0,), (), (0, 1), (), (1,)], ((2, 1), (2,)), "1 latencies for 2 instructions of warp 1"),
        (CACHED, [(0,), (), (0, 1), (), (1,)], ((2, 1),), "latencies of 1 warps for 2 warps"),
        (CACHED, [(0,), (), (0, 1), (), (1,)], (), "latencies of 0 warps for 2 warps"),
        (CACHED, [(0,), (), (0, 1), (), (1,), ()], ((2, 1), (2, 1)), "cycle 5: all warps have finished already"),
        (CACHED, [(0,), (), (0, 1), ()], ((2, 1), (2, 1)), "1 warps have not finished after 4 cycles"),
        (NARROW, [(0,), (0,), (), (1,), (1,), ()], ((1, 2), (1, 2)), None),
        (NARROW, [(0,), (), (0,), (1,), (1,), ()], ((2, 2), (1, 2)), None),
        (
            NARROW,
            [(0,), (0,), (), (), (1,), (1,), ()],
            ((1, 2), (1, 2)),
            "cycle 3: an instruction of class L is left out",
        ),
        (NARROW, [(0,), (), (), (0,)], ((1, 2), (1, 2)), "cycle 1: an instruction of class C is left out"),
        (NARROW, [(0,), (), (), (0, 1)], ((3, 2), (1, 2)), "cycle 3: warp 1 finds no free issue slot"),
        (AWAY, [(0, 1), (), (), (0,), (1,)], (), None),
        (AWAY, [(0, 1), (), (), (), (0,), (1,)], (), "cycle 3: an instruction of class C is left out"),
    ],
)
def test_every_rule_of_a_general_machine_is_checked(
    machine: Machine, cycles: list[tuple[int, ...]], latencies: tuple[tuple[int, ...], ...], why: str | None
) -> None:
    instance = Instance.of("LC", 2, machine)
    schedule = Schedule(tuple(cycles), ((0, 1), (0, 1)), latencies)
    if [len(row) for row in latencies] == [2, 2]:
        assert obeys(instance, schedule) is (why is None)
    if why is None:
        assert replay(instance, schedule) == len(cycles)
    else:
        with pytest.raises(Refused, match=why):
            replay(instance, schedule)


def test_idle_cycles_after_a_full_one_are_checked_although_nothing_happens_between() -> None:
    """The issue width held warp 1 back in cycle 0; in cycle 1 nothing holds it back, although nothing has changed."""
    instance = Instance.of("C", 2, Machine("m", (UnitClass("C", 2, 1, Latency(9, 9)),), issue_width=1))
    late = Schedule(((0,), (), (1,), *[()] * 8), ((0,), (0,)))
    with pytest.raises(
        Refused, match="cycle 1: an instruction of class C is left out although all that it needs is free"
    ):
        replay(instance, late)
    assert replay(instance, Schedule(((0,), (1,), *[()] * 8), ((0,), (0,)))) == 10


# Potentials


@pytest.mark.parametrize(
    "units",
    [
        (UnitClass("C", 1), UnitClass("L", 2, 4, Latency(2, 3))),
        (UnitClass("C", 1), UnitClass("L", 2, 5, Latency(2, 2))),
        (UnitClass("C", 1, 2), UnitClass("L", 2, 4, Latency(2, 2))),
        (UnitClass("C", 1), UnitClass("L", 3, 4, Latency(2, 2))),
    ],
)
def test_the_certificate_of_another_machine_is_refused_in_a_bundle(units: tuple[UnitClass, ...]) -> None:
    instance = Instance.of("LC", 3, HELD)
    result = replace(by_search(instance), certificate=by_hand(instance))
    assert verify(result_bundle(result)).outcome is Outcome.ACCEPTED

    def change(document: Document) -> None:
        set_machine(document, Machine("held", units))

    assert verify(forged(result_bundle(result), change)).outcome is Outcome.REJECTED


@given(general_instances(most_warps=4), st.integers(1, 3))
@settings(max_examples=25, deadline=None)
def test_what_the_engine_certifies_is_proven_again(instance: Instance, number: int) -> None:
    """Or less, as only what can be reached is checked."""
    truth = brute_force(instance).upper
    for _, finding in zip(range(number), improve.improve(instance, Limits(20)), strict=False):
        if finding.certificate is not None:
            assert truth <= potential.bound(instance, finding.certificate) <= finding.certificate.upper


# Bundles


def by_search(instance: Instance, *, best_case: bool = False) -> Result:
    found = search.solve(instance, Limits())
    assert found.witness is not None
    assert found.upper is not None
    return Result(
        instance=instance,
        bounds=Bounds(found.upper, found.upper),
        witness=found.witness,
        upper_evidence=Upper.SEARCH,
        pessimistic=pessimistic(instance),
        best_case=found.best_case if best_case else None,
        backend="search",
        seconds=0.0,
        assumptions=instance.assumptions,
    )


def by_potential(instance: Instance) -> Result:
    made = by_hand(instance)
    upper = potential.bound(instance, made)
    result = by_search(instance)
    return replace(
        result,
        bounds=Bounds(result.bounds.lower, upper),
        upper_evidence=Upper.POTENTIAL,
        certificate=replace(made, upper=upper),
    )


@cache
def results() -> tuple[Result, ...]:
    mixed = Instance.merged([(Program.chain("LCL"), 1), (Program.chain("CL"), 2)], CACHED)
    return (
        by_search(Instance.of("LCL", 2, CACHED), best_case=True),
        by_search(mixed),
        by_search(Instance.of("CLC", 3, NARROW), best_case=True),
        by_search(Instance.of("LC|L", 2, HELD)),
        replace(by_search(Instance.of("CLLC", 2, CACHED)), upper_evidence=Upper.TWO_WARP_DP),
        by_potential(Instance.of("LCL", 3, HELD)),
        by_potential(Instance.of("LC", 3, CACHED)),
        by_potential(mixed),
    )


@cache
def bundles() -> tuple[Document, ...]:
    return tuple(map(result_bundle, results()))


def set_machine(document: Document, machine: Machine) -> None:
    """Another machine of the same name, everywhere."""
    said = {
        "capacity": machine.capacities,
        "interval": {unit.name: unit.interval for unit in machine.units},
        "latency": {unit.name: [unit.latency.least, unit.latency.most] for unit in machine.units},
        "issue_width": machine.issue_width,
    }
    document["instance"]["machine"].update(copy.deepcopy(said))
    document["result"].update(said)


def test_bundles_of_general_machines_are_accepted() -> None:
    for result, document in zip(results(), bundles(), strict=True):
        checked = verify(document)
        assert checked.outcome is Outcome.ACCEPTED, checked
        assert checked.lower == result.bounds.lower
        assert checked.upper is not None
        assert result.bounds.lower <= checked.upper <= result.bounds.upper


@given(st.one_of(general_instances(), general_barrier_instances()), st.booleans())
@settings(max_examples=60, deadline=None)
def test_a_search_on_a_general_machine_is_proven_again(instance: Instance, best_case: bool) -> None:
    checked = verify(result_bundle(by_search(instance, best_case=best_case)))
    assert checked.outcome is Outcome.ACCEPTED, checked


def other_machine(draw: random.Random, machine: Machine) -> Machine:
    """One number of the machine changed by one, or the issue width given or taken away."""
    number = draw.randrange(len(machine.units))
    unit = machine.units[number]
    least, most = unit.latency.least, unit.latency.most
    width = machine.issue_width
    match draw.randrange(5):
        case 0:
            unit = replace(unit, interval=max(1, unit.interval + draw.choice((-1, 1))))
        case 1:
            unit = replace(unit, latency=Latency(max(1, least - draw.randrange(2)), most + draw.randrange(2)))
        case 2:
            unit = replace(unit, latency=Latency(min(most, least + draw.randrange(2)), max(least + 1, most - 1)))
        case 3:
            unit = replace(unit, capacity=unit.capacity + 1)
        case _:
            width = draw.choice([chosen for chosen in (None, 1, 2) if chosen != width])
    return Machine(machine.name, (*machine.units[:number], unit, *machine.units[number + 1 :]), width)


def test_another_machine_is_rejected_unless_all_claims_hold_for_it() -> None:
    draw, rejected = random.Random(1), 0
    for number in range(200):
        chosen = number % len(bundles())
        machine = results()[chosen].instance.machine
        other = other_machine(draw, machine)
        if other == machine:
            continue
        everywhere = forged(bundles()[chosen], lambda document, other=other: set_machine(document, other))  # type: ignore[misc]
        checked = verify(everywhere)
        if checked.outcome is Outcome.ACCEPTED:
            truth = brute_force(reading.bundle(everywhere).instance).upper
            assert everywhere["result"]["lower"] <= truth <= everywhere["result"]["upper"]
        else:
            assert checked.outcome is Outcome.REJECTED
            rejected += 1
        for part in ("instance", "result"):
            halved = {**everywhere, part: bundles()[chosen][part]}
            assert verify({**halved, "sha256": digest(halved)}).outcome is Outcome.REJECTED
    assert rejected > 100


def at(document: Any, *path: Any) -> Any:
    for key in path:
        document = document[key]
    return document


def cut_an_empty_cycle(document: Document) -> None:
    row = next(row for row in document["witness"]["cycles"] if not row[1])
    row[0] -= 1
    if not row[0]:
        document["witness"]["cycles"].remove(row)
    lower, upper = document["result"]["lower"] - 1, document["result"]["upper"] - 1
    set_bounds(document, lower, upper)


FORGERIES: list[tuple[Callable[[Document], object], str]] = [
    (lambda d: d["witness"].update(latencies=None), "latencies is not a list"),
    (lambda d: d["witness"].pop("latencies"), "witness lacks 'latencies'"),
    (lambda d: d["witness"]["latencies"].pop(), "1 latencies for 2 warps|latencies is not a list"),
    (lambda d: at(d, "witness", "latencies", 0, 1).pop(), "2 latencies for 3 instructions of warp 0"),
    (lambda d: at(d, "witness", "latencies", 0, 1).__setitem__(0, 5), "a latency of 5 for class L of warp 0"),
    (lambda d: at(d, "witness", "latencies", 0, 1).__setitem__(0, 0), "a latency of 0 for class L of warp 0"),
    (lambda d: at(d, "witness", "latencies", 0, 1).__setitem__(0, 10**6), "latencies holds something that is not"),
    (cut_an_empty_cycle, "witness: "),
    (lambda d: d["witness"]["cycles"].append([1, []]), "cycles, the lower bound says"),
    (lambda d: at(d, "witness", "cycles", 0).__setitem__(0, 10**9), "too large for this checker: over"),
    (lambda d: d["witness"]["cycles"].append([10**9, []]), "too large for this checker: over 50000000 cycles"),
    (lambda d: at(d, "instance", "machine").pop("interval"), "machine lacks 'interval'"),
    (lambda d: at(d, "instance", "machine", "interval").pop("L"), "interval lacks 'L'"),
    (lambda d: at(d, "instance", "machine", "latency").update(L=4), "latency is not a list of 2"),
    (lambda d: at(d, "instance", "machine", "latency").update(L=[4, 2]), r"a range of latencies is \[least, most\]"),
    (lambda d: at(d, "instance", "machine", "latency").update(X=[1, 1]), "latency has the unknown key 'X'"),
    (lambda d: at(d, "instance", "machine").update(issue_width=0), "issue_width is not a whole number in 1"),
    (lambda d: at(d, "instance", "machine").update(issue_width=True), "issue_width is not a whole number in 1"),
    (lambda d: d["result"]["evidence"].update(upper="theorem-a"), "theorem A does not apply"),
]


@pytest.mark.parametrize(("change", "why"), FORGERIES)
def test_a_forged_bundle_of_a_general_machine_is_rejected(change: Callable[[Document], object], why: str) -> None:
    def apply(document: Document) -> None:
        change(document)

    checked = verify(forged(bundles()[0], apply))
    assert checked.outcome is Outcome.REJECTED
    assert re.search(why, checked.reason), checked


def test_a_machine_without_choice_needs_no_latencies() -> None:
    document = result_bundle(by_search(Instance.of("LCL", 2, HELD)))
    assert document["witness"]["latencies"] is None
    changed = forged(document, lambda copied: copied["witness"].update(latencies=[[2, [2, 1, 2]]]))
    assert "leaves no choice of a latency: latencies must be null" in verify(changed).reason


def test_a_shortened_row_or_a_wrong_progression_is_rejected() -> None:
    document = bundles()[6]
    table = ("certificate", "potentials", 0, "tables", 0)
    assert at(document, *table, "others") == [[6, [4, -1, 4]]]
    for row, why in [
        ([6, [4, -1, 3]], "the length of a progression in others is not a whole number in 4..4"),
        ([6, [4, -1, 5]], "the length of a progression in others is not a whole number in 4..4"),
        ([6, 5, [4, -1, 4]], "the length of a progression in others is not a whole number in 4..3"),
        ([6, [4, -1]], "others is not a list of 3..3 items"),
        ([6, [4, True, 4]], "others holds something that is not a whole number"),
        ([6, [10**100, 1, 4]], "others holds something that is not a whole number"),
        ([6, [4.0, -1, 4]], "others holds something that is not a whole number"),
        ([6, 4, 3, 2], "others has 4 numbers, not 5"),
        ([6, 4, 3, 2, 1, 0], "others is not a list of 1..5 items"),
    ]:
        changed = forged(document, lambda copied, row=row: at(copied, *table).update(others=[row]))  # type: ignore[misc]
        assert why in verify(changed).reason
    plain = forged(document, lambda copied: at(copied, *table).update(others=[[6, 4, 3, 2, 1]]))
    assert verify(plain).outcome is Outcome.ACCEPTED
    for ports in ([], [[1, 2]], [[1], [1]], None):
        changed = forged(document, lambda copied, ports=ports: at(copied, *table).update(ports=ports))  # type: ignore[misc]
        assert "ports" in verify(changed).reason


def test_a_changed_term_of_a_port_or_a_delay_is_rejected() -> None:
    for number in (5, 6, 7):
        document = bundles()[number]
        for name, changed in [("ports", lambda rows: [[0] * 3 for _ in rows]), ("others", lambda rows: rows)]:

            def apply(copied: Document, name: str = name, changed: Callable[[Any], Any] = changed) -> None:
                for item in copied["certificate"]["potentials"]:
                    for table in item["tables"]:
                        if name == "ports":
                            table["ports"] = [[0] * (3 if number == 5 else 1)]  # noqa: B023
                        else:
                            table["others"] = [[0] * n for n in delays.sizes(results()[number].instance)]  # noqa: B023
                            table["others"][0][1] = -1

            checked = verify(forged(document, apply))
            assert checked.outcome is Outcome.REJECTED, (number, name)
            assert checked.reason.startswith("potential: "), checked


def test_a_certificate_with_too_many_coefficients_is_not_unfolded() -> None:
    slow = Machine("slow", (UnitClass("C", 1, 1, Latency(100_000, 100_000)),))
    instance = Instance.of("C" * 9, 1, slow)
    table = {"others": [[[0, 0, 900_000]]], "last": [[0, 0, 900_000]], "constant": 0, "ports": []}
    item = {"last_group": 0, "classes": ["C"], "thresholds": [1], "front": 0, "tables": [table] * 12, "nodes": []}
    with pytest.raises(TooMuchWork):
        proofs.certificate({"upper": 1, "potentials": [item]}, instance, ProofSteps(reading.MOST_COEFFICIENTS))


def test_nodes_that_share_a_table_are_counted_too() -> None:
    """Each takes the memory of sixteen numbers, in a bundle only a few letters."""
    nodes = [[0, [number], None, 0] for number in range(1000)]
    table = {"others": [[0]], "last": [0], "constant": 0, "ports": []}
    item = {"last_group": 0, "classes": ["C"], "thresholds": [1], "front": 0, "tables": [table], "nodes": nodes}
    value, instance = {"upper": 1, "potentials": [item]}, Instance.of("C", 2)
    assert len(proofs.certificate(value, instance, ProofSteps(16_002)).potentials[0].nodes) == 1000
    with pytest.raises(TooMuchWork):
        proofs.certificate(value, instance, ProofSteps(16_001))


@pytest.mark.parametrize(
    ("node", "why"),
    [
        ([0, [0, 0], None], "node is not a list of 4..4 items"),
        ([2, [0, 0], None, 0], "the last warp's class is not a whole number in 0..1"),
        ([-1, [0, 0], None, 0], "the last warp's class is not a whole number in 0..1"),
        ([True, [0, 0], None, 0], "the last warp's class is not a whole number in 0..1"),
        ([0, [0, -1], None, 0], "kind holds something that is not a whole number"),
        ([0, None, None, 0], "kind is not a list"),
        ([0, [0, 0], 2, 0], "label is not a whole number in -2..1"),
        ([0, [0, 0], -3, 0], "label is not a whole number in -2..1"),
        ([0, [0, 0], [], 0], "label is not a whole number in -2..1"),
        ([0, [0, 0], None, 1], "table is not a whole number in 0..0"),
        ([0, [0, 0], None, None], "table is not a whole number in 0..0"),
    ],
)
def test_a_node_is_read_strictly(node: list[Any], why: str) -> None:
    changed = forged(
        bundles()[6], lambda copied: at(copied, "certificate", "potentials", 0, "nodes").__setitem__(0, node)
    )
    assert why in verify(changed).reason
