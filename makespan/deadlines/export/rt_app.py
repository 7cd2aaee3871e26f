"""A workload for rt-app, which emulates it on Linux: a thread a task, a kernel or copy as sleep while a mutex is held.

The mutex of a partition or copy engine lets one at a time run there and wakes the most urgent thread first
(SCHED_FIFO). CPU time is calibrated loops ("run"), because "runtime" also counts what others take meanwhile. Times are
whole microseconds: execution times and launch delays are rounded up, periods and offsets down. Jitter is left to the
machine.

Source: rt-app, doc/tutorial.txt, and its handling of events in src/rt-app.c.
"""

import json
from collections.abc import Iterator
from fractions import Fraction

from makespan.deadlines.chains import predecessors
from makespan.deadlines.export.common import ExportedTexts, refuse_policies, timer_note
from makespan.deadlines.task import GpuTask, JobSegment, SegmentKind, ServerPolicy, TaskSet
from makespan.host.errors import UnsupportedError
from makespan.model.units import SECONDS, ticks_down, ticks_up

MOST_URGENT = 98
"""The highest priority of SCHED_FIFO is 99, which threads of the system have."""

_DURATION_S = 60
_LARGEST_US = 2**31 - 1


def rt_app_workload(task_set: TaskSet, tick: Fraction, stem: str) -> ExportedTexts:
    """Return the workload as JSON for rt-app."""
    refuse_policies(task_set, "rt-app", ServerPolicy.FIXED_PRIORITY)
    for follower, sources in predecessors(task_set).items():
        raise UnsupportedError(
            f"rt-app knows no job that arrives when another one ends, and data of {sources[0]} starts {follower}:"
            " choose pycpa"
        )
    _refuse_spinning(task_set)
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
    return ExportedTexts({f"{stem}.json": json.dumps(document, indent=2) + "\n"}, tuple(_notes(task_set)))


def _refuse_spinning(task_set: TaskSet) -> None:
    for task in task_set.tasks:
        if task.spins and task.of(SegmentKind.COPY, SegmentKind.KERNEL):
            raise UnsupportedError(
                f"threads of rt-app sleep while they wait for a mutex, and {task.name} spins on core {task.core}: let"
                " it block"
            )


def _notes(task_set: TaskSet) -> Iterator[str]:
    yield f"every task is periodic, for {_DURATION_S} s of a real machine: what is in time there may be late here"
    yield (
        "deadlines are left out; times are whole microseconds: execution times and launch delays rounded up, periods"
        " and offsets down"
    )
    yield "every part of a job takes its upper bound, CPU time at the speed that rt-app calibrates"
    if jittery := [task.name for task in task_set.tasks if task.jitter]:
        yield f"jitter is left out, the machine has its own: {', '.join(jittery)}"
    yield from timer_note(task_set)


def _thread(task: GpuTask, priority: int, core: int | None, tick: Fraction) -> dict[str, object]:
    period = ticks_down(task.period * tick, SECONDS["us"])
    if period == 0:
        raise UnsupportedError(f"rt-app counts in microseconds, too coarse for the period of task {task.name}")
    times = (task.period, task.offset or 0, *(part.wcet for part in task.segments), *(p.delay for p in task.segments))
    if ticks_up(max(times) * tick, SECONDS["us"]) > _LARGEST_US:
        raise UnsupportedError(f"rt-app counts microseconds in 32 bits, too few for the times of task {task.name}")
    events = (event for number, part in enumerate(task.segments) for event in _events(part, number, tick))
    return {
        "policy": "SCHED_FIFO",
        "priority": priority,
        "delay": ticks_down((task.offset or 0) * tick, SECONDS["us"]),
        **({} if core is None else {"cpus": [core]}),
        **dict(events),
        "timer": {"ref": "unique", "period": period, "mode": "absolute"},
    }


def _events(part: JobSegment, number: int, tick: Fraction) -> Iterator[tuple[str, object]]:
    """Yield the events of a thread for a segment; rt-app knows an event by how its name begins."""
    time = ticks_up(part.wcet * tick, SECONDS["us"])
    if part.kind is SegmentKind.CPU:
        yield f"run{number}", time
        return
    if part.delay:
        yield f"sleep{number}_launch", ticks_up(part.delay * tick, SECONDS["us"])
    yield f"lock{number}", part.resource
    yield f"sleep{number}", time
    yield f"unlock{number}", part.resource
