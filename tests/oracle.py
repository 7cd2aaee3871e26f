"""Truth, slowly: written with nothing but the definition of a work-conserving cycle.

Which number a warp has, and so to which partition it belongs, follows from its launch alone (`Launch`): no property of
an instance is asked for it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import product
from math import comb, prod
from typing import TypeVar, cast

from makespan.host.errors import InputError
from makespan.model.gpu import BlockStart, GpuInstance, GpuSchedule, SmHistory
from makespan.model.instance import Instance
from makespan.model.machine import Machine, SchedulerPromise, WarpAssignment
from makespan.model.program import Program
from makespan.model.result import Bounds
from makespan.model.schedule import Schedule
from makespan.model.simulate import gpu_semantics
from makespan.model.simulate.semantics import (
    SmState,
    WarpIssue,
    has_finished,
    issue_outcomes,
    issue_sets,
    issuing_warps,
    next_state,
    next_states,
    passing_barrier,
    start_states,
)

T = TypeVar("T")

_OF_WARPS = ("places", "waits", "past", "partitions", "pending")
"""The fields of a state that say something of every warp."""


@dataclass(frozen=True)
class Launch:
    """What the definition asks of an instance, told by its launch: warp n is the one that is launched as number n.

    Args:
        block: the programs of the warps of a block, one after another.
        blocks: one after another.
    """

    block: tuple[Program, ...]
    blocks: int
    machine: Machine

    @property
    def warps(self) -> int:
        return len(self.block) * self.blocks

    def programs(self) -> tuple[Program, ...]:
        return self.block * self.blocks

    def block_of_warp(self) -> tuple[int, ...]:
        return tuple(block for block in range(self.blocks) for _ in self.block)

    @property
    def kinds(self) -> list[tuple[int, int]]:
        """For every warp its program, by number, and its block."""
        programs = list(dict.fromkeys(self.block))
        return list(zip(map(programs.index, self.programs()), self.block_of_warp(), strict=True))

    @property
    def partition_of_warp(self) -> tuple[int, ...] | None:
        if self.machine.partitions > 1 and self.machine.assignment is WarpAssignment.ANY:
            return None
        return tuple(number % self.machine.partitions for number in range(self.warps))

    def assignments(self) -> Iterator[tuple[int, ...]]:
        """Partitions are named in the order in which they get their first warp."""
        parts = self.machine.partitions
        least, most = self.warps // parts, -(-self.warps // parts)

        def spread(chosen: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
            if len(chosen) == self.warps and all(chosen.count(part) >= least for part in range(parts)):
                yield chosen
            for part in range(min(parts, max(chosen, default=-1) + 2) if len(chosen) < self.warps else 0):
                if chosen.count(part) < most:
                    yield from spread((*chosen, part))

        yield from spread(()) if self.partition_of_warp is None else (self.partition_of_warp,)

    @property
    def has_barriers(self) -> bool:
        return any(program.has_barriers for program in self.block)

    @property
    def runs_ahead(self) -> bool:
        return any(program.runs_ahead for program in self.block)

    @property
    def defined(self) -> Instance:
        """As the definition takes it, which asks for nothing else."""
        return cast(Instance, self)

    def listed(self, groups: Sequence[Program]) -> list[int]:
        """The numbers of the warps in the order in which an instance with groups of these programs lists them."""
        kinds = [(groups.index(program), block) for block in range(self.blocks) for program in self.block]
        return sorted(range(self.warps), key=kinds.__getitem__)


def launch_of(instance: Instance) -> Launch:
    """How the warps of an instance are launched: the groups one after another where it says no order."""
    programs = [group.program for group in instance.groups]
    crews = [group.warps // instance.blocks for group in instance.groups]
    order = instance.order or [number for number, warps in enumerate(crews) for _ in range(warps)]
    return Launch(tuple(programs[number] for number in order), instance.blocks, instance.machine)


class LaunchedGpu(GpuInstance):
    """A GPU whose warps have the numbers of the launch, without a list of another order."""

    def sm(self, blocks: int) -> Instance:
        return self.launch(blocks).defined

    def launch(self, blocks: int) -> Launch:
        return Launch(tuple(p for p, warps in self.grid.block for _ in range(warps)), blocks, self.machine)

    def slots_of_warps(self, blocks: int) -> tuple[tuple[int, int], ...]:
        return tuple(product(range(blocks), range(self.grid.warps)))


def launched(gpu: GpuInstance) -> LaunchedGpu:
    """The same GPU."""
    return LaunchedGpu(*(getattr(gpu, field.name) for field in fields(gpu)))


def standing(instance: Instance, *places: int, partitions: tuple[int, ...] = ()) -> SmState:
    """The state in which the warps stand at these places, with nothing to wait for and no port held."""
    past = () if instance.machine.scheduler is SchedulerPromise.ANY else ((0, 1),) * len(places)
    pending = ((),) * len(places) if instance.runs_ahead else ()
    return SmState(places, (0,) * len(places), ((),) * len(instance.machine.pools), past, partitions, pending)


def brute_force(instance: Instance) -> Bounds:
    """The shortest and the longest work-conserving schedule, in cycles.

    States that are equal, but for the names of warps of the same program and block, are walked once.
    """
    return brute_force_launch(launch_of(instance))


def brute_force_launch(launch: Launch) -> Bounds:
    """The same of warps that are launched so."""
    instance, kinds = launch.defined, launch.kinds
    frontier, cycles, lengths = {unnamed(kinds, state) for state in start_states(instance)}, 0, []
    while frontier:
        cycles += 1
        frontier = {unnamed(kinds, after) for state in frontier for after in next_states(instance, state)}
        ended = {state for state in frontier if has_finished(instance, state)}
        if ended:
            frontier -= ended
            lengths.append(cycles)
    return Bounds(lengths[0], lengths[-1])


def brute_force_gpu(gpu: GpuInstance) -> Bounds:
    """The shortest and the longest schedule of a whole GPU, in cycles."""
    gpu = launched(gpu)
    frontier, cycles, lengths = set(gpu_semantics.start_states(gpu)), 0, []
    while frontier:
        cycles += 1
        frontier = {after for state in frontier for after in gpu_semantics.next_states(gpu, state)}
        ended = {state for state in frontier if gpu_semantics.has_finished(state)}
        if ended:
            frontier -= ended
            lengths.append(cycles)
    return Bounds(lengths[0], lengths[-1])


def unnamed(kinds: Sequence[tuple[int, int]], state: SmState) -> SmState:
    """The same state, with warps of one kind in the order of what it says of them: the definition knows no names.

    Nor does it matter later for which line a warp is late before its barrier.
    """
    rows = {name: row for name in _OF_WARPS if (row := getattr(state, name))}
    if lapses := state.lapses:
        is_late = [warp in dict(lapses.late) for warp in range(len(kinds))]
        rows |= {"misses": lapses.misses, "arrived": lapses.arrived, "late": is_late}
    told = list(zip(*rows.values(), strict=True))
    places: dict[tuple[int, int], list[int]] = {}
    for warp, kind in enumerate(kinds):
        places.setdefault(kind, []).append(warp)
    for own in places.values():
        for warp, row in zip(own, sorted(told[warp] for warp in own), strict=True):
            told[warp] = row
    rows = dict(zip(rows, zip(*told, strict=True), strict=True))
    if lapses:
        late = tuple((warp, None) for warp, stays in enumerate(rows.pop("late")) if stays)
        lapses = lapses._replace(misses=rows.pop("misses"), arrived=rows.pop("arrived"), late=late)
    return state._replace(lapses=lapses, **rows)


class TooManyStates(Exception):
    """The oracle gives an instance up."""


def cycles_left(instance: Instance, kinds: Sequence[tuple[int, int]], most_states: int) -> Callable[[SmState], int]:
    """A function that says how many cycles there are at most from a state on, lapses and late lines among them.

    It is the longest walk, and each state is looked at once; `TooManyStates` if there are more than that.
    """
    cycles: dict[SmState, int] = {}

    def left(state: SmState) -> int:
        if state not in cycles:
            if len(cycles) >= most_states:
                raise TooManyStates
            after = {unnamed(kinds, each) for each in next_states(instance, state)}
            cycles[state] = max((1 + left(each) for each in after), default=0)
        return cycles[state]

    return lambda state: left(unnamed(kinds, state))


def longest_schedule(instance: Instance, most_states: int) -> int | None:
    """The makespan of the longest schedule in cycles; None if there are too many states."""
    launch = launch_of(instance)
    try:
        return max(map(cycles_left(launch.defined, launch.kinds, most_states), start_states(launch.defined)))
    except TooManyStates:
        return None


def nobody(instance: Instance) -> Iterator[SmState]:
    """An SM on which all warps have finished, with every way to spread them over the partitions."""
    for partitions in instance.assignments():
        walked = partitions if instance.machine.partitions > 1 else ()
        yield standing(instance, *(program.end for program in instance.programs()), partitions=walked)


def unfinished_slots(gpu: GpuInstance, sm: SmState) -> set[int]:
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
    gpu = launched(gpu)
    try:
        sms = [_WalkedSm(gpu, schedule, history) for history in schedule.histories for _ in range(history.sms)]
        if len(sms) > gpu.sms:
            return False
        left, allowed = gpu.blocks, set(gpu_semantics.start_states(gpu))
        for cycle in range(schedule.makespan + 1):
            left -= sum(sm.begin(cycle) for sm in sms)
            if not all(sm.still == bool(unfinished_slots(gpu, sm.state)) for sm in sms):
                return False
            state = gpu_semantics.GpuState(tuple(sorted(sm.state for sm in sms if sm.still)), (left,))
            if state not in allowed:
                return False
            for sm in sms:
                sm.step(cycle)
            allowed = set(gpu_semantics.next_states(gpu, state))
        return gpu_semantics.has_finished(state)
    except (IndexError, KeyError, ValueError, InputError):
        return False


class _WalkedSm:
    """An SM that does what its history says; what that does not allow is some exception."""

    def __init__(self, gpu: LaunchedGpu, schedule: GpuSchedule, history: SmHistory) -> None:
        self.gpu, self.courses = gpu, schedule.courses
        cycles = [stretch.cycles for stretch in history.stretches for _ in range(stretch.repeat)]
        self.cycles = [executing for some in cycles for executing in some]
        self.begins: dict[int, list[BlockStart]] = {}
        for cycle, begin in history.begins():
            self.begins.setdefault(cycle, []).append(begin)
        slots = len(self.begins.get(0, ()))
        self.instance, self.numbers = gpu.sm(slots), gpu.slots_of_warps(slots)
        self.programs = tuple(self.instance.programs())
        parts = gpu.launch(slots).partition_of_warp
        if parts is None:
            if [len(row) for row in history.partitions] != [gpu.grid.warps] * slots:
                raise ValueError
            parts = tuple(history.partitions[slot][warp] for slot, warp in self.numbers)
        elif history.partitions not in ((), _by_slot(self.numbers, parts)):
            raise ValueError
        if not all(0 <= part < gpu.machine.partitions for part in parts):
            raise ValueError
        (self.state,) = (sm for sm in nobody(self.instance) if sm.partitions in ((), _renamed(parts)))
        warps = range(len(self.numbers))
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
        while passing := passing_barrier(self.instance, self.state):
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
        self.state = next_state(self.instance, self.state, moves)
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
    launch = launch_of(instance)
    number = launch.listed([group.program for group in instance.groups])
    programs, instance = launch.programs(), launch.defined
    if len(schedule.paths) != len(programs) or not all(schedule.paths):
        return False
    if any(rows and len(rows) != len(programs) for rows in (schedule.latencies, schedule.uses, schedule.partitions)):
        return False
    if any(warp not in range(len(number)) for executing in schedule.cycles for warp in executing):
        return False
    schedule = named(schedule, number)
    if any(path[0] not in program.starts for path, program in zip(schedule.paths, programs, strict=True)):
        return False
    partitions = launch.partition_of_warp or schedule.partitions
    if schedule.partitions not in ((), partitions) or _renamed(partitions) not in set(launch.assignments()):
        return False
    if not all(0 <= part < launch.machine.partitions for part in partitions):
        return False
    walked = partitions if launch.machine.partitions > 1 else ()
    state = standing(instance, *(path[0] for path in schedule.paths), partitions=walked)
    left = [[*path[1:], program.end] for path, program in zip(schedule.paths, programs, strict=True)]
    latencies, uses = [list(row) for row in schedule.latencies], [list(row) for row in schedule.uses]
    for executing in (None, *schedule.cycles):
        if executing is not None:
            moves = _moves(instance, state, executing, left, latencies, uses)
            if moves is None:
                return False
            state = next_state(instance, state, moves)
        while passing := passing_barrier(instance, state):
            targets = {warp: left[warp].pop(0) for warp in passing}
            if any(to not in programs[w].places[state.places[w]].successors for w, to in targets.items()):
                return False
            state = state._replace(places=tuple(targets.get(warp, place) for warp, place in enumerate(state.places)))
    return has_finished(instance, state) and not any(row for row in (*latencies, *uses))


def named(schedule: Schedule, names: Sequence[int]) -> Schedule:
    """The same schedule, whose warps have these names instead."""
    warps = {name: warp for warp, name in enumerate(names)}
    order = [warps[name] for name in range(len(names))]

    def renamed(rows: Sequence[T]) -> tuple[T, ...]:
        return tuple(rows[warp] for warp in order) if rows else ()

    return Schedule(
        tuple(tuple(sorted(names[warp] for warp in executing)) for executing in schedule.cycles),
        renamed(schedule.paths),
        renamed(schedule.latencies),
        renamed(schedule.partitions),
        renamed(schedule.uses),
    )


def _renamed(partitions: tuple[int, ...]) -> tuple[int, ...]:
    """The same partitions, numbered as they appear."""
    names = list(dict.fromkeys(partitions))
    return tuple(map(names.index, partitions))


def _moves(
    instance: Instance,
    state: SmState,
    executing: tuple[int, ...],
    left: list[list[int]],
    latencies: list[list[int]],
    uses: list[list[tuple[tuple[int, int], ...]]],
) -> list[WarpIssue] | None:
    """What the schedule says that these warps do now; None where the definition does not allow it."""
    if has_finished(instance, state) or tuple(sorted(executing)) not in set(issuing_warps(instance, state)):
        return None
    moves: dict[int, WarpIssue] = {}
    for warp in executing:
        if any(rows and not rows[warp] for rows in (latencies, uses)):
            return None
        target, latency = left[warp].pop(0), latencies[warp].pop(0) if latencies else None
        held = uses[warp].pop(0) if uses else None
        allowed = {
            issue
            for chosen in {taken[warp] for taken in issue_sets(instance, state) if warp in taken}
            for issue in issue_outcomes(instance, state, warp, chosen)
            if issue.target == target and latency in (None, issue.latency) and held in (None, issue.uses)
        }
        if len(allowed) != 1:
            return None
        (moves[warp],) = allowed
    taken = {warp: tuple(which for which, _ in move.uses) for warp, move in moves.items()}
    return list(moves.values()) if taken in list(issue_sets(instance, state)) else None


def count_states(instance: Instance) -> int:
    """How many count states there are: in how many ways each group's warps can stand on its places."""
    return prod(comb(group.program.end + group.warps, group.warps) for group in instance.groups)
