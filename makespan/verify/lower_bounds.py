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
from makespan.verify.paths import total
from makespan.verify.refusal import ProofSteps, TooMuchWork

MOST_STEPS = 5_000_000
_Clocks = dict[
    int | str, int
]  # the earliest cycle in which a token is there, or a pool with one port, by name, is free


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
    # It is the max-plus system of theorem 1S with lower ends, and with minima where paths join: a lower bound of each.
    units = {unit.name: unit for unit in instance.machine.units}
    capacity, timings = form.pool_capacities(instance.machine), form.place_timings(program, units, longest=False)
    begins, ended = set(program.starts), False
    while begins and not ended:
        states: dict[int, tuple[int, _Clocks]] = {begin: (0, {}) for begin in begins}
        least, begins = list[int](), set[int]()
        for at in range(min(states), program.end):
            if at not in states:
                continue
            arrival, clocks = states.pop(at)
            place = program.places[at]
            work.spend(1 + len(clocks) * len(place.successors))
            issue = max((arrival, *(clocks.get(token, 0) for token in timings[at].awaits)))
            if place.unit == BARRIER:
                least.append(issue)
                begins.update(place.successors)
                continue
            # only a pool that each instruction of the class takes a port of, and that has no other port, is waited for
            sure = [hold for hold in form.class_holds(units[place.unit]) if len(hold.pools) == 1]
            held = {hold.pools[0]: hold.least for hold in sure if capacity[hold.pools[0]] == 1}
            issue = max((issue, *(clocks.get(name, 0) for name in held)))
            new = clocks | {name: issue + cycles for name, cycles in held.items()}
            for token in timings[at].sets:
                new[token] = max(issue + timings[at].latency[0], clocks.get(token, 0))
            for target in place.successors:
                states[target] = _either(states.get(target), issue + timings[at].stall, new)
        if program.end in states:
            arrival, clocks = states[program.end]
            least.append(max((arrival, *(cycle for key, cycle in clocks.items() if isinstance(key, int)))))
            ended = True
        yield min(least)


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
    machine, units = instance.machine, form.used_units(instance)
    capacity, shared, every = form.pool_capacities(machine), form.shared_pools(machine), form.issue_holds(machine)
    holds: dict[str, list[form.PoolHold]] = {name: every[name] for name in units}
    tails = {name: _tail(instance, unit) for name, unit in units.items()}
    for gate in dict.fromkeys(hold.gate for one in holds.values() for hold in one):
        kept = {unit: [hold.least for hold in one if hold.gate <= gate] for unit, one in holds.items()}
        users = [unit for unit, cycles in kept.items() if cycles]
        interval, tail = min(min(kept[unit]) for unit in users), min(tails[unit] for unit in users)
        work = [total(group.program, dict.fromkeys(users, 1), min) for group in instance.groups]
        everywhere = sum(capacity[name] * (1 if name in shared else machine.partitions) for name in gate)
        warps = [group.warps if crew is None else crew[group.program] for group in instance.groups]
        loads = [(sum(count * own for count, own in zip(warps, work, strict=True)), everywhere * max(1, sms))]
        if not gate & shared and not sms:
            loads.append((_busiest(instance, work), sum(capacity[name] for name in gate)))
        for count, ports in loads:
            # some port has ceil(count / ports) issues one after another, and the last of them is `tail` before the end
            if count:
                yield (-(-count // ports) - 1) * interval + tail


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
