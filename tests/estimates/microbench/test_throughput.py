"""The throughput microbenchmarks: that they compile and keep every operation, and what is made of their times."""

import shutil
import subprocess
from fractions import Fraction
from pathlib import Path

import pytest

from makespan.estimates.microbench import samples
from makespan.estimates.microbench.fit import fit_throughput
from makespan.estimates.microbench.on_opencl import measure_throughput
from makespan.estimates.microbench.programs import UNROLLED, operations, throughput_source
from makespan.estimates.microbench.samples import THROUGHPUT, MicrobenchSample
from makespan.estimates.opencl import Opened
from makespan.host.errors import InputError, MeasurementError
from makespan.model.machine import gpus
from tests.command import Runner

HD6970 = gpus.find_gpu("hd6970")


def timed(operation: str, rate: int, *, components: int = 1, factor: float = 1) -> MicrobenchSample:
    """A run of 2^20 work-items with 1000 operations on 24 compute units at 880 MHz, at so many per cycle."""
    work = 2**20 * 1000 * components
    seconds = Fraction(work, rate * 880 * 10**6 * 24) * Fraction(factor)
    return MicrobenchSample((operation,), (1000 * components, 2**20), seconds, in_seconds=True)


def throughput_csv(*several: MicrobenchSample) -> str:
    return samples.text(several, THROUGHPUT)


def test_the_median_of_the_runs_is_taken() -> None:
    runs = [timed("f32_add", 21, factor=factor) for factor in (1.02, 1, 0.99)]
    (found,) = fit_throughput(runs, HD6970, "test")
    assert found.key == "hong_kim.throughput.f32_add"
    assert found.value == 21


def test_vectors_count_their_components() -> None:
    (found,) = fit_throughput([timed("f32_add4", 40, components=4)], HD6970, "test")
    assert found.key == "hong_kim.vector_throughput.f32_add"
    assert found.value == 40
    assert found.error is None


def test_runs_that_differ_are_refused_unless_forced() -> None:
    runs = [timed("sin", 1), timed("sin", 1, factor=1.3)]
    with pytest.raises(MeasurementError, match=r"sin: its runs differ by 2\d\.\d% of their median"):
        fit_throughput(runs, HD6970, "test")
    assert fit_throughput(runs, HD6970, "test", force=True)[0].doubts


def test_a_fit_completes_the_description_of_a_gpu(microbench: Runner, tmp_path: Path) -> None:
    file, mine = tmp_path / "samples.csv", tmp_path / "my.toml"
    file.write_text(throughput_csv(timed("f32_add", 32), timed("f32_div4", 4, components=4)))
    done = microbench("throughput", "--fit", file, "--gpu", "hd6970", "--gpu-out", mine)
    assert done.code == 0, done
    found = gpus.find_gpu(str(mine))
    assert found.number("hong_kim.throughput.f32_add") == pytest.approx(32)
    assert found.number("hong_kim.vector_throughput.f32_div") == pytest.approx(4)
    assert found.number("hong_kim.throughput.f32_mul") == 22


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("f32_add,1000,1048576", ":2: 3 values, the header has 4"),
        ("f32_add,1000,1048576,0", ":2: '0' is not a time above 0"),
        ("f32_add,0,1048576,1", ":2: '0' is not a whole number of at least 1"),
    ],
)
def test_samples_that_cannot_be_are_refused_with_their_line(row: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "samples.csv").write_text(f"operation,operations,global_size,seconds\n{row}\n")
    with pytest.raises(InputError) as error:
        samples.read(tmp_path / "samples.csv", THROUGHPUT)
    assert said in str(error.value)


def test_an_operation_that_no_description_knows_is_refused(microbench: Runner, tmp_path: Path) -> None:
    (tmp_path / "samples.csv").write_text(throughput_csv(timed("f32_cbrt", 2)))
    done = microbench("throughput", "--fit", tmp_path / "samples.csv", "--gpu", "hd6970")
    assert done.code == 2
    assert "no place for operation 'f32_cbrt'; known: f32_add, " in done.err


@pytest.mark.parametrize("language", ["cuda", "opencl"])
def test_programs_are_written_into_a_folder(language: str, microbench: Runner, tmp_path: Path) -> None:
    done = microbench("throughput", "--emit", language, "-o", tmp_path)
    assert done.code == 0, done
    (written,) = tmp_path.iterdir()
    assert "$" not in written.read_text()


def compiled(tool: str, *arguments: object) -> None:
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed")
    done = subprocess.run([tool, *map(str, arguments)], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr


def test_the_cuda_program_compiles_and_keeps_every_operation(tmp_path: Path) -> None:
    source, ptx = tmp_path / "throughput.cu", tmp_path / "throughput.ptx"
    source.write_text(throughput_source("cuda")["throughput.cu"])
    compiled("nvcc", "-O3", "-arch=sm_75", "-Werror", "all-warnings", "-ptx", "-o", ptx, source)
    bodies = {part.split("(")[0].strip(): part for part in ptx.read_text().split(".entry ")[1:]}
    assert set(bodies) == {f"run_{name}" for name in operations("cuda")}
    for name, opcode in (("f32_add", "add"), ("f32_mul", "mul"), ("f32_div", "div"), ("native_sin", "sin.approx")):
        assert UNROLLED <= bodies[f"run_{name}"].count(f"{opcode}.") < UNROLLED + 8
    assert 4 * UNROLLED <= bodies["run_f32_mul4"].count("mul.") < 4 * UNROLLED + 8


def test_the_opencl_kernels_run_and_take_time(opencl_device: Opened) -> None:
    several = list(measure_throughput(opencl_device, rounds=2, repeats=1))
    assert [sample.what for sample in several] == [(name,) for name in operations("opencl")]
    assert all(0 < sample.time < 60 for sample in several)
