"""A workload for rt-app, which emulates it on Linux: a thread a task, a kernel as sleep while a mutex is held.

The mutex of a partition lets one kernel run at a time and wakes the most urgent thread first (SCHED_FIFO). Times are
whole microseconds: execution times are rounded up, periods and offsets down. Jitter is left to the machine.

Source: rt-app, doc/tutorial.txt.
"""

import json
from collections.abc import Iterator
from fractions import Fraction

from makespan.errors import UnsupportedError
from makespan.schedulability.export.common import Exported, refuse_data, refuse_policies, timer_note
from makespan.schedulability.task import Policy, Task, TaskSet
from makespan.schedulability.units import SECONDS, ticks_down, ticks_up

MOST_URGENT = 98
"""The highest priority of SCHED_FIFO is 99, which threads of the system have."""

_DURATION_S = 60


def written(task_set: TaskSet, tick: Fraction, stem: str) -> Exported:
    """The JSON."""
    refuse_policies(task_set, "rt-app", Policy.FIXED_PRIORITY)
    refuse_data(task_set, "rt-app")
    ranks = sorted({task.priority or 0 for task in task_set.tasks})
    if len(ranks) > MOST_URGENT:
        raise UnsupportedError(f"rt-app has {MOST_URGENT} priorities for threads, and these tasks have {len(ranks)}")
    cores = {name: number for number, name in enumerate(task_set.cores)}
    document = {
        "global": {"duration": _DURATION_S, "default_policy": "SCHED_FIFO", "pi_enabled": True, "lock_pages": True},
        "tasks": {
            task.name: _thread(task, ranks.index(task.priority or 0) + 1, cores.get(task.core or ""), tick)
            for task in task_set.tasks
        },
    }
    return Exported({f"{stem}.json": json.dumps(document, indent=2) + "\n"}, tuple(_notes(task_set)))


def _notes(task_set: TaskSet) -> Iterator[str]:
    yield f"every task is periodic, for {_DURATION_S} s of a real machine: what is in time there may be late here"
    yield "deadlines are left out; times are whole microseconds: execution times rounded up, periods and offsets down"
    if jittery := [task.name for task in task_set.tasks if task.jitter]:
        yield f"jitter is left out, the machine has its own: {', '.join(jittery)}"
    yield from timer_note(task_set)


def _thread(task: Task, priority: int, core: int | None, tick: Fraction) -> dict[str, object]:
    micro = SECONDS["us"]
    period = ticks_down(task.period * tick, micro)
    if period == 0:
        raise UnsupportedError(f"rt-app counts in microseconds, too coarse for the period of task {task.name}")
    events: dict[str, object] = {}
    if task.before:
        events["runtime0"] = ticks_up(task.before * tick, micro)
    events["lock"] = task.partition
    events["sleep"] = ticks_up(task.wcet * tick, micro)
    events["unlock"] = task.partition
    if task.after:
        events["runtime1"] = ticks_up(task.after * tick, micro)
    events["timer"] = {"ref": "unique", "period": period, "mode": "absolute"}
    return {
        "policy": "SCHED_FIFO",
        "priority": priority,
        "delay": ticks_down((task.offset or 0) * tick, micro),
        **({} if core is None else {"cpus": [core]}),
        **events,
    }
