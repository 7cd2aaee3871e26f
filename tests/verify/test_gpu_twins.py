"""Schedules of whole GPUs, whole and damaged: the checker refuses what the engines' replay refuses, nothing else."""

import random
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from makespan.host.errors import InputError, InvalidScheduleError, UnsupportedError
from makespan.model.gpu import BlockStart, BlockTrace, GpuInstance, GpuSchedule, Grid, RepeatedCycles, SmHistory
from makespan.model.machine import Latency, Machine, PortResource, SchedulerPromise, UnitClass, Use, WarpAssignment
from makespan.model.program import Program, ProgramPlace
from makespan.model.simulate import gpu_replay
from makespan.model.simulate.choices import Choices
from makespan.model.simulate.gpu_run import DISPATCH, run_gpu
from makespan.model.strings import parse_string
from makespan.report.gpu.bundle import _schedule_data as written
from makespan.report.gpu.bundle import gpu_question_data
from makespan.verify import gpu_reading, gpu_witness
from makespan.verify.gpu_witness import replay
from makespan.verify.refusal import Refused
from tests.forgery import damaged
from tests.simulate.test_gpu_replay import small_and_large
from tests.verify.test_gpu import of

PARTS = Machine("parts", (UnitClass("C", 1, 1, Latency(1, 2)), UnitClass("L", 1, shared=True)), 1, partitions=2)
HELD = Machine(
    "held", (UnitClass("C", 1, uses=(Use(("a", "b"), 1, 2),)), UnitClass("L", 2, 3)), 1,
    resources=(PortResource("a", 1), PortResource("b", 1)),
)  # fmt: skip
MACHINES = (
    Machine.of({"C": 1, "L": 1}),
    Machine.of({"C": 2, "L": 1}),
    Machine("slow", (UnitClass("C", 1, 2, Latency(3, 3)), UnitClass("L", 1, 5)), 1),
    PARTS,
    replace(PARTS, assignment=WarpAssignment.MODULO),
    HELD,
)
STRINGS = "C", "CL", "LLC", "C|L", "L()@2C(1)", "CCL"
FORK = Program((ProgramPlace("C", (1, 2)), ProgramPlace("L", (3,)), ProgramPlace("C", (3,))), (0,))


def question(draw: random.Random) -> GpuInstance:
    machine = draw.choice(MACHINES)

    def block() -> tuple[tuple[Program, int], ...]:
        programs = [
            FORK if draw.random() < 0.2 else parse_string(draw.choice(STRINGS), machine)
            for _ in range(draw.randint(1, 2))
        ]
        return tuple(Counter(programs).items())

    if draw.random() < 0.5:
        resident, sms = draw.randint(1, 3), draw.randint(1, 2)
        return GpuInstance.of(
            block(), draw.randint(1, 9), machine, sms=sms, resident=resident, dispatch=draw.choice((0, 0, 1, 2))
        )
    room = draw.randint(1, 3), draw.randint(2, 5)
    grids = tuple(
        Grid(block(), draw.randint(1, 7), (draw.randint(1, room[0]), draw.randint(0, room[1])))
        for _ in range(draw.choice((2, 2, 3)))
    )
    return GpuInstance(grids, machine, draw.randint(1, 3), room, draw.choice((0, 0, 1)))


def schedule(draw: random.Random, gpu: GpuInstance) -> GpuSchedule:
    some = "random" if len(gpu.grids) == 1 and draw.random() < 0.4 else "least"
    choices = Choices(
        path=some if some == "random" else "shortest", latency=some, interval=some, assignment="random",
        seed=draw.randrange(99),
    )  # fmt: skip
    policy = draw.choice(("lrr", "gto", "youngest", "starve-in-turn"))
    return run_gpu(gpu, policy, draw.choice(DISPATCH), choices, delay=draw.randint(0, gpu.dispatch))


