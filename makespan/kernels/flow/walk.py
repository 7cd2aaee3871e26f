"""Walks from the entry to the end of the warp, within loop bounds; one path, as `take` or a trace fixes it."""

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import TypeAlias

from makespan.host.errors import InputError, MissingInput, MissingInputsError, Naming, UnsupportedError
from makespan.kernels.flow.branches import SIDES, TraceStep, branch_keys, controlled_loops, preferred_sides
from makespan.kernels.flow.graph import Flow, reach
from makespan.kernels.flow.grid import LaunchInput
from makespan.kernels.flow.instruction_set import Routine
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
            leaving = (source for source, _ in self.nest.loops[number].exits)
            self._leaving[number, spent] = frozenset(reach(leaving, before.__getitem__))
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
            last = flow.last(block)
            raise UnsupportedError(
                f"{flow.kernel.file}:{last.line}: `{last}` is an indirect branch, which one path cannot follow: take"
                " all paths with --paths automaton"
            )
        length += flow.blocks[block].stop - flow.blocks[block].first
        if length > MAX_PLACES:
            bounds = ", ".join(f"{info.label} {info.bound.iterations}" for info in bounded.infos if info.bound)
            raise InputError(
                f"{flow.kernel.file}: the path through {flow.kernel.name} exceeds the limit of {MAX_PLACES}"
                f" instructions; lower the loop bounds ({bounds or 'there are none'})"
            )
        after = successors[choose(block, bounded.spent(block, repeats)) if len(successors) == 2 else 0]
        if (entered := loop_at.get(after)) is not None:
            repeats[entered] = repeats[entered] + 1 if block in nest.loops[entered].blocks else 0
            most = bounded.most_repeats(entered)
            if most is not None and repeats[entered] > most:
                info, last = bounded.infos[entered], flow.last(block)
                raise InputError(
                    f"{flow.kernel.file}:{last.line}: `{last}` begins loop {info.label} once more than its bound"
                    f" allows, {info.bound}, and no other way leads out"
                )
        block = after


def by_preference(bounded: BoundedFlow, preferred: Mapping[int, int]) -> BranchChoice:
    """Return a choice of the preferred side, or else the side that stays in the loop, unless a bound is used up."""
    file = bounded.flow.kernel.file
    staying = {
        block: _staying_side(bounded, block) for block in range(bounded.flow.exit) if bounded.flow.is_branch(block)
    }

    def choose(block: int, spent: frozenset[int]) -> int:
        side, last = preferred.get(block, staying[block]), bounded.flow.last(block)
        left = bounded.left_early(block, bounded.flow.blocks[block].successors[side], spent)
        if left is not None and block in preferred:  # an exact bound contradicts what the user says
            info = bounded.infos[left]
            raise InputError(f"{file}:{last.line}: `{last}` leaves loop {info.label} too early: it makes {info.bound}")
        permitted = bounded.permitted(block, spent)
        if not permitted:
            around = _bounds_around(bounded, block)
            raise InputError(f"{file}:{last.line}: neither side of `{last}` keeps the loop bounds: {around}")
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


def _at(flow: Flow, block: int) -> str:
    return f"{flow.at(flow.last(block).line)}: `{flow.last(block)}`"


def _bounds_around(bounded: BoundedFlow, block: int) -> str:
    infos = (bounded.infos[number] for number in bounded.nest.around(block))
    return ", ".join(f"loop {info.label} {info.bound}" for info in infos if info.bound)


_MOST_LISTED = 12
"""The loops that a message lists; where there are more, it asks for a file of bounds."""


def by_take(bounded: BoundedFlow, take: Mapping[str, str]) -> list[int]:
    """Return the blocks of the path that `take` and the loop bounds determine; other loops run as often as they may.

    All loops that it may come to have a bound, see `unbounded_on_path`.

    Raises:
        InputError: a `take` that does not fit.
        UnsupportedError: a choice that is left.
    """
    preferred = preferred_sides(bounded.flow, take)
    reached = _reachable_blocks(bounded, preferred)
    _refuse_choices(bounded, _open(bounded, reached - preferred.keys(), to_maximum=bool(take)))
    return list(walk(bounded, by_preference(bounded, preferred)))


def by_trace(bounded: BoundedFlow, steps: Sequence[TraceStep]) -> list[int]:
    """Return the blocks of the path that a trace tells.

    Raises:
        InputError: a trace that does not fit.
    """
    tracer = Tracer(bounded, steps)
    path = list(walk(bounded, tracer.choose))
    tracer.finish()
    return path


def _reachable_blocks(bounded: BoundedFlow, preferred: Mapping[int, int]) -> set[int]:
    """Return the blocks that may be executed, given the preferred sides and that a loop bound may overrule them."""

    def after(block: int) -> list[int]:
        sides = bounded.flow.blocks[block].successors
        # a bound may overrule the preferred side later
        if block in preferred and not bounded.may_die(block, sides[preferred[block]]):
            sides = (sides[preferred[block]],)
        return [side for side in sides if side != bounded.flow.exit and not bounded.is_dead(block, side)]

    return reach([0], after)


def _controls(bounded: BoundedFlow, block: int) -> list[int]:
    return list(controlled_loops(bounded.flow, bounded.nest, block)) if bounded.flow.is_branch(block) else []


