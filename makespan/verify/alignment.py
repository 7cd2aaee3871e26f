"""Theorem L: how late warps with strings can make each other where latencies are long (docs/theory.md, 5).

Premises: every program is a string without barriers; no issue width that could bind; every class that is used has one
port, an interval of one cycle and one latency; and both premises on distances hold, (L1) and (L2).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import NamedTuple

from makespan.model.instance import Group, Instance
from makespan.model.machine import Latency, UnitClass
from makespan.model.result import Upper
from makespan.verify.machine_form import binding_width, used_units
from makespan.verify.refusal import ProofBudget, ProofSteps
from makespan.verify.rule import of_instance

MOST_STEPS = 100_000_000  # to pairs of blocks


class _LetterRun(NamedTuple):
    """Letters of a class that a warp alone issues in the cycles from `first` to `last`."""

    unit: str
    letters: int
    first: int
    last: int


def bound(instance: Instance, effort: ProofBudget) -> int | None:
    """Return the bound of theorem L, in cycles; None where a premise fails.

    Raises:
        TooMuchWork: too many pairs of blocks.
    """
    units = used_units(instance).values()
    if binding_width(instance) is not None or instance.has_barriers or not all(map(_is_plain, units)):
        return None
    if not all(group.program.is_chain for group in instance.groups):
        return None
    latencies = {unit.name: unit.latency for unit in units}
    crews = [_EqualStrings.of(group, latencies) for group in instance.groups]
    if not all(_is_apart(crews, name) for name in latencies):
        return None
    with effort.part(MOST_STEPS) as work:
        _follow(crews, work)
    return max(crew.alone + crew.late[-1] for crew in crews)


def _is_plain(unit: UnitClass) -> bool:
    return unit.capacity == unit.interval == 1 and unit.latency.least == unit.latency.most


@dataclass
class _EqualStrings:
    """Equal warps with a string, cut into blocks.

    Args:
        warps: how many there are.
        blocks: runs of a class of latency 1, and single letters of every other class.
        alone: c, the sum of the latencies.
        same: by class the numbers of its blocks.
        largest: a_X, by class the most letters in a block.
        late: Delta, for how many cycles at most a warp is late at the end of each block, as far as that is known.
    """

    warps: int
    blocks: list[_LetterRun]
    alone: int
    same: dict[str, list[int]]
    largest: dict[str, int]
    late: list[int] = field(default_factory=list)

    @classmethod
    def of(cls, group: Group, latencies: Mapping[str, Latency]) -> "_EqualStrings":
        blocks, cycle = list[_LetterRun](), 0
        for unit, _ in group.program.places:
            # letters of latency 1 follow one another in neighbouring cycles, so that they are one block
            if blocks and latencies[unit].most == 1 and unit == blocks[-1].unit:
                blocks[-1] = blocks[-1]._replace(letters=blocks[-1].letters + 1, last=cycle)
            else:
                blocks.append(_LetterRun(unit, 1, cycle, cycle))
            cycle += latencies[unit].most
        same: dict[str, list[int]] = {name: [] for name in latencies}
        for number, block in enumerate(blocks):
            same[block.unit].append(number)
        largest = {name: max((blocks[number].letters for number in own), default=0) for name, own in same.items()}
        return cls(group.warps, blocks, cycle, same, largest)

    def onward(self, unit: str) -> list[int]:
        """Return the cycles from the first letter of each block of a class to that of the block behind it."""
        return [after.first - own.first for own, after in pairwise(self.blocks) if own.unit == unit]

    def cycles_from(self, one: int, two: int) -> int:
        """Return the cycles from the last letter of a block to the first one of a later block."""
        return self.blocks[two].first - self.blocks[one].last

    def is_in_reach(self, job: int, end: int, ahead: int, busy: int) -> bool:
        """Return whether a pair is in reach: whether a job can delay a block that ends alone in cycle `end`."""
        shift = self.blocks[job].first - end
        if shift > 0:
            return shift <= ahead
        return -shift < busy + (self.late[job - 1] if job else 0)


def _is_apart(crews: Sequence[_EqualStrings], name: str) -> bool:
    """Return whether both premises on distances hold for a class, with I_X = `filled` + 1."""
    using = [own for own in crews if own.same[name]]
    filled = max(_others(crews, own, name) for own in using)
    # (L1): consecutive blocks of a warp are more than I_X apart, so before each there is a cycle without X
    apart = [own.cycles_from(*blocks) for own in using for blocks in pairwise(own.same[name])]
    if min(apart, default=filled + 2) <= filled + 1:
        return False
    # (L2): l + m_X >= I_X, l being the latency of the letter before the block
    before = [own.cycles_from(at - 1, at) for own in using for at in own.same[name] if at]
    onward = [cycles for own in using for cycles in own.onward(name)]
    return min(before, default=filled + 1) + min(onward, default=filled + 1) > filled


def _others(crews: Sequence[_EqualStrings], own: _EqualStrings, name: str) -> int:
    """Return how many letters of a class all warps but one of `own` issue, each those of one block."""
    return sum((crew.warps - (crew is own)) * crew.largest[name] for crew in crews)


class _AlignmentPaths:
    """The most that alignment paths are worth which end before a job; `best` is Phi, the most of all paths so far.

    A far pair is worth one less if the pair before it is (beta - 1, gamma - 1). So `last` has the paths that end one
    block of the chain ago by their last job, and `earlier` by job all that ended before an earlier job.
    """

    def __init__(self, jobs: int) -> None:
        self._earlier, self._full = [0] * (jobs + 2), [0] * (jobs + 2)
        self._last: dict[int, int] = {}
        self.best = 0

    def before(self, job: int, *, is_near: bool) -> int:
        """Return the most of a path to a pair with this job, less what the pair is worth less; 0 is the empty path."""
        return max(self._full[job], self._last.get(job - 1, 0) - (not is_near))

    def turn(self, values: dict[int, int]) -> None:
        """Go on to the next block of the chain, in whose pairs paths of these values end, by job."""
        self._earlier = _prefix_maxima(self._earlier, self._last, 1)
        self._last, self.best = values, max(self.best, *values.values(), 0)
        self._full = _prefix_maxima(self._earlier, values, 2)  # from (beta - 1, gamma - 1) the path is not worth all


def _prefix_maxima(most: Sequence[int], values: dict[int, int], behind: int) -> list[int]:
    """Return the prefix maxima of both, where a value counts so many jobs behind its own."""
    found = list(most)
    for job, value in values.items():
        found[job + behind] = max(found[job + behind], value)
    return list(accumulate(found, max))


def _follow(crews: Sequence[_EqualStrings], work: ProofSteps) -> None:
    """Find Delta of all blocks, in the order in which they end alone: reach at a block rests on earlier ones only."""
    work.spend(len(crews) * sum(10 + 10 * len(crew.blocks) for crew in crews))  # memory
    paths = {(id(own), id(other)): _AlignmentPaths(len(other.blocks)) for own in crews for other in crews}
    ends = [(block.last, number, step) for number, own in enumerate(crews) for step, block in enumerate(own.blocks)]
    for _, number, step in sorted(ends):
        chain, costs = crews[number], 0
        for other in crews:
            known = paths[id(chain), id(other)]
            work.spend(len(other.blocks) + 1)
            known.turn(_values(known, crews, chain, other, step))
            # each equal costs 1 + Phi, but for the chain itself, and each other warp Phi
            costs += (other.warps - 1) * (1 + known.best) if other is chain else other.warps * known.best
        chain.late.append(costs)


def _values(
    known: _AlignmentPaths, crews: Sequence[_EqualStrings], chain: _EqualStrings, other: _EqualStrings, step: int
) -> dict[int, int]:
    """Return by job the most that a path is worth which ends with a block of the chain and this job."""
    block = chain.blocks[step]
    others = _others(crews, chain, block.unit)
    ahead, busy = (chain.late[-1] if step else 0) + others, others + chain.largest[block.unit]
    jobs = other.same[block.unit]
    if other is chain:  # between equal strings a path begins with (0, 0), so job 0 pairs with block 0 only
        jobs = [job for job in jobs if job == step or (job and step)]
    found = {}
    for job in jobs:
        is_near = other is chain and job == step
        if is_near or other.is_in_reach(job, block.last, ahead, busy):
            found[job] = known.before(job, is_near=is_near) + other.blocks[job].letters - is_near
    return found


RULE = of_instance(Upper.THEOREM_L, "theorem L", bound)
