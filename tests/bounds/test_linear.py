"""Linear programmes, and the stretches of long strings that share variables."""

import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from makespan.model.instance import Instance
from makespan.model.machine import DELAY, Latency, Machine, UnitClass
from makespan.model.program import Program, ProgramPlace
from makespan.proof.bounds import linear, repetition
from makespan.proof.bounds.delays import expand_latencies
from makespan.proof.bounds.linear import Programme
from makespan.proof.bounds.repetition import interpolation


def test_a_row_bounds_the_objective() -> None:
    programme = Programme()
    x = programme.new(1)
    programme.at_least([(x, 2.0)], 7.0)
    solution = programme.minimise(int(x[0]), 10)
    assert solution is not None
    assert solution[x[0]] == pytest.approx(3.5)


def test_variables_are_free_and_rows_hold_for_every_index() -> None:
    """Bound t >= a_i - 5 for three a, with a_i >= -i."""
    programme = Programme()
    a, t = programme.new(3), programme.new(1)
    programme.at_least([(a, 1.0)], 0.0)
    programme.at_least([(t, 1.0), (a, np.array([-1.0, -2.0, -3.0]))], -5.0)
    programme.at_least([(a[1:], 1.0)], 2.0)
    assert programme.rows == 3 + 3 + 2
    solution = programme.minimise(int(t[0]), 10)
    assert solution is not None
    assert solution[t[0]] == pytest.approx(1.0)


@pytest.mark.parametrize(("most", "least"), [(1, 4), (-2, 6)])
def test_column_minus_one_is_the_constant_zero(most: int, least: int) -> None:
    """t + x >= 4 and t >= 4, where x is `most` at most."""
    programme = Programme()
    x, t = programme.new(1), programme.new(1)
    programme.at_least([(t, 1.0), (np.array([x[0], -1]), 1.0)], 4.0)
    programme.at_least([(x, -1.0)], -most)
    solution = programme.minimise(int(t[0]), 10)
    assert solution is not None
    assert solution[t[0]] == pytest.approx(least)


def test_a_variable_that_occurs_twice_in_a_row_counts_twice() -> None:
    programme = Programme()
    x = programme.new(1)
    programme.at_least([(x, 1.0), (x, 1.0), (x, -0.5)], 3.0)
    solution = programme.minimise(int(x[0]), 10)
    assert solution is not None
    assert solution[x[0]] == pytest.approx(2.0)


def test_a_large_programme_is_given_up_while_it_is_handed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear, "_TERMS_PER_LOOK", 10)
    programme = Programme()
    programme.at_least([(programme.new(100), 1.0)], 1.0)
    looks = iter([False, False, True])
    assert programme.minimise(0, 10, lambda: next(looks)) is None
    assert list(looks) == []


def test_terms_that_cancel_leave_the_variable_out() -> None:
    programme = Programme()
    x, y = programme.new(1), programme.new(1)
    programme.at_least([(x, 1.0), (y, 1.0), (y, -1.0)], 3.0)
    programme.at_least([(y, 1.0)], 8.0)
    solution = programme.minimise(int(x[0]), 10)
    assert solution is not None
    assert solution[x[0]] == pytest.approx(3.0)


@pytest.mark.parametrize("sign", [1.0, -1.0], ids=["infeasible", "unbounded"])
def test_no_optimum_is_no_solution(sign: float) -> None:
    programme = Programme()
    x, y = programme.new(1), programme.new(1)
    programme.at_least([(x, sign), (y, -1.0)], 1.0)
    programme.at_least([(x, -1.0), (y, sign)], 1.0)
    programme.at_least([(x, -1.0)], 0.0)
    assert programme.minimise(int(x[0]), 10) is None


def test_no_time_or_a_stop_is_no_solution() -> None:
    programme = Programme()
    x = programme.new(1)
    programme.at_least([(x, 1.0)], 1.0)
    assert programme.minimise(int(x[0]), 0) is None
    assert programme.minimise(int(x[0]), 10, lambda: True) is None


