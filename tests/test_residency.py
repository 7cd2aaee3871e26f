"""How many blocks of machine code a question puts on an SM."""

from types import SimpleNamespace
from typing import Any

import pytest

from makespan import KernelQuestion, Launch
from makespan.host.errors import InputError
from makespan.kernels import ptx, question, sass
from makespan.kernels.sass import Address, KernelResources, SassInstruction
from makespan.model.assumptions import AssumptionKind, instructions
from makespan.model.machine import PAPER
from makespan.model.program import Program

SHORT = instructions("the chain is short")
CHAIN = Program.chain("CL", assumptions=[SHORT])


@pytest.fixture(autouse=True)
def _chains(monkeypatch: pytest.MonkeyPatch) -> None:
    """Machine code is a chain of two instructions, whatever it says."""
    language = SimpleNamespace(
        flow=lambda kernel: None,
        fit_launch=lambda launch, kernel: launch,
        bounds_for=lambda *given: (),
        warps=lambda flow, **known: SimpleNamespace(
            missing=lambda asked: (),
            program=lambda: CHAIN,
            programs=lambda: ((CHAIN, known["launch"].warps_per_block),),
        ),
    )
    monkeypatch.setattr(question, "_LANGUAGES", {sass.SassModule: language})


def asked(*opcodes: str, registers: int = 96, **known: Any) -> KernelQuestion:
    code = tuple(SassInstruction(Address(16 * at), opcode) for at, opcode in enumerate(opcodes))
    kernel = sass.SassKernel("k", "k.cubin", "k.cubin", 86, code, KernelResources(registers))
    return KernelQuestion(sass.SassModule("k.cubin", (kernel,)), **{"launch": Launch(block=(250, 1, 1))} | known)


@pytest.mark.parametrize(
    ("made", "blocks", "told"),
    [
        (asked(), 2, "2 blocks of 8 warps can be resident: registers limit; 2 of them start together"),
        (asked(launch=Launch((250, 1, 1), (1, 1, 1))), 1, "registers limit; one of them runs alone"),
        (asked(launch=Launch((250, 1, 1), (9, 1, 1))), 2, "registers limit; 2 of them start together"),
        (asked(blocks_per_sm=1), 1, "registers limit; one of them runs alone"),
        (asked(registers=32), 6, "6 blocks of 8 warps can be resident: warps limit; 6 of them start together"),
        (asked(launch=Launch(), warps=1), 16, "16 blocks of 1 warp can be resident: blocks limit"),
        (asked("LDS", dynamic_shared=40 << 10), 2, "2 blocks of 8 warps can be resident: registers and shared memory"),
        (asked("LDS", dynamic_shared=60 << 10), 1, "1 block of 8 warps can be resident: shared memory limits"),
        (asked("LDS", blocks_per_sm=2), 2, "registers limit; 2 of them start together"),
    ],
)
def test_so_many_blocks_are_on_an_sm_as_can_be_resident(made: KernelQuestion, blocks: int, told: str) -> None:
    instance = made.instance(PAPER)
    assert instance.warps == blocks * (1 if made.warps else 8)
    assert any(note.kind is AssumptionKind.RESIDENCY and told in str(note) for note in instance.assumptions)
    assert SHORT in instance.assumptions


def test_a_range_of_warps_has_for_each_what_can_be_resident() -> None:
    found = question.instances(asked(launch=Launch(), warps=range(9, 12)), PAPER)
    assert [each.warps for each in found] == [18, 20, 11]  # there are registers for 20 warps


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (asked(blocks_per_sm=3), "blocks_per_sm 3: only 2 blocks of 8 warps can be resident: registers limit"),
        (asked(launch=Launch(), warps=64), "2017 threads per block: a block of this GPU has at most 1024"),
        (asked(launch=Launch(), warps=32, registers=128), "it needs 32 warps of 4096 registers, an SM has 16"),
        (asked("LDS"), "the bytes of shared memory that the launch gives each block, 0 for none .dynamic_shared N"),
        (asked(launch=Launch((32, 1, 1), (2, 1, 1)), blocks_per_sm=3), "blocks_per_sm 3: the grid has only 2 blocks"),
    ],
)
def test_more_than_can_be_resident_is_refused_with_the_numbers(made: KernelQuestion, message: str) -> None:
    with pytest.raises(InputError, match=message):
        made.instance(PAPER)


def test_ptx_tells_nothing_of_residency() -> None:
    vecadd = ptx.parse(".version 8.0\n.target sm_75\n.address_size 64\n.visible .entry k() { ret; }", "k.ptx")
    with pytest.raises(InputError, match=r"k.ptx: dynamic_shared is for machine code"):
        KernelQuestion(vecadd, warps=1, dynamic_shared=0).instance()
