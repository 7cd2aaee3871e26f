"""Two judges of schedules of whole GPUs say the same: several grids, partitions, circles, and what was changed."""

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from makespan.host.errors import InvalidScheduleError
from makespan.model.gpu import BlockStart, BlockTrace, GpuInstance, GpuSchedule, Grid, RepeatedCycles, SmHistory
from makespan.model.machine import PAPER, Machine
from makespan.model.program import Program
from makespan.model.simulate import gpu_replay
from makespan.model.simulate.choices import Choices
from makespan.model.simulate.gpu_run import DISPATCH, run_gpu
from makespan.model.simulate.policies import POLICIES
from makespan.verify import gpu_witness
from makespan.verify.refusal import Refused
from tests.strategies import gpus, shared_gpus

SETTLED = sorted({*POLICIES} - {"random"})
WHAT = ("cycle", "issue", "swap", "idle", "begin", "block", "repeat", "split", "sms", "course", "partition")
CHOSEN = (Choices(), Choices("least", "shortest", interval="least"))


def other(draw: random.Random, rows: Any) -> Any:
    """The same with one whole number changed by one, if there is one to be found."""
    if isinstance(rows, int):
        return max(0, rows + draw.choice((-1, 1)))
    if not rows:
        return rows
    at = draw.randrange(len(rows))
    return (*rows[:at], other(draw, rows[at]), *rows[at + 1 :])


def changed(draw: random.Random, gpu: GpuInstance, schedule: GpuSchedule) -> GpuSchedule:
    """A rule may be broken, but all numbers are such as stand in a file that can be read."""
    what, number = draw.choice(WHAT), draw.randrange(len(schedule.histories))
    history = schedule.histories[number]
    if what == "course":
        return replace(schedule, courses=_other_course(draw, schedule.courses))
    if what == "partition" and history.partitions:
        parts = gpu.machine.partitions
        slot, warp, by = draw.randrange(len(history.partitions)), draw.randrange(gpu.width), draw.randrange(1, parts)
        rows = [[*row] for row in history.partitions]
        rows[slot][warp] = (rows[slot][warp] + by) % parts
        history = replace(history, partitions=tuple(map(tuple, rows)))
    elif what == "sms":
        history = replace(history, sms=max(1, history.sms + draw.choice((-1, 1))))
    else:
        history = _other_stretch(draw, gpu, history, what)
    return replace(schedule, histories=(*schedule.histories[:number], history, *schedule.histories[number + 1 :]))


def _other_course(draw: random.Random, courses: Sequence[BlockTrace]) -> tuple[BlockTrace, ...]:
    number = draw.randrange(len(courses))
    course, field = courses[number], draw.choice(("paths", "latencies", "uses"))
    return (*courses[:number], course._replace(**{field: other(draw, getattr(course, field))}), *courses[number + 1 :])


def _other_stretch(draw: random.Random, gpu: GpuInstance, history: SmHistory, what: str) -> SmHistory:
    number = draw.randrange(len(history.stretches))
    before, stretch, after = (history.stretches[:number], history.stretches[number], history.stretches[number + 1 :])
    cycles, begins, repeat = [[*one] for one in stretch.cycles], [*stretch.begins], stretch.repeat
    a, b = draw.randrange(len(cycles)), draw.randrange(len(cycles))
    match what:
        case "cycle" if len(cycles) > 1:
            del cycles[a]
        case "idle":
            cycles.insert(a, [])
        case "issue" if cycles[a]:
            cycles[b].append(cycles[a].pop(draw.randrange(len(cycles[a]))))
        case "swap":
            cycles[a], cycles[b] = cycles[b], cycles[a]
        case "begin" if begins:
            at = draw.randrange(len(begins))
            begin = begins[at]
            field = draw.choice(("cycle", "slot", "delay"))
            most = {"cycle": len(cycles) - 1, "slot": max(one.slot for one in begins), "delay": gpu.dispatch}[field]
            begins[at] = begin._replace(**{field: min(most, max(0, getattr(begin, field) + draw.choice((-1, 1))))})
            begins.sort(key=lambda one: one.cycle)
        case "block" if begins:
            del begins[draw.randrange(len(begins))]
        case "repeat":
            repeat = max(1, repeat + draw.choice((-1, 1)))
        case "split" if repeat > 1:  # the same schedule, told in another way
            return replace(
                history, stretches=(*before, replace(stretch, repeat=1), replace(stretch, repeat=repeat - 1), *after)
            )
    made = RepeatedCycles(tuple(tuple(sorted(one)) for one in cycles), tuple(begins), repeat)
    return replace(history, stretches=(*before, made, *after))


def verdicts(gpu: GpuInstance, schedule: GpuSchedule) -> tuple[int | None, int | None]:
    """The makespan by each of both judges; None if it is no schedule."""
    try:
        first = gpu_replay.replay_gpu(gpu, schedule)
    except InvalidScheduleError:
        first = None
    try:
        return first, gpu_witness.replay(gpu, schedule)
    except Refused:
        return first, None


@settings(max_examples=120)
@given(
    st.one_of(gpus(most_slots=4, most_blocks=12), shared_gpus(most_blocks=9)),
    st.sampled_from(SETTLED),
    st.sampled_from(DISPATCH),
    st.sampled_from(CHOSEN),
    st.randoms(use_true_random=False),
)
def test_changed_runs_are_accepted_by_both_judges_or_by_none(
    gpu: GpuInstance, policy: str, dispatch: str, choices: Choices, draw: random.Random
) -> None:
    schedule = run_gpu(gpu, policy, dispatch, choices, delay=draw.randint(0, gpu.dispatch))
    assert verdicts(gpu, schedule) == (schedule.makespan, schedule.makespan)
    for _ in range(12):
        one = changed(draw, gpu, schedule)
        mine, checked = verdicts(gpu, one)
        assert mine == checked, one
        if one != schedule:
            event("accepted" if mine else "refused")