@pytest.mark.parametrize("seed", range(6))
def test_damaged_schedules_are_accepted_by_both_or_by_none(seed: int) -> None:
    draw, outcomes = random.Random(seed), Counter[str]()
    for _ in range(10):
        gpu = question(draw)
        try:
            honest = schedule(draw, gpu)
        except UnsupportedError:
            continue
        asked, document = gpu_question_data(gpu), written(gpu, honest)
        read = gpu_reading.instance(asked)
        assert gpu_question_data(read) == asked
        assert gpu_reading.schedule(document, "witness", read) == honest
        assert replay(read, honest) == gpu_replay.replay_gpu(gpu, honest) == honest.makespan
        for _ in range(12):
            other, changed = asked, damaged(draw, document)
            if draw.random() < 0.2:
                other, changed = damaged(draw, asked), draw.choice((changed, document))
            outcomes[judged(other, changed)] += 1
    assert min(outcomes["accepted"], outcomes["refused"]) > 10


def judged(asked: dict[str, Any], document: Any) -> str:
    try:
        gpu = gpu_reading.instance(asked)
        changed = gpu_reading.schedule(document, "witness", gpu)
    except Refused:
        return "unread"
    assert changed is not None
    try:
        expected = gpu_replay.replay_gpu(gpu, changed)
    except (InputError, InvalidScheduleError):
        with pytest.raises(Refused):
            replay(gpu, changed)
        return "refused"
    if any(sorted(warps) != [*warps] for part in changed.histories for one in part.stretches for warps in one.cycles):
        return "unread"  # the checker is strict about the order in which they are written
    assert replay(gpu, changed) == expected
    return "accepted"


A, B, C = (0, 0), (1, 0), (2, 0)
CHAIN = BlockTrace(0, ((0, 1),))
TWO_GRIDS = GpuInstance(
    (Grid(((Program.chain("CL"), 1),), 1), Grid(((Program.chain("C"), 1),), 1)), MACHINES[0], 1, (2,)
)


@pytest.mark.parametrize(
    ("gpu", "courses", "begins", "cycles", "why"),
    [
        (of("CL", 1, 1, 1), (CHAIN,), (), ((A,), (A,)), "0 slots for 0 blocks"),
        (
            TWO_GRIDS,
            (CHAIN, BlockTrace(1, ((0,),))),
            (BlockStart(0, 0, 0), BlockStart(1, 2, 1)),
            ((A,), (A, C)),
            "3 slots for 2 blocks",
        ),
        (
            of("CL", 3, 1, 2),
            (CHAIN,),
            (BlockStart(0, 0, 0), BlockStart(0, 1, 0), BlockStart(2, 2, 0)),
            ((A,), (A, B), (B, C), (C,)),
            "2 of 3 slots are taken in cycle 0, and others later",
        ),
        (
            of("CL", 2, 1, 2),
            (CHAIN,),
            (BlockStart(0, 0, 0), BlockStart(1, 1, 0)),
            ((A,), (A, B), (B,)),
            "1 of 2 slots are taken",
        ),
    ],
)
def test_slots_are_those_of_blocks(
    gpu: GpuInstance,
    courses: tuple[BlockTrace, ...],
    begins: tuple[BlockStart, ...],
    cycles: tuple[tuple[tuple[int, int], ...], ...],
    why: str,
) -> None:
    """Of one grid those that are taken at once, as the partitions of later blocks are those of their slots."""
    with pytest.raises(Refused, match=f"^witness: history 0: {why}"):
        replay(gpu, GpuSchedule(courses, (SmHistory(1, (RepeatedCycles(cycles, begins),)),)))


