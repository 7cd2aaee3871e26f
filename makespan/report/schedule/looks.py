"""Colours and hatches of a chart, and the legend that explains them.

A class letter has the same look on every machine. A wait for a class has the hatch of the class on a light tint of its
colour. C and L have no hatch, and their tints differ in grey, too.
"""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from makespan.report.schedule.activity import Why

if TYPE_CHECKING:
    from matplotlib.patches import Patch

_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#000000")
"""Source: Okabe and Ito, Color Universal Design, 2008, without yellow, which stands for a missing issue slot."""
_DARK = ("#0072B2", "#000000")
_HATCHES = ("///", "xxx", "+++", "---", "...")
_LETTERS = "CLSDTABEFGHIJKMNOPQRUVWXYZ"
"""The classes of the paper and of GPUs come first, because the first colours differ the most."""
_TINT, _TINTS, _TINT_OF_HATCH = 0.2, (0.35, 0.15), 0.5
IDLE = "#EAEAEA"
_OF_NO_CLASS: dict[Why, tuple[str, str, str]] = {
    Why.BARRIER: ("#9A9A9A", "\\\\\\", "#FFFFFF"),
    Why.SLOT: ("#F0E442", "...", "#8A7F00"),
    Why.RESOURCE: ("#EADCC3", "xx", "#A98A55"),
    Why.STALLED: ("#FFFFFF", "--", "#B9B2A3"),
    Why.RESULT: ("#FFFFFF", "..", "#9FB6C3"),
}
"""Face, hatch, and colour of the hatch. Stalls are the rule on a GPU, so they look nearly like a finished warp."""


class SpanLook(NamedTuple):
    """The look of a span: its reason and, if the reason has to do with a class, the number of the class."""

    number: int
    why: Why | None

    @classmethod
    def of(cls, why: Why | None, unit: str) -> "SpanLook":
        """Return the look of a span of the class `unit`."""
        return cls(-1 if why in _OF_NO_CLASS else _LETTERS.index(unit), why)

    @property
    def hatch(self) -> str:
        """Return the hatch as matplotlib writes it. Colour and hatch together are unique for 28 classes."""
        if self.why in _OF_NO_CLASS:
            return _OF_NO_CLASS[self.why][1]
        lap, place = divmod(self.number, len(_COLOURS))
        return "" if lap == 0 and place < 2 else _HATCHES[(place - 2 + lap) % len(_HATCHES)]

    @property
    def face(self) -> str:
        """Return the colour of the ground."""
        if self.why in _OF_NO_CLASS:
            return _OF_NO_CLASS[self.why][0]
        if self.why is None:
            return self._colour
        return _tint(self._colour, _TINT if self.number >= len(_TINTS) else _TINTS[self.number])

    @property
    def line(self) -> str:
        """Return the colour of the hatch."""
        if self.why in _OF_NO_CLASS:
            return _OF_NO_CLASS[self.why][2]
        return _tint(self._colour, _TINT_OF_HATCH)

    @property
    def style(self) -> dict[str, Any]:
        """Return face, hatch and its colour by the names that matplotlib gives them."""
        return {"facecolor": self.face, "hatch": self.hatch, "edgecolor": self.line}

    @property
    def ink(self) -> str:
        """Return the colour of text on the ground."""
        return "white" if self._colour in _DARK else "black"

    @property
    def _colour(self) -> str:
        return _COLOURS[self.number % len(_COLOURS)]


def _tint(colour: str, part: float) -> str:
    mixed = (round(255 - part * (255 - int(colour[at : at + 2], 16))) for at in (1, 3, 5))
    return "#{:02X}{:02X}{:02X}".format(*mixed)


def legend_patches(
    shown: Collection[tuple[Why | None, str]], units: Sequence[str], *, idle: str | None, runs_ahead: bool = False
) -> "list[Patch]":
    """Return the legend of the looks that occur, class by class.

    Args:
        shown: the reasons and classes that occur.
        units: all classes.
        idle: the name of idle ports. None means that there are none.
        runs_ahead: whether warps are stalled by their last instructions and not by latencies.
    """
    from matplotlib.patches import Patch

    words = {None: "executes on {}", Why.PORT: "waits for {}"}
    keys = [(SpanLook.of(why, u), text.format(u)) for u in units for why, text in words.items() if (why, u) in shown]
    reasons = {why for why, _ in shown}
    others = {
        Why.STALLED: "stalled after its issue" if runs_ahead else "stalled on latency",
        Why.RESULT: "waits for a result",
        Why.RESOURCE: "waits for a resource",
        Why.SLOT: "no issue slot left",
        Why.BARRIER: "waits at a barrier",
    }
    keys += [(SpanLook(-1, why), label) for why, label in others.items() if why in reasons]
    patches = [Patch(**look.style, linewidth=0, label=label) for look, label in keys]
    return patches if idle is None else [*patches, Patch(facecolor=IDLE, linewidth=0, label=idle)]
