"""Random machines, programs and instances, small enough for brute force."""

from hypothesis import strategies as st

from makespan.instance import Instance
from makespan.machine import PAPER, Machine
from makespan.program import Place, Program
from makespan.schedule import Schedule
from makespan.simulate.semantics import selections, starts

CLASSES = "CLS"


def machines(most_classes: int = 3, most_units: int = 3) -> st.SearchStrategy[Machine]:
    """One to three classes with one to three units each."""
    units = st.integers(1, most_units)
    return st.integers(1, most_classes).flatmap(
        lambda count: st.fixed_dictionaries(dict.fromkeys(CLASSES[:count], units)).map(Machine.of)
    )


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
def runs(draw: st.DrawFn, instance: Instance) -> Schedule:
    """A random work-conserving schedule, made with the definition only."""
    programs = tuple(instance.programs())
    state = list(draw(st.sampled_from(list(starts(instance)))))
    paths: list[list[int]] = [[] for _ in programs]
    cycles = []
    while executing := draw(st.sampled_from(list(selections(instance, tuple(state))))):
        for warp in executing:
            paths[warp].append(state[warp])
            state[warp] = draw(st.sampled_from(programs[warp].places[state[warp]].successors))
        cycles.append(executing)
    return Schedule(tuple(cycles), tuple(map(tuple, paths)))


def paper_instances(most_warps: int = 4, most: int = 5, *, choices: bool = True) -> st.SearchStrategy[Instance]:
    """Instances on one C unit and one L unit."""
    return instances(machine=PAPER, choices=choices, most_warps=most_warps, most=most)
