"""`makespan solve` for launches that share a GPU: what a file says, what is refused by name, and what is verified."""

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from makespan import Launch
from makespan.host.errors import InputError
from makespan.kernels import sass
from makespan.kernels.gpu_question import SharedLaunch, of_kernels, shared_gpu
from makespan.kernels.question import KernelQuestion, LaunchedKernel, launch_kernel
from makespan.model.machine import GivenRange, gpus
from makespan.proof.bounds.theorem_g import theorem_g
from tests.command import Runner
from tests.schemas import published

ROOT = Path(__file__).parents[2]
SCHEMA = published("gpu-result-2")
VECADD, CUBIN = ROOT / "ptx" / "vecadd.ptx", ROOT / "ptx" / "polynomial.sm_86.cubin"
ROOM = "room = { slots = 4, warps = 16 }"
SMALL, LARGE = "{ slots = 1, warps = 2 }", "{ slots = 1, warps = 8 }"


def launch(name: str, block: int, grid: int, takes: str = "", more: str = "", kernel: Path = VECADD) -> str:
    taken = f"takes = {takes}\n" if takes else ""
    return f'[[launch]]\nname = "{name}"\nkernel = "{kernel}"\nblock = {block}\ngrid = {grid}\n{taken}{more}\n'


@pytest.fixture
def solve(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Runner:
    def written(*tables: str) -> Path:
        path = tmp_path / "launches.toml"
        path.write_text("\n".join(tables))
        return path

    runner = Runner("solve", capsys)
    runner.written = written  # type: ignore[attr-defined]
    return runner


def test_two_launches_share_a_gpu_and_the_bundle_is_verified(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path, bundle = tmp_path / "launches.toml", tmp_path / "bundle.json"
    path.write_text("\n".join([ROOM, launch("small", 64, 8, SMALL), launch("large", 256, 5, LARGE)]))
    solved = Runner("solve", capsys)(path, "--sms", 2, "--time-limit", 0.1, "--format", "json", "--bundle", bundle)
    told = json.loads(solved.out)
    SCHEMA.validate(told)
    assert (told["room"], [grid["takes"] for grid in told["grids"]]) == ([4, 16], [[1, 2], [1, 8]])
    assert [grid["resident"] for grid in told["grids"]] == [4, 2]
    assert told["lower"] <= told["upper"]
    assert any(
        "a block of large takes 1 of 4 slots, 8 of 16 warps of an SM" in note["text"] for note in told["assumptions"]
    )
    assert Runner("verify", capsys)(bundle).code == 0


def test_more_launches_take_no_less(solve: Runner) -> None:
    """As much as all blocks one after another on each SM, and a text that says so."""
    both = solve.written(ROOM, launch("small", 64, 8, SMALL), launch("large", 256, 5, LARGE))  # type: ignore[attr-defined]
    said = " ".join(solve(both, "--sms", 2, "--time-limit", 0.1).out.split())
    assert "the worst case of 13 blocks on 2 SMs" in said
    assert "there is no room for some of them on any SM; so the last one gets its room in cycle" in said
    few = solve.written(ROOM, launch("small", 64, 2, SMALL), launch("large", 256, 1, LARGE))  # type: ignore[attr-defined]
    assert "what a block waits for takes at most" in solve(few, "--sms", 2, "--time-limit", 0.1).out


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        (
            [launch("a", 64, 2)],
            "launch a: {vecadd}: what a block of PTX takes of an SM is not known: say room and takes",
        ),
        ([ROOM, launch("a", 64, 2)], "launch a: takes says what a block takes of each resource of room: slots, warps"),
        ([launch("a", 64, 2, SMALL)], "launch a: takes is nothing without room"),
        ([ROOM, launch("a", 64, 2, SMALL), launch("a", 64, 2, SMALL)], "two launches are called a"),
        ([ROOM, launch("a", 64, 2, SMALL, "blocks_per_sm = 2")], "launch a: blocks_per_sm: blocks of several launches"),
        (
            [ROOM, launch("a", 64, 2, SMALL, 'machine = "turing"')],
            "launch a: machine: all launches are on the same SMs",
        ),
        ([ROOM, launch("a", 64, 2, SMALL, "stream = 1")], "launch a: stream: the proof knows no launch that waits"),
        ([ROOM, launch("a", 64, 2, SMALL, 'after = "b"')], "launch a: after: the proof knows no launch that waits"),
        (
            [ROOM, launch("a", 64, 2, SMALL, 'offset = "1us"')],
            "launch a: offset: the proof knows launches that are all",
        ),
        ([ROOM, launch("a", 64, 2, SMALL, "priority = 1")], "launch a: priority: the proof is for any order of blocks"),
        (
            [ROOM, launch("a", 64, 2, SMALL, "cooperative = true")],
            "launch a: cooperative: the proof knows no blocks that",
        ),
        (
            [ROOM, launch("a", 64, 2, SMALL, "cluster = 2")],
            "launch a: cluster: the proof knows no blocks that wait for",
        ),
        ([ROOM, launch("a", 64, 2, SMALL, "wcet = 2")], "launch a: unknown key 'wcet'; known: name, kernel, takes"),
        ([ROOM, launch("a", 64, 2, "{ slots = 5, warps = 2 }")], "a block that takes (5, 2) fits on no SM"),
        ([ROOM, launch("a", 64, 2, "{ slots = 1, warps = -2 }")], "takes: warps must be"),
        (["room = 3", launch("a", 64, 2, SMALL)], "room must be a table of at most 16 numbers, not 3"),
        (["room = {}", launch("a", 64, 2, SMALL)], "room is empty: say what an SM has"),
        (["stream = 2", launch("a", 64, 2, SMALL)], "the file: unknown key 'stream'; known: room, launch"),
        ([], "there is no [[launch]]"),
        (['[[launch]]\nname = "a"'], "launch a has no kernel"),
        ([ROOM, launch("a", 64, 0, SMALL)], "launch a: grid must be"),
    ],
)
def test_what_is_not_proven_or_not_said_is_refused_by_name(solve: Runner, tables: list[str], message: str) -> None:
    path = solve.written(*tables)  # type: ignore[attr-defined]
    told = solve(path, "--sms", 3)
    assert told.code == 2
    assert message.format(vecadd=VECADD) in told.err
    assert str(path) in told.err
    assert len(told.err.splitlines()) == 1


