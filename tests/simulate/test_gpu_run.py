"""Runs of whole GPUs: they obey the definition, circles are what they stand for, and the longest is a lower bound."""

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makespan.host.errors import InputError, UnsupportedError
from makespan.model.gpu import GpuInstance, Grid
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
from makespan.model.program import InstructionTiming, Program, ProgramPlace
from makespan.model.simulate import POLICIES, Choices, gpu_run
from makespan.model.simulate.choices import SplitMix
from makespan.model.simulate.gpu_replay import replay_gpu
from makespan.model.simulate.gpu_run import (
    DISPATCH,
    FAIRLY,
    STARVING,
    FoundRun,
    longest_gpu_run,
    run_gpu,
    shortest_gpu_run,
)
from makespan.model.simulate.policies import STARVING_RULES, RulePolicy, SchedulingPolicy
from tests.oracle import brute_force_gpu, obeys_gpu
from tests.strategies import gpus, shared_gpus

ALL = (*POLICIES, *STARVING)
SPREAD = (Choices(), Choices("least", "shortest", interval="least"), Choices("random", "random", 7, interval="random"))


def gpu_of(
    string: str, warps: int, blocks: int, sms: int, resident: int, machine: Machine = PAPER, dispatch: int = 0
) -> GpuInstance:
    block = ((Program.chain(string), warps),)
    return GpuInstance.of(block, blocks, machine, sms=sms, resident=resident, dispatch=dispatch)


def some(found: FoundRun | None) -> FoundRun:
    assert found is not None
    return found


@given(gpus(most=2), st.sampled_from(ALL), st.sampled_from(DISPATCH), st.sampled_from(SPREAD))
@settings(max_examples=30)
def test_every_run_obeys_the_definition(gpu: GpuInstance, policy: str, dispatch: str, choices: Choices) -> None:
    schedule = run_gpu(gpu, policy, dispatch, choices)
    assert obeys_gpu(gpu, schedule)
    assert replay_gpu(gpu, schedule) == schedule.makespan


@given(shared_gpus(), st.sampled_from(sorted(set(ALL) - {"random"})), st.sampled_from(DISPATCH))
@settings(max_examples=20)
def test_every_run_of_two_grids_replays(gpu: GpuInstance, policy: str, dispatch: str) -> None:
    schedule = run_gpu(gpu, policy, dispatch, order=(1, 0))
    assert replay_gpu(gpu, schedule) == schedule.makespan


@given(
    gpus(most_sms=4, most_slots=4),
    st.integers(1, 60),
    st.sampled_from(sorted(set(ALL) - {"random"})),
    st.sampled_from(DISPATCH[:3]),
    st.sampled_from(SPREAD[:2]),
)
@settings(max_examples=40)
def test_sms_that_are_alike_and_go_in_circles_are_what_they_stand_for(
    gpu: GpuInstance, blocks: int, policy: str, dispatch: str, choices: Choices
) -> None:
    """Every SM and every block executed one by one is the other way to the same schedule."""
    block = gpu.grid.block
    gpu = GpuInstance.of(block, blocks, gpu.machine, sms=gpu.sms, resident=gpu.room[0], dispatch=gpu.dispatch)
    circles = run_gpu(gpu, policy, dispatch, choices)
    one_by_one = gpu_run._run_random(gpu, policy, dispatch, choices, gpu.dispatch)
    assert circles.makespan == replay_gpu(gpu, circles) == one_by_one.makespan
    assert sorted((h.cycles, h.blocks) for h in circles.histories for _ in range(h.sms)) == sorted(
        (h.cycles, h.blocks) for h in one_by_one.histories for _ in range(h.sms)
    )


@given(gpus(most_blocks=3, most=2))
@settings(max_examples=12)
def test_the_extremes_that_are_found_lie_within_the_extremes(gpu: GpuInstance) -> None:
    exact = brute_force_gpu(gpu)
    assert (
        exact.lower
        <= some(shortest_gpu_run(gpu)).schedule.makespan
        <= some(longest_gpu_run(gpu)).schedule.makespan
        <= exact.upper
    )


