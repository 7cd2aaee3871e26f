"""The memory microbenchmarks: what they measure on a memory whose parameters are known, and that they compile."""

import json
import shutil
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

from makespan.estimates.microbench import programs, samples
from makespan.estimates.microbench.fit import Method, bandwidth_departure, fit_memory
from makespan.estimates.microbench.on_opencl import measure_memory
from makespan.estimates.microbench.parameter import Parameter
from makespan.estimates.microbench.programs import Chase, MemoryPlan, ProgramLanguage
from makespan.estimates.microbench.samples import MEMORY, MicrobenchSample
from makespan.estimates.opencl import Opened
from makespan.host.errors import InputError, MeasurementError
from makespan.model.machine import gpus
from tests.command import Runner
from tests.estimates.microbench.virtual_memory import DepartureQueue

REQUESTS = (32, 64, 128, 256)
QUADRO = DepartureQueue(latency=420, departure_coal=4, departure_uncoal=10, uncoal_per_mw=32)
GTX280 = DepartureQueue(latency=450, departure_coal=4, departure_uncoal=40, uncoal_per_mw=12)


def described(transactions: int, **known: float) -> gpus.Gpu:
    """A GPU of which a request has so many transactions."""
    data = {"warp_size": 32, "hong_kim.uncoal_per_mw": transactions, **known}
    return gpus.Gpu("test", {key: gpus.gpu_datum(key, value, source="test") for key, value in data.items()})


def memory_csv(several: tuple[MicrobenchSample, ...]) -> str:
    return samples.text(several, MEMORY)


def memory_source(language: ProgramLanguage, plan: MemoryPlan) -> str:
    (source,) = programs.memory_source(language, plan).values()
    return source


def numbers(parameters: tuple[Parameter, ...]) -> dict[str, Fraction]:
    return {found.key.removeprefix("hong_kim."): found.value for found in parameters}


def recovered(
    several: tuple[MicrobenchSample, ...], per_request: int, *, method: Method = "slope", force: bool = False
) -> dict[str, Fraction]:
    return numbers(fit_memory(several, described(per_request), "test", method=method, force=force))


# a memory whose parameters are known


@pytest.mark.parametrize(
    ("memory", "coalesced", "uncoalesced"),
    [
        (QUADRO, [544, 672, 928, 1440], [10650, 20890, 41370, 82330]),
        (GTX280, [574, 702, 958, 1470], [15770, 31130, 61850, 123290]),
    ],
    ids=["hong_kim_isca09_quadro_fx5600", "hong_kim_isca09_gtx280"],
)
def test_parameters_are_recovered_exactly_from_a_departure_queue(
    memory: DepartureQueue, coalesced: list[int], uncoalesced: list[int]
) -> None:
    assert [memory.run("coalesced", count) for count in REQUESTS] == coalesced
    assert [memory.run("uncoalesced", count) for count in REQUESTS] == uncoalesced
    truth = {
        "mem_ld": memory.latency,
        "departure_del_coal": memory.departure_coal,
        "departure_del_uncoal": memory.departure_uncoal,
    }
    assert recovered(memory.samples(), memory.uncoal_per_mw) == truth
    departures = tuple(sample for sample in memory.samples() if sample.what != ("latency",))
    assert recovered(departures, memory.uncoal_per_mw) == truth  # the latency is where the line starts


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("memory", [QUADRO, GTX280])
def test_one_percent_of_noise_costs_less_than_two(memory: DepartureQueue, seed: int) -> None:
    noisy = DepartureQueue(
        memory.latency, memory.departure_coal, memory.departure_uncoal, memory.uncoal_per_mw, noise=0.01, seed=seed
    )
    found = recovered(noisy.samples(repeats=10), memory.uncoal_per_mw)
    truth = recovered(memory.samples(), memory.uncoal_per_mw)
    for name, value in truth.items():
        assert float(found[name]) == pytest.approx(float(value), rel=0.02), name


def test_the_overhead_of_a_launch_cancels_but_in_a_single_walk() -> None:
    late = DepartureQueue(420, 4, 10, 32, overhead=5000)
    assert recovered(late.samples(), 32) == recovered(QUADRO.samples(), 32)
    single = recovered(late.samples(steps=(1000,)), 32, method="single")["mem_ld"]
    assert single == Fraction(420 * 1000 + 5000, 1000)


