"""Instances: groups of warps that a machine can run."""

from dataclasses import replace
from itertools import chain

import pytest
from hypothesis import given, settings

from makespan.host.errors import InputError
from makespan.model import instance as values
from makespan.model.conditions import conditions
from makespan.model.gpu import GpuInstance, Grid
from makespan.model.instance import MAX_WARPS, Group, Instance
from makespan.model.machine import PAPER, Latency, Machine, PortResource, UnitClass, UnitQueue, Use, find_machine
from makespan.model.program import BARRIER, Program
from makespan.model.strings import parse_string
from makespan.proof.engines import solve
from tests.lapsing import never_lapsing
from tests.oracle import brute_force
from tests.strategies import general_barrier_instances, instances, multiprocessor_instances

C, L = Program.chain("C"), Program.chain("L")
LEFT_OUT, KNOWN = "although lapses are left out", "on the SM as it is known"


@given(instances())
def test_every_warp_has_the_program_of_its_group(instance: Instance) -> None:
    numbers = instance.group_of_warp()
    assert len(numbers) == instance.warps == len(list(instance.programs()))
    assert [instance.groups[number].program for number in numbers] == list(instance.programs())
    assert instance.identical == (len(instance.groups) == 1)


def test_equal_programs_are_merged_in_order_of_appearance() -> None:
    assert Instance.merged([(C, 1), (L, 2), (C, 3)]).groups == (Group(C, 4), Group(L, 2))


@pytest.mark.parametrize("warps", [0, -1, True, 1.0, "2", None])
def test_the_number_of_warps_is_a_whole_number_from_one(warps: int) -> None:
    with pytest.raises(InputError, match="the number of warps must be a whole number from 1, not"):
        Group(C, warps)


def test_limits_are_named() -> None:
    with pytest.raises(InputError, match="65537 warps exceed the limit of 65536"):
        Group(C, MAX_WARPS + 1)
    with pytest.raises(InputError, match="65537 warps with 65537 instructions in all exceed the limits"):
        Instance((Group(C, MAX_WARPS), Group(L, 1)))
    with pytest.raises(InputError, match="exceed the limits of 65536 warps and 5000000 warp-instructions"):
        Instance.of("C" * 1000, 50_001)


def test_an_instance_runs_something_different_in_every_group() -> None:
    with pytest.raises(InputError, match="at least one warp"):
        Instance(())
    with pytest.raises(InputError, match="two groups have the same program: merge them"):
        Instance((Group(C, 1), Group(C, 1)))


def test_a_class_that_the_machine_lacks_is_named_beside_those_it_has() -> None:
    with pytest.raises(InputError, match=r"machine 'paper' \(C=1, L=1\) has no units of class S, T"):
        Instance.of("CTS", 1, PAPER)
    assert Instance.of("C", 1, Machine.of({"C": 1})).warps == 1


def test_a_table_of_capacities_is_no_machine() -> None:
    with pytest.raises(
        InputError, match=r"^a machine is a Machine, such as Machine\.of\(\{'C': 1, 'L': 1\}\), not \{'C': 1"
    ):
        Instance.of("CL", 2, {"C": 1, "L": 1})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("string", "machine", "said"),
    [
        ("L()C(1)", "paper", "if every instruction takes one cycle"),
        ("L()@900C(1)", "paper", "if every latency that the program does not state is one cycle"),
        ("LC", "turing", f"{LEFT_OUT}, if the unknown latencies of turing (D, L, B) were one cycle"),
        ("L()C(1)", "turing", f"{LEFT_OUT}, if the unknown latencies of turing (L) were one cycle"),
        ("L()@9C(1)L()@1..2D()", "turing", f"{LEFT_OUT}, if the unknown latencies of turing (D) were one cycle"),
        ("L()@400..900C(1)|(2)", "turing", LEFT_OUT),
    ],
)
def test_a_verdict_supposes_nothing_of_latencies_that_a_string_states(string: str, machine: str, said: str) -> None:
    on = find_machine(machine).machine
    instance = Instance.of(parse_string(string, on), 4, on)
    assert ", ".join(conditions(instance.assumptions)) == said


# Queues count only where lapses are known

QUEUED = Machine("queued", (UnitClass("C", 1), UnitClass("L", 1)), 1, queues=(UnitQueue("memory", ("L",), 2, False),))
GPU = replace(QUEUED, capabilities=(86,))