def test_what_does_not_repeat_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """A port is held for longer than its block is there: the second time begins otherwise, the third as the second."""
    held = Machine("held", (UnitClass("C", 2, 3), UnitClass("L", 1)))
    often = GpuSchedule((CHAIN,), (SmHistory(1, (RepeatedCycles(((A,), (A,)), (BlockStart(0, 0, 0),), 99),)),))
    monkeypatch.setattr(gpu_witness, "MAX_CYCLES", 4)
    assert replay(of("CL", 99, 1, 1, machine=held), often) == 2 * 99
    monkeypatch.setattr(gpu_witness, "MAX_CYCLES", 3)
    why = r"^the witness is too large for this checker: over \d+ warp-instructions, or \d+ cycles, that do not repeat$"
    with pytest.raises(Refused, match=why):
        replay(of("CL", 99, 1, 1, machine=held), often)


# Stretches that come again


Kinds = list[tuple[int, int]]
"""Of blocks: the cycles of their only instruction, and how much of the room they take."""


def stretch(draw: random.Random, kinds: Kinds, served: list[int], most: int, room: int) -> RepeatedCycles:
    """A few cycles in which up to `most` blocks of these kinds follow one another."""
    length = draw.randint(1, 5)
    ends: dict[int, tuple[int, int]] = {}  # of the blocks that are there by slot: their kind, and when they have ended
    begins: list[BlockStart] = []
    cycles: list[tuple[tuple[int, int], ...]] = []
    for cycle in range(length):
        ends = {slot: there for slot, there in ends.items() if there[1] > cycle}
        begun = []
        for kind in draw.sample(served, len(served)):
            end, takes = cycle + kinds[kind][0], kinds[kind][1]
            while end <= length and len(ends) < most and draw.random() < 0.9:
                if sum(kinds[k][1] for k, _ in ends.values()) + takes > room:
                    break
                begun.append(min(set(range(room)) - set(ends)))
                ends[begun[-1]] = kind, end
                begins.append(BlockStart(cycle, begun[-1], kind))
        cycles.append(tuple((slot, 0) for slot in sorted(begun)))
        if not ends:
            return stretch(draw, kinds, served, most, room)
    return RepeatedCycles(tuple(cycles), tuple(begins), draw.choice((1, 2, 3, 5, 7)))


def stretches(draw: random.Random, kinds: Kinds, room: int) -> SmHistory:
    """Of SMs that serve all of the kinds as well as they can, or only some, and so many blocks at one time."""
    served, most = draw.sample(range(len(kinds)), draw.randint(1, len(kinds))), draw.randint(1, room)
    if draw.random() < 0.4:
        served, most = list(range(len(kinds))), room
    parts = (stretch(draw, kinds, served, most, room) for _ in range(draw.randint(1, 3)))
    return SmHistory(draw.choice((1, 1, 2)), tuple(one for part in parts for one in in_two(draw, part)))


def in_two(draw: random.Random, part: RepeatedCycles) -> list[RepeatedCycles]:
    """Or as it is."""
    if len(part.cycles) == 1 or part.repeat > 1 or draw.random() < 0.5:
        return [part]
    at = draw.randint(1, len(part.cycles) - 1)
    later = tuple(begin._replace(cycle=begin.cycle - at) for begin in part.begins if begin.cycle >= at)
    return [
        RepeatedCycles(part.cycles[:at], tuple(begin for begin in part.begins if begin.cycle < at)),
        RepeatedCycles(part.cycles[at:], later),
    ]


def all_at_once(draw: random.Random) -> tuple[GpuInstance, GpuSchedule] | None:
    """Two or three grids, and SMs that keep the rules; whether the dispatcher does is another question."""
    room = draw.randint(2, 4)
    kinds = [(draw.randint(1, 4), draw.randint(1, room)) for _ in range(draw.choice((2, 2, 3)))]
    histories = tuple(stretches(draw, kinds, room) for _ in range(draw.randint(1, 3)))
    blocks = Counter(begin.course for each in histories for _ in range(each.sms) for _, begin in each.begins())
    if len(blocks) < len(kinds):
        return None
    units = [UnitClass(name, room, 1, Latency(each[0], each[0])) for name, each in zip("CLS", kinds, strict=False)]
    grids = [Grid(((Program.chain("CLS"[n]), 1),), blocks[n], (takes,)) for n, (_, takes) in enumerate(kinds)]
    machine = Machine("latencies", tuple(units))
    gpu = GpuInstance(tuple(grids), machine, sum(each.sms for each in histories), (room,))
    return gpu, GpuSchedule(tuple(BlockTrace(n, ((0,),)) for n in range(len(kinds))), histories)


