"""Random machines, programs and instances, small enough for brute force."""

from collections.abc import Callable

from hypothesis import strategies as st

from makespan.errors import InputError
from makespan.gpu import Begin, Course, GpuInstance, GpuSchedule, Grid, History, Stretch
from makespan.instance import Instance
from makespan.machine import PAPER, Assignment, Latency, Machine, Resource, Scheduler, UnitClass, Use
from makespan.program import BARRIER, Place, Program, Timing
from makespan.schedule import Schedule
from makespan.simulate.semantics import State, finished, issues, moved, outcomes, released, starts
from tests.oracle import nobody, unfinished_slots

CLASSES = "CLS"


def machines(most_classes: int = 3, most_units: int = 3) -> st.SearchStrategy[Machine]:
    """One to three classes with one to three units each."""
    units = st.integers(1, most_units)
    return st.integers(1, most_classes).flatmap(
        lambda count: st.fixed_dictionaries(dict.fromkeys(CLASSES[:count], units)).map(Machine.of)
    )


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
    for name in CLASSES[: draw(st.integers(1, most_classes))]:
        least = draw(st.integers(1, most_latency))
        most = draw(st.just(least) | st.integers(least, most_latency))
        interval = draw(st.just(1) | st.integers(1, most_interval))
        units.append(UnitClass(name, draw(st.integers(1, most_units)), interval, Latency(least, most)))
    return Machine("general", tuple(units), draw(st.none() | st.integers(1, most_width)))


@st.composite
def general_instances(draw: st.DrawFn, *, most_warps: int = 3, most: int = 3, choices: bool = True) -> Instance:
    """A few warps of a few instructions on a general machine."""
    machine = draw(general_machines())
    return draw(instances(machine=machine, choices=choices, most_warps=most_warps, most=most))


def letters(units: str = "CL", most: int = 6) -> st.SearchStrategy[str]:
    """An instruction string."""
    return st.text(units, min_size=1, max_size=most)


def chains(units: str = "CL", most: int = 6) -> st.SearchStrategy[Program]:
    """The program of a string."""
    return letters(units, most).map(Program.chain)


@st.composite
def automata(draw: st.DrawFn, units: str = "CL", most: int = 5) -> Program:
    """A program with choices: any acyclic automaton in which every place is reached and leads to the end."""
    end = draw(st.integers(1, most))
    places: list[Place] = []
    first: set[int] = {0}
    reached: set[int] = set()
    for number in range(end):
        after = draw(st.sets(st.integers(number + 1, end), min_size=1, max_size=2))
        places.append(Place(draw(st.sampled_from(units)), tuple(sorted(after))))
        if number not in reached or draw(st.integers(0, 5)) == 5:
            first.add(number)
        reached |= after
    return Program(tuple(places), tuple(sorted(first)))


@st.composite
def instances(
    draw: st.DrawFn, *, machine: Machine | None = None, choices: bool = True, most_warps: int = 4, most: int = 4
) -> Instance:
    """Up to `most_warps` warps of up to `most` instructions in one to three groups, strings or automata."""
    chosen = machine or draw(machines())
    units = "".join(chosen.capacities)
    program = st.one_of(chains(units, most), automata(units, most)) if choices else chains(units, most)
    kinds = draw(st.lists(program, min_size=1, max_size=3))
    numbers = draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=most_warps))
    return Instance.merged([(kind, 1) for kind in numbers], chosen)


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
    chosen = machine or draw(machines(most_classes=2, most_units=most_units))
    units = "".join(chosen.capacities) + BARRIER
    kinds = draw(st.lists(st.one_of(_chains_with(units, most), _automata_with(units, most)), min_size=1, max_size=2))
    blocks = draw(st.integers(1, most_blocks))
    numbers = draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=most_warps // blocks))
    return Instance.merged([(kind, blocks) for kind in numbers], chosen, blocks=blocks)


