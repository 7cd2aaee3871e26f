"""The programs of the microbenchmarks: that they compile, keep what they measure, and run."""

import re
import shutil
import struct
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from makespan.estimates.kinds import InstructionKind
from makespan.estimates.microbench import programs, samples
from makespan.estimates.microbench.chains import LENGTHS, LINKS, chain_text, kernels
from makespan.estimates.microbench.on_opencl import measure_memory, measure_throughput
from makespan.estimates.microbench.programs import UNROLLED, Chase, MemoryPlan, ProgramLanguage, operations
from makespan.estimates.microbench.samples import LAUNCH
from makespan.estimates.opencl import Opened
from makespan.estimates.profile.opcodes import kind
from makespan.host.errors import InputError
from makespan.kernels import ptx

SMALL = MemoryPlan(loads=4, warps=(1, 2, 3, 4), steps=(256, 1024), repeats=1, caches=1)


def memory_source(language: ProgramLanguage, plan: MemoryPlan) -> str:
    (source,) = programs.memory_source(language, plan).values()
    return source


def compiled(folder: Path, text: str, *options: str) -> str:
    """The PTX of a program in CUDA, or nothing with other options for the compiler."""
    if shutil.which("nvcc") is None:
        pytest.skip("nvcc is not installed")
    source, out = folder / "program.cu", folder / "program.out"
    source.write_text(text)
    words = ("nvcc", "-O3", "-arch=sm_75", "-Werror", "all-warnings", *(options or ("-ptx",)), "-o", out, source)
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, timeout=600)
    assert (done.returncode, done.stderr) == (0, "")
    return "" if options else out.read_text()


def bodies(text: str) -> dict[str, str]:
    return {part.split("(")[0].strip(): part for part in text.split(".entry ")[1:]}


# memory


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
        text = source.split(f"void {kernel}(")[1].split("\n}\n")[0]
        assert "volatile float *x" in text
        assert [row.strip() for row in text.splitlines() if "x[" in row] == [
            f"float v{k} = x[{index.format(k)}];" for k in range(3)
        ]
        assert "out[i] = v0 + v1 + v2;" in text


@pytest.mark.parametrize("latency", ["chase", "sum"])
def test_the_cuda_program_of_memory_keeps_every_load(latency: Chase, tmp_path: Path) -> None:
    found = bodies(compiled(tmp_path, memory_source("cuda", MemoryPlan(loads=24, latency=latency))))
    loads = [found[kernel].count("ld.global") for kernel in ("latency", "coalesced", "uncoalesced")]
    assert loads == [1, 24, 24]


@pytest.mark.parametrize("language", ["cuda", "opencl"])
def test_the_walk_reads_one_address_after_the_other(language: ProgramLanguage) -> None:
    chase, total = (memory_source(language, MemoryPlan(latency=latency)) for latency in ("chase", "sum"))
    assert chase != total


def test_the_opencl_kernels_of_memory_run_and_take_time(opencl_device: Opened) -> None:
    several = list(measure_memory(opencl_device, SMALL))
    assert len(several) == len(SMALL.steps) + 2 * len(SMALL.warps)
    assert all(sample.in_seconds and 0 < sample.time < 60 for sample in several)


# throughput


def test_the_cuda_program_of_throughput_keeps_every_operation(tmp_path: Path) -> None:
    found = bodies(compiled(tmp_path, programs.throughput_source("cuda")["throughput.cu"]))
    assert set(found) == {f"run_{name}" for name in operations("cuda")}
    for name, opcode in (("f32_add", "add"), ("f32_mul", "mul"), ("f32_div", "div"), ("native_sin", "sin.approx")):
        assert UNROLLED <= found[f"run_{name}"].count(f"{opcode}.") < UNROLLED + 8
    assert 4 * UNROLLED <= found["run_f32_mul4"].count("mul.") < 4 * UNROLLED + 8


def test_the_opencl_kernels_of_throughput_run_and_take_time(opencl_device: Opened) -> None:
    several = list(measure_throughput(opencl_device, rounds=2, repeats=1))
    assert [sample.what for sample in several] == [(name,) for name in operations("opencl")]
    assert all(0 < sample.time < 60 for sample in several)


# instructions


