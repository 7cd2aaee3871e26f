"""Two warps: the grid against the oracle, for every short string, and the table of events on general machines."""

from itertools import combinations, product

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from makespan.model.instance import Instance
from makespan.model.machine import PAPER, Latency, Machine, UnitClass
from makespan.model.program import Program, ProgramPlace
from makespan.model.result import Bounds
from makespan.model.simulate import replay, run
from makespan.proof.bounds import pessimistic
from makespan.proof.engines import Limits
from makespan.proof.engines.backends import TWO_WARPS
from makespan.proof.engines.engine import Finding, KnownBounds, refusal
from makespan.proof.engines.search import plain as search
from makespan.proof.engines.two_warps import events
from makespan.verify import two_warp_waits as check
from tests.both import both
from tests.oracle import brute_force, obeys
from tests.strategies import automata, chains, general_instances, general_machines, instances

CAPACITIES = ({"C": 1, "L": 1}, {"C": 2, "L": 1}, {"C": 1, "L": 2}, {"C": 2, "L": 2})


def all_strings(longest: int) -> list[str]:
    return ["".join(word) for length in range(1, longest + 1) for word in product("CL", repeat=length)]


def applies_to(instance: Instance) -> bool:
    return refusal(TWO_WARPS, instance, Limits()) is None


def solve(instance: Instance, limits: Limits) -> Finding:
    known = KnownBounds(run(instance, "oldest"), pessimistic(instance))
    (found,) = TWO_WARPS.find(instance, known, limits)
    return found


def agrees(instance: Instance) -> bool:
    found = solve(instance, Limits())
    assert found.witness is not None
    return search.solve(instance, Limits()).upper == found.upper == replay(instance, found.witness)


@pytest.mark.parametrize("capacity", CAPACITIES, ids=str)
def test_the_grid_is_exact_for_all_strings_up_to_six_letters(capacity: dict[str, int]) -> None:
    machine = Machine.of(capacity)
    assert [s for s in all_strings(6) if not agrees(Instance.of(s, 2, machine))] == []


@pytest.mark.parametrize("capacity", CAPACITIES, ids=str)
def test_the_grid_is_exact_for_all_pairs_of_different_strings_up_to_four_letters(capacity: dict[str, int]) -> None:
    machine = Machine.of(capacity)
    pairs = [
        Instance.merged([(Program.chain(a), 1), (Program.chain(b), 1)], machine)
        for a, b in combinations(all_strings(4), 2)
    ]
    assert [pair for pair in pairs if not agrees(pair)] == []


@given(instances(choices=False, most_warps=2, most=6).filter(applies_to))
def test_the_grid_is_brute_force_for_three_classes_too(instance: Instance) -> None:
    assert solve(instance, Limits()).upper == brute_force(instance).upper


@pytest.mark.parametrize(
    ("instance", "applies"),
    [
        (Instance.of("CL", 2), True),
        (Instance.merged([(Program.chain("C"), 1), (Program.chain("L"), 1)]), True),
        (Instance.of("CL", 1), False),
        (Instance.of("CL", 3), False),
        (Instance.of(Program((ProgramPlace("C", (1, 2)), ProgramPlace("L", (2,)))), 2), False),
        (Instance.of("C" * 8000, 2), False),  # the grid would not fit
    ],
    ids=["identical", "different", "one warp", "three warps", "choices", "too large"],
)
def test_the_grid_is_for_two_strings_that_fit(instance: Instance, applies: bool) -> None:
    assert applies_to(instance) == applies


def test_two_warps_can_take_less_than_theorem_a_says() -> None:
    """CLCLCL: 7 cycles, where the theorem's bound is 12 - 3 = 9."""
    assert solve(Instance.of("CLCLCL", 2, PAPER), Limits()).upper == 7


def has_events(instance: Instance) -> bool:
    return not instance.machine.is_basic and applies_to(instance)


@st.composite
def pairs(draw: st.DrawFn, *, machine: st.SearchStrategy[Machine], most: int) -> Instance:
    """Two warps, of equal or different programs."""
    chosen = draw(machine)
    units = "".join(chosen.capacities)
    program = chains(units, most) | automata(units, most)
    first = draw(program)
    second = draw(st.just(first) | program)
    return Instance.merged([(first, 1), (second, 1)], chosen)


