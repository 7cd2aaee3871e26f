"""Exact search over count states, packed into a few 64-bit words each and pruned by admissible bounds.

Equal warps are interchangeable, so a state says how many warps of each group stand at each place. What follows is
said of the worst case; for the best case let all cycle counts be negative, so that again the largest is sought.

*Each state is visited once.* The layer of a state is the sum, over its warps, of the most instructions that are left
on a path. Every cycle moves a warp, so it lowers the layer. States are expanded from the highest layer down: when the
turn of a state S comes, every state from which S can be reached has had its turn, and the value v(S), the largest
number of cycles in which an expanded path reaches S, is final.

*Pruning.* Let b(S) be a bound on the cycles that any schedule takes from S on. Let z be the warp that finishes last
in a schedule through S, g its group, p its place in S. The potential certificate of g bounds the rest by R / d, where
R is the potential of the node that S has in this schedule, with z at p, and d the least decrease in a cycle; the node
is one of those of the kind of S. The pessimistic bound on what z has left to execute, plus what it can be made to
wait for, holds as well. So b(S), the maximum over all g and p in S of the smaller of the two, the first being the
maximum over all nodes of the kind, bounds every schedule. A state with v(S) + b(S) <= floor is dropped, once its
value is final.

*Exactness.* Take a schedule of n > floor cycles, with states S_0 .. S_n. By induction every S_i with i < n is
expanded and v(S_i) >= i: it holds for the starts, expanding S_{i-1} raises v(S_i) to i at least, and
v(S_i) + b(S_i) >= i + (n - i) > floor, so S_i is not dropped. Hence v(end) >= n. On the other hand v(end) is the
length of a real schedule. So when all layers are done, either v(end) > floor and v(end) is the worst case, or
there is no schedule longer than floor.

*Stopping early.* On the way of any schedule of n > floor cycles let S_i be the first state that is not expanded.
It was not dropped, as above, and it is stored with v(S_i) >= i. So n is at most the largest v(S) + b(S) over
the states S that are stored and neither expanded nor dropped: the larger of this and of floor is proven at any moment.

*The floor comes down from above.* A first search has its floor just below what is already proven, so it drops nearly
everything, and ends with a smaller proven bound or with the worst case itself. The gap to the next floor doubles,
down to the length of the schedule that is already known. Whatever the floor is, the answer is exact by the argument
above; with tight bounds the early searches are small and often suffice.
"""

import time
from functools import cache
from math import inf
from typing import NamedTuple

import numpy as np

from makespan.host.compiled import Ints, Words
from makespan.host.errors import BrokenPromiseError, UnsupportedError
from makespan.model.certificate import Certificate
from makespan.model.instance import Instance
from makespan.model.result import Bounds, Upper
from makespan.model.schedule import Schedule
from makespan.model.simulate import shortest_run
from makespan.proof.bounds import least_possible, pessimistic
from makespan.proof.bounds.conditions import Stopped
from makespan.proof.engines.engine import Finding
from makespan.proof.engines.limits import Limits
from makespan.proof.engines.search import packing, remaining
from makespan.proof.engines.search import states_compiled as loops
from makespan.proof.engines.search import states_compiled_store as layout
from makespan.proof.engines.search.packing import Problem, sizes
from makespan.proof.engines.search.states_compiled_leaves import decode
from makespan.proof.engines.search.states_compiled_store import put

_FEWEST_WORDS = 1 << 10
_FIRST_BUDGET = 64
"""States and leaves of the first call of an inner loop; later calls are to take between a quarter and all of
`_CALL_SECONDS`."""

_CALL_SECONDS = 0.08
_STARTS_PER_LOOK = 256
_MOST_SUMS = 1 << 10
"""Where a class has more choices than that, leaves are made one after another."""


_wrapping = np.errstate(over="ignore")
"""Without a compiler, sums modulo 2^64 are numpy's, which would warn."""


def solve(instance: Instance, limits: Limits, *, certificate: Certificate | None, incumbent: int) -> Finding:
    """Return the worst case, exactly, or what is proven when a limit stops the search.

    Args:
        certificate: where there is one, its potentials prune the search.
        incumbent: cycles of a schedule that is already known; only longer ones are looked for.

    Raises:
        UnsupportedError: a state does not fit into a key.
        BrokenPromiseError: the certificate proves nothing.
    """
    worst = _worst(_problem(instance), certificate, incumbent, limits)
    return Finding() if worst.most is None else Finding(worst.witness, worst.most, Upper.SEARCH)


