"""The published ILP and its tightened form, with CBC and, from the benchmarks, HiGHS."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.frontier import by_highs
from makespan.host.errors import BrokenPromiseError, InputError, UnsupportedError
from makespan.model.instance import Instance
from makespan.model.machine import PAPER, Machine
from makespan.model.program import Program, ProgramPlace
from makespan.model.simulate import replay
from makespan.proof.bounds import pessimistic
from makespan.proof.engines import Limits
from makespan.proof.engines.engine import Finding
from makespan.proof.engines.ilp import model as ilp_model
from makespan.proof.engines.ilp import solver as ilp
from tests.both import truth
from tests.strategies import letters

PAIRS = [{"C": 1, "L": 1}, {"C": 2, "L": 1}, {"C": 2, "L": 2}]
IMPLIED = ("capacity", "last_warp", "one_a_cycle", "done_in_the_end", "warps_ordered")
SOLVERS = {"cbc": ilp.solve, "highs": by_highs}
WAYS = [(form, solver) for form in ilp_model.FORMS for solver in SOLVERS]


def check(instance: Instance, form: str, solver: str) -> None:
    found = SOLVERS[solver](instance, Limits(), horizon=pessimistic(instance), form=form)
    assert found.witness is not None
    assert found.evidence == ("ilp" if solver == "cbc" else None)
    assert found.upper == replay(instance, found.witness) == truth(instance)


def test_the_example_of_the_paper_has_600_binaries() -> None:
    model = ilp_model.build(Instance.of("CLLCLL", 2), 12, "published")
    assert model is not None
    variables = model.problem.variables()
    assert len(variables) == 600
    assert all((v.lowBound, v.upBound, v.cat) == (0, 1, "Integer") for v in variables)


@pytest.mark.parametrize(("form", "solver"), WAYS)
def test_the_example_of_the_paper_takes_ten_cycles(form: str, solver: str) -> None:
    check(Instance.of("CLLCLL", 2), form, solver)


@pytest.mark.parametrize("capacities", PAIRS, ids=str)
@settings(max_examples=40)
@given(string=letters(most=5), warps=st.integers(1, 3))
def test_the_tightened_form_agrees_with_the_search(capacities: dict[str, int], string: str, warps: int) -> None:
    check(Instance.of(string, warps, Machine.of(capacities)), "tightened", "cbc")


@pytest.mark.parametrize("solver", SOLVERS)
@settings(max_examples=10)
@given(string=letters(most=4), warps=st.integers(1, 2), capacities=st.sampled_from(PAIRS))
def test_the_published_form_agrees_with_the_search(
    solver: str, capacities: dict[str, int], string: str, warps: int
) -> None:
    check(Instance.of(string, warps, Machine.of(capacities)), "published", solver)


@settings(max_examples=10)
@given(string=letters(most=5), warps=st.integers(1, 3), capacities=st.sampled_from(PAIRS))
def test_highs_agrees_with_the_search(capacities: dict[str, int], string: str, warps: int) -> None:
    check(Instance.of(string, warps, Machine.of(capacities)), "tightened", "highs")


@pytest.mark.parametrize(
    ("string", "warps", "capacities", "cycles"),
    [
        ("CLCLCL", 3, PAIRS[0], 12),
        ("CCLLCC", 4, PAIRS[1], 13),
        ("CLLCLL", 3, {"C": 1, "L": 2}, 8),
        ("CCCC", 4, PAIRS[2], 10),
        ("LLLCCCCLC", 2, PAIRS[1], 12),
    ],
)
def test_reference_values(string: str, warps: int, capacities: dict[str, int], cycles: int) -> None:
    instance = Instance.of(string, warps, Machine.of(capacities))
    found = ilp.solve(instance, Limits(), horizon=pessimistic(instance), form="tightened")
    assert found.upper == cycles


@pytest.mark.parametrize(("form", "solver"), WAYS)
def test_a_machine_may_lack_the_other_class(form: str, solver: str) -> None:
    check(Instance.of("CCC", 3, Machine.of({"C": 2})), form, solver)


@pytest.mark.parametrize(("form", "family"), [(form, f) for form, all_of in ilp_model.FAMILIES.items() for f in all_of])
def test_no_family_of_constraints_can_be_left_out(form: str, family: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """But for those that the others imply, and those that only name the last of equal warps."""
    kept = tuple(f for f in ilp_model.FAMILIES[form] if f is not family)
    monkeypatch.setitem(ilp_model.FAMILIES, form, kept)
    instances = Instance.of("CLL", 2), Instance.of("CLLC", 2, Machine.of({"C": 2, "L": 1})), Instance.of("LCC", 2)
    assert any(is_wrong(instance, form) for instance in instances) == (getattr(family, "__name__", "") not in IMPLIED)


def is_wrong(instance: Instance, form: str) -> bool:
    """Whether HiGHS finds no worst case, another one, or a schedule that breaks a rule."""
    try:
        found = by_highs(instance, Limits(), horizon=pessimistic(instance) + 1, form=form)
        if found.witness is not None:
            replay(instance, found.witness)
    except (BrokenPromiseError, StopIteration):
        return True
    return found.witness is None or found.upper != truth(instance)


@pytest.mark.parametrize("form", ilp_model.FORMS)
@pytest.mark.parametrize("horizon", [2, 8])
def test_a_horizon_that_no_schedule_meets_is_a_broken_promise(form: str, horizon: int) -> None:
    with pytest.raises(BrokenPromiseError, match=rf"{horizon} cycles"):
        ilp.solve(Instance.of("CLLCLL", 2), Limits(), horizon=horizon, form=form)


def test_what_the_ilp_does_not_describe_is_refused_by_name() -> None:
    fork = Program((ProgramPlace("C", (1, 2)), ProgramPlace("L", (2,))))
    three = Machine.of({"C": 1, "L": 1, "S": 1})
    two = Instance.merged([(Program.chain("C"), 1), (Program.chain("L"), 1)], PAPER)
    for instance, message in (
        (Instance.of(fork, 2), "the ILP does not know programs with a choice of paths"),
        (two, "the ILP does not know warps of different programs"),
        (Instance.of("CS", 2, three), r"the ILP does not know classes besides C and L \(S\)"),
    ):
        with pytest.raises(UnsupportedError, match=message):
            ilp.solve(instance, Limits(), horizon=9)


def test_an_unknown_form_is_bad_input() -> None:
    with pytest.raises(InputError, match="unknown ILP 'loose'; known: published, tightened"):
        ilp.solve(Instance.of("C", 1), Limits(), horizon=1, form="loose")


def hard() -> Instance:
    return Instance.of("CLLCLCLLCC", 4, Machine.of({"C": 2, "L": 1}))


@pytest.mark.parametrize("form", ilp_model.FORMS)
@pytest.mark.parametrize("seconds", [0.1, 0.5])
def test_out_of_time_leaves_a_proven_interval(form: str, seconds: float) -> None:
    instance = hard()
    horizon = pessimistic(instance) + 6
    found = ilp.solve(instance, Limits(seconds=seconds), horizon=horizon, form=form)
    worst = truth(instance)
    assert found.upper is None or worst <= found.upper < horizon
    assert found.witness is None or replay(instance, found.witness) <= worst


def test_an_interrupt_stops_the_solver() -> None:
    limits = Limits(seconds=60)
    threading.Timer(0.3, limits.interrupt).start()
    found = ilp.solve(hard(), limits, horizon=pessimistic(hard()), form="tightened")
    assert found.upper is None or found.upper >= truth(hard())


def test_no_process_is_left_behind_and_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    ilp.solve(hard(), Limits(seconds=0.5), horizon=pessimistic(hard()), form="tightened")
    assert not list(tmp_path.iterdir())
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_a_programme_that_is_too_large_is_an_empty_finding_that_says_so() -> None:
    said: list[str] = []
    assert ilp.solve(Instance.of("CL" * 50, 48), Limits(progress=said.append), horizon=4800) == Finding()
    assert said[0].startswith("no ILP: about ")


def test_cbc_always_gives_the_same_answer() -> None:
    instance = Instance.of("CLLCL", 3)
    assert len({ilp.solve(instance, Limits(), horizon=15, form="tightened").witness for _ in range(3)}) == 1


STOPPED = """Continuous objective value is -12 - 0.00 seconds
Cbc0010I After 0 nodes, 1 on tree, 1e+50 best solution, best possible -99 (0.1 seconds)

