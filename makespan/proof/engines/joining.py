"""The schedules of the phases between barriers, one after another, as a schedule of the whole."""

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import chain

from makespan.host.errors import BrokenPromiseError
from makespan.model.instance import Instance
from makespan.model.program import BARRIER, Program
from makespan.model.schedule import Schedule
from makespan.proof.bounds import Phase
from makespan.proof.engines.partitioned import only_latencies, only_uses

PhasePlaces = tuple[int, ...]
"""For every place of a phase, that of the whole program."""


def join_phases(instance: Instance, cut: Sequence[Phase], witnesses: Sequence[Schedule]) -> Schedule | None:
    """Return a schedule of the whole; None if a warp may not be where the next phase wants it.

    Warps of a group are interchangeable at the start of a phase that they all begin at the same place. Where all have
    to wait first for ports of earlier phases, each partition begins as late as it must.
    """
    if not _joinable(instance, cut):
        return None
    machine, programs = instance.machine, tuple(instance.programs())
    units = {unit.name: unit for unit in machine.units}
    paths: list[list[int]] = [[] for _ in programs]
    latencies: list[list[int]] = [[] for _ in programs]
    uses: list[list[tuple[tuple[int, int], ...]]] = [[] for _ in programs]
    cycles: list[list[int]] = []
    partition_of = instance.partition_of_warp or witnesses[0].partitions
    busy: dict[tuple[int, str], int] = {}  # by partition and port, until when
    for phase, witness in zip(cut, witnesses, strict=True):
        begun = end = len(cycles)
        delays = [
            max((0, *(busy.get((part, name), 0) - begun for name, _ in phase.late)))
            for part in range(machine.partitions)
        ]
        crew = _crew(instance, phase)
        if instance.partition_of_warp is None:
            crew = _match_partitions(crew, witness.partitions, partition_of)
        issued = []
        for number, (program, at) in enumerate(_issues(phase, witness)):
            warp, places = crew[number]
            path = witness.paths[number]
            own_latencies = witness.latencies[number] if witness.latencies else only_latencies(machine, program, path)
            own_uses = witness.uses[number] if witness.uses else only_uses(machine, program, path)
            visited = [places[place] for place in path]
            paths[warp] += [*_gap(programs[warp], paths[warp], visited[0]), *visited]
            latencies[warp] += own_latencies
            uses[warp] += own_uses
            part = partition_of[warp]
            for cycle, place, latency, held in zip(at, path, own_latencies, own_uses, strict=True):
                now, unit = begun + delays[part] + cycle, units[program.places[place].unit]
                issued.append((now, warp))
                timing = program.timings[place] if program.timings else None
                lasts = latency if timing is None else max(timing.stall, latency if timing.sets else 0)
                end = max(end, now + lasts)
                ports = [(unit.name, unit.interval)]
                ports += [(use.resources[which], n) for use, (which, n) in zip(unit.uses, held, strict=True)]
                for name, interval in ports:
                    busy[part, name] = max(now + interval, busy.get((part, name), 0))
        cycles += [[] for _ in range(end - begun)]
        for now, warp in issued:
            cycles[now].append(warp)
    whole = ((*path, *_gap(program, path, program.end)) for program, path in zip(programs, paths, strict=True))
    return Schedule(
        tuple(tuple(sorted(executing)) for executing in cycles),
        tuple(whole),
        () if instance.fixed_latencies else tuple(map(tuple, latencies)),
        partition_of if instance.partition_of_warp is None else (),
        () if machine.fixed_uses else tuple(map(tuple, uses)),
    )


def _joinable(instance: Instance, cut: Sequence[Phase]) -> bool:
    """Return whether each group enters every phase but its first at one place only, in partitions of equal contents."""
    if instance.partition_of_warp is None and not instance.identical:
        return False
    seen: set[int] = set()
    for part in chain.from_iterable(phase.parts for phase in cut):
        if part.group in seen and len(part.program.starts) > 1:
            return False
        seen.add(part.group)
    return True


def _issues(phase: Phase, witness: Schedule) -> Iterator[tuple[Program, list[int]]]:
    """For every warp of a phase its program, and in which cycles it issues."""
    at: list[list[int]] = [[] for _ in witness.paths]
    for cycle, executing in enumerate(witness.cycles):
        for number in executing:
            at[number].append(cycle)
    yield from zip(phase.instance.programs(), at, strict=True)


def _crew(instance: Instance, phase: Phase) -> list[tuple[int, PhasePlaces]]:
    """For every warp of a phase which warp of the whole it is, and the places of its part in the whole."""
    first = [0]
    for group in instance.groups:
        first.append(first[-1] + group.warps)
    return [
        (warp, part.places)
        for group in phase.instance.groups
        for part in phase.parts
        if part.program == group.program
        for warp in range(first[part.group], first[part.group + 1])
    ]


def _match_partitions(
    crew: Sequence[tuple[int, PhasePlaces]], partitions: Sequence[int], partition_of: Sequence[int]
) -> list[tuple[int, PhasePlaces]]:
    """The same crew of equal warps, so that partitions of a phase are such of the whole, the larger ones the larger."""

    def by_size(partitions: Sequence[int]) -> list[int]:
        return sorted(set(partitions), key=lambda part: (-partitions.count(part), part))

    name = dict(zip(by_size(partitions), by_size(partition_of), strict=True))
    free = {part: deque(n for n, own in enumerate(partition_of) if own == part) for part in name.values()}
    return [crew[free[name[part]].popleft()] for part in partitions]


def _gap(program: Program, path: Sequence[int], target: int) -> list[int]:
    """Return the barriers on the way from the end of `path`, or from a start, to `target`."""
    before: dict[int, int | None] = dict.fromkeys(program.places[path[-1]].successors if path else program.starts)
    waiting = deque(before)
    while waiting:
        at = waiting.popleft()
        if at == target:
            return _back(before, at)
        if at != program.end and program.places[at].unit == BARRIER:
            for after in program.places[at].successors:
                if after not in before:
                    before[after] = at
                    waiting.append(after)
    raise BrokenPromiseError(f"no barriers lead to place {target}")


def _back(before: dict[int, int | None], at: int) -> list[int]:
    found: list[int] = []
    step = before[at]
    while step is not None:
        found.append(step)
        step = before[step]
    return found[::-1]
