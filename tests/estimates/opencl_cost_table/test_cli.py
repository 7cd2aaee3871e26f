"""`makespan estimate cost-table`, `makespan measure opencl`, `makespan estimate --evaluate`."""

import json
import sys
from pathlib import Path

import pytest

from makespan.estimates.commands import cost_table
from makespan.estimates.opencl_cost_table import table as tables
from makespan.estimates.opencl_cost_table.device import VirtualOpenClDevice
from makespan.estimates.opencl_cost_table.suite import Plan, points
from makespan.host.errors import MeasurementError
from tests.command import Runner

EXAMPLE = r"matrix.\(x,y){x + matrix[x,y]}"
MATRIX = ("--array", "matrix:float:4096x4096")
TABLE = ("--table", "rmbp-gt650m")
SAMPLES = Path(__file__).parents[3] / "ptx"


def row(out: str, name: str) -> list[str]:
    return next(line for line in out.splitlines() if line.startswith(name))[26:].split()


@pytest.mark.parametrize("words", [("cost-table",), ("--method", "cost-table"), ("--method", "opencl-cost-table")])
def test_the_published_example(estimate: Runner, words: tuple[str, ...]) -> None:
    done = estimate(*words, "--expr", EXAMPLE, *MATRIX, *TABLE, "--override", "GLOBAL_READ=4981.5752014161835")
    assert done.code == 0
    assert row(done.out, "FLOAT_ADD") == ["1", "54.826264"]
    assert row(done.out, "INT_MUL") == ["3", "81.042342"]
    assert row(done.out, "TOTAL_COST") == ["9873.424637"]
    assert row(done.out, "transfer to the device") == ["67108864", "B", "240766.143120"]
    assert row(done.out, "total") == ["286607.052549"]
    assert "an estimate, not a bound" in done.out
    assert done.out.splitlines()[-1] == "estimate (not a bound) by opencl-cost-table: 0.286607 s"


@pytest.mark.parametrize(
    ("seconds", "code", "verdict"), [("0.2", 1, "stay on the CPU"), ("0.3", 0, "run on the device")]
)
def test_the_decision_is_the_exit_code(estimate: Runner, seconds: str, code: int, verdict: str) -> None:
    done = estimate("cost-table", "--expr", EXAMPLE, *MATRIX, *TABLE, "--cpu-time", seconds)
    assert (done.code, done.out.splitlines()[-1].split(":")[0]) == (code, verdict)


def test_json(estimate: Runner) -> None:
    done = estimate("cost-table", "--expr", EXAMPLE, *MATRIX, *TABLE, "--cpu-time", "1", "--format", "json")
    document = json.loads(done.out)
    assert document["schema"] == "makespan.estimate/1"
    assert document["is_bound"] is False
    assert document["on_device"] is True
    assert document["kernel_microseconds"] == pytest.approx(13651.415337, abs=1e-6)
    assert {"name": "INT_DIV", "count": 4, "microseconds": pytest.approx(1509.30053)} in document["cost_table"]["rows"]


def test_options_of_an_expression(estimate: Runner) -> None:
    given = ("--const", "N=4096", "--func", "g(a)=a*2", "--wg", "64", "--bytes", "none", "--explain")
    body = r"matrix.\(x,y){ g(matrix[y % N, x]) - matrix[x,y] + matrix[x,y] }"
    done = estimate("cost-table", "--expr", body, *MATRIX, *TABLE, *given, "--dedupe-reads")
    assert done.code == 0
    assert row(done.out, "GLOBAL_READ") == ["1", "8759.565901"]
    assert row(done.out, "work-group factor") == ["1.0690412296"]
    assert "transfer to" not in done.out
    assert "work-items = 16777216 work-items" in done.out
    assert row(estimate("cost-table", "--expr", body, *MATRIX, *TABLE, *given[:4], "--alike").out, "UNCL")[0] == "3"
    assert row(estimate("cost-table", "--expr", EXAMPLE, *MATRIX, *TABLE, "--bytes", "0,8").out, "total")
    outside = estimate("cost-table", "--expr", r"matrix.\(x,y){ matrix[x, y + 1] }", *MATRIX, *TABLE)
    assert "warning: a read of matrix may reach elements 1..16777216" in outside.out


def test_the_opencl_kernel(estimate: Runner) -> None:
    done = estimate("cost-table", "--expr", EXAMPLE, *MATRIX, "--emit-opencl")
    assert done.code == 0
    assert "    const int x = (pos/4096)%4096;\n" in done.out
    assert "result[pos] = x + matrix[y + x*4096];" in done.out


