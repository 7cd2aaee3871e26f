"""Warps that belong to partitions by number, in every order of launch, against oracles that number them as launched.

The oracles are told a launch: the programs of the warps of a block, one after another, and how many blocks there are.
They never see the instance that is made of it.
"""

import os
import random
import secrets
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest

from benchmarks import multiprocessors
from benchmarks.explorer import Explorer
from benchmarks.explorer import launched as written
from benchmarks.explorer import written as explorer_words
from makespan.model.gpu import GpuInstance
from makespan.model.instance import Instance
from makespan.model.machine import Machine, WarpAssignment
from makespan.model.result import Bounds, Status
from makespan.proof.bounds import best_case, closed_form, pessimistic, theorem_1s
from makespan.proof.engines import Limits, solve
from makespan.proof.engines.gpu import solve_gpu
from makespan.report.gpu.bundle import gpu_bundle
from makespan.report.result.bundle import result_bundle
from makespan.verify import Outcome, verify
from tests.oracle import Launch, brute_force_gpu, brute_force_launch, obeys, obeys_gpu

SEED = int(os.environ.get("MAKESPAN_SEED", "0")) or secrets.randbits(32)
STEPS = 30_000
"""From state to state, for the truth of an instance; those with more are drawn again."""

Oracle = Callable[[list[Launch]], list[Bounds | None]]


def machine(draw: random.Random) -> Machine:
    """Two to four partitions that get warps by number; in some machines they share ports."""
    return replace(multiprocessors.machine(draw), partitions=draw.randint(2, 4), assignment=WarpAssignment.MODULO)


