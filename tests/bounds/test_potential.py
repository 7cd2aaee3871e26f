"""Potential certificates: never below the truth, falling along every schedule, tight where theory says so."""

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from makespan.model.certificate import DELAYED_LABEL, FINISHED_LABEL, Certificate, Potential, PotentialNode
from makespan.model.instance import Instance
from makespan.model.machine import DELAY, PAPER, Latency, Machine, UnitClass
from makespan.model.program import Program
from makespan.model.result import Bounds
from makespan.model.simulate.semantics import SmState
from makespan.model.strings import NamedInstance, read_instances
from makespan.proof.bounds import pairs, repetition
from makespan.proof.bounds.abstraction import AbstractCycle, Abstraction, AbstractSituation, LastSlot
from makespan.proof.bounds.conditions import Mode, ProofQuestion, conditions
from makespan.proof.bounds.delays import Expansion, expand_latencies
from makespan.proof.bounds.first_cycles import front
from makespan.proof.bounds.linear import Programme, SolutionValues
from makespan.proof.bounds.potential import LARGEST, dominates, least_decrease
from makespan.proof.bounds.tables import SCALE, Arrays, Tables
from makespan.proof.engines import Limits, solve
from makespan.proof.engines.certificate import improve
from makespan.verify import potential as checker
from tests.both import truth
from tests.oracle import brute_force
from tests.strategies import CONDITIONAL, automata, general_instances, instances, machines, paper_instances, walk

LEVELS: dict[str, tuple[int, int, improve.NodeKey, improve.NodeKey, bool]] = {
    "labels": (0, 1, improve.stop_ahead, improve.stop_ahead, True),
    "own class": (0, 1, improve.stop_ahead, improve.stop_and_class, True),
    "whole for the last": (0, 1, improve.stop_ahead, improve.stop_and_kind, True),
    "whole": (0, 1, improve.stop_and_kind, improve.stop_and_kind, True),
    "finer": (1, 1, improve.stop_and_kind, improve.stop_and_kind, False),
    "front": (1, 200, improve.stop_and_kind, improve.stop_and_kind, False),
    "labels with a front": (0, 30, improve.stop_ahead, improve.stop_ahead, True),
}
"""Thresholds above the capacities, and what else distinguishes a level of `improve`."""

crowded = machines(most_units=4).flatmap(lambda machine: instances(machine=machine, most_warps=5, most=4))
everything = st.one_of(crowded, general_instances())
randoms = st.integers(0, 1 << 32).map(Random)


def with_delays(instance: Instance) -> Expansion:
    expansion = expand_latencies(instance)
    assert expansion is not None
    return expansion


def certificate(instance: Instance, level: str) -> Certificate | None:
    extra, most_states, others, last, one_delay = LEVELS[level]
    whole = with_delays(instance).instance
    states = front(whole, most_states)
    assert states is not None
    shape = improve._Level((extra,) * len(ProofQuestion(whole, 0).classes), most_states, others, last, one_delay)
    return improve._certificate(whole, shape, states, Limits(60))


def upper(instance: Instance, level: str) -> int:
    found = certificate(instance, level)
    assert found is not None
    return found.upper


@pytest.mark.parametrize("level", LEVELS)
@given(instance=st.one_of(everything, paper_instances(most_warps=4, most=5)))
@settings(max_examples=30, deadline=None)
def test_a_certificate_is_never_below_the_worst_case_and_the_checker_confirms_it(
    level: str, instance: Instance
) -> None:
    found = certificate(instance, level)
    assert found is not None
    assert found.upper >= brute_force(instance).upper
    assert checker.bound(instance, found) <= found.upper


@pytest.mark.parametrize("level", LEVELS)
@given(program=automata("CLS", 5), machine=machines(3, 2), warps=st.integers(1, 5))
@settings(max_examples=15)
def test_a_certificate_covers_every_path_of_an_automaton(
    level: str, program: Program, machine: Machine, warps: int
) -> None:
    assume(program.units <= set(machine.capacities))
    instance = Instance.of(program, warps, machine)
    assert upper(instance, level) >= brute_force(instance).upper


