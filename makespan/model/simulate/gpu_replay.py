"""The independent check of a schedule of a whole GPU: all rules of SMs and dispatcher.

Repeated cycles are judged once.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from makespan.host.errors import InvalidScheduleError, UnsupportedError
from makespan.model.gpu import BlockStart, BlockTrace, GpuInstance, GpuSchedule, RepeatedCycles, SmHistory
from makespan.model.program import Program
from makespan.model.simulate.floor import Floor, Walk, walks
from makespan.model.simulate.replay import IssueJudge, WarpConduct, check_conduct, check_partitions

MAX_UNFOLDED_CYCLES = 20_000_000
"""The most cycles of all histories together, each until its SM returns to an earlier state."""
MAX_SPANS = 1_000_000
"""The most intervals of cycles in which an SM has room for a block of a grid."""

_EVER = 1 << 400
"""A cycle later than any other."""


def replay_gpu(gpu: GpuInstance, schedule: GpuSchedule) -> int:
    """Execute `schedule` and return its makespan in cycles.

    A stretch is executed until the SM is in the same state at its end as at its begin. From then on all repeats are
    alike, so time and memory do not grow with the number of blocks.

    Raises:
        InvalidScheduleError: what `simulate.replay` raises of an SM; and blocks that are not as many as the grids have,
            a slot that is taken or does not exist, no room, a delay past the limit, room for every grid of which blocks
            are left, or an SM that goes on after its last block. The message names cycle and rule, and of an SM its
            history.
        UnsupportedError: a schedule that repeats what does not return, for too many cycles; or in which blocks of
            several grids would fit too many times.
    """
    _check_sizes(gpu, schedule)
    rows = [_course_conduct(gpu, number, course) for number, course in enumerate(schedule.courses)]
    lasts = [_last_dispatch(history, schedule.courses, len(gpu.grids)) for history in schedule.histories]
    last = [max(cycles) for cycles in zip(*lasts, strict=True)]
    unfolded, spans = 0, list[_RoomInterval]()
    for number, history in enumerate(schedule.histories):
        try:
            sm = _SmReplay(gpu, schedule.courses, rows, history, last)
            unfolded = sm.execute(unfolded)
        except InvalidScheduleError as error:
            raise InvalidScheduleError(f"history {number}: {error}") from None
        spans += [_RoomInterval(grid, begin, end) for grid, fits in enumerate(sm.fits) for begin, end in fits]
    # an SM without a history is empty, so any block would fit there all the time
    if sum(history.sms for history in schedule.histories) < gpu.sms:
        spans += [_RoomInterval(grid, 0, _EVER) for grid in range(len(gpu.grids))]
    _check_dispatcher(spans, last)
    return schedule.makespan


def _check_sizes(gpu: GpuInstance, schedule: GpuSchedule) -> None:
    """Check the number of blocks and of SMs, and that no stretch is empty."""
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
    numbers = {begin.course for stretch in stretches for begin in stretch.begins}
    if not numbers <= set(range(len(schedule.courses))):
        raise InvalidScheduleError(f"there is no course {max(numbers)}, of {len(schedule.courses)}")
    _check_blocks(gpu, schedule)
    sms = sum(history.sms for history in histories)
    if sms > gpu.sms:
        raise InvalidScheduleError(f"{sms} SMs have a history, and the GPU has {gpu.sms}")


def _check_blocks(gpu: GpuInstance, schedule: GpuSchedule) -> None:
    found = Counter[int]()
    for history in schedule.histories:
        for stretch in history.stretches:
            for begin in stretch.begins:
                found[schedule.courses[begin.course].grid] += history.sms * stretch.repeat
    for number, grid in enumerate(gpu.grids):
        if (blocks := found[number]) != grid.blocks:
            which = f"grid {number}" if len(gpu.grids) > 1 else "the grid"
            raise InvalidScheduleError(f"{blocks} blocks get their room, and {which} has {grid.blocks}")


class _RoomInterval(NamedTuple):
    """An interval of cycles, `first` to before `end`, in which a block of a grid would fit on an SM."""

    grid: int
    first: int
    end: int


def _check_dispatcher(spans: Iterable[_RoomInterval], last: Sequence[int]) -> None:
    """Check that, in every cycle with blocks left, some remaining grid has a block that fits on no SM.

    Args:
        last: for every grid, the cycle in which its last block gets its room. From then on none is left.
    """
    # a grid without blocks left counts as one that always fits, as it does not excuse the dispatcher
    found = [(first, grid, 1) for grid, first in enumerate(last)]
    for grid, first, end in spans:
        if first < last[grid]:
            found += [(first, grid, 1), (min(end, last[grid]), grid, -1)]
    fits = [0] * len(last)
    for (cycle, grid, more), (after, _, _) in pairwise(sorted(found)):
        fits[grid] += more
        # events of one cycle are all applied before the state between two cycles is judged
        if cycle < after and all(fits):
            raise InvalidScheduleError(
                f"cycle {cycle}: there is room for a block of every grid of which blocks are left"
            )


def _last_dispatch(history: SmHistory, courses: Sequence[BlockTrace], grids: int) -> list[int]:
    last, first = [0] * grids, 0
    for stretch in history.stretches:
        cycles = stretch.repeat * len(stretch.cycles)
        for begin in stretch.begins:
            last[courses[begin.course].grid] = first + cycles - len(stretch.cycles) + begin.cycle
        first += cycles
    return last


def _programs_of_block(gpu: GpuInstance, grid: int) -> list[Program]:
    return [program for program, warps in gpu.grids[grid].block for _ in range(warps)]


def _course_conduct(gpu: GpuInstance, number: int, course: BlockTrace) -> WarpConduct:
    try:
        if not 0 <= course.grid < len(gpu.grids):
            raise InvalidScheduleError(f"there is no grid {course.grid}")
        alone = gpu.alone(course.grid).sm(1)
        return check_conduct(alone, _programs_of_block(gpu, course.grid), course.paths, course.latencies, course.uses)
    except InvalidScheduleError as error:
        raise InvalidScheduleError(f"course {number}: {error}") from None


class _SmReplay:
    """The replay of one history, executed by one SM.

    Warp w of the block in slot s is warp `s * width + w` of the floor.

    Attributes:
        fits: for every grid, the intervals of cycles in which a block of it would fit.
    """

    def __init__(
        self,
        gpu: GpuInstance,
        courses: Sequence[BlockTrace],
        rows: Sequence[WarpConduct],
        history: SmHistory,
        last: Sequence[int],
    ) -> None:
        self._gpu, self._courses, self._rows, self._history = gpu, courses, rows, history
        self._last, self._warps, self._left = max(last), gpu.width, list(gpu.room)
        self._programs = [_programs_of_block(gpu, grid) for grid in range(len(gpu.grids))]
        self.fits: list[list[tuple[int, int]]] = [[] for _ in gpu.grids]
        self._slots = self._count_slots()
        self._partitions = self._spread()
        self._floor = Floor(gpu.machine, self._slots * self._warps)
        self._judge = IssueJudge(
            gpu.machine, self._floor, lambda warp: "{1} of slot {0}".format(*divmod(warp, self._warps))
        )
        self._taken: dict[int, int] = {}
        """The number of the trace of the block in each slot."""
        self._walks: dict[tuple[int, int], list[Walk]] = {}

    def _count_slots(self) -> int:
        """Return the number of slots. For one grid, these are the ones that are taken in cycle 0."""
        begins, most = self._history.stretches[0].begins, self._gpu.most_together
        first = sorted(begin.slot for begin in begins if begin.cycle == 0)
        if len(self._gpu.grids) > 1:
            slots = (begin.slot for part in self._history.stretches for begin in part.begins)
            first = list(range(1 + max(slots, default=-1)))
        if first != list(range(len(first))) or not 1 <= len(first) <= most:
            raise InvalidScheduleError(f"blocks get the slots {first[:most]}, and not the first ones of 0..{most - 1}")
        return len(first)

    def _spread(self) -> list[tuple[int, ...]]:
        """Return the partitions of the warps of every slot. For several grids, any assignment is possible."""
        given, parts = self._history.partitions, self._gpu.machine.partitions
        if given and (len(given) != self._slots or any(len(row) != self._warps for row in given)):
            raise InvalidScheduleError(f"partitions are not given for {self._slots} slots of {self._warps} warps")
        if len(self._gpu.grids) > 1:
            if (not given and parts > 1) or not all(0 <= part < parts for row in given for part in row):
                raise InvalidScheduleError(
                    f"partitions 0..{parts - 1} are not given for the warps of {self._slots} slots"
                )
            return list(given) or [(0,) * self._warps] * self._slots
        numbers = self._gpu.slots_of_warps(self._slots)
        chosen = tuple(given[slot][warp] for slot, warp in numbers) if given else ()
        found = dict(zip(numbers, check_partitions(self._gpu.sm(self._slots), chosen), strict=True))
        return [tuple(found[slot, warp] for warp in range(self._warps)) for slot in range(self._slots)]

    def execute(self, unfolded: int) -> int:
        """Judge the history. Return the number of cycles executed so far, in addition to `unfolded`."""
        floor, cycle = self._floor, 0
        for stretch in self._history.stretches:
            length = len(stretch.cycles)
            for left in range(stretch.repeat - 1, -1, -1):
                before = self._state(cycle) if left else None
                spans = self._execute(cycle, stretch)
                self._note(spans)
                cycle += length
                unfolded += length
                # the state at the end equals that at the begin, so the other repeats would do the same
                if left and self._state(cycle) == before:
                    floor.shift(left * length)  # the skipped repeats pass in one step
                    self._note(_repeat_intervals(spans, cycle - length, length, left))
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
        # after its last block an SM is empty
        self._note(_RoomInterval(grid, cycle, _EVER) for grid in range(len(self.fits)))
        return unfolded

    def _note(self, spans: Iterable[_RoomInterval]) -> None:
        for grid, first, end in spans:
            fits = self.fits[grid]
            if fits and fits[-1][1] == first:
                first = fits.pop()[0]
            elif len(fits) == MAX_SPANS:
                raise UnsupportedError(f"replay of a whole GPU gives up after {MAX_SPANS} times in which a block fits")
            fits.append((first, end))

    def _fitting(self, cycle: int, since: Sequence[int | None]) -> list[int | None]:
        """Return, for every grid, the cycle since which a block of it would fit, or None.

        `since` has the earlier cycles.
        """
        fit = (all(map(int.__le__, grid.takes, self._left)) for grid in self._gpu.grids)
        return [(cycle if then is None else then) if fits else None for fits, then in zip(fit, since, strict=True)]

    def _state(self, cycle: int) -> Hashable:
        """Return all that the future depends on, relative to a cycle."""
        return self._floor.state(cycle), self._judge.state(), frozenset(self._taken.items())

    def _execute(self, first: int, stretch: RepeatedCycles) -> list[_RoomInterval]:
        """Execute one repeat of a stretch from cycle `first` on, and return when blocks would fit."""
        begins, floor = iter((*stretch.begins, None)), self._floor
        begin, spans = next(begins), list[_RoomInterval]()
        since: list[int | None] = [None for _ in self.fits]
        for cycle, executing in enumerate(stretch.cycles, first):
            happens = cycle in floor.arrivals or cycle in floor.releases
            if happens:
                floor.begin(cycle)
            changes = bool(floor.ended) or cycle == first
            # the room of a block is free in the cycle in which it has ended, before others get it
            for slot in floor.ended:
                self._take(self._courses[self._taken.pop(slot)].grid, -1)
            floor.ended = []
            while begin is not None and begin.cycle == cycle - first:
                self._begin(cycle, begin)
                # a block that begins changes both the room and the warps that may be ready
                happens = changes = True
                begin = next(begins)
            if cycle in floor.arrivals:
                floor.begin(cycle)
            if changes and cycle < self._last:
                fitting = self._fitting(cycle, since)
                spans += _closed_intervals(since, fitting, cycle)
                since = fitting
            if not floor.unfinished:
                raise InvalidScheduleError(f"cycle {cycle}: all blocks have ended already")
            if executing or happens:  # otherwise nothing has changed since a cycle in which no warp could issue
                self._judge.check(cycle, self._numbers(cycle, executing))
        return [*spans, *_closed_intervals(since, [None] * len(since), first + len(stretch.cycles))]

    def _take(self, grid: int, sign: int) -> None:
        """Take the room of a block of a grid, or give it back if `sign` is -1."""
        takes = self._gpu.grids[grid].takes
        self._left = [left - sign * one for left, one in zip(self._left, takes, strict=True)]

    def _numbers(self, cycle: int, executing: Iterable[tuple[int, int]]) -> list[int]:
        found = []
        for slot, warp in executing:
            if not (0 <= slot < self._slots and 0 <= warp < self._warps):
                raise InvalidScheduleError(f"cycle {cycle}: there is no warp {warp} of slot {slot}")
            found.append(slot * self._warps + warp)
        return found

    def _begin(self, cycle: int, begin: BlockStart) -> None:
        """Let a block get the room of a slot."""
        slot, course, delay, grid = begin.slot, begin.course, begin.delay, self._courses[begin.course].grid
        if not 0 <= slot < self._slots or slot in self._taken:
            raise InvalidScheduleError(f"cycle {cycle}: slot {slot} is taken or does not exist")
        if not 0 <= delay <= self._gpu.dispatch:
            raise InvalidScheduleError(
                f"cycle {cycle}: a block begins {delay} cycles after it got its room, {self._gpu.dispatch} at most"
            )
        self._take(grid, 1)
        if min(self._left) < 0:
            raise InvalidScheduleError(f"cycle {cycle}: there is no room for the block that comes to slot {slot}")
        # the partitions depend on the slot, and so does what a warp meets
        key = course, slot
        if key not in self._walks:
            programs, paths = self._programs[grid], self._courses[course].paths
            parts = self._partitions[slot][: len(programs)]
            self._walks[key] = walks(self._gpu.machine, programs, paths, parts)
        self._taken[slot] = course
        latencies, uses = self._rows[course]
        for warp, walk in enumerate(self._walks[key]):
            number = slot * self._warps + warp
            self._floor.put(cycle + delay, number, walk, slot)
            self._judge.put(number, latencies[warp], uses[warp] if uses else None)


def _closed_intervals(
    since: Sequence[int | None], fitting: Sequence[int | None], cycle: int
) -> Iterator[_RoomInterval]:
    for grid, (then, still) in enumerate(zip(since, fitting, strict=True)):
        if then is not None and still is None:
            yield _RoomInterval(grid, then, cycle)


def _repeat_intervals(spans: Sequence[_RoomInterval], first: int, cycles: int, times: int) -> Iterator[_RoomInterval]:
    """Yield the intervals of `cycles` cycles, which begin at `first`, for `times` further repeats."""
    for grid, begin, end in spans:
        # an interval that fills the repeat joins with itself, so one interval stands for all repeats
        if end - begin == cycles:
            yield _RoomInterval(grid, first + cycles, first + (1 + times) * cycles)
            continue
        for number in range(1, times + 1):
            yield _RoomInterval(grid, begin + number * cycles, end + number * cycles)
