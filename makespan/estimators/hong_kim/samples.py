"""What microbenchmarks measured, as CSV: one row a run."""

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from makespan.errors import InputError
from makespan.estimators import samples_file
from makespan.estimators.hong_kim.exact import exact, whole
from makespan.machine.values import shown

PATTERNS = ("latency", "coalesced", "uncoalesced")


@dataclass(frozen=True, slots=True)
class MemorySample:
    """One run of a memory kernel.

    Args:
        requests: of warps, by all blocks together; for the latency kernel the loads of its one thread.
        time: in cycles of the SM, or in seconds if `in_seconds`.
    """

    pattern: str
    requests: int
    time: Fraction
    in_seconds: bool = False

    def __post_init__(self) -> None:
        if self.pattern not in PATTERNS:
            raise InputError(f"pattern must be one of {', '.join(PATTERNS)}, not {shown(self.pattern)}")
        whole(self.requests, "requests")
        exact(self.time, "seconds" if self.in_seconds else "cycles", positive=True)

    def cycles(self, clock_ghz: Fraction) -> Fraction:
        """The time in cycles."""
        return self.time * clock_ghz * 10**9 if self.in_seconds else self.time


@dataclass(frozen=True, slots=True)
class ThroughputSample:
    """One run of a throughput kernel; `operations` are those of one work-item, and seconds of all."""

    operation: str
    operations: int
    global_size: int
    seconds: Fraction


def read_memory(path: Path) -> tuple[MemorySample, ...]:
    """Samples from CSV with the columns pattern, requests, and cycles or seconds.

    Raises:
        InputError: a file that cannot be read or is no such table; names the line.
    """
    header, rows = samples_file.table(path, tuple(("pattern", "requests", unit) for unit in ("cycles", "seconds")))
    return tuple(_memory_sample(where, row, in_seconds=header[-1] == "seconds") for where, row in rows)


def read_throughput(path: Path) -> tuple[ThroughputSample, ...]:
    """Samples from CSV with the columns operation, operations, global_size and seconds; raises as `read_memory`."""
    _, rows = samples_file.table(path, (("operation", "operations", "global_size", "seconds"),))
    return tuple(
        ThroughputSample(
            operation, samples_file.whole(operations, where), samples_file.whole(size, where), _time(seconds, where)
        )
        for where, (operation, operations, size, seconds) in rows
    )


def memory_csv(samples: tuple[MemorySample, ...]) -> str:
    """The text of a file that `read_memory` reads; all samples are in the unit of the first."""
    unit = "seconds" if samples[0].in_seconds else "cycles"
    rows = (f"{sample.pattern},{sample.requests},{float(sample.time)!r}" for sample in samples)
    return "\n".join([f"pattern,requests,{unit}", *rows]) + "\n"


def throughput_csv(samples: tuple[ThroughputSample, ...]) -> str:
    """The text of a file that `read_throughput` reads."""
    rows = (f"{s.operation},{s.operations},{s.global_size},{float(s.seconds)!r}" for s in samples)
    return "\n".join(["operation,operations,global_size,seconds", *rows]) + "\n"


def _memory_sample(where: str, row: list[str], *, in_seconds: bool) -> MemorySample:
    pattern, requests, time = row
    if pattern not in PATTERNS:
        raise InputError(f"{where}: pattern must be one of {', '.join(PATTERNS)}, not {shown(pattern)}")
    return MemorySample(pattern, samples_file.whole(requests, where), _time(time, where), in_seconds)


def _time(text: str, where: str) -> Fraction:
    return exact(samples_file.positive(text, where), f"{where}: a time", positive=True)
