"""How good predictions are, q = predicted / time of the device: in words, as a histogram in CSV, and as a picture."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from makespan.estimates.opencl_cost_table.evaluation import BINS_PER_OCTAVE, Quality
from makespan.report.pictures import (
    GREY,
    INK,
    LINES,
    PESSIMISTIC,
    PROVEN,
    RUN,
    check_picture_path,
    padded_layout,
    shorten,
    write_figure,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

HEADER = "set,q_from,q_to,samples"
_WIDTH, _HEIGHT_EACH = 7.2, 3.0  # inches
_LETTERS = 80  # of a title


def text(name: str, quality: Quality) -> str:
    """Return the statistics of q, and the ten predictions that are off by most."""
    shown = ", ".join(f"{probability:.0%} {q:.3f}" for probability, q in quality.quantiles().items())
    lines = [
        f"{name}: {_ratio(quality)} over {len(quality.samples)} samples",
        f"  median {quality.median:.3f}, mean {quality.mean:.3f}, geometric mean {quality.geometric_mean:.3f}",
        f"  quantiles: {shown}",
        f"  0.5 < q < 2 in {quality.within_factor_2:.1%}",
        "  off by most:",
    ]
    for sample in quality.worst():
        source = "on the virtual device" if quality.is_virtual else "measured"
        times = f"{sample.predicted:.1f} us predicted, {sample.measured:.1f} us {source}"
        lines.append(f"    q {sample.q:.3f} ({times}): {sample.expression}")
    if rough := sum(not sample.converged for sample in quality.samples):
        kind = "virtual" if quality.is_virtual else "measured"
        lines.append(f"  warning: {rough} {kind} times were still uncertain when their time was over")
    return "\n".join(lines)


def _ratio(quality: Quality) -> str:
    return f"q = predicted / {'time of the virtual device' if quality.is_virtual else 'measured'}"


def _title(qualities: Mapping[str, Quality]) -> str:
    if next(iter(qualities.values())).is_virtual:
        return "Predictions against a virtual device: nothing was measured"
    return "Predictions against measurements"


def csv(qualities: Mapping[str, Quality]) -> str:
    """Return the histograms, with a header line; a bin holds its lower end and not its upper one."""
    rows = [
        f"{name},{low:.6g},{high:.6g},{samples}"
        for name, quality in qualities.items()
        for low, high, samples in quality.histogram()
    ]
    return "\n".join([HEADER, *rows]) + "\n"


def document(qualities: Mapping[str, Quality]) -> dict[str, Any]:
    """Return statistics and samples as plain data."""
    return {
        "schema": "makespan.prediction-quality/1",
        "is_bound": False,
        "sets": {name: _document(quality) for name, quality in qualities.items()},
    }


def draw_quality(qualities: Mapping[str, Quality], path: Path) -> None:
    """Write the histograms to `path` (.png, .svg or .pdf), whole or not at all.

    Raises:
        InputError: a file that cannot be written.
    """
    check_picture_path(path)
    about = "; ".join(f"{name} on {q.device}: median q {q.median:.3f}" for name, q in qualities.items())
    write_figure(lambda: figure_of(qualities), path, title=_title(qualities), about=about)


def figure_of(qualities: Mapping[str, Quality]) -> "Figure":
    """Return the histograms as a matplotlib figure, for notebooks; 1 is a prediction that is right."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(_WIDTH, _HEIGHT_EACH * len(qualities)), facecolor="white", layout=padded_layout())
    drawn = figure.subplots(len(qualities), 1, sharex=True, squeeze=False)[:, 0]
    for axes, (name, quality) in zip(drawn, qualities.items(), strict=True):
        _draw(axes, name, quality)
    drawn[-1].set_xlabel(_ratio(next(iter(qualities.values()))))
    figure.suptitle(_title(qualities), x=0.02, ha="left", size=13, weight="bold", color=INK)
    return figure


def _draw(axes: "Axes", name: str, quality: Quality) -> None:
    bins = [(low, high, samples) for low, high, samples in quality.histogram() if low > 0]
    lows, widths = [low for low, _, _ in bins], [high - low for low, high, _ in bins]
    axes.bar(lows, [samples for _, _, samples in bins], widths, align="edge", color=PROVEN, edgecolor="white")
    axes.axvline(1, color=INK, linewidth=1)
    axes.axvline(quality.median, color=RUN, linestyle="--", linewidth=1.2, label=f"median {quality.median:.2f}")
    axes.axvspan(0.5, 2, color=LINES, alpha=0.25, zorder=0, label="within a factor of 2")
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(lambda q, _: f"{q:g}")
    axes.set_ylabel(f"samples per 1/{BINS_PER_OCTAVE} octave")
    title = shorten(f"{name}: {len(quality.samples)} samples on {quality.device}", _LETTERS)
    axes.set_title(title, loc="left", color=GREY, fontsize=9, parse_math=False)
    axes.legend(frameon=False, labelcolor=PESSIMISTIC)


def _document(quality: Quality) -> dict[str, Any]:
    time = "virtual_us" if quality.is_virtual else "measured_us"
    return {
        "samples": len(quality.samples),
        "median": quality.median,
        "mean": quality.mean,
        "geometric_mean": quality.geometric_mean,
        "quantiles": {f"{probability:g}": q for probability, q in quality.quantiles().items()},
        "within_factor_2": quality.within_factor_2,
        "device": quality.device,
        "is_virtual": quality.is_virtual,
        "all": [
            {"expression": s.expression, "predicted_us": s.predicted, time: s.measured, "q": s.q}
            for s in quality.samples
        ],
    }
