"""Every sequence of instructions that one warp may issue, as a small acyclic automaton.

The machine. The lanes of a warp run together as a group until a branch parts them. The groups of a branch run one after
another, in any order, each until its lanes reach the point of reconvergence (see `graph`) or end; there those that
are left go on together. So a warp is a pushdown machine, and the words that a group can issue between block `x` and a
point `r` obey a grammar. With `w(x)` for the letters of `x`, `d` for its point, and A, B for the ways on:

    run(r, r) = nothing
    run(x, r) = w(x) run(A, r)                                       after an unconditional or uniform branch
    run(x, r) = w(x) (run(A, d) | run(B, d) | run(A, d) run(B, d) | run(B, d) run(A, d)) run(d, r)     otherwise

Loop bounds make it finite: `x` comes with the number of back edges that may still be taken in each loop around it.

Why no sequence is missing, by induction over a real execution: a group is a set of lanes with one stack entry, and the
state of the grammar is kept such that *every lane of the group may take at most as many back edges as the state says*.
Following an edge counts for all lanes alike. Where lanes meet again at `d`, those that took back edges on the way have
fewer left than the state at the branch, from which it goes on; if `d` is the head of a loop around the branch, every
lane took exactly one of its back edges, and one is counted. Only lanes that repeat an outer loop on the way, and so
enter an inner one around `d` anew, could have more left: such branches are refused. So whatever the hardware does next,
the grammar allows. A branch that a bound forces to one side is taken there by all lanes. That an exact bound forbids to
leave early is only used where no lanes with different counts can meet in the loop.

Why it ends: order the blocks such that every loop is contiguous and edges that are no back edges go forward. A step to
a successor or a point goes forward in it, too, or takes one from the count of a loop and none from the loops around:
a path from the branch to a point that is no head of a loop around both can always avoid the back edges of that loop.

Places are made backwards, from the end of the kernel. One that needs the unit of another, is timed alike and has the
same successors is the same place, so that the automaton has no two places with equal futures.
"""

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence, Set
from itertools import chain, combinations, repeat
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from makespan.host.errors import UnsupportedError
from makespan.host.stopwatch import check
from makespan.kernels.flow.branches import branch_keys
from makespan.kernels.flow.graph import Reconvergence, blocks_between, reach
from makespan.kernels.flow.walk import BoundedFlow
from makespan.model.program import InstructionTiming, ProgramPlace

MAX_PLACES = 200_000
_MOST_EDGES = 5  # on average for each place
_MOST_STEPS = 5  # likewise
MAX_ORDERED_SIDES = 4
"""Sides of an indirect branch up to which each runs at most once; of more, as many as there are run, any of them."""

_NOWHERE: frozenset[int] = frozenset()
_END = -1
_ENDED = frozenset({_END})

RepeatsLeft: TypeAlias = tuple[int, ...]
"""Back edges that may still be taken, for every loop around a block, outermost first."""


class RunGoal(NamedTuple):
    """The places at which a group may go on: where some of its lanes reach the point, and where all have ended."""

    alive: frozenset[int]
    dead: frozenset[int]


class RunTask(NamedTuple):
    """A run to find: from a block, with these counts, to a point, and the places behind that."""

    block: int
    counts: RepeatsLeft
    point: int
    goal: RunGoal


RunSteps: TypeAlias = Generator[RunTask, frozenset[int], frozenset[int]]


class Automaton(NamedTuple):
    """Places in topological order, those where a warp begins, and for each place the instructions behind it.

    A warp that may execute nothing at all cannot be said so; `may_be_empty` tells it. A warp that runs ahead has a
    timing for each place.
    """

    places: tuple[ProgramPlace, ...]
    starts: tuple[int, ...]
    instructions: tuple[tuple[int, ...], ...]
    may_be_empty: bool = False
    timings: tuple[InstructionTiming, ...] = ()


