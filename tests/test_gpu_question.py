"""From a question about a kernel to blocks on the SMs of a GPU."""

from dataclasses import replace
from pathlib import Path

import pytest

from makespan import InputError, KernelQuestion, Launch
from makespan.kernels.gpu_question import gpu_instance
from makespan.kernels.question import launch_kernel
from makespan.model.gpu import GpuInstance
from makespan.model.machine import GivenRange, find_machine, given_latencies, gpus

ROOT = Path(__file__).parents[1]
CARD = gpus.find_gpu("rtx-3070")
CUBIN = KernelQuestion(
    ROOT / "ptx" / "reduction.sm_86.cubin",
    launch=Launch(block=(256, 1, 1), grid=(100, 1, 1)),
    latencies=given_latencies(["global=..400+10n"]),
    warm=True,
)
PTX = KernelQuestion(ROOT / "ptx" / "vecadd.ptx", launch=CUBIN.launch)


def asked(question: KernelQuestion, card: gpus.Gpu | None = CARD, *, sms: int = 46) -> GpuInstance:
    return gpu_instance(question, card, sms=sms)


def test_machine_code_tells_how_many_blocks_are_resident() -> None:
    gpu = asked(CUBIN)
    assert (gpu.blocks, gpu.resident, gpu.sms, gpu.machine.name) == (100, 6, 46, "ampere-ga10x")
    assert any(str(note) == "6 blocks of 8 warps can be resident: warps limit" for note in gpu.assumptions)
    assert asked(replace(CUBIN, blocks_per_sm=2)).resident == 2


@pytest.mark.parametrize(
    ("card", "sms", "blocks", "active"),
    [(CARD, 46, 100, 46), (CARD, 46, 2, 2), (CARD, 4, 100, 46), (CARD, 4, 2, 44), (None, 4, 100, 4)],
)
def test_latencies_are_those_of_the_active_sms(card: gpus.Gpu | None, sms: int, blocks: int, active: int) -> None:
    """What is at work on SMs that do not take part is not known."""
    launch = replace(CUBIN.launch, grid=(blocks, 1, 1))
    told = "\n".join(map(str, asked(replace(CUBIN, launch=launch), card, sms=sms).assumptions))
    assert f"at most {400 + 10 * active} cycles with {active} active SMs" in told


def test_code_for_an_older_sm_finds_the_room_of_the_gpu() -> None:
    """An SM of sm_80 holds 64 warps, one of sm_86 only 48."""
    older = replace(CUBIN, source=ROOT / "ptx" / "reduction.sm_80.cubin")
    machine = find_machine("ampere-ga10x").machine
    assert gpu_instance(older, CARD, machine=machine, sms=4).resident == 6
    alone = replace(older, latencies={"global": GivenRange(None, 900)}, blocks_per_sm=8)
    assert launch_kernel(alone).instances()[0].blocks == 8


@pytest.mark.parametrize(
    ("question", "message"),
    [
        (
            replace(PTX, launch=Launch(block=256)),
            "2 inputs are missing: the blocks of the grid .grid N.; the blocks that are resident on an SM at once",
        ),
        (PTX, "1 input is missing: the blocks that are resident .* .blocks_per_sm N, or arch sm_NN."),
        (replace(PTX, blocks_per_sm=7), "blocks_per_sm 7: only 6 blocks of 8 warps can be resident: warps limit"),
        (replace(CUBIN, blocks_per_sm=7), "blocks_per_sm 7: only 6 blocks"),
        (replace(CUBIN, source=ROOT / "ptx" / "reduction.sm_75.cubin"), "does not execute machine code for sm_75"),
    ],
)
def test_what_is_missing_or_cannot_be_is_refused(question: KernelQuestion, message: str) -> None:
    latencies = {"global": GivenRange(None, 900)}
    with pytest.raises(InputError, match=message):
        asked(replace(question, latencies=latencies))


def test_a_gpu_is_found_by_its_name() -> None:
    assert gpu_instance(CUBIN, "rtx-3070") == asked(CUBIN)
    with pytest.raises(InputError, match="has how many SMs"):
        gpu_instance(CUBIN)
