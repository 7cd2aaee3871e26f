"""Exhaustive search over the states of a whole multiprocessor: partitions, resources, warps that run ahead.

A state consists of the states of the unfinished warps of each partition (`warp_states`) and of the cycles for which
ports are still held; warps and partitions have no names in it. Cycles in which no warp can issue are skipped. Every
step brings a warp further or the next event nearer, so a visit in the order of this progress sees each state once,
after all states that lead to it.
"""

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import accumulate, chain, combinations_with_replacement, product
from math import comb
from typing import NamedTuple

from makespan.model.feature import BARRIERS, MULTIPROCESSOR, PROGRAMS, TIMES
from makespan.model.instance import Instance, requires
from makespan.model.lowered import ISSUE_SLOT, HeldUses, LoweredMachine, PortsInUse, PortWay
from makespan.model.result import Bounds, Upper
from makespan.model.schedule import Schedule
from makespan.proof.bounds.partitions import MOST_CREWS, spreads
from makespan.proof.engines.engine import Finding
from makespan.proof.engines.limits import Limits
from makespan.proof.engines.search.plain import SMALL_STATES
from makespan.proof.engines.search.warp_states import FINISHED, Move, WarpStates

KNOWS = PROGRAMS | TIMES | BARRIERS | MULTIPROCESSOR

VAST_PLACES = 10**9
"""Ways for the warps to be at their places; states are more by far, as results are pending and ports held."""

_MANY_WARPS = 100

MOST_WARPS = 256
MOST_CHOICES = 10_000
MOST_NEEDS = 1_000_000
"""Places times tokens of a program; the places that need a result are bits."""

_BYTES_PER_STATE, _BYTES_PER_PARTITION, _BYTES_PER_WARP = 500, 200, 8
_STEPS_PER_LOOK = 256

PartitionState = tuple[tuple[int, ...], PortsInUse]
"""A partition: the numbers of its unfinished warps, sorted, and its own ports."""

PartitionStates = tuple[tuple[PartitionState, ...], PortsInUse]
"""The partitions, sorted, and the ports that they share."""


class _WarpChange(NamedTuple):
    """The move of a warp with this number in this partition, and what it holds of its uses if it issues."""

    part: int
    number: int
    move: Move
    uses: HeldUses = ()


class _CycleStep(NamedTuple):
    """A number of cycles, the warps that issue in the first of them, and those that pass barriers at their end."""

    cycles: int
    issued: tuple[_WarpChange, ...]
    passed: tuple[tuple[_WarpChange, ...], ...]


class ReachedState(NamedTuple):
    """The partitions and shared ports after a step; the partitions stand in the order of the state before it."""

    step: _CycleStep
    parts: Sequence[PartitionState]
    shared: PortsInUse

    @property
    def state(self) -> PartitionStates:
        """Return the state, in which partitions have no names."""
        return tuple(sorted(self.parts)), self.shared


class _StateLabel(NamedTuple):
    """The longest and the shortest way from a start to a state, in cycles, and the state before it on the longest."""

    longest: int
    shortest: int
    before: PartitionStates | None


