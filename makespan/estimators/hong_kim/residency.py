"""How many warps of a launch an SM holds, and in how many waves the grid runs."""

from collections.abc import Iterator
from fractions import Fraction
from math import ceil
from typing import Literal

from makespan.errors import InputError
from makespan.estimators.hong_kim.inputs import HongKimGPU, HongKimKernel
from makespan.estimators.hong_kim.row import Row, Rows
from makespan.estimators.occupancy import Occupancy, occupancy

Rep = Literal["real", "ceil"]
"""How often an SM is filled: a real number as published, or whole waves."""


def residency(gpu: HongKimGPU, kernel: HongKimKernel, rep: Rep) -> tuple[Rows, tuple[str, ...]]:
    """Resident blocks and warps, and what is doubtful about them.

    Raises:
        InputError: a block that no SM can hold, or no known limit and no `active_blocks_per_sm`.

    Source: S. Hong and H. Kim, ISCA 2009, table 1: #Active_blocks_per_SM, #Active_SMs, N and #Rep.
    """
    warps_per_block = gpu.limits.warps_of(kernel.threads_per_block)
    found = _occupancy(gpu, kernel, warps_per_block)
    fitting = None if found is None else found.blocks_per_sm
    doubts = () if found is None or kernel.active_blocks_per_sm is not None else found.notes
    supplied = ceil(Fraction(kernel.blocks, gpu.sms))
    blocks = kernel.active_blocks_per_sm or min(filter(None, (fitting, supplied)))
    sms = min(gpu.sms, kernel.blocks)
    waves = Fraction(kernel.blocks, blocks * sms)
    rows = [
        Row("warps_per_block", warps_per_block),
        *([] if fitting is None else [Row("fitting_blocks_per_sm", fitting, "", "by what an SM holds")]),
        Row("active_blocks", blocks, "", "of an SM"),
        Row("active_sms", sms),
        Row("N", blocks * warps_per_block, "warps", "active warps of an SM"),
        Row("rep", Fraction(ceil(waves)) if rep == "ceil" else waves, "", "how often every SM is filled"),
    ]
    return Rows(rows), (*_unknown(gpu, kernel), *doubts, *_warnings(blocks, fitting, supplied, waves, rep))


def _occupancy(gpu: HongKimGPU, kernel: HongKimKernel, warps_per_block: int) -> Occupancy | None:
    limits = gpu.limits
    by_demand = (limits.registers and kernel.regs_per_thread) or (limits.shared_bytes and kernel.smem_per_block)
    if kernel.active_blocks_per_sm is not None and not (limits.blocks or limits.warps or by_demand):
        return None
    try:
        return occupancy(
            gpu.limits,
            warps_per_block=warps_per_block,
            registers=kernel.regs_per_thread,
            shared_bytes=kernel.smem_per_block,
        )
    except InputError as error:
        raise InputError(f"GPU {gpu.name}: {error}") from None


def _unknown(gpu: HongKimGPU, kernel: HongKimKernel) -> Iterator[str]:
    if kernel.regs_per_thread is None and kernel.active_blocks_per_sm is None and gpu.limits.registers is not None:
        yield "the registers of a thread are not known, and do not limit the resident blocks (--regs, --ptxas)"


def _warnings(blocks: int, fitting: int | None, supplied: int, waves: Fraction, rep: Rep) -> Iterator[str]:
    if fitting is not None and blocks > fitting:
        yield f"{blocks} active blocks per SM were given, but only {fitting} fit"
    if blocks > supplied:
        yield f"{blocks} active blocks per SM were given, but the grid supplies at most {supplied} to an SM"
    if waves < 1 and rep == "real":
        yield (
            f"the grid is {float(waves):.3g} of a wave, and the published model charges no more than that"
            " (--rep ceil: a whole wave)"
        )
