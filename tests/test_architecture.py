"""CUDA source is compiled for the GPU or machine that is asked about, whoever asks; and names of architectures."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import click
import pytest

from makespan import InputError, Instance, KernelQuestion, Launch, read_kernel
from makespan.cli.options import source_options
from makespan.cli.question import solve_question
from makespan.cli.question_key import question_key
from makespan.cli.source import instances as of_source
from makespan.deadlines import files
from makespan.deadlines.description import KernelLaunch
from makespan.deadlines.wcet import on_sms
from makespan.host import tool
from makespan.kernels import ptx, sass
from makespan.kernels.gpu_question import gpu_instance
from makespan.kernels.ptx.module import Compilation
from makespan.many.commands.answering import answer
from makespan.model import architecture
from makespan.model.architecture import default_architecture
from makespan.model.conditions import conditions
from makespan.model.gpu import GpuInstance
from makespan.model.machine import PAPER, find_machine, given_latencies, gpus
from makespan.proof.engines import Limits
from tests.command import Runner

SAMPLES = Path(__file__).parents[1] / "ptx"
GA10X = find_machine("ampere-ga10x").machine
MACHINE_CODE = "for the machine code on ampere-ga10x"
NO_TOOLS = "with PTX in the place of machine code because ptxas or nvdisasm is missing"
LATENCIES = ["global=..600", "fetch=..600", "constant-miss=..600"]
ASKED = ("k.cu", "--block", "32", *(word for latency in LATENCIES for word in ("--latency", latency)))
BUFFERS = (
    "--buffer",
    "0=128",
    "--buffer",
    "1=128",
    "--buffer",
    "2=128",
    "--param",
    "3=32",
    "--runs",
    "2",
    "--device",
    "virtual:1",
)
TASKS = """{top}
partition = [{{ name = "gpu", policy = "fifo", sms = 1 }}]
[[task]]
name = "a"
period = "1ms"
deadline = "1ms"
kernel = "k.cu"
block = 32
grid = 1
latency = ["global=..600", "fetch=..600", "constant-miss=..600"]
{keys}"""
LAUNCHES = """[[launch]]
name = "a"
kernel = "k.cu"
block = 32
grid = 2
takes = { slots = 1 }
latency = ["global=..600", "fetch=..600", "constant-miss=..600"]
[room]
slots = 1
"""
GPU_FILE = 'name = "mine"\ncompute_capability = "{}"\nsms = {{ value = 2, source = "s", status = "given" }}\n'
MACHINE_FILE = 'name = "mine"\ncompute_capability = {}\n[units]\nC = {{ capacity = 1 }}\nL = {{ capacity = 1 }}\n'

needs_tools = pytest.mark.skipif(
    None in map(tool.find, ("ptxas", "nvdisasm")), reason="ptxas and nvdisasm are not installed"
)


ASSEMBLED, DISASSEMBLED = cache(sass.assemble_ptx), cache(sass.disassemble)


@click.command()
@source_options
def asking(**options: Any) -> object:
    return [named.instance for named in of_source(**options)]


@pytest.fixture(autouse=True)
def compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    """For what `k.cu` was compiled: a compiler stands in that makes the same PTX of everything."""
    found: list[str | None] = []
    made = ptx.read(SAMPLES / "vecadd.ptx")

    def compile_to(path: Path, *, arch: str | None = None, keep: Path | None = None) -> ptx.PtxModule:
        del keep
        found.append(arch)
        how = Compilation(str(path), "nvcc V13", (f"-arch={arch}",), arch=arch)
        items = (replace(item, compilation=how) if isinstance(item, ptx.PtxKernel) else item for item in made.items)
        return replace(made, items=tuple(items), compilation=how)

    monkeypatch.setattr("makespan.kernels.ptx.cuda.read", compile_to)
    monkeypatch.setattr(sass, "assemble_ptx", ASSEMBLED)
    monkeypatch.setattr(sass, "disassemble", DISASSEMBLED)
    monkeypatch.setattr(Limits, "elapsed", 1e6)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "k.cu").write_text("__global__ void vecadd() {}\n")
    return found


def question(source: KernelQuestion | None = None) -> KernelQuestion:
    """Two blocks of a warp, one at a time on an SM."""
    asked = source or KernelQuestion(Path("k.cu"), launch=Launch(block=(32, 1, 1), grid=(2, 1, 1)))
    return replace(asked, blocks_per_sm=1, latencies=given_latencies(LATENCIES))


def read_first() -> KernelQuestion:
    """The same by somebody who reads a kernel and says later what it runs on."""
    return question(read_kernel("k.cu", Launch(block=(32, 1, 1), grid=(2, 1, 1))))


def words(asked: Instance | GpuInstance) -> list[str]:
    """The assumptions as a result lists them."""
    return list(map(str, asked.assumptions))


def of(asked: Instance | GpuInstance) -> tuple[str, ...]:
    """The conditions of a verdict."""
    return conditions(asked.assumptions)


def of_options(*options: str) -> tuple[str, ...]:
    """The same of a command that is about one SM."""
    (found,) = asking.main([*ASKED, *options], standalone_mode=False)
    return of(found)


def of_question(**options: object) -> tuple[str, ...]:
    """The same of a question of a sweep or a gate."""
    return tuple(solve_question({"source": "k.cu", "block": 32, "latency": LATENCIES, **options}).document["caveats"])


def of_task(top: str = "", keys: str = "") -> tuple[str, ...]:
    """The same of the kernel of a task."""
    Path("tasks.toml").write_text(TASKS.format(top=top, keys=keys))
    described = files.read(Path("tasks.toml"))
    (task,) = described.tasks
    (kernel,) = task.executions.values()
    assert isinstance(kernel.source, KernelLaunch)
    return of(on_sms(kernel.source, 1, described.card))


def of_launches(**options: object) -> tuple[str, ...]:
    """The same of a file of launches."""
    Path("launches.toml").write_text(LAUNCHES)
    return tuple(solve_question({"source": "launches.toml", "sms": 2, **options}).document["caveats"])


GPU, SM = {"gpu": "rtx-3070"}, {"machine": "ampere-ga10x"}
ENTRANCES: dict[str, Callable[[], tuple[str, ...]]] = {
    "Python, a machine": lambda: of(question().instance(GA10X)),
    "Python, a GPU": lambda: of(gpu_instance(question(), "rtx-3070")),
    "Python, read first, a machine": lambda: of(read_first().instance(GA10X)),
    "Python, read first, a GPU": lambda: of(gpu_instance(read_first(), "rtx-3070")),
    "Python, SMs of a machine": lambda: of(gpu_instance(question(), sms=2, machine=GA10X)),
    "an option, a machine": lambda: of_options("--machine", "ampere-ga10x"),
    "a sweep, a machine": lambda: of_question(**SM),
    "a sweep, a GPU": lambda: of_question(**GPU, **{"grid": 2, "blocks-per-sm": 1}),
    "a task, a machine": lambda: of_task(keys='machine = "ampere-ga10x"'),
    "a task, a GPU": lambda: of_task(top='gpu = "rtx-3070"'),
    "launches, a machine": lambda: of_launches(**SM),
    "launches, a GPU": lambda: of_launches(**GPU),
}


@needs_tools
@pytest.mark.parametrize("entrance", ENTRANCES.values(), ids=ENTRANCES)
def test_the_machine_code_of_the_gpu_is_the_default_whoever_asks(
    entrance: Callable[[], tuple[str, ...]], compiled: list[str | None]
) -> None:
    assert entrance()[0] == MACHINE_CODE
    assert set(compiled) == {"compute_86"}


@pytest.mark.parametrize("missing", ["ptxas", "nvdisasm"])
@pytest.mark.parametrize("entrance", ENTRANCES.values(), ids=ENTRANCES)
def test_without_an_assembler_its_ptx_stands_in_and_the_verdict_says_why(
    entrance: Callable[[], tuple[str, ...]],
    missing: str,
    compiled: list[str | None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tool, "find", lambda name: None if name == missing else Path(name))
    first, second, *others = entrance()
    assert (first, second) == ("for the PTX as written", NO_TOOLS)
    # what first fetches take, which is for machine code only, is not counted, and the verdict says it
    assert "although lapses are left out" in others
    assert not [condition for condition in others if "first fetch" in condition]
    assert set(compiled) == {"compute_86"}


@pytest.mark.parametrize("said", [{}, {"capacity": "C=1,L=1"}, {"machine": "paper"}])
def test_where_nobody_says_which_gpu_it_is_the_default_is_that_of_the_compilers(
    said: dict[str, str], compiled: list[str | None]
) -> None:
    assert of_question(latency=[], **said) == ("for the PTX as written", "if every instruction takes one cycle")
    assert compiled == [None]


@needs_tools
@pytest.mark.parametrize(
    ("command", "more"),
    [
        ("solve", ("--machine", "ampere-ga10x")),
        ("solve", ("--gpu", "rtx-3070", "--grid", "2")),
        ("report", ("--machine", "ampere-ga10x", "-o", "page.html")),
        ("report", ("--gpu", "rtx-3070", "--grid", "2", "-o", "page.html")),
        ("simulate", ("--machine", "ampere-ga10x", "--policy", "gto")),
        ("strings", ("--machine", "ampere-ga10x")),
        ("measure validate", ("--machine", "ampere-ga10x", *BUFFERS)),
        ("measure validate", ("--gpu", "rtx-3070", *BUFFERS)),
    ],
)
def test_every_command_is_about_that_program(
    command: str, more: tuple[str, ...], compiled: list[str | None], capsys: pytest.CaptureFixture[str]
) -> None:
    done = Runner(command, capsys)(*ASKED, *more)
    assert done.code in (0, 3), done.err
    assert set(compiled) == {"compute_86"}


@needs_tools
def test_an_estimate_is_made_of_the_ptx_for_the_gpu(
    compiled: list[str | None], capsys: pytest.CaptureFixture[str]
) -> None:
    """That of GPUs from before sm_70 is made of any PTX, as few compilers know them."""
    estimate = Runner("estimate", capsys)
    launch = ("k.cu", "--block", 32, "--grid", 2)
    assert estimate("--compare", *launch, "--gpu", "rtx-3070").code == 0
    assert set(compiled) == {"compute_86"}
    compiled.clear()
    assert estimate("--method", "hong-kim", *launch, "--gpu", "gtx280").code == 0
    assert estimate("--method", "hong-kim", *launch, "--gpu", "gtx280", "--arch", "compute_90").code == 0
    assert compiled == [None, "compute_90"]


@needs_tools
def test_an_architecture_that_is_given_wins(compiled: list[str | None]) -> None:
    assert of_question(arch="compute_80", **SM, latency="global=..600")[0] == "for the PTX as written"
    assert of_question(arch="sm_80", **SM)[0] == MACHINE_CODE
    assert compiled == ["compute_80"] * 2


@needs_tools
def test_code_that_the_gpu_does_not_execute_is_refused() -> None:
    with pytest.raises(InputError, match=r"GPU rtx-3070, of sm_86, does not execute machine code for sm_90$"):
        of_question(arch="sm_90", grid=2, **GPU)
    with pytest.raises(InputError, match=r"GPUs of machine 'hopper' do not execute machine code for sm_86: .*"):
        of_question(grid=2, machine="hopper", **GPU)  # what the GPU says of itself counts before the machine


@needs_tools
def test_files_of_ones_own_say_for_what_is_compiled(compiled: list[str | None], tmp_path: Path) -> None:
    (tmp_path / "m.toml").write_text(MACHINE_FILE.format('["9.0", "8.9", "12.0"]'))
    assert of_question(latency=[], machine="m.toml")[0] == "for the machine code on mine"
    (tmp_path / "g.toml").write_text(GPU_FILE.format("7.5"))
    assert of_question(grid=2, gpu="g.toml")[0] == "for the machine code on turing"
    assert compiled == ["compute_89", "compute_75"]
    with pytest.raises(InputError, match=r"GPUs of machine 'mine' do not execute machine code for sm_75"):
        of_question(latency=[], machine="m.toml", arch="sm_75")


@pytest.mark.parametrize("text", ["8", "sm_86", "8.6 ", "0.0", "8.66", "٨.6"])
def test_a_compute_capability_that_is_none_is_refused(text: str, tmp_path: Path) -> None:
    said = "a compute capability is written like '8.6', not "
    (tmp_path / "m.toml").write_text(MACHINE_FILE.format(f'["{text}"]'))
    (tmp_path / "g.toml").write_text(GPU_FILE.format(text))
    for read in find_machine, gpus.find_gpu:
        with pytest.raises(InputError, match=rf"^[mg]\.toml: {said}"):
            read("m.toml" if read is find_machine else "g.toml")


@needs_tools
def test_a_result_says_for_what_the_kernel_was_compiled_and_why() -> None:
    said = "the kernel is compiled for sm_86, because "
    assert f"{said}GPU rtx-3070 has compute capability 8.6" in words(gpu_instance(question(), "rtx-3070"))
    assert f"{said}machine ampere-ga10x has compute capability 8.6 or 8.7" in words(question().instance(GA10X))
    assert not [note for note in words(replace(question(), arch="sm_86").instance(GA10X)) if said in note]


def test_machine_code_that_nobody_can_read_is_ptx_and_the_verdict_says_so(compiled: list[str | None]) -> None:
    found = of_question(latency=[], machine="pascal-gp10x")
    said = "with PTX in the place of machine code because none for GPUs before sm_70 can be read"
    assert found[:2] == ("for the PTX as written", said)
    assert compiled == ["compute_61"]


@needs_tools
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"latency": LATENCIES[1:]},
            r"1 input is missing: the latency of operation global, .* \(--latency global=\.\.N\)",
        ),
        ({"latency": []}, r"3 inputs are missing: .* \(--latency constant-miss=\.\.N, or --warm\)"),
        ({"dependences": "blocking"}, r"--dependences is for PTX: machine code says itself what it waits for"),
        ({"unknown": "C"}, r"--profile, --classes and --unknown are for PTX"),
        ({"loop-bound": "$L__BB0_9=3"}, r"no loop \$L__BB0_9 in kernel vecadd; it has no loop"),
    ],
)
def test_a_refusal_says_which_program_it_is_about_and_how_to_ask_about_the_ptx(
    options: dict[str, object], message: str
) -> None:
    hint = r"this is about the machine code for sm_86, because GPU rtx-3070 has compute capability 8\.6"
    with pytest.raises(InputError, match=rf"{message}[^\n]* \({hint}; --arch compute_86 asks about the PTX\)"):
        of_question(grid=2, **GPU, **options)
    with pytest.raises(InputError, match=message) as caught:
        of_question(grid=2, arch="sm_86", **GPU, **options)
    assert "this is about" not in str(caught.value)


@needs_tools
def test_a_task_file_names_its_own_key() -> None:
    with pytest.raises(InputError, match=r"because GPU rtx-3070 has .* 8\.6; arch compute_86 asks about the PTX\)$"):
        of_task(top='gpu = "rtx-3070"', keys='dependences = "blocking"')


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("sm86", "; did you mean 'sm_86'?"),
        ("SM_86", "; did you mean 'sm_86'?"),
        ("8.6", "; did you mean 'sm_86'?"),
        ("90a", "; did you mean 'sm_90a'?"),
        ("compute86", "; did you mean 'compute_86'?"),
        ("ampere", "; did you mean 'sm_80', 'sm_86' or 'sm_87'?"),
        ("Hopper", "; did you mean 'sm_90'?"),
        ("rtx3070", "; did you mean 'sm_86'?"),
        ("h100", "; did you mean 'sm_90'?"),
        ("pascal", ";"),  # no machine code of it can be read
        ("sm_1", ";"),
        ("sm_86 -v", ";"),
        ("86.1", ";"),
        ("", ";"),
        ("x" * 1000, ";"),
    ],
)
def test_what_is_no_architecture_is_told_what_was_meant(name: str, near: str, compiled: list[str | None]) -> None:
    message = f"--arch '{name[:40]}' is no architecture{near}"
    for ask in (lambda: of_question(arch=name, **SM), lambda: question_key({"source": "k.cu", "arch": name})):
        with pytest.raises(InputError) as caught:
            ask()
        assert str(caught.value).startswith(message)
        assert str(caught.value).endswith(" expected sm_NN for machine code or compute_NN for PTX")
    assert compiled == []


# The keys of questions


@needs_tools
def test_a_key_covers_the_program_that_is_asked_about(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = {"source": "k.cu", "block": 32, "latency": LATENCIES}
    several: list[dict[str, Any]] = [asked, {**asked, **SM}, {**asked, **GPU, "grid": 2}, {**asked, "arch": "sm_86"}]
    several += [{**asked, "arch": "sm_80"}, {**asked, "arch": "compute_86"}]
    keys = [question_key(one) for one in several]
    assert keys == [question_key(one) for one in several]
    assert len(set(keys)) == len(keys)
    monkeypatch.setattr(tool, "find", lambda name: None if name == "nvdisasm" else Path(name))
    without = [question_key(one) for one in several if "arch" not in one]
    assert without[0] == keys[0]  # PTX anyway
    assert set(without[1:]).isdisjoint(keys)


@needs_tools
def test_a_key_covers_the_programs_that_a_file_of_launches_names(compiled: list[str | None]) -> None:
    """Each is compiled as its table says, and else as the GPU that is asked about does."""
    keys = set()
    for arch in ("", 'arch = "sm_80"\n', 'arch = "compute_86"\n'):
        Path("launches.toml").write_text(LAUNCHES.replace("[room]", f"{arch}[room]"))
        keys.add(question_key({"source": "launches.toml", **GPU}))
    assert (len(keys), compiled) == (3, ["compute_86", "compute_80", "compute_86"])
    Path("launches.toml").write_text(LAUNCHES)
    asked = {"source": "launches.toml", "sms": 2, **SM}
    assert question_key(asked) == question_key(asked) not in keys
    assert "document" in answer({"question": asked, "key": question_key(asked), "bundle": False})


@pytest.mark.parametrize("source", ["k.cu", "k.ptx"])
def test_another_assembler_makes_another_key(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("k.ptx").write_bytes((SAMPLES / "vecadd.ptx").read_bytes())
    keys = set()
    for words in (b"of one version", b"of another", None):

        def assembled(*_: object, words: bytes | None = words) -> bytes:
            if words is None:
                raise InputError("no ptxas")
            return words

        monkeypatch.setattr(sass, "assemble_ptx", assembled)
        keys.add(question_key({"source": source, "arch": "sm_86"}))
    assert len(keys) == 3
    assert len({question_key({"source": "k.ptx"}), question_key({"source": "k.ptx", **SM})}) == 2


def test_a_name_asks_for_machine_code_or_for_ptx() -> None:
    assert [architecture.is_machine_code(name) for name in ("sm_90a", "compute_90a")] == [True, False]
    assert [architecture.virtual_architecture(name) for name in ("sm_90a", "compute_90a")] == ["compute_90a"] * 2
    assert (
        default_architecture(PAPER, None)
        is default_architecture(None, None)
        is default_architecture(None, gpus.find_gpu("isca09-example"))
        is None
    )
