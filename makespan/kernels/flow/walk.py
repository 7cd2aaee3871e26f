"""Walks through a control flow from the entry to the end of the warp, within loop bounds."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from makespan.host.errors import InputError, UnsupportedError
from makespan.kernels.flow.branches import SIDES, TraceStep, branch_keys, controlled_loops
from makespan.kernels.flow.graph import Flow
from makespan.kernels.flow.loop_info import LoopInfo
from makespan.kernels.flow.loops import LoopNest
from makespan.model.program import MAX_PLACES

BranchChoice: TypeAlias = Callable[[int, frozenset[int]], int]
"""A function that chooses the side of a branch, given its block and the spent loops around it."""


@dataclass(frozen=True, slots=True)
class BoundedFlow:
    """A control flow with its loops, and what is known about each of them.

    Where a method is told which loops are "spent", those are the loops whose back edges may not be taken any more.
    """

    flow: Flow
    nest: LoopNest
    infos: tuple[LoopInfo, ...]
    # memos: a long walk asks the same few questions again and again
    _permitted: dict[tuple[int, frozenset[int]], tuple[int, ...]] = field(
        default_factory=dict, compare=False, repr=False
    )
    _leaving: dict[tuple[int, frozenset[int]], frozenset[int]] = field(default_factory=dict, compare=False, repr=False)

    def most_repeats(self, loop: int) -> int | None:
        """Return how often the back edges of a loop may be taken for each entry; None without a bound.

        N iterations are N executions of the head if only a latch can leave the loop. Otherwise the head may begin
        one more, which ends at an exit: a loop that tests at its top executes the test once more than its body.
        """
        bound = self.infos[loop].bound
        if bound is None:
            return None
        return bound.maximum - 1 if self.nest.loops[loop].is_bottom_tested else bound.maximum

    def is_exact(self, loop: int) -> bool:
        """Return whether the loop never runs fewer iterations than its bound."""
        bound = self.infos[loop].bound
        return bound is not None and bound.exact

    def spent(self, block: int, repeats: Mapping[int, int]) -> frozenset[int]:
        """Return the spent loops around a block, given how often their back edges were taken."""
        return frozenset([loop for loop in self.nest.around(block) if repeats[loop] == self.most_repeats(loop)])

    def left_early(self, block: int, after: int, spent: frozenset[int]) -> int | None:
        """Return a loop that the way from `block` to `after` leaves before the end of its exact bound."""
        loops = (loop for loop in self.nest.around(block) if loop not in spent and self.is_exact(loop))
        return next((loop for loop in loops if after not in self.nest.loops[loop].blocks), None)

    def permitted(self, block: int, spent: frozenset[int]) -> tuple[int, ...]:
        """Return the sides of a branch that the bounds of the loops around it leave open."""
        if (block, spent) not in self._permitted:
            self._permitted[block, spent] = tuple(
                side
                for side, after in enumerate(self.flow.blocks[block].successors)
                if self.left_early(block, after, spent) is None and not self.is_trapped(after, spent)
            )
        return self._permitted[block, spent]

    def is_dead(self, block: int, after: int) -> bool:
        """Return whether a loop that never repeats forbids the way from `block` to `after`."""
        return self.is_trapped(after, frozenset(n for n in self.nest.around(block) if self.most_repeats(n) == 0))

    def may_die(self, block: int, after: int) -> bool:
        """Return whether a bound may come to forbid the way from `block` to `after`."""
        return self.is_trapped(after, frozenset(self.nest.around(block)))

    def is_trapped(self, after: int, spent: frozenset[int]) -> bool:
        """Return whether every way on from block `after`, in a spent loop, leads to a back edge of one."""
        inside = [loop for loop in spent if after in self.nest.loops[loop].blocks]
        closed = any(after == self.nest.loops[loop].header for loop in inside)
        return closed or any(after not in self._blocks_that_leave(loop, spent) for loop in inside)

    def _blocks_that_leave(self, number: int, spent: frozenset[int]) -> frozenset[int]:
        """Return the blocks of a loop from which a way leads out past no back edge of a spent loop."""
        if (number, spent) not in self._leaving:
            blocks = self.nest.loops[number].blocks
            heads = {self.nest.loops[other].header for other in spent}
            before: dict[int, list[int]] = {block: [] for block in blocks}
            for block in blocks:
                for after in blocks.intersection(self.flow.blocks[block].successors) - heads:
                    before[after].append(block)
            found, waiting = set[int](), [source for source, _ in self.nest.loops[number].exits]
            while waiting:
                block = waiting.pop()
                if block not in found:
                    found.add(block)
                    waiting += before[block]
            self._leaving[number, spent] = frozenset(found)
        return self._leaving[number, spent]


def walk(bounded: BoundedFlow, choose: BranchChoice) -> Iterator[int]:
    """Yield the blocks of one path, one after the other.

    Raises:
        InputError: a bound that the path breaks, or a path of more than a million instructions.
    """
    flow, nest = bounded.flow, bounded.nest
    loop_at = {loop.header: number for number, loop in enumerate(nest.loops)}
    repeats = {loop_at[0]: 0} if 0 in loop_at else {}
    block, length = 0, 0
    while block != flow.exit:
        yield block
        successors = flow.blocks[block].successors
        if len(successors) > 1 and not flow.is_branch(block):
            raise _indirect(flow, block)
        length += flow.blocks[block].stop - flow.blocks[block].first
        if length > MAX_PLACES:
            raise _too_long(bounded)
        after = successors[choose(block, bounded.spent(block, repeats)) if len(successors) == 2 else 0]
        if (entered := loop_at.get(after)) is not None:
            repeats[entered] = repeats[entered] + 1 if block in nest.loops[entered].blocks else 0
            most = bounded.most_repeats(entered)
            if most is not None and repeats[entered] > most:
                raise _overrun(bounded, entered, block)
        block = after


def by_preference(bounded: BoundedFlow, preferred: Mapping[int, int]) -> BranchChoice:
    """Return a choice of the preferred side, or else the side that stays in the loop, unless a bound is used up."""
    staying = {
        block: _staying_side(bounded, block) for block in range(bounded.flow.exit) if bounded.flow.is_branch(block)
    }

    def choose(block: int, spent: frozenset[int]) -> int:
        side = preferred.get(block, staying[block])
        left = bounded.left_early(block, bounded.flow.blocks[block].successors[side], spent)
        if left is not None and block in preferred:  # an exact bound contradicts what the user says
            raise _leaves_early(bounded, left, block)
        permitted = bounded.permitted(block, spent)
        if not permitted:
            raise _no_side_left(bounded, block)
        return side if side in permitted else permitted[0]  # a used-up bound overrules the preference

    return choose


def _staying_side(bounded: BoundedFlow, block: int) -> int:
    loop = next(controlled_loops(bounded.flow, bounded.nest, block), None)
    taken, _ = bounded.flow.blocks[block].successors
    return 0 if loop is None or taken in bounded.nest.loops[loop].blocks else 1


class Tracer:
    """A choice of sides as a trace says, step by step; call `finish` after the walk."""

    def __init__(self, bounded: BoundedFlow, steps: Sequence[TraceStep]) -> None:
        self._terrain = bounded
        self._steps = steps
        self._done = 0

    def choose(self, block: int, spent: frozenset[int]) -> int:
        """Return the side that the next step of the trace takes: a `BranchChoice`.

        Raises:
            InputError: the trace has ended, names another branch, or breaks a loop bound.
        """
        flow = self._terrain.flow
        if self._done == len(self._steps):
            raise InputError(f"{flow.kernel.file}: the trace ends after {self._done} steps, before {_at(flow, block)}")
        step = self._steps[self._done]
        self._done += 1
        if step.key not in branch_keys(flow, block):
            raise InputError(f"{step.place}: the path comes to {_at(flow, block)}, not to a branch {step.key}")
        if step.side not in self._terrain.permitted(block, spent):
            raise InputError(
                f"{step.place}: {step.key} {SIDES[step.side]} contradicts a loop bound at {_at(flow, block)}:"
                f" {_bounds_around(self._terrain, block)}"
            )
        return step.side

    def finish(self) -> None:
        """Refuse steps that are left over.

        Raises:
            InputError: the path ended before the trace did.
        """
        if self._done < len(self._steps):
            left = len(self._steps) - self._done
            raise InputError(f"{self._steps[self._done].place}: the warp has ended, but {left} steps are left over")


def _indirect(flow: Flow, block: int) -> UnsupportedError:
    return UnsupportedError(
        f"{flow.kernel.file}:{flow.last(block).line}: `{flow.last(block)}` is an indirect branch, which one path cannot"
        " follow: take all paths with --paths automaton"
    )


def _at(flow: Flow, block: int) -> str:
    return f"{flow.at(flow.last(block).line)}: `{flow.last(block)}`"


def _bounds_around(bounded: BoundedFlow, block: int) -> str:
    infos = (bounded.infos[number] for number in bounded.nest.around(block))
    return ", ".join(f"loop {info.label} {info.bound}" for info in infos if info.bound)


def _leaves_early(bounded: BoundedFlow, loop: int, block: int) -> InputError:
    info, last = bounded.infos[loop], bounded.flow.last(block)
    return InputError(
        f"{bounded.flow.kernel.file}:{last.line}: `{last}` leaves loop {info.label} too early: it makes {info.bound}"
    )


def _overrun(bounded: BoundedFlow, loop: int, block: int) -> InputError:
    info, last = bounded.infos[loop], bounded.flow.last(block)
    return InputError(
        f"{bounded.flow.kernel.file}:{last.line}: `{last}` begins loop {info.label} once more than its bound allows,"
        f" {info.bound}, and no other way leads out"
    )


def _no_side_left(bounded: BoundedFlow, block: int) -> InputError:
    last = bounded.flow.last(block)
    return InputError(
        f"{bounded.flow.kernel.file}:{last.line}: neither side of `{last}` keeps the loop bounds:"
        f" {_bounds_around(bounded, block)}"
    )


def _too_long(bounded: BoundedFlow) -> InputError:
    kernel = bounded.flow.kernel
    bounds = ", ".join(f"{info.label} {info.bound.iterations}" for info in bounded.infos if info.bound)
    return InputError(
        f"{kernel.file}: the path through {kernel.name} exceeds the limit of {MAX_PLACES} instructions; lower the loop"
        f" bounds ({bounds or 'there are none'})"
    )
