"""Truth, slowly: written with nothing but the definition of a work-conserving cycle."""

from collections.abc import Iterator, Sequence
from math import comb, prod

from makespan.errors import InputError
from makespan.gpu import Begin, GpuInstance, GpuSchedule, History
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


def nobody(instance: Instance) -> Iterator[State]:
    """An SM on which all warps have finished, with every way to spread them over the partitions."""
    for partitions in instance.assignments():
        walked = partitions if instance.machine.partitions > 1 else ()
        yield standing(instance, *(program.end for program in instance.programs()), partitions=walked)


def unfinished_slots(gpu: GpuInstance, sm: State) -> set[int]:
    """The slots in which there is a block."""
    slots = len(sm.places) // gpu.grid.warps
    rows = zip(gpu.slots_of_warps(slots), gpu.sm(slots).programs(), sm.places, sm.waits, strict=True)
    pending = sm.pending or ((),) * len(sm.places)
    return {
        slot
        for ((slot, _), program, at, wait), tokens in zip(rows, pending, strict=True)
        if at != program.end or wait or tokens
    }


def obeys_gpu(gpu: GpuInstance, schedule: GpuSchedule) -> bool:
    """Whether a schedule of a whole GPU is one of the runs that the definition allows, all repeats unfolded."""
    try:
        sms = [_WalkedSm(gpu, schedule, history) for history in schedule.histories for _ in range(history.sms)]
        if len(sms) > gpu.sms:
            return False
        left, allowed = gpu.blocks, set(gpu_semantics.starts(gpu))
        for cycle in range(schedule.makespan + 1):
            left -= sum(sm.begin(cycle) for sm in sms)
            if not all(sm.still == bool(unfinished_slots(gpu, sm.state)) for sm in sms):
                return False
            state = gpu_semantics.GpuState(tuple(sorted(sm.state for sm in sms if sm.still)), (left,))
            if state not in allowed:
                return False
            for sm in sms:
                sm.step(cycle)
            allowed = set(gpu_semantics.steps(gpu, state))
        return gpu_semantics.finished(state)
    except (IndexError, KeyError, ValueError, InputError):
        return False


class _WalkedSm:
    """An SM that does what its history says; what that does not allow is some exception."""

    def __init__(self, gpu: GpuInstance, schedule: GpuSchedule, history: History) -> None:
        self.gpu, self.courses = gpu, schedule.courses
        cycles = [stretch.cycles for stretch in history.stretches for _ in range(stretch.repeat)]
        self.cycles = [executing for some in cycles for executing in some]
        self.begins: dict[int, list[Begin]] = {}
        for cycle, begin in history.begins():
            self.begins.setdefault(cycle, []).append(begin)
        slots = len(self.begins.get(0, ()))
        self.instance, self.numbers = gpu.sm(slots), gpu.slots_of_warps(slots)
        self.programs = tuple(self.instance.programs())
        parts = self.instance.partition_of_warp
        if parts is None:
            if [len(row) for row in history.partitions] != [gpu.grid.warps] * slots:
                raise ValueError
            parts = tuple(history.partitions[slot][warp] for slot, warp in self.numbers)
        elif history.partitions not in ((), _by_slot(self.numbers, parts)):
            raise ValueError
        if not all(0 <= part < gpu.machine.partitions for part in parts):
            raise ValueError
        (self.state,) = (sm for sm in nobody(self.instance) if sm.partitions in ((), _renamed(parts)))
        warps = range(self.instance.warps)
        self.left: list[list[int]] = [[] for _ in warps]
        self.latencies: list[list[int]] = [[] for _ in warps if any(course.latencies for course in self.courses)]
        self.uses: list[list[tuple[tuple[int, int], ...]]] = [
            [] for _ in warps if any(course.uses for course in self.courses)
        ]
        self.still = True

    def begin(self, cycle: int) -> int:
        """Blocks begin; how many."""
        begins = self.begins.pop(cycle, [])
        places, waits = list(self.state.places), list(self.state.waits)
        for begin in begins:
            if begin.slot in unfinished_slots(self.gpu, self.state._replace(places=tuple(places))):
                raise ValueError
            if not 0 <= begin.slot < len(places) // self.gpu.grid.warps or begin.course < 0:
                raise ValueError
            course = self.courses[begin.course]
            if course.grid or any(len(rows) != self.gpu.grid.warps for rows in course[1:] if rows):
                raise ValueError
            for number, (slot, warp) in enumerate(self.numbers):
                if slot == begin.slot:
                    path = [*course.paths[warp], self.programs[number].end]
                    places[number], waits[number], self.left[number] = path[0], begin.delay, path[1:]
                    if self.latencies:
                        self.latencies[number] = list(course.latencies[warp])
                    if self.uses:
                        self.uses[number] = list(course.uses[warp])
        self.state = self.state._replace(places=tuple(places), waits=tuple(waits))
        self._pass_barriers()
        self.still = cycle < len(self.cycles)
        return len(begins)

    def _pass_barriers(self) -> None:
        while passing := released(self.instance, self.state):
            targets = {warp: self.left[warp].pop(0) for warp in passing}
            if any(to not in self.programs[w].places[self.state.places[w]].successors for w, to in targets.items()):
                raise ValueError
            places = (targets.get(warp, place) for warp, place in enumerate(self.state.places))
            self.state = self.state._replace(places=tuple(places))

    def step(self, cycle: int) -> None:
        if cycle >= len(self.cycles):
            return
        executing = tuple(sorted(map(self.numbers.index, self.cycles[cycle])))
        moves = _moves(self.instance, self.state, executing, self.left, self.latencies, self.uses)
        if moves is None:
            raise ValueError
        self.state = moved(self.instance, self.state, moves)
        self._pass_barriers()
        still = unfinished_slots(self.gpu, self.state)
        done = [number for number, (slot, _) in enumerate(self.numbers) if slot not in still]
        if any(rows[number] for rows in (self.left, self.latencies, self.uses) if rows for number in done):
            raise ValueError


def _by_slot(numbers: tuple[tuple[int, int], ...], parts: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    found: dict[int, dict[int, int]] = {}
    for (slot, warp), part in zip(numbers, parts, strict=True):
        found.setdefault(slot, {})[warp] = part
    return tuple(tuple(row[warp] for warp in sorted(row)) for _, row in sorted(found.items()))


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
