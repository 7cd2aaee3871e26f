"""What scheduling policies do, beside the best and the worst case of all schedulers: a table and its picture.

A run of a policy is one schedule. The shortest and the longest case are proven for every work-conserving scheduler.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from makespan.bounds import least_possible
from makespan.errors import BrokenPromiseError
from makespan.report import text
from makespan.report.figures import GREY, INK, LINES, PESSIMISTIC, PROVEN, RUN, SPAN, cut, formula, write_figure
from makespan.result import Bounds, Result, Step
from makespan.schedule import Schedule
from makespan.simulate import replay
from makespan.wording import pessimistic_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ONE_RUN = "one run, not a bound"

_WIDTH, _ROW, _TITLE, _AROUND = 9.6, 0.34, 0.27, 1.83  # inches
_LETTERS = 82  # of the title that fit on a line
_LEFT, _RIGHT = 0.12, 0.90


class Row(NamedTuple):
    """One line of the table; `lower == upper` for a run and for what is exact, in cycles."""

    name: str
    kind: str
    lower: int
    upper: int
    remark: str


@dataclass(frozen=True, slots=True)
class PolicyGap:
    """Runs of policies, and a result with a best case that encloses them.

    Args:
        result: no longer open than the runs leave it, see `enclosing`.
        runs: the makespan in cycles by policy.
    """

    result: Result
    runs: Mapping[str, int]

    @property
    def best_case(self) -> Bounds:
        """The proven interval of the shortest schedule."""
        if self.result.best_case is None:
            raise ValueError("a policy gap needs a result with a best case")
        return self.result.best_case

    def rows(self) -> Iterator[Row]:
        """The table: best case, runs from the shortest to the longest, worst case, M^L + M^C."""
        best, worst = self.best_case, self.result.bounds
        yield Row("best case", "proven", best.lower, best.upper, "the shortest work-conserving schedule")
        for policy, makespan in sorted(self.runs.items(), key=lambda item: item[1]):
            yield Row(policy, "run", makespan, makespan, ONE_RUN)
        evidence = f"every work-conserving scheduler; at most {worst.upper} by {self.result.upper_evidence}"
        yield Row("worst case", "proven", worst.lower, worst.upper, evidence)
        bound = self.result.pessimistic
        yield Row(
            pessimistic_name(self.result.instance.machine),
            "bound",
            bound,
            bound,
            "what each class needs alone, added up",
        )


def enclosing(result: Result, schedules: Mapping[str, Schedule]) -> PolicyGap:
    """The runs of policies on the instance of a result.

    Each run is a work-conserving schedule, so where an interval is open the runs may narrow it. Where the result has no
    best case, it is between the work to be done and the shortest run.

    Raises:
        InvalidScheduleError: a run does not replay.
        BrokenPromiseError: a run is shorter than the best case or longer than the worst case.
    """
    runs = {policy: replay(result.instance, schedule) for policy, schedule in schedules.items()}
    best, worst = result.best_case, result.bounds
    if best is None:
        best = Bounds(least_possible(result.instance), min(runs.values()))
    for policy, makespan in runs.items():
        if not best.lower <= makespan <= worst.upper:
            raise BrokenPromiseError(
                f"policy {policy} takes {makespan} cycles, outside of {best.lower}..{worst.upper}, which was proven"
            )
    best &= Bounds(best.lower, min(best.upper, *runs.values()))
    longest = max(schedules.values(), key=lambda schedule: schedule.makespan)
    if longest.makespan > worst.lower:
        policy = next(policy for policy, schedule in schedules.items() if schedule is longest)
        step = Step(result.seconds, policy, longest.makespan, worst.upper, result.upper_evidence)
        bounds = Bounds(longest.makespan, worst.upper)
        result = replace(result, witness=longest, bounds=bounds, history=(*result.history, step))
    return PolicyGap(replace(result, best_case=best), runs)


def table(gap: PolicyGap) -> str:
    """The rows in columns; shares are of the safe number, the upper bound of the worst case."""
    safe = gap.result.bounds.upper
    rows = list(gap.rows())
    widest = max(11, *(len(row.name) for row in rows))
    lines = [f"{'':<{widest}}{'cycles':>13}  of worst"]
    for row in rows:
        cycles = text.interval(Bounds(row.lower, row.upper))
        lines.append(f"{row.name:<{widest}}{cycles:>13}  {100 * row.upper / safe:>6.1f} %  {row.remark}")
    return "\n".join(lines)


def summary(gap: PolicyGap) -> str:
    """One line: how far the worst case is above what the policies did."""
    slowest, worst = max(gap.runs.values()), gap.result.bounds
    fastest = min(gap.runs.values())
    spread = f"{slowest}" if slowest == fastest else f"{fastest} to {slowest}"
    if slowest == worst.upper:
        return f"simulated: {spread} cycles; the slowest of these runs is a worst case"
    least, most = (100 * (bound - slowest) / slowest for bound in (worst.lower, worst.upper))
    above = f"{most:.1f} %" if worst.lower == worst.upper else f"{least:.1f} to {most:.1f} %"
    return f"simulated: {spread} cycles; the worst case is {above} above the slowest of these runs"


def draw_policy_gap(gap: PolicyGap, path: Path) -> None:
    """Write the picture of the table to `path` (.png, .svg or .pdf), whole or not at all.

    Raises:
        InputError: a file that cannot be written.
    """
    about = f"{text.subject(gap.result)}; {summary(gap)}"
    write_figure(lambda: _figure(gap), path, title=text.verdict(gap.result), about=about)


def _figure(gap: PolicyGap) -> "Figure":
    from matplotlib.figure import Figure

    rows = list(gap.rows())
    title = text.wrapped(text.verdict(gap.result), _LETTERS, "")
    below = _TITLE * len(title)
    height = _AROUND + below + _ROW * len(rows)
    figure = Figure(figsize=(_WIDTH, height), facecolor="white")
    axes = figure.add_axes((_LEFT, 0.95 / height, _RIGHT - _LEFT, _ROW * len(rows) / height))
    figure.text(
        0.02, 1 - 0.18 / height, "\n".join(title), size=13, weight="bold", color=INK, va="top", parse_math=False
    )
    lines = ((0.33 + below, text.subject(gap.result)), (0.56 + below, summary(gap)))
    for down, line in lines:
        figure.text(0.02, 1 - down / height, cut(line), color=GREY, va="center", parse_math=False)
    for number, row in enumerate(rows):
        _draw_row(axes, number, row)
    _finish(axes, gap, rows)
    figure.text(0.02, 0.2 / height, _note(rows), size=8, color=GREY, va="center")
    return figure


def _note(rows: Sequence[Row]) -> str:
    """What the shapes that occur mean."""
    proven = [row for row in rows if row.kind != "run"]
    shapes = {"diamonds": any(r.lower == r.upper for r in proven), "bars": any(r.lower < r.upper for r in proven)}
    shown = " and ".join(name for name, occurs in shapes.items() if occurs)
    return (
        f"dots: {ONE_RUN}; {shown}: proven for every work-conserving scheduler, "
        "and so is the shaded span from best to worst case"
    )


def _draw_row(axes: "Axes", number: int, row: Row) -> None:
    """A dot for a run, a diamond for a proven value, a bar for a proven interval; the cycles to the right of it."""
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


def _finish(axes: "Axes", gap: PolicyGap, rows: list[Row]) -> None:
    """The span between best and worst case, the names of the rows, and an axis of whole cycles from 0 on."""
    from matplotlib.ticker import MaxNLocator

    axes.axvspan(gap.best_case.lower, gap.result.bounds.upper, color=SPAN, zorder=0)
    axes.set(xlim=(0, 1.02 * max(row.upper for row in rows)), ylim=(len(rows) - 0.5, -0.5), xlabel="cycles")
    axes.set_yticks(range(len(rows)), [formula(row.name).replace(" bound", "\nbound") for row in rows])
    for label, row in zip(axes.get_yticklabels(), rows, strict=True):
        label.set_fontweight("normal" if row.kind == "run" else "bold")
    axes.xaxis.set_major_locator(MaxNLocator(nbins=8, integer=True, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.tick_params(length=0, axis="y")
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
