"""Every state that a work-conserving schedule can reach, enumerated plainly: the definition, read forwards.

Latencies are places here (`delays`). A state is one integer: `bits` bits per place count the warps that stand there;
finished warps are not counted. Below them stand the ports that are held: for every class with an interval of i > 1,
and h = 1 .. i-1, how many of its ports are held for h more cycles. Once all warps have finished the state is 0.
Places are numbered backwards and the ports below them, so every cycle makes the integer smaller: a warp moves, or
ports are held for less long. Handling states in falling order sees all predecessors of a state before it. The warps
of a group in different blocks stand on different numbers, as far as there are barriers.
"""

from collections.abc import Iterator
from heapq import heappop, heappush
from itertools import combinations_with_replacement, product
from typing import NamedTuple

from makespan.model.instance import Instance
from makespan.model.machine import DELAY
from makespan.model.program import BARRIER
from makespan.verify.delays import with_delay_places
from makespan.verify.refusal import ProofSteps, TooMuchWork

MOST_BYTES = 1 << 29  # of all states that are kept at one time; those of long programs take kilobytes each
MOST_BITS = 1 << 22  # of one state


class WarpsAtPlace(NamedTuple):
    """A number of warps of a group that stand at the same place."""

    group: int
    place: int
    warps: int


class BasicStates:
    """The states of one instance and the cycles between them; each cycle takes from `work`.

    Args:
        instance: with its latencies as places.

    Raises:
        TooMuchWork: a state has more than `MOST_BITS`.
    """

    def __init__(self, instance: Instance, work: ProofSteps) -> None:
        self._instance, self._work = instance, work
        self._ports = _PortBits(instance)
        self._bits = instance.warps.bit_length()
        self._has_barriers = instance.has_barriers
        self._blocks = instance.blocks if self._has_barriers else 1
        places = self._blocks * sum(group.program.end for group in instance.groups)
        size = self._ports.bits + self._bits * places
        if size > MOST_BITS:
            raise TooMuchWork
        self._homes: list[tuple[int, int, int]] = []  # block, group and place by backward number
        self._barriers: list[bool] = []
        for block, (group, kind) in product(range(self._blocks), enumerate(instance.groups)):
            for place in range(kind.program.end - 1, -1, -1):
                self._homes.append((block, group, place))
                self._barriers.append(kind.program.places[place].unit == BARRIER)
        self._step = 1 + (size >> 14)  # a sum of long integers takes longer
        self._step_of_ports = self._step * self._ports.fields >> 4
        self.most_states = MOST_BYTES // (size // 8 + 100)  # with what a set needs for each
        self._bit = {home: self._ports.bits + self._bits * n for n, home in enumerate(self._homes)}

    def starts(self) -> set[int]:
        """Return all states before the first cycle."""
        states = {0}
        for block, (number, group) in product(range(self._blocks), enumerate(self._instance.groups)):
            self._check_memory(len(group.program.starts))
            begun = [1 << self._bit[block, number, start] for start in group.program.starts]
            states = self._sum(states, self._distinct(self._sums(begun, group.warps // self._blocks)))
        return self._settled(states)

    def standing(self, state: int) -> Iterator[WarpsAtPlace]:
        """Yield where the unfinished warps of `state` are."""
        for number, count in self._counts(state):
            self._work.spend()
            _, group, place = self._homes[number]
            yield WarpsAtPlace(group, place, count)

    def held(self, state: int) -> dict[str, list[int]]:
        """Return for every class with an interval how many ports are held for 1, 2, ... more cycles."""
        return self._ports.held(state)

    def _counts(self, state: int) -> Iterator[tuple[int, int]]:
        state >>= self._ports.bits
        while state:
            if self._step > 1:
                self._work.spend(self._step)
            number = ((state & -state).bit_length() - 1) // self._bits
            count = state >> self._bits * number & (1 << self._bits) - 1
            state -= count << self._bits * number
            yield number, count

    def after(self, state: int) -> set[int]:
        """Return all states that one cycle can lead to from `state`."""
        ready: dict[str, list[tuple[int, list[int]]]] = {}
        self._work.spend(self._step + self._step_of_ports)
        for number, count in self._counts(state):
            if not self._barriers[number]:
                unit, jumps = self._jumps(number)
                ready.setdefault(unit, []).append((count, jumps))
        free = self._ports.free(state)
        most = {unit: min(free[unit], sum(count for count, _ in ready[unit])) for unit in ready if unit != DELAY}
        states = {self._ports.passed(state)}
        if DELAY in ready:  # a warp on a delay needs nothing, and always moves on
            states = self._sum(states, self._changes(ready[DELAY], sum(count for count, _ in ready[DELAY])))
        width = self._instance.machine.issue_width
        # work conservation: of each class as many issue as can, or exactly as many as the width lets
        if width is None or width >= sum(most.values()):
            for unit, movers in most.items():
                states = self._sum(states, self._issues(unit, ready[unit], movers))
        else:
            states = self._shared(states, ready, most, width)
        return self._settled(states)

    def _shared(
        self, states: set[int], ready: dict[str, list[tuple[int, list[int]]]], most: dict[str, int], width: int
    ) -> set[int]:
        ways: dict[int, set[int]] = {0: states}  # by the number of issues so far
        behind = sum(most.values())
        for unit, limit in most.items():
            behind -= limit
            further: dict[int, set[int]] = {}
            for issued, reached in ways.items():
                for n in range(max(0, width - issued - behind), min(limit, width - issued) + 1):
                    more = self._sum(reached, self._issues(unit, ready[unit], n))
                    further.setdefault(issued + n, set()).update(more)
            ways = further
        return ways[width]

    def _issues(self, unit: str, ready: list[tuple[int, list[int]]], movers: int) -> set[int]:
        """Return what `movers` issues of a class, in every way, add to the state, with the ports that they hold."""
        changes = self._changes(ready, movers)
        held = self._ports.taken.get(unit)
        return changes if held is None else {change + movers * held for change in changes}

    def _sum(self, states: set[int], changes: set[int]) -> set[int]:
        self._work.spend(self._step * len(states) * len(changes))
        self._check_memory(len(states) * len(changes))
        return {before + change for before in states for change in changes}

    def _check_memory(self, states: int) -> None:
        if states > self.most_states:
            raise TooMuchWork

    def _jumps(self, number: int) -> tuple[str, list[int]]:
        """Return the unit of a place, and what a warp that goes on from it adds to the state, by successor."""
        block, group, place = self._homes[number]
        unit, successors = self._instance.groups[group].program.places[place]
        self._check_memory(len(successors))
        here = 1 << self._bit[block, group, place]
        bits = [self._bit.get((block, group, after)) for after in successors]
        return unit, [-here if bit is None else (1 << bit) - here for bit in bits]

    def _settled(self, states: set[int]) -> set[int]:
        """Return the states once all blocks have passed whose unfinished warps all stand at barriers."""
        if not self._has_barriers:
            return self._ports.dropped(states)
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
                further = self._sum(further, self._distinct(self._sums(self._jumps(number)[1], count)))
            waiting += further
            self._check_memory(len(waiting) + len(settled))
        return self._ports.dropped(settled)

    def _changes(self, ready: list[tuple[int, list[int]]], movers: int) -> set[int]:
        """Return what `movers` of the ready warps, chosen in every way, add to the state."""
        behind = sum(count for count, _ in ready)
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
                        self._check_memory(len(target))
            ways = further
        return ways[movers]

    def _distinct(self, sums: Iterator[int]) -> set[int]:
        found = set[int]()
        for total in sums:
            found.add(total)
            self._check_memory(len(found))
        return found

    def _sums(self, numbers: list[int], count: int) -> Iterator[int]:
        if len(numbers) == 1:
            yield count * numbers[0]
            return
        for chosen in combinations_with_replacement(numbers, count):
            self._work.spend(self._step * (1 + count))
            yield sum(chosen)


class _PortBits:
    """The low bits of a state, which count held ports.

    Attributes:
        bits: the number of these bits.
        fields: the number of counts in them.
        taken: by class with an interval, what an issue adds.
    """

    def __init__(self, instance: Instance) -> None:
        self._capacities = instance.machine.capacities
        slow = [unit for unit in instance.machine.units if unit.interval > 1]
        self._field = max((unit.capacity for unit in slow), default=0).bit_length()
        self._rows: dict[str, tuple[int, int]] = {}  # the first bit, and how many fields
        self._kept = 0  # all fields but the last of each class, which only a new issue fills
        self.taken: dict[str, int] = {}
        self.bits = self.fields = 0
        for unit in slow:
            fields = unit.interval - 1
            self._rows[unit.name] = self.bits, fields
            self._kept |= (1 << self._field * (fields - 1)) - 1 << self.bits
            self.bits += self._field * fields
            self.fields += fields
            self.taken[unit.name] = 1 << self.bits - self._field

    def held(self, state: int) -> dict[str, list[int]]:
        ones, low = (1 << self._field) - 1, state & (1 << self.bits) - 1
        return {
            unit: [low >> first + self._field * n & ones for n in range(fields)]
            for unit, (first, fields) in self._rows.items()
        }

    def free(self, state: int) -> dict[str, int]:
        """Return the ports of every class that can be used in this cycle."""
        if not self.bits:
            return self._capacities
        return {**self._capacities, **{unit: self._capacities[unit] - sum(n) for unit, n in self.held(state).items()}}

    def passed(self, state: int) -> int:
        """Return the state with all ports held for a cycle less."""
        if not self.bits:
            return state
        low = state & (1 << self.bits) - 1
        return state - low + (low >> self._field & self._kept)

    def dropped(self, states: set[int]) -> set[int]:
        """Return the states, 0 for all in which every warp has finished, whatever ports are held then."""
        return {state if state >> self.bits else 0 for state in states} if self.bits else states


def shortest_and_longest(instance: Instance, most_states: int) -> tuple[int, int] | None:
    """Return the makespans of the shortest and the longest schedule, in cycles; None after `most_states` states."""
    try:
        walker = BasicStates(with_delay_places(instance), ProofSteps(40 * most_states))
        reached = {-state: (0, 0) for state in walker.starts()}  # negative, for heapq takes the smallest
        heap = sorted(reached)
        left = min(most_states, walker.most_states) - len(heap)
        while left >= 0:
            state = heappop(heap)  # every cycle makes the number smaller, so all that lead to the largest are done
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


def front(walker: BasicStates, cycles: int, most_states: int) -> tuple[set[int], int]:
    """Return all states with unfinished warps after `cycles`, and the longest schedule that ended by then, or 0.

    Raises:
        TooMuchWork: more than `most_states` states after some cycle, or more than fit into memory.
    """
    most = min(most_states, walker.most_states)
    states, ended = walker.starts(), 0
    for cycle in range(1, cycles + 1):
        if not states:
            break
        reached: set[int] = set()
        for state in states:
            reached |= walker.after(state)
            if len(reached) > most:
                raise TooMuchWork
        if 0 in reached:
            reached.remove(0)
            ended = cycle
        states = reached
    return states, ended
