"""How long a path takes, counted from the last instant before which the resource of its first operation was idle.

Idle: nothing that goes before the path there had become ready earlier and was not done. From that instant until the
path begins, the resource works without a break for what goes before the path, of earlier activations of its family,
too. Proof: docs/schedulability_theory.md, theorem 9.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from makespan.deadlines.ahead import PathStages, rival_demand, split_by_urgency
from makespan.deadlines.arrivals import MOST_ACTIVATIONS, StepBudget
from makespan.deadlines.demand import Demand
from makespan.deadlines.known import KnownBounds
from makespan.deadlines.operations import urgency
from makespan.deadlines.waits import Blocker, ResourceTime, StageWait, count_blockable, least_length, longest_first
from makespan.deadlines.workload import Workload, work_since_idle


class _FamilyDemand(NamedTuple):
    """What the family of a path asks of the resource on which it begins, in one busy window.

    Args:
        rows: for each operation in an activation when it is ready after the event, at most, and its work.
        ahead: of the same activation, before the path.
        beside: of the same activation or a later one, at any time.
    """

    period: int
    rows: tuple[tuple[int, int], ...]
    ahead: int
    beside: int

    def cases(self, busy: int, earliest: int) -> Iterator[tuple[int, int]] | None:
        """What earlier activations ask for, and when the path begins at the earliest after the window does.

        A case for each number of them, one or more, and for each operation that may be the first one of the earliest;
        None where there are too many.
        """
        if any((busy + ready - earliest) // self.period > MOST_ACTIVATIONS for ready, _ in self.rows):
            return None
        return self._cases(busy, earliest)

    def _cases(self, busy: int, earliest: int) -> Iterator[tuple[int, int]]:
        whole = sum(work for _, work in self.rows)
        for ready, _ in self.rows:
            first = sum(work for other, work in self.rows if other >= ready)
            for q in range(1, (busy + ready - earliest) // self.period + 1):
                yield first + (q - 1) * whole, q * self.period - ready + earliest


class _WindowDemand(NamedTuple):
    """What is asked of a resource in a busy window: by `others`, by the family of the path, and what may have begun."""

    others: tuple[Workload, ...]
    whole: Workload
    family: _FamilyDemand
    blockers: tuple[Blocker, ...]


def busy_window_length(
    known: KnownBounds, stages: PathStages, fixed: int, others: Sequence[ResourceTime], horizon: int, steps: StepBudget
) -> int | None:
    """From when the first operation of a path is ready until the end of the last, at most; None without a bound.

    Args:
        stages: its operations on the resource of the first.
        fixed: its launches.
        others: what it takes on other resources.

    Raises:
        OutOfStepsError: it takes longer than allowed.
    """
    if not _is_covered(known, stages):
        return None
    asked = _window_demand(known, stages)
    if asked is None:
        return None
    first, family = stages.first, asked.family
    ahead, blocking = family.ahead, count_blockable(stages.operations[1:]) + 1
    source = known.graph.operations[first.sources[0]] if first.is_handed_over else None
    if source is not None and urgency(source.task) < stages.rank:  # it has kept the server until the path was ready
        ahead, blocking = source.wcet - 1, blocking - 1
    at_start = StageWait(ahead, (*asked.others, asked.whole), asked.blockers, min(1, blocking))
    busy = least_length(0, (ResourceTime(0, None, (at_start,)),), horizon, steps)
    cases = None if busy is None else family.cases(busy, first.earliest)
    if cases is None:
        return None
    work, worst = sum(operation.wcet for operation in stages.operations), 0
    for before, event in ((0, 0), *cases):
        wait = StageWait(before + ahead + family.beside, asked.others, asked.blockers, blocking)
        found = least_length(fixed, (ResourceTime(work, None, (wait,)), *others), horizon, steps)
        if found is None:
            return None
        worst = max(worst, found - max(ahead, event))
    return worst


def _is_covered(known: KnownBounds, stages: PathStages) -> bool:
    """Not where others than urgency decide, and not where a thread has been spinning when the path begins."""
    graph, place, first = known.graph, stages.place, stages.first
    if not graph.is_ranked(place) or place in graph.slices:
        return False
    return graph.is_server(place) or not first.task.spins or not first.index


def _window_demand(known: KnownBounds, stages: PathStages) -> _WindowDemand | None:
    """None where nothing bounds it."""
    place, rank, head = stages.place, stages.rank, known.graph.family[stages.first.task.name]
    own, blockers = split_by_urgency(known, head, place, rank)
    asked, whole, family = (
        rival_demand(known, head, place, rank, None),
        work_since_idle(known, own),
        _family_demand(known, own, stages),
    )
    if asked is None or whole is None or family is None:
        return None
    return _WindowDemand(asked.workloads, whole, family, longest_first((*asked.blockers, *blockers)))


def _family_demand(known: KnownBounds, asked: Sequence[Demand], stages: PathStages) -> _FamilyDemand | None:
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
