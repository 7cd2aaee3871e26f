"""Evidence against deadlines: a search for legal schedules in which a task is late, and the worst one as a picture.

A simulated miss proves that a task set is not schedulable, if jobs can take the times that they take in it: a proven
upper bound is no such time, the lower end of the proven interval is. No miss proves nothing.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice, repeat
from random import Random

from makespan.errors import InputError
from makespan.schedulability.chains import predecessors
from makespan.schedulability.courses import drawn, varied
from makespan.schedulability.scenarios import MOST_JOBS, critical
from makespan.schedulability.simulation import Completed, Run, Scenario, Segment, simulate
from makespan.schedulability.task import Activation, Task, TaskSet
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

    Every kernel runs for a time that it is shown to take or, where the user gave one, for up to that. The same
    arguments give the same answer; `missed` gives the whole schedule.

    Args:
        tries: scenarios to simulate, the critical instants among them.

    Raises:
        InputError: a task without a partition.
    """
    runs = islice(_attempts(task_set, name, seed, most_jobs), tries)
    return next((miss for _, miss in runs if miss is not None), None)


def missed(
    task_set: TaskSet, name: str, *, tries: int = TRIES, seed: int = 0, most_jobs: int = MOST_JOBS
) -> Run | None:
    """The schedule behind `find_miss`."""
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
    """Evidence against the tasks `names`, as `find_miss` has it, up to the end of the round that finds the first.

    A round is one attempt for each task: one miss is enough for the answer, and the others of its round cost little.

    Args:
        attempts: for each task.
        jobs: of all simulated schedules together; then the search ends.
    """
    hunts = {name: _attempts(task_set, name, 0, MOST_JOBS) for name in names}
    is_found = False
    for number in range(1, attempts + 1):
        for name, hunt in hunts.items():
            progress(f"looking for a late job of {name}: attempt {number} of {attempts}")
            run, miss = next(hunt, (None, None))
            jobs -= 0 if run is None else len(run.jobs)
            if miss is not None:
                is_found = True
                yield miss
            if jobs <= 0:
                return
        if is_found:
            return


def _attempts(task_set: TaskSet, name: str, seed: int, most_jobs: int) -> Iterator[tuple[Run, Miss | None]]:
    """Legal schedules, each with the job of the task that is late in it; none where no times are known."""
    system = attainable(task_set, name)
    if system is None:
        return
    for number, found in enumerate(search(system, name, seed=seed, most_jobs=most_jobs), 1):
        run = _shown(found, name) if _first_late(found, name) is not None else found
        job = _first_late(run, name)
        words = f"{run.scenario.words} (attempt {number}, seed {seed})"
        supposes = tuple(task.name for task in run.scenario.task_set.tasks if task.is_vouched_for)
        yield run, None if job is None else Miss(name, job.arrival, job.completion, words, supposes)


def _first_late(run: Run, name: str) -> Completed | None:
    return next((job for job in run.late if job.task == name), None)


def _shown(run: Run, name: str) -> Run:
    """The run without tasks whose times nobody has shown, and what they start; as it is if `name` is not late then.

    A sporadic task may never arrive, so what is left is a legal schedule by itself; a strictly periodic one must.
    """
    scenario, starts = run.scenario, run.scenario.starts
    heads = {task.name: _head(starts, task.name) for task in scenario.task_set.tasks}
    given = {heads[task.name] for task in scenario.task_set.tasks if task.is_vouched_for}
    away = [task for task in scenario.task_set.tasks if heads[task.name] in given]
    if not away or heads[name] in given or any(task.offset is not None for task in away):
        return run
    rest = _only(scenario.task_set, (task for task in scenario.task_set.tasks if heads[task.name] not in given))
    left = Scenario(
        rest,
        tuple(job for job in scenario.jobs if job.task in rest.by_name),
        tuple(other for other in scenario.order if other in rest.by_name),
        f"{scenario.words}, tasks left out whose times nobody has shown",
    )
    shown = simulate(left)
    return run if _first_late(shown, name) is None else shown


def attainable(task_set: TaskSet, name: str) -> TaskSet | None:
    """What a task shares resources with, directly or not, with execution times that jobs can take.

    A kernel takes what it is shown to take or, where the user gave a time, up to that. A sporadic task of which no such
    time is known never arrives, and neither do those that it starts; a strictly periodic one must: then there is None,
    as there is if `name` never arrives.

    Raises:
        InputError: a task without a partition.
    """
    starts = predecessors(task_set)
    heads = {task.name: _head(starts, task.name) for task in task_set.tasks}
    near = _neighbours(task_set, name, heads)
    unknown = {heads[task.name] for task in near if task.attained == 0}
    if heads[name] in unknown or any(task.offset is not None for task in near if heads[task.name] in unknown):
        return None
    return _only(task_set, (replace(t, wcet=t.attained or t.wcet) for t in near if heads[t.name] not in unknown))


def _only(task_set: TaskSet, some: Iterable[Task]) -> TaskSet:
    """These tasks, with the partitions and the chains by data that they need."""
    tasks = tuple(some)
    names, hosts = {task.name for task in tasks}, {task.partition for task in tasks}
    return TaskSet(
        tasks,
        tuple(partition for partition in task_set.partitions if partition.name in hosts),
        tuple(chain for chain in task_set.chains if chain.activation is Activation.DATA and names >= {*chain.tasks}),
    )


def _head(starts: Mapping[str, str], name: str) -> str:
    while name in starts:
        name = starts[name]
    return name


def _neighbours(task_set: TaskSet, name: str, heads: Mapping[str, str]) -> list[Task]:
    """The task and all that it meets on partitions, on cores and in chains by data, and that those meet."""
    places = {task.name: {("at", task.partition), ("by", heads[task.name])} for task in task_set.tasks}
    for core, tasks in task_set.cores.items():
        for task in tasks:
            places[task.name].add(("on", core))
    near, size = {name}, 0
    while len(near) > size:
        size, reached = len(near), set().union(*(places[other] for other in near))
        near = {other for other, here in places.items() if here & reached}
    return [task for task in task_set.tasks if task.name in near]


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

    Kernels run for times that they can take, as for `find_miss`.

    Args:
        tries: scenarios for each task.

    Raises:
        InputError: a task without a partition, or no execution time of these tasks that is attained.
    """
    worst: tuple[Run, Completed] | None = None
    for name in names or tuple(task_set.by_name):
        for run, _ in islice(_attempts(task_set, name, seed, most_jobs), tries):
            job = run.tightest(name)
            if job is not None and (worst is None or job.slack < worst[1].slack):
                worst = run, job
    if worst is None:
        raise InputError(
            "execution times are rounded up to whole ticks, and no run is known to take as long: there is no schedule"
            " to draw; leave the tick out"
        )
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
