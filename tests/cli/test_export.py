"""Exported models, read again by other solvers."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from makespan.cli import run
from makespan.cli.export import command
from makespan.host.errors import InputError, UnsupportedError
from makespan.proof.engines.ilp import solver as ilp

EXAMPLE = ["--string", "CLLCLL", "--warps", "2"]
OTHER = ["--string", "CCLLCC", "--warps", "3", "--capacity", "C=2,L=1"]


def export(path: Path, *options: str) -> str:
    result = CliRunner().invoke(command, [*options, "-o", str(path)], catch_exceptions=False)
    assert result.exit_code == 0
    return result.output


def mps_optimum(path: Path) -> float:
    from ortools.linear_solver.python import model_builder_helper as engine

    model = engine.ModelBuilderHelper()
    assert model.import_from_mps_file(str(path))
    solver = engine.ModelSolverHelper("highs")
    solver.solve(model)
    assert solver.status() == engine.SolveStatus.OPTIMAL
    return solver.objective_value()


def lp_optimum(path: Path) -> float:
    """By CBC; OR-Tools reads another dialect of LP."""
    answer = path.with_suffix(".sol")
    done = [ilp.cbc_path(), str(path), "-solve", "-solution", str(answer)]
    subprocess.run(done, check=True, capture_output=True)
    first = answer.read_text().splitlines()[0]
    assert first.startswith("Optimal - objective value ")
    return float(first.split()[-1])


def cp_optimum(path: Path) -> float:
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    assert model.proto.parse_text_format(path.read_text())
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    assert solver.solve(model) == cp_model.OPTIMAL
    return -solver.objective_value


@pytest.mark.parametrize(("source", "cycles"), [(EXAMPLE, 10), (OTHER, 10)], ids=["paper", "other"])
@pytest.mark.parametrize(
    ("model", "form", "optimum"),
    [
        ("mps", "published", mps_optimum),
        ("mps", "tightened", mps_optimum),
        ("lp", "tightened", lp_optimum),
        ("cp", "published", cp_optimum),
    ],
)
def test_another_solver_finds_the_worst_case(
    tmp_path: Path, model: str, form: str, optimum: Callable[[Path], float], source: list[str], cycles: int
) -> None:
    path = tmp_path / f"model.{model}"
    said = export(path, *source, "--model", model, "--form", form)
    assert said.startswith(f"model: {path} (horizon ")
    assert optimum(path) == pytest.approx(-cycles)
    assert [file for file in tmp_path.iterdir() if file.suffix == ".tmp"] == []


def test_the_published_form_as_lp(tmp_path: Path) -> None:
    export(tmp_path / "model.lp", *EXAMPLE, "--model", "lp")
    assert lp_optimum(tmp_path / "model.lp") == pytest.approx(-10)


def test_highspy_reads_the_lp_file(tmp_path: Path) -> None:
    """In a process of its own: it clashes with OR-Tools."""
    export(tmp_path / "model.lp", *EXAMPLE, "--model", "lp", "--form", "tightened")
    code = (
        "import sys, highspy; h = highspy.Highs(); h.setOptionValue('output_flag', False)\n"
        "h.readModel(sys.argv[1]); h.run(); print(round(h.getInfo().objective_function_value))"
    )
    done = [sys.executable, "-c", code, str(tmp_path / "model.lp")]
    *_, last = subprocess.run(done, check=True, capture_output=True, text=True).stdout.splitlines()
    assert last == "-10"  # some versions print a banner before it, silent or not


GENERAL = """
name = "slow loads"
[units]
C = { capacity = 1, latency = 2 }
L = { capacity = 1, interval = 2, latency = [2, 5] }
[issue]
width = 1
"""


def test_a_machine_with_latencies_intervals_and_an_issue_width_as_a_constraint_programme(tmp_path: Path) -> None:
    (tmp_path / "slow.toml").write_text(GENERAL)
    export(tmp_path / "model", "--string", "LC", "--warps", "2", "--machine", f"{tmp_path}/slow.toml", "--model", "cp")
    assert cp_optimum(tmp_path / "model") == pytest.approx(-10)


@pytest.mark.parametrize("model", ["lp", "mps"])
def test_the_integer_programme_refuses_such_a_machine(tmp_path: Path, model: str) -> None:
    (tmp_path / "slow.toml").write_text(GENERAL)
    source = ["--string", "LC", "--warps", "2", "--machine", str(tmp_path / "slow.toml")]
    with pytest.raises(UnsupportedError, match=r"does not know an issue width of 1, .*; use --model cp$"):
        export(tmp_path / "model", *source, "--model", model)


@pytest.mark.parametrize("model", ["lp", "cp"])
def test_a_promise_is_refused_with_its_own_remedy(tmp_path: Path, model: str) -> None:
    (tmp_path / "fair.toml").write_text('scheduler = "fair"\nunits = { C = { capacity = 1 }, L = { capacity = 1 } }\n')
    source = ["--string", "LC", "--warps", "2", "--machine", str(tmp_path / "fair.toml")]
    with pytest.raises(UnsupportedError, match="does not know a fair scheduler; leave the promise out: scheduler"):
        export(tmp_path / "model", *source, "--model", model)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--string", "CL", "--warps", "1..3", "--model", "lp"], "a model is for one instance; this is a range"),
        (["--string", "CL" * 200, "--warps", "48", "--model", "lp"], "coefficients, more than the limit of"),
        (["--string", "CL" * 200, "--warps", "48", "--model", "cp"], "booleans, more than the limit of"),
        (
            ["--string", "CS", "--warps", "2", "--capacity", "C=1,S=1", "--model", "mps"],
            "classes besides C and L",
        ),
    ],
)
def test_what_cannot_be_exported_is_refused_and_leaves_no_file(
    options: list[str], message: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=message):
        CliRunner().invoke(command, [*options, "-o", str(tmp_path / "model")], catch_exceptions=False)
    assert list(tmp_path.iterdir()) == []


def test_a_path_that_cannot_be_written_is_refused_first(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot write the model"):
        CliRunner().invoke(
            command, [*EXAMPLE, "--model", "lp", "-o", str(tmp_path / "no" / "model")], catch_exceptions=False
        )


def test_a_model_that_is_not_named_is_asked_for_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["export", *EXAMPLE]) == 2
    words = "makespan: Missing option '--model'. It is one of 'lp', 'mps', 'cp' (see 'makespan export --help')\n"
    assert capsys.readouterr() == ("", words)