@st.composite
def general_barrier_instances(draw: st.DrawFn, *, most_warps: int = 3, most: int = 4) -> Instance:
    """A few warps with barriers on a general machine."""
    machine = draw(general_machines(most_classes=2))
    return draw(barrier_instances(machine=machine, most_warps=most_warps, most=most))


def _chains_with(units: str, most: int) -> st.SearchStrategy[Program]:
    return letters(units, most).filter(lambda string: string.strip(BARRIER)).map(Program.chain)


@st.composite
def _automata_with(draw: st.DrawFn, units: str, most: int) -> Program:
    """An automaton in which some places are barriers, but no path is all barriers."""
    plain = draw(automata(units.replace(BARRIER, ""), most))
    marked = draw(st.sets(st.integers(0, plain.end - 1), max_size=2))
    places = [p._replace(unit=BARRIER if at in marked else p.unit) for at, p in enumerate(plain.places)]
    try:
        return Program(tuple(places), plain.starts)
    except InputError:
        return plain


@st.composite
def multiprocessors(draw: st.DrawFn, *, promises: bool = False) -> Machine:
    """Partitions, shared ports, resources and ranges of intervals, each of them in some machines only."""
    flags, cycles = st.booleans(), st.integers(1, 3)
    resources = tuple(
        Resource(name, draw(st.integers(1, 2)), draw(flags)) for name in ("bus", "pipe")[: draw(cycles) - 1]
    )
    names = tuple(resource.name for resource in resources)
    units = []
    for name in "CL"[: draw(st.integers(1, 2))]:
        uses: list[Use] = []
        for chosen in draw(st.sampled_from([(), (names,), tuple((each,) for each in names)])) if names else ():
            least = draw(cycles)
            uses.append(Use(chosen, least, draw(st.just(least) | st.integers(least, 3))))
        least = draw(cycles)
        latency = Latency(least, draw(st.just(least) | st.integers(least, 4)))
        units.append(UnitClass(name, draw(st.integers(1, 2)), draw(cycles), latency, draw(flags), tuple(uses)))
    return Machine(
        "multiprocessor",
        tuple(units),
        draw(st.none() | st.integers(1, 2)),
        scheduler=draw(st.sampled_from(Scheduler)) if promises else Scheduler.ANY,
        partitions=draw(st.integers(1, 2)),
        assignment=draw(st.sampled_from(Assignment)),
        resources=resources,
    )


@st.composite
def multiprocessor_instances(
    draw: st.DrawFn, *, most_warps: int = 3, most: int = 3, barriers: bool = True, promises: bool = False
) -> Instance:
    """A few warps on a multiprocessor; most of them run ahead."""
    machine = draw(multiprocessors(promises=promises))
    instance = draw(
        barrier_instances(machine=machine, most_warps=most_warps, most=most)
        if barriers
        else instances(machine=machine, most_warps=most_warps, most=most)
    )
    groups = [(draw(running_ahead(group.program)), group.warps) for group in instance.groups]
    return Instance.merged(groups, machine, blocks=instance.blocks)


@st.composite
def running_ahead(draw: st.DrawFn, program: Program) -> Program:
    """The program with random stalls, latencies and dependences through two tokens; now and then as it is."""
    if draw(st.integers(0, 4)) == 4:
        return program
    tokens = st.sets(st.integers(0, 1)).map(sorted).map(tuple)
    timings = []
    for place in program.places:
        if place.unit == BARRIER:
            timings.append(Timing(0, (0, 0), (), draw(tokens)))
            continue
        least = draw(st.integers(1, 4))
        most = draw(st.just(least) | st.integers(least, 5))
        timings.append(Timing(draw(st.integers(1, 3)), (least, most), draw(tokens), draw(tokens)))
    return Program(program.places, program.starts, timings=tuple(timings))


