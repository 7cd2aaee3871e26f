"""Where all warps stand and which ports are free, cycle by cycle, as somebody says who issues.

The floor knows when a warp is ready and what its instruction needs; whether those who issue are the right ones is the
business of who drives it: `replay` asks it of a schedule, a policy decides it.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from makespan.instance import Instance
from makespan.machine import Machine
from makespan.program import BARRIER, Program

Held = tuple[int, int]
"""A port of the pool with this number, for so many cycles from the one of issue on."""

_AT_BARRIER, _AT_END = -1, -2


class Kind(NamedTuple):
    """What an instruction of one class needs in one partition; pools by number, the issue slots of partitions last.

    Args:
        unit: the name of the class.
        holds: the issue slot, if there is an issue width, and the port of its class.
        uses: for each use of the class its pools, of which it holds a port of one.
        fixed: what it holds where no use leaves a choice.
        all_of: pools that must all have a free port.
        one_of: groups of pools, of each of which one must have a free port.
    """

    unit: str
    holds: tuple[Held, ...]
    uses: tuple[tuple[int, ...], ...]
    fixed: tuple[Held, ...]
    all_of: tuple[int, ...]
    one_of: tuple[tuple[int, ...], ...]

    def held(self, chosen: Iterable[tuple[int, int]]) -> tuple[Held, ...]:
        """What an instruction holds that chooses, for each use, which of the resources, and for how many cycles."""
        used = zip(self.uses, chosen, strict=True)
        return (*self.holds, *((pools[which], cycles) for pools, (which, cycles) in used))


class Floor:
    """The warps on their paths, from cycle 0 on: `begin` every cycle in which something `happens`, then `issue`.

    Args:
        instance: what runs.
        paths: for every warp the places that it visits, barriers included.
        partitions: for every warp its partition.
    """

    def __init__(self, instance: Instance, paths: Sequence[Sequence[int]], partitions: Sequence[int]) -> None:
        machine, programs = instance.machine, tuple(instance.programs())
        self.kinds = _kinds(instance)
        self.free = [pool.capacity for pool in machine.pools]
        self.free += [machine.issue_width or instance.warps] * machine.partitions
        self.ready: dict[int, dict[int, int]] = {}
        """For every kind for which somebody is ready: who, in the order in which they came, since which cycle."""
        self.arrivals = defaultdict[int, list[int]](list, {0: list(range(len(programs)))})
        self.releases = defaultdict[int, list[int]](list)
        self.unfinished, self.at_barriers = len(programs), 0
        self.at = [0] * len(programs)
        self._kinds_of = _rows(instance, paths, partitions)
        self._timings = [
            [program.timings[place] for place in path] if program.timings else None
            for program, path in zip(programs, paths, strict=True)
        ]
        self._until: list[dict[int, int]] = [{} for _ in programs]  # tokens, with the cycle from which on they are not
        self._block = instance.block_of_warp()
        self._running = Counter(self._block)
        self._waiting: dict[int, list[int]] = {block: [] for block in range(instance.blocks)}

    def begin(self, cycle: int) -> None:
        """Before anybody issues in a cycle: ports are free again, and warps come to their next places."""
        for pool in self.releases.pop(cycle, ()):
            self.free[pool] += 1
        ready, coming = self.ready, self.arrivals.pop(cycle, None)
        while coming:
            blocks = set[int]()
            for warp in coming:
                kind = self._kinds_of[warp][self.at[warp]]
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

    def _stop(self, warp: int, kind: int) -> int:
        """A warp waits at a barrier or has finished; the block in which others may wait for that."""
        block = self._block[warp]
        if kind == _AT_BARRIER:
            self._waiting[block].append(warp)
            self.at_barriers += 1
        else:
            self._running[block] -= 1
            self.unfinished -= 1
        return block

    def _passing(self, block: int) -> list[int]:
        """Who passes the barrier of a block now."""
        if len(self._waiting[block]) < self._running[block]:
            return []
        passing, self._waiting[block] = self._waiting[block], []
        self.at_barriers -= len(passing)
        return passing

    def _is_there(self, cycle: int, warp: int) -> bool:
        """Whether no token keeps a warp that has passed a barrier from its next place; else it comes there later."""
        then = self._awaited(warp, cycle)
        if then > cycle:
            self.arrivals[then].append(warp)
        return then == cycle

    def _awaited(self, warp: int, cycle: int) -> int:
        """The first cycle from `cycle` on in which no token is pending that the warp awaits where it stands."""
        timings, until, at = self._timings[warp], self._until[warp], self.at[warp]
        if timings is None or not until:
            return cycle
        if at == len(timings):
            return max(cycle, *until.values())
        for token in timings[at].awaits:
            if until.get(token, 0) > cycle:
                cycle = until[token]
        return cycle

    def kind(self, warp: int) -> int:
        """The kind of what a warp executes next; negative where it stands at a barrier or at its end."""
        return self._kinds_of[warp][self.at[warp]]

    def has_finished(self, warp: int) -> bool:
        """Whether the path of a warp is at its end."""
        return self.kind(warp) == _AT_END

    def fits(self, kind: int) -> bool:
        """Whether all ports are free that an instruction needs."""
        free, needs = self.free, self.kinds[kind]
        for pool in needs.all_of:
            if not free[pool]:
                return False
        return not needs.one_of or all(any(free[pool] for pool in pools) for pools in needs.one_of)

    def fitting(self) -> int | None:
        """A kind of which somebody is ready and could issue now; None if there is none."""
        free, kinds = self.free, self.kinds
        for kind in self.ready:
            for pool in kinds[kind].all_of:
                if not free[pool]:
                    break
            else:
                if self.fits(kind):
                    return kind
        return None

    def issue(self, cycle: int, warp: int, latency: int, held: Iterable[Held]) -> int | None:
        """A warp that is ready issues; the first pool of which it needs a port while none is free, if there is one."""
        kind = self._kinds_of[warp][self.at[warp]]
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
        if (timings := self._timings[warp]) is not None:
            timing, until = timings[self.at[warp] - 1], self._until[warp]
            for token in timing.sets:
                if until.get(token, 0) < then:
                    until[token] = then
            then = self._awaited(warp, cycle + timing.stall)
        self.arrivals[then].append(warp)
        return None


def _kinds(instance: Instance) -> list[Kind]:
    """For every class, and in it every partition, what its instructions need."""
    machine = instance.machine
    pools = machine.pools
    kinds = []
    for unit in machine.units:
        for partition in range(machine.partitions):
            numbers = {pool.name: n for n, pool in enumerate(pools) if pool.partition in (None, partition)}
            slot = () if machine.issue_width is None else ((len(pools) + partition, 1),)
            holds = (*slot, (numbers[unit.name], unit.interval))
            uses = tuple(tuple(numbers[name] for name in use.resources) for use in unit.uses)
            fixed = *holds, *((numbers[use.resources[0]], use.least) for use in unit.uses)
            sole = (own[0] for own in uses if len(own) == 1)
            one_of = tuple(own for own in uses if len(own) > 1)
            kinds.append(Kind(unit.name, holds, uses, fixed, (*(pool for pool, _ in holds), *sole), one_of))
    return kinds


def _rows(instance: Instance, paths: Sequence[Sequence[int]], partitions: Sequence[int]) -> list[list[int]]:
    """For every warp the kinds of what it visits; equal paths are read once."""
    parts = instance.machine.partitions
    numbers = {name: number * parts for number, name in enumerate(instance.machine.capacities)}
    rows: dict[tuple[int, int, int], list[int]] = {}
    found = []
    for program, path, part in zip(instance.programs(), paths, partitions, strict=True):
        key = id(program), id(path), part
        if key not in rows:
            units = (program.places[place].unit for place in path)
            rows[key] = [*(_AT_BARRIER if unit == BARRIER else numbers[unit] + part for unit in units), _AT_END]
        found.append(rows[key])
    return found


def latencies(machine: Machine, program: Program, places: Iterable[int]) -> Iterator[tuple[int, int]]:
    """The least and the largest latency of what stands at these places; of a barrier (0, 0)."""
    ranges = {unit.name: (unit.latency.least, unit.latency.most) for unit in machine.units} | {BARRIER: (0, 0)}
    for place in places:
        yield program.timings[place].latency if program.timings else ranges[program.places[place].unit]