@pytest.mark.parametrize(
    ("programs", "machine", "queues", "said"),
    [
        ((L, C), QUEUED, 0, {LEFT_OUT}),
        ((never_lapsing(L), never_lapsing(C)), QUEUED, 1, {KNOWN}),
        # of some warps nothing is known: there are queues for all, and the verdict about a GPU says both
        ((never_lapsing(C), L), QUEUED, 1, {KNOWN}),
        ((never_lapsing(C), L), GPU, 1, {KNOWN, LEFT_OUT}),
        ((never_lapsing(C),), GPU, 1, set()),
        ((L, C), GPU, 0, {LEFT_OUT}),
        # nothing is left out of a machine that is no GPU if no instruction goes through a queue, or if it has none
        ((C,), QUEUED, 0, set()),
        ((C,), GPU, 0, {LEFT_OUT}),
        ((L,), PAPER, 0, set()),
    ],
)
def test_queues_count_where_lapses_are_known(
    programs: tuple[Program, ...], machine: Machine, queues: int, said: set[str]
) -> None:
    instance = Instance.merged([(program, 2) for program in programs], machine)
    assert len(instance.machine.queues) == queues
    assert {*conditions(instance.assumptions)} & {LEFT_OUT, KNOWN} == said
    grids = tuple(Grid(((program, 2),), 9, (1,)) for program in programs)
    gpu = GpuInstance(grids, machine, 1, (4,))
    assert len(gpu.machine.queues) == queues
    # of each grid by itself, so a grid of which no lapses are known has no queue
    alone = [Instance.of(program, 2, machine).assumptions for program in programs]
    expected = {*chain.from_iterable(map(conditions, alone))} & {LEFT_OUT, KNOWN}
    assert {one.replace("GPU", "SM") for one in conditions(gpu.assumptions)} & {LEFT_OUT, KNOWN} == expected


def test_what_is_left_out_is_said_of_the_instance_that_is_solved() -> None:
    found = solve(Instance.of("LL", 2, QUEUED))
    assert f"exact {LEFT_OUT}" in str(found)
    assert found.without_lapses is None
    known = solve(Instance.of(never_lapsing(Program.chain("LL")), 2, QUEUED))
    assert known.bounds.upper > found.bounds.upper
    assert known.without_lapses is not None
    assert known.without_lapses.bounds == found.bounds


def test_latencies_of_a_string_are_among_its_assumptions() -> None:
    assumptions = Instance.of(parse_string("L()@9L()@2..3C(1,2)", PAPER), 2).assumptions
    assert (
        "latencies of instructions that are not those of their class: L 2..3, L 9; each takes any of its range,"
        " all others any of the range of their class" in map(str, assumptions)
    )


def test_resources_that_no_class_uses_are_no_assumption() -> None:
    machine = Machine("m", (UnitClass("C", 1),), resources=(PortResource("idle", 1),))
    assert not [note for note in Instance.of("C", 1, machine).assumptions if "idle" in str(note)]


# How long schedules may be

LONG = Machine(
    "long",
    (
        UnitClass("C", 1),
        UnitClass("L", 1, latency=Latency(1, 100_000), uses=(Use(("memory",), 1, 1000),)),
        UnitClass("D", 1),
    ),
    resources=(PortResource("memory", 1),),
)


@pytest.mark.parametrize(
    "string",
    [
        "L" + "C" * 10_000,  # 10,001 instructions of 100,000 cycles, as a product
        "C" * 100_000,  # and here nothing is as long
        "L()@100000" + "C(1)@9" * 1000 + "|" + "C()@9" * 1000,
    ],
)
def test_a_question_is_not_refused_for_what_its_instructions_do_not_take(string: str) -> None:
    """Each instruction counts by itself, and not as if it were the slowest."""
    program = parse_string(string, LONG)
    assert Instance.of(program, 4, LONG).warps == 4
    gpu = GpuInstance.of(((program, 4),), 10**6, LONG, sms=46, resident=2)
    assert gpu.sm(2).warps == 8


def test_a_loop_of_slow_loads_is_not_refused_for_its_barriers_or_warps() -> None:
    """A warp alone takes 8 million cycles, and others add what they hold."""
    loop = ("L()@800" + "C(1)@4" + BARRIER) * 10_000
    turing = find_machine("turing").machine
    assert Instance.of(parse_string(loop, turing), 4, turing, blocks=2).has_barriers


def test_a_schedule_past_the_limit_is_refused_with_a_remedy() -> None:
    slow = Machine("slow", (UnitClass("C", 1, latency=Latency(1, 100_000)),))
    assert Instance.of("C" * 499, 1, slow).warps == 1
    with pytest.raises(InputError, match=r"limit of 50000000 cycles; ask about fewer warps, or shorter loops$"):
        Instance.of("C" * 500, 1, slow)


def check_that_no_schedule_is_longer(instance: Instance) -> None:
    """It is refused as soon as the limit is below the longest schedule."""
    if instance.machine.is_basic and not instance.runs_ahead:
        return
    worst = brute_force(instance).upper
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(values, "MAX_CYCLES", worst - 1)
        with pytest.raises(InputError, match=r"schedules of up to .* cycles exceed the limit"):
            Instance(instance.groups, instance.machine, instance.blocks)


@settings(max_examples=60)
@given(general_barrier_instances())
def test_no_schedule_is_longer_than_is_checked(instance: Instance) -> None:
    check_that_no_schedule_is_longer(instance)


@settings(max_examples=60)
@given(multiprocessor_instances())
def test_no_schedule_of_a_multiprocessor_is_longer_than_is_checked(instance: Instance) -> None:
    check_that_no_schedule_is_longer(instance)


def test_a_result_that_is_pending_at_a_barrier_is_checked() -> None:
    """Two warps that each are the last at a barrier, and a result that is awaited behind it."""
    machine = Machine("m", (UnitClass("C", 1), UnitClass("L", 1)), issue_width=1)
    early = parse_string("L()@30|C(1)", machine)
    late = parse_string("C()@9C(1)|C()", machine)
    check_that_no_schedule_is_longer(Instance.merged([(early, 1), (late, 1)], machine))
