"""With how few SMs all deadlines are proven, by trying: a proven bound need not fall with the number of SMs.

More SMs can make a proven worst case longer, as a GPU has anomalies, and other bounds apply to one wave than to
several. So every number is tried from 1 on, and the smallest is the first that is found to do, not the end of a search
that halves. That a smaller number lacks a proof does not say that a deadline is missed with it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TypeAlias

from makespan.deadlines.analysis import analyse
from makespan.deadlines.description import Description, KernelLaunch, Priorities, task_set
from makespan.deadlines.priorities import find_priorities
from makespan.deadlines.task import SegmentKind
from makespan.deadlines.verdict import DeadlineAnswer
from makespan.deadlines.wcet import Solver, Wcet, each_execution_time
from makespan.host.errors import InputError


@dataclass(frozen=True, slots=True)
class TriedSizes:
    """What is proven with some numbers of SMs.

    Args:
        sms: of each partition.
        unproven: tasks and chains that are not proven to be in time, of those that were asked for.
        seconds: the proven execution time of every kernel whose partition was asked for.
    """

    sms: Mapping[str, int]
    unproven: tuple[str, ...]
    seconds: Mapping[str, Fraction]


_SizeProver: TypeAlias = Callable[[Description, set[str]], TriedSizes]


@dataclass(frozen=True, slots=True)
class FewestSms:
    """The search for one partition, while the others have what the file says; or for all of them together.

    Args:
        partition: None: all have the fewest of their own.
        tried: numbers of its SMs, from 1 on, up to the first that proves all deadlines of its tasks, and of chains with
            one of them, if any does; of all together only that one, if the GPU has so many SMs.
        most: how many there are for it, with those of the file for the others.
    """

    partition: str | None
    tried: tuple[TriedSizes, ...]
    most: int

    @property
    def found(self) -> TriedSizes | None:
        """What was looked for."""
        return self.tried[-1] if self.tried and not self.tried[-1].unproven else None


def fewest_sms(
    description: Description, solver: Solver, progress: Callable[[str], None] = lambda _: None
) -> Iterator[FewestSms]:
    """Return the fewest SMs of each partition in turn whose kernels are all solved; then, of several, of all at once.

    Times that are given, or come from a bundle, are those on as many SMs as the file says: nobody vouches for another
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
        for sms in range(1, most + 1):
            progress(f"partition {name} with {sms} of up to {most} SMs")
            tried.append(prove(description.with_sms({name: sms}), {name}))
            if not tried[-1].unproven:
                break
        found.append(FewestSms(name, tuple(tried), most))
        yield found[-1]
    if len(description.partitions) > 1:
        yield from _together(description, found, prove)


def _together(description: Description, found: Iterable[FewestSms], prove: _SizeProver) -> Iterator[FewestSms]:
    """Whether each partition can have its fewest at the same time, which the proof for each alone does not say."""
    alone = [each.found for each in found]
    fewest = {name: sms for one in alone if one is not None for name, sms in one.sms.items()}
    if None in alone:
        return
    changed, most = description.with_sms(fewest), _sms_of_gpu(description)
    fits = sum(changed.sms.values()) <= most
    yield FewestSms(None, (prove(changed, set(changed.sms)),) if fits else (), most)


def _prover(solver: Solver) -> _SizeProver:
    """What is proven of the tasks on some partitions; equal kernels on as many SMs are solved once."""
    known: dict[tuple[str, tuple[int, ...]], Wcet] = {}

    def prove(description: Description, asked: set[str]) -> TriedSizes:
        wcets = dict(each_execution_time(description, solver, known))
        system, _ = task_set(description, {name: wcet.time() for name, wcet in wcets.items()})
        if description.priorities is Priorities.AUDSLEY:
            system = find_priorities(system).task_set
        verdict = analyse(system, evidence=False)
        mine = {task.name for place in asked for task in system.on(place)}
        touched = {chain.name for chain in system.chains if mine.intersection(chain.tasks)}
        named = [(task.task, task.answer) for task in verdict.tasks if task.task in mine]
        named += [(chain.chain, chain.answer) for chain in verdict.chains if chain.chain in touched]
        return TriedSizes(
            {name: sms for name, sms in description.sms.items() if name in asked},
            tuple(name for name, answer in named if answer is not DeadlineAnswer.YES),
            {name: wcets[name].seconds for name, part in description.executions.items() if part.place in asked},
        )

    return prove


def _solved_partitions(description: Description) -> tuple[str, ...]:
    """Those on which every kernel is solved."""
    if description.card is None:
        raise InputError(
            f"{description.where}: --fewest-sms needs to know how many SMs there are:"
            ' say on which GPU, with gpu = "NAME" at the top (--gpu for CSV)'
        )
    kernels = {name: part for name, part in description.executions.items() if part.kind is SegmentKind.KERNEL}
    if homeless := [name for name, kernel in kernels.items() if kernel.place is None]:
        raise InputError(f"{description.where}: --fewest-sms: task {homeless[0]} has no partition: give it one")
    used = {kernel.place for kernel in kernels.values()}
    fixed = {kernel.place for kernel in kernels.values() if not isinstance(kernel.source, KernelLaunch)}
    if not used - fixed:
        raise InputError(
            f"{description.where}: --fewest-sms: every partition has an execution time that is given, or from a bundle,"
            " and that is one on as many SMs as it has: give the kernels"
        )
    return tuple(name for name in description.sms if name in used - fixed)


def _sms_of_gpu(description: Description) -> int:
    """Return how many SMs the GPU has."""
    return 0 if description.card is None else description.card.count_sms()
