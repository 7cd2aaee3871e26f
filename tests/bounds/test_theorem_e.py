"""Theorem E: against exact values over its whole domain, against its parts, and its proof cycle by cycle."""

import random
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks import closed_form
from makespan.bounds import pairs, pessimistic, theorem_e
from makespan.bounds.pairing import MOST_RESERVES, Pairing
from makespan.bounds.theorem_e import MOST_SETS
from makespan.instance import Instance
from makespan.machine import Latency, Machine, UnitClass
from makespan.program import Place, Program
from makespan.verify import pairs as checker
from tests.bounds.ledger import Ledger, chain, random_run
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


@pytest.mark.parametrize("kind", closed_form.KINDS)
def test_it_is_never_below_the_exact_value(kind: str) -> None:
    draw = random.Random(kind)
    for _ in range(60):
        instance = closed_form.instance(draw, closed_form.KINDS[kind])
        outcome = closed_form.judge(instance, patience=60)
        assert "wrong" not in outcome, instance


@given(st.one_of(instances(), barrier_instances(), general_instances(), general_barrier_instances()))
@settings(max_examples=300, deadline=None)
def test_it_is_never_below_brute_force(instance: Instance) -> None:
    found = theorem_e(instance)
    assert (found is None) == (instance.machine.issue_width is not None)
    assert found is None or found.upper >= brute_force(instance).upper


@pytest.mark.parametrize(
    ("machine", "string", "warps", "cycles"),
    [
        (Machine.of({"C": 2, "L": 2}), "CLLC", 8, 11),
        (Machine.of({"C": 1, "L": 1, "S": 1}), "CLS", 3, 7),
        (Machine("long", (UnitClass("C", 1), UnitClass("L", 1, 1, Latency(2, 2)))), "CLCL", 4, 12),
        (Machine("held", (UnitClass("C", 1, 3), UnitClass("L", 1, 2, Latency(2, 2)))), "CC", 4, 24),
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
    assert upper(Instance.of(Program(tuple(map(Place, units, after))), 3)) == 4 + 4 + 4


@given(st.one_of(instances(), general_instances(), general_barrier_instances(), paper_instances()))
def test_without_classes_it_is_the_pessimistic_bound(instance: Instance) -> None:
    from makespan.certificate import Weights

    if instance.machine.issue_width is None:
        nothing = tuple(((0,),) * group.program.end for group in instance.groups)
        assert checker.bound(instance, [Weights((), nothing)]) == pessimistic(instance)


def test_classes_of_several_ports_and_an_interval_are_left_to_the_pessimistic_bound() -> None:
    mixed = Machine("mixed", (UnitClass("C", 1), UnitClass("L", 1), UnitClass("S", 2, 2)))
    found = theorem_e(Instance.of("CLSCLS", 4, mixed))
    assert found is not None
    assert [item.classes for item in found.weights] == [("C", "L")]
    assert found.upper == 6 + 3 * (4 - 2) + (2 * 6 + 1 * 2) // 2  # z holds a port of S beyond its latency, twice


def test_z_waits_only_for_what_it_uses() -> None:
    groups = [(Program.chain("CL"), 3), (Program.chain("CCC"), 2), (Program.chain("L"), 1)]
    found = theorem_e(Instance.merged(groups))
    assert found is not None
    assert {item.classes for item in found.weights} == {("C", "L"), ("C",), ("L",)}


def test_of_many_sets_of_classes_only_their_union_is_tried() -> None:
    names = "ABCDEFGHIJ"
    machine = Machine.of(dict.fromkeys(names, 1))
    strings = [Program.chain(a + b) for a, b in pairwise(names)]
    found = theorem_e(Instance.merged([(program, 2) for program in strings], machine))
    assert len(strings) > MOST_SETS
    assert found is not None
    assert [item.classes for item in found.weights] == [tuple(names)]


def test_an_issue_width_is_not_known() -> None:
    """One slot a cycle: AB, two warps, takes four cycles; without the width three."""
    units = UnitClass("A", 1), UnitClass("B", 2)
    narrow, free = (Instance.of("AB", 2, Machine("m", units, width)) for width in (1, None))
    assert theorem_e(narrow) is None
    assert upper(free) == 3 < brute_force(narrow).upper == 4


# Large ones


@pytest.mark.parametrize(("warps", "latency", "cycles"), [(48, 30, 1849), (16, 30, 953), (8, 400, 7019)])
def test_long_latencies(warps: int, latency: int, cycles: int) -> None:
    machine = Machine("m", (UnitClass("C", 1), UnitClass("L", 1, 1, Latency(latency, latency))))
    assert upper(Instance.of(FORTY, warps, machine)) == cycles


def test_many_reserves_are_rounded_up() -> None:
    """Masses of 397 and 403: along CLCL... what is left takes many values, and each start begins with another one."""
    machine = Machine("m", (UnitClass("C", 1, 397), UnitClass("L", 1, 403)))
    string = "CL" * 60
    program = Program(tuple(Place(unit, (at + 1,)) for at, unit in enumerate(string)), tuple(range(0, 120, 2)))
    masses = {"C": 397, "L": 403}
    assert max(map(len, Pairing.scan(program, masses).reserves)) == MOST_RESERVES
    assert upper(Instance.of(program, 3, machine)) >= upper(Instance.of(string, 3, machine))


@given(letters("CLS", 40), st.tuples(*[st.integers(1, 5)] * 3))
def test_the_scan_takes_as_much_as_can_be_taken(string: str, masses: tuple[int, int, int]) -> None:
    """Against all ways to give, one after another."""
    mass = dict(zip("CLS", masses, strict=True))
    most = {0: 0}  # by what is reserved
    for letter, after in zip(string, [*string[1:], ""], strict=True):
        coming: dict[int, int] = {}
        for reserve, taken in most.items():
            could = 0 if after in ("", letter) else min(mass[letter] - reserve, mass[after])
            for give in range(could + 1):
                coming[give] = max(coming.get(give, 0), taken + give)
        most = coming
    total = sum(mass[letter] for letter in string)
    assert Pairing.scan(Program.chain(string), mass).heaviest(mass, -1) == total - max(most.values())


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
        mine, others = chain(random_run(draw, instance))
        for name, left in Ledger(instance.machine, counted, mine, others, without).inequalities():
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


@pytest.mark.parametrize("without", ["slack", "latency", "disjoint"])
def test_the_inequalities_notice_what_is_left_out(without: str) -> None:
    found = ledgers("intervals", 200, without)
    assert found["I violated"] + found["J violated"] + found["end violated"] > 0


@pytest.mark.soak
@pytest.mark.parametrize("kind", PROOF)
def test_the_inequalities_of_the_proof_in_a_long_campaign(kind: str) -> None:
    found = ledgers(kind, 10_000)
    print(kind, dict(found))
    assert not any(found[name] for name in found if name.endswith("violated")), found