def unfolded(history: SmHistory) -> SmHistory:
    parts = (replace(part, repeat=1) for part in history.stretches for _ in range(part.repeat))
    return replace(history, stretches=tuple(parts))


@pytest.mark.parametrize("seed", range(4))
def test_the_dispatcher_is_judged_alike_where_stretches_come_again(seed: int) -> None:
    """Every SM keeps the rules, so all depends on where blocks of each grid would have fitted, and for how long."""
    draw, outcomes = random.Random(seed), Counter[bool]()
    for _ in range(120):
        made = all_at_once(draw)
        if made is None:
            continue
        gpu, shown = made
        slowly = replace(shown, histories=tuple(map(unfolded, shown.histories)))
        try:
            makespan = gpu_replay.replay_gpu(gpu, slowly)
        except InvalidScheduleError:
            for each in (shown, slowly):
                with pytest.raises(Refused, match="all blocks that are left would fit, and none of them comes"):
                    replay(gpu, each)
            outcomes[False] += 1
            continue
        assert replay(gpu, shown) == replay(gpu, slowly) == makespan
        outcomes[True] += 1
    assert min(outcomes.values()) > 5


def test_room_that_is_there_all_the_time_counts_however_often_a_stretch_comes() -> None:
    """The last large block gets its room in cycle 4 (n - 1): from then on no small one may be left."""
    n = 10**9
    assert replay(*small_and_large(("CC", 2 * n - 1), ("CCCC", n))) == 4 * n
    with pytest.raises(Refused, match=f"cycle {4 * (n - 1)}: all blocks that are left would fit"):
        replay(*small_and_large(("CC", 2 * n), ("CCCC", n)))


def test_an_sm_that_gets_no_block_has_room_from_the_first_cycle_on() -> None:
    """The second block of two comes in cycle 1, and would have fitted beside."""
    stretch_ = RepeatedCycles(((A,),), (BlockStart(0, 0, 0),), 2)
    schedule_ = GpuSchedule((BlockTrace(0, ((0,),)),), (SmHistory(1, (stretch_,)),))
    assert replay(of("C", 2, 1, 1), schedule_) == 2
    with pytest.raises(Refused, match="cycle 0: all blocks that are left would fit"):
        replay(of("C", 2, 2, 1), schedule_)


def test_room_is_room_of_every_resource() -> None:
    """Of the first resource there is plenty; of the second one block leaves nothing to the other."""
    grids = tuple(Grid(((Program.chain("C"), 1),), 1, takes) for takes in ((1, 2), (1, 1)))
    gpu, courses = (
        GpuInstance(grids, Machine.of({"C": 2}), 1, (4, 2)),
        tuple(BlockTrace(grid, ((0,),)) for grid in (0, 1)),
    )
    in_turn = RepeatedCycles(((A,), (B,)), (BlockStart(0, 0, 0), BlockStart(1, 1, 1)))
    assert replay(gpu, GpuSchedule(courses, (SmHistory(1, (in_turn,)),))) == 2
    together = RepeatedCycles(((A, B),), (BlockStart(0, 0, 0), BlockStart(0, 1, 1)))
    with pytest.raises(Refused, match="cycle 0: there is no room for the block that comes to slot 1"):
        replay(gpu, GpuSchedule(courses, (SmHistory(1, (together,)),)))