@st.composite
def slow_machines(draw: st.DrawFn) -> Machine:
    """Latencies up to 600 cycles, fixed or ranges."""
    units = []
    for name in "CL":
        least = draw(st.integers(1, 12) | st.integers(1, 600))
        most = draw(st.just(least) | st.integers(least, least + 30))
        units.append(UnitClass(name, draw(st.integers(1, 3)), draw(st.integers(1, 6)), Latency(least, most)))
    return Machine("slow", tuple(units), draw(st.none() | st.integers(1, 2)))


def check_against_brute_force(instance: Instance) -> None:
    truth = brute_force(instance)
    found = both(events, instance)
    assert found.witness is not None
    assert (found.upper, found.best_case) == (truth.upper, Bounds(truth.lower, truth.lower))
    assert replay(instance, found.witness) == truth.upper
    assert obeys(instance, found.witness)


@settings(max_examples=100)
@given(general_instances(most_warps=2).filter(has_events))
def test_events_are_brute_force(instance: Instance) -> None:
    check_against_brute_force(instance)


@settings(max_examples=100)
@given(pairs(machine=general_machines(most_units=3, most_interval=6, most_latency=5), most=4).filter(has_events))
def test_events_are_brute_force_where_ports_are_held_for_longer_than_latencies(instance: Instance) -> None:
    check_against_brute_force(instance)


@settings(max_examples=100)
@given(pairs(machine=general_machines(most_units=3, most_interval=6, most_latency=5), most=4))
def test_the_second_formulation_is_brute_force(instance: Instance) -> None:
    longest, shortest = check.by_waits(instance), check.by_waits(instance, min)
    if longest is not None and shortest is not None:
        assert Bounds(shortest, longest) == brute_force(instance)


@settings(max_examples=60)
@given(pairs(machine=slow_machines(), most=8).filter(has_events))
def test_both_formulations_agree_on_latencies_of_hundreds_of_cycles(instance: Instance) -> None:
    found = both(events, instance)
    assert found.witness is not None
    assert found.best_case is not None
    longest, shortest = check.by_waits(instance), check.by_waits(instance, min)
    assume(longest is not None and shortest is not None)  # the checker takes fewer ways to hold ports than the engine
    assert found.upper == longest == replay(instance, found.witness)
    assert found.best_case == Bounds(shortest or 0, shortest or 0)


LOADS = Machine("loads", (UnitClass("C", 1, 1, Latency(4, 20)), UnitClass("L", 1, 4, Latency(400, 600))))


def test_loads_of_400_to_600_cycles_are_solved_exactly() -> None:
    """Two warps of 40 instructions; the whole range of every latency is open to the adversary."""
    instance = Instance.of("CLLCCLCLLC" * 4, 2, LOADS)
    found = both(events, instance)
    assert found.witness is not None
    assert found.upper == replay(instance, found.witness)
    assert found.best_case is not None
    assert found.best_case.lower < found.upper


@pytest.mark.parametrize(
    ("string", "machine", "cycles"),
    [
        ("C", Machine("interval", (UnitClass("C", 1, 5),)), 6),  # the second waits for five cycles
        ("CC", Machine("own port", (UnitClass("C", 1, 5),)), 16),  # all four, one after another
        ("C", Machine("two ports", (UnitClass("C", 2, 5),)), 1),
        ("CC", Machine("two ports", (UnitClass("C", 2, 5),)), 6),  # both warps wait for both ports
        ("C", Machine("narrow", (UnitClass("C", 2),), issue_width=1), 2),
        ("L", Machine("slow", (UnitClass("L", 1, 1, Latency(400, 600)),)), 601),
    ],
)
def test_small_machines_by_hand(string: str, machine: Machine, cycles: int) -> None:
    instance = Instance.of(string, 2, machine)
    assert solve(instance, Limits()).upper == cycles == check.by_waits(instance)


def test_nothing_is_said_without_time_or_memory() -> None:
    instance = Instance.of("CL" * 20, 2, LOADS)
    assert solve(instance, Limits(seconds=0)) == Finding()
    assert solve(instance, Limits(memory_bytes=1 << 10)) == Finding()
