"""The second opinion: every rule, broken once; and mutations that must be noticed."""

from collections.abc import Callable

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from makespan.host.errors import BrokenPromiseError, InvalidScheduleError
from makespan.model.instance import Instance
from makespan.model.machine import Latency, Machine, SchedulerPromise, UnitClass
from makespan.model.program import Program, ProgramPlace
from makespan.model.schedule import Schedule
from makespan.model.simulate import replay
from tests.oracle import obeys
from tests.strategies import instances, runs

CL2 = Instance.of("CL", 2)
GOOD = ((0,), (0, 1), (1,))
CHAIN = (0, 1)
FORK = Instance.of(Program((ProgramPlace("C", (1, 2)), ProgramPlace("L", (2,)))), 1)


def test_a_valid_schedule_replays_to_its_makespan() -> None:
    assert replay(CL2, Schedule(GOOD, (CHAIN, CHAIN))) == 3
    assert replay(FORK, Schedule(((0,),), ((0,),))) == 1
    assert replay(FORK, Schedule(((0,), (0,)), ((0, 1),))) == 2


@pytest.mark.parametrize(
    ("cycles", "message"),
    [
        (((0,), (0, 1), (1,), ()), "cycle 3: all warps have finished already"),
        (((), *GOOD), "cycle 0: work conservation demands that warp 0 issue, too: it is ready for class C"),
        (
            ((0,), (0,), (1,), (1,)),
            "cycle 1: work conservation demands that warp 1 issue, too: it is ready for class C",
        ),
        (
            ((0,), (1,), (0,), (1,)),
            "cycle 1: work conservation demands that warp 0 issue, too: it is ready for class L",
        ),
        (((0, 1), (0,), (1,)), "cycle 0: warp 1 executes, but no port of C is free"),
        (((0, 0), (1,), (1,)), "cycle 0: a warp executes two instructions"),
        (((0,), (0, 1), (0,)), "cycle 2: a warp executes that does not exist or has finished"),
        (((0,), (0, 1), (2,)), "cycle 2: a warp executes that does not exist or has finished"),
        (((0,), (0, 1), (-1,)), "cycle 2: a warp executes that does not exist or has finished"),
        (((0,), (0, 1)), "1 of 2 warps have not finished after 2 cycles"),
        ((), "2 of 2 warps have not finished after 0 cycles"),
        ((*GOOD, (1,)), "cycle 3: all warps have finished already"),
    ],
)
def test_who_executes_when_follows_the_rules(cycles: tuple[tuple[int, ...], ...], message: str) -> None:
    with pytest.raises(InvalidScheduleError, match=message):
        replay(CL2, Schedule(cycles, (CHAIN, CHAIN)))


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ((), r"a path begins at \(\), not at one of \(0,\)"),
        ((1,), r"a path begins at \(1,\), not at one of \(0,\)"),
        ((0, 2), "visits a place that its program does not have"),
        ((0, -1), "visits a place that its program does not have"),
        ((0, 0), "goes from place 0 to 0, which does not follow it"),
        ((0, 1, 1), "goes from place 1 to 1, which does not follow it"),
    ],
)
def test_a_path_is_one_of_the_program(path: tuple[int, ...], message: str) -> None:
    with pytest.raises(InvalidScheduleError, match=message):
        replay(FORK, Schedule(((0,),) * len(path), (path,)))


def test_a_path_ends_only_where_the_program_may_end() -> None:
    with pytest.raises(InvalidScheduleError, match="goes from place 0 to 2, which does not follow it"):
        replay(Instance.of("CL", 1), Schedule(((0,),), ((0,),)))


def test_every_warp_has_a_path() -> None:
    with pytest.raises(InvalidScheduleError, match="1 paths for 2 warps"):
        replay(CL2, Schedule(GOOD, (CHAIN,)))


def test_every_group_is_held_to_its_own_program() -> None:
    instance = Instance.merged([(Program.chain("CL"), 1), (Program.chain("L"), 1)])
    assert replay(instance, Schedule(((0, 1), (0,)), (CHAIN, (0,)))) == 2
    with pytest.raises(InvalidScheduleError, match="goes from place 0 to 2"):
        replay(instance, Schedule(((0, 1),), ((0,), (0,))))


def test_a_capacity_of_two_must_be_used_and_not_exceeded() -> None:
    instance = Instance.of("C", 3, Machine.of({"C": 2}))
    assert replay(instance, Schedule(((0, 2), (1,)), ((0,),) * 3)) == 2
    with pytest.raises(InvalidScheduleError, match="cycle 0: work conservation demands that warp 1 issue"):
        replay(instance, Schedule(((0,), (1, 2)), ((0,),) * 3))
    with pytest.raises(InvalidScheduleError, match="cycle 0: warp 2 executes, but no port of C is free"):
        replay(instance, Schedule(((0, 1, 2),), ((0,),) * 3))


def test_a_schedule_that_does_not_replay_is_a_bug_and_not_bad_input() -> None:
    assert issubclass(InvalidScheduleError, BrokenPromiseError)


