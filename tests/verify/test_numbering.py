"""The checker numbers warps on its own: right bundles are accepted, and no claim that is false of another order."""

import copy
import json
import random
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from itertools import groupby, permutations
from typing import Any

import pytest

from makespan.model.gpu import GpuInstance
from makespan.model.instance import Instance
from makespan.model.machine import Machine, UnitClass, WarpAssignment
from makespan.model.program import Program
from makespan.model.result import Bounds
from makespan.proof.bounds import best_case
from makespan.proof.engines import Limits, solve
from makespan.proof.engines.gpu import solve_gpu
from makespan.report.gpu.bundle import gpu_bundle
from makespan.report.result.bundle import result_bundle
from makespan.verify import Outcome, gpu_reading, instances, lower_bounds, machine_form, reading, verify
from tests.engines.test_numbering import instance_of, launch
from tests.forgery import Document, forged, set_bounds
from tests.oracle import brute_force, brute_force_gpu, launch_of
from tests.schemas import published

SHARED = UnitClass("L", 1, interval=2, shared=True)
HALVES = Machine("halves", (UnitClass("C", 1), SHARED), 1, partitions=2, assignment=WarpAssignment.MODULO)
THIRDS = replace(HALVES, partitions=3)


def programs(letters: str) -> list[Program]:
    return [Program.chain(one) for one in letters.split()]


@cache
def instance(letters: str, blocks: int = 1, machine: Machine = HALVES) -> Instance:
    """Blocks of warps that run these strings."""
    return Instance.merged([(program, blocks) for program in programs(letters)], machine, blocks=blocks)


ASKED = (
    instance("CCC C CCC C"),
    instance("CCL L CCL"),
    instance("CC|C C|C CC|C", 2),
    instance("CC LL C", 2),
    instance("CCC C L CCC C", 1, THIRDS),
)


@cache
def documents() -> tuple[Document, ...]:
    return tuple(json.loads(json.dumps(result_bundle(solve(one, best_case=True)))) for one in ASKED)


@pytest.mark.parametrize("number", range(len(ASKED)))
def test_a_bundle_has_the_order_of_the_launch_and_is_accepted(number: int) -> None:
    document, asked = documents()[number], ASKED[number]
    order = [[group, len(list(run))] for group, run in groupby(asked.order)]
    assert document["instance"]["order"] == document["result"]["order"] == order
    published("bundle-3").validate(document)
    published("result-2").validate(document["result"])
    truth, verdict = brute_force(asked), verify(document)
    assert verdict.outcome is Outcome.ACCEPTED, verdict
    assert (verdict.lower, verdict.upper, verdict.best_case) == (truth.upper, truth.upper, (truth.lower, truth.lower))
    read = reading.bundle(document).instance
    assert read == asked
    assert (read.order, read.effective_order) == (asked.order, asked.effective_order)


def test_the_checker_numbers_warps_as_the_launch_does() -> None:
    draw = random.Random(1)
    for _ in range(200):
        asked = instance_of(launch(draw, 8, 6))
        told = launch_of(asked)
        assert machine_form.warp_numbers(asked) == told.listed([group.program for group in asked.groups])
        partitions = [number % asked.machine.partitions for number in machine_form.warp_numbers(asked)]
        assert machine_form.warp_partitions(asked) == partitions == list(asked.partition_of_warp or ())
        assert (
            machine_form.warp_partitions(replace(asked, machine=replace(asked.machine, assignment=WarpAssignment.ANY)))
            is None
        )


def test_no_schedule_is_shorter_than_the_work_of_a_partition_by_number() -> None:
    """Warps 0 and 2 issue three C each in one slot; by program they would be apart."""
    one, by_program = ASKED[0], instance("CCC CCC C C")
    assert lower_bounds.least_makespan(one) == best_case.least_possible(one) == brute_force(one).lower == 6
    assert (
        lower_bounds.least_makespan(by_program)
        == best_case.least_possible(by_program)
        == brute_force(by_program).lower
        == 4
    )


def orders(document: Document) -> list[list[list[int]]]:
    """All others in which the warps of a block may be launched, and None for that of the groups."""
    runs = document["instance"]["order"]
    launched = [group for group, warps in runs for _ in range(warps)]
    found = {tuple(one) for one in permutations(launched)}
    written = [[[group, len(list(run))] for group, run in groupby(one)] for one in sorted(found)]
    return [order for order in written if order != runs]


@pytest.mark.parametrize("number", range(len(ASKED)))
def test_a_claim_about_another_order_is_accepted_only_where_it_is_true(number: int) -> None:
    document, rejected = documents()[number], 0
    for order in orders(document):

        def change(document: Document, order: list[list[int]] = order) -> None:
            for part in document["instance"], document["result"]:
                part["order"] = order
                if order == sorted(order):
                    del part["order"]

        verdict = verify(forged(document, change))
        told = copy.deepcopy(document)
        change(told)
        truth = brute_force(instances.instance(told["instance"]))
        claim = document["result"]
        if verdict.outcome is Outcome.ACCEPTED:
            assert claim["lower"] <= truth.upper <= claim["upper"]
        if not claim["lower"] <= truth.upper <= claim["upper"]:
            assert verdict.outcome is Outcome.REJECTED
        rejected += verdict.outcome is Outcome.REJECTED
    assert rejected


def both(order: Any) -> Callable[[Document], None]:
    def change(document: Document) -> None:
        document["instance"]["order"] = document["result"]["order"] = order

    return change


