"""What the checker computes is what the engines compute: two programs from one text of proofs, on random questions.

Where the paths of a warp that runs ahead part, the two join what they know of them in different ways, and only one of
both need be as sharp as the other.
"""

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from makespan.model.gpu import GpuInstance, Grid
from makespan.model.instance import Instance
from makespan.model.machine import PAPER, Latency, Machine, UnitClass, WarpAssignment
from makespan.model.program import Program
from makespan.proof.bounds import theorem_1s, theorem_g
from makespan.proof.bounds.best_case import least_possible
from makespan.proof.bounds.best_case import least_possible_gpu as least_possible_of_gpu
from makespan.proof.bounds.partitions import partitions
from makespan.proof.bounds.phases import phases
from makespan.verify import interference, lower_bounds
from makespan.verify import partitions as checked_partitions
from makespan.verify import phases as checked_phases
from makespan.verify import theorem_g as checked_theorem_g
from makespan.verify.gpu_reading import of_block
from makespan.verify.refusal import ProofSteps
from tests.strategies import gpus, multiprocessor_instances, shared_gpus

PARTS = Machine("parts", (UnitClass("C", 1, 1, Latency(1, 2)), UnitClass("L", 1, shared=True)), 1, partitions=2)
HELD_PARTS = replace(PARTS, units=(UnitClass("C", 1, 2), UnitClass("L", 1, 3, Latency(1, 2), shared=True)))
WAITING = Machine("waiting", (UnitClass("C", 1), UnitClass("L", 1, 1, Latency(2, 4))))

many = settings(max_examples=120)


def parts(program: Program) -> bool:
    """Whether the paths of a warp that runs ahead do."""
    return bool(program.timings) and not program.is_chain


@many
@given(multiprocessor_instances())
def test_bounds_of_multiprocessors(instance: Instance) -> None:
    assume(instance.is_multiprocessor)
    found = theorem_1s(instance)
    assert found is not None
    if any(parts(group.program) for group in instance.groups):
        assert interference.bound(instance) <= found.upper
    else:
        assert interference.bound(instance) == found.upper
        assert lower_bounds.least_makespan(instance) == least_possible(instance)


@many
@given(multiprocessor_instances())
def test_the_questions_of_phases_and_partitions(instance: Instance) -> None:
    own, theirs = checked_phases.cut(instance), phases(instance)
    if instance.has_barriers and (own is not None or theirs is not None):
        assert own is not None
        assert theirs is not None
        assert [question for question, _ in own] == [phase.instance for phase in theirs]
        assert [late for _, late in own] == [phase.lag for phase in theirs]
    alone, cut = checked_partitions.questions(instance), partitions(instance)
    assert (alone is None) == (cut is None)
    if alone is not None and cut is not None:
        assert {*alone} == {*cut.questions.values()}


def ways(gpu: GpuInstance) -> tuple[list[int], list[int]]:
    """The bounds by every way to count of theorem G, of the checker and of the engines, one beside the other."""
    if len(gpu.grids) > 1:
        proofs = list(theorem_g._of_several_grids(gpu))
        return list(checked_theorem_g._several_grids(gpu)), [proof.upper for proof in proofs]
    sm = gpu.sm(gpu.resident)
    proofs = list(theorem_g._of_one_grid(gpu))
    priced = [proof.upper for proof in proofs if proof.counting != theorem_g.PAIRS]
    paired = [proof for proof in proofs if proof.counting == theorem_g.PAIRS]  # two of each weights, for both ends
    cost = checked_theorem_g._LapseCharge.of(gpu, of_block(gpu, gpu.grid))
    own = list(checked_theorem_g._bounds_by_prices(gpu, sm, cost))
    common = min(len(own), len(priced))  # the other prices are worth less than they cost
    again = [
        bound for proof in paired[::2] for bound in checked_theorem_g._bounds_by_pairs(gpu, sm, cost, *proof.weights)
    ]
    return own[:common] + again, priced[:common] + [proof.upper for proof in paired]


@many
@given(st.one_of(gpus(most_slots=4, most_blocks=12), shared_gpus()))
def test_theorem_g(gpu: GpuInstance) -> None:
    own, theirs = ways(gpu)
    if all(program.is_chain for grid in gpu.grids for program, _ in grid.block):
        assert all(other - 1 <= one <= other for one, other in zip(own, theirs, strict=True))  # one more rounds twice
        assert lower_bounds.least_makespan_of_gpu(gpu) == least_possible_of_gpu(gpu)
    proof = theorem_g.theorem_g(gpu)
    assert checked_theorem_g.bound(gpu, proof.weights) <= proof.upper


