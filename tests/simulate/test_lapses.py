"""Lapses and late lines in the definition of a cycle: cases by hand, and the replay of what the definition allows."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from random import Random

import pytest

from makespan import solve
from makespan.host.errors import InvalidScheduleError, UnsupportedError
from makespan.model.instance import Instance
from makespan.model.lapses import CacheLine, PlaceLapses
from makespan.model.machine import Latency, Machine, SchedulerPromise, UnitClass, UnitQueue, WarpAssignment
from makespan.model.program import Program, ProgramPlace
from makespan.model.result import Bounds
from makespan.model.schedule import WHOLE_SM, Schedule, WithheldWarp
from makespan.model.simulate import POLICIES, replay, run
from makespan.model.simulate.runner import Runner
from makespan.model.simulate.semantics import SmState, next_states, start_states
from makespan.model.strings import parse_string
from makespan.proof.bounds import least_possible
from makespan.proof.engines.construct import convoy
from makespan.report.result.bundle import result_bundle
from makespan.report.schedule.by_number import order_by_number
from tests import lapsing
from tests.oracle import TooManyStates, brute_force, cycles_left, longest_schedule

NONE = PlaceLapses()


def program(letters: str, *lapses: PlaceLapses) -> Program:
    """A string, whose last places have no lapses where there are fewer of them than places."""
    return Program.chain(letters).lapsing((*lapses, *(NONE,) * (len(letters) - len(lapses))))


def on(machine: Machine, *programs: tuple[Program, int]) -> Instance:
    return Instance.merged(programs, machine)


def longest(instance: Instance) -> int | None:
    return longest_schedule(instance, 100_000)


def partitions(count: int, *units: UnitClass) -> Machine:
    classes = units or (UnitClass("C", 1),)
    return Machine("partitions", classes, 1, partitions=count, assignment=WarpAssignment.MODULO)


LINE, ONE = CacheLine("line", 3), CacheLine("one", 1)
BASIC = Machine.of({"C": 1, "L": 1})


@pytest.mark.parametrize(
    ("instance", "cycles"),
    [
        (on(BASIC, (program("CC"), 1)), 2),
        (on(BASIC, (program("CC", PlaceLapses(credit=2)), 1)), 4),
        (on(BASIC, (program("CC", NONE, PlaceLapses(credit=2)), 1)), 4),
        # both warps bring credit to their only partition, but each in its own one
        (on(BASIC, (program("C", PlaceLapses(credit=2)), 2)), 6),
        (on(partitions(2), (program("C", PlaceLapses(credit=2)), 2)), 3),
        # the fences of both stop both partitions
        (on(partitions(2), (program("C", PlaceLapses(fence=2)), 2)), 5),
        # one window for a partition, however many warps and places need the line
        (on(BASIC, (program("CC", *[PlaceLapses(lines=(LINE,))] * 2), 1)), 5),
        (on(BASIC, (program("C", PlaceLapses(lines=(LINE,))), 2)), 5),
        (on(partitions(2), (program("C", PlaceLapses(lines=(LINE,))), 2)), 4),
        # a place that needs two lines waits for one after the other
        (on(BASIC, (program("C", PlaceLapses(lines=(LINE, ONE))), 1)), 5),
        # misses come again at each visit, and for each warp
        (on(BASIC, (program("CC", PlaceLapses(misses=2), PlaceLapses(misses=1)), 1)), 5),
        # a warp whose line is late lets another go first: that costs nothing but the cycles of the port
        (on(BASIC, (program("C", PlaceLapses(misses=1)), 1), (program("L"), 1)), 2),
        # the credit of a barrier comes in the phase that it ends
        (on(BASIC, (program("C|", NONE, PlaceLapses(credit=3)), 1)), 1),
        (on(BASIC, (program("C|", NONE, PlaceLapses(credit=3)), 1), (program("CC|"), 1)), 6),
        # a warp can be withheld before it arrives at a barrier, also before the first cycle
        (on(BASIC, (program("|C", PlaceLapses(lines=(LINE,))), 1)), 4),
        (on(BASIC, (program("C|", NONE, PlaceLapses(misses=2)), 1)), 3),
    ],
)
def test_longest_schedules_by_hand(instance: Instance, cycles: int) -> None:
    assert longest(instance) == cycles


def test_a_longer_window_that_any_program_names_is_the_window_of_the_line() -> None:
    short, long = (program(letters, PlaceLapses(lines=(CacheLine("a", n),))) for letters, n in (("C", 1), ("L", 4)))
    assert longest(on(BASIC, (short, 1), (long, 1))) == 5
    assert longest(on(BASIC, (short, 1))) == 2
    machine = partitions(2, UnitClass("C", 1), UnitClass("L", 1))
    assert longest(on(machine, (short, 1), (program("L"), 1))) == 2
    assert longest(on(machine, (program("CCCC", PlaceLapses(lines=(CacheLine("a", 1),))), 1), (long, 1))) == 8


def test_a_warp_that_has_arrived_has_arrived() -> None:
    """The windows of three partitions, one after another, would keep the barrier shut for 6 cycles and not for 2."""
    line = (CacheLine("a", 2),)
    machine = partitions(3, UnitClass("C", 1, 2, Latency(3, 3), shared=True))
    for credit, cycles in ((0, 0), 11), ((1, 0), 12), ((0, 1), 12):
        places = (PlaceLapses(credit=own, lines=line) for own in credit)
        assert longest(on(machine, (program("|C", *places), 3))) == cycles


def test_a_fence_stops_all_partitions_at_once() -> None:
    """So the barriers are late by 3 cycles. Two lapses, one of each partition after another, would make them 6 late."""
    machine = partitions(2, UnitClass("C", 1), UnitClass("F", 1))
    fence, other = program("F||C", PlaceLapses(fence=3)), program("|C|C")
    assert longest(on(machine, (fence.lapsing(()), 1), (other, 1))) == 3
    assert longest(on(machine, (fence, 1), (other, 1))) == 6


@pytest.mark.parametrize(("window", "warps", "plain", "cycles"), [(1, (1, 1, 1), 4, 6), (3, (2, 2, 1), 6, 11)])
def test_windows_of_other_warps_cost_theorem_e_pairs(
    window: int, warps: tuple[int, ...], plain: int, cycles: int
) -> None:
    """`CL`, whose L needs one line, another line, or none: more than E and the window of the last warp."""
    needed = (CacheLine("one", window),), (CacheLine("other", window),), ()
    groups = []
    for number, (count, lines) in enumerate(zip(warps, needed, strict=True)):
        # warps that begin at one of several equal places have programs of their own
        loads = ProgramPlace("L", (number + 2,))
        places = (*[ProgramPlace("C", (number + 1,))] * (number + 1), loads)
        lapses = (*[NONE] * (number + 1), PlaceLapses(lines=lines))
        groups.append((Program(places, tuple(range(number + 1)), lapses=lapses), count))
    instance = Instance.merged(groups, BASIC)
    assert longest_schedule(instance.without_lapses, 100_000) == plain
    assert longest(instance) == cycles > plain + window


def test_without_lapses_a_state_is_as_it_was() -> None:
    """Programs of which it is known that they have no lapses say no more than those of which nothing is known."""
    none = Program.chain("CL").lapsing((NONE,) * 2)
    for instance in (Instance.of(none, 2), Instance.of("CL", 2)):
        (state,) = start_states(instance)
        assert state == SmState((0, 0), (0, 0), ((), ()))
        assert all(after.lapses is None for after in next_states(instance, state))


def drawn(random: Random, most: int = 5) -> Instance:
    """On one partition or several, with warps that block or run ahead, barriers or none."""
    is_plain = random.random() < 0.25
    machine = lapsing.plain_machine(random) if is_plain else lapsing.multiprocessor(random)
    if random.random() < 0.2:
        machine = replace(machine, scheduler=SchedulerPromise.FAIR)
    return lapsing.instance(random, machine, ahead=not is_plain, barriers=random.random() < 0.5, most=most)


def test_lapses_only_add_schedules() -> None:
    random, longer = Random(1), 0
    for _ in range(60):
        instance = drawn(random)
        plain, cycles = instance.without_lapses, longest_schedule(instance, 300)
        bounds = brute_force(plain)
        assert longest_schedule(plain, 10_000) == bounds.upper
        assert cycles is None or cycles >= bounds.upper
        longer += cycles is not None and cycles > bounds.upper
    assert longer > 25


def chosen_at_random(random: Random) -> Callable[[Sequence[SmState]], int]:
    return lambda states: random.randrange(len(states))


def test_replay_accepts_what_the_definition_allows_and_little_else() -> None:
    """A schedule in which something is left out or put in is refused, or no longer than the longest one."""
    random, found = Random(2), Counter[str]()
    for _ in range(60):
        instance = drawn(random, most=4)
        kinds = list(zip(instance.group_of_warp(), instance.block_of_warp(), strict=True))
        left = cycles_left(instance, kinds, 200)
        try:
            cycles = max(map(left, start_states(instance)))
        except TooManyStates:
            continue
        longest_one = lapsing.walk(instance, partial(index_of_longest, left))
        assert replay(instance, longest_one) == longest_one.makespan == cycles == longest_schedule(instance, 10_000)
        for schedule in (longest_one, lapsing.walk(instance, chosen_at_random(random))):
            assert replay(instance, schedule) == schedule.makespan <= cycles
            if schedule.lapses or schedule.withheld:
                found["disturbed"] += 1
                with pytest.raises(InvalidScheduleError):
                    replay(instance.without_lapses, schedule)
            for _ in range(10):
                changed = varied(random, instance, schedule)
                try:
                    assert replay(instance, changed) <= cycles
                    found["accepted"] += 1
                except InvalidScheduleError as reason:
                    found[re.sub(r"cycle \d+: (warp \d+|partition \d|the whole SM)|\d+|'.*'", "", str(reason))] += 1
    assert found["disturbed"] > 25
    assert found["accepted"] > 5
    assert len(found) > 9


def index_of_longest(left: Callable[[SmState], int], states: Sequence[SmState]) -> int:
    return max(range(len(states)), key=lambda number: left(states[number]))


def varied(random: Random, instance: Instance, schedule: Schedule) -> Schedule:
    """The schedule with a lapse or a withheld warp more or less, or with one at another time."""
    cycle, warp = random.randrange(schedule.makespan), random.randrange(instance.warps)
    lines = [line.name for program in instance.programs() for line in program.lines]
    lapses, withheld = set(schedule.lapses), set(schedule.withheld)
    if random.random() < 0.5:
        lapses = {each for each in sorted(lapses) if random.random() < 0.7}
        withheld = {each for each in sorted(withheld, key=str) if random.random() < 0.7}
    if random.random() < 0.5:
        lapses.add((cycle, random.randrange(WHOLE_SM, instance.machine.partitions)))
    elif random.random() < 0.5:
        withheld.add(WithheldWarp(cycle, warp, random.choice(schedule.paths[warp]), random.choice([None, *lines])))
    return replace(schedule, lapses=tuple(lapses), withheld=tuple(withheld))


A, B = CacheLine("a", 1), CacheLine("b", 2)
PAIR = on(BASIC, (program("C", PlaceLapses(1, 0, 1, (A, B))), 1), (program("L"), 1))


@pytest.mark.parametrize(
    ("cycles", "lapses", "withheld", "reason"),
    [
        ([(), (), (0, 1)], ((0, 0), (1, 0)), (), "cycle 1: partition 0 lapses, but has no credit left"),
        ([(), (0, 1)], ((0, WHOLE_SM),), (), "cycle 0: the whole SM lapses, but has no credit left"),
        ([(), (0, 1)], ((0, 0), (0, 0)), (), "cycle 0: partition 0 lapses twice"),
        ([(), (0, 1)], ((0, 1),), (), "cycle 0: a lapse of partition 1, which the schedule lacks"),
        ([(), (0, 1)], ((9, 0),), (), "cycle 9: a lapse of partition 0, which the schedule lacks"),
        ([(0,), (1,)], ((0, 0),), (), "cycle 0: warp 0 executes, but its partition lapses"),
        ([(1,), (0,)], (), ((9, 0, "a"),), "cycle 9: warp 0 is withheld, which the schedule lacks"),
        ([(1,), (0,)], (), ((0, 2, "a"),), "cycle 0: warp 2 is withheld, which the schedule lacks"),
        ([(1,), (0,)], (), ((0, 0, "a"), (0, 0, "b")), "cycle 0: warp 0 is withheld twice"),
        ([(0,), (1,)], (), ((0, 1, "a"),), "cycle 0: warp 1 is withheld for line 'a', which it does not need"),
        ([(0,), (1,)], (), ((0, 1, None),), "cycle 0: warp 1 is withheld for longer than the 0 cycles of its misses"),
        (
            [(1,), (), (0,)],
            (),
            ((0, 0, None), (1, 0, None)),
            "cycle 1: warp 0 is withheld for longer than the 1 cycles of its misses",
        ),
        (
            [(1,), (), (0,)],
            (),
            ((0, 0, "a"), (1, 0, "a")),
            "cycle 1: warp 0 is withheld for line 'a', whose window began in cycle 0 and is over after 1 cycles",
        ),
        (
            [(1,), (), (), (0,)],
            (),
            ((0, 0, "b"), (1, 0, "a"), (2, 0, "b")),
            "cycle 2: warp 0 is withheld for line 'b', whose window began in cycle 0 and is over after 2 cycles",
        ),
        ([(0, 1), ()], (), ((1, 0, "a"),), "cycle 1: all warps have finished already"),
        ([(0, 1)], (), ((0, 0, "a"),), "cycle 0: warp 0 executes, but is withheld"),
        # where nothing more keeps it out, it has to issue
        ([(1,), (), (0,)], (), ((0, 0, "a"),), "cycle 1: work conservation demands that warp 0 issue"),
        ([(), (), (0, 1)], ((0, 0),), (), "cycle 1: work conservation demands that warp"),
    ],
)
def test_replay_says_what_is_wrong_with_lapses(
    cycles: list[tuple[int, ...]],
    lapses: tuple[tuple[int, int], ...],
    withheld: tuple[tuple[int, int, str | None], ...],
    reason: str,
) -> None:
    late = tuple(WithheldWarp(cycle, warp, 0, line) for cycle, warp, line in withheld)
    with pytest.raises(InvalidScheduleError, match=re.escape(reason)):
        replay(PAIR, Schedule(tuple(cycles), ((0,), (0,)), lapses=lapses, withheld=late))


def test_replay_takes_each_kind_of_delay() -> None:
    """A lapse, then the window of b, a miss, and the window of a."""
    late = (WithheldWarp(1, 0, 0, "b"), WithheldWarp(2, 0, 0, "b"), WithheldWarp(3, 0, 0), WithheldWarp(4, 0, 0, "a"))
    assert replay(PAIR, Schedule(((), (1,), (), (), (), (0,)), ((0,), (0,)), lapses=((0, 0),), withheld=late)) == 6


def test_a_warp_that_has_arrived_or_finished_is_not_withheld() -> None:
    """Warp 0 could be withheld before its barrier in cycle 1 only; warp 1 comes there in cycle 3."""
    programs = (program("C|", NONE, PlaceLapses(misses=5)), 1), (program("LLL|"), 1)
    instance = on(BASIC, *programs)
    cycles, paths = ((0, 1), (1,), (1,), ()), ((0, 1), (0, 1, 2, 3))

    def late(*cycles: int, place: int = 1) -> tuple[WithheldWarp, ...]:
        return tuple(WithheldWarp(cycle, 0, place) for cycle in cycles)

    assert replay(instance, Schedule(cycles, paths, withheld=late(1, 2, 3))) == 4
    assert replay(instance, Schedule(cycles[:3], paths, withheld=late(1, 2))) == 3
    for withheld, reason in (
        (late(1, 3), "cycle 3: all warps have finished already"),
        (late(2), "cycle 2: warp 0 is withheld, but is not ready or has arrived"),
        (late(0), "cycle 0: warp 0 is withheld, but is not ready or has arrived"),
        (late(0, place=0), "cycle 0: warp 0 is withheld for longer than the 0 cycles of its misses"),
        (late(1, place=2), "cycle 1: warp 0 is withheld at place 2, where it never is"),
    ):
        with pytest.raises(InvalidScheduleError, match=reason):
            replay(instance, Schedule(cycles, paths, withheld=withheld))


def test_a_cycle_without_a_lapse_is_work_conserving_again() -> None:
    instance = on(BASIC, (program("C", PlaceLapses(credit=2)), 1))
    assert replay(instance, Schedule(((), (), (0,)), ((0,),), lapses=((0, 0), (1, 0)))) == 3
    for lapses in ((0, 0),), ((1, 0),), ():
        with pytest.raises(InvalidScheduleError, match="work conservation demands that warp 0 issue"):
            replay(instance, Schedule(((), (), (0,)), ((0,),), lapses=lapses))


def test_policies_run_programs_with_lapses_as_if_there_were_none() -> None:
    instance = on(BASIC, (program("CLC", PlaceLapses(3, 1, 2, (LINE,))), 3), (program("LL"), 1))
    plain = instance.without_lapses
    for policy in POLICIES:
        schedule = run(instance, policy)
        assert schedule == run(plain, policy) == Runner(instance).schedule(policy)
        assert replay(instance, schedule) == replay(plain, schedule)
    convoys = on(BASIC, (program("CLCL", PlaceLapses(credit=1)), 3))
    assert convoy.applies(convoys)
    assert replay(convoys, convoy.schedule(convoys)) == convoy.schedule(convoys).makespan


def test_what_every_schedule_takes_it_takes_with_lapses_and_perhaps_not_with_queues() -> None:
    random = Random(3)
    for _ in range(30):
        instance = drawn(random, most=4)
        assert least_possible(instance) == least_possible(instance.without_lapses) <= brute_force(instance).lower
    # behind a queue the second and third L need not be served when C is issued in cycle 3
    units = UnitClass("C", 1), UnitClass("L", 1, 3)
    machine = Machine("queued", units, 1)
    instance = lapsing.behind(
        (UnitQueue("memory", ("L",), 2, False),), on(machine, (parse_string("L()L()L()C", machine), 1))
    )
    assert least_possible(instance) == 4
    assert least_possible(instance.without_lapses) == replay(instance, run(instance, "oldest")) == 8


def test_a_schedule_with_lapses_is_listed_by_number_and_is_not_written() -> None:
    late = program("C", PlaceLapses(misses=2))
    instance = Instance.merged([(late, 1), (program("L"), 1), (late, 1)], BASIC)
    schedule = lapsing.walk(instance, lambda states: len(states) - 1)
    assert schedule.withheld
    numbered, listed = order_by_number(instance, schedule)
    assert replay(numbered, listed) == replay(instance, schedule)
    assert {each.warp for each in listed.withheld} == {0, 2}
    solved = solve(instance)
    result = replace(solved, witness=schedule, bounds=Bounds(schedule.makespan, solved.bounds.upper))
    with pytest.raises(UnsupportedError, match="a bundle has a witness without lapses"):
        result_bundle(result)
