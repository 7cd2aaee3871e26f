"""Evidence against deadlines: a search for legal schedules in which a task is late, and the worst one as a picture.

A simulated miss proves that a task set is not schedulable, if jobs can take the times that they take in it: a proven
upper bound is no such time, the lower end of the proven interval is. That no miss is found proves nothing.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice, repeat
from random import Random

from makespan.deadlines.chains import family_heads, heads, independent_parts
from makespan.deadlines.scenarios import MOST_JOBS, critical_scenarios, random_scenario, vary_scenario
from makespan.deadlines.simulation import CompletedJob, Scenario, ServiceStretch, SimulatedRun, simulate, turns_per_job
from makespan.deadlines.task import ChainStart, GpuTask, TaskSet
from makespan.deadlines.verdict import Miss
from makespan.host.errors import InputError

TRIES = 60
MOST_TURNS = 10_000
_FRESH = 0.3
"""The share of scenarios after the critical instants that are drawn anew."""


def worst_runs(task_set: TaskSet, name: str, *, seed: int = 0, most_jobs: int = MOST_JOBS) -> Iterator[SimulatedRun]:
    """Yield the critical instants, then random scenarios and ever worse variations of the worst, without end.

    A run is worse the less slack a job of the task has.

    Raises:
        InputError: a task without a partition.
    """
    random = Random(f"{seed} {name}")  # noqa: S311  reproducible, not secret
    worst: SimulatedRun | None = None
    for scenario in chain(critical_scenarios(task_set, name, most_jobs=most_jobs), repeat(None)):  # likely ones first
        run = simulate(scenario or _attempt(task_set, name, worst, random, most_jobs))
        yield run
        worst = run if worst is None or _slack(run, name) <= _slack(worst, name) else worst


def _attempt(task_set: TaskSet, name: str, worst: SimulatedRun | None, random: Random, most_jobs: int) -> Scenario:
    job = None if worst is None else worst.tightest(name)
    # a fresh start now and then, lest it stays in a dead end
    if worst is None or job is None or random.random() < _FRESH:
        return random_scenario(task_set, random, most_jobs, "random arrivals, jitter and execution times")
    return vary_scenario(worst, job, random, "found by search from worse to worse")


def find_miss(
    task_set: TaskSet, name: str, *, tries: int = TRIES, seed: int = 0, most_jobs: int = MOST_JOBS
) -> Miss | None:
    """Return a job that ends after its deadline in a simulated legal schedule; None if the search finds none.

    Every copy and kernel runs for a time that it is shown to take or, where the user gave one, for up to that. The same
    arguments give the same answer; `find_late_run` gives the whole schedule.

    Args:
        tries: The number of scenarios to simulate, the critical instants among them.

    Raises:
        InputError: a task without a partition.
    """
    runs = islice(_attempts(task_set, name, seed, most_jobs), tries)
    return next((miss for _, miss in runs if miss is not None), None)


def find_late_run(
    task_set: TaskSet, name: str, *, tries: int = TRIES, seed: int = 0, most_jobs: int = MOST_JOBS
) -> SimulatedRun | None:
    """Return the schedule behind `find_miss`."""
    runs = islice(_attempts(task_set, name, seed, most_jobs), tries)
    return next((run for run, miss in runs if miss is not None), None)


def misses(
    task_set: TaskSet,
    names: Sequence[str],
    *,
    attempts: int,
    jobs: int,
    progress: Callable[[str], None] = lambda _: None,
) -> Iterator[Miss]:
    """Yield evidence against the tasks `names`, as `find_miss` has it, until the round that finds the first is over.

    A round is one attempt for each task: one miss is enough for the answer, and the others of its round cost little.

    Args:
        attempts: The number of attempts for each task.
        jobs: The jobs of all simulated schedules together, or turns of contexts that they take; then the search ends.
    """
    hunts = {name: _attempts(task_set, name, 0, MOST_JOBS) for name in names}
    is_found = False
    for number in range(1, attempts + 1):
        for name, hunt in hunts.items():
            progress(f"looking for a late job of {name}: attempt {number} of {attempts}")
            run, miss = next(hunt, (None, None))
            if run is not None:
                costs = turns_per_job(run.scenario.task_set)
                jobs -= sum(costs[job.task] for job in run.jobs)  # work, not seconds: the same answer on every machine
            if miss is not None:
                is_found = True
                yield miss
            if jobs <= 0:
                return
        if is_found:
            return


def _attempts(task_set: TaskSet, name: str, seed: int, most_jobs: int) -> Iterator[tuple[SimulatedRun, Miss | None]]:
    """Yield legal schedules, each with a late job of the task if one is late; none where no times are known."""
    system = attainable(task_set, name)
    if system is None:
        return
    for number, found in enumerate(worst_runs(system, name, seed=seed, most_jobs=most_jobs), 1):
        # fewer conditions of the no
        run = _without_unshown(found, name) if _first_late(found, name) is not None else found
        job = _first_late(run, name)
        words = f"{run.scenario.words} (attempt {number}, seed {seed})"
        supposes = tuple(task.name for task in _tasks_with_given_times(run.scenario.task_set))
        yield run, None if job is None else Miss(name, job.arrival, job.completion, words, supposes)


def _tasks_with_given_times(task_set: TaskSet) -> list[GpuTask]:
    """Return the tasks with times that are not shown, switches of contexts among them."""
    switched = {p.name for p in task_set.partitions if p.slices is not None and p.slices.switch}
    return [t for t in task_set.tasks if t.is_vouched_for or any(s.resource in switched for s in t.segments)]


def _first_late(run: SimulatedRun, name: str) -> CompletedJob | None:
    return next((job for job in run.late if job.task == name), None)


def _without_unshown(run: SimulatedRun, name: str) -> SimulatedRun:
    """Return the run without tasks whose times are not shown; the same run if `name` is not late then.

    A sporadic task may never arrive, so what is left is a legal schedule by itself; a strictly periodic one must.
    """
    scenario = run.scenario
    family = family_heads(scenario.task_set)
    given = {family[task.name] for task in _tasks_with_given_times(scenario.task_set)}
    away = [task for task in scenario.task_set.tasks if family[task.name] in given]
    if not away or family[name] in given or any(task.offset is not None for task in away):  # these must arrive
        return run
    rest = _subset(scenario.task_set, (task for task in scenario.task_set.tasks if family[task.name] not in given))
    left = Scenario(
        rest,
        tuple(job for job in scenario.jobs if job.task in rest.by_name),
        tuple(other for other in scenario.order if other in rest.by_name),
        f"{scenario.words}, tasks left out whose times nobody has shown",
    )
    shown = simulate(left)
    return run if _first_late(shown, name) is None else shown  # only a run that still misses refutes


def attainable(task_set: TaskSet, name: str) -> TaskSet | None:
    """Return the tasks that share resources with a task, directly or not, with times that jobs can take.

    A copy or kernel takes what it is shown to take or, where the user gave a time, up to that. A sporadic task with one
    of which no such time is known never arrives, and neither does its family; a strictly periodic one must. Then the
    result is None, as it is if `name` never arrives, or where a job takes more than `MOST_TURNS` turns of its context.

    Raises:
        InputError: a task without a partition.
    """
    family = family_heads(task_set)
    near = next(part for part in independent_parts(task_set) if task_set.by_name[name] in part)
    unknown = {family[task.name] for task in near if any(segment.known == 0 for segment in task.segments)}
    if max(turns_per_job(task_set).values()) > MOST_TURNS:
        return None
    if family[name] in unknown or any(task.offset is not None for task in near if family[task.name] in unknown):
        return None
    return _subset(
        task_set,
        (
            replace(task, segments=tuple(replace(segment, wcet=segment.known) for segment in task.segments))
            for task in near
            if family[task.name] not in unknown
        ),
    )


def _subset(task_set: TaskSet, some: Iterable[GpuTask]) -> TaskSet:
    tasks = tuple(some)
    names, hosts = {task.name for task in tasks}, {segment.resource for task in tasks for segment in task.segments}
    return TaskSet(
        tasks,
        tuple(partition for partition in task_set.partitions if partition.name in hosts),
        tuple(chain for chain in task_set.chains if chain.activation is ChainStart.DATA and names >= {*chain.tasks}),
        tuple(engine for engine in task_set.engines if engine.name in hosts),
    )


@dataclass(frozen=True)
class ScheduleWindow:
    """The part of a schedule in which `job` waits and runs, from the last instant before its release with no work.

    A job that data starts is shown with its whole activation. `start` and `end` are in ticks of `run`.
    """

    run: SimulatedRun
    job: CompletedJob
    start: int
    end: int

    @property
    def stretches(self) -> tuple[ServiceStretch, ...]:
        """Return the stretches in the window, cut at its ends."""
        return tuple(
            replace(stretch, start=max(stretch.start, self.start), end=min(stretch.end, self.end))
            for stretch in self.run.stretches
            if stretch.start < self.end and stretch.end > self.start
        )

    @property
    def jobs(self) -> tuple[CompletedJob, ...]:
        """Return the jobs that arrive or run in the window."""
        return tuple(job for job in self.run.jobs if job.arrival < self.end and job.completion > self.start)


def worst_window(
    task_set: TaskSet, *, names: tuple[str, ...] = (), tries: int = TRIES, seed: int = 0, most_jobs: int = MOST_JOBS
) -> ScheduleWindow:
    """Return the simulated window around the job with the least slack, of the tasks `names` or of all.

    Copies and kernels run for times that they can take, as for `find_miss`.

    Args:
        tries: The number of scenarios for each task.

    Raises:
        InputError: a task without a partition, or no execution time of these tasks that is attained.
    """
    worst: tuple[SimulatedRun, CompletedJob] | None = None
    for name in names or tuple(task_set.by_name):
        for run, _ in islice(_attempts(task_set, name, seed, most_jobs), tries):
            job = run.tightest(name)
            if job is not None and (worst is None or job.slack < worst[1].slack):
                worst = run, job
    if worst is None:
        raise InputError(
            "nobody knows a time that runs of these kernels take, or they take more than"
            f" {MOST_TURNS} slices of a context: there is no schedule to draw; let the kernels be solved, or lengthen"
            " slices"
        )
    run, job = worst
    return ScheduleWindow(run, job, _work_since(run, job), max(job.completion, job.deadline))


def _work_since(run: SimulatedRun, job: CompletedJob) -> int:
    """Return since when one of its resources works without a break, or the event if it is earlier."""
    own = {s.resource for s in run.stretches if (s.task, s.job) == (job.task, job.number)}
    start = job.release
    for stretch in sorted(run.stretches, key=lambda stretch: -stretch.end):  # back in time, as long as they join
        if stretch.resource in own and stretch.start < start <= stretch.end:
            start = stretch.start
    head = heads(run.scenario.starts).get(job.task, job.task)
    event = next(other.arrival for other in run.jobs if (other.task, other.number) == (head, job.number))
    return min(start, event)  # data may have come long after the event


def _slack(run: SimulatedRun, name: str) -> int:
    job = run.tightest(name)
    if job is None:
        raise ValueError(f"task {name} has no job in the scenario")
    return job.slack
