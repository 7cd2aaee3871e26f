"""The result as an `Estimate`: what was given, what was derived, and what each wave is made of."""

from collections.abc import Iterator

from makespan.estimates.estimate import Estimate, ModelQuantity, Origin, Term, from_gpu
from makespan.estimates.kinds import LEVELS
from makespan.estimates.kleimenov_popova.device import DELAY_RULES, PREFIX, Timing, delay_ways
from makespan.estimates.kleimenov_popova.from_ptx import PtxModel, ThreadModel
from makespan.estimates.kleimenov_popova.prediction import StaticFixpointResult
from makespan.estimates.kleimenov_popova.waves import HitRates
from makespan.estimates.profile import Coalescing
from makespan.model.machine.gpus import Gpu

METHOD = "kleimenov-popova"
MAX_TERMS = 20
_RULES = {
    "unroll2": "two iterations from a fresh state, halved, for each trip; no back edge",
    "exact": "up to 64 iterations from the state at the entry, then the increment of the last 16",
}


def explained_estimate(gpu: Gpu, model: PtxModel, hits: HitRates, result: StaticFixpointResult) -> Estimate:
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
            *_of_gpu(gpu, model),
            *_of_timing(gpu, model.timing),
            *_of_kernel(model),
            *_of_launch(result),
            *_of_waves(result),
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


def _given_quantity(name: str, value: float | str, unit: str = "", note: str = "") -> ModelQuantity:
    return ModelQuantity(name, value, unit, Origin.GIVEN, note)


def _derived_quantity(name: str, value: float | str, unit: str = "", note: str = "") -> ModelQuantity:
    return ModelQuantity(name, value, unit, Origin.DERIVED, note)


def _given_quantities(model: PtxModel, hits: HitRates) -> Iterator[ModelQuantity]:
    yield _given_quantity("l1pct", hits.l1, note="part of all accesses that hit L1")
    yield _given_quantity("l2pct", hits.l2, note="part of all accesses that hit L2; DRAM has the rest")
    yield _given_quantity("grid", model.kernel.blocks, "blocks")
    yield _given_quantity("block", model.kernel.threads_per_block, "threads")
    if model.kernel.registers is not None:
        yield _given_quantity("registers", model.kernel.registers, "per thread")
    if model.kernel.shared_bytes is not None:
        yield _given_quantity("shared memory", model.kernel.shared_bytes, "B per block")


def _of_gpu(gpu: Gpu, model: PtxModel) -> Iterator[ModelQuantity]:
    yield from_gpu(gpu, "sms", "SMs")
    yield from_gpu(gpu, f"{PREFIX}.pb_per_sm", "processing blocks")
    yield from_gpu(gpu, "clock_ghz", "clock")
    for name in (f"{way}_{level}" for way in ("lat", "band") for level in LEVELS):
        if gpu.missing(f"{PREFIX}.{name}"):  # the bandwidth of the device memory alone may follow from others
            yield _derived_quantity(name, model.device.bandwidth.dram, "B/cycle", "mem_bw_gbs over clock_ghz")
        else:
            yield from_gpu(gpu, f"{PREFIX}.{name}", name)


def _of_timing(gpu: Gpu, timing: Timing) -> Iterator[ModelQuantity]:
    for kind in sorted(timing.latencies):
        yield from_gpu(gpu, f"{PREFIX}.latency.{kind}", f"lat_{kind}")
    for kind in sorted(timing.delays):
        (way,) = delay_ways(gpu, kind)
        given = from_gpu(gpu, f"{PREFIX}.{way}.{kind}", f"del_{kind}")
        note = f"{DELAY_RULES[way][0]} of {given.value} {given.unit}; {given.note}"
        yield given if way == "delay" else _derived_quantity(given.name, timing.delays[kind], "cycles", note)


def _of_kernel(model: PtxModel) -> Iterator[ModelQuantity]:
    yield _given_quantity("loop rule", model.rule, note=_RULES[model.rule])
    note = f"of mem, where a warp touches more segments of {Coalescing().segment_bytes} bytes than a row would"
    for thread in model.threads:
        which = _warps(thread) if len(model.threads) > 1 else ""
        yield _derived_quantity(f"time{which}", str(thread.time.cycles), "cycles", "main thread, by lat")
        yield _derived_quantity(f"delay{which}", float(thread.time.delay), "cycles", "sum of issue delays")
        yield _derived_quantity(f"mem{which}", thread.bytes, "B per thread", "to and from device memory")
        yield _derived_quantity(f"uncoalMem{which}", thread.uncoalesced_bytes, "B per thread", note)
        yield _derived_quantity(f"syncs{which}", thread.syncs, note="barriers")


def _warps(thread: ThreadModel) -> str:
    first, last = thread.warps[0], thread.warps[-1]
    if len(thread.warps) == 1:
        return f"[warp {first}]"
    is_run = last - first + 1 == len(thread.warps)
    return f"[warps {first}..{last}]" if is_run else f"[{len(thread.warps)} warps, {first}..{last}]"


def _of_launch(result: StaticFixpointResult) -> Iterator[ModelQuantity]:
    fit = result.occupancy
    yield _derived_quantity("w_block", fit.warps_per_block, "warps", "size of a block in warps")
    yield _derived_quantity("blocks per SM", fit.blocks_per_sm, note=f"limited by {', '.join(fit.limiting)}")
    yield _derived_quantity("delaydep", result.departure_delay, "cycles", "(lat_uncoal - lat_DRAM) / 28")
    yield _derived_quantity("waves", sum(wave.repeats for wave in result.waves), note="blocks that run together")
    yield _derived_quantity("time_launch", result.launch_s, "s", "in the seconds, not in the cycles")
    yield _derived_quantity("time_exec", result.execution_s, "s", "all waves")
    if result.error is not None:
        yield _derived_quantity("error", result.error, note="|(t - t_hat) / t|, t as measured")


def _of_waves(result: StaticFixpointResult) -> Iterator[ModelQuantity]:
    for number, wave in enumerate(result.waves, 1):
        yield _derived_quantity(f"wave {number}", wave.time, "cycles", f"{wave.limiter}; {wave.iterations} iterations")
        yield _derived_quantity(f"wave {number} unloaded", wave.unloaded, "cycles", "if memory were never busy")
        for name, value in zip(LEVELS, wave.latency, strict=True):
            yield _derived_quantity(f"wave {number} lat_{name}", value, "cycles", "under the load of this wave")
