"""The longest responses of a small task set, from a walk through every state that a legal schedule can reach.

Nothing here is shared with the analyses but the values of `task.py` and the reading of chains: it is their oracle.

A step is a tick, or covers several, which makes a *grid*. In that case all times are rounded to it, execution times,
jitter and delays up and periods down, and a step has a length of 0 or 1: each tick of a legal schedule is one of the
walk, which is long if the next line of the grid has been passed. Rounding keeps every `at least` and `at most` of a
time between two instants, and the order of steps is that of the schedule; so each response of the schedule is at most
that of the walk. Only what is preempted runs in several pieces: each may seem a step longer than it is, where what was
there in between seems shorter than that may take.

Source: Henzinger, Manna and Pnueli, What good are digital clocks?, ICALP 1992, for rounding.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, product
from operator import ge, le
from typing import NamedTuple

from makespan.deadlines.chains import heads, independent_parts, predecessors
from makespan.deadlines.family_states import (
    EndedJob,
    FamilyStep,
    GridSegment,
    GridTask,
    Position,
    ResourceKey,
    TaskFamily,
)
from makespan.deadlines.task import GpuTask, JobSegment, SegmentKind, ServerPolicy, TaskSet
from makespan.host.errors import InputError, UnsupportedError

MOST_STATES = 100_000
_STEPS = 10
"""The average number of steps from a state, at most."""

WalkState = tuple[int, ...]
"""The number of the state of each family."""

JobAges = tuple[tuple[int, ...], ...]
"""The ages, by family and pending activation, of its event and, for each further task, of the job, from its arrival."""


@dataclass(frozen=True, slots=True)
class WalkResult:
    """The result of a walk in ticks; tasks are missing whose states were too many.

    Args:
        response: The longest time from the arrival of a job until its end.
        end: The same from the event at the head of its family.
        states: How many states it has looked at, also again because a job in one could be older.
    """

    response: Mapping[str, int]
    end: Mapping[str, int]
    states: int


class TooManyStatesError(Exception):
    """A walk has reached its limit."""


class WalkStep(NamedTuple):
    """A step of a walk.

    Args:
        come: What each family is after arrivals, releases and launches, and whether something has arrived.
        served: The state when servers have chosen.
        way: How each family goes on from there.
    """

    reached: WalkState
    ages: JobAges
    come: tuple[tuple[int, bool], ...]
    served: WalkState
    way: tuple[FamilyStep, ...]


AgedJob = tuple[WalkState, int, int]
"""A job in a state: the state, the family, and the index of the job's age."""


Shortness = Callable[[JobSegment], bool]
"""A test whether a segment may take less than its limit; if not, it always takes as long."""


def explore(
    task_set: TaskSet, *, grid: int = 1, most_states: int = MOST_STATES, is_short: Shortness = lambda _: True
) -> WalkResult:
    """Return the longest responses over all legal schedules; on a grid of several ticks, multiples that bound them.

    Parts that share no core, server or data are walked through one by one.

    Args:
        grid: The ticks of a step.
        most_states: The most states to look at, for each part; it also bounds the steps from them.
        is_short: Which segments may take less than their limits. By default all may, as the model says; with fewer the
            walk is quicker, and its result may be less.

    Raises:
        InputError: a kernel without a partition, or chains by data that contradict themselves.
        UnsupportedError: a partition that is time-sliced; several ticks in a step, and tasks of the same core with the
            same priority.

    >>> from makespan.deadlines.task import GpuPartition, ServerPolicy, TaskSet, one_kernel
    >>> a = one_kernel("a", 2, 5, 5, priority=2, partition="SM0")
    >>> b = one_kernel("b", 4, 10, 10, priority=1, partition="SM0")
    >>> explore(TaskSet((a, b), (GpuPartition("SM0", ServerPolicy.FIXED_PRIORITY),))).response
    {'a': 5, 'b': 6}
    """
    found = [
        walk_part(task_set, tasks, grid=grid, most_states=most_states, is_short=is_short)
        for tasks in independent_parts(task_set)
    ]
    by_task = {name: one for one in found for name in one.response}
    known = [name for name in task_set.by_name if name in by_task]  # in the order of the task set
    response = {name: by_task[name].response[name] for name in known}
    end = {name: by_task[name].end[name] for name in known}
    return WalkResult(response, end, sum(one.states for one in found))


