"""The state of an SM, cycle by cycle, for a caller that says which warps issue.

The floor knows when a warp is ready, which ports its instruction needs and which are free. It does not judge who
should issue: `replay` takes that from a schedule, and a policy decides it.
"""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from types import MappingProxyType
from typing import NamedTuple, Self

from makespan.model.instance import Instance
from makespan.model.lowered import LoweredMachine, Reservation
from makespan.model.machine import Machine, SchedulerPromise
from makespan.model.program import BARRIER, InstructionTiming, Program

HeldPort = tuple[int, int]
"""The number of a pool, and the cycles for which one of its ports is held, from the one of issue on."""

_AT_BARRIER, _AT_END = -1, -2
_NONE: Mapping[int, int] = MappingProxyType({})


class PortNeeds(NamedTuple):
    """The ports that an instruction needs in one partition; pools are numbered as in `LoweredMachine.pools`.

    Args:
        unit: the name of its class.
        fixed: the ports that it holds whatever a schedule says: an issue slot, if there is an issue width, and then
            the port of its class.
        uses: for each use the pools, of which it holds a port of one.
        least: all that it holds of the first pools and for the least cycles, which is all there is without a choice.
        all_of: the pools that must all have a free port.
        one_of: groups of pools, of each of which one must have a free port.
    """

    unit: str
    fixed: tuple[HeldPort, ...]
    uses: tuple[tuple[int, ...], ...]
    least: tuple[HeldPort, ...]
    all_of: tuple[int, ...]
    one_of: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, reservation: Reservation, numbers: Mapping[str, int]) -> Self:
        """Return what an instruction needs in the partition in which pools have these numbers."""
        groups = [tuple(numbers[name] for name in hold.pools) for hold in reservation.holds]
        fixed = tuple((numbers[hold.pools[0]], hold.most) for hold in reservation.fixed)
        least = tuple((pools[0], hold.least) for pools, hold in zip(groups, reservation.holds, strict=True))
        all_of = tuple(pools[0] for pools in groups if len(pools) == 1)
        one_of = tuple(pools for pools in groups if len(pools) > 1)
        return cls(reservation.unit, fixed, tuple(groups[len(fixed) :]), least, all_of, one_of)

    def held(self, chosen: Iterable[tuple[int, int]]) -> tuple[HeldPort, ...]:
        """Return what an instruction holds that chooses for each use which of the pools, and for how many cycles."""
        used = zip(self.uses, chosen, strict=True)
        return (*self.fixed, *((pools[which], cycles) for pools, (which, cycles) in used))


class Walk(NamedTuple):
    """The path of a warp: the kind of every place on it, and its timing where the warp runs ahead."""

    kinds: Sequence[int]
    timings: Sequence[InstructionTiming]


