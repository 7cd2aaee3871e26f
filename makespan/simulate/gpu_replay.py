"""The second opinion on a schedule of a whole GPU: all rules of SMs and dispatcher, cycles that return judged once."""

from collections.abc import Hashable, Iterable, Sequence

from makespan.errors import InvalidScheduleError, UnsupportedError
from makespan.gpu import Begin, Course, GpuInstance, GpuSchedule, History, Stretch
from makespan.simulate.courses import Conduct, conduct
from makespan.simulate.floor import Floor, Walk, walks
from makespan.simulate.replay import Judge, partitions

MAX_UNFOLDED_CYCLES = 20_000_000
"""Of all histories together, each for as long as its SM does not return to a state in which it was."""


def replay(gpu: GpuInstance, schedule: GpuSchedule) -> int:
    """Execute `schedule` and return its makespan in cycles.

    A stretch is executed until the SM is at its end where it was at its begin; from then on all repeats are alike. So
    time and memory do not grow with the number of blocks.

    Raises:
        InvalidScheduleError: what `simulate.replay` raises of an SM; and blocks that are not as many as the grid has, a
            slot that is taken or does not exist, a delay past the limit, an empty slot while blocks are left, or an SM
            that goes on after its last block. The message names history, cycle and rule.
        UnsupportedError: several grids, or a schedule that repeats what does not return, for too many cycles.
    """
    if len(gpu.grids) > 1:
        raise UnsupportedError(f"replay of a whole GPU knows one grid, not {len(gpu.grids)}; replay each alone")
    _check_sizes(gpu, schedule)
    rows = [_conduct(gpu, number, course) for number, course in enumerate(schedule.courses)]
    last, unfolded = max(map(_last_dispatch, schedule.histories)), 0
    for number, history in enumerate(schedule.histories):
        try:
            unfolded = _Replay(gpu, schedule.courses, rows, history, last).execute(unfolded)
        except InvalidScheduleError as error:
            raise InvalidScheduleError(f"history {number}: {error}") from None
    return schedule.makespan


def _check_sizes(gpu: GpuInstance, schedule: GpuSchedule) -> None:
    """As many blocks as there are, on as many SMs as there are, and no stretch of nothing."""
    histories = schedule.histories
    stretches = [stretch for history in histories for stretch in history.stretches]
    if not all(history.stretches for history in histories) or any(history.sms < 1 for history in histories):
        raise InvalidScheduleError("a history is one of at least one SM, and has a stretch")
    if any(not stretch.cycles or stretch.repeat < 1 for stretch in stretches):
        raise InvalidScheduleError("a stretch has at least one cycle, and comes at least once")
    for stretch in stretches:
        begins = [begin.cycle for begin in stretch.begins]
        if begins != sorted(begins) or not all(0 <= begin < len(stretch.cycles) for begin in begins):
            raise InvalidScheduleError(f"blocks begin in the cycles of their stretch, in order, and not in {begins}")
    blocks = sum(history.sms * history.blocks for history in histories)
    if blocks != gpu.blocks:
        raise InvalidScheduleError(f"{blocks} blocks get their room, and the grid has {gpu.blocks}")
    sms = sum(history.sms for history in histories)
    if sms > gpu.sms:
        raise InvalidScheduleError(f"{sms} SMs have a history, and the GPU has {gpu.sms}")
    if sms < gpu.sms and any(map(_last_dispatch, histories)):
        raise InvalidScheduleError(f"cycle 0: an SM is empty, and blocks are left; {sms} of {gpu.sms} have a history")


def _last_dispatch(history: History) -> int:
    """The cycle in which the last block of an SM gets its room."""
    last, first = 0, 0
    for stretch in history.stretches:
        cycles = stretch.repeat * len(stretch.cycles)
        if stretch.begins:
            last = first + cycles - len(stretch.cycles) + stretch.begins[-1].cycle
        first += cycles
    return last


def _conduct(gpu: GpuInstance, number: int, course: Course) -> Conduct:
    programs = [program for program, warps in gpu.grid.block for _ in range(warps)]
    try:
        if course.grid != 0:
            raise InvalidScheduleError(f"there is no grid {course.grid}")
        return conduct(gpu.sm(1), programs, course.paths, course.latencies, course.uses)
    except InvalidScheduleError as error:
        raise InvalidScheduleError(f"course {number}: {error}") from None


