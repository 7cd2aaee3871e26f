"""Resident blocks and warps against the tables of the vendor's calculator, and by hand."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from makespan.host.errors import InputError
from makespan.model.machine import gpus, shipped_machines
from makespan.model.machine.occupancy import SmLimits, occupancy

FX5600 = gpus.find_gpu("quadro-fx5600").limits
GTX280 = gpus.find_gpu("gtx280").limits
GTX1050 = gpus.find_gpu("gtx1050").limits


@pytest.mark.parametrize(
    ("limits", "threads", "registers", "shared_bytes", "blocks", "limiting"),
    [
        (FX5600, 256, 10, 0, 3, ("warps", "registers")),
        (FX5600, 256, 11, 0, 2, ("registers",)),
        (FX5600, 128, 10, 0, 6, ("warps", "registers")),
        (FX5600, 64, 8, 0, 8, ("blocks",)),
        (FX5600, 64, 8, 4096, 4, ("shared memory",)),
        (FX5600, 64, 8, 4097, 3, ("shared memory",)),
        (FX5600, 500, 5, 0, 1, ("warps",)),
        (GTX280, 256, 16, 0, 4, ("warps", "registers")),
        (GTX280, 256, 17, 0, 3, ("registers",)),
        (GTX1050, 256, 32, 0, 8, ("warps", "registers")),
        (GTX1050, 256, 33, 0, 6, ("registers",)),
        (GTX1050, 64, 32, 48 * 1024, 2, ("shared memory",)),
        (GTX1050, 32, 8, 0, 32, ("blocks",)),
        (GTX1050, 1024, None, None, 2, ("warps",)),
    ],
)
def test_resident_blocks(
    limits: SmLimits,
    threads: int,
    registers: int | None,
    shared_bytes: int | None,
    blocks: int,
    limiting: tuple[str, ...],
) -> None:
    found = occupancy(limits, warps_per_block=limits.warps_of(threads), registers=registers, shared_bytes=shared_bytes)
    assert (found.blocks_per_sm, found.limiting) == (blocks, limiting)
    assert found.warps_per_block == -(-threads // 32)


def test_registers_are_allocated_by_block_or_by_warp() -> None:
    by_block = SmLimits(32, registers=2304, register_unit=256)
    by_warp = SmLimits(32, registers=2304, register_unit=256, register_scope="warp")
    assert occupancy(by_block, warps_per_block=2, registers=33).by_resource == {"registers": 1}  # 2112, so 2304
    with pytest.raises(InputError, match="it needs 2560 registers, an SM has 2304"):
        occupancy(by_warp, warps_per_block=2, registers=33)


def test_what_is_not_known_limits_nothing_and_is_named() -> None:
    found = occupancy(FX5600, warps_per_block=4)
    assert (found.blocks_per_sm, found.unknown) == (6, ("registers", "shared memory"))
    example = gpus.find_gpu("isca09-example").limits
    found = occupancy(example, warps_per_block=4, registers=10, shared_bytes=0)
    assert (found.blocks_per_sm, found.unknown) == (8, ("warps", "registers"))
    with pytest.raises(InputError, match="the occupancy is not known: no limit is, for blocks, warps"):
        occupancy(SmLimits(32), warps_per_block=4)


def test_units_that_are_not_known_are_named_where_they_could_matter() -> None:
    limits = SmLimits(32, registers=8192, shared_bytes=16384, blocks=8, register_unit=256)
    found = occupancy(limits, warps_per_block=4, registers=10, shared_bytes=1000)
    assert found.unrounded == ("limits.register_scope", "limits.shared_unit")
    assert "limits.register_scope, limits.shared_unit not known" in found.notes[0]
    assert occupancy(limits, warps_per_block=4, shared_bytes=0).notes == ()
    assert occupancy(FX5600, warps_per_block=4, registers=10, shared_bytes=1000).notes == ()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"warps_per_block": 25}, "the block fits on no SM: it needs 25 warps, an SM has 24"),
        ({"warps_per_block": 16, "registers": 17}, "it needs 8704 registers, an SM has 8192"),
        ({"warps_per_block": 1, "shared_bytes": 16385}, "it needs 16896 bytes of shared memory, an SM has 16384"),
        ({"warps_per_block": 0}, "warps per block must be at least 1, not 0"),
        ({"warps_per_block": 1, "registers": -1}, "registers per thread must be at least 0, not -1"),
        ({"warps_per_block": 1, "shared_bytes": -1}, "shared memory must be at least 0 bytes, not -1"),
    ],
)
def test_blocks_that_fit_nowhere_are_refused(arguments: dict[str, int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        occupancy(FX5600, **arguments)


def test_a_block_has_less_shared_memory_than_an_sm() -> None:
    with pytest.raises(InputError, match="needs 49153 bytes of shared memory, a block may have 49152"):
        occupancy(GTX1050, warps_per_block=1, shared_bytes=49_153)


@pytest.mark.parametrize("threads", [0, -1])
def test_a_block_has_at_least_one_thread(threads: int) -> None:
    with pytest.raises(InputError, match=f"threads per block must be at least 1, not {threads}"):
        FX5600.warps_of(threads)


def test_a_block_has_no_more_threads_than_allowed() -> None:
    assert FX5600.warps_of(512) == 16
    with pytest.raises(InputError, match="513 threads per block: a block of this GPU has at most 512"):
        FX5600.warps_of(513)
    with pytest.raises(InputError, match="limits: registers must be at least 1, not 0"):
        SmLimits(32, registers=0)


@given(
    st.integers(1, 16),
    st.integers(0, 64),
    st.integers(0, 16384),
    st.sampled_from(["block", "warp"]),
    st.integers(1, 600),
)
def test_what_is_resident_fits_and_one_more_does_not(
    warps: int, registers: int, shared_bytes: int, scope: str, unit: int
) -> None:
    limits = SmLimits(32, 8192, 16384, None, 24, 8, 512, unit, "warp" if scope == "warp" else "block", unit)

    def fits(blocks: int) -> bool:
        pieces, size = (warps, 32 * registers) if scope == "warp" else (1, warps * 32 * registers)
        taken = blocks * pieces * -(-size // unit) * unit
        shared = blocks * -(-shared_bytes // unit) * unit
        return blocks <= 8 and blocks * warps <= 24 and taken <= 8192 and shared <= 16384

    try:
        found = occupancy(limits, warps_per_block=warps, registers=registers, shared_bytes=shared_bytes)
    except InputError:
        assert not fits(1)
    else:
        assert fits(found.blocks_per_sm)
        assert not fits(found.blocks_per_sm + 1)


NVIDIAS = [line.split("\t") for line in (Path(__file__).parent / "occupancy.tsv").read_text().splitlines()[3:]]
SM = [70, 75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121]


def blocks(limits: SmLimits, threads: int, registers: int, shared_bytes: int, barriers: int) -> int:
    try:
        warps = limits.warps_of(threads)
        found = occupancy(
            limits, warps_per_block=warps, registers=registers, shared_bytes=shared_bytes, barriers=barriers
        )
    except InputError:
        return 0
    return found.blocks_per_sm


def test_resident_blocks_are_those_of_nvidias_calculator() -> None:
    assert {int(sm) for sm, *_ in NVIDIAS} == set(SM) - {88}
    for row in NVIDIAS:
        sm, threads, registers, shared_bytes, barriers, expected = map(int, row)
        assert blocks(SmLimits.of_sm(sm), threads, registers, shared_bytes, barriers) == expected, row


@given(
    st.sampled_from(SM),
    st.tuples(st.integers(1, 1024), st.integers(0, 255), st.integers(0, 240 << 10), st.integers(0, 16)),
    st.tuples(st.integers(0, 64), st.integers(0, 16), st.integers(0, 4096), st.integers(0, 2)),
)
def test_who_takes_more_has_no_more_blocks(sm: int, takes: tuple[int, ...], more: tuple[int, ...]) -> None:
    limits = SmLimits.of_sm(sm)
    assert blocks(limits, *takes) >= blocks(limits, *(a + b for a, b in zip(takes, more, strict=True)))


def test_the_registers_of_a_warp_lie_in_one_of_four_files() -> None:
    limits = SmLimits.of_sm(86)  # 184 registers are 5888 a warp, of which a file of 16384 holds 2
    assert occupancy(limits, warps_per_block=4, registers=184).by_resource["registers"] == 2
    with pytest.raises(InputError, match="fits on no SM: it needs 11 warps of 5888 registers, an SM has 8"):
        occupancy(limits, warps_per_block=11, registers=184)  # though 11 x 5888 is less than 65536
    with pytest.raises(InputError, match="256 registers per thread: a thread has at most 255"):
        occupancy(limits, warps_per_block=1, registers=256)


def test_a_block_takes_shared_memory_that_it_did_not_ask_for() -> None:
    ask = {"warps_per_block": 1, "shared_bytes": 33 * 1024}
    assert occupancy(SmLimits.of_sm(80), **ask).by_resource["shared memory"] == 4  # 164 KiB, 34 each
    unit = occupancy(SmLimits.of_sm(86), warps_per_block=1, shared_bytes=6784)
    assert unit.by_resource["shared memory"] == 13  # 100 KiB, 7808 bytes each, which are 61 units of 128
    assert occupancy(SmLimits.of_sm(75), **ask).by_resource["shared memory"] == 1  # 64 KiB


def test_barriers_limit_from_hopper_on() -> None:
    assert str(occupancy(SmLimits.of_sm(90), warps_per_block=1, barriers=3)) == (
        "21 blocks of 1 warp can be resident: barriers limit"
    )
    found = occupancy(SmLimits.of_sm(86), warps_per_block=1, barriers=3, registers=8, shared_bytes=0)
    assert (str(found), found.unknown) == ("16 blocks of 1 warp can be resident: blocks limit", ())
    with pytest.raises(InputError, match="barriers per block must be at least 0, not -1"):
        occupancy(SmLimits.of_sm(90), warps_per_block=1, barriers=-1)


def test_what_limits_is_said_in_words() -> None:
    limits = SmLimits.of_sm(86)
    assert str(occupancy(limits, warps_per_block=32, shared_bytes=0)) == (
        "1 block of 32 warps can be resident: warps limit"
    )
    assert str(occupancy(limits, warps_per_block=24, registers=40, shared_bytes=49 * 1024)) == (
        "2 blocks of 24 warps can be resident: warps and registers and shared memory limit"
    )
    assert str(occupancy(limits, warps_per_block=2, shared_bytes=50_000)).endswith(": shared memory limits")


def test_machine_files_and_the_table_agree() -> None:
    compared = set()
    for file in shipped_machines().values():
        for capability in file.compute_capability:
            sm = int(capability.replace(".", ""))
            if sm >= 70:
                limits = SmLimits.of_sm(sm)
                assert file.values("residency") == {"warps": limits.warps, "blocks": limits.blocks}
                compared.add(sm)
    assert compared == set(SM) - {88, 103, 110}


def test_what_nobody_has_written_down_is_refused() -> None:
    with pytest.raises(InputError, match="of compute capability sm_61 holds is not known; known: 70, 75, 80"):
        SmLimits.of_sm(61)
    with pytest.raises(InputError, match="limits: registers in several parts are those of warps"):
        SmLimits(32, registers=8192, register_parts=4)
