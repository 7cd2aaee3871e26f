"""Every kernel of `ptx/` from its source to the answer of each command, as the machine code of a GPU."""

import json
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from makespan.cli.question_key import question_key
from makespan.host import tool
from makespan.kernels import kernel_file
from makespan.kernels.ptx import cuda
from makespan.many.commands.asking import QuestionRun
from makespan.proof.engines import Limits
from tests.command import Outcome, Runner
from tests.sweep.here import crew_here

SAMPLES = sorted((Path(__file__).parents[2] / "ptx").glob("*.cu"))
LATENCIES = ["global=..600", "atomic=..900", "fetch=..600", "constant-miss=..600"]
ASKS: dict[str, dict[str, object]] = {
    "mandelbrot": {"loop-bound": ["mandelbrot.cu:27=8"]},
    "matmul_tiled": {"block": "16x16", "param": ["n=64"]},
    "nbody": {"param": ["n=64"]},
    "nearest_point": {"param": ["n=33"]},
    "reduction": {"block": 256},
    "spmv_csr": {"loop-bound": ["spmv_csr.cu:29=4"]},
}
"""What a kernel asks for besides one block of a warp, and what keeps it small."""
TASK = """gpu = "rtx-3070"
partition = [{ name = "gpu", policy = "fifo", sms = 1 }]
[[task]]
name = "a"
period = "1ms"
deadline = "1ms"
partition = "gpu"
"""

pytestmark = pytest.mark.skipif(
    None in map(shutil.which, ("nvcc", "gcc")) or None in map(tool.find, ("ptxas", "nvdisasm")),
    reason="nvcc, a host compiler, ptxas and nvdisasm are not all installed",
)
READ, ASSEMBLED = cache(cuda.read), cache(kernel_file.assemble_module)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the commands run; no engine has any time, so that the first bounds and schedules are the answers."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Limits, "elapsed", 1e6)
    return tmp_path


