"""What the checker computes is what the engines compute: two programs from one text of proofs, on random questions.

Where the paths of a warp that runs ahead part, the two join what they know of them in different ways, and only one of
both need be as sharp as the other.
"""

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from makespan.bounds import theorem_1s
from makespan.bounds.best_case import least_possible
from makespan.bounds.gpu_best_case import least_possible as least_possible_of_gpu
from makespan.bounds.partitions import partitions
from makespan.bounds.phases import phases
from makespan.bounds.theorem_g import theorem_g
from makespan.feature import MULTIPROCESSOR
from makespan.gpu import GpuInstance
from makespan.instance import Instance
from makespan.program import Program
from makespan.verify import interference, quickest
from makespan.verify import partitions as checked_partitions
from makespan.verify import phases as checked_phases
from makespan.verify import theorem_g as checked_theorem_g
from tests.strategies import gpus, multiprocessor_instances, shared_gpus

many = settings(max_examples=120)


def parts(program: Program) -> bool:
    """Whether the paths of a warp that runs ahead do."""
    return bool(program.timings) and not program.is_chain


@many
@given(multiprocessor_instances())
def test_bounds_of_multiprocessors(instance: Instance) -> None:
    assume(instance.features.keys() & MULTIPROCESSOR)
    found = theorem_1s(instance)
    assert found is not None
    if any(parts(group.program) for group in instance.groups):
        assert interference.bound(instance) <= found.upper
    else:
        assert interference.bound(instance) == found.upper
        assert quickest.floor(instance) == least_possible(instance)


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


@many
@given(st.one_of(gpus(most_slots=4, most_blocks=12), shared_gpus()))
def test_theorem_g(gpu: GpuInstance) -> None:
    proof = theorem_g(gpu)
    proven = checked_theorem_g.bound(gpu, proof.weights)
    if any(parts(program) for grid in gpu.grids for program, _ in grid.block):
        assert proven <= proof.upper
    else:
        assert proven == proof.upper
        assert quickest.floor_of_gpu(gpu) >= least_possible_of_gpu(gpu)
