"""Random tiny instances whose schedulers lapse and whose lines are late, and what lapses add to a robust bound."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from random import Random

from makespan.model.instance import Instance
from makespan.model.lapses import NO_LAPSES, CacheLine, PlaceLapses
from makespan.model.machine import Latency, Machine, PortResource, UnitClass, UnitQueue, Use, WarpAssignment
from makespan.model.program import BARRIER, InstructionTiming, Program, ProgramPlace
from makespan.model.schedule import Schedule, WithheldWarp
from makespan.model.simulate.semantics import (
    SmState,
    disturbances,
    has_finished,
    issue_outcomes,
    issue_sets,
    next_state,
    settled_states,
    start_states,
)

MOST_STATES = 1500
"""States of an instance that the oracle looks at before it gives it up."""


def lapsing(random: Random, program: Program, lines: Sequence[CacheLine], lapses: str) -> Program:
    """The program with random lapses: some of credit, fences, misses and lines, by their first letters."""

    def place() -> PlaceLapses:
        needs = [line for line in lines if "l" in lapses and random.random() < 0.6]
        return PlaceLapses(
            random.choice((0, 0, 1, 1, 2)) if "c" in lapses else 0,
            random.choice((0, 0, 0, 1, 2)) if "f" in lapses else 0,
            random.choice((0, 0, 0, 1, 2)) if "m" in lapses else 0,
            tuple(needs),
        )

    return program.lapsing(tuple(place() for _ in program.places))


def never_lapsing(program: Program) -> Program:
    """The same program, of whose lapses it is known that there are none, unless it has some."""
    return program.lapsing(program.lapses or (NO_LAPSES,) * program.end)


def behind(queues: tuple[UnitQueue, ...], instance: Instance) -> Instance:
    """The same warps behind these queues, which count only where lapses are known."""
    groups = tuple(replace(group, program=never_lapsing(group.program)) for group in instance.groups)
    return replace(instance, groups=groups, machine=replace(instance.machine, queues=queues))


def multiprocessor(random: Random) -> Machine:
    """One to three partitions, with resources in some."""
    names = ("a", "b")[: random.choice((0, 0, 1, 2))]
    units = []
    for name in "CLS"[: random.choice((1, 2, 2, 3))]:
        uses = random.choice(((), (names,), tuple((each,) for each in names))) if names else ()
        held = tuple(Use(own, least := random.choice((1, 1, 2)), least + random.choice((0, 0, 1))) for own in uses)
        interval, capacity = random.choice((1, 1, 2, 3)), random.choice((1, 1, 1, 2))
        units.append(UnitClass(name, capacity, interval, _latency(random), random.random() < 0.3, held))
    return Machine(
        "random",
        tuple(units),
        random.choice((1, 1, 1, 2, None)),
        partitions=random.choice((1, 1, 2, 2, 3)),
        assignment=random.choice(tuple(WarpAssignment)),
        resources=tuple(PortResource(name, random.choice((1, 1, 2)), random.random() < 0.5) for name in names),
    )


def plain_machine(random: Random, widths: Sequence[int | None] = (1, 1, None)) -> Machine:
    """One partition without resources."""
    unit = partial(random.choice, (1, 1, 2, 3))
    units = (UnitClass(n, random.choice((1, 1, 1, 2)), unit(), _latency(random)) for n in "CLS"[: random.randint(1, 3)])
    return Machine("random", tuple(units), random.choice(widths))


def _latency(random: Random) -> Latency:
    least = random.choice((1, 1, 2, 3))
    return Latency(least, least + random.choice((0, 0, 1)))


def instance(random: Random, machine: Machine, *, ahead: bool, barriers: bool, most: int = 6) -> Instance:
    """Two to four warps of one or two programs with at most `most` places in all, in one block or, rarely, in two."""
    warps = random.choice((2, 2, 3, 3, 4))
    blocks = 2 if barriers and warps != 3 and random.random() < 0.2 else 1
    lines = [CacheLine(f"line {n}", random.randint(1, 3)) for n in range(random.choice((0, 1, 1, 2)))]
    lapses = random.choice(("c", "c", "c", "cl", "cl", "cf", "cm", "l", "l", "lm", "f", "cflm"))
    programs = []
    for _ in range(random.choice((1, 2))):
        program = _program(random, "".join(machine.capacities), max(1, most // warps), barriers)
        if ahead and random.random() < 0.7:
            program = _running_ahead(random, program)
        programs.append(lapsing(random, program, lines, lapses))
    chosen = [random.choice(programs) for _ in range(warps // blocks)]
    return Instance.merged([(program, blocks) for program in chosen], machine, blocks=blocks)


def _program(random: Random, units: str, most: int, barriers: bool) -> Program:
    """A string, or an automaton, whose paths all have an instruction."""
    end = random.randint(1, most + barriers)
    names = [random.choice(units) for _ in range(end)]
    if barriers and end > 1:
        for at in random.sample(range(end), random.randint(1, min(2, end - 1))):
            names[at] = BARRIER
    after = [(at + 1,) for at in range(end)]
    if random.random() < 0.25 and BARRIER not in names:
        after = [(at + 1, *(() if at + 2 > end or random.random() < 0.5 else (at + 2,))) for at in range(end)]
    return Program(tuple(map(ProgramPlace, names, after)))


def _running_ahead(random: Random, program: Program) -> Program:
    def tokens() -> tuple[int, ...]:
        return random.choice(((), (0,), (1,), (0, 1)))

    def timing(place: ProgramPlace) -> InstructionTiming:
        if place.unit == BARRIER:
            return InstructionTiming(0, (0, 0), (), tokens())
        least = random.choice((1, 1, 2, 3))
        latency = least, least + random.choice((0, 0, 1))
        return InstructionTiming(random.choice((1, 1, 2, 3)), latency, tokens(), tokens())

    return replace(program, timings=tuple(map(timing, program.places)))


def charges(instance: Instance, *, theorem_e: bool, broken: str = "") -> int:
    """What lapses add to a robust bound, from the text of the theorems. `broken` leaves out a part that is needed."""
    groups = [group.program for group in instance.groups]
    every = list(map(never_lapsing, groups))
    credit = [program.heaviest([place.credit for place in program.lapses]) for program in every]
    fence = [program.heaviest([place.fence for place in program.lapses]) for program in every]
    misses = [program.heaviest([place.misses for place in program.lapses]) for program in every]
    windows = [sum(line.window for line in program.lines) for program in every]
    lines = {line.name: line.window for program in every for line in program.lines}
    of_warp, parts = instance.group_of_warp(), instance.machine.partitions
    own_fence = 0 if broken == "no fence" else sum(fence[group] for group in of_warp)
    if broken == "own credit":
        own_credit = max(credit)
    elif instance.has_barriers:
        own_credit = sum(credit[group] for group in of_warp)
    elif (partitions := instance.partition_of_warp) is not None:
        found = Counter[int]()
        for group, part in zip(of_warp, partitions, strict=True):
            found[part] += credit[group]
        own_credit = max(found.values())
    else:
        own_credit = sum(sorted((credit[group] for group in of_warp), reverse=True)[: -(-instance.warps // parts)])
    if instance.has_barriers:
        phases = 1 + max(sum(place.unit == BARRIER for place in program.places) for program in groups)
        late = sum(lines.values()) * (1 if broken == "one window" else min(parts, phases))
        missed = sum(misses[group] for group in of_warp)
    else:
        late, missed = max(windows), max(misses)
    others = 0
    if theorem_e:  # each cycle in which another warp of the partition is withheld may cost a pair
        others = sum(lines.values()) + sum(misses[group] for group in of_warp)
    return own_credit + own_fence + late + missed + others


def walk(instance: Instance, choose: Callable[[Sequence[SmState]], int]) -> Schedule:
    """The schedule of a walk through the definition, on which `choose` picks one of the states that may follow."""
    programs = tuple(instance.programs())
    starts = list(start_states(instance))
    state = starts[choose(starts)]
    paths = [barriers_between(program, program.starts, at) for program, at in zip(programs, state.places, strict=True)]
    latencies: list[list[int]] = [[] for _ in programs]
    uses: list[list[tuple[tuple[int, int], ...]]] = [[] for _ in programs]
    cycles, lapses, withheld = list[tuple[int, ...]](), list[tuple[int, int]](), list[WithheldWarp]()
    while not has_finished(instance, state):
        ways = [
            (cycle, moves, after)
            for cycle in disturbances(instance, state)
            for taken in issue_sets(instance, cycle.state, cycle.kept_out)
            for moves in product(*(issue_outcomes(instance, state, warp, chosen) for warp, chosen in taken.items()))
            for after in settled_states(instance, next_state(instance, cycle.state, moves, cycle.withheld))
        ]
        cycle, moves, after = ways[choose([after for _, _, after in ways])]
        lapses += [(len(cycles), part) for part in cycle.lapsing]
        withheld += [WithheldWarp(len(cycles), warp, cycle.state.places[warp], line) for warp, line in cycle.withheld]
        issued = {move.warp: move for move in moves}
        for warp, move in issued.items():
            paths[warp].append(state.places[warp])
            latencies[warp].append(move.latency)
            uses[warp].append(move.uses)
        for warp, program in enumerate(programs):
            begin = issued[warp].target if warp in issued else state.places[warp]
            paths[warp] += barriers_between(program, (begin,), after.places[warp])
        cycles.append(tuple(sorted(issued)))
        state = after
    made = Schedule.of(instance, cycles, paths, latencies, uses, state.partitions)
    return replace(made, lapses=tuple(lapses), withheld=tuple(withheld))


def barriers_between(program: Program, begins: Sequence[int], after: int) -> list[int]:
    """The barriers that a warp passes on its only way from one of these places to another."""
    ways = [[at] for at in begins]
    found = []
    while ways:
        way = ways.pop()
        if way[-1] == after:
            found.append(way[:-1])
        elif way[-1] < program.end and program.places[way[-1]].unit == BARRIER:
            ways += [[*way, to] for to in program.places[way[-1]].successors]
    (only,) = found
    return only
