"""Abstract execution: runs a kernel for many threads at once on what is known of their registers.

A register has a value that is known, or none. Where the outcome of a branch is unknown, both sides are followed; where
ways join, only what all of them agree upon stays known. A loop is run iteration by iteration, so whatever is counted,
compared and shifted with known values comes out exactly, however it is written; a loop with no end in sight is
summarised by forgetting all that it may write. So every execution of every thread is among those that are followed.

Source: J. Gustafsson, A. Ermedahl, C. Sandberg and B. Lisper, Automatic Derivation of Loop Bounds and Infeasible Paths
for WCET Analysis Using Abstract Execution, RTSS 2006; known values that follow feasible edges only: M. Wegman and
F. K. Zadeck, Constant Propagation with Conditional Branches, ACM TOPLAS 13(2), 1991.
"""

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from makespan.host.stopwatch import check
from makespan.kernels.flow.arithmetic import select
from makespan.kernels.flow.dataflow import influential_registers
from makespan.kernels.flow.graph import Flow
from makespan.kernels.flow.grid import ParameterValue
from makespan.kernels.flow.instruction_set import Computation, Effect
from makespan.kernels.flow.loops import MAX_ITERATIONS, LoopNest

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from makespan.kernels.flow.arithmetic import RegisterValue

    ThreadMask: TypeAlias = bool | NDArray[np.bool_]
    RegisterState: TypeAlias = dict[str, RegisterValue]

_ARRAY_STEPS, _THREADS_A_STEP = 6, 256  # what a step costs with arrays, and how many threads add another
_REGISTERS_A_STEP = 16


class LoopEffort(Enum):
    """The way in which loops are run: every loop at each entry; each once, with all others summarised; or none."""

    ALL = "all"
    EACH = "each"
    NONE = "none"


class TooLongError(Exception):
    """The execution needs more steps than it may have."""


class ExecutionStep(NamedTuple):
    """An instruction: its guard with the value at which it acts, its computation, and what it may write besides."""

    guard: str | None
    acts_at: int
    computation: Computation | None
    forgets: tuple[str, ...]

    @property
    def writes(self) -> tuple[str, ...]:
        """Return all registers that the instruction may write."""
        results = self.computation.results if self.computation else ()
        return (*self.forgets, *(name for name in results if name is not None))

    def may_know(self, known: Set[str]) -> bool:
        """Return whether results of the instruction can be known if these registers are."""
        if self.computation is None:
            return False
        read = (source.register for source in self.computation.sources)
        return self.computation.may_be_known({name for name in read if name is not None and name not in known})


class AbstractState(NamedTuple):
    """The known registers of some threads, and a mask of the threads that may be here (True for all)."""

    state: "RegisterState"
    mask: "ThreadMask"


class RepeatCount(NamedTuple):
    """The number of back edges that one entry to a loop takes; `least` is None if nothing leaves the loop."""

    least: int | None
    most: int

    def __or__(self, other: "RepeatCount") -> "RepeatCount":
        """Return the smallest range that covers both."""
        known = [least for least in (self.least, other.least) if least is not None]
        return RepeatCount(min(known, default=None), max(self.most, other.most))


@dataclass(frozen=True, slots=True)
class PreparedCode:
    """A kernel prepared for execution: the instructions that have a say in where a warp goes.

    Args:
        steps: by block.
        branches: the guard of the conditional branch that ends a block, and the value at which it is taken.
        nodes: by loop, and by None for the kernel: blocks in no inner loop, and heads of inner loops, in an order in
            which every way but those back to the head goes forward.
        written: by loop, the registers that it may write.
        heads: the loop that begins at a block.
    """

    flow: Flow
    nest: LoopNest
    steps: tuple[tuple[ExecutionStep, ...], ...]
    branches: Mapping[int, tuple[str, int]]
    nodes: Mapping[int | None, tuple[int, ...]]
    written: tuple[frozenset[str], ...]
    heads: Mapping[int, int]
    registers: frozenset[str]