class _Replay:
    """One history, executed by one SM.

    A warp of the block in slot s that is number w of it is warp `s * warps + w` of the floor.

    Args:
        last: the cycle in which the last block of all SMs gets its room: before it no slot may be empty.
    """

    def __init__(
        self, gpu: GpuInstance, courses: Sequence[Course], rows: Sequence[Conduct], history: History, last: int
    ) -> None:
        self._gpu, self._courses, self._rows, self._history, self._last = gpu, courses, rows, history, last
        self._warps = gpu.grid.warps
        self._programs = [program for program, warps in gpu.grid.block for _ in range(warps)]
        first = sorted(begin.slot for begin in history.stretches[0].begins if begin.cycle == 0)
        self._slots = len(first)
        if first != list(range(self._slots)) or not 1 <= self._slots <= gpu.resident:
            raise InvalidScheduleError(
                f"cycle 0: blocks get the slots {first}, and not the first ones of 0..{gpu.resident - 1}"
            )
        if last and self._slots < gpu.resident:
            raise InvalidScheduleError(f"cycle 0: slot {self._slots} is empty, and blocks are left")
        self._partitions = self._spread()
        self._floor = Floor(gpu.machine, self._slots * self._warps)
        self._judge = Judge(gpu.machine, self._floor, lambda warp: "{1} of slot {0}".format(*divmod(warp, self._warps)))
        self._taken: dict[int, int] = {}
        """For every slot with a block its course."""
        self._walks: dict[tuple[int, int], list[Walk]] = {}

    def _spread(self) -> list[tuple[int, ...]]:
        """For every slot the partitions of its warps."""
        given, numbers = self._history.partitions, self._gpu.slots_of_warps(self._slots)
        if given and (len(given) != self._slots or any(len(row) != self._warps for row in given)):
            raise InvalidScheduleError(f"partitions are not given for {self._slots} slots of {self._warps} warps")
        chosen = tuple(given[slot][warp] for slot, warp in numbers) if given else ()
        parts = dict(zip(numbers, partitions(self._gpu.sm(self._slots), chosen), strict=True))
        return [tuple(parts[slot, warp] for warp in range(self._warps)) for slot in range(self._slots)]

    def execute(self, unfolded: int) -> int:
        """Judge the history; how many cycles have been executed, on top of those before."""
        floor, judge, cycle = self._floor, self._judge, 0
        for stretch in self._history.stretches:
            length = len(stretch.cycles)
            for left in range(stretch.repeat - 1, -1, -1):
                before = self._state(cycle) if left else None
                self._execute(cycle, stretch)
                cycle += length
                unfolded += length
                if left and self._state(cycle) == before:
                    floor.shift(left * length)
                    judge.shift(left * length)
                    cycle += left * length
                    break
                if left and unfolded > MAX_UNFOLDED_CYCLES:
                    raise UnsupportedError(
                        f"replay of a whole GPU gives up after {MAX_UNFOLDED_CYCLES} cycles in which an SM does not"
                        " return to the state at the begin of a stretch that is repeated"
                    )
        floor.begin(cycle)
        if floor.unfinished:
            raise InvalidScheduleError(f"{len(self._taken)} blocks have not ended after {cycle} cycles")
        return unfolded

    def _state(self, cycle: int) -> Hashable:
        """All that counts from a cycle on."""
        return self._floor.state(cycle), self._judge.state(cycle), frozenset(self._taken.items())

    def _execute(self, first: int, stretch: Stretch) -> None:
        """One repeat of a stretch, from that cycle on."""
        begins, floor = iter((*stretch.begins, None)), self._floor
        begin = next(begins)
        for cycle, executing in enumerate(stretch.cycles, first):
            happens = cycle in floor.arrivals or cycle in floor.releases
            if happens:
                floor.begin(cycle)
            ended, floor.ended = floor.ended, []
            for slot in ended:
                del self._taken[slot]
            while begin is not None and begin.cycle == cycle - first:
                self._begin(cycle, begin)
                happens, begin = True, next(begins)
            if cycle in floor.arrivals:
                floor.begin(cycle)
            if cycle < self._last and (empty := [slot for slot in ended if slot not in self._taken]):
                raise InvalidScheduleError(f"cycle {cycle}: slot {empty[0]} is empty, and blocks are left")
            if not floor.unfinished:
                raise InvalidScheduleError(f"cycle {cycle}: all blocks have ended already")
            if executing or (happens and floor.ready):  # else nobody could, or nobody could in the cycle before
                self._judge.check(cycle, self._numbers(cycle, executing))

    def _numbers(self, cycle: int, executing: Iterable[tuple[int, int]]) -> list[int]:
        """The warps as the floor knows them."""
        found = []
        for slot, warp in executing:
            if not (0 <= slot < self._slots and 0 <= warp < self._warps):
                raise InvalidScheduleError(f"cycle {cycle}: there is no warp {warp} of slot {slot}")
            found.append(slot * self._warps + warp)
        return found

    def _begin(self, cycle: int, begin: Begin) -> None:
        """A block gets the room of a slot."""
        slot, course, delay = begin.slot, begin.course, begin.delay
        if not 0 <= slot < self._slots or slot in self._taken:
            raise InvalidScheduleError(f"cycle {cycle}: slot {slot} is taken or does not exist")
        if not 0 <= course < len(self._rows):
            raise InvalidScheduleError(f"cycle {cycle}: there is no course {course}")
        if not 0 <= delay <= self._gpu.dispatch:
            raise InvalidScheduleError(
                f"cycle {cycle}: a block begins {delay} cycles after it got its room, {self._gpu.dispatch} at most"
            )
        key = course, slot
        if key not in self._walks:
            parts, paths = self._partitions[slot], self._courses[course].paths
            self._walks[key] = walks(self._gpu.machine, self._programs, paths, parts)
        self._taken[slot] = course
        latencies, uses = self._rows[course]
        for warp, walk in enumerate(self._walks[key]):
            number = slot * self._warps + warp
            self._floor.put(cycle + delay, number, walk, slot)
            self._judge.put(number, latencies[warp], uses[warp] if uses else None)
