"""What operations ask of a server, as the theorems of its policy count it."""

from collections.abc import Sequence

from makespan.deadlines.arrivals import Stream
from makespan.deadlines.demand import overlapping_activations
from makespan.deadlines.known import KnownBounds
from makespan.deadlines.operations import TaskOperation, urgency
from makespan.deadlines.response import AnalysedOperation
from makespan.deadlines.task import ServerPolicy


def operation_stream(known: KnownBounds, operation: TaskOperation, lag: int | None) -> Stream:
    """An operation of every activation; deadlines count from the task's arrival, or under `edf-release` its release.

    Args:
        lag: from the arrival until it is ready, at most; under `edf-release` its jitter and what follows the release.
    """
    task, arrival = operation.task, known.arrival(operation.task)
    if arrival is None or lag is None:
        return Stream(operation.wcet, task.period, priority=urgency(task), is_wild=True)
    arrival, deadline = arrival - known.graph.earliest(task), task.deadline
    if known.graph.policies[operation.place] is not ServerPolicy.EDF:
        arrival, lag, deadline = arrival + task.jitter, lag - task.jitter, deadline - task.jitter
    return Stream(operation.wcet, task.period, arrival, lag, deadline, urgency(task))


def analysed_operation(
    known: KnownBounds, operation: TaskOperation, own: Stream, family: Sequence[TaskOperation]
) -> AnalysedOperation | None:
    """An operation and its stream with what its family asks of the server; None as long as nothing bounds that."""
    graph, task = known.graph, operation.task
    end = known.end[operation.number]
    latest = [instant for other in family if (instant := known.ready(other)) is not None]
    if own.is_wild or end is None or len(latest) < len(family):
        return None
    policy, event = graph.policies[operation.place], graph.earliest(task)
    is_ranked = policy is ServerPolicy.FIXED_PRIORITY
    until = end if policy is not ServerPolicy.FIFO else own.delay + event + 1  # what is ready later does not go before
    ready: list[tuple[int, int]] = []
    ahead = beside = 0
    blockers = []
    for other, at in zip(family, latest, strict=True):
        if is_ranked and urgency(other.task) < urgency(task):
            blockers.append((other.wcet - 1, 0))
            continue
        ready.append((at - event, other.wcet))
        ahead += other.wcet * graph.is_before(other, operation)
        beside += other.wcet * graph.is_concurrent(other.task, task)
        if other is operation:
            continue
        if not graph.is_before(operation, other):
            beside += other.wcet * overlapping_activations(until - other.earliest, task.period)
        if not is_ranked:
            deadline = other.task.deadline
            blockers.append((other.wcet - 1, deadline if policy is ServerPolicy.EDF else deadline - other.task.jitter))
    source = graph.operations[operation.sources[0]] if operation.is_handed_over else None
    is_handed_over = source is not None and is_ranked and urgency(source.task) < urgency(task)
    if source is not None and is_handed_over:  # it has kept the server from all that goes before
        ahead = source.wcet - 1
    firsts = tuple((sum(work for other, work in ready if other >= delay), delay) for delay, _ in ready)
    each, earliest = sum(work for _, work in ready), min(event, *(other.earliest for other in family))
    late = max(delay for delay, _ in ready) + event - earliest
    return AnalysedOperation(own, each, firsts, late, ahead, beside, tuple(blockers), is_handed_over)
