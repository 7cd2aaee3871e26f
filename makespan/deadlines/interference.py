"""The interference that the operations of a path meet on one resource, and the length of a window that holds it all.

A window begins when the first operation of the path is ready. Proof: docs/schedulability_theory.md, theorem 8, and
theorem 10 for a partition that contexts take in turn; within a context kernels are served first in, first out.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from makespan.deadlines.arrivals import StepBudget
from makespan.deadlines.operations import BoundTable, Graph, TaskOperation, urgency
from makespan.deadlines.task import ServerPolicy, Slices
from makespan.deadlines.workload import (
    Demand,
    Workload,
    demands,
    overlapping_activations,
    work_in_any_window,
    work_since_idle,
)


class ContextShare(NamedTuple):
    """The work of one context: `fixed` ticks at any time, and `more` in a window."""

    fixed: int
    more: Sequence[Workload]

    def within(self, length: int) -> int:
        """Return the most ticks that it takes of a window of this length."""
        return self.fixed + sum(work.within(length) for work in self.more)


class ContextTurns(NamedTuple):
    """The wait of a kernel of `wcet` ticks on a partition that contexts take in turn.

    Args:
        own: The work of its own context before it, without switches.
        others: The work of each other context, with switches; None where it has no known bound.
    """

    wcet: int
    slices: Slices
    own: ContextShare
    others: tuple[ContextShare | None, ...]

    @property
    def cost(self) -> int:
        """Return the additions that one length costs."""
        return 1 + sum(1 if share is None else 1 + len(share.more) for share in (self.own, *self.others))

    def within(self, length: int) -> int:
        """Return the longest wait in a window: each other context has at most one turn before each own turn.

        Source: round robin as in Wang, Liu, Wong and Kim, ECRTS 2024, Lemma 1, with the switches back to the context.
        """
        before = self.own.within(length)
        if not self.others:  # a partition with one context never switches
            return before
        length_of_turn, switch = self.slices.length, self.slices.switch
        turns = -(-(self.wcet + before) // length_of_turn)  # `s` of theorem 10: own turns that begin in the window
        most = turns * (length_of_turn + switch)
        waits = (most if share is None else min(most, share.within(length)) for share in self.others)
        return before + turns * switch + sum(waits)


class Blocker(NamedTuple):
    """An operation that does not go before, but may have begun: what is left of it, and how often it may come."""

    rest: int
    period: int
    late: int | None

    @classmethod
    def of(cls, demand: Demand) -> "Blocker":
        """Return the blocker for a demand: when it blocks, it has run for at least one tick."""
        # whole ticks; theorem 4 makes it right in continuous time
        return cls(demand.work - 1, demand.task.period, demand.late)


class StageWait(NamedTuple):
    """The wait of the operations of a path on one resource.

    Args:
        own: The work of the same family, whenever it comes.
        others: The work of every other family.
        blockers: The work that may have begun, the longest first.
        stages: How many of the operations may find that one of the blockers has begun.
    """

    own: int
    others: tuple[Workload, ...]
    blockers: tuple[Blocker, ...]
    stages: int

    @property
    def cost(self) -> int:
        """Return the additions that one length costs."""
        return 1 + len(self.others) + min(self.stages, len(self.blockers))

    def within(self, length: int) -> int:
        """Return the longest wait in a window of this length."""
        found = self.own + sum(other.within(length) for other in self.others)
        left = self.stages
        for rest, period, late in self.blockers:  # each job blocks once
            times = left if late is None else min(left, -((length + late) // -period))
            found, left = found + times * rest, left - times
            if not left:
                break
        return found


class ResourceTime(NamedTuple):
    """The time of a path on one resource: its `work` and the least of `waits`, or `spans` if that is less.

    Args:
        spans: The sum of what its operations take one by one, each from when it is ready; None without a bound.
    """

    work: int
    spans: int | None
    waits: tuple[StageWait | ContextTurns, ...]

    @property
    def cost(self) -> int:
        """Return the additions that one length costs."""
        return 1 + sum(wait.cost for wait in self.waits)

    def within(self, length: int) -> int:
        """Return the most ticks that the path spends there in a window of this length."""
        least = min((self.work + wait.within(length) for wait in self.waits), default=self.spans)
        if least is None:
            raise ValueError("nothing bounds what a path takes on a resource")
        return least if self.spans is None else min(least, self.spans)  # both are bounds on the same ticks


def least_length(
    fixed: int, ways: Sequence[ResourceTime], horizon: int, steps: StepBudget, least: int = 1
) -> int | None:
    """Return the least length of a window that holds all that a path takes in it; None beyond the horizon.

    Args:
        fixed: The ticks for which no resource is needed.
        least: A length that it cannot be below.

    Raises:
        OutOfStepsError: it takes longer than allowed.
    """
    cost = sum(way.cost for way in ways)
    length = max(least, fixed + sum(way.work for way in ways))  # no solution is less, so the iteration may start there
    while length <= horizon:
        steps.spend(cost)
        demand = fixed + sum(way.within(length) for way in ways)
        if demand <= length:
            return length
        length = demand
    return None


def count_blockable(stages: Sequence[TaskOperation]) -> int:
    """Return how many of the operations may find that another one has begun.

    An operation that is ready at the instant at which its source leaves the same server finds none.
    """
    return sum(not operation.is_handed_over for operation in stages)


def longest_first(blockers: Iterable[Blocker]) -> tuple[Blocker, ...]:
    """Return the blockers of which something is left once they have begun, the longest rest first."""
    return tuple(sorted((b for b in blockers if b.rest), key=lambda blocker: -blocker.rest))


class PathStages(NamedTuple):
    """The operations of a path on one resource.

    Args:
        first: The first operation of the whole path, on this resource or not: the window begins when it is ready.
        rank: The urgency of the least urgent of them.
    """

    resource: str
    operations: Sequence[TaskOperation]
    first: TaskOperation
    rank: int

    @property
    def last(self) -> TaskOperation:
        """Return the last of them."""
        return self.operations[-1]

    def beside(self, graph: Graph, demand: Demand, done: int) -> int:
        """Return how often work of the own family may go before them, of the same activation or a later one.

        Args:
            done: The longest time from the event until the end of the last of them.
        """
        times = int(any(graph.is_concurrent(demand.task, operation.task) for operation in self.operations))
        if demand.task is self.last.task and not graph.is_server(self.resource):
            return times  # on a core the earlier job of a task goes first
        # what follows the last stage follows it in every activation, since activations keep their order
        if demand.first is not self.last and not graph.is_before(self.last, demand.first):
            times += overlapping_activations(done - demand.first.earliest, demand.task.period)
        return times


def stage_waits(known: BoundTable, stages: PathStages) -> Iterator[StageWait | ContextTurns]:
    """Yield bounds on what the operations wait for, each of them valid; none if nothing bounds it."""
    graph, resource = known.graph, stages.resource
    if resource in graph.slices:
        yield from _context_turns(known, stages)
        return
    head = graph.family[stages.first.task.name]
    own = _own_family(known, stages, demands(known, resource, head))
    if own is None:  # its own family has no bound yet
        return
    rank = stages.rank if graph.is_ranked(resource) else None  # elsewhere everything may go before
    if (asked := rival_demand(known, head, resource, rank, len(stages.operations))) is not None:
        yield StageWait(own + asked.fixed, asked.workloads, asked.blockers, count_blockable(stages.operations))
    if graph.policies.get(resource) in (ServerPolicy.EDF, ServerPolicy.EDF_RELEASE):
        others = graph.rivals[resource][head]
        yield from _by_deadlines(known, stages, own, [demands(known, resource, other) for other in others])


class RivalDemand(NamedTuple):
    """The demand of other families; `fixed` is the part that is the same for any window."""

    fixed: int
    workloads: tuple[Workload, ...]
    blockers: tuple[Blocker, ...]


def rival_demand(
    known: BoundTable, head: str, resource: str, rank: int | None, stages: int | None
) -> RivalDemand | None:
    """Return what all families but that of `head` demand of a resource; None where nothing bounds it.

    Args:
        rank: Less urgent work goes before only if it has begun; None means that urgency does not count.
        stages: The operations that become ready in any window; None means a window before which all was done.
    """
    fixed, workloads, blockers = 0, list[Workload](), list[Blocker]()
    for other in known.graph.rivals[resource][head]:
        key = other, resource, rank, stages
        rival = known.kept((_rival_family, *key), (other,), partial(_rival_family, known, *key))
        if rival is None:
            return None
        fixed += rival.fixed
        workloads += rival.workloads
        blockers += rival.blockers
    return RivalDemand(fixed, tuple(workloads), longest_first(blockers))


def _rival_family(
    known: BoundTable, head: str, resource: str, rank: int | None, stages: int | None
) -> RivalDemand | None:
    ahead, blockers = split_by_urgency(known, head, resource, rank)
    if not ahead:  # of a thread that blocks its core may have none at all
        return RivalDemand(0, (), blockers)
    workload = work_since_idle(known, ahead) if stages is None else work_in_any_window(known, ahead, resource, stages)
    if workload is None:
        return None
    # the same for every window, so it is added once, not at each length
    if workload.stairs is None and workload.most is not None:
        return RivalDemand(workload.most, (), blockers)
    return RivalDemand(0, (workload,), blockers)


def split_by_urgency(
    known: BoundTable, head: str, resource: str, rank: int | None
) -> tuple[list[Demand], tuple[Blocker, ...]]:
    """Return the demands of a family that are at least as urgent as `rank`, and blockers for the others."""
    asked = demands(known, resource, head)
    ahead = [demand for demand in asked if rank is None or urgency(demand.task) >= rank]
    # a core preempts what is less urgent, so only a server can be blocked
    later = [demand for demand in asked if demand not in ahead] if known.graph.is_server(resource) else []
    return ahead, tuple(map(Blocker.of, later))


def _by_deadlines(
    known: BoundTable, stages: PathStages, own: int, asked: Sequence[Sequence[Demand]]
) -> Iterator[StageWait]:
    """Yield a bound where only earlier deadlines go before, and one of the others each time may have begun."""
    if any(operation.task is not stages.first.task for operation in stages.operations):
        return
    groups = []
    for family in asked:
        group = work_in_any_window(known, family, stages.resource, len(stages.operations))
        due = [_due_first(known, stages, demand) for demand in family]
        if group is None or None in due:
            return
        most = sum(times * demand.work for times, demand in zip(due, family, strict=True) if times is not None)
        groups.append(group._replace(most=most))  # both bound the same work: the window, and the deadlines
    # with a later deadline any of them may have begun
    blockers = longest_first(Blocker.of(demand) for family in asked for demand in family)
    yield StageWait(own, tuple(groups), blockers, count_blockable(stages.operations))


def _due_first(known: BoundTable, stages: PathStages, demand: Demand) -> int | None:
    """Return how many unfinished jobs, when the path begins, can have a deadline up to that of its job."""
    task, other = stages.first.task, demand.task
    since, arrival = known.since[demand.first.number], known.arrival(other)
    if since is None or arrival is None:
        return None
    arrival -= known.graph.earliest(other)  # `A`: how much later than at the earliest the other arrives, at most
    ahead = task.deadline - other.deadline + since
    if known.graph.policies[stages.resource] is ServerPolicy.EDF_RELEASE:
        ahead, arrival = ahead - task.jitter + other.jitter, arrival + other.jitter
    return -((ahead + arrival) // -other.period) if ahead > 0 else 0  # the arrivals in an interval of D_i - D_j + R + A


def _own_family(known: BoundTable, stages: PathStages, asked: Sequence[Demand]) -> int | None:
    """Return the work of the own family: of the same activation, and of others that can overlap with it."""
    graph, first = known.graph, stages.first
    done, found = known.end[stages.last.number], 0
    for demand in asked:
        task = demand.task
        if not graph.is_server(stages.resource) and urgency(task) < stages.rank:  # a core preempts it
            continue
        if demand.end is None or done is None:
            return None
        times = stages.beside(graph, demand, done)
        if not graph.is_before(demand.first, first) or task.spins:  # else earlier ones have ended, as it has
            times += overlapping_activations(demand.end - first.earliest, task.period)
        found += times * demand.work
    return found


# Contexts that take turns


def _context_turns(known: BoundTable, stages: PathStages) -> Iterator[ContextTurns]:
    """Yield the wait of one operation where contexts take turns; several operations wait each by itself."""
    graph, resource = known.graph, stages.resource
    slices, mine = graph.slices[resource], stages.last.task.context
    # a context that computes on a core in between loses its turn
    if len(stages.operations) > 1 or (own := _context_share(known, stages, mine, None)) is None:
        return
    contexts = dict.fromkeys(task.context for task in graph.residents[resource] if task.context != mine)
    # None is allowed: s (L + θ) needs none
    others = (_context_share(known, stages, context, slices) for context in contexts)
    yield ContextTurns(stages.last.wcet, slices, own, tuple(others))


def _context_share(
    known: BoundTable, stages: PathStages, context: str | None, slices: Slices | None
) -> ContextShare | None:
    """Return the work of a context: of the operation's own or, with `slices`, of another one."""
    graph, resource, head = known.graph, stages.resource, known.graph.family[stages.first.task.name]
    asked = {
        other: [demand for demand in demands(known, resource, other, slices) if demand.task.context == context]
        for other in graph.families_at[resource]
    }
    fixed, groups = _own_family(known, stages, asked.pop(head)), []
    for demanded in filter(None, asked.values()):
        # only within the own context kernels go first in, first out
        group = work_in_any_window(known, demanded, resource, 0 if slices is not None else len(stages.operations))
        if group is None:
            return None
        groups.append(group)
    return None if fixed is None else ContextShare(fixed, groups)
