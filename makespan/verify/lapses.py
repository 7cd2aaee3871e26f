"""Lapses of schedulers and late lines: what they add to a bound of the same warps without them (docs/theory.md, 17).

The evidence states a bound without lapses, the base, and what is added to it. The base is of a theorem that a warp's
waiting cannot refute: theorem 1' (`pessimistic`), 1S (`interference`), 1Q (`queues`) or E and E' (`pairs`). Let z be
the warp that finishes last or, with barriers, the chain that stands for z. In a cycle that the base does not count, the
partition of z lapses, on credit of its own warps or because a fence stops the whole SM; or z is withheld, in a window
of a line that it needs, or because it misses one that does not stay. Theorem E counts on other warps, too: a cycle in
which any of the partition of z is withheld may cost as much again. Nothing is taken from the claim: each part of it has
to be at least what is found here.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain, zip_longest
from typing import NamedTuple

from makespan.model.certificate import Weights
from makespan.model.instance import Instance
from makespan.model.lapses import PlaceLapses
from makespan.model.program import Program
from makespan.model.result import Upper
from makespan.verify import machine_form, pairs, phases, queues
from makespan.verify.paths import PhaseRegion, along
from makespan.verify.pessimistic import pessimistic
from makespan.verify.refusal import ProofBudget, ProofSteps, Refused, TooMuchWork

MOST_STEPS = 20_000_000  # places of all phases, each with its lines


class LapseParts(NamedTuple):
    """The parts of an upper bound with lapses, in cycles: one without them, and what is added to it."""

    base: int
    credits: int
    windows: int
    misses: int


@dataclass(frozen=True)
class LapseClaim:
    """An upper bound with lapses as a bundle claims it.

    Args:
        instance: the question, with its lapses.
        parts: the bound, which is their sum.
        evidence: the name of the theorem of the base.
        pessimistic: the bound that rests on theorem 1' or 1S, in cycles.
        weights: of pairs, for theorem E.
    """

    instance: Instance
    parts: LapseParts
    evidence: str
    pessimistic: int
    weights: tuple[Weights, ...] = ()

    @property
    def without_lapses(self) -> Instance:
        """Return the same warps on schedulers that never lapse, with all lines there, and without queues."""
        return leave_out(self.instance)


def leave_out(instance: Instance) -> Instance:
    """Return the same warps on schedulers that never lapse, with all lines there, and without queues."""
    groups = tuple(replace(crew, program=replace(crew.program, lapses=())) for crew in instance.groups)
    return replace(instance, groups=groups, machine=replace(instance.machine, queues=()))


def bound(instance: Instance, weights: tuple[Weights, ...], effort: ProofBudget) -> int:
    """Return an upper bound with lapses, in cycles, by theorem 1' or 1S or, where there are weights of pairs, by E.

    Raises:
        Refused: weights that prove nothing.
    """
    found = [_plain_bound(instance) + sum(additions(instance, _plain_theorem(instance)))]
    if weights and not _counts_queues(instance):
        with suppress(TooMuchWork):
            found.append(pairs.bound(leave_out(instance), weights, effort) + sum(additions(instance, Upper.THEOREM_E)))
    return min(found)


def _counts_queues(instance: Instance) -> bool:
    """Return whether there are queues that a bound counts; with barriers the verdict says that they are left out."""
    return machine_form.has_queues(instance) and not instance.has_barriers


def _plain_theorem(instance: Instance) -> Upper:
    """Return the theorem that holds without weights: 1', or 1S, or 1Q, which stands for 1S where there are queues."""
    is_real = leave_out(instance).is_multiprocessor or _counts_queues(instance)
    return Upper.THEOREM_1S if is_real else Upper.PESSIMISTIC


def _plain_bound(instance: Instance) -> int:
    return queues.bound(instance) if _counts_queues(instance) else pessimistic(leave_out(instance))


def prove(claim: LapseClaim, effort: ProofBudget) -> int:
    """Return the upper bound that is proven, in cycles: no more than the claim, unless that takes too much work.

    Raises:
        Refused: a part of the claim is too small, or no theorem of the base.
    """
    plain = _plain_theorem(claim.instance)
    if claim.evidence not in (plain, Upper.THEOREM_E):
        raise Refused(f"a bound with lapses cannot rest on {claim.evidence}, only on {plain} or {Upper.THEOREM_E}")
    if _counts_queues(claim.instance) and claim.evidence == Upper.THEOREM_E:
        raise Refused("theorem E knows no queues")
    robust = LapseParts(_plain_bound(claim.instance), *additions(claim.instance, plain))
    if claim.pessimistic < sum(robust):
        raise Refused(f"pessimistic is {sum(robust)} with lapses, not {claim.pessimistic}")
    own = robust
    if claim.evidence == Upper.THEOREM_E:
        try:
            base = pairs.bound(claim.without_lapses, claim.weights, effort)
        except TooMuchWork:
            return sum(robust)
        own = LapseParts(base, *additions(claim.instance, Upper.THEOREM_E))
    for name, proven, claimed in zip(LapseParts._fields, own, claim.parts, strict=True):
        if claimed < proven:
            raise Refused(f"lapses: {claimed} cycles are claimed for {name}, and {proven} are proven")
    return sum(own)


