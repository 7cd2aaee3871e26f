"""Every state of partitions, resources and warps that run ahead, enumerated plainly: the definition, read forwards.

A state has the unfinished warps, sorted, for equal ones are interchangeable, and the ports that are held. A cycle
either brings warps forward, or only lets time pass; so the places to go, and then the cycles to wait, become fewer, and
states handled in this order have all their predecessors behind them. `states` has denser states for basic machines.
"""

from collections.abc import Iterable, Iterator, Sequence
from heapq import heappop, heappush
from itertools import groupby, product
from typing import NamedTuple

from makespan.model.instance import Instance
from makespan.model.program import BARRIER, Program
from makespan.verify.machine_form import issue_holds, numbered_pools, warp_partitions
from makespan.verify.refusal import ProofSteps, TooMuchWork

MOST_BYTES = 1 << 29  # of all states that are kept at one time
MOST_WARPS = 200
_STEPS_PER_STATE = 10
_STEPS_PER_OPTION = 64  # which is kept
_DONE = -1  # the token that stands for all which no place awaits any more; only the end of their warp does
PendingTokens = tuple[tuple[int, int], ...]  # each with the cycles for which it still is pending


class _UnfinishedWarp(NamedTuple):
    """An unfinished warp; `wait` is what is left of its stall, or of its latency if it blocks, in cycles."""

    group: int
    block: int
    partition: int
    place: int
    wait: int = 0
    pending: PendingTokens = ()


class _MultiprocessorState(NamedTuple):
    """The warps, and the cycles for which ports of each pool are held, both sorted."""

    warps: tuple[_UnfinishedWarp, ...]
    held: tuple[tuple[int, ...], ...]

    def order(self, ends: Sequence[int]) -> tuple[int, int]:
        """Return a key that grows with every cycle, so that a heap hands out states after all their predecessors."""
        places = sum(ends[warp.group] - warp.place for warp in self.warps)
        waits = sum(warp.wait + sum(left for _, left in warp.pending) for warp in self.warps)
        return -places, -waits - sum(map(sum, self.held))

    def bytes(self) -> int:
        """Return about how much memory the state takes."""
        return 500 + sum(200 + 100 * len(warp.pending) for warp in self.warps) + 40 * sum(map(len, self.held))


class _IssueOption(NamedTuple):
    """One way to issue: pairs of a pool and the cycles for which a port is held, and the warp after it.

    `after` is None if the warp is left out.
    """

    ports: tuple[tuple[int, int], ...]
    after: _UnfinishedWarp | None


def shortest_and_longest(instance: Instance, most_states: int) -> tuple[int, int] | None:
    """Return the makespans of the shortest and the longest schedule; None after `most_states` states."""
    if instance.warps > MOST_WARPS:
        return None
    work = ProofSteps(_STEPS_PER_STATE * most_states)
    try:
        return _MultiprocessorStates(instance, work).extremes(most_states)
    except TooMuchWork:
        return None


