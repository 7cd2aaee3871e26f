"""Random machines, programs and instances, small enough for brute force.

A strategy is checked and labelled when it is first drawn from, which takes longer than the draw: what does not depend
on drawn values is built once, and what does is an index that `choose` draws.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import combinations
from random import Random
from typing import TypeVar

from hypothesis import strategies as st

from makespan.host.errors import InputError
from makespan.model.gpu import (
    BlockStart,
    BlockTrace,
    GpuInstance,
    GpuSchedule,
    Grid,
    RepeatedCycles,
    SmHistory,
    resident,
)
from makespan.model.instance import Instance
from makespan.model.machine import (
    PAPER,
    Latency,
    Machine,
    PortResource,
    SchedulerPromise,
    UnitClass,
    Use,
    WarpAssignment,
)
from makespan.model.program import BARRIER, InstructionTiming, Program, ProgramPlace
from makespan.model.schedule import Schedule
from makespan.model.simulate.semantics import (
    SmState,
    has_finished,
    issue_outcomes,
    issue_sets,
    next_state,
    next_states,
    passing_barrier,
    start_states,
)
from tests.oracle import LaunchedGpu, launch_of, launched, named, nobody, unfinished_slots

CLASSES = "CLS"

T = TypeVar("T")

integers = cache(st.integers)
FLAGS = st.booleans()
TOKENS = st.sampled_from([(), (0,), (1,), (0, 1)])
CONDITIONAL = Program((ProgramPlace("C", (1, 2)), *Program.chain("CLCLC").places[1:]))
"""`C; if (p) L; CLC`."""


def walk(instance: Instance, random: Random) -> list[SmState]:
    """The states of a random work-conserving schedule."""
    states = [random.choice(list(start_states(instance)))]
    while following := list(next_states(instance, states[-1])):
        states.append(random.choice(following))
    return states


def choose(draw: st.DrawFn, options: Sequence[T]) -> T:
    """One of the options, the first when shrunk."""
    return options[draw(integers(0, len(options) - 1))] if len(options) > 1 else options[0]


def _evenly(*kinds: Sequence[T]) -> st.SearchStrategy[T]:
    """A member of any of them, of each kind about as often; the first of the first when shrunk."""
    most = max(map(len, kinds))
    return st.sampled_from([member for kind in kinds if kind for member in [*kind] * -(-most // len(kind))])


@cache
def _ranges(least: int, most: int, singles: int = 2) -> st.SearchStrategy[tuple[int, int]]:
    """The ends of a range within `least` to `most`; for each wide one there are two (or four, ...) single numbers."""
    single = [(number, number) for number in range(least, most + 1)]
    return st.sampled_from(
        single * max(1, (most - least) * singles // 2) + list(combinations(range(least, most + 1), 2))
    )


@cache
def _intervals(most: int) -> st.SearchStrategy[int]:
    return _evenly([1], range(1, most + 1))


@cache
def _widths(most: int) -> st.SearchStrategy[int | None]:
    none: list[int | None] = [None]
    return _evenly(none, range(1, most + 1))


@cache
def machines(most_classes: int = 3, most_units: int = 3) -> st.SearchStrategy[Machine]:
    """One to three classes with one to three units each."""
    units = integers(1, most_units)
    names = (CLASSES[:count] for count in range(1, most_classes + 1))
    return st.one_of([st.fixed_dictionaries(dict.fromkeys(some, units)).map(Machine.of) for some in names])


@st.composite
def general_machines(
    draw: st.DrawFn,
    *,
    most_classes: int = 3,
    most_units: int = 2,
    most_interval: int = 3,
    most_latency: int = 4,
    most_width: int = 3,
) -> Machine:
    """Intervals, latencies, ranges of latencies and an issue width, each of them in some machines only."""
    units = []
    for name in CLASSES[: draw(integers(1, most_classes))]:
        latency = Latency(*draw(_ranges(1, most_latency)))
        interval = draw(_intervals(most_interval))
        units.append(UnitClass(name, draw(integers(1, most_units)), interval, latency))
    return Machine("general", tuple(units), draw(_widths(most_width)))


GENERAL, GENERAL_OF_TWO = general_machines(), general_machines(most_classes=2)


@st.composite
def general_instances(draw: st.DrawFn, *, most_warps: int = 3, most: int = 3, choices: bool = True) -> Instance:
    """A few warps of a few instructions on a general machine."""
    return _instance(draw, draw(GENERAL), choices=choices, most_warps=most_warps, most=most)


@cache
def letters(units: str = "CL", most: int = 6) -> st.SearchStrategy[str]:
    """An instruction string."""
    return st.text(units, min_size=1, max_size=most)


@cache
def chains(units: str = "CL", most: int = 6) -> st.SearchStrategy[Program]:
    """The program of a string."""
    return letters(units, most).map(Program.chain)


@cache
def _successors(first: int, last: int) -> st.SearchStrategy[tuple[int, ...]]:
    """One or two of the places `first` to `last`, about as often."""
    return _evenly(*(list(combinations(range(first, last + 1), size)) for size in (1, 2)))


def _automaton(draw: st.DrawFn, units: str, most: int) -> tuple[tuple[ProgramPlace, ...], tuple[int, ...]]:
    """Places and starts of an automaton."""
    end = draw(integers(1, most))
    places: list[ProgramPlace] = []
    first: set[int] = {0}
    reached: set[int] = set()
    for number in range(end):
        after = draw(_successors(number + 1, end))
        places.append(ProgramPlace(choose(draw, units), after))
        if number not in reached or draw(integers(0, 5)) == 5:
            first.add(number)
        reached.update(after)
    return tuple(places), tuple(sorted(first))


@st.composite
def automata(draw: st.DrawFn, units: str = "CL", most: int = 5) -> Program:
    """A program with choices: any acyclic automaton in which every place is reached and leads to the end."""
    return Program(*_automaton(draw, units, most))


@cache
def _kinds(units: str, most: int, choices: bool) -> st.SearchStrategy[list[Program]]:
    plain = chains(units, most)
    return st.lists(st.one_of(plain, automata(units, most)) if choices else plain, min_size=1, max_size=3)


@cache
def _kinds_with_barriers(units: str, most: int) -> st.SearchStrategy[list[Program]]:
    chain = letters(units + BARRIER, most).filter(lambda string: string.strip(BARRIER)).map(Program.chain)
    return st.lists(st.one_of(chain, _automata_with_barriers(units, most)), min_size=1, max_size=2)


@cache
def _numbers(count: int, most: int) -> st.SearchStrategy[list[int]]:
    return st.lists(integers(0, count - 1), min_size=1, max_size=most)


def _warps(draw: st.DrawFn, kinds: Sequence[Program], most: int) -> list[Program]:
    """The programs of up to `most` warps."""
    return [kinds[number] for number in draw(_numbers(len(kinds), most))]


def _instance(draw: st.DrawFn, machine: Machine, *, choices: bool, most_warps: int, most: int) -> Instance:
    programs = _warps(draw, draw(_kinds("".join(machine.capacities), most, choices)), most_warps)
    return Instance.merged([(program, 1) for program in programs], machine)


@st.composite
def instances(
    draw: st.DrawFn, *, machine: Machine | None = None, choices: bool = True, most_warps: int = 4, most: int = 4
) -> Instance:
    """Up to `most_warps` warps of up to `most` instructions in one to three groups, strings or automata."""
    return _instance(draw, machine or draw(machines()), choices=choices, most_warps=most_warps, most=most)


def _block(
    draw: st.DrawFn, machine: Machine, *, most_warps: int, most: int, most_blocks: int = 2
) -> tuple[list[Program], int]:
    """The programs of the warps of a block, with barriers in some, and how many such blocks there are."""
    kinds = draw(_kinds_with_barriers("".join(machine.capacities), most))
    blocks = draw(integers(1, most_blocks))
    return _warps(draw, kinds, most_warps // blocks), blocks


def _blocks(programs: Iterable[Program], machine: Machine, blocks: int) -> Instance:
    return Instance.merged([(program, blocks) for program in programs], machine, blocks=blocks)


@st.composite
def barrier_instances(
    draw: st.DrawFn,
    *,
    machine: Machine | None = None,
    most_warps: int = 4,
    most: int = 5,
    most_blocks: int = 2,
    most_units: int = 2,
) -> Instance:
    """Instances with barriers: strings and automata, one block or several."""
    chosen = machine or draw(machines(2, most_units))
    programs, blocks = _block(draw, chosen, most_warps=most_warps, most=most, most_blocks=most_blocks)
    return _blocks(programs, chosen, blocks)


@st.composite
def general_barrier_instances(draw: st.DrawFn, *, most_warps: int = 3, most: int = 4) -> Instance:
    """A few warps with barriers on a general machine."""
    machine = draw(GENERAL_OF_TWO)
    programs, blocks = _block(draw, machine, most_warps=most_warps, most=most)
    return _blocks(programs, machine, blocks)


@st.composite
def _automata_with_barriers(draw: st.DrawFn, units: str, most: int) -> Program:
    """An automaton in which some places are barriers, but no path is all barriers."""
    plain, first = _automaton(draw, units, most)
    marked = draw(_some_of(len(plain)))
    places = tuple(place._replace(unit=BARRIER) if at in marked else place for at, place in enumerate(plain))
    try:
        return Program(places, first)
    except InputError:
        return Program(plain, first)


@cache
def _some_of(count: int) -> st.SearchStrategy[tuple[int, ...]]:
    """None, one or two of so many places, each about as often."""
    return _evenly(*(list(combinations(range(count), size)) for size in range(3)))


@st.composite
def multiprocessors(draw: st.DrawFn, *, promises: bool = False) -> Machine:
    """Partitions, shared ports, resources and ranges of intervals, each of them in some machines only."""
    one_or_two = integers(1, 2)
    names = ("bus", "pipe")[: draw(integers(0, 2))]
    resources = tuple(PortResource(name, draw(one_or_two), draw(FLAGS)) for name in names)
    units = []
    for name in "CL"[: draw(one_or_two)]:
        held = choose(draw, ((), (names,), tuple((each,) for each in names))) if names else ()
        uses = tuple(Use(chosen, *draw(_ranges(1, 3, 4))) for chosen in held)
        latency = Latency(*draw(_ranges(1, 4)))
        units.append(UnitClass(name, draw(one_or_two), draw(integers(1, 3)), latency, draw(FLAGS), uses))
    return Machine(
        "multiprocessor",
        tuple(units),
        draw(_widths(2)),
        scheduler=choose(draw, tuple(SchedulerPromise)) if promises else SchedulerPromise.ANY,
        partitions=draw(one_or_two),
        assignment=choose(draw, tuple(WarpAssignment)),
        resources=resources,
    )


MULTIPROCESSORS, PROMISING = multiprocessors(), multiprocessors(promises=True)


@st.composite
def multiprocessor_instances(
    draw: st.DrawFn, *, most_warps: int = 3, most: int = 3, barriers: bool = True, promises: bool = False
) -> Instance:
    """A few warps on a multiprocessor; most of them run ahead."""
    machine = draw(PROMISING if promises else MULTIPROCESSORS)
    if barriers:
        programs, blocks = _block(draw, machine, most_warps=most_warps, most=most)
    else:
        programs, blocks = _warps(draw, draw(_kinds("".join(machine.capacities), most, True)), most_warps), 1
    return _blocks(_ahead(draw, programs), machine, blocks)


def _running_ahead(draw: st.DrawFn, program: Program) -> Program:
    if draw(integers(0, 4)) == 4:
        return program
    timings = tuple(
        InstructionTiming(0, (0, 0), (), draw(TOKENS))
        if place.unit == BARRIER
        else InstructionTiming(draw(integers(1, 3)), draw(_ranges(1, 5)), draw(TOKENS), draw(TOKENS))
        for place in program.places
    )
    return Program(program.places, program.starts, timings=timings)


def _ahead(draw: st.DrawFn, programs: Iterable[Program]) -> list[Program]:
    """Warps that were equal stay so."""
    ahead: dict[Program, Program] = {}
    return [ahead.get(program) or ahead.setdefault(program, _running_ahead(draw, program)) for program in programs]


@st.composite
def running_ahead(draw: st.DrawFn, program: Program) -> Program:
    """The program with random stalls, latencies and dependences through two tokens; now and then as it is."""
    return _running_ahead(draw, program)


@st.composite
def runs(draw: st.DrawFn, asked: Instance) -> Schedule:
    """A random work-conserving schedule, made with the definition and the numbers of the launch only."""
    launch = launch_of(asked)
    number = launch.listed([group.program for group in asked.groups])
    programs, instance = launch.programs(), launch.defined
    state = choose(draw, list(start_states(instance, pass_barriers=False)))
    paths: list[list[int]] = [[] for _ in programs]
    latencies: list[list[int]] = [[] for _ in programs]
    uses: list[list[tuple[tuple[int, int], ...]]] = [[] for _ in programs]
    cycles = []

    def pass_barriers(state: SmState) -> SmState:
        while passing := passing_barrier(instance, state):
            targets = {w: choose(draw, programs[w].places[state.places[w]].successors) for w in passing}
            for warp in passing:
                paths[warp].append(state.places[warp])
            state = state._replace(places=tuple(targets.get(warp, at) for warp, at in enumerate(state.places)))
        return state

    partitions = state.partitions if launch.partition_of_warp is None else ()
    state = pass_barriers(state)
    while not has_finished(instance, state):
        issuing = choose(draw, list(issue_sets(instance, state)))
        moves = []
        for warp, chosen in issuing.items():
            move = choose(draw, list(issue_outcomes(instance, state, warp, chosen)))
            paths[warp].append(state.places[warp])
            latencies[warp].append(move.latency)
            uses[warp].append(move.uses)
            moves.append(move)
        state = pass_barriers(next_state(instance, state, moves))
        cycles.append(tuple(sorted(issuing)))
    made = Schedule(
        tuple(cycles),
        tuple(map(tuple, paths)),
        () if asked.fixed_latencies else tuple(map(tuple, latencies)),
        partitions,
        () if asked.machine.fixed_uses else tuple(map(tuple, uses)),
    )
    return named(made, [number.index(warp) for warp in range(launch.warps)])


def paper_instances(most_warps: int = 4, most: int = 5, *, choices: bool = True) -> st.SearchStrategy[Instance]:
    """Instances on one C unit and one L unit."""
    return instances(machine=PAPER, choices=choices, most_warps=most_warps, most=most)


@st.composite
def gpus(
    draw: st.DrawFn, *, most_sms: int = 2, most_slots: int = 3, most_blocks: int = 5, most: int = 3
) -> GpuInstance:
    """One grid of small blocks on a few SMs of any kind: barriers, partitions, resources, warps that run ahead."""
    machine = draw(choose(draw, (machines(2, 2), GENERAL_OF_TWO, MULTIPROCESSORS)))
    programs, _ = _block(draw, machine, most_warps=2, most=most, most_blocks=1)
    if draw(FLAGS):
        programs = _ahead(draw, programs)
    sms = draw(integers(1, most_sms))
    resident = draw(integers(1, most_slots // sms))
    dispatch = choose(draw, (0, 0, 1))
    blocks = draw(integers(1, most_blocks))
    block = [(program, 1) for program in programs]
    return GpuInstance.of(block, blocks, machine, sms=sms, resident=resident, dispatch=dispatch)


@st.composite
def shared_gpus(draw: st.DrawFn, *, most_sms: int = 2, most_blocks: int = 4) -> GpuInstance:
    """Two grids of tiny blocks, which take different shares of SMs of any kind."""
    machine = draw(choose(draw, (machines(2, 2), GENERAL_OF_TWO, MULTIPROCESSORS)))
    free, room = [most_blocks], (draw(integers(1, 3)), draw(integers(2, 5)))
    grids = []
    for others in (1, 0):
        programs, _ = _block(draw, machine, most_warps=2, most=2, most_blocks=1)
        blocks = draw(integers(1, free[0] - others))
        free[0] -= blocks
        takes = draw(integers(1, room[0])), draw(integers(0, room[1]))
        grids.append(Grid(tuple((program, 1) for program in programs), blocks, takes))
    sms, dispatch = draw(integers(1, most_sms)), choose(draw, (0, 0, 1))
    return GpuInstance(tuple(grids), machine, sms, room, dispatch)


@st.composite
def gpu_runs(draw: st.DrawFn, asked: GpuInstance) -> GpuSchedule:
    """A random schedule of a whole GPU, made with the definition of an SM only, cycle by cycle and without repeats."""
    gpu = launched(asked)
    blocks = draw(st.lists(st.integers(0, gpu.sms - 1), min_size=gpu.blocks * 4, max_size=gpu.blocks * 4))
    counts = [0] * gpu.sms
    while sum(counts) < min(gpu.blocks, gpu.slots):
        number = blocks.pop() if blocks else counts.index(min(counts))
        counts[number] += counts[number] < gpu.resident
    sms = [_SmRun(gpu, count, draw) for count in counts if count]
    left = gpu.blocks
    while left or any(sm.taken for sm in sms):
        room = draw(st.permutations([(sm, slot) for sm in sms for slot in range(sm.slots) if slot not in sm.taken]))
        for sm, slot in room[:left]:
            sm.begin(slot)
        left -= min(left, len(room))
        for sm in sms:
            if sm.taken:
                sm.step()
    courses = tuple(dict.fromkeys(course for sm in sms for course in sm.courses()))
    return GpuSchedule(courses, tuple(sm.history(courses.index) for sm in sms))


class _SmRun:
    """One SM of a random schedule, and what its blocks have done."""

    def __init__(self, gpu: LaunchedGpu, slots: int, draw: st.DrawFn) -> None:
        self.gpu, self.slots, self.draw = gpu, slots, draw
        self.has_choice = gpu.launch(slots).partition_of_warp is None
        alone = resident(gpu.grid.block, 1, gpu.machine)
        self.fixed = alone.fixed_latencies, alone.machine.fixed_uses
        self.instance, self.numbers = gpu.sm(slots), gpu.slots_of_warps(slots)
        self.programs = tuple(self.instance.programs())
        self.state = choose(draw, list(nobody(self.instance)))
        self.partitions = self.state.partitions
        self.taken: dict[int, dict[int, tuple[list[int], list[int], list[tuple[tuple[int, int], ...]]]]] = {}
        self.begins: list[
            tuple[BlockStart, dict[int, tuple[list[int], list[int], list[tuple[tuple[int, int], ...]]]]]
        ] = []
        self.cycles: list[tuple[tuple[int, int], ...]] = []

    def begin(self, slot: int) -> None:
        delay = self.draw(integers(0, self.gpu.dispatch))
        self.taken[slot] = {warp: ([], [], []) for warp in range(self.gpu.grid.warps)}
        self.begins.append((BlockStart(len(self.cycles), slot, 0, delay), self.taken[slot]))
        places, waits = list(self.state.places), list(self.state.waits)
        for number, (other, _) in enumerate(self.numbers):
            if other == slot:
                places[number], waits[number] = choose(self.draw, self.programs[number].starts), delay
        self.state = self.state._replace(places=tuple(places), waits=tuple(waits))

    def _pass_barriers(self) -> None:
        while passing := passing_barrier(self.instance, self.state):
            places = list(self.state.places)
            for warp in passing:
                self._row(warp)[0].append(places[warp])
                places[warp] = choose(self.draw, self.programs[warp].places[places[warp]].successors)
            self.state = self.state._replace(places=tuple(places))

    def _row(self, number: int) -> tuple[list[int], list[int], list[tuple[tuple[int, int], ...]]]:
        slot, warp = self.numbers[number]
        return self.taken[slot][warp]

    def step(self) -> None:
        self._pass_barriers()
        moves = []
        for warp, chosen in choose(self.draw, list(issue_sets(self.instance, self.state))).items():
            move = choose(self.draw, list(issue_outcomes(self.instance, self.state, warp, chosen)))
            path, latencies, uses = self._row(warp)
            path.append(self.state.places[warp])
            latencies.append(move.latency)
            uses.append(move.uses)
            moves.append(move)
        self.state = next_state(self.instance, self.state, moves)
        self.cycles.append(tuple(sorted(self.numbers[move.warp] for move in moves)))
        self._pass_barriers()
        still = unfinished_slots(self.gpu, self.state)
        self.taken = {slot: rows for slot, rows in self.taken.items() if slot in still}

    def courses(self) -> list[BlockTrace]:
        found = []
        for _, rows in self.begins:
            paths, latencies, uses = (
                tuple(tuple(rows[warp][kind]) for warp in range(self.gpu.grid.warps)) for kind in range(3)
            )
            found.append(BlockTrace(0, paths, () if self.fixed[0] else latencies, () if self.fixed[1] else uses))  # type: ignore[arg-type]
        return found

    def history(self, number: Callable[[BlockTrace], int]) -> SmHistory:
        begins = tuple(
            begin._replace(course=number(course))
            for (begin, _), course in zip(self.begins, self.courses(), strict=True)
        )
        parts = dict(zip(self.numbers, self.partitions, strict=True)) if self.has_choice else {}
        warps = range(self.gpu.grid.warps)
        rows = [tuple(parts[slot, warp] for warp in warps) for slot in range(self.slots) if self.has_choice]
        return SmHistory(1, (RepeatedCycles(tuple(self.cycles), begins),), tuple(rows))
