"""Replay of partitions, resources and warps that run ahead: what the definition says, and in words what is wrong."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from makespan.host.errors import InvalidScheduleError
from makespan.model.instance import Instance
from makespan.model.machine import Latency, Machine, PortResource, UnitClass, Use, WarpAssignment
from makespan.model.program import InstructionTiming, Program
from makespan.model.schedule import Schedule
from makespan.model.simulate import replay
from makespan.model.strings import parse_string
from tests.oracle import obeys
from tests.strategies import multiprocessor_instances, runs

HALVES = Machine(
    "halves",
    (
        UnitClass("C", 1, uses=(Use(("fma", "alu")),)),
        UnitClass("L", 1, latency=Latency(4, 4), uses=(Use(("lsu",), 1, 3),)),
    ),
    issue_width=1,
    partitions=2,
    assignment=WarpAssignment.MODULO,
    resources=(PortResource("fma", 1), PortResource("alu", 1), PortResource("lsu", 1, shared=True)),
)
C0, L1, L3 = ((0, 1),), ((0, 1),), ((0, 3),)


@given(st.data(), multiprocessor_instances(promises=True))
@settings(max_examples=80)
def test_every_run_of_the_definition_replays(data: st.DataObject, instance: Instance) -> None:
    schedule = data.draw(runs(instance))
    assert obeys(instance, schedule)
    assert replay(instance, schedule) == schedule.makespan


def _other_cycles(change: Callable[[list[list[int]], int, int], object]) -> Callable[[Schedule, int, int], Schedule]:
    def mutated(schedule: Schedule, at: int, warp: int) -> Schedule:
        cycles = [list(warps) for warps in schedule.cycles]
        change(cycles, at % len(cycles), warp)
        return replace(schedule, cycles=tuple(tuple(sorted(warps)) for warps in cycles))

    return mutated


def _exchange(cycles: list[list[int]], at: int, warp: int) -> None:
    other = (warp + at + 1) % (1 + max((w for warps in cycles for w in warps), default=0))
    cycles[at:] = [[{warp: other, other: warp}.get(w, w) for w in warps] for warps in cycles[at:]]


def _other_row(rows: tuple[tuple[int, ...], ...], at: int, warp: int, by: int) -> tuple[tuple[int, ...], ...]:
    if not rows or not rows[warp]:
        return rows
    row = list(rows[warp])
    row[at % len(row)] += by
    return (*rows[:warp], tuple(row), *rows[warp + 1 :])


def _other_use(schedule: Schedule, at: int, warp: int, which: int, cycles: int) -> Schedule:
    row = list(schedule.uses[warp]) if schedule.uses else []
    if not any(row):
        return schedule
    place = next(n for n in range(at % len(row), at % len(row) + len(row)) if row[n % len(row)]) % len(row)
    first, *others = row[place]
    row[place] = ((first[0] + which, first[1] + cycles), *others)
    return replace(schedule, uses=(*schedule.uses[:warp], tuple(row), *schedule.uses[warp + 1 :]))


MUTATIONS: dict[str, Callable[[Schedule, int, int], Schedule]] = {
    "drop": _other_cycles(lambda cycles, at, warp: cycles.__setitem__(at, cycles[at][1:])),
    "add": _other_cycles(lambda cycles, at, warp: cycles[at].append(warp)),
    "skip": _other_cycles(lambda cycles, at, warp: cycles.pop(at)),
    "idle": _other_cycles(lambda cycles, at, warp: cycles.insert(at, [])),
    "exchange": _other_cycles(_exchange),
    "latency up": lambda run, at, warp: replace(run, latencies=_other_row(run.latencies, at, warp, 1)),
    "latency down": lambda run, at, warp: replace(run, latencies=_other_row(run.latencies, at, warp, -1)),
    "partition": lambda run, at, warp: replace(
        run, partitions=tuple(p ^ (w == warp) for w, p in enumerate(run.partitions))
    ),
    "resource": lambda run, at, warp: _other_use(run, at, warp, 1, 0),
    "interval up": lambda run, at, warp: _other_use(run, at, warp, 0, 1),
    "interval down": lambda run, at, warp: _other_use(run, at, warp, 0, -1),
}


@given(st.data(), multiprocessor_instances(promises=True))
@settings(max_examples=120)
def test_a_mutated_schedule_is_rejected_exactly_if_the_definition_rejects_it(
    data: st.DataObject, instance: Instance
) -> None:
    valid = data.draw(runs(instance))
    name = data.draw(st.sampled_from(sorted(MUTATIONS)))
    mutant = MUTATIONS[name](valid, data.draw(st.integers(0, 20)), data.draw(st.integers(0, instance.warps - 1)))
    assume(mutant != valid)
    if obeys(instance, mutant):
        event(f"{name}: valid")
        assert replay(instance, mutant) == mutant.makespan
    else:
        event(f"{name}: wrong")
        with pytest.raises(InvalidScheduleError):
            replay(instance, mutant)


def _halves(string: str, warps: int) -> Instance:
    return Instance.of(parse_string(string, HALVES), warps, HALVES)


def test_a_warp_waits_where_it_needs_a_result() -> None:
    instance = _halves("L()C()C(1)", 1)
    path, uses = ((0, 1, 2),), ((L1, C0, C0),)
    assert replay(instance, Schedule(((0,), (0,), (), (), (0,)), path, uses=uses)) == 5
    with pytest.raises(InvalidScheduleError, match="cycle 2: warp 0 executes, but waits for a latency to pass"):
        replay(instance, Schedule(((0,), (0,), (0,)), path, uses=uses))
    with pytest.raises(InvalidScheduleError, match="cycle 1: work conservation demands that warp 0 issue, too"):
        replay(instance, Schedule(((0,), (), (0,), (), (0,)), path, uses=uses))


def test_a_warp_has_not_finished_while_a_result_is_pending() -> None:
    instance = _halves("L()C()", 1)
    path, uses = ((0, 1),), ((L1, C0),)
    assert replay(instance, Schedule(((0,), (0,), (), ()), path, uses=uses)) == 4
    with pytest.raises(InvalidScheduleError, match="1 of 1 warps have not finished after 2 cycles"):
        replay(instance, Schedule(((0,), (0,)), path, uses=uses))


def test_a_token_is_pending_until_the_last_that_set_it_is_done() -> None:
    slow, quick = InstructionTiming(1, (6, 6), (0,)), InstructionTiming(1, (2, 2), (0,))
    program = replace(Program.chain("CCC"), timings=(slow, quick, InstructionTiming(1, (1, 1), (), (0,))))
    instance, path = Instance.of(program, 1, Machine.of({"C": 1})), ((0, 1, 2),)
    assert replay(instance, Schedule(((0,), (0,), (), (), (), (), (0,)), path)) == 7
    with pytest.raises(InvalidScheduleError, match="cycle 3: warp 0 executes, but waits for a latency to pass"):
        replay(instance, Schedule(((0,), (0,), (), (0,)), path))


def test_a_result_may_be_needed_at_a_barrier_or_only_after_it() -> None:
    machine = Machine("m", (UnitClass("C", 2), UnitClass("L", 1, latency=Latency(4, 4))))
    early, late = ((0,), (1,), (), (), (0,)), ((0,), (), (), (), (0, 1))
    for string, right, wrong in (("L()|()C(1)", early, late), ("L()|(1)C()", late, early)):
        instance = Instance.merged([(parse_string(string, machine), 1), (Program.chain("|C"), 1)], machine)
        assert replay(instance, Schedule(right, ((0, 1, 2), (0, 1)))) == 5
        with pytest.raises(InvalidScheduleError, match="cycle 1: "):
            replay(instance, Schedule(wrong, ((0, 1, 2), (0, 1))))


def test_of_each_group_of_resources_one_must_be_free() -> None:
    unit = UnitClass("C", 9, uses=(Use(("a", "b"), 3, 3), Use(("c", "d"))))
    machine = Machine("m", (unit,), resources=tuple(PortResource(name, 1) for name in "abcd"))
    first, second = ((0, 3), (0, 1)), ((1, 3), (1, 1))
    instance, paths = Instance.of("C", 3, machine), ((0,),) * 3
    held = (first,), (second,), (first,)
    assert replay(instance, Schedule(((0, 1), (), (), (2,)), paths, uses=held)) == 4


def test_shared_ports_are_held_for_other_partitions_and_private_ones_are_not() -> None:
    instance = _halves("L()C()", 2)
    paths = ((0, 1), (0, 1))
    assert replay(instance, Schedule(((0,), (0,), (), (1,), (1,), (), ()), paths, uses=((L3, C0), (L1, C0)))) == 7
    with pytest.raises(InvalidScheduleError, match="cycle 0: warp 1 executes, but no port of lsu is free"):
        replay(instance, Schedule(((0, 1),), paths, uses=((L1, C0), (L1, C0))))
    with pytest.raises(InvalidScheduleError, match="cycle 1: work conservation demands that warp 1 issue, too"):
        replay(instance, Schedule(((0,), (0,), (1,)), paths, uses=((L1, C0), (L1, C0))))
    fours = _halves("C()", 4)
    every = ((C0,),) * 4
    assert replay(fours, Schedule(((0, 1), (2, 3)), ((0,),) * 4, uses=every)) == 2
    with pytest.raises(
        InvalidScheduleError, match="cycle 0: warp 2 executes, but no issue slot is left in partition 0"
    ):
        replay(fours, Schedule(((0, 1, 2), (3,)), ((0,),) * 4, uses=every))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"uses": ()}, "uses of 0 warps are given, of 2"),
        ({"uses": ((L1,), (L1, C0))}, "warp 0 has uses of 1 instructions, of 2"),
        (
            {"uses": ((((0, 4),), C0), (L1, C0))},
            r"warp 0 uses \(\(0, 4\),\) at place 0, which L=1@4\+lsu/1..3 does not",
        ),
        (
            {"uses": ((L1, ((-1, 1),)), (L1, C0))},
            r"warp 0 uses \(\(-1, 1\),\) at place 1, which C=1\+fma or alu/1 does",
        ),
        ({"uses": ((L1, (*C0, *C0)), (L1, C0))}, r"warp 0 uses \(\(0, 1\), \(0, 1\)\) at place 1, which C=1\+fma or"),
        ({"uses": ((L1, ((2, 1),)), (L1, C0))}, r"warp 0 uses \(\(2, 1\),\) at place 1, which C=1\+fma or alu/1 does"),
        ({"partitions": (1, 0)}, "a warp belongs to another partition than the machine says"),
        ({"latencies": ((4, 1),)}, "latencies of 1 warps are given, of 2"),
        ({"latencies": ((4,), (4, 1))}, "warp 0 has 1 latencies for 2 instructions"),
        ({"latencies": ((4, 1, 1), (4, 1))}, "warp 0 has 3 latencies for 2 instructions"),
        ({"latencies": ((4, 2), (4, 1))}, "warp 0 has a latency of 2, which is not in 1$"),
    ],
)
def test_choices_that_the_machine_does_not_leave_are_named(changes: dict[str, object], message: str) -> None:
    good = Schedule(((0,), (0, 1), (1,), (), ()), ((0, 1), (0, 1)), uses=((L1, C0), (L1, C0)))
    assert replay(_halves("L()C()", 2), good) == 5
    with pytest.raises(InvalidScheduleError, match=message):
        replay(_halves("L()C()", 2), replace(good, **changes))  # type: ignore[arg-type]


def test_a_choice_that_there_is_must_be_made_and_one_that_there_is_not_may_be_repeated() -> None:
    ranges = Machine("ranges", (UnitClass("C", 1, latency=Latency(1, 3)),))
    instance = Instance.of("C", 1, ranges)
    assert replay(instance, Schedule(((0,), ()), ((0,),), ((2,),))) == 2
    with pytest.raises(InvalidScheduleError, match="latencies of 0 warps are given, of 1"):
        replay(instance, Schedule(((0,), (), ()), ((0,),)))
    sole = Machine("sole", (UnitClass("C", 1, uses=(Use(("a",)),)),), resources=(PortResource("a", 1),))
    for uses in ((), ((C0,),)):
        assert replay(Instance.of("C", 1, sole), Schedule(((0,),), ((0,),), uses=uses)) == 1
    with pytest.raises(InvalidScheduleError, match=r"warp 0 uses \(\(0, 3\),\) at place 0"):
        replay(Instance.of("C", 1, sole), Schedule(((0,),), ((0,),), uses=((((0, 3),),),)))


def test_warps_are_spread_evenly_over_the_partitions() -> None:
    machine = Machine("free", (UnitClass("C", 1),), partitions=2)
    paths = ((0,),) * 3
    assert replay(Instance.of("C", 3, machine), Schedule(((0, 1), (2,)), paths, partitions=(1, 0, 1))) == 2
    with pytest.raises(InvalidScheduleError, match=r"not spread evenly over the partitions: \[3, 0\]"):
        replay(Instance.of("C", 3, machine), Schedule(((0,), (1,), (2,)), paths, partitions=(0, 0, 0)))
    with pytest.raises(InvalidScheduleError, match=r"not spread evenly over the partitions: \[3, 1\]"):
        replay(Instance.of("C", 4, machine), Schedule(((0, 1), (2,), (3,)), ((0,),) * 4, partitions=(0, 1, 0, 0)))
    for wrong in ((), (0, 1), (0, 1, 2), (0, 1, -1)):
        with pytest.raises(InvalidScheduleError, match=r"partitions 0\.\.1 are given, for 3 warps"):
            replay(Instance.of("C", 3, machine), Schedule(((0, 1), (2,)), paths, partitions=wrong))