def test_since_when_a_warp_waits_is_known_behind_a_stretch_that_comes_again() -> None:
    """Three slots take turns, five times twice; then the second goes before the first, which waits for longer."""
    fair = Machine("fair", (UnitClass("C", 1),), scheduler=SchedulerPromise.FAIR)
    gpu = of("CC", 3 + 5 * 3, 1, 3, machine=fair)
    first = RepeatedCycles(((A,), (B,), (C,)), tuple(BlockStart(0, slot, 0) for slot in range(3)))
    again = RepeatedCycles(((A,), (B,), (C,)) * 2, tuple(BlockStart(1 + slot, slot, 0) for slot in range(3)), 5)
    for last in ((A,), (B,), (C,)), ((B,), (A,), (C,)):
        shown = GpuSchedule((CHAIN,), (SmHistory(1, (first, again, RepeatedCycles(last))),))
        if last[0] == (A,):
            assert gpu_replay.replay_gpu(gpu, shown) == replay(gpu, shown) == 3 + 5 * 6 + 3
            continue
        with pytest.raises(InvalidScheduleError, match="cycle 33: warp 0 of slot 1 goes before warp 0 of slot 0"):
            gpu_replay.replay_gpu(gpu, shown)
        with pytest.raises(Refused, match="cycle 33: warp 0 of slot 0 is passed over by a scheduler that is fair"):
            replay(gpu, shown)


def test_an_sm_without_blocks_has_no_history() -> None:
    """Be there room for two, and all that there is on another SM."""
    gpu = GpuInstance((Grid(((Program.chain("C"), 1),), 1, (1,)),) * 2, Machine.of({"C": 2}), 2, (2,))
    courses = tuple(BlockTrace(grid, ((0,),)) for grid in (0, 1))
    both, idle = RepeatedCycles(((A, B),), (BlockStart(0, 0, 0), BlockStart(0, 1, 1))), RepeatedCycles(((), ()))
    alone = GpuSchedule(courses, (SmHistory(1, (both,)),))
    assert gpu_replay.replay_gpu(gpu, alone) == replay(gpu, alone) == 1
    beside = replace(alone, histories=(*alone.histories, SmHistory(1, (idle,))))
    with pytest.raises(InvalidScheduleError, match=r"blocks get the slots \[\], and not the first ones"):
        gpu_replay.replay_gpu(gpu, beside)
    with pytest.raises(Refused, match="0 slots for 0 blocks"):
        replay(gpu, beside)


@pytest.mark.parametrize(
    ("partitions", "cycles", "why"),
    [
        (((0,), (1,)), ((A, B),), None),
        (((1,), (0,)), ((A, B),), None),
        (((1,), (1,)), ((A,), (B,)), None),  # of several grids they need not be even
        (((1,), (1,)), ((A, B),), "finds no free port of C"),
        *((rows, ((A, B),), "not partitions 0..1 for 1 warps of each of 2") for rows in ((), ((0,),), ((0,), (2,)))),
        *((rows, ((A, B),), "not partitions 0..1") for rows in (((0,), (1, 0)), ((0,), (1,), (0,)), ((0, 1), (0, 1)))),
    ],
)
def test_warps_of_several_grids_are_in_any_partition_that_there_is(
    partitions: tuple[tuple[int, ...], ...], cycles: tuple[tuple[tuple[int, int], ...], ...], why: str | None
) -> None:
    halves = Machine("halves", (UnitClass("C", 1),), partitions=2, assignment=WarpAssignment.MODULO)
    gpu = GpuInstance((Grid(((Program.chain("C"), 1),), 1),) * 2, halves, 1, (2,))
    courses = tuple(BlockTrace(grid, ((0,),)) for grid in (0, 1))
    placed = GpuSchedule(
        courses, (SmHistory(1, (RepeatedCycles(cycles, (BlockStart(0, 0, 0), BlockStart(0, 1, 1))),), partitions),)
    )
    if why is None:
        assert replay(gpu, placed) == len(cycles)
        return
    with pytest.raises(Refused, match=why):
        replay(gpu, placed)


