"""Lower bounds on the shortest schedule of one SM, and of a whole GPU."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import repeat, zip_longest

from makespan.model.feature import BARRIERS, LAPSES, MULTIPROCESSOR, PROGRAMS, SCHEDULER, TIMES, Feature
from makespan.model.gpu import GpuInstance
from makespan.model.instance import Instance, requires
from makespan.model.lowered import LoweredMachine, Reservation
from makespan.model.machine import Machine, WarpAssignment
from makespan.model.program import BARRIER, Program
from makespan.proof.bounds.alone import alone, place_timings
from makespan.proof.bounds.gates import PortGates
from makespan.proof.bounds.phases import segments_of

# Lapses only add schedules in which warps wait for longer, and every schedule does the work that is counted here.
KNOWS = PROGRAMS | TIMES | BARRIERS | SCHEDULER | MULTIPROCESSOR | LAPSES


@requires(KNOWS, "the least possible")
def least_possible(instance: Instance) -> int:
    """Return cycles that every schedule takes: of the slowest warp alone, or the work of the busiest ports or slots.

    Of N instructions that share P ports, the last one is issued after ceil(N / P) - 1 intervals at the earliest, and
    its latency passes, too. Behind a queue a warp goes on, and may even finish, before its instruction is served; there
    only the stalls of the slowest warp count.
    """
    if Feature.QUEUES in instance.features:
        return max(1, *map(_least_stalls, (group.program for group in instance.groups), repeat(instance.machine)))
    latencies = {unit.name: unit.latency.least for unit in instance.machine.units}
    programs = [(group.program, group.warps) for group in instance.groups]
    found = [program.lightest(latencies) for program, _ in programs if not program.timings]
    found += busy(instance.machine, programs, partial(_most_of_a_partition, instance))
    return max((1, _longest_warp(instance), *found))  # every path has an instruction


def least_possible_gpu(gpu: GpuInstance) -> int:
    """Cycles that every schedule takes, whatever the dispatcher and the schedulers do.

    A block has its room for as long as it takes alone at least: so some slot, or what there is of a resource on all
    SMs, is taken for that long by all blocks that share it. And the work of all blocks keeps ports busy, those of all
    SMs, or of one with as many blocks of a grid as some SM must have.

    >>> from makespan import Machine, Program
    >>> block = ((Program.chain("CCLL"), 2),)
    >>> least_possible_gpu(GpuInstance.of(block, 10**9, Machine.of({"C": 1, "L": 1}), sms=10, resident=4))
    400000000

    Raises:
        UnsupportedError: there are delays as places.
    """
    machine = replace(gpu.machine, assignment=WarpAssignment.ANY)  # of the warps of a later block
    # what a block takes of an SM, it takes for as long as it takes alone: areas of time and room add up
    found, taken = list[int](), [0] * len(gpu.room)
    for grid in gpu.grids:
        time = least_possible(Instance.merged(grid.block, machine))
        found.append(-(-grid.blocks // (gpu.sms * gpu.most_resident(grid))) * time)
        taken = [cycles + grid.blocks * own * time for cycles, own in zip(taken, grid.takes, strict=True)]
        busiest = -(-grid.blocks // gpu.sms)  # some SM has the mean at least
        found += busy(machine, [(program, busiest * count) for program, count in grid.block])
    found += (-(-cycles // (gpu.sms * room)) for cycles, room in zip(taken, gpu.room, strict=True))
    everybody = [(program, grid.blocks * count) for grid in gpu.grids for program, count in grid.block]
    return max((*found, *busy(machine, everybody, sms=gpu.sms)))


def _least_stalls(program: Program, machine: Machine) -> int:
    """Return the least cycles that pass between the first issue of a warp and its end."""
    lowered = LoweredMachine.of(machine)
    return program.lightest(
        [0 if place.unit == BARRIER else lowered.stall(program, at)[0] for at, place in enumerate(program.places)]
    )


def _longest_warp(instance: Instance) -> int:
    ports = PortGates.of(instance.machine)
    rows = []
    for program in (group.program for group in instance.groups):
        todo = place_timings(program, ports, longest=False)
        segments = segments_of(program) or ()  # too many phases say nothing
        rows.append([alone(program, todo, segment, lambda _: {}, longest=False) for segment in segments])
    # a barrier opens when the last warp of its block has come, so each phase takes what its slowest warp takes
    return sum(map(max, zip_longest(*rows, fillvalue=0)))


def busy(
    machine: Machine,
    warps: Sequence[tuple[Program, int]],
    fullest: Callable[[list[int]], int] = lambda _: 0,
    sms: int = 1,
) -> Iterator[int]:
    """Yield how long the ports of each gate are busy at least, in all partitions and in the one with most to do.

    Args:
        machine: of all SMs.
        warps: how many execute each program, on all SMs.
        fullest: if a warp of each program has so much to do, what some partition has.
        sms: how many there are.
    """
    ports = PortGates.of(machine)
    used = ports.reservations(*(program for program, _ in warps))
    tails = _least_tails(ports, [program for program, _ in warps])
    for gate in ports.gates(used):
        holds = [(each, hold) for each in used for hold in each.holds if set(hold.pools) <= set(gate)]
        # the last of N instructions is issued ceil(N / ports) - 1 intervals after the first, and its tail follows
        interval, tail = min(hold.least for _, hold in holds), min(tails[each] for each, _ in holds)
        # of several holds at the same gate, one is counted
        counted = {each for each, _ in holds}
        work = [
            program.lightest([ports.reservation(program, at) in counted for at in range(program.end)])
            for program, _ in warps
        ]
        capacities = [ports.capacities[r] * (1 if r in ports.shared else machine.partitions) for r in gate]
        loads = [(sum(count * own for (_, count), own in zip(warps, work, strict=True)), sms * sum(capacities))]
        if not ports.shared & set(gate):
            loads.append((fullest(work), ports.capacity(gate)))
        for count, capacity in loads:
            if count:
                yield (-(-count // capacity) - 1) * interval + tail


def _least_tails(ports: PortGates, programs: Iterable[Program]) -> dict[Reservation, int]:
    """Return how long a warp goes on at least after it has issued an instruction that holds this."""
    found: dict[Reservation, int] = {}
    for program in programs:
        for at in range(program.end):
            tail, reservation = ports.stall(program, at)[0], ports.reservation(program, at)
            if program.timings and program.timings[at].sets:
                tail = max(tail, program.timings[at].latency[0])
            found[reservation] = min(tail, found.get(reservation, tail))
    return found


def _most_of_a_partition(instance: Instance, work: list[int]) -> int:
    """Return the least that some partition has to do, if a warp of each group has so much."""
    parts = instance.partition_of_warp
    by_warp = [work[group] for group in instance.group_of_warp()]
    if parts is None:  # what any warps are that share the fullest partition; of the average, `busy` knows
        return sum(sorted(by_warp)[: -(-instance.warps // instance.machine.partitions)])
    found = Counter[int]()
    for part, own in zip(parts, by_warp, strict=True):
        found[part] += own
    return max(found.values())
