"""Exhaustive search over count states: plain, obviously right, and the oracle of everything faster.

Equal warps of a block are interchangeable, so a state is the sorted tuple of the places of the unfinished warps,
every place of every group and block having a number of its own; latencies are places (`bounds.delays`). Where
intervals are longer than one cycle, the ports that are still held belong to the state. A cycle moves warps to later
places or, if no warp can issue, only brings the release of ports nearer, so visiting states in the order of their
progress sees each state once, after all states that lead to it.
"""

import heapq
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, combinations_with_replacement, product
from math import comb, prod
from typing import NamedTuple

from makespan.model.feature import BARRIERS, DELAYS, PROGRAMS, TIMES
from makespan.model.instance import Instance, requires
from makespan.model.machine import DELAY
from makespan.model.program import BARRIER, Program
from makespan.model.result import Bounds, Upper
from makespan.model.schedule import Schedule, WarpMove
from makespan.proof.bounds.delays import contract_schedule, expand_latencies
from makespan.proof.engines.engine import Finding
from makespan.proof.engines.limits import Limits

KNOWS = PROGRAMS | TIMES | BARRIERS | DELAYS

SMALL_STATES = 20_000
"""Up to so many states, visiting them all is quicker than anything else."""

HeldPorts = tuple[tuple[int, ...], ...]
"""For every class with an interval, the cycles for which each port in use is still held, sorted."""

PlainState = tuple[tuple[int, ...], HeldPorts]
PlainStep = tuple[tuple[int, int], ...]  # (place, successor) of every warp that moves, those past barriers last

_FINISHED = -1
_BYTES_PER_STATE, _BYTES_PER_WARP, _BYTES_PER_MOVE = 600, 8, 110
"""A little more than measured with 4 to 200 warps: state, two labels and their steps as CPython objects."""
_STEPS_PER_LOOK = 256


class _StatePath(NamedTuple):
    """A way from a start to a state: its length in cycles, and the last step."""

    cycles: int
    before: PlainState | None
    step: PlainStep


