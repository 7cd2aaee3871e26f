"""The states of one family of tasks in a walk through all schedules, and what its jobs can do in each of them.

A family is a task that arrives by itself with all tasks that its data starts. What its jobs can do in a step depends on
others only through who is chosen where, so it is computed once for each of its states; a state has a number.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from itertools import chain, combinations
from typing import NamedTuple

from makespan.deadlines.task import SegmentKind, ServerPolicy

ResourceKey = tuple[SegmentKind, str]
"""A core, copy engine or partition."""

Position = tuple[int, int]
"""The index of a pending activation, the earliest first, and of a task of the family."""


class Stage(IntEnum):
    """A stage of a job on its way; the last four are those of its current segment."""

    AWAITED = 0
    ENDED = 1
    ARRIVED = 2
    LAUNCHED = 3
    READY = 4
    SERVED = 5


class GridJob(NamedTuple):
    """A job; all times in steps of the grid.

    Args:
        time: Since when it is in its stage or, for CPU time, how long it has run; it is kept where a limit asks for it.
        turn: Of two that wait for the same FIFO server, the one with the larger number has come before.
        due: The time until its deadline, as far as an EDF server will ask for it.
        released: The same, as far as a server will ask for it that sees only releases.
        is_late: Whether it must be given a step more than its time: see `exploration`.
    """

    stage: Stage
    segment: int = 0
    time: int = 0
    turn: int = 0
    due: int = 0
    released: int = 0
    is_late: bool = False


AWAITED, ENDED = GridJob(Stage.AWAITED), GridJob(Stage.ENDED)

PendingJobs = tuple[tuple[GridJob, ...], ...]
"""The job of every task of each pending activation, the earliest first."""


class FamilyState(NamedTuple):
    """The state of a family: `timer` counts from the last arrival, up to the period."""

    timer: int
    rows: PendingJobs


@dataclass(frozen=True, slots=True)
class GridSegment:
    """A segment; `policy` is None on a core, and `is_short` says whether it may take less than `wcet`."""

    resource: ResourceKey
    policy: ServerPolicy | None
    wcet: int
    delay: int
    is_short: bool


@dataclass(frozen=True, slots=True)
class GridTask:
    """A task on the grid.

    Args:
        number: Its number among all tasks.
        sources: The tasks of the family whose ends it waits for.
        due: The time from its arrival until its deadline, rounded down.
        released: The same from its release, if it came as late as it may.
        doubt: How much `due` and `released` are rounded down, at most.
        core: The core on which it spins; None if it does not.
    """

    number: int
    sources: tuple[int, ...]
    rank: int
    jitter: int
    due: int
    released: int
    doubt: int
    parts: tuple[GridSegment, ...]
    core: ResourceKey | None

    def asks(self, policy: ServerPolicy, job: GridJob) -> bool:
        """Return whether a server with this policy will still consider the job."""
        if job.stage <= Stage.ENDED:
            return False
        begin = job.segment + (job.stage is Stage.SERVED)
        return any(part.policy is policy for part in self.parts[begin:])


class FamilyView(NamedTuple):
    """The part of a family that others see: busy servers, offers to servers, the least first, and to cores."""

    busy: tuple[ResourceKey, ...]
    waiting: tuple[tuple[ResourceKey, int, int, Position], ...]
    computing: tuple[tuple[ResourceKey, int, Position], ...]


class EndedJob(NamedTuple):
    """A job that has ended: its task, and the indices of the ages of its event and of itself."""

    task: int
    since: int
    age: int


class FamilyStep(NamedTuple):
    """A state after a step.

    Args:
        ages: For each age of the new state, which one of the old it continues; None means that it starts.
        ends: The positions in the state before at which a segment has ended.
        short: The cores and ranks of what has used them for less than it may.
    """

    local: int
    ages: tuple[int | None, ...]
    ended: tuple[EndedJob, ...]
    ends: tuple[Position, ...]
    short: tuple[tuple[ResourceKey, int], ...]


class TaskFamily:
    """All states of a family that have been met, by number.

    Args:
        grid_tasks: The tasks on the grid, the head first, and each after its sources.
        is_exact: Whether a step is a tick, in which every limit holds; otherwise several steps may be of one instant.
    """

    def __init__(self, grid_tasks: Sequence[GridTask], period: int, *, is_exact: bool) -> None:
        self.grid_tasks, self.period = grid_tasks, period
        self.width = len(grid_tasks)
        self._is_exact = is_exact
        self._locals: list[FamilyState] = []
        self._numbers: dict[FamilyState, int] = {}
        self.split = cache(self._split)  # what a family can do is computed once for each of its states
        self.comings = cache(self._comings)
        self.view = cache(self._view)
        self.served = cache(self._served)
        self.ticked = cache(self._ticked)
        self.slowed = cache(self._slowed)
        self.marks = cache(self._marks)
        self.marked = cache(self._marked)
        self.start = self._number(FamilyState(period, ()))

    def _number(self, local: FamilyState) -> int:
        # states are compared and cached by number, not by value
        known = self._numbers.setdefault(local, len(self._locals))
        if known == len(self._locals):
            self._locals.append(local)
        return known

    def rows(self, number: int) -> PendingJobs:
        """Return the jobs of a state."""
        return self._locals[number].rows

    def _split(self, number: int) -> tuple[int, int]:
        """Return the number of the state without its timer, and the timer."""
        timer, rows = self._locals[number]
        return self._number(FamilyState(0, rows)), timer

    # ---- what comes at an instant

    def _comings(self, number: int) -> tuple[tuple[int, bool], ...]:
        """Return the states after arrivals, releases and launches, and whether an activation is new there."""
        local = self._locals[number]
        ways = [(local, False)]
        if local.timer == self.period:  # sporadic: it may come, and need not
            head = self._tidy(0, GridJob(Stage.ARRIVED, due=self.grid_tasks[0].due))
            ways.append((FamilyState(0, (*local.rows, (head, *[AWAITED] * (self.width - 1)))), True))
        return tuple(
            (self._number(FamilyState(way.timer, rows)), is_new)
            for way, is_new in ways
            for rows in self._ready(way.rows, 0)
        )

    def _ready(self, rows: PendingJobs, slot: int) -> Iterator[PendingJobs]:
        if slot == self.width:
            yield rows
            return
        for released in self._moved(rows, slot, None):  # a release, then launches in the order of segments
            for launched in self._launched(released, slot, 0):
                yield from self._ready(launched, slot + 1)

    def _launched(self, rows: PendingJobs, slot: int, segment: int) -> Iterator[PendingJobs]:
        parts = self.grid_tasks[slot].parts
        segment = next((at for at in range(segment, len(parts)) if parts[at].delay), -1)
        if segment < 0:
            yield rows
            return
        for moved in self._moved(rows, slot, segment):
            yield from self._launched(moved, slot, segment + 1)

    def _moved(self, rows: PendingJobs, slot: int, segment: int | None) -> Iterator[PendingJobs]:
        """Yield the rows in which the first jobs that await a release or launch get it, for each number of them."""
        task = self.grid_tasks[slot]
        stage, at = (Stage.ARRIVED, 0) if segment is None else (Stage.LAUNCHED, segment)
        limit = task.jitter if segment is None else task.parts[segment].delay
        # the earliest first: releases and launches keep the order of jobs
        pending = [n for n, row in enumerate(rows) if row[slot].stage is stage and row[slot].segment == at]
        for row in (*pending, None):  # None: all of them get it
            if row is None or rows[row][slot].time < limit or (limit and not self._is_exact):
                yield rows
            if row is not None:
                job = rows[row][slot]
                if segment is None:
                    moved = self._enter(slot, 0, job._replace(released=task.released))
                else:
                    moved = self._tidy(slot, job._replace(stage=Stage.READY, time=0))
                rows = _replace_job(rows, (row, slot), moved)

    def _enter(self, slot: int, segment: int, job: GridJob) -> GridJob:
        stage = Stage.LAUNCHED if self.grid_tasks[slot].parts[segment].delay else Stage.READY
        return self._tidy(slot, GridJob(stage, segment, 0, 0, job.due, job.released))

    def _tidy(self, slot: int, job: GridJob) -> GridJob:
        """Return the job without the times that no server will ask for."""
        task = self.grid_tasks[slot]
        due = job.due if task.asks(ServerPolicy.EDF, job) else 0  # fewer different states
        released = job.released if job.stage is not Stage.ARRIVED and task.asks(ServerPolicy.EDF_RELEASE, job) else 0
        return job._replace(due=due, released=released)

    # ---- who is chosen

    def _view(self, number: int) -> FamilyView:
        busy: list[ResourceKey] = []
        waiting: dict[tuple[int, ResourceKey], tuple[ResourceKey, int, int, Position]] = {}
        computing: dict[int, tuple[ResourceKey, int, Position]] = {}
        for row, jobs in enumerate(self._locals[number].rows):
            for slot, job in enumerate(jobs):
                if job.stage <= Stage.ARRIVED:
                    continue
                task = self.grid_tasks[slot]
                part = task.parts[job.segment]
                core = part.resource if part.policy is None else task.core
                if core is not None:
                    computing.setdefault(slot, (core, task.rank, (row, slot)))  # of a task the earlier job goes first
                if part.policy is None:
                    continue
                if job.stage is Stage.SERVED:  # it runs to its end, so its server is taken
                    busy.append(part.resource)
                elif job.stage is Stage.READY:
                    key, doubt = self._key(task, part.policy, job)
                    known = waiting.get((slot, part.resource))
                    # of a task the most urgent offers itself; rows are in order of arrival
                    if known is None or key < known[1]:
                        waiting[slot, part.resource] = (part.resource, key, doubt, (row, slot))
        return FamilyView(tuple(busy), tuple(waiting.values()), tuple(computing.values()))

    def _key(self, task: GridTask, policy: ServerPolicy, job: GridJob) -> tuple[int, int]:
        """Return a key, the least first, and how much less it may be."""
        if policy is ServerPolicy.EDF:
            return job.due, task.doubt
        if policy is ServerPolicy.EDF_RELEASE:
            return job.released, task.doubt
        return -job.turn if policy is ServerPolicy.FIFO else -task.rank, 0

    def _served(self, number: int, chosen: tuple[Position, ...]) -> int:
        """Return the state after servers have begun to serve these jobs."""
        timer, rows = self._locals[number]
        for row, slot in chosen:
            job = rows[row][slot]._replace(stage=Stage.SERVED, time=0, turn=0)
            rows = _replace_job(rows, (row, slot), self._tidy(slot, job))
        return self._number(FamilyState(timer, rows))

    # ---- a step

    def _ticked(self, number: int, on_core: tuple[Position, ...], length: int) -> tuple[FamilyStep, ...]:
        """Return all results of a step of this length, 0 or 1; none if some limit does not allow the step."""
        timer, rows = self._locals[number]
        running: list[Position] = []
        for row, jobs in enumerate(rows):
            for slot, job in enumerate(jobs):
                if job.stage <= Stage.ENDED:
                    continue
                part = None if job.stage is Stage.ARRIVED else self.grid_tasks[slot].parts[job.segment]
                is_run = job.stage is Stage.SERVED or (
                    part is not None and part.policy is None and (row, slot) in on_core
                )
                older = self._older(slot, job, length, is_run=is_run)  # limits must hold when time passes
                if older is None:
                    return ()
                rows = _replace_job(rows, (row, slot), older)
                if is_run:
                    running.append((row, slot))
        local = FamilyState(min(self.period, timer + length), rows)
        return tuple(self._after(local, ends) for ends in self._endings(rows, running))

    def _older(self, slot: int, job: GridJob, length: int, *, is_run: bool) -> GridJob | None:
        """Return the job after the step; None if some limit does not allow it to last so long."""
        task = self.grid_tasks[slot]
        time, turn = job.time, job.turn
        if job.stage is Stage.ARRIVED:
            time += length
            limit = task.jitter
        else:
            part = task.parts[job.segment]
            limit = part.delay if job.stage is Stage.LAUNCHED else part.wcet
            if job.stage is Stage.LAUNCHED or is_run:
                time += length - (is_run and job.is_late)  # a step for nothing: see theorem 12 on pieces
            elif part.policy is ServerPolicy.FIFO:  # steps in the queue, of which only the order counts
                turn += 1
        if time > limit:
            return None
        aged = job._replace(time=time, turn=turn, due=job.due - length, released=job.released - length)
        return self._tidy(slot, aged._replace(is_late=job.is_late and not is_run))

    def _endings(self, rows: PendingJobs, running: Sequence[Position]) -> Iterable[tuple[Position, ...]]:
        full = [at for at in running if rows[at[0]][at[1]].time == self._part(rows, at).wcet]
        must = full if self._is_exact else []  # on a grid a step of length 0 may follow
        may = [position for position in running if position in full or self._part(rows, position).is_short]
        free = [position for position in may if position not in must]
        subsets = chain.from_iterable(combinations(free, size) for size in range(len(free) + 1))
        return ((*must, *some) for some in subsets)

    def _part(self, rows: PendingJobs, position: Position) -> GridSegment:
        row, slot = position
        return self.grid_tasks[slot].parts[rows[row][slot].segment]

    def _after(self, local: FamilyState, ends: tuple[Position, ...]) -> FamilyStep:
        """Return the state when these segments have ended: jobs go on, start others, or go away."""
        rows, ended, short = local.rows, [], []
        for row, slot in ends:
            job, task = rows[row][slot], self.grid_tasks[slot]
            part = task.parts[job.segment]
            if part.policy is None and job.time < part.wcet:
                short.append((part.resource, task.rank))  # a gap that is not kept, in theorem 12
            elif part.policy is not None and task.core is not None:
                short.append((task.core, task.rank))  # its thread has spun there: the same
            if job.segment + 1 < len(task.parts):
                rows = _replace_job(rows, (row, slot), self._enter(slot, job.segment + 1, job))
            else:
                rows = _replace_job(rows, (row, slot), ENDED)
                ended.append(EndedJob(task.number, row * self.width, row * self.width + slot))
        new = set()
        for row in {row for row, _ in ends}:
            for slot, task in enumerate(self.grid_tasks):
                jobs = rows[row]
                if jobs[slot].stage is Stage.AWAITED and all(jobs[s].stage is Stage.ENDED for s in task.sources):
                    rows = _replace_job(rows, (row, slot), self._tidy(slot, GridJob(Stage.ARRIVED, due=task.due)))
                    new.add((row, slot))
        kept = [row for row, jobs in enumerate(rows) if any(job.stage is not Stage.ENDED for job in jobs)]
        ages = tuple(
            row * self.width + slot
            if not slot or (rows[row][slot].stage > Stage.ENDED and (row, slot) not in new)
            else None
            for row in kept
            for slot in range(self.width)
        )
        number = self._number(FamilyState(local.timer, tuple(rows[row] for row in kept)))
        return FamilyStep(number, ages, tuple(ended), ends, tuple(short) if not self._is_exact else ())

    def _slowed(self, number: int, core: ResourceKey, rank: int) -> int:
        """Return the state in which jobs of the core that one of this rank has preempted may take a step longer."""
        timer, rows = self._locals[number]
        for row, jobs in enumerate(rows):
            for slot, job in enumerate(jobs):
                task = self.grid_tasks[slot]
                is_begun = job.stage is Stage.READY and job.time > 0 and task.rank <= rank
                if is_begun and task.parts[job.segment].resource == core:
                    rows = _replace_job(rows, (row, slot), job._replace(is_late=True))
        return self._number(FamilyState(timer, rows))

    # ---- numbers of which only the order counts

    def _marks(self, number: int) -> tuple[tuple[str | ResourceKey, int], ...]:
        """Return the numbers that are compared with those of other families, each with what is compared."""
        found: list[tuple[str | ResourceKey, int]] = []
        for jobs in self._locals[number].rows:
            for slot, job in enumerate(jobs):
                task = self.grid_tasks[slot]
                if job.turn:
                    found.append((task.parts[job.segment].resource, job.turn))
                if task.asks(ServerPolicy.EDF, job):
                    found.append((ServerPolicy.EDF, job.due))
                if job.stage is not Stage.ARRIVED and task.asks(ServerPolicy.EDF_RELEASE, job):
                    found.append((ServerPolicy.EDF_RELEASE, job.released))
        return tuple(found)

    def _marked(self, number: int, new: tuple[tuple[tuple[str | ResourceKey, int], int], ...]) -> int:
        """Return the state with new numbers for old ones."""
        timer, rows = self._locals[number]
        changed = dict(new)
        for row, jobs in enumerate(rows):
            for slot, job in enumerate(jobs):
                task = self.grid_tasks[slot]
                if job.stage <= Stage.ENDED:
                    continue
                resource = task.parts[job.segment].resource
                due = changed.get((ServerPolicy.EDF, job.due), job.due)
                released = changed.get((ServerPolicy.EDF_RELEASE, job.released), job.released)
                turn = changed.get((resource, job.turn), job.turn) if job.turn else 0
                moved = self._tidy(slot, job._replace(turn=turn, due=due, released=released))
                rows = _replace_job(rows, (row, slot), moved)
        return self._number(FamilyState(timer, rows))


def _replace_job(rows: PendingJobs, position: Position, job: GridJob) -> PendingJobs:
    row, slot = position
    jobs = rows[row]
    return (*rows[:row], (*jobs[:slot], job, *jobs[slot + 1 :]), *rows[row + 1 :])