def test_the_chains_have_the_lengths_that_they_say() -> None:
    """As PTX kernels, without the compiler that makes them: each instruction is of its class."""
    several = ((form, name, n, "\n".join(chain_text(form, LINKS[name], n))) for form, name, n in kernels())
    entries = "".join(f".visible .entry {form}_{name}_{n}()\n{{\n{text}\n}}\n" for form, name, n, text in several)
    module = ptx.parse(".version 7.0\n.target sm_75\n.address_size 64\n" + entries, "latency.ptx")
    found = {
        each.name: sum(
            str(kind(i, "latency.ptx")) == each.name.split("_", 1)[1].rpartition("_")[0] for i in each.instructions
        )
        for each in module.kernels
    }
    short, long = LENGTHS
    assert set(found) == {f"{form}_{name}_{n}" for form, name, n in kernels()}
    for form, name, _ in kernels():
        assert found[f"{form}_{name}_{long}"] - found[f"{form}_{name}_{short}"] == long - short, (form, name)


@pytest.mark.parametrize("name", LINKS)
def test_instructions_of_a_chain_wait_for_each_other_and_those_of_a_stream_do_not(name: InstructionKind) -> None:
    for form, links in (("latency", 64), ("delay", 2)):
        if form not in LINKS[name].forms:
            continue
        written: dict[str, int] = {}
        for row in chain_text(form, LINKS[name], 64):
            match = re.match(r"\S+ (\w+), (.*);", row)
            if match is None or row.startswith(".reg") or match[1] in ("t", "v", "w", "r", "a", "b"):
                continue
            sources = re.findall(r"\w+", match[2])
            written[match[1]] = 1 + max((written.get(source, 0) for source in sources), default=0)
        deepest = max(depth for register, depth in written.items() if register.startswith(("x", "p")))
        begun = 1  # the registers are set before
        assert deepest <= begun + links
        assert form == "delay" or deepest == begun + links


INSTRUCTION_BYTES = 16
"""Of machine code, since compute capability 7.0."""


def code_sizes(cubin: Path) -> dict[tuple[str, int], int]:
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


def test_the_machine_code_keeps_the_chains(tmp_path: Path) -> None:
    """An assembler drops what it can prove to be superfluous, such as a shuffle of what all lanes have in common."""
    compiled(tmp_path, programs.instructions_source("cuda")["latency.cu"], "-cubin")
    size = code_sizes(tmp_path / "program.out")
    short, long = LENGTHS
    expanded = {"i64": 2, "i64_mul": 2, "int_div": 10, "f32_div": 5}
    for form, name, _ in kernels():
        more = (size[f"{form}_{name}", long] - size[f"{form}_{name}", short]) / INSTRUCTION_BYTES / (long - short)
        assert more >= expanded.get(name, 1), (form, name)
        assert name in expanded or more == 1, (form, name)


def test_the_ptx_of_a_compiler_keeps_the_chains(tmp_path: Path) -> None:
    text = compiled(tmp_path, programs.instructions_source("cuda")["latency.cu"])
    kept = "\n".join(re.findall(r"\.visible \.entry (?:latency|delay)_\w+\(.*?\n\}\n", text, re.DOTALL))
    assert len(re.findall(r"fma\.rn\.f32", kept)) == 2 * sum(LENGTHS)
    assert len(re.findall(r"bar\.sync 0;", kept)) >= sum(LENGTHS)
    for name, link in LINKS.items():
        opcode = link.steps[0].split()[0]
        count = len(re.findall(rf"{re.escape(opcode)} ", kept))
        assert count >= len(link.forms) * sum(LENGTHS) // len(link.steps), name


def test_programs_that_there_are_not_are_refused() -> None:
    with pytest.raises(InputError, match="the benchmark latency has no program in opencl"):
        programs.instructions_source("opencl")


# launches, and what all have in common


@pytest.mark.parametrize(
    "text",
    [
        *(pytest.param(memory_source("cuda", MemoryPlan()), id="memory"),),
        *(pytest.param(programs.launch_source("cuda")["launch.cu"], id="launch"),),
    ],
)
def test_a_host_compiles(text: str, tmp_path: Path) -> None:
    compiled(tmp_path, text, "-c")


@pytest.mark.skipif(find_spec("pyopencl") is None, reason="no pyopencl")
def test_the_opencl_benchmark_of_launches_runs(tmp_path: Path) -> None:
    for name, text in programs.launch_source("opencl", max_warps=1).items():
        (tmp_path / name).write_text(text)
    command = [sys.executable, str(tmp_path / "launch_opencl.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 4:
        pytest.skip("no OpenCL device")
    assert done.returncode == 0, done.stderr
    (tmp_path / "empty.csv").write_text(done.stdout)
    assert {row.what for row in samples.read(tmp_path / "empty.csv", LAUNCH)} == {("1",)}


def test_the_opencl_programs_are_python() -> None:
    for name, text in programs.launch_source("opencl").items():
        if name.endswith(".py"):
            compile(text, name, "exec")
