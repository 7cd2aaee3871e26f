"""What an estimator returns: a likely time, where it comes from, and what it was computed from."""

from dataclasses import dataclass
from enum import StrEnum
from math import isfinite

from makespan.host.errors import InputError
from makespan.model.machine.gpus import DatumStatus, Gpu


class Origin(StrEnum):
    """The origin of a number."""

    GIVEN = "given"  # said by the user
    DERIVED = "derived"  # computed from the kernel and its launch
    GPU = "gpu"  # said by the GPU description, which names the source
    MEASURED = "measured"  # by a microbenchmark on the device


@dataclass(frozen=True, slots=True)
class ModelQuantity:
    """An input or intermediate value: its name in the model, value, unit, and origin.

    Args:
        note: what a reader has to know besides: the source, a rule, a doubt.
    """

    name: str
    value: float | int | str
    unit: str
    origin: Origin
    note: str = ""


_ORIGINS = {DatumStatus.GIVEN: Origin.GIVEN, DatumStatus.MEASURED: Origin.MEASURED}


def from_gpu(gpu: Gpu, key: str, name: str) -> ModelQuantity:
    """Return a number of a GPU as an input of an estimate, with its source as the note; raises as `Gpu.number` does."""
    found = gpu.datum(key)
    origin = _ORIGINS.get(found.status, Origin.GPU)
    return ModelQuantity(name, found.value, found.unit, origin, f"{found.status}: {found.source}")


@dataclass(frozen=True, slots=True)
class Term:
    """A part of the estimate. Terms that are `limits` compete (the largest counts), the others add up.

    Args:
        value: in the unit of the estimate: cycles, or seconds for methods that know no cycles.
    """

    name: str
    value: float
    is_limit: bool = False


@dataclass(frozen=True, slots=True)
class Estimate:
    """The likely time of a kernel launch by one published model. Never a bound, in either direction.

    Args:
        method: name of the model.
        cycles: of the clock that the GPU description names; None where the method measures seconds.
        seconds: None where no clock is known.
        terms: what adds up to, or competes for, the time.
        limiting: the resource or term that decides, in a few words.
        quantities: what was given and what was derived, in the order of the computation.
        warnings: what makes this estimate doubtful.
    """

    method: str
    cycles: float | None
    seconds: float | None
    terms: tuple[Term, ...]
    limiting: str
    quantities: tuple[ModelQuantity, ...]
    warnings: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        known = [value for value in (self.cycles, self.seconds) if value is not None]
        if not known:
            raise InputError(f"{self.method}: neither cycles nor seconds")
        if not all(isfinite(value) and value >= 0 for value in known):
            raise InputError(f"{self.method}: not a time: {' and '.join(map(str, known))}")
