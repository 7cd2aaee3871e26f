"""Theorem E: against exact values over its whole domain, against its parts, and its proof cycle by cycle."""

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks import closed_form
from makespan.model.certificate import Weights
from makespan.model.instance import Instance
from makespan.model.machine import Latency, Machine, SchedulerPromise, UnitClass
from makespan.model.program import Program, ProgramPlace
from makespan.proof.bounds import pairs, pessimistic, theorem_e
from makespan.proof.bounds.pairing import MOST_RESERVES, Pairing
from makespan.proof.bounds.pessimistic import Chain
from makespan.proof.bounds.theorem_e import MOST_SETS, try_caps
from makespan.proof.engines.limits import Limits
from makespan.proof.engines.search import plain
from makespan.verify import pairs as checker
from tests.bounds.ledger import Ledger, chain, masses, random_run
from tests.oracle import brute_force
from tests.strategies import (
    CLASSES,
    barrier_instances,
    general_barrier_instances,
    general_instances,
    instances,
    letters,
    paper_instances,
)

SLOW_LOADS = Machine("slow loads", (UnitClass("C", 1), UnitClass("L", 1, 1, Latency(30, 30))))
FORTY = "CCLCCLCCLLLLCCCLCCCLCCCCLCLLLCLLLCLCCCLC"


def upper(instance: Instance) -> int:
    found = theorem_e(instance)
    assert found is not None
    assert checker.bound(instance, found.weights) == found.upper
    return found.upper


# Against exact values


@pytest.mark.parametrize("kind", closed_form.OF_THEOREM_E)
def test_it_is_never_below_the_exact_value(kind: str) -> None:
    draw = random.Random(kind)
    for _ in range(60):
        instance = closed_form.instance(draw, closed_form.KINDS[kind])
        outcome = closed_form.judge(instance, patience=60)
        assert "wrong" not in outcome, instance


@given(st.one_of(instances(), barrier_instances(), general_instances(), general_barrier_instances()))
@settings(max_examples=150, deadline=None)
def test_it_is_never_below_brute_force(instance: Instance) -> None:
    found = theorem_e(instance)
    assert found is not None or instance.issue_width is not None
    assert found is None or found.upper >= brute_force(instance).upper


@pytest.mark.parametrize(
    ("machine", "string", "warps", "cycles"),
    [
        (Machine.of({"C": 2, "L": 2}), "CLLC", 8, 11),
        (Machine.of({"C": 1, "L": 1, "S": 1}), "CLS", 3, 7),
        (Machine("long", (UnitClass("C", 1), UnitClass("L", 1, 1, Latency(2, 2)))), "CLCL", 4, 12),
        (
            Machine("held", (UnitClass("C", 1, 3), UnitClass("L", 1, 2, Latency(2, 2)))),
            "CC",
            4,
            22,
        ),  # z holds a port beyond its end
        (Machine.of({"C": 2, "L": 1}), "LCC", 8, 10),  # L is closed by both C
        (Machine.of({"C": 2, "L": 1}), "LCC|CLCC", 48, 126),  # three turns to C, one of them at the barrier
        (Machine("late", (UnitClass("C", 2, 1, Latency(2, 2)), UnitClass("L", 1))), "LCC", 48, 53),  # one, for 3/2
    ],
)
def test_by_hand(machine: Machine, string: str, warps: int, cycles: int) -> None:
    assert upper(Instance.of(string, warps, machine)) == cycles


# What it contains


@given(letters(most=30))
def test_it_is_the_formula_for_identical_strings(string: str) -> None:
    for warps in (1, 2, 3, 48):
        assert upper(Instance.of(string, warps)) == warps * len(string) - (warps - 1) * pairs(string)


@given(letters("CLS", most=30), st.integers(1, 50), st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9))))
def test_it_is_the_formula_for_all_latencies_and_any_number_of_classes(
    string: str, warps: int, ranges: list[tuple[int, int]]
) -> None:
    spans = dict(zip(CLASSES, [*ranges, (1, 0), (1, 0), (1, 0)], strict=False))
    units = tuple(UnitClass(name, 1, 1, Latency(least, least + more)) for name, (least, more) in spans.items())
    alone = sum(sum(spans[letter]) for letter in string)
    assert upper(Instance.of(string, warps, Machine("m", units))) == alone + (warps - 1) * (len(string) - pairs(string))


