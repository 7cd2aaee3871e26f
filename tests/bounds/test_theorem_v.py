"""Theorem V, of DRAM that all SMs share: against all schedules of tiny GPUs, and a DRAM that serves in any order."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks import gpu_exhaustive as campaign
from makespan.host.errors import InputError
from makespan.model.gpu import GpuInstance
from makespan.model.gpu.instance import MAX_DRAM
from makespan.model.machine import Latency, Machine, UnitClass
from makespan.model.simulate.gpu_semantics import next_states, start_states
from makespan.model.strings import parse_string
from makespan.proof.bounds.best_case import least_possible_gpu
from makespan.proof.bounds.theorem_g import PAIRS, theorem_g
from makespan.proof.engines import Limits
from makespan.proof.engines.gpu import THEOREM_G, solve_gpu
from makespan.report.gpu.document import gpu_result_document
from makespan.report.gpu.text import gpu_report
from makespan.verify import Refused
from makespan.verify.theorem_g import bound
from tests.oracle import brute_force_gpu
from tests.schemas import published
from tests.strategies import gpus, shared_gpus

SLOW = Machine("slow", (UnitClass("C", 1), UnitClass("L", 1, 1, Latency(2, 2))))


def of(string: str, warps: int, blocks: int = 1, *, resident: int = 1, dram: int = 0, sms: int = 1) -> GpuInstance:
    block = [(parse_string(string, SLOW), warps)]
    return GpuInstance.of(block, blocks, SLOW, sms=sms, resident=resident, dram=dram)


# Against the definition


@pytest.mark.parametrize(
    ("gpu", "longest", "upper"),
    [
        (of("L", 1, dram=0), 2, 2),
        (of("L", 1, dram=3), 5, 5),
        (of("CC", 1, dram=3), 2, 5),  # a latency of one cycle has passed before it could stand still
        (of("L", 1, 3, dram=2), 8, 8),  # one after another: the busy cycles count once
        (of("L", 1, 2, sms=2, dram=2), 4, 4),  # and for all SMs together
        (of("L()L()C(1,2)", 1, dram=2), 6, 6),
        (of("L()|C(1)", 1, dram=2), 5, 5),  # pending behind a barrier
        (of("LLL", 2, dram=0), 7, 9),
        (of("LLL", 2, dram=1), 9, 10),  # two cycles more than without, for one that is busy
    ],
)
def test_by_hand(gpu: GpuInstance, longest: int, upper: int) -> None:
    assert (brute_force_gpu(gpu).upper, theorem_g(gpu).upper) == (longest, upper)
    assert brute_force_gpu(gpu).lower == brute_force_gpu(replace(gpu, dram=0)).lower


def test_a_latency_stands_still_only_while_dram_is_busy() -> None:
    """A load of two cycles: after the first it has one to wait, and in a busy cycle that stays so."""
    gpu = of("L", 1, dram=1)
    (begun,) = start_states(gpu)
    waiting = {state.dram: state for state in next_states(gpu, begun)}
    assert {(state.dram, len(state.sms)) for state in next_states(gpu, waiting[1])} == {(1, 0), (0, 0), (0, 1)}
    assert {(state.dram, len(state.sms)) for state in next_states(gpu, waiting[0])} == {(0, 0)}


@given(gpus(most_blocks=2, most=2), st.integers(1, 2))
@settings(max_examples=25)
def test_no_schedule_of_a_gpu_whose_dram_is_busy_is_longer_than_its_bound(gpu: GpuInstance, dram: int) -> None:
    """The engines and the checker add the cycles, whatever they count; and no schedule is shorter for them."""
    busy = replace(gpu, dram=dram)
    truth = brute_force_gpu(busy)
    proven = theorem_g(busy)
    assert truth.upper <= proven.upper == bound(busy, ()) == bound(gpu, ()) + dram
    assert least_possible_gpu(busy) <= truth.lower
    assert (proven.dram, proven.counting == PAIRS) == (dram, False)


@given(shared_gpus(most_blocks=2), st.integers(1, 2))
@settings(max_examples=8)
def test_the_same_of_several_grids(gpu: GpuInstance, dram: int) -> None:
    busy = replace(gpu, dram=dram)
    assert brute_force_gpu(busy).upper <= theorem_g(busy).upper == bound(busy, ()) == bound(gpu, ()) + dram


KINDS = [name for name, kind in campaign.KINDS.items() if kind.dram]


@pytest.mark.soak
@pytest.mark.parametrize("kind", KINDS)
def test_no_schedule_of_many_random_gpus_is_longer(kind: str) -> None:
    draw = random.Random()
    for _ in range(2000):
        gpu = campaign.instance(draw, campaign.KINDS[kind])
        if (truth := campaign.walk(gpu, 3000)) is not None:
            assert not campaign.judge(gpu, truth), gpu


def test_without_the_busy_cycles_it_is_too_small() -> None:
    """The campaign would notice."""
    draw, short = random.Random(4), 0
    for _ in range(20):
        gpu = campaign.instance(draw, campaign.KINDS["DRAM"])
        truth = campaign.walk(gpu)
        short += truth is not None and theorem_g(replace(gpu, dram=0)).upper < truth.longest
    assert short > 0


# Who uses it


def test_one_wave_is_no_question_about_one_sm_where_dram_may_be_busy() -> None:
    """Exact values of an SM do not carry over: LLL takes 7 cycles, and up to 9 with one that is busy."""
    idle, busy = (solve_gpu(of("LLL", 2, dram=dram), best_case=True, limits=Limits(1)) for dram in (0, 1))
    assert (idle.bounds.upper, idle.upper_evidence) == (7, "one-wave")
    assert (busy.bounds.upper, busy.upper_evidence) == (10, THEOREM_G)
    assert busy.bounds.lower == 7  # the longest schedule without a busy cycle
    assert busy.best_case == idle.best_case
    assert "DRAM is busy in at most 1 cycle, which are added once" in gpu_report(busy)
    told = gpu_result_document(busy)
    assert told["dram_cycles"] == 1
    published(told["schema"].removeprefix("makespan.").replace("/", "-")).validate(told)
    assert told["last_dispatch"]["dispatched"] + told["last_dispatch"]["tail"] + 1 == told["upper"]


def test_pairs_are_not_claimed() -> None:
    gpu = of("CLCLCL", 2, 9, resident=2)
    plain = theorem_g(gpu)
    assert (plain.counting, theorem_g(replace(gpu, dram=1)).counting) == (PAIRS, "all")
    with pytest.raises(Refused, match="latencies stand still while DRAM is busy"):
        bound(replace(gpu, dram=1), plain.weights)


@pytest.mark.parametrize("dram", [-1, True, 1.5, MAX_DRAM + 1])
def test_no_such_cycles_are_refused(dram: int) -> None:
    with pytest.raises(InputError, match="the cycles in which DRAM is busy must be"):
        of("L", 1, dram=dram)


# Against a DRAM that serves in any order


@dataclass
class Request:
    """A load of a warp: bytes that are left of it, and when it was issued, came to DRAM, was served, and is there."""

    warp: tuple[int, int, int]
    left: int
    issued: int
    came: int
    there: int | None = None


Order = Callable[[list[Request], random.Random], Request]
ORDERS: dict[str, Order] = {
    "in the order of arrival": lambda queue, _: min(queue, key=lambda one: one.came),
    "the newest first": lambda queue, _: max(queue, key=lambda one: one.came),
    "any": lambda queue, draw: draw.choice(queue),
    "one warp last": lambda queue, _: min(queue, key=lambda one: one.warp == (0, 0, 0)),
    "one SM last": lambda queue, _: min(queue, key=lambda one: one.warp[0] == 0),
    "the smallest first": lambda queue, _: min(queue, key=lambda one: one.left),
    "the largest first": lambda queue, _: max(queue, key=lambda one: one.left),
}
"""Whom a DRAM serves next; what it has begun may be interrupted, every cycle and every few bytes."""


@dataclass
class Launch:
    """Blocks of warps that load again and again, each load after the result of the one before.

    Args:
        to: cycles from an issue to DRAM, and `back` those from when it has been served to the SM.
        rate: bytes that DRAM moves in a cycle, as long as a request waits.
        most: bytes of a load, at most.
    """

    sms: int
    resident: int
    blocks: int
    warps: int
    loads: int
    to: int
    back: int
    rate: int
    most: int
    requests: list[Request] = field(default_factory=list)
    busy: list[bool] = field(default_factory=list)
    moved: int = 0

    @property
    def gpu(self) -> GpuInstance:
        """What theorem V is asked about: latencies of an idle DRAM, two cycles more, and all that is moved."""
        alone = self.to + self.back + 2
        machine = Machine("loads", (UnitClass("L", 1, 1, Latency(1, alone)),), issue_width=1)
        block = [(parse_string("L" * self.loads, machine), self.warps)]
        most = self.blocks * self.warps * self.loads * self.most
        return GpuInstance.of(block, self.blocks, machine, sms=self.sms, resident=self.resident, dram=most // self.rate)

    def run(self, order: Order, draw: random.Random) -> int:
        """The makespan in cycles; work-conserving SMs and dispatcher, which choose at random, and that DRAM."""
        left, cycle = self.blocks, 0
        slots: dict[tuple[int, int], dict[int, tuple[int, int]]] = {}  # of each warp: loads to go, ready when
        queue: list[Request] = []
        while True:
            for slot, warps in list(slots.items()):
                if all(todo == 0 and ready <= cycle for todo, ready in warps.values()):
                    del slots[slot]
            free = [(sm, r) for sm in range(self.sms) for r in range(self.resident) if (sm, r) not in slots]
            draw.shuffle(free)
            for slot in free[:left]:
                slots[slot] = dict.fromkeys(range(self.warps), (self.loads, cycle))
            left -= min(left, len(free))
            if not slots:
                return cycle
            for sm in range(self.sms):
                ready = [
                    (slot, warp)
                    for slot, warps in slots.items()
                    for warp, (todo, when) in warps.items()
                    if slot[0] == sm and todo and when <= cycle
                ]
                if ready:
                    slot, warp = draw.choice(ready)
                    slots[slot][warp] = (slots[slot][warp][0] - 1, 10**9)
                    self.requests.append(Request((*slot, warp), draw.randint(1, self.most), cycle, cycle + self.to))
                    queue.append(self.requests[-1])
            self._serve(queue, order, draw, cycle)
            for one in [one for one in queue if not one.left]:
                queue.remove(one)
                one.there = cycle + 1 + self.back
                slot, warp = one.warp[:2], one.warp[2]
                slots[slot][warp] = (slots[slot][warp][0], one.there)
            cycle += 1

    def _serve(self, queue: list[Request], order: Order, draw: random.Random, cycle: int) -> None:
        budget = self.rate
        while budget and (waiting := [one for one in queue if one.left and one.came <= cycle]):
            one = order(waiting, draw)
            part = min(budget, one.left, draw.randint(1, self.rate))
            one.left -= part
            budget -= part
        self.busy.append(not budget)
        self.moved += self.rate - budget


def launch_of(draw: random.Random) -> Launch:
    sms, resident = draw.randint(1, 3), draw.randint(1, 2)
    return Launch(
        *(sms, resident, draw.randint(1, 12), draw.randint(1, 4), draw.randint(1, 4)),
        *(draw.randint(1, 6), draw.randint(0, 6), draw.randint(1, 9), draw.randint(1, 40)),
    )


@pytest.mark.parametrize("order", ORDERS)
def test_whatever_dram_serves_first_no_launch_is_longer_than_the_bound(order: str) -> None:
    draw, tight = random.Random(order), 0.0
    for _ in range(60):
        launch = launch_of(draw)
        makespan, proven = launch.run(ORDERS[order], draw), theorem_g(launch.gpu)
        assert sum(launch.busy) <= launch.moved // launch.rate <= launch.gpu.dram
        assert makespan <= proven.upper - launch.gpu.dram + sum(launch.busy)  # no more than DRAM was busy
        tight = max(tight, makespan / proven.upper)
        for one in launch.requests:
            assert one.there is not None
            idle = sum(not launch.busy[cycle] for cycle in range(one.issued, min(one.there, len(launch.busy))))
            assert idle <= launch.to + launch.back + 2  # what (V1) supposes
    assert tight > 0.5


def test_without_what_dram_needs_the_bound_is_exceeded() -> None:
    draw, exceeded = random.Random(7), 0
    for _ in range(40):
        launch = launch_of(draw)
        exceeded += launch.run(ORDERS["any"], draw) > theorem_g(replace(launch.gpu, dram=0)).upper
    assert exceeded > 0


def waits(order: str, sizes: int = 40) -> tuple[int, int]:
    """The longest wait for a load of three warps, each with one in flight, and what bytes in flight say of it."""
    launch = Launch(3, 1, 3, 1, 12, 1, 0, 10, sizes)
    launch.run(ORDERS[order], random.Random(3))
    longest = max((one.there or 0) - one.issued for one in launch.requests)
    return longest, launch.to + launch.back + 2 + -(-3 * sizes // launch.rate)


def test_what_is_in_flight_bounds_a_latency_only_in_the_order_of_arrival() -> None:
    """An old request waits for those that come later, again and again, where DRAM prefers them."""
    longest, bounded = waits("in the order of arrival")
    assert longest <= bounded
    for order in ("one warp last", "one SM last", "the newest first"):
        longest, bounded = waits(order)
        assert longest > 2 * bounded
