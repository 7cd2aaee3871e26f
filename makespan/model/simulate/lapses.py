"""Lapses and late lines in the definition of a cycle: what the adversary still has of them, and how it spends it.

The rules stand in docs/model.md, "Lapses". A schedule says what it spends: which schedulers lapse in a cycle, and which
warps are withheld for which line.
"""

from collections.abc import Collection, Iterator
from itertools import chain, combinations
from typing import NamedTuple, TypeVar

from makespan.model.lapses import PlaceLapses, longest_windows
from makespan.model.program import Program
from makespan.model.schedule import WHOLE_SM

_T = TypeVar("_T")

Withheld = tuple[int, str | None]
"""A warp that is not ready in a cycle, and the line that is late. None is a line that does not stay in its cache."""


class LineWindow(NamedTuple):
    """The window in which a line is late in a partition, and the cycles of it that are left. With 0 it is over."""

    partition: int
    line: str
    left: int
    has_begun: bool = False


class LapseState(NamedTuple):
    """The lapses and windows that the adversary has left at the beginning of a cycle.

    Args:
        credit: the cycles in which each partition may still lapse.
        fence: the cycles in which the whole SM may still lapse.
        windows: the window of each line in each partition.
        misses: the cycles for which each warp may still be withheld at its place because of lines that do not stay.
        arrived: for every warp whether it has arrived at the barrier at its place.
        late: the warps that are withheld in this cycle before they arrive at their barriers.
    """

    credit: tuple[int, ...]
    fence: int
    windows: tuple[LineWindow, ...]
    misses: tuple[int, ...]
    arrived: tuple[bool, ...]
    late: tuple[Withheld, ...] = ()

    @classmethod
    def of(cls, programs: Collection[Program], partitions: int) -> "LapseState | None":
        """Return the state before any warp has come to a place; None if no program has lapses.

        Args:
            programs: the programs of all warps. If they differ in how long the window of a line is, the longest counts.
            partitions: the number of partitions.
        """
        if not any(program.has_lapses for program in programs):
            return None
        lines = longest_windows(line for program in programs for line in program.lines)
        windows = tuple(LineWindow(part, *line) for part in range(partitions) for line in lines)
        return cls((0,) * partitions, 0, windows, (0,) * len(programs), (False,) * len(programs))

    def come(self, warp: int, partition: int, place: PlaceLapses) -> "LapseState":
        """Return the state after a warp has come to a place with these lapses."""
        return self._replace(
            credit=_replace_at(self.credit, partition, self.credit[partition] + place.credit),
            fence=self.fence + place.fence,
            misses=_replace_at(self.misses, warp, place.misses),
            arrived=_replace_at(self.arrived, warp, False),
        )

    def withhold(self, warp: int, partition: int, place: PlaceLapses) -> "Iterator[tuple[Withheld, LapseState]]":
        """Yield every way to withhold a warp at a place with these lapses in this cycle, and the state after it.

        Two choices are left out, because they lead to no other schedule. A window begins in the first cycle in which it
        withholds a warp: if it began earlier, it would end earlier. And while one window of the place lasts, the warp
        spends nothing else: what is not spent now can be spent in each later cycle in which less could be.
        """
        names = {line.name for line in place.lines}
        own = [(at, each) for at, each in enumerate(self.windows) if each.partition == partition and each.line in names]
        if lasting := [each.line for _, each in own if each.has_begun and each.left]:
            yield (warp, lasting[0]), self
            return
        for at, each in own:
            if each.left:
                begun = _replace_at(self.windows, at, each._replace(has_begun=True))
                yield (warp, each.line), self._replace(windows=begun)
        if self.misses[warp]:
            yield (warp, None), self._replace(misses=_replace_at(self.misses, warp, self.misses[warp] - 1))

    def arrive(self, warps: Collection[int], late: tuple[Withheld, ...]) -> "LapseState":
        """Return the state after these warps have arrived at their barriers, while others are late for theirs."""
        arrived = tuple(has or warp in warps for warp, has in enumerate(self.arrived))
        return self._replace(arrived=arrived, late=tuple(sorted(self.late + late, key=lambda each: each[0])))

    def lapse(self, partitions: Collection[int]) -> "Iterator[tuple[tuple[int, ...], LapseState]]":
        """Yield every choice of partitions that lapse in this cycle, or `WHOLE_SM`, and the state after it.

        Args:
            partitions: those with a warp that could be kept from issuing. A lapse of another partition would only
                spend credit, and more credit allows all that less credit allows.
        """
        able = sorted(part for part in partitions if self.credit[part])
        for lapsing in chain.from_iterable(combinations(able, size) for size in range(len(able) + 1)):
            credit = (left - (part in lapsing) for part, left in enumerate(self.credit))
            yield lapsing, self._replace(credit=tuple(credit))
        if self.fence and partitions:
            yield (WHOLE_SM,), self._replace(fence=self.fence - 1)

    def next_cycle(self) -> "LapseState":
        """Return the state one cycle later: windows that have begun pass, wanted or not."""
        windows = tuple(each._replace(left=max(0, each.left - each.has_begun)) for each in self.windows)
        return self._replace(windows=windows, late=())


def _replace_at(values: tuple[_T, ...], at: int, value: _T) -> tuple[_T, ...]:
    return (*values[:at], value, *values[at + 1 :])