def walk_part(
    task_set: TaskSet,
    tasks: Sequence[GpuTask],
    *,
    grid: int = 1,
    most_states: int = MOST_STATES,
    is_short: Shortness = lambda _: True,
) -> WalkResult:
    """Return the same for one part, without a number if it has too many states.

    Raises:
        InputError: as `explore`.
    """
    if (reason := obstacle(task_set, tasks, grid=grid)) is not None:
        raise UnsupportedError(reason)
    walk = StateWalk(task_set, tasks, grid, is_short=is_short)
    try:
        walk.run(most_states)
    except TooManyStatesError:
        return WalkResult({}, {}, walk.looks)
    return WalkResult(
        {name: ticks * grid for name, ticks in walk.response.items()},
        {name: ticks * grid for name, ticks in walk.end.items()},
        walk.looks,
    )


def obstacle(task_set: TaskSet, tasks: Sequence[GpuTask], *, grid: int = 1) -> str | None:
    """Return the reason why no walk covers these tasks; None if one does."""
    for partition in task_set.partitions:
        if partition.slices is not None and any(task.on(partition.name) for task in tasks):
            return f"partition {partition.name} is time-sliced: its schedules are not explored"
    for task, other in combinations(tasks, 2):
        # theorem 12
        if grid > 1 and task.core is not None and (task.core, task.priority) == (other.core, other.priority):
            return (
                f"tasks {task.name} and {other.name} of core {task.core} have the same priority: no walk bounds what"
                " may happen between its steps"
            )
    return None


