"""Evidence against deadlines: a search for legal schedules in which a task is late, and the worst one as a picture.

A simulated miss proves that a task set is not schedulable. No miss proves nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice, repeat
from random import Random

from makespan.schedulability.courses import drawn, varied
from makespan.schedulability.scenarios import MOST_JOBS, critical
from makespan.schedulability.simulation import Completed, Run, Scenario, Segment, simulate
from makespan.schedulability.task import TaskSet
from makespan.schedulability.verdict import Miss

TRIES = 60
_FRESH = 0.3
"""Of the scenarios of a search after the critical instants, so many are drawn anew."""


def search(task_set: TaskSet, name: str, *, seed: int = 0, most_jobs: int = MOST_JOBS) -> Iterator[Run]:
    """First the critical instants, then random scenarios and ever worse variations of the worst, without end.

    Worse is the less slack a job of the task has.

    Raises:
        InputError: a task without a partition.
    """
    random = Random(f"{seed} {name}")  # noqa: S311  reproducible, not secret
    worst: Run | None = None
    for scenario in chain(critical(task_set, name, most_jobs=most_jobs), repeat(None)):
        run = simulate(scenario or _attempt(task_set, worst, random, most_jobs))
        yield run
        worst = run if worst is None or _slack(run, name) < _slack(worst, name) else worst


def _attempt(task_set: TaskSet, worst: Run | None, random: Random, most_jobs: int) -> Scenario:
    if worst is None or random.random() < _FRESH:
        return drawn(task_set, random, most_jobs, "random arrivals, jitter and execution times")
    return varied(worst.scenario, random, "found by search from worse to worse")


def find_miss(
    task_set: TaskSet, name: str, *, tries: int = TRIES, seed: int = 0, most_jobs: int = MOST_JOBS
) -> Miss | None:
    """A job of the task that ends after its deadline in a simulated legal schedule; None if the search saw none.

    The same arguments give the same answer; `missed` gives the whole schedule.

    Args:
        tries: scenarios to simulate, the critical instants among them.

    Raises:
        InputError: a task without a partition.
    """
    runs = enumerate(islice(search(task_set, name, seed=seed, most_jobs=most_jobs), tries), 1)
    return next((_miss(run, name, f"attempt {n}, seed {seed}") for n, run in runs if _is_late(run, name)), None)


def missed(
    task_set: TaskSet, name: str, *, tries: int = TRIES, seed: int = 0, most_jobs: int = MOST_JOBS
) -> Run | None:
    """The schedule behind `find_miss`."""
    runs = islice(search(task_set, name, seed=seed, most_jobs=most_jobs), tries)
    return next((run for run in runs if _is_late(run, name)), None)


def _is_late(run: Run, name: str) -> bool:
    return any(job.task == name for job in run.late)


def _miss(run: Run, name: str, which: str) -> Miss:
    job = next(job for job in run.late if job.task == name)
    return Miss(name, job.arrival, job.completion, f"{run.scenario.words} ({which})")


@dataclass(frozen=True)
class Window:
    """The part of a schedule in which `job` waits and runs, from the last instant before its release with no work.

    `start` and `end` are in ticks of `run`.
    """

    run: Run
    job: Completed
    start: int
    end: int

    @property
    def segments(self) -> tuple[Segment, ...]:
        """What runs in the window, cut at its ends."""
        return tuple(
            segment._replace(start=max(segment.start, self.start), end=min(segment.end, self.end))
            for segment in self.run.segments
            if segment.start < self.end and segment.end > self.start
        )

    @property
    def jobs(self) -> tuple[Completed, ...]:
        """The jobs that arrive or run in the window."""
        return tuple(job for job in self.run.jobs if job.arrival < self.end and job.completion > self.start)


def worst_window(
    task_set: TaskSet, *, names: tuple[str, ...] = (), tries: int = TRIES, seed: int = 0, most_jobs: int = MOST_JOBS
) -> Window:
    """The simulated window around the job with the least slack that the search finds, of the tasks `names` or of all.

    Args:
        tries: scenarios for each task.

    Raises:
        InputError: a task without a partition.
    """
    worst: tuple[Run, Completed] | None = None
    for name in names or tuple(task_set.by_name):
        for run in islice(search(task_set, name, seed=seed, most_jobs=most_jobs), tries):
            job = run.tightest(name)
            if job is not None and (worst is None or job.slack < worst[1].slack):
                worst = run, job
    if worst is None:
        raise ValueError("no scenario has a job")
    run, job = worst
    return Window(run, job, _work_since(run, job), max(job.completion, job.deadline))


def _work_since(run: Run, job: Completed) -> int:
    """Since when its core or partition works without a break until the release, or the arrival if that is earlier."""
    own = {s.resource for s in run.segments if (s.task, s.job) == (job.task, job.number)}
    start = job.release
    for segment in sorted(run.segments, key=lambda segment: -segment.end):
        if segment.resource in own and segment.start < start <= segment.end:
            start = segment.start
    return min(start, job.arrival)


def _slack(run: Run, name: str) -> int:
    job = run.tightest(name)
    if job is None:
        raise ValueError(f"task {name} has no job in the scenario")
    return job.slack
