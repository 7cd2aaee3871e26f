"""A schedule as plain data: the places that warps execute in each cycle. `simulate.replay` judges it."""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from makespan.model.instance import Instance
from makespan.model.program import BARRIER


class Op(NamedTuple):
    """One warp-instruction: `warp` executes `place` of its program in `cycle`, counted from 0."""

    cycle: int
    warp: int
    place: int


WHOLE_SM = -1
"""Stands for the partition of a lapse in which no scheduler of the SM issues anything."""


class WithheldWarp(NamedTuple):
    """A warp that is not ready in a cycle because a line of code or of constants is late.

    Args:
        cycle: counted from 0.
        warp: its number in the schedule.
        place: the place of its path where it is withheld. It may have passed barriers before it in the same cycle.
        line: the name of the line, whose window begins when it first withholds a warp of the partition. None means a
            line that does not stay in its cache.
    """

    cycle: int
    warp: int
    place: int
    line: str | None = None


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
        cycles: the warps that issue in every cycle, in increasing order. The last cycles may be empty, while the
            latencies of the last instructions pass.
        paths: the places that every warp visits, in order: those that it executes, and barriers.
        latencies: the latency of every instruction that a warp executes, by warp. Empty means that the instance leaves
            no choice.
        partitions: the partition of every warp. Empty means that the machine leaves no choice.
        uses: by warp and by executed instruction, a pair for each use of the class of the instruction: (which of the
            resources of the use, cycles). Empty means that the machine leaves no choice.
        lapses: the cycle and the partition of every lapse of a scheduler; `WHOLE_SM` stands for all partitions at once.
        withheld: the warps that are withheld, in every cycle in which they are.
    """

    cycles: tuple[tuple[int, ...], ...]
    paths: tuple[tuple[int, ...], ...]
    latencies: tuple[tuple[int, ...], ...] = ()
    partitions: tuple[int, ...] = ()
    uses: tuple[tuple[tuple[tuple[int, int], ...], ...], ...] = ()
    lapses: tuple[tuple[int, int], ...] = ()
    withheld: tuple[WithheldWarp, ...] = ()

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
        # the i-th issue of a warp executes the i-th place of its path that is no barrier
        done = [0] * len(executed)
        for cycle, warps in enumerate(self.cycles):
            for warp in warps:
                yield Op(cycle, warp, executed[warp][done[warp]])
                done[warp] += 1

    @classmethod
    def of(
        cls,
        instance: Instance,
        cycles: Iterable[Iterable[int]],
        paths: Iterable[Iterable[int]],
        latencies: Iterable[Iterable[int]],
        uses: Iterable[Iterable[tuple[tuple[int, int], ...]]],
        partitions: Sequence[int],
    ) -> "Schedule":
        """Return a schedule of all that its warps do, without what the instance leaves no choice of.

        Partitions that the adversary chooses are numbered as warps first belong to them.
        """
        names = {part: name for name, part in enumerate(dict.fromkeys(partitions))}
        return cls(
            tuple(tuple(sorted(executing)) for executing in cycles),
            tuple(map(tuple, paths)),
            () if instance.fixed_latencies else tuple(map(tuple, latencies)),
            tuple(names[part] for part in partitions) if instance.partition_of_warp is None else (),
            () if instance.machine.fixed_uses else tuple(map(tuple, uses)),
        )

    @classmethod
    def of_chains(cls, instance: Instance, cycles: Iterable[Iterable[int]]) -> "Schedule":
        """Return a schedule of strings, which the executing warps determine completely."""
        paths = (path for group in instance.groups for path in [tuple(range(group.program.end))] * group.warps)
        return cls(tuple(tuple(sorted(warps)) for warps in cycles), tuple(paths))

    @classmethod
    def from_moves(
        cls, instance: Instance, starts: Sequence[Mapping[int, int]], cycles: Iterable[Iterable[WarpMove]]
    ) -> "Schedule":
        """Return a schedule with warps by number, from one that only counts warps.

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
            warps = [waiting[move.group, move.place].popleft() for _ in range(move.warps)]  # equal warps: any will do
            for warp in warps:
                paths[warp].append(move.place)
            return warps

        executing = []
        for moves in cycles:
            # All warps leave before any warp arrives, so that no warp moves twice in a cycle. Moves past barriers come
            # last, because a barrier also lets pass the warps that arrived in this cycle.
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
