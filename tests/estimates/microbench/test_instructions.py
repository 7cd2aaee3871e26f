"""Microbenchmarks of the model of Kleimenov and Popova: programs, samples, fits, and a virtual GPU to recover."""

import json
import re
import resource
import shutil
import struct
import subprocess
import sys
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path

import pytest

from makespan.estimates.kinds import InstructionKind
from makespan.estimates.kleimenov_popova import LaunchLine, Levels, Timing
from makespan.estimates.microbench import samples
from makespan.estimates.microbench.chains import LENGTHS, LINKS, body, kernels
from makespan.estimates.microbench.fit import fit_instructions, fit_launch
from makespan.estimates.microbench.programs import instructions_source, launch_source
from makespan.estimates.microbench.samples import INSTRUCTIONS, LAUNCH, MicrobenchSample
from makespan.estimates.profile.opcodes import kind
from makespan.host.errors import InputError, MeasurementError
from makespan.kernels import ptx
from makespan.model.machine import gpus
from tests.command import Runner
from tests.estimates.kleimenov_popova.inputs import gpu
from tests.estimates.microbench.virtual_gpu import VirtualGpu

KNOWN = VirtualGpu(
    timing=Timing(
        {"f32": 6.0, "f64": 48.0, "i32": 5.0, "sfu": 21.0}, {"f32": 1.0, "f64": 32.0, "sfu": 4.0, "global": 2.0}
    ),
    memory=Levels(82, 216, 400, 680),
    bandwidth=Levels(128, 250, 77, 20),
    launch={1: LaunchLine(2e-9, 5e-6), 4: LaunchLine(3e-9, 6e-6)},
)
EXPECTED = {
    **{f"latency.{name}": value for name, value in KNOWN.timing.latencies.items()},
    **{f"delay.{name}": value for name, value in KNOWN.timing.delays.items()},
    **{f"lat_{name}": value for name, value in zip(("L1", "L2", "DRAM", "uncoal"), KNOWN.memory, strict=True)},
    **{f"band_{name}": value for name, value in zip(("L1", "L2", "DRAM", "uncoal"), KNOWN.bandwidth, strict=True)},
}


def sample(measure: str, name: str, count: int, time: float, *, in_seconds: bool = False) -> MicrobenchSample:
    return MicrobenchSample((measure, name), (count,), Fraction(time), in_seconds)


def recovered(virtual: VirtualGpu, **options: int) -> dict[str, float]:
    found = fit_instructions(virtual.samples(**options), gpu(), "virtual")
    return {each.key.removeprefix("kleimenov_popova."): float(each.value) for each in found}


def test_without_noise_every_parameter_is_recovered_exactly() -> None:
    with_overhead = VirtualGpu(KNOWN.timing, KNOWN.memory, KNOWN.bandwidth, overhead=37)
    assert recovered(with_overhead) == pytest.approx(EXPECTED, rel=1e-12)


def test_with_one_percent_of_noise_every_parameter_is_recovered_to_two_percent() -> None:
    for seed in range(5):
        noisy = VirtualGpu(KNOWN.timing, KNOWN.memory, KNOWN.bandwidth, noise=0.01, seed=seed)
        assert recovered(noisy, repeats=60) == pytest.approx(EXPECTED, rel=0.02)


def test_launch_lines_are_recovered() -> None:
    exact = fit_launch(KNOWN.launches(), "virtual")
    values = {each.key.removeprefix("kleimenov_popova.launch."): float(each.value) for each in exact}
    assert values == pytest.approx({"1.x1": 2e-9, "1.x2": 5e-6, "4.x1": 3e-9, "4.x2": 6e-6}, rel=1e-9)
    noisy = VirtualGpu(KNOWN.timing, KNOWN.memory, KNOWN.bandwidth, launch=KNOWN.launch, noise=0.01, seed=3)
    found = fit_launch(noisy.launches(repeats=100), "virtual")
    for each, expected in zip(found, exact, strict=True):
        assert float(each.value) == pytest.approx(float(expected.value), rel=0.02)


