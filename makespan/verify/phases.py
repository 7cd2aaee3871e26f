"""Barriers: the phases of an instance, each a question of its own (docs/theory.md, 7, propositions P and P').

The evidence has a bound of each different phase, with evidence of its own. The checker cuts the instance itself. It
checks the hypotheses of the proposition (`cut`), and the bound of each phase by the rule that it names. If they hold,
all warps that take part begin a phase together, so the bounds of the phases add up, with the cycles for which ports
that are still held may keep a phase from beginning.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import count, zip_longest

from makespan.model.instance import Instance
from makespan.model.machine import SchedulerPromise, UnitClass, WarpAssignment
from makespan.model.program import BARRIER, InstructionTiming, Program, ProgramPlace
from makespan.model.result import Upper
from makespan.verify import crossing
from makespan.verify.paths import PhaseRegion
from makespan.verify.refusal import ProofSteps, Refused, TooMuchWork
from makespan.verify.rule import ClaimedBound, ProofRule, ProvePieces

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
    # (i), and (iii); on a real multiprocessor `crossing` takes its place, and the scheduler has to promise nothing
    fits = machine.scheduler is SchedulerPromise.ANY if is_real else all(map(_is_brief, machine.units))
    if instance.blocks != 1 or not fits:
        return None
    try:
        work = ProofSteps(MOST_VISITS)
        timings = [crossing.timings(group.program, work) for group in instance.groups]
        found, holds = [], crossing.Holds(instance)
        for row in zip_longest(*phases(instance)):
            crews = list(_crews(instance, row, timings))
            if not crews:
                continue
            if machine.partitions > 1:
                _check_spread(instance, len(crews))
            late = holds.enter([program for program, _ in crews]) if is_real else 0
            found.append((Instance.merged(crews, machine), late))
    except (TooMuchWork, crossing.UnevenCrossing):
        return None
    return found


def _is_brief(unit: UnitClass) -> bool:
    return unit.interval <= unit.latency.least


def _check_spread(instance: Instance, crews: int) -> None:
    # (iv): else the warps of a phase may be spread over partitions as those of no instance are
    if crews < len(instance.groups) or (crews > 1 and instance.machine.assignment is not WarpAssignment.ANY):
        raise crossing.UnevenCrossing


def _crews(
    instance: Instance, row: Sequence[PhaseRegion | None], timings: Sequence[Sequence[InstructionTiming]]
) -> Iterator[tuple[Program, int]]:
    """Yield for each group that takes part in a phase its program there, and its warps.

    Raises:
        crossing.UnevenCrossing: only some of a group may take part, against (ii).
    """
    for group, here, timed in zip(instance.groups, row, timings, strict=True):
        begins, inside = here or ((), ())
        working = [at in inside for at in begins]
        if any(working) and not all(working):
            raise crossing.UnevenCrossing
        if any(working):
            yield _piece(group.program, begins, inside, timed), group.warps


def phases(instance: Instance) -> list[list[PhaseRegion]]:
    """Return the phases of every group.

    Raises:
        TooMuchWork: there are too many.
    """
    visits = ProofSteps(MOST_VISITS)
    return [list(regions(group.program, visits)) for group in instance.groups]


def regions(program: Program, work: ProofSteps, *, whole: bool = False) -> Iterator[PhaseRegion]:
    """Yield the phases of a program; a path may end while others go on, so the end is carried along.

    Of the `whole` program there is also a phase in which a warp comes from a last barrier to the end, and nothing is
    said of paths that ended before.
    """
    begins = set(program.starts)
    while begins and (whole or begins != {program.end}):
        reached = _reachable_places(program, begins, work)
        ended = {program.end} & reached
        gates = {at for at in reached - ended if program.places[at].unit == BARRIER}
        yield PhaseRegion(tuple(sorted(begins)), tuple(sorted(reached - gates - ended)))
        begins = {after for gate in gates for after in program.places[gate].successors}
        begins |= set() if whole else ended


def _reachable_places(program: Program, begins: Collection[int], work: ProofSteps) -> set[int]:
    """Return the places to which warps may come from these before they pass a barrier, or the end."""
    reached, stack = set[int](), sorted(begins)
    work.spend(1 + len(stack))
    while stack:
        at = stack.pop()
        if at in reached:
            continue
        reached.add(at)
        if at < program.end:
            work.spend()
            stack += program.places[at].successors if program.places[at].unit != BARRIER else ()
    return reached


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


def _prove(claim: ClaimedBound, again: ProvePieces) -> int | None:
    if not claim.phases:
        return None
    late = lag(claim.instance)
    total = sum(phase.upper for _, phase in claim.phases) + late
    proven = again(claim.phases)
    if claim.evidence == RULE.name and total > claim.upper:
        raise Refused(f"upper {claim.upper} reported by phases, which add up to {total}")
    return sum(proven[question] for question, _ in claim.phases) + late


RULE = ProofRule(
    Upper.PHASES,
    "the phases between its barriers",
    _prove,
    is_given=lambda claim: claim.phases,
    absence="upper is reported by {name}, but none are given",
    may_fall_short=True,  # a phase of which too little is proven again leaves the claim unproven
)
