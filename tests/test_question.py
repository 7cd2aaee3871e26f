"""A kernel, its launch and its bounds are one question, whoever asks it."""

import copy
import pickle
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import click
import pytest

from makespan import InputError, Instance, KernelQuestion, Launch, gpu_instance, read_kernel, solve, solve_gpu
from makespan.cli.options import source_options
from makespan.cli.source import instances as of_options
from makespan.deadlines import files
from makespan.deadlines.description import KernelLaunch
from makespan.deadlines.wcet import on_one_sm, on_sms
from makespan.kernels import flow, kernel_file, ptx
from makespan.kernels.kernel_file import FileKind
from makespan.kernels.question import instances, launch_kernel
from makespan.model.machine import PAPER
from makespan.model.program import Program
from makespan.model.result import Bounds

SAMPLES = Path(__file__).parents[1] / "ptx"
VECADD = SAMPLES / "vecadd.ptx"
BLOCK = (256, 1, 1)
TRACE = (("Done", 1), ("If", 1), ("Done", 0))
TASK = """partition = [{{ name = "gpu", policy = "fifo" }}]
[[task]]
name = "a"
period = "1ms"
deadline = "2ms"
kernel = "{file}"
{keys}"""


@click.command()
@source_options
def asking(**options: object) -> object:
    return [named.instance for named in of_options(**options)]  # type: ignore[arg-type]


def by_options(file: str, *options: str) -> Instance:
    """The instance that a command is about."""
    (found,) = asking.main([file, *options], standalone_mode=False)
    assert isinstance(found, Instance)
    return found


def by_task(file: str, keys: str) -> Instance:
    """The instance that a task is about."""
    Path("tasks.toml").write_text(TASK.format(file=file, keys=keys))
    (task,) = files.read(Path("tasks.toml")).tasks
    (kernel,) = task.executions.values()
    assert isinstance(kernel.source, KernelLaunch)
    (found,) = on_one_sm(on_sms(kernel.source, sms=1))
    return found


class Ask(NamedTuple):
    """One question about a sample, in three languages."""

    question: KernelQuestion
    options: str
    keys: str


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for sample in SAMPLES.glob("*.ptx"):
        Path(sample.name).symlink_to(sample)
    Path("bounds.csv").write_text("$L__BB0_1,20\n")
    Path("classes.toml").write_text('add = "L"\n')
    Path("odd.ptx").write_text(".entry k() { frob.u32 a, a, a; add.u32 a, a, a; mul.u32 a, a, a; ret; }")
    Path("trace.txt").write_text("Done fall\nIf fall\nDone taken\n")
    Path("two.ptx").write_text("".join(f".entry {name}() {{ add.u32 a, a, a; ret; }}" for name in "jk"))
    Path("req.ptx").write_text(".entry k() .reqntid 128 { add.u32 a, a, a; ret; }")


def of(file: str, **about: object) -> KernelQuestion:
    return replace(KernelQuestion(Path(file)), **about)  # type: ignore[arg-type]


QUESTIONS = {
    "warps": Ask(of("vecadd.ptx", warps=3), "--warps 3", "warps = 3"),
    "blocks": Ask(
        of("reduction.ptx", launch=Launch(BLOCK, (2, 1, 1)), blocks_per_sm=2),
        "--block 256 --grid 2 --blocks-per-sm 2",
        "block = 256\ngrid = 2\nblocks_per_sm = 2",
    ),
    "parameters": Ask(
        of("vecadd.ptx", launch=Launch((16, 16, 1), (1, 1, 1), {"3": 100})),
        "--block 16x16 --grid 1 --param 3=100",
        'block = "16x16"\ngrid = 1\nparam = { 3 = 100 }',
    ),
    "bounds": Ask(
        of("fir.ptx", warps=2, loop_bounds=flow.loop_bounds(["$L__BB0_1=20"])),
        "--warps 2 --loop-bound $L__BB0_1=20",
        'warps = 2\nloop_bound = ["$L__BB0_1=20"]',
    ),
    "a file of bounds": Ask(
        of("fir.ptx", warps=2, loop_bounds=(flow.GivenBound("$L__BB0_1", 20, place="bounds.csv:1"),)),
        "--warps 2 --loop-bound bounds.csv",
        'warps = 2\nloop_bound = ["bounds.csv"]',
    ),
    "one path": Ask(
        of("nearest_point_paper.ptx", warps=2, take={"If": "fall"}, loop_bounds=flow.loop_bounds(["Loop==1"])),
        "--warps 2 --take If=fall --loop-bound Loop==1",
        'warps = 2\ntake = ["If=fall"]\nloop_bound = ["Loop==1"]',
    ),
    "a trace": Ask(
        of(
            "nearest_point_paper.ptx",
            warps=2,
            trace=tuple(flow.TraceStep(key, side, f"trace.txt:{n}") for n, (key, side) in enumerate(TRACE, 1)),
        ),
        "--warps 2 --trace trace.txt",
        'warps = 2\ntrace = "trace.txt"',
    ),
    "own classes": Ask(
        of("odd.ptx", warps=2, classes=ptx.Classes("paper", {"add": "L"}, "L")),
        "--warps 2 --classes classes.toml --unknown L",
        'warps = 2\nclasses = "classes.toml"\nunknown = "L"',
    ),
    "one of several": Ask(of("two.ptx", entry="k", warps=2), "--warps 2 --kernel k", 'warps = 2\nentry = "k"'),
}


