"""Warps are numbered as they are launched, whatever programs they run, and a machine may assign them by number."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from makespan import Instance, KernelQuestion, Launch, Program, read_kernel, solve
from makespan.host.errors import InputError, InvalidScheduleError
from makespan.kernels import sass
from makespan.model.gpu import GpuInstance, Grid
from makespan.model.instance import Group
from makespan.model.machine import (
    Machine,
    UnitClass,
    WarpAssignment,
    find_machine,
    given_intervals,
    given_latencies,
    narrow_intervals,
)
from makespan.model.machine import assign_modulo as by_number
from makespan.model.schedule import Schedule
from makespan.model.simulate import Choices, replay
from makespan.model.simulate.choices import assign_partitions
from makespan.proof.engines import Limits
from makespan.report.result.bundle import instance_data
from tests.command import Runner
from tests.sass.listing import kernel_of

DATA = Path(__file__).parent / "data" / "kernels"
TURNS = DATA / "turns.ptx"
LONG, BRIEF, MEETING = Program.chain("CCC"), Program.chain("C"), Program.chain("C|C")
HALVES = Machine("halves", (UnitClass("C", 1),), 1, partitions=2, assignment=WarpAssignment.MODULO)
ANY = replace(HALVES, assignment=WarpAssignment.ANY)
FILE = """
name = "halves"
partitions = 2
assignment = "{}"
[units]
C = {{ capacity = 1 }}
[issue]
width = 1
"""
TASKS = """
clock = "1GHz"
[[partition]]
name = "SM0"
policy = "fifo"
[[task]]
name = "t"
period = "1us"
deadline = "{}ns"
partition = "SM0"
segments = [{{ kernel = "turns.ptx", block = 128, grid = 1, blocks_per_sm = 1, machine = "modulo.toml" }}]
"""
ALTERNATING = Instance.merged([(LONG, 1), (BRIEF, 1)] * 2, HALVES)


# Numbers


def test_a_warp_has_the_number_of_its_block_times_the_warps_of_a_block_and_its_place() -> None:
    """Blocks of three warps, at two of which other programs begin; a program is listed with all of its warps."""
    blocks = Instance.merged([(MEETING, 3), (BRIEF, 3), (MEETING, 3)], HALVES, blocks=3)
    assert blocks.order == (0, 1, 0)
    assert blocks.group_of_warp() == (0, 0, 0, 0, 0, 0, 1, 1, 1)
    assert blocks.block_of_warp() == (0, 0, 1, 1, 2, 2, 0, 1, 2)
    assert blocks.number_of_warp() == (0, 2, 3, 5, 6, 8, 1, 4, 7)
    assert blocks.partition_of_warp == (0, 0, 1, 1, 0, 0, 1, 0, 1)


def test_blocks_that_make_no_difference_are_launched_one_after_another_still() -> None:
    blocks = Instance.merged([(LONG, 2), (BRIEF, 2)], HALVES, blocks=2)
    assert (blocks.blocks, blocks.order) == (1, (0, 1, 0, 1))
    assert blocks == ALTERNATING
    assert blocks.number_of_warp() == (0, 2, 1, 3)
    assert solve(blocks).bounds.upper == 6


def test_equal_warps_are_listed_as_they_are_numbered() -> None:
    for instance in Instance.of("C|C", 6, HALVES, blocks=2), Instance.of("CC", 6, HALVES, blocks=3):
        assert instance.number_of_warp() == tuple(range(6))
        assert instance.order == ()


def test_warps_of_one_group_after_another_have_no_order() -> None:
    instance = Instance.merged([(LONG, 2), (BRIEF, 1), (BRIEF, 2)], HALVES)
    assert (instance.order, instance.number_of_warp()) == ((), (0, 1, 2, 3, 4))
    assert instance == Instance((Group(LONG, 2), Group(BRIEF, 3)), HALVES, order=(0, 0, 1, 1, 1))


# Equal questions


def test_orders_that_decide_to_which_partition_a_warp_belongs_tell_instances_apart() -> None:
    other = Instance.merged([(LONG, 2), (BRIEF, 2)], HALVES)
    assert ALTERNATING.groups == other.groups
    assert other != ALTERNATING
    assert instance_data(ALTERNATING) != instance_data(other)
    assert instance_data(ALTERNATING)["order"] == [[0, 1], [1, 1], [0, 1], [1, 1]]
    assert "order" not in instance_data(other)
    assert solve(ALTERNATING).bounds.upper == 6
    assert solve(other).bounds.upper == 4


@pytest.mark.parametrize("machine", [ANY, replace(HALVES, partitions=1)])
def test_orders_without_effect_make_no_other_question_and_are_kept(machine: Machine) -> None:
    one, other = (replace(instance, machine=machine) for instance in (ALTERNATING, Instance(ALTERNATING.groups)))
    assert one == other
    assert hash(one) == hash(other)
    assert instance_data(one) == instance_data(other)
    assert replace(one, machine=HALVES) == ALTERNATING != replace(other, machine=HALVES)


@pytest.mark.parametrize(
    "order", [(0, 1), (0, 1, 0, 1, 0), (0, 0, 0, 1), (0, 1, 2, 1), (0, 1, False, 1), (0, 1, 0, "1")]
)
def test_an_order_is_one_of_the_warps_of_a_block(order: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match=r"a block has 2 of group 0, 2 of group 1; it is not \(0, "):
        Instance(ALTERNATING.groups, HALVES, order=order)
    with pytest.raises(InputError, match="an order names the group of each warp"):
        Instance(ALTERNATING.groups, HALVES, order=[0, 1, 0, 1])  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"a block has 1 of group 0, 1 of group 1"):
        Instance(ALTERNATING.groups, HALVES, 2, order=(0, 1, 0, 1))


def test_warps_that_follow_one_another_are_spread_over_the_blocks_evenly() -> None:
    with pytest.raises(InputError, match="1 warps cannot be spread evenly over 2 blocks"):
        Instance.merged([(LONG, 1), (BRIEF, 2), (LONG, 1)], HALVES, blocks=2)
    assert Instance.merged([(MEETING, 1), (MEETING, 1), (BRIEF, 2)], HALVES, blocks=2).blocks == 2


def test_equal_programs_of_a_block_that_follow_one_another_are_put_together() -> None:
    grid = Grid(((LONG, 1), (LONG, 1), (BRIEF, 1), (LONG, 2)), 3)
    assert grid.block == ((LONG, 2), (BRIEF, 1), (LONG, 2))
    assert grid == Grid(((LONG, 2), (BRIEF, 1), (LONG, 1), (LONG, 1)), 3)
    assert str(GpuInstance((grid,), HALVES, 1, (2,))).startswith("3 blocks of 4 x CCC + 1 x C on 1 SM")


# Schedules


def test_a_schedule_is_one_of_the_partitions_by_number() -> None:
    """Side by side in two partitions the two long warps would take half as long."""
    apart = Schedule(((0, 1), (0, 1), (0, 1), (2, 3)), tuple([(0, 1, 2)] * 2 + [(0,)] * 2))
    assert replay(Instance.merged([(LONG, 2), (BRIEF, 2)], HALVES), apart) == 4
    with pytest.raises(InvalidScheduleError, match="no issue slot is left in partition 0"):
        replay(ALTERNATING, apart)


def test_a_run_spreads_warps_by_number_where_the_machine_leaves_it_open() -> None:
    instance = replace(ALTERNATING, machine=ANY)
    assert assign_partitions(instance, Choices(assignment="modulo")) == ALTERNATING.partition_of_warp == (0, 0, 1, 1)


# Kernels


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for assignment in "modulo", "any":
        (tmp_path / f"{assignment}.toml").write_text(FILE.format(assignment))
    (tmp_path / "turns.ptx").write_text(TURNS.read_text())
    return tmp_path


BY_NUMBER = "if warp w belongs to partition w mod 2"


@pytest.mark.parametrize("machine", [("modulo.toml",), ("any.toml", "--assignment", "modulo")])
@pytest.mark.parametrize("block", ["128", "16x8", "8x4x4"])
@pytest.mark.usefixtures("folder")
def test_warps_of_a_kernel_are_numbered_by_their_threads(
    machine: tuple[str, ...], block: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Warps 0 and 2 issue 14 instructions each, in the same partition, which issues one in a cycle."""
    command, asked = Runner("solve", capsys), ("turns.ptx", "--block", block, "--machine", *machine)
    told = command(*asked, "--deadline", "27cycles", "--quiet", "--bundle", "b.json")
    verdict, gate = told.out.splitlines()
    assert told.code == 1
    assert verdict.startswith("exact for the PTX as written, " + BY_NUMBER)
    assert verdict.endswith("the worst case is 28 cycles")
    assert gate.startswith("deadline missed for the PTX as written, " + BY_NUMBER)
    assert Runner("verify", capsys)("b.json").code == 0


