"""Barriers, for the checker: the phases of an instance, each a question of its own, and M^L + M^C with barriers."""

from collections.abc import Iterable, Iterator
from itertools import count

from makespan.instance import Instance
from makespan.program import BARRIER, Place, Program
from makespan.verify.refusal import TooMuchWork, Work

MOST_VISITS = 8_000_000

_Phase = tuple[tuple[int, ...], tuple[int, ...]]
"""Where a warp may stand when the phase begins, and the instructions that it may execute in it."""


def questions(instance: Instance) -> list[Instance] | None:
    """One instance per phase that has instructions, in order; their worst cases add up to an upper bound.

    It needs one block, and that in every phase each group's warps all have something to execute or all have not: then
    the warps that take part begin it together, anywhere that their programs allow.
    """
    if instance.blocks != 1:
        return None
    try:
        cut = [list(_phases(group.program, Work(MOST_VISITS))) for group in instance.groups]
    except TooMuchWork:
        return None
    found = []
    for number in range(max(map(len, cut))):
        crews: list[tuple[Program, int]] = []
        for group, phases in zip(instance.groups, cut, strict=True):
            if number < len(phases):
                begins, inside = phases[number]
                working = [at in inside for at in begins]
                if any(working) and not all(working):
                    return None
                if any(working):
                    crews.append((_piece(group.program, begins, inside), group.warps))
        if crews:
            found.append(Instance.merged(crews, instance.machine))
    return found


def pessimistic(instance: Instance) -> int:
    """M^L + M^C along a chain of warps, each the last to come to the barrier at which the next one takes over.

    The last of the chain is the warp that finishes last. In every cycle the chain executes or waits for a class all of
    whose units others use; in phase k it executes no more than the longest, and of a class no less than the smallest,
    share of any group in that phase.
    """
    everything = sum(group.warps * _most(group.program, None) for group in instance.groups)
    try:
        cut = [list(_phases(group.program, Work(MOST_VISITS))) for group in instance.groups]
    except TooMuchWork:
        return everything  # in every cycle something executes
    shares = [
        [_share(group.program, phase, None) for phase in own] for group, own in zip(instance.groups, cut, strict=True)
    ]
    longest = max(map(len, cut))
    bound = sum(max(own[k][1] for own in shares if k < len(own)) for k in range(longest))
    for unit, capacity in instance.machine.capacities.items():
        users = [group.warps for group in instance.groups if unit in group.program.units]
        if sum(users) <= capacity:
            continue
        work = sum(group.warps * _most(group.program, unit) for group in instance.groups)
        own = [
            [_share(g.program, phase, unit)[0] for phase in phases]
            for g, phases in zip(instance.groups, cut, strict=True)
        ]
        chain = sum(min(row[k] if k < len(row) else 0 for row in own) for k in range(longest))
        bound += (work - chain) // capacity
    return bound


def most_pairs(instance: Instance) -> int | None:
    """The most disjoint adjacent unequal pairs along such a chain; None where there are too many phases.

    A scan from left to right pairs an instruction with the one before if that is unpaired and of another class.
    """
    per_phase: list[int] = []
    try:
        for group in instance.groups:
            for number, (begins, inside) in enumerate(_phases(group.program, Work(MOST_VISITS))):
                singles = (None, *sorted(group.program.units))
                ahead: dict[tuple[int, str | None], int] = {}
                for at in reversed(inside):
                    unit, successors = group.program.places[at]
                    for single in singles:
                        closes = single not in (None, unit)
                        left = None if closes else unit
                        ahead[at, single] = closes + max(ahead.get((after, left), 0) for after in successors)
                per_phase += [0] * (number + 1 - len(per_phase))
                per_phase[number] = max(per_phase[number], *(ahead.get((at, None), 0) for at in begins))
    except TooMuchWork:
        return None
    return sum(per_phase)


def _phases(program: Program, work: Work) -> Iterator[_Phase]:
    """Phase by phase; a path may end while others go on, so the end is carried along."""
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
        yield tuple(sorted(begins)), tuple(sorted(inside))
        begins = {after for gate in gates for after in program.places[gate].successors}
        if ended or not begins:
            begins.add(program.end)


def _piece(program: Program, begins: Iterable[int], inside: Iterable[int]) -> Program:
    """The instructions of a phase as a program; a barrier or the end is its end."""
    names = dict(zip(inside, count()))
    places = [
        Place(
            program.places[at].unit,
            tuple(sorted({names.get(after, len(names)) for after in program.places[at].successors})),
        )
        for at in names
    ]
    return Program(tuple(places), tuple(names[at] for at in begins))


def _share(program: Program, phase: _Phase, unit: str | None) -> tuple[int, int]:
    """The fewest and the most instructions, of a class or of any, that a warp executes in a phase."""
    begins, inside = phase
    few, many = dict[int, int](), dict[int, int]()
    for at in reversed(inside):
        own, successors = program.places[at]
        one = unit is None or own == unit
        few[at] = one + min(few.get(after, 0) for after in successors)
        many[at] = one + max(many.get(after, 0) for after in successors)
    return min(few.get(at, 0) for at in begins), max(many.get(at, 0) for at in begins)


def _most(program: Program, unit: str | None) -> int:
    ahead = [0] * (program.end + 1)
    for at in range(program.end - 1, -1, -1):
        own, successors = program.places[at]
        counts = own != BARRIER if unit is None else own == unit
        ahead[at] = counts + max(ahead[after] for after in successors)
    return max(ahead[start] for start in program.starts)
