"""A schedule of a whole GPU, run-length coded: SMs that do the same are written once, and so are cycles that return."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple


class BlockTrace(NamedTuple):
    """What the warps of one block do; many blocks may take the same course.

    Args:
        grid: to which the block belongs.
        paths: for every warp of the block the places that it visits, barriers included.
        latencies: for every warp the latency of every instruction that it executes; () where the machine leaves no
            choice.
        uses: for every warp, and every instruction that it executes, what it holds of each use of its class, as in
            `Schedule.uses`; () where the machine leaves no choice.
    """

    grid: int
    paths: tuple[tuple[int, ...], ...]
    latencies: tuple[tuple[int, ...], ...] = ()
    uses: tuple[tuple[tuple[tuple[int, int], ...], ...], ...] = ()


class BlockStart(NamedTuple):
    """A block gets the room of a slot in a cycle, counted from the begin of its stretch.

    `delay` cycles later its warps begin, on the `course` of that number.
    """

    cycle: int
    slot: int
    course: int
    delay: int = 0


@dataclass(frozen=True, slots=True)
class RepeatedCycles:
    """Consecutive cycles of an SM, which come `repeat` times in a row.

    Args:
        cycles: for every cycle the warps that issue one instruction, each as (slot, warp of the block), sorted.
        begins: the blocks that come, in order.
    """

    cycles: tuple[tuple[tuple[int, int], ...], ...]
    begins: tuple[BlockStart, ...] = ()
    repeat: int = 1


@dataclass(frozen=True, slots=True)
class SmHistory:
    """What `sms` of the SMs do, from cycle 0 to the end of their last block.

    Args:
        partitions: for every slot and warp of a block its partition; () where the machine leaves no choice.
    """

    sms: int
    stretches: tuple[RepeatedCycles, ...]
    partitions: tuple[tuple[int, ...], ...] = ()

    @property
    def cycles(self) -> int:
        """Return how long it takes."""
        return sum(stretch.repeat * len(stretch.cycles) for stretch in self.stretches)

    @property
    def blocks(self) -> int:
        """Return how many blocks each of these SMs executes."""
        return sum(stretch.repeat * len(stretch.begins) for stretch in self.stretches)

    def begins(self) -> Iterator[tuple[int, BlockStart]]:
        """Every block that comes, with the cycle in which it gets its room, counted from 0; as many as there are."""
        first = 0
        for stretch in self.stretches:
            for _ in range(stretch.repeat):
                yield from ((first + begin.cycle, begin) for begin in stretch.begins)
                first += len(stretch.cycles)


@dataclass(frozen=True, slots=True, repr=False)
class GpuSchedule:
    """Who executes what on every SM. Plain data; `simulate.gpu_replay` judges it.

    Args:
        courses: what blocks do, by the number that a `BlockStart` names.
        histories: of all SMs, those that never get a block aside.
    """

    courses: tuple[BlockTrace, ...]
    histories: tuple[SmHistory, ...]

    def __repr__(self) -> str:
        return f"GpuSchedule({sum(history.sms for history in self.histories)} SMs, {self.makespan} cycles)"

    @property
    def makespan(self) -> int:
        """Return the number of cycles."""
        return max(history.cycles for history in self.histories)
