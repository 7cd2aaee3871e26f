"""The worst schedule that was found as a Gantt chart: what cores, engines and partitions run above, jobs below."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from math import ceil, floor
from pathlib import Path
from typing import NamedTuple

from makespan.deadlines.evidence import ScheduleWindow
from makespan.deadlines.simulation import CompletedJob, ServiceStretch
from makespan.deadlines.task import core_label
from makespan.host.errors import InputError
from makespan.host.output_file import write_whole
from makespan.model.units import SECONDS, shown_time
from makespan.report.gantt.chart import (
    COLOURS,
    MARKS,
    AxisWindow,
    Gantt,
    GanttArrow,
    GanttBar,
    GanttKey,
    GanttLook,
    GanttMark,
    GanttPanel,
    GanttRow,
    tint,
)
from makespan.report.gantt.figure import render_chart
from makespan.report.pictures import GREY, shorten_middle

MOST_BARS = 120
MOST_ROWS = 24
"""The most rows of tasks, and of cores, engines and partitions."""
MOST_LANES = 4
"""The most lanes of jobs of one task that overlap; more would be too thin to tell apart."""
_OTHER = GanttLook("#D9D9D9")
_WIDTH = 1650  # pixels of the axis in a file
_THIN, _RUNS, _SPINS = 0.06, 0.4, 0.46  # of the height of a lane


class ChartView(NamedTuple):
    """The part of a window to show.

    Args:
        tasks: The tasks with their rows, and all that their resources run; empty means all tasks.
        part: The first and last tick from the start of the window. None means from its start until the job and its
            deadline have ended, or as much of the end of that as is not too much.
    """

    tasks: tuple[str, ...] = ()
    part: tuple[int, int] | None = None


ALL = ChartView()


def ticks_of(part: tuple[Fraction, Fraction], tick: Fraction) -> tuple[int, int]:
    """Return a part of a window in whole ticks that has all of it; seconds become ticks."""
    return floor(part[0] / tick), ceil(part[1] / tick)


def draw_window(window: ScheduleWindow, tick: Fraction, path: Path, *, title: str, view: ChartView = ALL) -> None:
    """Write the picture of a window to `path` (.png, .svg or .pdf), whole or not at all.

    Args:
        tick: The seconds of a tick.

    Raises:
        InputError: a file that cannot be written, or nothing to show.
    """
    chart = window_chart(window, tick, title, view)
    write_whole(path, render_chart(chart, path.suffix.lower(), about=chart.subtitles[0]), "the picture")


def latest_line(job: CompletedJob, tick: Fraction) -> str:
    """Return a line on the job that a picture is about, and how it ends."""
    apart = shown_time(abs(job.slack) * tick)
    outcome = f"{apart} after its deadline" if job.is_late else f"{apart} before its deadline"
    return f"the latest job: {job.task}#{job.number} ends {outcome}; one schedule, no bound"


def window_chart(window: ScheduleWindow, tick: Fraction, title: str = "", view: ChartView = ALL) -> Gantt:
    """Return a window as a chart: of a long one its end, of many tasks those that run in it.

    The end of a window has the job that is the latest. Times are ticks from the start of the window.

    Raises:
        InputError: nothing happens in the part that is asked for.
    """
    zero, wanted = window.start, set(view.tasks or window.run.scenario.task_set.by_name)
    since, until = (zero, window.end) if view.part is None else (zero + view.part[0], zero + view.part[1])
    seen, every = _near(window, since, until, wanted)
    is_long = view.part is None and len(every) > MOST_BARS and window.job.completion < until
    if is_long:  # what comes after the job says less about it than what comes before
        until = window.job.completion
        seen, every = _near(window, since, until, wanted)
    stretches, earlier = every[-MOST_BARS:], every[:-MOST_BARS]  # the end of a window is what matters
    start = earlier[-1].end if earlier else since  # from then on nothing is missing
    end = until if is_long or view.part is not None else max(until, window.job.deadline, window.job.completion)
    jobs = [job for job in seen.jobs if job.completion > start and job.task in wanted]
    if not jobs:
        raise InputError(f"nothing of {', '.join(view.tasks) or 'any task'} is in this part of the schedule")
    first = [window.job.task, *_leading_to(window.run.scenario.starts, window.job.task)]
    latest = list(reversed(stretches))
    present = _some((*first, *(s.task for s in latest), *(job.task for job in jobs)), {job.task for job in jobs})
    order = tuple(window.run.scenario.task_set.by_name)
    tasks = [name for name in order if name in present[:MOST_ROWS]]
    own = [s.resource for name in first for s in latest if s.task == name]
    used = _some((*own, *(s.resource for s in latest)), {s.resource for s in latest})
    resources = [name for name in _resources(window) if name in used[:MOST_ROWS]]
    draft = _WindowDraft(window, tick, start, end, {name: number for number, name in enumerate(order)}, wanted)
    panels = (draft.resource_panel(stretches, resources), draft.task_panel(jobs, every, tasks))
    ends = {"before": start - zero if earlier else None, "after": end - zero if is_long else None}
    cut = " and ".join(f"{side} {shown_time(at * tick)}" for side, at in ends.items() if at is not None)
    rows = (("task", len(present) - len(tasks)), ("core, engine or partition", len(used) - len(resources)))
    missing = [f"what is {cut} is left out"] if cut else []
    missing += [f"{count} more have no row ({name})" for name, count in rows if count]
    unit, size = _axis_unit((end - zero) * tick)
    return Gantt(
        title,
        (f"simulated: {window.run.scenario.words}", latest_line(window.job, tick)),
        panels,
        (AxisWindow(start - zero, end - zero),),
        _WIDTH,
        tuple(_keys(panels)),
        axis_words=f"{unit} from the start of the window",
        unit=size / tick,
        caption="; ".join(missing),
    )


class _WindowDraft(NamedTuple):
    """The part that a chart shows, for both of its panels, and the number of each task, which says its look."""

    window: ScheduleWindow
    tick: Fraction
    start: int
    end: int
    numbers: Mapping[str, int]
    wanted: set[str]

    def times(self, start: int, end: int) -> str:
        return " to ".join(shown_time((time - self.window.start) * self.tick) for time in (start, end))

    def resource_panel(self, stretches: Sequence[ServiceStretch], rows: Sequence[str]) -> GanttPanel:
        zero, shown = self.window.start, [stretch for stretch in stretches if stretch.resource in rows]
        bars = []
        for stretch in shown:
            label, look = f"{stretch.task}#{stretch.job}", _OTHER
            texts = [label, *(f"{shorten_middle(stretch.task, most)}#{stretch.job}" for most in (24, 18, 12))]
            if stretch.task in self.wanted:
                look = GanttLook.numbered(self.numbers[stretch.task])
                # tasks that differ by colour need no name
                texts += [f"#{stretch.job}"] if len(self.numbers) <= len(COLOURS) else []
            if stretch.is_spin:
                look = look._replace(face=tint(look.face, 0.4), hatch="")
            start = max(stretch.start, self.start)
            tip = (
                f"{label} on {stretch.resource}{', spins' if stretch.is_spin else ''}: {self.times(start, stretch.end)}"
            )
            bars.append(
                GanttBar(
                    rows.index(stretch.resource), start - zero, stretch.end - zero, look,
                    () if stretch.is_spin else tuple(texts), tip, thick=_SPINS if stretch.is_spin else 0.88,
                )
            )  # fmt: skip
        arrows = tuple(self.segment_arrows([each for each in shown if each.task in self.wanted], rows))
        return GanttPanel(tuple(map(GanttRow, rows)), bars, "what runs segments", ground=self.end - zero, arrows=arrows)

    def segment_arrows(self, stretches: Sequence[ServiceStretch], rows: Sequence[str]) -> Iterator[GanttArrow]:
        """Yield arrows between segments of a job that both are shown, except where one follows without a break."""
        jobs: dict[tuple[str, int], list[ServiceStretch]] = defaultdict(list)
        for stretch in stretches:
            if not stretch.is_spin:
                jobs[stretch.task, stretch.job].append(stretch)
        for job, parts in jobs.items():
            for one, other in pairwise(sorted(parts, key=lambda part: part.start)):
                is_next = one.index + 1 == other.index and max(one.start, self.start) < one.end
                if is_next and (one.resource, one.end) != (other.resource, other.start):
                    tail = rows.index(one.resource), 0, one.end - self.window.start
                    head = rows.index(other.resource), 0, other.start - self.window.start
                    yield GanttArrow(tail, head, job == (self.window.job.task, self.window.job.number))

    def task_panel(
        self, jobs: Sequence[CompletedJob], stretches: Sequence[ServiceStretch], tasks: Sequence[str]
    ) -> GanttPanel:
        """Return a row for each task. Jobs of a task that overlap are in different lanes of its row."""
        zero, bars, marks = self.window.start, list[GanttBar](), list[GanttMark]()
        parts: dict[tuple[str, int], list[tuple[int, int]]] = defaultdict(list)
        for stretch in stretches:
            if not stretch.is_spin:
                parts[stretch.task, stretch.job].append((stretch.start - zero, stretch.end - zero))
        places, rows = dict[tuple[str, int], tuple[int, int, CompletedJob]](), list[GanttRow]()
        for row, name in enumerate(tasks):
            own = sorted((job for job in jobs if job.task == name), key=lambda job: job.number)
            lanes, look = _lanes(own), GanttLook.numbered(self.numbers[name])
            rows.append(GanttRow(name, max(lanes) + 1))
            for job, lane in zip(own, lanes, strict=True):
                places[name, job.number] = row, lane, job
                took, allowed = (shown_time((end - job.arrival) * self.tick) for end in (job.completion, job.deadline))
                tip = f"{name}#{job.number}: {took} from arrival to end, {allowed} until its deadline"
                line = look._replace(hatch="")
                bars.append(GanttBar(row, job.arrival - zero, job.completion - zero, line, (), tip, lane, _THIN))
                bars += [
                    GanttBar(row, *part, look, (f"#{job.number}",), tip, lane, _RUNS)
                    for part in sorted(parts[name, job.number])
                ]
                marks += [GanttMark(row, at - zero, kind, lane) for at, kind in self.job_marks(job)]
        starts = self.window.run.scenario.starts
        arrows = [
            GanttArrow(
                (*places[source, number][:2], places[source, number][2].completion - zero),
                (row, lane, job.arrival - zero),
            )
            for (name, number), (row, lane, job) in places.items()
            for source in starts.get(name, ())
            if (source, number) in places
            and self.start <= places[source, number][2].completion <= self.end
            and self.start <= job.arrival <= self.end
        ]
        told = "jobs, from arrival to end, thick where a part of them runs"
        return GanttPanel(tuple(rows), bars, told, arrows=tuple(arrows), marks=tuple(marks))

    def job_marks(self, job: CompletedJob) -> Iterator[tuple[int, str]]:
        yield (job.arrival, "arrival") if job.arrival >= self.start else (self.start, "earlier")
        yield (job.deadline, "deadline") if job.deadline <= self.end else (self.end, "later")
        if job.is_late and job.completion <= self.end:
            yield job.completion, "late"


def _near(
    window: ScheduleWindow, since: int, until: int, wanted: set[str]
) -> tuple[ScheduleWindow, list[ServiceStretch]]:
    """Return a part of the window, and what runs in it on all that these tasks use there, by its end."""
    seen = ScheduleWindow(window.run, window.job, since, until)
    near = {stretch.resource for stretch in seen.stretches if stretch.task in wanted}
    return seen, sorted((s for s in seen.stretches if s.resource in near), key=lambda stretch: stretch.end)


def _some(names: Iterable[str], known: set[str]) -> list[str]:
    return [name for name in dict.fromkeys(names) if name in known]


def _leading_to(starts: Mapping[str, Sequence[str]], name: str) -> list[str]:
    """Return the tasks whose data starts a task, directly or not; the nearest first."""
    found = list(starts.get(name, ()))
    for source in found:  # it grows
        found += [other for other in starts.get(source, ()) if other not in found]
    return found


def _lanes(jobs: Sequence[CompletedJob]) -> list[int]:
    """Return the first free lane of each job in the order of arrival, or the last lane that there may be."""
    ends: list[int] = []
    found = []
    for job in jobs:
        lane = next((lane for lane, end in enumerate(ends) if end <= job.arrival), min(len(ends), MOST_LANES - 1))
        ends[lane:] = [job.completion, *ends[lane + 1 :]]  # the lane is taken until the job ends
        found.append(lane)
    return found


def _resources(window: ScheduleWindow) -> Iterator[str]:
    """Yield cores, copy engines and partitions in the order of the task set: so data go down and come back."""
    task_set = window.run.scenario.task_set
    yield from (core_label(name) for name in task_set.cores)
    yield from (server.resource for server in (*task_set.engines, *task_set.partitions))


def _keys(panels: Sequence[GanttPanel]) -> Iterator[GanttKey]:
    """Yield the legend: a task is known by its row, so only the other looks and the marks need words."""
    resources, tasks = panels
    if any(bar.thick == _SPINS for bar in resources.bars):
        yield GanttKey(GanttLook(tint(GREY, 0.4)), "thread spins")
    if any(bar.look.face in (_OTHER.face, tint(_OTHER.face, 0.4)) for bar in resources.bars):
        yield GanttKey(_OTHER, "other tasks")
    if resources.arrows or tasks.arrows:
        yield GanttKey("arrow", "leads to")
    shown = {mark.kind for mark in tasks.marks}
    yield from (GanttKey(kind, words) for kind, (_, words, _) in MARKS.items() if kind in shown)


def _axis_unit(seconds: Fraction) -> tuple[str, Fraction]:
    """Return the unit of an axis of this length."""
    return next(
        ((name, size) for name, size in reversed(SECONDS.items()) if seconds >= 2 * size), ("ps", SECONDS["ps"])
    )
