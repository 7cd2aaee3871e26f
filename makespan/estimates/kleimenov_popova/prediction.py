"""The estimate: waves one after the other, each raised by four fixed points to what the bandwidths allow.

A fixed point is the latency at which a level of memory delivers what a kernel asks for in the time that it then takes.

Source: A. A. Kleimenov and N. N. Popova, A method for prediction execution time of GPU programs, Computational
Nanotechnology 8(1), 2021, pp. 38-45.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import inf, isfinite

from makespan.estimates.kleimenov_popova.demand import KernelModel, Load, SyncUnit, Wave, waves
from makespan.estimates.kleimenov_popova.device import NAMES, GpuParameters, Levels, relative_error
from makespan.estimates.kleimenov_popova.gpu_timing import refuse_not_positive
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
        old, time = time, _check_time(time_at(latency), latency)
        mul = demanded / time / bandwidth if time else (inf if demanded else 0.0)  # above 1: the level does not keep up
        if rules.never_below_unloaded:
            mul = max(1.0, mul)  # an idle level answers no faster than unloaded
        latency *= mul
        if latency > MAX_GROWTH * unloaded:  # the time does not grow with this latency, so there is no fixed point
            limit = max(time, demanded / bandwidth)  # then the bandwidth alone limits
            return Fixpoint(limit, unloaded, mul, is_insensitive=True, iterations=iterations)
    return Fixpoint(time, latency, mul, iterations=iterations)


def _check_time(time: float, latency: float) -> float:
    if not (isfinite(time) and time >= 0):
        raise InputError(f"the time at a memory latency of {latency:g} cycles is {time}, not a number of cycles")
    return time


DEPENDENCES, ISSUE = "dependences", "issue"
_CLOSE = 1e-9  # relative, for times that are equal but for rounding
_OVERLOAD = 1e-6  # above what an iteration that has stopped is off by


@dataclass(frozen=True, slots=True)
class WaveResult:
    """The result of one wave.

    Args:
        time: in cycles.
        unloaded: in cycles, if every level of memory answered as without load.
        lat_l1: the largest of all SMs; all latencies are those under the load of this wave, in cycles.
        limiter: "dependences", "issue", or the level whose bandwidth decides.
        repeats: how many such waves follow each other.
        insensitive: levels that nothing waits for.
        overlooked: levels that cannot deliver in this time, which happens with the printed rules alone.
        unconverged: fixed points that were not found, by level.
    """

    time: float
    unloaded: float
    lat_l1: float
    lat_l2: float
    lat_dram: float
    lat_uncoal: float
    limiter: str
    blocks: int
    repeats: int
    iterations: int
    insensitive: tuple[str, ...] = ()
    overlooked: tuple[str, ...] = ()
    unconverged: tuple[tuple[str, Fixpoint], ...] = ()


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
    sync_unit: SyncUnit = SyncUnit.WARPS,
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


@dataclass(slots=True)
class _Stages:
    """The fixed points of one wave, in their order."""

    wave: Wave
    device: GpuParameters
    rules: Rules
    latencies: list[Levels]
    points: list[tuple[str, Fixpoint]] = field(default_factory=list)

    def each_sm(self) -> None:
        """Find the fixed point of the L1 cache of every SM."""
        for at, (load, _) in enumerate(self.wave.loads):
            levels = self.latencies[at]
            point = self._point("l1", partial(_time_at_l1, load, levels), load.bytes)
            self.latencies[at] = levels._replace(l1=point.latency)

    def whole_gpu(self, name: str) -> None:
        """Find the fixed point of a level that all SMs share."""
        before = list(self.latencies)

        def time(lat: float) -> float:
            return self.wave.time([levels._replace(**{name: lat}) for levels in before])

        point = self._point(name, time, self.wave.bytes)
        self.latencies = [levels._replace(**{name: point.latency}) for levels in before]

    def _point(self, name: str, time: Callable[[float], float], demanded: Levels) -> Fixpoint:
        unloaded = getattr(self.device.latency, name)
        bandwidth = getattr(self.device.bandwidth, name)
        point = fixpoint(time, getattr(demanded, name), bandwidth, unloaded, self.rules)
        self.points.append((NAMES[name], point))
        return point


def _time_at_l1(load: Load, levels: Levels, latency: float) -> float:
    return load.time(levels._replace(l1=latency))


def _solve_wave(wave: Wave, device: GpuParameters, rules: Rules) -> WaveResult:
    stages = _Stages(wave, device, rules, [device.latency] * len(wave.loads))
    unloaded = wave.time(stages.latencies)
    stages.each_sm()
    for name in ("l2", "dram", "uncoal"):  # in the order of the paper, each level on top of those before
        stages.whole_gpu(name)
    last = stages.points[-1][1].time
    # a level that nothing waits for leaves no trace in the latencies, only in the time of its own stage
    time = max(point.time for _, point in stages.points) if rules.never_below_unloaded else last
    # SMs with more blocks have higher ones
    levels = Levels(*(max(each) for each in zip(*stages.latencies, strict=True)))
    return WaveResult(
        time=time,
        unloaded=unloaded,
        lat_l1=levels.l1,
        lat_l2=levels.l2,
        lat_dram=levels.dram,
        lat_uncoal=levels.uncoal,
        limiter=_limiter(wave, device, time, unloaded),
        blocks=wave.blocks,
        repeats=wave.repeats,
        iterations=sum(point.iterations for _, point in stages.points),
        overlooked=() if rules.never_below_unloaded else tuple(_overloaded_levels(wave, device, time)),
        insensitive=tuple(dict.fromkeys(name for name, point in stages.points if point.is_insensitive)),
        unconverged=tuple((name, point) for name, point in stages.points if not point.is_converged),
    )


def _limiter(wave: Wave, device: GpuParameters, time: float, unloaded: float) -> str:
    """Return the resource that would have to change for this wave to become shorter."""
    if time <= unloaded * (1 + _CLOSE):
        return ISSUE if max(load.issue for load, _ in wave.loads) >= unloaded * (1 - _CLOSE) else DEPENDENCES
    needs = _needs(wave, device)
    return f"bandwidth of {max(needs, key=needs.__getitem__)}"


def _needs(wave: Wave, device: GpuParameters) -> dict[str, float]:
    """Return the cycles in which each level delivers what the wave asks for."""
    # L1 belongs to an SM: its largest load counts, not the sum
    demanded = wave.bytes._replace(l1=max(load.bytes.l1 for load, _ in wave.loads))
    return {name: need / band for name, need, band in zip(NAMES.values(), demanded, device.bandwidth, strict=True)}


def _overloaded_levels(wave: Wave, device: GpuParameters, time: float) -> Iterator[str]:
    yield from (name for name, need in _needs(wave, device).items() if need > time * (1 + _OVERLOAD))