@pytest.mark.parametrize(
    ("order", "reason"),
    [
        ([[0, 1], [1, 1], [0, 1]], "the warps are not those of a block"),
        ([[0, 1], [1, 1], [0, 1], [1, 2]], "the warps are not those of a block"),
        ([[0, 1], [1, 1], [2, 1], [1, 1]], "order"),
        ([[0, 1], [0, 1], [1, 1], [1, 1]], "a group follows itself"),
        ([[0, 2], [1, 2]], "it says no more than that the groups follow one another"),
        ([[0, 1], [1, 0], [0, 1], [1, 2]], "order"),
        ([[0, 1], [1, -1], [0, 1], [1, 3]], "order"),
        ([[0, 1], [1, True], [0, 1], [1, 1]], "order"),
        ([[0, 1], [1, 1.0], [0, 1], [1, 1]], "order"),
        ([[0, 1, 1], [1, 1], [0, 1], [1, 1]], "order"),
        ([], "order"),
        (None, "order"),
        ({"0": 1}, "order"),
    ],
)
def test_what_is_no_order_of_the_warps_of_a_block_is_refused(order: Any, reason: str) -> None:
    verdict = verify(forged(documents()[0], both(order)))
    assert verdict.outcome is Outcome.REJECTED
    assert reason in verdict.reason


def test_an_order_is_said_where_it_has_an_effect_and_nowhere_else() -> None:
    def unsaid(document: Document) -> None:
        del document["result"]["order"]

    def free(document: Document) -> None:
        document["instance"]["machine"]["assignment"] = document["result"]["assignment"] = "any"
        document["witness"]["partitions"] = [0, 0, 1, 1]

    assert "result" in verify(forged(documents()[0], unsaid)).reason
    assert "the numbers of warps have no effect on this machine" in verify(forged(documents()[0], free)).reason


def test_bundles_without_an_order_are_of_groups_one_after_another() -> None:
    """Also of blocks without barriers, each of which launches the first group before the second one."""
    asked = instance("CCC C", 2)
    document = json.loads(json.dumps(result_bundle(solve(asked))))

    def in_blocks(document: Document) -> None:
        document["instance"]["blocks"] = 2
        del document["instance"]["order"]

    read = instances.instance(forged(document, in_blocks)["instance"])
    assert read == asked != instance("CCC CCC C C")
    assert read.order == (0, 1, 0, 1)
    assert verify(forged(document, in_blocks)).outcome is Outcome.ACCEPTED


# Whole GPUs


@cache
def gpu(letters: str, blocks: int, resident: int, dispatch: int = 0) -> GpuInstance:
    block = [(program, 1) for program in programs(letters)]
    return GpuInstance.of(block, blocks, HALVES, sms=1, resident=resident, dispatch=dispatch)


GPUS = (gpu("CCC C CCC", 3, 1), gpu("CC C CC", 2, 2), gpu("CC L CC", 3, 2), gpu("CC C CC", 2, 2, 1))


@cache
def gpu_documents() -> tuple[Document, ...]:
    return tuple(json.loads(json.dumps(gpu_bundle(solve_gpu(one, limits=Limits(1.0))))) for one in GPUS)


@pytest.mark.parametrize("number", range(len(GPUS)))
def test_a_bundle_of_a_gpu_has_the_order_of_the_launch_and_is_accepted(number: int) -> None:
    document, asked = gpu_documents()[number], GPUS[number]
    assert document["instance"]["grids"][0]["order"] == [[0, 1], [1, 1], [0, 1]]
    published("gpu-bundle-2").validate(document)
    assert gpu_reading.instance(document["instance"]) == asked
    verdict, truth = verify(document), brute_force_gpu(asked)
    assert verdict.outcome is Outcome.ACCEPTED, verdict
    assert document["result"]["lower"] <= truth.upper <= document["result"]["upper"]


@pytest.mark.parametrize("number", range(len(GPUS)))
@pytest.mark.parametrize("order", [None, [[0, 1], [1, 1], [0, 1]], [[1, 1], [0, 2]]])
def test_a_claim_about_a_gpu_of_another_order_is_accepted_only_where_it_is_true(
    number: int, order: list[list[int]] | None
) -> None:
    document = gpu_documents()[number]

    def change(document: Document) -> None:
        grid = document["instance"]["grids"][0]
        grid["order"] = order
        if order is None:
            del grid["order"]

    other = forged(document, change)
    truth = brute_force_gpu(gpu_reading.instance(other["instance"]))
    verdict, claim = verify(other), document["result"]
    is_true = claim["lower"] <= truth.upper <= claim["upper"]
    assert verdict.outcome is not Outcome.ACCEPTED or is_true
    if order == document["instance"]["grids"][0]["order"]:
        assert verdict.outcome is Outcome.ACCEPTED
    elif not is_true:
        assert verdict.outcome is Outcome.REJECTED


@pytest.mark.parametrize(
    "order", [[[0, 1], [1, 1]], [[0, 1], [1, 1], [0, 2]], [[0, 2], [1, 1]], [[0, 1], [2, 1], [0, 1]], [], None]
)
def test_what_is_no_order_of_the_warps_of_a_grid_is_refused(order: Any) -> None:
    def change(document: Document) -> None:
        document["instance"]["grids"][0]["order"] = order

    verdict = verify(forged(gpu_documents()[0], change))
    assert verdict.outcome is Outcome.REJECTED
    assert "order" in verdict.reason


def test_no_upper_bound_below_the_truth_of_the_order_is_accepted() -> None:
    """The bounds that another numbering would allow: of warps by program, 4 cycles; of blocks, 4 and 6."""
    document = documents()[0]
    assert document["result"]["upper"] == 6
    for upper in 4, 5:
        verdict = verify(forged(document, partial(set_bounds, lower=4, upper=upper)))
        assert verdict.outcome is Outcome.REJECTED
    assert Bounds(6, 6) == solve(ASKED[0]).bounds