def test_a_stop_does_not_wait_for_the_solver() -> None:
    release = threading.Event()

    def wait() -> None:
        release.wait(60)

    try:
        assert not linear._finishes(wait, lambda: True)
    finally:
        release.set()


@given(st.lists(st.integers(-9, 9), min_size=1, max_size=6), st.data())
def test_the_least_bound_is_the_maximum_of_what_it_covers(constants: list[int], data: st.DataObject) -> None:
    programme = Programme()
    x, t = programme.new(len(constants)), programme.new(1)
    for column, constant in zip(x, constants, strict=True):
        programme.at_least([(np.array([column]), 1.0)], float(constant))
    programme.at_least([(t, 1.0), (x, -1.0)], 0.0)
    solution = programme.minimise(int(t[0]), 10)
    assert solution is not None
    assert solution[t[0]] == pytest.approx(max(constants), abs=1e-5)


def test_a_short_program_shares_nothing() -> None:
    found = interpolation(Program.chain("CL" * 20))
    assert found.is_anchor[:-1].all()
    assert not found.is_anchor[-1]
    assert not found.weight.any()


def test_only_strings_share() -> None:
    branch = Program((ProgramPlace("C", (1, 2)), *(ProgramPlace("C", (i + 2,)) for i in range(300))))
    assert interpolation(branch).is_anchor[:-1].all()


def test_a_loop_shares_all_but_its_ends() -> None:
    """A prologue of 3, then CLL 100 times: two repetitions at each end and two inner ones are free."""
    string = "LCC" + "CLL" * 100 + "CCC"
    found = interpolation(Program.chain(string))
    assert found.is_anchor.sum() < 40
    assert found.is_anchor[:9].all()
    assert found.is_anchor[-10:-1].all()
    for place in range(len(string)):
        at = (1 - found.weight[place]) * found.left[place] + found.weight[place] * found.right[place]
        assert at == pytest.approx(place)  # an affine table is met exactly
        assert string[found.left[place]] == string[found.right[place]] == string[place]


@given(st.text("CL", min_size=1, max_size=4), st.integers(7, 12), st.text("CL", max_size=5))
def test_pairs_of_places_that_are_enough_imply_the_others(loop: str, count: int, tail: str) -> None:
    """Tables affine on every stretch: the least difference along the kept pairs is the least of all."""
    program = Program.chain(loop * count + tail)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(repetition, "MERGED_FROM", 1)
        found = interpolation(program)
    places = np.arange(program.end)
    own, then = (
        table[found.left] + found.weight * (table[found.right] - table[found.left])
        for table in (np.append(np.sin(7 * places), 0.0), np.append(np.cos(5 * places), 0.0))
    )
    for after in (places, places + 1):
        kept = found.ends(places, after)
        differences = own[places] - then[after]
        assert differences[kept].min() == pytest.approx(differences.min())


def delayed(string: str, least: int, most: int) -> Program:
    """A string whose L have latencies, as places."""
    machine = Machine("slow", (UnitClass("C", 1), UnitClass("L", 1, latency=Latency(least, most))))
    expansion = expand_latencies(Instance.of(string, 1, machine))
    assert expansion is not None
    return expansion.instance.groups[0].program