def test_all_sms_measure_the_bandwidth_in_place_of_the_departure_delay() -> None:
    """As in the worked example of Hong and Kim: 16 SMs share 80 GB/s at 1 GHz, 25.6 cycles for each request."""
    crowd = DepartureQueue(420, 4, 10, 32, sms=16, departure_chip=Fraction(16, 10))
    gpu = described(32, clock_ghz=1, sms=16, mem_bw_gbs=80)
    found = fit_memory(crowd.whole_gpu_samples(requests=(4096,)), gpu, "test", method="whole-gpu")
    coalesced, uncoalesced = found
    assert bandwidth_departure(gpu) == Fraction("25.6")
    assert float(coalesced.value) == pytest.approx(25.6, rel=0.01)
    assert coalesced.bandwidth_limited
    assert "bandwidth_limited" in coalesced.datum().source
    assert uncoalesced.bandwidth_limited


def test_all_sms_measure_the_departure_delay_where_bandwidth_is_plenty() -> None:
    wide = DepartureQueue(420, 40, 10, 32, sms=4, departure_chip=Fraction(1))
    gpu = described(32, clock_ghz=1, sms=4, mem_bw_gbs=512)
    found = fit_memory(wide.whole_gpu_samples(requests=(2048,)), gpu, "test", method="whole-gpu")
    assert float(found[0].value) == pytest.approx(40, rel=0.01)
    assert not any(parameter.bandwidth_limited for parameter in found)


def test_times_in_seconds_become_cycles_of_the_clock() -> None:
    several = tuple(
        MicrobenchSample(sample.what, sample.counts, sample.time / (Fraction("1.35") * 10**9), in_seconds=True)
        for sample in QUADRO.samples()
    )
    found = numbers(fit_memory(several, gpus.find_gpu("quadro-fx5600"), "test"))
    assert found == recovered(QUADRO.samples(), 32)


def scattered(times: list[int], pattern: str = "coalesced") -> tuple[MicrobenchSample, ...]:
    return tuple(
        MicrobenchSample((pattern,), (count,), Fraction(time)) for count, time in zip(REQUESTS, times, strict=False)
    )


def test_times_that_are_not_on_a_line_are_refused_unless_forced() -> None:
    several = scattered([544, 1500, 700, 1440])
    with pytest.raises(MeasurementError, match=r"mem_ld: R\^2 is 0\.\d+, below 0\.98: .* --force"):
        recovered(several, 32)
    (latency, departure) = fit_memory(several, described(32), "test", force=True)
    assert "below 0.98" in departure.datum().source
    assert latency.doubts


def test_a_time_that_does_not_grow_is_refused_even_if_forced() -> None:
    with pytest.raises(MeasurementError, match="departure_del_coal would be -"):
        recovered(scattered([1000, 900, 800, 700]), 32, force=True)
    with pytest.raises(MeasurementError, match="departure_del_coal would be 0: the time does not grow"):
        recovered(scattered([500, 500, 500, 500]), 32, force=True)


@pytest.mark.parametrize(
    ("several", "said"),
    [
        (scattered([544, 672, 928]), "coalesced: samples of at least 4 different counts are needed, not 32, 64, 128"),
        (scattered([13440], "latency"), "latency: samples of at least 2 different counts are needed, not 32"),
    ],
)
def test_too_few_samples_are_refused(several: tuple[MicrobenchSample, ...], said: str) -> None:
    with pytest.raises(InputError, match=said):
        recovered(several, 32)


def test_seconds_need_a_clock() -> None:
    seconds = tuple(MicrobenchSample(("latency",), (count,), Fraction(count), in_seconds=True) for count in (1, 2))
    with pytest.raises(InputError, match=r"clock_ghz \[GHz\] is not known"):
        fit_memory(seconds, described(32), "test")


# files


def test_samples_are_read_as_they_were_written(tmp_path: Path) -> None:
    file = tmp_path / "samples.csv"
    file.write_text(memory_csv(QUADRO.samples()))
    assert samples.read(file, MEMORY) == QUADRO.samples()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", ":1: the first line must be pattern,requests,cycles or pattern,requests,seconds, not ''"),
        ("pattern,requests\n", ":1: the first line must be"),
        ("pattern,requests,cycles\n", ": no sample in it"),
        ("pattern,requests,cycles\nlatency,1\n", ":2: 2 values, the header has 3"),
        ("pattern,requests,cycles\nlatenz,1,2\n", ":2: pattern must be one of latency, coalesced, uncoalesced"),
        ("pattern,requests,cycles\nlatency,1.5,2\n", ":2: '1.5' is not a whole number"),
        ("pattern,requests,cycles\nlatency,0,2\n", ":2: '0' is not a whole number of at least 1"),
        ("pattern,requests,cycles\nlatency,1,nan\n", ":2: 'nan' is not a time above 0"),
        ("pattern,requests,cycles\nlatency,1,-3\n", ":2: '-3' is not a time above 0"),
        ("pattern,requests,cycles\nlatency,1,0\n", ":2: '0' is not a time above 0"),
        ("pattern,requests,cycles\nlatency,1,soon\n", ":2: 'soon' is not a time above 0"),
        ("pattern,requests,cycles\n\n\nlatency,9" + "9" * 50 + ",1\n", ":4: '9999"),
    ],
)
def test_samples_that_cannot_be_are_refused_with_their_line(text: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "samples.csv"
    file.write_text(text)
    with pytest.raises(InputError) as error:
        samples.read(file, MEMORY)
    assert str(error.value).startswith(f"{file}{said}")


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "samples.csv").write_bytes(b"\xff\x80")
    with pytest.raises(InputError, match="cannot read the file of samples: it is not UTF-8 text"):
        samples.read(tmp_path / "samples.csv", MEMORY)
    with pytest.raises(InputError, match="cannot read the file of samples: No such file"):
        samples.read(tmp_path / "none.csv", MEMORY)


