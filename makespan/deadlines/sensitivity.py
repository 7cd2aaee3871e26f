"""How far a system is from its limit: the last value of a quantity that is still proven, and the next one that is not.

A search starts at the system as it is, doubles or halves until the answer changes, then bisects. Both ends of the
result are answers of the analysis, so it stands for an analysis that is not monotone too; that nothing beyond `fails`
holds again rests on monotonicity.

Where events may lie between ticks, no time is rounded: a thousandth of each is counted in ticks a thousand times as
short. Where everything happens at whole ticks, execution times are rounded up to them, and so are periods.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil
from typing import Protocol

from makespan.deadlines.assignment import TaskSetAnalysis
from makespan.deadlines.chains import heads, predecessors
from makespan.deadlines.task import MAX_TICKS, JobSegment, SegmentKind, TaskSet
from makespan.deadlines.verdict import DeadlineAnswer, TaskSetVerdict

THOUSANDTHS = 1000
"""Factors are multiples of a thousandth."""

MOST_FACTOR = 1024
"""Where the search for a border ends: a thousand times as much, or a thousandth."""


@dataclass(frozen=True, slots=True)
class Margin:
    """The border between what is proven and what is not, of one quantity.

    Args:
        quantity: what was varied.
        holds: the last value at which all deadlines are proven; None where none was found.
        fails: the neighbouring value at which they are not; None where none was found.
        breaks: tasks and chains without a proof, and overloaded resources, at `fails`.
        refuted: whether there is evidence of a miss or of overload at `fails`, not only a lack of proof.
        supposes: the tasks whose given times must be attained for this evidence.
    """

    quantity: str
    holds: Fraction | None
    fails: Fraction | None
    breaks: tuple[str, ...]
    refuted: bool
    supposes: tuple[str, ...] = ()


class DeadlineProof(Protocol):
    """Whether an analysis proves every deadline, without saying more; `is_proven` is one."""

    def __call__(self, task_set: TaskSet, /) -> bool:
        """Return whether its answer is yes."""
        ...


def execution_factor(
    task_set: TaskSet, analysis: TaskSetAnalysis, proves: DeadlineProof, *, only: str | None = None
) -> Margin:
    """Return the largest factor on the execution times of all kernels, or of those of task `only`, in thousandths.

    Args:
        analysis: says who is late where it fails.
        proves: whether the answer of `analysis` is yes; asked for every other value.
    """
    finer = 1 if task_set.unit == 1 else THOUSANDTHS
    whole = task_set.finer(finer)

    def at(thousandths: int) -> TaskSet:
        def longer(ticks: int) -> int:
            return min(MAX_TICKS, ceil(Fraction(ticks * thousandths, THOUSANDTHS)))

        def scaled(segment: JobSegment) -> JobSegment:
            if segment.kind is not SegmentKind.KERNEL:
                return segment
            attained = None if segment.attained is None else longer(segment.attained)
            return replace(segment, wcet=longer(segment.wcet), attained=attained)

        tasks = (
            replace(task, segments=tuple(map(scaled, task.segments))) if only in (None, task.name) else task
            for task in whole.tasks
        )
        return replace(whole, tasks=tuple(tasks))

    what = "execution times of the kernels" if only is None else f"execution time of {only}"
    harder = _doublings(THOUSANDTHS, THOUSANDTHS * MOST_FACTOR)
    return _border(what, analysis, proves, at, THOUSANDTHS, harder, _halvings(THOUSANDTHS, 1), Fraction(1, THOUSANDTHS))


def shortest_period(task_set: TaskSet, analysis: TaskSetAnalysis, proves: DeadlineProof, task: str) -> Margin:
    """Return the shortest period of a task in ticks that leaves all deadlines proven; the deadlines stay as they are.

    It is looked for in thousandths of the period, or in ticks if everything happens at whole ones and it has fewer.

    Tasks that start each other by data have one period, so it changes for all of them.
    """
    own, together = task_set.by_name[task], _started_together(task_set, task)
    parts = min(THOUSANDTHS, own.period) if task_set.unit == 1 else THOUSANDTHS
    finer = 1 if task_set.unit == 1 else parts
    whole = task_set.finer(finer)

    def period_of(count: Fraction) -> int:
        return ceil(count * own.period * finer / parts)

    def at(count: int) -> TaskSet:
        period = period_of(Fraction(count))
        return replace(whole, tasks=tuple(replace(t, period=period) if t.name in together else t for t in whole.tasks))

    easier = _doublings(parts, min(MAX_TICKS // own.period, MOST_FACTOR) * parts)
    found = _border(f"period of {task}", analysis, proves, at, parts, _halvings(parts, 1), easier, Fraction(1))
    holds, fails = (None if n is None else Fraction(period_of(n), finer) for n in (found.holds, found.fails))
    return replace(found, holds=holds, fails=fails)


def _started_together(task_set: TaskSet, name: str) -> set[str]:
    """Return the task and all that start it by data or that it starts, directly or not."""
    first = heads(predecessors(task_set))
    own = first.get(name, name)
    return {own, *(follower for follower, head in first.items() if head == own)}


def slowest_clock(
    at: Callable[[Fraction], TaskSet], clock_hz: Fraction, analysis: TaskSetAnalysis, proves: DeadlineProof
) -> Margin:
    """Return the slowest clock of the GPU in Hz, in thousandths of `clock_hz`, at which all deadlines are proven.

    Args:
        at: the task set at a clock in Hz; what was given in seconds does not change with it.
    """
    step = clock_hz / THOUSANDTHS
    easier = _doublings(THOUSANDTHS, THOUSANDTHS * MOST_FACTOR)
    harder = _halvings(THOUSANDTHS, 1)
    return _border("clock", analysis, proves, lambda n: at(n * step), THOUSANDTHS, harder, easier, step)


def _border(
    quantity: str,
    analysis: TaskSetAnalysis,
    proves: DeadlineProof,
    at: Callable[[int], TaskSet],
    start: int,
    harder: Iterator[int],
    easier: Iterator[int],
    unit: Fraction,
) -> Margin:
    """Bisect between a proven value and one that is not; values are whole numbers of `unit`."""
    good, bad = (start, None) if proves(at(start)) else (None, start)
    for value in harder if bad is None else easier:
        good, bad = (value, bad) if proves(at(value)) else (good, value)
        if good is not None and bad is not None:
            break
    while good is not None and bad is not None and abs(good - bad) > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if proves(at(middle)) else (good, middle)
    failed = None if bad is None else analysis(at(bad))
    return Margin(
        quantity,
        None if good is None else good * unit,
        None if bad is None else bad * unit,
        () if failed is None else tuple(_unproven(failed)),
        failed is not None and failed.answer is DeadlineAnswer.NO,
        () if failed is None else failed.supposes,
    )


def _doublings(start: int, most: int) -> Iterator[int]:
    while start < most:
        start = min(2 * start, most)
        yield start


def _halvings(start: int, least: int) -> Iterator[int]:
    while start > least:
        start = max(start // 2, least)
        yield start


def _unproven(verdict: TaskSetVerdict) -> Iterator[str]:
    yield from (load.name for load in verdict.loads if load.is_overload)
    yield from (task.task for task in verdict.tasks if task.answer is not DeadlineAnswer.YES)
    yield from (chain.chain for chain in verdict.chains if chain.answer is not DeadlineAnswer.YES)
