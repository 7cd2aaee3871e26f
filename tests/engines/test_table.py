"""The table of all count states: same answers as the plain search, legal witnesses, and its place beside the search."""

import random
import threading
from dataclasses import replace
from itertools import combinations, product
from math import comb

import numpy as np
import pytest
from hypothesis import given

from makespan.host.errors import BrokenPromiseError, UnsupportedError
from makespan.model.certificate import Certificate
from makespan.model.instance import Instance
from makespan.model.machine import Machine
from makespan.model.program import BARRIER, Program, ProgramPlace
from makespan.model.result import Bounds, Upper
from makespan.model.simulate import replay
from makespan.proof.engines import Limits, portfolio
from makespan.proof.engines.certificate import improve
from makespan.proof.engines.engine import Finding
from makespan.proof.engines.search import choose, table_compiled
from makespan.proof.engines.search import plain as search
from makespan.proof.engines.search import states as by_states
from makespan.proof.engines.search import table as by_table
from tests.both import both
from tests.oracle import obeys
from tests.plain_python import check_without_a_compiler
from tests.strategies import instances

LONG = "LLLLCCCCCCCCCLLCCCCCCC"
FORK = Program(
    (ProgramPlace("C", (1, 2)), ProgramPlace("L", (3,)), ProgramPlace("C", (3, 4)), ProgramPlace("L", (4,))), (0, 1, 2)
)


def certificate(instance: Instance) -> Certificate:
    return next(found.certificate for found in improve.improve(instance, Limits()) if found.certificate)


def filled(instance: Instance, sense: int = 1) -> by_table.CountTable:
    table = by_table.CountTable(instance, sense)
    assert table.fill(Limits()) is not None
    return table


@given(instances(choices=False, most_warps=6))
def test_the_table_agrees_with_plain_search_on_worst_and_best_case(instance: Instance) -> None:
    plain = search.solve(instance, Limits())
    assert plain.best_case is not None
    for sense, truth in ((1, plain.upper), (-1, plain.best_case.lower)):
        table = by_table.CountTable(instance, sense)
        assert table.fill(Limits()) == sense * (truth or 0)
        witness = table.witness()
        assert obeys(instance, witness)
        assert replay(instance, witness) == truth


@given(instances(choices=False, most_warps=5))
def test_a_sample_leaves_no_trace(instance: Instance) -> None:
    table = by_table.CountTable(instance, 1)
    assert table.seconds() > 0
    table.fill(Limits())
    assert np.array_equal(table._values, filled(instance)._values)


@given(instances(choices=False, most_warps=5, most=3))
def test_ranks_number_the_states_in_an_order_that_every_cycle_keeps(instance: Instance) -> None:
    table = by_table.CountTable(instance, 1)
    standing = table._standing(len(table._values) - 1)
    seen = set()
    for rank in range(len(table._values) - 1, -1, -1):
        assert np.array_equal(standing, table._standing(rank))
        seen.add(tuple(standing.tolist()))
        for warp in range(instance.warps):
            moved = standing.copy()
            moved[warp] += 1
            group = instance.group_of_warp()[warp]
            alike = warp + 1 < instance.warps and instance.group_of_warp()[warp + 1] == group
            if moved[warp] > instance.groups[group].program.end or (alike and moved[warp] > moved[warp + 1]):
                continue
            after = rank + int(table._ladder.gain[warp, standing[warp]])
            assert np.array_equal(table._standing(after), moved)
        table_compiled.step_back(standing, table._ladder)
    assert len(seen) == by_table.count_states(instance)


@pytest.mark.parametrize(("units", "loads"), [(1, 1), (2, 1), (3, 2), (4, 5)])
def test_a_cycle_leads_to_every_state_that_the_plain_enumeration_reaches(units: int, loads: int) -> None:
    programs, quotas = ["CCL"] * 4 + ["C"], {"C": units, "L": loads}
    instance = Instance.merged([(Program.chain("CCL"), 4), (Program.chain("C"), 1)], Machine.of(quotas))
    table = by_table.CountTable(instance, 1)
    rank_of = {tuple(table._standing(rank).tolist()): rank for rank in range(len(table._values))}
    for standing, rank in list(rank_of.items())[:-1]:
        wants = [program[place : place + 1] for program, place in zip(programs, standing, strict=True)]
        ready = [[warp for warp in range(5) if wants[warp] == unit] for unit in quotas]
        ways = [combinations(own, min(len(own), quotas[unit])) for unit, own in zip(quotas, ready, strict=True)]
        moved = (
            [place + (warp in c + loading) for warp, place in enumerate(standing)] for c, loading in product(*ways)
        )
        wanted = {(*sorted(after[:4]), after[4]) for after in moved}
        assert {after for after in rank_of if follows(table, rank, np.array(standing), rank_of[after])} == wanted


