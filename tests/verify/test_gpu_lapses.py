"""Bundles of whole GPUs with lapses: honest ones are accepted, and no claim that does not follow from the evidence."""

import random
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from makespan.model.gpu import GpuInstance, GpuResult, Grid
from makespan.model.lapses import CacheLine, PlaceLapses
from makespan.model.machine import KnownLapses, Machine, UnitQueue
from makespan.proof.bounds import theorem_g
from makespan.proof.engines.gpu import ONE_WAVE, THEOREM_G, solve_gpu
from makespan.proof.engines.limits import Limits
from makespan.report.gpu.bundle import gpu_bundle
from makespan.verify import Outcome, Verdict, digest, verify
from makespan.verify import theorem_g as checked_theorem_g
from makespan.verify.gpu_reading import of_block
from tests.bounds.test_theorem_g_lapses import CREDIT, FENCES, LATE, WINDOWS, gpu, machine, program, random_gpu
from tests.schemas import published

HELD = PlaceLapses(1, 1, 1, (CacheLine("a", 2), CacheLine("b", 3)))
WAVES = gpu({program("CC", CREDIT, HELD): 2}, 9, machine(2, expiry=1), sms=2, resident=2)
TWO_GRIDS = GpuInstance(
    (Grid(((program("C", HELD), 2),), 3, (1, 2)), Grid(((program("CC", LATE), 1),), 4, (1, 1))), machine(), 1, (2, 3)
)
PAIRS = gpu({program("CLLC", CREDIT): 2}, 9, Machine.of({"C": 1, "L": 1}), resident=3)
PAIRS = replace(PAIRS, machine=replace(PAIRS.machine, lapses=KnownLapses(expiry=3)))
LONE = gpu({program("CLLC", CREDIT, LATE): 2}, 3, Machine.of({"C": 1, "L": 1}), sms=2, resident=2)
LATER = gpu({program("CC", CREDIT, HELD): 2}, 2, machine(expiry=2), sms=2, resident=1, dispatch=3)


@cache
def solved(of: GpuInstance) -> GpuResult:
    # of one wave a search finds the best case, which no checker repeats
    return solve_gpu(of, best_case=not of.has_lone_sms, limits=Limits(5))


def judged(result: GpuResult, change: Callable[[dict[str, Any]], None] = lambda _: None) -> Verdict:
    document = gpu_bundle(result)
    change(document)
    return verify({**document, "sha256": digest(document)})


@pytest.mark.parametrize("of", [WINDOWS, FENCES[2], WAVES, TWO_GRIDS, PAIRS, LONE, LATER])
def test_honest_bundles_are_accepted(of: GpuInstance) -> None:
    result = solved(of)
    published("gpu-bundle-2").validate(gpu_bundle(result))
    verdict = judged(result)
    assert verdict.outcome is Outcome.ACCEPTED, verdict.reason
    assert result.without_lapses is not None
    assert "and what lapses add to it; without lapses the worst case is" in verdict.reason
    assert verdict.lower == result.bounds.lower
    assert verdict.upper is not None
    assert result.bounds.upper - 1 <= verdict.upper <= result.bounds.upper  # one of both rounds once more
    assert result.bounds.lower <= result.without_lapses.bounds.upper < result.bounds.upper
    assert "on the GPU as it is known" in str(result)
    plain = judged(result.without_lapses)
    assert plain.outcome is Outcome.ACCEPTED
    assert plain.reason in verdict.reason


def test_what_proves_a_gpu_with_lapses() -> None:
    found = {of: solved(of).upper_evidence for of in (LONE, LATER, WAVES)}
    assert found == {LONE: ONE_WAVE, LATER: THEOREM_G, WAVES: THEOREM_G}
    assert [str(sm.upper_evidence) for sm in solved(LONE).sms] == ["lapses", "lapses"]
    assert solved(LONE).bounds.upper == max(sm.bounds.upper for sm in solved(LONE).sms)


def claim(key: str, more: int, *path: str) -> Callable[[dict[str, Any]], None]:
    """Change a number of the claim."""

    def change(document: dict[str, Any]) -> None:
        where = document["result"]
        for name in path:
            where = where[name]
        where[key] += more

    return change


def remove(*path: str) -> Callable[[dict[str, Any]], None]:
    def change(document: dict[str, Any]) -> None:
        where = document
        for name in path[:-1]:
            where = where[name]
        del where[path[-1]]

    return change


