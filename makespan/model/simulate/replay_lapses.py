"""The check of lapses and of withheld warps in a schedule, cycle by cycle. It shares no code with the definition."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from makespan.host.errors import InvalidScheduleError
from makespan.model.instance import Instance
from makespan.model.lapses import NO_LAPSES, longest_windows
from makespan.model.schedule import WHOLE_SM, Schedule, WithheldWarp
from makespan.model.simulate.floor import Floor


class LapseJudge:
    """The judge of what a schedule says of lapses: credit for each, and a line or a miss for each withheld warp.

    Args:
        instance: the instance, whose programs say where there is credit, and which lines a place needs.
        schedule: the schedule.
        floor: the floor, on which `late` warps are withheld when a cycle begins.

    Raises:
        InvalidScheduleError: a lapse or a withheld warp that does not exist, or is outside of the schedule.
    """

    def __init__(self, instance: Instance, schedule: Schedule, floor: Floor) -> None:
        self._floor, self._parts = floor, instance.machine.partitions
        self._partition = instance.partition_of_warp or schedule.partitions
        self._places = [
            [program.lapses[place] if program.lapses else NO_LAPSES for place in path]
            for program, path in zip(instance.programs(), schedule.paths, strict=True)
        ]
        self._windows = dict(longest_windows(line for program in instance.programs() for line in program.lines))
        self._seen = [0] * instance.warps
        """The places of every warp that have given credit already, counted along its path."""
        self._credit, self._begun, self._missed = Counter[int](), dict[tuple[int, str], int](), Counter[int]()
        self._lapsing, self._late = defaultdict[int, set[int]](set), defaultdict[int, dict[int, WithheldWarp]](dict)
        for cycle, part in schedule.lapses:
            if cycle not in range(schedule.makespan) or part not in range(WHOLE_SM, self._parts):
                raise InvalidScheduleError(f"cycle {cycle}: a lapse of partition {part}, which the schedule lacks")
            if part in self._lapsing[cycle]:
                raise InvalidScheduleError(f"cycle {cycle}: partition {part} lapses twice")
            self._lapsing[cycle].add(part)
        for late in schedule.withheld:
            if late.cycle not in range(schedule.makespan) or late.warp not in range(instance.warps):
                raise InvalidScheduleError(
                    f"cycle {late.cycle}: warp {late.warp} is withheld, which the schedule lacks"
                )
            if late.place not in schedule.paths[late.warp]:
                raise InvalidScheduleError(f"{_words(late)} at place {late.place}, where it never is")
            if late.warp in self._late[late.cycle]:
                raise InvalidScheduleError(f"{_words(late)} twice")
            self._late[late.cycle][late.warp] = late
        self._paths = schedule.paths

    def late(self, cycle: int) -> dict[int, int]:
        """Return the warps that are withheld in a cycle, each with the place where it is, counted along its path.

        The floor lets them come to their places again one cycle later, so a fair scheduler finds them ready from then.
        """
        return {warp: self._paths[warp].index(late.place) for warp, late in self._late.get(cycle, {}).items()}

    @contextmanager
    def checked(self, cycle: int, executing: Sequence[int]) -> Iterator[None]:
        """Check what the schedule says of lapses in a cycle, and keep the warps that lapse from the floor meanwhile.

        Raises:
            InvalidScheduleError: a rule of docs/model.md, "Lapses", is broken.
        """
        self._come()
        late = self._late.get(cycle, {})
        for warp, withheld in late.items():
            if warp not in self._floor.withheld:
                raise InvalidScheduleError(f"{_words(withheld)}, but is not ready or has arrived")
            self._check_line(withheld)
        lapsing = self._lapsing.get(cycle, set[int]())
        for part in sorted(lapsing):
            self._credit[part] -= 1
            if self._credit[part] < 0:
                name = "the whole SM" if part == WHOLE_SM else f"partition {part}"
                raise InvalidScheduleError(f"cycle {cycle}: {name} lapses, but has no credit left")
        every = set(range(self._parts)) if WHOLE_SM in lapsing else lapsing
        for warp in executing:
            if warp in late or (warp in range(len(self._seen)) and self._partition[warp] in every):
                why = "is withheld" if warp in late else "its partition lapses"
                raise InvalidScheduleError(f"cycle {cycle}: warp {warp} executes, but {why}")
        # kinds are numbered by class, and within a class by partition
        kept = {kind: waiting for kind, waiting in self._floor.ready.items() if kind % self._parts in every}
        for kind in kept:
            del self._floor.ready[kind]
        yield
        self._floor.ready |= kept

    def _come(self) -> None:
        """Give the credit of all places to which warps have come by now."""
        for warp, places in enumerate(self._places):
            for place in places[self._seen[warp] : self._floor.at[warp] + 1]:
                self._credit[self._partition[warp]] += place.credit
                self._credit[WHOLE_SM] += place.fence
                self._missed[warp] = 0
                self._seen[warp] += 1

    def _check_line(self, late: WithheldWarp) -> None:
        """Check that a warp that is withheld has misses left, or is in the window of a line that it needs."""
        cycle, warp, _, line = late
        place = self._places[warp][self._floor.at[warp]]
        if line is None:
            self._missed[warp] += 1
            if self._missed[warp] > place.misses:
                raise InvalidScheduleError(f"{_words(late)} for longer than the {place.misses} cycles of its misses")
            return
        if line not in {each.name for each in place.lines}:
            raise InvalidScheduleError(f"{_words(late)} for line {line!r}, which it does not need")
        # the first warp of a partition that is withheld for a line begins the only window of both
        begun, window = self._begun.setdefault((self._partition[warp], line), cycle), self._windows[line]
        if cycle >= begun + window:
            raise InvalidScheduleError(
                f"{_words(late)} for line {line!r}, whose window began in cycle {begun} and is over after {window}"
                " cycles"
            )


def _words(late: WithheldWarp) -> str:
    return f"cycle {late.cycle}: warp {late.warp} is withheld"
