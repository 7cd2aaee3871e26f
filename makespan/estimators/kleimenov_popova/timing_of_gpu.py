"""Latencies and issue delays from a GPU description, for the classes of instructions that a kernel has.

A delay is given as such (`delay.f64`), or follows from the throughput of a processing block by rule T
(`throughput.f64`) or from its functional units by rule U (`units.f64`).
"""

from collections.abc import Iterator, Mapping

from makespan.errors import InputError
from makespan.estimators.estimate import Origin, Quantity
from makespan.estimators.gpu import Gpu
from makespan.estimators.instruction_classes import Kind
from makespan.estimators.kleimenov_popova.delays import by_throughput, by_units, checked
from makespan.estimators.kleimenov_popova.device import PREFIX
from makespan.estimators.kleimenov_popova.sequence import Single
from makespan.estimators.kleimenov_popova.thread_time import VARIABLE, Timing

_RULES = {"throughput": ("rule T", by_throughput), "units": ("rule U", by_units)}
_WAYS = ("delay", *_RULES)


def timing(gpu: Gpu, singles: Mapping[str, Single], where: Mapping[str, str]) -> Timing:
    """The timing of the classes of some instructions.

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
    """Those that `timing` reads, without the delays that rule T or U gives."""
    latencies = (f"{PREFIX}.latency.{kind}" for kind in _with_result(singles))
    delays = (f"{PREFIX}.delay.{kind}" for kind in singles if not _told(gpu, kind))
    return (*latencies, *delays)


def by_key(where: Mapping[str, str]) -> dict[str, str]:
    """Where classes stand, by the keys of their latencies and delays."""
    return {f"{PREFIX}.{table}.{kind}": place for kind, place in where.items() for table in ("latency", "delay")}


def check_delays(gpu: Gpu) -> None:
    """Refuse issue delays that are none, also those of classes that a kernel does not have."""
    if gpu.missing("warp_size"):
        return  # the rules need it; it is asked for with all other numbers
    for kind in Kind:
        if _told(gpu, kind):
            delay(gpu, kind)


def _with_result(singles: Mapping[str, Single]) -> list[str]:
    return [kind for kind, single in singles.items() if single.writes and kind != VARIABLE]


def delay(gpu: Gpu, kind: str) -> float:
    """The issue delay of a class, in cycles.

    Raises:
        InputError: it is missing, told in two ways, or below one cycle.
    """
    told = _told(gpu, kind)
    if len(told) > 1:
        raise InputError(
            f"GPU {gpu.name}: the issue delay of {kind} is told in {len(told)} ways, {' and '.join(told)}; leave one"
        )
    if not told or told[0] == "delay":
        return checked(gpu.number(f"{PREFIX}.delay.{kind}"), f"GPU {gpu.name}, {PREFIX}.delay.{kind}")
    rule = _RULES[told[0]][1]
    try:
        return rule(gpu.number(f"{PREFIX}.{told[0]}.{kind}"), warp_size=gpu.whole("warp_size"))
    except InputError as error:
        raise InputError(f"GPU {gpu.name}: {PREFIX}.{told[0]}.{kind}: {error}") from None


def quantities(gpu: Gpu, timing: Timing) -> Iterator[Quantity]:
    """The numbers that were used, each with its source."""
    for kind in sorted(timing.latencies):
        yield gpu.quantity(f"{PREFIX}.latency.{kind}", f"lat_{kind}")
    for kind in sorted(timing.delays):
        (way,) = _told(gpu, kind)
        given = gpu.quantity(f"{PREFIX}.{way}.{kind}", f"del_{kind}")
        if way == "delay":
            yield given
        else:
            note = f"{_RULES[way][0]} of {given.value} {given.unit}; {given.note}"
            yield Quantity(given.name, timing.delays[kind], "cycles", Origin.DERIVED, note)


def _told(gpu: Gpu, kind: str) -> list[str]:
    return [way for way in _WAYS if not gpu.missing(f"{PREFIX}.{way}.{kind}")]
