"""One legal schedule of a task set, event by event, in whole ticks: a second opinion on every analysis.

A `Scenario` decides all that the model leaves open: when jobs arrive and are released, how long launches and segments
take, and who goes first among equals. `simulate` then only follows the rules. It shares nothing with the analyses but
the values of `task.py` and the reading of chains.

Where `task.py` leaves room, this is what happens. Jobs of one task are served in the order of their arrival wherever
they meet on a core or under fixed priorities, and a segment is not ready before that of the job before; but a job does
not wait for the end of the one before. Whatever ends, is released or becomes ready at an instant is there when cores
and servers choose at that instant. A FIFO server orders by the instant at which a segment is ready: after its launch. A
job that data starts arrives when the jobs of the same number of all tasks that start it have ended. A thread that spins
competes for its core from when a copy or kernel follows, through launch and waiting, until that ends. Contexts that
take a partition in turn wait in a queue, and a switch takes its longest.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from makespan.deadlines.chains import predecessors
from makespan.deadlines.task import GpuTask, SegmentKind, ServerPolicy, Slices, TaskSet, core_label
from makespan.host.errors import InputError

MAX_JOBS = 1_000_000


class JobPlan(NamedTuple):
    """A job as a scenario wants it, in ticks: `number` counts the jobs of its task from 0.

    No scheduler chooses when data starts a job: then `arrival` is 0, and `release` the time from the arrival on. Each
    segment runs for its one of `times`; its one of `delays` passes before it is ready, or more where that of the job
    before is not ready yet. Empty `delays`: nothing is delayed.
    """

    task: str
    number: int
    arrival: int
    release: int
    times: tuple[int, ...]
    delays: tuple[int, ...] = ()


@dataclass(frozen=True)
class Scenario:
    """A decision of everything that the model leaves open.

    Args:
        jobs: The jobs by task in any order, within a task in the order of arrival; of a task that data starts, all of
            them.
        order: All tasks; the earlier one goes first where the rules do not say who does.
        words: How it came about, for people.

    Raises:
        InputError: a task without a partition, too many jobs, or a scenario that the model does not allow.
    """

    task_set: TaskSet
    jobs: tuple[JobPlan, ...]
    order: tuple[str, ...]
    words: str

    def __post_init__(self) -> None:
        if self.task_set.unassigned:
            raise InputError(f"task {self.task_set.unassigned[0].name} has no partition: assign it, then simulate")
        if len(self.jobs) > MAX_JOBS:
            raise InputError(f"{len(self.jobs)} jobs exceed the limit of {MAX_JOBS} in a simulation")
        if sorted(self.order) != sorted(self.task_set.by_name):
            raise InputError("the order of a scenario names every task once")
        costs = turns_per_job(self.task_set)
        if (count := sum(costs.get(job.task, 1) for job in self.jobs)) > MAX_JOBS:  # each turn is an event
            raise InputError(f"{count} turns of contexts exceed the limit of {MAX_JOBS} in a simulation")
        last: dict[str, JobPlan] = {}
        for job in self.jobs:
            if (reason := _broken_rule(self.task_set, self.starts, last.get(job.task), job)) is not None:
                raise InputError(f"not a scenario of the model: {reason}")
            last[job.task] = job
        counts = {name: last[name].number + 1 if name in last else 0 for name in self.task_set.by_name}
        for name, sources in self.starts.items():
            if counts[name] != (started := min(counts[source] for source in sources)):
                raise InputError(
                    f"not a scenario of the model: data starts {started} jobs of task {name}, not {counts[name]}"
                )

    @cached_property
    def starts(self) -> dict[str, tuple[str, ...]]:
        """Return the tasks that start each task that is started by data."""
        return predecessors(self.task_set)


def turns_per_job(task_set: TaskSet) -> dict[str, int]:
    """Return how many turns of contexts a job takes, at most, or 1: that is what it costs to simulate."""
    lengths = {p.name: p.slices.length for p in task_set.partitions if p.slices is not None}
    found = {}
    for task in task_set.tasks:
        sliced = (segment for segment in task.segments if segment.resource in lengths)
        found[task.name] = max(1, sum(-(-segment.wcet // lengths[segment.resource or ""]) for segment in sliced))
    return found


def _broken_rule(
    task_set: TaskSet, starts: Mapping[str, tuple[str, ...]], previous: JobPlan | None, job: JobPlan
) -> str | None:
    """Return the rule of the model that a job breaks, after the job of its task before it; None if it breaks none."""
    task = task_set.by_name.get(job.task)
    if task is None:
        return f"there is no task {job.task}"
    name = f"job {job.number} of task {job.task}"
    if job.number != (0 if previous is None else previous.number + 1):
        return f"{name} is not the next one"
    return _broken_arrival_rule(task, starts, previous, job, name) or _broken_time_rule(task, job, name)


def _broken_arrival_rule(
    task: GpuTask, starts: Mapping[str, tuple[str, ...]], previous: JobPlan | None, job: JobPlan, name: str
) -> str | None:
    if task.name in starts:
        if job.arrival or not 0 <= job.release <= task.jitter:  # data decides when it arrives
            return (
                f"{name} is started by data of {', '.join(starts[task.name])}, with a delay of 0..{task.jitter} ticks"
            )
        return None
    if task.offset is not None and job.arrival != task.offset + job.number * task.period:
        return f"{name} arrives at {job.arrival}, and the task is strictly periodic"
    if job.arrival < 0 or (previous is not None and job.arrival < previous.arrival + task.period):
        return f"{name} arrives too early, at {job.arrival}"
    if not job.arrival <= job.release <= job.arrival + task.jitter:  # jitter delays, it never advances
        return f"{name} arrives at {job.arrival} and is released at {job.release}"
    if previous is not None and job.release < previous.release:
        return f"{name} is released before the one before it"
    return None


def _broken_time_rule(task: GpuTask, job: JobPlan, name: str) -> str | None:
    delays = job.delays or (0,) * len(task.segments)
    if len(job.times) != len(task.segments) or len(delays) != len(task.segments):
        return f"{name} has {len(task.segments)} segments, not {len(job.times)} times and {len(delays)} delays"
    for number, (segment, time, delay) in enumerate(zip(task.segments, job.times, delays, strict=True), 1):
        if not 1 <= time <= segment.wcet:  # every segment takes a tick at least
            return f"segment {number} of {name} runs for {time} ticks, and 1..{segment.wcet} are allowed"
        if not 0 <= delay <= segment.delay:
            return f"segment {number} of {name} is launched in {delay} ticks, and 0..{segment.delay} are allowed"
    return None


@dataclass(frozen=True, slots=True)
class ServiceStretch:
    """A time for which `resource` serves a job without a break, in ticks.

    It runs segment `index` of the job, of this kind; or, if `is_spin`, it is a core whose thread waits for that.
    """

    resource: str
    kind: SegmentKind
    task: str
    job: int
    index: int
    start: int
    end: int
    is_spin: bool = False


class CompletedJob(NamedTuple):
    """A job that has ended, in ticks; `deadline` is absolute."""

    task: str
    number: int
    arrival: int
    release: int
    deadline: int
    completion: int

    @property
    def response(self) -> int:
        """Return the ticks from the arrival to the end."""
        return self.completion - self.arrival

    @property
    def slack(self) -> int:
        """Return the ticks from the end to the deadline; they are negative if it is missed."""
        return self.deadline - self.completion

    @property
    def is_late(self) -> bool:
        """Return whether the deadline is missed."""
        return self.completion > self.deadline


@dataclass(frozen=True)
class SimulatedRun:
    """The simulated schedule: all jobs in the order of their ends, all stretches in the order of theirs."""

    scenario: Scenario
    jobs: tuple[CompletedJob, ...]
    stretches: tuple[ServiceStretch, ...]

    @cached_property
    def responses(self) -> dict[str, int]:
        """Return the longest response of each task that has a job, in ticks."""
        found: dict[str, int] = {}
        for job in self.jobs:
            found[job.task] = max(found.get(job.task, 0), job.response)
        return found

    @cached_property
    def late(self) -> tuple[CompletedJob, ...]:
        """Return the jobs that miss their deadlines."""
        return tuple(job for job in self.jobs if job.is_late)

    def tightest(self, task: str | None = None) -> CompletedJob | None:
        """Return the job, of `task` or of any, with the least slack; None without a job."""
        return min((job for job in self.jobs if task in (None, job.task)), key=lambda job: job.slack, default=None)


@dataclass(slots=True, eq=False)
class _JobProgress:
    """A job on its way through its segments; `index` is the one that it is in."""

    job: JobPlan
    task: GpuTask
    index: int = 0
    spin: "_ServiceRequest | None" = None


@dataclass(slots=True, eq=False)
class _ServiceRequest:
    """A request for `left` ticks of a core or server; None means a core to spin on until it is withdrawn."""

    progress: _JobProgress
    left: int | None
    key: tuple[int, int, int]

    def __lt__(self, other: "_ServiceRequest") -> bool:
        return self.key < other.key


class _SimulatedResource:
    """A core or a server with what waits, the most urgent first, and what runs."""

    def __init__(self, name: str, policy: ServerPolicy, *, preemptive: bool) -> None:
        self.name, self.policy, self.preemptive = name, policy, preemptive
        self.waiting: list[_ServiceRequest] = []
        self.running: _ServiceRequest | None = None
        self.since = 0
        self.end: int | None = None  # when what runs ends, unless it is preempted or spins

    def stop(self, now: int) -> tuple[_ServiceRequest, ServiceStretch]:
        """Stop what runs, and return it with its stretch."""
        piece = self.running
        if piece is None:
            raise ValueError(f"nothing runs on {self.name}")
        self.running = self.end = None
        if piece.left is not None:
            piece.left -= now - self.since  # the rest is what a preempted segment still has to run
        job, index = piece.progress.job, piece.progress.index
        kind = piece.progress.task.segments[index].kind
        return piece, ServiceStretch(self.name, kind, job.task, job.number, index, self.since, now, piece.left is None)

    def withdraw(self, piece: _ServiceRequest, now: int) -> ServiceStretch | None:
        """Let a thread spin no longer; return its last stretch if it runs."""
        if self.running is piece:
            return self.stop(now)[1]
        self.waiting.remove(piece)
        heapify(self.waiting)  # `remove` breaks the order of the heap
        return None

    def choose(self, now: int) -> ServiceStretch | None:
        """Let the most urgent request run; return the stretch that ends if it preempts another."""
        ended = None
        if self.preemptive and self.running is not None and self.waiting and self.waiting[0] < self.running:
            piece, ended = self.stop(now)
            heappush(self.waiting, piece)
        if self.running is None and self.waiting:
            self.running, self.since = heappop(self.waiting), now
            self.end = None if self.running.left is None else now + self.running.left
        return ended


class _SlicedPartition(_SimulatedResource):
    """A partition that contexts take in turn; a context queues when its work comes or its turn is over.

    A switch always takes as long as it may; what runs after it is on the partition from the start of the switch on.
    """

    def __init__(self, name: str, policy: ServerPolicy, slices: Slices) -> None:
        super().__init__(name, policy, preemptive=False)
        self.slices = slices
        self.queue: list[str | None] = []
        self.context: str | None = None  # whose turn it is, or was last
        self.left = 0  # of the turn
        self.stopped = -1

    def stop(self, now: int) -> tuple[_ServiceRequest, ServiceStretch]:
        """Stop what runs, and queue it for the next turn of its context if it is not done."""
        self.left -= now - self.since
        self.stopped = now
        piece, stretch = super().stop(now)
        if piece.left:
            heappush(self.waiting, piece)
        return piece, stretch

    def choose(self, now: int) -> None:
        """Continue the turn that has begun, or begin the turn of the next context."""
        for piece in sorted(self.waiting):
            if (context := piece.progress.task.context) != self.context and context not in self.queue:
                self.queue.append(context)
        if self.running is not None:
            return
        own = [piece for piece in self.waiting if piece.progress.task.context == self.context]
        self.since = now
        # its turn is over: no work left, slice used up, or a pause in it
        if not (own and self.left and self.stopped == now):
            self.queue += [self.context] * bool(own)  # with work left it goes behind all others
            if (context := self.queue.pop(0)) != self.context:
                self.since += self.slices.switch if self.context is not None else 0
            self.context, self.left = context, self.slices.length
        self.running = min(piece for piece in self.waiting if piece.progress.task.context == self.context)
        self.waiting.remove(self.running)
        heapify(self.waiting)
        self.end = self.since + min(self.left, self.running.left or 0)  # the slice begins after the switch


class _Simulation:
    """All cores and servers, and the jobs on their way through them."""

    def __init__(self, scenario: Scenario) -> None:
        self.rank = {name: rank for rank, name in enumerate(scenario.order)}
        fixed, task_set = ServerPolicy.FIXED_PRIORITY, scenario.task_set
        self.cores = {name: _SimulatedResource(core_label(name), fixed, preemptive=True) for name in task_set.cores}
        self.servers: dict[str, _SimulatedResource] = {
            server.name: _SimulatedResource(server.resource, server.policy, preemptive=False)
            for server in task_set.servers
        }
        for partition in task_set.partitions:  # those that contexts take in turn replace plain servers
            if partition.slices is not None:
                self.servers[partition.name] = _SlicedPartition(partition.resource, partition.policy, partition.slices)
        self.resources = (*self.cores.values(), *self.servers.values())
        self.coming: list[tuple[int, int, str, Callable[[int], None]]] = []  # of a task the earlier job first
        self.sources = scenario.starts
        self.followers: dict[str, list[str]] = {}
        for name, sources in scenario.starts.items():
            for source in sources:
                self.followers.setdefault(source, []).append(name)
        self.started: dict[tuple[str, int], _JobProgress] = {}
        for job in scenario.jobs:
            progress = _JobProgress(job, task_set.by_name[job.task])
            if job.task in scenario.starts:
                self.started[job.task, job.number] = progress
            else:
                self._plan(job.release, progress, self._begin)
        self.data: dict[tuple[str, int], int] = {}
        self.released: dict[str, int] = {}
        self.ready: dict[tuple[str, int], int] = {}
        self.completed: list[CompletedJob] = []
        self.stretches: list[ServiceStretch] = []

    @property
    def next(self) -> int | None:
        """Return the next instant at which something ends, is released or becomes ready."""
        instants = [resource.end for resource in self.resources if resource.end is not None]
        return min((*instants, self.coming[0][0]) if self.coming else instants, default=None)

    def end_segments(self, now: int) -> None:
        """Let jobs whose segment ends now go on to their next one."""
        for resource in self.resources:
            if resource.end == now:
                piece, stretch = resource.stop(now)
                self.stretches.append(stretch)
                if not piece.left:  # else its slice has ended, or it spins no longer
                    self._go_on(piece.progress, now)

    def come(self, now: int) -> None:
        """Begin with the jobs that are released now, and queue the segments that become ready."""
        while self.coming and self.coming[0][0] == now:
            heappop(self.coming)[-1](now)

    def choose(self, now: int) -> None:
        """Let every core and server choose what runs from now on."""
        for resource in self.resources:
            if resource.waiting and (ended := resource.choose(now)) is not None:
                self.stretches.append(ended)

    def _plan(self, instant: int, progress: _JobProgress, action: Callable[[_JobProgress, int], None]) -> None:
        later: Callable[[int], None] = partial(action, progress)
        heappush(self.coming, (instant, progress.job.number, progress.job.task, later))

    def _begin(self, progress: _JobProgress, now: int) -> None:
        """Launch the current segment now that what comes before it has ended, and spin meanwhile."""
        job, task, index = progress.job, progress.task, progress.index
        delay = job.delays[index] if job.delays else 0
        # jobs of a task keep their order
        ready = self.ready[job.task, index] = max(now + delay, self.ready.get((job.task, index), 0))
        if task.spins and task.segments[index].kind is not SegmentKind.CPU:
            progress.spin = self._ask(self.cores[task.core or ""], progress, None, now)
        if ready > now:
            self._plan(ready, progress, self._queue)
        else:
            self._queue(progress, now)

    def _queue(self, progress: _JobProgress, now: int) -> None:
        segment, core = progress.task.segments[progress.index], progress.task.core or ""
        resource = self.cores[core] if segment.kind is SegmentKind.CPU else self.servers[segment.resource or ""]
        self._ask(resource, progress, progress.job.times[progress.index], now)

    def _ask(self, resource: _SimulatedResource, progress: _JobProgress, left: int | None, now: int) -> _ServiceRequest:
        job = progress.job
        key = (_urgency_key(resource.policy, progress.task, job, now), self.rank[job.task], job.number)
        piece = _ServiceRequest(progress, left, key)
        heappush(resource.waiting, piece)
        return piece

    def _go_on(self, progress: _JobProgress, now: int) -> None:
        job, task = progress.job, progress.task
        if progress.spin is not None:
            if (spun := self.cores[task.core or ""].withdraw(progress.spin, now)) is not None:
                self.stretches.append(spun)
            progress.spin = None
        progress.index += 1
        if progress.index < len(task.segments):
            self._begin(progress, now)
            return
        deadline = job.arrival + task.deadline
        self.completed.append(CompletedJob(job.task, job.number, job.arrival, job.release, deadline, now))
        for name in self.followers.get(job.task, ()):
            self._start_by_data(name, job.number, now)

    def _start_by_data(self, name: str, number: int, now: int) -> None:
        """Count one more job that has ended of those that start a job by data."""
        ended = self.data[name, number] = self.data.get((name, number), 0) + 1
        if ended == len(self.sources[name]):  # it waits for the last of all that start it
            progress = self.started[name, number]
            release = max(now + progress.job.release, self.released.get(name, 0))
            self.released[name] = release
            progress.job = progress.job._replace(arrival=now, release=release)
            self._plan(release, progress, self._begin)


def _urgency_key(policy: ServerPolicy, task: GpuTask, job: JobPlan, now: int) -> int:
    """Return a key, the least first; `now` is when the segment is ready."""
    if policy is ServerPolicy.EDF:
        return job.arrival + task.deadline
    if policy is ServerPolicy.EDF_RELEASE:
        return job.release + task.deadline - task.jitter  # who sees only releases takes each for the latest possible
    if policy is ServerPolicy.FIFO:
        return now
    if task.priority is None:
        raise ValueError(f"task {task.name} has no priority")
    return -task.priority


def simulate(scenario: Scenario) -> SimulatedRun:
    """Follow the scenario until its last job has ended."""
    system = _Simulation(scenario)
    while (now := system.next) is not None:
        # this order is the rule: all that ends or comes at an instant is there when choices are made
        system.end_segments(now)
        system.come(now)
        system.choose(now)
    stretches = sorted(system.stretches, key=lambda stretch: (stretch.end, stretch.start, stretch.resource))
    return SimulatedRun(scenario, tuple(system.completed), tuple(stretches))