def without_lapses(document: dict[str, Any]) -> None:
    for grid in document["instance"]["grids"]:
        for group in grid["block"]:
            del group["lapses"]


def longer(document: dict[str, Any]) -> None:
    for grid in document["instance"]["grids"]:
        for group in grid["block"]:
            group["lapses"]["places"][0][1][0] += 5


@pytest.mark.parametrize("of", [WAVES, TWO_GRIDS, LONE])
@pytest.mark.parametrize(
    ("change", "outcome", "why"),
    [
        (claim("upper", -2), Outcome.UNPROVEN, "re-proved only to"),
        (claim("upper", 3), Outcome.ACCEPTED, "what lapses add"),
        (claim("lower", -1), Outcome.REJECTED, "by the same witness"),
        (claim("lower", 1, "without_lapses"), Outcome.REJECTED, ""),
        (remove("result", "without_lapses"), Outcome.REJECTED, "result lacks 'without_lapses'"),
        (without_lapses, Outcome.REJECTED, "unknown key 'without_lapses'"),
        (longer, Outcome.UNPROVEN, "re-proved only to"),
    ],
)
def test_forged_bundles_are_not(
    of: GpuInstance, change: Callable[[dict[str, Any]], None], outcome: Outcome, why: str
) -> None:
    verdict = judged(solved(of), change)
    assert verdict.outcome is outcome, verdict.reason
    assert why in verdict.reason


@pytest.mark.parametrize(("of", "is_said"), [(WAVES, True), (LONE, False)])
def test_a_bundle_says_which_queues_are_left_out(of: GpuInstance, is_said: bool) -> None:
    queues = (UnitQueue("memory", ("C",), 2, blocks=True),)
    result = solved(replace(of, machine=replace(of.machine, queues=queues)))
    published("gpu-bundle-2").validate(gpu_bundle(result))
    verdict = judged(result)
    assert verdict.outcome is Outcome.ACCEPTED, verdict.reason
    assert ("although queues before memory are left out" in str(result)) is is_said
    # the bound of an SM by itself is larger with the queue, as theorem 1Q counts it
    assert (result.bounds.upper > solved(of).bounds.upper) is not is_said

    def other_evidence(document: dict[str, Any]) -> None:
        notes = document["result"]["assumptions"]
        document["result"]["assumptions"] = [note for note in notes if note["kind"] != "queues"]
        for said in document["result"], document["result"]["without_lapses"]:
            said["evidence"] = THEOREM_G
        document["sms"] = []

    why = "what is said of queues that are left out does not follow from the instance"
    assert why in judged(result, other_evidence).reason
    why = "the machine has queues, but no program states its lapses"
    assert why in judged(result, without_lapses).reason


def test_lapses_that_may_come_at_any_time_prove_nothing_but_one_wave() -> None:
    at_any_time = "theorem G knows no lapses that may come at any time after the end of their warps"
    assert judged(solved(WAVES), remove("instance", "expiry")).reason == at_any_time
    assert "expiry" not in gpu_bundle(solved(LONE))["instance"]


def ways(of: GpuInstance) -> tuple[list[int], list[int]]:
    """The bounds by every way to count that both know, of the checker and of the engines."""
    if len(of.grids) > 1:
        return list(checked_theorem_g._several_grids(of)), [one.upper for one in theorem_g._of_several_grids(of)]
    cost = checked_theorem_g._LapseCharge.of(of, of_block(of, of.grid))
    own = checked_theorem_g._bounds_by_prices(of, of.sm(of.resident), cost)
    return list(own), [one.upper for one in theorem_g._of_one_grid(of) if one.counting != theorem_g.PAIRS]


@pytest.mark.parametrize("seed", range(3))
def test_checker_and_engines_count_alike(seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(60):
        of = random_gpu(draw)
        grids = tuple(Grid(of.grid.block, count) for count in (of.blocks, 1 + draw.randrange(3)))
        for asked in of, replace(of, grids=grids, room=(of.resident,)):
            own, theirs = ways(asked)
            # of lines the checker knows in which phases they are needed
            least = 0 if of.sm(1).has_barriers else 1
            assert all(other - least <= one or not least for one, other in zip(own, theirs, strict=False)), asked
            assert all(one <= other for one, other in zip(own, theirs, strict=False)), asked
