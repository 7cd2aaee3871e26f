"""A script for pyCPA: partitions become non-preemptive, CPU cores preemptive resources of static priorities.

First in, first out is static priority with equal priorities, because pyCPA lets equal ones interfere. What data starts
is linked to what starts it. Times are whole multiples of the greatest common divisor of all, which keeps them small
enough for its floating-point arithmetic.

Source: Diemer, Axer and Ernst, "Compositional Performance Analysis in Python with pyCPA", WATERS 2012, and its
documentation, version 3.
"""

from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import pairwise
from math import gcd

from makespan.errors import UnsupportedError
from makespan.schedulability.chains import predecessors
from makespan.schedulability.export.common import Exported, refuse_policies, timer_note
from makespan.schedulability.task import Policy, Task, TaskSet
from makespan.schedulability.units import shown_time

_LARGEST = 2**50

_HEAD = '''"""Worst-case response times by pyCPA; one unit of time is {unit}.
{notes}"""

from pycpa import analysis, model, options, schedulers

options.init_pycpa()
system = model.System()
first = schedulers.prio_high_wins_equal_fifo
'''

_TAIL = """
results = analysis.analyze_system(system)
for task in sorted(results, key=str):
    print(task.name, results[task].wcrt)
"""


def written(task_set: TaskSet, tick: Fraction, stem: str) -> Exported:
    """The script."""
    refuse_policies(task_set, "pyCPA", Policy.FIXED_PRIORITY, Policy.FIFO)
    _refuse_late_data(task_set)
    unit = gcd(*(time for t in task_set.tasks for time in (t.wcet, t.period, t.jitter, t.before, t.after)))
    if max(t.period + t.jitter for t in task_set.tasks) // unit > _LARGEST:
        raise UnsupportedError("pyCPA computes in floating point, too coarse for these times: choose a longer tick")
    notes = tuple(_notes(task_set))
    told = "".join(f"\n{_plain(note)}\n" for note in notes)
    head = _HEAD.format(unit=shown_time(unit * tick), notes=told)
    return Exported({f"{stem}.py": head + "\n".join(_body(task_set, unit)) + "\n" + _TAIL}, notes)


def _plain(note: str) -> str:
    """A note with names of any characters, for a docstring."""
    return note.replace("\\", "/").replace('"', "'")


def _refuse_late_data(task_set: TaskSet) -> None:
    for name, first in predecessors(task_set).items():
        if task_set.by_name[name].jitter:
            raise UnsupportedError(f"pyCPA links {name} to {first} without jitter between them, and {name} has some")


def _notes(task_set: TaskSet) -> Iterator[str]:
    yield "deadlines are left out: compare them with what is printed, of each part of a job from when it is ready"
    if any(task.offset is not None for task in task_set.tasks):
        yield "offsets are left out: the bounds hold for every phase"
    if any(partition.policy is Policy.FIFO and task_set.on(partition.name) for partition in task_set.partitions):
        yield "fifo became equal priorities, which all go before each other: bounds can be larger than for fifo"
    yield from timer_note(task_set)


def _body(task_set: TaskSet, unit: int) -> Iterator[str]:
    names = [*(f"partition {p.name}" for p in task_set.partitions), *(f"core {core}" for core in task_set.cores)]
    variable = {name: f"resource_{number}" for number, name in enumerate(names)}
    fifo = {partition.name for partition in task_set.partitions if partition.policy is Policy.FIFO}
    for name in names:
        scheduler = "SPNP" if name.startswith("partition ") else "SPP"
        cycle = ", cycle_time=1" if scheduler == "SPNP" else ""
        made = f"schedulers.{scheduler}Scheduler(priority_cmp=first{cycle})"
        yield f"{variable[name]} = system.bind_resource(model.Resource({name!r}, {made}))"
    starts, steps = predecessors(task_set), {}
    for number, task in enumerate(task_set.tasks):
        rank = 0 if task.partition in fifo else task.priority
        steps[task.name] = _steps(task, number, rank, variable, unit)
        yield from steps[task.name].values()
        if task.name not in starts:
            model = f"model.PJdEventModel(P={task.period // unit}, J={task.jitter // unit})"
            yield f"{next(iter(steps[task.name]))}.in_event_model = {model}"
    for name, follower in [pair for own in steps.values() for pair in pairwise(own)]:
        yield f"{name}.link_dependent_task({follower})"
    for follower, name in starts.items():
        yield f"{[*steps[name]][-1]}.link_dependent_task({next(iter(steps[follower]))})"


def _steps(task: Task, number: int, rank: int | None, variable: Mapping[str, str], unit: int) -> dict[str, str]:
    """The parts of a job by their names in the script, with the lines that make them."""
    core, partition = variable.get(f"core {task.core}"), variable[f"partition {task.partition}"]
    steps = [("before", core, task.before, task.priority), ("kernel", partition, task.wcet, rank)]
    made = {}
    for what, resource, time, priority in (*steps, ("after", core, task.after, task.priority)):
        if time:
            text = f"{f'{task.name} {what}'!r}, wcet={time // unit}, bcet=0, scheduling_parameter={priority}"
            name = f"task_{number}_{what}"
            made[name] = f"{name} = {resource}.bind_task(model.Task({text}))"
    return made