class _Transitions:
    """The states and the steps between them; partition p has the `own` pools from `p * own` on for itself."""

    def __init__(self, instance: Instance) -> None:
        self.instance, lowered = instance, _lower(instance)
        self.warps = WarpStates(instance)
        self.partitions = instance.machine.partitions
        self.own = len(lowered.capacities.keys() - lowered.shared)
        self.capacities = [pool.capacity for pool in lowered.pools]
        self.ways = cache(lambda reservation, part: tuple(lowered.ways(reservation, part)))
        self._free: PortsInUse = ((),) * self.own
        self._none: PortsInUse = ((),) * (len(lowered.pools) - self.partitions * self.own)

    def begin(self) -> Iterator[tuple[Sequence[list[int]], ReachedState]]:
        """Yield every way to begin, in the order of `spreads`: before the first barriers are passed, and after."""
        starts = [self.warps.begin(crew) for crew in range(len(self.warps.crews))]
        for spread in spreads(self.instance):
            ways = (
                product(*(combinations_with_replacement(starts[crew], n) for crew, n in enumerate(counts)))
                for counts in spread
            )
            for chosen in product(*ways):
                begun = [list(chain.from_iterable(warps)) for warps in chosen]
                for passed, parts in self._settled(begun):
                    standing = [self._part(warps, self._free) for warps in parts]
                    yield begun, ReachedState(_CycleStep(0, (), passed), standing, self._none)

    @property
    def end(self) -> PartitionStates:
        """Return the state in which all warps have finished."""
        return (((), self._free),) * self.partitions, self._none

    def _part(self, warps: Sequence[int], held: PortsInUse) -> PartitionState:
        return (tuple(sorted(warps)), held) if warps else ((), self._free)

    def steps(self, state: PartitionStates) -> Iterator[ReachedState]:
        """Yield every work-conserving step; none from the end."""
        parts, shared = state
        if state == self.end:
            return
        warps = self.warps
        kinds = [
            (part, number, numbers.count(number))
            for part, (numbers, _) in enumerate(parts)
            for number in dict.fromkeys(numbers)
            if warps.issues[number]
        ]
        taken = [ports for _, held in parts for ports in held] + [*shared]
        left = [capacity - len(ports) for capacity, ports in zip(self.capacities, taken, strict=True)]
        for selected in self._selections(kinds, left):
            cycles = 1
            if not selected:
                # nothing changes before the next warp is ready or, where one is ready, the next port is free
                waits = [warps.wait[number] for numbers, _ in parts for number in numbers if warps.wait[number]]
                releases = [ports[0] for ports in taken if ports] if kinds else []
                cycles = min(waits + releases)
            held = [tuple([rest - cycles for rest in ports if rest > cycles]) for ports in taken]
            staying = self._staying(parts, selected, cycles)
            ways = (
                combinations_with_replacement(
                    [
                        (_WarpChange(part, number, move, way.uses(cycles)), way, cycles)
                        for move in warps.moves(number)
                        for cycles in way.cycles
                    ],
                    count,
                )
                for part, number, way, count in selected
            )
            for issued in product(*ways):
                yield from self._after(staying, held, cycles, tuple(chain.from_iterable(issued)))

    def _staying(
        self, parts: Sequence[PartitionState], selected: Sequence[tuple[int, int, PortWay, int]], cycles: int
    ) -> list[list[int]]:
        """Return the warps that do not issue, as they are `cycles` later."""
        staying = [list(numbers) for numbers, _ in parts]
        for part, number, _, count in selected:
            for _ in range(count):
                staying[part].remove(number)
        return [[self.warps.later(number, cycles) for number in numbers] for numbers in staying]

    def _selections(
        self, kinds: Sequence[tuple[int, int, int]], left: list[int]
    ) -> Iterator[list[tuple[int, int, PortWay, int]]]:
        """Yield every maximal way to issue: (partition, number, way, how many warps)."""
        ways = [self.ways(self.warps.reservation[number], part) for part, number, _ in kinds]
        waiting = [count for _, _, count in kinds]
        selected: list[tuple[int, int, PortWay, int]] = []
        wanted = [[0] * len(left)]  # what the kinds from one on may take of every pool, at most
        for count, own in zip(reversed(waiting), reversed(ways), strict=True):
            wanted.append(wanted[-1].copy())
            for pool in {pool for way in own for pool in way.pools}:
                wanted[-1][pool] += count
        wanted.reverse()

        def select(at: int, which: int) -> Iterator[list[tuple[int, int, PortWay, int]]]:
            # work conservation: no warp that is left out could be added, whatever those still to be asked take
            if not which and any(
                waiting[kind] and any(all(left[pool] > wanted[at][pool] for pool in way.pools) for way in ways[kind])
                for kind in range(at)
            ):
                return
            if at == len(kinds):
                yield [one for one in selected if one[-1]]
            elif which == len(ways[at]):
                yield from select(at + 1, 0)
            else:
                way, (part, number, _) = ways[at][which], kinds[at]
                for count in range(min(waiting[at], *(left[pool] for pool in way.pools)), -1, -1):
                    self._take(way, left, count)
                    waiting[at] -= count
                    selected.append((part, number, way, count))
                    yield from select(at, which + 1)
                    selected.pop()
                    waiting[at] += count
                    self._take(way, left, -count)

        return select(0, 0)

    @staticmethod
    def _take(way: PortWay, left: list[int], count: int) -> None:
        for pool in way.pools:
            left[pool] -= count

    def _after(
        self,
        staying: Sequence[Sequence[int]],
        held: Sequence[tuple[int, ...]],
        cycles: int,
        issued: tuple[tuple[_WarpChange, PortWay, tuple[int, ...]], ...],
    ) -> Iterator[ReachedState]:
        """Yield the states after these warps have issued; the other warps and the ports are those after the cycles."""
        lists, ports = [[*numbers] for numbers in staying], [*held]
        for change, way, intervals in issued:
            lists[change.part].append(change.move.number)
            for pool, interval in zip(way.pools, intervals, strict=True):
                if interval > 1:
                    ports[pool] = tuple(sorted((*ports[pool], interval - 1)))
        own, common = self.own, tuple(ports[self.partitions * self.own :])
        changes = tuple(change for change, _, _ in issued)
        for passed, settled in self._settled(lists):
            after = [
                self._part(numbers, tuple(ports[part * own : part * own + own])) for part, numbers in enumerate(settled)
            ]
            yield ReachedState(_CycleStep(cycles, changes, passed), after, common if any(settled) else self._none)

    def _settled(
        self, lists: Sequence[Sequence[int]]
    ) -> Iterator[tuple[tuple[tuple[_WarpChange, ...], ...], Sequence[list[int]]]]:
        """Yield every way to stand once all barriers that can open have opened; finished warps are left out."""
        warps = self.warps
        alive = [[number for number in numbers if number != FINISHED] for numbers in lists]
        for block in range(warps.blocks if warps.barriers else 0):
            standing = [(p, n) for p, numbers in enumerate(alive) for n in numbers if warps.block[n] == block]
            if standing and all(warps.at_barrier[number] for _, number in standing):
                others = [[n for n in numbers if warps.block[n] != block] for numbers in alive]
                counted = Counter(standing)
                ways = (combinations_with_replacement(warps.moves(n), count) for (_, n), count in counted.items())
                for moves in product(*ways):
                    passed = tuple(
                        _WarpChange(part, number, move)
                        for (part, number), moved in zip(counted, moves, strict=True)
                        for move in moved
                    )
                    gone = [
                        [*numbers, *(change.move.number for change in passed if change.part == part)]
                        for part, numbers in enumerate(others)
                    ]
                    yield from (((passed, *more), after) for more, after in self._settled(gone))
                return
        yield (), alive

    def progress(self, state: PartitionStates) -> tuple[int, int]:
        """Return a pair that every step raises: minus the places that are left, and minus the cycles to wait."""
        parts, shared = state
        numbers = [number for own, _ in parts for number in own]
        held = sum(sum(map(sum, own)) for _, own in parts) + sum(map(sum, shared))
        return -sum(self.warps.to_go[n] for n in numbers), -held - sum(self.warps.wait[n] for n in numbers)


