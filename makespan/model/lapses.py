"""Lapses of schedulers, and lines of code and constants that are late: what an instruction costs besides its ports.

A scheduler *lapses* in a cycle in which it issues nothing although a warp is ready and all that the warp needs is free.
Instructions give credit for lapses: an instruction with a credit of 2 lets the scheduler of its partition lapse in two
cycles, whenever the adversary likes. Some instructions need lines of code or of constants, which have to come first.
The rules stand in docs/model.md, "Lapses".
"""

from collections.abc import Iterable
from typing import NamedTuple


class CacheLine(NamedTuple):
    """A line of code or of constants, which an instruction needs before it can issue.

    Args:
        name: what sets it apart from all other lines, such as `vecadd code 0x80`.
        window: the most cycles from the first request of a partition for the line until the line is there. In these
            consecutive cycles, once for each partition, warps that need the line may be kept from issuing.
    """

    name: str
    window: int


class PlaceLapses(NamedTuple):
    """The lapses of one place of a program, and the lines that it needs. All cycles are at most, and 0 at least.

    Args:
        credit: the cycles in which the scheduler of its partition may issue nothing on account of the instruction.
        fence: the cycles in which no scheduler of the SM may issue anything on account of the instruction.
        misses: the cycles for which the warp may be kept from issuing the instruction, at each visit of the place,
            because a line that it needs does not stay in its cache.
        lines: the lines that it needs and that stay once they have come, in the order of their names.

    >>> PlaceLapses(credit=2) | PlaceLapses(credit=1, lines=(CacheLine("code 0", 86),))
    PlaceLapses(credit=2, fence=0, misses=0, lines=(CacheLine(name='code 0', window=86),))
    """

    credit: int = 0
    fence: int = 0
    misses: int = 0
    lines: tuple[CacheLine, ...] = ()

    def owned_by(self, owner: str) -> "PlaceLapses":
        """Return the same lapses with lines that no other owner has, be they of the same name.

        >>> PlaceLapses(lines=(CacheLine("code 0", 86),)).owned_by("first").lines
        (CacheLine(name='first: code 0', window=86),)
        """
        return self._replace(lines=tuple(line._replace(name=f"{owner}: {line.name}") for line in self.lines))

    def __or__(self, other: "PlaceLapses") -> "PlaceLapses":
        """Return lapses that cover those of both."""
        return PlaceLapses(
            max(self.credit, other.credit),
            max(self.fence, other.fence),
            max(self.misses, other.misses),
            longest_windows((*self.lines, *other.lines)),
        )


NO_LAPSES = PlaceLapses()
"""The lapses of a place that costs nothing besides its ports."""


def longest_windows(lines: Iterable[CacheLine]) -> tuple[CacheLine, ...]:
    """Return the different lines in the order of their names, each with its longest window.

    >>> longest_windows([CacheLine("b", 7), CacheLine("a", 5), CacheLine("b", 9)])
    (CacheLine(name='a', window=5), CacheLine(name='b', window=9))
    """
    longest: dict[str, int] = {}
    for line in lines:
        longest[line.name] = max(line.window, longest.get(line.name, 0))
    return tuple(CacheLine(name, longest[name]) for name in sorted(longest))