def test_different_strings_by_hand() -> None:
    instance = Instance.merged([(Program.chain("CLLCLL"), 2), (Program.chain("CCC"), 1), (Program.chain("LC"), 1)])
    assert upper(instance) == (6 + 6 + 3 + 2) - (2 + 2 + 0 + 1) + 2


def test_for_every_warp_the_path_that_is_worst_for_it_is_taken() -> None:
    """Paths CCCC and CLCL: the last warp counts its length, every other its length less its pairs."""
    units, after = "CCLCCCL", ((1, 2), (3,), (4,), (5,), (6,), (7,), (7,))
    assert upper(Instance.of(Program(tuple(map(ProgramPlace, units, after))), 3)) == 4 + 4 + 4


@given(st.one_of(instances(), general_instances(), general_barrier_instances(), paper_instances()))
def test_without_classes_it_is_the_pessimistic_bound(instance: Instance) -> None:
    if instance.machine.issue_width is None:
        nothing = tuple(((0,),) * group.program.end for group in instance.groups)
        assert checker.bound(instance, [Weights((), (), nothing)]) == pessimistic(instance)


def test_classes_of_several_ports_and_an_interval_are_left_to_the_pessimistic_bound() -> None:
    mixed = Machine("mixed", (UnitClass("C", 1), UnitClass("L", 1), UnitClass("S", 2, 2)))
    found = theorem_e(Instance.of("CLSCLS", 4, mixed))
    assert found is not None
    assert [item.classes for item in found.weights] == [("C", "L")]
    assert found.upper == 6 + 3 * (4 - 2) + (2 * 6 + 1 * 2) // 2  # z holds a port of S beyond its latency, twice


def test_z_waits_only_for_what_it_uses() -> None:
    found = theorem_e(Instance.merged([(Program.chain("CCC"), 3), (Program.chain("L" * 12), 2)]))
    assert found is not None
    assert found.upper == 24
    assert {item.classes for item in found.weights} == {("C",), ("L",)}


def test_of_many_sets_of_classes_only_their_union_is_tried() -> None:
    names = "ABCDEFGHIJ"
    units = *(UnitClass(name, 1) for name in names), UnitClass("Y", 2, 2), UnitClass("Z", 1)
    machine = Machine("neither Y nor Z", units)
    strings = [Program.chain(a + "Y" + b) for a, b in pairwise(names)]
    found = theorem_e(Instance.merged([(program, 2) for program in strings], machine))
    assert len(strings) > MOST_SETS
    assert found is not None
    assert [item.classes for item in found.weights] == [tuple(names)]


def test_caps_are_tried_one_class_after_another_beginning_with_the_best_so_far() -> None:
    """C has a mass of 1 and S of 3, where L has 21: of 20 caps every third one is tried, and of 18, the largest always.

    6 and 9 are worth the same for C, so it keeps the first of them.
    """
    units = UnitClass("C", 1, 1, Latency(2, 2)), UnitClass("S", 1, 3, Latency(4, 4)), UnitClass("L", 1, 21)
    one = Instance.of("CSL", 2, Machine("m", units))

    def worth(caps: Mapping[str, int]) -> int:
        return abs(2 * caps["C"] - 15) + abs(caps["S"] - 9)

    found = list(try_caps(one, ("C", "S", "L"), lambda pairs: pairs.caps, worth))
    first = [{"C": cap, "S": 3, "L": 21} for cap in (1, 3, 6, 9, 12, 15, 18, 21)]
    assert found == [*first, *({"C": 6, "S": cap, "L": 21} for cap in (6, 9, 12, 15, 18, 21))]


def test_an_issue_width_that_binds_leaves_no_pairs_of_one_cycle() -> None:
    """One slot a cycle: AB, two warps, takes four cycles; without the width three."""
    units = UnitClass("A", 1), UnitClass("B", 2)
    narrow, free, wide = (Instance.of("AB", 2, Machine("m", units, width)) for width in (1, None, 2))
    assert theorem_e(narrow) is None
    assert upper(free) == upper(wide) == 3 < brute_force(narrow).upper == 4


