"""The second opinion on a schedule: every rule of the machine, checked cycle by cycle."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from makespan.errors import InvalidScheduleError
from makespan.feature import BARRIERS, MULTIPROCESSOR, PROGRAMS, SCHEDULER, TIMES
from makespan.instance import Instance
from makespan.machine import Machine, Scheduler, UnitClass
from makespan.program import BARRIER, Program
from makespan.schedule import Schedule
from makespan.simulate.floor import Floor, Held, latencies

KNOWS = PROGRAMS | TIMES | BARRIERS | SCHEDULER | MULTIPROCESSOR

_Uses = tuple[tuple[int, int], ...]
_Issued = tuple[int, int, tuple[Held, ...]]
"""A warp, the cycle since which it was ready, and what it holds."""


def replay(instance: Instance, schedule: Schedule) -> int:
    """Execute `schedule` and return its makespan in cycles.

    Raises:
        InvalidScheduleError: a path that the program does not have, a partition, latency, resource or interval that
            the machine does not leave as a choice, a warp that executes twice in a cycle, after its end, while a
            latency or stall passes, before a result that it needs, or while it waits at a barrier, a port or issue slot
            that is not free, a ready warp left out that could be added, a warp that goes before another against the
            promise of the scheduler, warps left unfinished, or cycles after their end.
    """
    instance.require(KNOWS, "replay")
    executed = _executed(instance, schedule)
    partitions = _partitions(instance, schedule)
    taking = _latencies(instance, schedule, executed)
    uses = _uses(instance, schedule, executed)
    floor = Floor(instance, schedule.paths, partitions)
    turns = _Turns(floor, instance.warps) if instance.machine.scheduler is Scheduler.FAIR else None
    for cycle, executing in enumerate(schedule.cycles):
        happens = cycle in floor.arrivals or cycle in floor.releases
        if happens:
            floor.begin(cycle)
        if not floor.unfinished:
            raise InvalidScheduleError(f"cycle {cycle}: all warps have finished already")
        if not executing and not (happens and floor.ready):
            continue  # nobody could, or nobody could in the cycle before
        issued = _issue(cycle, executing, floor, taking, uses, instance.machine)
        _check_maximal(cycle, floor)
        if turns is not None:
            turns.check(cycle, issued)
    floor.begin(schedule.makespan)
    if floor.unfinished:
        raise InvalidScheduleError(
            f"{floor.unfinished} of {instance.warps} warps have not finished after {schedule.makespan} cycles"
        )
    return schedule.makespan


def _issue(
    cycle: int,
    executing: Sequence[int],
    floor: Floor,
    latencies: Sequence[Iterator[int]],
    uses: Sequence[Iterator[_Uses]],
    machine: Machine,
) -> list[_Issued]:
    """These warps issue, all of which must be ready and find free ports."""
    if len(executing) > 1 and len(set(executing)) != len(executing):
        raise InvalidScheduleError(f"cycle {cycle}: a warp executes two instructions")
    issued = []
    for warp in executing:
        try:
            kind = floor.kind(warp)
            since = floor.ready[kind][warp]
        except (IndexError, KeyError):
            raise InvalidScheduleError(f"cycle {cycle}: {_unready(warp, floor)}") from None
        held = floor.kinds[kind].held(next(uses[warp])) if uses else floor.kinds[kind].fixed
        missing = floor.issue(cycle, warp, next(latencies[warp]), held)
        if missing is not None:
            raise InvalidScheduleError(f"cycle {cycle}: warp {warp} executes, but {_no_port(machine, missing)}")
        issued.append((warp, since, held))
    return issued


def _unready(warp: int, floor: Floor) -> str:
    if not 0 <= warp < len(floor.at) or floor.has_finished(warp):
        return "a warp executes that does not exist or has finished"
    return f"warp {warp} executes, but waits {'at a barrier' if floor.kind(warp) < 0 else 'for a latency to pass'}"


def _no_port(machine: Machine, pool: int) -> str:
    """Of which pool, by number, no port is free."""
    pools = machine.pools
    is_slot = pool >= len(pools)
    partition = pool - len(pools) if is_slot else pools[pool].partition
    where = "" if partition is None or machine.partitions == 1 else f" in partition {partition}"
    return ("no issue slot is left" if is_slot else f"no port of {pools[pool].name} is free") + where


def _check_maximal(cycle: int, floor: Floor) -> None:
    """Work conservation: no ready warp that is left out could be added."""
    if (kind := floor.fitting()) is not None:
        warp, unit = next(iter(floor.ready[kind])), floor.kinds[kind].unit
        raise InvalidScheduleError(
            f"cycle {cycle}: work conservation demands that warp {warp} issue, too: it is ready for class {unit}, and"
            " all that it needs is free"
        )


class _Turns:
    """What a fair scheduler promises."""

    def __init__(self, floor: Floor, warps: int) -> None:
        self._floor = floor
        self._issued = [-1] * warps

    def check(self, cycle: int, issued: Iterable[_Issued]) -> None:
        """These warps have issued, which were ready since then and hold that."""
        free = self._floor.free
        for warp, since, held in issued:
            for pool, _ in held:
                free[pool] += 1
            for kind, waiting in self._floor.ready.items():
                if self._floor.fits(kind):
                    self._check(cycle, warp, since, waiting)
            for pool, _ in held:
                free[pool] -= 1
        for warp, _, _ in issued:
            self._issued[warp] = cycle

    def _check(self, cycle: int, warp: int, since: int, waiting: Mapping[int, int]) -> None:
        """The warps that wait come in the order in which they became ready."""
        for other, earlier in waiting.items():
            if earlier >= since:
                return
            if self._issued[other] < self._issued[warp]:
                raise InvalidScheduleError(
                    f"cycle {cycle}: warp {warp} goes before warp {other}, which was ready and issued earlier:"
                    " the scheduler is not fair"
                )


def _executed(instance: Instance, schedule: Schedule) -> list[tuple[int, ...]]:
    """The places that every warp executes, without barriers; equal paths are read once."""
    programs, paths = tuple(instance.programs()), schedule.paths
    if len(paths) != len(programs):
        raise InvalidScheduleError(f"{len(paths)} paths for {len(programs)} warps")
    executed: dict[tuple[int, int], tuple[int, ...]] = {}
    for program, path in zip(programs, paths, strict=True):
        if (id(program), id(path)) not in executed:
            _check_path(program, path)
            places = tuple(place for place in path if program.places[place].unit != BARRIER)
            executed[id(program), id(path)] = path if len(places) == len(path) else places
    return [executed[id(program), id(path)] for program, path in zip(programs, paths, strict=True)]


def _check_path(program: Program, path: tuple[int, ...]) -> None:
    if not path or path[0] not in program.starts:
        raise InvalidScheduleError(f"a path begins at {path[:1]}, not at one of {program.starts}")
    if not all(0 <= place < program.end for place in path):
        raise InvalidScheduleError("a path visits a place that its program does not have")
    for place, after in zip(path, (*path[1:], program.end), strict=True):
        if after not in program.places[place].successors:
            raise InvalidScheduleError(f"a path goes from place {place} to {after}, which does not follow it")


def _partitions(instance: Instance, schedule: Schedule) -> Sequence[int]:
    """The partition of every warp."""
    fixed, chosen, parts = instance.partition_of_warp, schedule.partitions, instance.machine.partitions
    if fixed is not None:
        if chosen not in ((), fixed):
            raise InvalidScheduleError("a warp belongs to another partition than the machine says")
        return fixed
    if len(chosen) != instance.warps or not all(0 <= part < parts for part in chosen):
        raise InvalidScheduleError(f"{len(chosen)} partitions 0..{parts - 1} are given, for {instance.warps} warps")
    sizes = [chosen.count(part) for part in range(parts)]
    if max(sizes) > min(sizes) + 1:
        raise InvalidScheduleError(f"the warps are not spread evenly over the partitions: {sizes}")
    return chosen


def _latencies(instance: Instance, schedule: Schedule, executed: Sequence[tuple[int, ...]]) -> list[Iterator[int]]:
    """For every warp the latencies of what it executes, in order."""
    given = schedule.latencies
    if (given or not instance.fixed_latencies) and len(given) != len(executed):
        raise InvalidScheduleError(f"latencies of {len(given)} warps are given, of {len(executed)}")
    ranges: dict[tuple[int, int], list[tuple[int, int]]] = {}
    found = []
    for warp, (program, places) in enumerate(zip(instance.programs(), executed, strict=True)):
        key = id(program), id(places)
        if key not in ranges:
            ranges[key] = list(latencies(instance.machine, program, places))
        if given:
            _check_latencies(warp, given[warp], ranges[key])
        found.append(iter(given[warp]) if given else (most for _, most in ranges[key]))
    return found


def _check_latencies(warp: int, chosen: Sequence[int], ranges: Sequence[tuple[int, int]]) -> None:
    if len(chosen) != len(ranges):
        raise InvalidScheduleError(f"warp {warp} has {len(chosen)} latencies for {len(ranges)} instructions")
    for latency, (least, most) in zip(chosen, ranges, strict=True):
        if not least <= latency <= most:
            allowed = str(least) if least == most else f"{least}..{most}"
            raise InvalidScheduleError(f"warp {warp} has a latency of {latency}, which is not in {allowed}")


def _uses(instance: Instance, schedule: Schedule, executed: Sequence[tuple[int, ...]]) -> list[Iterator[_Uses]]:
    """For every warp what its instructions hold of the uses of their classes, in order; empty if there is no choice."""
    given = schedule.uses
    if not given and instance.machine.fixed_uses:
        return []
    if len(given) != len(executed):
        raise InvalidScheduleError(f"uses of {len(given)} warps are given, of {len(executed)}")
    units = {unit.name: unit for unit in instance.machine.units}
    allowed = set[tuple[str, _Uses]]()
    for warp, (program, places, rows) in enumerate(zip(instance.programs(), executed, given, strict=True)):
        if len(rows) != len(places):
            raise InvalidScheduleError(f"warp {warp} has uses of {len(rows)} instructions, of {len(places)}")
        for place, chosen in zip(places, rows, strict=True):
            name = program.places[place].unit
            if (name, chosen) not in allowed:
                if not _is_a_choice(units[name], chosen):
                    raise InvalidScheduleError(
                        f"warp {warp} uses {chosen} at place {place}, which {units[name]} does not allow"
                    )
                allowed.add((name, chosen))
    return list(map(iter, given))


def _is_a_choice(unit: UnitClass, chosen: _Uses) -> bool:
    return len(chosen) == len(unit.uses) and all(
        0 <= which < len(use.resources) and use.least <= cycles <= use.most
        for use, (which, cycles) in zip(unit.uses, chosen, strict=True)
    )