def test_a_million_blocks_are_a_few_circles() -> None:
    gpu = gpu_of("CLL", 8, 10**6, 46, 6)
    for policy, dispatch in zip(("lrr", "gto", "two-level", "starve-in-turn"), DISPATCH, strict=True):
        schedule = run_gpu(gpu, policy, dispatch)
        # 21,740 blocks on the SMs that get one more, 16 L each, and a C before the first one
        assert replay_gpu(gpu, schedule) == schedule.makespan == 21_740 * 16 + 1
        assert sum(len(s.cycles) for h in schedule.histories for s in h.stretches) < 2_000
    assert run_gpu(gpu_of("CLL", 8, 10**18, 46, 6), "gto").makespan == -(-(10**18) // 46) * 16 + 1


def test_a_million_blocks_of_each_of_two_grids_are_two_circles() -> None:
    sizes = ("CLL", 2), ("CCL", 3)
    grids = tuple(Grid(((Program.chain(string), 2),), 10**6, (takes,)) for string, takes in sizes)
    gpu = GpuInstance(grids, PAPER, 3, (7,))
    schedule = run_gpu(gpu, "gto")
    assert replay_gpu(gpu, schedule) == schedule.makespan
    assert [history.partitions for history in schedule.histories] == [()] * len(schedule.histories)
    assert sum(stretch.repeat > 1 for history in schedule.histories for stretch in history.stretches) > 1


def test_blocks_go_where_the_dispatcher_says() -> None:
    """Ten blocks for four SMs with room for three: at once, and the last ones of a wave and a half."""

    def shares(blocks: int, dispatch: str) -> list[int]:
        histories = run_gpu(gpu_of("C", 1, blocks, 4, 3), "lrr", dispatch).histories
        return sorted(history.blocks for history in histories for _ in range(history.sms))

    assert shares(10, "round-robin") == shares(10, "least-loaded") == [2, 2, 3, 3]
    assert shares(10, "most-loaded") == [1, 3, 3, 3]
    assert shares(2, "most-loaded") == [2]
    assert sum(shares(10, "random")) == 10
    assert shares(14, "round-robin") == [3, 3, 4, 4]
    assert shares(14, "most-loaded") == [3, 3, 3, 5] or shares(14, "most-loaded") == [3, 3, 4, 4]


def test_of_sms_that_were_alike_some_get_more_of_the_rest_than_others() -> None:
    """Twelve of 18 blocks end in cycle 1, all at once; then four SMs get two, two, one and one."""
    gpu = gpu_of("C", 1, 18, 4, 3, Machine.of({"C": 3}))
    schedule = run_gpu(gpu, "lrr")
    assert replay_gpu(gpu, schedule) == schedule.makespan == 2
    assert sorted((history.blocks, history.sms) for history in schedule.histories) == [(4, 2), (5, 2)]


@pytest.mark.parametrize(
    ("dispatch", "room", "loads", "blocks", "given"),
    [
        ("least-loaded", [2, 3], [0, 0], 3, [2, 1]),
        ("least-loaded", [3, 3], [1, 0], 3, [1, 2]),
        ("most-loaded", [2, 2], [0, 1], 3, [1, 2]),
        ("round-robin", [2, 3], [1, 0], 3, [2, 1]),
    ],
)
def test_the_next_block_comes_to_the_sm_that_the_dispatcher_prefers(
    dispatch: str, room: list[int], loads: list[int], blocks: int, given: list[int]
) -> None:
    assert gpu_run._blocks_per_sm(dispatch, room, loads, blocks, SplitMix(0)) == given


def test_every_block_and_every_sm_has_random_numbers_of_its_own() -> None:
    """The streams are 102 for blocks and 101 for SMs, each followed by a number; in a block 1 is for latencies."""
    cached = Machine("cached", (UnitClass("L", 1, 1, Latency(1, 40)),))
    drawn = run_gpu(gpu_of("L", 1, 3, 3, 1, cached), "lrr", choices=Choices("random", seed=6))
    first = [drawn.courses[history.stretches[0].begins[0].course].latencies for history in drawn.histories]
    assert first == [((1 + SplitMix(SplitMix(6, 102, block).state, 1, 0).below(40),),) for block in range(3)]
    picked = run_gpu(gpu_of("C", 2, 40, 40, 1), "random", choices=Choices(seed=5))
    ones = sum(history.sms for history in picked.histories if history.stretches[0].cycles[0] == ((0, 1),))
    assert ones == sum(SplitMix(SplitMix(5, 101, sm).state, 0).below(2) for sm in range(40))


@pytest.mark.parametrize(("sms", "resident", "blocks"), [(3, 1, 30), (4, 2, 15), (3, 2, 5)])
def test_blocks_with_random_numbers_come_to_sms_in_turn(sms: int, resident: int, blocks: int) -> None:
    """Where several SMs have room those come first that follow the one which got the last block."""
    cached = Machine("cached", (UnitClass("L", 2, 1, Latency(1, 4)),))
    drawn = run_gpu(gpu_of("L", 1, blocks, sms, resident, cached), "lrr", choices=Choices("random", seed=1))
    waiting = [1 + SplitMix(SplitMix(1, 102, block).state, 1, 0).below(4) for block in range(blocks)][::-1]
    ends: list[list[int]] = [[] for _ in range(sms)]
    rows: list[list[tuple[int, int]]] = [[] for _ in range(sms)]
    cycle = turn = 0
    while waiting:
        order = [sm % sms for sm in range(turn, turn + sms)]
        free = [
            (nth, sm) for nth in range(resident) for sm in order if sum(e > cycle for e in ends[sm]) + nth < resident
        ]
        given = Counter(sm for _, sm in free[: len(waiting)])
        for sm in filter(given.get, order):
            rows[sm] += [(cycle, waiting.pop()) for _ in range(given[sm])]
            ends[sm], turn = [at + cycles for at, cycles in rows[sm]], sm + 1
        cycle = min(end for row in ends for end in row if end > cycle)
    found = [
        [(at, drawn.courses[begin.course].latencies[0][0]) for at, begin in history.begins()]
        for history in drawn.histories
        for _ in range(history.sms)
    ]
    assert sorted(found) == sorted(rows)


@pytest.mark.parametrize("policy", ["lrr", "random"])
def test_a_dispatcher_that_draws_takes_the_places_of_the_smallest_numbers(policy: str) -> None:
    """A number for each of the places, SM by SM, from stream 100."""
    draws = SplitMix(7, 100)
    first = sorted((draws.below(2**62), sm) for sm in range(99) for _ in range(3))[:150]
    schedule = run_gpu(gpu_of("C", 1, 150, 99, 3), policy, "random", Choices(seed=7))
    shares = Counter(sm for _, sm in first).values()
    assert sorted(history.blocks for history in schedule.histories for _ in range(history.sms)) == sorted(shares)


def test_the_last_slot_starves_beside_all_others() -> None:
    """Three blocks of two warps, on one SM."""
    executed = [
        [one for executing in stretch.cycles for one in executing]
        for policy in ("starve-together", "starve-in-turn")
        for history in run_gpu(gpu_of("CC", 2, 3, 1, 3), policy).histories
        for stretch in history.stretches
    ]
    others, last = [(0, 0), (0, 1), (1, 0), (1, 1)], [(2, 0), (2, 1)]
    assert executed == [others * 2 + last * 2, [one for one in others + last for _ in range(2)]]


def test_of_fewer_blocks_than_there_is_room_for_the_last_one_starves() -> None:
    """Two on each SM, where three would fit."""
    (both,) = run_gpu(gpu_of("CC", 1, 4, 2, 3), "starve-together").histories
    assert both.sms == 2
    assert both.stretches[0].cycles == (((0, 0),), ((0, 0),), ((1, 0),), ((1, 0),))


def test_warps_of_several_grids_are_spread_by_the_number_of_their_slot() -> None:
    parts = Machine("parts", (UnitClass("C", 1),), partitions=3, assignment=WarpAssignment.MODULO)
    pair = Grid(((Program.chain("C"), 2),), 1)
    schedule = run_gpu(GpuInstance((pair, pair), parts, 1, (2,)), "lrr")
    assert [history.partitions for history in schedule.histories] == [((0, 1), (2, 0))]
    assert schedule.makespan == 2


def test_the_rest_comes_to_the_sm_that_has_room_first() -> None:
    """Each block takes an SM: two long ones and a short one begin, and the second short one follows the first."""
    long, short = (Grid(((Program.chain(string), 1),), 2) for string in ("CCCCCC", "CC"))
    schedule = run_gpu(GpuInstance((long, short), PAPER, 3, (1,)), "lrr")
    assert schedule.makespan == 6
    assert sorted(history.cycles for history in schedule.histories for _ in range(history.sms)) == [4, 6, 6]


def test_all_sms_are_looked_at_in_every_cycle_while_blocks_are_left() -> None:
    """C ends on one SM in cycle 1, and the other C follows there; the two CC end in cycle 2, as it does."""
    long, short = (Grid(((Program.chain(string), 1),), 2) for string in ("CC", "C"))
    schedule = run_gpu(GpuInstance((long, short), PAPER, 3, (1,)), "lrr")
    assert replay_gpu(GpuInstance((long, short), PAPER, 3, (1,)), schedule) == schedule.makespan == 2


def test_random_numbers_make_every_sm_another_one() -> None:
    machine = Machine("range", (UnitClass("C", 1), UnitClass("L", 1, 1, Latency(1, 40))))
    gpu = gpu_of("CLC", 2, 40, 4, 2, machine)
    drawn = run_gpu(gpu, "lrr", choices=Choices("random"))
    assert replay_gpu(gpu, drawn) == drawn.makespan
    assert len(drawn.courses) > 20
    assert len(drawn.histories) == 4
    assert run_gpu(gpu, "lrr", choices=Choices("random")) == drawn
    assert run_gpu(gpu, "lrr", choices=Choices("random", seed=1)) != drawn


def test_the_one_of_several_resources_that_is_free_is_noted_for_every_block() -> None:
    units = (UnitClass("C", 2, uses=(Use(("a", "b"), 1, 3),)), UnitClass("L", 1))
    machine = Machine("either", units, resources=(PortResource("a", 1), PortResource("b", 1)))
    gpu = gpu_of("CLC", 1, 10**6, 3, 3, machine)
    schedule = run_gpu(gpu, "oldest")
    assert {which for course in schedule.courses for row in course.uses for held in row for which, _ in held} == {0, 1}
    assert replay_gpu(gpu, schedule) == schedule.makespan


def test_the_longest_is_that_of_the_worst_policy() -> None:
    """Who goes on side by side never hides a latency, and who goes ahead does."""
    machine = Machine("late", (UnitClass("C", 1), UnitClass("L", 1, 1, Latency(50, 50))), 1)
    gpu = gpu_of("CCCCCCCCL", 8, 300, 1, 3, machine)
    assert run_gpu(gpu, "behind").makespan > run_gpu(gpu, "starve-in-turn").makespan
    found = some(longest_gpu_run(gpu))
    assert found.schedule.makespan == max(run_gpu(gpu, policy).makespan for policy in sorted(set(ALL) - {"random"}))
    assert run_gpu(gpu, found.policy.split(", ")[1]) == found.schedule


def test_the_longest_has_the_dispatcher_that_puts_most_blocks_on_one_sm() -> None:
    """Two blocks and two SMs with room for both: one after the other on one of them, or beside each other."""
    gpu = gpu_of("C", 1, 2, 2, 2)
    for best, cycles, dispatch in (
        (longest_gpu_run, 2, "most-loaded dispatch, "),
        (shortest_gpu_run, 1, "round-robin dispatch, "),
    ):
        found = some(best(gpu))
        assert (found.schedule.makespan, found.policy[: len(dispatch)]) == (cycles, dispatch)


def test_a_choice_that_one_warp_of_one_grid_has_is_made_both_ways() -> None:
    """A path, or a latency, of a few warps: 2 or 4 cycles."""
    fork = Program((ProgramPlace("C", (1, 4)), *(ProgramPlace("C", (number,)) for number in (2, 3, 4))))
    cached = Machine("cached", (UnitClass("C", 2), UnitClass("L", 1, 1, Latency(2, 4))))
    two = Machine.of({"C": 2, "L": 1})
    ahead = replace(Program.chain("L"), timings=(InstructionTiming(1, (2, 4), (0,)),))
    held = Machine("held", (UnitClass("C", 2, uses=(Use(("a",), 1, 3),)),), resources=(PortResource("a", 2),))
    for machine, program in ((two, fork), (cached, Program.chain("L")), (two, ahead), (held, Program.chain("CC"))):
        chain = Program.chain("CC"), 1
        together = GpuInstance.of((chain, (program, 1)), 1, machine, sms=1, resident=1)
        apart = GpuInstance((Grid((chain,), 1), Grid(((program, 1),), 1)), machine, 1, (2,))
        for gpu in together, apart:
            found = [some(best(gpu)).schedule for best in (shortest_gpu_run, longest_gpu_run)]
            assert [replay_gpu(gpu, schedule) for schedule in found] == [2, 4]


def test_grids_are_dispatched_in_the_order_that_is_asked_for() -> None:
    """Of the first as many as there is room for come first, be it but one."""
    grids = (Grid(((Program.chain(one), 1),), blocks) for one, blocks in (("CC", 1), ("C", 2)))
    gpu = GpuInstance(tuple(grids), PAPER, 1, (1,))
    begun = [[course.grid for course in run_gpu(gpu, "lrr", order=order).courses] for order in (None, (0, 1), (1, 0))]
    assert begun == [[0, 1], [0, 1], [1, 0]]


def test_a_small_block_waits_for_those_before_it_in_the_order() -> None:
    """Two SMs with a CCC each have room for C beside it; but a third CCC is to come before, in cycle 3."""
    sizes = ("CCC", 3, 2), ("C", 1, 1)
    grids = tuple(Grid(((Program.chain(string), 1),), blocks, (takes,)) for string, blocks, takes in sizes)
    schedule = run_gpu(GpuInstance(grids, Machine.of({"C": 2}), 2, (3,)), "lrr")
    begun = [(schedule.courses[one.course].grid, at) for history in schedule.histories for at, one in history.begins()]
    assert sorted(begun) == [(0, 0), (0, 0), (0, 3), (1, 3)]


def test_the_longest_may_have_the_last_grid_first() -> None:
    """CCC and a C beside each other, then two C; or three C, and CCC when two of them have left."""
    sizes = ("CCC", 1, 2), ("C", 3, 1)
    grids = tuple(Grid(((Program.chain(string), 1),), blocks, (takes,)) for string, blocks, takes in sizes)
    gpu = GpuInstance(grids, Machine.of({"C": 2}), 1, (3,))
    late, soon = some(longest_gpu_run(gpu)), some(shortest_gpu_run(gpu))
    assert (late.schedule.makespan, late.policy.split(", ")[2:]) == (4, ["the last grid first"])
    assert (soon.schedule.makespan, soon.policy.split(", ")[2:]) == (3, [])


def test_where_one_policy_does_not_come_back_the_others_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    made = gpu_run._policies

    class Endless(RulePolicy):
        def pick(self, able: Sequence[int]) -> int:
            raise UnsupportedError("far away")

    def all_but_two(gpu: GpuInstance, policy: str, *rest: Any) -> list[SchedulingPolicy]:
        starving = policy in {"starve-together", "starve-in-turn"}
        return [Endless(STARVING_RULES[0], ())] if starving else made(gpu, policy, *rest)

    monkeypatch.setattr(gpu_run, "_policies", all_but_two)
    assert some(longest_gpu_run(gpu_of("CLL", 2, 50, 3, 2))).policy.split(", ")[1] in POLICIES


def test_a_fair_scheduler_is_served_fairly() -> None:
    fair = Machine("fair", (UnitClass("C", 1), UnitClass("L", 1, 1, Latency(5, 9))), 1, scheduler=SchedulerPromise.FAIR)
    gpu = gpu_of("CLC", 2, 10**4, 3, 2, fair)
    for policy in FAIRLY:
        assert replay_gpu(gpu, run_gpu(gpu, policy)) == run_gpu(gpu, policy).makespan
    assert some(longest_gpu_run(gpu)).policy.split(", ")[1] in FAIRLY
    with pytest.raises(InputError, match="unknown policy 'gto' of a scheduler of this kind; known: fair, "):
        run_gpu(gpu, "gto")
    split = Machine("split", fair.units, 1, scheduler=SchedulerPromise.FAIR, partitions=2)
    for refusing in longest_gpu_run, lambda one: run_gpu(one, "fair"):
        with pytest.raises(UnsupportedError, match="a fair scheduler together with partitions"):
            refusing(gpu_of("CLC", 2, 9, 1, 2, split))
        ahead = replace(Program.chain("C"), timings=(InstructionTiming(),))
        grids = tuple(Grid(((program, 1),), 1) for program in (Program.chain("C"), ahead))
        with pytest.raises(UnsupportedError, match="or warps that run ahead"):
            refusing(GpuInstance(grids, fair, 1, (2,)))


def test_short_runs_end_with_the_time_or_when_one_is_enough_and_longer_ones_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine = Machine("late", (UnitClass("C", 1), UnitClass("L", 1, 1, Latency(50, 50))), 1)
    gpu = gpu_of("CCCCCCCCL", 8, 6, 1, 3, machine)

    def ends(*, expired: bool = False, enough: bool = False) -> str | None:
        found = longest_gpu_run(gpu, lambda: expired, enough=lambda: enough)
        return None if found is None else found.policy.split(", ")[1]

    first = "starve-in-turn"
    assert ends() != first
    assert ends(expired=True) == ends(enough=True) == first
    monkeypatch.setattr(gpu_run, "_CYCLES_PER_LOOK", 1)
    assert ends(expired=True) == ends(enough=True) == first


def test_time_ends_even_the_first_of_the_shortest_runs_and_enough_only_those_after_one() -> None:
    gpu = gpu_of("CLL" * 40, 8, 10**6, 3, 6)
    looks = count()
    assert shortest_gpu_run(gpu, lambda: next(looks) >= 2) is None
    assert next(looks) == 3
    found = some(shortest_gpu_run(gpu, enough=lambda: next(looks) > 0))
    assert next(looks) == 5, "nobody asks whether one is enough before there is one"
    assert replay_gpu(gpu, found.schedule) == found.schedule.makespan


def test_one_run_is_made_whatever_the_time_and_looks_at_no_clock() -> None:
    looks = count()
    for gpu in gpu_of("CLL" * 8, 4, 10**6, 3, 4), gpu_of("CLL", 2, 5, 3, 2), gpu_of("CCL", 3, 65_536, 46, 6):
        found = some(longest_gpu_run(gpu, lambda: next(looks) >= 0))
        assert replay_gpu(gpu, found.schedule) == found.schedule.makespan
        assert sum(history.sms * history.blocks for history in found.schedule.histories) == gpu.blocks
    assert next(looks) == 3, "one look for each, behind the run"


def test_the_run_that_is_always_made_is_that_of_the_policy_that_needs_little_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Under the first policy that is tried no SM comes back to where it was."""
    gpu, made = gpu_of("CLL" * 8, 4, 10**6, 3, 4), gpu_run._policies

    class Restless(RulePolicy):
        def state(self, cycle: int) -> Hashable:
            return object()

    def one_restless(gpu: GpuInstance, policy: str, *rest: Any) -> list[SchedulingPolicy]:
        return [Restless(STARVING_RULES[2], ())] if policy == "starve-in-turn" else made(gpu, policy, *rest)

    monkeypatch.setattr(gpu_run, "_policies", one_restless)
    found = some(longest_gpu_run(gpu, lambda: True))
    assert found.policy == "round-robin dispatch, starve-together"
    assert replay_gpu(gpu, found.schedule) == found.schedule.makespan


def test_what_is_not_known_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = gpu_of("CLL", 2, 50, 3, 2)
    with pytest.raises(InputError, match="unknown dispatch 'x'; known: round-robin, least-loaded, most-loaded, random"):
        run_gpu(gpu, "lrr", "x")
    with pytest.raises(InputError, match="unknown policy 'x' of a scheduler of this kind; known: lrr, gto"):
        run_gpu(gpu, "x")
    for delay in 1, -1:
        with pytest.raises(InputError, match=rf"a block begins 0\.\.0 cycles after it got its room, not {delay}"):
            run_gpu(gpu, "lrr", delay=delay)
    with pytest.raises(InputError, match="50000000 blocks with up to 300000000 warp-instructions are too many"):
        run_gpu(gpu_of("CLL", 2, 50_000_000, 3, 2), "random")
    grid = Grid(((Program.chain("C"), 1),), 1)
    with pytest.raises(UnsupportedError, match="with random numbers know one grid, not 2"):
        run_gpu(GpuInstance((grid, grid), PAPER, 1, (2,)), "random")
    monkeypatch.setattr(gpu_run, "MAX_WORK", 2)
    with pytest.raises(InputError, match="room for 3 blocks exceeds the limit of 2 that are dispatched one by one"):
        run_gpu(gpu_of("C", 1, 2, 3, 1), "lrr")
    monkeypatch.setattr(gpu_run, "MAX_WORK", 1)
    monkeypatch.setattr(gpu_run, "_CYCLES_PER_LOOK", 1)
    with pytest.raises(UnsupportedError, match="gives up after 1 cycles and instructions of an SM"):
        run_gpu(gpu, "lrr")
    assert longest_gpu_run(gpu) is None
