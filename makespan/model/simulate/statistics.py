"""Counts of how a schedule spends its cycles; they are exact and add up.

Every warp spends every cycle in exactly one of the ways of `WarpCycles`, so they sum to warps times makespan. The
counts of one schedule say nothing about another schedule.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from makespan.model.instance import Instance
from makespan.model.lowered import ISSUE_SLOT
from makespan.model.program import BARRIER
from makespan.model.schedule import Schedule
from makespan.model.simulate.floor import Floor, latencies


@dataclass(frozen=True, slots=True)
class ClassUse:
    """The use of one class of units or of one resource.

    Args:
        instructions: the number of warp-instructions that hold one of its ports.
        port_cycles: the cycles in which a port is held before the makespan, summed over its ports.
        offered: the number of ports of all partitions, times the makespan.
    """

    instructions: int
    port_cycles: int
    offered: int


@dataclass(frozen=True, slots=True)
class WarpCycles:
    """The cycles of all warps together, by how they are spent.

    Args:
        issuing: cycles in which an instruction is issued.
        latency: cycles after an issue until its latency or stall has passed and no result is pending that is needed
            next.
        ports: cycles in which a ready warp finds no free port of its class, or else of a resource, by class or
            resource.
        issue_slot: cycles in which a ready warp finds a free port, but the issue width is used up.
        barrier: cycles at a barrier.
        finished: cycles after the end of the warp.
    """

    issuing: int
    latency: int
    ports: dict[str, int]
    issue_slot: int
    barrier: int
    finished: int

    @property
    def total(self) -> int:
        """Return the sum of all cycles: warps times makespan."""
        return self.issuing + self.latency + sum(self.ports.values()) + self.issue_slot + self.barrier + self.finished


@dataclass(frozen=True, slots=True)
class Statistics:
    """The counts of one schedule.

    Args:
        makespan: the makespan in cycles.
        issues: the number of cycles with each number of issues that occurs.
        issue_slots: the issue width of all partitions together, times the makespan. None means no issue width.
        classes: the use of each class and then of each resource, in the order of the machine.
        warps: how the warps spend their cycles.
    """

    makespan: int
    issues: dict[int, int]
    issue_slots: int | None
    classes: dict[str, ClassUse]
    warps: WarpCycles


def statistics(instance: Instance, schedule: Schedule) -> Statistics:
    """Return the counts of a schedule that `replay` accepts. For another schedule they mean nothing."""
    machine, makespan = instance.machine, schedule.makespan
    walk = _CycleCounter(instance, schedule)
    for cycle, executing in enumerate(schedule.cycles):
        walk.step(cycle, executing)
    offered = Counter[str]()
    for pool in walk.floor.pools:
        offered[pool.name] += pool.capacity * makespan
    spent = walk.issued + walk.ports.total() + walk.barrier + walk.finished
    return Statistics(
        makespan=makespan,
        issues=dict(sorted(Counter(map(len, schedule.cycles)).items())),
        issue_slots=offered.get(ISSUE_SLOT),
        classes={
            ports.name: ClassUse(walk.instructions[ports.name], walk.port_cycles[ports.name], offered[ports.name])
            for ports in machine.ports
        },
        warps=WarpCycles(
            issuing=walk.issued,
            # the rest: a warp that neither issues, nor is ready, at a barrier or done waits for a latency
            latency=instance.warps * makespan - spent,
            ports={ports.name: walk.ports[ports.name] for ports in machine.ports},
            issue_slot=walk.ports[ISSUE_SLOT],
            barrier=walk.barrier,
            finished=walk.finished,
        ),
    )


class _CycleCounter:
    """One pass over a schedule, which counts in every cycle what each warp waits for and which ports are taken.

    `ports` counts the cycles of ready warps that do not issue, by what they lack. The empty name is an issue slot.
    """

    def __init__(self, instance: Instance, schedule: Schedule) -> None:
        self.instructions, self.port_cycles, self.ports = Counter[str](), Counter[str](), Counter[str]()
        self.issued = self.barrier = self.finished = 0
        self._makespan = schedule.makespan
        partitions = instance.partition_of_warp or schedule.partitions
        self.floor = Floor.of(instance, schedule.paths, partitions)
        self._names = [pool.name for pool in self.floor.pools]
        self._latencies = [iter(row) for row in schedule.latencies] or _fixed_latencies(instance, schedule)
        self._uses = [iter(row) for row in schedule.uses]

    def step(self, cycle: int, executing: Sequence[int]) -> None:
        """Count one cycle, in which the warps in `executing` issue."""
        floor = self.floor
        if cycle in floor.arrivals or cycle in floor.releases:
            floor.begin(cycle)
        for warp in executing:
            kind = floor.kinds[floor.kind(warp)]
            held = kind.held(next(self._uses[warp])) if self._uses else kind.least
            for pool, cycles in held:
                self.instructions[self._names[pool]] += 1
                self.port_cycles[self._names[pool]] += min(cycles, self._makespan - cycle)
            floor.issue(cycle, warp, next(self._latencies[warp]), held)
        self.issued += len(executing)
        self.barrier += floor.at_barriers
        self.finished += len(floor.at) - floor.unfinished
        for kind_number, waiting in floor.ready.items():
            self.ports[self._lacking(kind_number)] += len(waiting)

    def _lacking(self, number: int) -> str:
        """Return what a ready warp lacks: a port of its class before a resource, and an issue slot last."""
        kind, free = self.floor.kinds[number], self.floor.free
        *slot, (of_class, _) = kind.fixed
        groups = ((of_class,), *kind.uses, *((pool,) for pool, _ in slot))
        return next(self._names[pools[0]] for pools in groups if not any(free[pool] for pool in pools))


def _fixed_latencies(instance: Instance, schedule: Schedule) -> list[Iterator[int]]:
    rows: dict[tuple[int, int], list[int]] = {}
    for program, path in zip(instance.programs(), schedule.paths, strict=True):
        if (id(program), id(path)) not in rows:
            executed = [place for place in path if program.places[place].unit != BARRIER]
            rows[id(program), id(path)] = [most for _, most in latencies(instance.machine, program, executed)]
    keys = zip(map(id, instance.programs()), map(id, schedule.paths), strict=True)
    return [iter(rows[key]) for key in keys]
