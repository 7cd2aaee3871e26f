"""Closed forms, weights, potentials and questions against those of the checker, on more than brute force can take.

The two are written from one text and share no code. Where both leave a choice to the program, as weights of pairs do,
the checker is given those of the engines.
"""

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from benchmarks import closed_form, multiprocessors
from makespan.model.certificate import PotentialNode
from makespan.model.gpu import GpuInstance, Grid
from makespan.model.instance import Instance
from makespan.model.machine import PAPER, Latency, Machine, SchedulerPromise, UnitClass, WarpAssignment
from makespan.model.program import Program
from makespan.model.result import UpperBound
from makespan.proof.bounds import (
    best_case,
    issue_slots,
    pessimistic,
    tables,
    theorem_1s,
    theorem_e,
    theorem_f,
    theorem_g,
    theorem_l,
)
from makespan.proof.bounds.first_cycles import front
from makespan.proof.bounds.gates import PortGates
from makespan.proof.bounds.linear import Programme, SolutionValues
from makespan.proof.bounds.partitions import partitions
from makespan.proof.bounds.phases import phases
from makespan.proof.bounds.theorem_1s import one_after_another
from makespan.proof.bounds.thresholds import issue_gaps
from makespan.proof.engines.certificate import improve
from makespan.proof.engines.limits import Limits
from makespan.verify import alignment, fair, interference, lower_bounds, pairs, potential
from makespan.verify import issue_slots as checked_slots
from makespan.verify import partitions as checked_partitions
from makespan.verify import paths as checked_gaps
from makespan.verify import pessimistic as again
from makespan.verify import phases as checked_phases
from makespan.verify import theorem_g as checked_theorem_g
from makespan.verify.refusal import ProofBudget, ProofSteps
from tests import adversary
from tests.bounds import test_thresholds
from tests.potentials import Shape
from tests.verify.test_twins import ways


def barriered(draw: random.Random) -> Instance:
    """Longer programs with barriers, of which most run ahead: results are on their way from one phase to the next."""
    chosen = multiprocessors.machine(draw)
    classes, blocks = "".join(chosen.capacities), draw.choice((1, 1, 2))
    kinds = [
        multiprocessors.program(draw, classes, 9, barriers=True, runs_ahead=draw.random() < 0.7)
        for _ in range(draw.choice((1, 2)))
    ]
    return Instance.merged([(draw.choice(kinds), blocks) for _ in range(draw.randint(1, 3))], chosen, blocks=blocks)


REAL: dict[str, Callable[[random.Random], Instance]] = {
    "barriers between pipes": barriered,
    "multiprocessor": multiprocessors.instance,
    "divided": test_thresholds.divided,
    "ahead": lambda draw: test_thresholds.instance(draw, draw.randint(1, 3), draw.randint(2, 12)),
}
"""Machines of theorem 1S."""
BLOCKS: tuple[Callable[[random.Random], Instance], ...] = (
    *REAL.values(),
    *(partial(closed_form.instance, kind=closed_form.KINDS[name]) for name in ("all", "barriers", "capacities")),
)
SMALL = tuple(
    kind._replace(letters=4, warps=4, latency=min(kind.latency, 3))
    for kind in (closed_form.KINDS[name] for name in ("capacities", "all", "automata", "intervals", "slots, ranges"))
)
"""For potentials, whose situations grow fast."""


