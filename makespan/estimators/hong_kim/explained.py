"""An estimate with every quantity on its way, for a reader."""

from collections.abc import Iterator, Mapping
from fractions import Fraction

from makespan.estimators.estimate import Estimate, Origin, Quantity, Term
from makespan.estimators.gpu import Gpu
from makespan.estimators.hong_kim.counts import coalescing
from makespan.estimators.hong_kim.description import KEYS, assumed, of_gpu, require
from makespan.estimators.hong_kim.inputs import HongKimKernel
from makespan.estimators.hong_kim.memory import COAL_PER_MW, MemoryParallelism
from makespan.estimators.hong_kim.model import Bound, HongKimResult, Variant, estimate
from makespan.estimators.hong_kim.residency import Rep
from makespan.estimators.hong_kim.throughput import CompModel
from makespan.estimators.profile import Rule

METHOD = "hong-kim"
_LIMITING = {
    Bound.MEMORY: "memory: more warps wait for it than it serves at a time",
    Bound.COMPUTE: "computation: it hides the memory",
    Bound.LATENCY: "latency: too few warps to keep memory or computation busy",
    Bound.COMPUTE_ONLY: "computation: there is no access to device memory",
}
_UNCOAL_NOTE = (
    "charges an uncoalesced request as much as a coalesced one, although it moves a segment for each transaction:"
    " as published"
)


def estimate_launch(
    gpu: Gpu,
    kernel: HongKimKernel,
    *,
    variant: Variant = "isca09",
    rep: Rep = "real",
    comp_model: CompModel | None = None,
    origin: Origin = Origin.GIVEN,
    notes: Mapping[str, str] | None = None,
    warnings: tuple[str, ...] = (),
) -> Estimate:
    """The likely time of a launch, explained.

    Args:
        origin: of the counts of the kernel.
        notes: what to know of a count, by its name in `HongKimKernel`.
        warnings: what is doubtful about the counts.

    Raises:
        InputError: see `estimate`.
    """
    require(gpu, kernel, comp_model)
    result = estimate(of_gpu(gpu), kernel, variant=variant, rep=rep, comp_model=comp_model)
    guessed = [f"{key} is assumed: {gpu.data[key].source}" for key in assumed(gpu)]
    if origin is Origin.DERIVED and result.memory:
        guessed += _guessed_coalescing(gpu)
    return Estimate(
        method=METHOD,
        cycles=float(result.total_cycles),
        seconds=float(result.seconds),
        terms=(Term("execution", float(result.exec_cycles)), Term("synchronisation", float(result.synch_cost))),
        limiting=_LIMITING[result.bound],
        quantities=(
            *_given(kernel, origin, notes or {}),
            *_of_gpu(gpu),
            *_launch(result),
            *(_memory(result.memory) if result.memory else ()),
            *_derived(result),
        ),
        warnings=(*warnings, *guessed, *result.warnings),
    )


def _guessed_coalescing(gpu: Gpu) -> Iterator[str]:
    """What the description of a GPU leaves open of `coalescing`."""
    how = coalescing(gpu)
    used = ("hong_kim.coalescing_rule", *(("hong_kim.segment_bytes",) if how.rule is Rule.SEGMENTS else ()))
    missing = gpu.missing(*used)
    if missing:
        rule = f"segments of {how.segment_bytes} bytes" if how.rule is Rule.SEGMENTS else how.rule
        yield f"how lanes share transactions is assumed, {rule}: GPU {gpu.name} lacks {' and '.join(missing)}"


_UNITS = {
    "threads_per_block": "threads",
    "smem_per_block": "B",
    "load_bytes_per_warp": "B",
    "uncoal_per_mw": "transactions",
}


def _given(kernel: HongKimKernel, origin: Origin, notes: Mapping[str, str]) -> Iterator[Quantity]:
    for name in kernel.__slots__:
        value = getattr(kernel, name)
        said = Origin.GIVEN if name in ("threads_per_block", "blocks", "active_blocks_per_sm") else origin
        if name == "operations":
            for operation, count in kernel.operations.items():
                yield Quantity(f"{operation}_insts", _plain(count), "", said, notes.get(name, ""))
        elif value is not None:
            yield Quantity(name, _plain(value), _UNITS.get(name, ""), said, notes.get(name, ""))


def _of_gpu(gpu: Gpu) -> Iterator[Quantity]:
    names = {"sms": "sms", "freq_ghz": "clock_ghz", "mem_bw_gbs": "mem_bw_gbs", "warp_size": "warp_size", **KEYS}
    for name, key in names.items():
        if key in gpu.data:
            yield gpu.quantity(key, name)


