"""The patterns of single and dual issues as bars: what each reaches, of the peak, beside what was published."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from makespan.errors import InputError
from makespan.estimators.dual_issue import Characteristics
from makespan.estimators.dual_issue.arbiter import Pattern, spell
from makespan.estimators.dual_issue.ffma_bound import peak_gflops
from makespan.report.figures import GREY, INK, LINES, PROVEN, RUN, padded, write_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PUBLISHED: dict[Pattern, float] = {
    (1, 1, 2, 2): 1702,
    (1, 2, 1, 2): 1515,
    (1, 2, 2, 1): 3428,
    (2, 1, 1, 2): 1601,
    (2, 1, 2, 1): 2786,
    (2, 2, 1, 1): 2786,
}
"""Gflop/s on a Tesla K20. Source: a vector figure of Zhang et al., PPoPP 2017; +-5 Gflop/s."""
PUBLISHED_PEAK = peak_gflops(lanes=192, sms=13, clock_ghz=0.706)
EARLIER_BEST = 132 / 192
"""Of the peak. Source: Lai and Seznec, CGO 2013: 132 multiply-adds per cycle and SM."""
_SIZE, _BAR, _TOP = (8.4, 4.6), 0.38, 120.0


class Gpu(NamedTuple):
    """What turns shares of the peak into Gflop/s."""

    sms: int
    clock_ghz: float


@dataclass(frozen=True, slots=True)
class Bar:
    """A pattern: shares of the peak, in percent; `published` is None where nothing is known."""

    pattern: str
    measured: float
    published: float | None
    is_best: bool


def bars(found: Characteristics) -> tuple[Bar, ...]:
    """The bars from left to right, in the order of the patterns' names."""
    return tuple(
        Bar(
            spell(result.pattern),
            100 * result.efficiency,
            100 * PUBLISHED[result.pattern] / PUBLISHED_PEAK if result.pattern in PUBLISHED else None,
            result in found.best,
        )
        for result in sorted(found.patterns, key=lambda result: result.pattern)
    )


def draw_patterns(found: Characteristics, path: Path, *, gpu: Gpu | None) -> None:
    """Write the picture (.png, .svg or .pdf), whole or not at all.

    Args:
        gpu: for an axis in Gflop/s; None leaves it out.

    Raises:
        InputError: no pattern was measured, or a file that cannot be written.
    """
    if not found.patterns:
        raise InputError(f"{found.name}: no pattern was measured, so there is nothing to draw; leave out --plot")
    write_figure(lambda: figure_of(found, gpu=gpu), path, title=_title(found))


def figure_of(found: Characteristics, *, gpu: Gpu | None = None) -> "Figure":
    """The picture as a matplotlib figure, for notebooks."""
    from matplotlib.figure import Figure

    drawn = bars(found)
    figure = Figure(figsize=_SIZE, facecolor="white", layout=padded())
    axes = figure.subplots()
    places = range(len(drawn))
    ours = axes.bar(
        [place - _BAR / 2 for place in places], [bar.measured for bar in drawn], _BAR, color=PROVEN,
        label=f"virtual device {found.name}, calibrated" if found.is_virtual else f"measured on {found.name}",
    )  # fmt: skip
    axes.bar_label(ours, [f"{bar.measured:.1f}" for bar in drawn], padding=2, color=INK)
    known = [(place, bar.published) for place, bar in enumerate(drawn) if bar.published is not None]
    if known:
        theirs = axes.bar(
            [place + _BAR / 2 for place, _ in known], [share for _, share in known], _BAR, color="white",
            edgecolor=RUN, hatch="////", label="published, Tesla K20 (read from a figure)",
        )  # fmt: skip
        axes.bar_label(theirs, [f"{share:.1f}" for _, share in known], padding=2, color=INK)
    earlier = "132 per cycle and SM, the best before (2013)"
    axes.axhline(100 * EARLIER_BEST, color=GREY, linestyle="--", linewidth=1, label=earlier)
    axes.set_xticks(places, [f"{bar.pattern}\n(best)" if bar.is_best else bar.pattern for bar in drawn])
    axes.set_xlabel("FFMAs in each of four issue cycles: 1 single, 2 dual")
    axes.set_ylabel("FFMA throughput (% of peak)")
    axes.set_ylim(0, _TOP)
    axes.set_yticks(range(0, 101, 20))
    axes.grid(axis="y", color=LINES, linewidth=0.5)
    axes.set_axisbelow(True)
    if gpu is not None:
        right = axes.twinx()
        right.set_ylim(0, _TOP * peak_gflops(found.lanes, gpu.sms, gpu.clock_ghz) / 100)
        right.yaxis.set_major_formatter("{x:,.0f}")
        right.spines["top"].set_visible(False)
        right.set_ylabel(f"Gflop/s ({gpu.sms} SMs at {gpu.clock_ghz:g} GHz)")
    axes.spines["top"].set_visible(False)
    axes.legend(loc="upper left", ncols=2, frameon=False, fontsize=8)
    figure.suptitle(_title(found), x=0.02, ha="left", size=13, weight="bold", color=INK)
    return figure


def _title(found: Characteristics) -> str:
    best = ", ".join(f"{bar.pattern} reaches {bar.measured:.1f} %" for bar in bars(found) if bar.is_best)
    return f"Order of single and dual issues: {best}" if len(best) < 40 else "Order of single and dual issues"
