"""Memory warp parallelism: how many warps of an SM have requests in flight at the same time.

Equations (1) to (10), in exact rationals. Source: S. Hong and H. Kim, "An analytical model for a GPU architecture with
memory-level and thread-level parallelism awareness", ISCA 2009, sections 3.1 and 3.3.
"""

from dataclasses import dataclass
from fractions import Fraction

from makespan.errors import InputError
from makespan.estimators.hong_kim.exact import exact
from makespan.estimators.hong_kim.inputs import LANE_BYTES, HongKimGPU, HongKimKernel
from makespan.estimators.hong_kim.residency import Residency

COAL_PER_MW = 1
"""Transactions of a coalesced request: a constant of the model, which enters no equation."""


@dataclass(frozen=True, slots=True)
class MemoryParallelism:
    """The memory side of a kernel; times in cycles of the SM.

    Args:
        weight_uncoal: share of the memory instructions that are uncoalesced; `weight_coal` is the rest.
        mem_l: mean latency of a request, its own transactions included.
        departure_delay: mean distance between the requests of two warps.
        mwp_without_bw_full: warps whose requests fit into the latency of one, as far as departures limit them.
        bw_per_warp: GB/s that one warp in flight draws.
        mwp_peak_bw: warps that the bandwidth of the device memory feeds.
        bandwidth_departure: distance between the requests of an SM that the bandwidth alone would cause; the larger
            one of it and `departure_delay` is what limits, as `mwp_peak_bw` is `mem_l` over this.
        mwp: the least of the two and of the active warps.
        is_saturated: not even all active warps reach a limit: MWP is N, by the values before `min`.
    """

    uncoal_per_mw: Fraction
    load_bytes_per_warp: Fraction
    mem_l_uncoal: Fraction | None
    mem_l_coal: Fraction
    weight_uncoal: Fraction
    weight_coal: Fraction
    mem_l: Fraction
    departure_delay: Fraction
    mwp_without_bw_full: Fraction
    mwp_without_bw: Fraction
    bw_per_warp: Fraction
    mwp_peak_bw: Fraction
    bandwidth_departure: Fraction
    mwp: Fraction
    mem_cycles: Fraction
    is_saturated: bool


def memory_parallelism(gpu: HongKimGPU, kernel: HongKimKernel, resident: Residency) -> MemoryParallelism:
    """MWP and what it is computed from, for a kernel that has memory instructions.

    A departure delay is asked for only where the kernel has requests of its kind.

    Raises:
        InputError: a parameter that was not measured, or no time at all between departures.
    """
    coal, uncoal = exact(kernel.coal_mem_insts, "coal_mem_insts"), exact(kernel.uncoal_mem_insts, "uncoal_mem_insts")
    transactions = kernel.uncoal_per_mw if kernel.uncoal_per_mw is not None else gpu.uncoal_per_mw
    per_request = exact(gpu.warp_size if transactions is None else transactions, "uncoal_per_mw")
    load_bytes = exact(kernel.load_bytes_per_warp or LANE_BYTES * gpu.warp_size, "load_bytes_per_warp")
    mem_ld = gpu.measured("mem_ld")
    del_coal = gpu.measured("departure_del_coal") if coal else Fraction(0)
    del_uncoal = gpu.measured("departure_del_uncoal") if uncoal else Fraction(0)
    freq, bandwidth = exact(gpu.freq_ghz, "freq_ghz"), exact(gpu.mem_bw_gbs, "mem_bw_gbs")

    mem_l_uncoal = mem_ld + (per_request - 1) * del_uncoal  # (1)
    mem_l_coal = mem_ld  # (2)
    weight_uncoal, weight_coal = uncoal / (uncoal + coal), coal / (uncoal + coal)  # (3)
    mem_l = mem_l_uncoal * weight_uncoal + mem_l_coal * weight_coal  # (4)
    departure_delay = del_uncoal * per_request * weight_uncoal + del_coal * weight_coal  # (5)
    if not departure_delay:
        raise InputError(
            f"GPU {gpu.name}: the departure delay is 0 cycles"
            f" (departure_del_coal {gpu.departure_del_coal}, departure_del_uncoal {gpu.departure_del_uncoal}):"
            " no memory takes requests at once; measure it with `makespan microbench memory`"
        )
    without_bw_full = mem_l / departure_delay  # (6)
    without_bw = min(without_bw_full, Fraction(resident.active_warps))  # (7)
    bw_per_warp = freq * load_bytes / mem_l  # (8)
    peak_bw = bandwidth / (bw_per_warp * resident.active_sms)
    return MemoryParallelism(
        uncoal_per_mw=per_request,
        load_bytes_per_warp=load_bytes,
        mem_l_uncoal=mem_l_uncoal if uncoal else None,
        mem_l_coal=mem_l_coal,
        weight_uncoal=weight_uncoal,
        weight_coal=weight_coal,
        mem_l=mem_l,
        departure_delay=departure_delay,
        mwp_without_bw_full=without_bw_full,
        mwp_without_bw=without_bw,
        bw_per_warp=bw_per_warp,
        mwp_peak_bw=peak_bw,
        bandwidth_departure=load_bytes * freq * resident.active_sms / bandwidth,
        mwp=min(without_bw, peak_bw),  # (9)
        mem_cycles=mem_l_uncoal * uncoal + mem_l_coal * coal,  # (10)
        is_saturated=min(without_bw_full, peak_bw) >= resident.active_warps,
    )