def launch(draw: random.Random, most_warps: int, most_letters: int) -> Launch:
    """One to three blocks of warps of two or three programs, in any order, with and without barriers."""
    chosen, blocks = machine(draw), draw.choice((1, 1, 2, 2, 3))
    barriers, width = draw.random() < 0.5, draw.randint(2, max(2, most_warps // blocks))
    most = max(1, most_letters - blocks * width)
    kinds = [
        multiprocessors.program(
            draw, "".join(chosen.capacities), most, barriers=barriers, runs_ahead=draw.random() < 0.4
        )
        for _ in range(draw.choice((2, 2, 3)))
    ]
    return Launch(tuple(draw.choice(kinds) for _ in range(width)), blocks, chosen)


def instance_of(asked: Launch) -> Instance:
    return Instance.merged([(program, asked.blocks) for program in asked.block], asked.machine, blocks=asked.blocks)


def by_group(asked: Launch) -> Launch:
    """The same warps, those of each program in all blocks one after another: how they were numbered once."""
    programs = list(dict.fromkeys(asked.block))
    return replace(asked, block=tuple(sorted(asked.block * asked.blocks, key=programs.index)), blocks=1)


def check(asked: Launch, truth: Bounds, seen: Counter[str]) -> None:
    """All that is claimed of an instance, against the lengths of its shortest and its longest schedule."""
    instance = instance_of(asked)
    longest = [closed_form(instance).upper, pessimistic(instance)]
    longest += [bound.upper for bound in (theorem_1s(instance),) if bound is not None]
    assert min(longest) >= truth.upper
    assert best_case.least_possible(instance) <= truth.lower
    result = solve(instance, best_case=True, limits=Limits())
    assert result.best_case is not None
    assert result.bounds.lower <= truth.upper <= result.bounds.upper
    assert result.best_case.lower <= truth.lower <= result.best_case.upper
    assert result.witness.makespan == result.bounds.lower
    assert obeys(instance, result.witness)
    verdict = verify(result_bundle(result))
    assert verdict.outcome in (Outcome.ACCEPTED, Outcome.UNPROVEN), str(verdict)
    assert verdict.lower is not None
    assert verdict.upper is not None
    assert verdict.lower <= truth.upper <= verdict.upper
    seen[str(result.upper_evidence)] += 1
    seen["exact"] += result.status is Status.EXACT
    seen["accepted"] += verdict.outcome is Outcome.ACCEPTED
    seen["with an order"] += bool(instance.effective_order)
    seen["several blocks"] += asked.blocks > 1
    seen["barriers between several blocks"] += instance.blocks > 1
    seen["blocks that straddle"] += asked.blocks > 1 and len(asked.block) % asked.machine.partitions > 0


def campaign(draw: random.Random, count: int, sizes: tuple[int, int], oracle: Oracle) -> Counter[str]:
    """So many instances with different warps; what was seen of them."""
    seen = Counter[str]()
    while seen["instances"] < count:
        drawn = [launch(draw, *sizes) for _ in range(min(50, count - seen["instances"]))]
        asked = [one for one in drawn if len(set(one.block)) > 1]
        others = [by_group(one) for one in asked if not one.has_barriers]
        truths = oracle(asked)
        for one, truth in zip(asked, truths, strict=True):
            if truth is None:
                seen["too large"] += 1
            else:
                seen["instances"] += 1
                check(one, truth, seen)
        known = [truth for one, truth in zip(asked, truths, strict=True) if not one.has_barriers]
        seen["longer than by program"] += sum(
            truth is not None and other is not None and truth.upper > other.upper
            for truth, other in zip(known, oracle(others), strict=True)
        )
    return seen


def by_definition(asked: list[Launch]) -> list[Bounds | None]:
    return [brute_force_launch(one) for one in asked]


@pytest.mark.parametrize("seed", range(2))
def test_what_is_claimed_of_warps_by_number_holds_for_their_launch(seed: int) -> None:
    seen = campaign(random.Random(seed), 40, (4, 6), by_definition)
    assert seen["accepted"] == 40
    assert min(seen["with an order"], seen["blocks that straddle"], seen["longer than by program"]) > 0


def test_campaigns_tell_the_explorer_the_order_of_the_launch() -> None:
    draw = random.Random(3)
    for _ in range(50):
        asked = launch(draw, 6, 8)
        instance = instance_of(asked)
        joined = asked.block * (asked.blocks // instance.blocks)
        assert explorer_words(instance) == written(joined, instance.blocks, asked.machine)


def test_both_oracles_number_warps_alike(explorer: Explorer) -> None:
    draw = random.Random(7)
    asked = [launch(draw, 4, 6) for _ in range(60)]
    found = explorer.explore((written(one.block, one.blocks, one.machine) for one in asked), STEPS)
    known = [(one, truth) for one, truth in zip(asked, found, strict=True) if truth is not None]
    assert len(known) > 40
    for one, truth in known:
        assert brute_force_launch(one) == Bounds(truth.shortest, truth.longest)


@pytest.mark.soak
def test_ten_thousand_launches(explorer: Explorer) -> None:
    def oracle(asked: list[Launch]) -> list[Bounds | None]:
        found = explorer.explore((written(one.block, one.blocks, one.machine) for one in asked), STEPS)
        return [truth and Bounds(truth.shortest, truth.longest) for truth in found]

    seen = campaign(random.Random(SEED), 10_000, (6, 8), oracle)
    print(f"MAKESPAN_SEED={SEED}", dict(seen))
    assert seen["longer than by program"] > 100


def whole_gpu(draw: random.Random) -> GpuInstance:
    """A few blocks of two or three tiny warps of different programs, of which an SM has room for one to three."""
    chosen = machine(draw)
    barriers = draw.random() < 0.2
    kinds = [
        multiprocessors.program(
            draw, "".join(chosen.capacities), length, barriers=barriers, runs_ahead=draw.random() < 0.3
        )
        for length in (1, 2)
    ]
    block = [(kind, 1) for kind in (*kinds, *draw.choices(kinds, k=draw.choice((0, 1))))]
    draw.shuffle(block)
    sms, resident = draw.choice(((1, 1), (1, 2), (1, 2), (1, 2), (2, 1)))
    blocks, dispatch = draw.randint(2, 4 - len(block) // 3), draw.choice((0, 0, 1))
    return GpuInstance.of(block, blocks, chosen, sms=sms, resident=resident, dispatch=dispatch)


def check_gpu(gpu: GpuInstance, seen: Counter[str]) -> None:
    truth = brute_force_gpu(gpu)
    result = solve_gpu(gpu, best_case=True, limits=Limits())
    assert result.best_case is not None
    assert result.bounds.lower <= truth.upper <= result.bounds.upper
    assert result.best_case.lower <= truth.lower <= result.best_case.upper
    for schedule in result.witness, result.shortest:
        assert schedule is None or obeys_gpu(gpu, schedule)
    verdict = verify(gpu_bundle(result))
    assert verdict.outcome in (Outcome.ACCEPTED, Outcome.UNPROVEN), str(verdict)
    assert verdict.upper is not None
    assert verdict.upper >= truth.upper
    seen[result.upper_evidence] += 1
    seen["exact"] += result.status is Status.EXACT
    seen["accepted"] += verdict.outcome is Outcome.ACCEPTED
    seen["with an order"] += bool(gpu.sm(gpu.resident).effective_order)


def gpu_campaign(draw: random.Random, count: int) -> Counter[str]:
    seen = Counter[str]()
    for _ in range(count):
        check_gpu(whole_gpu(draw), seen)
    return seen


@pytest.mark.parametrize("seed", range(2))
def test_what_is_claimed_of_whole_gpus_holds_for_their_launch(seed: int) -> None:
    seen = gpu_campaign(random.Random(seed), 10)
    assert seen["with an order"] > 3
    assert seen["accepted"] > 3


@pytest.mark.soak
def test_two_thousand_whole_gpus() -> None:
    seen = gpu_campaign(random.Random(SEED), 2000)
    print(f"MAKESPAN_SEED={SEED}", dict(seen))
    assert seen["with an order"] > 200
