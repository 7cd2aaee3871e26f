"""How the jobs of tasks come and run, as values from which scenarios are made: extreme, at random, or varied."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import cycle, islice
from random import Random

from makespan.schedulability.chains import predecessors
from makespan.schedulability.simulation import Job, Scenario
from makespan.schedulability.task import Task, TaskSet

_SHARES = (1, 0.9, 0.5)
"""Of jobs that run for as long as they may, in random scenarios."""


@dataclass(frozen=True, slots=True)
class Course:
    """How the jobs of one task come and run; all in ticks.

    Args:
        first: the first arrival.
        gaps: how much later than the period each next job arrives.
        delays: from arrival to release.
        times: for how long each job runs, as before, kernel and after.
    """

    first: int
    gaps: tuple[int, ...]
    delays: tuple[int, ...]
    times: tuple[tuple[int, int, int], ...]

    def jobs(self, task: Task) -> Iterator[Job]:
        """The jobs; a job is not released before the one before it."""
        arrival, released = self.first, 0
        for number, (gap, delay, times) in enumerate(zip(self.gaps, self.delays, self.times, strict=True)):
            arrival += gap
            released = max(released, arrival + delay)
            yield Job(task.name, number, arrival, released, *times)
            arrival += task.period


def drawn(task_set: TaskSet, random: Random, most_jobs: int, words: str) -> Scenario:
    """Random phases, gaps, jitter and execution times, each extreme in some tasks."""
    until = cut_at(task_set, reach(task_set), most_jobs)
    courses = {task.name: _random_course(task, random, until) for task in task_set.tasks}
    order = list(task_set.by_name)
    random.shuffle(order)
    return scenario_of(task_set, courses, tuple(order), words)


def _random_course(task: Task, random: Random, until: int) -> Course:
    first = random.choice((0, random.randint(0, task.period))) if task.offset is None else task.offset
    count = max(1, -(-(until - first) // task.period))
    is_tight = task.offset is not None or random.random() < 0.6
    gaps = tuple(0 if is_tight or random.random() < 0.7 else random.randint(0, task.period) for _ in range(count))
    habit = random.choice(("none", "first", "any"))
    delays = tuple(_random_delay(task, random, habit, number) for number in range(count))
    share = random.choice(_SHARES)
    return Course(first, gaps, delays, tuple(_random_times(task, random, share) for _ in range(count)))


def _random_delay(task: Task, random: Random, habit: str, number: int) -> int:
    if habit == "none" or (habit == "first" and number):
        return 0
    return task.jitter if habit == "first" else random.choice((0, task.jitter, random.randint(0, task.jitter)))


def _random_times(task: Task, random: Random, share: float) -> tuple[int, int, int]:
    def some(most: int) -> int:
        return most if random.random() < share else random.randint(min(1, most), most)

    kernel = some(task.wcet) if task.attained is None else task.wcet  # nobody has shown that it can be shorter
    return some(task.before), kernel, some(task.after)


def varied(scenario: Scenario, random: Random, words: str) -> Scenario:
    """The same with one to three changes."""
    courses = _courses(scenario)
    order = list(scenario.order)
    for _ in range(random.randint(1, 3)):
        name = random.choice(order)
        task = scenario.task_set.by_name[name]
        change = random.randrange(5)
        if change == 0:
            order.remove(name)
            order.insert(random.choice((0, len(order))), name)
        elif change == 1 and task.offset is None:
            courses[name] = _moved(courses[name], scenario, random)
        elif change == 2 and task.offset is None:
            courses[name] = _stretched(courses[name], task, random)
        else:
            courses[name] = _job_changed(courses[name], task, random)
    return scenario_of(scenario.task_set, courses, tuple(order), words)


def _courses(scenario: Scenario) -> dict[str, Course]:
    """What the jobs of a scenario are made from."""
    by_task: dict[str, list[Job]] = {name: [] for name in scenario.task_set.by_name}
    for job in scenario.jobs:
        by_task[job.task].append(job)
    return {name: _course(scenario.task_set.by_name[name], jobs) for name, jobs in by_task.items()}


def _course(task: Task, jobs: list[Job]) -> Course:
    first = jobs[0].arrival
    expected = (first, *(job.arrival + task.period for job in jobs))
    return Course(
        first,
        tuple(max(0, job.arrival - least) for job, least in zip(jobs, expected, strict=False)),
        tuple(job.release - job.arrival for job in jobs),
        tuple((job.before, job.kernel, job.after) for job in jobs),
    )


def _moved(course: Course, scenario: Scenario, random: Random) -> Course:
    """All jobs earlier or later, by a little or such that two releases meet or just miss each other."""
    other = random.choice(scenario.jobs)
    mine = course.first + course.delays[0]
    step = random.choice((other.release - mine + random.randint(-1, 1), random.randint(-3, 3)))
    return replace(course, first=max(0, course.first + step))


def _stretched(course: Course, task: Task, random: Random) -> Course:
    """One job and all after it later, or as soon as the period allows."""
    at = random.randrange(len(course.gaps))
    gap = random.choice((0, 1, random.randint(0, task.period)))
    return replace(course, gaps=(*course.gaps[:at], gap if at else 0, *course.gaps[at + 1 :]))


def _job_changed(course: Course, task: Task, random: Random) -> Course:
    """Another release or other execution times of one job."""
    at = random.randrange(len(course.delays))
    if task.jitter and random.random() < 0.5:
        delay = random.choice((0, task.jitter, random.randint(0, task.jitter)))
        return replace(course, delays=(*course.delays[:at], delay, *course.delays[at + 1 :]))
    times = _random_times(task, random, random.choice((0.0, 0.5, 1.0)))
    return replace(course, times=(*course.times[:at], times, *course.times[at + 1 :]))


def full(task: Task, first: int, release: int, until: int) -> Course:
    """Jobs that arrive from `first` and before `until` every period, wait for `release`, and run for all they may."""
    count = max(1, -(-(until - first) // task.period))
    delays = tuple(min(task.jitter, max(0, release - first - k * task.period)) for k in range(count))
    return Course(first, (0,) * count, delays, ((task.before, task.wcet, task.after),) * count)


def packed(task: Task, release: int, until: int) -> Course:
    """The first job is released at `release`, as late as allowed, and the others as early as allowed."""
    if task.offset is not None:
        return full(task, task.offset, release, until)
    return full(task, max(0, release - task.jitter), release, until)


def scenario_of(task_set: TaskSet, courses: Mapping[str, Course], order: tuple[str, ...], words: str) -> Scenario:
    """The jobs of all courses together; of tasks that are started by data, as many as start them."""
    jobs = {name: tuple(course.jobs(task_set.by_name[name])) for name, course in courses.items()}
    for follower, name in predecessors(task_set).items():
        jobs[follower] = _started(follower, courses[follower], len(jobs[name]))
    return Scenario(task_set, tuple(job for several in jobs.values() for job in several), order, words)


def _started(name: str, course: Course, count: int) -> tuple[Job, ...]:
    """The delays and times of a course, over and over, for jobs whose arrivals are not known yet."""
    rows = islice(cycle(zip(course.delays, course.times, strict=True)), count)
    return tuple(Job(name, number, 0, delay, *times) for number, (delay, times) in enumerate(rows))


def reach(task_set: TaskSet) -> int:
    """About how long resources stay busy after a common release, in ticks: a hint how far to look."""
    work = sum(task.wcet + task.cpu for task in task_set.tasks)
    longest = max(task.period + task.deadline for task in task_set.tasks)
    return 2 * work + longest


def cut_at(task_set: TaskSet, wanted: int, most_jobs: int) -> int:
    """The time up to which jobs arrive: `wanted`, or less if that were more than `most_jobs` jobs."""

    def jobs(until: int) -> int:
        return sum(until // task.period + 1 for task in task_set.tasks)

    if jobs(wanted) <= most_jobs:
        return wanted
    low, high = 0, wanted  # jobs(high) > most_jobs
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if jobs(middle) <= most_jobs else (low, middle)
    return low
