"""`makespan measure memory|throughput|latency|launch`: programs written, samples taken, descriptions completed."""

import json
import re
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from makespan.estimates.microbench import programs, samples
from makespan.estimates.microbench.samples import INSTRUCTIONS, LAUNCH, MEMORY, THROUGHPUT
from makespan.model.machine import gpus
from tests.command import Runner
from tests.estimates.microbench.test_fits import EXPECTED, KNOWN, described, scattered, timed
from tests.estimates.microbench.test_programs import SMALL
from tests.estimates.microbench.virtual_memory import GTX280, QUADRO

needs_nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed")


@pytest.fixture
def csv(tmp_path: Path) -> Path:
    return tmp_path / "samples.csv"


# programs


@pytest.mark.parametrize(
    ("name", "language", "suffixes"),
    [
        ("memory", "cuda", [".cu"]),
        ("memory", "opencl", [".cl"]),
        ("throughput", "cuda", [".cu"]),
        ("throughput", "opencl", [".cl"]),
        ("latency", "cuda", [".cu"]),
        *(
            pytest.param(name, "ptx", [".cu", ".ptx"], marks=needs_nvcc)
            for name in ("memory", "latency", "throughput", "launch")
        ),
    ],
)
def test_programs_are_written_into_a_folder(
    name: str, language: str, suffixes: list[str], measure: Runner, tmp_path: Path
) -> None:
    done = measure(name, "--emit", language, "-o", tmp_path / "new" / "folder")
    assert done.code == 0, done
    written = sorted((tmp_path / "new" / "folder").iterdir())
    assert [path.name for path in written] == [f"{name}{suffix}" for suffix in suffixes]
    assert done.out == "".join(f"written: {path}\n" for path in written)
    assert not any("$" in path.read_text() for path in written if path.suffix != ".ptx")
    if language == "ptx" and (ptxas := shutil.which("ptxas")):
        command = [ptxas, "-O0", "-arch=sm_75", "-o", str(tmp_path / "out.cubin"), str(written[1])]
        assert subprocess.run(command, capture_output=True, timeout=600).returncode == 0


