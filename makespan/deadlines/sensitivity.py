"""The distance of a system from its limit: the last value that is still proven, and the next one that is not.

A search for a border starts at the system as it is, doubles or halves until the answer changes, then bisects. Both ends
of the result are answers of the analysis, so it holds for an analysis that is not monotone, too; that nothing beyond
`fails` holds again rests on monotonicity. Where events may lie between ticks, no time is rounded: a thousandth of each
is counted in ticks a thousand times as short. Where everything happens at whole ticks, execution times and periods are
rounded up to them.

Numbers of SMs are not bisected, because more SMs can make a proven worst case longer: a GPU has scheduling anomalies,
and other bounds apply to one wave of blocks than to several. So every number is tried from 1 on, and the fewest is the
first that suffices. That a smaller number lacks a proof does not say that a deadline is missed with it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil
from typing import TypeAlias

from makespan.deadlines.analysis import analyse
from makespan.deadlines.assignment import TaskSetAnalysis
from makespan.deadlines.chains import family_heads
from makespan.deadlines.description import Description, KernelLaunch, Priorities, task_set
from makespan.deadlines.priorities import find_priorities
from makespan.deadlines.task import MAX_TICKS, JobSegment, SegmentKind, TaskSet
from makespan.deadlines.verdict import DeadlineAnswer, TaskSetVerdict
from makespan.deadlines.wcet import Solver, Wcet, each_execution_time
from makespan.host.errors import InputError

THOUSANDTHS = 1000
"""Factors are multiples of a thousandth."""

MOST_FACTOR = 1024
"""Where the search for a border ends: a thousand times as much, or a thousandth."""


@dataclass(frozen=True, slots=True)
class Margin:
    """The border between what is proven and what is not, of one quantity.

    Args:
        quantity: What was varied.
        holds: The last value at which all deadlines are proven; None where none was found.
        fails: The neighbouring value at which they are not; None where none was found.
        breaks: The tasks and chains without a proof, and overloaded resources, at `fails`.
        refuted: Whether there is evidence of a miss or of overload at `fails`, not only a lack of proof.
        supposes: The tasks whose given times must be attained for this evidence.
    """

    quantity: str
    holds: Fraction | None
    fails: Fraction | None
    breaks: tuple[str, ...]
    refuted: bool
    supposes: tuple[str, ...] = ()


DeadlineProof: TypeAlias = Callable[[TaskSet], bool]
"""A test whether an analysis proves every deadline, without saying more; `is_proven` is one."""


def execution_factor(
    task_set: TaskSet, analysis: TaskSetAnalysis, proves: DeadlineProof, *, only: str | None = None
) -> Margin:
    """Return the largest factor on the execution times of all kernels, or of those of task `only`, in thousandths.

    Args:
        analysis: It says who is late at the value that fails.
        proves: It says whether the answer of `analysis` is yes, for every other value.
    """
    finer = 1 if task_set.unit == 1 else THOUSANDTHS  # then a thousandth of each time is a whole number of ticks
    whole = task_set.finer(finer)

    def at(thousandths: int) -> TaskSet:
        def longer(ticks: int) -> int:
            # up: a proof for longer times holds for these
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
    harder = _doublings(THOUSANDTHS, THOUSANDTHS * MOST_FACTOR)  # the way on which proofs get lost
    return _border(what, analysis, proves, at, THOUSANDTHS, harder, _halvings(THOUSANDTHS, 1), Fraction(1, THOUSANDTHS))


def shortest_period(task_set: TaskSet, analysis: TaskSetAnalysis, proves: DeadlineProof, task: str) -> Margin:
    """Return the shortest period of a task in ticks that leaves all deadlines proven; deadlines stay the same.

    It is looked for in thousandths of the period, or in ticks if everything happens at whole ones and it has fewer.

    Tasks that start each other by data have one period, so it changes for all of them.
    """
    own, family = task_set.by_name[task], family_heads(task_set)
    together = {name for name, head in family.items() if head == family[task]}  # they have one period
    parts = min(THOUSANDTHS, own.period) if task_set.unit == 1 else THOUSANDTHS
    finer = 1 if task_set.unit == 1 else parts
    whole = task_set.finer(finer)

    def period_of(count: Fraction) -> int:
        # up, so that the period that is reported is one that was analysed
        return ceil(count * own.period * finer / parts)

    def at(count: int) -> TaskSet:
        period = period_of(Fraction(count))
        return replace(whole, tasks=tuple(replace(t, period=period) if t.name in together else t for t in whole.tasks))

    easier = _doublings(parts, min(MAX_TICKS // own.period, MOST_FACTOR) * parts)
    found = _border(f"period of {task}", analysis, proves, at, parts, _halvings(parts, 1), easier, Fraction(1))
    holds, fails = (None if n is None else Fraction(period_of(n), finer) for n in (found.holds, found.fails))
    return replace(found, holds=holds, fails=fails)


def slowest_clock(
    at: Callable[[Fraction], TaskSet], clock_hz: Fraction, analysis: TaskSetAnalysis, proves: DeadlineProof
) -> Margin:
    """Return the slowest clock of the GPU in Hz, in thousandths of `clock_hz`, at which all deadlines are proven.

    Args:
        at: It returns the task set at a clock in Hz; what was given in seconds does not change with it.
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
    while good is not None and bad is not None and abs(good - bad) > 1:  # both ends are answers for just these values
        middle = (good + bad) // 2
        good, bad = (middle, bad) if proves(at(middle)) else (good, middle)
    failed = None if bad is None else analysis(at(bad))  # the whole analysis only once, for its reasons
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