@given(st.text("CL", min_size=1, max_size=3), st.integers(7, 9), st.sampled_from(["labels", "finer"]), st.data())
@settings(max_examples=15)
def test_merged_repetitions_leave_a_certificate_sound(loop: str, count: int, level: str, data: st.DataObject) -> None:
    machine = Machine.of({"C": data.draw(st.integers(1, 2)), "L": 1})
    tail = data.draw(st.text("CL", max_size=3))
    instance = Instance.of(loop * count + tail, 2 if len(loop) > 1 else 3, machine)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(repetition, "MERGED_FROM", 1)
        assert upper(instance, level) >= truth(instance)


def standing(expansion: Expansion, states: list[SmState]) -> list[tuple[int, ...]]:
    """Where every warp of a schedule stands in the instance with delays: at its next place, or in a chain of delays."""
    groups = expansion.original.group_of_warp()
    issued = [-1] * len(groups)
    found = []
    for before, state in pairwise([states[0], *states]):
        here = []
        for warp, group in enumerate(groups):
            origins = [*expansion.origins[group], expansion.original.groups[group].program.end]
            if state.places[warp] != before.places[warp]:
                issued[warp] = before.places[warp]
            wait = state.waits[warp]
            end = origins.index(issued[warp]) + origins.count(issued[warp]) if wait else 0
            here.append(end - wait if wait else origins.index(state.places[warp]))
        found.append(tuple(here))
    return found


def timed(instance: Instance, potential: Potential) -> list[int]:
    """The numbers, in the machine, of the classes with an interval longer than one cycle, as the potential has them."""
    units = {unit.name: number for number, unit in enumerate(instance.machine.units) if unit.interval > 1}
    return [units[name] for name in potential.classes if name in units]


def nodes(expansion: Expansion, potential: Potential, states: list[SmState], last: int) -> list[PotentialNode | None]:
    """The nodes of the states of a schedule that `last` finishes last, from the definition; None at the end."""
    found: list[PotentialNode | None] = [None]
    ahead = FINISHED_LABEL
    stops = {(node.last, node.kind) for node, _ in potential.nodes if node.label is None}
    machine = expansion.instance.machine
    number = {unit: row for row, unit in enumerate(potential.classes)}
    programs = list(expansion.instance.programs())
    for state, places in list(zip(states, standing(expansion, states), strict=True))[-2::-1]:
        letters = [
            program.places[p].unit if p != program.end else "" for program, p in zip(programs, places, strict=True)
        ]
        own = number.get(letters.pop(last))
        free = (machine.units[n].capacity - len(state.held[n]) for n in timed(expansion.original, potential))
        kind = (*map(min, map(letters.count, potential.classes), potential.thresholds), *free)
        if (own, kind) in stops:
            ahead = DELAYED_LABEL if own is None else own
        found.append(PotentialNode(own, kind, None if (own, kind) in stops else ahead))
    return found[::-1]


def height(
    expansion: Expansion,
    potential: Potential,
    node: PotentialNode | None,
    state: SmState,
    places: tuple[int, ...],
    last: int,
) -> int:
    """The potential of a state, by its definition."""
    if node is None:
        return 0
    table, instance = potential.tables[dict(potential.nodes)[node]], expansion.instance
    warps = enumerate(zip(instance.group_of_warp(), instance.programs(), places, strict=True))
    others = (table.others[g][p] for warp, (g, program, p) in warps if warp != last and p != program.end)
    slow = timed(expansion.original, potential)
    ports = (own[left - 1] for own, n in zip(table.ports, slow, strict=True) for left in state.held[n])
    return sum(others) + table.last[places[last]] + table.constant + sum(ports)


def step(instance: Instance, potential: Potential) -> int:
    """The decrease per cycle on which the bound of a certificate rests."""
    question = ProofQuestion(instance, potential.last_group)
    sigma = [instance.machine.capacities[unit] for unit in potential.classes]
    shape = question.abstraction(tuple(t - s for t, s in zip(potential.thresholds, sigma, strict=True)))
    tables = {
        Mode(number, number): Arrays(
            tuple(np.array([*g, 0]) for g in table.others),
            np.array([*table.last, 0]),
            tuple(map(np.array, table.ports)),
        )
        for number, table in enumerate(potential.tables)
    }
    number = dict(potential.nodes)
    required = conditions(shape, lambda node: Mode(number[node], number[node]))
    return least_decrease(question, required, tables)


