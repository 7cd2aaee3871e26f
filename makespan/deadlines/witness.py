"""A schedule in which a job takes as long as a walk says, for the simulation to confirm."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice, pairwise, permutations

from makespan.deadlines.evidence import attainable
from makespan.deadlines.exploration import AgedJob, StateWalk, WalkState, WalkStep, independent_parts
from makespan.deadlines.families import GridJob, PendingJobs, Stage
from makespan.deadlines.simulation import JobPlan, Scenario, SimulatedRun, simulate
from makespan.deadlines.task import GpuTask, JobSegment, TaskSet
from makespan.deadlines.verdict import Miss

_ORDERS = 120
_NEW = GridJob(Stage.ARRIVED)


def late_job(task_set: TaskSet, name: str, most_states: int, *, grid: int = 1) -> Miss | None:
    """Return a late job of the task in a simulated schedule, which a walk in steps of `grid` ticks has found.

    Execution times are those that jobs can take: what is shown is no shorter, either. None where no job is late with
    these, or where equals go in an order that no scenario has.

    Raises:
        TooManyStatesError: there are too many.
    """
    stepped, system = attainable(in_steps(task_set, grid), name), attainable(task_set, name)
    if stepped is None or system is None or any(task.offset is not None for task in stepped.tasks):
        return None
    for run in longest_runs(system, name, most_states, stepped=stepped, grid=grid):
        late = next((job for job in run.late if job.task == name), None)
        if late is not None:
            supposes = tuple(task.name for task in stepped.tasks if task.is_vouched_for)
            return Miss(name, late.arrival, late.completion, run.scenario.words, supposes)
    return None


def in_steps(task_set: TaskSet, grid: int) -> TaskSet:
    """The schedules of a task set in which all events are whole steps of `grid` ticks apart; a step is a tick of it.

    A segment that may take any time up to a limit takes whole steps, if it is not too short for one. What is shown to
    take a time takes that, so it must be whole steps. Of others no time is known that they take here.
    """

    def segment_of(segment: JobSegment) -> JobSegment:
        steps, rest = divmod(segment.known, grid)
        is_unknown = not steps or (segment.attained is not None and rest)
        attained = 0 if is_unknown else None if segment.attained is None else steps
        wcet = max(1, segment.wcet // grid)
        return replace(segment, wcet=wcet, attained=attained, delay=segment.delay // grid)

    def task_of(task: GpuTask) -> GpuTask:
        period, deadline, jitter = -(-task.period // grid), max(1, task.deadline // grid), task.jitter // grid
        segments = tuple(map(segment_of, task.segments))
        return replace(task, segments=segments, period=period, deadline=deadline, jitter=jitter)

    return replace(task_set, tasks=tuple(map(task_of, task_set.tasks)), unit=1)


def longest_runs(
    task_set: TaskSet, name: str, most_states: int, *, stepped: TaskSet | None = None, grid: int = 1
) -> Iterator[SimulatedRun]:
    """Schedules on the way of a job of the task that takes longest, with equals in one order after another.

    What is shown of a segment is what it takes; of the others, jobs that have not ended by then run for as long as they
    may.

    Args:
        stepped: what is walked through instead, in ticks that are `grid` times as long; it may lack tasks.

    Raises:
        TooManyStatesError: there are too many.
    """
    walked = task_set if stepped is None else stepped
    tasks = next(tasks for tasks in independent_parts(walked) if name in [task.name for task in tasks])
    walk = StateWalk(walked, tasks, 1, is_short=lambda segment: segment.attained is None, is_traced=True)
    walk.run(most_states)
    jobs = tuple(_longer(job, grid) for job in _jobs(walk, tasks, _path(walk, name)))
    for order in islice(permutations(task_set.by_name), _ORDERS):
        yield simulate(Scenario(task_set, jobs, order, f"the longest response of {name} in all schedules"))


def _longer(job: JobPlan, grid: int) -> JobPlan:
    times, delays = ([grid * ticks for ticks in row] for row in (job.times, job.delays))
    return JobPlan(job.task, job.number, grid * job.arrival, grid * job.release, tuple(times), tuple(delays))


def _path(walk: StateWalk, name: str) -> list[tuple[WalkState, WalkStep]]:
    """Return the steps to the end of the job of a task that takes longest, each with the state before it."""
    trail: list[AgedJob] = []
    mark: AgedJob | None = walk.last[name]
    while mark is not None and len(trail) <= walk.response[name]:
        trail.append(mark)
        mark = walk.before.get(mark)
    way = [trail[-1][0]]
    while way[-1] in walk.first:
        way.append(walk.first[way[-1]])
    way.reverse()
    path = [(state, next(s for s in _steps(walk, state) if s.reached == then)) for state, then in pairwise(way)]
    trail.reverse()
    for (state, family, at), (then, _, later) in pairwise(trail):
        steps = (step for step in _steps(walk, state) if step.reached == then)
        path.append((state, next(step for step in steps if step.way[family].ages[later] == at)))
    state, family, at = trail[-1]
    number = walk.names.index(name)
    for step in _steps(walk, state):
        if any((ended.task, ended.age) == (number, at) for ended in step.way[family].ended):
            return [*path, (state, step)]
    raise ValueError(f"no job of {name} ends at the end of its way")


def _steps(walk: StateWalk, state: WalkState) -> Iterator[WalkStep]:
    sizes = (len(family.rows(local)) * family.width for family, local in zip(walk.families, state, strict=True))
    return walk.steps(state, tuple((0,) * size for size in sizes))


class _ChosenActivation:
    """What has been chosen for the jobs of an activation, by task; the rest is as long as it may be."""

    def __init__(self, tasks: Sequence[GpuTask], arrival: int) -> None:
        self.arrival = arrival
        self.releases = [task.jitter for task in tasks]
        self.times = [[segment.wcet for segment in task.segments] for task in tasks]
        self.delays = [[segment.delay for segment in task.segments] for task in tasks]


def _jobs(walk: StateWalk, tasks: Sequence[GpuTask], path: Sequence[tuple[WalkState, WalkStep]]) -> tuple[JobPlan, ...]:
    """Return the jobs of a scenario that goes this way."""
    jobs: list[JobPlan] = []
    for number, family in enumerate(walk.families):
        mine = [tasks[course.number] for course in family.courses]
        found: list[_ChosenActivation] = []
        pending: list[_ChosenActivation] = []
        for now, (state, step) in enumerate(path):
            local, is_new = step.come[number]
            if is_new:
                found.append(_ChosenActivation(mine, now))
                pending.append(found[-1])
            _come(family.rows(state[number]), family.rows(local), pending)
            served, ticked = family.rows(step.served[number]), step.way[number]
            for row, slot in ticked.ends:
                pending[row].times[slot][served[row][slot].segment] = served[row][slot].time + 1
            pending = [pending[at // family.width] for at in ticked.ages[:: family.width] if at is not None]
        for slot, task in enumerate(mine):
            for count, one in enumerate(found):
                arrival = 0 if slot else one.arrival
                times, delays = tuple(one.times[slot]), tuple(one.delays[slot])
                jobs.append(JobPlan(task.name, count, arrival, arrival + one.releases[slot], times, delays))
    return tuple(jobs)


def _come(before: PendingJobs, after: PendingJobs, pending: Sequence[_ChosenActivation]) -> None:
    """Read off releases and launches at an instant."""
    for row, (one, jobs) in enumerate(zip(pending, after, strict=True)):
        for slot, job in enumerate(jobs):
            old = before[row][slot] if row < len(before) else _NEW
            if job.stage <= Stage.ARRIVED:
                continue
            if old.stage is Stage.ARRIVED:
                one.releases[slot] = old.time
            if job.stage is Stage.READY and old.stage is not Stage.READY:
                one.delays[slot][job.segment] = old.time if old.stage is Stage.LAUNCHED else 0
