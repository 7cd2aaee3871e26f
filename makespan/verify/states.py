"""Every state that a work-conserving schedule can reach, enumerated plainly.

A state is one integer: `bits` bits per place count the warps that stand there; finished warps are not counted, so 0
means that all have finished. Places are numbered backwards, so every move makes the integer smaller: a cycle leads
from a larger to a smaller integer, and handling states in falling order sees all predecessors of a state before it.
The warps of a group in different blocks stand on different numbers, as far as there are barriers.
"""

from collections.abc import Iterator
from heapq import heappop, heappush
from itertools import combinations_with_replacement, product
from typing import NamedTuple

from makespan.instance import Instance
from makespan.program import BARRIER
from makespan.verify.refusal import TooMuchWork, Work


class Standing(NamedTuple):
    """So many `warps` of `group` at `place`."""

    group: int
    place: int
    warps: int


class Walker:
    """The states of one instance and the cycles between them; each cycle takes from `work`."""

    def __init__(self, instance: Instance, work: Work) -> None:
        self._instance, self._work = instance, work
        self._bits = instance.warps.bit_length()
        self._blocks = instance.blocks if instance.has_barriers else 1
        self._homes: list[tuple[int, int, int]] = []  # block, group and place by backward number
        self._barriers: list[bool] = []
        for block, (group, kind) in product(range(self._blocks), enumerate(instance.groups)):
            for place in range(kind.program.end - 1, -1, -1):
                self._homes.append((block, group, place))
                self._barriers.append(kind.program.places[place].unit == BARRIER)
        self._step = 1 + (self._bits * len(self._homes) >> 14)  # a sum of long integers takes longer
        self._warp = {home: 1 << self._bits * n for n, home in enumerate(self._homes)}

    def starts(self) -> set[int]:
        """All states before the first cycle."""
        states = {0}
        for block, (number, group) in product(range(self._blocks), enumerate(self._instance.groups)):
            begun = [self._warp[block, number, start] for start in group.program.starts]
            states = {state + more for state in states for more in self._sums(begun, group.warps // self._blocks)}
        return self._settled(states)

    def standing(self, state: int) -> Iterator[Standing]:
        """Where the unfinished warps of `state` are."""
        for number, count in self._counts(state):
            _, group, place = self._homes[number]
            yield Standing(group, place, count)

    def _counts(self, state: int) -> Iterator[tuple[int, int]]:
        """The backward numbers of the places where warps are, and how many."""
        while state:
            number = ((state & -state).bit_length() - 1) // self._bits
            count = state >> self._bits * number & (1 << self._bits) - 1
            state -= count << self._bits * number
            yield number, count

    def after(self, state: int) -> set[int]:
        """All states that one cycle can lead to from `state`."""
        ready: dict[str, list[tuple[int, list[int]]]] = {}
        self._work.spend(self._step)
        for number, count in self._counts(state):
            if not self._barriers[number]:
                unit, jumps = self._jumps(number)
                ready.setdefault(unit, []).append((count, jumps))
        states = {state}
        for unit, capacity in self._instance.machine.capacities.items():
            if unit in ready:
                changes = self._changes(ready[unit], capacity)
                self._work.spend(self._step * len(states) * len(changes))
                states = {before + change for before in states for change in changes}
        return self._settled(states)

    def _jumps(self, number: int) -> tuple[str, list[int]]:
        """The unit of a place, and what a warp that goes on from it adds to the state, by successor."""
        block, group, place = self._homes[number]
        unit, successors = self._instance.groups[group].program.places[place]
        here = self._warp[block, group, place]
        return unit, [self._warp.get((block, group, after), 0) - here for after in successors]

    def _settled(self, states: set[int]) -> set[int]:
        """The states once everybody has passed who can: where all unfinished warps of a block stand at barriers."""
        if not self._instance.has_barriers:
            return states
        settled, waiting = set[int](), list(states)
        while waiting:
            state = waiting.pop()
            self._work.spend(self._step)
            blocks: dict[int, list[tuple[int, int]]] = {}
            for number, count in self._counts(state):
                blocks.setdefault(self._homes[number][0], []).append((number, count))
            passing = next((on for on in blocks.values() if all(self._barriers[number] for number, _ in on)), None)
            if passing is None:
                settled.add(state)
                continue
            further = {state}
            for number, count in passing:
                changes = set(self._sums(self._jumps(number)[1], count))
                self._work.spend(self._step * len(further) * len(changes))
                further = {before + change for before in further for change in changes}
            waiting += further
        return settled

    def _changes(self, ready: list[tuple[int, list[int]]], capacity: int) -> set[int]:
        """What `min(capacity, ready warps)` movers, chosen in every way, add to the state."""
        behind = sum(count for count, _ in ready)
        movers = min(capacity, behind)
        ways: dict[int, set[int]] = {0: {0}}  # by the number of movers so far
        for count, jumps in ready:
            behind -= count
            further: dict[int, set[int]] = {}
            for moved, sums in ways.items():
                for n in range(max(0, movers - moved - behind), min(count, movers - moved) + 1):
                    target = further.setdefault(moved + n, set())
                    for change in self._sums(jumps, n):
                        self._work.spend(self._step * len(sums))
                        target.update(before + change for before in sums)
            ways = further
        return ways[movers]

    def _sums(self, numbers: list[int], count: int) -> Iterator[int]:
        """All sums of `count` of `numbers`."""
        if len(numbers) == 1:
            yield count * numbers[0]
            return
        for chosen in combinations_with_replacement(numbers, count):
            self._work.spend(self._step * (1 + count))
            yield sum(chosen)


def shortest_and_longest(instance: Instance, most_states: int) -> tuple[int, int] | None:
    """The makespans of the shortest and the longest work-conserving schedule; None after `most_states` states."""
    walker = Walker(instance, Work(40 * most_states))
    try:
        reached = {-state: (0, 0) for state in walker.starts()}  # negative, for heapq takes the smallest
        heap = sorted(reached)
        left = most_states - len(heap)
        while left >= 0:
            state = heappop(heap)
            shortest, longest = reached.pop(state)
            if not state:
                return shortest, longest
            for after in walker.after(-state):
                before = reached.get(-after)
                if before is None:
                    left -= 1
                    heappush(heap, -after)
                    reached[-after] = shortest + 1, longest + 1
                else:
                    reached[-after] = min(before[0], shortest + 1), max(before[1], longest + 1)
    except TooMuchWork:
        pass
    return None


def front(walker: Walker, cycles: int, most_states: int) -> tuple[set[int], int]:
    """All states with unfinished warps after so many cycles, and the longest schedule that ended by then (0: none).

    Raises:
        TooMuchWork: more than `most_states` states after some cycle.
    """
    states, ended = walker.starts(), 0
    for cycle in range(1, cycles + 1):
        if not states:
            break
        reached: set[int] = set()
        for state in states:
            reached |= walker.after(state)
            if len(reached) > most_states:
                raise TooMuchWork
        if 0 in reached:
            reached.remove(0)
            ended = cycle
        states = reached
    return states, ended