def obstacle(instance: Instance) -> str | None:
    """Return why this search does not begin; None where it does."""
    crews = len(instance.groups) * instance.blocks
    if crews > MOST_CREWS:
        return f"it has {crews} kinds of warps, by program and block; the limit is {MOST_CREWS}"
    needs = max(
        group.program.end * sum(len(timing.awaits) for timing in group.program.timings) for group in instance.groups
    )
    if needs > MOST_NEEDS:
        return f"a program has {needs} places times results that they need; the limit is {MOST_NEEDS}"
    if instance.warps > MOST_WARPS:
        return f"it has {instance.warps} warps; the limit is {MOST_WARPS}"
    for each in _lower(instance).by_class.values():
        if each.choices > MOST_CHOICES:
            return (
                f"class {each.unit} leaves {each.choices} choices of resources and intervals;"
                f" the limit is {MOST_CHOICES}"
            )
    return None


def _lower(instance: Instance) -> LoweredMachine:
    """Return the lowered machine without classes and resources that no program uses, so that states stay short."""
    return LoweredMachine.of(instance.machine.serving(set().union(*(group.program.units for group in instance.groups))))


def is_small(instance: Instance) -> bool:
    """Return whether the warps have at most `SMALL_STATES` ways to stand, by a guess that ignores pending results."""
    lowered, ways = _lower(instance), 1
    ports = sum(pool.capacity for pool in lowered.pools if pool.name != ISSUE_SLOT)
    slowest = max(most for _, most in lowered.latencies.values())
    for group in instance.groups:
        longest = max((timing.latency[1] for timing in group.program.timings), default=slowest)
        crew = group.warps // instance.blocks
        ways *= comb(group.program.end * longest + crew, crew) ** instance.blocks
    held = max(each.longest for each in lowered.by_class.values())
    return ways <= SMALL_STATES and ways * comb(held - 1 + ports, ports) <= SMALL_STATES