class Branching:
    """The ways that a group of lanes may go at the end of a block, given how often loops may still repeat.

    Args:
        uniform: branches, by block, whose lanes always go the same way.
        decided: branches, by block, that only ever take this side.
    """

    def __init__(
        self,
        bounded: BoundedFlow,
        reconvergence: Reconvergence,
        uniform: Set[int] = frozenset(),
        decided: Mapping[int, int] = MappingProxyType({}),
    ) -> None:
        self._terrain, self._uniform, self._decided = bounded, uniform, decided
        self._points, self.drops = reconvergence.points, reconvergence.drops
        self._checked = set[int]()
        loops = range(len(bounded.nest.loops))
        self._around = [tuple(bounded.nest.around(block))[::-1] for block in range(bounded.flow.exit + 1)]
        self._heads = {loop.header for loop in bounded.nest.loops}
        self._repeats = [bounded.most_repeats(loop) or 0 for loop in loops]
        # only exact bounds can forbid an exit
        self._slack = [self._exit_slack(loop) if bounded.is_exact(loop) else None for loop in loops]

    def begin(self) -> RepeatsLeft:
        """Return the counts at the entry of the kernel."""
        return tuple(self._repeats[loop] for loop in self._around[0])

    def point(self, block: int) -> int:
        """Return the block at which lanes that part at the end of a block meet.

        Raises:
            UnsupportedError: some may come there by way of an outer loop, and enter an inner one around both anew.
        """
        if block not in self._checked:
            self._checked.add(block)
            point = self._points[block]
            # lanes that repeat the innermost shared loop only have fewer repeats left
            outer = self._around[block][: self._shared(block, point)][:-1]
            heads = {self._terrain.nest.loops[loop].header: loop for loop in outer}
            if heads and (repeated := heads.keys() & blocks_between(self._terrain.flow, block, point)):
                raise self._tangled(block, point, heads[min(repeated)])
        return self._points[block]

    def may_part(self, block: int) -> bool:
        """Return whether lanes may go different ways at the end of a block."""
        return block not in self._uniform and block not in self._decided  # lanes of such branches stay together

    def ways(self, block: int, counts: RepeatsLeft) -> list[tuple[int, RepeatsLeft]]:
        """Return the blocks that may follow, each once and with its counts; those that a bound forbids are left out."""
        successors: Iterable[int] = self._terrain.flow.blocks[block].successors
        if block in self._decided:
            successors = (self._terrain.flow.blocks[block].successors[self._decided[block]],)
        found = ((after, self._follow(block, after, counts)) for after in dict.fromkeys(successors))
        return [(after, left) for after, left in found if left is not None]

    def met(self, block: int, counts: RepeatsLeft) -> RepeatsLeft | None:
        """Return the counts where lanes that parted at the end of a block meet; None if a bound keeps them apart."""
        return self._arrive(block, self._points[block], counts)

    def _follow(self, block: int, after: int, counts: RepeatsLeft) -> RepeatsLeft | None:
        left = self._around[block][self._shared(block, after) :]
        for loop, count in zip(left, counts[len(counts) - len(left) :], strict=True):
            slack = self._slack[loop]
            if slack is not None and count > slack:  # leaving now would make fewer iterations than exactly N
                return None
        return self._arrive(block, after, counts)

    def _arrive(self, block: int, after: int, counts: RepeatsLeft) -> RepeatsLeft | None:
        shared = self._shared(block, after)
        kept, entered = counts[:shared], self._around[after][shared:]
        if after in self._heads and not entered:  # by way of a back edge
            return (*kept[:-1], kept[-1] - 1) if kept[-1] else None  # a spent bound forbids the back edge
        return (*kept, *(self._repeats[loop] for loop in entered))  # every entry starts with a full count

    def _shared(self, block: int, after: int) -> int:
        one, other = self._around[block], self._around[after]
        if one == other:
            return len(one)
        return sum(a == b for a, b in zip(one, other, strict=False))

    def _exit_slack(self, loop: int) -> int | None:
        """Return how many repeats of an exact bound may be left when the loop is left; None for any number.

        A loop that leaves only from its latches or only from its head has run all its iterations then. With other
        exits it may be in its last iteration or past it. Where lanes with different counts meet, no count is exact.
        """
        here = self._terrain.nest.loops[loop]
        if any(self._mixes(block, loop) for block in here.blocks if block in self._points and self.may_part(block)):
            return None
        return int(not here.is_bottom_tested and any(source != here.header for source, _ in here.exits))

    def _mixes(self, block: int, number: int) -> bool:
        """Return whether lanes that part at the end of a block may meet inside a loop, some having repeated it."""
        loop, point = self._terrain.nest.loops[number], self._points[block]
        if point not in loop.blocks or point == loop.header:
            return False
        return loop.header in blocks_between(self._terrain.flow, block, point)

    def _tangled(self, block: int, point: int, outer: int) -> UnsupportedError:
        flow, last = self._terrain.flow, self._terrain.flow.last(block)
        key = branch_keys(flow, block)[0]
        return UnsupportedError(
            f"{flow.kernel.file}:{last.line}: lanes that part at `{last}` meet again at {flow.name(point)} in an inner"
            f" loop, after some have repeated the outer loop {self._terrain.infos[outer].label}, so their iterations"
            f" cannot be bounded; fix this branch with --take '{key}=taken' or '=fall', or one path with --trace"
        )


