"""Memory warp parallelism: how many warps of an SM have requests in flight at the same time.

Equations (1) to (10), in exact rationals. Source: S. Hong and H. Kim, "An analytical model for a GPU architecture with
memory-level and thread-level parallelism awareness", ISCA 2009, sections 3.1 and 3.3.
"""

from fractions import Fraction

from makespan.errors import InputError
from makespan.estimators.hong_kim.exact import exact
from makespan.estimators.hong_kim.inputs import LANE_BYTES, HongKimGPU, HongKimKernel
from makespan.estimators.hong_kim.row import Row, Rows

_UNCOAL_NOTE = (
    "(8) charges an uncoalesced request as much as a coalesced one, although it moves a segment for each transaction:"
    " as published"
)


def memory_parallelism(gpu: HongKimGPU, kernel: HongKimKernel, resident: Rows) -> Rows:
    """MWP and what it is computed from, for a kernel that has memory instructions; see `estimate` for the symbols.

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
    warps, sms = resident.value("N"), resident.value("active_sms")

    mem_l_uncoal = mem_ld + (per_request - 1) * del_uncoal
    weight_uncoal, weight_coal = uncoal / (uncoal + coal), coal / (uncoal + coal)
    mem_l = mem_l_uncoal * weight_uncoal + mem_ld * weight_coal
    departure_delay = del_uncoal * per_request * weight_uncoal + del_coal * weight_coal
    if not departure_delay:
        raise InputError(
            f"GPU {gpu.name}: the departure delay is 0 cycles"
            f" (departure_del_coal {gpu.departure_del_coal}, departure_del_uncoal {gpu.departure_del_uncoal}):"
            " no memory takes requests at once; measure it with `makespan microbench memory`"
        )
    without_bw_full = mem_l / departure_delay
    without_bw = min(without_bw_full, warps)
    bw_per_warp = freq * load_bytes / mem_l
    peak_bw = bandwidth / (bw_per_warp * sms)
    by_bandwidth = load_bytes * freq * sms / bandwidth
    limit = "bandwidth" if by_bandwidth > departure_delay else "request rate"
    rows = [
        Row("coal_per_mw", 1, "transactions", "a constant, in no equation"),
        Row("load_bytes_per_warp used", load_bytes, "B"),
        Row("Mem_L_Coal", mem_ld, "cycles", "(2)"),
        Row("Weight_uncoal", weight_uncoal, "", "(3)"),
        Row("Weight_coal", weight_coal, "", "(3)"),
        Row("Mem_L", mem_l, "cycles", "(4)"),
        Row("Departure_delay", departure_delay, "cycles", "(5)"),
        Row("MWP_without_BW_full", without_bw_full, "warps", "(6)"),
        Row("MWP_without_BW", without_bw, "warps", "(7)"),
        Row("BW_per_warp", bw_per_warp, "GB/s", _UNCOAL_NOTE if uncoal else "(8)"),
        Row("MWP_peak_BW", peak_bw, "warps", "(8)"),
        Row("D_bw", by_bandwidth, "cycles", f"distance of requests by bandwidth; what limits is the {limit}"),
        Row("MWP", min(without_bw, peak_bw), "warps", "(9)"),
        Row("Mem_cycles", mem_l_uncoal * uncoal + mem_ld * coal, "cycles", "(10)"),
    ]
    if uncoal:
        rows.insert(0, Row("uncoal_per_mw used", per_request, "transactions"))
        rows.insert(3, Row("Mem_L_Uncoal", mem_l_uncoal, "cycles", "(1)"))
    return Rows(rows)