def follows(table: by_table.CountTable, rank: int, standing: np.ndarray, after: int) -> bool:
    """Whether a cycle leads from one state to the other; destroys the values."""
    table._values[:] = 0
    table._values[after] = 1
    return table_compiled.follow(rank, 1, table._values, standing, table._ladder, table._scratch) == after


@pytest.mark.parametrize(
    ("units", "loads", "warps", "makespan"),
    [(1, 1, 6, 117), (2, 1, 6, 77), (2, 1, 7, 88), (4, 2, 6, 47)],
)
def test_the_paper_s_string(units: int, loads: int, warps: int, makespan: int) -> None:
    instance = Instance.of(LONG, warps, Machine.of({"C": units, "L": loads}))
    table = by_table.CountTable(instance, 1)
    assert table.fill(Limits()) == makespan
    assert replay(instance, table.witness()) == makespan


def test_only_strings_without_barriers_that_fit_have_a_table() -> None:
    most = 1 << 33
    assert by_table.applies(Instance.of("CLC", 8), most)
    assert by_table.count_states(Instance.merged([(Program.chain("CL"), 3), (Program.chain("L"), 2)])) == 10 * 3
    numbers = 2 + 2 * 2 + 2 + 9 * 8  # leaps, sums of up to one C and one L, and what is said of each warp
    needed = 2 * comb(11, 3) + 8 * numbers
    assert by_table.applies(Instance.of("CLC", 8), needed)
    assert not by_table.applies(Instance.of("CLC", 8), needed - 1)
    assert not by_table.applies(Instance.of(FORK, 2), most)
    assert not by_table.applies(Instance.of("C" * 32768, 1), most)  # values have 16 bits
    assert by_table.applies(Instance.of("C" * 32767, 1), most)
    assert not by_table.applies(Instance.of("CL" * 12, 24, Machine.of({"C": 12, "L": 12})), 1 << 60)
    barrier = Program.chain(f"C{BARRIER}L")
    assert not by_table.applies(Instance.of(barrier, 2), most)
    assert not choose.applies(Instance.of(barrier, 2))
    with pytest.raises(UnsupportedError, match="barrier"):
        choose.solve(Instance.of(barrier, 2), Limits(), certificate=None, incumbent=0)


def test_a_full_range_of_values_is_kept() -> None:
    instance = Instance.of("C" * 32767, 1)
    assert by_table.CountTable(instance, 1).fill(Limits()) == 32767
    assert by_table.CountTable(instance, -1).fill(Limits()) == -32767


def test_a_table_that_is_not_full_says_nothing() -> None:
    limits = Limits()
    limits.interrupt()
    table = by_table.CountTable(Instance.of("CLC", 3), 1)
    assert table.fill(limits) is None
    table._values[:] = 3
    with pytest.raises(BrokenPromiseError, match="no cycle gives"):
        table.witness()


def test_blocks_make_no_difference_without_barriers() -> None:
    one, two = Instance.of("CLLCCL", 4), Instance.of("CLLCCL", 4, blocks=2)
    for solve in (choose.solve, by_states.solve):
        found = [solve(instance, Limits(), certificate=None, incumbent=0) for instance in (one, two)]
        assert found[0].upper == found[1].upper
        assert found[1].witness is not None
        assert replay(two, found[1].witness) == found[1].upper


@pytest.mark.parametrize("quick", [0, 1 << 30])
@pytest.mark.parametrize("lead", [-2, -1, 0])
def test_whichever_comes_first_the_answer_is_the_same(quick: int, lead: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choose, "QUICK_STATES", quick)
    instance = Instance.of("LLLCCCCLC", 5, Machine.of({"C": 2, "L": 1}))
    for proof in (None, certificate(instance)):
        found = both(choose, instance, certificate=proof, incumbent=27 + lead)
        assert (found.upper, found.evidence, found.best_case) == (27, Upper.SEARCH, Bounds(21, 21))
        if lead:
            assert found.witness is not None
            assert replay(instance, found.witness) == 27


