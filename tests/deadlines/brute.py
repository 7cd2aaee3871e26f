"""The longest responses of a tiny task set at whole ticks, by brute force, written from docs/schedulability.md alone.

It shares nothing with the walk of the package but the values of `task.py` and the reading of chains, and knows no grid:
it looks at every schedule of a task set in ticks that are as fine as the caller makes them. One job is tagged when it
arrives, and its age is part of the state. Covered are cores, copies, kernels, jitter, launch delays, threads that spin
or block, data from one task to several, and contexts in turn, which wait in a queue; a task that waits for several
others is not.
"""

from collections.abc import Iterator, Mapping
from itertools import product
from typing import NamedTuple

from makespan.deadlines.chains import predecessors
from makespan.deadlines.task import GpuTask, JobSegment, SegmentKind, ServerPolicy, Slices, TaskSet

ARRIVED, LAUNCHED, READY, RUNNING = range(4)


class TooManyError(Exception):
    """More states than the limit."""


class Job(NamedTuple):
    """A job, in ticks.

    Args:
        clock: since when it is in its stage; of CPU time, how long it has run.
        since: from its arrival, or under `edf-release` from its release, if such a server asks.
        waits: for a server that is first in, first out.
        age: from its arrival, if it is the tagged one; else -1.
    """

    task: int
    segment: int
    stage: int
    clock: int = 0
    since: int = 0
    waits: int = 0
    age: int = -1


class Turn(NamedTuple):
    """Whose turn it is on a time-sliced partition, what is left of it and of the switch before it, and who waits."""

    context: str | None = None
    left: int = 0
    switch: int = 0
    queue: tuple[str, ...] = ()


Jobs = tuple[Job, ...]
Turns = tuple[Turn, ...]
State = tuple[tuple[int, ...], Jobs, Turns]


