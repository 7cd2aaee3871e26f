"""Potential certificates: never below the truth, falling along every schedule, tight where theory says so."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from makespan.bounds import pairs, repetition
from makespan.bounds.conditions import Question, conditions
from makespan.bounds.front import front
from makespan.bounds.linear import Programme, Values
from makespan.bounds.potential import LARGEST, Arrays, least_decrease
from makespan.certificate import FINISHED, Certificate, Node, Potential
from makespan.instance import Instance
from makespan.machine import PAPER, Machine
from makespan.program import Place, Program
from makespan.result import Bounds
from makespan.simulate.semantics import starts, steps
from makespan.solve import Limits, certify, solve
from makespan.strings import NamedInstance, read_instances
from makespan.verify import potential as checker
from tests.oracle import brute_force
from tests.strategies import automata, instances, machines, paper_instances

State = tuple[int, ...]
"""Where every warp stands."""

LEVELS = {
    "few tables": (0, 1, True),
    "coarse": (0, 1, False),
    "fine": (1, 1, False),
    "finer": (2, 1, False),
    "front": (1, 200, False),
    "few tables with a front": (0, 30, True),
}
"""Thresholds above the capacities, states of the front, one table per class or one per node."""

crowded = machines(most_units=4).flatmap(lambda machine: instances(machine=machine, most_warps=5, most=4))
randoms = st.integers(0, 1 << 32).map(Random)


def certificate(instance: Instance, level: str) -> Certificate | None:
    extra, most_states, few = LEVELS[level]
    classes = len(set().union(*(group.program.units for group in instance.groups)))
    states = front(instance, most_states)
    assert states is not None
    shape = certify._Level((extra,) * classes, most_states, few)
    return certify._certificate(instance, shape, states, Limits(60))


def upper(instance: Instance, level: str) -> int:
    found = certificate(instance, level)
    assert found is not None
    return found.upper


@pytest.mark.parametrize("level", LEVELS)
@given(instance=crowded)
@settings(max_examples=30)
def test_a_certificate_is_never_below_the_worst_case(level: str, instance: Instance) -> None:
    assert upper(instance, level) >= brute_force(instance).upper


@pytest.mark.parametrize("level", LEVELS)
@given(instance=paper_instances(most_warps=4, most=5))
@settings(max_examples=12)
def test_a_certificate_on_single_units_is_never_below_the_worst_case(level: str, instance: Instance) -> None:
    assert upper(instance, level) >= brute_force(instance).upper


@pytest.mark.parametrize("level", LEVELS)
@given(program=automata("CLS", 5), machine=machines(3, 2), warps=st.integers(1, 5))
@settings(max_examples=15)
def test_a_certificate_covers_every_path_of_an_automaton(
    level: str, program: Program, machine: Machine, warps: int
) -> None:
    assume(program.units <= set(machine.capacities))
    instance = Instance.of(program, warps, machine)
    assert upper(instance, level) >= brute_force(instance).upper


@given(st.text("CL", min_size=1, max_size=3), st.integers(7, 9), st.sampled_from(["few tables", "fine"]), st.data())
@settings(max_examples=15)
def test_merged_repetitions_leave_a_certificate_sound(loop: str, count: int, level: str, data: st.DataObject) -> None:
    machine = Machine.of({"C": data.draw(st.integers(1, 2)), "L": 1})
    tail = data.draw(st.text("CL", max_size=3))
    instance = Instance.of(loop * count + tail, 2 if len(loop) > 1 else 3, machine)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(repetition, "MERGED_FROM", 1)
        assert upper(instance, level) >= search_upper(instance)


def search_upper(instance: Instance) -> int:
    from makespan.solve import search

    found = search.solve(instance, Limits(600)).upper
    assert found is not None
    return found


def walk(instance: Instance, random: Random) -> list[State]:
    """The states of a random work-conserving schedule."""
    states = [random.choice(list(starts(instance)))]
    while following := list(steps(instance, states[-1])):
        states.append(random.choice(following))
    return [state.places for state in states]


def nodes(instance: Instance, potential: Potential, states: list[State]) -> list[Node | None]:
    """The nodes of the states of a schedule, from the definition; None at the end."""
    found: list[Node | None] = [None]
    label = FINISHED
    sigma = tuple(instance.machine.capacities[unit] for unit in potential.classes)
    programs = list(instance.programs())
    for state in reversed(states[:-1]):
        letters = [program.places[p].unit for program, p in zip(programs, state, strict=True) if p != program.end]
        counts = [letters.count(unit) for unit in potential.classes]
        kind = tuple(map(min, counts, potential.thresholds))
        coarse = tuple(map(min, counts, sigma))
        label = label if coarse == sigma else coarse
        found.append(Node(kind, label if coarse == sigma else None))
    return found[::-1]


def height(instance: Instance, potential: Potential, node: Node | None, state: State, last: int) -> int:
    """The potential of a state, by its definition."""
    if node is None:
        return 0
    table = dict(potential.nodes)[node]
    warps = enumerate(zip(instance.group_of_warp(), instance.programs(), state, strict=True))
    others = (table.others[g][p] for warp, (g, program, p) in warps if warp != last and p != program.end)
    return sum(others) + table.last[state[last]] + table.constant


def step(instance: Instance, potential: Potential) -> int:
    """The decrease per cycle on which the bound of a certificate rests."""
    question = Question(instance, potential.last_group)
    sigma = [instance.machine.capacities[unit] for unit in potential.classes]
    shape = question.abstraction(tuple(t - s for t, s in zip(potential.thresholds, sigma, strict=True)))
    tables: dict[Node, Arrays] = {
        node: (tuple(np.array([*g, 0]) for g in table.others), np.array([*table.last, 0]), table.constant)
        for node, table in potential.nodes
    }
    return least_decrease(question, conditions(question, shape), tables)


@given(crowded, st.sampled_from(list(LEVELS)), randoms)
@settings(max_examples=60)
def test_the_potential_falls_in_every_cycle_of_a_schedule(instance: Instance, level: str, random: Random) -> None:
    proof = certificate(instance, level)
    assert proof is not None
    decrease = [step(instance, potential) for potential in proof.potentials]
    for _ in range(5):
        states = walk(instance, random)
        last = random.choice([warp for warp, p in enumerate(states[-2]) if p != states[-1][warp]])
        group = instance.group_of_warp()[last]
        potential, least = proof.potentials[group], decrease[group]
        assert potential.last_group == group
        assert least > 0
        labelled = zip(nodes(instance, potential, states), states, strict=True)
        heights = [height(instance, potential, node, state, last) for node, state in labelled]
        assert all(before - after >= least for before, after in pairwise(heights))
        if potential.front < len(states):
            assert potential.front + heights[potential.front] // least <= proof.upper


@given(crowded, st.sampled_from(list(LEVELS)))
@settings(max_examples=25)
def test_the_independent_checker_confirms_a_certificate(instance: Instance, level: str) -> None:
    proof = certificate(instance, level)
    assert proof is not None
    assert checker.bound(instance, proof) <= proof.upper


@pytest.mark.parametrize("level", ["few tables", "coarse", "fine"])
@given(string=st.text("CL", min_size=1, max_size=20), warps=st.integers(3, 64))
@settings(max_examples=10)
def test_the_certificate_is_tight_on_single_units(level: str, string: str, warps: int) -> None:
    assert upper(Instance.of(string, warps), level) == warps * len(string) - (warps - 1) * pairs(string)


@pytest.mark.parametrize("string", ["CCLLLCL" * 40, "CLL" * 70 + "CCCLL" * 30, "C" * 300, "L" + "CCL" * 99])
def test_the_certificate_of_a_long_loop_is_tight_on_single_units(string: str) -> None:
    assert upper(Instance.of(string, 48), "few tables") == 48 * len(string) - 47 * pairs(string)


def test_a_conditional_instruction_costs_what_the_worst_mixture_of_paths_does() -> None:
    """`C; if (p) L; CLC`: the shorter string is the worse one, so the longest path is no bound."""
    fork = Program((Place("C", (1, 2)), Place("L", (2,)), Place("C", (3,)), Place("L", (4,)), Place("C", (5,))))
    instance = Instance.of(fork, 2)
    assert brute_force(instance).upper == 7
    assert solve(instance).bounds == Bounds(7, 7)
    assert all(upper(instance, level) >= 7 for level in LEVELS)
    assert brute_force(Instance.of("CCLC", 2)).upper == 7
    assert brute_force(Instance.of("CLCLC", 2)).upper == 6


@pytest.mark.parametrize(
    ("string", "capacity", "warps", "cycles"),
    [
        ("CLLCLL", (2, 1), 8, 34),
        ("CLCLCL", (2, 1), 10, 33),
        ("CCCLLL", (2, 1), 9, 37),
        ("LLLCCCCLC", (2, 1), 10, 50),
        ("CLLCLL", (1, 2), 10, 24),
        ("CCLLCC", (1, 2), 10, 42),
        ("CCCC", (2, 2), 10, 22),
    ],
)
def test_a_fine_certificate_meets_known_worst_cases(
    string: str, capacity: tuple[int, int], warps: int, cycles: int
) -> None:
    instance = Instance.of(string, warps, Machine.of(dict(zip("CL", capacity, strict=True))))
    assert upper(instance, "front") == cycles


REFERENCE = read_instances(Path(__file__).parents[1] / "instruction_strings" / "reference.jsonl")
CAPACITIES = sorted({tuple(named.instance.machine.capacities.values()) for named in REFERENCE})


def sample(capacity: tuple[int, ...], every: int) -> list[NamedInstance]:
    """Some reference values with these capacities and three warps or more."""
    own = [named for named in REFERENCE if tuple(named.instance.machine.capacities.values()) == capacity]
    return [named for named in own if named.instance.warps >= 3][::every]


def mean_excess(sample: list[NamedInstance]) -> float:
    """Mean of upper bound by worst case."""
    ratios = []
    for named in sample:
        assert named.makespan is not None
        bound = upper(named.instance, "front")
        assert bound >= named.makespan, named.where
        ratios.append(bound / named.makespan)
    return sum(ratios) / len(ratios)


@pytest.mark.parametrize("capacity", CAPACITIES, ids=str)
def test_a_certificate_exceeds_reference_values_by_one_percent_at_most(capacity: tuple[int, ...]) -> None:
    assert mean_excess(sample(capacity, every=24)) <= 1.01


SPOILED: dict[str, Callable[[Values], Values]] = {
    "nothing": np.zeros_like,
    "not numbers": lambda solution: np.full_like(solution, np.nan),
    "one not a number": lambda solution: np.where(np.arange(len(solution)) == len(solution) // 2, np.nan, solution),
    "infinite": lambda solution: np.full_like(solution, np.inf),
    "minus infinite": lambda solution: np.full_like(solution, -np.inf),
    "huge": lambda solution: solution * 1e300,
    "large": lambda solution: np.random.default_rng(1).uniform(-LARGEST, LARGEST, len(solution)),
    "negative": lambda solution: -solution,
    "noise": lambda solution: np.random.default_rng(2).normal(0, 5, len(solution)),
    "a little noise": lambda solution: solution + np.random.default_rng(3).normal(0, 0.02, len(solution)),
    "shaved": lambda solution: solution * 0.9,
    "rounded": np.rint,
    "less at one place": lambda solution: solution - (np.arange(len(solution)) % 7 == 3) * 0.25,
}


@pytest.mark.parametrize("spoil", SPOILED)
@given(instance=crowded, level=st.sampled_from(list(LEVELS)))
@settings(max_examples=10)
def test_a_wrong_solution_never_proves_a_wrong_bound(spoil: str, instance: Instance, level: str) -> None:
    minimise = Programme.minimise

    def wrong(*arguments: object) -> Values | None:
        solution = minimise(*arguments)  # type: ignore[arg-type]
        return None if solution is None else np.asarray(SPOILED[spoil](solution))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Programme, "minimise", wrong)
        found = certificate(instance, level)
    if found is not None:
        assert found.upper >= brute_force(instance).upper
        assert checker.bound(instance, found) <= found.upper


def test_a_solution_with_a_little_noise_still_proves_something(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounding and repair are meant to absorb what an interior point method leaves open."""
    instance = Instance.of("CCLLCC", 6, Machine.of({"C": 2, "L": 1}))
    minimise = Programme.minimise
    random = np.random.default_rng(4)

    def noisy(*arguments: object) -> Values | None:
        solution = minimise(*arguments)  # type: ignore[arg-type]
        return None if solution is None else solution + random.normal(0, 1e-5, len(solution))

    exact = upper(instance, "front")
    monkeypatch.setattr(Programme, "minimise", noisy)
    assert exact <= upper(instance, "front") <= exact + 1


def test_a_solver_that_fails_is_no_certificate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Programme, "minimise", lambda *arguments: None)
    instance = Instance.of("CCLLCC", 3, Machine.of({"C": 2, "L": 1}))
    assert all(certificate(instance, level) is None for level in LEVELS)
    assert solve(instance, backend="certificate").certificate is None


def test_certificates_of_all_groups_count() -> None:
    """The warp that finishes last may be of either group: the certificate has a potential for each."""
    instance = Instance.merged([(Program.chain("CCC"), 2), (Program.chain("L"), 1)], PAPER)
    found = certificate(instance, "fine")
    assert found is not None
    assert [potential.last_group for potential in found.potentials] == [0, 1]
    assert found.upper == 6
