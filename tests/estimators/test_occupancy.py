"""Resident blocks and warps against the tables of the vendor's calculator, and by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from makespan.errors import InputError
from makespan.estimators import gpu
from makespan.estimators.occupancy import Limits, occupancy

FX5600 = Limits.of(gpu.find("quadro-fx5600"))
GTX280 = Limits.of(gpu.find("gtx280"))
GTX1050 = Limits.of(gpu.find("gtx1050"))


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
    limits: Limits,
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
    by_block = Limits(32, registers=2304, register_unit=256)
    by_warp = Limits(32, registers=2304, register_unit=256, register_scope="warp")
    assert occupancy(by_block, warps_per_block=2, registers=33).by_resource == {"registers": 1}  # 2112, so 2304
    with pytest.raises(InputError, match="it needs 2560 registers, an SM has 2304"):
        occupancy(by_warp, warps_per_block=2, registers=33)


def test_what_is_not_known_limits_nothing_and_is_named() -> None:
    found = occupancy(FX5600, warps_per_block=4)
    assert (found.blocks_per_sm, found.unknown) == (6, ("registers", "shared memory"))
    example = Limits.of(gpu.find("isca09-example"))
    found = occupancy(example, warps_per_block=4, registers=10, shared_bytes=0)
    assert (found.blocks_per_sm, found.unknown) == (8, ("warps", "registers"))
    with pytest.raises(InputError, match="the occupancy is not known: no limit is, for blocks, warps"):
        occupancy(Limits(32), warps_per_block=4)


def test_units_that_are_not_known_are_named_where_they_could_matter() -> None:
    limits = Limits(32, registers=8192, shared_bytes=16384, blocks=8, register_unit=256)
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
        Limits(32, registers=0)


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
    limits = Limits(32, 8192, 16384, None, 24, 8, 512, unit, "warp" if scope == "warp" else "block", unit)

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
