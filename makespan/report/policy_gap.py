"""Runs of policies between best and worst case: in words, as data and as a picture."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from makespan.model.result import Bounds
from makespan.model.simulate import Choices
from makespan.model.wording import promise_words
from makespan.proof.policy_gap import ONE_RUN, PolicyGap, PolicyRow
from makespan.report.lines import align_columns, wrap_line
from makespan.report.pictures import (
    GREY,
    INK,
    LINES,
    PESSIMISTIC,
    PROVEN,
    RUN,
    SPAN,
    formula_text,
    shorten,
    write_figure,
)
from makespan.report.result import text
from makespan.report.result.document import result_document
from makespan.report.simulation import settings_document

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CSV_HEADER = "warps,name,kind,least,most,evidence"
_WIDTH, _ROW, _TITLE, _AROUND = 9.6, 0.34, 0.27, 1.83  # inches
_LETTERS = 82  # of the title that fit on a line
_LEFT, _RIGHT = 0.12, 0.90


def gap_table(gap: PolicyGap) -> str:
    """Return the rows in columns. Shares are relative to the safe number, the upper bound of the worst case."""
    safe = gap.result.bounds.upper
    cells = [("", "cycles", "of worst, %", "")]
    for row in gap.rows():
        cycles = text.interval_text(Bounds(row.lower, row.upper))
        cells.append((row.name, cycles, f"{100 * row.upper / safe:.1f}", row.remark))
    return "\n".join(align_columns(cells, right=(1, 2)))


def gap_summary(gap: PolicyGap) -> str:
    """Return one line: the distance between the worst case and the makespans of the policies."""
    slowest, worst = max(gap.runs.values()), gap.result.bounds
    fastest = min(gap.runs.values())
    spread = f"{slowest}" if slowest == fastest else f"{fastest} to {slowest}"
    # a run as long as the proven bound is a worst case, whatever made it
    if slowest == worst.upper:
        return f"simulated: {spread} cycles; the slowest of these runs is a worst case"
    least, most = (100 * (bound - slowest) / slowest for bound in (worst.lower, worst.upper))
    above = f"{most:.1f} %" if worst.lower == worst.upper else f"{least:.1f} to {most:.1f} %"
    return f"simulated: {spread} cycles; the worst case is {above} above the slowest of these runs"


def gap_document(gap: PolicyGap, choices: Choices, name: str | None) -> dict[str, Any]:
    """Return runs and result as plain data, schema `makespan.policy-gap/1`; `name` is that of the instance."""
    return {
        "schema": "makespan.policy-gap/1",
        "name": name,
        "choices": settings_document(choices),
        "runs": runs_document(gap),
        "result": result_document(gap.result),
    }


def runs_document(gap: PolicyGap) -> list[dict[str, Any]]:
    """Return the runs as plain data. None of them is a bound."""
    return [{"policy": policy, "makespan": makespan, "is_bound": False} for policy, makespan in gap.runs.items()]


def csv_rows(gap: PolicyGap) -> str:
    """Return a row of `CSV_HEADER` for each row of the table."""
    evidence = {"worst case": str(gap.result.upper_evidence)}
    return "\n".join(
        f"{gap.result.instance.warps},{row.name},{row.kind},{row.lower},{row.upper},"
        + ({"run": "one run", "bound": "pessimistic"}.get(row.kind) or evidence.get(row.name, ""))
        for row in gap.rows()
    )


def draw_policy_gap(gap: PolicyGap, path: Path) -> None:
    """Write the picture of the table to `path` (.png, .svg or .pdf), whole or not at all.

    Raises:
        InputError: a file that cannot be written.
    """
    about = f"{text.subject_line(gap.result)}; {gap_summary(gap)}"
    write_figure(lambda: _figure(gap), path, title=text.verdict_line(gap.result), about=about)


def _figure(gap: PolicyGap) -> "Figure":
    from matplotlib.figure import Figure

    rows = list(gap.rows())
    title = wrap_line(text.verdict_line(gap.result), _LETTERS, hang=0)
    below = _TITLE * len(title)
    height = _AROUND + below + _ROW * len(rows)
    figure = Figure(figsize=(_WIDTH, height), facecolor="white")
    axes = figure.add_axes((_LEFT, 0.95 / height, _RIGHT - _LEFT, _ROW * len(rows) / height))
    figure.text(
        0.02, 1 - 0.18 / height, "\n".join(title), size=13, weight="bold", color=INK, va="top", parse_math=False
    )
    lines = ((0.33 + below, text.subject_line(gap.result)), (0.56 + below, gap_summary(gap)))
    for down, line in lines:
        figure.text(0.02, 1 - down / height, shorten(line), color=GREY, va="center", parse_math=False)
    for number, row in enumerate(rows):
        _draw_row(axes, number, row)
    _draw_frame(axes, gap, rows)
    figure.text(
        0.02, 0.2 / height, _shape_note(rows, promise_words(gap.result.caveats)), size=8, color=GREY, va="center"
    )
    return figure


def _shape_note(rows: Sequence[PolicyRow], promise: str) -> str:
    proven = [row for row in rows if row.kind != "run"]
    shapes = {"diamonds": any(r.lower == r.upper for r in proven), "bars": any(r.lower < r.upper for r in proven)}
    shown = " and ".join(name for name, occurs in shapes.items() if occurs)
    return (
        f"dots: {ONE_RUN}; {shown}: proven for every work-conserving scheduler{promise}, "
        "and so is the shaded span from best to worst case"
    )


def _draw_row(axes: "Axes", number: int, row: PolicyRow) -> None:
    """Draw a dot for a run, a diamond for a proven value, or a bar for a proven interval, and write its cycles."""
    colour = {"proven": PROVEN, "run": RUN, "bound": PESSIMISTIC}[row.kind]
    cycles = "..".join(f"{value:,}" for value in dict.fromkeys((row.lower, row.upper)))
    axes.hlines(number, 0, row.lower, color=LINES, linewidth=0.7, zorder=1)
    if row.lower < row.upper:
        axes.plot([row.lower, row.upper], [number, number], color=colour, linewidth=5, solid_capstyle="butt")
        axes.plot([row.lower, row.upper], [number, number], "|", color=colour, markersize=13, markeredgewidth=2)
    else:
        marker = "o" if row.kind == "run" else "D"
        axes.plot([row.upper], [number], marker, color=colour, markersize=7, markeredgewidth=0)
    ends = (row.upper, number)
    axes.annotate(cycles, ends, xytext=(9, 0), textcoords="offset points", va="center_baseline", color=INK)


def _draw_frame(axes: "Axes", gap: PolicyGap, rows: list[PolicyRow]) -> None:
    """Draw the span between best and worst case, the names of the rows, and an axis of whole cycles from 0."""
    from matplotlib.ticker import MaxNLocator

    axes.axvspan(gap.best_case.lower, gap.result.bounds.upper, color=SPAN, zorder=0)
    axes.set(xlim=(0, 1.02 * max(row.upper for row in rows)), ylim=(len(rows) - 0.5, -0.5), xlabel="cycles")
    names = [formula_text(row.name).replace(" bound", "\nbound").replace("without ", "without\n") for row in rows]
    axes.set_yticks(range(len(rows)), names)
    for label, row in zip(axes.get_yticklabels(), rows, strict=True):
        label.set_fontweight("normal" if row.kind == "run" else "bold")
    axes.xaxis.set_major_locator(MaxNLocator(nbins=8, integer=True, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.tick_params(length=0, axis="y")
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