def best_case(instance: Instance, limits: Limits) -> Bounds:
    """Return the best case, exactly, or what is proven when a limit stops the search.

    Raises:
        UnsupportedError: a state does not fit into a key.
    """
    return _shortest(_problem(instance), limits)


def _problem(instance: Instance) -> Problem:
    if (reason := packing.obstacle(instance)) is not None:
        raise UnsupportedError(f"the packed search cannot take this: {reason}; use backend certificate")
    return Problem.of(instance)


def _worst(problem: Problem, certificate: Certificate | None, incumbent: int, limits: Limits) -> "_SearchAnswer":
    instance = problem.instance
    try:
        rest = remaining.worst_case(instance, certificate, lambda: limits.expired)
    except Stopped:
        return _SearchAnswer()
    ceiling = pessimistic(instance) if certificate is None else certificate.upper
    return _largest(SearchTask(problem, 1, rest, limits), incumbent, ceiling)


@cache
def load() -> None:
    """Load or compile every inner loop: in the middle of a search there may be no time for that."""
    instance = Instance.of("CL", 2)
    run = FloorSearch(SearchTask(Problem.of(instance), 1, remaining.worst_case(instance, None), Limits(inf)), 0)
    run.search()
    run.witness()
    run.frontier()


class SearchTask(NamedTuple):
    """A search for the longest (`sense` 1) or the shortest (-1) schedule."""

    problem: Problem
    sense: int
    rest: layout.RestBounds
    limits: Limits


class _SearchAnswer(NamedTuple):
    """No value is larger than `most`, as far as anything is proven; `witness` has exactly this value."""

    most: int | None = None
    witness: Schedule | None = None


def _shortest(problem: Problem, limits: Limits) -> Bounds:
    instance = problem.instance
    known, least = shortest_run(instance).makespan, least_possible(instance)
    task = SearchTask(problem, -1, remaining.best_case(instance), limits)
    found = _largest(task, -known, -least)
    proven = least if found.most is None else max(least, -found.most)
    return Bounds(proven, known if found.witness is None else found.witness.makespan)


def _largest(task: SearchTask, known: int, ceiling: int) -> _SearchAnswer:
    """Return the largest value above `known`, or what is proven; `ceiling` is only a guess of how large it may be."""
    proven = None
    floor, gap = max(known, ceiling - 1), 1  # just below what is proven: nearly all is pruned
    while True:
        tried = FloorSearch(task, floor)
        value = tried.search()
        if value is None:
            frontier = tried.frontier()
            # what is stored and not expanded bounds every longer schedule (see "Stopping early")
            return _SearchAnswer(min((n for n in (proven, frontier) if n is not None), default=None))
        if value > floor:
            return _SearchAnswer(value, tried.witness() if tried.remembers else _search_again(task, value))
        proven = floor  # all layers are done, and none is longer
        task.limits.progress(f"search: {'at most' if task.sense > 0 else 'at least'} {abs(floor)} cycles")
        if floor <= known:
            return _SearchAnswer(proven)
        gap *= 2
        floor = max(known, floor - gap)


def _search_again(task: SearchTask, value: int) -> Schedule | None:
    """Return the witness of a value, searched once more: knowing the value prunes more, so all states may fit."""
    again = FloorSearch(task, value - 1)
    return again.witness() if again.search() == value and again.remembers else None