# the command


def test_a_fit_completes_the_description_of_a_gpu(microbench: Runner, tmp_path: Path) -> None:
    (tmp_path / "samples.csv").write_text(memory_csv(GTX280.samples()))
    mine = tmp_path / "my.toml"
    (tmp_path / "before.toml").write_text(gpus.gpu_text(described(12)))
    done = microbench("memory", "--fit", tmp_path / "samples.csv", "--gpu", tmp_path / "before.toml", "--gpu-out", mine)
    assert done.code == 0, done
    found = gpus.find_gpu(str(mine))
    assert found.number("hong_kim.mem_ld") == 450
    assert found.number("hong_kim.departure_del_uncoal") == 40
    assert found.datum("hong_kim.departure_del_coal").status is gpus.DatumStatus.MEASURED
    assert "standard error 0, R^2 1.000000" in found.datum("hong_kim.departure_del_coal").source
    assert "R^2 1.000000" in done.out


def test_a_fit_as_json(microbench: Runner, tmp_path: Path) -> None:
    (tmp_path / "samples.csv").write_text(memory_csv(QUADRO.samples()))
    done = microbench("memory", "--fit", tmp_path / "samples.csv", "--gpu", "isca09-example", "--format", "json")
    found = {parameter["key"]: parameter for parameter in json.loads(done.out)["parameters"]}
    assert found["hong_kim.mem_ld"]["value"] == 420
    assert found["hong_kim.departure_del_uncoal"]["r_squared"] == 1
    assert found["hong_kim.departure_del_uncoal"]["bandwidth_limited"] is False


def test_a_bad_fit_is_a_measurement_that_failed(microbench: Runner, tmp_path: Path) -> None:
    (tmp_path / "samples.csv").write_text(memory_csv(scattered([544, 1500, 700, 1440])))
    ask = ("memory", "--fit", tmp_path / "samples.csv", "--gpu", "isca09-example")
    refused = microbench(*ask)
    assert (refused.code, len(refused.err.splitlines())) == (4, 1)
    assert microbench(*ask, "--force").code == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "give one of --emit, --run, --fit"),
        (("--emit", "ptx", "--run"), "give one of --emit, --run, --fit"),
        (("--emit", "ptx"), "-o is missing"),
        (("--emit", "ptx", "--gpu", "gtx280"), "--gpu, --gpu-out and --force are for --fit"),
        (("--fit", "none.csv"), "--gpu is missing"),
        (("--fit", "none.csv", "--gpu", "gtx280", "-o", "x"), "-o is for --emit and --run"),
    ],
)
def test_options_that_make_no_sense_are_refused(microbench: Runner, words: tuple[str, ...], said: str) -> None:
    done = microbench("memory", *words)
    assert done.code == 2
    assert said in done.err


# programs


@pytest.mark.parametrize("language", ["cuda", "opencl", "ptx"])
def test_programs_are_written_into_a_folder(language: str, microbench: Runner, tmp_path: Path) -> None:
    if language == "ptx" and shutil.which("nvcc") is None:
        pytest.skip("nvcc is not installed")
    done = microbench("memory", "--emit", language, "-o", tmp_path / "new" / "folder")
    assert done.code == 0, done
    suffixes = {"cuda": [".cu"], "opencl": [".cl"], "ptx": [".cu", ".ptx"]}[language]
    written = sorted((tmp_path / "new" / "folder").iterdir())
    assert [path.name for path in written] == [f"memory{suffix}" for suffix in suffixes]
    assert done.out == "".join(f"written: {path}\n" for path in written)
    assert not any("$" in path.read_text() for path in written if path.suffix != ".ptx")