def _launch(result: HongKimResult) -> Iterator[Quantity]:
    resident = result.residency
    yield _derived_quantity("warps_per_block", resident.warps_per_block)
    if resident.fitting_blocks is not None:
        yield _derived_quantity("fitting_blocks_per_sm", resident.fitting_blocks, note="by what an SM holds")
    yield _derived_quantity("active_blocks", resident.active_blocks_per_sm, note="of an SM")
    yield _derived_quantity("active_sms", resident.active_sms)
    yield _derived_quantity("N", resident.active_warps, "warps", "active warps of an SM")
    yield _derived_quantity("rep", resident.rep, "", "how often every SM is filled")
    yield _derived_quantity("mem_insts", result.mem_insts)
    yield _derived_quantity("total_insts", result.total_insts, "", "without barriers")


def _memory(memory: MemoryParallelism) -> Iterator[Quantity]:
    cycles = "cycles"
    if memory.mem_l_uncoal is not None:
        yield _derived_quantity("uncoal_per_mw used", memory.uncoal_per_mw, "transactions")
    yield _derived_quantity("coal_per_mw", COAL_PER_MW, "transactions", "a constant, in no equation")
    yield _derived_quantity("load_bytes_per_warp used", memory.load_bytes_per_warp, "B")
    if memory.mem_l_uncoal is not None:
        yield _derived_quantity("Mem_L_Uncoal", memory.mem_l_uncoal, cycles, "(1)")
    yield _derived_quantity("Mem_L_Coal", memory.mem_l_coal, cycles, "(2)")
    yield _derived_quantity("Weight_uncoal", memory.weight_uncoal, "", "(3)")
    yield _derived_quantity("Weight_coal", memory.weight_coal, "", "(3)")
    yield _derived_quantity("Mem_L", memory.mem_l, cycles, "(4)")
    yield _derived_quantity("Departure_delay", memory.departure_delay, cycles, "(5)")
    yield _derived_quantity("MWP_without_BW_full", memory.mwp_without_bw_full, "warps", "(6)")
    yield _derived_quantity("MWP_without_BW", memory.mwp_without_bw, "warps", "(7)")
    note = f"(8) {_UNCOAL_NOTE}" if memory.weight_uncoal else "(8)"
    yield _derived_quantity("BW_per_warp", memory.bw_per_warp, "GB/s", note)
    yield _derived_quantity("MWP_peak_BW", memory.mwp_peak_bw, "warps", "(8)")
    limit = "bandwidth" if memory.bandwidth_departure > memory.departure_delay else "request rate"
    yield _derived_quantity(
        "D_bw", memory.bandwidth_departure, cycles, f"distance of requests by bandwidth; what limits is the {limit}"
    )
    yield _derived_quantity("MWP", memory.mwp, "warps", "(9)")
    yield _derived_quantity("Mem_cycles", memory.mem_cycles, cycles, "(10)")


def _derived(result: HongKimResult) -> Iterator[Quantity]:
    charged = "issue_cycles for each instruction" if result.comp_model == "uniform" else "by the table of throughputs"
    yield _derived_quantity("Comp_cycles", result.comp_cycles, "cycles", f"(11) {charged}")
    if result.cwp_full is not None and result.cwp is not None and result.comp_p is not None:
        yield _derived_quantity("CWP_full", result.cwp_full, "warps", "(12)")
        yield _derived_quantity("CWP", result.cwp, "warps", "(12)")
        yield _derived_quantity("Comp_p", result.comp_p, "cycles", "(13)")
    yield Quantity("case", str(result.case), "", Origin.DERIVED)
    yield Quantity("bound", str(result.bound), "", Origin.DERIVED)
    yield Quantity("variant", result.variant, "", Origin.GIVEN)
    yield _derived_quantity("published exec", result.published_exec, "cycles", "by the formula of the case")
    yield _derived_quantity("issue_bound", result.issue_bound, "cycles", "to issue all instructions")
    yield Quantity("below_issue_bound", str(result.below_issue_bound).lower(), "", Origin.DERIVED)
    yield _derived_quantity("exec", result.exec_cycles, "cycles")
    yield _derived_quantity("Synch_cost", result.synch_cost, "cycles", "(14)")
    yield _derived_quantity("CPI", result.cpi, "cycles", "(15) per instruction of a warp")


def _derived_quantity(name: str, value: Fraction | int, unit: str = "", note: str = "") -> Quantity:
    return Quantity(name, _plain(value), unit, Origin.DERIVED, note)


def _plain(value: Fraction | float) -> int | float:
    """A number that JSON knows."""
    return value if isinstance(value, int) else float(value)
