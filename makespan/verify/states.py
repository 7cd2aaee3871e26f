"""Every state that a work-conserving schedule can reach, enumerated plainly: the definition, read forwards.

A state says how many warps are in each situation, and how many ports of each pool are held for how many more cycles. It
is one integer: a sum to which each warp and each port adds a unit of its own. A unit has a bit in the field of its
situation, and in the low bits a *rank*, what is left of it to do. Every cycle lowers the rank of the state: a warp
comes forward, or only time passes, and then there is less to wait for. So handling states in falling order of their
ranks sees all predecessors of a state before it. Once all warps have finished the state is 0.

A cycle is two choices, as definition has them. First, which ways to issue are taken, and how often, such that no way is
left for a warp that is ready (`_ways`). Then, which of the warps that are ready for them issue, and what the adversary
chooses for each of them (`_changes`). A warp that waits chooses its next place only when it comes there.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from itertools import chain, combinations_with_replacement, product, repeat
from typing import NamedTuple, TypeVar

from makespan.model.instance import Instance
from makespan.model.machine import DELAY
from makespan.model.program import BARRIER, Program
from makespan.model.result import Upper
from makespan.verify.machine_form import PoolHold, issue_holds, numbered_pools, warp_partitions
from makespan.verify.refusal import ProofSteps, TooMuchWork
from makespan.verify.rule import ClaimedBound, Extremes, ProofRule, ProvePieces

MOST_BYTES = 1 << 29  # of all states that are kept at one time; those of long programs take kilobytes each
MOST_BITS = 1 << 22  # of one state
_STEPS_PER_STATE = 40
_Chosen = TypeVar("_Chosen")
_DONE = -1  # the token that stands for all which no place awaits any more; only the end of their warp does


class WarpsAtPlace(NamedTuple):
    """A number of warps of a group that stand at the same place."""

    group: int
    place: int
    warps: int


class WarpSituation(NamedTuple):
    """The situation of an unfinished warp.

    Args:
        group: its group; likewise its `block`, as far as there are barriers, and its `partition`.
        place: the place where it stands, or whose instruction it has issued if it waits.
        wait: the cycles of its stall or latency that are left, after which it comes to a successor; 0 if it stands.
        pending: its tokens, each with the cycles for which it is still pending.
    """

    group: int
    block: int
    partition: int
    place: int
    wait: int = 0
    pending: tuple[tuple[int, int], ...] = ()


class BusyPort(NamedTuple):
    """A port of a pool, by its number, that is held for so many more cycles."""

    pool: int
    cycles: int


class IssuePools(NamedTuple):
    """The pools of each of which a way to issue takes a port, and all that these ports may add to the next state."""

    pools: tuple[int, ...]
    held: tuple[int, ...]


class _ReadyWarps(NamedTuple):
    """Warps that are ready for the same: the ways in which each may issue, and pairs of a field and its warps."""

    ways: tuple[IssuePools, ...]
    warps: list[tuple[int, int]]

    @property
    def total(self) -> int:
        return sum(count for _, count in self.warps)


class StateWalker:
    """The states of one instance, and the steps between them; every step takes from `work`."""

    def __init__(self, instance: Instance, work: ProofSteps) -> None:
        self.instance, self._work = instance, work
        self._programs = [group.program for group in instance.groups]
        self._awaited = [_tokens_awaited_later(program, work) for program in self._programs]
        machine = instance.machine
        self._latencies = {unit.name: (unit.latency.least, unit.latency.most) for unit in machine.units}
        self._holds = issue_holds(machine)
        self._pools, self._numbers = numbered_pools(machine)
        ports = [count for _, count in self._pools]
        self._bits = max(instance.warps, *ports).bit_length()
        # `_time` is more than all cycles that can be left of latencies, stalls and holds: what warps have to do counts
        # so often that a step which brings one of them forward lowers the rank, whatever it begins to wait for
        self._time = 1 + instance.warps * self._longest_wait() + sum(ports) * self._longest_hold()
        places = max(program.end for program in self._programs)
        self._rank_bits = (instance.warps * (2 * places + 2) * self._time).bit_length()
        self._units: dict[WarpSituation | BusyPort, int] = {}
        self._warp_of: dict[int, WarpSituation] = {}  # by the number of its field
        self._port_of: dict[int, BusyPort] = {}
        self._later_of: dict[tuple[int, int], list[int]] = {}
        self._issued_of: dict[int, list[int]] = {}
        self._ways_of: dict[int, tuple[IssuePools, ...]] = {}

    def _longest_wait(self) -> int:
        longest = max(most for _, most in self._latencies.values())
        timings = [timing for program in self._programs for timing in program.timings]
        tokens = {token for timing in timings for token in timing.sets}
        return max([longest, *(max(timing.stall, timing.latency[1]) for timing in timings)]) * (2 + len(tokens))

    def _longest_hold(self) -> int:
        return max(hold.most for holds in self._holds.values() for hold in holds)

    # A state and what is in it

    def rank(self, state: int) -> int:
        """Return what is left to do in a state; every cycle lowers it."""
        return state & (1 << self._rank_bits) - 1

    def most_states(self) -> int:
        """Return how many states may be kept at one time, as large as they are by now."""
        return MOST_BYTES // (len(self._units) * self._bits // 8 + 100)

    def standing(self, state: int) -> Iterator[WarpsAtPlace]:
        """Yield where the unfinished warps of a state are, of which none waits."""
        for number, count in self._counts(state):
            self._work.spend()
            if (warp := self._warp_of.get(number)) is not None:
                yield WarpsAtPlace(warp.group, warp.place, count)

    def held(self, state: int) -> dict[str, list[int]]:
        """Return for every class with an interval how many ports are held for 1, 2, ... more cycles."""
        counts = {self._port_of[number]: count for number, count in self._counts(state) if number in self._port_of}
        numbers = self._numbers[0]
        return {
            unit.name: [counts.get(BusyPort(numbers[unit.name], h), 0) for h in range(1, unit.interval)]
            for unit in self.instance.machine.units
            if unit.interval > 1
        }

    def _counts(self, state: int) -> Iterator[tuple[int, int]]:
        """Yield the number of every field that is not 0, and its count."""
        rest, ones = state >> self._rank_bits, (1 << self._bits) - 1
        step = rest.bit_length() >> 14  # arithmetic of long integers takes longer
        while rest:
            if step:
                self._work.spend(step)
            number = ((rest & -rest).bit_length() - 1) // self._bits
            count = rest >> self._bits * number & ones
            rest -= count << self._bits * number
            yield number, count

    def _unit(self, thing: WarpSituation | BusyPort) -> int:
        """Return what a warp in this situation, or such a port, adds to a state."""
        if (unit := self._units.get(thing)) is None:
            number = len(self._units)
            first = self._rank_bits + self._bits * number
            if first > MOST_BITS:
                raise TooMuchWork
            if isinstance(thing, BusyPort):
                self._port_of[number], rank = thing, thing.cycles
            else:
                self._warp_of[number] = thing
                ahead = 2 * (self._programs[thing.group].end - thing.place) + (thing.wait == 0)
                rank = ahead * self._time + thing.wait + sum(cycles for _, cycles in thing.pending)
            unit = self._units[thing] = (1 << first) + rank
        return unit

    def _unit_of_warp(self, warp: WarpSituation) -> int:
        """Return what a warp adds to a state: nothing once it has finished."""
        # a token that no place awaits any more matters only to the end of the warp
        program, awaited = self._programs[warp.group], self._awaited[warp.group]
        after = program.places[warp.place].successors if warp.wait else (warp.place,)
        pending: dict[int, int] = {}
        for token, cycles in warp.pending:
            kept = token if any(token in awaited[place] for place in after) else _DONE
            pending[kept] = max(cycles, pending.get(kept, 0))
        if warp.place == program.end and not pending:
            return 0
        return self._unit(warp._replace(pending=tuple(sorted(pending.items()))))

    def _unit_of_class(self, warp: WarpSituation) -> str | None:
        """Return the class of the instruction for which a warp is ready, or a barrier; None while it waits."""
        program = self._programs[warp.group]
        if warp.wait or warp.place == program.end:
            return None
        if program.timings and any(token in program.timings[warp.place].awaits for token, _ in warp.pending):
            return None
        return program.places[warp.place].unit

    # Before the first cycle

    def starts(self) -> set[int]:
        """Return all states before the first cycle."""
        instance = self.instance
        blocks = instance.block_of_warp() if instance.has_barriers else [0] * instance.warps
        found = set[int]()
        for spread in self.assignments(list(zip(instance.group_of_warp(), blocks, strict=True))):
            states = {0}
            for part, of_partition in enumerate(spread):
                for (group, block), warps in Counter(of_partition).items():
                    begun = [WarpSituation(group, block, part, start) for start in self._programs[group].starts]
                    states = self._sum(states, self._sums(list(map(self._unit_of_warp, begun)), warps))
            found |= states
        return self._settled(found)

    def assignments(self, labels: Sequence[tuple[int, int]]) -> Iterable[tuple[tuple[tuple[int, int], ...], ...]]:
        """Yield every way to spread warps over partitions; with `any` partitions are alike, so each only once."""
        parts = self.instance.machine.partitions
        if (fixed := warp_partitions(self.instance)) is not None:
            rows: list[list[tuple[int, int]]] = [[] for _ in range(parts)]
            for label, part in zip(labels, fixed, strict=True):
                rows[part].append(label)
            return [tuple(map(tuple, rows))]
        most = -(-len(labels) // parts)
        found: set[tuple[tuple[tuple[int, int], ...], ...]] = {((),) * parts}
        for label in labels:
            self._work.spend(len(found) * parts * len(labels))
            found = {
                tuple(sorted((*spread[:part], (*own, label), *spread[part + 1 :])))
                for spread in found
                for part, own in enumerate(spread)
                if len(own) < most
            }
        return [spread for spread in found if max(map(len, spread)) - min(map(len, spread)) <= 1]

    # A cycle

    def after(self, state: int, *, skips: bool = False) -> tuple[int, set[int]]:
        """Return the cycles until a next state, and all states that may follow then.

        That is one cycle; one that `skips` goes on to the next in which something changes, if no warp can issue before.
        """
        ports: list[tuple[BusyPort, int]] = []
        waiting: list[tuple[int, int]] = []
        ready: dict[tuple[IssuePools, ...], _ReadyWarps] = {}
        free = [count for _, count in self._pools]
        for number, count in self._counts(state):
            self._work.spend()
            if (port := self._port_of.get(number)) is not None:
                free[port.pool] -= count
                ports.append((port, count))
            elif ways := self._ways_to_issue(number):
                ready.setdefault(ways, _ReadyWarps(ways, [])).warps.append((number, count))
            else:
                waiting.append((number, count))
        able = any(_fits(way, free) for ways in ready for way in ways)
        cycles = 1 if able or not skips else self._next_event(ports, waiting, ready.values())
        passed = sum(count * self._unit(BusyPort(p.pool, p.cycles - cycles)) for p, count in ports if p.cycles > cycles)
        states = {passed}
        for number, count in waiting:
            states = self._sum(states, self._sums(self._later(number, cycles), count))
        return cycles, self._settled(self._issues(states, list(ready.values()), free, cycles))

    def _next_event(
        self, ports: Iterable[tuple[BusyPort, int]], waiting: Iterable[tuple[int, int]], ready: Iterable[_ReadyWarps]
    ) -> int:
        """Return the cycles until a port is free, a wait is over, or a result is there."""
        times = [port.cycles for port, _ in ports]
        for number, _ in chain(waiting, *(each.warps for each in ready)):
            warp = self._warp_of[number]
            times += [cycles for _, cycles in warp.pending]
            times += [warp.wait] if warp.wait else [1] * (self._unit_of_class(warp) == DELAY)
        return min(times)

    def _issues(self, states: set[int], ready: list[_ReadyWarps], free: list[int], cycles: int) -> set[int]:
        """Return the states once some of the ready warps have issued, in every work-conserving way."""
        known: dict[tuple[int, int], set[int]] = {}
        found = set[int]()
        for issued, taken in self._ways(ready, free):
            reached = states
            for way, count in taken.items():
                reached = self._sum(reached, self._sums(way.held, count))
            for key in enumerate(issued):
                if key not in known:
                    known[key] = self._changes(ready[key[0]], key[1], cycles)
                reached = self._sum(reached, known[key])
            found |= reached
            self._check_memory(len(found))
        return found

    def _ways(
        self, ready: list[_ReadyWarps], free: list[int]
    ) -> Iterator[tuple[tuple[int, ...], Mapping[IssuePools, int]]]:
        """Yield how many of the warps of each kind issue, and how many issue in each way."""
        rows = [(number, way) for number, each in enumerate(ready) for way in each.ways]
        issued, counts = [0] * len(ready), [each.total for each in ready]
        # the rows that are taken never fall, so that each choice comes once; rows may be too many for a recursion
        taken, at = list[int](), 0
        while True:
            self._work.spend()
            if at < len(rows):
                number, way = rows[at]
                if issued[number] < counts[number] and _fits(way, free):
                    taken.append(at)
                    issued[number] += 1
                    _take(way, free, 1)
                else:
                    at += 1
                continue
            # work conservation, by definition: no way may be free for a warp that is left out
            if not any(map(_is_left_out, ready, issued, repeat(free))):
                yield tuple(issued), Counter(rows[row][1] for row in taken)
            if not taken:
                return
            at = taken.pop()
            number, way = rows[at]
            issued[number] -= 1
            _take(way, free, -1)
            at += 1

    def _changes(self, ready: _ReadyWarps, issuing: int, cycles: int) -> set[int]:
        """Return what these warps add to the next state, if so many of them issue, chosen in every way."""
        behind = ready.total
        ways: dict[int, set[int]] = {0: {0}}  # by the number of issues so far
        for number, count in ready.warps:
            behind -= count
            further = defaultdict[int, set[int]](set)
            for issued, sums in ways.items():
                for n in range(max(0, issuing - issued - behind), min(count, issuing - issued) + 1):
                    own = self._sums(self._issued(number), n)
                    own = self._sum(own, self._sums(self._later(number, cycles), count - n)) if n < count else own
                    further[issued + n] |= self._sum(sums, own)
                    self._check_memory(sum(map(len, further.values())))
            ways = further
        return ways[issuing]

    def _ways_to_issue(self, number: int) -> tuple[IssuePools, ...]:
        """Return the ways in which a warp may issue: for each hold of its instruction a pool."""
        if number not in self._ways_of:
            warp = self._warp_of[number]
            unit = self._unit_of_class(warp)
            holds = [] if unit in (None, BARRIER, DELAY) else self._holds[str(unit)]
            numbers = self._numbers[warp.partition]
            ports = [[self._port(numbers[name], hold) for name in hold.pools] for hold in holds]
            ways = self._limited(product(*ports)) if holds else ()
            self._ways_of[number] = tuple(map(self._joined, ways))
        return self._ways_of[number]

    def _port(self, pool: int, hold: PoolHold) -> IssuePools:
        """Return a port that is held for each number of cycles that may be chosen, as part of a way to issue."""
        self._work.spend(hold.most - hold.least + 1)
        after = range(hold.least - 1, hold.most)
        return IssuePools((pool,), tuple(self._unit(BusyPort(pool, cycles)) if cycles else 0 for cycles in after))

    def _joined(self, ports: Iterable[IssuePools]) -> IssuePools:
        pools, held = zip(*ports, strict=True)
        return IssuePools(tuple(chain(*pools)), tuple(map(sum, self._limited(product(*held)))))

    def _issued(self, number: int) -> list[int]:
        """Return what a warp may add to the state after the cycle in which it issues, for all that may be chosen."""
        if number not in self._issued_of:
            warp = self._warp_of[number]
            program = self._programs[warp.group]
            timing = program.timings[warp.place] if program.timings else None
            least, most = timing.latency if timing else self._latencies[program.places[warp.place].unit]
            found = dict[int, None]()
            for latency in range(least, most + 1):
                pending = dict(warp.pending)
                for token in timing.sets if timing else ():
                    pending[token] = max(latency, pending.get(token, 0))
                wait = timing.stall if timing else latency
                issued = warp._replace(wait=wait, pending=tuple(sorted(pending.items())))
                found |= dict.fromkeys(self._passed(issued, 1))
            self._issued_of[number] = list(found)
        return self._issued_of[number]

    def _later(self, number: int, cycles: int) -> list[int]:
        """Return what a warp that does not issue may add to the state some cycles later."""
        key = number, cycles
        if key not in self._later_of:
            warp = self._warp_of[number]
            # a warp on a delay needs nothing, and always moves on
            moves = self._unit_of_class(warp) == DELAY
            self._later_of[key] = self._passed(warp._replace(wait=1) if moves else warp, cycles)
        return self._later_of[key]

    def _passed(self, warp: WarpSituation, cycles: int) -> list[int]:
        self._work.spend(1 + len(warp.pending))
        pending = tuple((token, left - cycles) for token, left in warp.pending if left > cycles)
        later = warp._replace(wait=max(0, warp.wait - cycles), pending=pending)
        return self._onward(later) if 0 < warp.wait <= cycles else [self._unit_of_warp(later)]

    def _onward(self, warp: WarpSituation) -> list[int]:
        """Return what a warp may add to the state that comes to a successor of its place now."""
        successors = self._programs[warp.group].places[warp.place].successors
        self._check_memory(len(successors))
        return list(dict.fromkeys(self._unit_of_warp(warp._replace(place=after)) for after in successors))

    def _settled(self, states: set[int]) -> set[int]:
        """Return the states once all blocks have passed whose unfinished warps all stand at barriers."""
        if not self.instance.has_barriers:
            return self._dropped(states)
        settled, waiting = set[int](), list(states)
        while waiting:
            state = waiting.pop()
            self._work.spend()
            blocks: dict[int, list[tuple[WarpSituation, int]]] = {}
            for number, count in self._counts(state):
                if (warp := self._warp_of.get(number)) is not None:
                    blocks.setdefault(warp.block, []).append((warp, count))
            held = (own for own in blocks.values() if all(self._unit_of_class(warp) == BARRIER for warp, _ in own))
            if (passing := next(held, None)) is None:
                settled.add(state)
                continue
            further = {state - sum(count * self._unit(warp) for warp, count in passing)}
            for warp, count in passing:
                further = self._sum(further, self._sums(self._onward(warp), count))
            waiting += further
            self._check_memory(len(waiting) + len(settled))
        return self._dropped(settled)

    def _dropped(self, states: set[int]) -> set[int]:
        """Return the states, 0 for all in which every warp has finished, whatever ports are held then."""
        return {state if self.rank(state) >= self._time else 0 for state in states}

    # Sums

    def _sum(self, states: set[int], changes: set[int]) -> set[int]:
        self._work.spend((1 + (len(self._units) * self._bits >> 14)) * len(states) * len(changes))
        self._check_memory(len(states) * len(changes))
        if changes == {0}:
            return states
        return {before + change for before in states for change in changes}

    def _sums(self, units: Sequence[int], count: int) -> set[int]:
        """Return the different sums of `count` of these units, each as often as one likes."""
        if len(units) == 1:
            return {count * units[0]}
        return set(map(sum, self._limited(combinations_with_replacement(units, count))))

    def _limited(self, ways: Iterable[tuple[_Chosen, ...]]) -> Iterator[tuple[_Chosen, ...]]:
        for number, way in enumerate(ways):
            self._work.spend(1 + len(way))
            self._check_memory(number)
            yield way

    def _check_memory(self, states: int) -> None:
        if states > self.most_states():
            raise TooMuchWork


def _take(way: IssuePools, free: list[int], times: int) -> None:
    for pool in way.pools:
        free[pool] -= times


def _is_left_out(ready: _ReadyWarps, issued: int, free: Sequence[int]) -> bool:
    return issued < ready.total and any(_fits(way, free) for way in ready.ways)


def _fits(way: IssuePools, free: Sequence[int]) -> bool:
    return all(map(free.__getitem__, way.pools))


def _tokens_awaited_later(program: Program, work: ProofSteps) -> list[frozenset[int]]:
    """Return for every place, and the end, the tokens that are awaited there or later."""
    found = [frozenset[int]()] * (program.end + 1)
    for at in range(len(program.timings) - 1, -1, -1):
        later = [found[after] for after in program.places[at].successors]
        awaits = program.timings[at].awaits
        work.spend(1 + 16 * sum(map(len, later)))
        found[at] = later[0] if len(later) == 1 and later[0] >= set(awaits) else frozenset(awaits).union(*later)
    return found


def shortest_and_longest(instance: Instance, most_states: int) -> tuple[int, int] | None:
    """Return the makespans of the shortest and the longest schedule, in cycles; None after `most_states` states."""
    try:
        walker = StateWalker(instance, ProofSteps(_STEPS_PER_STATE * most_states))
        return _extremes(walker, most_states)
    except TooMuchWork:
        return None


def _extremes(walker: StateWalker, most_states: int) -> tuple[int, int]:
    reached = dict.fromkeys(walker.starts(), (0, 0))
    heap = sorted((-walker.rank(state), state) for state in reached)
    left = most_states - len(heap)
    while left >= 0 and len(reached) <= walker.most_states():
        _, state = heappop(heap)  # all that lead to the state of the highest rank have been handled
        shortest, longest = reached.pop(state)
        if not state:
            return shortest, longest
        cycles, states = walker.after(state, skips=True)
        for after in states:
            if (before := reached.get(after)) is None:
                left -= 1
                heappush(heap, (-walker.rank(after), after))
                before = shortest + cycles, longest + cycles
            reached[after] = min(before[0], shortest + cycles), max(before[1], longest + cycles)
    raise TooMuchWork


def front(walker: StateWalker, cycles: int, most_states: int) -> tuple[set[int], int]:
    """Return all states with unfinished warps after `cycles`, and the longest schedule that ended by then, or 0.

    Raises:
        TooMuchWork: more than `most_states` states after some cycle, or more than fit into memory.
    """
    states, ended = walker.starts(), 0
    for cycle in range(1, cycles + 1):
        if not states:
            break
        reached = set[int]()
        for state in states:
            reached |= walker.after(state)[1]
            if len(reached) > min(most_states, walker.most_states()):
                raise TooMuchWork
        if 0 in reached:
            reached.remove(0)
            ended = cycle
        states = reached
    return states, ended


def _prove(claim: ClaimedBound, _: ProvePieces) -> Extremes:
    found = shortest_and_longest(claim.instance, claim.most_states)
    if found is None:
        raise TooMuchWork
    return Extremes(*found)


RULE = ProofRule(Upper.SEARCH, "enumeration of all states", _prove, may_fall_short=True, is_last=True)
