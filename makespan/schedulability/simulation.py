"""One legal schedule of a task set, event by event, in whole ticks: a second opinion on every analysis.

A `Scenario` decides all that the model leaves open: when jobs arrive and are released, how long they run, and who goes
first among equals. `simulate` then only follows the rules. It shares nothing with the analyses but the values of
`task.py` and the reading of chains.

Where `task.py` leaves room, this is what happens. Jobs of one task are served in the order of their arrival wherever
they meet, and a job does not wait for the end of the one before. Whatever ends or is released at an instant is there
when cores and partitions choose at that instant. A FIFO partition orders kernels by the instant at which they are
ready, which is the release unless CPU time comes before. A job that is started by data arrives when the job of the same
number of the task before it in the chain ends.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from makespan.errors import InputError
from makespan.schedulability.chains import predecessors
from makespan.schedulability.task import Policy, Task, TaskSet

MAX_JOBS = 1_000_000


class Phase(StrEnum):
    """The parts of a job, in their order."""

    BEFORE = "before"
    """on the CPU, before the kernel"""
    KERNEL = "kernel"
    AFTER = "after"
    """on the CPU, after the kernel"""


class Job(NamedTuple):
    """A job as a scenario wants it, in ticks: `number` counts the jobs of its task from 0.

    Nobody can choose when data starts a job: then `arrival` is 0, and `release` the time from the arrival on.
    """

    task: str
    number: int
    arrival: int
    release: int
    before: int
    kernel: int
    after: int


@dataclass(frozen=True)
class Scenario:
    """Everything that the model leaves open, decided.

    Args:
        jobs: by task in any order, within a task in the order of arrival.
        order: all tasks; the earlier one goes first where the rules do not say who does.
        words: how it came about, for people.

    Raises:
        InputError: a task without a partition, too many jobs, or a scenario that the model does not allow.
    """

    task_set: TaskSet
    jobs: tuple[Job, ...]
    order: tuple[str, ...]
    words: str

    def __post_init__(self) -> None:
        if self.task_set.unassigned:
            raise InputError(f"task {self.task_set.unassigned[0].name} has no partition: assign it, then simulate")
        if len(self.jobs) > MAX_JOBS:
            raise InputError(f"{len(self.jobs)} jobs exceed the limit of {MAX_JOBS} in a simulation")
        if sorted(self.order) != sorted(self.task_set.by_name):
            raise InputError("the order of a scenario names every task once")
        last: dict[str, Job] = {}
        for job in self.jobs:
            if (reason := _offence(self.task_set, self.starts, last.get(job.task), job)) is not None:
                raise InputError(f"not a scenario of the model: {reason}")
            last[job.task] = job

    @cached_property
    def starts(self) -> dict[str, str]:
        """For each task that is started by data, the task that starts it."""
        return predecessors(self.task_set)


def _offence(task_set: TaskSet, starts: Mapping[str, str], previous: Job | None, job: Job) -> str | None:
    """Which rule of the model a job breaks, given the job of its task before."""
    task = task_set.by_name.get(job.task)
    if task is None:
        return f"there is no task {job.task}"
    name = f"job {job.number} of task {job.task}"
    if job.number != (0 if previous is None else previous.number + 1):
        return f"{name} is not the next one"
    return _early(task, starts, previous, job, name) or _long(task, job, name)


def _early(task: Task, starts: Mapping[str, str], previous: Job | None, job: Job, name: str) -> str | None:
    if task.name in starts:
        if job.arrival or not 0 <= job.release <= task.jitter:
            return f"{name} is started by data of {starts[task.name]}, with a delay of 0..{task.jitter} ticks"
        return None
    if task.offset is not None and job.arrival != task.offset + job.number * task.period:
        return f"{name} arrives at {job.arrival}, and the task is strictly periodic"
    if job.arrival < 0 or (previous is not None and job.arrival < previous.arrival + task.period):
        return f"{name} arrives too early, at {job.arrival}"
    if not job.arrival <= job.release <= job.arrival + task.jitter:
        return f"{name} arrives at {job.arrival} and is released at {job.release}"
    if previous is not None and job.release < previous.release:
        return f"{name} is released before the one before it"
    return None


def _long(task: Task, job: Job, name: str) -> str | None:
    given_all, most_all = (job.before, job.kernel, job.after), (task.before, task.wcet, task.after)
    if given_all == most_all:
        return None
    for phase, given, most in zip(Phase, given_all, most_all, strict=True):
        if not min(1, most) <= given <= most:
            return f"{name} runs for {given} ticks as {phase}, and at most {most} are allowed"
    return None


class Segment(NamedTuple):
    """A time for which `resource`, a core or a partition, runs a part of a job without a break, in ticks."""

    resource: str
    phase: Phase
    task: str
    job: int
    start: int
    end: int


class Completed(NamedTuple):
    """A job that has ended, in ticks; `deadline` is absolute."""

    task: str
    number: int
    arrival: int
    release: int
    deadline: int
    completion: int

    @property
    def response(self) -> int:
        """Ticks from the arrival to the end."""
        return self.completion - self.arrival

    @property
    def slack(self) -> int:
        """Ticks from the end to the deadline; negative if it is missed."""
        return self.deadline - self.completion

    @property
    def is_late(self) -> bool:
        """Whether the deadline is missed."""
        return self.completion > self.deadline


@dataclass(frozen=True)
class Run:
    """What happened: all jobs in the order of their ends, all segments in the order of theirs."""

    scenario: Scenario
    jobs: tuple[Completed, ...]
    segments: tuple[Segment, ...]

    @cached_property
    def responses(self) -> dict[str, int]:
        """The longest response of each task that has a job, in ticks."""
        found: dict[str, int] = {}
        for job in self.jobs:
            found[job.task] = max(found.get(job.task, 0), job.response)
        return found

    @cached_property
    def late(self) -> tuple[Completed, ...]:
        """The jobs that miss their deadlines."""
        return tuple(job for job in self.jobs if job.is_late)

    def tightest(self, task: str | None = None) -> Completed | None:
        """The job, of `task` or of any, with the least slack; None without a job."""
        return min((job for job in self.jobs if task in (None, job.task)), key=lambda job: job.slack, default=None)


class _Piece:
    """A part of a job that waits or runs."""

    __slots__ = ("job", "key", "left", "phase", "rest")

    def __init__(
        self, job: Job, phase: Phase, left: int, rest: tuple[tuple[Phase, int], ...], key: tuple[int, int, int]
    ) -> None:
        self.job, self.phase, self.left, self.rest, self.key = job, phase, left, rest, key

    def __lt__(self, other: "_Piece") -> bool:
        return self.key < other.key


class _Server:
    """A core or a partition: what waits, most urgent first, and what runs."""

    def __init__(self, name: str, policy: Policy, *, preemptive: bool) -> None:
        self.name, self.policy, self.preemptive = name, policy, preemptive
        self.waiting: list[_Piece] = []
        self.running: _Piece | None = None
        self.since = 0
        self.end: int | None = None  # when what runs ends, unless it is preempted

    def stop(self, now: int) -> tuple[_Piece, Segment]:
        """Take what runs off."""
        piece = self.running
        if piece is None:
            raise ValueError(f"nothing runs on {self.name}")
        self.running = self.end = None
        piece.left -= now - self.since
        return piece, Segment(self.name, piece.phase, piece.job.task, piece.job.number, self.since, now)

    def choose(self, now: int) -> Segment | None:
        """Let the most urgent one run; the segment that ends if it preempts another."""
        ended = None
        if self.preemptive and self.running is not None and self.waiting and self.waiting[0] < self.running:
            piece, ended = self.stop(now)
            heappush(self.waiting, piece)
        if self.running is None and self.waiting:
            self.running, self.since = heappop(self.waiting), now
            self.end = now + self.running.left
        return ended


class _System:
    """All cores and partitions, and how jobs walk through them."""

    def __init__(self, scenario: Scenario) -> None:
        self.tasks = scenario.task_set.by_name
        self.rank = {name: rank for rank, name in enumerate(scenario.order)}
        self.cores = {
            name: _Server(f"core {name}", Policy.FIXED_PRIORITY, preemptive=True) for name in scenario.task_set.cores
        }
        self.partitions = {
            partition.name: _Server(f"partition {partition.name}", partition.policy, preemptive=False)
            for partition in scenario.task_set.partitions
        }
        self.servers = (*self.cores.values(), *self.partitions.values())
        self.coming: list[tuple[int, str, int, Job]] = []
        self.data: dict[tuple[str, int], list[Job]] = {}
        for job in scenario.jobs:
            if job.task in scenario.starts:
                self.data.setdefault((scenario.starts[job.task], job.number), []).append(job)
            else:
                self.coming.append((job.release, job.task, job.number, job))
        heapify(self.coming)
        self.released: dict[str, int] = {}
        self.completed: list[Completed] = []
        self.segments: list[Segment] = []

    @property
    def next(self) -> int | None:
        """The next instant at which something ends or is released."""
        instants = [server.end for server in self.servers if server.end is not None]
        return min((*instants, self.coming[0][0]) if self.coming else instants, default=None)

    def release(self, now: int) -> None:
        """Begin with the first part of the jobs that are released now."""
        while self.coming and self.coming[0][0] == now:
            job = heappop(self.coming)[-1]
            parts = ((Phase.BEFORE, job.before), (Phase.KERNEL, job.kernel), (Phase.AFTER, job.after))
            self._go_on(job, tuple(part for part in parts if part[1]), now)

    def _go_on(self, job: Job, parts: tuple[tuple[Phase, int], ...], now: int) -> None:
        task = self.tasks[job.task]
        if not parts:
            deadline = job.arrival + task.deadline
            self.completed.append(Completed(job.task, job.number, job.arrival, job.release, deadline, now))
            self._start_by_data(job, now)
            return
        (phase, left), *rest = parts
        server = self._server(task, phase)
        key = (_urgency(server.policy, task, job, now), self.rank[job.task], job.number)
        heappush(server.waiting, _Piece(job, phase, left, tuple(rest), key))

    def _start_by_data(self, ended: Job, now: int) -> None:
        for job in self.data.get((ended.task, ended.number), ()):
            release = max(now + job.release, self.released.get(job.task, 0))
            self.released[job.task] = release
            heappush(self.coming, (release, job.task, job.number, job._replace(arrival=now, release=release)))

    def _server(self, task: Task, phase: Phase) -> _Server:
        return self.partitions[task.partition or ""] if phase is Phase.KERNEL else self.cores[task.core or ""]

    def end_parts(self, now: int) -> None:
        """Let jobs whose part ends now go on to their next one."""
        for server in self.servers:
            if server.end == now:
                piece, segment = server.stop(now)
                self.segments.append(segment)
                self._go_on(piece.job, piece.rest, now)

    def choose(self, now: int) -> None:
        """Every core and partition chooses what runs from now on."""
        for server in self.servers:
            if server.waiting and (ended := server.choose(now)) is not None:
                self.segments.append(ended)


def _urgency(policy: Policy, task: Task, job: Job, now: int) -> int:
    """Less is more urgent; `now` is when the part is ready."""
    if policy is Policy.EDF:
        return job.arrival + task.deadline
    if policy is Policy.EDF_RELEASE:
        return job.release + task.deadline - task.jitter
    if policy is Policy.FIFO:
        return now
    if task.priority is None:
        raise ValueError(f"task {task.name} has no priority")
    return -task.priority


def simulate(scenario: Scenario) -> Run:
    """Follow the scenario until its last job has ended."""
    system = _System(scenario)
    while (now := system.next) is not None:
        system.end_parts(now)
        system.release(now)
        system.choose(now)
    segments = sorted(system.segments, key=lambda segment: (segment.end, segment.start, segment.resource))
    return Run(scenario, tuple(system.completed), tuple(segments))
