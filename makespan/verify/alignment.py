"""Theorem L: how late warps with strings can make each other where latencies are long (docs/theory.md, 5).

Premises: every program is a string without barriers; no issue width that could bind; every class that is used has one
port, an interval of one cycle and one latency; and both premises on distances hold, (L1) and (L2).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from makespan.model.instance import Group, Instance
from makespan.model.machine import Latency
from makespan.model.result import Upper
from makespan.verify.machine_form import binding_width, used_units
from makespan.verify.refusal import ProofBudget, ProofSteps
from makespan.verify.rule import of_instance

MOST_STEPS = 50_000_000  # to pairs of blocks, and to nodes of a tree


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
    if binding_width(instance) is not None or instance.has_barriers:
        return None
    if any(unit.capacity != 1 or unit.interval != 1 or unit.latency.least != unit.latency.most for unit in units):
        return None
    if not all(group.program.is_chain for group in instance.groups):
        return None
    latencies = {unit.name: unit.latency for unit in units}
    crews = [_EqualStrings.of(group, latencies) for group in instance.groups]
    if not all(_apart(crews, name) for name in latencies):
        return None
    with effort.part(MOST_STEPS) as work:
        _follow(crews, work)
    return max(crew.alone + crew.late[-1] for crew in crews)


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


def _apart(crews: Sequence[_EqualStrings], name: str) -> bool:
    """Return whether both premises on distances hold for a class, with I_X = `filled` + 1."""
    filled = max(_others(crews, own, name) for own in crews if own.same[name])
    followed = [(own.blocks, at) for own in crews for at in own.same[name] if at + 1 < len(own.blocks)]
    onward = [blocks[at + 1].first - blocks[at].first for blocks, at in followed]
    for own in crews:
        blocks, numbers = own.blocks, own.same[name]
        # (L1): consecutive blocks of a warp are more than I_X apart, so before each there is a cycle without X
        if any(blocks[two].first - blocks[one].last <= filled + 1 for one, two in pairwise(numbers)):
            return False
        # (L2): l + m_X >= I_X, l being the latency of the letter before the block
        if any(onward and blocks[at].first - blocks[at - 1].last + min(onward) <= filled for at in numbers if at):
            return False
    return True


def _others(crews: Sequence[_EqualStrings], own: _EqualStrings, name: str) -> int:
    """Return how many letters of a class all warps but one of `own` issue, each those of one block."""
    return sum((crew.warps - (crew is own)) * crew.largest[name] for crew in crews)


class _AlignmentPaths:
    """The most that alignment paths are worth, by the block of their last job.

    A far pair is worth one less if the pair before it is (beta - 1, gamma - 1). So `row` has the paths that end one
    block of the chain ago, with their values, and the tree all that ended earlier. `best` is Phi.
    """

    def __init__(self, size: int) -> None:
        self._tree = [0] * (size + 1)  # a Fenwick tree of prefix maxima
        self.row: list[tuple[int, int]] = []
        self.best = 0

    def turn(self, row: list[tuple[int, int]]) -> None:
        """Go on to the next block of the chain, whose pairs are `row`."""
        for job, value in self.row:
            at = job + 1
            while at < len(self._tree):
                self._tree[at] = max(self._tree[at], value)
                at += at & -at
        self.row, self.best = row, max(self.best, *(value for _, value in row), 0)

    def before(self, job: int) -> int:
        """Return the most of a path that ended before this job, two blocks ago or earlier; 0 is the empty path."""
        best, at = 0, job
        while at > 0:
            best = max(best, self._tree[at])
            at -= at & -at
        return best


def _follow(crews: Sequence[_EqualStrings], work: ProofSteps) -> None:
    """Find Delta of all blocks, in the order in which they end alone: reach at a block rests on earlier ones only."""
    work.spend(len(crews) * sum(10 + 10 * len(crew.blocks) for crew in crews))  # memory
    paths = {
        (own, other): _AlignmentPaths(len(crew.blocks)) for own in range(len(crews)) for other, crew in enumerate(crews)
    }
    ends = [(block.last, own, step) for own, crew in enumerate(crews) for step, block in enumerate(crew.blocks)]
    for _, own, step in sorted(ends):
        chain = crews[own]
        block = chain.blocks[step]
        others = _others(crews, chain, block.unit)
        reach = (chain.late[-1] if step else 0) + others, others + chain.largest[block.unit]
        costs = 0
        for other, crew in enumerate(crews):
            known = paths[own, other]
            jobs = crew.same[block.unit]
            work.spend(len(jobs) + len(known.row) + 1)
            near = step if own == other else None
            if near is not None:  # between equal strings a path begins with (0, 0), so job 0 pairs with block 0 only
                jobs = [job for job in jobs if job == near or (job and near)]
            reached = [job for job in jobs if _in_reach(crew, job, block.last, *reach)]
            work.spend((len(known.row) + len(reached)) * len(crew.blocks).bit_length())
            known.turn(_extend_paths(known, crew, reached, near))
            # each equal costs 1 + Phi, but for the chain itself, and each other warp Phi
            costs += (crew.warps - 1) * (1 + known.best) if own == other else crew.warps * known.best
        chain.late.append(costs)


def _in_reach(crew: _EqualStrings, job: int, end: int, ahead: int, busy: int) -> bool:
    """Return whether a pair is in reach: whether a job can delay a block that ends alone in cycle `end`."""
    shift = crew.blocks[job].first - end
    if shift > 0:
        return shift <= ahead
    return -shift < busy + (crew.late[job - 1] if job else 0)


def _extend_paths(
    known: _AlignmentPaths, crew: _EqualStrings, jobs: Sequence[int], near: int | None
) -> list[tuple[int, int]]:
    """Return these jobs, increasing, each with the most that a path to it is worth; `near` is a near pair's job."""
    found, passed, longest = list[tuple[int, int]](), 0, 0
    for job in jobs:
        while passed < len(known.row) and known.row[passed][0] < job - 1:
            longest = max(longest, known.row[passed][1])
            passed += 1
        value = max(known.before(job), longest)
        if passed < len(known.row) and known.row[passed][0] == job - 1:
            value = max(value, known.row[passed][1] - (job != near))
        found.append((job, value + crew.blocks[job].letters - (job == near)))
    return found


RULE = of_instance(Upper.THEOREM_L, "theorem L", bound)
