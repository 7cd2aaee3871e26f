"""Kernels with records: every thread leaves one, what they compute stays, assemblers take them, or they are refused."""

from pathlib import Path

import numpy as np
import pytest

from makespan.hardware.instrument import RECORD_BYTES, add_records
from makespan.host.errors import InputError, UnsupportedError
from makespan.kernels import kernel_file, ptx, sass
from tests.ptx.texts import SAMPLES, entry
from tests.ptx_interpreter.launch import Launch, run

ROOT = Path(__file__).parents[2]
CLOCK, SM, SLOT = 4096, 3, 5


def executable(module: ptx.PtxModule) -> str:
    """The text with numbers for the registers that only a GPU has."""
    text = add_records(module).module.text
    for name, number in (("%clock64", CLOCK), ("%smid", SM), ("%warpid", SLOT)):
        text = text.replace(name, str(number))
    return text


def records(text: str, arguments: list[object], block: Launch, grid: Launch, index: Launch = (0, 0, 0)) -> np.ndarray:
    """What the threads of one block leave, a row of starts, SM and slot, ends and nothing for each of the grid."""
    kept = np.zeros(RECORD_BYTES * int(np.prod(block) * np.prod(grid)), np.uint8)
    run(text, None, block=block, grid=grid, block_index=index, arguments=[*arguments, kept])  # type: ignore[list-item]
    return kept.view(np.uint64).reshape(-1, RECORD_BYTES // 8)


def test_every_thread_leaves_a_record_and_computes_what_it_did() -> None:
    a, b = np.arange(64, dtype=np.float32), np.ones(64, np.float32)
    c = np.zeros(64, np.float32)
    kept = records(executable(ptx.read(ROOT / "ptx" / "vecadd.ptx")), [a, b, c, 40], (64, 1, 1), (1, 1, 1))
    assert (kept == [CLOCK, SLOT << 32 | SM, CLOCK, 0]).all()
    assert (c == np.where(np.arange(64) < 40, a + b, 0)).all()


@pytest.mark.parametrize("index", [(0, 0, 0), (1, 0, 1), (1, 2, 3)])
def test_records_of_a_block_stand_where_its_number_says(index: Launch) -> None:
    block, grid = (8, 2, 4), (2, 3, 4)
    kept = records(executable(ptx.parse(entry("ret;"))), [], block, grid, index)
    number = index[0] + grid[0] * (index[1] + grid[1] * index[2])
    assert np.flatnonzero(kept[:, 0]).tolist() == list(range(64 * number, 64 * number + 64))


@pytest.mark.parametrize(
    "body",
    [
        ".reg .pred %p; .reg .u32 %r; mov.u32 %r, %tid.x; setp.lt.u32 %p, %r, 5; @%p exit; @!%p ret;",
        ".reg .pred %p; .reg .u32 %r; mov.u32 %r, %tid.x; setp.lt.u32 %p, %r, 5; @%p bra out; ret; out: exit;",
        ".reg .pred %p; .reg .u32 %r; mov.u32 %r, %tid.x; setp.lt.u32 %p, %r, 5; @%p ret; mov.u32 %r, 1;",
        ".reg .pred %p; .reg .u32 %r; mov.u32 %r, %tid.x; setp.lt.u32 %p, %r, 5; @%p bra out; ret.uni; out:",
        ".reg .pred %p; .reg .u32 %r; mov.u32 %r, %tid.x; setp.lt.u32 %p, %r, 5; @%p ret;",
    ],
)
def test_wherever_a_thread_ends_it_says_so_before(body: str) -> None:
    kept = records(executable(ptx.parse(entry(body))), [], (40, 1, 1), (1, 1, 1))
    assert (kept[:, 2] == CLOCK).all()


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_the_text_is_that_of_the_module(path: Path) -> None:
    made = add_records(ptx.read(path))
    assert ptx.parse(made.module.text) == made.module
    original = ptx.read(path).kernel().instructions
    kept = [each for each in made.module.kernel().instructions if "makespan_" not in str(each)]
    assert [each for each in kept if each.opcode != "bar.sync" or each in original][-len(original) :] == list(original)


@pytest.mark.parametrize(("name", "arch"), [("reduction", "sm_75"), ("histogram", "sm_120")])
def test_assemblers_take_it_and_keep_the_reads_of_the_clock(name: str, arch: str) -> None:
    made = add_records(ptx.read(ROOT / "ptx" / f"{name}.ptx"))
    code = kernel_file.of_module(made.module, arch).kernel(made.name)
    assert isinstance(code, sass.SassKernel)
    assert sum("SR_CLOCK" in str(each) for each in code.code) == 1 + made.ends


@pytest.mark.soak
@pytest.mark.parametrize("arch", [75, 80, 86, 89, 90, 100, 120])
@pytest.mark.parametrize("path", sorted((ROOT / "ptx").glob("*.cu")), ids=lambda path: path.stem)
def test_every_sample_is_assembled_with_records_for_every_architecture(path: Path, arch: int) -> None:
    module = kernel_file.read(path, arch=f"compute_{arch}")
    assert isinstance(module, ptx.PtxModule)
    made = add_records(module)
    _, code = kernel_file.assemble_module(made.module, f"sm_{arch}")
    assert sum("CLOCK" in str(each) for each in code.kernel(made.name).code) == 1 + made.ends


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (entry("trap;"), "line 5: trap ends the launch"),
        (entry("ret;").replace("k()", "k() .reqnctapercluster 2"), "a cluster runs on several SMs"),
        (entry("ret;") + ".func f()\n{\nexit;\n}\n", "function f: exit ends a thread where it keeps no record"),
        (add_records(ptx.parse(entry("ret;"))).module.text, "names with makespan_ are those of the records"),
    ],
)
def test_what_cannot_keep_records_is_refused_by_name(text: str, why: str) -> None:
    with pytest.raises(UnsupportedError, match=why):
        add_records(ptx.parse(text, "k.ptx"))


def test_a_kernel_that_is_not_there_is_refused() -> None:
    with pytest.raises(InputError, match="no kernel 'g'"):
        add_records(ptx.parse(entry("ret;"), "k.ptx"), "g")
