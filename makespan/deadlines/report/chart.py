"""The worst schedule that was found, as data for a picture: rows, bars and arrows."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import ceil, floor
from typing import NamedTuple

from makespan.deadlines.evidence import ScheduleWindow
from makespan.deadlines.simulation import CompletedJob, ServiceStretch
from makespan.deadlines.task import core_label
from makespan.host.errors import InputError

MOST_BARS = 120
MOST_ROWS = 24
"""The most rows of tasks, and of cores, engines and partitions."""
MOST_LANES = 4
"""The most lanes of jobs of one task that overlap; more would be too thin to tell apart."""


class TaskBar(NamedTuple):
    """A part of a job on a row, in ticks from the start of the window; the thread of a spinning one only waits.

    The number `task` of all tasks says its look; None means a task that was not asked for.
    """

    row: int
    start: int
    end: int
    task: int | None
    label: str
    is_spin: bool = False


class JobSpan(NamedTuple):
    """A job on the row of its task, which is the number `task` of all, in ticks from the start of the window.

    Jobs of a task that overlap are in different lanes of its row: `lane` counts from 0, `lanes` how many there are.
    `parts` is when something of it runs.
    """

    row: int
    task: int
    number: int
    arrival: int
    deadline: int
    completion: int
    is_late: bool
    lane: int = 0
    lanes: int = 1
    parts: tuple[tuple[int, int], ...] = ()


class Arrow(NamedTuple):
    """An arrow from the end of a segment to the start of the job's next one: rows, and ticks from the window's start.

    `is_of_job` is for the job that the picture is about.
    """

    row: int
    end: int
    to_row: int
    start: int
    is_of_job: bool


class Handover(NamedTuple):
    """A link from a job to one that its data starts; both are indices of `DeadlineChart.spans`."""

    source: int
    follower: int


@dataclass(frozen=True, slots=True)
class DeadlineChart:
    """The picture as data; times in ticks from the start of the window, of which it shows `start` to `end`.

    Args:
        resources: What runs segments, a row each.
        tasks: The tasks, a row each; the number of a task says its look.
        arrows: The arrows from segment to segment of a job.
        handovers: The links from job to job of an activation.
        cut: The sides, "before" and "after", on which there is more than fits, unless less than all of it was asked
            for.
        left_out: The numbers of tasks and resources without a row that have something to show.
    """

    resources: tuple[str, ...]
    tasks: tuple[str, ...]
    bars: tuple[TaskBar, ...]
    arrows: tuple[Arrow, ...]
    spans: tuple[JobSpan, ...]
    handovers: tuple[Handover, ...]
    start: int
    end: int
    cut: tuple[str, ...]
    left_out: tuple[int, int]
    job: CompletedJob


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


def window_chart(window: ScheduleWindow, view: ChartView = ALL) -> DeadlineChart:
    """Return a window as a chart: of a long one its end, of many tasks those that run in it.

    The end of a window has the job that is the latest.

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
    tasks = tuple(name for name in order if name in present[:MOST_ROWS])
    own = [s.resource for name in first for s in latest if s.task == name]
    used = _some((*own, *(s.resource for s in latest)), {s.resource for s in latest})
    resources = tuple(name for name in _resources(window) if name in used[:MOST_ROWS])
    bars = tuple(_bars([s for s in stretches if s.resource in resources], resources, order, wanted, zero, start))
    spans = tuple(_spans([job for job in jobs if job.task in tasks], every, tasks, order, zero))
    return DeadlineChart(
        resources,
        tasks,
        bars,
        tuple(_arrows([s for s in stretches if s.task in wanted], resources, window, start)),
        spans,
        tuple(_handovers(spans, order, window.run.scenario.starts)),
        start - zero,
        end - zero,
        (*(("before",) if earlier else ()), *(("after",) if is_long else ())),
        (len(present) - len(tasks), len(used) - len(resources)),
        window.job,
    )


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


def _bars(
    stretches: Sequence[ServiceStretch],
    rows: Sequence[str],
    tasks: Sequence[str],
    wanted: set[str],
    zero: int,
    start: int,
) -> Iterator[TaskBar]:
    for stretch in stretches:
        yield TaskBar(
            rows.index(stretch.resource),
            max(stretch.start, start) - zero,
            stretch.end - zero,
            tasks.index(stretch.task) if stretch.task in wanted else None,
            f"{stretch.task}#{stretch.job}",
            stretch.is_spin,
        )


def _arrows(
    stretches: Sequence[ServiceStretch], rows: Sequence[str], window: ScheduleWindow, start: int
) -> Iterator[Arrow]:
    """Yield arrows between segments of a job that both are shown, except where one follows without a break."""
    jobs: dict[tuple[str, int], list[ServiceStretch]] = defaultdict(list)
    for stretch in stretches:
        if not stretch.is_spin and stretch.resource in rows:
            jobs[stretch.task, stretch.job].append(stretch)
    for job, parts in jobs.items():
        parts.sort(key=lambda part: part.start)
        for one, other in pairwise(parts):
            is_next = one.index + 1 == other.index and max(one.start, start) < one.end
            if is_next and (one.resource, one.end) != (other.resource, other.start):
                ends = (rows.index(one.resource), one.end - window.start)
                begins = (rows.index(other.resource), other.start - window.start)
                yield Arrow(*ends, *begins, job == (window.job.task, window.job.number))


def _spans(
    jobs: Sequence[CompletedJob],
    stretches: Sequence[ServiceStretch],
    rows: Sequence[str],
    tasks: Sequence[str],
    zero: int,
) -> Iterator[JobSpan]:
    parts: dict[tuple[str, int], list[tuple[int, int]]] = defaultdict(list)
    for stretch in stretches:
        if not stretch.is_spin:
            parts[stretch.task, stretch.job].append((stretch.start - zero, stretch.end - zero))
    for row, name in enumerate(rows):
        own = sorted((job for job in jobs if job.task == name), key=lambda job: job.number)
        lanes = _lanes(own)
        for job, lane in zip(own, lanes, strict=True):
            times = (job.arrival - zero, job.deadline - zero, job.completion - zero)
            in_row = (lane, max(lanes) + 1, tuple(sorted(parts[name, job.number])))
            yield JobSpan(row, tasks.index(name), job.number, *times, job.is_late, *in_row)


def _handovers(
    spans: Sequence[JobSpan], tasks: Sequence[str], starts: Mapping[str, Sequence[str]]
) -> Iterator[Handover]:
    indices = {(tasks[span.task], span.number): index for index, span in enumerate(spans)}
    for (name, number), index in indices.items():
        for source in starts.get(name, ()):
            if (source, number) in indices:
                yield Handover(indices[source, number], index)


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
