"""`makespan measure dual-issue` and `makespan estimate --method dual-issue`."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from makespan.estimates import Origin, dual_issue
from makespan.estimates.dual_issue import K20, FfmaWork
from makespan.estimates.microbench.programs import ffma_source
from makespan.kernels.ptx import cuda
from makespan.model import machine
from tests.command import Runner

ROOT = Path(__file__).parents[3]


def test_published_measurements_are_told_and_written_as_an_unverified_machine(measure: Runner, tmp_path: Path) -> None:
    toml = tmp_path / "gk110.toml"
    done = measure("dual-issue", "--machine-out", toml)
    assert done.code == 0, done.err
    assert "bank of register r: (r & 1) | ((r >> 2) & 1) << 1" in done.out
    assert "control codes  open dual issue 1, no extra delay 40, delayed 215" in done.out
    found = machine.find_machine(str(toml))
    assert found.machine.capacities == {"C": 6}
    assert {figure.key for figure in found.unverified} == {"units.C.latency", "issue.dispatch"}


def test_a_table_is_told_as_json(measure: Runner, table: Path) -> None:
    done = measure("dual-issue", "--import", table, "--format", "json")
    document = json.loads(done.out)
    assert (done.code, document["schema"], document["device"]) == (0, "makespan.dual-issue/2", "k20")
    assert document["banks"]["function"] == [0, 2]
    assert document["codes"]["dual"] == [4]
    assert [pattern["pattern"] for pattern in document["patterns"] if pattern["is_best"]] == ["1-2-2-1"]
    assert document["sustained_ops_per_cycle"] == 186.35


def test_the_portable_pair_is_written(measure: Runner, tmp_path: Path) -> None:
    assert measure("dual-issue", "--emit", "portable", "-o", tmp_path).code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ffma.cu"]


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")
def test_the_portable_pair_compiles_and_keeps_its_instructions(tmp_path: Path) -> None:
    source, binary = tmp_path / "ffma.cu", tmp_path / "out.cubin"
    source.write_text(ffma_source()["ffma.cu"])
    done = subprocess.run(
        ["nvcc", "-arch=sm_75", "-cubin", str(source), "-o", str(binary)], capture_output=True, text=True, timeout=600
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert binary.stat().st_size > 0
    module = cuda.read(source)
    assert [kernel.name for kernel in module.kernels] == ["ffma_latency", "ffma_throughput"]
    counts = [sum(i.opcode == "fma.rn.f32" for i in kernel.instructions) for kernel in module.kernels]
    assert counts == [128, 8 * 64]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--import", "none.csv"], "cannot read the table of measurements"),
        (["--import", "k20"], "unknown table of measurements 'k20'"),
        (["--lanes", "128"], "--lanes and --schedulers describe the SM of --import"),
        (["--emit", "portable"], "-o is missing"),
        (["-o", "x"], "add --emit"),
        (["--machine-out", "none/x.toml"], "cannot write the machine file"),
        (["--import", "none.csv", "--lanes", "0"], "0 lanes are fewer"),
        (["--import", "none.csv", "--schedulers", "0"], "lanes are fewer than those of 0 schedulers"),
    ],
)
def test_what_cannot_be_told_says_so(
    arguments: list[str], message: str, measure: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = measure("dual-issue", *arguments)
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert done.err.count("\n") == 1


def test_an_estimate_is_the_work_over_what_the_sm_sustains() -> None:
    found = dual_issue.estimate(dual_issue.find(K20), FfmaWork(1e9), sms=13, clock_ghz=0.706)
    assert found.cycles == pytest.approx(1e9 / 13 / 186.35)
    assert found.seconds == pytest.approx(float(found.cycles or 0) / 0.706e9)
    values = {quantity.name: quantity for quantity in found.quantities}
    assert values["peak"].value == pytest.approx(3524.352)
    assert values["reached"].value == pytest.approx(0.9706 * 3524.352, rel=1e-3)
    assert values["efficiency"].value == pytest.approx(97.06, abs=0.005)
    assert values["sustained"].origin is Origin.MEASURED
    assert dual_issue.estimate(dual_issue.find(K20), FfmaWork(1e9), sms=13, clock_ghz=None).seconds is None


def test_the_command_counts_the_multiply_adds_of_a_kernel(estimate: Runner) -> None:
    polynomial = ROOT / "ptx" / "polynomial.ptx"
    launch = ("--block", 256, "--grid", 104, "--param", "3=26624", "--format", "json")
    done = estimate("--method", "dual-issue", polynomial, *launch)
    assert done.code == 0, done.err
    document = json.loads(done.out)
    values = {quantity["name"]: quantity["value"] for quantity in document["quantities"]}
    assert values["ffma"] == polynomial.read_text().count("fma.rn.f32") * 26624
    assert document["cycles"] == pytest.approx(values["ffma"] / 13 / values["sustained"])
    assert document["is_bound"] is False


def test_the_command_takes_a_count_and_a_table(estimate: Runner, table: Path) -> None:
    done = estimate("dual-issue", "--ffma", "1e9", "--import", table, "--sms", 13, "--clock-ghz", 0.706)
    assert done.code == 0, done.err
    assert done.out.endswith("estimate (not a bound) by dual-issue: 412788 cycles, 0.000584686 s\n")
    assert done.out == estimate("dual-issue", "--ffma", "1e9").out
    described = estimate("dual-issue", "--ffma", "1e9", "--import", table, "--gpu", "gtx1050", "--format", "json")
    values = {quantity["name"]: quantity for quantity in json.loads(described.out)["quantities"]}
    assert (values["sms"]["value"], values["sms"]["origin"]) == (5, "gpu")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give either SOURCE or --ffma"),
        (["x.ptx", "--ffma", "1"], "give either SOURCE or --ffma"),
        (["--ffma", "0"], "a number above 0, not 0"),
        (["--ffma", "inf"], "a number above 0, not inf"),
        (["--ffma", "1", "--block", "3"], "--block is for a kernel file; --ffma says how many there are"),
        (["--ffma", "1", "--import", "TABLE"], "--sms is missing"),
        (["--ffma", "1", "--gpu", "gtx1050", "--sms", "3"], "no --sms and --clock-ghz beside it"),
        (["--ffma", "1", "--import", "TABLE", "--sms", "0"], "sms must be at least 1"),
        (["--ffma", "1", "--import", "TABLE", "--sms", "1", "--clock-ghz", "-1"], "above 0, not -1"),
        ([str(ROOT / "ptx" / "bitonic.ptx"), "--block", "256", "--grid", "1"], "executes no fma.rn.f32"),
    ],
)
def test_estimates_of_nothing_are_refused(arguments: list[str], message: str, estimate: Runner, table: Path) -> None:
    done = estimate("dual-issue", *[str(table) if argument == "TABLE" else argument for argument in arguments])
    assert (done.code, done.out) == (2, "")
    assert message in done.err