def test_without_a_compiler_there_is_no_ptx(
    microbench: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("makespan.kernels.ptx.cuda.nvrtc_library", lambda: None)
    monkeypatch.setattr("shutil.which", lambda _: None)
    done = microbench("memory", "--emit", "ptx", "-o", tmp_path)
    assert (done.code, "no CUDA compiler" in done.err) == (2, True)


def test_the_strides_of_the_departure_kernels() -> None:
    """Consecutive threads have consecutive addresses where coalesced, and a segment each where not."""
    source = memory_source("cuda", MemoryPlan(loads=2))
    coalesced, uncoalesced = source.split("void coalesced")[1].split("void uncoalesced")
    assert "v1 = load(x + 1 * h + i);" in coalesced
    assert "v1 = load(x + (1 * h + i) * 33);" in uncoalesced.split("void link")[0]


def test_the_opencl_kernels_keep_every_load() -> None:
    """Each is read from volatile memory, and their sum leaves the kernel."""
    source = memory_source("opencl", MemoryPlan(loads=3))
    for kernel, index in (("coalesced", "{} * h + i"), ("uncoalesced", "({} * h + i) * 33")):
        body = source.split(f"void {kernel}(")[1].split("\n}\n")[0]
        assert "volatile float *x" in body
        assert [line.strip() for line in body.splitlines() if "x[" in line] == [
            f"float v{k} = x[{index.format(k)}];" for k in range(3)
        ]
        assert "out[i] = v0 + v1 + v2;" in body


def compiled(tool: str, *arguments: object) -> None:
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed")
    done = subprocess.run([tool, *map(str, arguments)], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr


def loads_of(ptx: str, kernel: str) -> int:
    (body,) = (part for part in ptx.split(".entry ")[1:] if part.startswith(f"{kernel}("))
    return body.count("ld.global")


@pytest.mark.parametrize("latency", ["chase", "sum"])
def test_the_cuda_program_compiles_and_keeps_every_load(latency: Chase, tmp_path: Path) -> None:
    source, ptx = tmp_path / "memory.cu", tmp_path / "memory.ptx"
    source.write_text(memory_source("cuda", MemoryPlan(loads=24, latency=latency)))
    compiled("nvcc", "-O3", "-arch=sm_75", "-Werror", "all-warnings", "-ptx", "-o", ptx, source)
    compiled("ptxas", "-arch=sm_75", "-o", tmp_path / "memory.cubin", ptx)
    text = ptx.read_text()
    assert [loads_of(text, kernel) for kernel in ("latency", "coalesced", "uncoalesced")] == [1, 24, 24]


def test_the_cuda_program_has_a_host_that_compiles(tmp_path: Path) -> None:
    source = tmp_path / "memory.cu"
    source.write_text(memory_source("cuda", MemoryPlan()))
    compiled("nvcc", "-arch=sm_75", "-Werror", "all-warnings", "-c", "-o", tmp_path / "memory.o", source)


@pytest.mark.parametrize("benchmark", ["memory", "latency", "throughput", "launch"])
def test_the_ptx_assembles(benchmark: str, microbench: Runner, tmp_path: Path) -> None:
    if shutil.which("nvcc") is None:
        pytest.skip("nvcc is not installed")
    done = microbench(benchmark, "--emit", "ptx", "-o", tmp_path)
    assert done.code == 0, done
    compiled("ptxas", "-O0", "-arch=sm_75", "-o", tmp_path / "out.cubin", tmp_path / f"{benchmark}.ptx")


@pytest.mark.parametrize("language", ["cuda", "opencl"])
def test_the_walk_reads_one_address_after_the_other(language: ProgramLanguage) -> None:
    chase, total = (memory_source(language, MemoryPlan(latency=latency)) for latency in ("chase", "sum"))
    assert chase != total


SMALL = MemoryPlan(loads=4, warps=(1, 2, 3, 4), steps=(256, 1024), repeats=1, caches=1)


def test_the_opencl_kernels_run_and_take_time(opencl_device: Opened) -> None:
    several = list(measure_memory(opencl_device, SMALL))
    assert len(several) == len(SMALL.steps) + 2 * len(SMALL.warps)
    assert all(sample.in_seconds and 0 < sample.time < 60 for sample in several)


def test_samples_of_an_opencl_device_can_be_fitted(
    microbench: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyopencl")
    monkeypatch.setattr(programs, "MemoryPlan", lambda *_, **__: SMALL)
    done = microbench("memory", "--run", "-o", tmp_path / "samples.csv")
    if done.code == 4:
        pytest.skip(done.err)
    assert done.code == 0, done
    assert len(samples.read(tmp_path / "samples.csv", MEMORY)) == 2 + 2 * 4
    fitted = microbench("memory", "--fit", tmp_path / "samples.csv", "--gpu", "hd6970", "--force")
    assert fitted.code in (0, 4), fitted  # times of a CPU need not grow with its requests


@pytest.mark.parametrize("what", ["memory", "throughput"])
def test_without_opencl_nothing_is_measured(what: str, microbench: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyopencl", None)
    done = microbench(what, "--run")
    assert done.code == 4
    assert len(done.err.splitlines()) == 1
    assert "pyopencl" in done.err
