"""A script for pyCPA: partitions become non-preemptive, CPU cores preemptive resources of static priorities.

First in, first out is static priority with equal priorities, because pyCPA lets equal ones interfere. Times are whole
multiples of the greatest common divisor of all, which keeps them small enough for its floating-point arithmetic.

Source: Diemer, Axer and Ernst, "Compositional Performance Analysis in Python with pyCPA", WATERS 2012, and its
documentation, version 3.
"""

from collections.abc import Iterator, Mapping
from fractions import Fraction
from math import gcd

from makespan.errors import UnsupportedError
from makespan.schedulability.export.common import refuse_policies
from makespan.schedulability.task import Policy, Task, TaskSet
from makespan.schedulability.units import shown_time

_LARGEST = 2**50

_HEAD = '''"""Worst-case response times by pyCPA; one unit of time is {unit}."""

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


def files(task_set: TaskSet, tick: Fraction, stem: str) -> Mapping[str, str]:
    """The script."""
    refuse_policies(task_set, "pyCPA", Policy.FIXED_PRIORITY, Policy.FIFO)
    unit = gcd(*(time for t in task_set.tasks for time in (t.wcet, t.period, t.jitter, t.before, t.after)))
    if max(t.period + t.jitter for t in task_set.tasks) // unit > _LARGEST:
        raise UnsupportedError("pyCPA computes in floating point, too coarse for these times: choose a longer tick")
    return {f"{stem}.py": _HEAD.format(unit=shown_time(unit * tick)) + "\n".join(_body(task_set, unit)) + "\n" + _TAIL}


def _body(task_set: TaskSet, unit: int) -> Iterator[str]:
    names = [*(f"partition {p.name}" for p in task_set.partitions), *(f"core {core}" for core in task_set.cores)]
    variable = {name: f"resource_{number}" for number, name in enumerate(names)}
    fifo = {partition.name for partition in task_set.partitions if partition.policy is Policy.FIFO}
    for name in names:
        scheduler = "SPNP" if name.startswith("partition ") else "SPP"
        cycle = ", cycle_time=1" if scheduler == "SPNP" else ""
        made = f"schedulers.{scheduler}Scheduler(priority_cmp=first{cycle})"
        yield f"{variable[name]} = system.bind_resource(model.Resource({name!r}, {made}))"
    for number, task in enumerate(task_set.tasks):
        rank = 0 if task.partition in fifo else task.priority
        yield from _task(task, number, rank, variable, unit)


def _task(task: Task, number: int, rank: int | None, variable: Mapping[str, str], unit: int) -> Iterator[str]:
    core, partition = variable.get(f"core {task.core}"), variable[f"partition {task.partition}"]
    steps = [("before", core, task.before, task.priority), ("kernel", partition, task.wcet, rank)]
    steps = [step for step in (*steps, ("after", core, task.after, task.priority)) if step[2]]
    previous = None
    for what, resource, time, priority in steps:
        name = f"task_{number}_{what}"
        made = f"model.Task({f'{task.name} {what}'!r}, wcet={time // unit}, bcet=0, scheduling_parameter={priority})"
        yield f"{name} = {resource}.bind_task({made})"
        if previous is None:
            yield f"{name}.in_event_model = model.PJdEventModel(P={task.period // unit}, J={task.jitter // unit})"
        else:
            yield f"{previous}.link_dependent_task({name})"
        previous = name
