"""Random machines, programs and instances, small enough for brute force."""

from hypothesis import strategies as st

from makespan.errors import InputError
from makespan.gpu import GpuInstance
from makespan.instance import Instance
from makespan.machine import PAPER, Assignment, Latency, Machine, Resource, Scheduler, UnitClass, Use
from makespan.program import BARRIER, Place, Program, Timing
from makespan.schedule import Schedule
from makespan.simulate.semantics import State, finished, issues, moved, outcomes, released, starts

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
