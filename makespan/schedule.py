"""A schedule: which warp executes which place in which cycle. Plain data; `simulate.replay` judges it."""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from makespan.instance import Instance


class Op(NamedTuple):
    """One warp-instruction: executed in `cycle` (from 0) by `warp` at `place` of its program."""

    cycle: int
    warp: int
    place: int


class Move(NamedTuple):
    """`warps` warps of `group` execute `place` in one cycle and go on to `successor`."""

    group: int
    place: int
    successor: int
    warps: int


@dataclass(frozen=True, slots=True)
class Schedule:
    """Executing warps cycle by cycle, and the path each warp takes through its program.

    Args:
        cycles: for every cycle the warps that execute one instruction, in increasing order.
        paths: for every warp the places that it executes, in order.
    """

    cycles: tuple[tuple[int, ...], ...]
    paths: tuple[tuple[int, ...], ...]

    @property
    def makespan(self) -> int:
        """The number of cycles."""
        return len(self.cycles)

    def ops(self) -> Iterator[Op]:
        """Every warp-instruction, by cycle and then by warp."""
        done = [0] * len(self.paths)
        for cycle, warps in enumerate(self.cycles):
            for warp in warps:
                yield Op(cycle, warp, self.paths[warp][done[warp]])
                done[warp] += 1

    @classmethod
    def of_chains(cls, instance: Instance, cycles: Iterable[Iterable[int]]) -> "Schedule":
        """A schedule of strings, where the executing warps say everything."""
        paths = (path for group in instance.groups for path in [tuple(range(group.program.end))] * group.warps)
        return cls(tuple(tuple(sorted(warps)) for warps in cycles), tuple(paths))

    @classmethod
    def from_moves(
        cls, instance: Instance, starts: Sequence[Mapping[int, int]], cycles: Iterable[Iterable[Move]]
    ) -> "Schedule":
        """Name the warps in a schedule that only counts them.

        Args:
            starts: for every group, how many of its warps begin at which place.
            cycles: for every cycle the moves; those of one cycle start from the state before it.
        """
        waiting: dict[tuple[int, int], deque[int]] = {}
        warp = 0
        for number, begun in enumerate(starts):
            for place, count in begun.items():
                waiting[number, place] = deque(range(warp, warp + count))
                warp += count
        paths: list[list[int]] = [[] for _ in range(instance.warps)]
        executing = []
        for moves in cycles:
            arrived: list[tuple[int, int, int]] = []
            for move in moves:
                queue = waiting[move.group, move.place]
                for _ in range(move.warps):
                    arrived.append((queue.popleft(), move.group, move.successor))
                    paths[arrived[-1][0]].append(move.place)
            for warp, group, place in arrived:
                waiting.setdefault((group, place), deque()).append(warp)
            executing.append(tuple(sorted(warp for warp, _, _ in arrived)))
        return cls(tuple(executing), tuple(map(tuple, paths)))
