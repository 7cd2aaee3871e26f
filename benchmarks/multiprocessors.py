"""Random instances on whole multiprocessors, small enough for the definition."""

import random

from makespan.host.errors import InputError
from makespan.model.instance import Instance
from makespan.model.machine import Latency, Machine, PortResource, UnitClass, Use, WarpAssignment
from makespan.model.program import BARRIER, InstructionTiming, Program, ProgramPlace

NAMES = "CLS"


def machine(draw: random.Random) -> Machine:
    """Partitions, resources with choices and ranges, shared ports, each in some machines only."""
    resources = tuple(
        PortResource(name, draw.randint(1, 2), draw.random() < 0.4)
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
        assignment=draw.choice(tuple(WarpAssignment)),
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
        places.append(ProgramPlace(unit, tuple(sorted(after))))
        if at not in reached:
            begin.add(at)
        reached |= after
    timings = tuple(timing(draw, place.unit == BARRIER) for place in places) if runs_ahead else ()
    try:
        return Program(tuple(places), tuple(sorted(begin)), timings=timings)
    except InputError:  # a path of barriers alone
        return program(draw, classes, most, barriers=barriers, runs_ahead=runs_ahead)


def timing(draw: random.Random, is_barrier: bool) -> InstructionTiming:
    """Up to two of three tokens."""
    tokens = [tuple(sorted(draw.sample(range(3), draw.choice((0, 1, 1, 2))))) for _ in range(2)]
    if is_barrier:
        return InstructionTiming(0, (0, 0), (), tokens[1])
    least = draw.randint(1, 5)
    return InstructionTiming(draw.choice((1, 1, 2)), (least, least + draw.choice((0, 0, 1))), *tokens)


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