def crowded(draw: random.Random, one: Instance) -> Instance:
    """The same with more warps of some groups, launched in any order."""
    groups = tuple(replace(group, warps=group.warps * draw.choice((1, 1, 2, 3))) for group in one.groups)
    order = [number for number, group in enumerate(groups) for _ in range(group.warps // one.blocks)]
    draw.shuffle(order)
    return replace(one, groups=groups, order=tuple(order))


def value(bound: UpperBound | None) -> int | None:
    return None if bound is None else bound.upper


@pytest.mark.parametrize("kind", [kind for kind in closed_form.KINDS if kind not in REAL])
def test_simple_machines(kind: str) -> None:
    draw, chosen = random.Random(kind), closed_form.KINDS[kind]
    for _ in range(80):
        sized = chosen._replace(letters=draw.randint(1, chosen.letters + 5))
        one = crowded(draw, closed_form.instance(draw, sized))
        assert pessimistic(one) == again.pessimistic(one)
        found = theorem_e(one)
        assert found is None or pairs.bound(one, found.weights) == found.upper
        assert theorem_1s(one) is None
        fairly = replace(one, machine=replace(one.machine, scheduler=SchedulerPromise.FAIR))
        assert value(theorem_f(fairly)) == fair.theorem_f(fairly)
        assert value(theorem_l(one)) == alignment.bound(one, ProofBudget(1))
        assert value(issue_slots(one)) == checked_slots.bound(one)
        assert best_case.least_possible(one) == lower_bounds.least_makespan(one)
        same_questions(one)


def test_theorem_f_on_every_path() -> None:
    draw, kind = random.Random(1), closed_form.KINDS["slots, ranges"]._replace(automata=True)
    found = 0
    for _ in range(150):
        one = crowded(draw, closed_form.instance(draw, kind))
        fairly = replace(one, machine=replace(one.machine, scheduler=SchedulerPromise.FAIR))
        assert value(theorem_f(fairly)) == fair.theorem_f(fairly)
        found += fair.theorem_f(fairly) is not None
    assert found > 75


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", REAL)
def test_multiprocessors(kind: str, seed: int) -> None:
    draw = random.Random(f"{kind} {seed}")
    for _ in range(25):
        one = crowded(draw, REAL[kind](draw))
        first, found = theorem_1s(one), theorem_e(one)
        own, parts = pessimistic(one), any(g.program.timings and not g.program.is_chain for g in one.groups)
        if kind == "barriers between pipes" and parts:  # each joins in its own way what is on its way at a barrier
            assert interference.bound(one) <= own
        else:
            assert again.pessimistic(one) == own
        assert first is None or first.upper == own
        assert found is None or pairs.bound(one, found.weights) == found.upper
        if not parts:
            assert best_case.least_possible(one) == lower_bounds.least_makespan(one)
        same_questions(one)
        assert partitions(replace(one, machine=replace(one.machine, scheduler=SchedulerPromise.FAIR))) is None
        same_gaps(one)


@pytest.mark.parametrize(
    ("letters", "warps", "units", "upper"),
    [
        pytest.param("SLCCSC", 6, [("C", 1, 2, 1, 2), ("L", 1, 2, 2, 2), ("S", 2, 1, 1, 1)], 57, id="short gaps of z"),
        pytest.param("CLLSCLLL", 3, [("C", 1, 2, 1, 1), ("L", 2, 2, 1, 1), ("S", 1, 3, 1, 1)], 35, id="two ports"),
    ],
)
def test_thresholds_that_few_have(
    letters: str, warps: int, units: list[tuple[str, int, int, int, int]], upper: int
) -> None:
    classes = tuple(UnitClass(name, ports, interval, Latency(*latency)) for name, ports, interval, *latency in units)
    one = Instance.of(letters, warps, Machine("slot", classes, 1))
    found = theorem_e(one)
    assert found is not None
    assert found.upper == pairs.bound(one, found.weights) == upper


@pytest.mark.parametrize("seed", range(4))
def test_whole_gpus(seed: int) -> None:
    """Sums that are rounded in one step by one and in two by the other differ by a cycle, now and then."""
    draw, found = random.Random(seed), Counter[int]()
    for _ in range(25):
        gpu = whole_gpu(draw)
        own, theirs = ways(gpu)
        assert own[0] == theirs[0]  # one by one
        for proof in theorem_g._of_one_grid(gpu) if len(gpu.grids) == 1 else ():
            assert (
                0 <= proof.spared <= proof.block * proof.charged * (proof.counting in (theorem_g.ALL, theorem_g.PAIRS))
            )
        if all(program.is_chain for grid in gpu.grids for program, _ in grid.block):
            found.update(other - one for one, other in zip(own, theirs, strict=True))
            assert lower_bounds.least_makespan_of_gpu(gpu) == best_case.least_possible_gpu(gpu)
        proof = theorem_g.theorem_g(gpu)
        assert checked_theorem_g.bound(gpu, proof.weights) <= proof.upper
    assert found.keys() <= {0, 1}
    assert found[0] > 9 * found[1]


FOUR = Machine("four", (UnitClass("C", 1),), 1, partitions=4, assignment=WarpAssignment.ANY)
SPARE = Machine("spare", (UnitClass("C", 1), UnitClass("L", 1), UnitClass("S", 1, 2)))


@pytest.mark.parametrize(
    ("machine", "block", "resident", "count"),
    [
        pytest.param(FOUR, {"C" * 9: 1, "C": 3}, 3, 4, id="a warp that is heavier than the others of its block"),
        pytest.param(replace(FOUR, assignment=WarpAssignment.MODULO), {"CC": 1}, 2, 4, id="partitions without a warp"),
        pytest.param(Machine("held", (UnitClass("C", 4, 2),)), {"CCCC": 1}, 2, 3, id="ports of who has finished"),
        pytest.param(SPARE, {"CL": 2}, 4, 5, id="pairs beside a class that nobody uses"),
        pytest.param(PAPER, {"CLC": 1, "CCLLCC": 1}, 4, 5, id="pairs of different warps"),
        pytest.param(Machine.of({"C": 9, "L": 1}), {"CL": 1}, 4, 5, id="pairs beside a class that is never full"),
    ],
)
def test_gpus_that_few_are_like(machine: Machine, block: dict[str, int], resident: int, count: int) -> None:
    warps = [(Program.chain(letters), number) for letters, number in block.items()]
    own, theirs = ways(GpuInstance.of(warps, 99, machine, sms=1, resident=resident))
    assert own == theirs
    assert len(own) == count


@pytest.mark.parametrize(
    ("letters", "blocks", "takes", "room"),
    [
        pytest.param(("CC", "S"), (9, 9), ((1, 1), (1, 1)), (2, 2), id="one of them holds ports when it has finished"),
        pytest.param(("CLC", "C" * 6), (50, 1), ((2, 1), (1, 1)), (9, 9), id="there are fewer blocks than would fit"),
    ],
)
def test_grids_that_few_are_like(
    letters: tuple[str, str], blocks: tuple[int, int], takes: tuple[tuple[int, int], ...], room: tuple[int, int]
) -> None:
    machine = Machine("held", (UnitClass("C", 1), UnitClass("L", 1), UnitClass("S", 1, 3)))
    warps = [((Program.chain(one), 1),) for one in letters]
    own, theirs = ways(GpuInstance(tuple(map(Grid, warps, blocks, takes)), machine, 2, room))
    assert own == theirs


@pytest.mark.parametrize("blocks", [3, 4, 5])
@pytest.mark.parametrize(("block", "tail"), [("CC C", 2 + 2), ("CC C C", 2 + 1 + 1), ("C CC C CC", 2 + 2 + 2 + 2)])
def test_in_one_wave_as_in_several_warps_of_the_same_numbers_share_a_partition(
    block: str, tail: int, blocks: int
) -> None:
    """Both CC of two blocks; one of them with a C of each block; all four of them."""
    halves = Machine("halves", (UnitClass("C", 1),), 1, partitions=2, assignment=WarpAssignment.MODULO)
    programs = [(Program.chain(letters), 1) for letters in block.split()]
    gpu = GpuInstance.of(programs, blocks, halves, sms=2, resident=2)
    own, theirs = ways(gpu)
    assert own == theirs
    one_by_one, *_ = theorem_g._of_one_grid(gpu)
    assert one_by_one.tail == tail


def whole_gpu(draw: random.Random) -> GpuInstance:
    """One grid or several, of blocks whose warps are those of an instance."""
    one = crowded(draw, draw.choice(BLOCKS)(draw))
    block = [(group.program, 1) for group in one.groups for _ in range(group.warps // one.blocks)]
    draw.shuffle(block)
    sms, dispatch = draw.randint(1, 3), draw.choice((0, 0, 1, 3))
    if draw.random() < 0.7:
        blocks, resident = draw.choice((1, 3, 9, 40)), draw.randint(1, 4)
        return GpuInstance.of(block, blocks, one.machine, sms=sms, resident=resident, dispatch=dispatch)
    room, grids = (draw.randint(4, 9), draw.randint(3, 7)), []
    for _ in range(draw.choice((2, 2, 3))):
        some = tuple(draw.sample(block, draw.randint(1, len(block))))
        grids.append(Grid(some, draw.choice((1, 3, 20)), (draw.randint(1, room[0]), draw.randint(0, room[1]))))
    return GpuInstance(tuple(grids), one.machine, sms, room, dispatch)


@pytest.mark.parametrize("seed", range(4))
def test_potentials(seed: int) -> None:
    """Linear programmes of both have the same least bound: neither knows a cycle more or less than the other.

    One rounds tables to whole numbers, and so may say a cycle more.
    """
    draw, found = random.Random(seed), Counter[int]()
    while found.total() < 8:
        one = closed_form.instance(draw, draw.choice(SMALL))
        extra = draw.choice((0, 1))
        shape = Shape(one, extra)
        if len(list(shape.situations())) > 24:
            continue
        level = improve._Level((extra,) * len(shape.classes), 1, improve.stop_and_kind, improve.stop_and_kind, False)
        begins = front(shape.whole, 1)
        assert begins is not None
        made = improve._certificate(shape.whole, level, begins, Limits(60))
        best = adversary.best(one, partial(is_long, shape), extra)
        assert made is not None
        assert best is not None
        assert made.upper == potential.bound(one, made)
        found[made.upper - potential.bound(one, best)] += 1
    assert found.keys() <= {0, 1}
    assert found[1] <= 1


@pytest.mark.parametrize("seed", [1, 5, 6, 10])
def test_potentials_that_are_rounded_so_coarsely_that_it_matters(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What they still prove is less than the programme says, and both measure the same."""
    draw, found = random.Random(seed), 0
    monkeypatch.setattr(tables, "SCALE", 2)
    while found < 5:
        one = closed_form.instance(draw, draw.choice(SMALL))
        extra, last = (
            draw.choice((0, 1)),
            draw.choice((improve.stop_ahead, improve.stop_and_class, improve.stop_and_kind)),
        )
        shape = Shape(one, extra)
        if len(list(shape.situations())) > 30:
            continue
        level = improve._Level((extra,) * len(shape.classes), 1, improve.stop_and_kind, last, draw.random() < 0.5)
        begins = front(shape.whole, 1)
        assert begins is not None
        made = improve._certificate(shape.whole, level, begins, Limits(60))
        assert made is None or made.upper == potential.bound(one, made)
        found += made is not None


@pytest.mark.parametrize("seed", range(8))
def test_potentials_of_wrong_solutions(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the solver says, no bound is claimed that the checker would not prove; which knows fewer cycles.

    Where an order of tables is not kept it is restored, so that nearly all prove something.
    """
    draw, noise, found = random.Random(seed), np.random.default_rng(seed), Counter[bool]()
    right = Programme.minimise

    def wrong(*given: Any) -> SolutionValues | None:
        solution = right(*given)
        return None if solution is None else solution + noise.normal(0.0, 0.1, len(solution))

    monkeypatch.setattr(Programme, "minimise", wrong)
    for _ in range(40):
        one = closed_form.instance(draw, draw.choice(SMALL))
        extra, others = draw.choice((0, 0, 1)), draw.choice((improve.stop_ahead, improve.stop_and_kind))
        shape = Shape(one, extra)
        if len(list(shape.situations())) > 24:
            continue
        level = improve._Level((extra,) * len(shape.classes), 1, others, improve.stop_and_kind, draw.random() < 0.5)
        begins = front(shape.whole, draw.choice((1, 100)))
        assert begins is not None
        made = improve._certificate(shape.whole, level, begins, Limits(60))
        assert made is None or made.upper >= potential.bound(one, made)
        found[made is not None] += 1
    assert found[True] > 5 * found[False]


def is_long(shape: Shape, situation: PotentialNode) -> bool:
    return not shape.short(situation)


def same_questions(one: Instance) -> None:
    assert one_after_another(one, PortGates.of(one.machine)) == interference.one_after_another(one)
    own, theirs = checked_phases.cut(one), phases(one)
    if one.has_barriers and theirs is not None:
        assert own == [(phase.instance, phase.lag) for phase in theirs]
    assert (own is None) == (theirs is None)
    alone, cut = checked_partitions.questions(one), partitions(one)
    assert (alone is None) == (cut is None)
    assert alone is None or cut is None or {*alone} == {*cut.questions.values()}


def same_gaps(one: Instance) -> None:
    units = {unit.name: unit for unit in one.machine.units}
    for program in (group.program for group in one.groups if not group.program.has_barriers):
        found = issue_gaps(program, {name: unit.latency for name, unit in units.items()})
        assert found is not None
        assert [gap.most for gap in found] == checked_gaps.longest_gaps(program, units, ProofSteps(10**6))
        waits = [min(place.successors) < program.end for place in program.places]  # at the end nobody waits
        least = zip(found, checked_gaps.shortest_gaps(program, units), waits, strict=True)
        assert all(gap.least == other for gap, other, matters in least if matters)
