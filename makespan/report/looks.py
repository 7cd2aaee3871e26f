"""Colours and hatches of a chart, and the legend that explains them."""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from makespan.report.activity import Why

if TYPE_CHECKING:
    from matplotlib.patches import Patch

_COLOURS = ("#0072B2", "#E69F00", "#000000", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#F0E442")
"""Source: Okabe and Ito, Color Universal Design, 2008. The first three differ in grey too, the others in hatching."""
_HATCHES = ("", "", "", "///", "...", "xxx", "---", "+++")
_DARK = (0, 2, 3, 5)
_TINT = 0.2
_MOST_TINTS = 4
IDLE = "#EAEAEA"
_OF_NO_CLASS: dict[Why, dict[str, Any]] = {
    Why.BARRIER: {"facecolor": "#9A9A9A", "hatch": "\\\\\\"},
    Why.SLOT: {"facecolor": "#F0E442", "hatch": "..."},
    Why.STALLED: {"facecolor": "#C4B7A0", "hatch": "---"},
}
"""Chosen to differ from the colours and tints of the first classes for the colour-blind, even without hatches."""


class Look(NamedTuple):
    """How a span is drawn: by its reason and, where the reason has to do with it, by the number of its class."""

    number: int
    why: Why | None

    @classmethod
    def of(cls, why: Why | None, unit: str, units: Sequence[str]) -> "Look":
        """The look of a span of class `unit`, one of `units`."""
        return cls(-1 if why in _OF_NO_CLASS else units.index(unit), why)

    @property
    def style(self) -> dict[str, Any]:
        """Face, edge and hatch, as matplotlib calls them; the face is a triple of 0..1."""
        from matplotlib.colors import to_rgb

        if self.why in _OF_NO_CLASS:
            look = _OF_NO_CLASS[self.why]
            return {**look, "facecolor": to_rgb(look["facecolor"]), "edgecolor": "white"}
        number = self.number % len(_COLOURS)
        if self.why is Why.PORT:
            return {"facecolor": [1 - _TINT * (1 - part) for part in to_rgb(_COLOURS[number])], "edgecolor": "white"}
        return {"facecolor": to_rgb(_COLOURS[number]), "edgecolor": "white", "hatch": _HATCHES[number]}

    @property
    def ink(self) -> str:
        """The colour of text on it."""
        return "white" if self.number % len(_COLOURS) in _DARK else "black"

    @property
    def hatched(self) -> bool:
        """Whether text on it needs a halo."""
        return bool(_HATCHES[self.number % len(_COLOURS)])


def legend(shown: Collection[tuple[Why | None, str]], units: Sequence[str], *, idle: str | None) -> "list[Patch]":
    """What the colours that occur mean; beyond four classes the tints are explained once for all.

    Args:
        shown: reasons and classes that occur.
        units: all classes, which number their colours.
        idle: what to call idle ports; None where there are none.
    """
    from matplotlib.patches import Patch

    few = len(units) <= _MOST_TINTS
    keys: list[tuple[Look, str]] = []
    for number, unit in enumerate(units):
        if (None, unit) in shown:
            keys.append((Look(number, None), f"executes on {unit}"))
        if few and (Why.PORT, unit) in shown:
            keys.append((Look(number, Why.PORT), f"waits for {unit}"))
    reasons = {why for why, _ in shown}
    if not few and Why.PORT in reasons:
        keys.append((Look(0, Why.PORT), "waits: a light tint"))
    words = {Why.STALLED: "stalled on latency", Why.SLOT: "no issue slot left", Why.BARRIER: "waits at a barrier"}
    keys += [(Look(-1, why), label) for why, label in words.items() if why in reasons]
    patches = [Patch(**look.style, label=label) for look, label in keys]
    return patches if idle is None else [*patches, Patch(facecolor=IDLE, label=idle)]
