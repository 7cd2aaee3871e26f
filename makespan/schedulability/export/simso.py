"""A simulation for SimSo: an XML file, and the scheduler that it names as a Python module beside it.

SimSo comes without a non-preemptive scheduler for partitions, so one is written with the tasks. Its times are
floating-point milliseconds.

Source: Chéramy, Hladik and Déplanche, "SimSo: A Simulation Tool to Evaluate Real-Time Multiprocessor Scheduling
Algorithms", WATERS 2014, and the reader of its configuration files, version 0.8.5.
"""

import json
import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from xml.etree import ElementTree

from makespan.errors import UnsupportedError
from makespan.schedulability.export.common import (
    Exported,
    hyperperiod,
    periodic_note,
    refuse_cpu,
    refuse_data,
    timer_note,
)
from makespan.schedulability.task import TaskSet

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


def written(task_set: TaskSet, tick: Fraction, stem: str) -> Exported:
    """The XML and its scheduler."""
    refuse_cpu(task_set, "SimSo")
    refuse_data(task_set, "SimSo")
    for task in task_set.tasks:
        if task.jitter:
            raise UnsupportedError(f"SimSo knows no release jitter, and {task.name} has some")
    name = re.sub(r"\W", "_", f"{stem}_scheduler") if not stem[:1].isdigit() else "scheduler"
    policies = json.dumps([partition.policy for partition in task_set.partitions])
    notes = tuple(_notes(task_set))
    files = {
        f"{stem}.xml": _document(task_set, tick, f"{name}.py", notes),
        f"{name}.py": _SCHEDULER.format(name=name, policies=policies),
    }
    return Exported(files, notes)


def _notes(task_set: TaskSet) -> Iterator[str]:
    yield from periodic_note(task_set, "two hyperperiods")
    yield "every kernel takes its upper bound, which may never happen; equals go in the order of their arrival"
    yield from timer_note(task_set)


def _document(task_set: TaskSet, tick: Fraction, scheduler: str, notes: Sequence[str]) -> str:
    until = max(task.offset or 0 for task in task_set.tasks) + 2 * hyperperiod(task_set.tasks)
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
    _tasks(root, task_set, tick)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _processors(root: ElementTree.Element, task_set: TaskSet) -> None:
    processors = ElementTree.SubElement(root, "processors")
    for number, partition in enumerate(task_set.partitions):
        ElementTree.SubElement(processors, "processor", id=str(number), name=partition.name)


def _tasks(root: ElementTree.Element, task_set: TaskSet, tick: Fraction) -> None:
    tasks = ElementTree.SubElement(root, "tasks")
    for name in ("priority", "partition"):
        ElementTree.SubElement(tasks, "field", name=name, type="int")
    places = [partition.name for partition in task_set.partitions]

    def ms(ticks: int) -> str:
        return repr(float(ticks * tick * 1000))

    for number, task in enumerate(task_set.tasks, 1):
        ElementTree.SubElement(
            tasks,
            "task",
            id=str(number),
            name=task.name,
            task_type="Periodic",
            abort_on_miss="no",
            period=ms(task.period),
            activationDate=ms(task.offset or 0),
            WCET=ms(task.wcet),
            ACET=ms(task.wcet),
            et_stddev="0",
            deadline=ms(task.deadline),
            instructions="0",
            mix="0.5",
            base_cpi="1.0",
            priority=str(task.priority or 0),
            partition=str(places.index(task.partition or "")),
        )
