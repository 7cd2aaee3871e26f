"""Bounds that hold, and formulas that only look as if they did."""

from collections.abc import Callable
from functools import partial
from itertools import product

import pytest
from hypothesis import given

from makespan.host.errors import UnsupportedError
from makespan.model.instance import Instance
from makespan.model.machine import DELAY, PAPER, Latency, Machine, UnitClass
from makespan.model.program import Program, ProgramPlace
from makespan.proof.bounds import any_units, least_possible, pairs, pessimistic, phases
from makespan.proof.bounds.conditions import ProofQuestion
from makespan.proof.bounds.delays import expand_latencies
from makespan.proof.bounds.pessimistic import Chain, cycles_without_port
from makespan.proof.bounds.theorem_1s import bound as bound_1s
from tests.oracle import brute_force
from tests.strategies import instances, letters


def exact(string: str, warps: int, machine: Machine = PAPER) -> int:
    return brute_force(Instance.of(string, warps, machine)).upper


@given(instances())
def test_pessimistic_is_never_below_the_worst_case(instance: Instance) -> None:
    assert pessimistic(instance) >= brute_force(instance).upper


@given(instances())
def test_least_possible_is_never_above_the_best_case(instance: Instance) -> None:
    assert least_possible(instance) <= brute_force(instance).lower


@pytest.mark.parametrize(
    ("string", "warps", "capacity", "cycles"),
    [
        ("CLLCLL", 2, {"C": 1, "L": 1}, 12),
        ("LLLLCCCCCCCCCLLCCCCCCC", 48, {"C": 1, "L": 1}, 48 * 22),
        ("CLLCLL", 3, {"C": 2, "L": 1}, 6 + 2 + 8),  # 2 others: 4 C over 2 units, 8 L over 1
        ("CLLCLL", 2, {"C": 2, "L": 1}, 6 + 0 + 4),  # one other warp never fills two C units
        ("CLLCLL", 4, {"C": 2, "L": 3}, 6 + 3 + 4),
    ],
)
def test_pessimistic_by_hand(string: str, warps: int, capacity: dict[str, int], cycles: int) -> None:
    assert pessimistic(Instance.of(string, warps, Machine.of(capacity))) == cycles


def test_the_bound_for_any_units_counts_the_longer_of_two_ways() -> None:
    """A warp alone takes two cycles, and six instructions one port; or two of six slots in a cycle, too."""
    fork = Program((ProgramPlace("C", (1, 2)), ProgramPlace("C", (2,))))
    for width, value in (None, 2 + 6), (2, 2 + 6 + 3):
        assert any_units(Instance.of(fork, 3, Machine("m", (UnitClass("C", 1),), width))) == value


def test_what_ports_leave_over_takes_as_many_slots_as_there_are_instructions() -> None:
    """One C holds its port for 4 cycles and one's own for 3 more: all ports for one, and three port-cycles are left."""
    machine = Machine("m", (UnitClass("C", 4, 4), UnitClass("L", 9)), 4)
    crew = Instance.merged([(Program.chain("C"), 2), (Program.chain("L"), 6)], machine)
    assert pessimistic(crew) == 1 + (4 + 3) // 4 + (1 + 6) // 4


def test_the_least_possible_counts_no_class_that_nobody_uses() -> None:
    machine = Machine("m", (UnitClass("C", 1), UnitClass("L", 1, 1, Latency(30, 30))))
    assert least_possible(Instance.of("CC", 2, machine)) == brute_force(Instance.of("CC", 2, machine)).lower == 4


def test_any_units_by_hand() -> None:
    """Alone CLC takes 4 + 1 + 4 cycles; six C hold two ports for 3 cycles, three L hold one; nine take two slots."""
    machine = Machine("m", (UnitClass("C", 2, 3, Latency(4, 4)), UnitClass("L", 1)), issue_width=2)
    assert any_units(Instance.of("CLC", 3, machine)) == 9 + 6 * 3 // 2 + 3 + 9 // 2