class StateWalk:
    """A walk through all states of a part, which keeps the greatest age of each job in each state.

    No choice looks at an age, so that the longest way to each state is all that counts. A state is looked at again when
    a job in it turns out to have a greater age.

    Args:
        is_traced: Whether to keep how jobs in states got their ages, and from which states others were met first.
    """

    def __init__(
        self,
        task_set: TaskSet,
        tasks: Sequence[GpuTask],
        grid: int,
        *,
        is_short: Shortness = lambda _: True,
        is_traced: bool = False,
    ) -> None:
        self.names = [task.name for task in tasks]
        self.families = list(_families(task_set, tasks, grid, is_short))
        self.response = dict.fromkeys(self.names, 0)
        self.end = dict.fromkeys(self.names, 0)
        self.grid, self.lengths = grid, (1,) if grid == 1 else (0, 1)  # on a grid events of one step have an order
        start = tuple(family.start for family in self.families)
        self.looks = 0
        self.is_traced = is_traced
        self.before: dict[AgedJob, AgedJob | None] = {}
        self.first: dict[WalkState, WalkState] = {}
        self.last: dict[str, AgedJob] = {}
        self.ages: dict[WalkState, JobAges] = {start: ((),) * len(start)}
        grid_tasks = [grid_task for family in self.families for grid_task in family.grid_tasks]
        self.policies = {part.policy for grid_task in grid_tasks for part in grid_task.parts}
        self.least: dict[ServerPolicy, int] = {}
        if not any(
            grid_task.doubt for grid_task in grid_tasks
        ):  # deadlines below these are before those of every later job
            self.least[ServerPolicy.EDF] = min(grid_task.due for grid_task in grid_tasks)
            self.least[ServerPolicy.EDF_RELEASE] = min(grid_task.released for grid_task in grid_tasks)

    def run(self, most_states: int) -> None:
        """Walk until nothing new is met.

        A state is left out if another one differs from it only by jobs that are as old or older, and by families that
        may come as early or earlier: all that can follow from it, follows from that as well.
        """
        if self.least_states() > most_states:  # hopeless: do not begin
            raise TooManyStatesError
        todo = deque(self.ages)
        waiting = set(todo)
        steps = 0
        alike: dict[WalkState, dict[WalkState, tuple[int, ...]]] = {}
        while todo:
            state = todo.popleft()
            waiting.remove(state)
            if state not in self.ages:  # another state has made it needless meanwhile
                continue
            self.looks += 1
            for step in self.steps(state, self.ages[state]):
                reached, ages = step.reached, step.ages
                steps += 1
                # counts, not seconds: the same on every machine
                if max(self.looks, len(self.ages), steps // _STEPS) > most_states:
                    raise TooManyStatesError
                known = self.ages.get(reached)
                if known is not None:
                    ages = tuple(tuple(map(max, one, other)) for one, other in zip(known, ages, strict=True))
                if ages == known:
                    continue
                rows, timers = zip(
                    *(f.split(local) for f, local in zip(self.families, reached, strict=True)), strict=True
                )
                others = alike.setdefault(rows, {})
                reach = (*timers, *chain(*ages))
                if any(all(map(ge, other, reach)) for other in others.values()):  # lemma 4
                    continue
                for other in [other for other, less in others.items() if all(map(le, less, reach))]:
                    del others[other], self.ages[other]
                if self.is_traced:
                    self._trace(state, step, ages, known)
                others[reached] = reach
                self.ages[reached] = ages
                if reached not in waiting:
                    waiting.add(reached)
                    todo.append(reached)

    def least_states(self) -> int:
        """Return a least number of states: a job that is alone has one after each step of its segments."""
        grid_tasks = [grid_task for family in self.families for grid_task in family.grid_tasks]
        return max(sum(part.wcet - 1 for part in grid_task.parts) for grid_task in grid_tasks)

    def _trace(self, state: WalkState, step: WalkStep, ages: JobAges, known: JobAges | None) -> None:
        self.first.setdefault(step.reached, state)
        for family, (mine, ticked) in enumerate(zip(ages, step.way, strict=True)):
            for at, (age, source) in enumerate(zip(mine, ticked.ages, strict=True)):
                if known is None or age > known[family][at]:
                    here = len(self.families[family].rows(state[family])) * self.families[family].width
                    is_new = source is None or source >= here  # it began in this step, so its way begins here
                    self.before[step.reached, family, at] = (
                        None if is_new or source is None else (state, family, source)
                    )

    def steps(self, state: WalkState, ages: JobAges) -> Iterator[WalkStep]:
        """Yield all steps that can happen next."""
        families = self.families
        for come in product(*(family.comings(local) for family, local in zip(families, state, strict=True))):
            old = [
                (*mine, *[0] * family.width) if is_new else mine  # a new activation has age 0
                for family, mine, (_, is_new) in zip(families, ages, come, strict=True)
            ]
            for served in self._served(tuple(local for local, _ in come)):
                for on_core in self._computing(served):
                    for length in self.lengths:
                        for way, aged in self._ticked(state, served, on_core, length, old):
                            yield WalkStep(self._plain(self._slowed(way)), aged, come, served, way)

    def _served(self, state: WalkState) -> Iterator[WalkState]:
        """Yield the states after every free server has taken one of the most urgent that wait for it."""
        views = [family.view(local) for family, local in zip(self.families, state, strict=True)]
        offers: dict[ResourceKey, list[tuple[int, int, int, Position]]] = {}
        for number, view in enumerate(views):
            for resource, key, doubt, position in view.waiting:
                offers.setdefault(resource, []).append((key, doubt, number, position))
        for view in views:
            for resource in view.busy:
                offers.pop(resource, None)  # a busy server chooses nothing
        if not offers:
            yield state
            return
        for chosen in product(*map(_most_urgent, offers.values())):  # ties in every order
            yield tuple(
                family.served(local, tuple(sorted(position for of, position in chosen if of == number)))
                for number, (family, local) in enumerate(zip(self.families, state, strict=True))
            )

    def _computing(self, state: WalkState) -> Iterator[tuple[tuple[Position, ...], ...]]:
        offers: dict[ResourceKey, list[tuple[int, int, Position]]] = {}
        for number, (family, local) in enumerate(zip(self.families, state, strict=True)):
            for core, rank, position in family.view(local).computing:
                offers.setdefault(core, []).append((rank, number, position))
        ways = []
        for offered in offers.values():
            most = max(rank for rank, _, _ in offered)
            # ties in every order
            ways.append([(number, position) for rank, number, position in offered if rank == most])
        for chosen in product(*ways):
            yield tuple(
                tuple(sorted(position for of, position in chosen if of == number))
                for number in range(len(self.families))
            )

    def _ticked(
        self,
        state: WalkState,
        served: WalkState,
        on_core: tuple[tuple[Position, ...], ...],
        length: int,
        old: Sequence[tuple[int, ...]],
    ) -> Iterator[tuple[tuple[FamilyStep, ...], JobAges]]:
        ways = [
            family.ticked(local, mine, length)
            for family, local, mine in zip(self.families, served, on_core, strict=True)
        ]
        for way in product(*ways):
            for family, (mine, ticked) in enumerate(zip(old, way, strict=True)):
                for ended in ticked.ended:
                    self._record(ended, mine, length, (state, family, ended.age))
            ages = tuple(
                tuple(0 if at is None else mine[at] + length for at in ticked.ages)
                for mine, ticked in zip(old, way, strict=True)
            )
            yield way, ages

    def _slowed(self, way: Sequence[FamilyStep]) -> WalkState:
        """Return the state with one step more for what was preempted by a segment that ended early."""
        reached = tuple(ticked.local for ticked in way)
        # theorem 12 allows one step for each such gap
        for core, rank in {short for ticked in way for short in ticked.short}:
            reached = tuple(
                family.slowed(local, core, rank) for family, local in zip(self.families, reached, strict=True)
            )
        return reached

    def _record(self, ended: EndedJob, ages: tuple[int, ...], length: int, mark: AgedJob) -> None:
        name = self.names[ended.task]
        if ages[ended.age] + length > self.response[name]:
            self.last[name] = mark
        self.response[name] = max(self.response[name], ages[ended.age] + length)
        self.end[name] = max(self.end[name], ages[ended.since] + length)

    def _plain(self, state: WalkState) -> WalkState:
        """Return the state with the least numbers in the order of those that are only compared.

        The order counts among jobs that wait for a FIFO server, and among deadlines that no later job can come before.
        """
        if self.policies <= {None, ServerPolicy.FIXED_PRIORITY}:  # nothing there compares times
            return state
        marks = [family.marks(local) for family, local in zip(self.families, state, strict=True)]
        values: dict[str | ResourceKey, set[int]] = {}
        for kind, value in (mark for found in marks for mark in found):
            # a deadline that no later job can precede
            if not isinstance(kind, ServerPolicy) or value < self.least.get(kind, value):
                values.setdefault(kind, set()).add(value)
        new: dict[tuple[str | ResourceKey, int], int] = {}
        for kind, found in values.items():
            # the largest numbers that keep the order
            start = self.least[kind] - len(found) if isinstance(kind, ServerPolicy) else 1
            new |= {(kind, value): start + at for at, value in enumerate(sorted(found))}
        changed = {mark: value for mark, value in new.items() if mark[1] != value}
        if not changed:
            return state
        return tuple(
            family.marked(local, tuple((mark, changed[mark]) for mark in dict.fromkeys(mine) if mark in changed))
            for family, local, mine in zip(self.families, state, marks, strict=True)
        )


def _most_urgent(offers: Sequence[tuple[int, int, int, Position]]) -> list[tuple[int, Position]]:
    # deadlines rounded up against ones rounded down: theorem 12
    least = min(key + doubt for key, doubt, _, _ in offers)
    return [(number, position) for key, _, number, position in offers if key <= least]


def _families(task_set: TaskSet, tasks: Sequence[GpuTask], grid: int, is_short: Shortness) -> Iterator[TaskFamily]:
    starts = predecessors(task_set)
    first = heads(starts)
    numbers = {task.name: number for number, task in enumerate(tasks)}
    policies = {(SegmentKind.KERNEL, partition.name): partition.policy for partition in task_set.partitions}
    policies |= {(SegmentKind.COPY, engine.name): engine.policy for engine in task_set.engines}
    for head in tasks:
        if head.name in first:
            continue
        names = [head.name, *(name for name in first if first[name] == head.name)]
        grid_tasks = []
        for name in names:
            task = task_set.by_name[name]
            sources = tuple(names.index(source) for source in starts.get(name, ()))
            grid_tasks.append(_grid_task(task, grid, numbers[name], sources, policies, is_short))  # limits rounded up
        # periods are rounded down, so that jobs come more often
        yield TaskFamily(grid_tasks, head.period // grid, is_exact=grid == 1)


def _grid_task(
    task: GpuTask,
    grid: int,
    number: int,
    sources: tuple[int, ...],
    policies: Mapping[tuple[SegmentKind, str], ServerPolicy],
    is_short: Shortness,
) -> GridTask:
    def part(segment: JobSegment) -> GridSegment:
        if segment.kind is SegmentKind.CPU:
            return GridSegment((SegmentKind.CPU, task.core or ""), None, -(-segment.wcet // grid), 0, is_short(segment))
        if segment.resource is None:
            raise InputError(f"task {task.name} has no partition: assign it, then explore")
        resource = (segment.kind, segment.resource)
        return GridSegment(
            resource, policies[resource], -(-segment.wcet // grid), -(-segment.delay // grid), is_short(segment)
        )

    return GridTask(
        number,
        sources,
        task.priority or 0,
        -(-task.jitter // grid),
        task.deadline // grid,
        (task.deadline - task.jitter) // grid,
        int(bool(task.deadline % grid or task.jitter % grid)),
        tuple(map(part, task.segments)),
        (SegmentKind.CPU, task.core) if task.spins and task.core is not None else None,
    )
