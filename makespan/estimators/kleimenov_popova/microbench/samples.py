"""What microbenchmarks measured, as CSV: one row a run."""

from dataclasses import dataclass
from pathlib import Path

from makespan.errors import InputError
from makespan.estimators.kinds import Kind
from makespan.estimators.kleimenov_popova.device import NAMES
from makespan.estimators.kleimenov_popova.launch_time import EmptyKernel
from makespan.estimators.kleimenov_popova.microbench.chains import FORMS
from makespan.estimators.samples_file import positive, table, whole
from makespan.machine.values import shown

LEVELS = tuple(NAMES.values())
MEMORY, BANDWIDTH = "memory", "bandwidth"
LAUNCH_HEADER = ("blocks", "warps_per_block", "seconds")
_HEADERS = tuple(("measure", "name", "count", unit) for unit in ("cycles", "seconds"))
_NAMES = {**dict.fromkeys(FORMS, tuple(map(str, Kind))), MEMORY: LEVELS, BANDWIDTH: LEVELS}


@dataclass(frozen=True, slots=True)
class Sample:
    """One run.

    Args:
        measure: latency, delay, memory or bandwidth.
        name: a class of instructions, or a level of memory.
        count: instructions, loads that wait for each other, or bytes.
        time: in cycles, or in seconds if `in_seconds`.
    """

    measure: str
    name: str
    count: int
    time: float
    in_seconds: bool = False


def read_samples(path: Path) -> tuple[Sample, ...]:
    """Samples from CSV with the columns measure, name, count, and cycles or seconds.

    Raises:
        InputError: a file that cannot be read, or a row that is no sample; names the line.
    """
    header, rows = table(path, _HEADERS)
    return tuple(_sample(where, row, in_seconds=header[-1] == "seconds") for where, row in rows)


def read_launches(path: Path) -> tuple[EmptyKernel, ...]:
    """Launch times from CSV with the columns blocks, warps_per_block and seconds; raises as `read_samples` does."""
    _, rows = table(path, (LAUNCH_HEADER,))
    return tuple(
        EmptyKernel(whole(blocks, where), whole(warps, where), positive(seconds, where))
        for where, (blocks, warps, seconds) in rows
    )


def _sample(where: str, row: list[str], *, in_seconds: bool) -> Sample:
    measure, name, count, time = row
    if measure not in _NAMES:
        raise InputError(f"{where}: measure must be one of {', '.join(_NAMES)}, not {shown(measure)}")
    if name not in _NAMES[measure]:
        raise InputError(f"{where}: {measure} of {shown(name)}: must be one of {', '.join(_NAMES[measure])}")
    return Sample(measure, name, whole(count, where), positive(time, where), in_seconds)
