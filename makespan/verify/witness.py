"""The witness, executed cycle by cycle: it proves the lower bound if it keeps every rule of the machine."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from makespan.model.instance import Instance
from makespan.model.machine import Machine
from makespan.model.program import BARRIER, Program
from makespan.model.schedule import Schedule
from makespan.verify.machine_form import PoolHold, class_holds, warp_partitions
from makespan.verify.refusal import Refused
from makespan.verify.sm_execution import RouteStep, Script, SmExecution


def replay(instance: Instance, witness: Schedule) -> int:
    """Return the makespan of `witness`, in cycles.

    Raises:
        Refused: a path that its program lacks, a latency, resource or interval that its instruction lacks, partitions
            of uneven sizes, an instruction for which no port or issue slot is free, or whose warp has to wait for a
            latency, a stall, a result or a barrier, a warp left out for which all is free, one that does not finish, a
            cycle after the end, or a scheduler that breaks its promise.
    """
    machine = instance.machine
    floor = SmExecution(machine, _partitions(instance, witness), instance.block_of_warp())
    written = scripts(
        machine,
        list(instance.programs()),
        witness.paths,
        None if instance.fixed_latencies and not witness.latencies else witness.latencies,
        None if machine.fixed_uses and not witness.uses else witness.uses,
    )
    for warp, script in enumerate(written):
        floor.admit(0, warp, script)
    idle = False  # in the cycle before
    for cycle, warps in enumerate(witness.cycles):
        if not floor.begin(cycle) and idle and not warps:
            continue  # nothing can be issued that could not in the cycle before
        idle = not warps
        if not is_increasing(warps):
            raise Refused(f"witness: cycle {cycle}: the executing warps are not in increasing order")
        floor.execute(cycle, warps)
    floor.begin(witness.makespan)
    if floor.unfinished:
        raise Refused(f"witness: {floor.unfinished} warps have not finished after {witness.makespan} cycles")
    return witness.makespan


def is_increasing(numbers: Sequence[int]) -> bool:
    """Return whether each number is larger than the one before."""
    return all(a < b for a, b in pairwise(numbers))


def _partitions(instance: Instance, witness: Schedule) -> tuple[int, ...]:
    chosen, fixed, parts = (witness.partitions, warp_partitions(instance), range(instance.machine.partitions))
    if fixed is not None:
        if chosen not in ((), tuple(fixed)):
            raise Refused("witness: the machine leaves no choice of a partition")
        return tuple(fixed)
    if len(chosen) != instance.warps or not set(chosen) <= set(parts):
        raise Refused(f"witness: {len(chosen)} partitions in 0..{parts[-1]} for {instance.warps} warps")
    sizes = [chosen.count(part) for part in parts]
    if max(sizes) > min(sizes) + 1:
        raise Refused(f"witness: the warps are not spread evenly over the partitions: {sizes}")
    return chosen


def scripts(
    machine: Machine,
    programs: Sequence[Program],
    paths: Sequence[tuple[int, ...]],
    latencies: Sequence[Sequence[int]] | None,
    uses: Sequence[Sequence[Sequence[tuple[int, int]]]] | None,
) -> list[Script]:
    """Return the choices of warps as scripts, once each is known to be one that the adversary has.

    Args:
        machine: the SM.
        programs: of every warp.
        paths: of every warp the places on its way.
        latencies: of all of their instructions; None where there is no choice.
        uses: for each of their instructions and uses the resource and the cycles; None where there is no choice.

    Raises:
        Refused: there is no such path, latency or use.
    """
    routes = _routes(machine, programs, paths)
    chosen = _latencies(routes, latencies)
    held = [()] * len(routes) if uses is None else _uses(machine, routes, uses)
    return list(map(Script, routes, chosen, held))


def _routes(machine: Machine, programs: Sequence[Program], paths: Sequence[tuple[int, ...]]) -> list[list[RouteStep]]:
    classes = {unit.name: (unit.latency.least, unit.latency.most) for unit in machine.units}
    known: dict[int, list[RouteStep]] = {}  # equal programs and paths are the same objects, and are checked only once
    routes: dict[tuple[int, int], list[RouteStep]] = {}
    found = []
    for program, path in zip(programs, paths, strict=True):
        if id(program) not in known:
            known[id(program)] = _places(program, classes)
        if (id(program), id(path)) not in routes:
            routes[id(program), id(path)] = _route(program, path, known[id(program)])
        found.append(routes[id(program), id(path)])
    return found


def _places(program: Program, classes: Mapping[str, tuple[int, int]]) -> list[RouteStep]:
    if not program.timings:
        return [RouteStep(place.unit, classes.get(place.unit, (0, 0))) for place in program.places]
    return [
        RouteStep(place.unit, timing.latency, timing.stall, timing.sets, timing.awaits)
        for place, timing in zip(program.places, program.timings, strict=True)
    ]


def _route(program: Program, path: tuple[int, ...], places: list[RouteStep]) -> list[RouteStep]:
    if path[0] not in program.starts:
        raise Refused(f"witness: no warp of its program begins at place {path[0]}")
    for place, after in zip(path, (*path[1:], program.end), strict=True):
        if place >= program.end or after not in program.places[place].successors:
            raise Refused(f"witness: place {after} does not follow place {place}")
    return [places[place] for place in path]


def _instructions_of(route: Iterable[RouteStep]) -> list[RouteStep]:
    return [step for step in route if step.unit != BARRIER]


def _latencies(routes: Sequence[list[RouteStep]], chosen: Sequence[Sequence[int]] | None) -> list[Sequence[int]]:
    if chosen is None:
        known: dict[int, Sequence[int]] = {}
        for route in routes:
            if id(route) not in known:
                known[id(route)] = [step.latency[0] for step in _instructions_of(route)]
        return [known[id(route)] for route in routes]
    if len(chosen) != len(routes):
        raise Refused(f"witness: latencies of {len(chosen)} warps for {len(routes)} warps")
    for warp, (route, row) in enumerate(zip(routes, chosen, strict=True)):
        executed = _instructions_of(route)
        if len(row) != len(executed):
            raise Refused(f"witness: {len(row)} latencies for {len(executed)} instructions of warp {warp}")
        for step, latency in zip(executed, row, strict=True):
            if not step.latency[0] <= latency <= step.latency[1]:
                raise Refused(f"witness: a latency of {latency} for class {step.unit} of warp {warp}")
    return list(chosen)


def _uses(
    machine: Machine, routes: Sequence[list[RouteStep]], chosen: Sequence[Sequence[Sequence[tuple[int, int]]]]
) -> list[Sequence[Sequence[tuple[int, int]]]]:
    if len(chosen) != len(routes):
        raise Refused(f"witness: uses of {len(chosen)} warps for {len(routes)} warps")
    uses = {unit.name: class_holds(unit)[1:] for unit in machine.units}
    for warp, (route, row) in enumerate(zip(routes, chosen, strict=True)):
        executed = _instructions_of(route)
        if len(row) != len(executed):
            raise Refused(f"witness: uses of {len(row)} instructions for {len(executed)} of warp {warp}")
        for step, held in zip(executed, row, strict=True):
            known = uses[step.unit]
            if len(held) != len(known) or not all(map(_is_use, known, held)):
                raise Refused(f"witness: uses {held} for class {step.unit} of warp {warp}")
    return [[held for held in row if held] for row in chosen]  # of a class without uses the execution asks for none


def _is_use(use: PoolHold, held: tuple[int, int]) -> bool:
    which, cycles = held
    return 0 <= which < len(use.pools) and use.least <= cycles <= use.most
