"""A schedule: which warp executes which place in which cycle. Plain data; `simulate.replay` judges it."""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from makespan.model.instance import Instance
from makespan.model.program import BARRIER


class Op(NamedTuple):
    """One warp-instruction: executed in `cycle` (from 0) by `warp` at `place` of its program."""

    cycle: int
    warp: int
    place: int


class WarpMove(NamedTuple):
    """`warps` warps of `group` execute `place` in one cycle and go on to `successor`."""

    group: int
    place: int
    successor: int
    warps: int


@dataclass(frozen=True, slots=True)
class Schedule:
    """Executing warps cycle by cycle, and the path each warp takes through its program.

    Args:
        cycles: for every cycle the warps that issue one instruction, in increasing order; the last cycles may be
            empty, while the latencies of the last instructions pass.
        paths: for every warp the places that it visits, in order: those it executes, and barriers.
        latencies: for every warp the latency of every instruction that it executes, in order; empty where the instance
            leaves no choice.
        partitions: for every warp the partition to which it belongs; empty where the machine leaves no choice.
        uses: for every warp, and every instruction that it executes, in order, what it holds of each use of its class:
            (which of the resources of the use, cycles), one after another; empty where the machine leaves no choice.
    """

    cycles: tuple[tuple[int, ...], ...]
    paths: tuple[tuple[int, ...], ...]
    latencies: tuple[tuple[int, ...], ...] = ()
    partitions: tuple[int, ...] = ()
    uses: tuple[tuple[tuple[tuple[int, int], ...], ...], ...] = ()

    def __repr__(self) -> str:
        return f"Schedule({len(self.paths)} warps, {self.makespan} cycles)"

    @property
    def makespan(self) -> int:
        """Return the number of cycles."""
        return len(self.cycles)

    def ops(self, instance: Instance) -> Iterator[Op]:
        """Yield every warp-instruction, by cycle and then by warp."""
        executed = self.paths
        if instance.has_barriers:
            programs = instance.programs()
            executed = tuple(
                tuple(place for place in path if program.places[place].unit != BARRIER)
                for program, path in zip(programs, self.paths, strict=True)
            )
        done = [0] * len(executed)
        for cycle, warps in enumerate(self.cycles):
            for warp in warps:
                yield Op(cycle, warp, executed[warp][done[warp]])
                done[warp] += 1

    @classmethod
    def of_chains(cls, instance: Instance, cycles: Iterable[Iterable[int]]) -> "Schedule":
        """Return a schedule of strings, where the executing warps say everything."""
        paths = (path for group in instance.groups for path in [tuple(range(group.program.end))] * group.warps)
        return cls(tuple(tuple(sorted(warps)) for warps in cycles), tuple(paths))

    @classmethod
    def from_moves(
        cls, instance: Instance, starts: Sequence[Mapping[int, int]], cycles: Iterable[Iterable[WarpMove]]
    ) -> "Schedule":
        """Name the warps in a schedule that only counts them.

        A group spread over several blocks counts as that many groups here, one after another.
        For machines whose latencies leave no choice.

        Args:
            starts: for every group, how many of its warps begin at which place.
            cycles: for every cycle the moves; those of one cycle start from the state before it. Moves past barriers
                take no time: they come last in a cycle, one after another, or stand alone before the first cycle.
        """
        is_barrier = [[place.unit == BARRIER for place in group.program.places] for group in instance.groups]
        waiting: dict[tuple[int, int], deque[int]] = {}
        warp = 0
        for number, begun in enumerate(starts):
            for place, count in begun.items():
                waiting[number, place] = deque(range(warp, warp + count))
                warp += count
        paths: list[list[int]] = [[] for _ in range(instance.warps)]

        def moved(move: WarpMove) -> list[int]:
            """Return the warps that make this move, taken from where they waited."""
            warps = [waiting[move.group, move.place].popleft() for _ in range(move.warps)]
            for warp in warps:
                paths[warp].append(move.place)
            return warps

        executing = []
        for moves in cycles:
            # who issues leaves before anybody arrives, so that no warp moves twice; barriers let on whoever came
            passes: list[WarpMove] = []
            arrived: list[tuple[WarpMove, list[int]]] = []
            for move in moves:
                if is_barrier[move.group // instance.blocks][move.place]:
                    passes.append(move)
                else:
                    arrived.append((move, moved(move)))
            for move, warps in chain(arrived, ((passed, moved(passed)) for passed in passes)):
                waiting.setdefault((move.group, move.successor), deque()).extend(warps)
            if arrived or not passes:
                executing.append(tuple(sorted(warp for _, warps in arrived for warp in warps)))
        return cls(tuple(executing), tuple(map(tuple, paths)))
