"""Replay of whole GPUs: what the definition says, every rule of the dispatcher broken once, and repeats."""

import re
from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from makespan.host.errors import InvalidScheduleError, UnsupportedError
from makespan.model.gpu import BlockStart, BlockTrace, GpuInstance, GpuSchedule, Grid, RepeatedCycles, SmHistory
from makespan.model.instance import Instance
from makespan.model.machine import (
    PAPER,
    Latency,
    Machine,
    PortResource,
    SchedulerPromise,
    UnitClass,
    Use,
    WarpAssignment,
)
from makespan.model.program import Program
from makespan.model.simulate import gpu_replay
from makespan.model.simulate.floor import Floor, walks
from makespan.model.simulate.gpu_replay import replay_gpu
from makespan.model.simulate.replay import IssueJudge, check_conduct, check_partitions
from tests.oracle import obeys_gpu
from tests.strategies import gpu_runs, gpus, multiprocessor_instances, runs


@given(st.data(), gpus(most=2))
@settings(max_examples=25)
def test_every_run_of_the_definition_replays(data: st.DataObject, gpu: GpuInstance) -> None:
    schedule = data.draw(gpu_runs(gpu))
    assert obeys_gpu(gpu, schedule)
    assert replay_gpu(gpu, schedule) == schedule.makespan


def _other_cycles(change: Callable[[list[list[tuple[int, int]]], int, int], object]) -> "Mutation":
    def mutated(stretch: RepeatedCycles, at: int, by: int) -> RepeatedCycles:
        cycles = [list(executing) for executing in stretch.cycles]
        change(cycles, at % len(cycles), by)
        return replace(stretch, cycles=tuple(tuple(sorted(executing)) for executing in cycles))

    return mutated


def _other_begin(change: Callable[[BlockStart, int], BlockStart]) -> "Mutation":
    def mutated(stretch: RepeatedCycles, at: int, by: int) -> RepeatedCycles:
        begins = list(stretch.begins)
        begins[at % len(begins)] = change(begins[at % len(begins)], by or 1)
        return replace(stretch, begins=tuple(begins))

    return mutated


Mutation = Callable[[RepeatedCycles, int, int], RepeatedCycles]
MUTATIONS: dict[str, Mutation] = {
    "a cycle less": _other_cycles(lambda cycles, at, _: cycles.pop(at)),
    "a cycle more": _other_cycles(lambda cycles, at, _: cycles.insert(at, [])),
    "an issue less": _other_cycles(lambda cycles, at, _: cycles[at] and cycles[at].pop()),
    "an issue more": _other_cycles(lambda cycles, at, by: cycles[at].append((by % 3, at % 2))),
    "an issue later": _other_cycles(lambda cycles, at, _: cycles[-1].append(cycles[at].pop()) if cycles[at] else None),
    "cycles exchanged": _other_cycles(lambda cycles, at, by: cycles.insert(at, cycles.pop((at + by) % len(cycles)))),
    "a slot": _other_begin(lambda begin, by: begin._replace(slot=begin.slot + by)),
    "a begin": _other_begin(lambda begin, by: begin._replace(cycle=begin.cycle + by)),
    "a delay": _other_begin(lambda begin, by: begin._replace(delay=begin.delay + by)),
    "a course": _other_begin(lambda begin, by: begin._replace(course=begin.course + by)),
    "a block less": lambda stretch, at, _: replace(stretch, begins=_without(stretch.begins, at)),
    "a block twice": lambda stretch, at, _: replace(
        stretch, begins=tuple(sorted((*stretch.begins, stretch.begins[at % len(stretch.begins)])))
    ),
}


def _without(begins: tuple[BlockStart, ...], at: int) -> tuple[BlockStart, ...]:
    return begins[: at % len(begins)] + begins[at % len(begins) + 1 :]


