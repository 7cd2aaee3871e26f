"""The independent check of a schedule: every rule of the machine, cycle by cycle.

`check_conduct` checks what each warp does on its own: its path, and the time that its instructions take. `IssueJudge`
checks what the warps of a cycle do together. `replay` does both for a schedule of one multiprocessor.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from makespan.host.errors import InvalidScheduleError
from makespan.model.feature import BARRIERS, LAPSES, MULTIPROCESSOR, PROGRAMS, SCHEDULER, TIMES
from makespan.model.instance import Instance, requires
from makespan.model.lowered import ISSUE_SLOT, HeldUses, LoweredMachine, Reservation
from makespan.model.machine import Machine, Pool, SchedulerPromise
from makespan.model.program import BARRIER, Program
from makespan.model.schedule import Schedule
from makespan.model.simulate.floor import Floor, HeldPort, latencies
from makespan.model.simulate.replay_lapses import LapseJudge


class WarpConduct(NamedTuple):
    """The checked times of all warps: latencies, and uses, which are empty if there is no choice."""

    latencies: Sequence[Sequence[int]]
    uses: Sequence[Sequence[HeldUses]]


def check_conduct(
    instance: Instance,
    programs: Sequence[Program],
    paths: Sequence[tuple[int, ...]],
    latencies: Sequence[Sequence[int]],
    uses: Sequence[Sequence[HeldUses]],
) -> WarpConduct:
    """Return the times of warps that run these programs, after a check of each.

    Args:
        instance: the instance, which says what is left as a choice.
        programs: the programs of the warps, in the order of the rows.
        paths: the paths as in `Schedule`; so are the other arguments.

    Raises:
        InvalidScheduleError: a path that its program does not have, or a latency, resource or interval that is not
            left as a choice.
    """
    executed = _executed_places(programs, paths)
    return WarpConduct(
        _checked_latencies(instance, programs, latencies, executed),
        _checked_uses(instance.machine, programs, uses, executed),
    )


def _executed_places(programs: Sequence[Program], paths: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Return the places that every warp executes, without barriers; equal paths are read once."""
    if len(paths) != len(programs):
        raise InvalidScheduleError(f"{len(paths)} paths for {len(programs)} warps")
    executed: dict[tuple[int, int], tuple[int, ...]] = {}
    for program, path in zip(programs, paths, strict=True):
        if (id(program), id(path)) not in executed:
            _check_path(program, path)
            places = tuple(place for place in path if program.places[place].unit != BARRIER)
            # without barriers the path itself is kept, so that later checks find the same object
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


def _checked_latencies(
    instance: Instance, programs: Sequence[Program], given: Sequence[Sequence[int]], executed: Sequence[tuple[int, ...]]
) -> list[Sequence[int]]:
    if (given or not instance.fixed_latencies) and len(given) != len(executed):
        raise InvalidScheduleError(f"latencies of {len(given)} warps are given, of {len(executed)}")
    ranges: dict[tuple[int, int], list[tuple[int, int]]] = {}
    most: dict[tuple[int, int], tuple[int, ...]] = {}
    found = list[Sequence[int]]()
    for warp, (program, places) in enumerate(zip(programs, executed, strict=True)):
        key = id(program), id(places)
        if key not in ranges:
            ranges[key] = list(latencies(instance.machine, program, places))
            most[key] = tuple(most for _, most in ranges[key])
        if given:
            _check_latencies(warp, given[warp], ranges[key])
        found.append(given[warp] if given else most[key])
    return found


def _check_latencies(warp: int, chosen: Sequence[int], ranges: Sequence[tuple[int, int]]) -> None:
    if len(chosen) != len(ranges):
        raise InvalidScheduleError(f"warp {warp} has {len(chosen)} latencies for {len(ranges)} instructions")
    for latency, (least, most) in zip(chosen, ranges, strict=True):
        if not least <= latency <= most:
            allowed = str(least) if least == most else f"{least}..{most}"
            raise InvalidScheduleError(f"warp {warp} has a latency of {latency}, which is not in {allowed}")


def _checked_uses(
    machine: Machine,
    programs: Sequence[Program],
    given: Sequence[Sequence[HeldUses]],
    executed: Sequence[tuple[int, ...]],
) -> Sequence[Sequence[HeldUses]]:
    if not given and machine.fixed_uses:
        return ()
    if len(given) != len(executed):
        raise InvalidScheduleError(f"uses of {len(given)} warps are given, of {len(executed)}")
    lowered, units = LoweredMachine.of(machine), {unit.name: unit for unit in machine.units}
    allowed = set[tuple[Reservation, HeldUses]]()
    for warp, (program, places, rows) in enumerate(zip(programs, executed, given, strict=True)):
        if len(rows) != len(places):
            raise InvalidScheduleError(f"warp {warp} has uses of {len(rows)} instructions, of {len(places)}")
        for place, chosen in zip(places, rows, strict=True):
            reservation = lowered.reservation(program, place)
            if (reservation, chosen) not in allowed:
                if not reservation.allows(chosen):
                    raise InvalidScheduleError(
                        f"warp {warp} uses {chosen} at place {place}, which {units[reservation.unit]} does not allow"
                    )
                allowed.add((reservation, chosen))
    return given