def prepare_execution(
    flow: Flow, nest: LoopNest, parameters: Mapping[str, ParameterValue], besides: Iterable[str] = ()
) -> PreparedCode:
    """Return the code of a kernel whose parameters are known in part; the registers `besides` matter, too."""
    known: dict[int, Computation | None] = {}

    def is_computed(number: int) -> bool:
        known[number] = flow.semantics.computation(number, parameters)  # remembered: the analysis asks once for each
        return known[number] is not None

    matter = influential_registers(flow, is_computed, besides)
    steps = tuple(
        tuple(_step(flow.effects[number], known[number]) for number in flow.numbers(block) if number in known)
        for block in range(flow.exit)
    )
    branches = {
        block: (guard.register, guard.acts_at)
        for block in range(flow.exit)
        if flow.is_branch(block) and (guard := flow.ending(block).guard)
    }
    written = tuple(
        frozenset(name for block in loop.blocks for step in steps[block] for name in step.writes) for loop in nest.loops
    )
    heads = {loop.header: number for number, loop in enumerate(nest.loops)}
    return PreparedCode(flow, nest, steps, branches, _nodes(flow, nest, heads), written, heads, matter)


def _step(effect: Effect, known: Computation | None) -> ExecutionStep:
    results = known.results if known else ()
    forgets = tuple(name for name in effect.writes if name not in results)
    register, acts_at = (effect.guard.register, effect.guard.acts_at) if effect.guard else (None, 1)
    return ExecutionStep(register, acts_at, known, forgets)


def _nodes(flow: Flow, nest: LoopNest, heads: Mapping[int, int]) -> dict[int | None, tuple[int, ...]]:
    found: dict[int | None, list[int]] = {number: [] for number in (None, *range(len(nest.loops)))}
    for block in reverse_postorder(flow):
        inside = nest.innermost.get(block)
        found[inside].append(block)
        if block in heads:
            found[nest.loops[heads[block]].outer].append(block)  # the head stands for the whole inner loop
    return {number: tuple(blocks) for number, blocks in found.items()}


def reverse_postorder(flow: Flow) -> list[int]:
    """Return the blocks that can be reached, in reverse postorder."""
    found: list[int] = []
    seen = {0}
    stack: list[tuple[int, Iterator[int]]] = [(0, iter(flow.blocks[0].successors))] if flow.blocks else []
    while stack:
        block, after = stack[-1]
        step = next((b for b in after if b != flow.exit and b not in seen), None)
        if step is None:
            found.append(block)
            stack.pop()
        else:
            seen.add(step)
            stack.append((step, iter(flow.blocks[step].successors)))
    return found[::-1]


