"""Questions for a whole GPU: what is one, and what is refused."""

from dataclasses import replace
from typing import Any

import pytest

from makespan import InputError, Machine, Program
from makespan.model.gpu import GpuInstance, Grid

MACHINE = Machine.of({"M": 1, "D": 2})
BLOCK = ((Program.chain("MD"), 2), (Program.chain("D"), 1))


def test_classes_are_those_of_the_machine() -> None:
    gpu = GpuInstance.of(BLOCK, 9, MACHINE, sms=2, resident=3)
    assert gpu.grid.warps == 3
    assert gpu.sm(3).warps == 9
    with pytest.raises(InputError, match="has no units of class D, M"):
        GpuInstance.of(BLOCK, 9, Machine.of({"C": 1}), sms=2, resident=3)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"block": ()}, "a block needs at least one warp"),
        ({"block": ((Program.chain("M"), 0),)}, "the number of warps must be a whole number from 1"),
        ({"blocks": 0}, "the number of blocks of a grid"),
        ({"sms": 0}, "the number of SMs"),
        ({"sms": 5000}, "the number of SMs"),
        ({"resident": 40_000}, "warps could be resident"),
        ({"dispatch": -1}, "the cycles of dispatch"),
    ],
)
def test_what_is_no_question_is_refused(changed: dict[str, Any], message: str) -> None:
    asked = {"block": BLOCK, "blocks": 10**9, "machine": MACHINE, "sms": 2, "resident": 3, **changed}
    with pytest.raises(InputError, match=message):
        GpuInstance.of(**asked)


def test_room_bounds_the_blocks_of_an_sm() -> None:
    grid = Grid(BLOCK, 100, takes=(2, 5))
    assert GpuInstance((grid,), MACHINE, 4, (7, 11)).resident == 2
    with pytest.raises(InputError, match="fits on no SM"):
        GpuInstance((grid,), MACHINE, 4, (7, 4))


@pytest.mark.parametrize("blocks", [1, 2, 3, 9])
def test_what_is_said_to_be_resident_is_assumed_even_of_fewer_blocks(blocks: int) -> None:
    gpu = GpuInstance.of(BLOCK, blocks, MACHINE, sms=4, resident=3)
    (told,) = [note for note in map(str, gpu.assumptions) if "can be resident" in note]
    assert told.startswith("3 blocks of ")


def test_assumptions_are_those_of_a_gpu() -> None:
    gpu = GpuInstance.of(((Program.chain("MD|M"), 2),), 9, MACHINE, sms=2, resident=3, dispatch=40)
    told = "\n".join(map(str, gpu.assumptions))
    assert "3 blocks of 2 warps can be resident on an SM" in told
    assert "at most 40 cycles after it gets its room" in told
    assert "at a barrier a warp waits for the others of its block" in told
    assert "all warps" not in told
    assert "SMs share nothing but the dispatcher" in told
    busy = "\n".join(map(str, replace(gpu, dram=7).assumptions))
    assert "DRAM, which is busy in at most 7 cycles: in these a latency may stand still" in busy
    assert str(gpu) == "9 blocks of 2 x MD|M on 2 SMs of machine custom (M=1, D=2)"


def test_an_sm_is_a_question_of_its_own_where_nothing_that_sms_share_delays_it() -> None:
    gpu = GpuInstance.of(BLOCK, 4, MACHINE, sms=2, resident=2)
    assert gpu.has_lone_sms
    assert not replace(gpu, sms=1).has_lone_sms
    assert not replace(gpu, dispatch=1).has_lone_sms
    assert not replace(gpu, dram=1).has_lone_sms
