"""The beam: its witnesses are schedules, never longer than the worst case, and the longest when nothing is left out."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makespan.model.certificate import Potential
from makespan.model.instance import Instance
from makespan.model.machine import Machine
from makespan.model.program import Program, ProgramPlace
from makespan.model.schedule import Schedule
from makespan.model.simulate import replay
from makespan.proof.bounds.conditions import ProofQuestion
from makespan.proof.bounds.first_cycles import Front, PlaceCounts, _steps, front
from makespan.proof.bounds.potential import synthesise
from makespan.proof.engines import Limits
from makespan.proof.engines.certificate import beam
from makespan.proof.engines.certificate import beam_compiled as beam_kernel
from tests.oracle import brute_force, obeys
from tests.strategies import CONDITIONAL, instances, machines

KERNELS = ("open_choice", "next_leaf", "give_up_one", "apply", "insert", "score", "fingerprint", "advance", "select")

crowded = machines(most_units=4).flatmap(lambda machine: instances(machine=machine, most_warps=5, most=4))
one_start = crowded.filter(lambda instance: all(group.program.starts == (0,) for group in instance.groups))


def potentials(instance: Instance, extra: int = 1) -> list[Potential]:
    """A certificate for every group that may hold the laggard."""
    states = front(instance, 1)
    assert isinstance(states, Front)
    found = []
    for last in range(len(instance.groups)):
        question = ProofQuestion(instance, last)
        proof = synthesise(question, question.abstraction(extra), states, 60)
        assert proof is not None
        found.append(proof.potential)
    return found


def witnesses(instance: Instance, width: int, per_place: int, extra: int = 1) -> list[Schedule | None]:
    return [beam.search(instance, one, width, per_place, Limits()) for one in potentials(instance, extra)]


def lengths(instance: Instance, width: int, per_place: int) -> list[int]:
    return [0 if witness is None else replay(instance, witness) for witness in witnesses(instance, width, per_place)]


@given(crowded, st.sampled_from([(1, 1), (8, 1), (64, 8)]), st.integers(0, 1))
@settings(max_examples=60)
def test_a_witness_is_a_schedule_no_longer_than_the_worst_case(
    instance: Instance, size: tuple[int, int], extra: int
) -> None:
    truth = brute_force(instance).upper
    for witness in witnesses(instance, *size, extra):
        if witness is not None:
            assert obeys(instance, witness)
            assert replay(instance, witness) == witness.makespan <= truth


@given(one_start)
@settings(max_examples=40)
def test_a_beam_that_leaves_nothing_out_finds_the_worst_case(instance: Instance) -> None:
    assert max(lengths(instance, 2000, 2000)) == brute_force(instance).upper


@pytest.mark.parametrize(
    ("string", "capacity", "warps", "cycles"),
    [
        ("CLLCLL", (1, 1), 10, 42),
        ("CCLLCC", (2, 1), 10, 28),
        ("CCCLLL", (2, 1), 10, 41),
        ("CCLLCC", (1, 2), 10, 42),
        ("CLCLCL", (2, 2), 10, 19),
        ("LLLCCCCLC", (2, 1), 6, 32),
        ("CCCCCCCCCCLLCLCCCCLCLL", (2, 1), 8, 95),
    ],
)
def test_a_narrow_beam_finds_known_worst_cases(string: str, capacity: tuple[int, int], warps: int, cycles: int) -> None:
    instance = Instance.of(string, warps, Machine.of(dict(zip("CL", capacity, strict=True))))
    assert max(lengths(instance, 1024, 16)) == cycles


def test_the_laggard_may_be_of_any_group() -> None:
    instance = Instance.merged([(Program.chain("CCC"), 2), (Program.chain("L"), 1)])
    found = witnesses(instance, 16, 4)
    assert [witness is not None and witness.makespan for witness in found] == [6, False]


def test_a_beam_takes_the_worse_path_of_an_automaton() -> None:
    """`C; if (p) L; CLC` with two warps: 7 cycles, where the longer path alone gives 6."""
    (witness,) = witnesses(Instance.of(CONDITIONAL, 2), 64, 16)
    assert witness is not None
    assert witness.makespan == 7
    assert (0, 2, 3, 4) in witness.paths


@given(crowded)
@settings(max_examples=15)
def test_the_same_beam_finds_the_same_schedule(instance: Instance) -> None:
    assert witnesses(instance, 8, 2) == witnesses(instance, 8, 2)


def test_a_beam_that_is_out_of_time_finds_nothing() -> None:
    instance = Instance.of("CCLLCC", 6, Machine.of({"C": 2, "L": 1}))
    (potential,) = potentials(instance)
    assert beam.search(instance, potential, 64, 8, Limits(seconds=0)) is None
    interrupted = Limits()
    interrupted.interrupt()
    assert beam.search(instance, potential, 64, 8, interrupted) is None


def test_a_beam_stops_between_two_cycles(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = Limits()
    instance = Instance.of("CCLLCC" * 10, 6, Machine.of({"C": 2, "L": 1}))
    (potential,) = potentials(instance, 0)
    advance, calls = beam_kernel.advance, 0

    def counting(*arguments: object) -> tuple[int, bool]:
        nonlocal calls
        calls += 1
        if calls == 20:
            limits.interrupt()
        return advance(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(beam_kernel, "advance", counting)
    assert beam.search(instance, potential, 8, 1, limits) is None
    assert 20 <= calls < 60


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernels as Python runs them."""
    for name in KERNELS:
        kernel = getattr(beam_kernel, name)
        monkeypatch.setattr(beam_kernel, name, getattr(kernel, "py_func", kernel))