def test_a_ptx_kernel(estimate: Runner) -> None:
    launch = ("--block", "256", "--grid", "4096", "--param", "3=1048576")
    done = estimate("cost-table", SAMPLES / "vecadd.ptx", *launch, *TABLE, "--bytes", "8388608,4194304")
    assert done.code == 0
    assert row(done.out, "GLOBAL_READ") == ["2", "1100.570738"]
    assert row(done.out, "transfer to the device")[0] == "8388608"
    assert "1048576 work-items in work-groups of 256" in done.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--table", "rmbp-gt650m"), "give either SOURCE or --expr"),
        (("k.ptx", "--expr", EXAMPLE), "give either SOURCE or --expr"),
        (("--expr", EXAMPLE, *MATRIX), "--table is missing"),
        (("--expr", EXAMPLE, *MATRIX, "--table", "foo"), "unknown cost table 'foo'"),
        (("--expr", EXAMPLE, *TABLE), "array matrix is not declared"),
        (("--expr", EXAMPLE, "--array", "matrix:double:4x4", *TABLE), "give NAME:int|float:SHAPE"),
        (("--expr", EXAMPLE, "--array", "matrix:float:4by4", *TABLE), "a shape is numbers with x between"),
        (("--expr", EXAMPLE, "--array", "matrix:float:0x4", *TABLE), "not a shape"),
        (("--expr", EXAMPLE, *MATRIX, *MATRIX, *TABLE), "matrix is declared twice"),
        (("--expr", EXAMPLE, *MATRIX, *TABLE, "--wg", "7"), "work-group size 7 does not divide"),
        (("--expr", EXAMPLE, *MATRIX, *TABLE, "--wg", "0"), "work-group size 0: at least 1"),
        (("--expr", EXAMPLE, *MATRIX, *TABLE, "--wg", "2048"), "takes at most 1024"),
        (("--expr", EXAMPLE, *MATRIX, *TABLE, "--bytes", "-1,0"), "transfer to the device: -1 bytes"),
        (("--expr", EXAMPLE, *MATRIX, *TABLE, "--bytes", "many"), "give auto, none, or IN,OUT"),
        (("--expr", EXAMPLE, *MATRIX, *TABLE, "--override", "INT_ADD"), "--override 'INT_ADD': give NAME=NUMBER"),
        (("--expr", EXAMPLE, *MATRIX, *TABLE, "--override", "INT_ADD=x"), "give NAME=NUMBER"),
        (("--expr", EXAMPLE, *MATRIX, *TABLE, "--override", "FOO=1"), "no such row"),
        (("--expr", EXAMPLE, *MATRIX, *TABLE, "--const", "N=1.5"), "--const 'N=1.5': give NAME=NUMBER"),
        (("--expr", EXAMPLE, *MATRIX, *TABLE, "--const", "N=1", "--const", "N=2"), "--const N is given twice"),
        (
            ("--expr", EXAMPLE, *MATRIX, *TABLE, "--override", "INT_ADD=1", "--override", "INT_ADD=2"),
            "--override INT_ADD is given twice",
        ),
        (("--expr", EXAMPLE, "--array", "matrix:float:\u0664x\u0664", *TABLE), "a shape is numbers with x between"),
        (("--expr", EXAMPLE, *MATRIX, *TABLE, "--cpu-time", "-1"), "must be positive and finite"),
        (("--expr", EXAMPLE, *MATRIX, *TABLE, "--block", "64"), "--block is for a kernel file; --expr is an iteration"),
        (("--expr", EXAMPLE, *MATRIX, *TABLE, "--loop-bound", "L=4"), "--loop-bound is for a kernel file; --expr"),
        ((SAMPLES / "vecadd.ptx", *TABLE), "--block and --grid"),
        ((SAMPLES / "vecadd.ptx", *TABLE, "--wg", "4"), "--wg is for --expr"),
        ((SAMPLES / "vecadd.ptx", *TABLE, "--alike"), "--alike is for --expr"),
        ((SAMPLES / "vecadd.ptx", *TABLE, "--emit-opencl"), "--emit-opencl is for --expr"),
    ],
)
def test_bad_input_is_one_line(estimate: Runner, arguments: tuple[object, ...], message: str) -> None:
    done = estimate("cost-table", *arguments)
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert len(done.err.splitlines()) <= 3  # with the line and a caret where there is a place


