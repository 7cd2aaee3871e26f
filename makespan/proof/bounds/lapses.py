"""What lapses of schedulers and late lines add to the upper bounds that outlast them.

Let z be the warp that finishes last or, with barriers, the chain of warps that stands for it. In the proofs of theorems
1' and 1S a gate is full in each cycle in which z could issue and does not. With lapses there are more such cycles: the
partition of z lapses, or z is withheld because a line is late. So

    M <= base + credits + windows + misses,

where `base` is a bound without lapses; where instructions go through queues it is theorem 1Q. These theorems do not ask
that other warps issue when they can. Theorem E does, but a schedule without the cycles of its lapses is one of a
machine with shorter stalls, latencies and intervals, for which the theorem holds. Only a cycle in which another warp is
withheld may cost a pair.

The credit of a warp is the heaviest path under the credits of its places, and its fence and its misses are defined
alike. C is the sum of the windows of all lines that warps of the SM need, and C(z) of those that the program of z
needs. There are K partitions.

    credits   the credits of the warps in the partition of z, with barriers of all warps, and the fences of all warps;
              for theorem E the fences twice
    windows   C(z), with barriers C min(K, number of phases); for theorem E as much and C
    misses    those of z, with barriers the sum over the phases of the largest ones; for theorem E besides them those of
              the warps in the partition of z, with barriers of all warps

Source: docs/theory.md, 17.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice, zip_longest
from operator import attrgetter
from typing import Self

from makespan.model.feature import BARRIERS, DELAYS, MULTIPROCESSOR, PROGRAMS, SCHEDULER, TIMES, Feature
from makespan.model.instance import Instance, requires
from makespan.model.lapses import NO_LAPSES, PlaceLapses, longest_windows
from makespan.model.program import Program
from makespan.model.result import LapseProof, Upper, UpperBound
from makespan.proof.bounds.pessimistic import pessimistic
from makespan.proof.bounds.phases import PhaseSegment, segments_of
from makespan.proof.bounds.theorem_1q import theorem_1q
from makespan.proof.bounds.theorem_e import theorem_e

KNOWS = PROGRAMS | TIMES | BARRIERS | DELAYS | SCHEDULER | MULTIPROCESSOR | {Feature.LAPSES, Feature.QUEUES}

_MISSES = attrgetter("misses")


def lapse_proof(instance: Instance) -> LapseProof:
    """Return the smallest upper bound that holds with lapses and late lines, and the parts that it adds up.

    >>> from makespan.model.lapses import PlaceLapses
    >>> lapsing = Program.chain("CLLC").lapsing((PlaceLapses(credit=1),) * 4)
    >>> proof = lapse_proof(Instance.of(lapsing, warps=8))
    >>> str(proof.base.evidence), proof.base.upper, proof.credits, proof.upper
    ('theorem-e', 18, 32, 50)

    Raises:
        UnsupportedError: the instance has another feature.
    """
    # of equal ones the first, which leans on less
    return min(lapse_proofs(instance), key=lambda proof: proof.upper)


@requires(KNOWS, "the bound with lapses")
def lapse_proofs(instance: Instance) -> tuple[LapseProof, ...]:
    """Return the proof by theorem 1' or 1S and, where theorem E applies, the one by it.

    The first one outlasts all that its base outlasts: its proof uses upper ends only, with lapses as without. Theorem
    1Q alone counts queues. It knows no barriers: there queues are left out, which is an assumption of the instance.
    """
    asked, costs = instance.without_lapses, LapseCosts.of(instance)
    if instance.counts_queues:
        plain = theorem_1q(_queues_alone(instance))
    else:
        evidence = Upper.THEOREM_1S if asked.is_multiprocessor else Upper.PESSIMISTIC
        plain = UpperBound(pessimistic(asked), evidence)
    found = [LapseProof(plain, costs.credits, costs.windows, costs.misses)]
    # theorem E bounds any scheduler, and knows no promise of one
    paired = None if instance.counts_queues else theorem_e(asked.relaxed)
    if paired is not None:
        windows, misses = costs.windows + costs.all_windows, costs.misses + costs.all_misses
        # waits for requests of other warps are stated as fences, and may withhold some warps alone, which costs E twice
        found.append(LapseProof(paired, costs.credits + costs.fences, windows, misses))
    return tuple(found)


def _queues_alone(instance: Instance) -> Instance:
    """Return the same warps behind their queues, of whose lapses it is known that there are none."""
    # where nothing is known of lapses, an instance has no queues
    never = (replace(each, program=each.program.lapsing((NO_LAPSES,) * each.program.end)) for each in instance.groups)
    return replace(instance, groups=tuple(never))


@dataclass(frozen=True, slots=True)
class LapseCosts:
    """The cycles that lapses and late lines cost.

    Args:
        credits: the most lapses of the partition of the last warp, or of all partitions in which its chain is.
        fences: those of them that are lapses of the whole SM.
        windows: the most cycles in which the last warp or its chain is withheld because of lines that stay.
        misses: the same for lines that do not stay.
        all_windows: the most cycles in which any warp of a partition is withheld because of lines that stay.
        all_misses: the same for lines that do not stay.
    """

    credits: int
    fences: int
    windows: int
    misses: int
    all_windows: int
    all_misses: int

    @classmethod
    def of(cls, instance: Instance) -> Self:
        """Return the costs of an instance."""
        programs = [group.program for group in instance.groups]
        misses = [[lapses.misses for lapses in program.lapses] for program in programs]
        most_misses = [heaviest_lapses(program, _MISSES) for program in programs]
        credit = [heaviest_lapses(program, lambda place: place.credit) for program in programs]
        fence = [heaviest_lapses(program, lambda place: place.fence) for program in programs]
        fences = sum(group.warps * own for group, own in zip(instance.groups, fence, strict=True))
        # a window of a partition is as long as the longest that any program names for the line
        window = dict(longest_windows(chain.from_iterable(program.lines for program in programs)))
        every = sum(window.values())
        if instance.has_barriers:
            windows, of_chain = _along_chain(instance, misses)
            windows *= every
        else:
            windows = max(sum(window[line.name] for line in program.lines) for program in programs)
            of_chain = max(most_misses)
        return cls(
            _most_of_partition(instance, credit) + fences,
            fences,
            windows,
            of_chain,
            every,
            _most_of_partition(instance, most_misses),
        )


def heaviest_lapses(program: Program, weigh: Callable[[PlaceLapses], int]) -> int:
    """Return the largest sum of cycles of places on a path, 0 where nothing is known of the places.

    >>> from makespan.model.lapses import PlaceLapses
    >>> program = Program.chain("CL").lapsing((PlaceLapses(2, fence=9), PlaceLapses(1)))
    >>> heaviest_lapses(program, lambda place: place.credit)
    3
    """
    cycles = [weigh(place) for place in program.lapses]
    return program.heaviest(cycles) if any(cycles) else 0


def _most_of_partition(instance: Instance, cycles: Sequence[int]) -> int:
    """Return what the warps of a partition add up to at most, if a warp of each group adds so much.

    With barriers it is what all warps of the SM add up to: each phase may be decided in another partition, and credit
    that is left over from one phase may be spent in the next one.
    """
    groups = instance.groups
    if instance.has_barriers or instance.machine.partitions == 1:
        return sum(group.warps * own for group, own in zip(groups, cycles, strict=True))
    if (partitions := instance.partition_of_warp) is not None:
        found = Counter[int]()
        for part, group in zip(partitions, instance.group_of_warp(), strict=True):
            found[part] += cycles[group]
        return max(found.values())
    # partitions are filled evenly, so none has more warps than this
    ranked = sorted(zip(cycles, (group.warps for group in groups), strict=True), reverse=True)
    most = -(-instance.warps // instance.machine.partitions)
    return sum(islice(chain.from_iterable([own] * warps for own, warps in ranked), most))


def _along_chain(instance: Instance, misses: Sequence[Sequence[int]]) -> tuple[int, int]:
    """Return in how many partitions the chain of an instance with barriers can be, and its most misses.

    The chain is one warp in each phase. Where there are too many phases, it may be all warps, in all partitions.
    """
    partitions = instance.machine.partitions
    rows = list[list[int]]()
    for group, cycles in zip(instance.groups, misses, strict=True):
        segments = segments_of(group.program)
        if segments is None:
            return partitions, sum(group.warps * heaviest_lapses(group.program, _MISSES) for group in instance.groups)
        rows.append(list(_by_phase(group.program, segments, cycles)))
    phases = [max(row) for row in zip_longest(*rows, fillvalue=0)]
    return min(partitions, len(phases)), sum(phases)


def _by_phase(program: Program, segments: Sequence[PhaseSegment], cycles: Sequence[int]) -> Iterator[int]:
    """Yield the largest sum of cycles on a path through each phase, the barrier that ends it included."""
    if not any(cycles):
        yield from [0] * len(segments)
        return
    behind = [*cycles, 0]  # what a place outside of a phase adds, which is the barrier that ends it, or the end
    for segment in segments:
        ahead: dict[int, int] = {}
        for at in reversed(segment.places):
            ahead[at] = cycles[at] + max(ahead.get(after, behind[after]) for after in program.places[at].successors)
        yield max(ahead.get(entry, behind[entry]) for entry in segment.entries)
