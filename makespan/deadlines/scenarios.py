"""Scenarios that are expected to make tasks late: critical instants of the literature, and the hyperperiod."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import lcm
from typing import NamedTuple

from makespan.deadlines.chains import heads, predecessors
from makespan.deadlines.courses import (
    JobPattern,
    arrival_limit,
    busy_time,
    full_pattern,
    packed_pattern,
    quick_pattern,
    scenario_of,
)
from makespan.deadlines.simulation import Scenario
from makespan.deadlines.task import MAX_SEGMENTS, GpuTask, JobSegment, SegmentKind, ServerPolicy, TaskSet

MOST_JOBS = 400
_MOST_SHIFTS = 12
_EDF = (ServerPolicy.EDF, ServerPolicy.EDF_RELEASE)


def hyperperiod(task_set: TaskSet) -> int:
    """Return the least time after which the pattern of strictly periodic arrivals repeats, in ticks."""
    return lcm(*(task.period for task in task_set.tasks))


def periodic_scenario(task_set: TaskSet, *, most_jobs: int = MOST_JOBS) -> Scenario:
    """Every task strictly periodic from its offset or from 0, no jitter, full execution times, for one hyperperiod.

    With different offsets for two hyperperiods after the last one. Longer ones are cut at `most_jobs` jobs, and the
    words of the scenario say so.
    """
    offsets = [task.offset or 0 for task in task_set.tasks]
    length = hyperperiod(task_set)
    until = max(offsets) + (length if len(set(offsets)) == 1 else 2 * length)
    cut = arrival_limit(task_set, until, most_jobs)
    words = "periodic from the offsets" if any(offsets) else "synchronous periodic release"
    words += f", {'the hyperperiod' if len(set(offsets)) == 1 else 'two hyperperiods'} of {length} ticks"
    if cut < until:
        words += f" cut at {cut} ticks, {most_jobs} jobs"
    courses = {task.name: full_pattern(task, task.offset or 0, task.offset or 0, cut) for task in task_set.tasks}
    return scenario_of(task_set, courses, tuple(task_set.by_name), words)


def critical_scenarios(task_set: TaskSet, name: str, *, most_jobs: int = MOST_JOBS) -> Iterator[Scenario]:
    """Yield the instants at which analyses expect the worst for a task; everybody takes for as long as allowed.

    Everybody is released at once, as late as jitter allows, and from then on as soon as periods allow; then again, one
    tick after what the task has to wait for on its first server has begun: the longest of what would have to wait for
    it. Under EDF the task's own release may have to come later, such that its deadline meets that of another job. FIFO
    needs no more than the common release. Then the same for each segment of the task: all that it meets there are
    released such that they are ready with it if nobody hinders them; and with later jobs that come there as quickly
    as they can, which is what jitter does to releases. Strictly periodic tasks arrive at their offsets all the same.

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
    """A segment of a family, with ticks from the releases of its head and of its job until it is ready, unhindered."""

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
    def place(self) -> tuple[bool, str | None]:
        """Return its core, or its server."""
        return self.is_on_core, self.task.core if self.is_on_core else self.segment.place