@st.composite
def runs(draw: st.DrawFn, instance: Instance) -> Schedule:
    """A random work-conserving schedule, made with the definition only."""
    programs = tuple(instance.programs())
    state = draw(st.sampled_from(list(starts(instance, pass_barriers=False))))
    paths: list[list[int]] = [[] for _ in programs]
    latencies: list[list[int]] = [[] for _ in programs]
    uses: list[list[tuple[tuple[int, int], ...]]] = [[] for _ in programs]
    cycles = []

    def pass_barriers(state: State) -> State:
        while passing := released(instance, state):
            targets = {w: draw(st.sampled_from(programs[w].places[state.places[w]].successors)) for w in passing}
            for warp in passing:
                paths[warp].append(state.places[warp])
            state = state._replace(places=tuple(targets.get(warp, at) for warp, at in enumerate(state.places)))
        return state

    partitions = state.partitions if instance.partition_of_warp is None else ()
    state = pass_barriers(state)
    while not finished(instance, state):
        issuing = draw(st.sampled_from(list(issues(instance, state))))
        moves = []
        for warp, chosen in issuing.items():
            move = draw(st.sampled_from(list(outcomes(instance, state, warp, chosen))))
            paths[warp].append(state.places[warp])
            latencies[warp].append(move.latency)
            uses[warp].append(move.uses)
            moves.append(move)
        state = pass_barriers(moved(instance, state, moves))
        cycles.append(tuple(sorted(issuing)))
    return Schedule(
        tuple(cycles),
        tuple(map(tuple, paths)),
        () if instance.fixed_latencies else tuple(map(tuple, latencies)),
        partitions,
        () if instance.machine.fixed_uses else tuple(map(tuple, uses)),
    )


def paper_instances(most_warps: int = 4, most: int = 5, *, choices: bool = True) -> st.SearchStrategy[Instance]:
    """Instances on one C unit and one L unit."""
    return instances(machine=PAPER, choices=choices, most_warps=most_warps, most=most)