class _MultiprocessorStates:
    """The states of one instance and the steps between them; every step takes from `work`."""

    def __init__(self, instance: Instance, work: ProofSteps) -> None:
        self._instance, self._work = instance, work
        self._programs = [group.program for group in instance.groups]
        self._ends = [program.end for program in self._programs]
        self._awaited = [_tokens_awaited_later(program, work) for program in self._programs]
        machine = instance.machine
        self._latencies = {unit.name: (unit.latency.least, unit.latency.most) for unit in machine.units}
        self._holds = issue_holds(machine)
        pools, self._numbers = numbered_pools(machine)
        self._capacities = [ports for _, ports in pools]
        self._known: dict[_UnfinishedWarp, list[_IssueOption]] = {}

    def extremes(self, most_states: int) -> tuple[int, int]:
        """Return the makespans of the shortest and the longest of all schedules, in cycles.

        Raises:
            TooMuchWork: there are too many states, or they take too much memory.
        """
        reached = dict.fromkeys(self._starts(), (0, 0))
        heap = sorted((state.order(self._ends), state) for state in reached)
        left, room = most_states - len(heap), MOST_BYTES - sum(state.bytes() for state in reached)
        while left >= 0 and room >= 0:
            _, state = heappop(heap)
            shortest, longest = reached.pop(state)
            if not state.warps:
                return shortest, longest
            room += state.bytes()
            cycles, states = self._after(state)
            for after in states:
                if (before := reached.get(after)) is None:
                    left -= 1
                    room -= after.bytes()
                    heappush(heap, (after.order(self._ends), after))
                    before = shortest + cycles, longest + cycles
                reached[after] = min(before[0], shortest + cycles), max(before[1], longest + cycles)
        raise TooMuchWork

    # Before the first cycle

    def _starts(self) -> set[_MultiprocessorState]:
        instance = self._instance
        labels = [
            (group, block) for group, block in zip(instance.group_of_warp(), instance.block_of_warp(), strict=True)
        ]
        held = ((),) * len(self._capacities)
        found = set[_MultiprocessorState]()
        for spread in self._assignments(labels):
            warps = [
                [_UnfinishedWarp(*label, part, start) for start in self._programs[label[0]].starts]
                for part, of_partition in enumerate(spread)
                for label in of_partition
            ]
            for begun in self._counted(product(*warps)):
                found |= self._settled(begun, held)
        return found

    def _assignments(self, labels: Sequence[tuple[int, int]]) -> Iterable[tuple[tuple[tuple[int, int], ...], ...]]:
        """Yield every way to spread warps over partitions; with `any` partitions are alike, so each only once."""
        parts = self._instance.machine.partitions
        if (fixed := warp_partitions(self._instance)) is not None:
            rows = list(zip(labels, fixed, strict=True))
            return [tuple(tuple(label for label, own in rows if own == part) for part in range(parts))]
        most = -(-len(labels) // parts)
        found: set[tuple[tuple[tuple[int, int], ...], ...]] = {((),) * parts}
        for label in labels:
            further = set()
            for spread in found:
                self._work.spend(parts * len(labels))
                for part, own in enumerate(spread):
                    if len(own) < most:
                        further.add(tuple(sorted((*spread[:part], (*own, label), *spread[part + 1 :]))))
            found = further
        return [spread for spread in found if max(map(len, spread)) - min(map(len, spread)) <= 1]

    # A cycle

    def _after(self, state: _MultiprocessorState) -> tuple[int, set[_MultiprocessorState]]:
        """Return the cycles until a next state, and all states that may follow then."""
        free = [capacity - len(ports) for capacity, ports in zip(self._capacities, state.held, strict=True)]
        ready = {warp: self._options(warp) for warp in state.warps}
        able = [warp for warp in state.warps if any(_fits(option, free) for option in ready[warp])]
        if not able:
            times = [cycles for ports in state.held for cycles in ports]
            times += [warp.wait for warp in state.warps if warp.wait]
            times += [cycles for warp in state.warps for _, cycles in warp.pending]
            # no warp can issue before something passes, so all cycles until the first such event are skipped
            return min(times), self._passed(state.warps, state.held, min(times))
        found, room = set[_MultiprocessorState](), MOST_BYTES
        idle = [warp for warp in state.warps if not ready[warp]]
        several = [warp for warp in state.warps if ready[warp]]
        for issued in self._ways(several, ready, free):
            held = [list(ports) for ports in state.held]
            warps = idle.copy()
            for warp, option in zip(several, issued, strict=True):
                warps.append(warp if option.after is None else option.after)
                for pool, cycles in option.ports:
                    held[pool].append(cycles)
            for after in self._passed(warps, [tuple(ports) for ports in held], 1) - found:
                found.add(after)
                room -= after.bytes()
            if room < 0:
                raise TooMuchWork
        return 1, found

    def _ways(
        self, warps: Sequence[_UnfinishedWarp], options: dict[_UnfinishedWarp, list[_IssueOption]], free: list[int]
    ) -> Iterator[list[_IssueOption]]:
        """Yield every way to issue, or not, in which no warp that is left out could issue besides."""
        # Equal warps are neighbours in `warps`; of them only one order of options is tried.
        out = _IssueOption((), None)

        def choose(at: int, first: int, taken: list[_IssueOption]) -> Iterator[list[_IssueOption]]:
            self._work.spend()
            if at == len(warps):
                # work conservation, by definition: with all that was taken, no option of a warp left out may fit
                left_out = {warp for warp, option in zip(warps, taken, strict=True) if option.after is None}
                if not any(_fits(option, free) for warp in left_out for option in options[warp]):
                    yield taken
                return
            ways = options[warps[at]]
            if at and warps[at] != warps[at - 1]:
                first = -1
            for number in range(first, len(ways)):
                option = ways[number] if number >= 0 else out
                if _fits(option, free):
                    for pool, _ in option.ports:
                        free[pool] -= 1
                    yield from choose(at + 1, number, [*taken, option])
                    for pool, _ in option.ports:
                        free[pool] += 1

        return choose(0, -1, [])

    def _options(self, warp: _UnfinishedWarp) -> list[_IssueOption]:
        place = self._place(warp)
        if place is None or place == BARRIER:
            return []
        if warp not in self._known:
            self._known[warp] = list(self._issues(warp))
        return self._known[warp]

    def _place(self, warp: _UnfinishedWarp) -> str | None:
        """Return the class of its instruction, or a barrier; None while it waits."""
        program = self._programs[warp.group]
        if warp.wait or warp.place == program.end:
            return None
        if program.timings and any(token in program.timings[warp.place].awaits for token, _ in warp.pending):
            return None
        return program.places[warp.place].unit

    def _issues(self, warp: _UnfinishedWarp) -> Iterator[_IssueOption]:
        program, numbers = self._programs[warp.group], self._numbers[warp.partition]
        name, successors = program.places[warp.place]
        timing = program.timings[warp.place] if program.timings else None
        least, most = timing.latency if timing else self._latencies[name]
        ports = [
            [(numbers[pool], cycles) for pool in hold.pools for cycles in range(hold.least, hold.most + 1)]
            for hold in self._holds[name]
        ]
        # all that the adversary may choose: latency, path, and for each hold the pool and the cycles
        went = product(range(least, most + 1), successors)
        for (latency, target), held in ((way, held) for way in went for held in product(*ports)):
            self._work.spend(_STEPS_PER_OPTION)
            pending = dict(warp.pending)
            for token in timing.sets if timing else ():
                pending[token] = max(latency, pending.get(token, 0))
            after = warp._replace(
                place=target, wait=timing.stall if timing else latency, pending=tuple(sorted(pending.items()))
            )
            yield _IssueOption(held, after)

    def _passed(
        self, warps: Iterable[_UnfinishedWarp], held: Iterable[tuple[int, ...]], cycles: int
    ) -> set[_MultiprocessorState]:
        """Return the states that these warps and ports can be in after some cycles without another issue."""
        ports = tuple(tuple(sorted(left - cycles for left in own if left > cycles)) for own in held)
        return self._settled([self._later(warp, cycles) for warp in warps], ports)

    def _later(self, warp: _UnfinishedWarp, cycles: int) -> _UnfinishedWarp:
        pending: dict[int, int] = {}
        for token, left in warp.pending:
            if left > cycles:
                kept = token if token in self._awaited[warp.group][warp.place] else _DONE
                pending[kept] = max(left - cycles, pending.get(kept, 0))
        self._work.spend()
        return warp._replace(wait=max(0, warp.wait - cycles), pending=tuple(sorted(pending.items())))

    def _settled(
        self, warps: Iterable[_UnfinishedWarp], held: tuple[tuple[int, ...], ...]
    ) -> set[_MultiprocessorState]:
        """Return the states once finished warps have left, and all barriers have opened that can."""
        found = set[_MultiprocessorState]()
        waiting = [list(warps)]
        while waiting:
            unfinished = [
                warp for warp in waiting.pop() if warp.place < self._ends[warp.group] or warp.wait or warp.pending
            ]
            self._work.spend(1 + len(unfinished))
            blocks = groupby(sorted(unfinished, key=lambda warp: warp.block), key=lambda warp: warp.block)
            opened = next((block for block, own in blocks if all(self._place(warp) == BARRIER for warp in own)), None)
            if opened is None:
                found.add(_MultiprocessorState(tuple(sorted(unfinished)), held if unfinished else ()))
                continue
            steps = [
                [warp._replace(place=after) for after in self._programs[warp.group].places[warp.place].successors]
                if warp.block == opened
                else [warp]
                for warp in unfinished
            ]
            different = {tuple(sorted(passed)) for passed in self._counted(product(*steps))}
            waiting += [[self._later(warp, 0) for warp in passed] for passed in different]
        return found

    def _counted(self, ways: Iterable[tuple[_UnfinishedWarp, ...]]) -> Iterator[tuple[_UnfinishedWarp, ...]]:
        for way in ways:
            self._work.spend(16 * (1 + len(way)))
            yield way


def _fits(option: _IssueOption, free: Sequence[int]) -> bool:
    return all(free[pool] for pool, _ in option.ports)


def _tokens_awaited_later(program: Program, work: ProofSteps) -> list[frozenset[int]]:
    """Return for every place, and the end, the tokens that are awaited there or later."""
    found = [frozenset[int]()] * (program.end + 1)
    for at in range(len(program.timings) - 1, -1, -1):
        later = [found[after] for after in program.places[at].successors]
        awaits = program.timings[at].awaits
        work.spend(1 + 16 * sum(map(len, later)))
        found[at] = later[0] if len(later) == 1 and later[0] >= set(awaits) else frozenset(awaits).union(*later)
    return found
