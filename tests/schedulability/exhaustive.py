"""The worst response times of small task sets by walking through every state that any legal schedule can reach.

Nothing here is shared with the analyses but the values of `task.py`: sporadic arrivals at every tick the period allows,
every jitter, every execution time, every order of equals. Responses are unbounded only where utilisation exceeds 1.
"""

from collections.abc import Iterator
from enum import IntEnum
from itertools import product
from typing import NamedTuple

from makespan.schedulability.task import Activation, Policy, Task, TaskSet

MOST_AGE = 100


class Stage(IntEnum):
    ARRIVED = 0
    BEFORE = 1
    WAITING = 2
    KERNEL = 3
    AFTER = 4


class Job(NamedTuple):
    """`age` counts from the arrival, `since` from the event at the head of the chain, the others from their names."""

    stage: Stage
    age: int
    since: int
    released: int
    ready: int
    left: int


class TooManyStatesError(Exception):
    pass


Queue = tuple[int, tuple[Job, ...]]
"""Ticks since the last arrival, as far as they matter, and the jobs in the order of arrival."""

State = tuple[Queue, ...]


class Worst(NamedTuple):
    response: tuple[int, ...]
    end: tuple[int, ...]


class Explorer:
    def __init__(self, task_set: TaskSet, *, is_short: bool, most_states: int) -> None:
        self.tasks, self.is_short, self.most_states = task_set.tasks, is_short, most_states
        self.policies = {partition.name: partition.policy for partition in task_set.partitions}
        self.cores = task_set.cores
        at = {task.name: number for number, task in enumerate(task_set.tasks)}
        self.followers: dict[int, set[int]] = {}
        for chain in task_set.chains:
            if chain.activation is Activation.DATA:
                for first, second in zip(chain.tasks, chain.tasks[1:], strict=False):
                    self.followers.setdefault(at[first], set()).add(at[second])
        self.triggered = {second for seconds in self.followers.values() for second in seconds}
        self.response = [0] * len(self.tasks)
        self.end = [0] * len(self.tasks)

    def walk(self) -> Worst:
        start: State = tuple((task.period, ()) for task in self.tasks)
        seen, todo = {start}, [start]
        while todo:
            for state in self.next_states(todo.pop()):
                if state not in seen:
                    seen.add(state)
                    todo.append(state)
            if len(seen) > self.most_states:
                raise TooManyStatesError
        return Worst(tuple(self.response), tuple(self.end))

    def next_states(self, state: State) -> Iterator[State]:
        for come in product(*(list(self.arrivals(number, queue)) for number, queue in enumerate(state))):
            for started in self.starts(come, list(self.policies)):
                for running in self.choices(started):
                    yield from self.tick(started, running)

    def arrivals(self, number: int, queue: Queue) -> Iterator[Queue]:
        since, jobs = queue
        yield from ((since, released) for released in self.releases(number, jobs))
        if since == self.tasks[number].period and number not in self.triggered:
            new = Job(Stage.ARRIVED, 0, 0, 0, 0, 0)
            yield from ((0, released) for released in self.releases(number, (*jobs, new)))

    def releases(self, number: int, jobs: tuple[Job, ...]) -> Iterator[tuple[Job, ...]]:
        """Jobs are released in their order, each no later than its jitter allows."""
        first = next((at for at, job in enumerate(jobs) if job.stage is Stage.ARRIVED), None)
        if first is None:
            yield jobs
            return
        if all(job.age < self.tasks[number].jitter for job in jobs[first:]):
            yield jobs
        for moved in self.enter(number, jobs[first], Stage.BEFORE):
            if moved is not None:
                yield from self.releases(number, (*jobs[:first], moved, *jobs[first + 1 :]))

    def enter(self, number: int, job: Job, stage: Stage) -> Iterator[Job | None]:
        """The job at the start of a stage, or of the next one that it has; None at its end."""
        task = self.tasks[number]
        if stage is Stage.BEFORE and task.before:
            yield from (job._replace(stage=stage, left=left) for left in self.times(task.before))
        elif stage in (Stage.BEFORE, Stage.WAITING):
            yield job._replace(stage=Stage.WAITING, left=0)
        elif task.after:
            yield from (job._replace(stage=stage, left=left, released=0, ready=0) for left in self.times(task.after))
        else:
            yield None

    def times(self, most: int) -> range:
        return range(1 if self.is_short else most, most + 1)

    def starts(self, state: State, partitions: list[str]) -> Iterator[State]:
        """Every idle partition takes one of the most urgent kernels."""
        if not partitions:
            yield state
            return
        *others, name = partitions
        heads = [
            (number, at, job)
            for number, (task, (_, jobs)) in enumerate(zip(self.tasks, state, strict=True))
            if task.partition == name
            for at, job in enumerate(jobs)
            if job.stage is Stage.KERNEL or (job.stage is Stage.WAITING and is_first(jobs, at))
        ]
        if not heads or any(job.stage is Stage.KERNEL for _, _, job in heads):
            yield from self.starts(state, others)
            return
        least = min(self.urgency(self.tasks[number], job) for number, _, job in heads)
        for number, at, job in heads:
            if self.urgency(self.tasks[number], job) == least:
                for left in self.times(self.tasks[number].wcet):
                    moved = job._replace(stage=Stage.KERNEL, left=left, released=0, ready=0)
                    yield from self.starts(replaced(state, number, at, moved), others)

    def urgency(self, task: Task, job: Job) -> int:
        policy = self.policies[task.partition or ""]
        if policy is Policy.EDF:
            return task.deadline - job.age
        if policy is Policy.EDF_RELEASE:
            return task.deadline - task.jitter - job.released
        return -job.ready if policy is Policy.FIFO else -(task.priority or 0)

    def choices(self, state: State) -> Iterator[frozenset[tuple[int, int]]]:
        """Which jobs the cores run in this tick."""
        ways: list[list[tuple[int, int]]] = []
        for tasks in self.cores.values():
            heads = [
                (number, next(at for at, job in enumerate(jobs) if on_core(job)))
                for number, (task, (_, jobs)) in enumerate(zip(self.tasks, state, strict=True))
                if task in tasks and any(on_core(job) for job in jobs)
            ]
            most = max((self.tasks[number].priority or 0 for number, _ in heads), default=0)
            if heads:
                ways.append([head for head in heads if (self.tasks[head[0]].priority or 0) == most])
        return (frozenset(way) for way in product(*ways))

    def tick(self, state: State, running: frozenset[tuple[int, int]]) -> Iterator[State]:
        queues = []
        for number, (since, jobs) in enumerate(state):
            ways = product(
                *(list(self.older(number, job, is_run=(number, at) in running)) for at, job in enumerate(jobs))
            )
            queues.append([(min(self.tasks[number].period, since + 1), way) for way in ways])
        for way in product(*queues):
            yield self.triggers(way)

    def older(self, number: int, job: Job, *, is_run: bool) -> Iterator[Job | int]:
        """The job a tick later; at its end, only how long ago the event was."""
        policy = self.policies[self.tasks[number].partition or ""]
        is_queued = job.stage in (Stage.BEFORE, Stage.WAITING)
        job = job._replace(
            age=job.age + 1,
            since=job.since + 1 if self.followers else 0,
            released=job.released + (is_queued and policy is Policy.EDF_RELEASE),
            ready=job.ready + (job.stage is Stage.WAITING and policy is Policy.FIFO),
            left=job.left - (is_run or job.stage is Stage.KERNEL),
        )
        if job.age > MOST_AGE:
            raise TooManyStatesError
        if job.left or job.stage in (Stage.ARRIVED, Stage.WAITING):
            yield job
            return
        for moved in self.after(number, job):
            if moved is None:
                end = job.since if self.followers else job.age
                self.response[number] = max(self.response[number], job.age)
                self.end[number] = max(self.end[number], end)
            yield end if moved is None else moved

    def after(self, number: int, job: Job) -> Iterator[Job | None]:
        if job.stage is Stage.AFTER:
            return iter([None])
        return self.enter(number, job, Stage.WAITING if job.stage is Stage.BEFORE else Stage.AFTER)

    def triggers(self, queues: tuple[tuple[int, tuple[Job | int, ...]], ...]) -> State:
        """Jobs that have ended go away, and those that they start arrive."""
        new: dict[int, list[Job]] = {}
        for number, (_, jobs) in enumerate(queues):
            for ended in jobs:
                if isinstance(ended, int):
                    for follower in self.followers.get(number, ()):
                        new.setdefault(follower, []).append(Job(Stage.ARRIVED, 0, ended, 0, 0, 0))
        return tuple(
            (since, (*(job for job in jobs if isinstance(job, Job)), *new.get(number, ())))
            for number, (since, jobs) in enumerate(queues)
        )


def is_first(jobs: tuple[Job, ...], at: int) -> bool:
    return all(job.stage is not Stage.WAITING for job in jobs[:at])


def on_core(job: Job) -> bool:
    return job.stage in (Stage.BEFORE, Stage.AFTER)


def replaced(state: State, number: int, at: int, job: Job) -> State:
    since, jobs = state[number]
    return (*state[:number], (since, (*jobs[:at], job, *jobs[at + 1 :])), *state[number + 1 :])


def worst(task_set: TaskSet, *, is_short: bool = False, most_states: int = 30_000) -> Worst | None:
    """The longest responses from arrival and from the event at the head of the chain; None beyond the limits.

    Args:
        is_short: whether jobs may also run for less than allowed.
    """
    try:
        return Explorer(task_set, is_short=is_short, most_states=most_states).walk()
    except TooManyStatesError:
        return None
