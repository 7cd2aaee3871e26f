"""The second opinion on a schedule: every rule of the machine, checked cycle by cycle."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence

from makespan.host.errors import InvalidScheduleError
from makespan.model.feature import BARRIERS, MULTIPROCESSOR, PROGRAMS, SCHEDULER, TIMES
from makespan.model.instance import Instance
from makespan.model.lowered import ISSUE_SLOT
from makespan.model.machine import Machine, Pool, SchedulerPromise
from makespan.model.schedule import Schedule
from makespan.model.simulate.courses import HeldUses, check_conduct
from makespan.model.simulate.floor import Floor, HeldPort

KNOWS = PROGRAMS | TIMES | BARRIERS | SCHEDULER | MULTIPROCESSOR

_IssuedWarp = tuple[int, int, tuple[HeldPort, ...]]
"""A warp, the cycle since which it was ready, and what it holds."""

_NEVER = -1
"""Who has not issued yet goes before all who have."""


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
    conducted = check_conduct(instance, tuple(instance.programs()), schedule.paths, schedule.latencies, schedule.uses)
    floor = Floor.of(instance, schedule.paths, check_partitions(instance, schedule.partitions))
    judge = IssueJudge(instance.machine, floor)
    for warp, taking in enumerate(conducted.latencies):
        judge.put(warp, taking, conducted.uses[warp] if conducted.uses else None)
    for cycle, executing in enumerate(schedule.cycles):
        happens = cycle in floor.arrivals or cycle in floor.releases
        if happens:
            floor.begin(cycle)
        if not floor.unfinished:
            raise InvalidScheduleError(f"cycle {cycle}: all warps have finished already")
        if executing or happens:  # else nobody could, or nobody could in the cycle before
            judge.check(cycle, executing)
    floor.begin(schedule.makespan)
    if floor.unfinished:
        raise InvalidScheduleError(
            f"{floor.unfinished} of {instance.warps} warps have not finished after {schedule.makespan} cycles"
        )
    return schedule.makespan


class IssueJudge:
    """Who issues in a cycle: all must be ready and find free ports, and nobody may be left out who could issue, too.

    Args:
        machine: whose rules.
        floor: begun in every cycle before it is judged.
        named: how messages call a warp.
    """

    def __init__(self, machine: Machine, floor: Floor, named: Callable[[int], str] = str) -> None:
        self._floor, self._named = floor, named
        self._latencies: dict[int, Iterator[int]] = {}
        self._uses: dict[int, Iterator[HeldUses] | None] = {}
        self._turns = _FairTurns(floor, named) if machine.scheduler is SchedulerPromise.FAIR else None

    def put(self, warp: int, latencies: Iterable[int], uses: Iterable[HeldUses] | None) -> None:
        """A warp is new on the floor; what its instructions take, in order."""
        self._latencies[warp] = iter(latencies)
        self._uses[warp] = None if uses is None else iter(uses)
        if self._turns is not None:
            self._turns.issued[warp] = _NEVER

    def state(self) -> Hashable:
        """What it has to remember besides the floor: who has issued before whom."""
        issued = {} if self._turns is None else self._turns.issued
        ranks = {then: rank for rank, then in enumerate(sorted({_NEVER, *issued.values()}))}
        return tuple((warp, ranks[then]) for warp, then in issued.items())

    def check(self, cycle: int, executing: Sequence[int]) -> None:
        """These warps issue, and nobody else.

        Raises:
            InvalidScheduleError: a rule that is broken so.
        """
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
        """Work conservation: no ready warp that is left out could be added."""
        floor = self._floor
        if (kind := floor.fitting()) is not None:
            warp, unit = self._named(next(iter(floor.ready[kind]))), floor.kinds[kind].unit
            raise InvalidScheduleError(
                f"cycle {cycle}: work conservation demands that warp {warp} issue, too: it is ready for class {unit},"
                " and all that it needs is free"
            )


def _missing_port(pool: Pool) -> str:
    """Return the words for a pool of which no port is free."""
    where = "" if pool.partition is None else f" in partition {pool.partition}"
    return ("no issue slot is left" if pool.name == ISSUE_SLOT else f"no port of {pool.name} is free") + where


class _FairTurns:
    """What a fair scheduler promises."""

    def __init__(self, floor: Floor, named: Callable[[int], str]) -> None:
        self._floor, self._named = floor, named
        self.issued: dict[int, int] = {}
        """For every warp the cycle of its last issue, of which only the order counts."""

    def check(self, cycle: int, issued: Iterable[_IssuedWarp]) -> None:
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
            self.issued[warp] = cycle

    def _check(self, cycle: int, warp: int, since: int, waiting: Mapping[int, int]) -> None:
        """The warps that wait come in the order in which they became ready."""
        for other, earlier in waiting.items():
            if earlier >= since:
                return
            if self.issued[other] < self.issued[warp]:
                raise InvalidScheduleError(
                    f"cycle {cycle}: warp {self._named(warp)} goes before warp {self._named(other)}, which was ready"
                    " and issued earlier: the scheduler is not fair"
                )


def check_partitions(instance: Instance, chosen: tuple[int, ...]) -> Sequence[int]:
    """Return the partition of every warp, checked.

    Args:
        chosen: as in `Schedule`.

    Raises:
        InvalidScheduleError: not what the machine leaves as a choice.
    """
    fixed, parts = instance.partition_of_warp, instance.machine.partitions
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