@pytest.mark.parametrize(
    ("program", "stretches"),
    [
        pytest.param(Program.chain("LCC" + "CLL" * 100 + "CCC"), [(3 + 2 * 3, 3, 100 - 2 * 2)], id="in the middle"),
        pytest.param(Program.chain("CL" * 7), [(4, 2, 3)], id="seven, of which three are inner ones"),
        pytest.param(Program.chain("CL" * 6 + "C"), [], id="six"),
        pytest.param(Program.chain("C" * 10 + "L" * 12), [(12, 1, 8), (2, 1, 6)], id="two, the longer one first"),
        pytest.param(Program.chain("CL" * 14), [(4, 2, 10)], id="not by two repetitions at a time"),
        pytest.param(Program.chain("LLC" * 9 + "C" * 10), [(6, 3, 5)], id="one that ends where the other one begins"),
        pytest.param(delayed("CLCL", 300, 300), [(2, 1, 297), (303, 1, 297)], id="delays"),
        pytest.param(delayed("L", 6, 6), [(1, 1, 3)], id="five delays"),
        pytest.param(delayed("L", 5, 5), [], id="four delays"),
    ],
)
def test_stretches_by_hand(program: Program, stretches: list[tuple[int, int, int]]) -> None:
    """First place, period and number of repetitions, without two at each end, or the last two of delays."""
    assert repetition._affine(program) == stretches


def test_a_merged_loop_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """CL seven times: the third to the fifth C are on one line, and so are these L."""
    monkeypatch.setattr(repetition, "MERGED_FROM", 1)
    found = interpolation(Program.chain("CL" * 7))
    before, behind = [0, 1, 2, 3], [10, 11, 12, 13, 14]
    assert found.left.tolist() == [*before, 4, 5, 4, 5, 4, 5, *behind]
    assert found.right.tolist() == [*before, 8, 9, 8, 9, 8, 9, *behind]
    assert found.weight.tolist() == [0.0] * 6 + [0.5, 0.5, 1.0, 1.0] + [0.0] * 5
    assert found.family.tolist() == found.left.tolist()
    assert found.step.tolist() == [0] * 6 + [1, 1, 2, 2] + [0] * 5


@pytest.mark.parametrize(("places", "anchors"), [(199, 199), (200, 2 + 2 + 2)])
def test_only_long_programs_are_merged(places: int, anchors: int) -> None:
    assert interpolation(Program.chain("C" * places)).is_anchor.sum() == anchors


def test_periods_that_are_too_long_are_not_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    for period, stretches in ((3, [(6, 3, 6)]), (2, [])):
        monkeypatch.setattr(repetition, "MOST_PERIOD", period)
        assert repetition._affine(Program.chain("CLL" * 10)) == stretches


def test_long_delays_share_all_but_their_first_and_last_places() -> None:
    program = delayed("CLCL", 300, 300)
    found = interpolation(program)
    assert found.is_anchor.sum() == 4 + 2 * (1 + 1 + repetition.FREE_DELAYS)
    for place in np.flatnonzero(found.weight):
        assert program.places[place].unit == DELAY
        at = (1 - found.weight[place]) * found.left[place] + found.weight[place] * found.right[place]
        assert at == pytest.approx(place)


@given(st.text("CL", min_size=1, max_size=3), st.integers(1, 9), st.integers(7, 12), st.integers(0, 1 << 32))
def test_entries_of_a_range_that_are_enough_imply_the_others(string: str, least: int, most: int, seed: int) -> None:
    program = delayed(string + "L", min(least, most), most)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(repetition, "MERGED_FROM", 1)
        found = interpolation(program)
    random = np.random.default_rng(seed)
    own, then = (
        table[found.left] + found.weight * (table[found.right] - table[found.left])
        for table in (np.append(random.normal(size=program.end), 0.0), np.append(random.normal(size=program.end), 0.0))
    )
    for unit in "L~":
        edges = [(p, q) for p, place in enumerate(program.places) if place.unit == unit for q in place.successors]
        before, after = (np.array(side) for side in zip(*edges, strict=True))
        kept = found.ends(before, after)
        differences = own[before] - then[after]
        assert differences[kept].min() == pytest.approx(differences.min())


def test_a_range_of_latencies_is_a_few_rows() -> None:
    found = interpolation(delayed("L", 1, 500))
    entries = np.arange(1, 501)
    assert found.ends(np.zeros(500, dtype=np.int64), entries).sum() == 2 + repetition.FREE_DELAYS + 1
