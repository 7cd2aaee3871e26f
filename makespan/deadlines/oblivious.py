"""How long a job with CPU time takes if its launches, copies and kernels, with their waiting, counted as CPU time."""

from makespan.deadlines.arrivals import StepBudget
from makespan.deadlines.known import KnownBounds
from makespan.deadlines.operations import urgency
from makespan.deadlines.task import GpuTask


def oblivious_response(known: KnownBounds, task: GpuTask, horizon: int, steps: StepBudget) -> int | None:
    """From the arrival on, if no job of the task is still there when the next one comes; else None.

    That holds for all jobs if it follows from this bound: the first one has none before it.

    Raises:
        OutOfStepsError: it takes longer than allowed.

    Source: Chen, Nelissen, Huang and others, Real-Time Systems 55(1), 2019.
    """
    own, event = known.whole(task), known.arrival(task)
    if task.core is None or own is None or event is None:
        return None
    rows = []
    for rival in known.graph.tasks.cores[task.core]:
        if rival is task or urgency(rival) < urgency(task):
            continue
        arrival, whole = known.arrival(rival), known.whole(rival)
        if urgency(rival) == urgency(task) or arrival is None or whole is None:
            return None
        rows.append((whole, rival.period, arrival + rival.jitter))
    found = own
    while found <= horizon:
        steps.spend(len(rows) + 1)
        demand = own + sum(c * -((found + j) // -t) for c, t, j in rows)
        if demand == found:
            return task.jitter + found if event + task.jitter + found <= task.period else None
        found = demand
    return None
