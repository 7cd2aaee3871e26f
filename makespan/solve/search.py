"""Exhaustive search over count states: plain, obviously right, and the oracle of everything faster.

Equal warps of a block are interchangeable, so a state is the sorted tuple of the places of the unfinished warps,
every place of every group and block having a number of its own. A cycle moves warps to later places only, so visiting
states in the order of their progress sees each state once, after all states that lead to it.
"""

import heapq
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, combinations_with_replacement, product
from typing import NamedTuple

from makespan.instance import Instance
from makespan.program import BARRIER, Program
from makespan.result import Bounds, Upper
from makespan.schedule import Move, Schedule
from makespan.solve.finding import Finding
from makespan.solve.limits import Limits

State = tuple[int, ...]
Step = tuple[tuple[int, int], ...]  # (place, successor) of every warp that moves, those past barriers last

_FINISHED = -1
_BYTES_PER_STATE = 1000
"""Measured with 8 warps: state, label and two steps as CPython objects take 700 to 900 bytes."""
_STEPS_PER_LOOK = 256


class _Label(NamedTuple):
    """A way from a start to a state: its length in cycles, and the last step."""

    cycles: int
    before: State | None
    step: Step


class _Automaton:
    """The places of all groups and blocks under numbers of their own; a group in one block is a crew here."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.capacities = instance.machine.capacities
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

    def begin(self) -> Iterator[tuple[Step, State]]:
        """Every state in which the warps can begin, after the step that passes the first barriers."""
        ways = (
            combinations_with_replacement(starts, warps)
            for starts, (_, warps) in zip(self.starts, self.crews, strict=True)
        )
        return chain.from_iterable(
            self._settled(tuple(sorted(chain.from_iterable(places)))) for places in product(*ways)
        )

    def steps(self, state: State) -> Iterator[tuple[Step, State]]:
        """Every work-conserving step from `state`, equal ones once."""
        ready: dict[str, list[int]] = {unit: [] for unit in (*self.capacities, BARRIER)}
        for place in state:
            ready[self.unit[place]].append(place)
        for moved in _choices([(ready[unit], min(c, len(ready[unit]))) for unit, c in self.capacities.items()]):
            rest = list(state)
            for place in moved:
                rest.remove(place)
            for targets in product(*(self.after[place] for place in moved)):
                arrived = (target for target in targets if target != _FINISHED)
                step = tuple(zip(moved, targets, strict=True))
                for passes, after in self._settled(tuple(sorted(chain(rest, arrived)))):
                    yield step + passes, after

    def _settled(self, state: State) -> Iterator[tuple[Step, State]]:
        """Every state in which the warps may be once those that can pass their barriers have passed."""
        for gate in self._gates:
            standing = [place for place in state if self.block[place] == gate]
            if standing and all(self.unit[place] == BARRIER for place in standing):
                others = [place for place in state if self.block[place] != gate]
                for targets in product(*(self.after[place] for place in standing)):
                    passed = (target for target in targets if target != _FINISHED)
                    for passes, after in self._settled(tuple(sorted(chain(others, passed)))):
                        yield (*zip(standing, targets, strict=True), *passes), after
                return
        yield (), state

    def work(self, state: State) -> int:
        """An amount that every step lowers."""
        return sum(self.to_go[place] for place in state)

    def schedule(self, begin: State, steps: Sequence[Step]) -> Schedule:
        """The schedule that takes `steps`, of which the first one only passes barriers, to the state `begin`."""
        standing = Counter(begin)
        for place, target in reversed(steps[0]):
            standing[target] -= 1
            standing[place] += 1
        starts: list[dict[int, int]] = [{} for _ in self.crews]
        for place, count in standing.items():
            if place != _FINISHED and count:
                crew, at = self.origin[place]
                starts[crew][at] = count
        return Schedule.from_moves(self.instance, starts, (map(self._move, Counter(s).items()) for s in steps))

    def _move(self, counted: tuple[tuple[int, int], int]) -> Move:
        (place, target), count = counted
        crew, at = self.origin[place]
        end = self.crews[crew][0].end
        return Move(crew, at, end if target == _FINISHED else self.origin[target][1], count)


def _choices(queues: Sequence[tuple[Sequence[int], int]]) -> Iterator[tuple[int, ...]]:
    """Every way to take so many of each sorted queue, equal ways once; lazy, for there may be billions."""
    if not queues:
        yield ()
        return
    (queue, count), *others = queues
    for taken in _distinct(queue, count):
        for rest in _choices(others):
            yield taken + rest


def _distinct(queue: Sequence[int], count: int) -> Iterator[tuple[int, ...]]:
    """Every different way to take `count` of the sorted `queue`."""
    if count == len(queue):
        yield tuple(queue)
        return
    if count == 1:
        yield from ((place,) for place in dict.fromkeys(queue))
        return
    for at in range(len(queue) - count + 1):
        if not at or queue[at] != queue[at - 1]:
            for rest in _distinct(queue[at + 1 :], count - 1):
                yield (queue[at], *rest)


def solve(instance: Instance, limits: Limits) -> Finding:
    """Worst and best case by visiting every reachable state; an empty finding when a limit stops it first."""
    automaton = _Automaton(instance)
    longest: dict[State, _Label] = {}
    shortest: dict[State, _Label] = {}
    most_states = limits.memory_bytes // _BYTES_PER_STATE
    queue: list[tuple[int, State]] = []
    for passes, state in automaton.begin():
        if state not in longest:
            heapq.heappush(queue, (-automaton.work(state), state))
            longest[state] = shortest[state] = _Label(0, None, passes)
    taken = 0
    while queue:
        _, state = heapq.heappop(queue)
        most, least = longest[state].cycles + 1, shortest[state].cycles + 1
        for step, after in automaton.steps(state) if state else ():
            taken += 1
            if taken % _STEPS_PER_LOOK == 0 and (limits.expired or len(longest) > most_states):
                return Finding()
            if after not in longest:
                heapq.heappush(queue, (-automaton.work(after), after))
                longest[after] = _Label(most, state, step)
                shortest[after] = _Label(least, state, step)
                continue
            if most > longest[after].cycles:
                longest[after] = _Label(most, state, step)
            if least < shortest[after].cycles:
                shortest[after] = _Label(least, state, step)
    worst, best = longest[()].cycles, shortest[()].cycles
    return Finding(_trace(automaton, longest), worst, Upper.SEARCH, best_case=Bounds(best, best))


def _trace(automaton: _Automaton, labels: dict[State, _Label]) -> Schedule:
    steps = []
    state: State = ()
    while (label := labels[state]).before is not None:
        steps.append(label.step)
        state = label.before
    return automaton.schedule(state, [label.step, *reversed(steps)])