class _SideOrder:
    """The ways of a branch that may still run, as a set of their numbers; of many ways, only how many are left."""

    def __init__(self, ways: int) -> None:
        self.all = frozenset(range(ways))  # numbers of ways
        self._is_exact = ways <= MAX_ORDERED_SIDES

    def choices(self, left: frozenset[int]) -> frozenset[int]:
        return left if self._is_exact or not left else self.all

    def without(self, left: frozenset[int], way: int) -> frozenset[int]:
        return left - {way if self._is_exact else len(left) - 1}  # a set that only counts drops its largest number

    def remainders(self) -> Iterator[frozenset[int]]:
        for size in range(len(self.all)):
            subsets = combinations(self.all, size) if self._is_exact else [range(size)]
            yield from map(frozenset, subsets)


class AutomatonBuilder:
    """A builder of places, backwards; runs under several rules of reconvergence share places with equal futures.

    Args:
        letters: the unit of every instruction, None for those that need none.
        timings: of every instruction, where warps run ahead.
        most_places: the size at which to give up.

    Raises:
        UnsupportedError: an automaton that grows too large.
    """

    def __init__(
        self,
        bounded: BoundedFlow,
        letters: Sequence[str | None],
        timings: Sequence[InstructionTiming] = (),
        *,
        most_places: int = MAX_PLACES,
    ) -> None:
        self._terrain, self._most_places = bounded, most_places
        self._looks = list(zip(letters, timings or repeat(None, len(letters)), strict=True))
        kinds = {look: number for number, look in enumerate(dict.fromkeys(self._looks))}
        self._kinds = [kinds[look] for look in self._looks]
        self._numbers: dict[tuple[int, frozenset[int]], int] = {}  # the place of a kind with these places behind it
        self._behind: list[set[int]] = []
        self._edges = self._steps = 0
        bounds = ", ".join(f"{info.label} {info.bound.iterations}" for info in bounded.infos if info.bound)
        self._remedy = (
            f"lower the loop bounds ({bounds or 'there are none'}), say which branches are uniform with --param,"
            " --block and --grid, or fix one path with --take or --trace"
        )
        self._served = [
            [at for at in reversed(range(block.first, block.stop)) if letters[at] is not None]
            for block in bounded.flow.blocks
        ]

    def automaton(self, branchings: Iterable[Branching]) -> Automaton | None:
        """Return what a warp may execute under any of the rules; None if loop bounds forbid every path."""
        # the union over all rules: an assembler may use any of them
        starts = frozenset(chain.from_iterable([self._starts(branching) for branching in branchings]))
        if not starts:
            return None
        made = list(self._numbers)
        used = reach(starts - _ENDED, lambda place: made[place][1] - _ENDED)  # other places were only tried
        kept = sorted(used, reverse=True)  # places were numbered from the end, so this order is topological
        order = {place: number for number, place in enumerate(kept)} | {_END: len(used)}
        looks = [self._looks[min(self._behind[place])] for place in kept]
        afters = (tuple(sorted(order[after] for after in made[place][1])) for place in kept)
        return Automaton(
            tuple(ProgramPlace(unit or "", successors) for (unit, _), successors in zip(looks, afters, strict=True)),
            tuple(sorted(order[place] for place in starts - _ENDED)),
            tuple(tuple(sorted(self._behind[place])) for place in kept),
            may_be_empty=_END in starts,
            timings=tuple(timing for _, timing in looks if timing is not None),
        )

    def _starts(self, branching: Branching) -> frozenset[int]:
        first = RunTask(0, branching.begin(), self._terrain.flow.exit, RunGoal(_ENDED, _ENDED))
        done: dict[RunTask, frozenset[int]] = {}
        # an explicit stack: loops make the recursion as deep as their bounds
        stack, opened = [(first, self._run(first, branching))], {first}
        answer: frozenset[int] | None = None
        while stack:
            task, run = stack[-1]
            try:
                wanted = run.send(answer)  # type: ignore[arg-type]
            except StopIteration as finished:
                answer = done[task] = finished.value
                opened.remove(task)
                stack.pop()
                continue
            answer = done.get(wanted)
            if answer is None:
                if wanted in opened:  # a task that waits for itself would never end; by the order of blocks none should
                    raise self._too_large()
                opened.add(wanted)
                stack.append((wanted, self._run(wanted, branching)))
        return done[first]

    def _run(self, task: RunTask, branching: Branching) -> RunSteps:
        """Yield tasks, and return the places at which a group may begin that runs from a block to a point (`run`)."""
        block, counts, point, goal = task
        passed = []
        found: frozenset[int] | None = None
        while found is None:
            if block == point:
                found = goal.alive
            elif block == self._terrain.flow.exit:
                found = goal.dead
            else:
                passed.append(block)
                self._steps += 1
                if self._steps > _MOST_STEPS * self._most_places:
                    raise self._too_large()
                check(f"making the automaton of {self._terrain.flow.kernel.name}", self._remedy)
                ways = branching.ways(block, counts)
                if not ways:  # no path keeps the bounds from here on
                    found = _NOWHERE
                elif len(ways) == 1:  # follow without a task of its own
                    ((block, counts),) = ways
                elif branching.may_part(block):
                    found = yield from self._part(ways, RunTask(block, counts, point, goal), branching)
                else:
                    runs = []
                    for after, left in ways:
                        runs.append((yield RunTask(after, left, point, goal)))
                    found = frozenset().union(*runs)  # all lanes go the same way, any of these
        for block in reversed(passed):  # letters are put before what follows them
            found = self._before(block, found)
        return found

    def _part(self, ways: Sequence[tuple[int, RepeatsLeft]], task: RunTask, branching: Branching) -> RunSteps:
        """Yield tasks past a block at which lanes may part: some of the ways in any order, then the rest."""
        meeting, counts = branching.point(task.block), branching.met(task.block, task.counts)
        met = _NOWHERE if counts is None else (yield RunTask(meeting, counts, task.point, task.goal))
        order = _SideOrder(len(ways))
        goals: dict[tuple[frozenset[int], bool], frozenset[int]] = {}

        def begun(left: frozenset[int], *, some_met: bool) -> RunSteps:
            """Return where one of the ways that are left begins, given whether lanes of earlier ways are waiting."""
            runs = []
            for way in order.choices(left):
                later = order.without(left, way)
                goal = RunGoal(goals[later, True], goals[later, some_met] if branching.drops else _NOWHERE)
                runs.append((yield RunTask(*ways[way], meeting, goal)))
            return frozenset().union(*runs)

        for left in order.remainders():  # smaller sets first, since larger ones need their goals
            for some_met in (True, False) if branching.drops else (True,):
                stop = met if some_met else task.goal.dead  # if every lane has ended, no lane is left to meet
                goals[left, some_met] = stop | (yield from begun(left, some_met=some_met))
        return (yield from begun(order.all, some_met=False))  # at least one way runs

    def _before(self, block: int, afters: frozenset[int]) -> frozenset[int]:
        for at in self._served[block] if afters else ():
            key = (self._kinds[at], afters)
            place = self._numbers.get(key)
            if place is None:
                place = self._numbers[key] = len(self._numbers)
                self._behind.append(set())
                self._edges += len(afters)
                if place >= self._most_places or self._edges > _MOST_EDGES * self._most_places:
                    raise self._too_large()
            self._behind[place].add(at)  # instructions that share a place
            afters = frozenset((place,))
        return afters

    def _too_large(self) -> UnsupportedError:
        kernel = self._terrain.flow.kernel
        return UnsupportedError(
            f"{kernel.file}:{kernel.line}: the paths through {kernel.name} exceed {self._most_places} places;"
            f" {self._remedy}"
        )
