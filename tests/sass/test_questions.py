"""Machine code is asked about as PTX is: from a file, as a question, on the command line."""

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import click
import pytest

from makespan import InputError, Instance, KernelQuestion, Launch
from makespan.cli.options import source_options
from makespan.cli.source import instances as of_options
from makespan.deadlines import files
from makespan.deadlines.description import KernelLaunch
from makespan.deadlines.wcet import on_one_sm, on_sms
from makespan.host import tool
from makespan.kernels import kernel_file, ptx, sass
from makespan.kernels.ptx.module import Compilation
from makespan.kernels.question import launch_kernel
from makespan.kernels.sass import disassembler
from makespan.kernels.sass.semantics import SassSemantics
from makespan.model.assumptions import as_compiled
from makespan.model.machine import PAPER, given_latencies, machines_for, shipped_machines
from tests.command import Runner

pytestmark = pytest.mark.skipif(
    None in map(tool.find, ("ptxas", "nvdisasm")), reason="ptxas and nvdisasm are not installed"
)
VECADD = Path(__file__).parents[2] / "ptx" / "vecadd.ptx"
LATENCIES = ["global=..900", "special=..30", "parameter=..30", "fetch=..600", "constant-miss=..600"]
BLOCK = Launch(block=(256, 1, 1))


