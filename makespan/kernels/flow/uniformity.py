"""The branches that all active lanes of a warp take alike, and those that always go the same way.

Values spread from lane to lane in two ways: through the operands of instructions (`spread`), and through control flow.
Where lanes that parted at a branch come together, whatever either side wrote may differ between them. And where a loop
is left in different iterations, whatever it wrote may differ outside, although all lanes still in the loop agree.

Sources: D. Sampaio, R. M. de Souza, S. Collange and F. M. Q. Pereira, Divergence Analysis, ACM TOPLAS 35(4), 2013;
J. Rosemann, S. Moll and S. Hack, An Abstract Interpretation for SPMD Divergence on Reducible Control Flow Graphs,
POPL 2021 (which calls the second way temporal divergence).
"""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from makespan.host.stopwatch import check
from makespan.kernels.flow.dataflow import Partings, branch_guard, influential_registers, live_registers
from makespan.kernels.flow.execution import reverse_postorder
from makespan.kernels.flow.graph import Flow
from makespan.kernels.flow.grid import Launch
from makespan.kernels.flow.instruction_set import SHARED_REGISTER
from makespan.kernels.flow.runs import AbstractRuns
from makespan.kernels.flow.spread import LaneSpread, Surroundings, special_spreads

if TYPE_CHECKING:
    from makespan.kernels.flow.execution import ThreadMask
    from makespan.kernels.flow.runs import ThreadGroup

MAX_WORK = 5_000_000
"""Registers, and blocks behind branches, that the analysis may look at; beyond it, branches count as divergent."""


def uniform_branches(flow: Flow, launch: Launch) -> frozenset[int]:
    """Return the blocks whose conditional branch all active lanes of a warp take alike.

    Lanes are taken to come together at the immediate post-dominator of the branch at which they parted, or wherever
    else both of its sides lead. A branch that says so itself is believed, and a kernel is taken to have no data race.

    Raises:
        InputError: a launch that does not fit the kernel.
        UnsupportedError: control flow that has no natural loops.
    """
    runs = AbstractRuns.of(flow, launch)
    branches = {block for block in range(flow.exit) if flow.is_branch(block)}
    sure = {block for block in branches if flow.ending(block).is_uniform}  # the code itself promises it
    sure |= _by_execution(runs)
    return frozenset(sure.union(_by_spread(flow, runs, frozenset(sure))))


def declared_uniform(flow: Flow) -> frozenset[int]:
    """Return the blocks with several successors whose last instruction says that all lanes go the same way."""
    several = (number for number, block in enumerate(flow.blocks) if len(block.successors) > 1)
    return frozenset(block for block in several if flow.ending(block).is_uniform)


def decided_sides(flow: Flow, launch: Launch, warp: int | None) -> dict[int, int]:
    """Return the side (as in `branches.SIDES`) of every branch that has the same outcome at each of its executions.

    That is, by every lane of this warp (its number in the block; None for all), in every block of the grid. A branch
    that is never executed has no outcome and is left out.

    Raises:
        InputError: a launch that does not fit the kernel, or a warp that the block does not have.
        UnsupportedError: control flow that has no natural loops.
    """
    outcomes: dict[int, set[int]] = {}
    for run in next(AbstractRuns.of(flow, launch).tries(warp), ()):  # the first try has the most detail
        for block, side in run.seen.sides:
            outcomes.setdefault(block, set()).add(side)
    return {block: next(iter(sides)) for block, sides in sorted(outcomes.items()) if len(sides) == 1}


def _by_execution(runs: AbstractRuns) -> set[int]:
    """Return the branches that go one way in each warp, or are never executed; none if that takes too long."""
    found: set[int] | None = None
    for group, seen in next(runs.tries(None), ()):  # every group must agree
        sides = seen.sides
        found = {
            block
            for block in (runs.code.branches if found is None else found)
            if not _splits(group, sides.get((block, 0), False), sides.get((block, 1), False))
        }
    return found or set()


def _splits(group: "ThreadGroup", taken: "ThreadMask", fall: "ThreadMask") -> bool:
    """Return whether a warp may have threads that go different ways, or one thread that goes both."""
    if taken is False or fall is False:
        return False
    if group.warps is None or taken is True or fall is True:
        return True
    return bool(set(group.warps[taken].tolist()) & set(group.warps[fall].tolist()))  # a warp with threads on both sides