@dataclass(frozen=True, slots=True)
class TriedSizes:
    """The result for some numbers of SMs.

    Args:
        sms: The number of SMs of each partition.
        unproven: The tasks and chains that are not proven to be in time, of those that were asked for.
        seconds: The proven execution time of every kernel whose partition was asked for.
    """

    sms: Mapping[str, int]
    unproven: tuple[str, ...]
    seconds: Mapping[str, Fraction]


_SizeProver: TypeAlias = Callable[[Description, set[str]], TriedSizes]


@dataclass(frozen=True, slots=True)
class FewestSms:
    """A search for one partition, where the others have the SMs of the file, or for all of them together.

    Args:
        partition: None means that all partitions have the fewest of their own.
        tried: The results for its numbers of SMs, from 1 on, up to the first that proves all deadlines of its tasks,
            and of chains with one of them, if any does. For all together it is only that one, if the GPU has enough
            SMs.
        most: The most SMs that it can have, with those of the file for the others.
    """

    partition: str | None
    tried: tuple[TriedSizes, ...]
    most: int

    @property
    def found(self) -> TriedSizes | None:
        """Return the result for the fewest SMs; None where none was found."""
        return self.tried[-1] if self.tried and not self.tried[-1].unproven else None


def fewest_sms(
    description: Description, solver: Solver, progress: Callable[[str], None] = lambda _: None
) -> Iterator[FewestSms]:
    """Yield the fewest SMs of each partition whose kernels are all solved; then, of several, of all at once.

    Times that are given, or come from a bundle, hold on as many SMs as the file says: they are not known for another
    number, and such a partition keeps its own.

    Raises:
        InputError: no GPU is named, a task has no partition, or no partition has kernels that are all solved.
    """
    names = _solved_partitions(description)  # refuses before anything is solved
    return _each(description, names, _prover(replace(solver, is_for_bounds=True, known={})), progress)


def _each(
    description: Description, names: Iterable[str], prove: _SizeProver, progress: Callable[[str], None]
) -> Iterator[FewestSms]:
    found = list[FewestSms]()
    for name in names:
        most = _sms_of_gpu(description) - sum(sms for other, sms in description.sms.items() if other != name)
        tried = list[TriedSizes]()
        for sms in range(1, most + 1):  # not bisected: more SMs can be worse
            progress(f"partition {name} with {sms} of up to {most} SMs")
            tried.append(prove(description.with_sms({name: sms}), {name}))
            if not tried[-1].unproven:
                break
        found.append(FewestSms(name, tuple(tried), most))
        yield found[-1]
    if len(description.partitions) > 1:
        yield from _together(description, found, prove)


def _together(description: Description, found: Iterable[FewestSms], prove: _SizeProver) -> Iterator[FewestSms]:
    """Yield whether each partition can have its fewest at the same time, which no proof for one alone says."""
    alone = [each.found for each in found]
    fewest = {name: sms for one in alone if one is not None for name, sms in one.sms.items()}
    if None in alone:
        return
    changed, most = description.with_sms(fewest), _sms_of_gpu(description)
    fits = sum(changed.sms.values()) <= most  # else no proof is needed
    yield FewestSms(None, (prove(changed, set(changed.sms)),) if fits else (), most)


def _prover(solver: Solver) -> _SizeProver:
    """Return a proof for the tasks on some partitions; equal kernels on as many SMs are solved once."""
    known: dict[tuple[str, tuple[int, ...]], Wcet] = {}  # over all numbers that are tried

    def prove(description: Description, asked: set[str]) -> TriedSizes:
        wcets = dict(each_execution_time(description, solver, known))
        system, _ = task_set(description, {name: wcet.time() for name, wcet in wcets.items()})
        if description.priorities is Priorities.AUDSLEY:  # other times may need another order
            system = find_priorities(system).task_set
        verdict = analyse(system, evidence=False)
        mine = {task.name for resource in asked for task in system.on(resource)}
        touched = {chain.name for chain in system.chains if mine.intersection(chain.tasks)}
        named = [(task.task, task.answer) for task in verdict.tasks if task.task in mine]
        named += [(chain.chain, chain.answer) for chain in verdict.chains if chain.chain in touched]
        return TriedSizes(
            {name: sms for name, sms in description.sms.items() if name in asked},
            tuple(name for name, answer in named if answer is not DeadlineAnswer.YES),
            {name: wcets[name].seconds for name, part in description.executions.items() if part.resource in asked},
        )

    return prove


def _solved_partitions(description: Description) -> tuple[str, ...]:
    if description.card is None:
        raise InputError(
            f"{description.where}: --fewest-sms needs to know how many SMs there are:"
            ' say on which GPU, with gpu = "NAME" at the top (--gpu for CSV)'
        )
    kernels = {name: part for name, part in description.executions.items() if part.kind is SegmentKind.KERNEL}
    if homeless := [name for name, kernel in kernels.items() if kernel.resource is None]:
        raise InputError(f"{description.where}: --fewest-sms: task {homeless[0]} has no partition: give it one")
    used = {kernel.resource for kernel in kernels.values()}
    fixed = {kernel.resource for kernel in kernels.values() if not isinstance(kernel.source, KernelLaunch)}
    if not used - fixed:
        raise InputError(
            f"{description.where}: --fewest-sms: every partition has an execution time that is given, or from a bundle,"
            " and that is one on as many SMs as it has: give the kernels"
        )
    return tuple(name for name in description.sms if name in used - fixed)


def _sms_of_gpu(description: Description) -> int:
    return 0 if description.card is None else description.card.count_sms()