def additions(instance: Instance, evidence: Upper) -> tuple[int, int, int]:
    """Return the credits, windows and misses that are added to a base by a theorem, in cycles."""
    of_lines = longest_windows(instance)
    windows, misses = (_of_chain if instance.has_barriers else _of_last)(instance, of_lines)
    credits_ = _of_partition(instance, lambda place: place.credit)
    fences = of_everybody(instance, lambda place: place.fence)
    if evidence is Upper.THEOREM_E:  # so many cycles in which some warp of the partition is withheld
        fences *= 2  # a wait on the way between caches is stated as a fence, and may withhold some warps alone
        windows += sum(of_lines.values())
        misses += _of_partition(instance, lambda place: place.misses)
    return credits_ + fences, windows, misses


_Weigh = Callable[[PlaceLapses], int]


def longest_windows(instance: Instance) -> dict[str, int]:
    """Return by line the most cycles of its window, which any program may state."""
    found: dict[str, int] = {}
    for place in chain.from_iterable(group.program.lapses for group in instance.groups):
        for name, cycles in place.lines:
            found[name] = max(cycles, found.get(name, 0))
    return found


def heaviest(program: Program, weigh: _Weigh) -> int:
    """Return the most that the places of a path add up to, barriers included."""
    return along(program, [weigh(place) for place in program.lapses]) if program.lapses else 0


def of_everybody(instance: Instance, weigh: _Weigh) -> int:
    """Return what all warps add up to at most."""
    return sum(group.warps * heaviest(group.program, weigh) for group in instance.groups)


def _of_partition(instance: Instance, weigh: _Weigh) -> int:
    """Return what the warps of one partition add up to, or with barriers all warps."""
    # A chain may be in another partition in each phase, and credit that is left in one is spent in the next.
    if instance.has_barriers:
        return of_everybody(instance, weigh)
    parts = instance.machine.partitions
    each = [heaviest(group.program, weigh) for group in instance.groups]
    of_warp = [each[group] for group in instance.group_of_warp()]
    if (fixed := machine_form.warp_partitions(instance)) is None:
        return sum(sorted(of_warp, reverse=True)[: -(-len(of_warp) // parts)])
    found = Counter[int]()
    for part, cycles in zip(fixed, of_warp, strict=True):
        found[part] += cycles
    return max(found.values())


def _of_last(instance: Instance, windows: Mapping[str, int]) -> tuple[int, int]:
    """Return the cycles in which a last warp is withheld: in windows of lines that it needs, and in misses."""
    programs = [group.program for group in instance.groups]
    needed = [{name for place in program.lapses for name, _ in place.lines} for program in programs]
    misses = max(heaviest(program, lambda place: place.misses) for program in programs)
    return max(sum(windows[name] for name in names) for names in needed), misses


def _of_chain(instance: Instance, windows: Mapping[str, int]) -> tuple[int, int]:
    """Return the cycles in which a chain is withheld, which may be in another partition in each phase."""
    parts, work = instance.machine.partitions, ProofSteps(MOST_STEPS)
    needing, misses = Counter[str](), 0  # by line, the phases in which some warp needs it
    programs = [group.program for group in instance.groups]
    try:
        for row in zip_longest(*(phases.regions(program, work) for program in programs)):
            here = [(program, region) for program, region in zip(programs, row, strict=True) if region]
            needing.update({name for program, region in here for name in _lines(program, region, work)})
            misses += max(_misses(program, region) for program, region in here)
    except TooMuchWork:  # then it is in all partitions, and is all warps
        return parts * sum(windows.values()), of_everybody(instance, lambda place: place.misses)
    return sum(cycles * min(parts, needing[name]) for name, cycles in windows.items()), misses


def _places(program: Program, region: PhaseRegion) -> set[int]:
    """Return the places to which a warp may come in a phase, and the barriers at which it ends."""
    # until a warp has come to a barrier, it may be withheld there as at an instruction of the phase
    return {*region.begins, *chain.from_iterable(program.places[at].successors for at in region.inside)} - {program.end}


def _lines(program: Program, region: PhaseRegion, work: ProofSteps) -> Iterator[str]:
    """Yield the lines that a warp may need in a phase."""
    for at in _places(program, region) if program.lapses else ():
        work.spend(1 + len(program.lapses[at].lines))
        yield from (name for name, _ in program.lapses[at].lines)


def _misses(program: Program, region: PhaseRegion) -> int:
    """Return the most cycles of misses on a path through a phase, its last barrier included."""
    if not program.lapses:
        return 0
    ahead = {program.end: 0} | {at: program.lapses[at].misses for at in _places(program, region)}
    for at in reversed(region.inside):
        ahead[at] += max(ahead[after] for after in program.places[at].successors)
    return max(ahead[at] for at in region.begins)
