"""Schedules as plain data."""

from makespan.model.instance import Instance
from makespan.model.program import Program, ProgramPlace
from makespan.model.schedule import Op, Schedule, WarpMove


def test_a_schedule_of_strings_is_told_by_who_executes() -> None:
    schedule = Schedule.of_chains(Instance.of("CL", 2), [[0], [1, 0], [1]])
    assert schedule == Schedule(((0,), (0, 1), (1,)), ((0, 1), (0, 1)))
    assert schedule.makespan == 3
    assert list(schedule.ops(Instance.of("CL", 2))) == [Op(0, 0, 0), Op(1, 0, 1), Op(1, 1, 0), Op(2, 1, 1)]


def test_counted_moves_get_warps_in_order_of_arrival() -> None:
    program = Program((ProgramPlace("C", (1, 2)), ProgramPlace("L", (2,))))
    instance = Instance.of(program, 2)
    moves = [[WarpMove(0, 0, 1, 1)], [WarpMove(0, 0, 2, 1), WarpMove(0, 1, 2, 1)]]
    assert Schedule.from_moves(instance, [{0: 2}], moves) == Schedule(((0,), (0, 1)), ((0, 1), (0,)))


def test_a_warp_moves_once_in_a_cycle_of_counted_moves() -> None:
    instance = Instance.of("CC", 2)
    moves = [[WarpMove(0, 0, 1, 1)], [WarpMove(0, 0, 1, 1)], [WarpMove(0, 1, 2, 1)], [WarpMove(0, 1, 2, 1)]]
    assert Schedule.from_moves(instance, [{0: 2}], moves).cycles == ((0,), (1,), (0,), (1,))
