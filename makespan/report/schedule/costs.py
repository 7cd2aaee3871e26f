"""What each instruction costs in a schedule, and each line that it comes from: cycles of all warps together."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import NamedTuple, TypeVar

from makespan.model.instance import Instance
from makespan.model.program import InstructionOrigin
from makespan.report.schedule.activity import Bar, Wait, Why

_CostKey = TypeVar("_CostKey", bound=Hashable)


class Cost(NamedTuple):
    """Cycles of all warps together; those of a warp are told apart as in `activity.Wait`, each counted once.

    Args:
        issued: how often it is executed, each for one cycle.
        stalled: those that pass after it before its warp may go on.
        result: those in which it waits for results.
        port: for a port of its class.
        resource: for one of a resource.
        slot: for an issue slot.
        barrier: as a barrier, for other warps.
        awaited: in which others, or the end of a warp, wait for its result: theirs, and not in `cycles`.
    """

    issued: int = 0
    stalled: int = 0
    result: int = 0
    port: int = 0
    resource: int = 0
    slot: int = 0
    barrier: int = 0
    awaited: int = 0

    @property
    def cycles(self) -> int:
        """Return all that are its own."""
        return sum(self[:-1])


_OF = {
    Why.STALLED: "stalled",
    Why.RESULT: "result",
    Why.PORT: "port",
    Why.RESOURCE: "resource",
    Why.SLOT: "slot",
    Why.BARRIER: "barrier",
}


def cost_by_key(
    instance: Instance, bars: Iterable[Bar], waits: Iterable[Wait], key: Callable[[InstructionOrigin], _CostKey]
) -> dict[_CostKey, Cost]:
    """Return the cost of every instruction that warps of a schedule execute, of those with the same key together.

    The cycles of all costs are those of all warps until each has finished. A place that several instructions share
    counts for the first of them.

    Args:
        bars, waits: as in `activity`, the waits of ready warps told apart; of warps whose programs have origins.

    >>> from makespan import Schedule
    >>> from makespan.model.instance import Group
    >>> from makespan.model.program import Program
    >>> from makespan.report.schedule.activity import bars, waits
    >>> program = Program.chain("CL", origins=[InstructionOrigin("k.ptx", 3), InstructionOrigin("k.ptx", 4)])
    >>> instance = Instance.merged([(program, 2)])
    >>> schedule = Schedule.of_chains(instance, [(0,), (0, 1), (1,)])
    >>> issued = bars(instance, schedule)
    >>> found = cost_by_key(instance, issued, waits(instance, schedule, issued), lambda origin: origin.line)
    >>> found[3]
    Cost(issued=2, stalled=0, result=0, port=1, resource=0, slot=0, barrier=0, awaited=0)
    """
    keys = [[key(origin) for origin in group.program.origins] for group in instance.groups]
    of_warp: Sequence[Sequence[_CostKey]] = [keys[group] for group in instance.group_of_warp()]
    found: defaultdict[_CostKey, dict[str, int]] = defaultdict(lambda: dict.fromkeys(Cost._fields, 0))
    for bar in bars:
        found[of_warp[bar.warp][bar.place]]["issued"] += 1
    for wait in waits:
        found[of_warp[wait.warp][wait.place]][_OF[wait.why]] += wait.cycles
        if wait.why is Why.RESULT and isinstance(wait.cause, int):
            found[of_warp[wait.warp][wait.cause]]["awaited"] += wait.cycles
    return {each: Cost(**counts) for each, counts in found.items()}