def test_a_fair_scheduler_lets_nobody_go_before_who_waits_for_longer_and_issued_longer_ago() -> None:
    """Warp 1 has never issued. Warp 2 comes back later than both, as they are ready again, and has issued before."""
    units = UnitClass("C", 1), UnitClass("L", 1, latency=Latency(2, 2))
    fair, paths = Machine("fair", units, scheduler=SchedulerPromise.FAIR), (CHAIN, CHAIN)
    pair = Instance.of("CC", 2, fair)
    assert replay(pair, Schedule(((0,), (1,), (0,), (1,)), paths)) == 4
    with pytest.raises(
        InvalidScheduleError, match="cycle 1: warp 0 goes before warp 1, which was ready and issued ear"
    ):
        replay(pair, Schedule(((0,), (0,), (1,), (1,)), paths))
    three = Instance.merged([(Program.chain("CC"), 2), (Program.chain("LC"), 1)], fair)
    for cycles in (
        ((0, 2), (1,), (0,), (1,), (2,)),  # 2 is ready from cycle 2 on, 1 too, and 0 for longer; 2 issued before 1
        ((0, 2), (1,), (0,), (2,), (1,)),  # ready since the same cycle: either may go first
    ):
        assert replay(three, Schedule(cycles, (CHAIN,) * 3)) == 5
    assert replay(three, Schedule(((0, 2), (1,), (2,), (0,), (1,)), (CHAIN,) * 3)) == 5  # both issued in cycle 0
    with pytest.raises(InvalidScheduleError, match="cycle 2: warp 1 goes before warp 0"):
        replay(three, Schedule(((0, 2), (1,), (1,), (0,), (2,)), (CHAIN,) * 3))


@given(st.data(), instances())
def test_every_run_of_the_definition_replays(data: st.DataObject, instance: Instance) -> None:
    schedule = data.draw(runs(instance))
    assert replay(instance, schedule) == schedule.makespan


Cycles = list[list[int]]
Paths = list[list[int]]


def _drop(cycles: Cycles, paths: Paths, at: int, warp: int) -> None:
    cycles[at] = cycles[at][1:]


def _add(cycles: Cycles, paths: Paths, at: int, warp: int) -> None:
    cycles[at].append(warp)


def _replace(cycles: Cycles, paths: Paths, at: int, warp: int) -> None:
    cycles[at][0] = warp


def _skip_cycle(cycles: Cycles, paths: Paths, at: int, warp: int) -> None:
    del cycles[at]


def _repeat_cycle(cycles: Cycles, paths: Paths, at: int, warp: int) -> None:
    cycles.insert(at, cycles[at])


def _idle_cycle(cycles: Cycles, paths: Paths, at: int, warp: int) -> None:
    cycles.insert(at, [])


def _exchange_cycles(cycles: Cycles, paths: Paths, at: int, warp: int) -> None:
    cycles[at], cycles[0] = cycles[0], cycles[at]


def _merge_cycles(cycles: Cycles, paths: Paths, at: int, warp: int) -> None:
    cycles[0] = cycles[0] + cycles[at]
    del cycles[at]


def _exchange_warps(cycles: Cycles, paths: Paths, at: int, warp: int) -> None:
    other = cycles[at][0]
    cycles[at:] = [[{warp: other, other: warp}.get(w, w) for w in executing] for executing in cycles[at:]]


def _shorten_path(cycles: Cycles, paths: Paths, at: int, warp: int) -> None:
    paths[warp].pop()


def _move_on_path(cycles: Cycles, paths: Paths, at: int, warp: int) -> None:
    paths[warp][at % len(paths[warp])] += 1


def _lengthen_path(cycles: Cycles, paths: Paths, at: int, warp: int) -> None:
    paths[warp].append(paths[warp][-1])


def _forget_warp(cycles: Cycles, paths: Paths, at: int, warp: int) -> None:
    del paths[warp]


MUTATIONS: tuple[Callable[[Cycles, Paths, int, int], None], ...] = (
    _drop,
    _add,
    _replace,
    _skip_cycle,
    _repeat_cycle,
    _idle_cycle,
    _exchange_cycles,
    _merge_cycles,
    _exchange_warps,
    _shorten_path,
    _move_on_path,
    _lengthen_path,
    _forget_warp,
)


@pytest.mark.parametrize("mutate", MUTATIONS, ids=lambda mutate: mutate.__name__.strip("_"))
@given(data=st.data(), instance=instances())
def test_a_mutated_schedule_is_rejected_unless_it_is_another_valid_one(
    mutate: Callable[[Cycles, Paths, int, int], None], data: st.DataObject, instance: Instance
) -> None:
    valid = data.draw(runs(instance))
    cycles, paths = [list(cycle) for cycle in valid.cycles], [list(path) for path in valid.paths]
    mutate(cycles, paths, data.draw(st.integers(0, len(cycles) - 1)), data.draw(st.integers(0, len(paths) - 1)))
    mutant = Schedule(tuple(map(tuple, cycles)), tuple(map(tuple, paths)))
    assume(mutant != valid)
    if obeys(instance, mutant):
        assert replay(instance, mutant) == mutant.makespan
    else:
        with pytest.raises(InvalidScheduleError):
            replay(instance, mutant)
