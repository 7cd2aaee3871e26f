"""Scenarios for the simulation: critical instants of the literature, the hyperperiod, random ones and variations.

Critical instants are expected to make tasks late. A `JobPattern` says how the jobs of one task come and run.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import cycle, islice
from math import lcm
from random import Random
from typing import NamedTuple

from makespan.deadlines.chains import heads, predecessors
from makespan.deadlines.simulation import CompletedJob, JobPlan, Scenario, SimulatedRun, turns_per_job
from makespan.deadlines.task import MAX_SEGMENTS, GpuTask, JobSegment, SegmentKind, ServerPolicy, TaskSet

_HIGH, _FALLING = 0.5, 0.75
"""Up to these shares, times of random scenarios are always the longest, or the longest at first and then the least."""


@dataclass(frozen=True, slots=True)
class JobPattern:
    """A pattern of how the jobs of one task come and run; all in ticks.

    Args:
        first: The first arrival.
        gaps: How much later than the period each next job arrives.
        waits: The time from arrival to release, for each job.
        times: For how long each job runs in each of its segments.
        delays: How long each launch of a job takes.
    """

    first: int
    gaps: tuple[int, ...]
    waits: tuple[int, ...]
    times: tuple[tuple[int, ...], ...]
    delays: tuple[tuple[int, ...], ...]

    def jobs(self, task: GpuTask) -> Iterator[JobPlan]:
        """Yield the jobs; a job is not released before the one before it."""
        arrival, released = self.first, 0
        rows = zip(self.gaps, self.waits, self.times, self.delays, strict=True)
        for number, (gap, wait, times, delays) in enumerate(rows):
            arrival += gap
            released = max(released, arrival + wait)  # releases of a task keep the order of arrivals
            yield JobPlan(task.name, number, arrival, released, times, delays)
            arrival += task.period


def random_scenario(task_set: TaskSet, random: Random, most_jobs: int, words: str) -> Scenario:
    """Return random phases, gaps, jitter and execution times, each extreme in some tasks."""
    until = arrival_limit(task_set, busy_time(task_set), most_jobs)  # about as long as resources stay busy
    patterns = {task.name: _random_pattern(task, random, until) for task in task_set.tasks}
    order = list(task_set.by_name)
    random.shuffle(order)
    return scenario_of(task_set, patterns, tuple(order), words)


def _random_pattern(task: GpuTask, random: Random, until: int) -> JobPattern:
    first = random.choice((0, random.randint(0, task.period))) if task.offset is None else task.offset
    count = max(1, -(-(until - first) // task.period))
    is_tight = task.offset is not None or random.random() < 0.6  # bursts make jobs late, gaps seldom do
    gaps = tuple(0 if is_tight or random.random() < 0.7 else random.randint(0, task.period) for _ in range(count))
    habit = random.choice(("none", "first", "any"))
    waits = tuple(_random_wait(task, random, habit, number) for number in range(count))
    times = tuple(_column(random, least_time(segment), segment.wcet, count) for segment in task.segments)
    delays = tuple(_column(random, 0, segment.delay, count) for segment in task.segments)
    return JobPattern(first, gaps, waits, tuple(zip(*times, strict=True)), tuple(zip(*delays, strict=True)))


def _random_wait(task: GpuTask, random: Random, habit: str, number: int) -> int:
    if habit == "none" or (habit == "first" and number):
        return 0
    return task.jitter if habit == "first" else random.choice((0, task.jitter, random.randint(0, task.jitter)))


def least_time(segment: JobSegment) -> int:
    """Return the shortest time of a segment in scenarios; a time that is shown is not known to be ever shorter."""
    return 1 if segment.attained is None else segment.wcet  # a refutation may only use times that are possible


def _column(random: Random, low: int, high: int, count: int) -> tuple[int, ...]:
    """Return one value for each job: always one extreme, the high one and then the low one, or a mixture."""
    habit = random.random()
    if low == high or habit < _HIGH:
        return (high,) * count
    if habit < _FALLING:
        until = random.randrange(count)
        return tuple(high if number <= until else low for number in range(count))
    return tuple(random.choice((low, high, random.randint(low, high))) for _ in range(count))


def vary_scenario(run: SimulatedRun, job: CompletedJob, random: Random, words: str) -> Scenario:
    """Return the same scenario with one to three changes, of what comes before the end of `job`."""
    scenario = run.scenario
    patterns = _patterns(scenario)
    order = list(scenario.order)
    for _ in range(random.randint(1, 3)):
        name = random.choice(order)
        task = scenario.task_set.by_name[name]
        before = [other.number for other in run.jobs if other.task == name and other.arrival < job.completion]
        at = random.randint(0, max(before, default=0))
        change = random.randrange(5)
        if change == 0:  # who goes first among equals
            order.remove(name)
            order.insert(random.choice((0, len(order))), name)
        elif change == 1 and task.offset is None and name not in scenario.starts:
            patterns[name] = _shift_arrivals(patterns[name], scenario, random)
        elif change == 2 and task.offset is None and name not in scenario.starts:
            gap, old = random.choice((0, 1, random.randint(0, task.period))), patterns[name].gaps
            patterns[name] = replace(patterns[name], gaps=(*old[:at], gap if at else 0, *old[at + 1 :]))
        else:
            patterns[name] = _change_job(patterns[name], task, random, at)  # always legal, whatever the task
    return scenario_of(scenario.task_set, patterns, tuple(order), words)


def _patterns(scenario: Scenario) -> dict[str, JobPattern]:
    by_task: dict[str, list[JobPlan]] = {name: [] for name in scenario.task_set.by_name}
    for job in scenario.jobs:
        by_task[job.task].append(job)
    return {name: _pattern(scenario.task_set.by_name[name], jobs) for name, jobs in by_task.items()}


def _pattern(task: GpuTask, jobs: list[JobPlan]) -> JobPattern:
    first = jobs[0].arrival
    expected = (first, *(job.arrival + task.period for job in jobs))
    return JobPattern(
        first,
        tuple(max(0, job.arrival - least) for job, least in zip(jobs, expected, strict=False)),
        tuple(job.release - job.arrival for job in jobs),
        tuple(job.times for job in jobs),
        tuple(job.delays or (0,) * len(task.segments) for job in jobs),
    )


def _shift_arrivals(pattern: JobPattern, scenario: Scenario, random: Random) -> JobPattern:
    """Return all jobs earlier or later, by a little or such that two releases meet or just miss each other."""
    other = random.choice(scenario.jobs)
    mine = pattern.first + pattern.waits[0]
    step = random.choice((other.release - mine + random.randint(-1, 1), random.randint(-3, 3)))
    return replace(pattern, first=max(0, pattern.first + step))


def _change_job(pattern: JobPattern, task: GpuTask, random: Random, at: int) -> JobPattern:
    """Return the pattern with another release, launch delay or execution time of one job."""
    if task.jitter and random.random() < 0.5:
        wait = random.choice((0, task.jitter, random.randint(0, task.jitter)))
        return replace(pattern, waits=(*pattern.waits[:at], wait, *pattern.waits[at + 1 :]))
    index = random.randrange(len(task.segments))
    segment = task.segments[index]
    if segment.delay and random.random() < 0.5:
        return replace(pattern, delays=_change_rows(pattern.delays, at, index, random, 0, segment.delay))
    return replace(pattern, times=_change_rows(pattern.times, at, index, random, least_time(segment), segment.wcet))


def _change_rows(
    rows: tuple[tuple[int, ...], ...], at: int, index: int, random: Random, low: int, high: int
) -> tuple[tuple[int, ...], ...]:
    """Return the rows with another value of one segment in one job, or in it and in all later ones."""
    value = random.choice((low, high, random.randint(low, high)))
    until = random.choice((at + 1, len(rows)))
    return tuple(
        (*row[:index], value, *row[index + 1 :]) if at <= number < until else row for number, row in enumerate(rows)
    )


def full_pattern(task: GpuTask, first: int, release: int, until: int) -> JobPattern:
    """Return jobs from `first` on, one a period before `until`, that wait for `release` and take all that they may."""
    count = max(1, -(-(until - first) // task.period))
    waits = tuple(min(task.jitter, max(0, release - first - k * task.period)) for k in range(count))
    times = tuple(segment.wcet for segment in task.segments)
    delays = tuple(segment.delay for segment in task.segments)
    return JobPattern(first, (0,) * count, waits, (times,) * count, (delays,) * count)


def quick_pattern(task: GpuTask, pattern: JobPattern, until: int) -> JobPattern:
    """Return jobs that, after the first, take no longer than they must up to the launch of segment `until`."""
    times = tuple(least_time(segment) if at < until else segment.wcet for at, segment in enumerate(task.segments))
    delays = tuple(0 if at <= until else segment.delay for at, segment in enumerate(task.segments))
    later = len(pattern.times) - 1
    return replace(
        pattern,
        waits=(pattern.waits[0], *(0,) * later),
        times=(pattern.times[0], *(times,) * later),
        delays=(pattern.delays[0], *(delays,) * later),
    )


def packed_pattern(task: GpuTask, release: int, until: int) -> JobPattern:
    """Return jobs of which the first is released at `release`, as late as allowed, and the others as early."""
    if task.offset is not None:
        return full_pattern(task, task.offset, release, until)  # its arrivals are fixed
    return full_pattern(task, max(0, release - task.jitter), release, until)


def scenario_of(task_set: TaskSet, patterns: Mapping[str, JobPattern], order: tuple[str, ...], words: str) -> Scenario:
    """Return a scenario of the jobs of all patterns; of tasks that are started by data, as many as start them."""
    jobs = {name: tuple(pattern.jobs(task_set.by_name[name])) for name, pattern in patterns.items()}
    for follower, sources in predecessors(task_set).items():  # sources first, so that their jobs are counted already
        jobs[follower] = _jobs_started_by_data(follower, patterns[follower], len(jobs[sources[0]]))
    return Scenario(task_set, tuple(job for several in jobs.values() for job in several), order, words)


def _jobs_started_by_data(name: str, pattern: JobPattern, count: int) -> tuple[JobPlan, ...]:
    """Return jobs of unknown arrival that repeat the rows of a pattern."""
    rows = islice(cycle(zip(pattern.waits, pattern.times, pattern.delays, strict=True)), count)
    return tuple(JobPlan(name, number, 0, *row) for number, row in enumerate(rows))


def busy_time(task_set: TaskSet) -> int:
    """Return about how many ticks resources stay busy after a common release, as a hint how far to look."""
    work = sum(segment.wcet + segment.delay for task in task_set.tasks for segment in task.segments)
    longest = max(task.period + task.deadline for task in task_set.tasks)
    return 2 * work + longest


def arrival_limit(task_set: TaskSet, wanted: int, most_jobs: int) -> int:
    """Return the time up to which jobs arrive, `wanted` or less: `most_jobs` bounds the jobs, or turns of them."""
    costs = turns_per_job(task_set)

    def jobs(until: int) -> int:
        return sum((until // task.period + 1) * costs[task.name] for task in task_set.tasks)

    if jobs(wanted) <= most_jobs:
        return wanted
    alone = min(task.period * (most_jobs // costs[task.name] + 1) for task in task_set.tasks)
    low, high = 0, min(wanted, alone)  # jobs(high) > most_jobs
    while high - low > 1:  # bisect: the number of jobs never falls with the time
        middle = (low + high) // 2
        low, high = (middle, high) if jobs(middle) <= most_jobs else (low, middle)
    return low


MOST_JOBS = 400
_MOST_SHIFTS = 12
_EDF = (ServerPolicy.EDF, ServerPolicy.EDF_RELEASE)


def hyperperiod(task_set: TaskSet) -> int:
    """Return the least time after which the pattern of strictly periodic arrivals repeats, in ticks."""
    return lcm(*(task.period for task in task_set.tasks))


def periodic_scenario(task_set: TaskSet, *, most_jobs: int = MOST_JOBS) -> Scenario:
    """Return one hyperperiod of strictly periodic tasks, no jitter, full execution times.

    Tasks arrive from their offsets or from 0. With different offsets the scenario lasts for two hyperperiods after the
    last one. Longer ones are cut at `most_jobs` jobs, and the words of the scenario say so.
    """
    offsets = [task.offset or 0 for task in task_set.tasks]
    length = hyperperiod(task_set)  # the pattern repeats only after all offsets and the first hyperperiod
    until = max(offsets) + (length if len(set(offsets)) == 1 else 2 * length)
    cut = arrival_limit(task_set, until, most_jobs)
    words = "periodic from the offsets" if any(offsets) else "synchronous periodic release"
    words += f", {'the hyperperiod' if len(set(offsets)) == 1 else 'two hyperperiods'} of {length} ticks"
    if cut < until:
        words += f" cut at {cut} ticks, {most_jobs} jobs"
    patterns = {task.name: full_pattern(task, task.offset or 0, task.offset or 0, cut) for task in task_set.tasks}
    return scenario_of(task_set, patterns, tuple(task_set.by_name), words)


def critical_scenarios(task_set: TaskSet, name: str, *, most_jobs: int = MOST_JOBS) -> Iterator[Scenario]:
    """Yield the instants at which analyses expect the worst for a task; all jobs take as long as allowed.

    All are released at once, as late as jitter allows, and from then on as soon as periods allow; then again, one tick
    after the longest of what would have to wait for the task on its first server has begun. Under EDF the task's own
    release may have to come later, such that its deadline meets that of another job. FIFO needs no more than the common
    release. Then the same for each segment of the task: all that it meets there are released such that they are ready
    with it if nothing hinders them; and with later jobs that come there as quickly as they can, which is what jitter
    does to releases. Strictly periodic tasks arrive at their offsets all the same.

    Source: George, Rivierre and Spuri, INRIA RR-2966, 1996, for both policies; Tindell and Clark, Microprocessing and
    Microprogramming 40, 1994, for jitter and for what comes before a segment.
    """
    visits = _visits(task_set)
    own = [visit for visit in visits if visit.task.name == name]
    first = next((visit for visit in own if not visit.is_on_core), own[0])
    words = "common release" + ", as late as jitter allows" * any(task.jitter for task in task_set.tasks)
    yield from _Meeting(task_set, first, visits, most_jobs).scenarios(words)
    yield periodic_scenario(task_set, most_jobs=most_jobs)
    for visit in own:
        meeting = _Meeting(task_set, visit, visits, most_jobs, is_aimed=True)
        if any(met.ready for met in meeting.met.values()):
            words = f"meeting in segment {visit.at + 1} of {name}"
            yield from meeting.scenarios(words)
            yield from meeting.scenarios(f"{words}, later jobs quick until there", is_bunched=True)


class _SegmentVisit(NamedTuple):
    """A segment of a family, with the ticks from the releases of its head and its job until it is ready, unhindered."""

    task: GpuTask
    head: GpuTask
    before: tuple[str, ...]
    at: int
    ready: int
    ready_in_job: int

    @property
    def segment(self) -> JobSegment:
        return self.task.segments[self.at]

    @property
    def is_on_core(self) -> bool:
        return self.segment.kind is SegmentKind.CPU

    @property
    def resource(self) -> tuple[bool, str | None]:
        """Return whether it is on a core, and the name of its core or server."""
        return self.is_on_core, self.task.core if self.is_on_core else self.segment.resource


def _visits(task_set: TaskSet) -> list[_SegmentVisit]:
    starts = predecessors(task_set)
    first = heads(starts)
    found: list[_SegmentVisit] = []
    ends: dict[str, int] = {}
    before: dict[str, tuple[str, ...]] = {}
    for name in (*(name for name in task_set.by_name if name not in starts), *starts):
        task, sources = task_set.by_name[name], starts.get(name, ())
        before[name] = tuple({*sources}.union(*(before[source] for source in sources)))
        released = now = max((ends[source] + task.jitter for source in sources), default=0)
        for at, segment in enumerate(task.segments):
            now += segment.delay
            head = task_set.by_name[first.get(name, name)]
            found.append(_SegmentVisit(task, head, before[name], at, now, now - released))
            now += segment.wcet
        ends[name] = now
    return found


class _Meeting:
    """A segment of a task, `mine`, and what it meets on its resource.

    Args:
        is_aimed: Whether heads are released such that all would be ready at once there, not released at once.
        met: The longest segment there of each family that comes there.
    """

    def __init__(
        self,
        task_set: TaskSet,
        mine: _SegmentVisit,
        visits: Sequence[_SegmentVisit],
        most_jobs: int,
        *,
        is_aimed: bool = False,
    ) -> None:
        self.task_set, self.mine, self.is_aimed = task_set, mine, is_aimed
        self.started = {visit.task.name for visit in visits if visit.before}
        self.there = [visit for visit in visits if visit.resource == mine.resource]
        longest = sorted(self.there, key=lambda visit: visit.segment.wcet)  # the last one of a family stays in `met`
        self.met = {visit.head.name: visit for visit in longest} | {mine.head.name: mine}
        policies = {server.name: server.policy for server in task_set.servers}
        self.policy = policies.get(mine.segment.resource or "", ServerPolicy.FIXED_PRIORITY)
        # so that every release and blocker before it is at 0 or later
        self.start = 1 + max(task.jitter for task in task_set.tasks) + max(visit.ready for visit in visits)
        self.until = arrival_limit(task_set, self.start + busy_time(task_set), most_jobs)

    def scenarios(self, words: str, *, is_bunched: bool = False) -> Iterator[Scenario]:
        """Yield a scenario for each useful release of the task, and one more after a blocker has begun."""
        name, head = self.mine.task.name, self.mine.head
        order = (*(other for other in self.task_set.by_name if other != name), name)
        patterns = {task.name: self._start_pattern(task) for task in self.task_set.tasks}
        for shift in self._shifts():
            release = self._release(head) + shift % head.period
            changed = patterns | {head.name: _latest_pattern(head, self.policy, release, self.until + head.period)}
            said = words + (f", {name} {shift} ticks later" if shift else "")
            yield scenario_of(self.task_set, self._bunched(changed) if is_bunched else changed, order, said)
            for blocker in self._blockers(shift):
                # begun a tick before, as in the proof of theorem 1
                changed[blocker.head.name] = packed_pattern(blocker.head, self.start - 1 - blocker.ready, self.until)
                said += f", one tick after the {blocker.segment.kind} of {blocker.task.name} has begun"
                yield scenario_of(self.task_set, self._bunched(changed) if is_bunched else changed, order, said)

    def _start_pattern(self, task: GpuTask) -> JobPattern:
        """Return jobs of which the first is as late as allowed; those that data starts are always late."""
        pattern = packed_pattern(task, self._release(task), self.until)
        return replace(pattern, waits=(task.jitter,) * len(pattern.waits)) if task.name in self.started else pattern

    def _release(self, task: GpuTask) -> int:
        return self.start - (self.met[task.name].ready if self.is_aimed and task.name in self.met else 0)

    def _bunched(self, patterns: Mapping[str, JobPattern]) -> dict[str, JobPattern]:
        """Return patterns in which the first jobs take their time until there, and later ones do not."""
        found = dict(patterns)
        for visit in self.met.values():
            for name in visit.before:
                found[name] = quick_pattern(self.task_set.by_name[name], found[name], MAX_SEGMENTS)
            found[visit.task.name] = quick_pattern(visit.task, found[visit.task.name], visit.at)
        return found

    def _due(self, visit: _SegmentVisit) -> int:
        """Return the ticks from the meeting until the absolute deadline."""
        return visit.task.deadline - visit.task.jitter - (visit.ready_in_job if self.is_aimed else 0)

    def _rivals(self) -> list[_SegmentVisit]:
        return [visit for visit in self.there if visit.head is not self.mine.head]

    def _shifts(self) -> list[int]:
        """Return how much later than all others the task may be ready to meet the deadline of another's job."""
        if self.policy not in _EDF:  # elsewhere urgency does not depend on the release
            return [0]
        due, length, found = self._due(self.mine), self.until - self.start, {0}
        for visit in self._rivals():
            jobs = min(MOST_JOBS, length // visit.task.period + 1)
            found.update(k * visit.task.period + self._due(visit) - due for k in range(jobs))
        return sorted(shift for shift in found if 0 <= shift <= length)[:_MOST_SHIFTS]

    def _blockers(self, shift: int) -> list[_SegmentVisit]:
        """Return the longest of what would have to wait for the task; a FIFO server and a core have none."""
        others = [visit for visit in self._rivals() if visit.head.offset is None]
        if self.mine.is_on_core or self.policy is ServerPolicy.FIFO:
            return []
        if self.policy is ServerPolicy.FIXED_PRIORITY:
            others = [visit for visit in others if (visit.task.priority or 0) < (self.mine.task.priority or 0)]
        else:
            others = [visit for visit in others if self._due(visit) > shift + self._due(self.mine)]
        return sorted(others, key=lambda visit: -visit.segment.wcet)[:1]


def _latest_pattern(task: GpuTask, policy: ServerPolicy, release: int, until: int) -> JobPattern:
    """Return `packed_pattern`, but by EDF a full jitter, which does not move the deadline and so helps."""
    if policy is ServerPolicy.EDF and task.offset is None:
        return full_pattern(task, release - task.jitter, release, until)
    return packed_pattern(task, release, until)
