"""Lower bounds of every schedule, the shortest one too, for the checker: a warp alone, and the busiest ports."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import zip_longest

from makespan.model.gpu import GpuInstance
from makespan.model.instance import Instance
from makespan.model.machine import UnitClass, WarpAssignment
from makespan.model.program import BARRIER, Program
from makespan.verify import machine_form as form
from makespan.verify.paths import along, total
from makespan.verify.refusal import ProofSteps, TooMuchWork

MOST_STEPS = 5_000_000
_Clocks = dict[int | str, int]
"""The earliest cycle in which a token is there, or a pool with one port, by name, is free."""


def least_makespan(instance: Instance) -> int:
    """Return cycles that no schedule falls short of; if phases take too long, of warps alone only their latencies."""
    latencies = {unit.name: unit.latency.least for unit in instance.machine.units}
    blocking = (group.program for group in instance.groups if not group.program.timings)
    found = [1, *_busy(instance), *(total(program, latencies, min) for program in blocking)]
    try:
        work = ProofSteps(MOST_STEPS)
        rows = [list(_phases(instance, group.program, work)) for group in instance.groups]
        found.append(sum(map(max, zip_longest(*rows, fillvalue=0))))  # a barrier waits for the slowest
    except TooMuchWork:
        pass
    return max(found)


def least_with_queues(instance: Instance) -> int:
    """Return cycles that no schedule falls short of where instructions go through queues."""
    # A warp may end while its instructions wait there, so no port is busy for sure; but its stalls pass, or latencies.
    units = {unit.name: unit for unit in instance.machine.units}
    programs = [group.program for group in instance.groups]
    stalls = [[timing.stall for timing in form.place_timings(program, units, longest=False)] for program in programs]
    return max(1, *(along(program, own, min) for program, own in zip(programs, stalls, strict=True)))


def least_makespan_of_gpu(gpu: GpuInstance) -> int:
    """Return cycles that no schedule of a whole GPU falls short of."""
    # Some slot gets its share of all blocks, one after another, and some SM its share. Of several grids, what blocks
    # take of a resource they keep for as long as they are there.
    machine = replace(gpu.machine, assignment=WarpAssignment.ANY)  # the warps of a later block may be in any partitions
    blocks = [Instance.merged(grid.block, machine) for grid in gpu.grids]
    alone = [least_makespan(block) for block in blocks]
    found = []
    for grid, block, least in zip(gpu.grids, blocks, alone, strict=True):
        found.append(least * -(-grid.blocks // (gpu.sms * gpu.most_resident(grid))))
        found += _busy(block, _crew(grid.block, -(-grid.blocks // gpu.sms)))
    for number, room in enumerate(gpu.room):
        kept = sum(grid.blocks * grid.takes[number] * least for grid, least in zip(gpu.grids, alone, strict=True))
        found.append(-(-kept // (gpu.sms * room)))
    everybody = sum((_crew(grid.block, grid.blocks) for grid in gpu.grids), Counter[Program]())
    found += _busy(Instance.merged([(program, 1) for program in everybody], machine), everybody, gpu.sms)
    return max(found)


def _crew(block: Iterable[tuple[Program, int]], blocks: int) -> Counter[Program]:
    found = Counter[Program]()
    for program, warps in block:
        found[program] += warps * blocks
    return found


def _phases(instance: Instance, program: Program, work: ProofSteps) -> Iterator[int]:
    """Yield the least time of each phase of a warp alone, as long as no path has ended before."""
    walk = _LeastTimes(instance, program, work)
    begins, least = set(program.starts), [0]
    while begins and not walk.has_ended:
        begins, least = walk.phase(begins)
        yield min(least)


class _LeastTimes:
    """The max-plus system of theorem 1S with lower ends, and with minima where paths join: a lower bound of each.

    Attributes:
        has_ended: whether some path has come to the end of the program.
    """

    def __init__(self, instance: Instance, program: Program, work: ProofSteps) -> None:
        self._program, self._work = program, work
        units, capacity = {unit.name: unit for unit in instance.machine.units}, form.pool_capacities(instance.machine)
        self._timings = form.place_timings(program, units, longest=False)
        # only a pool that each instruction of the class takes a port of, and that has no other port, is waited for
        holds = {
            name: [hold for hold in form.class_holds(unit) if len(hold.pools) == 1] for name, unit in units.items()
        }
        self._held = {
            name: {hold.pools[0]: hold.least for hold in sure if capacity[hold.pools[0]] == 1}
            for name, sure in holds.items()
        }
        self.has_ended = False

    def phase(self, begins: Iterable[int]) -> tuple[set[int], list[int]]:
        """Return where the next phase begins, and the times after which a warp may come to the end of this one."""
        program, states = self._program, {begin: (0, _Clocks()) for begin in begins}
        least, behind = list[int](), set[int]()
        for at in range(min(states), program.end):
            if at not in states:
                continue
            arrival, clocks = states.pop(at)
            unit, successors = program.places[at]
            self._work.spend(1 + len(clocks) * len(successors))
            issue = max((arrival, *(clocks.get(token, 0) for token in self._timings[at].awaits)))
            if unit == BARRIER:
                least.append(issue)
                behind.update(successors)
                continue
            arrival, clocks = self._issued(at, issue, clocks)
            for target in successors:
                states[target] = _either(states.get(target), arrival, clocks)
        if program.end in states:
            arrival, clocks = states[program.end]
            least.append(max((arrival, *(cycle for key, cycle in clocks.items() if isinstance(key, int)))))
            self.has_ended = True
        return behind, least

    def _issued(self, at: int, ready: int, clocks: _Clocks) -> tuple[int, _Clocks]:
        """Return the cycle in which a warp may go on from its place, and what it may wait for then."""
        timing, held = self._timings[at], self._held[self._program.places[at].unit]
        issue = max((ready, *(clocks.get(name, 0) for name in held)))
        new = clocks | {name: issue + cycles for name, cycles in held.items()}
        for token in timing.sets:
            new[token] = max(issue + timing.latency[0], clocks.get(token, 0))
        return issue + timing.stall, new


def _either(before: tuple[int, _Clocks] | None, arrival: int, clocks: _Clocks) -> tuple[int, _Clocks]:
    """Return what holds on both ways to a place: what only one of them waits for is dropped."""
    if before is None:
        return arrival, dict(clocks)
    both = {key: min(cycle, clocks[key]) for key, cycle in before[1].items() if key in clocks}
    return min(before[0], arrival), both


def _busy(instance: Instance, crew: Mapping[Program, int] | None = None, sms: int = 0) -> Iterator[int]:
    """Yield how long gates are busy with the instructions that need a port of them, in all partitions and in one.

    Args:
        instance: gives the machine, and the warps.
        crew: by program the number of warps that all partitions have instead of those of the instance.
        sms: the number of SMs to which the partitions belong; 0 means one, where one partition gets its share for sure.
    """
    units, every = form.used_units(instance), form.issue_holds(instance.machine)
    tails = {name: _tail(instance, unit) for name, unit in units.items()}
    needs = [(name, hold) for name in units for hold in every[name]]
    for gate in dict.fromkeys(hold.gate for _, hold in needs):
        users = {name: tails[name] for name, hold in needs if hold.gate <= gate}
        interval, tail = min(hold.least for _, hold in needs if hold.gate <= gate), min(users.values())
        for count, ports in _loads(instance, gate, dict.fromkeys(users, 1), crew, sms):
            # some port has ceil(count / ports) issues one after another, and the last of them is `tail` before the end
            if count:
                yield (-(-count // ports) - 1) * interval + tail


def _loads(
    instance: Instance, gate: form.PoolGate, work: Mapping[str, int], crew: Mapping[Program, int] | None, sms: int
) -> Iterator[tuple[int, int]]:
    """Yield pairs: how many instructions of the classes of `work` need a port of a gate at least, and its ports."""
    machine = instance.machine
    capacity, shared = form.pool_capacities(machine), form.shared_pools(machine)
    least = [total(group.program, work, min) for group in instance.groups]
    warps = [group.warps if crew is None else crew[group.program] for group in instance.groups]
    everywhere = sum(capacity[name] * (1 if name in shared else machine.partitions) for name in gate)
    yield sum(map(int.__mul__, warps, least)), everywhere * max(1, sms)
    if not gate & shared and not sms:
        yield _busiest(instance, least), sum(capacity[name] for name in gate)


def _tail(instance: Instance, unit: UnitClass) -> int:
    """Return how long a warp goes on at least once it has issued an instruction of a class."""
    found = []
    for program in (group.program for group in instance.groups if unit.name in group.program.units):
        if not program.timings:
            found.append(unit.latency.least)
        for place, timing in zip(program.places, program.timings, strict=False):
            if place.unit == unit.name:
                found.append(max(timing.stall, timing.latency[0] if timing.sets else 0))
    return min(found)


def _busiest(instance: Instance, work: list[int]) -> int:
    """Return what some partition has to do at least, if each warp of a group has so much `work`."""
    parts, loads = instance.machine.partitions, [work[group] for group in instance.group_of_warp()]
    if (fixed := form.warp_partitions(instance)) is not None:
        found = [0] * parts
        for part, own in zip(fixed, loads, strict=True):
            found[part] += own
        return max(found)
    seats = -(-len(loads) // parts)  # in the fullest partition, whoever has them
    return sum(sorted(loads)[:seats])