class Brute:
    """All schedules of a task set."""

    def __init__(self, task_set: TaskSet) -> None:
        self.tasks = task_set.tasks
        number = {task.name: at for at, task in enumerate(self.tasks)}
        starts = predecessors(task_set)
        if any(len(sources) > 1 for sources in starts.values()):
            raise NotImplementedError("a task waits for several")
        self.heads = [at for at, task in enumerate(self.tasks) if task.name not in starts]
        self.follow: dict[int, list[int]] = {}
        for name, (source,) in starts.items():
            self.follow.setdefault(number[source], []).append(number[name])
        self.policy = {server.name: server.policy for server in task_set.servers}
        self.sliced = {p.name: p.slices for p in task_set.partitions if p.slices is not None}
        self.longest = dict.fromkeys(number, 0)

    def run(self, most: int) -> Mapping[str, int]:
        start: State = (
            tuple(self.tasks[at].period for at in self.heads),
            (),
            tuple(Turn() for _ in self.sliced),
        )
        known, todo = {start}, [start]
        while todo:
            for state in self.after(todo.pop()):
                if state not in known:
                    known.add(state)
                    todo.append(state)
                    if len(known) > most:
                        raise TooManyError
        return self.longest

    def after(self, state: State) -> Iterator[State]:
        timers, jobs, turns = state
        for some in product((False, True), repeat=len(self.heads)):
            rows = zip(timers, self.heads, some, strict=True)
            if all(timer == self.tasks[at].period or not is_new for timer, at, is_new in rows):
                now = tuple(0 if new else timer for timer, new in zip(timers, some, strict=True))
                news = [at for at, new in zip(self.heads, some, strict=True) if new]
                for there in self.tagged(jobs, news):
                    for moved in self.moved(there, 0):
                        for begun, taken in self.served(moved, turns):
                            yield from self.passed(now, begun, taken)

    def tagged(self, jobs: Jobs, news: list[int]) -> Iterator[Jobs]:
        """With new jobs, of which one may get the tag if nobody has it."""
        fresh = [Job(at, 0, ARRIVED) for at in news]
        yield (*jobs, *fresh)
        if all(job.age < 0 for job in jobs):
            for at, job in enumerate(fresh):
                yield (*jobs, *fresh[:at], job._replace(age=0), *fresh[at + 1 :])

    def moved(self, jobs: Jobs, at: int) -> Iterator[Jobs]:
        """Releases and launches, of each task in order."""
        if at == len(jobs):
            yield jobs
            return
        job = jobs[at]
        task = self.tasks[job.task]
        ahead = [o for o in jobs[:at] if o.task == job.task]
        if job.stage == ARRIVED:
            if job.clock < task.jitter:
                yield from self.moved(jobs, at + 1)
            if not any(o.stage == ARRIVED for o in ahead):
                since = 0 if self.counts(task, ServerPolicy.EDF_RELEASE) else job.since
                yield from self.moved((*jobs[:at], self.entered(job._replace(since=since), 0), *jobs[at + 1 :]), at)
        elif job.stage == LAUNCHED:
            if job.clock < task.segments[job.segment].delay:
                yield from self.moved(jobs, at + 1)
            if not any(o.stage == LAUNCHED and o.segment == job.segment for o in ahead):
                yield from self.moved((*jobs[:at], job._replace(stage=READY, clock=0), *jobs[at + 1 :]), at + 1)
        else:
            yield from self.moved(jobs, at + 1)

    def entered(self, job: Job, segment: int) -> Job:
        stage = LAUNCHED if self.tasks[job.task].segments[segment].kind is not SegmentKind.CPU else READY
        return job._replace(segment=segment, stage=stage, clock=0, waits=0)

    def counts(self, task: GpuTask, policy: ServerPolicy) -> bool:
        return any(s.resource is not None and self.policy[s.resource] is policy for s in task.segments)

    def part(self, job: Job) -> JobSegment:
        return self.tasks[job.task].segments[job.segment]

    def served(self, jobs: Jobs, turns: Turns) -> Iterator[tuple[Jobs, Turns]]:
        """Servers choose: one that is free takes one of the most urgent that wait."""
        ways = []
        for resource, policy in self.policy.items():
            if resource in self.sliced:
                continue
            here = [at for at, job in enumerate(jobs) if job.stage >= READY and self.part(job).resource == resource]
            if here and not any(jobs[at].stage == RUNNING for at in here):
                keys = {at: self.key(jobs[at], policy) for at in self.firsts(jobs, here)}
                ways.append([at for at, key in keys.items() if key == min(keys.values())])
        rows = self.sliced, self.sliced.values(), turns
        for chosen in product(*ways):
            begun = tuple(j._replace(stage=RUNNING, clock=0) if at in chosen else j for at, j in enumerate(jobs))
            for taken in product(*(self.turned(begun, *row) for row in zip(*rows, strict=True))):
                yield begun, taken

    def firsts(self, jobs: Jobs, here: list[int]) -> list[int]:
        """Of each task only the earliest job."""
        return [at for at in here if not any(jobs[o].task == jobs[at].task and o < at for o in here)]

    def key(self, job: Job, policy: ServerPolicy) -> int:
        task = self.tasks[job.task]
        if policy is ServerPolicy.EDF:
            return task.deadline - job.since
        if policy is ServerPolicy.EDF_RELEASE:
            return task.deadline - task.jitter - job.since
        return -job.waits if policy is ServerPolicy.FIFO else -(task.priority or 0)

    def turned(self, jobs: Jobs, resource: str, slices: Slices, turn: Turn) -> Iterator[Turn]:
        """Whose turn it is: contexts that come at one instant join the queue in any order."""
        here = [job for job in jobs if job.stage == READY and self.part(job).resource == resource]
        wants = sorted({self.tasks[job.task].context or "" for job in here})
        going = turn.context in wants and (turn.left > 0 or turn.switch > 0)
        new = [name for name in wants if name not in turn.queue and not (going and name == turn.context)]
        for order in ([*new], [*reversed(new)]) if len(new) > 1 else (new,):
            queue = (*(name for name in turn.queue if name in wants), *order)
            if going:
                yield turn._replace(queue=queue)
            elif not queue:
                yield Turn(turn.context)
            else:
                most = 0 if turn.context in (None, queue[0]) else slices.switch
                for switch in range(most + 1):
                    yield Turn(queue[0], slices.length, switch, queue[1:])

    def passed(self, timers: tuple[int, ...], jobs: Jobs, turns: Turns) -> Iterator[State]:
        """A tick passes, and any of what runs ends, or has to."""
        cores: dict[str, list[int]] = {}
        for at, job in enumerate(jobs):
            task = self.tasks[job.task]
            if (
                task.core is not None
                and job.stage != ARRIVED
                and (task.spins or self.part(job).kind is SegmentKind.CPU)
            ):
                cores.setdefault(task.core, []).append(at)
        ways = []
        for here in cores.values():
            rank = {at: self.tasks[jobs[at].task].priority or 0 for at in self.firsts(jobs, here)}
            ways.append([at for at, r in rank.items() if r == max(rank.values())])
        slots = {at for at, job in enumerate(jobs) if job.stage == RUNNING}
        for resource, turn in zip(self.sliced, turns, strict=True):
            asking = [at for at, job in enumerate(jobs) if job.stage == READY and self.part(job).resource == resource]
            here = [at for at in asking if self.tasks[jobs[at].task].context == turn.context]
            if here and not turn.switch:
                most = max(jobs[at].waits for at in here)
                slots.add(next(at for at in here if jobs[at].waits == most))
        now = tuple(min(t + 1, self.tasks[at].period) for t, at in zip(timers, self.heads, strict=True))
        then = tuple(
            t._replace(switch=t.switch - 1) if t.switch else t._replace(left=max(0, t.left - 1)) for t in turns
        )
        for chosen in product(*ways):
            runs = slots | {at for at in chosen if self.part(jobs[at]).kind is SegmentKind.CPU}
            aged = [self.older(job, at in runs) for at, job in enumerate(jobs)]
            free = [at for at in runs if aged[at].clock < self.part(jobs[at]).wcet]
            must = [at for at in runs if at not in free]
            for some in product((False, True), repeat=len(free)):
                ends = {*must, *(at for at, is_end in zip(free, some, strict=True) if is_end)}
                for left in self.ended(aged, ends):
                    yield now, left, then

    def older(self, job: Job, is_run: bool) -> Job:
        task, part = self.tasks[job.task], self.part(job)
        counts = is_run or job.stage in (ARRIVED, LAUNCHED)
        waits = job.stage == READY and part.resource is not None and self.policy[part.resource] is ServerPolicy.FIFO
        asks = self.counts(task, ServerPolicy.EDF) or self.counts(task, ServerPolicy.EDF_RELEASE)
        return job._replace(
            clock=job.clock + counts,
            since=job.since + asks,
            waits=job.waits + waits,
            age=job.age + (job.age >= 0),
        )

    def ended(self, jobs: list[Job], ends: set[int]) -> Iterator[Jobs]:
        left: list[Job] = []
        news: list[int] = []
        for at, job in enumerate(jobs):
            if at not in ends:
                left.append(job)
            elif job.segment + 1 < len(self.tasks[job.task].segments):
                left.append(self.entered(job, job.segment + 1))
            else:
                name = self.tasks[job.task].name
                self.longest[name] = max(self.longest[name], job.age)
                if job.age >= 0:
                    return  # what becomes of the others is another state's business
                news += self.follow.get(job.task, [])
        yield from self.tagged(tuple(left), news)


def longest(task_set: TaskSet, most: int = 100_000) -> Mapping[str, int] | None:
    """Of each task the longest response; None where there are more states."""
    try:
        return Brute(task_set).run(most)
    except TooManyError:
        return None
