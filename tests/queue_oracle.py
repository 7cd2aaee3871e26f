"""Truth for machines with queues, slowly: the rules of docs/model.md, "Queues" and "Lapses", and nothing else.

Only for warps without barriers. Lapses are those of credit, and misses; windows of lines keep warps out as misses do.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import permutations, product
from typing import NamedTuple, TypeVar

from makespan.model.instance import Instance
from makespan.model.lapses import NO_LAPSES
from makespan.model.machine import UnitClass

T = TypeVar("T")

Waiting = tuple[int, int]
"""A warp, and the place of its instruction."""


class QueueState(NamedTuple):
    """The state at the beginning of a cycle.

    Args:
        places: the next place of every warp.
        waits: the cycles until each warp may go on.
        pending: by warp the tokens that were set by what has been served, each with its cycles.
        held: by pool the cycles for which each port in use is still held.
        queues: by partition and queue what waits there, in order.
        credit: the cycles in which each partition may lapse.
        misses: the cycles for which each warp may still be withheld from its next instruction.
    """

    places: tuple[int, ...]
    waits: tuple[int, ...]
    pending: tuple[tuple[tuple[int, int], ...], ...]
    held: tuple[tuple[int, ...], ...]
    queues: tuple[tuple[tuple[Waiting, ...], ...], ...]
    credit: tuple[int, ...]
    misses: tuple[int, ...]


class QueueOracle:
    """All schedules of one instance whose warps belong to these partitions."""

    def __init__(
        self, instance: Instance, partitions: tuple[int, ...], choose: Callable[[Iterable[int]], int] = max
    ) -> None:
        self.choose = choose
        self.instance, self.machine = instance, instance.machine
        self.programs, self.partitions = tuple(instance.programs()), partitions
        self.units = {unit.name: unit for unit in self.machine.units}
        self.queue_of = {unit: at for at, queue in enumerate(self.machine.queues) for unit in queue.units}
        self.longest = cache(self._longest)

    def extreme(self) -> int:
        """The cycles of the longest schedule, or with `min` as `choose` of the shortest one."""
        return self.choose(map(self.longest, self.start_states()))

    def start_states(self) -> list[QueueState]:
        """Every state in which the warps can begin."""
        warps, parts = range(len(self.programs)), range(self.machine.partitions)
        nothing = (0,) * len(warps)
        empty = QueueState(
            nothing,
            nothing,
            ((),) * len(warps),
            ((),) * len(self.machine.pools),
            (((),) * len(self.machine.queues),) * len(parts),
            (0,) * len(parts),
            nothing,
        )
        begun = [empty]
        for warp in warps:
            begun = [self._come(state, warp, at) for state in begun for at in self.programs[warp].starts]
        return begun

    def _longest(self, state: QueueState) -> int:
        if self._is_over(state):
            return 0
        return 1 + self.choose(self.longest(after) for after in set(self.next_states(state)))

    # What a warp waits for

    def _unserved(self, state: QueueState, warp: int) -> list[int]:
        return [at for part in state.queues for queue in part for who, at in queue if who == warp]

    def _pending(self, state: QueueState, warp: int) -> set[int]:
        timings = self.programs[warp].timings
        unserved = {token for at in self._unserved(state, warp) if timings for token in timings[at].sets}
        return unserved | {token for token, _ in state.pending[warp]}

    def _may_go_on(self, state: QueueState, warp: int) -> bool:
        blocks = not self.programs[warp].timings
        return not state.waits[warp] and not (blocks and self._unserved(state, warp))

    def has_ended(self, state: QueueState, warp: int) -> bool:
        """Whether a warp has finished, though something may be in a queue for which it does not wait."""
        is_last = state.places[warp] == self.programs[warp].end
        return is_last and self._may_go_on(state, warp) and not self._pending(state, warp)

    def _is_over(self, state: QueueState) -> bool:
        return all(self.has_ended(state, warp) for warp in range(len(self.programs)))

    def _is_ready(self, state: QueueState, warp: int) -> bool:
        program, at = self.programs[warp], state.places[warp]
        if at == program.end or not self._may_go_on(state, warp):
            return False
        return not (program.timings and self._pending(state, warp) & {*program.timings[at].awaits})

    def _unit(self, warp: int, at: int) -> UnitClass:
        return self.units[self.programs[warp].places[at].unit]

    # Ports

    def _ways(self, held: list[list[int]], warp: int, at: int) -> Iterator[list[list[int]]]:
        """Every way in which an instruction can take its ports besides these."""
        unit, numbers = self._unit(warp, at), self.machine.number_of_pool[self.partitions[warp]]
        needs: list[tuple[tuple[str, ...], int, int]] = [((unit.name,), unit.interval, unit.interval)]
        needs += [(use.resources, use.least, use.most) for use in unit.uses]
        for names in product(*(names for names, _, _ in needs)):
            pools = [numbers[name] for name in names]
            if all(len(held[pool]) < self.machine.pools[pool].capacity for pool in pools):
                for cycles in product(*(range(least, most + 1) for _, least, most in needs)):
                    taken = [[*ports] for ports in held]
                    for pool, count in zip(pools, cycles, strict=True):
                        taken[pool].append(count)
                    yield taken

    def _serve(
        self, state: QueueState, held: list[list[int]], who: Waiting
    ) -> Iterator[tuple[QueueState, list[list[int]]]]:
        warp, at = who
        timings, unit = self.programs[warp].timings, self._unit(warp, at)
        least, most = timings[at].latency if timings else (unit.latency.least, unit.latency.most)
        for taken in self._ways(held, warp, at):
            for latency in range(least, most + 1):
                if timings:
                    own = dict(state.pending[warp])
                    own |= {token: max(latency, own.get(token, 0)) for token in timings[at].sets}
                    yield state._replace(pending=put(state.pending, warp, tuple(sorted(own.items())))), taken
                else:
                    yield state._replace(waits=put(state.waits, warp, latency)), taken

    # A cycle

    def _come(self, state: QueueState, warp: int, at: int) -> QueueState:
        program, part = self.programs[warp], self.partitions[warp]
        lapses = program.lapses[at] if program.lapses and at != program.end else NO_LAPSES
        credit = put(state.credit, part, state.credit[part] + lapses.credit)
        return state._replace(
            places=put(state.places, warp, at), credit=credit, misses=put(state.misses, warp, lapses.misses)
        )

    def next_states(self, state: QueueState) -> Iterator[QueueState]:
        """Every state that may follow."""
        ready = [warp for warp in range(len(self.programs)) if self._is_ready(state, warp)]
        for lapsing in product(*((False, True) if credit else (False,) for credit in state.credit)):
            spent = state._replace(credit=tuple(map(int.__sub__, state.credit, lapsing)))
            able = [warp for warp in ready if not lapsing[self.partitions[warp]]]
            fates = (("issue", "left", "withheld") if state.misses[warp] else ("issue", "left") for warp in able)
            for fate in product(*fates):
                issuing = [warp for warp, what in zip(able, fate, strict=True) if what == "issue"]
                withheld = [warp for warp, what in zip(able, fate, strict=True) if what == "withheld"]
                left = [warp for warp, what in zip(able, fate, strict=True) if what == "left"]
                if self._fits(issuing):
                    misses = tuple(count - (warp in withheld) for warp, count in enumerate(spent.misses))
                    yield from self._issue(spent._replace(misses=misses), issuing, left, lapsing)

    def _fits(self, issuing: list[int]) -> bool:
        return all(self._has_slot(issuing[:number], self.partitions[warp]) for number, warp in enumerate(issuing))

    def _has_slot(self, issuing: list[int], part: int) -> bool:
        width = self.machine.issue_width
        return width is None or sum(self.partitions[warp] == part for warp in issuing) < width

    def _issue(
        self, state: QueueState, issuing: list[int], left: list[int], lapsing: tuple[bool, ...]
    ) -> Iterator[QueueState]:
        queued = [warp for warp in issuing if self._unit(warp, state.places[warp]).name in self.queue_of]
        for order in permutations(queued):
            rows = [[[*queue] for queue in part] for part in state.queues]
            for warp in order:
                at = state.places[warp]
                rows[self.partitions[warp]][self.queue_of[self._unit(warp, at).name]].append((warp, at))
            there = [[tuple(queue) for queue in part] for part in rows]
            waits = list(state.waits)
            for warp in issuing:
                timings = self.programs[warp].timings
                waits[warp] = timings[state.places[warp]].stall if timings else 1
            begun = state._replace(waits=tuple(waits), queues=tuple(tuple(part) for part in there))
            found = [(begun, [[*ports] for ports in state.held])]
            for warp in issuing:
                if warp not in queued:
                    found = [each for now, held in found for each in self._serve(now, held, (warp, state.places[warp]))]
            for part, number in product(range(self.machine.partitions), range(len(self.machine.queues))):
                found = [each for now, held in found for each in self._serve_some(now, held, part, number)]
            for now, held in found:
                if self._is_maximal(there, now, held, left, issuing, lapsing):
                    yield from self._moved(now, held, issuing)

    def _serve_some(
        self, state: QueueState, held: list[list[int]], part: int, number: int
    ) -> Iterator[tuple[QueueState, list[list[int]]]]:
        queue = state.queues[part][number]
        if len(queue) <= self.machine.queues[number].places:
            yield state, held
        if queue:
            rest = put(state.queues, part, put(state.queues[part], number, queue[1:]))
            for now, taken in self._serve(state._replace(queues=rest), held, queue[0]):
                yield from self._serve_some(now, taken, part, number)

    def _is_maximal(
        self,
        there: list[list[tuple[Waiting, ...]]],
        now: QueueState,
        held: list[list[int]],
        left: list[int],
        issuing: list[int],
        lapsing: tuple[bool, ...],
    ) -> bool:
        for part, queues in enumerate(there):
            for number, queue in enumerate(queues):
                is_idle = bool(queue) and now.queues[part][number] == queue and not lapsing[part]
                if is_idle and any(self._ways(held, *queue[0])):
                    return False
        return not any(self._is_owed(there, now, held, warp, issuing) for warp in left)

    def _is_owed(
        self,
        there: list[list[tuple[Waiting, ...]]],
        now: QueueState,
        held: list[list[int]],
        warp: int,
        issuing: list[int],
    ) -> bool:
        """Whether a ready warp that was left out should have issued."""
        part, at = self.partitions[warp], now.places[warp]
        queue = self.queue_of.get(self._unit(warp, at).name)
        if queue is not None and there[part][queue]:
            return False
        if any(rows and told.blocks for rows, told in zip(there[part], self.machine.queues, strict=True)):
            return False
        return self._has_slot(issuing, part) and any(self._ways(held, warp, at))

    def _moved(self, state: QueueState, held: list[list[int]], issuing: list[int]) -> Iterator[QueueState]:
        later = state._replace(
            waits=tuple(max(wait - 1, 0) for wait in state.waits),
            pending=tuple(tuple((token, count - 1) for token, count in own if count > 1) for own in state.pending),
            held=tuple(tuple(sorted(count - 1 for count in ports if count > 1)) for ports in held),
        )
        targets = (self.programs[warp].places[state.places[warp]].successors for warp in issuing)
        for chosen in product(*targets):
            found = later
            for warp, at in zip(issuing, chosen, strict=True):
                found = self._come(found, warp, at)
            yield found


def put(row: tuple[T, ...], at: int, value: T) -> tuple[T, ...]:
    """The same row with another value in one place."""
    return (*row[:at], value, *row[at + 1 :])


def worst_with_queues(instance: Instance) -> int:
    """The cycles of the longest schedule of warps without barriers."""
    return max(QueueOracle(instance, partitions).extreme() for partitions in instance.assignments())


def best_with_queues(instance: Instance) -> int:
    """The cycles of the shortest schedule of warps without barriers."""
    return min(QueueOracle(instance, partitions, min).extreme() for partitions in instance.assignments())