@st.composite
def gpus(
    draw: st.DrawFn, *, most_sms: int = 2, most_slots: int = 3, most_blocks: int = 5, most: int = 3
) -> GpuInstance:
    """One grid of small blocks on a few SMs of any kind: barriers, partitions, resources, warps that run ahead."""
    machine = draw(
        st.one_of(machines(most_classes=2, most_units=2), general_machines(most_classes=2), multiprocessors())
    )
    one = draw(barrier_instances(machine=machine, most_warps=2, most=most, most_blocks=1))
    is_ahead = draw(st.booleans())
    block = [(draw(running_ahead(group.program)) if is_ahead else group.program, group.warps) for group in one.groups]
    sms = draw(st.integers(1, most_sms))
    resident = draw(st.integers(1, most_slots // sms))
    dispatch = draw(st.sampled_from((0, 0, 1)))
    blocks = draw(st.integers(1, most_blocks))
    return GpuInstance.of(block, blocks, machine, sms=sms, resident=resident, dispatch=dispatch)


@st.composite
def shared_gpus(draw: st.DrawFn, *, most_sms: int = 2, most_blocks: int = 4) -> GpuInstance:
    """Two grids of tiny blocks, which take different shares of SMs of any kind."""
    machine = draw(
        st.one_of(machines(most_classes=2, most_units=2), general_machines(most_classes=2), multiprocessors())
    )
    free, room = [most_blocks], (draw(st.integers(1, 3)), draw(st.integers(2, 5)))
    grids = []
    for others in (1, 0):
        one = draw(barrier_instances(machine=machine, most_warps=2, most=2, most_blocks=1))
        blocks = draw(st.integers(1, free[0] - others))
        free[0] -= blocks
        takes = draw(st.integers(1, room[0])), draw(st.integers(0, room[1]))
        grids.append(Grid(tuple((group.program, group.warps) for group in one.groups), blocks, takes))
    sms, dispatch = draw(st.integers(1, most_sms)), draw(st.sampled_from((0, 0, 1)))
    return GpuInstance(tuple(grids), machine, sms, room, dispatch)


@st.composite
def gpu_runs(draw: st.DrawFn, gpu: GpuInstance) -> GpuSchedule:
    """A random schedule of a whole GPU, made with the definition of an SM only, cycle by cycle and without repeats."""
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

    def __init__(self, gpu: GpuInstance, slots: int, draw: st.DrawFn) -> None:
        self.gpu, self.slots, self.draw = gpu, slots, draw
        self.instance, self.numbers = gpu.sm(slots), gpu.slots_of_warps(slots)
        self.programs = tuple(self.instance.programs())
        self.state = draw(st.sampled_from(list(nobody(self.instance))))
        self.partitions = self.state.partitions
        self.taken: dict[int, dict[int, tuple[list[int], list[int], list[tuple[tuple[int, int], ...]]]]] = {}
        self.begins: list[tuple[Begin, dict[int, tuple[list[int], list[int], list[tuple[tuple[int, int], ...]]]]]] = []
        self.cycles: list[tuple[tuple[int, int], ...]] = []

    def begin(self, slot: int) -> None:
        delay = self.draw(st.integers(0, self.gpu.dispatch))
        self.taken[slot] = {warp: ([], [], []) for warp in range(self.gpu.grid.warps)}
        self.begins.append((Begin(len(self.cycles), slot, 0, delay), self.taken[slot]))
        places, waits = list(self.state.places), list(self.state.waits)
        for number, (other, _) in enumerate(self.numbers):
            if other == slot:
                places[number], waits[number] = self.draw(st.sampled_from(self.programs[number].starts)), delay
        self.state = self.state._replace(places=tuple(places), waits=tuple(waits))

    def _pass_barriers(self) -> None:
        while passing := released(self.instance, self.state):
            places = list(self.state.places)
            for warp in passing:
                self._row(warp)[0].append(places[warp])
                places[warp] = self.draw(st.sampled_from(self.programs[warp].places[places[warp]].successors))
            self.state = self.state._replace(places=tuple(places))

    def _row(self, number: int) -> tuple[list[int], list[int], list[tuple[tuple[int, int], ...]]]:
        slot, warp = self.numbers[number]
        return self.taken[slot][warp]

    def step(self) -> None:
        self._pass_barriers()
        moves = []
        for warp, chosen in self.draw(st.sampled_from(list(issues(self.instance, self.state)))).items():
            move = self.draw(st.sampled_from(list(outcomes(self.instance, self.state, warp, chosen))))
            path, latencies, uses = self._row(warp)
            path.append(self.state.places[warp])
            latencies.append(move.latency)
            uses.append(move.uses)
            moves.append(move)
        self.state = moved(self.instance, self.state, moves)
        self.cycles.append(tuple(sorted(self.numbers[move.warp] for move in moves)))
        self._pass_barriers()
        still = unfinished_slots(self.gpu, self.state)
        self.taken = {slot: rows for slot, rows in self.taken.items() if slot in still}

    def courses(self) -> list[Course]:
        found = []
        for _, rows in self.begins:
            paths, latencies, uses = (
                tuple(tuple(rows[warp][kind]) for warp in range(self.gpu.grid.warps)) for kind in range(3)
            )
            fixed = self.instance.fixed_latencies, self.instance.machine.fixed_uses
            found.append(Course(0, paths, () if fixed[0] else latencies, () if fixed[1] else uses))  # type: ignore[arg-type]
        return found

    def history(self, number: Callable[[Course], int]) -> History:
        begins = tuple(
            begin._replace(course=number(course))
            for (begin, _), course in zip(self.begins, self.courses(), strict=True)
        )
        given = self.instance.partition_of_warp is None
        parts = dict(zip(self.numbers, self.partitions, strict=True)) if given else {}
        rows = [tuple(parts[slot, warp] for warp in range(self.gpu.grid.warps)) for slot in range(self.slots) if given]
        return History(1, (Stretch(tuple(self.cycles), begins),), tuple(rows))