def test_a_virtual_device_is_measured_and_evaluated(measure: Runner, estimate: Runner, tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    done = measure("opencl", "--virtual", "rmbp-gt650m", "--quick", "--noise", "0.001", "-o", path)
    assert done.code == 0, done.err
    assert "several FLOAT_DIV: linear" in done.out
    found = tables.read(path)
    assert found.device == "virtual GeForce GT 650M (MacBook Pro retina)"
    assert found.access["COMPLEX_GLOBAL_READ"].slope == pytest.approx(3.5202282e-3, rel=0.01)
    kept = json.loads((tmp_path / "mine.points.json").read_text())
    assert kept["is_complete"] is True
    histogram = tmp_path / "q.csv"
    options = ("--samples", "20", "--shape", "64x64", "--seed", "1", "-o", histogram)
    done = estimate("--evaluate", "--virtual", "rmbp-gt650m", "--table", path, *options)
    assert done.code == 0, done.err
    assert "warning" not in done.err
    assert "random: q = predicted / time of the virtual device over 20 samples" in done.out
    assert "realistic: q = predicted / time of the virtual device over 20 samples" in done.out
    assert histogram.read_text().startswith("set,q_from,q_to,samples\n")
    done = estimate("--evaluate", "--virtual", path, "--table", "rmbp-gt650m", *options[:6], "--format", "json")
    sets = json.loads(done.out)["sets"]
    assert {name: len(found["all"]) for name, found in sets.items()} == {"random": 20, "realistic": 20}


def test_a_table_of_another_device_is_a_warning(estimate: Runner, tmp_path: Path) -> None:
    import msgspec

    path = tmp_path / "other.json"
    other = msgspec.structs.replace(tables.find("rmbp-gt650m"), device="something else")
    path.write_text(tables.table_json(other))
    options = ("--samples", "1", "--shape", "64x64", "--set", "realistic")
    done = estimate("--evaluate", "--virtual", "rmbp-gt650m", "--table", path, *options)
    assert done.code == 0
    assert "warning: the table was measured on something else, and this is virtual GeForce" in done.err


def test_an_interrupted_suite_keeps_its_points_and_goes_on(
    measure: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, calls = tmp_path / "mine.json", iter(range(10**6))
    plain = VirtualOpenClDevice.benchmark

    def stopping(self: VirtualOpenClDevice, *arguments: object) -> object:
        if next(calls) == 50:
            raise KeyboardInterrupt
        return plain(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(VirtualOpenClDevice, "benchmark", stopping)
    command = ("opencl", "--virtual", "rmbp-gt650m", "--quick", "-o", path)
    done = measure(*command)
    assert done.code == 130
    assert "interrupted: 82 points are in" in done.err  # and 32 of them are transfers
    assert not path.exists()
    kept = json.loads((tmp_path / "mine.points.json").read_text())["points"]
    assert len(kept) == 82
    done = measure(*command)
    assert done.code == 0
    assert "82 points are known from" in done.err
    assert path.exists()
    whole, plan = json.loads((tmp_path / "mine.points.json").read_text())["points"], Plan(quick=True)
    assert list(whole) == [point.key for point in points(VirtualOpenClDevice(tables.find("rmbp-gt650m")), plan)]
    assert {key: whole[key] for key in kept} == kept
    assert next(calls) == 51 + len(whole) - len(kept)  # nothing was measured twice


def test_a_second_interrupt_while_the_points_are_saved_loses_none(
    measure: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopping(*_: object) -> object:
        raise KeyboardInterrupt

    plain, calls = cost_table._Keeper.save, iter(range(10**6))

    def save(self: cost_table._Keeper, **how: bool) -> None:
        if next(calls) == 0:
            raise KeyboardInterrupt
        plain(self, **how)

    monkeypatch.setattr(VirtualOpenClDevice, "benchmark", stopping)
    monkeypatch.setattr(cost_table._Keeper, "save", save)
    done = measure("opencl", "--virtual", "rmbp-gt650m", "--quick", "-o", tmp_path / "mine.json")
    assert done.code == 130
    assert len(json.loads((tmp_path / "mine.points.json").read_text())["points"]) == 32


@pytest.mark.parametrize("name", ["measure", "estimate"])
def test_a_clock_that_stands_still_is_a_failed_measurement(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(VirtualOpenClDevice, "_noisy", lambda *_: lambda: 0.0)
    arguments = {
        "measure": ("opencl", "--virtual", "rmbp-gt650m", "--quick", "-o", tmp_path / "t.json"),
        "estimate": ("--evaluate", "--virtual", "rmbp-gt650m", *TABLE, "--samples", "1", "--shape", "64x64"),
    }
    done = Runner(name, capsys)(*arguments[name])
    assert done.code == 4
    assert "0 us by" in done.err
    assert not (tmp_path / "t.json").exists()


def test_a_device_that_fails_keeps_the_points_too(
    measure: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> object:
        raise MeasurementError("virtual: a kernel does not build; its build log:\nline 3: no such thing")

    monkeypatch.setattr(VirtualOpenClDevice, "benchmark", broken)
    done = measure("opencl", "--virtual", "rmbp-gt650m", "--quick", "-o", tmp_path / "mine.json")
    assert done.code == 4
    assert "line 3: no such thing" in done.err
    assert len(json.loads((tmp_path / "mine.points.json").read_text())["points"]) == 32


def test_a_suite_that_cannot_begin_leaves_nothing_behind(measure: Runner, tmp_path: Path) -> None:
    done = measure("opencl", "--virtual", "rmbp-gt650m", "--double", "-o", tmp_path / "mine.json")
    assert done.code == 4
    assert "no floats of 64 bits" in done.err
    assert list(tmp_path.iterdir()) == []


def test_points_that_are_still_uncertain_are_listed(measure: Runner, tmp_path: Path) -> None:
    options = ("--virtual", "rmbp-gt650m", "--quick", "--noise", "0.5", "--time-limit", "0.001")
    done = measure("opencl", *options, "-o", tmp_path / "mine.json")
    assert done.code == 0
    assert "points are still uncertain: transfer to, 1048576 bytes" in done.err
    assert tables.read(tmp_path / "mine.json").not_converged


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--virtual", "foo", "-o", "t.json"), "unknown cost table 'foo'"),
        (("--virtual", "rmbp-gt650m", "--device", "0", "-o", "t.json"), "--device and --virtual exclude each other"),
        (("--noise", "0.1", "-o", "t.json"), "--noise is for --virtual"),
        (("--virtual", "rmbp-gt650m", "--rel-tol", "0", "-o", "t.json"), "--rel-tol 0.0: a part of the mean"),
        (("--virtual", "rmbp-gt650m", "--rel-tol", "nan", "-o", "t.json"), "--rel-tol nan"),
        (("--virtual", "rmbp-gt650m", "-o", "t.txt"), "must end in .json"),
        (("--virtual", "rmbp-gt650m", "-o", "no/such/folder/t.json"), "cannot write the cost table"),
    ],
)
def test_bad_options_of_the_suite(
    measure: Runner, arguments: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = measure("opencl", *arguments)
    assert done.code == 2
    assert message in done.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--shape", "64"), "samples read a float array of two dimensions"),
        (("--shape", "64x"), "a shape is numbers with x between"),
        (("--wg", "7"), "work-group size 7 does not divide"),
        (("--rel-tol", "2"), "--rel-tol 2.0: a part of the mean"),
        (("-o", "no/such/folder/q.csv"), "cannot write the histogram"),
    ],
)
def test_bad_options_of_the_evaluation(estimate: Runner, arguments: tuple[str, ...], message: str) -> None:
    done = estimate("--evaluate", "--virtual", "rmbp-gt650m", *TABLE, "--samples", "1", *arguments)
    assert done.code == 2
    assert message in done.err


@pytest.mark.parametrize("name", ["measure", "estimate"])
def test_without_opencl_the_remedy_is_named(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "pyopencl", None)
    arguments = {
        "measure": ("opencl", "-o", tmp_path / "t.json"),
        "estimate": ("--evaluate", *TABLE),
    }
    done = Runner(name, capsys)(*arguments[name])
    assert done.code == 4
    assert "pip install pyopencl pocl-binary-distribution" in done.err
    assert len(done.err.splitlines()) == 1


def test_points_are_saved_now_and_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, measure: Runner) -> None:
    monkeypatch.setattr(cost_table, "_SECONDS_PER_SAVE", 0.0)
    seen: list[dict[str, bool]] = []
    plain = cost_table._Keeper.save

    def save(self: cost_table._Keeper, **how: bool) -> None:
        seen.append(how)
        plain(self, **how)

    monkeypatch.setattr(cost_table._Keeper, "save", save)
    done = measure("opencl", "--virtual", "rmbp-gt650m", "--quick", "--int-chain", "fold", "-o", tmp_path / "t.json")
    assert done.code == 0
    assert len(seen) > 100
    assert seen[-1] == {"is_complete": True}
