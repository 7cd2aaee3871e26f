"""The latency at which a level of memory delivers what a kernel asks for in the time that the kernel takes with it."""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, isfinite

from makespan.errors import InputError
from makespan.estimators.kleimenov_popova.delays import refuse_not_positive

EPS = 1e-6
MAX_ITERATIONS = 1_000_000
MAX_GROWTH = 1e9
_OVERLOAD = 1e-12


@dataclass(frozen=True, slots=True)
class Rules:
    """How the published iteration is read.

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
        """The algorithms as the paper prints them."""
        return cls(eps, never_below_unloaded=False, until_supplied=False)


@dataclass(frozen=True, slots=True)
class Fixpoint:
    """Where the iteration ended.

    Args:
        time: in cycles.
        latency: of the level, in cycles; the unloaded one where nothing waits for it.
        mul: by what the last iteration multiplied the latency; 1 where the level keeps up.
        is_insensitive: nobody waits for this level, so that its bandwidth alone limits.
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
    old, time, latency, mul = 0.0, rules.eps + 1, unloaded, inf
    iterations = 0
    while abs(old - time) > rules.eps or (rules.until_supplied and mul > 1 + _OVERLOAD):
        if iterations == rules.max_iterations:
            return Fixpoint(time, latency, mul, is_converged=False, iterations=iterations)
        iterations += 1
        old, time = time, _checked(time_at(latency), latency)
        mul = demanded / time / bandwidth if time else (inf if demanded else 0.0)
        if rules.never_below_unloaded:
            mul = max(1.0, mul)
        latency *= mul
        if latency > MAX_GROWTH * unloaded:
            limit = max(time, demanded / bandwidth)
            return Fixpoint(limit, unloaded, mul, is_insensitive=True, iterations=iterations)
    return Fixpoint(time, latency, mul, iterations=iterations)


def _checked(time: float, latency: float) -> float:
    if not (isfinite(time) and time >= 0):
        raise InputError(f"the time at a memory latency of {latency:g} cycles is {time}, not a number of cycles")
    return time
