"""Which fraction of random task sets is schedulable over their utilisation, with two ways to bound execution times.

One panel for each machine and kind of kernels; colour and marker say how execution times are bounded, the line how the
GPU chooses among kernels.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from makespan.report.pictures import GREY, INK, LINES, PROVEN, write_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

EXACT, PESSIMISTIC = "exact", "pessimistic"
"""How execution times are bounded: by the worst-case makespan that is proven, or by M^L + M^C."""

_QUANTILE = 1.96
_LABELS = {EXACT: "proven worst-case makespan", PESSIMISTIC: "M$^L$ + M$^C$ of the same kernels"}
_LOOKS = {EXACT: (PROVEN, "o"), PESSIMISTIC: ("#E69F00", "s")}
"""Source of the colours: Okabe and Ito, Color Universal Design, 2008; they differ in grey and for all colour vision."""
_DASHES = ("-", (0, (4, 2)), (0, (1, 1.5)))


class Point(NamedTuple):
    """Of `sets` random task sets with this utilisation, how many are proven schedulable."""

    utilisation: float
    schedulable: int
    sets: int

    @property
    def fraction(self) -> float:
        """The share of the sets, 0..1."""
        return self.schedulable / self.sets

    @property
    def interval(self) -> tuple[float, float]:
        """Between which shares the true one lies, with a confidence of 95 %.

        Source: Wilson, Journal of the American Statistical Association 22, 1927.
        """
        share, weight = self.fraction, _QUANTILE**2 / self.sets
        middle = (share + weight / 2) / (1 + weight)
        half = _QUANTILE * sqrt(share * (1 - share) / self.sets + weight / (4 * self.sets)) / (1 + weight)
        return max(0.0, middle - half), min(1.0, middle + half)


@dataclass(frozen=True, slots=True)
class Curve:
    """Points of one way to bound execution times, `EXACT` or `PESSIMISTIC`, under one policy."""

    panel: str
    policy: str
    times: str
    points: tuple[Point, ...]

    @property
    def weighted(self) -> float:
        """The fraction of all sets, each weighted with its utilisation.

        Source: Bastoni, Brandenburg and Anderson, OSPERT 2010 (weighted schedulability).
        """
        total = sum(point.utilisation for point in self.points)
        return sum(point.utilisation * point.fraction for point in self.points) / total


def draw_fractions(curves: Sequence[Curve], path: Path, *, title: str) -> None:
    """Write the picture to `path` (.png, .svg or .pdf), whole or not at all.

    Raises:
        InputError: a file that cannot be written.
    """
    write_figure(lambda: figure_of(curves, title=title), path, title=title)


def figure_of(curves: Sequence[Curve], *, title: str) -> "Figure":
    """The picture as a matplotlib figure: a panel for each that occurs, two in a row."""
    from matplotlib.figure import Figure

    panels = list(dict.fromkeys(curve.panel for curve in curves))
    policies = list(dict.fromkeys(curve.policy for curve in curves))
    columns = min(2, len(panels))
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(4.8 * columns, 3.0 * rows + 1.1), facecolor="white", layout="constrained")
    figure.suptitle(title, size=12, weight="bold", color=INK, x=0.02, ha="left")
    grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    for axes, panel in zip(grid.flat, panels, strict=False):
        for curve in (curve for curve in curves if curve.panel == panel):
            _draw(axes, curve, policies.index(curve.policy))
        _frame(axes, panel)
    for axes in grid[-1]:
        axes.set_xlabel("utilisation by the proven worst case")
    for axes in grid[:, 0]:
        axes.set_ylabel("schedulable task sets (%)")
    figure.legend(handles=_keys(policies), loc="outside lower center", ncols=4, frameon=False)
    return figure


def _draw(axes: "Axes", curve: Curve, policy: int) -> None:
    """The curve, and its confidence as a band."""
    colour, marker = _LOOKS[curve.times]
    across = [point.utilisation for point in curve.points]
    low, high = zip(*(point.interval for point in curve.points), strict=True)
    axes.fill_between(across, [100 * v for v in low], [100 * v for v in high], color=colour, alpha=0.15, linewidth=0)
    shares = [100 * point.fraction for point in curve.points]
    axes.plot(across, shares, color=colour, marker=marker, ms=3.2, linewidth=1.4, linestyle=_dash(policy))


def _dash(policy: int) -> object:
    return _DASHES[policy % len(_DASHES)]


def _frame(axes: "Axes", panel: str) -> None:
    axes.set_title(panel, size=9.5, color=INK, loc="left", parse_math=False)
    axes.grid(color=LINES, linewidth=0.5)
    axes.set_axisbelow(True)
    axes.set_ylim(-3, 103)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.tick_params(colors=GREY, labelcolor=INK)


def _keys(policies: Sequence[str]) -> "list[Line2D]":
    """What colours and lines mean."""
    from matplotlib.lines import Line2D

    keys = [Line2D([], [], color=c, marker=m, ls="", ms=6, label=_LABELS[times]) for times, (c, m) in _LOOKS.items()]
    return keys + [Line2D([], [], color=GREY, ls=_dash(n), label=policy) for n, policy in enumerate(policies)]
