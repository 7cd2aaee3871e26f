"""What goes before the operations of a path on one resource, from when the first operation of the path is ready.

Proof: docs/schedulability_theory.md, theorem 8.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from makespan.schedulability.demand import Demand, activations, demands
from makespan.schedulability.known import Known
from makespan.schedulability.operations import Graph, Operation, urgency
from makespan.schedulability.slices import Share, Turns
from makespan.schedulability.task import Policy, Slices, Task
from makespan.schedulability.waits import Wait, blocked, longest_first
from makespan.schedulability.workload import Workload, anywhere


class Stages(NamedTuple):
    """The operations of a path on one resource.

    Args:
        first: of the whole path, there or not: the window begins when it is ready.
    """

    place: str
    operations: Sequence[Operation]
    first: Operation

    @property
    def last(self) -> Operation:
        """On the resource."""
        return self.operations[-1]

    @property
    def rank(self) -> int:
        """The urgency of the least urgent of them."""
        return min(urgency(operation.task) for operation in self.operations)

    def beside(self, graph: Graph, demand: Demand, done: int) -> int:
        """How often work of the own family, of the same activation or a later one, may go before the operations.

        Args:
            done: from the event until the end of the last of them, at most.
        """
        times = int(any(graph.is_concurrent(demand.task, operation.task) for operation in self.operations))
        if demand.task is self.last.task and not graph.is_server(self.place):
            return times  # on a core the earlier job of a task goes first
        if demand.first is not self.last and not graph.is_before(self.last, demand.first):
            times += activations(done - demand.first.earliest, demand.task.period)
        return times


def waits(known: Known, stages: Stages) -> Iterator[Wait | Turns]:
    """Bounds on what the operations wait for, each of them valid; none if nothing bounds it."""
    graph, place = known.graph, stages.place
    if place in graph.slices:
        yield from _turns(known, stages)
        return
    head = graph.family[stages.first.task.name]
    own = _own(known, stages, graph.families_at[place][head])
    if own is None:
        return
    rivals = [tasks for other, tasks in graph.families_at[place].items() if other != head]
    asked = [[demand for task in tasks for demand in demands(known, place, task)] for tasks in rivals]
    asked = [family for family in asked if family]  # a thread that blocks may have no CPU time on its core
    yield from _by_rank(known, stages, own, asked)
    if graph.policies.get(place) in (Policy.EDF, Policy.EDF_RELEASE):
        yield from _by_deadlines(known, stages, own, asked)


def _by_rank(known: Known, stages: Stages, own: int, asked: Sequence[Sequence[Demand]]) -> Iterator[Wait]:
    """What is less urgent, where that counts, goes before only if it has begun."""
    graph, place = known.graph, stages.place
    rank = stages.rank if graph.is_ranked(place) else None
    groups, blockers = list[Workload](), list[Demand]()
    for family in asked:
        ahead = [demand for demand in family if rank is None or urgency(demand.task) >= rank]
        if graph.is_server(place):
            blockers += [demand for demand in family if demand not in ahead]
        if ahead:
            group = anywhere(known, ahead, place, len(stages.operations))
            if group is None:
                return
            groups.append(group)
    yield Wait(own, tuple(groups), longest_first(blockers), blocked(stages.operations))


def _by_deadlines(known: Known, stages: Stages, own: int, asked: Sequence[Sequence[Demand]]) -> Iterator[Wait]:
    """Only what has an earlier deadline goes before, and of the others one each time may have begun."""
    if any(operation.task is not stages.first.task for operation in stages.operations):
        return
    groups = []
    for family in asked:
        group = anywhere(known, family, stages.place, len(stages.operations))
        due = [_due_first(known, stages, demand) for demand in family]
        if group is None or None in due:
            return
        most = sum(times * demand.work for times, demand in zip(due, family, strict=True) if times is not None)
        groups.append(group._replace(most=most))
    blockers = longest_first(demand for family in asked for demand in family)
    yield Wait(own, tuple(groups), blockers, blocked(stages.operations))


def _due_first(known: Known, stages: Stages, demand: Demand) -> int | None:
    """How many jobs that are not done when the path begins can have a deadline up to that of its own job."""
    task, other = stages.first.task, demand.task
    since, arrival = known.since[demand.first.number], known.arrival(other)
    if since is None or arrival is None:
        return None
    arrival -= known.graph.earliest(other)
    ahead = task.deadline - other.deadline + since
    if known.graph.policies[stages.place] is Policy.EDF_RELEASE:
        ahead, arrival = ahead - task.jitter + other.jitter, arrival + other.jitter
    return -((ahead + arrival) // -other.period) if ahead > 0 else 0


def _own(known: Known, stages: Stages, tasks: Sequence[Task], slices: Slices | None = None) -> int | None:
    """What tasks of its own family can have there: of the same activation, and of others where they can overlap."""
    graph, place, first = known.graph, stages.place, stages.first
    done, found = known.end[stages.last.number], 0
    for task in tasks:
        if not graph.is_server(place) and urgency(task) < stages.rank:
            continue
        for demand in demands(known, place, task, slices):
            if demand.end is None or done is None:
                return None
            times = stages.beside(graph, demand, done)
            if not graph.is_before(demand.first, first) or task.spins:  # else earlier ones have ended, as it has
                times += activations(demand.end - first.earliest, task.period)
            found += times * demand.work
    return found


# Contexts that take turns


def _turns(known: Known, stages: Stages) -> Iterator[Turns]:
    """What one operation waits for where contexts take turns; several have no more than each by itself."""
    graph, place = known.graph, stages.place
    slices, contexts = graph.slices[place], dict[str | None, list[Task]]()
    for task in dict.fromkeys(graph.operations[number].task for number in graph.at[place]):
        contexts.setdefault(task.context, []).append(task)
    own = _share(known, stages, contexts.pop(stages.operations[0].task.context), None)
    if len(stages.operations) == 1 and own is not None:
        others = (_share(known, stages, tasks, slices) for tasks in contexts.values())
        yield Turns(stages.last.wcet, slices, own, tuple(others))


def _share(known: Known, stages: Stages, tasks: Sequence[Task], slices: Slices | None) -> Share | None:
    """What tasks of one context ask for: the one of the operation, or with `slices` another one."""
    graph, place = known.graph, stages.place
    families: dict[str, list[Task]] = {}
    for task in tasks:
        families.setdefault(graph.family[task.name], []).append(task)
    fixed = _own(known, stages, families.pop(graph.family[stages.first.task.name], ()), slices)
    groups = []
    for family in families.values():
        asked = [demand for task in family for demand in demands(known, place, task, slices)]
        group = anywhere(known, asked, place, len(stages.operations))
        if group is not None and slices is not None:  # what is ready later goes before as well
            group = group._replace(most=None) if group.rows else None
        if group is None:
            return None
        groups.append(group)
    return None if fixed is None else Share(fixed, groups)
