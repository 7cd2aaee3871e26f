"""The estimate: waves one after the other, each raised by four fixed points to what the bandwidths allow.

A fixed point is the latency at which a level of memory delivers what a kernel asks for in the time that it then takes.

Source: A. A. Kleimenov and N. N. Popova, A method for prediction execution time of GPU programs, Computational
Nanotechnology 8(1), 2021, pp. 38-45.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from math import inf, isfinite

from makespan.estimates.kleimenov_popova.device import NAMES, GpuParameters, Levels, refuse_not_positive
from makespan.estimates.kleimenov_popova.waves import KernelModel, SyncUnit, Wave, waves
from makespan.host.errors import InputError
from makespan.model.machine.occupancy import Occupancy, occupancy

EPS = 1e-6  # cycles
MAX_ITERATIONS = 1_000_000
MAX_GROWTH = 1e9  # of a latency over the unloaded one: nothing waits for the level
_SUPPLIED = 1e-12  # rounding of the factor mul


@dataclass(frozen=True, slots=True)
class Rules:
    """The reading of the published iteration.

    Args:
        eps: the change of the time, in cycles, at which the iteration may stop.
        never_below_unloaded: a level that is not used up keeps its latency; as printed, it would get a lower one.
        until_supplied: the iteration also goes on while the demand exceeds the bandwidth; as printed, it stops as soon
            as the time stands still, though issue delays may hide that a level is overloaded.
    """

    eps: float = EPS
    never_below_unloaded: bool = True
    until_supplied: bool = True
    max_iterations: int = MAX_ITERATIONS

    def __post_init__(self) -> None:
        if not (isfinite(self.eps) and self.eps > 0):
            raise InputError(f"eps must be positive and finite, in cycles, not {self.eps:g}")

    @classmethod
    def as_printed(cls, eps: float = EPS) -> "Rules":
        """Return the algorithms as the paper prints them."""
        return cls(eps, never_below_unloaded=False, until_supplied=False)


@dataclass(frozen=True, slots=True)
class Fixpoint:
    """The state in which the iteration ended.

    Args:
        time: in cycles.
        latency: of the level, in cycles; the unloaded one where nothing waits for it.
        mul: by what the last iteration multiplied the latency; 1 where the level keeps up.
        is_insensitive: no warp waits for this level, so that its bandwidth alone limits.
        is_converged: False when the iterations were used up.
    """

    time: float
    latency: float
    mul: float
    is_insensitive: bool = False
    is_converged: bool = True
    iterations: int = 0


def fixpoint(
    time_at: Callable[[float], float], demanded: float, bandwidth: float, unloaded: float, rules: Rules | None = None
) -> Fixpoint:
    """Raise the latency of a level until it can deliver `demanded` bytes in the time that results.

    Args:
        time_at: cycles at a latency of this level; must not fall.
        bandwidth: bytes per cycle.
        unloaded: the latency to begin with, in cycles.

    Raises:
        InputError: a bandwidth or latency that is not positive, or a time that is no number.

    Source: A. A. Kleimenov and N. N. Popova, Computational Nanotechnology 8(1), 2021, figures 4 and 5.
    """
    rules = rules or Rules()
    refuse_not_positive(bandwidth, "bandwidth", "bytes/cycle")
    refuse_not_positive(unloaded, "latency of memory", "cycles")
    old, time, latency, mul = 0.0, rules.eps + 1, unloaded, inf  # differ by more than eps, so that the loop is entered
    iterations = 0
    while abs(old - time) > rules.eps or (rules.until_supplied and mul > 1 + _SUPPLIED):
        if iterations == rules.max_iterations:
            return Fixpoint(time, latency, mul, is_converged=False, iterations=iterations)
        iterations += 1
        old, time = time, time_at(latency)
        if not (isfinite(time) and time >= 0):
            raise InputError(f"the time at a memory latency of {latency:g} cycles is {time}, not a number of cycles")
        mul = demanded / time / bandwidth if time else (inf if demanded else 0.0)  # above 1: the level does not keep up
        if rules.never_below_unloaded:
            mul = max(1.0, mul)  # an idle level answers no faster than unloaded
        latency *= mul
        if latency > MAX_GROWTH * unloaded:  # the time does not grow with this latency, so there is no fixed point
            limit = max(time, demanded / bandwidth)  # then the bandwidth alone limits
            return Fixpoint(limit, unloaded, mul, is_insensitive=True, iterations=iterations)
    return Fixpoint(time, latency, mul, iterations=iterations)


DEPENDENCES, ISSUE = "dependences", "issue"
_CLOSE = 1e-9  # relative, for times that are equal but for rounding
_OVERLOAD = 1e-6  # above what an iteration that has stopped is off by


@dataclass(frozen=True, slots=True)
class WaveResult:
    """The result of one wave.

    Args:
        time: in cycles.
        unloaded: in cycles, if every level of memory answered as without load.
        latency: of each level under the load of this wave, in cycles; of L1 the largest of all SMs.
        limiter: "dependences", "issue", or the level whose bandwidth decides.
        repeats: how many such waves follow each other.
        insensitive: levels that nothing waits for.
        overlooked: levels that cannot deliver in this time, which happens with the printed rules alone.
        unconverged: fixed points that were not found, by level.
    """

    time: float
    unloaded: float
    latency: Levels
    limiter: str
    blocks: int
    repeats: int
    iterations: int
    insensitive: tuple[str, ...] = ()
    overlooked: tuple[str, ...] = ()
    unconverged: tuple[tuple[str, Fixpoint], ...] = ()


def relative_error(measured: float, predicted: float) -> float:
    """Return `|(measured - predicted) / measured|`, the error metric of the paper.

    Raises:
        InputError: a measured time that is not positive.
    """
    refuse_not_positive(measured, "the measured time", "s")
    return abs((measured - predicted) / measured)


@dataclass(frozen=True, slots=True)
class StaticFixpointResult:
    """The likely time of a launch.

    Args:
        cycles: of all waves; without the launch.
        launch_s: seconds to launch the grid; 0 where no table of launch times is known, see `warnings`.
        error: relative, against a measured time; None without one.
    """

    cycles: float
    launch_s: float
    clock_ghz: float
    waves: tuple[WaveResult, ...]
    occupancy: Occupancy
    departure_delay: float
    error: float | None = None
    warnings: tuple[str, ...] = field(default=())

    @property
    def execution_s(self) -> float:
        """Return the seconds of all waves."""
        return self.cycles / (self.clock_ghz * 1e9)

    @property
    def seconds(self) -> float:
        """Return the seconds of launch and execution."""
        return self.launch_s + self.execution_s

    @property
    def is_converged(self) -> bool:
        """Return whether every fixed point was found."""
        return not any(wave.unconverged for wave in self.waves)


def estimate(
    device: GpuParameters,
    kernel: KernelModel,
    *,
    rules: Rules | None = None,
    sync_unit: SyncUnit = "warps",
    measured_s: float | None = None,
) -> StaticFixpointResult:
    """Return the likely time of a launch of this kernel.

    Args:
        measured_s: what the launch took, in seconds, to compare with.

    Raises:
        InputError: a block that fits on no SM, a measured time that is none, a value of the kernel out of range.
    """
    rules = rules or Rules()
    warps = device.limits.warps_of(kernel.threads_per_block)
    fit = occupancy(device.limits, warps_per_block=warps, registers=kernel.registers, shared_bytes=kernel.shared_bytes)
    found = tuple(_solve_wave(wave, device, rules) for wave in waves(kernel, device, fit.blocks_per_sm, sync_unit))
    cycles = sum(wave.time * wave.repeats for wave in found)  # waves follow each other
    line = device.launch.get(warps)
    launch_s = 0.0 if line is None else line.seconds(kernel.blocks)  # a warning says that it is missing
    seconds = launch_s + cycles / (device.clock_ghz * 1e9)
    return StaticFixpointResult(
        cycles=cycles,
        launch_s=launch_s,
        clock_ghz=device.clock_ghz,
        waves=found,
        occupancy=fit,
        departure_delay=device.departure_delay,
        error=None if measured_s is None else relative_error(measured_s, seconds),
        warnings=tuple(_warnings(warps, fit, found, has_launch=line is not None)),
    )


def _warnings(warps: int, fit: Occupancy, found: Sequence[WaveResult], *, has_launch: bool) -> list[str]:
    notes = []
    if not has_launch:
        notes.append(
            f"no launch time is known for blocks of {warps} warps, so that the launch counts as 0 s; measure it with"
            " 'makespan measure launch'"
        )
    if fit.unknown:
        notes.append(f"left out of the occupancy, as demand or limit is not known: {', '.join(fit.unknown)}")
    notes += fit.notes
    overlooked = {name for wave in found for name in wave.overlooked}
    if levels := sorted({name for wave in found for name in wave.insensitive} - overlooked):
        notes.append(f"nothing waits for {', '.join(levels)}: only the bandwidth limits there")
    if overlooked:
        notes.append(
            f"the bandwidth of {', '.join(sorted(overlooked))} cannot deliver in this time: the fixed points as printed"
            " do not see it"
        )
    notes += [
        f"the fixed point of {name} did not converge in {point.iterations} iterations: time {point.time:.10g} cycles,"
        f" mul {point.mul:.10g}"
        for wave in found
        for name, point in wave.unconverged
    ]
    return notes


def _solve_wave(wave: Wave, device: GpuParameters, rules: Rules) -> WaveResult:
    latencies = [device.latency] * len(wave.loads)
    points: list[tuple[str, Fixpoint]] = []

    def time_of(sms: Iterable[int], **latency: float) -> float:
        return max(wave.loads[at][0].time(latencies[at]._replace(**latency)) for at in sms)

    def solve_level(level: str, sms: Sequence[int], demanded: float) -> None:
        unloaded, bandwidth = getattr(device.latency, level), getattr(device.bandwidth, level)
        point = fixpoint(lambda latency: time_of(sms, **{level: latency}), demanded, bandwidth, unloaded, rules)
        points.append((NAMES[level], point))
        for at in sms:
            latencies[at] = latencies[at]._replace(**{level: point.latency})

    everywhere = range(len(wave.loads))
    unloaded = time_of(everywhere)
    for at in everywhere:  # in the order of the paper, each level on top of those before; each SM has an L1
        solve_level("l1", [at], wave.loads[at][0].bytes.l1)
    for level in ("l2", "dram", "uncoal"):
        demanded = sum(getattr(load.bytes, level) * count for load, count in wave.loads)
        solve_level(level, everywhere, demanded)
    # a level that nothing waits for leaves no trace in the latencies, only in the time of its own stage
    time = max(point.time for _, point in points) if rules.never_below_unloaded else points[-1][1].time
    needs = _needs(wave, device)
    overlooked = (name for name, need in needs.items() if need > time * (1 + _OVERLOAD))
    limiter = f"bandwidth of {max(needs, key=needs.__getitem__)}"
    if time <= unloaded * (1 + _CLOSE):
        issue = max(load.issue for load, _ in wave.loads)
        limiter = ISSUE if issue >= unloaded * (1 - _CLOSE) else DEPENDENCES
    return WaveResult(
        time=time,
        unloaded=unloaded,
        latency=Levels(*(max(each) for each in zip(*latencies, strict=True))),  # SMs with more blocks have higher ones
        limiter=limiter,
        blocks=wave.blocks,
        repeats=wave.repeats,
        iterations=sum(point.iterations for _, point in points),
        overlooked=() if rules.never_below_unloaded else tuple(overlooked),
        insensitive=tuple(dict.fromkeys(name for name, point in points if point.is_insensitive)),
        unconverged=tuple((name, point) for name, point in points if not point.is_converged),
    )


def _needs(wave: Wave, device: GpuParameters) -> dict[str, float]:
    """Return the cycles in which each level delivers what the wave asks for."""
    of_all = (sum(each) for each in zip(*([n * count for n in load.bytes] for load, count in wave.loads), strict=True))
    # L1 belongs to an SM: its largest load counts, not the sum
    demanded = Levels(*of_all)._replace(l1=max(load.bytes.l1 for load, _ in wave.loads))
    return {name: need / band for name, need, band in zip(NAMES.values(), demanded, device.bandwidth, strict=True)}