@given(everything, st.sampled_from(list(LEVELS)), randoms)
@settings(max_examples=60, deadline=None)
def test_the_potential_falls_in_every_cycle_of_a_schedule(instance: Instance, level: str, random: Random) -> None:
    proof, expansion = certificate(instance, level), with_delays(instance)
    assert proof is not None
    decrease = [step(expansion.instance, potential) for potential in proof.potentials]
    for _ in range(5):
        states = walk(instance, random)
        places = standing(expansion, states)
        last = random.choice([warp for warp, p in enumerate(places[-2]) if p != places[-1][warp]])
        group = instance.group_of_warp()[last]
        potential, least = proof.potentials[group], decrease[group]
        assert potential.last_group == group
        assert least > 0
        labelled = zip(nodes(expansion, potential, states, last), states, places, strict=True)
        heights = [height(expansion, potential, *one, last) for one in labelled]
        assert all(before - after >= least for before, after in pairwise(heights))
        if potential.front < len(states):
            assert potential.front + heights[potential.front] // least <= proof.upper


def slow(*, least: int = 9, most: int = 12, interval: int = 2) -> Machine:
    return Machine("slow", (UnitClass("C", 1), UnitClass("L", 1, interval, Latency(least, most))))


@pytest.mark.parametrize("level", ["labels", "whole", "finer"])
@given(string=st.text("CL", min_size=1, max_size=3), least=st.integers(1, 12), warps=st.integers(2, 3))
@settings(max_examples=10, deadline=None)
def test_merged_delays_leave_a_certificate_sound(level: str, string: str, least: int, warps: int) -> None:
    instance = Instance.of(string, warps, slow(least=least))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(repetition, "MERGED_FROM", 1)
        found = certificate(instance, level)
    assert found is not None
    assert found.upper >= truth(instance)
    assert checker.bound(instance, found) <= found.upper


def test_long_latencies_make_no_large_programme(monkeypatch: pytest.MonkeyPatch) -> None:
    """Delays of 600 cycles, entered at any of 400 places, cost a few variables and rows each."""
    sizes = []
    minimise = Programme.minimise

    def measured(programme: Programme, *arguments: object) -> SolutionValues | None:
        sizes.append((programme.variables, programme.rows))
        return minimise(programme, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Programme, "minimise", measured)
    instance = Instance.of("CLLC" * 5, 8, slow(least=201, most=600))
    found = certificate(instance, "labels")
    assert found is not None
    assert found.upper <= 10 * 600 + 10 + 7 * 30
    assert max(sizes[0]) < 2_000


@pytest.mark.parametrize(
    ("string", "machine", "warps", "cycles"),
    [
        ("CLLCLC", slow(least=1, most=1), 4, 25),
        ("LLL", slow(least=1, most=1, interval=4), 4, 45),
        ("CLLC", Machine("narrow", (UnitClass("C", 2), UnitClass("L", 1)), issue_width=1), 4, 16),
        ("LC", Machine("delayed", (UnitClass("C", 1), UnitClass("L", 1, latency=Latency(3, 3)))), 2, 5),
    ],
)
def test_a_fine_certificate_meets_known_worst_cases_of_general_machines(
    string: str, machine: Machine, warps: int, cycles: int
) -> None:
    instance = Instance.of(string, warps, machine)
    assert brute_force(instance).upper == cycles
    assert upper(instance, "finer") == cycles


@pytest.mark.parametrize("group", [0, 1])
def test_one_group_that_rises_where_any_number_may_stay_is_enough(group: int) -> None:
    """Tables of zeros never rise; then one is raised, at one place of one group."""
    question = ProofQuestion(Instance.merged([(Program.chain("CL"), 2), (Program.chain("LC"), 2)], PAPER), 0)
    shape = question.abstraction(0)
    modes = {node: Mode(node, node) for situation in shape.situations for node in shape.nodes_of(situation)}
    required = conditions(shape, modes.__getitem__)
    zeros = tuple(np.zeros(len(units), dtype=np.int64) for units in question.units)
    flat = dict.fromkeys(modes.values(), Arrays(zeros, zeros[0]))
    assert dominates(question, required, flat)
    assert required.dominances
    for _, after, unit in required.dominances:
        raised = [own.copy() for own in zeros]
        raised[group][question.units[group] == unit] = 1
        assert not dominates(question, required, flat | {Mode(after, after): Arrays(tuple(raised), zeros[0])})


