"""A simulation for SimSo: an XML file, and the scheduler that it names as a Python module beside it.

SimSo comes without a non-preemptive scheduler for partitions, so one is written with the tasks; a copy engine is one
more processor. What data starts follows the task that starts it. Its times are floating-point milliseconds.

Source: Chéramy, Hladik and Déplanche, "SimSo: A Simulation Tool to Evaluate Real-Time Multiprocessor Scheduling
Algorithms", WATERS 2014, and the reader of its configuration files, version 0.8.5.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from math import lcm
from xml.etree import ElementTree

from makespan.deadlines.chains import predecessors
from makespan.deadlines.export.common import ExportedTexts, timer_note
from makespan.deadlines.task import TaskSet
from makespan.host.errors import UnsupportedError

MOST_JOBS = 100_000
CYCLES_PER_MS = 10**9
"""SimSo counts in picoseconds then, exactly up to a few hours."""

_SCHEDULER = '''"""Partitions that run one job at a time to its end, for SimSo."""

from simso.core import Scheduler

POLICIES = {policies}


class {name}(Scheduler):
    """Each task stays on the processor that its field `partition` numbers; a running job is never preempted."""

    def init(self):
        self.waiting = []

    def on_activate(self, job):
        job.task.cpu = self.processors[job.task.data["partition"]]
        self.waiting.append(job)
        job.cpu.resched()

    def on_terminated(self, job):
        job.cpu.resched()

    def schedule(self, cpu):
        if cpu.running is not None and cpu.running.is_active():
            return None
        partition = self.processors.index(cpu)
        here = [job for job in self.waiting if job.task.data["partition"] == partition]
        if not here:
            return None
        job = min(here, key=lambda job: self.urgency(job, POLICIES[partition]))
        self.waiting.remove(job)
        return (job, cpu)

    def urgency(self, job, policy):
        if policy == "fixed-priority":
            return (-job.task.data["priority"], job.activation_date)
        return (job.activation_date if policy == "fifo" else job.absolute_deadline, job.activation_date)
'''


def simso_simulation(task_set: TaskSet, tick: Fraction, stem: str) -> ExportedTexts:
    """Return the XML and its scheduler."""
    _refuse_cpu(task_set)
    for task in task_set.tasks:
        if len(task.segments) > 1:
            raise UnsupportedError(
                f"SimSo knows no jobs of several segments, and {task.name} has {len(task.segments)}: choose pycpa"
            )
        if task.jitter or task.segments[0].delay:
            what = "release jitter" if task.jitter else "launch delay"
            raise UnsupportedError(f"SimSo knows no {what}, and {task.name} has some: choose pycpa")
    followers = _followers(task_set)
    name = re.sub(r"\W", "_", f"{stem}_scheduler") if not stem[:1].isdigit() else "scheduler"
    policies = json.dumps([server.policy for server in task_set.servers])
    notes = tuple(_notes(task_set))
    files = {
        f"{stem}.xml": _document(task_set, followers, tick, f"{name}.py", notes),
        f"{name}.py": _SCHEDULER.format(name=name, policies=policies),
    }
    return ExportedTexts(files, notes)


def _refuse_cpu(task_set: TaskSet) -> None:
    for task in task_set.tasks:
        if task.cpu:
            raise UnsupportedError(
                f"SimSo knows no tasks that wait for the GPU, and {task.name} has CPU time: choose pycpa"
            )


def _notes(task_set: TaskSet) -> Iterator[str]:
    yield from _periodic_note(task_set)
    yield "every kernel takes its upper bound, which may never happen; equals go in the order of their arrival"
    yield from timer_note(task_set)


def _periodic_note(task_set: TaskSet) -> Iterator[str]:
    if any(task.offset is None for task in task_set.tasks):
        yield (
            "every task is strictly periodic, from its offset or from 0, for two hyperperiods; here jobs of tasks"
            " without an offset may come later, at any phase: what is in time there may be late here"
        )


def _followers(task_set: TaskSet) -> dict[str, str]:
    found: dict[str, str] = {}
    for follower, sources in predecessors(task_set).items():
        if len(sources) > 1:
            raise UnsupportedError(f"SimSo knows no task that waits for several, and {follower} does: choose pycpa")
        if other := found.get(sources[0]):
            raise UnsupportedError(
                f"SimSo starts one task at the end of another, and {sources[0]} starts {other} and {follower}: choose"
                " pycpa"
            )
        found[sources[0]] = follower
    return found


def _document(
    task_set: TaskSet, followers: Mapping[str, str], tick: Fraction, scheduler: str, notes: Sequence[str]
) -> str:
    periods = [task.period for task in task_set.tasks]
    until = max(task.offset or 0 for task in task_set.tasks) + 2 * _hyperperiod(periods)
    root = ElementTree.Element(
        "simulation",
        duration=str(int(until * tick * 1000 * CYCLES_PER_MS)),
        cycles_per_ms=str(CYCLES_PER_MS),
        etm="wcet",
    )
    for note in notes:
        root.append(ElementTree.Comment(f" {re.sub('-(?=-|$)', '- ', note)} "))
    ElementTree.SubElement(
        root, "sched", className=scheduler, overhead="0", overhead_activate="0", overhead_terminate="0"
    )
    ElementTree.SubElement(root, "caches", memory_access_time="100")
    _processors(root, task_set)
    _tasks(root, task_set, followers, tick)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _hyperperiod(periods: Sequence[int]) -> int:
    """Return the least common multiple, in ticks, of the periods of tasks.

    Raises:
        UnsupportedError: more than `MOST_JOBS` jobs come in it.
    """
    length = lcm(*periods)
    jobs = sum(length // period for period in periods)
    if jobs > MOST_JOBS:
        raise UnsupportedError(
            f"{jobs} jobs fall into a hyperperiod, more than {MOST_JOBS}: choose periods that divide"
        )
    return length


def _processors(root: ElementTree.Element, task_set: TaskSet) -> None:
    processors = ElementTree.SubElement(root, "processors")
    for number, server in enumerate(task_set.servers):
        ElementTree.SubElement(processors, "processor", id=str(number), name=server.name)


def _tasks(root: ElementTree.Element, task_set: TaskSet, followers: Mapping[str, str], tick: Fraction) -> None:
    tasks = ElementTree.SubElement(root, "tasks")
    for name in ("priority", "partition"):
        ElementTree.SubElement(tasks, "field", name=name, type="int")
    places = [server.name for server in task_set.servers]
    numbers = {name: str(number) for number, name in enumerate(task_set.by_name, 1)}

    def ms(ticks: int) -> str:
        return repr(float(ticks * tick * 1000))

    for task in task_set.tasks:
        (kernel,) = task.segments
        follower = followers.get(task.name)
        ElementTree.SubElement(
            tasks,
            "task",
            {} if follower is None else {"followed_by": numbers[follower]},
            id=numbers[task.name],
            name=task.name,
            task_type="APeriodic" if task.name in followers.values() else "Periodic",
            abort_on_miss="no",
            period=ms(task.period),
            activationDate=ms(task.offset or 0),
            WCET=ms(kernel.wcet),
            ACET=ms(kernel.wcet),
            et_stddev="0",
            deadline=ms(task.deadline),
            instructions="0",
            mix="0.5",
            base_cpi="1.0",
            priority=str(task.priority or 0),
            partition=str(places.index(kernel.resource or "")),
        )