@pytest.mark.parametrize("ask", QUESTIONS.values(), ids=QUESTIONS)
def test_a_question_has_one_instance_whoever_asks_it(ask: Ask) -> None:
    """In Python, on the command line and in a task file; with all that is assumed."""
    file = str(ask.question.source)
    asked = [ask.question.instance(), by_options(file, *ask.options.split()), by_task(file, ask.keys)]
    asked.append(replace(ask.question, source=ptx.read(Path(file))).instance())
    assert asked == [asked[0]] * 4
    assert [each.groups[0].program.assumptions for each in asked] == [asked[0].groups[0].program.assumptions] * 4


def test_a_kernel_file_is_three_lines_from_its_result(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = read_kernel("vecadd.ptx", Launch(block=BLOCK))
    assert solve(kernel).bounds == solve(kernel.instance()).bounds == Bounds(140, 140)
    compiled: list[object] = []

    def read(path: Path, **options: object) -> ptx.PtxModule:
        compiled.append((path, options))
        return ptx.read(Path("vecadd.ptx"))

    monkeypatch.setattr("makespan.kernels.ptx.cuda.read", read)
    kernel = read_kernel("vecadd.cu", Launch(block=BLOCK), arch="compute_80", keep_ptx=Path("kept.ptx"))
    assert kernel.instance() == kernel.instance(PAPER) == by_options("vecadd.ptx", "--block", "256")
    assert compiled == [(Path("vecadd.cu"), {"arch": "compute_80", "keep": Path("kept.ptx")})]


def test_a_range_of_warps_is_an_instance_for_each() -> None:
    asked = of("vecadd.ptx", warps=range(2, 5), blocks_per_sm=2)
    assert [each.warps for each in instances(asked)] == [4, 6, 8]
    several = "^one instance is asked for, and warps means 3: choose one with dataclasses.replace.question, warps=N"
    for ask in (asked.instance, lambda: solve(asked)):
        with pytest.raises(InputError, match=several):
            ask()
    assert solve(replace(asked, warps=3)).instance.warps == 6


def test_a_question_without_its_gpu_is_none_about_a_whole_gpu() -> None:
    asked = of("vecadd.ptx", launch=Launch(block=256, grid=4096), blocks_per_sm=6)
    with pytest.raises(
        InputError, match=r"^solve_gpu takes a GpuInstance, not .*: make one .* gpu_instance\(question, "
    ):
        solve_gpu(asked)  # type: ignore[arg-type]
    assert solve_gpu(gpu_instance(asked, sms=46)).instance.blocks == 4096


def test_what_was_read_is_not_compiled_again() -> None:
    question = replace(read_kernel("vecadd.ptx", warps=1), arch="compute_80")
    with pytest.raises(InputError, match=r"^vecadd\.ptx: arch is for CUDA source"):
        question.instance()


def test_bounds_of_other_kernels_are_left_out() -> None:
    body = "{label}: add.u32 a, a, a; @p bra {label}; ret;"
    kernels = (f".entry {name}() {{ {body.format(label=label)} }}" for name, label in (("j", "A"), ("k", "B")))
    Path("loops.ptx").write_text("".join(kernels))
    found = launch_kernel(of("loops.ptx", entry="k", loop_bounds=flow.loop_bounds(["A=3", "B=4"])))
    (loop,) = found.loops
    assert loop.bound == flow.LoopBound(4, False, "command line", flow.BoundBasis.USER)


def test_a_kind_of_file_more_is_a_line_of_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """With its line, every entrance reads it."""
    toy = ModuleType("toy")
    toy.read = lambda path: ptx.parse(path.read_text().replace("plus", "add.u32"), str(path))  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "toy", toy)
    monkeypatch.setattr(kernel_file, "KINDS", {**kernel_file.KINDS, ".toy": FileKind("toy")})
    Path("k.toy").write_text(".entry k() { plus a, a, a; ret; }")
    asked = [of("k.toy", warps=2).instance(), by_options("k.toy", "--warps", "2"), by_task("k.toy", "warps = 2")]
    assert asked == [Instance.of(Program.chain("C"), 2)] * 3
    with pytest.raises(InputError, match=r"^k\.txt: not a kernel file; expected \.ptx or \.cu or .* or \.toy$"):
        read_kernel("k.txt")


