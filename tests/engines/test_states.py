"""The packed search against the plain one: same answers, sound intervals when it is stopped, pruning that prunes."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makespan.host.compiled import Words
from makespan.host.errors import BrokenPromiseError, UnsupportedError
from makespan.model.certificate import Certificate, PotentialTable
from makespan.model.instance import Instance
from makespan.model.machine import Machine
from makespan.model.program import Program, ProgramPlace
from makespan.model.result import Bounds, Upper
from makespan.model.schedule import Schedule
from makespan.model.simulate import replay
from makespan.model.strings import read_instances
from makespan.proof.bounds import pessimistic
from makespan.proof.engines import Limits
from makespan.proof.engines.certificate import improve
from makespan.proof.engines.engine import Finding
from makespan.proof.engines.search import choose, packing, remaining
from makespan.proof.engines.search import plain as search
from makespan.proof.engines.search import states as by_states
from makespan.proof.engines.search import states_compiled as loops
from makespan.proof.engines.search import states_compiled_store as layout
from makespan.proof.engines.search.states_compiled_leaves import (
    common,
    decode,
    first_leaf,
    list_choices,
    next_leaf,
    open_state,
    sums_of,
)
from tests.both import both
from tests.effort import Looks
from tests.oracle import brute_force, obeys
from tests.plain_python import check_without_a_compiler
from tests.strategies import instances

REFERENCE = read_instances(Path(__file__).parents[2] / "instruction_strings" / "reference.jsonl")


@pytest.fixture(autouse=True, scope="module")
def _compiled() -> None:
    """So that no limit of a test counts what numba takes."""
    by_states.load()


PARTS = 24
LONG = "LLLLCCCCCCCCCLLCCCCCCC"


@dataclass(slots=True)
class Stopping(Limits):
    """Limits that stop at the given look."""

    looks: int = 0

    @property
    def expired(self) -> bool:
        self.looks -= 1
        return self.looks < 0


def certificate(instance: Instance) -> Certificate | None:
    """The certificate that follows the quick one."""
    found = (finding.certificate for finding in improve.improve(instance, Limits()))
    *_, fine = islice((one for one in found if one is not None), 2)  # after the quick one
    return fine


def exhaust(instance: Instance, incumbent: int = 0, *, proof: Certificate | None = None) -> Finding:
    return by_states.solve(instance, Limits(), certificate=proof, incumbent=incumbent)


def check(instance: Instance, found: Finding, truth: int) -> None:
    assert found.upper == truth
    assert found.evidence is Upper.SEARCH
    assert found.witness is not None
    assert obeys(instance, found.witness)
    assert replay(instance, found.witness) == truth


@given(instances(most_warps=5))
def test_packed_agrees_with_plain_search_on_worst_and_best_case(instance: Instance) -> None:
    plain = search.solve(instance, Limits())
    found = both(by_states, instance, certificate=None, incumbent=0)
    assert plain.upper is not None
    check(instance, found, plain.upper)
    assert found.best_case == plain.best_case


@given(instances(choices=False, most_warps=8, most=3))
def test_packed_agrees_with_the_plain_search_for_more_warps(instance: Instance) -> None:
    truth = search.solve(instance, Limits()).upper
    assert truth is not None
    check(instance, exhaust(instance), truth)


@pytest.mark.parametrize("most_warps", [5, pytest.param(8, marks=pytest.mark.soak)])
@given(data=st.data())
@settings(max_examples=50)
def test_packed_agrees_with_brute_force_for_more_warps(most_warps: int, data: st.DataObject) -> None:
    instance = data.draw(instances(choices=False, most_warps=most_warps, most=3))
    check(instance, exhaust(instance), brute_force(instance).upper)


@given(instances(most_warps=4, most=4), st.integers(-2, 3))
def test_a_certificate_and_an_incumbent_change_nothing_but_the_effort(instance: Instance, lead: int) -> None:
    truth = search.solve(instance, Limits()).upper
    assert truth is not None
    for proof in (None, certificate(instance)):
        check(instance, exhaust(instance, 0, proof=proof), truth)
        check(instance, exhaust(instance, truth - 1, proof=proof), truth)
        found = exhaust(instance, truth + lead, proof=proof)
        if lead < 0:
            check(instance, found, truth)
        else:
            assert found == Finding(upper=truth + lead, evidence=Upper.SEARCH)


def remaining_cycles(
    instance: Instance, choose: Callable[[Iterable[int]], int]
) -> Iterator[tuple[dict[int, int], int]]:
    """Every reachable state, its warps counted by code, with the true number of cycles that can remain."""
    automaton = search._PlainAutomaton(instance)
    known: dict[search.PlainState, int] = {((), ()): 0}

    def walk(state: search.PlainState) -> int:
        if state not in known:
            known[state] = 1 + choose(walk(after) for _, after in automaton.steps(state))
        return known[state]

    for _, start in automaton.begin():
        walk(start)
    for (places, _), cycles in known.items():
        yield {code: places.count(code) for code in places}, cycles


def prospect(problem: packing.Problem, rest: layout.RestBounds, state: dict[int, int], sense: int) -> int:
    """What the kernel says of a state."""
    choice = by_states._choice(problem, rest)
    for row, (code, warps) in enumerate(sorted(state.items(), reverse=True)):
        choice.pairs[row, :2] = code, warps
        choice.units[layout.READY, problem.automaton.unit[code]] += warps
    return loops.prospect(0, len(state), layout.UNBOUNDED, sense, problem.automaton, rest, choice)


@given(instances(most_warps=4, most=4))
def test_no_state_takes_longer_than_its_bound_says_nor_less(instance: Instance) -> None:
    problem = packing.Problem.of(instance)
    for proof in (None, certificate(instance)):
        rest = remaining.worst_case(instance, proof)
        assert all(cycles <= prospect(problem, rest, state, 1) for state, cycles in remaining_cycles(instance, max))
    rest = remaining.best_case(instance)
    assert all(cycles >= -prospect(problem, rest, state, -1) for state, cycles in remaining_cycles(instance, min))


def leaves(number: int, choice: layout.LeafChoice) -> Iterator[list[int]]:
    """Every leaf of an open state, one after another."""
    first_leaf(number, choice)
    more = True
    while more:
        yield choice.part[number].tolist()
        more = next_leaf(number, choice.pairs, choice.units, choice.options, choice.delta, choice.part)


def listed(words: Words, at: int, size: int, problem: packing.Problem, choice: layout.LeafChoice) -> list[list[int]]:
    """The same, of all leaves at once."""
    others = list_choices(words, at, 1, size, problem.automaton, choice)
    last, apart = choice.tally[layout.SCALARS, [layout.LAST, layout.APART]].tolist()
    begin = (last * choice.tally.shape[1] + int(choice.units[layout.QUOTA, last])) * apart
    own = choice.sums[:, begin : begin + sums_of(last, size, choice)]
    return [list(leaf) for other in range(others) for leaf in (own.T + choice.others[:, other]).tolist()]


@pytest.mark.filterwarnings("ignore:overflow")
@given(instances(most_warps=5, most=4))
def test_all_leaves_at_once_are_the_leaves_one_after_another_whatever_was_kept_of_the_state_before(
    instance: Instance,
) -> None:
    problem = packing.Problem.of(instance)
    task = by_states.SearchTask(problem, 1, remaining.worst_case(instance, None), Limits())
    run = by_states.FloorSearch(task, 0)
    run.search()
    states, one, choice, width = run.store.closed, problem.automaton, run.choice, problem.words
    before, size = 0, 0
    for at in range(0, int(run.cursor[layout.CLOSED]) * width, width):
        kept = common(states, at, before, size, one, choice)
        size = decode(states, at, kept, one, choice)
        every = listed(states, at, size, problem, choice)
        number = open_state(states, at, 1, size, one, choice)
        assert sorted(every) == sorted(leaves(number, choice))
        assert every
        # Two warps of an automaton may reach one state by different moves.
        if all(group.program.is_chain for group in instance.groups):
            assert len(every) == len(set(map(tuple, every)))
        pairs = choice.pairs[:size].tolist()
        assert size == decode(states, at, 0, one, choice)
        assert pairs == choice.pairs[:size].tolist()
        before = at


def test_where_choices_are_too_many_to_list_leaves_are_made_one_after_another(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = Instance.of("LLLCCCCLC", 5, Machine.of({"C": 2, "L": 1}))
    listed = exhaust(instance)
    monkeypatch.setattr(by_states, "_MOST_SUMS", 2)
    assert exhaust(instance) == listed
    check(instance, listed, 27)


def test_bounds_are_attained_so_that_one_less_would_be_wrong() -> None:
    """After the first cycles theorem H has nothing to spare at (1,1): states of every length attain their bound."""
    instance = Instance.of("CLLCLL", 3)
    problem = packing.Problem.of(instance)
    rest = remaining.worst_case(instance, certificate(instance))
    states = list(remaining_cycles(instance, max))
    assert ({0: 3}, 14) in states
    tight = [cycles for state, cycles in states if prospect(problem, rest, state, 1) == cycles]
    assert set(range(9)) <= set(tight)


@given(instances(most_warps=4, most=4), st.data())
def test_wherever_it_stops_what_it_says_is_true(instance: Instance, data: st.DataObject) -> None:
    truth = search.solve(instance, Limits())
    assert truth.upper is not None
    assert truth.best_case is not None
    limits = Stopping(looks=data.draw(st.integers(0, 60)))
    proof = certificate(instance) if data.draw(st.booleans()) else None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(by_states, "_FIRST_BUDGET", 1)
        patch.setattr(by_states, "_CALL_SECONDS", 0.0)
        known = truth.upper - data.draw(st.integers(0, 2))
        found = both(by_states, instance, limits, certificate=proof, incumbent=known)
    assert found.upper is None or found.upper >= truth.upper
    assert found.witness is None or replay(instance, found.witness) == truth.upper == found.upper
    assert found.best_case is not None
    assert found.best_case.lower <= truth.best_case.lower <= found.best_case.upper


def test_the_longer_it_runs_the_better_is_what_it_proves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(by_states, "_FIRST_BUDGET", 100)
    monkeypatch.setattr(by_states, "_CALL_SECONDS", 0.0)
    instance = Instance.of("LLLCCCCLC", 4, Machine.of({"C": 2, "L": 1}))
    uppers = []
    for looks in (0, 2, 10, 100, 1000, 100_000):
        limits = Stopping(looks=looks)
        uppers.append(by_states.solve(instance, limits, certificate=None, incumbent=0).upper or 10**6)
    assert uppers[0] == 10**6
    assert uppers[-1] == 22
    assert all(later <= earlier for earlier, later in pairwise(uppers))
    assert len(set(uppers)) > 2


@pytest.mark.parametrize("string", ["CLLCLC", "LLLCCCCLC"])
def test_at_any_memory_limit_what_it_says_is_true(string: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(by_states, "_FEWEST_WORDS", 8)
    instance = Instance.of(string, 4)
    truth = search.solve(instance, Limits()).upper
    again = []
    plain = by_states._search_again

    def remembered(task: by_states.SearchTask, value: int) -> Schedule | None:
        again.append(value)
        return plain(task, value)

    monkeypatch.setattr(by_states, "_search_again", remembered)
    outcomes = set()
    for memory in range(1 << 10, 1 << 15, 1 << 8):
        found = by_states.solve(instance, Limits(memory_bytes=memory), certificate=None, incumbent=0)
        assert found.upper is None or found.upper >= (truth or 0)
        outcomes.add((found.upper == truth, found.witness is not None))
        if found.witness is not None:
            check(instance, found, truth or 0)
    assert (True, True) in outcomes
    assert (False, False) in outcomes
    assert again


def test_packed_finds_a_sample_of_the_reference_values() -> None:
    for named in REFERENCE[::PARTS]:
        assert named.makespan is not None
        check(named.instance, exhaust(named.instance), named.makespan)
        assert exhaust(named.instance, named.makespan).upper == named.makespan


@pytest.mark.soak
@pytest.mark.parametrize("part", range(PARTS))
def test_packed_finds_the_reference_values(part: int) -> None:
    for number, named in enumerate(REFERENCE[part::PARTS]):
        assert named.makespan is not None
        check(named.instance, exhaust(named.instance), named.makespan)
        proof = certificate(named.instance) if number % 8 == 0 else None  # these take most of the time
        check(named.instance, exhaust(named.instance, proof=proof), named.makespan)
        assert exhaust(named.instance, named.makespan, proof=proof).upper == named.makespan


def fork(branch: int) -> Program:
    """A C, then `branch` times L or as many times C: two ways that never meet."""
    after = [(i + 2 if i < branch else 2 * branch + 1,) for i in range(branch)]
    left = [ProgramPlace("L", target) for target in after]
    right = [ProgramPlace("C", (i + 2 + branch,)) for i in range(branch)]
    return Program((ProgramPlace("C", (1, 1 + branch)), *left, *right))


@pytest.mark.parametrize(
    ("instance", "words"),
    [
        (Instance.of("CL" * 11, 10), 1),
        (Instance.of("CL" * 11, 12), 2),
        (Instance.of("CL" * 16, 12), 2),
        (Instance.of("CCL", 40), 1),
        (Instance.of("C" * 200, 3), 1),
        (Instance.of(fork(11), 3), 1),
        (Instance.of(fork(40), 2), 3),
        (Instance.merged([(fork(3), 2), (Program.chain("CLC"), 3), (fork(30), 1)]), 2),
    ],
)
def test_fields_are_as_narrow_as_warps_and_places_allow(instance: Instance, words: int) -> None:
    assert packing.Problem.of(instance).words == words == packing._word_count(instance)


@pytest.mark.parametrize("instance", [Instance.of(fork(40), 2), Instance.of("CCL", 7), Instance.of("CL" * 70, 2)])
def test_wide_and_narrow_keys_give_the_same(instance: Instance) -> None:
    truth = search.solve(instance, Limits()).upper
    assert truth is not None
    check(instance, exhaust(instance), truth)


def test_keys_that_are_too_wide_are_refused_with_the_reason() -> None:
    instance = Instance.of(Program.chain("CL" * 500), 400)
    assert not choose.applies(instance)
    with pytest.raises(UnsupportedError, match="a state takes 63 words of 64 bits, more than 16"):
        exhaust(instance)
    wide = Instance.of(fork(60), 1024, Machine.of({"C": 1024, "L": 1024}))
    with pytest.raises(UnsupportedError, match=r"words of 64 bits|choices for up to"):
        exhaust(wide)


def test_a_certificate_that_proves_nothing_is_refused() -> None:
    instance = Instance.of("CLLCLL", 3)
    proof = certificate(instance)
    assert proof is not None
    potential = proof.potentials[0]
    flat = replace(potential, tables=(PotentialTable(((0,) * 6,), (0,) * 6, 0),) * len(potential.tables))
    with pytest.raises(BrokenPromiseError, match="does not fall in every cycle"):
        exhaust(instance, proof=Certificate(14, (flat,)))
    fewer = replace(potential, nodes=potential.nodes[1:])
    with pytest.raises(BrokenPromiseError, match="no table for 1 nodes"):
        exhaust(instance, proof=Certificate(14, (fewer,)))


def test_the_same_question_gets_the_same_answer() -> None:
    instance = Instance.of("LLLCCCCLC", 5, Machine.of({"C": 2, "L": 1}))
    assert exhaust(instance) == exhaust(instance)


def test_a_time_limit_holds_and_leaves_a_proven_bound() -> None:
    instance = Instance.of("CLLCLCLLCCLCLLLCLCCCLCLCLCLLC", 12, Machine.of({"C": 2, "L": 1}))
    exhaust(Instance.of("CL", 2))  # compiled
    limits = Looks(10)
    found = both(by_states, instance, limits, certificate=None, incumbent=0)
    assert 10 < limits.looked < 30
    assert found.witness is None
    assert found.upper is not None
    assert found.upper <= pessimistic(instance)


@pytest.mark.parametrize("string", ["CL", "CLLLCLCLCLC"])
def test_the_time_limit_holds_where_one_state_has_billions_of_successors(string: str) -> None:
    exhaust(Instance.of("CL", 2))
    instance, limits = Instance.of(string, 48, Machine.of({"C": 12, "L": 16})), Looks(10)
    by_states.solve(instance, limits, certificate=None, incumbent=0)
    assert limits.looked < 30


def test_an_interrupt_is_an_empty_finding() -> None:
    limits = Limits()
    limits.interrupt()
    assert by_states.solve(Instance.of("CLC", 3), limits, certificate=None, incumbent=0) == Finding()


def test_without_a_compiler_the_answers_are_the_same() -> None:
    questions = [("CLLCLL", 3, 1, 1), ("CCLLCC", 3, 2, 1), ("CCL", 7, 2, 2), ("LLLCCCCLC", 2, 4, 2)]
    check_without_a_compiler(by_states, questions)


@pytest.mark.parametrize(
    ("capacity", "makespan"), [({"C": 1, "L": 1}, 117), pytest.param({"C": 2, "L": 1}, 77, marks=pytest.mark.soak)]
)
def test_six_warps_of_the_paper_s_string_with_and_without_pruning(capacity: dict[str, int], makespan: int) -> None:
    instance = Instance.of(LONG, 6, Machine.of(capacity))
    proof = certificate(instance)
    check(instance, exhaust(instance, proof=proof), makespan)
    assert exhaust(instance, makespan, proof=proof).upper == makespan
    problem = packing.Problem.of(instance)
    task = by_states.SearchTask(problem, 1, remaining.worst_case(instance, None), Limits())
    run = by_states.FloorSearch(task, 0)
    assert run.search() == makespan
    assert run.cursor[layout.BURIED] == 0
    witness = run.witness()
    assert witness is not None
    assert replay(instance, witness) == makespan


def test_pruning_leaves_little_to_do() -> None:
    instance = Instance.of(LONG, 4, Machine.of({"C": 2, "L": 1}))
    problem, proof = packing.Problem.of(instance), certificate(instance)
    truth = exhaust(instance).upper
    assert truth is not None
    expanded = []
    for one in (None, proof):
        run = by_states.FloorSearch(
            by_states.SearchTask(problem, 1, remaining.worst_case(instance, one), Limits()), truth
        )
        assert run.search() == truth
        expanded.append(int(run.cursor[layout.EXPANDED]))
    assert expanded[1] * 2 < expanded[0]


def test_worst_and_best_case_of_an_automaton_with_many_starts() -> None:
    program = Program(
        (ProgramPlace("C", (1, 2)), ProgramPlace("L", (3,)), ProgramPlace("C", (3, 4)), ProgramPlace("L", (4,))),
        (0, 1, 2),
    )
    instance = Instance.merged([(program, 4), (Program.chain("LC"), 2)], Machine.of({"C": 2, "L": 1}))
    truth = brute_force(instance)
    found = both(by_states, instance, certificate=certificate(instance), incumbent=0)
    check(instance, found, truth.upper)
    assert found.best_case == Bounds(truth.lower, truth.lower)


def test_scratch_space_is_zero_where_nothing_is_taken() -> None:
    """`delta[o, 0]` stands for no warp and must stay zero, or keys would drift."""
    instance = Instance.of("CLLCLC", 5)
    problem = packing.Problem.of(instance)
    run = by_states.FloorSearch(by_states.SearchTask(problem, 1, remaining.worst_case(instance, None), Limits()), 0)
    run.search()
    assert not np.any(run.choice.delta[:, 0])


def test_the_store_grows_while_the_starts_are_put_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(by_states, "_FEWEST_WORDS", 2)
    program = Program(
        (ProgramPlace("C", (1, 2)), ProgramPlace("L", (3,)), ProgramPlace("C", (3, 4)), ProgramPlace("L", (4,))),
        (0, 1, 2),
    )
    instance = Instance.of(program, 6)
    check(instance, exhaust(instance), search.solve(instance, Limits()).upper or 0)
