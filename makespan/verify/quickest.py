"""What every schedule takes at least, for the checker: a warp alone, and the busiest ports."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import zip_longest

from makespan.model.gpu import GpuInstance
from makespan.model.instance import Instance
from makespan.model.machine import UnitClass, WarpAssignment
from makespan.model.program import BARRIER, Program
from makespan.verify import numbering
from makespan.verify.paths import total
from makespan.verify.refusal import StepBudget, TooMuchWork

MOST_STEPS = 5_000_000
_SLOT = ""
_Clocks = dict[int | str, int]
"""When a token is there at the earliest, by number; when a pool with one port is free again, by name."""


def floor(instance: Instance) -> int:
    """Cycles that no schedule falls short of; of warps alone the latencies only where the rest would take too long."""
    latencies = {unit.name: unit.latency.least for unit in instance.machine.units}
    blocking = (group.program for group in instance.groups if not group.program.timings)
    found = [1, *_busy(instance), *(total(program, latencies, min) for program in blocking)]
    try:
        work = StepBudget(MOST_STEPS)
        rows = [list(_phases(instance, group.program, work)) for group in instance.groups]
        found.append(sum(map(max, zip_longest(*rows, fillvalue=0))))  # a barrier waits for the slowest
    except TooMuchWork:
        pass
    return max(found)


def floor_of_gpu(gpu: GpuInstance) -> int:
    """Return the same of a whole GPU: some slot gets its share of all blocks, one after another, and some SM its share.

    Of several grids, what blocks take of a resource they keep for as long as they are there.
    """
    machine = replace(gpu.machine, assignment=WarpAssignment.ANY)  # the warps of a later block may be in any partitions
    blocks = [Instance.merged(grid.block, machine) for grid in gpu.grids]
    alone = [floor(block) for block in blocks]
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
    """Return how many warps of so many blocks run each program."""
    found = Counter[Program]()
    for program, warps in block:
        found[program] += warps * blocks
    return found


def _phases(instance: Instance, program: Program, work: StepBudget) -> Iterator[int]:
    """Yield the least time from each barrier to the next one, or to the end, as long as no path has ended before."""
    units = {unit.name: unit for unit in instance.machine.units}
    single = {ports.name for ports in instance.machine.ports if ports.capacity == 1}
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
            issue = max((arrival, *(clocks.get(token, 0) for token in _awaits(program, at))))
            if place.unit == BARRIER:
                least.append(issue)
                begins.update(place.successors)
                continue
            held = _single_holds(units[place.unit], single)
            issue = max((issue, *(clocks.get(name, 0) for name in held)))
            after = issue + (program.timings[at].stall if program.timings else units[place.unit].latency.least)
            new = clocks | {name: issue + cycles for name, cycles in held.items()}
            for token in program.timings[at].sets if program.timings else ():
                new[token] = max(issue + program.timings[at].latency[0], clocks.get(token, 0))
            for target in place.successors:
                states[target] = _either(states.get(target), after, new)
        if program.end in states:
            arrival, clocks = states[program.end]
            least.append(max((arrival, *(cycle for key, cycle in clocks.items() if isinstance(key, int)))))
            ended = True
        yield min(least)


def _either(before: tuple[int, _Clocks] | None, arrival: int, clocks: _Clocks) -> tuple[int, _Clocks]:
    """What holds on both ways to a place."""
    if before is None:
        return arrival, dict(clocks)
    both = {key: min(cycle, clocks[key]) for key, cycle in before[1].items() if key in clocks}
    return min(before[0], arrival), both


def _awaits(program: Program, at: int) -> tuple[int, ...]:
    return program.timings[at].awaits if program.timings else ()


def _single_holds(unit: UnitClass, single: set[str]) -> dict[str, int]:
    """Of pools with one port, those that each instruction of a class holds, and for how long at least."""
    holds = {unit.name: unit.interval, **{use.resources[0]: use.least for use in unit.uses if len(use.resources) == 1}}
    return {name: cycles for name, cycles in holds.items() if name in single}


def _busy(instance: Instance, crew: Mapping[Program, int] | None = None, sms: int = 0) -> Iterator[int]:
    """Yield how long ports are busy that some instructions cannot do without, in all partitions and in the busiest one.

    In all partitions there is a `crew` in the place of the warps of the instance; and if these are the partitions of
    so many SMs, none is busier than another for sure.
    """
    machine, used = instance.machine, frozenset[str]().union(*(group.program.units for group in instance.groups))
    capacity = {ports.name: ports.capacity for ports in machine.ports}
    shared = {ports.name for ports in machine.ports if ports.shared}
    holds: dict[str, list[tuple[frozenset[str], int]]] = {}
    for unit in machine.units:
        if unit.name in used:
            holds[unit.name] = [(frozenset({unit.name}), unit.interval)]
            holds[unit.name] += [(frozenset(use.resources), use.least) for use in unit.uses]
    if machine.issue_width is not None:
        capacity[_SLOT] = machine.issue_width
        for one in holds.values():
            one.append((frozenset({_SLOT}), 1))
    tails = {unit.name: _tail(instance, unit) for unit in machine.units if unit.name in used}
    for gate in dict.fromkeys(names for one in holds.values() for names, _ in one):
        kept = {unit: [cycles for names, cycles in one if names <= gate] for unit, one in holds.items()}
        users = [unit for unit, cycles in kept.items() if cycles]
        interval, tail = min(min(kept[unit]) for unit in users), min(tails[unit] for unit in users)
        work = [total(group.program, dict.fromkeys(users, 1), min) for group in instance.groups]
        everywhere = sum(capacity[name] * (1 if name in shared else machine.partitions) for name in gate)
        warps = [group.warps if crew is None else crew[group.program] for group in instance.groups]
        loads = [(sum(count * own for count, own in zip(warps, work, strict=True)), everywhere * max(1, sms))]
        if not gate & shared and not sms:
            loads.append((_busiest(instance, work), sum(capacity[name] for name in gate)))
        for count, ports in loads:
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
    """What some partition has to do, if a warp of each group has so much; `_busy` knows its share of all."""
    parts, loads = instance.machine.partitions, [work[group] for group in instance.group_of_warp()]
    if (fixed := numbering.partitions(instance)) is not None:
        found = [0] * parts
        for part, own in zip(fixed, loads, strict=True):
            found[part] += own
        return max(found)
    seats = -(-len(loads) // parts)  # in the fullest partition, whoever has them
    return sum(sorted(loads)[:seats])