@dataclass(slots=True)
class Execution:
    """One abstract execution of a kernel, with what was seen in it.

    Args:
        steps_left: what it may take; beyond it, `run` raises `TooLongError`.
        attempts_left: what it may take besides, to run each loop by itself.
        counts: by loop that was entered; they hold for the loops that are in none of the next two.
        endless: the loops without an end in sight, and how often each entry takes their back edges at least.
        given_up: the loops that would have taken too many steps by themselves.
        sides: by block and side, which threads may go that way.
    """

    code: PreparedCode
    effort: LoopEffort
    threads: int
    steps_left: int
    attempts_left: int = 0
    counts: dict[int, RepeatCount] = field(default_factory=dict)
    endless: dict[int, int] = field(default_factory=dict)
    given_up: set[int] = field(default_factory=set)
    sides: dict[tuple[int, int], "ThreadMask"] = field(default_factory=dict)

    def run(self, state: "RegisterState") -> None:
        """Execute from the entry; `state` tells the special registers.

        Raises:
            TooLongError: more steps than it may take.
        """
        if self.code.flow.blocks:
            self._sweep(None, 0, AbstractState(state, True))

    def _sweep(self, region: int | None, begin: int, front: AbstractState) -> dict[int, AbstractState]:
        """Go once through a loop or the kernel; return what leaves it or goes back to its head, by block of arrival."""
        code, arrivals, left = self.code, {begin: front}, dict[int, AbstractState]()
        inside = None if region is None else code.nest.loops[region].blocks
        for block in code.nodes[region]:
            here = arrivals.pop(block, None)
            if here is None:
                continue
            inner = code.heads.get(block)
            if inner is not None and inner != region:
                onward = list(self._loop(inner, here).items())  # an inner loop is one step of the outer one
            else:
                onward = list(self._block(block, here))
            for after, there in onward:
                stays = after != begin and (inside is None or after in inside)
                self._arrive(arrivals if stays else left, after, there)
        return left

    def _arrive(self, fronts: dict[int, AbstractState], block: int, front: AbstractState) -> None:
        if block in fronts:
            self._spend(len(front.state) // _REGISTERS_A_STEP)
            front = _join_states(fronts[block], front)
        fronts[block] = front

    def _block(self, block: int, front: AbstractState) -> Iterator[tuple[int, AbstractState]]:
        code = self.code
        steps, successors = code.steps[block], code.flow.blocks[block].successors
        self._spend(1 + len(steps) + len(front.state) // _REGISTERS_A_STEP)
        if steps:
            front = AbstractState(dict(front.state), front.mask)
            for step in steps:
                _execute(step, front.state)
        if len(successors) == 1:
            yield successors[0], front
            return
        register, taken_at = code.branches[block]
        guard = front.state.get(register)
        for side, after in enumerate(successors):
            mask = _narrow_mask(front.mask, guard, taken_at if side == 0 else 1 - taken_at)
            if mask is not False:
                seen = self.sides.get((block, side), False)
                self.sides[block, side] = _either(seen, mask)
                yield after, AbstractState(front.state, mask)

    def _loop(self, number: int, front: AbstractState) -> dict[int, AbstractState]:
        if self.effort is LoopEffort.ALL and number in self.endless:
            self.endless[number] = 0
        elif self.effort is LoopEffort.ALL:
            left = self._unrolled(number, front)
            if left is not None:
                return left
        if self.effort is LoopEffort.EACH:
            self._attempt(number, front)
        # summary: every register that the loop may write is unknown after any number of iterations
        forgetful = {name: value for name, value in front.state.items() if name not in self.code.written[number]}
        head = self.code.nest.loops[number].header
        left = self._sweep(number, head, AbstractState(forgetful, front.mask))
        left.pop(head, None)  # one pass over unknown values covers all iterations
        return left

    def _unrolled(self, number: int, front: AbstractState) -> dict[int, AbstractState] | None:
        """Run a loop to its end, and count; return None if no end is in sight."""
        head, left, least = self.code.nest.loops[number].header, dict[int, AbstractState](), None
        if number not in self.counts and not self._may_end(number, front):
            self.endless[number] = 0
            return None
        for repeats in range(MAX_ITERATIONS + 1):  # a bound above the limit is no use, so the run stops there
            found = self._sweep(number, head, front)
            back = found.pop(head, None)
            if found and least is None:  # the first iteration in which some thread may leave
                least = repeats
            for after, there in found.items():
                self._arrive(left, after, there)
            if back is None:
                count = RepeatCount(least, repeats)
                self.counts[number] = self.counts[number] | count if number in self.counts else count
                return left
            if self._stalls(number, front, back):  # the same state again: no end is in sight
                break
            front = back
        fewest, seen = repeats + 1 if least is None else least, self.counts.get(number)
        self.endless[number] = fewest if seen is None else min(fewest, seen.least or 0)
        return None

    def _attempt(self, number: int, front: AbstractState) -> None:
        alone = Execution(self.code, LoopEffort.NONE, self.threads, self.attempts_left)
        try:
            alone._unrolled(number, front)
        except TooLongError:
            self.given_up.add(number)
        self.attempts_left = max(alone.steps_left, 0)
        self.counts |= alone.counts
        self.endless |= alone.endless

    def _may_end(self, number: int, front: AbstractState) -> bool:
        """Return whether the outcome of an exit can become known: a quick check, for speed alone."""
        loop, written = self.code.nest.loops[number], self.code.written[number]
        steps = [step for block in loop.blocks for step in self.code.steps[block]]
        outside, known = front.state.keys() - written, set(front.state)
        # the largest set that could be known: optimistic first
        while more := {name for step in steps if step.may_know(known) for name in step.writes} - known:
            known |= more
        while True:
            # then shrunk to a fixed point
            found = outside | {name for step in steps if step.may_know(known) for name in step.writes}
            if found == known:
                return any(self._may_decide(block, known) for block, _ in loop.exits)
            known = found

    def _may_decide(self, block: int, known: Set[str]) -> bool:
        register, _ = self.code.branches[block]
        for step in reversed(self.code.steps[block]):
            if step.computation is not None and register in step.computation.results and step.may_know(known):
                return True
            if register in step.writes and step.guard is None:  # overwritten by something unknown
                return False
        return register in known

    def _stalls(self, number: int, before: AbstractState, after: AbstractState) -> bool:
        names = self.code.written[number]
        same = all(_equal(before.state.get(name), after.state.get(name)) for name in names)
        return same and _equal(before.mask, after.mask)

    def _spend(self, steps: int) -> None:
        kernel = self.code.flow.kernel.name
        check(f"executing {kernel} abstractly", "tell more of the launch with --block, --grid and --param")
        self.steps_left -= steps * (1 if self.threads == 1 else _ARRAY_STEPS + self.threads // _THREADS_A_STEP)
        if self.steps_left < 0:
            raise TooLongError


def _execute(step: ExecutionStep, state: "RegisterState") -> None:
    guard = 1 if step.guard is None else state.get(step.guard)
    if isinstance(guard, int) and step.guard is not None:
        if guard & 1 != step.acts_at:  # the guard fails for all threads
            return
        guard = 1
    elif step.guard is not None and guard is not None and not step.acts_at:
        guard = 1 - guard
    known = step.computation
    if known is not None:
        for name, value in zip(known.results, known.apply(state), strict=False):
            if name is not None:
                _write(state, name, value, guard)
    for name in step.forgets:
        state.pop(name, None)  # no entry means unknown


def _write(state: "RegisterState", name: str, value: "RegisterValue", guard: "RegisterValue") -> None:
    if isinstance(guard, int):
        new = value
    else:
        old = state.get(name)
        if value is None or old is None:
            new = None
        elif guard is None:
            new = value if _equal(value, old) else None  # either value may be there
        else:
            new = select(guard, value, old)
    if new is None:
        state.pop(name, None)
    else:
        state[name] = new


def _join_states(one: AbstractState, other: AbstractState) -> AbstractState:
    """Return the state for the threads of both: a register stays known if they agree wherever a thread may be."""
    mask = _either(one.mask, other.mask)
    if one.state is other.state:
        return AbstractState(one.state, mask)
    state: RegisterState = {}
    for name, value in one.state.items():
        found = _merge_values(value, one.mask, other.state.get(name), other.mask)
        if found is not None:
            state[name] = found
    return AbstractState(state, mask)


def _merge_values(
    value: "RegisterValue", mask: "ThreadMask", other: "RegisterValue", other_mask: "ThreadMask"
) -> "RegisterValue":
    if value is other or (isinstance(value, int) and isinstance(other, int) and value == other):
        return value
    if value is None or other is None or isinstance(mask, bool) or isinstance(other_mask, bool):
        return value if _equal(value, other) else None
    import numpy as np

    first, second = np.asarray(value, dtype=np.uint64), np.asarray(other, dtype=np.uint64)
    if bool((mask & other_mask & (first != second)).any()):  # a thread that may come both ways has two values
        return None
    return np.where(mask, first, second)


def _narrow_mask(mask: "ThreadMask", guard: "RegisterValue", value: int) -> "ThreadMask":
    if guard is None:
        return mask
    if isinstance(guard, int):
        return mask if guard & 1 == value else False
    found = (guard & 1 == value) & mask
    return found if bool(found.any()) else False  # no thread can go that way


def _either(one: "ThreadMask", other: "ThreadMask") -> "ThreadMask":
    if one is True or other is True:
        return True
    return other if one is False else one if other is False else one | other


def _equal(one: Any, other: Any) -> bool:
    """Return whether two values or masks are the same, as ints or arrays, known or not."""
    if one is other:
        return True
    if one is None or other is None:
        return False
    if isinstance(one, int) and isinstance(other, int):
        return one == other
    return bool((one == other).all())
