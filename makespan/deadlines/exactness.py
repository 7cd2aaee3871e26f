"""Verdicts made sharper by walks through all schedules on ever finer grids, and late jobs that the walks find.

A walk only says how long a job takes. Its way is turned into a scenario, and the simulation must confirm it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import count, islice, pairwise, permutations
from math import ceil, gcd

from makespan.deadlines.chains import chain_latencies, independent_parts
from makespan.deadlines.evidence import attainable
from makespan.deadlines.exploration import (
    MOST_STATES,
    AgedJob,
    StateWalk,
    TooManyStatesError,
    WalkResult,
    WalkState,
    WalkStep,
    obstacle,
    walk_part,
)
from makespan.deadlines.family_states import GridJob, PendingJobs, Stage
from makespan.deadlines.simulation import JobPlan, Scenario, SimulatedRun, simulate
from makespan.deadlines.task import ChainStart, GpuTask, JobSegment, SegmentKind, TaskSet
from makespan.deadlines.verdict import ChainVerdict, DeadlineAnswer, Miss, TaskSetVerdict, TaskVerdict
from makespan.host.errors import BrokenPromiseError
from makespan.model.units import shown_time

_ORDERS = 120
_NEW = GridJob(Stage.ARRIVED)


def late_job(task_set: TaskSet, name: str, most_states: int, *, grid: int = 1) -> Miss | None:
    """Return a late job of the task in a simulated schedule that a walk in steps of `grid` ticks has found.

    Execution times are those that jobs can take: what is shown is no shorter, either. None where no job is late with
    these, or where equals go in an order that no scenario has.

    Raises:
        TooManyStatesError: there are too many.
    """
    stepped, system = attainable(in_steps(task_set, grid), name), attainable(task_set, name)
    if stepped is None or system is None or any(task.offset is not None for task in stepped.tasks):
        return None
    # the simulation judges in unrounded times
    for run in longest_runs(system, name, most_states, stepped=stepped, grid=grid):
        late = next((job for job in run.late if job.task == name), None)
        if late is not None:
            supposes = tuple(task.name for task in stepped.tasks if task.is_vouched_for)
            return Miss(name, late.arrival, late.completion, run.scenario.words, supposes)
    return None


def in_steps(task_set: TaskSet, grid: int) -> TaskSet:
    """Return the schedules in which all events are whole steps of `grid` ticks apart; a step is a tick of the result.

    A segment that may take any time up to a limit takes whole steps, if it is not too short for one. What is shown to
    take a time takes that, so it must be whole steps. Of others no time is known that they take here.
    """

    def segment_of(segment: JobSegment) -> JobSegment:
        steps, rest = divmod(segment.known, grid)
        is_unknown = not steps or (segment.attained is not None and rest)  # a shown time must be whole steps
        attained = 0 if is_unknown else None if segment.attained is None else steps
        wcet = max(1, segment.wcet // grid)  # limits down and periods up, so that every schedule is a legal one
        return replace(segment, wcet=wcet, attained=attained, delay=segment.delay // grid)

    def task_of(task: GpuTask) -> GpuTask:
        period, deadline, jitter = -(-task.period // grid), max(1, task.deadline // grid), task.jitter // grid
        segments = tuple(map(segment_of, task.segments))
        return replace(task, segments=segments, period=period, deadline=deadline, jitter=jitter)

    return replace(task_set, tasks=tuple(map(task_of, task_set.tasks)), unit=1)


def longest_runs(
    task_set: TaskSet, name: str, most_states: int, *, stepped: TaskSet | None = None, grid: int = 1
) -> Iterator[SimulatedRun]:
    """Yield schedules on the way of a job that takes longest, with equals in one order after another.

    What is shown of a segment is what it takes; of the others, jobs that have not ended by then run for as long as they
    may.

    Args:
        stepped: The task set to walk through instead, in ticks that are `grid` times as long; it may lack tasks.

    Raises:
        TooManyStatesError: there are too many.
    """
    walked = task_set if stepped is None else stepped
    tasks = next(tasks for tasks in independent_parts(walked) if name in [task.name for task in tasks])
    walk = StateWalk(walked, tasks, 1, is_short=lambda segment: segment.attained is None, is_traced=True)
    walk.run(most_states)
    jobs = tuple(_longer(job, grid) for job in _jobs(walk, tasks, _path(walk, name)))
    for order in islice(permutations(task_set.by_name), _ORDERS):  # the walk does not say who goes first among equals
        yield simulate(Scenario(task_set, jobs, order, f"the longest response of {name} in all schedules"))


def _longer(job: JobPlan, grid: int) -> JobPlan:
    times, delays = ([grid * ticks for ticks in row] for row in (job.times, job.delays))
    return JobPlan(job.task, job.number, grid * job.arrival, grid * job.release, tuple(times), tuple(delays))


def _path(walk: StateWalk, name: str) -> list[tuple[WalkState, WalkStep]]:
    """Return the steps to the end of the job of a task that takes longest, each with the state before it."""
    trail: list[AgedJob] = []
    mark: AgedJob | None = walk.last[name]
    # back to the arrival: no job is older than its response
    while mark is not None and len(trail) <= walk.response[name]:
        trail.append(mark)
        mark = walk.before.get(mark)
    way = [trail[-1][0]]
    while way[-1] in walk.first:
        way.append(walk.first[way[-1]])
    way.reverse()  # from the first state of the walk to that arrival
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
    """The choices for the jobs of an activation, by task; the rest is as long as it may be."""

    def __init__(self, tasks: Sequence[GpuTask], arrival: int) -> None:
        self.arrival = arrival
        self.releases = [task.jitter for task in tasks]
        self.times = [[segment.wcet for segment in task.segments] for task in tasks]
        self.delays = [[segment.delay for segment in task.segments] for task in tasks]


def _jobs(walk: StateWalk, tasks: Sequence[GpuTask], path: Sequence[tuple[WalkState, WalkStep]]) -> tuple[JobPlan, ...]:
    """Return the jobs of a scenario that goes this way."""
    jobs: list[JobPlan] = []
    for number, family in enumerate(walk.families):
        mine = [tasks[grid_task.number] for grid_task in family.grid_tasks]
        found: list[_ChosenActivation] = []
        pending: list[_ChosenActivation] = []
        for now, (state, step) in enumerate(path):
            local, is_new = step.come[number]
            if is_new:
                found.append(_ChosenActivation(mine, now))  # an activation arrives in this step
                pending.append(found[-1])
            _come(family.rows(state[number]), family.rows(local), pending)
            served, ticked = family.rows(step.served[number]), step.way[number]
            for row, slot in ticked.ends:
                pending[row].times[slot][served[row][slot].segment] = served[row][slot].time + 1
            pending = [pending[at // family.width] for at in ticked.ages[:: family.width] if at is not None]
        for slot, task in enumerate(mine):
            for number_of_job, one in enumerate(found):
                arrival = 0 if slot else one.arrival
                times, delays = tuple(one.times[slot]), tuple(one.delays[slot])
                jobs.append(JobPlan(task.name, number_of_job, arrival, arrival + one.releases[slot], times, delays))
    return tuple(jobs)


def _come(before: PendingJobs, after: PendingJobs, pending: Sequence[_ChosenActivation]) -> None:
    """Copy the releases and launches of an instant to the pending activations."""
    for row, (one, jobs) in enumerate(zip(pending, after, strict=True)):
        for slot, job in enumerate(jobs):
            old = before[row][slot] if row < len(before) else _NEW
            if job.stage <= Stage.ARRIVED:
                continue
            if old.stage is Stage.ARRIVED:
                one.releases[slot] = old.time
            if job.stage is Stage.READY and old.stage is not Stage.READY:
                one.delays[slot][job.segment] = old.time if old.stage is Stage.LAUNCHED else 0


_COARSEST = 8
"""Steps of the shortest period on the first grid; each following one has twice as many."""

_NOT_BY_TICKS = 2
"""The ticks of the finest grid between whose lines events may lie; in a walk by ticks none does."""


def sharpen_verdict(
    verdict: TaskSetVerdict,
    *,
    tick: Fraction,
    step: Fraction | None = None,
    most_states: int = MOST_STATES,
    progress: Callable[[str], None] = lambda _: None,
) -> Iterator[TaskSetVerdict]:
    """Yield the verdict with the results of walks: bounds on grids, then schedules with late tasks.

    Tasks that share nothing are walked through by themselves. A walk on a grid bounds responses in continuous time; it
    is exact where a schedule with all its events on that grid takes as long. In a task set in which everything happens
    at whole ticks the last grid is one tick, and the walk is exact, too. With an offset of some task nothing is said to
    be exact. A task that remains without a proof is refuted by a simulated schedule, if the walks lead to one.

    Args:
        tick: The seconds of a tick.
        step: The seconds of the last grid where events may lie between ticks; None means what divides all times.
        most_states: The most states of a walk; finer grids have more, and none is tried after one that has too many.

    Raises:
        BrokenPromiseError: a walk contradicts the verdict.
    """
    task_set = verdict.tasks_analysed
    for tasks in independent_parts(task_set):
        names = ", ".join(task.name for task in tasks)
        said = None
        last = _shortest_step(task_set, tasks, None if step is None else ceil(step / tick))
        # where all happens at whole ticks, the last grid is a tick
        by_ticks = [1] if task_set.unit == 1 and last > 1 else []
        tried = [grid for grid in (*grids(tasks, last), *by_ticks) if not _is_overfull(tasks, grid)]
        if not tried:
            step_text = _step_text(last, tick)
            said = f"steps of {step_text} are too long: rounded to them, tasks take more than there is: {names}"
        for grid in tried:
            if (reason := obstacle(task_set, tasks, grid=grid)) is not None:
                said = reason
                continue
            progress(f"all schedules of {names}, in steps of {_step_text(grid, tick)}")
            found = walk_part(task_set, tasks, grid=grid, most_states=most_states)
            if not found.response:  # finer grids have more states still
                more = f"more than {most_states} states in steps of {_step_text(grid, tick)}: {names}"
                said = f"{said}; {more}" if said else more
                break
            said = f"all schedules in steps of {_step_text(grid, tick)}, {found.states} states: {names}"
            verdict = _merge_walk(verdict, tasks, found, grid, tick)
            yield verdict
            if grid == last and (attained := _attained_responses(task_set, tasks, grid, most_states)):
                verdict = replace(verdict, tasks=tuple(_mark_exact(task, attained) for task in verdict.tasks))
                yield verdict
        if said is not None:
            verdict = replace(verdict, notes=(*verdict.notes, said))
            yield verdict
        if tried and obstacle(task_set, tasks) is None:
            # only a miss can answer these
            unproven = {task.task for task in verdict.tasks if task.answer is DeadlineAnswer.UNKNOWN}
            for name in (task.name for task in tasks if task.name in unproven):
                progress(f"a schedule in which {name} is late")
                try:
                    miss = late_job(task_set, name, most_states, grid=tried[-1])
                except TooManyStatesError:
                    break
                if miss is not None:
                    verdict = verdict.with_miss(miss)
                    yield verdict


def _attained_responses(task_set: TaskSet, tasks: Sequence[GpuTask], grid: int, most_states: int) -> Mapping[str, int]:
    """Return the longest responses with all events on a grid, in ticks; none if a time is no whole step."""
    if task_set.unit == 1 or _common_divisor(tasks) % grid or any(task.offset is not None for task in tasks):
        return {}
    stepped = in_steps(task_set, grid)
    found = walk_part(stepped, [stepped.by_name[task.name] for task in tasks], most_states=most_states)
    return {name: grid * steps for name, steps in found.response.items()}


def _mark_exact(known: TaskVerdict, attained: Mapping[str, int]) -> TaskVerdict:
    return replace(known, is_exact=known.is_exact or known.response == attained.get(known.task, 0))


def _shortest_step(task_set: TaskSet, tasks: Sequence[GpuTask], asked: int | None) -> int:
    """Return the ticks of the shortest step between which events may lie."""
    return _common_divisor(tasks) if asked is None or task_set.unit == 1 else max(_NOT_BY_TICKS, asked)


def _common_divisor(tasks: Sequence[GpuTask]) -> int:
    times = [time for task in tasks for s in task.segments for time in (s.wcet, s.delay)]
    return gcd(*times, *(time for task in tasks for time in (task.period, task.deadline, task.jitter)))


def grids(tasks: Sequence[GpuTask], last: int) -> Iterator[int]:
    """Yield the ticks of steps, ever fewer, down to `last`.

    >>> from makespan.deadlines.task import one_kernel
    >>> list(grids([one_kernel("t", 6, 100, 100)], 2))
    [12, 6, 3, 2]
    """
    least = min(task.period for task in tasks)
    for halvings in count():
        grid = least // (_COARSEST << halvings)
        if grid <= last:
            break
        yield grid
    yield last


def _step_text(grid: int, tick: Fraction) -> str:
    return "a tick" if grid == 1 else shown_time(grid * tick)


def _is_overfull(tasks: Sequence[GpuTask], grid: int) -> bool:
    """Return whether rounded times overload some resource: then jobs pile up, and nothing is learned."""
    if any(task.period < grid for task in tasks):
        return True
    demanded: dict[object, Fraction] = {}
    for task in tasks:
        for segment in task.segments:
            resource = task.core if segment.kind is SegmentKind.CPU else (segment.kind, segment.resource)
            share = Fraction(-(-segment.wcet // grid), task.period // grid)  # rounded as in the walk
            demanded[resource] = demanded.get(resource, Fraction(0)) + share
    return max(demanded.values()) > 1


def _merge_walk(
    verdict: TaskSetVerdict, tasks: Sequence[GpuTask], found: WalkResult, grid: int, tick: Fraction
) -> TaskSetVerdict:
    is_exact = grid == 1 and all(task.offset is None for task in tasks)  # in a task set of whole ticks alone
    how = f"exploration of {found.states} states"
    how += ", exact" if is_exact else f" in steps of {_step_text(grid, tick)}"
    changed = [
        _task(task, verdict, found, how, is_exact=is_exact) if task.task in found.response else task
        for task in verdict.tasks
    ]
    verdict = replace(verdict, tasks=tuple(changed))
    return replace(verdict, chains=tuple(_chain(chain, verdict, found) for chain in verdict.chains))


def _task(known: TaskVerdict, verdict: TaskSetVerdict, found: WalkResult, how: str, *, is_exact: bool) -> TaskVerdict:
    ticks = found.response[known.task]
    deadline = verdict.tasks_analysed.by_name[known.task].deadline
    # two proofs that contradict each other
    if known.miss is not None and known.miss.completion - known.miss.arrival > ticks:
        raise BrokenPromiseError(f"{known.task} takes longer in a schedule than the {ticks} ticks of all: report it")
    if known.response is not None:
        if (is_exact and ticks > known.response) or (known.is_exact and ticks < known.response):
            was = "exact response" if known.is_exact else "bound"
            raise BrokenPromiseError(
                f"{known.task} may take {ticks} ticks, and the {was} was {known.response}: trust neither, and report it"
            )
        if not is_exact and ticks >= known.response:  # a bound that is no better says nothing
            return known
    answer = DeadlineAnswer.YES if ticks <= deadline else DeadlineAnswer.UNKNOWN
    return replace(
        known,
        response=ticks,
        answer=known.answer if known.answer is DeadlineAnswer.NO else answer,
        parts=known.parts if ticks == known.response else (("in all schedules", ticks),),
        is_exact=is_exact,
        method=how,
    )


def _chain(known: ChainVerdict, verdict: TaskSetVerdict, found: WalkResult) -> ChainVerdict:
    """Return the chain with the best that is known of its tasks."""
    task_set = verdict.tasks_analysed
    chain = next(chain for chain in task_set.chains if chain.name == known.chain)
    tasks = [task_set.by_name[name] for name in chain.tasks]
    responses = {task.task: task.response for task in verdict.tasks}
    totals = [responses[name] for name in chain.tasks]
    reaction, age = chain_latencies(chain.activation, tasks, totals, found.end.get(chain.tasks[-1]))
    method = f"exploration of {found.states} states" if chain.activation is ChainStart.DATA else known.method
    if reaction is None or (known.reaction is not None and reaction >= known.reaction):
        return known
    is_met = chain.deadline is None or reaction <= chain.deadline
    answer = DeadlineAnswer.YES if is_met else DeadlineAnswer.UNKNOWN
    return replace(known, reaction=reaction, age=age, answer=answer, method=method)