@given(
    st.data(), gpus(most_blocks=4, most=2), st.sampled_from(sorted(MUTATIONS)), st.integers(0, 99), st.integers(-2, 2)
)
@settings(max_examples=60)
def test_a_mutated_stretch_is_accepted_just_when_the_definition_allows_it(
    data: st.DataObject, gpu: GpuInstance, name: str, at: int, by: int
) -> None:
    schedule = data.draw(gpu_runs(gpu))
    number = at % len(schedule.histories)
    histories = list(schedule.histories)
    stretch = MUTATIONS[name](histories[number].stretches[0], at // 3, by)
    histories[number] = replace(histories[number], stretches=(stretch,))
    mutated = GpuSchedule(schedule.courses, tuple(histories))
    assume(mutated != schedule)
    event(f"{name}: {_judged(gpu, mutated)}")


@given(st.data(), gpus(most_blocks=4, most=2), st.integers(0, 99), st.sampled_from((-1, 1)))
@settings(max_examples=30)
def test_a_mutated_course_or_partition_is_accepted_just_when_the_definition_allows_it(
    data: st.DataObject, gpu: GpuInstance, at: int, by: int
) -> None:
    schedule = data.draw(gpu_runs(gpu))
    kind = data.draw(st.sampled_from(("paths", "latencies", "uses", "partitions")))
    if kind == "partitions":
        first, *others = schedule.histories
        assume(first.partitions)
        mutated = replace(schedule, histories=(replace(first, partitions=_other(first.partitions, at, by)), *others))
    else:
        course = schedule.courses[at % len(schedule.courses)]
        assume(getattr(course, kind))
        other = course._replace(**{kind: _other(getattr(course, kind), at, by)})
        mutated = replace(schedule, courses=tuple(other if one == course else one for one in schedule.courses))
    event(f"{kind}: {_judged(gpu, mutated)}")


@given(st.data(), gpus(most_sms=1, most_slots=2, most=2), st.integers(1, 3), st.integers(1, 3))
@settings(max_examples=40)
def test_sms_that_are_right_alone_are_accepted_together_just_when_no_block_waits_beside_an_empty_slot(
    data: st.DataObject, gpu: GpuInstance, first: int, second: int
) -> None:
    def with_(blocks: int, sms: int) -> GpuInstance:
        return GpuInstance.of(gpu.grid.block, blocks, gpu.machine, sms=sms, resident=gpu.room[0], dispatch=gpu.dispatch)

    one, other = (data.draw(gpu_runs(with_(blocks, 1))) for blocks in (first, second))
    shift = len(one.courses)
    moved = [
        replace(part, begins=tuple(begin._replace(course=begin.course + shift) for begin in part.begins))
        for part in other.histories[0].stretches
    ]
    histories = one.histories[0], replace(other.histories[0], stretches=tuple(moved))
    event(_judged(with_(first + second, 2), GpuSchedule(one.courses + other.courses, histories)))


def _other(rows: Any, at: int, by: int) -> Any:
    """The same with one number changed."""
    if isinstance(rows, int):
        return rows + by
    assume(rows)
    number = at % len(rows)
    return (*rows[:number], _other(rows[number], at // 2, by), *rows[number + 1 :])


def _judged(gpu: GpuInstance, schedule: GpuSchedule) -> str:
    try:
        assert replay_gpu(gpu, schedule) == schedule.makespan
        accepted = True
    except InvalidScheduleError:
        accepted = False
    assert accepted == obeys_gpu(gpu, schedule)
    return "accepted" if accepted else "rejected"


def gpu_of(
    string: str, blocks: int, sms: int, resident: int, *, machine: Machine = PAPER, dispatch: int = 0
) -> GpuInstance:
    return GpuInstance.of(((Program.chain(string), 1),), blocks, machine, sms=sms, resident=resident, dispatch=dispatch)


A, B = (0, 0), (1, 0)
CL = BlockTrace(0, ((0, 1),))
FIRST = (BlockStart(0, 0, 0), BlockStart(0, 1, 0))


def history(*cycles: tuple[tuple[int, int], ...], begins: tuple[BlockStart, ...] = FIRST, sms: int = 1) -> SmHistory:
    return SmHistory(sms, (RepeatedCycles(cycles, begins),))


FOUR = gpu_of("CL", 4, 1, 2)
GOOD = history((A,), (A, B), (A, B), (A, B), (B,), begins=(*FIRST, BlockStart(2, 0, 0), BlockStart(3, 1, 0)))
ON_BOTH = gpu_of("CL", 3, 2, 1)
TWICE = history((A,), (A,), (A,), (A,), begins=(BlockStart(0, 0, 0), BlockStart(2, 0, 0)))
ONCE = history((A,), (A,), begins=(BlockStart(0, 0, 0),))


@pytest.mark.parametrize(
    ("gpu", "histories", "message"),
    [
        (FOUR, (history((A,), (A, B), (B,)),), "2 blocks get their room, and the grid has 4"),
        (ON_BOTH, (TWICE, ONCE, ONCE), "4 blocks get their room, and the grid has 3"),
        (gpu_of("CL", 4, 2, 1), (TWICE, ONCE, ONCE), "3 SMs have a history, and the GPU has 2"),
        (gpu_of("CL", 2, 2, 1), (TWICE,), "cycle 0: there is room for a block of every grid"),
        (gpu_of("CL", 2, 1, 2), (TWICE,), "cycle 0: there is room for a block of every grid"),
        (
            gpu_of("CL", 3, 1, 2),
            (history((A,), (A, B), (B,), (B,), (B,), begins=(*FIRST, BlockStart(3, 1, 0))),),
            "cycle 2: there is room for a block of every grid",
        ),
        (  # the same in two stretches
            gpu_of("CL", 3, 1, 2),
            (
                SmHistory(
                    1, (RepeatedCycles(((A,), (A, B)), FIRST), RepeatedCycles(((B,),) * 3, (BlockStart(1, 1, 0),)))
                ),
            ),
            "cycle 2: there is room for a block of every grid",
        ),
        (
            gpu_of("CL", 3, 1, 2),
            (history((A,), (A, B), (A, B), (A,), begins=(*FIRST, BlockStart(1, 0, 0))),),
            "cycle 1: slot 0 is taken or does not exist",
        ),
        (
            gpu_of("CL", 3, 1, 2),
            (history((A,), (A, B), (A, B), (A,), begins=(*FIRST, BlockStart(2, 2, 0))),),
            "cycle 2: slot 2 is taken or does not exist",
        ),
        (
            gpu_of("CL", 3, 1, 2),
            (history((A,), (A, B), (A, B), (A,), begins=(*FIRST, BlockStart(2, 0, 1))),),
            "there is no course 1, of 1",
        ),
        (
            gpu_of("CL", 1, 1, 1),
            (history((), (A,), (A,), begins=(BlockStart(0, 0, 0, 1),)),),
            "cycle 0: a block begins 1 cycles after it got its room, 0 at most",
        ),
        (FOUR, (replace(GOOD, sms=2),), "8 blocks get their room"),
        (
            gpu_of("CL", 4, 2, 1),
            (ONCE, SmHistory(1, (RepeatedCycles(((A,), (A,)), FIRST[:1], 3),))),
            "cycle 2: there is room for a block of every grid",
        ),
        (gpu_of("CL", 1, 1, 1), (history((A,), (A,), (), begins=FIRST[:1]),), "cycle 2: all blocks have ended already"),
        (gpu_of("CL", 1, 1, 1), (history((A,), begins=FIRST[:1]),), "1 blocks have not ended after 1 cycles"),
        (gpu_of("CL", 1, 1, 1), (history((A,), (B,), begins=FIRST[:1]),), "cycle 1: there is no warp 0 of slot 1"),
        (
            gpu_of("CL", 2, 1, 2),
            (history((A,), (A,), (B,), (B,)),),
            "cycle 1: work conservation demands that warp 0 of slot 1 issue, too",
        ),
        (gpu_of("CL", 2, 1, 2), (history((A, B), (A, B)),), "cycle 0: warp 0 of slot 1 executes, but no port of C"),
        (gpu_of("CL", 2, 1, 2), (replace(GOOD, stretches=()),), "has a stretch"),
        (  # a second issue in a cycle in which nothing happens
            gpu_of("LC", 1, 1, 1, machine=Machine("late", (UnitClass("C", 1), UnitClass("L", 1, 1, Latency(3, 3))))),
            (history((A,), (), (A,), (A,), begins=FIRST[:1]),),
            "cycle 2: warp 0 of slot 0 executes, but waits for a latency to pass",
        ),
        (gpu_of("CL", 1, 2, 1), (ONCE, replace(ONCE, stretches=())), "has a stretch"),
        (gpu_of("CL", 2, 1, 2), (history(),), "a stretch has at least one cycle"),
        (
            gpu_of("CL", 2, 1, 2),
            (history((A,), begins=(BlockStart(-1, 0, 0),)),),
            "blocks begin in the cycles of their stretch",
        ),
        (
            gpu_of("CL", 3, 1, 2),
            (history((A,), (A, B), (A, B), (A,), begins=(*FIRST[:1], BlockStart(2, 0, 0), FIRST[1])),),
            "blocks begin in the cycles of their stretch, in order",
        ),
        (gpu_of("CL", 3, 2, 1), (TWICE, ONCE, replace(ONCE, sms=0)), "a history is one of at least one SM"),
        (
            gpu_of("CL", 1, 1, 1),
            (SmHistory(1, (*ONCE.stretches, RepeatedCycles(((A,),), repeat=0))),),
            "a stretch has at least one cycle, and comes at least once",
        ),
        (  # a block that begins where the stretch ends would never be there
            gpu_of("CL", 2, 1, 1),
            (history((A,), (A,), begins=(BlockStart(0, 0, 0), BlockStart(2, 0, 0))),),
            "blocks begin in the cycles of their stretch",
        ),
        (
            gpu_of("CL", 2, 1, 3),
            (history((A,), (A, (2, 0)), ((2, 0),), begins=(BlockStart(0, 0, 0), BlockStart(0, 2, 0))),),
            "blocks get the slots [0, 2], and not the first ones of 0..1",
        ),
        (gpu_of("CL", 1, 1, 1), (history((), (A,), (A,), begins=(BlockStart(1, 0, 0),)),), "blocks get the slots []"),
        (
            gpu_of("CL", 3, 1, 2),
            (history((A,), (A, B), (A, B), (A,), begins=(*FIRST, BlockStart(2, -1, 0))),),
            "cycle 2: slot -1 is taken or does not exist",
        ),
        (
            gpu_of("CL", 1, 1, 1),
            (history((A,), (A,), begins=(BlockStart(0, 0, 0, -1),)),),
            "cycle 0: a block begins -1 cycles after it got its room",
        ),
        (gpu_of("CL", 2, 1, 2), (history((A,), (A, (0, 1)), (B,)),), "cycle 1: there is no warp 1 of slot 0"),
        (gpu_of("CL", 2, 1, 2), (history(((1, -1),), (A, B), (B,)),), "cycle 0: there is no warp -1 of slot 1"),
        (gpu_of("CL", 2, 1, 2), (history(((-1, 0),), (A, B), (B,)),), "cycle 0: there is no warp 0 of slot -1"),
    ],
)
def test_every_rule_of_the_dispatcher_is_checked(
    gpu: GpuInstance, histories: tuple[SmHistory, ...], message: str
) -> None:
    assert replay_gpu(FOUR, GpuSchedule((CL,), (GOOD,))) == 5
    assert replay_gpu(ON_BOTH, GpuSchedule((CL,), (TWICE, ONCE))) == 4
    with pytest.raises(InvalidScheduleError, match=re.escape(message)):
        replay_gpu(gpu, GpuSchedule((CL,), histories))


@pytest.mark.parametrize(
    "course", [CL._replace(grid=1), CL._replace(grid=-1), CL._replace(paths=((0,),)), CL._replace(paths=())]
)
def test_a_course_is_one_of_the_block(course: BlockTrace) -> None:
    with pytest.raises(InvalidScheduleError, match="course 1: "):
        replay_gpu(FOUR, GpuSchedule((CL, course), (GOOD,)))


def test_a_million_blocks_are_replayed_like_a_few() -> None:
    blocks = 10**15
    back_to_back = RepeatedCycles(((A,), (A,)), FIRST[:1], blocks)  # the slot is empty at its begin and its end
    assert replay_gpu(gpu_of("CL", blocks, 1, 1), GpuSchedule((CL,), (SmHistory(1, (back_to_back,)),))) == 2 * blocks
    two = history((A,), (A, B))
    beside = RepeatedCycles(((A, B), (A, B)), (BlockStart(0, 0, 0), BlockStart(1, 1, 0)), blocks)
    end = RepeatedCycles(((B,),))
    schedule = GpuSchedule((CL,), (replace(two, sms=3, stretches=(*two.stretches, beside, end)),))
    assert replay_gpu(gpu_of("CL", 6 * (1 + blocks), 3, 2), schedule) == 3 + 2 * blocks
    late = replace(two, sms=3, stretches=(*two.stretches, beside, RepeatedCycles(((), (B,)))))
    with pytest.raises(InvalidScheduleError, match=f"history 0: cycle {2 + 2 * blocks}: work conservation demands"):
        replay_gpu(gpu_of("CL", 6 * (1 + blocks), 3, 2), replace(schedule, histories=(late,)))


def test_an_empty_slot_is_noticed_in_whichever_repeat_it_is() -> None:
    """One slot is empty in the last cycle of every repeat: allowed in the last one only, as blocks are left before."""
    gpu = gpu_of("CLC", 3 * 2, 1, 2, machine=Machine.of({"C": 2, "L": 2}), dispatch=1)
    course = BlockTrace(0, ((0, 1, 2),))
    lazy = RepeatedCycles(((A,), (A, B), (A, B), (B,)), (FIRST[0], BlockStart(0, 1, 0, 1)), 3)
    with pytest.raises(InvalidScheduleError, match="cycle 3: there is room for a block of every grid"):
        replay_gpu(gpu, GpuSchedule((course,), (SmHistory(1, (lazy,)),)))
    assert replay_gpu(gpu, GpuSchedule((course,), (SmHistory(1, (RepeatedCycles(((A, B),) * 3, FIRST, 3),)),))) == 9


def test_what_does_not_return_at_once_is_unfolded_within_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A port is held for longer than its block is there, so the second repeat begins in another state."""

    def held(cycles: int) -> GpuInstance:
        units = UnitClass("C", 2, interval=cycles), UnitClass("L", 1)
        return gpu_of("CL", 10**9, 1, 1, machine=Machine("held", units))

    schedule = GpuSchedule((CL,), (SmHistory(1, (RepeatedCycles(((A,), (A,)), FIRST[:1], 10**9),)),))
    assert replay_gpu(held(3), schedule) == 2 * 10**9
    with pytest.raises(InvalidScheduleError, match="cycle 4: warp 0 of slot 0 executes, but no port of C is free"):
        replay_gpu(held(5), schedule)
    monkeypatch.setattr(gpu_replay, "MAX_UNFOLDED_CYCLES", 1)
    with pytest.raises(UnsupportedError, match="gives up after 1 cycles in which an SM does not return"):
        replay_gpu(held(3), schedule)
    assert replay_gpu(FOUR, GpuSchedule((CL,), (GOOD,))) == 5, "what is written out is no repeat"


# Several grids: blocks of grid 0 take 2 of 3 of an SM, those of grid 1 take 1

SHORT, LONG = (Grid(((Program.chain(string), 1),), 2, (takes,)) for string, takes in (("C", 2), ("CC", 1)))
BOTH = GpuInstance((SHORT, LONG), Machine.of({"C": 2}), 1, (3,))
COURSES = BlockTrace(0, ((0,),)), BlockTrace(1, ((0, 1),))
C = (2, 0)


def of_both(*cycles: tuple[tuple[int, int], ...], begins: tuple[tuple[int, int, int], ...]) -> GpuSchedule:
    return GpuSchedule(COURSES, (history(*cycles, begins=tuple(BlockStart(*begin) for begin in begins)),))


@pytest.mark.parametrize(
    ("schedule", "message"),
    [
        (of_both((A, B), (A, B), (B,), (B,), begins=((0, 0, 0), (0, 1, 1), (1, 0, 0), (2, 1, 1))), None),
        (of_both((A, B), (B,), (A, B), (B,), begins=((0, 0, 0), (0, 1, 1), (2, 0, 0), (2, 1, 1))), "cycle 1: there is"),
        (
            of_both((A,), (A,), (A,), (A,), (A,), (A,), begins=((0, 0, 1), (2, 0, 1), (4, 0, 0), (5, 0, 0))),
            "cycle 0: ther",
        ),
        (of_both((A, B), (A, B), (A,), (A,), begins=((0, 0, 1), (0, 1, 1), (2, 0, 0), (3, 0, 0))), None),
        (of_both((A, B), (A, B), (), begins=((0, 0, 1), (0, 1, 1), (2, 0, 0), (2, 1, 0))), "cycle 2: there is no room"),
        (
            of_both((A, B), (A, B), (A,), begins=((0, 0, 1), (0, 1, 1), (2, 0, 0))),
            "1 blocks get their room, and grid 0",
        ),
        (of_both((A, C), (A, C), (A,), (A,), begins=((0, 0, 1), (0, 3, 1), (2, 0, 0), (3, 0, 0))), "and not the first"),
        (of_both((A, B), (A, B), (A,), (A,), begins=((0, 0, 1), (0, 1, 1), (2, 0, 0), (3, 0, 2))), "no course 2, of 2"),
    ],
)
def test_of_several_grids_some_block_that_is_left_must_fit_nowhere(schedule: GpuSchedule, message: str | None) -> None:
    """In the fourth a block of grid 0 would fit beside the first of grid 1, which is left, too, and would not."""
    if message is None:
        assert replay_gpu(BOTH, schedule) == 4
    else:
        with pytest.raises(InvalidScheduleError, match=message):
            replay_gpu(BOTH, schedule)


def test_a_fair_scheduler_keeps_its_promise_for_blocks_that_come() -> None:
    """C twice: after block 0 its successor has never issued, but was not ready for longer; nobody waits for long."""
    fair = Machine("fair", (UnitClass("C", 1),), scheduler=SchedulerPromise.FAIR)
    gpu, course = gpu_of("CC", 3, 1, 2, machine=fair), BlockTrace(0, ((0, 1),))
    turns = history((A,), (B,), (A,), (B,), (A,), (A,), begins=(*FIRST, BlockStart(3, 0, 0)))
    assert replay_gpu(gpu, GpuSchedule((course,), (turns,))) == 6
    starved = history((A,), (A,), (A,), (A,), (B,), (B,), begins=(*FIRST, BlockStart(2, 0, 0)))
    with pytest.raises(InvalidScheduleError, match="warp 0 of slot 0 goes before warp 0 of slot 1"):
        replay_gpu(gpu, GpuSchedule((course,), (starved,)))


def test_the_last_of_more_slots_is_in_the_partition_that_the_machine_says() -> None:
    halves = Machine("halves", (UnitClass("C", 1),), partitions=2, assignment=WarpAssignment.MODULO)
    gpu, course = gpu_of("C", 4, 1, 3, machine=halves), BlockTrace(0, ((0,),))
    begins = (*FIRST, BlockStart(0, 2, 0), BlockStart(1, 1, 0))
    apart = history((A, B), (B, (2, 0)), begins=begins)
    assert replay_gpu(gpu, GpuSchedule((course,), (apart,))) == 2
    together = history((A, (2, 0)), (B,), begins=(*begins[:3], BlockStart(1, 0, 0)))
    with pytest.raises(
        InvalidScheduleError, match="cycle 0: warp 0 of slot 2 executes, but no port of C is free in part"
    ):
        replay_gpu(gpu, GpuSchedule((course,), (together,)))


@pytest.mark.parametrize(("repeats", "late"), [(1, 2), (2, None), (3, None), (4, 5), (100, 5)])
def test_room_that_comes_again_counts_once_a_larger_block_waits_no_more(repeats: int, late: int | None) -> None:
    """In every second cycle there is room for a short block, and until cycle 4 a block waits that needs a whole SM.

    With one repeat SM 0 is empty from cycle 2 on, so that this one fits.
    """
    programs = ("CC", 1, repeats), ("C", 1, repeats), ("CCCC", 2, 2)
    grids = tuple(Grid(((Program.chain(string), 1),), blocks, (takes,)) for string, takes, blocks in programs)
    courses = tuple(BlockTrace(grid, (tuple(range(len(string))),)) for grid, (string, _, _) in enumerate(programs))
    short = RepeatedCycles(((A, B), (A,)), (BlockStart(0, 0, 0), BlockStart(0, 1, 1)), repeats)
    large = RepeatedCycles(((A,),) * 4, (BlockStart(0, 0, 2),), 2)
    schedule = GpuSchedule(courses, (SmHistory(1, (short,)), SmHistory(1, (large,))))
    gpu = GpuInstance(grids, Machine.of({"C": 2}), 2, (2,))
    if late is None:
        assert replay_gpu(gpu, schedule) == max(8, 2 * repeats)
        return
    with pytest.raises(InvalidScheduleError, match=f"cycle {late}: there is room for a block of every grid"):
        replay_gpu(gpu, schedule)


def small_and_large(small: tuple[str, int], large: tuple[str, int]) -> tuple[GpuInstance, GpuSchedule]:
    """So many blocks that take half of an SM, one after another on SM 0, and such as take a whole one on SM 1.

    So there is always room for another small block, and none for a large one.
    """
    grids, courses, histories = [], [], []
    for grid, (string, blocks) in enumerate((small, large)):
        grids.append(Grid(((Program.chain(string), 1),), blocks, (1 + grid,)))
        courses.append(BlockTrace(grid, (tuple(range(len(string))),)))
        histories.append(SmHistory(1, (RepeatedCycles(((A,),) * len(string), (BlockStart(0, 0, grid),), blocks),)))
    return GpuInstance(tuple(grids), PAPER, 2, (2,)), GpuSchedule(tuple(courses), tuple(histories))


def test_room_that_is_there_all_the_time_counts_however_often_a_stretch_comes() -> None:
    """The last large block gets its room in cycle 4 (n - 1): from then on no small one may be left."""
    n = 10**9
    assert replay_gpu(*small_and_large(("CC", 2 * n - 1), ("CCCC", n))) == 4 * n
    with pytest.raises(InvalidScheduleError, match=f"cycle {4 * (n - 1)}: there is room for a block of every grid"):
        replay_gpu(*small_and_large(("CC", 2 * n), ("CCCC", n)))


def test_room_ends_with_the_last_repeat() -> None:
    """From cycle 8 on no large block is left, and two small ones fill SM 0, up to cycle 11, when the last one comes."""
    gpu, schedule = small_and_large(("CC", 7), ("CCCC", 3))
    alone, large = schedule.histories
    (one,) = alone.stretches
    both = RepeatedCycles(
        ((A,), (B,), (A,), (B,), (A,), (A,)), (BlockStart(0, 0, 0), BlockStart(0, 1, 0), BlockStart(3, 0, 0))
    )
    parts = replace(one, repeat=4), both
    assert replay_gpu(gpu, replace(schedule, histories=(SmHistory(1, parts), large))) == 14


def test_room_counts_from_the_first_cycle_of_a_stretch_in_which_nothing_begins() -> None:
    """A small block is left up to cycle 4, a large one up to cycle 2 or 4; in 1..3 nothing happens on SM 0."""
    parts = RepeatedCycles(((A,),), (BlockStart(0, 0, 0),)), RepeatedCycles(((A,),) * 7, (BlockStart(3, 0, 0),))
    for larges in 2, 3:
        gpu, schedule = small_and_large(("CCCC", 2), ("CC", larges))
        for first in schedule.histories[0], SmHistory(1, parts):
            written = replace(schedule, histories=(first, schedule.histories[1]))
            if larges == 3:
                assert replay_gpu(gpu, written) == 8
                continue
            with pytest.raises(InvalidScheduleError, match="cycle 2: there is room for a block of every grid"):
                replay_gpu(gpu, written)


def test_a_grid_of_which_an_sm_gets_no_block_may_have_none_left() -> None:
    """SM 1 has room for another long block, and none for a short one, of which none is left after cycle 0."""
    long = replace(LONG, blocks=3)
    gpu = GpuInstance((replace(SHORT, blocks=1), long), Machine.of({"C": 2}), 2, (3,))
    late = history((A,), (A,), (A,), begins=(BlockStart(0, 0, 0), BlockStart(1, 0, 1)))
    two = history((A, B), (A, B), begins=(BlockStart(0, 0, 1), BlockStart(0, 1, 1)))
    with pytest.raises(InvalidScheduleError, match="cycle 0: there is room for a block of every grid"):
        replay_gpu(gpu, GpuSchedule(COURSES, (late, two)))
    beside = history((A, B), (B,), begins=(BlockStart(0, 0, 0), BlockStart(0, 1, 1)))
    assert replay_gpu(gpu, GpuSchedule(COURSES, (beside, two))) == 2


def test_intervals_of_room_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = small_and_large(("C", 9), ("CCCC", 3))
    assert replay_gpu(*asked) == 12
    monkeypatch.setattr(gpu_replay, "MAX_SPANS", 0)
    with pytest.raises(UnsupportedError, match="gives up after 0 times in which a block fits"):
        replay_gpu(*asked)


def test_room_is_room_of_every_resource() -> None:
    """Of the first resource there is plenty; of the second one block leaves nothing to the other."""
    grids = tuple(Grid(((Program.chain("C"), 1),), 1, takes) for takes in ((1, 2), (1, 1)))
    gpu, courses = (
        GpuInstance(grids, Machine.of({"C": 2}), 1, (4, 2)),
        tuple(BlockTrace(grid, ((0,),)) for grid in (0, 1)),
    )
    in_turn = history((A,), (B,), begins=(BlockStart(0, 0, 0), BlockStart(1, 1, 1)))
    assert replay_gpu(gpu, GpuSchedule(courses, (in_turn,))) == 2
    together = history((A, B), begins=(BlockStart(0, 0, 0), BlockStart(0, 1, 1)))
    with pytest.raises(InvalidScheduleError, match="cycle 0: there is no room for the block that comes to slot 1"):
        replay_gpu(gpu, GpuSchedule(courses, (together,)))


def test_warps_of_several_grids_are_in_any_partition_that_there_is() -> None:
    halves = Machine("halves", (UnitClass("C", 1),), partitions=2, assignment=WarpAssignment.MODULO)
    gpu = GpuInstance((Grid(((Program.chain("C"), 1),), 1),) * 2, halves, 1, (2,))
    courses = tuple(BlockTrace(grid, ((0,),)) for grid in (0, 1))

    def placed(*partitions: tuple[int, ...], cycles: tuple[tuple[tuple[int, int], ...], ...] = ((A, B),)) -> int:
        stretch = RepeatedCycles(cycles, (BlockStart(0, 0, 0), BlockStart(0, 1, 1)))
        return replay_gpu(gpu, GpuSchedule(courses, (SmHistory(1, (stretch,), partitions),)))

    assert placed((0,), (1,)) == placed((1,), (0,)) == 1
    assert placed((1,), (1,), cycles=((A,), (B,))) == 2
    missing = "partitions 0..1 are not given for the warps of 2 slots"
    shape = "partitions are not given for 2 slots of 1 warps"
    wrong: list[tuple[tuple[tuple[int, ...], ...], str]] = [
        *((rows, missing) for rows in ((), ((0,), (2,)), ((-1,), (0,)))),
        *((rows, shape) for rows in (((0,),), ((0,), (1, 0)), ((0,), (1,), (0,)))),
    ]
    for rows, message in wrong:
        with pytest.raises(InvalidScheduleError, match=re.escape(message)):
            placed(*rows)


def test_a_course_may_say_what_is_no_choice_and_the_next_one_in_its_slot_not() -> None:
    unit = UnitClass("C", 1, uses=(Use(("a",), 2, 2),))
    sole = Machine("sole", (unit,), resources=(PortResource("a", 1),))
    told, silent = BlockTrace(0, ((0,),), uses=((((0, 2),),),)), BlockTrace(0, ((0,),))
    turns = history((A,), (), (A,), begins=(BlockStart(0, 0, 0), BlockStart(1, 0, 1)))
    for courses in ((told, silent), (silent, told), (told, told), (silent, silent)):
        assert replay_gpu(gpu_of("C", 2, 1, 1, machine=sole), GpuSchedule(courses, (turns,))) == 3


def test_a_slot_has_the_warps_of_the_block_that_is_there() -> None:
    """Blocks of grid 1 have two warps, so there is a number for a second warp of the one of grid 0, too."""
    grids = tuple(Grid(((Program.chain("C"), warps),), 1) for warps in (1, 2))
    gpu = GpuInstance(grids, Machine.of({"C": 2}), 1, (1,))
    courses = BlockTrace(0, ((0,),)), BlockTrace(1, ((0,), (0,)))
    begins = BlockStart(0, 0, 0), BlockStart(1, 0, 1)
    assert replay_gpu(gpu, GpuSchedule(courses, (history((A,), (A, (0, 1)), begins=begins),))) == 2
    with pytest.raises(InvalidScheduleError, match="cycle 0: a warp executes that does not exist or has finished"):
        replay_gpu(gpu, GpuSchedule(courses, (history((A, (0, 1)), (A, (0, 1)), begins=begins),)))


# What is remembered where a stretch comes again


def test_who_is_shifted_goes_on_as_before() -> None:
    @given(st.data(), multiprocessor_instances(promises=True), st.integers(1, 9))
    @settings(max_examples=40)
    def goes_on(data: st.DataObject, instance: Instance, later: int) -> None:
        schedule = data.draw(runs(instance))
        cut = data.draw(st.integers(0, schedule.makespan))
        floor = Floor.of(instance, schedule.paths, check_partitions(instance, schedule.partitions))
        judge, shifted = IssueJudge(instance.machine, floor), 0
        rows = check_conduct(instance, tuple(instance.programs()), schedule.paths, schedule.latencies, schedule.uses)
        for warp, latencies in enumerate(rows.latencies):
            judge.put(warp, latencies, rows.uses[warp] if rows.uses else None)
        for cycle, executing in enumerate((*schedule.cycles, ())):
            if cycle == cut:
                before, shifted = floor.state(cycle), later
                floor.shift(later)
                assert floor.state(cycle + later) == before
            floor.begin(cycle + shifted)
            judge.check(cycle + shifted, executing)
        assert not floor.unfinished

    goes_on()


FAIR = Machine("fair", (UnitClass("C", 1),), scheduler=SchedulerPromise.FAIR)


def test_since_when_a_warp_is_ready_counts_where_a_scheduler_is_fair() -> None:
    def waiting(machine: Machine, since: int) -> Hashable:
        floor = Floor(machine, 1)
        (walk,) = walks(machine, [Program.chain("C")], [(0,)], [0])
        floor.put(since, 0, walk, 0)
        floor.begin(since)
        return floor.state(2)

    assert waiting(FAIR, 0) != waiting(FAIR, 1)
    assert waiting(PAPER, 0) == waiting(PAPER, 1)


def test_who_issued_before_whom_counts_where_a_scheduler_is_fair() -> None:
    def after(machine: Machine, *cycles: int) -> Hashable:
        """Two warps execute in turns, and a third one has never executed."""
        instance = Instance.of("CCCC", 2, machine)
        floor = Floor.of(instance, ((0, 1, 2, 3),) * 2, (0, 0))
        judge = IssueJudge(machine, floor)
        for warp in range(3):
            judge.put(warp, (1, 1, 1, 1), None)
        for cycle, warp in enumerate(cycles):
            floor.begin(cycle)
            judge.check(cycle, (warp,))
        return judge.state()

    assert after(FAIR, 0, 1) == after(FAIR, 0, 1, 0, 1) != after(FAIR, 1, 0)
    assert len({after(FAIR), after(FAIR, 0), after(FAIR, 1), after(FAIR, 0, 1)}) == 4
    assert after(PAPER) == after(PAPER, 0, 0)
