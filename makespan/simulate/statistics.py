"""What a schedule does with its cycles: counts that are exact and add up.

Every warp spends every cycle in one of the ways that `WarpCycles` lists, so these sum to warps times makespan. What a
schedule spends says nothing of what another one would.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from makespan.instance import Instance
from makespan.machine import UnitClass
from makespan.program import BARRIER
from makespan.schedule import Schedule


@dataclass(frozen=True, slots=True)
class ClassUse:
    """What becomes of one class of units.

    Args:
        instructions: warp-instructions issued to it.
        port_cycles: cycles in which a port is held, summed over its ports; what is held past the makespan is left out.
        offered: ports times makespan.
    """

    instructions: int
    port_cycles: int
    offered: int


@dataclass(frozen=True, slots=True)
class WarpCycles:
    """How the warps spend their cycles, summed over the warps.

    Args:
        issuing: the cycle in which an instruction is issued.
        latency: the cycles after it until its latency has passed.
        ports: ready, but all ports of its class are held, by class.
        issue_slot: ready, and a port is free, but the issue width is used up.
        barrier: waiting at a barrier.
        finished: after its end.
    """

    issuing: int
    latency: int
    ports: dict[str, int]
    issue_slot: int
    barrier: int
    finished: int

    @property
    def total(self) -> int:
        """Warps times makespan."""
        return self.issuing + self.latency + sum(self.ports.values()) + self.issue_slot + self.barrier + self.finished


@dataclass(frozen=True, slots=True)
class Statistics:
    """Counts of one schedule.

    Args:
        makespan: in cycles.
        issues: how many cycles issue so many instructions, by their number; those that occur.
        issue_slots: issue width times makespan; None without an issue width.
        classes: by class, in the order of the machine.
        warps: how the warps spend their cycles.
    """

    makespan: int
    issues: dict[int, int]
    issue_slots: int | None
    classes: dict[str, ClassUse]
    warps: WarpCycles


def statistics(instance: Instance, schedule: Schedule) -> Statistics:
    """Count what a schedule does that `replay` accepts; of another one the counts mean nothing."""
    walk = _Walk(instance, schedule)
    for cycle, executing in enumerate(schedule.cycles):
        walk.step(cycle, executing)
    walk.arrive(schedule.makespan)
    width, units = instance.machine.issue_width, instance.machine.units
    return Statistics(
        makespan=schedule.makespan,
        issues=dict(sorted(Counter(map(len, schedule.cycles)).items())),
        issue_slots=None if width is None else width * schedule.makespan,
        classes={
            unit.name: ClassUse(walk.issued[unit.name], walk.port_cycles[unit.name], unit.capacity * schedule.makespan)
            for unit in units
        },
        warps=WarpCycles(
            issuing=walk.issued.total(),
            latency=walk.latency,
            ports={unit.name: walk.ports[unit.name] for unit in units},
            issue_slot=walk.issue_slot,
            barrier=walk.barrier,
            finished=sum(schedule.makespan - cycle for cycle in walk.ends),
        ),
    )


class _Walk:
    """One pass over a schedule: who arrives where in which cycle, and which ports are held."""

    def __init__(self, instance: Instance, schedule: Schedule) -> None:
        self.issued, self.port_cycles, self.ports = Counter[str](), Counter[str](), Counter[str]()
        self.latency = self.issue_slot = self.barrier = 0
        self.ends: list[int] = []
        self._units = {unit.name: unit for unit in instance.machine.units}
        self._letters = list(_letters(instance, schedule))
        self._latencies = [iter(own) for own in _latencies(self._units, schedule, self._letters)]
        self._done = [0] * len(self._letters)
        self._ready, self._held = Counter[str](), Counter[str]()
        self._releases: dict[str, deque[tuple[int, int]]] = {name: deque() for name in self._units}
        self._arrivals = defaultdict[int, list[int]](list, {0: list(range(len(self._letters)))})
        self._block = instance.block_of_warp()
        self._running = Counter(self._block)
        self._waiting = defaultdict[int, list[tuple[int, int]]](list)

    def step(self, cycle: int, executing: Iterable[int]) -> None:
        """One cycle."""
        self.arrive(cycle)
        now = Counter[str]()
        for warp in executing:
            letter = self._letters[warp][self._done[warp]]
            latency = next(self._latencies[warp])
            self._done[warp] += 1
            self._arrivals[cycle + latency].append(warp)
            self.latency += latency - 1
            now[letter] += 1
        self._ready -= now
        self.issued += now
        for name, unit in self._units.items():
            self._hold(cycle, unit, now[name])
            if self._held[name] == unit.capacity:
                self.ports[name] += self._ready[name]
            else:
                self.issue_slot += self._ready[name]

    def _hold(self, cycle: int, unit: UnitClass, issued: int) -> None:
        """Which ports are held in this cycle, after those that are free again."""
        releases = self._releases[unit.name]
        while releases and releases[0][0] <= cycle:
            self._held[unit.name] -= releases.popleft()[1]
        if issued:
            self._held[unit.name] += issued
            releases.append((cycle + unit.interval, issued))
        self.port_cycles[unit.name] += self._held[unit.name]

    def arrive(self, cycle: int) -> None:
        """Warps come to their next place: ready, at a barrier, or at their end."""
        coming = deque(self._arrivals.pop(cycle, ()))
        while coming:
            warp = coming.popleft()
            letters, block = self._letters[warp], self._block[warp]
            letter = letters[self._done[warp]] if self._done[warp] < len(letters) else None
            if letter is None:
                self._running[block] -= 1
                self.ends.append(cycle)
            elif letter == BARRIER:
                self._waiting[block].append((warp, cycle))
            else:
                self._ready[letter] += 1
                continue
            if len(self._waiting[block]) == self._running[block]:
                for passing, since in self._waiting.pop(block, ()):
                    self.barrier += cycle - since
                    self._done[passing] += 1
                    coming.append(passing)


def _letters(instance: Instance, schedule: Schedule) -> Iterator[tuple[str, ...]]:
    """The class of every place on the path of every warp, barriers included; equal paths are read once."""
    rows: dict[tuple[int, int], tuple[str, ...]] = {}
    for program, path in zip(instance.programs(), schedule.paths, strict=True):
        key = id(program), id(path)
        if key not in rows:
            rows[key] = tuple(program.places[place].unit for place in path)
        yield rows[key]


def _latencies(
    units: dict[str, UnitClass], schedule: Schedule, letters: list[tuple[str, ...]]
) -> Iterable[Iterable[int]]:
    """For every warp the latencies of its instructions, in order."""
    if schedule.latencies:
        return schedule.latencies
    return ([units[letter].latency.most for letter in own if letter != BARRIER] for own in letters)