def _open(bounded: BoundedFlow, blocks: Set[int], *, to_maximum: bool) -> list[int]:
    choices = [b for b in sorted(blocks) if len(set(bounded.flow.blocks[b].successors)) == 2]
    return [b for b in choices if not (_is_decided(bounded, b) or (to_maximum and _controls(bounded, b)))]


def _is_decided(bounded: BoundedFlow, block: int) -> bool:
    """Return whether exact bounds leave no choice: the branch is the only way out of the loops that it controls."""
    loops = _controls(bounded, block)
    return bool(loops) and all(bounded.is_exact(n) and len(bounded.nest.loops[n].exits) == 1 for n in loops)


def unbounded_on_path(bounded: BoundedFlow, preferred: Mapping[int, int]) -> Iterator[int]:
    """Return the loops, by number, that a path with these preferred sides may come to and that have no bound."""
    return unbounded_in(bounded, _reachable_blocks(bounded, preferred))


def unbounded_in(bounded: BoundedFlow, reached: Set[int]) -> Iterator[int]:
    """Yield the loops, by number, whose head is among these blocks and that have no bound."""
    for number, (loop, info) in enumerate(zip(bounded.nest.loops, bounded.infos, strict=True)):
        if loop.header in reached and info.bound is None:
            yield number


def refuse_unbounded(bounded: BoundedFlow, reached: Set[int], named: Naming = str) -> None:
    """Refuse loops without a bound, all of them at once.

    Args:
        named: what the user calls a field of a question.

    Raises:
        MissingInputsError: a loop whose head is among the blocks and that has no bound.
    """
    missing = missing_bounds(bounded, unbounded_in(bounded, reached))
    if missing:
        raise missing_inputs_error(bounded.flow.kernel, missing, named)


def missing_inputs_error(kernel: Routine, missing: Sequence[MissingInput], named: Naming) -> MissingInputsError:
    """Return the error about inputs that a question about a kernel lacks."""
    template = f"; 'makespan strings {kernel.source} --bounds-template' prints a file of bounds to fill in"
    more = template if any(each.field == "loop_bounds" for each in missing) else ""
    return MissingInputsError.of(
        f"{kernel.source.partition(' --arch ')[0]}: kernel {kernel.name}", missing, named, more
    )


def missing_bounds(
    bounded: BoundedFlow, numbers: Iterable[int], asked: Container[str] = ()
) -> tuple[MissingInput, ...]:
    """Return the bounds of these loops, as inputs that are missing.

    Args:
        asked: the fields of the launch that are asked for anyway; where they alone decide a loop, it needs no bound.
    """
    found: dict[str, MissingInput] = {}
    for number in numbers:
        info, told = bounded.infos[number], bounded.flow.transferred.get(bounded.nest.loops[number].header)
        hint = info.hint or "" if told is None or not told.asks else ""
        for name, place, deciders in info.asks:
            others = tuple((each.field, each.blank) for each in deciders if each.field not in asked)
            if others or not deciders:  # what the launch will tell need not be asked for
                what = f"a bound for the loop {place}{_depending(deciders)}"
                found.setdefault(name, MissingInput("loop_bounds", f"{name}=N", what, others, hint))
    if len(found) <= _MOST_LISTED:
        return tuple(found.values())
    what = f"a file with bounds for {len(found)} loops, from {next(iter(found))} to {list(found)[-1]}"
    instead = [each.instead for each in found.values()]
    together = tuple(sorted({one for each in instead for one in each})) if all(instead) else ()
    return (MissingInput("loop_bounds", "FILE", what, together),)


def _depending(deciders: Sequence[LaunchInput]) -> str:
    on = [each.name or f"the {each.field}" for each in deciders]
    return f", which depends on {' and '.join(filter(None, [', '.join(on[:-1]), on[-1]]))}" if on else ""


def _refuse_choices(bounded: BoundedFlow, blocks: Sequence[int]) -> None:
    if blocks:
        flow = bounded.flow
        labels = Counter(flow.ending(block).target for block in range(flow.exit) if flow.is_branch(block))
        count = "1 branch leaves" if len(blocks) == 1 else f"{len(blocks)} branches leave"
        raise UnsupportedError(
            f"{flow.kernel.file}: {count} a choice in kernel {flow.kernel.name}, and one path is asked for; fix it,"
            " or take all paths with --paths automaton:\n  "
            + "\n  ".join(_choice(bounded, block, labels) for block in blocks)
        )


def _choice(bounded: BoundedFlow, block: int, labels: Mapping[str, int]) -> str:
    flow = bounded.flow
    line, label = branch_keys(flow, block)
    key = label if labels[label] == 1 else line
    branch = f"{flow.at(flow.last(block).line)}: {str(flow.last(block)).removesuffix(';')}"
    loop = next(iter(_controls(bounded, block)), None)
    bound = None if loop is None else bounded.infos[loop].bound
    if loop is None or bound is None or bound.exact or len(bounded.nest.loops[loop].exits) > 1:
        return f"{branch}   (--take '{key}=taken' or '=fall')"
    name = bounded.infos[loop].label
    stays = SIDES[0 if flow.blocks[block].successors[0] in bounded.nest.loops[loop].blocks else 1]
    return (
        f"{branch}   (loop {name}, {bound}, may end early: --loop-bound '{name}=={bound.maximum}' if it never does,"
        f" or --take '{key}={stays}')"
    )