def test_a_block_comes_where_another_has_left_while_one_of_the_other_grid_waits() -> None:
    """In cycle 0 only a block of the second grid would fit, and in cycle 1, as soon as it has come, of the first."""
    grids = [Grid(((Program.chain(letter), 1),), 2, takes) for letter, takes in (("C", (1, 0)), ("L", (0, 1)))]
    first, second = (BlockTrace(number, ((0,),)) for number in (0, 1))
    begins = BlockStart(0, 0, 0), BlockStart(1, 0, 1), BlockStart(2, 0, 0), BlockStart(2, 1, 1)
    stretch = RepeatedCycles((((0, 0),), ((0, 0),), ((0, 0), (1, 0))), begins)
    schedule = GpuSchedule((first, second), (SmHistory(1, (stretch,)),))
    assert verdicts(GpuInstance(tuple(grids), PAPER, 1, (1, 1)), schedule) == (3, 3)


@pytest.mark.parametrize("split", [1, 2, 3])
def test_room_for_one_grid_here_and_for_the_other_there_is_noticed_however_stretches_are_cut(split: int) -> None:
    """Here LL leaves its room in cycle 3, where CC may come all the time; there LL leaves in 2, and CC in 3.

    So in cycle 2 there is room for both, and the last LL and CC come at once; or, if they may not, a cycle later.
    """
    grids = [Grid(((Program.chain(one), 1),), n, takes) for one, n, takes in (("CC", 2, (1, 0)), ("LL", 3, (0, 1)))]
    gpu = GpuInstance(tuple(grids), PAPER, 2, (1, 1), 1)
    one, other = (0, 0), (1, 0)
    both = one, other

    def judged(come: int, here: Sequence[Sequence[Any]], there: Sequence[Sequence[Any]]) -> tuple[int | None, ...]:
        begins = BlockStart(0, 0, 1, 1), BlockStart(come, 1, 0)
        before = tuple(begin for begin in begins if begin.cycle < split)
        after = tuple(begin._replace(cycle=begin.cycle - split) for begin in begins[len(before) :])
        parts = (
            RepeatedCycles(tuple(map(tuple, here[:split])), before),
            RepeatedCycles(tuple(map(tuple, here[split:])), after),
        )
        alone = RepeatedCycles(
            tuple(map(tuple, there)), (BlockStart(0, 0, 0, 1), BlockStart(0, 1, 1), BlockStart(come, 1, 1))
        )
        courses = tuple(BlockTrace(number, ((0, 1),)) for number in (0, 1))
        return verdicts(gpu, GpuSchedule(courses, (SmHistory(1, parts), SmHistory(1, (alone,)))))

    assert judged(2, [(), (one,), both, (other,)], [(other,), both, both, (other,)]) == (4, 4)
    late = [(), (one,), (one,), (other,), (other,)], [(other,), both, (one,), (other,), (other,)]
    assert judged(3, *late) == (None, None)


@pytest.mark.parametrize("left", [("CL",), ("", "CL"), ("C", "CL"), ("CL", "L"), ("CL", "CL"), ("CL", "")])
def test_room_in_any_repeat_is_noticed_if_there_is_room_for_the_other_grid_at_the_same_time(
    left: tuple[str, ...],
) -> None:
    """A block of each of three grids a cycle there; here without these, but all in the first cycle and behind it."""
    repeats, slots = 3, {"C": 0, "L": 1, "S": 2}
    first = ("", *left[1:])
    whole = *first, *left * repeats, *[""] * len(left)
    cycles = len(whole)

    def stretch(missing: Sequence[str], repeat: int = 1) -> RepeatedCycles:
        come = [[slots[one] for one in "CLS" if one not in letters] for letters in missing]
        begins = tuple(BlockStart(at, slot, slot) for at, some in enumerate(come) for slot in some)
        return RepeatedCycles(tuple(tuple((slot, 0) for slot in some) for some in come), begins, repeat)

    def judged(hole: int | None) -> tuple[int | None, int | None]:
        """In this cycle no block of S comes there."""
        here = stretch(first), stretch(left, repeats), stretch([""] * (1 + len(left)))
        there = stretch(["S" * (cycle == hole) for cycle in range(cycles)])
        schedule = GpuSchedule(
            tuple(BlockTrace(number, ((0,),)) for number in range(3)), (SmHistory(1, here), SmHistory(1, (there,)))
        )
        missing = {one: "".join(whole).count(one) + (one == "S" and hole is not None) for one in slots}
        grids = (
            Grid(((Program.chain(one), 1),), 2 * cycles + 1 - missing[one], tuple(int(one == other) for other in slots))
            for one in slots
        )
        return verdicts(GpuInstance(tuple(grids), Machine.of(dict.fromkeys(slots, 1)), 2, (1, 1, 1)), schedule)

    assert judged(None) == (cycles + 1, cycles + 1)
    for hole in range(cycles):
        is_room = whole[hole] == "CL"
        assert judged(hole) == ((None, None) if is_room else (cycles + 1, cycles + 1))