@given(letters("CL", most=12), st.integers(1, 12), st.integers(1, 5))
def test_for_two_classes_it_is_the_formula_with_signed_masses(string: str, warps: int, ports: int) -> None:
    """Weights v, and a running mass that an L increases and a C lowers: half of them is what pairs take."""

    def most(cap: int) -> int:  # in units of 1 / ports
        found = {0: 0}
        for letter, after in zip(string, [*string[1:], ""], strict=True):
            coming: dict[int, int] = {}
            for running, taken in found.items():
                for weight in range((1 if letter == "C" else ports) + 1):
                    now = running + weight if letter == "L" else running - weight
                    if now == 0 or (0 < now <= cap and after == "C") or (now < 0 and after == "L"):
                        coming[now] = max(coming.get(now, 0), taken + weight)
            found = coming
        return found[0] // 2

    mass, turns = string.count("C") + string.count("L") * ports, string.count("LC")
    bounds = [
        len(string) + (min(ports - 1, warps - 1) * (cap - 1) * turns + (warps - 1) * (mass - most(cap))) // ports
        for cap in range(1, ports + 1)
    ]
    used = len(set(string)) == 2 and warps > ports
    assert not used or upper(Instance.of(string, warps, Machine.of({"C": ports, "L": 1}))) == min(bounds)


# Large ones


@pytest.mark.parametrize(("warps", "latency", "cycles"), [(48, 30, 1849), (16, 30, 953), (8, 400, 7019)])
def test_long_latencies(warps: int, latency: int, cycles: int) -> None:
    machine = Machine("m", (UnitClass("C", 1), UnitClass("L", 1, 1, Latency(latency, latency))))
    assert upper(Instance.of(FORTY, warps, machine)) == cycles


def test_many_reserves_are_rounded_up() -> None:
    """Masses of 397 and 403: along CLCL... what is left takes many values, and each start begins with another one."""
    machine = Machine("m", (UnitClass("C", 1, 397), UnitClass("L", 1, 403)))
    string = "CL" * 60
    program = Program(tuple(ProgramPlace(unit, (at + 1,)) for at, unit in enumerate(string)), tuple(range(0, 120, 2)))
    masses = {"C": 397, "L": 403}
    assert max(map(len, Pairing.scan(program, masses, masses).reserves)) == MOST_RESERVES
    assert upper(Instance.of(program, 3, machine)) >= upper(Instance.of(string, 3, machine))


@given(letters("CLS", 40), st.tuples(*[st.integers(1, 5)] * 3), st.tuples(*[st.integers(0, 6)] * 3))
def test_the_scan_takes_as_much_as_can_be_taken(string: str, own: tuple[int, ...], more: tuple[int, ...]) -> None:
    """Against all ways to give to the pair before, which may need several letters, and to the pair behind."""
    mass = dict(zip("CLS", own, strict=True))
    caps = {name: mass[name] + extra for name, extra in zip("CLS", more, strict=True)}
    most = {0: 0}  # by what the pair before still needs
    for letter, after in zip(string, [*string[1:], ""], strict=True):
        coming: dict[int, int] = {}
        for owed, taken in most.items():
            for back in range(min(owed, mass[letter]) + 1):
                if after == letter:
                    coming[owed - back] = max(coming.get(owed - back, 0), taken)
                elif owed == back:
                    for give in range(min(mass[letter] - back, caps.get(after, 0)) + 1):
                        coming[give] = max(coming.get(give, 0), taken + give)
        most = coming
    total = sum(mass[letter] for letter in string)
    assert Pairing.scan(Program.chain(string), mass, caps).heaviest(mass, -1) == total - most[0]


@pytest.mark.parametrize("kind", ["capacities", "intervals", "automata", "barriers"])
def test_whatever_the_caps_they_prove_no_less_than_the_exact_value(kind: str) -> None:
    """The largest ones, without a choice of those that are worth their price."""
    draw, raised = random.Random(kind), 0
    while raised < 25:
        instance = closed_form.instance(draw, closed_form.KINDS[kind])
        exact = plain.solve(instance, Limits(60)).upper
        simple = [unit for unit in instance.machine.units if unit.capacity == 1 or unit.interval == 1]
        counted = tuple(unit.name for unit in simple)
        mass = masses(instance.machine, frozenset(counted))
        caps = dict.fromkeys(counted, max(mass.values(), default=0))
        scans = [Pairing.scan(group.program, mass, caps) for group in instance.groups]
        weights = Weights(counted, tuple(caps.values()), tuple(scan.reserves for scan in scans))
        bound = checker.bound(instance, [weights])
        assert exact is not None
        assert bound is not None
        assert exact <= bound, instance
        raised += caps != mass