CASES = [
    Instance.of("CCLLCC", 5, Machine.of({"C": 2, "L": 1})),
    Instance.of("CLSCL", 4, Machine.of({"C": 1, "L": 2, "S": 1})),
    Instance.merged([(Program.chain("CLC"), 2), (Program.chain("LCC"), 2)], Machine.of({"C": 2, "L": 1})),
    Instance.of(
        Program(
            (
                ProgramPlace("C", (1, 2, 3)),
                ProgramPlace("L", (2, 3)),
                ProgramPlace("C", (3, 4)),
                ProgramPlace("L", (4,)),
            )
        ),
        4,
    ),
]


@pytest.fixture(params=range(len(CASES)))
def compared(request: pytest.FixtureRequest) -> tuple[Instance, list[Schedule | None]]:
    """An instance, and what the kernels find as they are, before any other fixture changes them."""
    instance = CASES[request.param]
    return instance, witnesses(instance, 16, 4)


def test_compiled_and_plain_kernels_find_the_same(
    compared: tuple[Instance, list[Schedule | None]], plain: None
) -> None:
    instance, found = compared
    assert witnesses(instance, 16, 4) == found


def decoded(codes: beam._PlaceCodes, layer: beam_kernel.Layer, state: int) -> PlaceCounts:
    """A state of a layer, with its laggard among the others."""
    size, laggard = int(layer.sizes[state]), int(layer.laggards[state])
    pairs = zip(layer.codes[state, :size].tolist(), layer.counts[state, :size].tolist(), strict=True)
    standing: Counter[tuple[int, int]] = Counter()
    for code, count in [*pairs, *([(laggard, 1)] if laggard >= 0 else [])]:
        standing[codes.place(code)] += count
    return tuple(sorted(standing.items()))


def after_every_leaf(instance: Instance, others: Counter[int], laggard: int) -> list[tuple[PlaceCounts, int]]:
    """The states after every leaf of one state, and where the laggard is then; in the order of the leaves."""
    codes = beam._PlaceCodes.of(instance)
    automaton = codes.automaton(tuple(instance.machine.capacities))
    layer, after, choice = beam._layer(0, 12), beam._layer(0, 12), beam._choice(automaton, 12)
    beam._put(layer, (others, laggard))
    number = beam_kernel.open_choice(layer, 0, automaton, choice)
    found, begin = [], True
    while beam_kernel.next_leaf(choice, number, begin):
        begin = False
        assert beam_kernel.apply(layer, 0, choice, number, after, 0)
        assert (np.diff(after.codes[0, : after.sizes[0]]) > 0).all()
        found.append((decoded(codes, after, 0), int(after.laggards[0])))
    return found


@given(crowded, st.data())
@settings(max_examples=60)
def test_leaves_are_the_choices_of_a_cycle_each_once(instance: Instance, data: st.DataObject) -> None:
    codes = beam._PlaceCodes.of(instance)
    places = [
        codes.code(g, data.draw(st.integers(0, group.program.end - 1)))
        for g, group in enumerate(instance.groups)
        for _ in range(group.warps)
    ]
    laggard, *others = data.draw(st.permutations(places))
    found = after_every_leaf(instance, Counter(others), laggard)
    state = tuple(sorted(Counter(codes.place(code) for code in places).items()))
    assert {state for state, _ in found} == set(_steps(instance, state))


def test_the_leaves_of_a_string_are_distinct() -> None:
    """Two C units; the laggard at 0, two others there and one at 1: it moves, or it does not."""
    instance = Instance.of("CCL", 4, Machine.of({"C": 2, "L": 1}))
    found = after_every_leaf(instance, Counter({0: 2, 1: 1}), 0)
    assert len(found) == len(set(found)) == 4


@pytest.mark.parametrize("order", [[3, 1, 2], [1, 2, 3], [2, 2, 1, 3, 3]])
def test_pairs_stay_sorted_when_warps_arrive(order: list[int]) -> None:
    codes, counts = np.zeros(4, dtype=np.int64), np.zeros(4, dtype=np.int64)
    size = 0
    for code in order:
        size = beam_kernel.insert(codes, counts, size, code, 1)
    assert codes[:size].tolist() == sorted(set(order))
    assert counts[:size].tolist() == [order.count(code) for code in sorted(set(order))]


def test_there_is_no_room_beyond_the_last_pair() -> None:
    codes, counts = np.array([1, 5]), np.array([2, 2])
    assert beam_kernel.insert(codes, counts, 2, 3, 1) == -1
    assert beam_kernel.insert(codes, counts, 2, 5, 1) == 2
    assert counts.tolist() == [2, 3]


def test_select_keeps_the_best_different_states_and_few_per_place() -> None:
    layer = beam._layer(6, 2)
    layer.score[:6] = [5, 9, 9, 7, 8, 6]
    layer.mark[:6] = [1, 2, 2, 3, 4, 5]
    layer.laggards[:6] = [0, 0, 0, 0, 1, 1]
    assert beam_kernel.select(layer, 6, 3, 2, np.zeros(2, dtype=np.int64)) == 3
    assert layer.score[:3].tolist() == [9, 8, 7]
    assert layer.laggards[:3].tolist() == [0, 1, 0]