def test_an_opcode_that_is_not_known_is_told_with_file_launch_and_line(solve: Runner, tmp_path: Path) -> None:
    kernel = tmp_path / "odd.ptx"
    kernel.write_text(VECADD.read_text().replace("add.f32", "odd.f32"))
    path = solve.written(ROOM, launch("a", 64, 2, SMALL, kernel=kernel))  # type: ignore[attr-defined]
    told = solve(path, "--sms", 3)
    assert told.code == 2
    assert told.err.startswith(f"makespan: {path}: launch a: {kernel}:46:2: unknown opcode 'odd.f32'")


def test_what_a_file_of_launches_says_itself_is_no_option(solve: Runner) -> None:
    path = solve.written(ROOM, launch("a", 64, 2, SMALL))  # type: ignore[attr-defined]
    for given in (("--grid", 3), ("--warps", 2), ("--latency", "global=..3"), ("--assignment", "modulo")):
        assert "a file of launches says itself what is launched" in solve(path, "--sms", 3, *given).err


def test_pictures_of_several_launches_are_refused(
    solve: Runner, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    two = solve.written(ROOM, launch("a", 64, 2, SMALL), launch("b", 64, 2, SMALL))  # type: ignore[attr-defined]
    path = tmp_path / "page.html"
    assert "a page draws the blocks of one launch" in Runner("report", capsys)(two, "--sms", 3, "-o", path).err
    assert "--gantt draws the blocks of one launch" in solve(two, "--sms", 3, "--gantt", path.with_suffix(".png")).err


@cache
def polynomial() -> LaunchedKernel:
    launched, latencies = Launch(block=(128, 1, 1), grid=(100, 1, 1)), {"global": GivenRange(None, 600)}
    return launch_kernel(KernelQuestion(CUBIN, launch=launched, latencies=latencies, warm=True))


def shared(name: str, *, registers: int | None = None) -> SharedLaunch:
    """A launch of machine code, as if it was compiled for so many registers."""
    found = polynomial()
    assert isinstance(found.kernel, sass.SassKernel)
    taken = found.kernel.resources
    kernel = replace(found.kernel, resources=taken._replace(registers=registers or taken.registers))
    return SharedLaunch(name, LaunchedKernel(found.question, found.module, kernel), {})


def test_machine_code_tells_what_a_block_takes() -> None:
    card = gpus.find_gpu("rtx-3070")
    few = of_kernels([shared("a"), shared("b", registers=40)], card.machine, sms=4, card=card)
    assert few.room == (16, 48, 102400)  # no registers: 48 warps of 40 lie in four files of 16,384
    assert [grid.takes for grid in few.grids] == [(1, 4, 1024)] * 2
    same = of_kernels([shared("a", registers=96), shared("b", registers=96)], card.machine, sms=4, card=card)
    assert (same.room, same.grids[0].takes) == ((16, 48, 20, 102400), (1, 4, 4, 1024))  # 5 warps of 3,072 in each file


def test_registers_that_are_allotted_differently_are_refused() -> None:
    """Free registers of four files may be enough for a warp together, and in none of them."""
    card = gpus.find_gpu("rtx-3070")
    with pytest.raises(InputError, match=r"a: warps of 3072 registers; b: warps of 1024 registers.*-maxrregcount"):
        of_kernels([shared("a", registers=96), shared("b", registers=32)], card.machine, sms=4, card=card)
    with pytest.raises(InputError, match=r"launch b: .*a thread has at most 255"):
        of_kernels([shared("a"), shared("b", registers=256)], card.machine, sms=4, card=card)


def test_the_example_has_the_bound_that_the_documentation_shows() -> None:
    gpu = shared_gpu(ROOT / "examples" / "launches.toml", None, gpus.find_gpu("rtx-3070"), sms=46, holds={})
    told = f"at most {theorem_g(gpu).upper:>20}  proven by theorem-g"
    assert told in (ROOT / "docs" / "cli.md").read_text()