SLOWLY = Machine("slowly", tuple(UnitClass(name, 9, 1, Latency(n, n)) for name, n in (("C", 2), ("L", 4), ("S", 6))))
Part = tuple[int, int, tuple[tuple[int, int, str], ...]]
"""The cycles of a stretch, how often it comes, and for each block the cycle, its slot and the name of its grid."""


def both_replayed(kinds: Mapping[str, tuple[str, tuple[int, ...]]], *sms: tuple[Part, ...]) -> int:
    """On SMs with two of each resource; of each grid its only instruction and what it takes."""
    names, found = list(kinds), Counter[str]()
    histories = []
    for parts in sms:
        made = []
        for length, repeat, begins in parts:
            found.update({name: 0 for _, _, name in begins})
            for _, _, name in begins:
                found[name] += repeat
            cycles = [tuple(sorted((slot, 0) for at, slot, _ in begins if at == cycle)) for cycle in range(length)]
            made.append(
                RepeatedCycles(tuple(cycles), tuple(BlockStart(at, s, names.index(n)) for at, s, n in begins), repeat)
            )
        histories.append(SmHistory(1, tuple(made)))
    grids = tuple(Grid(((Program.chain(c), 1),), found[name], takes) for name, (c, takes) in kinds.items())
    gpu = GpuInstance(grids, SLOWLY, len(sms), (2,) * len(grids[0].takes))
    shown = GpuSchedule(tuple(BlockTrace(n, ((0,),)) for n in range(len(names))), tuple(histories))
    try:
        makespan = gpu_replay.replay_gpu(gpu, shown)
    except InvalidScheduleError as error:
        with pytest.raises(Refused, match=re.escape(str(error).partition(":")[0]) + ": all blocks that are left would"):
            replay(gpu, shown)
        raise
    assert replay(gpu, shown) == makespan
    return makespan


def test_room_is_still_there_where_another_stretch_begins_and_nothing_happens() -> None:
    """A small block is left up to cycle 4, and fits on SM 0 all the time; a large one is left up to cycle 2 or 4."""
    kinds = {"small": ("L", (1,)), "large": ("C", (2,))}
    whole: tuple[Part, ...] = ((8, 1, ((0, 0, "small"), (4, 0, "small"))),)
    parts: tuple[Part, ...] = ((1, 1, ((0, 0, "small"),)), (7, 1, ((3, 0, "small"),)))
    for first in whole, parts:
        assert both_replayed(kinds, first, ((2, 3, ((0, 0, "large"),)),)) == 8
        with pytest.raises(InvalidScheduleError, match="cycle 2: there is room"):
            both_replayed(kinds, first, ((2, 2, ((0, 0, "large"),)),))


def test_room_at_the_end_of_a_stretch_is_not_there_at_its_begin() -> None:
    """Of four cycles SM 0 has room for another `b` in the last two, and SM 1 for another `a` in the first two."""
    kinds = {"a": ("C", (2, 0)), "b": ("C", (1, 1)), "long": ("L", (0, 2)), "other": ("C", (2, 0))}
    again = (4, 5, ((0, 0, "a"), (2, 0, "b"))), (4, 5, ((0, 0, "long"), (2, 1, "other")))
    assert both_replayed(kinds, (again[0], (2, 1, ((0, 0, "a"),))), (again[1],)) == 22
    more = (6, 1, ((0, 0, "a"), (2, 0, "a"), (4, 0, "b"))), (4, 1, ((0, 0, "long"),))
    assert both_replayed(kinds, (again[0], more[0]), (again[1], more[1])) == 26  # nor once more after the last one


