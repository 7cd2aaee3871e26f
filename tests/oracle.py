"""Truth, slowly: written with nothing but the definition of a work-conserving cycle."""

from collections.abc import Sequence
from math import comb, prod

from makespan.gpu import GpuInstance
from makespan.instance import Instance
from makespan.machine import Scheduler
from makespan.result import Bounds
from makespan.schedule import Schedule
from makespan.simulate import gpu_semantics
from makespan.simulate.semantics import (
    Issue,
    State,
    finished,
    issues,
    moved,
    outcomes,
    released,
    selections,
    starts,
    steps,
)

_OF_WARPS = ("places", "waits", "past", "partitions", "pending")
"""The fields of a state that say something of every warp."""


def standing(instance: Instance, *places: int, partitions: tuple[int, ...] = ()) -> State:
    """The state in which the warps stand at these places, with nothing to wait for and no port held."""
    past = () if instance.machine.scheduler is Scheduler.ANY else ((0, 1),) * len(places)
    pending = ((),) * len(places) if instance.runs_ahead else ()
    return State(places, (0,) * len(places), ((),) * len(instance.machine.pools), past, partitions, pending)


def brute_force(instance: Instance) -> Bounds:
    """The shortest and the longest work-conserving schedule, in cycles.

    States that are equal, but for the names of warps of the same program and block, are walked once.
    """
    kinds = kinds_of_warps(instance)
    frontier, cycles, lengths = {unnamed(kinds, state) for state in starts(instance)}, 0, []
    while frontier:
        cycles += 1
        frontier = {unnamed(kinds, after) for state in frontier for after in steps(instance, state)}
        ended = {state for state in frontier if finished(instance, state)}
        if ended:
            frontier -= ended
            lengths.append(cycles)
    return Bounds(lengths[0], lengths[-1])


def brute_force_gpu(gpu: GpuInstance) -> Bounds:
    """The shortest and the longest schedule of a whole GPU, in cycles."""
    frontier, cycles, lengths = set(gpu_semantics.starts(gpu)), 0, []
    while frontier:
        cycles += 1
        frontier = {after for state in frontier for after in gpu_semantics.steps(gpu, state)}
        ended = {state for state in frontier if gpu_semantics.finished(state)}
        if ended:
            frontier -= ended
            lengths.append(cycles)
    return Bounds(lengths[0], lengths[-1])


def kinds_of_warps(instance: Instance) -> list[tuple[int, int]]:
    """For every warp its group and block, in order."""
    return list(zip(instance.group_of_warp(), instance.block_of_warp(), strict=True))


def unnamed(kinds: Sequence[tuple[int, int]], state: State) -> State:
    """The same state, with warps of one kind in the order of what it says of them: the definition knows no names."""
    rows = {name: row for name in _OF_WARPS if (row := getattr(state, name))}
    _, *told = zip(*sorted(zip(kinds, *rows.values(), strict=True)), strict=True)
    return state._replace(**dict(zip(rows, told, strict=True)))


def obeys(instance: Instance, schedule: Schedule) -> bool:
    """Whether `schedule` is one of the runs that the definition allows, from a start to the end of all warps."""
    programs = tuple(instance.programs())
    if len(schedule.paths) != len(programs) or not all(schedule.paths):
        return False
    if any(path[0] not in program.starts for path, program in zip(schedule.paths, programs, strict=True)):
        return False
    partitions = instance.partition_of_warp or schedule.partitions
    if schedule.partitions not in ((), partitions) or _renamed(partitions) not in set(instance.assignments()):
        return False
    if not all(0 <= part < instance.machine.partitions for part in partitions):
        return False
    walked = partitions if instance.machine.partitions > 1 else ()
    state = standing(instance, *(path[0] for path in schedule.paths), partitions=walked)
    left = [[*path[1:], program.end] for path, program in zip(schedule.paths, programs, strict=True)]
    latencies, uses = [list(row) for row in schedule.latencies], [list(row) for row in schedule.uses]
    if any(rows and len(rows) != len(programs) for rows in (schedule.latencies, schedule.uses)):
        return False
    for executing in (None, *schedule.cycles):
        if executing is not None:
            moves = _moves(instance, state, executing, left, latencies, uses)
            if moves is None:
                return False
            state = moved(instance, state, moves)
        while passing := released(instance, state):
            targets = {warp: left[warp].pop(0) for warp in passing}
            if any(to not in programs[w].places[state.places[w]].successors for w, to in targets.items()):
                return False
            state = state._replace(places=tuple(targets.get(warp, place) for warp, place in enumerate(state.places)))
    return finished(instance, state) and not any(row for row in (*latencies, *uses))


def _renamed(partitions: tuple[int, ...]) -> tuple[int, ...]:
    """The same partitions, numbered as they appear."""
    names = list(dict.fromkeys(partitions))
    return tuple(map(names.index, partitions))


def _moves(
    instance: Instance,
    state: State,
    executing: tuple[int, ...],
    left: list[list[int]],
    latencies: list[list[int]],
    uses: list[list[tuple[tuple[int, int], ...]]],
) -> list[Issue] | None:
    """What the schedule says that these warps do now; None where the definition does not allow it."""
    if finished(instance, state) or tuple(sorted(executing)) not in set(selections(instance, state)):
        return None
    moves: dict[int, Issue] = {}
    for warp in executing:
        if any(rows and not rows[warp] for rows in (latencies, uses)):
            return None
        target, latency = left[warp].pop(0), latencies[warp].pop(0) if latencies else None
        held = uses[warp].pop(0) if uses else None
        allowed = {
            issue
            for chosen in {taken[warp] for taken in issues(instance, state) if warp in taken}
            for issue in outcomes(instance, state, warp, chosen)
            if issue.target == target and latency in (None, issue.latency) and held in (None, issue.uses)
        }
        if len(allowed) != 1:
            return None
        (moves[warp],) = allowed
    taken = {warp: tuple(which for which, _ in move.uses) for warp, move in moves.items()}
    return list(moves.values()) if taken in list(issues(instance, state)) else None


def count_states(instance: Instance) -> int:
    """How many count states there are: in how many ways each group's warps can stand on its places."""
    return prod(comb(group.program.end + group.warps, group.warps) for group in instance.groups)