def test_without_a_compiler_there_is_no_ptx(measure: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("makespan.kernels.ptx.cuda.nvrtc_library", lambda: None)
    monkeypatch.setattr("shutil.which", lambda _: None)
    done = measure("memory", "--emit", "ptx", "-o", tmp_path)
    assert (done.code, "no CUDA compiler" in done.err) == (2, True)


# fits


def test_memory_completes_the_description_of_a_gpu(measure: Runner, tmp_path: Path, csv: Path) -> None:
    csv.write_text(samples.text(GTX280.samples(), MEMORY))
    before, mine = tmp_path / "before.toml", tmp_path / "my.toml"
    before.write_text(gpus.gpu_text(described(12)))
    done = measure("memory", "--fit", csv, "--gpu", before, "--gpu-out", mine)
    assert done.code == 0, done
    found = gpus.find_gpu(str(mine))
    assert found.number("hong_kim.mem_ld") == 450
    assert found.number("hong_kim.departure_del_uncoal") == 40
    assert found.datum("hong_kim.departure_del_coal").status is gpus.DatumStatus.MEASURED
    assert "standard error 0, R^2 1.000000" in found.datum("hong_kim.departure_del_coal").source
    assert "R^2 1.000000" in done.out


def test_a_fit_as_json(measure: Runner, csv: Path) -> None:
    csv.write_text(samples.text(QUADRO.samples(), MEMORY))
    done = measure("memory", "--fit", csv, "--gpu", "isca09-example", "--format", "json")
    found = {parameter["key"]: parameter for parameter in json.loads(done.out)["parameters"]}
    assert found["hong_kim.mem_ld"]["value"] == 420
    assert found["hong_kim.departure_del_uncoal"]["r_squared"] == 1
    assert found["hong_kim.departure_del_uncoal"]["bandwidth_limited"] is False


def test_throughputs_complete_the_description_of_a_gpu(measure: Runner, tmp_path: Path, csv: Path) -> None:
    mine = tmp_path / "my.toml"
    csv.write_text(samples.text([timed("f32_add", 32), timed("f32_div4", 4, components=4)], THROUGHPUT))
    done = measure("throughput", "--fit", csv, "--gpu", "hd6970", "--gpu-out", mine)
    assert done.code == 0, done
    found = gpus.find_gpu(str(mine))
    assert found.number("hong_kim.throughput.f32_add") == pytest.approx(32)
    assert found.number("hong_kim.vector_throughput.f32_div") == pytest.approx(4)
    assert found.number("hong_kim.throughput.f32_mul") == 22


def test_an_operation_that_no_description_knows_is_refused(measure: Runner, csv: Path) -> None:
    csv.write_text(samples.text([timed("f32_cbrt", 2)], THROUGHPUT))
    done = measure("throughput", "--fit", csv, "--gpu", "hd6970")
    assert done.code == 2
    assert "no place for operation 'f32_cbrt'; known: f32_add, " in done.err


def test_latencies_complete_the_description_of_a_gpu(measure: Runner, tmp_path: Path, csv: Path) -> None:
    csv.write_text(samples.text(KNOWN.samples(), INSTRUCTIONS))
    made = tmp_path / "my.toml"
    assert measure("latency", "--fit", csv, "--gpu=gtx1050", "--gpu-out", made).code == 0
    completed = gpus.find_gpu(str(made))
    assert completed.number("kleimenov_popova.latency.f64") == pytest.approx(48)
    assert completed.datum("kleimenov_popova.latency.f64").status == gpus.DatumStatus.MEASURED
    assert completed.number("sms") == 5
    document = json.loads(measure("latency", "--fit", csv, "--format=json").out)
    assert {entry["key"] for entry in document["parameters"]} == {f"kleimenov_popova.{name}" for name in EXPECTED}


def test_a_gpu_file_that_finds_no_room_is_still_what_it_was(measure: Runner, tmp_path: Path, csv: Path) -> None:
    csv.write_text(samples.text(KNOWN.samples(), INSTRUCTIONS))
    made = tmp_path / "my.toml"
    words = ("latency", "--fit", csv, "--gpu-out", made, "--gpu")
    assert measure(*words, "gtx1050").code == 0
    before, (soft, hard) = made.read_bytes(), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        done = measure(*words, made)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (done.code, done.err) == (2, f"makespan: {made}: cannot write the GPU file: File too large\n")
    assert [path.read_bytes() for path in tmp_path.glob("*my.toml*")] == [before]


def test_launches_complete_the_description_of_a_gpu(measure: Runner, tmp_path: Path, csv: Path) -> None:
    csv.write_text(samples.text(KNOWN.launches(), LAUNCH))
    made = tmp_path / "my.toml"
    assert measure("launch", "--fit", csv, "--gpu=gtx1050", "--gpu-out", made).code == 0
    assert gpus.find_gpu(str(made)).number("kleimenov_popova.launch.4.x1") == pytest.approx(3e-9)
    csv.write_text("blocks,warps_per_block,seconds\n1,2,1e-6\n")
    failed = measure("launch", "--fit", csv)
    assert (failed.code, failed.out) == (2, "")
    assert "2: samples of at least 2 different counts are needed, not 1" in failed.err


def test_a_fitted_delay_takes_the_place_of_the_rule_that_told_it(measure: Runner, tmp_path: Path, csv: Path) -> None:
    key = "kleimenov_popova.units.f64"
    bare, made = tmp_path / "bare.toml", tmp_path / "x.toml"
    bare.write_text(gpus.gpu_text(gpus.Gpu("bare", {key: gpus.gpu_datum(key, 1, source="test")})))
    csv.write_text("measure,name,count,cycles\ndelay,f64,64,2048\ndelay,f64,192,6144\n")
    assert measure("latency", "--fit", csv, "--gpu", bare, "--gpu-out", made).code == 0
    assert dict(gpus.find_gpu(str(made)).data).keys() == {"kleimenov_popova.delay.f64"}


NOISY = {
    "memory": samples.text(scattered([544, 1500, 700, 1440]), MEMORY),
    "launch": "blocks,warps_per_block,seconds\n1,1,1e-6\n10,1,9e-6\n100,1,2e-6\n1000,1,9e-6\n",
    "latency": "measure,name,count,cycles\n"
    + "".join(f"latency,f32,{64 * n},{time}\n" for n, time in enumerate((900, 200, 950, 700, 990), 1)),
}


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("memory", "mem_ld: R^2 is 0."),
        ("launch", "blocks of 1 warps: the times scatter"),
        ("latency", "latency.f32: R^2 is 0."),
    ],
)
def test_noise_is_refused_but_by_force(name: str, said: str, measure: Runner, tmp_path: Path, csv: Path) -> None:
    csv.write_text(NOISY[name])
    made = tmp_path / "made.toml"
    words = (name, "--fit", csv, "--gpu-out", made, "--gpu", "isca09-example")
    refused = measure(*words)
    assert (refused.code, refused.out, made.exists()) == (4, "", False)
    assert said in refused.err
    assert "or --force" in refused.err
    assert len(refused.err.splitlines()) == 1
    forced = measure(*words, "--force")
    assert forced.code == 0
    assert "warning: " in forced.out
    assert said.rpartition(": ")[2] in made.read_text()