@pytest.mark.parametrize(("until", "cycle"), [(1, 10), (2, 14)])
def test_room_of_each_grid_counts_in_each_repeat(until: int, cycle: int) -> None:
    """From then on SM 1 has room for the next `a`; and in these two cycles SM 0 has it for the `b` four cycles later.

    The first two of four repeats are executed. For the last `tiny` there is always room.
    """
    kinds = {"a": ("C", (2, 0, 0)), "b": ("C", (1, 1, 0)), "all": ("S", (2, 2, 0)), "long": ("S", (0, 2, 0))}
    kinds["more"], tiny = ("L", (2, 2, 0)), {"tiny": ("C", (0, 0, 1))}
    full = ((6, 1, ((0, 0, "all"),)), *((4, 1, ((0, 0, "more"),)),) * until)
    alone: tuple[Part, ...] = *full, (6, 1, ((0, 0, "long"),))
    beside: tuple[Part, ...] = *full, (6, 1, ((0, 0, "long"), (4, 1, "tiny")))
    again: tuple[Part, ...] = ((4, 4, ((0, 0, "a"), (2, 0, "b"))), *((4, 1, ((0, 0, "a"), (2, 0, "b"))),) * (until - 1))
    for every, other in ((kinds, alone), (tiny | kinds, beside), (kinds | tiny, beside)):
        with pytest.raises(InvalidScheduleError, match=f"cycle {cycle}: there is room"):
            both_replayed(every, again, other)


def test_room_that_is_there_in_each_repeat_is_not_there_before_the_first() -> None:
    """While `first` is there a small block does not fit, and while one `b` follows another a large one does not."""
    kinds = {"small": ("C", (1, 0)), "large": ("C", (0, 2)), "first": ("S", (2, 0)), "b": ("C", (0, 1))}
    rest: Part = 2, 1, ((0, 0, "small"), (0, 1, "large"))
    assert both_replayed(kinds, ((6, 1, ((0, 0, "first"),)), (2, 5, ((0, 0, "b"),)), rest)) == 6 + 2 * 5 + 2


def test_a_grid_of_which_an_sm_gets_no_block_may_have_none_left() -> None:
    """SM 1 has room for another long block, and none for a short one, of which none is left after cycle 0."""
    kinds = {"short": ("C", (2,)), "long": ("L", (1,))}
    with pytest.raises(InvalidScheduleError, match="cycle 0: there is room"):
        both_replayed(kinds, ((6, 1, ((0, 0, "short"), (2, 0, "long"))),), ((4, 1, ((0, 0, "long"),)),))
    assert both_replayed(kinds, ((2, 1, ((0, 0, "short"),)),), ((4, 1, ((0, 0, "long"), (0, 1, "long"))),)) == 4


SLOT = Machine("slot", (UnitClass("C", 2, 1, Latency(9, 9)),), 1)


@pytest.mark.parametrize(
    ("cycles", "why"),
    [
        (((A,), (B,), *[()] * 8), None),
        (((A,), (), (B,), *[()] * 8), "cycle 1: an instruction of class C is left out"),
        (((A,), (B,), (), (), (A,), *[()] * 5), "cycle 4: warp 0 of slot 0 waits for a latency"),
    ],
)
def test_cycles_in_which_nothing_happens(cycles: tuple[tuple[tuple[int, int], ...], ...], why: str | None) -> None:
    """In cycle 1 nothing has changed but that the slot is free again, in cycle 4 nothing at all."""
    begins, gpu = (BlockStart(0, 0, 0), BlockStart(0, 1, 0)), of("C", 2, 1, 2, machine=SLOT)
    for parts in ((RepeatedCycles(cycles, begins),), (RepeatedCycles(cycles[:1], begins), RepeatedCycles(cycles[1:]))):
        shown = GpuSchedule((BlockTrace(0, ((0,),)),), (SmHistory(1, parts),))
        if why is None:
            assert replay(gpu, shown) == 10
            continue
        with pytest.raises(Refused, match=why):
            replay(gpu, shown)