def test_any_units_of_different_warps_and_with_barriers_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """With barriers a chain takes the slower of C and L twice; where it has too many phases, every warp its own."""
    machine = Machine("m", (UnitClass("C", 2, 3, Latency(4, 4)), UnitClass("L", 1)), issue_width=2)
    mixed = Instance.merged([(Program.chain("CLC"), 2), (Program.chain("LL"), 1)], machine)
    assert any_units(mixed) == 9 + 4 * 3 // 2 + 4 + 8 // 2
    crossing = Instance.merged([(Program.chain("C|L"), 2), (Program.chain("L|C"), 1)], machine)
    assert any_units(crossing) == (4 + 4) + 3 * 3 // 2 + 3 + 6 // 2
    monkeypatch.setattr(Chain, "of", lambda _: None)
    assert any_units(crossing) == 3 * (4 + 1) + 3 * 3 // 2 + 3 + 6 // 2


def test_without_a_port_are_the_cycles_in_which_others_and_oneself_hold_all() -> None:
    """Five of others for 3 cycles, and two own ones for the 2 that their latency leaves, on two ports; or too few."""
    assert cycles_without_port(UnitClass("C", 2, 3), users=1, work=5, own=2) == (5 * 3 + 2 * 2) // 2
    assert cycles_without_port(UnitClass("C", 4), users=3, work=5, own=2) == 0


DELAYED = Machine("m", (UnitClass("C", 1), UnitClass.of_delays(2)), issue_width=1)
HALVES = Machine("m", (UnitClass("C", 1),), partitions=2)


@pytest.mark.parametrize(
    ("method", "one", "what"),
    [
        (least_possible, Instance.of(f"C{DELAY}C", 2, DELAYED), "the least possible does not know cycles of delay"),
        (bound_1s, Instance.of(f"C{DELAY}C", 2, DELAYED), "theorem 1S does not know cycles of delay"),
        (phases, Instance.of(f"C{DELAY}C", 2, DELAYED), "the cut into phases does not know cycles of delay"),
        (any_units, Instance.of("CC", 2, HALVES), "the bound for any units does not know 2 partitions"),
        (expand_latencies, Instance.of("CC", 2, HALVES), "the expansion of latencies does not know 2 partitions"),
        (
            partial(ProofQuestion, last=0),
            Instance.of("CC", 2, HALVES),
            "a certificate, .* does not know 2 partitions",
        ),
    ],
)
def test_who_does_not_know_a_feature_refuses_it(method: Callable[[Instance], object], one: Instance, what: str) -> None:
    with pytest.raises(UnsupportedError, match=what):
        method(one)


def test_pessimistic_counts_as_users_of_a_class_the_other_warps_that_use_it() -> None:
    """One other warp, or two, never hold all of two ports, or three; those with L alone have no part in it."""
    two = Machine.of({"C": 2, "L": 1})
    assert pessimistic(Instance.merged([(Program.chain("CCC"), 2), (Program.chain("L"), 2)], two)) == 3
    three = Machine("m", (UnitClass("C", 3), UnitClass("L", 1, latency=Latency(9, 9))))
    assert pessimistic(Instance.merged([(Program.chain("LC"), 1), (Program.chain("CCC"), 2)], three)) == 9 + 1


@pytest.mark.parametrize("string", ["CL", "C|L"])
def test_pessimistic_lets_nobody_wait_for_one_of_as_many_slots_as_there_are_warps(string: str) -> None:
    machine = Machine("m", (UnitClass("C", 2), UnitClass("L", 2)), issue_width=2)
    assert pessimistic(Instance.of(string, 2, machine)) == 2


def test_pessimistic_takes_the_worst_last_warp_of_different_ones() -> None:
    instance = Instance.merged([(Program.chain("CCC"), 2), (Program.chain("L"), 1)])
    assert pessimistic(instance) == 6  # a CCC waits for the other one; the L waits for nobody
    assert brute_force(instance).upper == 6