@pytest.fixture(scope="module", autouse=True)
def _disassembled_once() -> Iterator[None]:
    """Whoever asks about the same machine code is told the same: nvdisasm takes a third of a second."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(disassembler, "_nvdisasm", cache(disassembler._nvdisasm))
        yield


@pytest.fixture(scope="module")
def module() -> sass.SassModule:
    found = kernel_file.read(VECADD, arch="sm_86")
    assert isinstance(found, sass.SassModule)
    return found


@pytest.fixture(scope="module")
def cubin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cubins") / "vecadd.cubin"
    path.write_bytes(sass.assemble_ptx(VECADD.read_text(), "vecadd.ptx", "sm_86"))
    return path


def code(question: KernelQuestion) -> tuple[sass.SassInstruction, ...]:
    kernel = launch_kernel(question).kernel
    assert isinstance(kernel, sass.SassKernel)
    return kernel.code


def test_the_ptx_says_which_parameters_are_floats(tmp_path: Path) -> None:
    declared = ".param .u32 n, .param .f16 h, .param .f32 a, .param .b16 w, .param .f64 b"
    file = tmp_path / "k.ptx"
    file.write_text(f".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k({declared})\n{{ ret; }}\n")
    kernel = kernel_file.read(file, arch="sm_86").kernel()
    assert isinstance(kernel, sass.SassKernel)
    assert [parameter.is_float for parameter in kernel.parameters] == [False, True, True, False, True]
    known = SassSemantics(kernel, kernel.code, ()).signature.known(Launch(parameters={"h": 2, "a": 2, "w": 2}))
    assert [known[name].value for name in ("h", "a", "w")] == [0x4000, 0x40000000, 2]


def test_ptx_for_gpus_is_machine_code_that_remembers_its_ptx(module: sass.SassModule) -> None:
    kernel = module.kernel("vecadd")
    assert (kernel.sm, kernel.source, kernel.file) == (86, f"{VECADD} --arch sm_86", f"machine code of {VECADD}")
    assert [parameter.name for parameter in kernel.parameters] == [f"vecadd_param_{n}" for n in range(4)]
    assert str(kernel.code[0].ptx) == f"{VECADD}:21"
    assert kernel.compilation is not None
    assert "ptxas V" in kernel.compilation


def test_source_is_compiled_for_the_gpus_whose_code_is_meant(monkeypatch: pytest.MonkeyPatch) -> None:
    """The parameters are called as in the source."""
    compiled: list[object] = []

    def read(path: Path, **options: object) -> ptx.PtxModule:
        compiled.append(options)
        found = ptx.read(VECADD)
        how = Compilation(str(path), "nvcc V13", ("-ptx",), (("vecadd", ("a", "b", "c", "n")),))
        kernels = (replace(item, compilation=how) if isinstance(item, ptx.PtxKernel) else item for item in found.items)
        return replace(found, items=tuple(kernels), compilation=how)

    monkeypatch.setattr("makespan.kernels.ptx.cuda.read", read)
    found = kernel_file.read(Path("vecadd.cu"), arch="sm_86", keep_ptx=Path("kept.ptx"))
    assert isinstance(found, sass.SassModule)
    assert compiled == [{"arch": "compute_86", "keep": Path("kept.ptx")}]
    kernel = found.kernel()
    assert (kernel.source, kernel.file) == ("vecadd.cu --arch sm_86", "machine code of vecadd.cu")
    assert [parameter.name for parameter in kernel.parameters] == ["a", "b", "c", "n"]
    assert "; the PTX was made from vecadd.cu by nvcc V13 with -ptx" in str(kernel.compilation)


def test_a_cubin_and_its_ptx_have_the_same_instructions(module: sass.SassModule, cubin: Path) -> None:
    for arch in (None, "sm_86"):
        assert code(KernelQuestion(cubin, arch=arch)) == module.kernel().code
    assert code(KernelQuestion(ptx.read(VECADD), arch="sm_86")) == module.kernel().code


def test_what_begins_as_a_program_holds_machine_code_whatever_its_name(cubin: Path, tmp_path: Path) -> None:
    (tmp_path / "program").write_bytes(cubin.read_bytes())
    (tmp_path / "text").write_text("what?")
    assert code(KernelQuestion(tmp_path / "program")) == code(KernelQuestion(cubin))
    assert not kernel_file.is_kernel(str(tmp_path / "text"))
    assert not kernel_file.is_kernel(str(tmp_path))


@pytest.mark.parametrize(
    ("about", "message"),
    [
        ({"arch": "sm_80"}, r"machine code of .*vecadd\.ptx: this is machine code for sm_86, not for sm_80"),
        (
            {"arch": "compute_86"},
            r"machine code of .*vecadd\.ptx: arch is for CUDA source \(\.cu\), unless it is that of",
        ),
        (
            {"classes": ptx.Classes("modern")},
            r"machine code of .*vecadd\.ptx: profile, classes and unknown are for PTX: machine code has",
        ),
        ({"dependences": ptx.Dependences.BLOCKING}, r"machine code of .*vecadd\.ptx: dependences is for PTX"),
    ],
)
def test_what_is_said_of_other_languages_is_refused(
    module: sass.SassModule, about: dict[str, object], message: str
) -> None:
    with pytest.raises(InputError, match=f"^{message}"):
        launch_kernel(KernelQuestion(module, launch=BLOCK, **about))  # type: ignore[arg-type]


def test_the_machine_is_that_of_the_architecture(module: sass.SassModule) -> None:
    assert launch_kernel(KernelQuestion(VECADD)).default_machine is PAPER
    assert launch_kernel(KernelQuestion(module)).default_machine.name == "ampere-ga10x"
    other = replace(module, kernels=(replace(module.kernel(), sm=103),))
    with pytest.raises(InputError, match=r"no machines for sm_103 come with the package: say which one with machine$"):
        _ = launch_kernel(KernelQuestion(other)).default_machine


def test_no_two_machines_that_come_with_the_package_are_for_one_architecture() -> None:
    capabilities = {
        int(text.replace(".", "")) for file in shipped_machines().values() for text in file.compute_capability
    }
    assert {len(machines_for(sm)) for sm in capabilities if sm >= 70} == {1}


def test_a_listing_has_control_bits_and_places(cubin: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = Runner("strings", capsys)(cubin, "--listing")
    assert (found.code, found.err) == (0, "")
    first, *rows, letters = found.out.splitlines()
    assert (first, letters) == ("kernel vecadd", "letters: IKKIIBILIILLICLB (16)")
    assert rows[3].split("  ")[:5] == ["", "0x30", "B0-----:R-:W-:Y:S05", "I", "IMAD R6, R6, c[0x0][0x0], R3;"]
    assert rows[3].endswith(f"PTX of {cubin}:35")
    data = json.loads(Runner("strings", capsys)(cubin, "--listing", "--format", "json").out)["listing"]
    assert data[10] == {
        "address": "0xa0",
        "control": "B------:R-:W2:-:S04",
        "unit": "L",
        "text": "LDG.E.CONSTANT R4, [R4.64];",
        "operation": "global",
        "ptx": f"PTX of {cubin}:44",
        "source": None,
    }


def test_estimates_are_made_of_ptx(cubin: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = Runner("estimate", capsys)("--method", "hong-kim", cubin, "--gpu", "gtx1050", "--block", 256, "--grid", 1)
    assert found.code == 2
    assert f"{cubin}: estimates are made of PTX: give the PTX or the source, and no sm_NN" in found.err


def by_options(file: str, *options: str) -> Instance:
    (found,) = asking.main([file, *options], standalone_mode=False)
    assert isinstance(found, Instance)
    return found


@click.command()
@source_options
def asking(**options: object) -> object:
    return [named.instance for named in of_options(**options)]  # type: ignore[arg-type]


def test_machine_code_has_one_instance_whoever_asks(cubin: Path, tmp_path: Path) -> None:
    """In Python, on the command line and in a task file; on the machine of its architecture."""
    question = KernelQuestion(cubin, launch=Launch((32, 1, 1), (1, 1, 1)), latencies=given_latencies(LATENCIES))
    (tmp_path / "tasks.toml").write_text(
        'partition = [{ name = "gpu", policy = "fifo" }]\n[[task]]\nname = "a"\nperiod = "1ms"\ndeadline = "1ms"\n'
        f'kernel = "{cubin}"\nblock = 32\ngrid = 1\nlatency = {json.dumps(LATENCIES)}\n'
    )
    (task,) = files.read(tmp_path / "tasks.toml").tasks
    (kernel,) = task.executions.values()
    assert isinstance(kernel.source, KernelLaunch)
    options = [word for latency in LATENCIES for word in ("--latency", latency)]
    asked = [question.instance(), by_options(str(cubin), "--block", "32", "--grid", "1", *options)]
    asked += on_one_sm(on_sms(kernel.source, sms=1))
    assert asked == [asked[0]] * 3
    lapses = [[group.program.lapses for group in instance.groups] for instance in asked]  # instances compare without
    assert lapses == [lapses[0]] * 3
    assert asked[0].machine.name == "ampere-ga10x"


def test_a_port_of_the_machine_of_the_architecture_can_be_narrowed(cubin: Path) -> None:
    options = [word for latency in LATENCIES for word in ("--latency", latency)]
    wide, narrow = (by_options(str(cubin), "--warps", "1", *options, *hold) for hold in ((), ("--hold", "memory=2")))
    assert wide.machine != narrow.machine
    assert any("memory for 2 cycles" in str(caveat) for caveat in narrow.machine.caveats)


def test_a_result_says_that_it_is_about_machine_code(
    cubin: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """In its verdict, and with architecture and assembler in the bundle, which the checker accepts."""
    options = [word for latency in LATENCIES for word in ("--latency", latency)]
    bundle = tmp_path / "evidence.json"
    found = Runner("solve", capsys)(cubin, "--block", 32, "--blocks-per-sm", 1, *options, "--quiet", "--bundle", bundle)
    assert (found.code, found.err) == (3, "")
    assert found.out.startswith("bounded for the machine code on ampere-ga10x, ")
    said = json.loads(bundle.read_text())["result"]["assumptions"]
    assert as_compiled(86, "ampere-ga10x").document in said
    assert any(each["kind"] == "source" and "ptxas V" in each["text"] for each in said)
    assert Runner("verify", capsys)(bundle).code == 0


def test_loops_and_branches_go_by_address(capsys: pytest.CaptureFixture[str]) -> None:
    reduction = VECADD.with_name("reduction.ptx")
    found = Runner("strings", capsys)(reduction, "--arch", "sm_86", "--format", "json")
    told = json.loads(found.out)
    assert told["arch"] == "sm_86"
    (loop,) = told["loops"]
    assert loop["label"] == hex(loop["line"])
    template = Runner("strings --bounds-template", capsys)(
        reduction, "--arch", "sm_86", "--loop-bound", f"{loop['label']}=9"
    ).out
    assert f"\n{loop['label']},9\n" in template
    assert "# Labels hold for this machine code only: compiled by ptxas V" in template
    assert "line" not in Runner("strings", capsys)(reduction, "--arch", "sm_86", "--warm").out


def test_a_gpu_of_another_architecture_does_not_execute_machine_code(capsys: pytest.CaptureFixture[str]) -> None:
    """Code for sm_86 runs on 8.9, not on 8.0 or 9.0 (binary compatibility); and on whatever a user describes."""
    cubin = VECADD.with_name("polynomial.sm_86.cubin")
    options = cubin, "--block", 32, "--blocks-per-sm", 1, "--latency", "global=..600", "--warm", "--quiet"
    found = {machine: Runner("solve", capsys)(*options, "--machine", machine) for machine in ("ada", "ampere-ga100")}
    assert (found["ada"].code, found["ampere-ga100"].code) == (3, 2)
    assert "'ampere-ga100' do not execute machine code for sm_86" in found["ampere-ga100"].err
