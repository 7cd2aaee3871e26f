"""Barriers, for the checker: the phases of an instance, each a question of its own, and M^L + M^C with barriers."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count, zip_longest

from makespan.model.instance import Instance
from makespan.model.machine import SchedulerPromise, WarpAssignment
from makespan.model.program import BARRIER, InstructionTiming, Program, ProgramPlace
from makespan.verify import crossing
from makespan.verify.paths import Choose, PhaseRegion, along, total
from makespan.verify.refusal import ProofSteps, TooMuchWork
from makespan.verify.waiting import ClassShare, most_waiting

MOST_VISITS = 8_000_000


def questions(instance: Instance) -> list[Instance] | None:
    """Return an instance for each phase with instructions, in order, or None: then they are not independent."""
    found = cut(instance)
    return None if found is None else [question for question, _ in found]


def lag(instance: Instance) -> int:
    """Return how many cycles later phases may begin in all, for ports that earlier ones hold."""
    return sum(late for _, late in cut(instance) or ())


def cut(instance: Instance) -> list[tuple[Instance, int]] | None:
    """Return the phases, each with its lag in cycles; the sum of their worst cases and lags is a bound."""
    # It needs one block, and that in every phase each group's warps all have something to execute or all have not: then
    # the warps that take part begin it together, anywhere that their programs allow. And all ports must be free again
    # when a barrier opens: those of the last instructions before it are if no class has an interval that is longer than
    # the latency. On a real multiprocessor `crossing` says what ports and results may do; and all warps have to take
    # part, spread as those of the whole. (docs/theory.md, 7, propositions P and P'.)
    machine, is_real = instance.machine, instance.is_multiprocessor
    # (i), and for a real multiprocessor a scheduler that promises nothing
    if instance.blocks != 1 or (is_real and machine.scheduler is not SchedulerPromise.ANY):
        return None
    # (iii); on a real multiprocessor `crossing` takes its place
    if not is_real and any(unit.interval > unit.latency.least for unit in machine.units):
        return None
    try:
        own = phases(instance)
        work = ProofSteps(MOST_VISITS)
        timings = [crossing.timings(group.program, work) for group in instance.groups]
        found, holds = [], crossing.Holds(instance)
        for number in range(max(map(len, own))):
            crews = list(_crews(instance, [row[number : number + 1] for row in own], timings))
            if not crews:
                continue
            # (iv): else the warps of a phase may be spread over partitions as those of no instance are
            if machine.partitions > 1 and len(crews) < len(instance.groups):
                return None
            if machine.partitions > 1 and machine.assignment is not WarpAssignment.ANY and len(crews) > 1:
                return None
            late = holds.enter([program for program, _ in crews]) if is_real else 0
            found.append((Instance.merged(crews, machine), late))
    except (TooMuchWork, crossing.UnevenCrossing):
        return None
    return found


def _crews(
    instance: Instance, row: Sequence[Sequence[PhaseRegion]], timings: Sequence[Sequence[InstructionTiming]]
) -> Iterator[tuple[Program, int]]:
    """Yield for each group that takes part in a phase its program there, and its warps.

    Raises:
        crossing.UnevenCrossing: only some of a group may take part, against (ii).
    """
    for group, here, timed in zip(instance.groups, row, timings, strict=True):
        for begins, inside in here:
            working = [at in inside for at in begins]
            if any(working) and not all(working):
                raise crossing.UnevenCrossing
            if any(working):
                yield _piece(group.program, begins, inside, timed), group.warps


def pessimistic(instance: Instance) -> int:
    """Return the bound of theorem 1' with barriers, in cycles, for a chain of warps in the place of z."""
    # Each of the chain is the last to come to the barrier at which the next one takes over, and the last of them is z.
    # In every cycle a latency of the chain passes, or it waits for a port or an issue slot. In phase k it executes no
    # more than the longest, and of a class no less than the smallest, share of any group in that phase.
    machine = instance.machine
    longest = {unit.name: unit.latency.most for unit in machine.units}
    try:
        cut = phases(instance)
    except TooMuchWork:  # in every cycle a latency passes, or a port is held
        either = {unit.name: max(unit.latency.most, unit.interval) for unit in machine.units}
        return sum(group.warps * total(group.program, either) for group in instance.groups)
    return _along(instance, cut, longest, max) + most_waiting(machine, instance.warps - 1, shares(instance, cut))


def shares(instance: Instance, cut: Sequence[Sequence[PhaseRegion]]) -> dict[str, ClassShare]:
    """Return by class the use that such a chain, as the warp that waits, and all other warps make of it."""
    found = {}
    for unit in instance.machine.capacities:
        one = {unit: 1}
        users = sum(group.warps for group in instance.groups if unit in group.program.units)
        work = sum(group.warps * total(group.program, one) for group in instance.groups)
        own = _along(instance, cut, one, min)  # what the chain executes beyond it counts with the others, at no less
        found[unit] = ClassShare(max(users - 1, 0), work - own, own, users > 0)
    return found


def _along(instance: Instance, cut: Sequence[Sequence[PhaseRegion]], weights: Mapping[str, int], choose: Choose) -> int:
    rows = []
    for program, own in zip((group.program for group in instance.groups), cut, strict=True):
        weighed = [weights.get(place.unit, 0) for place in program.places]
        rows.append([along(program, weighed, choose, phase) for phase in own])
    return sum(map(choose, zip_longest(*rows, fillvalue=0)))


def phases(instance: Instance) -> list[list[PhaseRegion]]:
    """Return the phases of every group.

    Raises:
        TooMuchWork: there are too many.
    """
    visits = ProofSteps(MOST_VISITS)
    return [list(_phases(group.program, visits)) for group in instance.groups]


def _phases(program: Program, work: ProofSteps) -> Iterator[PhaseRegion]:
    """Yield the phases of a program; a path may end while others go on, so the end is carried along."""
    begins = set(program.starts)
    while begins != {program.end}:
        inside, gates, ended = set[int](), set[int](), program.end in begins
        stack = sorted(begins - {program.end})
        work.spend(1 + len(stack))
        while stack:
            at = stack.pop()
            if at in inside or at in gates:
                continue
            unit, successors = program.places[at]
            work.spend()
            if unit == BARRIER:
                gates.add(at)
                continue
            inside.add(at)
            ended = ended or program.end in successors
            stack += [after for after in successors if after != program.end]
        yield PhaseRegion(tuple(sorted(begins)), tuple(sorted(inside)))
        begins = {after for gate in gates for after in program.places[gate].successors}
        if ended:
            begins.add(program.end)


def _piece(
    program: Program, begins: Iterable[int], inside: Sequence[int], timings: Sequence[InstructionTiming]
) -> Program:
    names = dict(zip(inside, count()))
    places = [
        ProgramPlace(
            program.places[at].unit,
            tuple(sorted({names.get(after, len(names)) for after in program.places[at].successors})),
        )
        for at in names
    ]
    timed = crossing.of_phase(inside, timings) if timings else ()
    return Program(tuple(places), tuple(names[at] for at in begins), timings=timed)