@pytest.mark.parametrize("solution", [None, 0.0])
def test_no_solution_proves_nothing_nor_does_one_that_never_falls(
    solution: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def solved(programme: Programme, *_: object) -> np.ndarray | None:
        return None if solution is None else np.full(programme.variables, solution)

    monkeypatch.setattr(Programme, "minimise", solved)
    assert certificate(Instance.of("CLLC", 3), "whole") is None


def test_a_potential_that_rises_along_delays_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lower at the first delay of an instruction: no cycle that is counted rises, only the passing of that delay."""
    machine = slow(least=4, most=4, interval=1)
    instance = Instance.merged([(Program.chain("LC"), 3), (Program.chain("C"), 2)], machine)
    assert certificate(instance, "whole") is not None

    def lowered(_: Tables, others: dict[object, tuple[np.ndarray, ...]]) -> None:
        for groups in others.values():
            groups[0][1] -= 100 * SCALE

    monkeypatch.setattr(Tables, "_repair_delays", lowered)
    assert certificate(instance, "whole") is None


def test_delays_are_no_class_of_a_certificate() -> None:
    found = certificate(Instance.of("CL", 2, slow()), "finer")
    assert found is not None
    assert DELAY not in found.potentials[0].classes


@pytest.mark.parametrize("level", ["labels", "whole", "finer"])
@given(string=st.text("CL", min_size=1, max_size=20), warps=st.integers(3, 64))
@settings(max_examples=10)
def test_the_certificate_is_tight_on_single_units(level: str, string: str, warps: int) -> None:
    assert upper(Instance.of(string, warps), level) == warps * len(string) - (warps - 1) * pairs(string)


def test_delays_with_numbers_of_their_own_prove_less() -> None:
    instance = Instance.of("CCL", 3, Machine("slow", tuple(UnitClass(unit, 1, 1, Latency(2, 2)) for unit in "CL")))
    whole = with_delays(instance).instance
    begins = front(whole, 1)
    assert begins is not None
    proven = []
    for one_delay in (True, False):
        level = improve._Level((0, 0), 1, improve.stop_and_kind, improve.stop_and_kind, one_delay)
        made = improve._certificate(whole, level, begins, Limits(60))
        assert made is not None
        proven.append(made.upper)
    assert (brute_force(instance).upper, *proven) == (10, 12, 10)


@pytest.mark.parametrize("string", ["CCLLLCL" * 40, "CLL" * 70 + "CCCLL" * 30, "C" * 300, "L" + "CCL" * 99])
def test_the_certificate_of_a_long_loop_is_tight_on_single_units(string: str) -> None:
    assert upper(Instance.of(string, 48), "labels") == 48 * len(string) - 47 * pairs(string)


def test_a_conditional_instruction_costs_what_the_worst_mixture_of_paths_does() -> None:
    """`C; if (p) L; CLC`: the shorter string is the worse one, so the longest path is no bound."""
    instance = Instance.of(CONDITIONAL, 2)
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


REFERENCE = read_instances(Path(__file__).parents[2] / "instruction_strings" / "reference.jsonl")
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
    assert mean_excess(sample(capacity, every=48)) <= 1.01


SPOILED: dict[str, Callable[[SolutionValues], SolutionValues]] = {
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
@given(instance=everything, level=st.sampled_from(list(LEVELS)))
@settings(max_examples=12, deadline=None)
def test_a_wrong_solution_never_proves_a_wrong_bound(spoil: str, instance: Instance, level: str) -> None:
    minimise = Programme.minimise

    def wrong(*arguments: object) -> SolutionValues | None:
        solution = minimise(*arguments)  # type: ignore[arg-type]
        return None if solution is None else np.asarray(SPOILED[spoil](solution))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Programme, "minimise", wrong)
        found = certificate(instance, level)
    if found is not None:
        assert found.upper >= brute_force(instance).upper
        assert checker.bound(instance, found) <= found.upper


@pytest.mark.parametrize(
    ("instance", "level"),
    [
        (Instance.of("CCLLCC", 6, Machine.of({"C": 2, "L": 1})), "front"),
        (Instance.of("LC", 3, slow(least=2, most=3, interval=1)), "whole"),
        (Instance.of("LLC", 4, slow(least=2, most=3, interval=1)), "finer"),
    ],
    ids=["dominances", "one number for delays", "delays"],
)
def test_a_solution_with_a_little_noise_still_proves_something(
    monkeypatch: pytest.MonkeyPatch, instance: Instance, level: str
) -> None:
    """Rounding and repair are meant to absorb what an interior point method leaves open."""
    minimise = Programme.minimise
    random = np.random.default_rng(4)

    def noisy(*arguments: object) -> SolutionValues | None:
        solution = minimise(*arguments)  # type: ignore[arg-type]
        return None if solution is None else solution + random.normal(0, 1e-5, len(solution))

    exact = upper(instance, level)
    monkeypatch.setattr(Programme, "minimise", noisy)
    assert exact <= upper(instance, level) <= exact + 1


def test_a_solver_that_fails_is_no_certificate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Programme, "minimise", lambda *arguments: None)
    instance = Instance.of("CCLLCC", 3, Machine.of({"C": 2, "L": 1}))
    assert all(certificate(instance, level) is None for level in LEVELS)
    assert solve(instance, backend="certificate").certificate is None


def test_certificates_of_all_groups_count() -> None:
    """The warp that finishes last may be of either group: the certificate has a potential for each."""
    instance = Instance.merged([(Program.chain("CCC"), 2), (Program.chain("L"), 1)], PAPER)
    found = certificate(instance, "finer")
    assert found is not None
    assert [potential.last_group for potential in found.potentials] == [0, 1]
    assert found.upper == 6


NodePairs = list[tuple[PotentialNode, PotentialNode | None]]
PAIRS = Abstraction.node_pairs


def _edited(edit: Callable[[Abstraction, AbstractCycle], list[AbstractCycle]]) -> dict[str, object]:
    whole = Abstraction.__dict__["cycles"].func
    return {"cycles": property(lambda shape: tuple(new for old in whole(shape) for new in edit(shape, old)))}


def _counting_the_last(shape: Abstraction, cycle: AbstractCycle) -> list[AbstractCycle]:
    if cycle.target is None:
        return [cycle]
    kind = list(cycle.target.kind)
    kind[cycle.target.last] = min(kind[cycle.target.last] + 1, shape.thresholds[cycle.target.last])
    target = AbstractSituation(cycle.target.last, tuple(kind))
    return [cycle._replace(target=target) if target in shape.situations else cycle]


def _least(rest: Callable[..., Iterator[tuple[int, int]]]) -> Callable[..., list[tuple[int, int]]]:
    return lambda *arguments: [next(iter(rest(*arguments)))]


def _moving(slots: Callable[..., Iterator[LastSlot]]) -> Callable[..., list[LastSlot]]:
    return lambda *arguments: [slot for slot in slots(*arguments) if isinstance(slot, tuple)]


def _leaving_with_its_own_class(
    shape: Abstraction, source: AbstractSituation, target: AbstractSituation | None
) -> NodePairs:
    if target is None or source not in shape.labels or target in shape.labels:
        return list(PAIRS(shape, source, target))
    (after,) = shape.nodes_of(target)
    return [(before, after) for before in shape.nodes_of(source) if before.label == source.last]


def _entering_with_one_label(
    shape: Abstraction, source: AbstractSituation, target: AbstractSituation | None
) -> NodePairs:
    found = list(PAIRS(shape, source, target))
    return found if source in shape.labels else found[:1]


DROPPED: dict[str, tuple[str, int, tuple[int, int], dict[str, object]]] = {
    "the last finisher may wait": ("CC", 2, (1, 1), {"_slots": _moving(Abstraction._slots)}),
    "any number may stay": ("CC", 3, (1, 1), {"_rest": _least(Abstraction._rest)}),
    "others only are counted": ("CC", 2, (1, 1), _edited(_counting_the_last)),
    "the last cycle": ("C", 2, (2, 1), _edited(lambda _, one: [one] if one.target or not one.moved else [])),
    "whoever stays in any number": ("CLC", 6, (1, 1), _edited(lambda _, one: [one._replace(reopened=())])),
    "the label is what lies ahead": ("CLCL", 3, (1, 1), {"node_pairs": _leaving_with_its_own_class}),
    "every label may come": ("LLC", 3, (2, 2), {"node_pairs": _entering_with_one_label}),
}


@pytest.mark.parametrize("premise", DROPPED)
def test_without_any_premise_of_the_theorem_some_bound_is_too_low(
    premise: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    string, warps, capacity, changes = DROPPED[premise]
    instance = Instance.of(string, warps, Machine.of(dict(zip("CL", capacity, strict=True))))
    worst = brute_force(instance).upper
    assert upper(instance, "whole") >= worst
    for name, change in changes.items():
        monkeypatch.setattr(Abstraction, name, change)
    assert upper(instance, "whole") < worst
