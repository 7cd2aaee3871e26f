"""What a path of operations waits for in a window, resource by resource, and how long the window is with that."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from makespan.deadlines.arrivals import StepBudget
from makespan.deadlines.demand import Demand
from makespan.deadlines.operations import TaskOperation
from makespan.deadlines.slices import ContextTurns
from makespan.deadlines.workload import Workload


class Blocker(NamedTuple):
    """Operations that do not go before, but may have begun: what is left of one of them, and how many may come."""

    rest: int
    period: int
    late: int | None

    @classmethod
    def of(cls, demand: Demand) -> "Blocker":
        """It has run for a tick at least when somebody finds it."""
        return cls(demand.work - 1, demand.task.period, demand.late)


class StageWait(NamedTuple):
    """What the operations of a path on one resource wait for there.

    Args:
        own: of the same family, whenever it comes.
        others: of every other family.
        blockers: the longest first.
        stages: how many of the operations may find that one of the blockers has begun.
    """

    own: int
    others: tuple[Workload, ...]
    blockers: tuple[Blocker, ...]
    stages: int

    @property
    def cost(self) -> int:
        """Additions for one length."""
        return 1 + len(self.others) + min(self.stages, len(self.blockers))

    def within(self, length: int) -> int:
        """Ticks of a window."""
        found = self.own + sum(other.within(length) for other in self.others)
        left = self.stages
        for rest, period, late in self.blockers:  # each job blocks once
            times = left if late is None else min(left, -((length + late) // -period))
            found, left = found + times * rest, left - times
            if not left:
                break
        return found


class ResourceTime(NamedTuple):
    """What a path takes on one resource: its `work` and the least of `waits`, or `spans` if that is less.

    Args:
        spans: what its operations take one by one, each from when it is ready.
    """

    work: int
    spans: int | None
    waits: tuple[StageWait | ContextTurns, ...]

    @property
    def cost(self) -> int:
        """Additions for one length."""
        return 1 + sum(wait.cost for wait in self.waits)

    def within(self, length: int) -> int:
        """Ticks of a window."""
        least = min((self.work + wait.within(length) for wait in self.waits), default=self.spans)
        if least is None:
            raise ValueError("nothing bounds what a path takes on a resource")
        return least if self.spans is None else min(least, self.spans)


def least_length(
    fixed: int, ways: Sequence[ResourceTime], horizon: int, steps: StepBudget, least: int = 1
) -> int | None:
    """Return the least length that holds all that a path takes in so long a window; None beyond the horizon.

    Args:
        fixed: ticks for which no resource is needed.
        least: a length that it cannot be below.

    Raises:
        OutOfStepsError: it takes longer than allowed.
    """
    cost = sum(way.cost for way in ways)
    length = max(least, fixed + sum(way.work for way in ways))
    while length <= horizon:
        steps.spend(cost)
        demand = fixed + sum(way.within(length) for way in ways)
        if demand <= length:
            return length
        length = demand
    return None


def count_blockable(stages: Sequence[TaskOperation]) -> int:
    """Return how many of the operations may find that another one has begun.

    Not one that is ready at the instant at which what comes before it leaves the same server: nothing has begun then.
    """
    return sum(not operation.is_handed_over for operation in stages)


def longest_first(blockers: Iterable[Blocker]) -> tuple[Blocker, ...]:
    """Those of which something is left once they have begun."""
    return tuple(sorted((b for b in blockers if b.rest), key=lambda blocker: -blocker.rest))