Result - Stopped on time limit

Objective value:                -9.00000000
Lower bound:                    -11.500
Gap:                            0.22
"""


@pytest.mark.parametrize(
    ("log", "bound"),
    [
        (STOPPED, -11.5),
        (STOPPED.replace("-11.500", "-1e+50"), None),
        (STOPPED.replace("-11.500", "1e+50"), None),
        (STOPPED.replace("Continuous objective", "Other"), None),
        (STOPPED.partition("Result")[0], None),
        ("", None),
    ],
)
def test_only_the_final_report_of_cbc_counts(log: str, bound: float | None) -> None:
    assert ilp.cbc_bound(log) == bound


@pytest.mark.parametrize(("least", "upper"), [(-11.5, 11), (-11.0, 11), (-10.9999, 11), (-12.0, None)])
def test_a_bound_is_rounded_outward(least: float, upper: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ilp, "_cbc", lambda model, folder, limits: ilp._SolverAnswer(least=least))
    assert ilp.solve(Instance.of("CLLCLL", 2), Limits(), horizon=12).upper == upper


def test_the_best_schedule_of_a_stopped_solver_is_no_upper_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = Instance.of("CLLCLL", 2)
    model = ilp_model.build(instance, 12, "tightened")
    assert model is not None
    values = {v.name: 1.0 for v in model.problem.variables()}
    monkeypatch.setattr(ilp, "_cbc", lambda model, folder, limits: ilp._SolverAnswer(values=values))
    found = ilp.solve(instance, Limits(), horizon=12, form="tightened")
    assert found.witness is not None
    assert found.upper is None


def test_no_cbc_is_said_with_a_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ilp_model.pulp().PULP_CBC_CMD, "pulp_cbc_path", "/nowhere/cbc")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(UnsupportedError, match="put cbc on the path"):
        ilp.solve(Instance.of("C", 1), Limits(), horizon=1)


def test_pulp_does_not_keep_or_tools_from_loading() -> None:
    first = "from makespan.proof.engines.ilp.model import pulp; pulp()"
    code = f"{first}; from ortools.sat.python import cp_model; print('both')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "both\n"