class FloorSearch:
    """One search with a fixed floor, and its arrays."""

    def __init__(self, task: SearchTask, floor: int) -> None:
        self.task, self.floor = task, floor
        self.problem, self.limits = task.problem, task.limits
        top = packing.layers(self.problem.instance)
        self.start = 1 if task.sense > 0 else top + 1
        self.cursor = np.zeros(layout.CURSOR_SIZE, dtype=np.int64)
        self.cursor[layout.LAYER], self.cursor[layout.STATE], self.cursor[layout.OPTIONS] = top, -1, -1
        self.choice = _choice(self.problem, task.rest)
        self.store = layout.StateStore(
            open=np.zeros(_FEWEST_WORDS, dtype=np.uint64),
            segments=np.zeros((1 << (64 - int(self.problem.automaton.high)), layout.SEGMENT_SIZE), dtype=np.uint64),
            free=np.full(layout.SEGMENT_SIZES, -1, dtype=np.int64),
            closed=np.zeros(_FEWEST_WORDS, dtype=np.uint64),
        )
        self.begun = False
        self._budget = _FIRST_BUDGET

    @property
    def remembers(self) -> bool:
        """Return whether all states that were expanded are there, for a witness."""
        return bool(self.cursor[layout.CLOSED] >= 0)

    @_wrapping
    def search(self) -> int | None:
        """Return the largest value if it is above the floor, else the floor; None when a limit comes first."""
        if not self._begin():
            return None
        status = layout.PAUSED
        while status != layout.DONE:
            if self.limits.expired or not self._has_room(status):
                return None
            began = time.monotonic()
            status = loops.advance(
                self.floor, self.task.sense, self.start, self._budget, self.store, self.cursor,
                self.problem.automaton, self.task.rest, self.choice,
            )  # fmt: skip
            self._pace(time.monotonic() - began, status)
            states, layer = int(self.cursor[layout.EXPANDED]), int(self.cursor[layout.LAYER])
            self.limits.progress(f"search: {states} states, {max(0, layer)} instructions of all warps to go")
        end = self._end()
        return self.floor if end is None else max(self.floor, self._value(end))

    def _end(self) -> Words | None:
        begin, beyond = self.store.segments[0, [layout.BEGIN, layout.BEYOND]].tolist()
        states = self.store.open[begin:beyond].reshape(-1, self.problem.words)
        return next(iter(states[states[:, 0] != 0]), None)

    def _value(self, state: Words) -> int:
        return (int(state[0]) & ((1 << int(self.problem.automaton.low)) - 1)) - self.start

    def frontier(self) -> int | None:
        """Return what a stopped search proves: no value is larger; None when it was stopped too early to say."""
        if not self.begun:
            return None
        most, began = self.floor, time.monotonic()
        for store, cursor in (self._waiting(), (self.store, self.cursor.copy())):
            while cursor[layout.LAYER] >= 0:
                if time.monotonic() - began > 0.5 + self.limits.elapsed / 10:
                    return None
                most = max(most, self._highest(store, cursor))
        return most

    def _waiting(self) -> tuple[layout.StateStore, Ints]:
        """Return the leaves that are not inserted yet, as the only states of a store."""
        cursor = np.zeros_like(self.cursor)
        states = self.choice.waiting.T[: self.cursor[layout.WAITING]].ravel()
        segments = np.zeros((1, layout.SEGMENT_SIZE), dtype=np.uint64)
        segments[0, layout.BEYOND] = len(states)
        return self.store._replace(open=states, segments=segments), cursor

    def _highest(self, store: layout.StateStore, cursor: Ints) -> int:
        return loops.highest(
            self.task.sense, self.start, self._budget, store, cursor,
            self.problem.automaton, self.task.rest, self.choice,
        )  # fmt: skip

    @_wrapping
    def witness(self) -> Schedule | None:
        """Return a schedule of the largest value, step by step from its end; None when a limit comes first."""
        problem, words, target, cycles = self.problem, self.problem.words, self._end(), []
        self.cursor[layout.STATE] = self.cursor[layout.CLOSED]
        while target is not None and self._value(target) != 0:
            found = self._find(target)
            if found is None:
                return None
            if not found:
                raise BrokenPromiseError("the packed search cannot find the way to a state that it has reached")
            cycles.append(problem.moves(self.choice, int(self.cursor[layout.OPTIONS])))
            begin = int(self.cursor[layout.STATE]) * words
            target = self.store.closed[begin : begin + words]
        if target is None:
            return None
        size = decode(target, 0, 0, problem.automaton, self.choice)
        return Schedule.from_moves(problem.instance, problem.begun(size, self.choice), cycles[::-1])

    def _find(self, target: Words) -> bool | None:
        """Return whether a state before `target` was expanded, then the current one; None when a limit comes first."""
        self.cursor[layout.STATE] -= 1
        self.cursor[layout.OPTIONS] = -1
        status = layout.PAUSED
        while status == layout.PAUSED:
            if self.limits.expired:
                return None
            began = time.monotonic()
            status = loops.find_step(
                target, self.task.sense, self._budget, self.store.closed, self.cursor,
                self.problem.automaton, self.choice,
            )  # fmt: skip
            self._pace(time.monotonic() - began, status)
        return bool(self.cursor[layout.STATE] >= 0)

    def _begin(self) -> bool:
        """Store the starts; False when a limit comes first."""
        for number, state in enumerate(self.problem.starts()):
            if number % _STARTS_PER_LOOK == 0 and self.limits.expired:
                return False
            words = self.problem.words_of(state, self.start)[np.newaxis]
            while not put(words, 0, self.problem.automaton, self.store, self.cursor, self.choice):
                if not self._has_room(layout.FULL):
                    return False
        self.begun = True
        return True

    def _pace(self, seconds: float, status: int) -> None:
        if seconds > _CALL_SECONDS:
            self._budget = max(1, self._budget // 2)
        elif seconds < _CALL_SECONDS / 4 and status == layout.PAUSED:
            self._budget *= 2

    def _has_room(self, status: int) -> bool:
        """Take more memory if that is what the inner loop lacks, and at its limit forget the expanded states."""
        if status not in (layout.FULL, layout.LONG):
            return True
        need = int(self.cursor[layout.NEED])
        old = self.store.open if status == layout.FULL else self.store.closed
        if 8 * need > self._free() and self.remembers:
            self.cursor[layout.CLOSED] = -1  # the answer stays exact; only the way to a witness is lost
            self.store = self.store._replace(closed=np.zeros(0, dtype=np.uint64))
            if status == layout.LONG:
                return True
        room = min(max(need, 2 * len(old)), self._free() // 8)
        if need > room:
            self.limits.need_memory()
            return False
        fresh = np.zeros(room, dtype=np.uint64)  # not resized: the system gives large arrays large pages
        fresh[: len(old)] = old
        store = self.store
        self.store = store._replace(open=fresh) if status == layout.FULL else store._replace(closed=fresh)
        return True

    def _free(self) -> int:
        return self.limits.memory_bytes - sum(array.nbytes for array in self.store)


def _choice(problem: Problem, rest: layout.RestBounds) -> layout.LeafChoice:
    pairs, options, most = sizes(problem.instance)
    nodes, classes = int(np.diff(rest.node_first).max(initial=0)), len(problem.automaton.sigma)
    width = max(most + 1, layout.LAST + 1)
    apart = max(1, min(_MOST_SUMS, packing.MOST_CELLS // (classes * width * problem.words)))
    choice = layout.LeafChoice(
        pairs=np.zeros((pairs + 1, layout.PAIR_SIZE), dtype=np.int64),
        units=np.zeros((5, classes), dtype=np.int64),
        totals=np.zeros((classes, nodes), dtype=np.int64),
        options=np.zeros((options + 1, layout.OPTION_SIZE), dtype=np.int64),
        delta=np.zeros((options + 1, most + 1, problem.words), dtype=np.uint64),
        part=np.zeros((options + 1, problem.words), dtype=np.uint64),
        ready=np.zeros((pairs + 1, classes), dtype=np.int64),
        row=np.zeros((pairs + 1, classes), dtype=np.int64),
        size=np.zeros((pairs + 1, width), dtype=np.int64),
        ways=np.zeros((problem.words, width * apart), dtype=np.uint64),
        sums=np.zeros((problem.words, classes * width * apart), dtype=np.uint64),
        tally=np.zeros((2, width), dtype=np.int64),
        others=np.zeros((problem.words, _MOST_SUMS), dtype=np.uint64),
        waiting=np.zeros((problem.words, layout.BATCH), dtype=np.uint64),
        slot=np.zeros(layout.BATCH + 1, dtype=np.uint64),
        spare=np.zeros((problem.words, 1), dtype=np.uint64),
        counts=np.zeros(1 << layout.DIGIT_BITS, dtype=np.int64),
    )
    choice.size[0, 0] = 1  # the sum of no warps
    choice.tally[layout.SCALARS, layout.APART] = apart
    return choice