KNOWS = PROGRAMS | TIMES | BARRIERS | SCHEDULER | MULTIPROCESSOR | LAPSES

_IssuedWarp = tuple[int, int, tuple[HeldPort, ...]]
"""A warp, the cycle since which it was ready, and the ports that it holds."""

_NEVER = -1
"""The last issue of a warp that has not issued yet: it counts as longest ago."""


@requires(KNOWS, "replay")
def replay(instance: Instance, schedule: Schedule) -> int:
    """Execute `schedule` and return its makespan in cycles, after a check of every rule of the machine.

    Raises:
        InvalidScheduleError: a path that the program does not have, a partition, latency, resource or interval that
            the machine does not leave as a choice, a warp that executes twice in a cycle, after its end, while a
            latency or stall passes, before a result that it needs, or while it waits at a barrier, a port or issue slot
            that is not free, a ready warp left out that could be added, a warp that goes before another against the
            promise of the scheduler, a lapse without credit, a warp that is withheld for no line or for longer than its
            window, warps left unfinished, or cycles after their end.
    """
    conducted = check_conduct(instance, tuple(instance.programs()), schedule.paths, schedule.latencies, schedule.uses)
    floor = Floor.of(instance, schedule.paths, check_partitions(instance, schedule.partitions))
    judge = IssueJudge(instance.machine, floor)
    for warp, taking in enumerate(conducted.latencies):
        judge.put(warp, taking, conducted.uses[warp] if conducted.uses else None)
    lapses = LapseJudge(instance, schedule, floor) if schedule.lapses or schedule.withheld else None
    for cycle, executing in enumerate(schedule.cycles):
        happens = cycle in floor.arrivals or cycle in floor.releases or lapses is not None
        if happens:
            floor.begin(cycle, {} if lapses is None else lapses.late(cycle))
        if not floor.unfinished:
            raise InvalidScheduleError(f"cycle {cycle}: all warps have finished already")
        if lapses is not None:
            with lapses.checked(cycle, executing):
                judge.check(cycle, executing)
        elif executing or happens:  # otherwise nothing has changed since a cycle in which no warp could issue
            judge.check(cycle, executing)
    floor.begin(schedule.makespan)  # the last latencies pass
    if floor.unfinished:
        raise InvalidScheduleError(
            f"{floor.unfinished} of {instance.warps} warps have not finished after {schedule.makespan} cycles"
        )
    return schedule.makespan


