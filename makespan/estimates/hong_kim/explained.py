"""An estimate with every quantity on its way, for a reader."""

from collections.abc import Iterator, Mapping
from fractions import Fraction

from makespan.estimates.estimate import Estimate, ModelQuantity, Origin, Term, from_gpu
from makespan.estimates.hong_kim.computation import CompModel, needed_parameters
from makespan.estimates.hong_kim.counts import coalescing
from makespan.estimates.hong_kim.inputs import DEVICE, KEYS, HongKimKernel, of_gpu, throughput_of
from makespan.estimates.hong_kim.model import Bound, HongKimResult, Rep, Variant, estimate
from makespan.estimates.profile import Rule
from makespan.model.machine.gpus import DatumStatus, Gpu

METHOD = "hong-kim"
_LIMITING = {
    Bound.MEMORY: "memory: more warps wait for it than it serves at a time",
    Bound.COMPUTE: "computation: it hides the memory",
    Bound.LATENCY: "latency: too few warps to keep memory or computation busy",
    Bound.COMPUTE_ONLY: "computation: there is no access to device memory",
}


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
    """Return the likely time of a launch, explained.

    Args:
        origin: of the counts of the kernel.
        notes: what to know of a count, by its name in `HongKimKernel`.
        warnings: what is doubtful about the counts.
    """
    gpu.require(*DEVICE, *(KEYS[name] for name in needed_parameters(kernel, throughput_of(gpu), comp_model)))
    result = estimate(of_gpu(gpu), kernel, variant=variant, rep=rep, comp_model=comp_model)
    guessed = [
        f"{key} is assumed: {gpu.data[key].source}"
        for key in ("sms", "clock_ghz", "mem_bw_gbs", *KEYS.values())
        if key in gpu.data and gpu.data[key].status is DatumStatus.ASSUMED
    ]
    if origin is Origin.DERIVED and kernel.mem_insts:
        guessed += _guessed_coalescing(gpu)
    return Estimate(
        method=METHOD,
        cycles=float(result.total_cycles),
        seconds=float(result.seconds),
        terms=(Term("execution", float(result["exec"])), Term("synchronisation", float(result["Synch_cost"]))),
        limiting=_LIMITING[result.bound],
        quantities=(
            *_given_quantities(kernel, origin, notes or {}),
            *_of_gpu(gpu),
            *_of_result(result, variant),
        ),
        warnings=(*warnings, *guessed, *result.warnings),
    )


def _guessed_coalescing(gpu: Gpu) -> Iterator[str]:
    """Yield a warning if the GPU description does not say how lanes share transactions."""
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


def _given_quantities(kernel: HongKimKernel, origin: Origin, notes: Mapping[str, str]) -> Iterator[ModelQuantity]:
    for name in kernel.__slots__:
        value = getattr(kernel, name)
        said = Origin.GIVEN if name in ("threads_per_block", "blocks", "active_blocks_per_sm") else origin
        if name == "operations":
            for operation, count in kernel.operations.items():
                yield ModelQuantity(f"{operation}_insts", _plain(count), "", said, notes.get(name, ""))
        elif value is not None:
            yield ModelQuantity(name, _plain(value), _UNITS.get(name, ""), said, notes.get(name, ""))


def _of_gpu(gpu: Gpu) -> Iterator[ModelQuantity]:
    names = {"sms": "sms", "freq_ghz": "clock_ghz", "mem_bw_gbs": "mem_bw_gbs", "warp_size": "warp_size", **KEYS}
    for name, key in names.items():
        if key in gpu.data:
            yield from_gpu(gpu, key, name)


def _of_result(result: HongKimResult, variant: Variant) -> Iterator[ModelQuantity]:
    for name, quantity in result.symbols.items():
        if name == "published exec":
            yield ModelQuantity("case", str(result.case), "", Origin.DERIVED)
            yield ModelQuantity("bound", str(result.bound), "", Origin.DERIVED)
            yield ModelQuantity("variant", variant, "", Origin.GIVEN)
        yield quantity
        if name == "issue_bound":
            yield ModelQuantity("below_issue_bound", str(result.below_issue_bound).lower(), "", Origin.DERIVED)


def _plain(value: Fraction | float) -> int | float:
    return value if isinstance(value, int) else float(value)
