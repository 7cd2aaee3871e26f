"""The times at which blocks are on an SM, in any part of its history. Repeats are counted and not unfolded."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from makespan.host.errors import UnsupportedError
from makespan.model.gpu import BlockStart, BlockTrace, GpuInstance, GpuSchedule, SmHistory
from makespan.model.machine import Machine
from makespan.model.program import BARRIER, Program
from makespan.model.simulate.floor import latencies
from makespan.report.gantt.chart import CycleWindow


class Stay(NamedTuple):
    """A stay of a block in a slot: it gets its room in `room`, its warps begin in `begin`, and it is over in `end`.

    Args:
        order: the number of blocks that have come to this SM before.
    """

    slot: int
    order: int
    room: int
    begin: int
    end: int


class _Series(NamedTuple):
    """Blocks that get their room in equally spaced cycles."""

    first: int
    step: int
    blocks: int
    begin: BlockStart

    def before(self, cycle: int) -> int:
        return min(self.blocks, max(0, -((self.first - cycle) // self.step)))

    @property
    def last(self) -> int:
        return self.first + (self.blocks - 1) * self.step


def block_stays(gpu: GpuInstance, schedule: GpuSchedule, history: SmHistory, window: CycleWindow) -> list[Stay]:
    """Return the blocks that are on an SM of this history in a window, in the order of their begin, and not cut.

    With one grid, a slot is never empty while blocks are left, so a block ends when the next one gets its slot. Time
    and memory grow with the text of the history and with the blocks in the window, and not with the number of repeats.

    Args:
        schedule: one that `simulate.gpu_replay` accepts.

    Raises:
        UnsupportedError: several grids.
    """
    ends, by_slot = last_ends(gpu, schedule, history), _by_slot(history)
    inside = sorted(
        (room, slot, delay, end)
        for slot, series in by_slot.items()
        for room, delay, end in _in_window(series, ends[slot], window)
    )

    def order(room: int, slot: int) -> int:
        return sum(each.before(room + (other < slot)) for other, series in by_slot.items() for each in series)

    found = list[Stay]()
    for room, slot, delay, end in inside:
        # within the window blocks follow one another, so only the first needs to be counted
        number = found[-1].order + 1 if found and found[-1].room >= window.first else order(room, slot)
        found.append(Stay(slot, number, room, room + delay, end))
    return found


def _in_window(series: Sequence[_Series], last_end: int, window: CycleWindow) -> Iterator[tuple[int, int, int]]:
    # one block before and one behind the window are needed, as a block ends where the next one begins
    near = sorted(
        (each.first + number * each.step, each.begin.delay)
        for each in series
        for number in range(max(0, each.before(window.first) - 1), min(each.blocks, each.before(window.end) + 1))
    )
    near = near[max(0, bisect_right(near, window.first, key=lambda begun: begun[0]) - 1) :]
    for (room, delay), (end, _) in pairwise([*near, (last_end, 0)]):
        if window.first < end and room < window.end:
            yield room, delay, end


def count_begins(history: SmHistory, window: CycleWindow) -> int:
    """Return how many blocks get their room on an SM in a window."""
    series = [each for of_slot in _by_slot(history).values() for each in of_slot]
    return sum(each.before(window.end) - each.before(window.first) for each in series)


def last_dispatch(history: SmHistory) -> int:
    """Return the cycle in which the last block of an SM gets its room."""
    return max(each.last for series in _by_slot(history).values() for each in series)


def count_slots(history: SmHistory) -> int:
    """Return the largest number of blocks on an SM at the same time: the number of slots."""
    return len(_by_slot(history))


def most_in_a_slot(history: SmHistory) -> int:
    """Return the largest number of blocks that have one slot, one after another."""
    return max(sum(each.blocks for each in series) for series in _by_slot(history).values())


def last_ends(gpu: GpuInstance, schedule: GpuSchedule, history: SmHistory) -> dict[int, int]:
    """Return, for every slot, the cycle in which its last block has ended.

    A block has ended once all instructions that it has issued are done. The history is read from its end, as far as a
    last block may still be there.

    Raises:
        UnsupportedError: several grids.
    """
    if len(gpu.grids) > 1:
        raise UnsupportedError(f"the picture of a whole GPU knows one grid, not {len(gpu.grids)}; draw each alone")
    last = {slot: max((each.last, each.begin) for each in series) for slot, series in sorted(_by_slot(history).items())}
    ends = {slot: room + begin.delay for slot, (room, begin) in last.items()}
    takes = {
        course: _cycles_to_end(gpu, schedule.courses[course]) for course in {begin.course for _, begin in last.values()}
    }
    longest = max((cycles for rows in takes.values() for row in rows for cycles in row), default=0)
    left = {slot: [reversed(row) for row in takes[begin.course]] for slot, (_, begin) in last.items()}
    for cycle, issued in _cycles_backwards(history):
        # no earlier instruction can end later than what is known already
        if cycle + longest <= min(ends.values()):
            break
        for slot, warp in issued:
            if cycle >= last[slot][0]:  # else the warp belongs to an earlier block
                ends[slot] = max(ends[slot], cycle + next(left[slot][warp]))
    return ends


def _by_slot(history: SmHistory) -> dict[int, list[_Series]]:
    found, first = defaultdict[int, list[_Series]](list), 0
    for stretch in history.stretches:
        for begin in stretch.begins:
            found[begin.slot].append(_Series(first + begin.cycle, len(stretch.cycles), stretch.repeat, begin))
        first += stretch.repeat * len(stretch.cycles)
    return found


def _cycles_backwards(history: SmHistory) -> Iterator[tuple[int, tuple[tuple[int, int], ...]]]:
    cycle = history.cycles
    for stretch in reversed(history.stretches):
        for _ in range(stretch.repeat):
            for issued in reversed(stretch.cycles):
                cycle -= 1
                yield cycle, issued


def _cycles_to_end(gpu: GpuInstance, course: BlockTrace) -> list[list[int]]:
    """Return, by warp and by executed instruction, how many cycles after its issue the block may end."""
    programs = [program for program, warps in gpu.grid.block for _ in range(warps)]
    given = course.latencies or ((),) * len(programs)
    return [
        list(_cycles_of_warp(gpu.machine, program, path, chosen))
        for program, path, chosen in zip(programs, course.paths, given, strict=True)
    ]


def _cycles_of_warp(
    machine: Machine, program: Program, path: tuple[int, ...], chosen: tuple[int, ...]
) -> Iterator[int]:
    places = [place for place in path if program.places[place].unit != BARRIER]
    fixed = (most for _, most in latencies(machine, program, places))
    for place, latency in zip(places, chosen or fixed, strict=True):
        if not program.timings:
            yield latency
        else:
            timing = program.timings[place]
            # no warp can wait for the latency of an instruction that sets no token
            yield max(timing.stall, latency if timing.sets else 0)