def is_vast(instance: Instance) -> bool:
    """Return whether the warps, spread evenly, can stand in so many ways that it is no use to begin with the states."""
    ways, parts = 1, instance.machine.partitions
    for group in instance.groups:
        each, more = divmod(min(group.warps // instance.blocks, _MANY_WARPS), parts)
        end = group.program.end
        ways *= comb(end + each, each) ** (parts - more) * comb(end + each + 1, each + 1) ** more
        if ways > VAST_PLACES:
            return True
    return False


@requires(KNOWS, "the search over a whole multiprocessor")
def solve(instance: Instance, limits: Limits) -> Finding:
    """Worst and best case by visiting every reachable state; an empty finding when a limit stops it first."""
    if obstacle(instance) is not None:
        return Finding()
    system = _Transitions(instance)
    labels = _visit(system, limits)
    if labels is None:
        return Finding()
    label = labels[system.end]
    witness = _WitnessNames(system).schedule(labels)
    return Finding(witness, label.longest, Upper.SEARCH, best_case=Bounds(label.shortest, label.shortest))


def _visit(system: _Transitions, limits: Limits) -> dict[PartitionStates, _StateLabel] | None:
    """Return every reachable state; None when a limit stops it."""
    warps = system.instance.warps
    bytes_per_state = _BYTES_PER_STATE + _BYTES_PER_PARTITION * system.partitions + _BYTES_PER_WARP * warps
    most_states = limits.memory_bytes // bytes_per_state
    labels: dict[PartitionStates, _StateLabel] = {}
    # no step leads back in the order of the heap, so the label of a state is final when the state is taken from it
    queue: list[tuple[tuple[int, int], PartitionStates]] = []

    def reach(after: PartitionStates, longest: int, shortest: int, before: PartitionStates | None) -> None:
        known = labels.get(after)
        if known is None:
            heapq.heappush(queue, (system.progress(after), after))
            labels[after] = _StateLabel(longest, shortest, before)
        elif longest > known.longest:
            labels[after] = _StateLabel(longest, min(shortest, known.shortest), before)
        elif shortest < known.shortest:
            labels[after] = known._replace(shortest=shortest)

    taken, state, longest, shortest = 0, None, 0, 0
    steps: Iterable[ReachedState] = (found for _, found in system.begin())
    while True:
        for found in steps:
            cycles = found.step.cycles
            reach(found.state, longest + cycles, shortest + cycles, state)
            taken += 1
            if taken % _STEPS_PER_LOOK == 0:
                if len(labels) > most_states:
                    limits.need_memory()
                    return None
                if limits.expired:
                    return None
        if not queue:
            return labels
        _, state = heapq.heappop(queue)
        longest, shortest, _ = labels[state]
        steps = system.steps(state)


class _WitnessNames:
    """A path through the states on which warps and partitions get their names back."""

    def __init__(self, system: _Transitions) -> None:
        self.system, self.instance = system, system.instance
        self.paths: list[list[int]] = [[] for _ in range(self.instance.warps)]
        self.latencies: list[list[int]] = [[] for _ in self.paths]
        self.uses: list[list[HeldUses]] = [[] for _ in self.paths]
        self.cycles: list[tuple[int, ...]] = []
        self.parts: list[list[tuple[int, int]]] = []  # (number, warp) of every warp, by partition
        self.partitions: Sequence[int] = ()

    def schedule(self, labels: dict[PartitionStates, _StateLabel]) -> Schedule:
        """Return a longest one."""
        path = [self.system.end]
        while (before := labels[path[-1]].before) is not None:
            path.append(before)
        state = path.pop()
        begun, first = next((begun, found) for begun, found in self.system.begin() if found.state == state)
        self._name(begun)
        self._follow(first)
        while path:
            cycles = labels[path[-1]].longest - labels[state].longest
            steps = (found for found in self.system.steps(state) if found.step.cycles == cycles)
            self._follow(next(found for found in steps if found.state == path[-1]))
            state = path.pop()
        return Schedule.of(self.instance, self.cycles, self.paths, self.latencies, self.uses, self.partitions)

    def _name(self, begun: Sequence[Sequence[int]]) -> None:
        """Name each state of a warp, in the order of each crew, as far as the warp may belong to the partition."""
        fixed, partitions = self.instance.partition_of_warp, [0] * self.instance.warps
        ends = list(accumulate(warps for _, _, warps in self.system.warps.crews))
        unnamed = [
            list(range(end - warps, end)) for end, (_, _, warps) in zip(ends, self.system.warps.crews, strict=True)
        ]
        for part, numbers in enumerate(begun):
            self.parts.append([])
            for number in numbers:
                crew = unnamed[self.system.warps.crew(number)]
                warp = next(warp for warp in crew if fixed is None or fixed[warp] == part)
                crew.remove(warp)
                self.parts[part].append((number, warp))
                partitions[warp] = part
        self.partitions = partitions

    def _follow(self, found: ReachedState) -> None:
        """Move the warps as this step does, and put the partitions in the order of the state that it leads to."""
        step = found.step
        if step.cycles:
            issuing = self._move(step.issued, step.cycles)
            self.cycles += [tuple(sorted(issuing)), *[()] * (step.cycles - 1)]
        for passed in step.passed:
            self._move(passed, 0)
        self.parts = [self.parts[part] for part in sorted(range(len(self.parts)), key=found.parts.__getitem__)]

    def _move(self, changes: Sequence[_WarpChange], cycles: int) -> list[int]:
        """Move one warp for each change, let cycles pass for the others, and return the warps that have moved."""
        moving: dict[tuple[int, int], list[_WarpChange]] = {}
        for change in changes:
            moving.setdefault((change.part, change.number), []).append(change)
        moved = []
        for part, warps in enumerate(self.parts):
            for at, (number, warp) in enumerate(warps):
                if not (waiting := moving.get((part, number))):
                    warps[at] = self.system.warps.later(number, cycles), warp
                    continue
                change = waiting.pop()
                moved.append(warp)
                warps[at] = change.move.number, warp
                self.paths[warp].append(self.system.warps.place(number))
                if cycles:
                    self.latencies[warp].append(change.move.latency)
                    self.uses[warp].append(change.uses)
        return moved