def test_where_the_table_is_quick_the_loops_of_the_search_are_not_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(by_states, "load", lambda: pytest.fail("compiles for seconds what nobody asks"))
    instance = Instance.of("LLLCCCCLC", 5, Machine.of({"C": 2, "L": 1}))
    assert choose.solve(instance, Limits(), certificate=None, incumbent=0).upper == 27


def test_where_there_is_no_table_the_search_over_states_has_all_the_time() -> None:
    instance = Instance.merged([(FORK, 4), (Program.chain("LC"), 2)], Machine.of({"C": 2, "L": 1}))
    plain = search.solve(instance, Limits())
    found = both(choose, instance, certificate=None, incumbent=0)
    assert (found.upper, found.best_case) == (plain.upper, plain.best_case)


def test_a_table_for_which_time_does_not_suffice_is_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choose, "QUICK_STATES", 0)
    monkeypatch.setattr(by_table.CountTable, "seconds", lambda _: 1e6)
    monkeypatch.setattr(by_table.CountTable, "fill", lambda *_: pytest.fail("begun"))
    instance = Instance.of("LLLCCCCLC", 5, Machine.of({"C": 2, "L": 1}))
    assert choose.solve(instance, Limits(), certificate=None, incumbent=0).upper == 27


@pytest.mark.parametrize(("seconds", "before"), [(0.1, 60 * 0.5), (30, 60 * 0.5 * 0.25), (41, 60 * 0.5)])
def test_what_comes_before_a_table_leaves_it_the_time_to_be_full(
    seconds: float, before: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choose, "QUICK_STATES", 0)
    monkeypatch.setattr(by_table.CountTable, "seconds", lambda _: seconds)
    limits = Limits(seconds=60, clock=lambda: 0.0)
    share = portfolio._before_search(Instance.of("LLLCCCCLC", 5, Machine.of({"C": 2, "L": 1})), limits)
    assert share.seconds == pytest.approx(before, rel=0.01)


def test_without_a_compiler_the_tables_are_the_same() -> None:
    questions = [("CLLCLL", 3, 1, 1), ("CCLLCC", 3, 2, 1), ("CCL", 7, 2, 2), ("LLLCCCCLC", 3, 4, 2), ("CCCL", 6, 3, 1)]
    check_without_a_compiler(choose, questions)


def true_whenever_it_stops(number: int, monkeypatch: pytest.MonkeyPatch) -> str:
    """Stop a search at a random moment in a random way; return how it ended."""
    rng = random.Random(number)
    units, truth, least = rng.choice([(2, 77, 54), (1, 117, 100)])
    instance = Instance.of(LONG, 6, Machine.of({"C": units, "L": 1}))
    monkeypatch.setattr(choose, "QUICK_STATES", rng.choice([0, 1 << 30]))
    monkeypatch.setattr(by_table, "applies", rng.choice([by_table.applies, lambda *_: False]))
    incumbent = truth - rng.choice([0, 1, 5, truth])
    proof = certificate(instance) if rng.random() < 0.5 else None
    way = rng.choice(["time", "memory", "interrupt"])
    moment = 10 ** rng.uniform(-3, 0)
    limits = Limits(
        seconds=moment if way == "time" else 60,
        memory_bytes=int(10 ** rng.uniform(3, 8)) if way == "memory" else 8 << 30,
    )
    alarm = threading.Timer(moment, limits.interrupt)
    if way == "interrupt":
        alarm.start()
    found = choose.solve(instance, limits, certificate=proof, incumbent=incumbent)
    if rng.random() < 0.3:
        found = replace(found, best_case=choose.best_case(instance, limits))
    alarm.cancel()
    assert found.upper is None or found.upper >= truth
    assert found.witness is None or replay(instance, found.witness) == truth == found.upper
    assert found.best_case is None or found.best_case.lower <= least <= found.best_case.upper
    return f"{way}: {'nothing' if found == Finding() else 'exact' if found.upper == truth else 'interval'}"


def test_stopped_at_a_random_moment_it_says_what_is_true() -> None:
    for number in range(8):
        with pytest.MonkeyPatch.context() as patch:
            true_whenever_it_stops(number, patch)


@pytest.mark.soak
def test_stopped_at_a_hundred_random_moments_it_says_what_is_true() -> None:
    outcomes = set()
    for number in range(100, 200):
        with pytest.MonkeyPatch.context() as patch:
            outcomes.add(true_whenever_it_stops(number, patch))
    assert {f"{way}: {end}" for way in ("time", "memory", "interrupt") for end in ("exact", "interval")} <= outcomes