@pytest.fixture
def compiling_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What compilers make of a kernel is made once for all commands."""
    monkeypatch.setattr(cuda, "read", READ)
    monkeypatch.setattr(kernel_file, "assemble_module", ASSEMBLED)


def asked(path: Path) -> dict[str, object]:
    """What is asked of a kernel, by option."""
    return {"source": str(path), "block": 32, "grid": 1, "latency": LATENCIES, **ASKS.get(path.stem, {})}


def toml(table: dict[str, object]) -> str:
    return "".join(f"{name} = {json.dumps(value)}\n" for name, value in table.items())


def words(table: dict[str, object]) -> list[str]:
    """The same on a command line."""
    named = [(name, value) for name, value in table.items() if name != "source"]
    several = [(name, value if isinstance(value, list) else [value]) for name, value in named]
    return [str(table["source"]), *(f"--{name}={one}" for name, values in several for one in values)]


def solved(path: Path, capsys: pytest.CaptureFixture[str]) -> Outcome:
    return Runner("solve", capsys)(*words({**asked(path), "gpu": "rtx-3070"}), "-q")


def reported(path: Path, capsys: pytest.CaptureFixture[str]) -> Outcome:
    return Runner("report", capsys)(*words({**asked(path), "gpu": "rtx-3070"}), "--no-check", "-o", "page.html")


def gated(path: Path, capsys: pytest.CaptureFixture[str]) -> Outcome:
    Path("gate.toml").write_text(toml({**asked(path), "gpu": "rtx-3070", "deadline": "50ms"}))
    return Runner("gate", capsys)("gate.toml")


def analysed(path: Path, capsys: pytest.CaptureFixture[str]) -> Outcome:
    task = {name.replace("-", "_"): value for name, value in asked(path).items() if name != "source"}
    Path("tasks.toml").write_text(TASK + toml({"kernel": str(path), **task}))
    return Runner("schedulability", capsys)("tasks.toml")


@pytest.mark.parametrize("command", [solved, reported, gated, analysed])
@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
@pytest.mark.usefixtures("compiling_once")
def test_every_command_has_an_answer_to_every_shipped_kernel(
    path: Path, command: Callable[[Path, pytest.CaptureFixture[str]], Outcome], capsys: pytest.CaptureFixture[str]
) -> None:
    done = command(path, capsys)
    assert done.code in ((0, 3) if command in (solved, reported) else (0,)), done
    assert "for the machine code on ampere-ga10x, " in " ".join(done.out.split())


def test_what_only_newer_gpus_have_is_compiled_for_them(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each architecture gets its own program, and the machine code of the GPU is that of a question that names it."""
    (folder / "k.cu").write_text(
        "__global__ void k(int *p) {\n#if __CUDA_ARCH__ >= 860\nint own = __reduce_add_sync(~0u, p[threadIdx.x]);\n"
        "#else\nint own = p[threadIdx.x]; for (int i = 16; i; i /= 2) own += __shfl_down_sync(~0u, own, i);\n#endif\n"
        "p[threadIdx.x] = own; }\n"
    )
    solve, about = (
        Runner("solve", capsys),
        ("k.cu", "--block", 32, "--blocks-per-sm", 1, "--latency", "global=..600", "--warm", "-q"),
    )
    by_machine = solve(*about, "--machine", "ampere-ga10x").out
    by_gpu = solve(*about, "--gpu", "rtx-3070", "--grid", 1).out
    named = solve(*about, "--machine", "ampere-ga10x", "--arch", "sm_86").out
    older = solve(*about, "--machine", "ampere-ga10x", "--arch", "sm_80").out
    assert by_machine == named != older
    assert by_gpu.split("is ")[-1] == named.split("is ")[-1]
    assert "REDUX" in Runner("strings", capsys)("k.cu", "--machine", "ampere-ga10x", "--listing").out


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
@pytest.mark.usefixtures("compiling_once")
def test_a_sweep_answers_every_shipped_kernel(
    path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """That every compilation gives the same program is a matter of the test below, of functions with made-up names."""
    monkeypatch.setattr(QuestionRun, "crew", crew_here(wants_bundle=False))
    Path("sweep.toml").write_text(toml({**asked(path), "gpu": "rtx-3070"}))
    done = Runner("sweep", capsys)("sweep.toml", "-q", "-o", "sweep.sqlite")
    assert (done.code, done.out) == (0, "1 of 1 questions have an answer in sweep.sqlite\n")


OWN = {
    "local": '#include "beside.cuh"\nstatic __device__ int twice(int x) { return 2 * x; }\n'
    "__global__ void k(int *p) { p[threadIdx.x] = twice(p[1]) + thrice(p[2]); }\n",
    "unnamed": "namespace { __device__ __noinline__ int twice(int x) { return 2 * x; }\n"
    "__global__ void k(int *p) { p[threadIdx.x] = twice(p[1]); } }\nvoid keep() { k<<<1, 1>>>(0); }\n",
    "header": "#include <cuda_fp16.h>\n__global__ void k(__half *p, int *n) {\n"
    "p[0] = __hadd(p[1], p[2]); atomicAdd(n, __shfl_down_sync(~0u, n[threadIdx.x], 1)); }\n",
}
BESIDE = "static __device__ int thrice(int x) { return 3 * x; }\n"


def test_a_sweep_knows_kernels_with_functions_of_their_own_and_of_headers_again(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, text in OWN.items():
        (folder / f"{name}.cu").write_text(text)
    (folder / "beside.cuh").write_text(BESIDE)
    table = toml({"block": 32, "machine": "ampere-ga10x", "latency": LATENCIES, "kernel": "k"})
    (folder / "sweep.toml").write_text(
        f'{table}backend = "certificate"\nblocks-per-sm = 1\n[each]\nsource = ["*.cu"]\n'
    )
    sweep = Runner("sweep", capsys)
    first = sweep("sweep.toml", "-q", "-o", "sweep.sqlite", "--workers", 1)
    assert (first.code, first.out) == (0, "3 of 3 questions have an answer in sweep.sqlite\n")
    again = sweep("sweep.toml", "-q", "-o", "sweep.sqlite", "--workers", 1)
    assert (again.code, again.out) == (0, "3 of 3 questions have an answer in sweep.sqlite, 3 known before\n")
    before = question_key({"source": "local.cu"})
    (folder / "beside.cuh").write_text(BESIDE.replace("3 * x", "3 + x"))
    assert question_key({"source": "local.cu"}) != before


def test_runs_of_a_kernel_with_functions_of_headers_are_known_again(capsys: pytest.CaptureFixture[str]) -> None:
    validate = Runner("measure validate", capsys)
    (path,) = (path for path in SAMPLES if path.stem == "warp_reduction")
    latencies = ("--latency", "global=..900", "--latency", "fetch=..900", "--latency", "constant-miss=..900")
    about = (path, "--gpu", "rtx-3070", "--block", 32, *latencies, "--buffer", "0=256", "--buffer", "1=256")
    first = validate(*about, "--device", "virtual:1", "--runs", 2, "-q", "-o", "runs.jsonl")
    again = validate(*about, "-q", "--from", "runs.jsonl")
    assert (first.code, again.code, again.out) == (0, 0, first.out)