@pytest.mark.parametrize("warps", range(1, 7))
@pytest.mark.parametrize("units", range(1, 4))
@pytest.mark.parametrize("length", range(1, 5))
def test_pessimistic_is_exact_for_a_single_class(length: int, units: int, warps: int) -> None:
    instance = Instance.of("C" * length, warps, Machine.of({"C": units, "L": 1}))
    assert pessimistic(instance) == brute_force(instance).upper


def work_rounded_up_per_class(string: str, warps: int, capacity: dict[str, int]) -> int:
    return sum(-(-warps * string.count(unit) // units) for unit, units in capacity.items())


def rounds_of_warps_per_class(string: str, warps: int, capacity: dict[str, int]) -> int:
    return sum(string.count(unit) * -(-warps // units) for unit, units in capacity.items())


@pytest.mark.parametrize(("warps", "truth"), [(3, 4), (4, 5)])
def test_the_work_of_a_class_rounded_up_is_unsafe(warps: int, truth: int) -> None:
    capacity = {"C": 2, "L": 1}
    assert exact("CC", warps, Machine.of(capacity)) == truth
    assert work_rounded_up_per_class("CC", warps, capacity) == truth - 1
    assert pessimistic(Instance.of("CC", warps, Machine.of(capacity))) == truth


def test_whole_rounds_of_warps_are_unsafe() -> None:
    capacity = {"C": 2, "L": 1}
    assert rounds_of_warps_per_class("CC", 4, capacity) == 4 < exact("CC", 4, Machine.of(capacity)) == 5


def test_no_smaller_string_than_cc_betrays_the_unsafe_formulas() -> None:
    for string, warps in product(("C", "L"), range(1, 7)):
        capacity = {"C": 2, "L": 1}
        truth = exact(string, warps, Machine.of(capacity))
        assert work_rounded_up_per_class(string, warps, capacity) >= truth
        assert rounds_of_warps_per_class(string, warps, capacity) >= truth


def test_exact_values_of_the_pieces_of_a_string_do_not_bound_the_whole() -> None:
    assert exact("C", 2) + exact("CLC", 2) == 2 + 4 < exact("CCLC", 2) == 7


def test_a_longer_string_can_take_less() -> None:
    assert exact("CCLC", 2) == 7
    assert exact("CLCLC", 2) == 6


def test_a_warp_further_ahead_can_leave_more_cycles() -> None:
    def rest(*places: int) -> int:
        """What remains of CLC when two warps stand at these places."""
        tails = [Program.chain("CLC"[place:]) for place in places]
        return brute_force(Instance.merged([(tail, 1) for tail in tails])).upper

    assert rest(0, 1) == 3
    assert rest(0, 2) == 4


def test_the_order_of_a_string_matters_beside_its_counts() -> None:
    wide = Machine.of({"C": 2, "L": 1})
    assert [exact("CCL", warps, wide) for warps in (3, 4, 5, 6)] == [5, 7, 8, 10]
    assert [exact("LCC", warps, wide) for warps in (3, 4, 5, 6)] == [5, 6, 7, 8]


@given(letters(most=12))
def test_the_greedy_scan_finds_the_most_disjoint_pairs(string: str) -> None:
    best = [0, 0]
    for at in range(2, len(string) + 1):
        best.append(max(best[-1], best[-2] + (string[at - 1] != string[at - 2])))
    assert pairs(string) == best[len(string)]


@pytest.mark.parametrize(
    ("string", "count"), [("C", 0), ("CC", 0), ("CL", 1), ("CLC", 1), ("CLLCLL", 2), ("LLLLCCCCCCCCCLLCCCCCCC", 3)]
)
def test_pairs_by_hand(string: str, count: int) -> None:
    assert pairs(string) == count
