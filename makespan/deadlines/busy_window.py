"""The time that a path of operations takes from when the first of them is ready, as the length of one window.

In every tick of the window an operation of the path runs, or its launch is under way, or it waits for what runs on its
resource. So the work that others can do there in the window counts once for the whole path, not once for every
operation of it, and work that the path itself excludes does not count: it comes before or after the path in the same
activation. Proof: docs/schedulability_theory.md, theorem 8.

A *busy window* begins earlier, at the last instant before which the resource of the first operation was idle: all work
there that goes before the path and had become ready was done. From then until the path begins, the resource works
without a break for what goes before the path, also of earlier activations of its family. Proof: theorem 9.
"""

from collections.abc import Sequence
from typing import NamedTuple

from makespan.deadlines.arrivals import MOST_ACTIVATIONS, StepBudget
from makespan.deadlines.interference import (
    PathStages,
    ResourceTime,
    StageWait,
    count_blockable,
    least_length,
    longest_first,
    rival_demand,
    split_by_urgency,
    stage_waits,
)
from makespan.deadlines.operations import BoundTable, TaskOperation, urgency
from makespan.deadlines.task import GpuTask
from makespan.deadlines.workload import Demand, work_since_idle


class _FamilyDemand(NamedTuple):
    """The demand of the path's own family on the resource on which the path begins, in one busy window.

    Args:
        rows: For each operation in an activation, the longest time from the event until it is ready, and its work.
        ahead: The work of the same activation, before the path.
        beside: The work of the same activation or a later one, at any time.
    """

    period: int
    rows: tuple[tuple[int, int], ...]
    ahead: int
    beside: int

    def cases(self, busy: int, earliest: int) -> list[tuple[int, int]] | None:
        """Return `W` and `m` of theorem 9: earlier activations' work, and the least time until the path begins.

        There is a case for each number of them, one or more, and for each operation that may be the first of the
        earliest; the result is None where there are too many.
        """
        if any((busy + ready - earliest) // self.period > MOST_ACTIVATIONS for ready, _ in self.rows):
            return None
        whole, found = sum(work for _, work in self.rows), []
        for ready, _ in self.rows:
            first = sum(work for other, work in self.rows if other >= ready)
            most = (busy + ready - earliest) // self.period
            found += [(first + (q - 1) * whole, q * self.period - ready + earliest) for q in range(1, most + 1)]
        return found


def busy_window_length(
    known: BoundTable, stages: PathStages, fixed: int, others: Sequence[ResourceTime], horizon: int, steps: StepBudget
) -> int | None:
    """Return the longest time from when a path is ready until its end; None without a bound.

    Args:
        stages: The operations of the path on the resource of the first.
        fixed: The launches of the path.
        others: The time of the path on other resources.

    Raises:
        OutOfStepsError: it takes longer than allowed.
    """
    if not _is_covered(known, stages):
        return None
    first, resource, rank = stages.first, stages.resource, stages.rank
    head = known.graph.family[first.task.name]
    own, own_blockers = split_by_urgency(known, head, resource, rank)
    rivals = rival_demand(known, head, resource, rank, None)
    whole, family = work_since_idle(known, own), _family_demand(known, own, stages)
    if rivals is None or whole is None or family is None:
        return None
    blockers = longest_first((*rivals.blockers, *own_blockers))
    ahead, blocking = family.ahead, count_blockable(stages.operations[1:]) + 1
    source = known.graph.operations[first.sources[0]] if first.is_handed_over else None
    if source is not None and urgency(source.task) < stages.rank:  # it has kept the server until the path was ready
        ahead, blocking = source.wcet - 1, blocking - 1
    at_start = StageWait(ahead, (*rivals.workloads, whole), blockers, min(1, blocking))
    # `L`: no earlier activation matters beyond it
    busy = least_length(0, (ResourceTime(0, None, (at_start,)),), horizon, steps)
    cases = None if busy is None else family.cases(busy, first.earliest)
    if cases is None:
        return None
    work, worst = sum(operation.wcet for operation in stages.operations), 0
    for before, event in ((0, 0), *cases):  # W = 0 and m = 0 is the case without an earlier activation
        wait = StageWait(before + ahead + family.beside, rivals.workloads, blockers, blocking)
        found = least_length(fixed, (ResourceTime(work, None, (wait,)), *others), horizon, steps)
        if found is None:
            return None
        worst = max(worst, found - max(ahead, event))  # the path is ready no earlier than both in the window
    return worst


def _is_covered(known: BoundTable, stages: PathStages) -> bool:
    """Return whether theorem 9 covers the stages: urgency decides, and no thread has spun before the path begins."""
    graph, resource, first = known.graph, stages.resource, stages.first
    if not graph.is_ranked(resource) or resource in graph.slices:
        return False
    return graph.is_server(resource) or not first.task.spins or not first.index


def _family_demand(known: BoundTable, asked: Sequence[Demand], stages: PathStages) -> _FamilyDemand | None:
    graph, first, done = known.graph, stages.first, known.end[stages.last.number]
    rows, ahead, beside = list[tuple[int, int]](), 0, 0
    for demand in asked:
        ready = known.ready(demand.first)
        if ready is None or done is None:
            return None
        rows.append((ready, demand.work))
        ahead += demand.work * graph.is_before(demand.first, first)
        beside += stages.beside(graph, demand, done) * demand.work
    return _FamilyDemand(first.task.period, tuple(rows), ahead, beside)


class PathWindows:
    """The lengths of windows, for the bounds that are `known` so far; each length grows with them."""

    def __init__(self, known: BoundTable, horizon: int) -> None:
        self.known, self.graph, self.horizon = known, known.graph, horizon
        self.needs: dict[tuple[int, ...], tuple[str, ...]] = {}
        self.busy: dict[tuple[int, ...], int] = {}
        self.lengths: dict[tuple[int, ...], tuple[tuple[int, ...], int | None]] = {}

    def at_least(self, path: tuple[int, ...]) -> int | None:
        """Return a bound from below on `length`, as far as it is known; None where `length` has no bound."""
        if path in self.lengths:
            return self.lengths[path][1]
        operations = [self.graph.operations[number] for number in path]
        return sum(operation.wcet for operation in operations) + sum(operation.gap for operation in operations[1:])

    def length(self, path: tuple[int, ...], steps: StepBudget) -> int | None:
        """Return the longest time from when a path is ready until its end; None without a bound.

        It is computed anew only where a bound has changed that it depends on.

        Raises:
            OutOfStepsError: it takes longer than allowed.
        """
        operations = [self.graph.operations[number] for number in path]
        if path not in self.needs:
            self.needs[path] = self._needs(_by_resource(operations))
        # equal versions: nothing that it needs has changed
        state = tuple(map(self.known.version.__getitem__, self.needs[path]))
        before = self.lengths.get(path)
        if before is None or before[0] != state:
            least = 1 if before is None else before[1]  # bounds only rise, so the last length is a place to start from
            before = self.lengths[path] = state, None if least is None else self._length(operations, least, steps)
        return before[1]

    def _needs(self, stages: Sequence[PathStages]) -> tuple[str, ...]:
        """Return the heads of the families whose bounds the length depends on."""
        graph, found = self.graph, {self.graph.family[stages[0].first.task.name]}
        for there in stages:
            resource = there.resource
            # what is less urgent may come so often that it blocks each of several operations, but one only once
            is_ranked = graph.is_ranked(resource) and (not graph.is_server(resource) or len(there.operations) == 1)
            for task in graph.residents[resource]:
                if not is_ranked or urgency(task) >= there.rank:
                    found.add(graph.family[task.name])
        return tuple(found)

    def _length(self, path: Sequence[TaskOperation], least: int, steps: StepBudget) -> int | None:
        stages = _by_resource(path)
        # the gap of the first operation is over when it is ready
        alone, fixed = sum(operation.wcet for operation in path), sum(operation.gap for operation in path[1:])
        ways = [self._way(there, len(path)) for there in stages]
        known, others = [[way for way in some if way is not None] for some in (ways, ways[1:])]
        found = None
        if len(known) == len(ways):  # a resource without a bound leaves the path without one by theorem 8
            found = least_length(fixed, known, self.horizon, steps, least)
        key = tuple(operation.number for operation in path)
        if len(others) < len(ways) - 1 or (found is not None and found <= self.busy.get(key, fixed + alone)):
            return found
        # theorem 9, only where it can be less
        more = busy_window_length(self.known, stages[0], fixed, others, self.horizon, steps)
        self.busy[key] = self.horizon + 1 if more is None else more  # it never falls: no need to ask again below it
        return min((length for length in (found, more) if length is not None), default=None)

    def _way(self, stages: PathStages, count: int) -> ResourceTime | None:
        known = [span for o in stages.operations if (span := self.known.span[o.number]) is not None]
        spans = None if count == 1 or len(known) < len(stages.operations) else sum(known)
        found = tuple(stage_waits(self.known, stages))
        if spans is None and not found:
            return None
        return ResourceTime(sum(operation.wcet for operation in stages.operations), spans, found)


def _by_resource(path: Sequence[TaskOperation]) -> tuple[PathStages, ...]:
    """Return the operations on each resource, those on the resource of the first operation first."""
    places: dict[str, list[TaskOperation]] = {}
    for operation in path:
        places.setdefault(operation.resource, []).append(operation)
    return tuple(
        PathStages(resource, there, path[0], min(urgency(operation.task) for operation in there))
        for resource, there in places.items()
    )


def oblivious_response(known: BoundTable, task: GpuTask, horizon: int, steps: StepBudget) -> int | None:
    """Return a job's response if its launches, copies and kernels, with their waiting, count as CPU time.

    The bound holds if no job of the task is unfinished when the next one comes; else the result is None. If the bound
    itself says so, that holds for all jobs: the first one has none before it.

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
        # theorem 5 demands different priorities
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
