"""Colours and hatches of a chart, and the legend that explains them.

A letter has its look on every machine. What waits for a class has its hatch on a light tint of its colour; C and L,
which have no hatch, have tints that differ in grey, too.
"""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from makespan.report.schedule.activity import Why

if TYPE_CHECKING:
    from matplotlib.patches import Patch

_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#000000")
"""Source: Okabe and Ito, Color Universal Design, 2008, without yellow, which says that an issue slot is missing."""
_DARK = ("#0072B2", "#000000")
_HATCHES = ("///", "xxx", "+++", "---", "...")
_LETTERS = "CLSDTABEFGHIJKMNOPQRUVWXYZ"
"""The classes of the paper and of GPUs first: their colours are the farthest apart."""
_TINT, _TINTS, _TINT_OF_HATCH = 0.2, (0.35, 0.15), 0.5
IDLE = "#EAEAEA"
_OF_NO_CLASS: dict[Why, tuple[str, str, str]] = {
    Why.BARRIER: ("#9A9A9A", "\\\\\\", "#FFFFFF"),
    Why.SLOT: ("#F0E442", "...", "#8A7F00"),
    Why.RESOURCE: ("#EADCC3", "xx", "#A98A55"),
    Why.STALLED: ("#FFFFFF", "--", "#B9B2A3"),
    Why.RESULT: ("#FFFFFF", "..", "#9FB6C3"),
}
"""Face, hatch and its colour. A latency that passes is the rule on a GPU: nearly as quiet as a warp that is done."""


class SpanLook(NamedTuple):
    """How a span is drawn: by its reason and, where the reason has to do with it, by the number of its class."""

    number: int
    why: Why | None

    @classmethod
    def of(cls, why: Why | None, unit: str) -> "SpanLook":
        """Return the look of a span of the class `unit`."""
        return cls(-1 if why in _OF_NO_CLASS else _LETTERS.index(unit), why)

    @property
    def hatch(self) -> str:
        """As matplotlib writes it; colour and hatch together are unique for 28 classes, and each alone nearly so."""
        if self.why in _OF_NO_CLASS:
            return _OF_NO_CLASS[self.why][1]
        lap, place = divmod(self.number, len(_COLOURS))
        return "" if lap == 0 and place < 2 else _HATCHES[(place - 2 + lap) % len(_HATCHES)]

    @property
    def face(self) -> str:
        """Return the colour of its ground."""
        if self.why in _OF_NO_CLASS:
            return _OF_NO_CLASS[self.why][0]
        if self.why is None:
            return self._colour
        return _tint(self._colour, _TINT if self.number >= len(_TINTS) else _TINTS[self.number])

    @property
    def line(self) -> str:
        """Return the colour of its hatch."""
        if self.why in _OF_NO_CLASS:
            return _OF_NO_CLASS[self.why][2]
        return _tint(self._colour, _TINT_OF_HATCH)

    @property
    def style(self) -> dict[str, Any]:
        """Face, hatch and its colour, as matplotlib calls them."""
        return {"facecolor": self.face, "hatch": self.hatch, "edgecolor": self.line}

    @property
    def ink(self) -> str:
        """Return the colour of text on it."""
        return "white" if self._colour in _DARK else "black"

    @property
    def _colour(self) -> str:
        return _COLOURS[self.number % len(_COLOURS)]


def _tint(colour: str, part: float) -> str:
    """So much of a colour in white."""
    mixed = (round(255 - part * (255 - int(colour[at : at + 2], 16))) for at in (1, 3, 5))
    return "#{:02X}{:02X}{:02X}".format(*mixed)


def legend_patches(
    shown: Collection[tuple[Why | None, str]], units: Sequence[str], *, idle: str | None, runs_ahead: bool = False
) -> "list[Patch]":
    """What the looks that occur mean, class by class.

    Args:
        shown: reasons and classes that occur.
        units: all classes.
        idle: what to call idle ports; None where there are none.
        runs_ahead: whether no latencies stall warps, but their last instructions.
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