class Floor:
    """Warps on their walks: `begin` every cycle in which something happens, then `issue`.

    The floor is empty at first. Warps have numbers from 0 and are `put` there; a number may be used again once its
    warp has finished.

    Args:
        machine: the machine of the SM.
        warps: the largest number of warps that are there at the same time.
    """

    def __init__(self, machine: Machine, warps: int) -> None:
        lowered = LoweredMachine.of(machine)
        self.kinds = [PortNeeds.of(each, own) for each in lowered.by_class.values() for own in lowered.numbers]
        self.pools, self.free = lowered.pools, [pool.capacity for pool in lowered.pools]
        self.ready: dict[int, dict[int, int]] = {}
        """For every kind that some warp is ready for: these warps in the order in which they came, with the cycle."""
        self.arrivals = defaultdict[int, list[int]](list)
        self.releases = defaultdict[int, list[int]](list)
        self.unfinished, self.at_barriers = 0, 0
        self.at = [0] * warps
        self.withheld = set[int]()
        """The warps that are withheld in the last cycle in which some were."""
        self.ended = list[int]()
        """The blocks whose warps have all finished, in the order in which they did."""
        self._is_fair = machine.scheduler is SchedulerPromise.FAIR
        self._walks = [Walk((_AT_END,), ())] * warps
        self._until: list[dict[int, int]] = [{} for _ in range(warps)]
        """Tokens, with the cycle from which on they are not pending."""
        self._block = [0] * warps
        self._running, self._waiting = Counter[int](), defaultdict[int, list[int]](list)

    @classmethod
    def of(cls, instance: Instance, paths: Sequence[Sequence[int]], partitions: Sequence[int]) -> Self:
        """Return the floor of an instance, whose warps all come in cycle 0, with these paths (barriers included)."""
        floor = cls(instance.machine, instance.warps)
        rows = walks(instance.machine, instance.programs(), paths, partitions)
        for warp, (walk, block) in enumerate(zip(rows, instance.block_of_warp(), strict=True)):
            floor.put(0, warp, walk, block)
        return floor

    def put(self, cycle: int, warp: int, walk: Walk, block: int) -> None:
        """Put a warp on the floor from a cycle on; its number is new, or that of a warp that has finished."""
        self._walks[warp], self.at[warp], self._until[warp], self._block[warp] = walk, 0, {}, block
        self.arrivals[cycle].append(warp)
        self._running[block] += 1
        self.unfinished += 1

    def state(self, cycle: int) -> Hashable:
        """Return, before a cycle begins, all that matters from then on but the walks, with cycles counted from it."""

        def events(by_cycle: dict[int, list[int]]) -> Hashable:
            return tuple(sorted((then - cycle, tuple(sorted(numbers))) for then, numbers in by_cycle.items()))

        pending = (((token, then - cycle) for token, then in until.items() if then > cycle) for until in self._until)
        waiting = self.ready.values() if self._is_fair else ()
        return (
            tuple(self.at),
            events(self.arrivals),
            events(self.releases),
            tuple(tuple(sorted(tokens)) for tokens in pending),
            tuple(sorted((warp, since - cycle) for own in waiting for warp, since in own.items())),
        )

    def shift(self, cycles: int) -> None:
        """Move the whole state to a later time by this number of cycles."""

        def later(by_cycle: dict[int, list[int]]) -> defaultdict[int, list[int]]:
            return defaultdict(list, {then + cycles: numbers for then, numbers in by_cycle.items()})

        self.arrivals, self.releases = later(self.arrivals), later(self.releases)
        self._until = [{token: then + cycles for token, then in until.items()} for until in self._until]
        self.ready = {
            kind: {warp: since + cycles for warp, since in waiting.items()} for kind, waiting in self.ready.items()
        }

    def begin(self, cycle: int, late: Mapping[int, int] = _NONE) -> None:
        """Begin a cycle, before any warp issues: free ports that are due, and let warps come to their next places.

        Args:
            cycle: counted from 0.
            late: the warps that are withheld in this cycle, each with the place where it is, counted along its path:
                if it could be ready there, or arrive at a barrier, it comes there in the next cycle.
        """
        # ports are free before warps are ready, so that a port is taken again in the cycle after its last one
        for pool in self.releases.pop(cycle, ()):
            self.free[pool] += 1
        if late:
            self.withheld.clear()
            self._withhold(cycle, chain.from_iterable(self.ready.values()), late)
        ready, coming = self.ready, self.arrivals.pop(cycle, None)
        # a barrier takes no time: who passes one may stand at the next one, or at its end, in the same cycle
        while coming:
            blocks = set[int]()
            if late:
                coming = self._withhold(cycle, coming, late)
            for warp in coming:
                kind = self._walks[warp].kinds[self.at[warp]]
                if kind < 0:
                    blocks.add(self._stop(warp, kind))
                elif kind in ready:
                    ready[kind][warp] = cycle
                else:
                    ready[kind] = {warp: cycle}
            coming = [warp for block in blocks for warp in self._passing(block)]
            for warp in coming:
                self.at[warp] += 1
            coming = [warp for warp in coming if self._is_there(cycle, warp)]

    def _withhold(self, cycle: int, coming: Iterable[int], late: Mapping[int, int]) -> list[int]:
        """Let those of these warps that are late come in the next cycle, and return the others."""
        others = list[int]()
        for warp in tuple(coming):
            if late.get(warp) != self.at[warp]:
                others.append(warp)
                continue
            kind = self.kind(warp)
            if kind in self.ready:
                self.ready[kind].pop(warp, None)
                if not self.ready[kind]:
                    del self.ready[kind]
            self.arrivals[cycle + 1].append(warp)
            self.withheld.add(warp)
        return others

    def _stop(self, warp: int, kind: int) -> int:
        """Note that a warp waits at a barrier or has finished, and return its block: others may wait for that."""
        block = self._block[warp]
        if kind == _AT_BARRIER:
            self._waiting[block].append(warp)
            self.at_barriers += 1
        else:
            self._running[block] -= 1
            self.unfinished -= 1
            if not self._running[block]:
                self.ended.append(block)
        return block

    def _passing(self, block: int) -> list[int]:
        """Return the warps that pass the barrier of a block now; none while a running warp has not come to it."""
        if len(self._waiting[block]) < self._running[block]:
            return []
        passing, self._waiting[block] = self._waiting[block], []
        self.at_barriers -= len(passing)
        return passing

    def _is_there(self, cycle: int, warp: int) -> bool:
        """Return whether a warp behind a barrier may be at its next place now; else let it come there later."""
        then = self._awaited(warp, cycle)
        if then > cycle:
            self.arrivals[then].append(warp)
        return then == cycle

    def _awaited(self, warp: int, cycle: int) -> int:
        """Return the first cycle from `cycle` on in which no token is pending that the warp awaits where it stands."""
        timings, until, at = self._walks[warp].timings, self._until[warp], self.at[warp]
        if not timings or not until:
            return cycle
        if at == len(timings):
            return max(cycle, *until.values())
        for token in timings[at].awaits:
            if until.get(token, 0) > cycle:
                cycle = until[token]
        return cycle

    def kind(self, warp: int) -> int:
        """Return the kind of what a warp executes next; negative where it stands at a barrier or at its end."""
        return self._walks[warp].kinds[self.at[warp]]

    def has_finished(self, warp: int) -> bool:
        """Return whether the path of a warp is at its end."""
        return self.kind(warp) == _AT_END

    def fits(self, kind: int) -> bool:
        """Return whether all ports are free that an instruction needs."""
        free, needs = self.free, self.kinds[kind]
        for pool in needs.all_of:
            if not free[pool]:
                return False
        return not needs.one_of or all(any(free[pool] for pool in pools) for pools in needs.one_of)

    def fitting(self) -> int | None:
        """Return a kind of which a warp is ready and could issue now; None if there is none."""
        free, kinds = self.free, self.kinds
        for kind in self.ready:
            for pool in kinds[kind].all_of:
                if not free[pool]:
                    break
            else:
                if self.fits(kind):
                    return kind
        return None

    def issue(self, cycle: int, warp: int, latency: int, held: Iterable[HeldPort]) -> int | None:
        """Let a ready warp issue, and return the first pool that it needs a port of while none is free, or None."""
        walk = self._walks[warp]
        kind = walk.kinds[self.at[warp]]
        ready, free, releases = self.ready[kind], self.free, self.releases
        del ready[warp]
        if not ready:
            del self.ready[kind]
        for pool, cycles in held:
            if not free[pool]:
                return pool
            free[pool] -= 1
            releases[cycle + cycles].append(pool)
        self.at[warp] += 1
        then = cycle + latency
        if walk.timings:
            timing, until = walk.timings[self.at[warp] - 1], self._until[warp]
            # an earlier instruction may have set the same token for longer, which then stays pending
            for token in timing.sets:
                if until.get(token, 0) < then:
                    until[token] = then
            then = self._awaited(warp, cycle + timing.stall)
        self.arrivals[then].append(warp)
        return None


def walks(
    machine: Machine, programs: Iterable[Program], paths: Sequence[Sequence[int]], partitions: Sequence[int]
) -> list[Walk]:
    """Return the walk of every warp, given its program, path and partition; equal paths are read once."""
    parts = machine.partitions
    lowered = LoweredMachine.of(machine)
    first = {reservation: number * parts for number, reservation in enumerate(lowered.by_class.values())}
    rows: dict[tuple[int, int, int], Walk] = {}
    found = []
    for program, path, part in zip(programs, paths, partitions, strict=True):
        key = id(program), id(path), part
        if key not in rows:
            executed = (lowered.reservation(program, place) for place in path)
            kinds = [*(_AT_BARRIER if each.unit == BARRIER else first[each] + part for each in executed), _AT_END]
            rows[key] = Walk(kinds, [program.timings[place] for place in path] if program.timings else ())
        found.append(rows[key])
    return found


def latencies(machine: Machine, program: Program, places: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Return the least and the largest latency of what stands at these places; of a barrier (0, 0)."""
    lowered = LoweredMachine.of(machine)
    return (lowered.latency(program, place) for place in places)
