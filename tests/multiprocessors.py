"""Random whole multiprocessors, small enough for the definition, and the definition as judge of their schedules."""

import random

from makespan.errors import InputError
from makespan.instance import Instance
from makespan.machine import Assignment, Latency, Machine, Resource, UnitClass, Use
from makespan.program import BARRIER, Place, Program, Timing
from makespan.schedule import Schedule
from makespan.simulate.semantics import State, finished, issues, moved, outcomes, released, starts

NAMES = "CLS"


def machine(draw: random.Random) -> Machine:
    """Partitions, resources with choices and ranges, shared ports, each in some machines only."""
    resources = tuple(
        Resource(name, draw.randint(1, 2), draw.random() < 0.4)
        for name in ("slot", "unit")[: draw.choice((0, 0, 1, 2))]
    )
    units = []
    for name in NAMES[: draw.randint(1, 3)]:
        least = draw.choice((1, draw.randint(1, 4)))
        latency = Latency(least, draw.choice((least, least + 1)))
        uses = _uses(draw, [resource.name for resource in resources])
        interval = draw.choice((1, 1, draw.randint(1, 3)))
        units.append(UnitClass(name, draw.randint(1, 2), interval, latency, draw.random() < 0.4, uses))
    return Machine(
        "random",
        tuple(units),
        draw.choice((None, 1, 2)),
        partitions=draw.choice((1, 1, 2, 3)),
        assignment=draw.choice(tuple(Assignment)),
        resources=resources,
    )


def _uses(draw: random.Random, names: list[str]) -> tuple[Use, ...]:
    if not names or draw.random() < 0.4:
        return ()
    least = draw.randint(1, 2)
    most = draw.choice((least, least + 1))
    if len(names) == 2 and draw.random() < 0.4:
        return (Use(("slot", "unit"), least, most),)
    return tuple(Use((name,), least, most) for name in names if draw.random() < 0.7)


def program(draw: random.Random, classes: str, most: int, *, barriers: bool, runs_ahead: bool) -> Program:
    """A string or an automaton, that runs ahead or blocks."""
    length = draw.randint(1, most)
    chain, places, begin, reached = draw.random() < 0.6, [], {0}, {0}
    for at in range(length):
        after = {at + 1} if chain else {draw.randint(at + 1, length) for _ in range(draw.randint(1, 2))}
        unit = BARRIER if barriers and draw.random() < 0.3 else draw.choice(classes)
        places.append(Place(unit, tuple(sorted(after))))
        if at not in reached:
            begin.add(at)
        reached |= after
    timings = tuple(timing(draw, place.unit == BARRIER) for place in places) if runs_ahead else ()
    try:
        return Program(tuple(places), tuple(sorted(begin)), timings=timings)
    except InputError:  # a path of barriers alone
        return program(draw, classes, most, barriers=barriers, runs_ahead=runs_ahead)


def timing(draw: random.Random, is_barrier: bool) -> Timing:
    """Up to two of three tokens."""
    tokens = [tuple(sorted(draw.sample(range(3), draw.choice((0, 1, 1, 2))))) for _ in range(2)]
    if is_barrier:
        return Timing(0, (0, 0), (), tokens[1])
    least = draw.randint(1, 5)
    return Timing(draw.choice((1, 1, 2)), (least, least + draw.choice((0, 0, 1))), *tokens)


def instance(draw: random.Random, *, barriers: bool = True, most_warps: int = 4) -> Instance:
    """A few warps of one or two programs."""
    chosen, warps = machine(draw), draw.randint(1, most_warps)
    barriers = barriers and draw.random() < 0.25
    classes = "".join(chosen.capacities)
    kinds = [
        program(draw, classes, 6 - warps, barriers=barriers, runs_ahead=draw.random() < 0.6)
        for _ in range(draw.choice((1, 1, 2)))
    ]
    blocks = draw.choice((1, 1, 2)) if barriers and warps % 2 == 0 else 1
    return Instance.merged([(draw.choice(kinds), blocks) for _ in range(warps // blocks)], chosen, blocks=blocks)


def obeys(instance: Instance, schedule: Schedule) -> bool:
    """Whether the definition allows this run, from a start to the end of all warps, and nothing is said in vain."""
    said = bool(schedule.latencies), bool(schedule.partitions), bool(schedule.uses)
    open_ = not instance.fixed_latencies, instance.partition_of_warp is None, not instance.machine.fixed_uses
    if said != open_:
        return False
    programs = tuple(instance.programs())
    left = [[*path, program.end] for path, program in zip(schedule.paths, programs, strict=True)]
    latencies, uses = [list(row) for row in schedule.latencies], [list(row) for row in schedule.uses]
    places = tuple(row.pop(0) for row in left)
    begun = [state for state in starts(instance, pass_barriers=False) if state.places == places]
    begun = [state for state in begun if not schedule.partitions or state.partitions == schedule.partitions]
    if len(begun) != 1:
        return False
    state = _passed(instance, begun[0], left)
    for executing in schedule.cycles:
        taken = next((taken for taken in _ways(instance, state, executing, uses)), None)
        if taken is None or finished(instance, state):
            return False
        moves = []
        for warp, chosen in taken.items():
            target, latency = left[warp].pop(0), latencies[warp].pop(0) if latencies else None
            held = uses[warp].pop(0) if uses else None
            found = [
                one
                for one in outcomes(instance, state, warp, chosen)
                if one.target == target and latency in (None, one.latency) and held in (None, one.uses)
            ]
            if len(found) != 1:
                return False
            moves += found
        state = _passed(instance, moved(instance, state, moves), left)
    return finished(instance, state) and not any(left) and not any(latencies) and not any(uses)


def _ways(instance: Instance, state: State, executing: tuple[int, ...], uses: list) -> list:  # type: ignore[type-arg]
    return [
        taken
        for taken in issues(instance, state)
        if tuple(sorted(taken)) == executing
        and (not uses or all(chosen == tuple(which for which, _ in uses[warp][0]) for warp, chosen in taken.items()))
    ]


def _passed(instance: Instance, state: State, left: list[list[int]]) -> State:
    while passing := released(instance, state):
        targets = {warp: left[warp].pop(0) for warp in passing}
        programs = tuple(instance.programs())
        assert all(to in programs[warp].places[state.places[warp]].successors for warp, to in targets.items())
        state = state._replace(places=tuple(targets.get(warp, at) for warp, at in enumerate(state.places)))
    return state