REFUSED = {
    "no warps": (
        of("vecadd.ptx"),
        "vecadd.ptx: kernel vecadd: 1 input is missing: the threads of a block, or its warps ({block} N, or {warps} N)",
        ("", "grid = 1"),
    ),
    "block and warps": (
        of("vecadd.ptx", launch=Launch(BLOCK), warps=3),
        "{block} means 8 warps for each block, and {warps} says otherwise: leave {warps} out",
        ("--block 256 --warps 3", "block = 256\nwarps = 3\ngrid = 1"),
    ),
    "required block and warps": (
        of("req.ptx", warps=range(3, 5)),
        "req.ptx: .reqntid of kernel k means 4 warps for each block, and {warps} says otherwise: leave {warps} out",
        ("--warps 3..4", "warps = 3\ngrid = 1"),
    ),
    "an architecture": (
        of("vecadd.ptx", arch="compute_80", warps=1),
        "vecadd.ptx: {arch} is for CUDA source (.cu), unless it is that of GPUs, such as sm_86",
        ("--warps 1 --arch compute_80", 'warps = 1\narch = "compute_80"'),
    ),
}


@pytest.mark.parametrize(("question", "message", "asked"), REFUSED.values(), ids=REFUSED)
def test_a_refusal_has_the_words_of_whoever_asks(
    question: KernelQuestion, message: str, asked: tuple[str, str]
) -> None:
    """One sentence, with the name of the key, argument or option."""
    keys = {name: name for name in ("warps", "block", "arch")}
    file, (options, table) = str(question.source), asked
    entrances: tuple[tuple[Callable[[], Instance], dict[str, str]], ...] = (
        (question.instance, keys),
        (lambda: by_task(file, table), keys),
        (lambda: by_options(file, *options.split()), {name: f"--{name}" for name in keys}),
    )
    for entrance, names in entrances:
        with pytest.raises(InputError) as caught:
            entrance()
        assert str(caught.value).replace(str(Path.cwd()) + "/", "") == message.format(**names)


@pytest.mark.parametrize(
    ("question", "message"),
    [
        (of("none.ptx", warps=1), "none.ptx: cannot read the PTX file: No such file or directory"),
        (of("two.ptx", warps=1), "two.ptx: choose one of 2 kernels with --kernel NAME: j, k"),
        (of("two.ptx", entry="x", warps=1), "two.ptx: no kernel 'x'; the kernels are: j, k"),
        (of("tasks.toml", warps=1), "tasks.toml: not a kernel file; expected .ptx or .cu"),
        (of("vecadd.ptx", warps=0), "the number of warps must be a whole number from 1, not 0"),
        (
            of("vecadd.ptx", arch="compute_80", keep_ptx=Path("k.ptx"), warps=1),
            "vecadd.ptx: arch and keep_ptx are for CUDA source (.cu), unless it is that of GPUs, such as sm_86",
        ),
        (
            of("vecadd.ptx", launch=Launch(BLOCK, (2, 1, 1)), blocks_per_sm=3),
            "blocks_per_sm 3: the grid has only 2 blocks",
        ),
        (of("vecadd.ptx", launch=Launch(BLOCK, None, {"x": 1})), "parameters x: no such parameter of kernel vecadd; "),
        (of("vecadd.ptx", warps=1, take={"X": "fall"}), "take: no conditional branch X in kernel vecadd; "),
    ],
)
def test_what_cannot_be_asked_is_refused_in_one_line(question: KernelQuestion, message: str) -> None:
    with pytest.raises(InputError) as caught:
        instances(question)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (lambda: KernelQuestion(7, warps=2), "source of a kernel question"),  # type: ignore[arg-type]
        (lambda: KernelQuestion(VECADD, launch={"block": 256}), "launch of a kernel question: Launch is needed"),  # type: ignore[arg-type]
        (lambda: KernelQuestion(VECADD, loop_bounds=("L=4",)), "loop_bounds of a kernel question: GivenBound"),  # type: ignore[arg-type]
        (lambda: KernelQuestion(VECADD, paths="both"), "paths of a kernel are automaton or single"),  # type: ignore[arg-type]
        (lambda: KernelQuestion(VECADD, warps=2.0), "warps of a kernel are a whole number"),  # type: ignore[arg-type]
        (lambda: KernelQuestion(VECADD, warps=True), "warps of a kernel are a whole number"),
        (lambda: Launch(block="256"), "block must be a whole number"),  # type: ignore[arg-type]
        (lambda: Launch(grid=256.0), "grid must be a whole number"),  # type: ignore[arg-type]
        (lambda: Launch(parameters=["n=1"]), "the parameters of a launch are values by name"),  # type: ignore[arg-type]
    ],
)
def test_values_of_another_kind_are_refused_where_they_are_given(asked: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        asked()


def test_a_question_can_be_copied_sent_to_another_process_and_shown_on_a_line() -> None:
    question = read_kernel(str(VECADD), Launch(block=(256, 1, 1)))
    sent = pickle.loads(pickle.dumps(copy.deepcopy(question)))
    assert sent.instance() == question.instance()
    assert repr(question) == "KernelQuestion('vecadd.ptx', entry='vecadd', launch='block 256x1x1', warps=None)"
    assert KernelQuestion(str(VECADD), launch=Launch(block=(256, 1, 1))).instance() == question.instance()  # type: ignore[arg-type]