@dataclass(slots=True)
class _Divergence:
    """The fixed point of spreads and divergent branches.

    Args:
        entering: the spreads at the beginning of each block that was reached; a register without one may differ.
        mixed: by block, the registers that lanes which come together there may have written differently.
        divergent: the branches that are not uniform.
        live: by block, the registers whose spread is worth carrying there.
    """

    flow: Flow
    around: Surroundings
    sure: frozenset[int]
    matter: frozenset[str]
    partings: Partings
    live: Sequence[Set[str]]
    entering: dict[int, dict[str, LaneSpread]] = field(default_factory=dict)
    mixed: dict[int, set[str]] = field(default_factory=dict)
    divergent: set[int] = field(default_factory=set)

    def solve(self) -> bool:
        """Find the fixed point, and return whether it was found within the work that it may take."""
        rank = {block: at for at, block in enumerate(reverse_postorder(self.flow))}
        self.entering = {0: {}} if self.flow.blocks else {}
        waiting = set(self.entering)
        while waiting:
            check(f"looking for uniform branches of {self.flow.kernel.name}", "tell more of the launch with --param")
            block = min(waiting, key=rank.__getitem__) if len(waiting) > 1 else next(iter(waiting))
            waiting.remove(block)
            spreads = self._after(block)
            self.partings.work_left -= 1 + len(spreads) + len(waiting)
            if self.flow.is_branch(block) and block not in self.divergent | self.sure and self._parts(block, spreads):
                self.divergent.add(block)
                waiting |= self._mix(block)
            for after in self.flow.blocks[block].successors:
                if after != self.flow.exit and self._enter(after, spreads):
                    waiting.add(after)
            if self.partings.work_left < 0:
                return False
        return True

    def _after(self, block: int) -> dict[str, LaneSpread]:
        spreads = dict(self.entering[block])
        for number in self.flow.numbers(block):
            effect = self.flow.effects[number]
            names = self.matter.intersection(effect.writes)
            if not names:
                continue
            self.partings.work_left -= 1
            found = self.flow.semantics.spread(number, spreads, self.around)
            if effect.guard is not None:
                guard = spreads.get(effect.guard.register)
                found = found if guard is not None and not guard.varying else None
            for name in names:
                old = spreads.get(name)
                is_partial = effect.guard is not None or effect.is_partial
                new = found if not is_partial else (found | old if found is not None and old is not None else None)
                if new is None or name == SHARED_REGISTER:
                    spreads.pop(name, None)
                else:
                    spreads[name] = new
        return spreads

    def _parts(self, block: int, spreads: Mapping[str, LaneSpread]) -> bool:
        found = [spreads.get(name) for name in branch_guard(self.flow, block)]
        return any(spread is None or spread.varying for spread in found)

    def _enter(self, block: int, spreads: Mapping[str, LaneSpread]) -> bool:
        """Bring spreads to a block, and return whether that changed what enters it."""
        mixed = self.mixed.get(block, set())
        old = self.entering.get(block)
        names = (self.live[block] & spreads.keys()) - mixed  # mixed registers may differ for good
        if old is None:
            new = {name: spreads[name] for name in names}
        else:
            new = {name: old[name] | spreads[name] for name in names & old.keys()}
        self.entering[block] = new
        return new != old

    def _mix(self, block: int) -> set[int]:
        """Note where lanes that part at a block join; return the blocks reached whose entering spreads changed."""
        changed = set()
        for join, names in self.partings.written(block).items():
            self.mixed.setdefault(join, set()).update(names)
            if join in self.entering and self._enter(join, self.entering[join]):
                changed.add(join)
        return changed


def _by_spread(flow: Flow, runs: AbstractRuns, sure: frozenset[int]) -> Iterator[int]:
    specials = special_spreads(flow.semantics.instruction_set.registers, runs.launch)
    around = Surroundings(specials, runs.parameters)
    matter = influential_registers(flow)
    partings = Partings.of(flow, runs.code.nest, matter, MAX_WORK)
    divergence = _Divergence(flow, around, sure, matter, partings, live_registers(flow, matter))
    if divergence.solve():  # beyond the limit no branch counts as uniform: the safe answer
        yield from (b for b in divergence.entering if flow.is_branch(b) and b not in divergence.divergent)
