"""Theorem G against all schedules of tiny GPUs, at the edges of its proof and at random."""

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from benchmarks import gpu_exhaustive as campaign
from makespan.model.gpu import GpuInstance
from makespan.model.machine import Latency, Machine, PortResource, UnitClass, Use, WarpAssignment
from makespan.model.strings import parse_string
from makespan.proof.bounds.best_case import least_possible_gpu
from makespan.proof.bounds.theorem_g import theorem_g


def edge(*units: UnitClass, resources: Sequence[PortResource] = (), partitions: int = 1) -> Machine:
    return Machine("edge", units, resources=tuple(resources), partitions=partitions)


def unit(
    name: str, capacity: int = 1, interval: int = 1, latency: int = 1, most: int = 0, *, shared: bool = False
) -> UnitClass:
    return UnitClass(name, capacity, interval, Latency(latency, max(latency, most)), shared)


LOADS = UnitClass("L", 1, uses=(Use(("a", "b"), 1, 2),))
PLAIN = edge(unit("C"), unit("L"))
SLOW = edge(unit("C"), unit("L", latency=4))
HELD = edge(unit("C", interval=3))
HALVES = replace(edge(unit("C"), unit("L", shared=True), partitions=2), assignment=WarpAssignment.MODULO)
MEMORY = edge(unit("C"), LOADS, resources=[PortResource("a", 1), PortResource("b", 1)])


def gpu_of(
    block: dict[str, int], blocks: int, machine: Machine, sms: int = 1, resident: int = 1, dispatch: int = 0
) -> GpuInstance:
    warps = [(parse_string(string, machine), count) for string, count in block.items()]
    return GpuInstance.of(warps, blocks, machine, sms=sms, resident=resident, dispatch=dispatch)


EDGES = {
    "one warp at a time": (gpu_of({"CLC": 1}, 4, PLAIN), 12),
    "one block more than slots": (gpu_of({"CL": 1}, 5, PLAIN, 2, 2), 4),
    "a short last wave on three SMs": (gpu_of({"CCL": 1}, 7, PLAIN, 3, 2), 7),
    "waves that overlap": (gpu_of({"CCLL": 1}, 3, PLAIN, 1, 2), 10),
    "pairs over the seam of two blocks": (gpu_of({"CLCL": 1}, 4, PLAIN, 1, 3), 10),
    "two programs": (gpu_of({"CC": 1, "LC": 1}, 3, PLAIN), 9),
    "two ports, and no whole cycles": (gpu_of({"CC": 1}, 5, edge(unit("C", 2)), 1, 3), 6),
    "a port held by who has finished": (gpu_of({"C": 1}, 4, HELD), 10),
    "by who has finished in another slot": (gpu_of({"C": 1}, 5, HELD, 1, 2), 13),
    "waits for a port that it holds itself": (gpu_of({"CC": 1}, 3, edge(unit("C", 1, 3, 1, 2))), 17),
    "fills all ports itself": (gpu_of({"C" * 6: 1}, 3, edge(unit("C", 2, 4))), 34),
    "held over a barrier": (gpu_of({"C|C": 2}, 2, edge(unit("C", 1, 2))), 15),
    "a barrier at the end": (gpu_of({"CL|": 2}, 3, PLAIN), 9),
    "a phase with nothing before it": (gpu_of({"|CL": 2}, 3, PLAIN), 9),
    "blocks in different phases": (gpu_of({"L|CC": 1}, 4, edge(unit("C"), unit("L", latency=2)), 1, 2), 11),
    "begins late in every wave": (gpu_of({"C": 1}, 3, PLAIN, 1, 2, dispatch=2), 6),
    "begins late in one wave": (gpu_of({"CC": 1}, 2, edge(unit("C", 2, 2, 1, 2)), 1, 2, dispatch=1), 6),
    "a result on its way at the end": (gpu_of({"L()C()": 1}, 3, SLOW), 12),
    "the partition of who was there before": (gpu_of({"CL": 1}, 3, HALVES, 1, 2), 4),
    "three warps in a partition": (gpu_of({"C": 3}, 3, edge(unit("C", latency=3), partitions=2), 2), 8),
    "one of several resources": (gpu_of({"CLL": 1}, 3, MEMORY, 1, 2), 7),
}
"""A GPU, and its longest schedule in cycles, which an enumeration written apart from the definition gave as well."""


@pytest.mark.parametrize(("gpu", "longest"), EDGES.values(), ids=EDGES)
def test_no_schedule_is_longer_than_the_bound_at_the_edges_of_the_proof(gpu: GpuInstance, longest: int) -> None:
    truth = campaign.walk(gpu)
    assert truth is not None
    assert truth.longest == longest
    assert not campaign.judge(gpu, truth)


@pytest.mark.parametrize("kind", campaign.KINDS)
def test_no_schedule_of_random_gpus_is_longer_than_the_bound(kind: str) -> None:
    draw, judged = random.Random(15), 0
    while judged < 3:
        gpu = campaign.instance(draw, campaign.KINDS[kind])
        if (truth := campaign.walk(gpu, 60)) is not None:
            assert not campaign.judge(gpu, truth)
            judged += 1


@pytest.mark.parametrize("gpu", [gpu for gpu, _ in EDGES.values()], ids=EDGES)
def test_more_blocks_never_take_less_and_as_many_as_there_can_be_are_bounded(gpu: GpuInstance) -> None:
    first = gpu.slots + 1
    launches = [replace(gpu, grids=(replace(gpu.grid, blocks=blocks),)) for blocks in (first, first + 1, 10**6, 2**62)]
    uppers = [theorem_g(launch).upper for launch in launches]
    assert uppers == sorted(uppers)
    assert uppers[-1] >= least_possible_gpu(launches[-1])
