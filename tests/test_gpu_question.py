"""From a question about a kernel to blocks on the SMs of a GPU."""

from dataclasses import replace
from pathlib import Path

import pytest

from makespan import InputError, KernelQuestion, Launch
from makespan.kernels.gpu_question import gpu_instance
from makespan.kernels.question import launch_kernel
from makespan.model.gpu import GpuInstance
from makespan.model.machine import GivenRange, Machine, find_machine, given_latencies, gpus
from makespan.proof.bounds.theorem_g import theorem_g
from makespan.report.gpu.bundle import gpu_question_data
from makespan.verify import gpu_reading

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


def expiry(machine: Machine) -> int:
    assert machine.lapses is not None
    return machine.lapses.expiry


def reading(most: int) -> Machine:
    """The machine of the GPU, whose file says another upper end of the operation `operands`."""
    operations = (replace(one, most=most) if one.name == "operands" else one for one in CARD.machine.operations)
    return replace(CARD.machine, operations=tuple(operations))


@pytest.mark.parametrize(
    ("given", "machine", "expected"),
    [
        ("operands=..40", None, 60),
        ("operands=..900", None, 900),
        ("operands=..440+10n", None, 900),  # on 46 SMs
        ("special=..50", reading(900), 900),
        ("operands=..90", reading(900), 90),
    ],
)
def test_lapses_expire_when_the_last_operands_are_read(given: str, machine: Machine | None, expected: int) -> None:
    """A register may be read as late as that, and may then keep the scheduler of a later block from issuing."""
    latencies = {**CUBIN.latencies, **given_latencies([given])}
    asked_for = replace(CUBIN, latencies=latencies, launch=replace(CUBIN.launch, grid=(900, 1, 1)))
    gpu = gpu_instance(asked_for, CARD, machine=machine)
    assert (expiry(CARD.machine), expiry(gpu.machine)) == (60, expected)
    assert expiry(gpu_reading.instance(gpu_question_data(gpu)).machine) == expected
    early = replace(gpu, machine=CARD.machine)
    assert theorem_g(gpu).upper - theorem_g(early).upper == expected - 60


def test_operands_that_wait_for_dram_are_read_when_it_is_idle_again() -> None:
    latencies = given_latencies(["global=..450", "operands=..80+dram"])
    gpu = asked(replace(CUBIN, latencies=latencies, launch=replace(CUBIN.launch, grid=(40_000, 1, 1))))
    assert expiry(gpu.machine) == 80 + gpu.dram > 100_000
    assert expiry(gpu_reading.instance(gpu_question_data(gpu)).machine) == expiry(gpu.machine)


def test_a_machine_that_differs_in_anything_from_the_shipped_one_is_remarked_on(tmp_path: Path) -> None:
    def remarks(machine: Machine) -> int:
        gpu = gpu_instance(replace(CUBIN, latencies=latencies, warm=machine.lapses is not None), CARD, machine=machine)
        return sum("is machine 'ampere-ga10x', which was given" in str(note) for note in gpu.assumptions)

    latencies = given_latencies(["global=..900"])
    shipped = ROOT / "makespan" / "data" / "machines" / "ampere-ga10x.toml"
    (tmp_path / "mine.toml").write_text(shipped.read_text())
    own = find_machine(str(tmp_path / "mine.toml")).machine
    assert [remarks(machine) for machine in (CARD.machine, own)] == [0, 0]
    assert [remarks(machine) for machine in (replace(own, lapses=None), reading(59))] == [1, 1]


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