class _PlainAutomaton:
    """The places of all groups and blocks under numbers of their own; a group in one block is a crew here."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.capacities = instance.machine.capacities
        self.width = instance.machine.issue_width
        self.intervals = {unit.name: unit.interval for unit in instance.machine.units if unit.interval > 1}
        self.all_free: HeldPorts = ((),) * len(self.intervals)
        self.origin: list[tuple[int, int]] = []
        self.unit: list[str] = []
        self.after: list[tuple[int, ...]] = []
        self.to_go: list[int] = []
        self.block: list[int] = []
        self.crews: list[tuple[Program, int]] = []  # with the number of warps
        self.starts: list[tuple[int, ...]] = []
        for group, block in product(instance.groups, range(instance.blocks)):
            offset, end = len(self.unit), group.program.end
            for at, (unit, successors) in enumerate(group.program.places):
                self.origin.append((len(self.crews), at))
                self.unit.append(unit)
                self.after.append(tuple(offset + s if s < end else _FINISHED for s in successors))
                self.to_go.append(end - at)
                self.block.append(block)
            self.starts.append(tuple(offset + start for start in group.program.starts))
            self.crews.append((group.program, group.warps // instance.blocks))
        self._gates = range(instance.blocks if instance.has_barriers else 0)

    def begin(self) -> Iterator[tuple[PlainStep, PlainState]]:
        """Yield every state in which the warps can begin, after the step that passes the first barriers."""
        ways = (
            combinations_with_replacement(starts, warps)
            for starts, (_, warps) in zip(self.starts, self.crews, strict=True)
        )
        for places in product(*ways):
            for passes, settled in self._settled(tuple(sorted(chain.from_iterable(places)))):
                yield passes, (settled, self.all_free)

    def steps(self, state: PlainState) -> Iterator[tuple[PlainStep, PlainState]]:
        """Yield every work-conserving step from `state`, equal ones once."""
        places, held = state
        ready: dict[str, list[int]] = {unit: [] for unit in (*self.capacities, BARRIER)}
        for place in places:
            ready[self.unit[place]].append(place)
        in_use = dict(zip(self.intervals, map(len, held), strict=True))
        most = {unit: min(c - in_use.get(unit, 0), len(ready[unit])) for unit, c in self.capacities.items()}
        for counts in self._issued(most):  # work conservation: all that can issue, or as many as there are slots
            after_held = self._held_after(held, counts)
            for moved in _choices([(ready[unit], count) for unit, count in counts.items() if count]):
                rest = list(places)
                for place in moved:
                    rest.remove(place)
                for targets in product(*(self.after[place] for place in moved)):
                    arrived = [target for target in targets if target != _FINISHED]
                    step = tuple(zip(moved, targets, strict=True))
                    for passes, after in self._settled(tuple(sorted(rest + arrived))):
                        yield step + passes, (after, after_held if after else self.all_free)

    def _issued(self, most: dict[str, int]) -> Iterator[dict[str, int]]:
        """Yield how many warps of each class may move, given how many could; delays need no issue slot."""
        slots = sum(count for unit, count in most.items() if unit != DELAY)
        if self.width is None or slots <= self.width:
            yield most
            return
        ways = (range(count, count + 1) if unit == DELAY else range(count + 1) for unit, count in most.items())
        for counts in product(*ways):
            chosen = dict(zip(most, counts, strict=True))
            if sum(counts) - chosen.get(DELAY, 0) == self.width:
                yield chosen

    def _held_after(self, held: HeldPorts, counts: dict[str, int]) -> HeldPorts:
        return tuple(
            tuple([left - 1 for left in ports if left > 1] + [interval - 1] * counts[unit])
            for (unit, interval), ports in zip(self.intervals.items(), held, strict=True)
        )

    def _settled(self, state: tuple[int, ...]) -> Iterator[tuple[PlainStep, tuple[int, ...]]]:
        """Yield every way to stand in which the warps may be once those that can pass their barriers have passed."""
        for gate in self._gates:
            standing = [place for place in state if self.block[place] == gate]
            # a barrier opens once all unfinished warps of its block stand at it
            if standing and all(self.unit[place] == BARRIER for place in standing):
                others = [place for place in state if self.block[place] != gate]
                for targets in product(*(self.after[place] for place in standing)):
                    passed = (target for target in targets if target != _FINISHED)
                    for passes, after in self._settled(tuple(sorted(chain(others, passed)))):
                        yield (*zip(standing, targets, strict=True), *passes), after
                return
        yield (), state

    @property
    def bytes_per_state(self) -> int:
        """Return the memory of a state, nearly at most: its steps move as many warps as there are ports."""
        warps = self.instance.warps
        moves = min(warps, sum(self.capacities.values()))
        return _BYTES_PER_STATE + _BYTES_PER_WARP * warps + _BYTES_PER_MOVE * moves

    def work(self, state: PlainState) -> tuple[int, int]:
        """Return an amount that every step lowers: what the warps have to go, then how long ports are held."""
        places, held = state
        return sum(self.to_go[place] for place in places), sum(map(sum, held))

    def schedule(self, begin: PlainState, steps: Sequence[PlainStep]) -> Schedule:
        """Return the schedule that takes `steps`, of which the first one only passes barriers, to the state `begin`."""
        standing = Counter(begin[0])
        for place, target in reversed(steps[0]):
            standing[target] -= 1
            standing[place] += 1
        starts: list[dict[int, int]] = [{} for _ in self.crews]
        for place, count in standing.items():
            if place != _FINISHED and count:
                crew, at = self.origin[place]
                starts[crew][at] = count
        passed = steps if steps[0] else steps[1:]
        return Schedule.from_moves(self.instance, starts, (map(self._move, Counter(s).items()) for s in passed))

    def _move(self, counted: tuple[tuple[int, int], int]) -> WarpMove:
        (place, target), count = counted
        crew, at = self.origin[place]
        end = self.crews[crew][0].end
        return WarpMove(crew, at, end if target == _FINISHED else self.origin[target][1], count)


def _choices(queues: Sequence[tuple[Sequence[int], int]]) -> Iterator[tuple[int, ...]]:
    """Yield every way to take a number of each sorted queue, equal ways once, one by one: there may be billions."""
    if not queues:
        yield ()
        return
    (queue, count), *others = queues
    for taken in _distinct(queue, count):
        for rest in _choices(others):
            yield taken + rest


def _distinct(queue: Sequence[int], count: int) -> Iterator[tuple[int, ...]]:
    if count in (0, len(queue)):
        yield tuple(queue[:count])
        return
    if count == 1:
        yield from ((place,) for place in dict.fromkeys(queue))
        return
    for at in range(len(queue) - count + 1):
        if not at or queue[at] != queue[at - 1]:
            for rest in _distinct(queue[at + 1 :], count - 1):
                yield (queue[at], *rest)


def is_small(instance: Instance) -> bool:
    """Return whether there are at most `SMALL_STATES` ways to place the warps, no fewer than a search can meet."""
    longest = {unit.name: unit.latency.most for unit in instance.machine.units}
    crews = (
        (sum(longest.get(place.unit, 1) for place in group.program.places), group.warps // instance.blocks)
        for group in instance.groups
    )
    ports = prod(comb(unit.interval - 1 + unit.capacity, unit.capacity) for unit in instance.machine.units)
    ways: int = prod(comb(places + warps, warps) ** instance.blocks for places, warps in crews)
    return ports * ways <= SMALL_STATES


@requires(KNOWS, "the plain search")
def solve(instance: Instance, limits: Limits) -> Finding:
    """Worst and best case by visiting every reachable state; an empty finding when a limit stops it first."""
    expansion = expand_latencies(instance)
    if expansion is None:
        return Finding()
    automaton = _PlainAutomaton(expansion.instance)
    labels = _visit_all(automaton, limits)
    if labels is None:
        return Finding()
    longest, shortest = labels
    end = (), automaton.all_free
    worst, best = longest[end].cycles, shortest[end].cycles
    witness = contract_schedule(expansion, _trace(automaton, longest, end))
    return Finding(witness, worst, Upper.SEARCH, best_case=Bounds(best, best))


def _visit_all(
    automaton: _PlainAutomaton, limits: Limits
) -> tuple[dict[PlainState, _StatePath], dict[PlainState, _StatePath]] | None:
    longest: dict[PlainState, _StatePath] = {}
    shortest: dict[PlainState, _StatePath] = {}
    most_states = limits.memory_bytes // automaton.bytes_per_state
    queue: list[tuple[int, int, PlainState]] = []

    def push(state: PlainState) -> None:
        work, held = automaton.work(state)
        # every step lowers this amount, so a state is taken when all ways to it have been seen
        heapq.heappush(queue, (-work, -held, state))

    for passes, state in automaton.begin():
        if state not in longest:
            push(state)
            longest[state] = shortest[state] = _StatePath(0, None, passes)
    taken = 0
    while queue:
        *_, state = heapq.heappop(queue)
        most, least = longest[state].cycles + 1, shortest[state].cycles + 1
        for step, after in automaton.steps(state) if state[0] else ():
            taken += 1
            if taken % _STEPS_PER_LOOK == 0:
                if len(longest) > most_states:
                    limits.need_memory()
                    return None
                if limits.expired:
                    return None
            if after not in longest:
                push(after)
                longest[after] = _StatePath(most, state, step)
                shortest[after] = _StatePath(least, state, step)
                continue
            if most > longest[after].cycles:  # longest and shortest ways end in the same states, so one walk finds both
                longest[after] = _StatePath(most, state, step)
            if least < shortest[after].cycles:
                shortest[after] = _StatePath(least, state, step)
    return longest, shortest


def _trace(automaton: _PlainAutomaton, labels: dict[PlainState, _StatePath], end: PlainState) -> Schedule:
    steps = []
    state = end
    while (label := labels[state]).before is not None:
        steps.append(label.step)
        state = label.before
    return automaton.schedule(state, [label.step, *reversed(steps)])