def _visits(task_set: TaskSet) -> list[_SegmentVisit]:
    """Return all segments; those of a task in their order."""
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
    """One segment of a task, `mine`, and what it meets there.

    Args:
        is_aimed: whether heads are released such that all would be ready at once there, not released at once.
        met: of each family that comes there, its longest segment there.
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
        self.there = [visit for visit in visits if visit.place == mine.place]
        longest = sorted(self.there, key=lambda visit: visit.segment.wcet)
        self.met = {visit.head.name: visit for visit in longest} | {mine.head.name: mine}
        policies = {server.name: server.policy for server in task_set.servers}
        self.policy = policies.get(mine.segment.place or "", ServerPolicy.FIXED_PRIORITY)
        self.start = 1 + max(task.jitter for task in task_set.tasks) + max(visit.ready for visit in visits)
        self.until = arrival_limit(task_set, self.start + busy_time(task_set), most_jobs)

    def scenarios(self, words: str, *, is_bunched: bool = False) -> Iterator[Scenario]:
        """With each useful release of the task, without and with something that has just begun."""
        name, head = self.mine.task.name, self.mine.head
        order = (*(other for other in self.task_set.by_name if other != name), name)
        courses = {task.name: self._course(task) for task in self.task_set.tasks}
        for shift in self._shifts():
            release = self._release(head) + shift % head.period
            changed = courses | {head.name: _latest_pattern(head, self.policy, release, self.until + head.period)}
            said = words + (f", {name} {shift} ticks later" if shift else "")
            yield scenario_of(self.task_set, self._bunched(changed) if is_bunched else changed, order, said)
            for blocker in self._blockers(shift):
                changed[blocker.head.name] = packed_pattern(blocker.head, self.start - 1 - blocker.ready, self.until)
                said += f", one tick after the {blocker.segment.kind} of {blocker.task.name} has begun"
                yield scenario_of(self.task_set, self._bunched(changed) if is_bunched else changed, order, said)

    def _course(self, task: GpuTask) -> JobPattern:
        """First as late as allowed, then as early; what data starts, always late."""
        course = packed_pattern(task, self._release(task), self.until)
        return replace(course, waits=(task.jitter,) * len(course.waits)) if task.name in self.started else course

    def _release(self, task: GpuTask) -> int:
        return self.start - (self.met[task.name].ready if self.is_aimed and task.name in self.met else 0)

    def _bunched(self, courses: Mapping[str, JobPattern]) -> dict[str, JobPattern]:
        """Return the first jobs take their time to come there, later ones do not."""
        found = dict(courses)
        for visit in self.met.values():
            for name in visit.before:
                found[name] = quick_pattern(self.task_set.by_name[name], found[name], MAX_SEGMENTS)
            found[visit.task.name] = quick_pattern(visit.task, found[visit.task.name], visit.at)
        return found

    def _due(self, visit: _SegmentVisit) -> int:
        """From the meeting until the absolute deadline."""
        return visit.task.deadline - visit.task.jitter - (visit.ready_in_job if self.is_aimed else 0)

    def _rivals(self) -> list[_SegmentVisit]:
        return [visit for visit in self.there if visit.head is not self.mine.head]

    def _shifts(self) -> list[int]:
        """How much later than all others the task may be ready such that its deadline is that of another's job."""
        if self.policy not in _EDF:
            return [0]
        due, length, found = self._due(self.mine), self.until - self.start, {0}
        for visit in self._rivals():
            jobs = min(MOST_JOBS, length // visit.task.period + 1)
            found.update(k * visit.task.period + self._due(visit) - due for k in range(jobs))
        return sorted(shift for shift in found if 0 <= shift <= length)[:_MOST_SHIFTS]

    def _blockers(self, shift: int) -> list[_SegmentVisit]:
        """Of what would have to wait for the task, the longest; under FIFO nothing would, and a core preempts."""
        others = [visit for visit in self._rivals() if visit.head.offset is None]
        if self.mine.is_on_core or self.policy is ServerPolicy.FIFO:
            return []
        if self.policy is ServerPolicy.FIXED_PRIORITY:
            others = [visit for visit in others if (visit.task.priority or 0) < (self.mine.task.priority or 0)]
        else:
            others = [visit for visit in others if self._due(visit) > shift + self._due(self.mine)]
        return sorted(others, key=lambda visit: -visit.segment.wcet)[:1]


def _latest_pattern(task: GpuTask, policy: ServerPolicy, release: int, until: int) -> JobPattern:
    """Like `packed`; under EDF jitter does not move the deadline, so it still helps."""
    if policy is ServerPolicy.EDF and task.offset is None:
        return full_pattern(task, release - task.jitter, release, until)
    return packed_pattern(task, release, until)