def test_a_delay_a_little_below_one_cycle_is_one_and_far_below_is_refused() -> None:
    near = [sample("delay", "f32", count, count * 0.97) for count in (64, 192)]
    assert [each.value for each in fit_instructions(near, gpu(), "test")] == [1]
    with pytest.raises(MeasurementError, match="fewer than 1"):
        fit_instructions([sample("delay", "f32", count, count * 0.5) for count in (64, 192)], gpu(), "test")


def test_samples_that_make_no_line_are_refused() -> None:
    with pytest.raises(InputError, match="latency of f32: samples of at least 2 different counts are needed, not 64"):
        fit_instructions([sample("latency", "f32", 64, 10)], gpu(), "test")
    with pytest.raises(MeasurementError, match=r"latency\.f32 would be 0: the time does not grow with the count"):
        fit_instructions([sample("latency", "f32", 64, 10), sample("latency", "f32", 192, 10)], gpu(), "test")


def test_how_sure_a_figure_is_stands_beside_it_and_in_its_source() -> None:
    times = {64: (380, 390), 192: (1150, 1160), 320: (1920, 1930)}
    some = [sample("latency", "f32", count, time) for count, runs in times.items() for time in runs]
    (found,) = fit_instructions(some, gpu(), "latency, 'my.csv'")
    assert found.error is not None
    assert found.error == pytest.approx(0.0240, abs=1e-3)
    source = found.datum().source
    assert "latency, 'my.csv': slope of a line through 64, 192, 320" in source
    assert "standard error 0.0" in source
    assert "R^2 0.99" in source
    read = [sample("bandwidth", "L2", each.count, float(each.time)) for each in some]
    (band,) = fit_instructions(read, gpu(), "test")
    assert band.error == pytest.approx(found.error / float(found.value) ** 2, rel=1e-6)
    (two,) = fit_instructions(some[::2][:2], gpu(), "test")
    assert (two.error, two.r_squared) == (None, None)
    assert "two times only" in two.datum().source


