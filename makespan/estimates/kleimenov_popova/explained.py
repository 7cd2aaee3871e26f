"""The result as an `Estimate`: what was given, what was derived, and what each wave is made of."""

from collections.abc import Iterator

from makespan.estimates.estimate import Estimate, ModelQuantity, Origin, Term, from_gpu
from makespan.estimates.kleimenov_popova import gpu_timing
from makespan.estimates.kleimenov_popova.demand import HitRates
from makespan.estimates.kleimenov_popova.device import NAMES, PREFIX, GpuParameters
from makespan.estimates.kleimenov_popova.from_ptx import PtxModel, ThreadModel
from makespan.estimates.kleimenov_popova.prediction import StaticFixpointResult, WaveResult
from makespan.estimates.kleimenov_popova.recurrence import LoopRule
from makespan.estimates.profile import Coalescing
from makespan.model.machine.gpus import Gpu

METHOD = "kleimenov-popova"
MAX_TERMS = 20
_RULES = {
    LoopRule.UNROLL2: "two iterations from a fresh state, halved, for each trip; no back edge",
    LoopRule.EXACT: "up to 64 iterations from the state at the entry, then the increment of the last 16",
}


def explained_estimate(
    gpu: Gpu, device: GpuParameters, model: PtxModel, hits: HitRates, result: StaticFixpointResult
) -> Estimate:
    """Return the estimate with every quantity; `cycles` are those of the waves, `seconds` have the launch besides."""
    slowest = max(result.waves, key=lambda wave: wave.time * wave.repeats)
    return Estimate(
        method=METHOD,
        cycles=result.cycles,
        seconds=result.seconds,
        terms=tuple(_terms(result)),
        limiting=slowest.limiter,
        quantities=(
            *_given_quantities(model, hits),
            *_of_gpu(gpu, device),
            *gpu_timing.quantities(gpu, model.timing),
            *_of_kernel(model),
            *_of_launch(result),
            *(each for number, wave in enumerate(result.waves, 1) for each in _of_wave(number, wave)),
        ),
        warnings=(*result.warnings, *model.notes),
    )


def _terms(result: StaticFixpointResult) -> Iterator[Term]:
    shown, rest = result.waves[:MAX_TERMS], result.waves[MAX_TERMS:]
    for number, wave in enumerate(shown, 1):
        times = f", {wave.repeats} times" if wave.repeats > 1 else ""
        yield Term(f"wave {number}: {wave.blocks} blocks{times} ({wave.limiter})", wave.time * wave.repeats)
    if rest:
        yield Term(f"{len(rest)} waves more", sum(wave.time * wave.repeats for wave in rest))


def _given_quantities(model: PtxModel, hits: HitRates) -> Iterator[ModelQuantity]:
    yield ModelQuantity("l1pct", hits.l1, "", Origin.GIVEN, "part of all accesses that hit L1")
    yield ModelQuantity("l2pct", hits.l2, "", Origin.GIVEN, "part of all accesses that hit L2; DRAM has the rest")
    yield ModelQuantity("grid", model.kernel.blocks, "blocks", Origin.GIVEN)
    yield ModelQuantity("block", model.kernel.threads_per_block, "threads", Origin.GIVEN)
    for name, value, unit in (
        ("registers", model.kernel.registers, "per thread"),
        ("shared memory", model.kernel.shared_bytes, "B per block"),
    ):
        if value is not None:
            yield ModelQuantity(name, value, unit, Origin.GIVEN)


def _of_gpu(gpu: Gpu, device: GpuParameters) -> Iterator[ModelQuantity]:
    yield from_gpu(gpu, "sms", "SMs")
    yield from_gpu(gpu, f"{PREFIX}.pb_per_sm", "processing blocks")
    yield from_gpu(gpu, "clock_ghz", "clock")
    for name in NAMES.values():
        yield from_gpu(gpu, f"{PREFIX}.lat_{name}", f"lat_{name}")
    for name in NAMES.values():
        if gpu.missing(f"{PREFIX}.band_{name}"):
            note = "mem_bw_gbs over clock_ghz"
            yield ModelQuantity(f"band_{name}", device.bandwidth.dram, "B/cycle", Origin.DERIVED, note)
        else:
            yield from_gpu(gpu, f"{PREFIX}.band_{name}", f"band_{name}")


def _of_kernel(model: PtxModel) -> Iterator[ModelQuantity]:
    yield ModelQuantity("loop rule", model.rule.value, "", Origin.GIVEN, _RULES[model.rule])
    for thread in model.threads:
        which = _warps(thread) if len(model.threads) > 1 else ""
        yield ModelQuantity(f"time{which}", str(thread.time.cycles), "cycles", Origin.DERIVED, "main thread, by lat")
        yield ModelQuantity(f"delay{which}", float(thread.time.delay), "cycles", Origin.DERIVED, "sum of issue delays")
        yield ModelQuantity(f"mem{which}", thread.bytes, "B per thread", Origin.DERIVED, "to and from device memory")
        uncoalesced = thread.uncoalesced_bytes
        note = f"of mem, where a warp touches more segments of {Coalescing().segment_bytes} bytes than a row would"
        yield ModelQuantity(f"uncoalMem{which}", uncoalesced, "B per thread", Origin.DERIVED, note)
        yield ModelQuantity(f"syncs{which}", thread.syncs, "", Origin.DERIVED, "barriers")


def _warps(thread: ThreadModel) -> str:
    first, last = thread.warps[0], thread.warps[-1]
    if len(thread.warps) == 1:
        return f"[warp {first}]"
    is_run = last - first + 1 == len(thread.warps)
    return f"[warps {first}..{last}]" if is_run else f"[{len(thread.warps)} warps, {first}..{last}]"


def _of_launch(result: StaticFixpointResult) -> Iterator[ModelQuantity]:
    fit = result.occupancy
    limiting = f"limited by {', '.join(fit.limiting)}"
    yield ModelQuantity("w_block", fit.warps_per_block, "warps", Origin.DERIVED, "size of a block in warps")
    yield ModelQuantity("blocks per SM", fit.blocks_per_sm, "", Origin.DERIVED, limiting)
    note = "(lat_uncoal - lat_DRAM) / 28"
    yield ModelQuantity("delaydep", result.departure_delay, "cycles", Origin.DERIVED, note)
    yield ModelQuantity(
        "waves", sum(wave.repeats for wave in result.waves), "", Origin.DERIVED, "blocks that run together"
    )
    note = "in the seconds, not in the cycles"
    yield ModelQuantity("time_launch", result.launch_s, "s", Origin.DERIVED, note)
    yield ModelQuantity("time_exec", result.execution_s, "s", Origin.DERIVED, "all waves")
    if result.error is not None:
        yield ModelQuantity("error", result.error, "", Origin.DERIVED, "|(t - t_hat) / t|, t as measured")


def _of_wave(number: int, wave: WaveResult) -> Iterator[ModelQuantity]:
    note = f"{wave.limiter}; {wave.iterations} iterations"
    yield ModelQuantity(f"wave {number}", wave.time, "cycles", Origin.DERIVED, note)
    yield ModelQuantity(f"wave {number} unloaded", wave.unloaded, "cycles", Origin.DERIVED, "if memory were never busy")
    for name, value in zip(NAMES.values(), (wave.lat_l1, wave.lat_l2, wave.lat_dram, wave.lat_uncoal), strict=True):
        yield ModelQuantity(f"wave {number} lat_{name}", value, "cycles", Origin.DERIVED, "under the load of this wave")
