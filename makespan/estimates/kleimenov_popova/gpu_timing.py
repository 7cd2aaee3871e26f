"""Latencies and issue delays from a GPU description, for the classes of instructions that a kernel has.

An issue delay is the cycles that the dispatcher of a processing block is taken up by one warp instruction. It is given
as such (`delay.f64`), or follows from the throughput of a processing block by rule T (`throughput.f64`) or from its
functional units by rule U (`units.f64`).

Source: A. A. Kleimenov and N. N. Popova, A method for prediction execution time of GPU programs, Computational
Nanotechnology 8(1), 2021.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isfinite

from makespan.estimates.estimate import ModelQuantity, Origin, from_gpu
from makespan.estimates.kinds import InstructionKind
from makespan.estimates.kleimenov_popova.device import PREFIX
from makespan.estimates.kleimenov_popova.piecewise import RationalNumber, exact
from makespan.estimates.kleimenov_popova.recurrence import Single
from makespan.host.errors import InputError
from makespan.model.machine.gpus import Gpu

WARP_SIZE = 32


def by_throughput(operations_per_cycle: float, *, warp_size: int = WARP_SIZE) -> float:
    """Return the issue delay by rule T: `warp_size / throughput` cycles, of the throughput of ONE processing block.

    Raises:
        InputError: a throughput that is not positive, or a delay below one cycle, as it comes out of a throughput of
            the whole SM that was not divided by its processing blocks.
    """
    refuse_not_positive(operations_per_cycle, "throughput of a processing block", "operations/cycle")
    return check_delay(
        warp_size / operations_per_cycle,
        f"rule T with {operations_per_cycle:g} operations/cycle; divide a figure per SM by the processing blocks of it",
    )


def by_units(units: float, *, warp_size: int = WARP_SIZE) -> float:
    """Return the issue delay by rule U: `max(warp_size / units, 1)` cycles, of the units of ONE processing block.

    Raises:
        InputError: a number of units that is not positive.
    """
    refuse_not_positive(units, "functional units of a processing block", "units")
    return max(warp_size / units, 1.0)  # more units than lanes do not issue faster


def check_delay(delay: float, where: str) -> float:
    """Return the issue delay itself, in cycles.

    Raises:
        InputError: less than one cycle, or no number.
    """
    if not (isfinite(delay) and delay >= 1):
        raise InputError(f"issue delay {delay:g} is below 1 cycle: {where}")
    return delay


def refuse_not_positive(value: float, what: str, unit: str) -> None:
    """Refuse a number that is none, or not above 0."""
    if not (isfinite(value) and value > 0):
        raise InputError(f"{what} must be positive and finite, not {value:g} {unit}")


VARIABLE = InstructionKind.GLOBAL  # the class whose latency is the variable `lat`


@dataclass(frozen=True, slots=True)
class Timing:
    """The latency and issue delay of each class of instruction, in cycles; that of global memory is the variable.

    Raises:
        InputError: a latency below 0, a delay below 1, or no number.
    """

    latencies: Mapping[str, float]
    delays: Mapping[str, float]

    def __post_init__(self) -> None:
        for kind, latency in self.latencies.items():
            if not 0 <= latency < float("inf"):
                raise InputError(f"latency of {kind} must be finite and at least 0 cycles, not {latency:g}")
        for kind, delay in self.delays.items():
            check_delay(delay, f"class {kind}")

    def latency(self, kind: str) -> RationalNumber:
        """Return the latency of a class other than global memory."""
        return exact(_table_entry(self.latencies, kind, "latency"))

    def delay(self, kind: str) -> RationalNumber:
        """Return the issue delay of a class."""
        return exact(_table_entry(self.delays, kind, "delay"))


def _table_entry(table: Mapping[str, float], kind: str, what: str) -> float:
    if kind not in table:
        raise InputError(
            f"no {what} of {kind} instructions: give kleimenov_popova.{what}.{kind}, which"
            " 'makespan measure latency' measures"
        )
    return table[kind]


_RULES = {"throughput": ("rule T", by_throughput), "units": ("rule U", by_units)}
_WAYS = ("delay", *_RULES)


def timing(gpu: Gpu, singles: Mapping[str, Single], where: Mapping[str, str]) -> Timing:
    """Return the timing of the classes of some instructions.

    Args:
        singles: an instruction for each class whose delay is needed; its latency is needed if it writes a register.
        where: where it stands, by class, for messages.

    Raises:
        InputError: numbers that are missing, all of them with an instruction that needs them; a delay that is told in
            two ways, or below one cycle.
    """
    check_delays(gpu)
    gpu.require(*keys(gpu, singles), where=by_key(where))
    return Timing(
        {kind: gpu.number(f"{PREFIX}.latency.{kind}") for kind in _with_result(singles)},
        {kind: delay(gpu, kind) for kind in singles},
    )


def keys(gpu: Gpu, singles: Mapping[str, Single]) -> tuple[str, ...]:
    """Return the keys that `timing` reads, without those of delays that rule T or U gives."""
    latencies = (f"{PREFIX}.latency.{kind}" for kind in _with_result(singles))
    delays = (f"{PREFIX}.delay.{kind}" for kind in singles if not _ways_given(gpu, kind))
    return (*latencies, *delays)


def by_key(where: Mapping[str, str]) -> dict[str, str]:
    """Return where classes stand in the kernel, by the keys of their latencies and delays."""
    return {f"{PREFIX}.{table}.{kind}": place for kind, place in where.items() for table in ("latency", "delay")}


def check_delays(gpu: Gpu) -> None:
    """Refuse issue delays that are none, also those of classes that a kernel does not have."""
    if gpu.missing("warp_size"):
        return  # the rules need it; it is asked for with all other numbers
    for kind in InstructionKind:
        if _ways_given(gpu, kind):
            delay(gpu, kind)


def _with_result(singles: Mapping[str, Single]) -> list[str]:
    return [kind for kind, single in singles.items() if single.writes and kind != VARIABLE]


def delay(gpu: Gpu, kind: str) -> float:
    """Return the issue delay of a class, in cycles.

    Raises:
        InputError: it is missing, told in two ways, or below one cycle.
    """
    told = _ways_given(gpu, kind)
    if len(told) > 1:
        raise InputError(
            f"GPU {gpu.name}: the issue delay of {kind} is told in {len(told)} ways, {' and '.join(told)}; leave one"
        )
    if not told or told[0] == "delay":
        return check_delay(gpu.number(f"{PREFIX}.delay.{kind}"), f"GPU {gpu.name}, {PREFIX}.delay.{kind}")
    rule = _RULES[told[0]][1]
    try:
        return rule(gpu.number(f"{PREFIX}.{told[0]}.{kind}"), warp_size=gpu.whole("warp_size"))
    except InputError as error:
        raise InputError(f"GPU {gpu.name}: {PREFIX}.{told[0]}.{kind}: {error}") from None


def quantities(gpu: Gpu, timing: Timing) -> Iterator[ModelQuantity]:
    """Yield the numbers that were used, each with its source."""
    for kind in sorted(timing.latencies):
        yield from_gpu(gpu, f"{PREFIX}.latency.{kind}", f"lat_{kind}")
    for kind in sorted(timing.delays):
        (way,) = _ways_given(gpu, kind)
        given = from_gpu(gpu, f"{PREFIX}.{way}.{kind}", f"del_{kind}")
        if way == "delay":
            yield given
        else:
            note = f"{_RULES[way][0]} of {given.value} {given.unit}; {given.note}"
            yield ModelQuantity(given.name, timing.delays[kind], "cycles", Origin.DERIVED, note)


def _ways_given(gpu: Gpu, kind: str) -> list[str]:
    return [way for way in _WAYS if not gpu.missing(f"{PREFIX}.{way}.{kind}")]
