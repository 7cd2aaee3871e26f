"""Why a schedule takes so long: what the warp that finishes last does in every cycle, and who keeps it waiting."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from makespan.instance import Instance
from makespan.report.schedule.activity import Bar, Wait, Why, bars, full, held, split, waits
from makespan.schedule import Schedule

_MOST_NAMED = 3


class Share(NamedTuple):
    """In so many of the cycles `warp` had what the last warp waited for."""

    warp: int
    cycles: int


class Starvation(NamedTuple):
    """Cycles in which the last warp was ready and could not issue.

    Args:
        unit: the class of which all ports were held; None where a port was free and others used up the issue width.
        cycles: how many.
        by: the warps that held a port of the class, or issued, in these cycles; most cycles first. The last warp may be
            among them: where the interval is longer than the latency it can wait for a port that it holds itself.
    """

    unit: str | None
    cycles: int
    by: tuple[Share, ...]


class Stall(NamedTuple):
    """Cycles in which latencies of instructions of class `unit` pass, without those of their issue."""

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
    """

    warp: int
    together: int
    executing: int
    starved: tuple[Starvation, ...]
    stalled: tuple[Stall, ...]
    barriers: int

    @property
    def cycles(self) -> int:
        """All of them together: the makespan."""
        waiting = sum(each.cycles for each in self.starved) + sum(each.cycles for each in self.stalled)
        return self.executing + waiting + self.barriers


def explain(instance: Instance, schedule: Schedule) -> Explanation:
    """What the last warp of a valid schedule spends its time on.

    >>> instance = Instance.of("CL", 2)
    >>> explained = explain(instance, Schedule.of_chains(instance, [(0,), (0, 1), (1,)]))
    >>> explained.warp, explained.executing, explained.starved
    (1, 2, (Starvation(unit='C', cycles=1, by=(Share(warp=0, cycles=1),)),))
    """
    issued = bars(instance, schedule)
    gates = held(instance, schedule, issued)
    ends = [0] * instance.warps
    for bar in issued:
        ends[bar.warp] = bar.first_cycle + bar.latency
    for gate in gates:
        ends[gate.warp] = max(ends[gate.warp], gate.first_cycle + gate.cycles)
    last = ends.index(max(ends))
    own = [bar for bar in issued if bar.warp == last]
    spent = sorted(split(waits(own, [gate for gate in gates if gate.warp == last]), full(instance, issued)))
    stalled = Counter[str]()
    for wait in spent:
        if wait.why is Why.STALLED:
            stalled[wait.unit] += wait.cycles
    return Explanation(
        last,
        ends.count(max(ends)),
        len(own),
        tuple(sorted(_starved(issued, spent), key=lambda each: -each.cycles)),
        tuple(Stall(*item) for item in stalled.most_common()),
        sum(wait.cycles for wait in spent if wait.why is Why.BARRIER),
    )


def _starved(bars: Sequence[Bar], spent: Sequence[Wait]) -> Iterator[Starvation]:
    for unit in sorted({wait.unit for wait in spent if wait.why is Why.PORT}):
        lack = [wait for wait in spent if wait.why is Why.PORT and wait.unit == unit]
        yield Starvation(unit, sum(wait.cycles for wait in lack), _shares(lack, (b for b in bars if b.unit == unit)))
    if lack := [wait for wait in spent if wait.why is Why.SLOT]:
        issues = (bar._replace(cycles=1) for bar in bars)
        yield Starvation(None, sum(wait.cycles for wait in lack), _shares(lack, issues))


def _shares(lack: Sequence[Wait], bars: Iterable[Bar]) -> tuple[Share, ...]:
    """Whose bars fall into the waits, and in how many cycles; all in order of time, the bars equally long."""
    shares = Counter[int]()
    reached: dict[int, int] = {}
    begin = 0
    for bar in bars:
        first, end = max(bar.first_cycle, reached.get(bar.warp, 0)), bar.first_cycle + bar.cycles
        reached[bar.warp] = end  # of two ports held in the same cycle one counts
        while begin < len(lack) and lack[begin].first_cycle + lack[begin].cycles <= bar.first_cycle:
            begin += 1
        number = begin
        while number < len(lack) and lack[number].first_cycle < end:
            since, cycles, *_ = lack[number]
            shares[bar.warp] += max(0, min(end, since + cycles) - max(first, since))
            number += 1
    return tuple(Share(*item) for item in sorted(shares.items(), key=lambda item: (-item[1], item[0])) if item[1])


def words(explained: Explanation) -> str:
    """One sentence, with the warps that take most.

    >>> words(Explanation(7, 1, 22, (Starvation("C", 71, (Share(0, 60), Share(3, 11))),), (Stall("L", 29),), 0))
    'the last warp, number 7: 22 cycles executing, 71 starved on C (by warps 0: 60, 3: 11), 29 stalled on latency (L)'
    """
    others = explained.together - 1
    also = f" ({others} more {'finishes' if others == 1 else 'finish'} in the same cycle)" if others else ""
    parts = [f"{explained.executing} {'cycle' if explained.executing == 1 else 'cycles'} executing"]
    for each in explained.starved[:_MOST_NAMED]:
        what = "issue slots" if each.unit is None else each.unit
        parts.append(f"{each.cycles} starved on {what} ({_most(each.by)})")
    if rest := sum(each.cycles for each in explained.starved[_MOST_NAMED:]):
        parts.append(f"{rest} starved on the rest")
    if explained.stalled:
        parts.append(f"{sum(each.cycles for each in explained.stalled)} stalled on latency ({_classes(explained)})")
    if explained.barriers:
        parts.append(f"{explained.barriers} waiting at barriers")
    return f"the last warp, number {explained.warp}{also}: {', '.join(parts)}"


def _most(by: Sequence[Share]) -> str:
    named = ", ".join(f"{warp}: {cycles}" for warp, cycles in by[:_MOST_NAMED])
    if len(by) > _MOST_NAMED:
        return f"most by warps {named}"
    return f"by warps {named}" if len(by) > 1 else f"by warp {by[0].warp}"


def _classes(explained: Explanation) -> str:
    if len(explained.stalled) == 1:
        return explained.stalled[0].unit
    named = [f"{unit}: {cycles}" for unit, cycles in explained.stalled[:_MOST_NAMED]]
    return ", ".join([*named, "..."] if len(explained.stalled) > _MOST_NAMED else named)


def explanation_document(explained: Explanation) -> dict[str, Any]:
    """The same as plain data; `unit` is null for issue slots."""
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
        "barriers": explained.barriers,
    }