class IssueJudge:
    """The judge of a cycle: all issuing warps must be ready and find free ports, and no other warp could issue, too.

    Args:
        machine: the machine whose rules are checked.
        floor: the floor, on which every cycle begins before it is judged.
        named: a function that returns the name of a warp in messages.
    """

    def __init__(self, machine: Machine, floor: Floor, named: Callable[[int], str] = str) -> None:
        self._floor, self._named = floor, named
        self._latencies: dict[int, Iterator[int]] = {}
        self._uses: dict[int, Iterator[HeldUses] | None] = {}
        self._turns = _FairTurns(floor, named) if machine.scheduler is SchedulerPromise.FAIR else None

    def put(self, warp: int, latencies: Iterable[int], uses: Iterable[HeldUses] | None) -> None:
        """Put a warp on the floor, with the times of its instructions in order."""
        self._latencies[warp] = iter(latencies)
        self._uses[warp] = None if uses is None else iter(uses)
        if self._turns is not None:
            self._turns.issued[warp] = _NEVER

    def state(self) -> Hashable:
        """Return all that the judge remembers besides the floor: the order of the last issues."""
        issued = {} if self._turns is None else self._turns.issued
        # only the order of last issues counts for fairness, so ranks make states of different cycles comparable
        ranks = {then: rank for rank, then in enumerate(sorted({_NEVER, *issued.values()}))}
        return tuple((warp, ranks[then]) for warp, then in issued.items())

    def check(self, cycle: int, executing: Sequence[int]) -> None:
        """Check that these warps may issue in this cycle, and that no other warp could issue, too.

        Raises:
            InvalidScheduleError: a rule is broken.
        """
        # first all of them issue, then nothing may be left that fits: the order of the issues in a cycle is free
        issued = self._issue(cycle, executing)
        self._check_maximal(cycle)
        if self._turns is not None:
            self._turns.check(cycle, issued)

    def _issue(self, cycle: int, executing: Sequence[int]) -> list[_IssuedWarp]:
        floor = self._floor
        if len(set(executing)) != len(executing):
            raise InvalidScheduleError(f"cycle {cycle}: a warp executes two instructions")
        issued = []
        for warp in executing:
            try:
                kind = floor.kind(warp)
                since = floor.ready[kind][warp]
            except (IndexError, KeyError):
                raise InvalidScheduleError(f"cycle {cycle}: {self._unready(warp)}") from None
            uses = self._uses[warp]
            held = floor.kinds[kind].least if uses is None else floor.kinds[kind].held(next(uses))
            missing = floor.issue(cycle, warp, next(self._latencies[warp]), held)
            if missing is not None:
                raise InvalidScheduleError(
                    f"cycle {cycle}: warp {self._named(warp)} executes, but {_missing_port(floor.pools[missing])}"
                )
            issued.append((warp, since, held))
        return issued

    def _unready(self, warp: int) -> str:
        floor = self._floor
        if not 0 <= warp < len(floor.at) or floor.has_finished(warp):
            return "a warp executes that does not exist or has finished"
        waits = "at a barrier" if floor.kind(warp) < 0 else "for a latency to pass"
        return f"warp {self._named(warp)} executes, but waits {waits}"

    def _check_maximal(self, cycle: int) -> None:
        """Check work conservation: no ready warp that is left out could be added."""
        floor = self._floor
        if (kind := floor.fitting()) is not None:
            warp, unit = self._named(next(iter(floor.ready[kind]))), floor.kinds[kind].unit
            raise InvalidScheduleError(
                f"cycle {cycle}: work conservation demands that warp {warp} issue, too: it is ready for class {unit},"
                " and all that it needs is free"
            )


def _missing_port(pool: Pool) -> str:
    where = "" if pool.partition is None else f" in partition {pool.partition}"
    return ("no issue slot is left" if pool.name == ISSUE_SLOT else f"no port of {pool.name} is free") + where


class _FairTurns:
    """The check of what a fair scheduler promises."""

    def __init__(self, floor: Floor, named: Callable[[int], str]) -> None:
        self._floor, self._named = floor, named
        self.issued: dict[int, int] = {}
        """The cycle of the last issue of every warp. Only the order of these cycles counts."""

    def check(self, cycle: int, issued: Iterable[_IssuedWarp]) -> None:
        """Check the warps that have issued in a cycle, each ready since a cycle and holding these ports."""
        free = self._floor.free
        for warp, since, held in issued:
            for pool, _ in held:
                # give the ports of this warp back: a warp that waits goes first only if it could issue in its stead
                free[pool] += 1
            for kind, waiting in self._floor.ready.items():
                if self._floor.fits(kind):
                    self._check(cycle, warp, since, waiting)
            for pool, _ in held:
                free[pool] -= 1
        for warp, _, _ in issued:
            self.issued[warp] = cycle  # only now, so that warps of one cycle do not precede one another

    def _check(self, cycle: int, warp: int, since: int, waiting: Mapping[int, int]) -> None:
        """Check that no warp that was ready and issued earlier waits; `waiting` is in the order of becoming ready."""
        for other, earlier in waiting.items():
            if earlier >= since:  # all that follow became ready no earlier
                return
            if self.issued[other] < self.issued[warp]:
                raise InvalidScheduleError(
                    f"cycle {cycle}: warp {self._named(warp)} goes before warp {self._named(other)}, which was ready"
                    " and issued earlier: the scheduler is not fair"
                )


def check_partitions(instance: Instance, chosen: tuple[int, ...]) -> Sequence[int]:
    """Return the partition of every warp, after a check.

    Args:
        chosen: the partitions as in `Schedule`.

    Raises:
        InvalidScheduleError: the machine does not leave these as a choice.
    """
    fixed, parts = instance.partition_of_warp, instance.machine.partitions
    if fixed is not None:
        if chosen not in ((), fixed):
            raise InvalidScheduleError("a warp belongs to another partition than the machine says")
        return fixed
    if len(chosen) != instance.warps or not all(0 <= part < parts for part in chosen):
        raise InvalidScheduleError(f"{len(chosen)} partitions 0..{parts - 1} are given, for {instance.warps} warps")
    # evenly means that no two partitions differ by more than one warp
    sizes = [chosen.count(part) for part in range(parts)]
    if max(sizes) > min(sizes) + 1:
        raise InvalidScheduleError(f"the warps are not spread evenly over the partitions: {sizes}")
    return chosen