@pytest.mark.parametrize("machine", [("modulo.toml",), ("any.toml", "--assignment", "modulo")])
@pytest.mark.parametrize(("grid", "resident", "cycles"), [(4, 1, 4 * 28), (2, 2, 2 * 28)])
@pytest.mark.usefixtures("folder")
def test_blocks_of_a_kernel_on_a_whole_gpu_are_numbered_by_slots(
    machine: tuple[str, ...], grid: int, resident: int, cycles: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """In every slot two of the four warps need the slot of partition 0 for 28 cycles."""
    asked = ("turns.ptx", "--block", 128, "--machine", *machine, "--grid", grid, "--sms", 1)
    told = Runner("solve", capsys)(*asked, "--blocks-per-sm", resident, "--format", "json", "--bundle", "b.json")
    found = json.loads(told.out)
    assert found["lower"] == cycles <= found["upper"]
    assert BY_NUMBER in found["caveats"]
    assert found["grids"][0]["order"] == [[0, 1], [1, 1], [0, 1], [1, 1]]
    assert Runner("verify", capsys)("b.json").code == 0


@pytest.mark.usefixtures("folder")
def test_a_task_has_the_time_of_warps_by_number(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for deadline, code in (27, 1), (28, 0):
        (folder / "tasks.toml").write_text(TASKS.format(deadline))
        told = Runner("schedulability", capsys)("tasks.toml", "--no-cache")
        assert told.code == code
        assert BY_NUMBER in " ".join(told.out.split())


def test_the_library_numbers_the_warps_of_a_kernel_alike() -> None:
    result = solve(read_kernel(TURNS, Launch(block=(128, 1, 1))).instance(HALVES))
    assert result.bounds.upper == 28
    assert BY_NUMBER in str(result)


def test_warps_of_machine_code_share_the_issue_slots_of_their_partition() -> None:
    """Warps 0, 4, 8 and 12 of 16 issue 382 instructions each, and four schedulers one in a cycle."""
    kernel = kernel_of((DATA / "quarters.86.sass").read_text())
    machine = by_number(narrow_intervals(find_machine("ampere-ga10x").machine, given_intervals(["memory=2"])))
    asked = KernelQuestion(
        sass.SassModule("quarters", (kernel,)),
        launch=Launch(block=(512, 1, 1)),
        blocks_per_sm=1,
        latencies=given_latencies(["global=..100"]),
        warm=True,
    )
    instance = asked.instance(machine)
    assert instance.order == (0, 1, 1, 1) * 4
    (long, _) = instance.groups
    assert (long.warps, long.program.most()) == (4, 382)
    result = solve(instance, limits=Limits(1.0))
    assert result.bounds.upper >= replay(instance, result.witness) >= 4 * 382
