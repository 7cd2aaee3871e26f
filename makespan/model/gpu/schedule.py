"""A schedule of a whole GPU, run-length coded: SMs that do the same are written once, and so are cycles that repeat."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple


class BlockTrace(NamedTuple):
    """The execution of one block: its paths and times. Many blocks may have the same trace.

    Args:
        grid: the number of its grid.
        paths: the places that every warp of the block visits, barriers included.
        latencies: the latency of every executed instruction, by warp; () if the machine leaves no choice.
        uses: the resources and cycles of every executed instruction, by warp, as in `Schedule.uses`; () if the machine
            leaves no choice.
    """

    grid: int
    paths: tuple[tuple[int, ...], ...]
    latencies: tuple[tuple[int, ...], ...] = ()
    uses: tuple[tuple[tuple[tuple[int, int], ...], ...], ...] = ()


class BlockStart(NamedTuple):
    """The start of a block: it gets the room of a slot in a cycle, counted from the begin of its stretch.

    Its warps begin `delay` cycles later. `course` is the number of its trace in `GpuSchedule.courses`.
    """

    cycle: int
    slot: int
    course: int
    delay: int = 0


@dataclass(frozen=True, slots=True)
class RepeatedCycles:
    """A stretch of consecutive cycles of an SM, which occurs `repeat` times in a row.

    Args:
        cycles: the warps that issue in every cycle, each as (slot, warp of the block), sorted.
        begins: the starts of blocks, in order.
    """

    cycles: tuple[tuple[tuple[int, int], ...], ...]
    begins: tuple[BlockStart, ...] = ()
    repeat: int = 1


@dataclass(frozen=True, slots=True)
class SmHistory:
    """The execution of `sms` equal SMs, from cycle 0 to the end of their last block.

    Args:
        partitions: the partition of every warp of a block, by slot; () if the machine leaves no choice.
    """

    sms: int
    stretches: tuple[RepeatedCycles, ...]
    partitions: tuple[tuple[int, ...], ...] = ()

    @property
    def cycles(self) -> int:
        """Return the number of cycles until the last block ends."""
        return sum(stretch.repeat * len(stretch.cycles) for stretch in self.stretches)

    @property
    def blocks(self) -> int:
        """Return how many blocks each of these SMs executes."""
        return sum(stretch.repeat * len(stretch.begins) for stretch in self.stretches)

    def begins(self) -> Iterator[tuple[int, BlockStart]]:
        """Yield every start of a block, with the cycle in which it gets its room, counted from 0."""
        first = 0
        for stretch in self.stretches:
            for _ in range(
                stretch.repeat
            ):  # callers that need only counts use `blocks` and `cycles`, which unfold nothing
                yield from ((first + begin.cycle, begin) for begin in stretch.begins)
                first += len(stretch.cycles)


@dataclass(frozen=True, slots=True, repr=False)
class GpuSchedule:
    """The execution of every SM, as plain data; `simulate.gpu_replay` judges it.

    Args:
        courses: the traces of blocks, by the number that a `BlockStart` names.
        histories: the histories of all SMs except those that never get a block.
    """

    courses: tuple[BlockTrace, ...]
    histories: tuple[SmHistory, ...]

    def __repr__(self) -> str:
        return f"GpuSchedule({sum(history.sms for history in self.histories)} SMs, {self.makespan} cycles)"

    @property
    def makespan(self) -> int:
        """Return the number of cycles."""
        return max(history.cycles for history in self.histories)
