"""Why a schedule takes so long: what the warp that finishes last does in every cycle, and who keeps it waiting."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from makespan.model.instance import Instance
from makespan.model.schedule import Schedule
from makespan.report.schedule.activity import Bar, ResourceHold, ScheduleTrace, Wait, Why

_MOST_NAMED = 3


class RivalShare(NamedTuple):
    """The number of the cycles in which `warp` held what the last warp waited for."""

    warp: int
    cycles: int


class Starvation(NamedTuple):
    """Cycles in which the last warp was ready and could not issue.

    Args:
        unit: the class, or the resource, of which all ports were held that the last warp could use; None where such
            ports were free and others used up the issue width.
        cycles: how many.
        by: the warps that held one of these ports, or issued, in these cycles; most cycles first. The last warp may be
            among them: where the interval is longer than the latency it can wait for a port that it holds itself.
    """

    unit: str | None
    cycles: int
    by: tuple[RivalShare, ...]


class Stall(NamedTuple):
    """The cycles in which latencies, stalls or results of class `unit` hold a warp, without the cycles of issue."""

    unit: str
    cycles: int


@dataclass(frozen=True, slots=True)
class Explanation:
    """The time of the warp that finishes last, in cycles; of several that do, the one with the smallest number.

    Args:
        warp: its number.
        together: how many warps finish in that cycle, itself included.
        executing: cycles in which it issues an instruction.
        starved: most cycles first; only what occurs.
        stalled: most cycles first; only what occurs.
        barriers: cycles of waiting for other warps of its block.
        awaited: what a warp that runs ahead waits for, by the class that computes it; most cycles first.
        runs_ahead: whether it does, so that what stalls it are no latencies.
    """

    warp: int
    together: int
    executing: int
    starved: tuple[Starvation, ...]
    stalled: tuple[Stall, ...]
    barriers: int
    awaited: tuple[Stall, ...] = ()
    runs_ahead: bool = False

    @property
    def cycles(self) -> int:
        """Return all of them together: the makespan."""
        waiting = sum(each.cycles for each in (*self.stalled, *self.awaited))
        return self.executing + sum(each.cycles for each in self.starved) + waiting + self.barriers


def explain(instance: Instance, schedule: Schedule) -> Explanation:
    """Explain on what the last warp of a valid schedule spends its time.

    >>> instance = Instance.of("CL", 2)
    >>> explained = explain(instance, Schedule.of_chains(instance, [(0,), (0, 1), (1,)]))
    >>> explained.warp, explained.executing, explained.starved
    (1, 2, (Starvation(unit='C', cycles=1, by=(RivalShare(warp=0, cycles=1),)),))
    """
    return explain_trace(ScheduleTrace.of(instance, schedule))


def explain_trace(trace: ScheduleTrace) -> Explanation:
    """Return the same explanation of a schedule whose activities are known."""
    instance, ends = trace.instance, [0] * trace.instance.warps
    for bar in trace.bars:
        ends[bar.warp] = bar.first_cycle + 1
    for wait in trace.waits:
        ends[wait.warp] = max(ends[wait.warp], wait.first_cycle + wait.cycles)
    last = ends.index(max(ends))
    group = instance.groups[instance.group_of_warp()[last]]
    spent = [wait for wait in trace.waits if wait.warp == last]
    rivals = _rivals(trace, last)
    return Explanation(
        last,
        ends.count(max(ends)),
        sum(bar.warp == last for bar in trace.bars),
        tuple(sorted(_starvations(spent, rivals), key=lambda each: -each.cycles)),
        _by_class(spent, Why.STALLED),
        sum(wait.cycles for wait in spent if wait.why is Why.BARRIER),
        _by_class(spent, Why.RESULT),
        group.program.runs_ahead,
    )


def _by_class(spent: Iterable[Wait], why: Why) -> tuple[Stall, ...]:
    cycles = Counter[str]()
    for wait in spent:
        if wait.why is why:
            cycles[wait.unit] += wait.cycles
    return tuple(Stall(*item) for item in cycles.most_common())


_RivalsOf = Callable[[str | None], Iterable[Bar | ResourceHold]]
"""Who holds a port of a class or of some resources, or issues (None), where the last warp does; in order of time."""


def _rivals(trace: ScheduleTrace, last: int) -> _RivalsOf:
    parts, shared = trace.partitions, {ports.name for ports in trace.instance.machine.ports if ports.shared}

    def of(what: str | None) -> Iterator[Bar | ResourceHold]:
        names = set() if what is None else set(what.split(" or "))
        of_resource = bool(names & {hold.resource for hold in trace.holds})
        told: Iterable[Bar | ResourceHold] = trace.holds if of_resource else trace.bars
        for each in told:
            name = each.resource if isinstance(each, ResourceHold) else each.unit
            is_here = parts[each.warp] == parts[last]
            if what is None and is_here:
                yield each._replace(cycles=1)
            elif name in names and (is_here or name in shared):
                yield each

    return of


def _starvations(spent: Sequence[Wait], rivals: _RivalsOf) -> Iterator[Starvation]:
    lacking: defaultdict[str | None, list[Wait]] = defaultdict(list)
    for wait in spent:
        if wait.why in (Why.PORT, Why.RESOURCE, Why.SLOT):
            lacking[{Why.PORT: wait.unit, Why.RESOURCE: str(wait.cause), Why.SLOT: None}[wait.why]].append(wait)
    for what, lack in sorted(lacking.items(), key=lambda item: (item[0] is None, item[0])):
        yield Starvation(what, sum(wait.cycles for wait in lack), _rival_shares(lack, rivals(what)))


def _rival_shares(lack: Sequence[Wait], rivals: Iterable[Bar | ResourceHold]) -> tuple[RivalShare, ...]:
    """Return the warps that hold the ports during the waits, with the numbers of cycles, in order of time."""
    held: defaultdict[int, list[Bar | ResourceHold]] = defaultdict(list)
    for each in rivals:
        held[each.warp].append(each)
    shares = Counter[int]()
    for warp, own in held.items():
        begin = reached = 0
        for each in own:
            first, end = max(each.first_cycle, reached), each.first_cycle + each.cycles
            reached = max(reached, end)  # of two ports held in the same cycle one counts
            while begin < len(lack) and lack[begin].first_cycle + lack[begin].cycles <= first:
                # waits that ended before this hold cannot meet a later hold of the warp, either
                begin += 1
            number = begin
            while number < len(lack) and lack[number].first_cycle < end:
                since, cycles, *_ = lack[number]
                shares[warp] += max(0, min(end, since + cycles) - max(first, since))
                number += 1
    return tuple(RivalShare(*item) for item in sorted(shares.items(), key=lambda item: (-item[1], item[0])) if item[1])


def explanation_words(explained: Explanation) -> str:
    """Return one sentence, with the warps that take most.

    >>> starved = Starvation("C", 71, (RivalShare(0, 60), RivalShare(3, 11)))
    >>> explanation_words(Explanation(7, 1, 22, (starved,), (Stall("L", 29),), 0))
    'the last warp, number 7: 22 cycles executing, 71 starved on C (by warps 0: 60, 3: 11), 29 stalled on latency (L)'
    """
    others = explained.together - 1
    also = f" ({others} more {'finishes' if others == 1 else 'finish'} in the same cycle)" if others else ""
    parts = [f"{explained.executing} {'cycle' if explained.executing == 1 else 'cycles'} executing"]
    for lack in explained.starved[:_MOST_NAMED]:
        what = "issue slots" if lack.unit is None else lack.unit
        parts.append(f"{lack.cycles} starved on {what} ({_rival_words(lack.by)})")
    if rest := sum(each.cycles for each in explained.starved[_MOST_NAMED:]):
        parts.append(f"{rest} starved on the rest")
    for verb, each in (
        ("stalled by the instruction before" if explained.runs_ahead else "stalled on latency", explained.stalled),
        ("waiting for results", explained.awaited),
    ):
        if each:
            parts.append(f"{sum(stall.cycles for stall in each)} {verb} ({_class_words(each)})")
    if explained.barriers:
        parts.append(f"{explained.barriers} waiting at barriers")
    return f"the last warp, number {explained.warp}{also}: {', '.join(parts)}"


def _rival_words(by: Sequence[RivalShare]) -> str:
    named = ", ".join(f"{warp}: {cycles}" for warp, cycles in by[:_MOST_NAMED])
    if len(by) > _MOST_NAMED:
        return f"most by warps {named}"
    return f"by warps {named}" if len(by) > 1 else f"by warp {by[0].warp}"


def _class_words(stalls: Sequence[Stall]) -> str:
    if len(stalls) == 1:
        return stalls[0].unit
    named = [f"{unit}: {cycles}" for unit, cycles in stalls[:_MOST_NAMED]]
    return ", ".join([*named, "..."] if len(stalls) > _MOST_NAMED else named)


def explanation_document(explained: Explanation) -> dict[str, Any]:
    """Return the same as plain data; `unit` is null for issue slots, and `awaited` is there if the warp runs ahead."""
    return {
        "warp": explained.warp,
        "together": explained.together,
        "cycles": explained.cycles,
        "executing": explained.executing,
        "starved": [
            {"unit": unit, "cycles": cycles, "by": [share._asdict() for share in by]}
            for unit, cycles, by in explained.starved
        ],
        "stalled": [stall._asdict() for stall in explained.stalled],
        **({"awaited": [stall._asdict() for stall in explained.awaited]} if explained.runs_ahead else {}),
        "barriers": explained.barriers,
    }