def test_noise_is_refused_but_by_force(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    microbench = Runner("measure", capsys)
    launches = "blocks,warps_per_block,seconds\n1,1,1e-6\n10,1,9e-6\n100,1,2e-6\n1000,1,9e-6\n"
    (tmp_path / "launch.csv").write_text(launches)
    rows = [
        f"latency,f32,{64 * count},{cycles}" for count, cycles in ((1, 900), (2, 200), (3, 950), (4, 700), (5, 990))
    ]
    (tmp_path / "latency.csv").write_text("\n".join(["measure,name,count,cycles", *rows]))
    for name, said in (("launch", "blocks of 1 warps: the times scatter"), ("latency", "latency.f32: R^2 is 0.")):
        made = tmp_path / f"{name}.toml"
        words = (name, "--fit", tmp_path / f"{name}.csv", "--gpu-out", made)
        refused = microbench(*words)
        assert (refused.code, refused.out, made.exists()) == (4, "", False)
        assert said in refused.err
        assert "or --force" in refused.err
        assert len(refused.err.splitlines()) == 1
        forced = microbench(*words, "--force")
        assert forced.code == 0
        assert "warning: kleimenov_popova." in forced.out
        assert said.rpartition(": ")[2] in made.read_text()


def test_flat_launch_times_are_a_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    flat = "blocks,warps_per_block,seconds\n1,1,5e-6\n10,1,5.1e-6\n100,1,4.9e-6\n1000,1,5.1e-6\n"
    (tmp_path / "flat.csv").write_text(flat)
    made = tmp_path / "my.toml"
    done = Runner("measure", capsys)("launch", "--fit", tmp_path / "flat.csv", "--gpu-out", made)
    assert (done.code, "warning" in done.out) == (0, False)
    for text in (done.out, made.read_text()):
        assert re.search(r"times about it by 2\.\d+% of their mean", text)
    assert "+-" in done.out
    (tmp_path / "still.csv").write_text("blocks,warps_per_block,seconds\n1,1,5e-6\n10,1,5e-6\n100,1,5e-6\n")
    assert Runner("measure", capsys)("launch", "--fit", tmp_path / "still.csv").code == 0


def test_seconds_become_cycles_by_the_clock() -> None:
    some = [sample("latency", "f32", count, count * 6e-9, in_seconds=True) for count in (64, 192)]
    assert [float(each.value) for each in fit_instructions(some, gpu(), "test")] == pytest.approx([6])
    with pytest.raises(InputError, match="clock_ghz"):
        fit_instructions(some, gpus.Gpu("bare", {}), "test")


# programs


def chains(text: str) -> dict[tuple[str, str, int], int]:
    """How many instructions of its class each kernel of a PTX module has more than the shorter one of its kind."""
    module = ptx.parse(text, "latency.ptx")
    found = {}
    for each in module.kernels:
        form, name, count = re.fullmatch(r"(latency|delay)_(\w+)_(\d+)", each.name).groups()  # type: ignore[union-attr]
        of_class = [i for i in each.instructions if kind(i, "latency.ptx") == InstructionKind(name)]
        found[form, name, int(count)] = len(of_class)
    return found


def check_lengths(text: str) -> None:
    """Two kernels that differ in the length of the chain differ in so many instructions of its class."""
    found = chains(text)
    short, long = LENGTHS
    assert {(form, str(name)) for form, name, _ in kernels()} == {(form, name) for form, name, _ in found}
    for form, name, count in found:
        if count == long:
            assert found[form, name, long] - found[form, name, short] == long - short, (form, name)


def test_the_chains_have_the_lengths_that_they_say() -> None:
    """As PTX kernels, without the compiler that makes them."""
    entries = (f".visible .entry {form}_{name}_{n}()\n{{\n{lines(form, name, n)}\n}}\n" for form, name, n in kernels())
    check_lengths(".version 7.0\n.target sm_75\n.address_size 64\n" + "".join(entries))


def lines(form: str, name: InstructionKind, length: int) -> str:
    return "\n".join(body(form, name, length))


@pytest.mark.parametrize("name", LINKS)
def test_instructions_of_a_chain_wait_for_each_other_and_those_of_a_stream_do_not(name: InstructionKind) -> None:
    for form, links in (("latency", 64), ("delay", 2)):
        if form not in LINKS[name].forms:
            continue
        written: dict[str, int] = {}
        for line in body(form, name, 64):
            match = re.match(r"\S+ (\w+), (.*);", line)
            if match is None or line.startswith(".reg") or match[1] in ("t", "v", "w", "r", "a", "b"):
                continue
            sources = re.findall(r"\w+", match[2])
            written[match[1]] = 1 + max((written.get(source, 0) for source in sources), default=0)
        deepest = max(depth for register, depth in written.items() if register.startswith(("x", "p")))
        begun = 1  # the registers are set before
        assert deepest <= begun + links
        assert form == "delay" or deepest == begun + links


INSTRUCTION_BYTES = 16
"""Of machine code, since compute capability 7.0."""


def machine_code(cubin: Path) -> dict[tuple[str, int], int]:
    """The bytes of every kernel in an ELF file of 64 bits, by name and length of its chain."""
    data = cubin.read_bytes()
    (start,) = struct.unpack_from("<Q", data, 0x28)
    count, names = struct.unpack_from("<HH", data, 0x3C)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, start + 64 * number) for number in range(count)]
    found = {}
    for section in sections:
        begin = sections[names][4] + section[0]
        name = data[begin : data.index(b"\0", begin)].decode()
        if match := re.fullmatch(r"\.text\.((?:latency|delay)_\w+)_(\d+)", name):
            found[match[1], int(match[2])] = section[5]
    return found


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc")
def test_the_machine_code_keeps_the_chains(tmp_path: Path) -> None:
    """An assembler drops what it can prove to be superfluous, such as a shuffle of what all lanes have in common."""
    (tmp_path / "latency.cu").write_text(instructions_source("cuda")["latency.cu"])
    command = ["nvcc", "-arch=sm_75", "-cubin", "-o", str(tmp_path / "out.cubin"), str(tmp_path / "latency.cu")]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0
    size = machine_code(tmp_path / "out.cubin")
    short, long = LENGTHS
    expanded = {"i64": 2, "i64_mul": 2, "int_div": 10, "f32_div": 5}
    for form, name, _ in kernels():
        more = (size[f"{form}_{name}", long] - size[f"{form}_{name}", short]) / INSTRUCTION_BYTES / (long - short)
        assert more >= expanded.get(name, 1), (form, name)
        assert name in expanded or more == 1, (form, name)


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc")
def test_the_cuda_compiles_and_its_ptx_keeps_the_chains(tmp_path: Path) -> None:
    (tmp_path / "latency.cu").write_text(instructions_source("cuda")["latency.cu"])
    command = ["nvcc", "-arch=sm_75", "-ptx", "-o", str(tmp_path / "latency.ptx"), str(tmp_path / "latency.cu")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    text = (tmp_path / "latency.ptx").read_text()
    kept = "\n".join(re.findall(r"\.visible \.entry (?:latency|delay)_\w+\(.*?\n\}\n", text, re.DOTALL))
    assert len(re.findall(r"fma\.rn\.f32", kept)) == 2 * sum(LENGTHS)
    assert len(re.findall(r"bar\.sync 0;", kept)) >= sum(LENGTHS)
    for name, link in LINKS.items():
        opcode = link.steps[0].split()[0]
        count = len(re.findall(rf"{re.escape(opcode)} ", kept))
        assert count >= len(link.forms) * sum(LENGTHS) // len(link.steps), name


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc")
def test_the_launch_benchmark_compiles(tmp_path: Path) -> None:
    (tmp_path / "launch.cu").write_text(launch_source("cuda")["launch.cu"])
    command = ["nvcc", "-arch=sm_75", "-o", str(tmp_path / "launch"), str(tmp_path / "launch.cu")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(find_spec("pyopencl") is None, reason="no pyopencl")
def test_the_opencl_benchmark_of_launches_runs(tmp_path: Path) -> None:
    for name, text in launch_source("opencl", max_warps=1).items():
        (tmp_path / name).write_text(text)
    command = [sys.executable, str(tmp_path / "launch_opencl.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 4:
        pytest.skip("no OpenCL device")
    assert done.returncode == 0, done.stderr
    (tmp_path / "empty.csv").write_text(done.stdout)
    assert {row.what for row in samples.read(tmp_path / "empty.csv", LAUNCH)} == {("1",)}


def test_the_opencl_programs_are_python() -> None:
    for name, text in launch_source("opencl").items():
        if name.endswith(".py"):
            compile(text, name, "exec")


def test_programs_that_there_are_not_are_refused() -> None:
    with pytest.raises(InputError, match="the benchmark latency has no program in opencl"):
        instructions_source("opencl")


# samples


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the first line must be"),
        ("measure,name,count\n", "the first line must be"),
        ("measure,name,count,cycles\n", "no sample in it"),
        ("measure,name,count,cycles\nlatency,f32,64\n", ":2: 3 values, the header has 4"),
        ("measure,name,count,cycles\nspeed,f32,64,1\n", ":2: measure must be one of"),
        ("measure,name,count,cycles\nlatency,f33,64,1\n", ":2: latency of 'f33': must be one of"),
        ("measure,name,count,cycles\nlatency,f32,-1,1\n", "is not a whole number"),
        ("measure,name,count,cycles\nlatency,f32,64,nan\n", "is not a time above 0"),
        ("measure,name,count,cycles\nlatency,f32,64,zero\n", "is not a time above 0"),
        ('measure,name,count,cycles\n"\n', "not CSV|values"),
    ],
)
def test_a_file_that_holds_no_samples_is_refused_with_its_line(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text(text)
    with pytest.raises(InputError, match=message):
        samples.read(tmp_path / "s.csv", INSTRUCTIONS)


# command line


def test_the_command_writes_programs_and_fits_their_samples(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    microbench = Runner("measure", capsys)
    assert microbench("latency", "--emit=cuda", "-o", tmp_path / "p").out == f"written: {tmp_path}/p/latency.cu\n"
    rows = [f"{s.what[0]},{s.what[1]},{s.count},{float(s.time)!r}" for s in KNOWN.samples()]
    (tmp_path / "s.csv").write_text("\n".join(["measure,name,count,cycles", *rows]) + "\n")
    made = tmp_path / "my.toml"
    done = microbench("latency", "--fit", tmp_path / "s.csv", "--gpu=gtx1050", "--gpu-out", made)
    assert done.code == 0
    completed = gpus.find_gpu(str(made))
    assert completed.number("kleimenov_popova.latency.f64") == pytest.approx(48)
    assert completed.datum("kleimenov_popova.latency.f64").status == gpus.DatumStatus.MEASURED
    assert completed.number("sms") == 5
    document = json.loads(microbench("latency", "--fit", tmp_path / "s.csv", "--format=json").out)
    assert {entry["key"] for entry in document["parameters"]} == {f"kleimenov_popova.{name}" for name in EXPECTED}


def test_a_gpu_file_that_finds_no_room_is_still_what_it_was(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    microbench, made = Runner("measure", capsys), tmp_path / "my.toml"
    rows = [f"{s.what[0]},{s.what[1]},{s.count},{float(s.time)!r}" for s in KNOWN.samples()]
    (tmp_path / "s.csv").write_text("\n".join(["measure,name,count,cycles", *rows]) + "\n")
    words = ("latency", "--fit", tmp_path / "s.csv", "--gpu-out", made, "--gpu")
    assert microbench(*words, "gtx1050").code == 0
    before, (soft, hard) = made.read_bytes(), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        done = microbench(*words, made)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (done.code, done.err) == (2, f"makespan: {made}: cannot write the GPU file: File too large\n")
    assert [path.read_bytes() for path in tmp_path.glob("*my.toml*")] == [before]


def test_the_command_fits_launches(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    microbench = Runner("measure", capsys)
    rows = [f"{s.count},{s.what[0]},{float(s.time)!r}" for s in KNOWN.launches()]
    (tmp_path / "empty.csv").write_text("\n".join(["blocks,warps_per_block,seconds", *rows]) + "\n")
    made = tmp_path / "my.toml"
    assert microbench("launch", "--fit", tmp_path / "empty.csv", "--gpu=gtx1050", "--gpu-out", made).code == 0
    assert gpus.find_gpu(str(made)).number("kleimenov_popova.launch.4.x1") == pytest.approx(3e-9)
    (tmp_path / "one.csv").write_text("blocks,warps_per_block,seconds\n1,2,1e-6\n")
    failed = microbench("launch", "--fit", tmp_path / "one.csv")
    assert (failed.code, failed.out) == (2, "")
    assert "2: samples of at least 2 different counts are needed, not 1" in failed.err


def test_a_fitted_delay_takes_the_place_of_the_rule_that_told_it(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    key = "kleimenov_popova.units.f64"
    bare = gpus.Gpu("bare", {key: gpus.gpu_datum(key, 1, source="test")})
    (tmp_path / "bare.toml").write_text(gpus.gpu_text(bare))
    (tmp_path / "s.csv").write_text("measure,name,count,cycles\ndelay,f64,64,2048\ndelay,f64,192,6144\n")
    arguments = (
        "latency",
        "--fit",
        tmp_path / "s.csv",
        "--gpu",
        tmp_path / "bare.toml",
        "--gpu-out",
        tmp_path / "x.toml",
    )
    assert Runner("measure", capsys)(*arguments).code == 0
    assert dict(gpus.find_gpu(str(tmp_path / "x.toml")).data).keys() == {"kleimenov_popova.delay.f64"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["latency"], "give one of --emit, --fit"),
        (["latency", "--emit=cuda"], "-o is missing"),
        (["latency", "--emit=cuda", "--gpu=gtx1050", "-o", "x"], "--gpu, --gpu-out and --force are for --fit"),
        (["latency", "--emit=cuda", "--force", "-o", "x"], "--force are for --fit"),
        (["launch", "--fit=nowhere.csv"], "nowhere.csv: cannot read"),
        (["launch", "--fit=nowhere.csv", "--gpu-out=mine"], "--gpu-out 'mine': the name must end in .toml"),
        (["memory", "--fit=nowhere.csv", "--gpu-out=mine.tml"], "the name must end in .toml"),
        (["launch", "--fit=nowhere.csv", "-o", "x"], "-o is for --emit and --run"),
    ],
)
def test_bad_use_is_one_line_and_exit_2(
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    done = Runner("measure", capsys)(*arguments)
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert len(done.err.splitlines()) == 1