@pytest.mark.parametrize(("string", "warps", "cycles"), [("CLLCCC", 4, 14), ("LCCCCC", 7, 17)])
def test_less_than_the_whole_price_is_too_little(string: str, warps: int, cycles: int) -> None:
    """Three quarters of it at (2,1), a half at (3,1), would prove a cycle too few."""
    ports = {"CLLCCC": 2, "LCCCCC": 3}[string]
    mass, caps = {"C": 1, "L": ports}, {"C": ports, "L": ports}
    machine = Machine.of({"C": ports, "L": 1})
    instance = Instance.of(string, warps, machine)
    reserves = Pairing.scan(instance.groups[0].program, mass, caps).reserves
    bound = checker.bound(instance, [Weights(("C", "L"), (ports, ports), (reserves,))])
    assert plain.solve(instance, Limits(60)).upper == cycles == bound


# Its proof


def strings_of(draw: random.Random, kind: closed_form.Kind) -> Instance:
    while True:
        one = closed_form.instance(draw, kind)
        if all(group.program.is_chain for group in one.groups):
            return one


PROOF = {
    "intervals": closed_form.Kind(interval=6, latency=4, ranges=True, warps=8, letters=12),
    "capacities": closed_form.Kind(ports=3, latency=4, ranges=True, warps=9, letters=10),
    "barriers": closed_form.Kind(ports=2, interval=5, latency=3, ranges=True, warps=6, letters=12, barriers=True),
}


def ledgers(kind: str, count: int, without: str = "") -> Counter[str]:
    """How often each inequality was evaluated, held with equality, and was violated."""
    draw, found = random.Random(f"{kind} {count}"), Counter[str]()
    for _ in range(count):
        instance = strings_of(draw, PROOF[kind])
        known = [unit.name for unit in instance.machine.units if unit.capacity == 1 or unit.interval == 1]
        counted = frozenset(known if draw.random() < 0.6 else draw.sample(known, draw.randint(0, len(known))))
        mass = masses(instance.machine, counted)
        caps = {name: draw.choice((own, max(mass.values()), own + 1)) for name, own in mass.items()}
        mine, others = chain(random_run(draw, instance))
        ledger = Ledger(instance.machine, counted, mine, others, caps, instance.warps - 1, without)
        for name, left in ledger.inequalities():
            found[name] += 1
            found[f"{name} tight"] += left == 0
            found[f"{name} violated"] += left < 0
    return found


@pytest.mark.parametrize("kind", PROOF)
def test_the_inequalities_of_the_proof_hold_before_every_cycle(kind: str) -> None:
    found = ledgers(kind, 60)
    assert not any(found[name] for name in found if name.endswith("violated")), found
    assert found["I tight"] > 100
    assert found["J tight"]


@pytest.mark.parametrize("without", ["slack", "latency", "disjoint", "price", "delays", "last"])
def test_the_inequalities_notice_what_is_left_out(without: str) -> None:
    found = ledgers("intervals", 200, without)
    assert any(found[name] for name in found if name.endswith("violated"))


@pytest.mark.soak
@pytest.mark.parametrize("kind", PROOF)
def test_the_inequalities_of_the_proof_in_a_long_campaign(kind: str) -> None:
    found = ledgers(kind, 10_000)
    print(kind, dict(found))
    assert not any(found[name] for name in found if name.endswith("violated")), found


def test_a_class_whose_ports_the_others_cannot_hold_is_not_counted() -> None:
    """Two warps hold two of three ports at most, so nobody waits."""
    instance = Instance.of("CC", 3, Machine("m", (UnitClass("C", 3, 1, Latency(3, 3)), UnitClass("L", 3))))
    assert upper(instance) == brute_force(instance).upper == 3 + 3


def test_nothing_is_claimed_of_a_fair_scheduler_or_where_phases_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (
        theorem_e(Instance.of("CL", 2, replace(Machine.of({"C": 1, "L": 1}), scheduler=SchedulerPromise.FAIR))) is None
    )
    assert theorem_e(Instance.of("C|C", 2)) is not None
    monkeypatch.setattr(Chain, "of", lambda _: None)
    assert theorem_e(Instance.of("C|C", 2)) is None