def test_flat_launch_times_are_a_line(measure: Runner, tmp_path: Path, csv: Path) -> None:
    csv.write_text("blocks,warps_per_block,seconds\n1,1,5e-6\n10,1,5.1e-6\n100,1,4.9e-6\n1000,1,5.1e-6\n")
    made = tmp_path / "my.toml"
    done = measure("launch", "--fit", csv, "--gpu-out", made)
    assert (done.code, "warning" in done.out) == (0, False)
    for text in (done.out, made.read_text()):
        assert re.search(r"times about it by 2\.\d+% of their mean", text)
    assert "+-" in done.out
    csv.write_text("blocks,warps_per_block,seconds\n1,1,5e-6\n10,1,5e-6\n100,1,5e-6\n")
    assert measure("launch", "--fit", csv).code == 0


# runs


def test_samples_of_an_opencl_device_can_be_fitted(measure: Runner, csv: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyopencl")
    monkeypatch.setattr(programs, "MemoryPlan", lambda *_, **__: SMALL)
    done = measure("memory", "--run", "-o", csv)
    if done.code == 4:
        pytest.skip(done.err)
    assert done.code == 0, done
    assert len(samples.read(csv, MEMORY)) == 2 + 2 * 4
    fitted = measure("memory", "--fit", csv, "--gpu", "hd6970", "--force")
    assert fitted.code in (0, 4), fitted  # times of a CPU need not grow with its requests


@pytest.mark.parametrize("what", ["memory", "throughput"])
def test_without_opencl_nothing_is_measured(what: str, measure: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyopencl", None)
    done = measure(what, "--run")
    assert done.code == 4
    assert len(done.err.splitlines()) == 1
    assert "pyopencl" in done.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("memory", "give one of --emit, --run, --fit"),
        ("memory --emit ptx --run", "give one of --emit, --run, --fit"),
        ("memory --emit ptx", "-o is missing"),
        ("memory --emit ptx --gpu gtx280", "--gpu, --gpu-out and --force are for --fit"),
        ("memory --fit none.csv", "--gpu is missing"),
        ("memory --fit none.csv --gpu gtx280 -o x", "-o is for --emit and --run"),
        ("latency", "give one of --emit, --fit"),
        ("latency --emit=cuda", "-o is missing"),
        ("latency --emit=cuda --gpu=gtx1050 -o x", "--gpu, --gpu-out and --force are for --fit"),
        ("latency --emit=cuda --force -o x", "--force are for --fit"),
        ("launch --fit=nowhere.csv", "nowhere.csv: cannot read"),
        ("launch --fit=nowhere.csv --gpu-out=mine", "--gpu-out 'mine': the name must end in .toml"),
        ("memory --fit=nowhere.csv --gpu-out=mine.tml", "the name must end in .toml"),
        ("launch --fit=nowhere.csv -o x", "-o is for --emit and --run"),
    ],
)
def test_bad_use_is_one_line_and_exit_2(
    words: str, said: str, measure: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = measure(*words.split())
    assert (done.code, done.out) == (2, "")
    assert said in done.err
    assert len(done.err.splitlines()) == 1