@pytest.mark.parametrize(
    "block",
    [
        "C 3",
        "C 6",
        "LC",
        "CCL 2",
        "CL CCC 2",
        "CLC 3 L",
        "CCCCC CL LC",
        "CCC L CCC",
        "CL CCC CL 2 CCC",
        "C|CL 2",
        "L| C",
    ],
)
@pytest.mark.parametrize(("resident", "partitions"), [(1, 2), (2, 2), (3, 3), (3, 8), (5, 2), (8, 8)])
@pytest.mark.parametrize("held", [PARTS, HELD_PARTS])
@pytest.mark.parametrize("assignment", WarpAssignment)
def test_theorem_g_of_partitions(
    block: str, resident: int, partitions: int, held: Machine, assignment: WarpAssignment
) -> None:
    machine = replace(held, assignment=assignment, partitions=partitions)
    gpu = GpuInstance.of(programs(block), 99, machine, sms=3, resident=resident)
    own, theirs = ways(gpu)
    assert own == theirs
    assert len(own) > 3 - ("|" in block)


def programs(block: str) -> list[tuple[Program, int]]:
    """Strings, each followed by how many warps execute it if they are several."""
    words = [*block.split(), ""]
    return [(Program.chain(w), int(n) if n.isdigit() else 1) for w, n in pairwise(words) if not w.isdigit()]


THREE = {name: Machine.of({"C": 2, "L": 1, "S": ports}) for name, ports in (("one", 1), ("four", 4), ("nine", 9))}
IDLE = Machine("idle", (UnitClass("C", 1), UnitClass("L", 1), UnitClass("S", 1, 5)))


@pytest.mark.parametrize("block", ["CL", "CCLL 3", "CLLC", "LCCCL 3", "CLS CCL 2", "SCCL L", "CL LLC 2"])
@pytest.mark.parametrize("machine", [Machine.of({"C": 1, "L": 1, "S": 1}), *THREE.values(), WAITING, IDLE])
def test_theorem_g_by_pairs(block: str, machine: Machine) -> None:
    if "S" in block and (machine is IDLE or machine is WAITING):
        return
    gpu = GpuInstance.of(programs(block), 10**6, machine, sms=3, resident=4, dispatch=1)
    own, theirs = ways(gpu)
    assert own == theirs
    assert len(own) > 3


def test_theorem_g_by_pairs_may_end_as_theorem_1s_does() -> None:
    """Of the four pairs that others may have open at the end it knows nothing, and needs nothing."""
    gpu = GpuInstance.of([(Program.chain("LCCC"), 3)], 4, Machine.of({"C": 2, "L": 1}), sms=1, resident=2)
    proof = theorem_g.theorem_g(gpu)
    assert (proof.counting, proof.dispatched, proof.tail) == (theorem_g.PAIRS, 22, 4 + 5 * (2 + 3) // 2)
    assert checked_theorem_g.bound(gpu, proof.weights) == proof.upper


@pytest.mark.parametrize("room", [6, 7, 9])
@pytest.mark.parametrize("takes", [(4, 2), (3, 2), (3, 3)])
@pytest.mark.parametrize("blocks", [50, 1])
def test_theorem_g_of_several_grids(takes: tuple[int, int], room: int, blocks: int) -> None:
    grids = tuple(Grid(((Program.chain("CLC"), one),), blocks, (one, 1)) for one in takes)
    own, theirs = ways(GpuInstance(grids, PAPER, 3, (room, 5)))
    assert own == theirs


def test_in_one_wave_warps_have_the_numbers_of_their_slots() -> None:
    """Of eleven partitions the first warp of the first block and the last warp of the second block share one."""
    block = [Program.chain(letters) for letters in ("CC", "D", "E", "F", "G", "CCC")]
    machine = Machine.of(dict.fromkeys("CDEFG", 1))
    machine = replace(machine, partitions=11, assignment=WarpAssignment.MODULO)
    gpu = GpuInstance.of([(program, 1) for program in block], 2, machine, sms=1, resident=3)
    assert gpu.sm(2).partition_of_warp == (0, 6, 1, 7, 2, 8, 3, 9, 4, 10, 5, 0)
    assert checked_theorem_g.bound(gpu, ()) == theorem_g.theorem_g(gpu).upper >= 2 + 3


@pytest.mark.parametrize("machine", [PARTS, HELD_PARTS, replace(PARTS, partitions=1)])
@pytest.mark.parametrize("block", ["CL", "C|L"])
def test_partitions_are_counted_where_there_are_several_and_one_phase(machine: Machine, block: str) -> None:
    gpu = GpuInstance.of(programs(block), 9, machine, sms=1, resident=4)
    question = interference.HitBound(gpu.sm(4), ProofSteps(10**6))
    each = 3 if machine.partitions > 1 and block == "CL" else 2
    cost = checked_theorem_g._LapseCharge.of(gpu, of_block(gpu, gpu.grid))
    assert len(list(checked_theorem_g._bounds_by_prices(gpu, gpu.sm(4), cost))) == 1 + each * len(
        list(question.gates.prices())
    )


def test_what_is_rounded_apart_is_at_most_what_is_rounded_together() -> None:
    """The last block begins by 2 * 5/4 and takes 3/2: by 2, and 1."""
    gpu = GpuInstance.of(programs("C"), 3, PAPER, sms=1, resident=1)
    cost = checked_theorem_g._LapseCharge.of(gpu, gpu.sm(1))
    assert checked_theorem_g._upper(gpu, cost, Fraction(5, 4), Fraction(3, 2)) == 2 + 1
