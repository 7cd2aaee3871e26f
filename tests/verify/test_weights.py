"""What weights of theorem E prove, path by path from its text, against the checker, which goes from place to place."""

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise, product
from math import lcm
from typing import Any, NamedTuple

import pytest

from benchmarks import closed_form
from makespan.host.errors import InputError
from makespan.model.certificate import Weights
from makespan.model.instance import Instance
from makespan.model.machine import DELAY, Latency, Machine, UnitClass
from makespan.model.program import BARRIER, InstructionTiming, Program, ProgramPlace
from makespan.proof.bounds.pairing import Pairing
from makespan.proof.bounds.pessimistic import Chain, Rivals, rivals_by_group, waiting
from makespan.proof.bounds.thresholds import _ThresholdProof, _ThresholdQuestion
from makespan.verify import pairs
from makespan.verify.refusal import ProofBudget, ProofSteps, Refused, TooMuchWork
from makespan.verify.thresholds import MOST_THRESHOLD
from tests.bounds import test_thresholds as thresholds
from tests.oracle import brute_force

KIND = closed_form.Kind(ports=3, interval=4, latency=4, ranges=True, letters=6, automata=True)
WITH_BARRIERS = KIND._replace(barriers=True, letters=8)


def several(draw: random.Random, kind: closed_form.Kind, machine: Machine) -> Instance:
    """One to three groups of one to three warps, or of twice as many in two blocks."""
    units = "".join(machine.capacities)
    blocks = draw.choice((1, 1, 2)) if kind.barriers else 1
    while True:
        with suppress(InputError):  # a path of barriers alone
            groups = [(closed_form.program(draw, kind, units), draw.randint(1, 3)) for _ in range(draw.randint(1, 3))]
            return Instance.merged([(program, blocks * warps) for program, warps in groups], machine, blocks=blocks)


def countable(draw: random.Random) -> Machine:
    """Mostly of classes that pairs may count: one port, or held for a cycle."""
    units = []
    for name in "CLS"[: draw.choice((1, 2, 2, 3, 3))]:
        ports, interval = draw.choice(
            ((1, draw.randint(1, 4)), (draw.randint(1, 3), 1), (draw.randint(1, 3), 1), (2, 2))
        )
        least = draw.randint(1, 4)
        units.append(UnitClass(name, ports, interval, Latency(least, draw.randint(least, 4))))
    return Machine("m", tuple(units))


class Step(NamedTuple):
    """An instruction on a path: the phase that it is in, what the pair takes that begins with it."""

    unit: str
    phase: int
    taken: int
    turned: bool


Rows = Sequence[Sequence[int]]
"""The reserves of every place."""


class Overdrawn(Exception):
    """A pair takes more than there is."""


def step(
    program: Program, row: Rows, mass: dict[str, int], caps: dict[str, int], at: int, after: int, reserve: int
) -> tuple[int, int]:
    """What the pair of a place and the next one takes, and the reserve to which a warp comes there; see `Weights`."""
    unit, left = program.places[at].unit, mass.get(program.places[at].unit, 0) - reserve
    other, reserves = (program.places[after].unit, row[after]) if after < program.end else ("", (0,))
    wanted = max(0, -left) if other == unit else min(left, caps.get(other, 0))
    if wanted < 0 or (other == unit and wanted > reserves[-1]):
        raise Overdrawn
    enough = next((one for one in reserves if one >= wanted), reserves[-1])
    return 0 if other == unit else min(wanted, enough), enough


def steps(program: Program, path: Sequence[int], row: Rows, mass: dict[str, int], caps: dict[str, int]) -> list[Step]:
    """The instructions of a path; `turned` where a run begins that is not the first."""
    found, reserve, phase, before = list[Step](), row[path[0]][0], 0, ""
    for at, after in pairwise([*path, program.end]):
        unit = program.places[at].unit
        taken, reserve = step(program, row, mass, caps, at, after, reserve)
        if unit == BARRIER:
            phase += 1
        else:
            found.append(Step(unit, phase, taken, turned=before not in ("", unit)))
        before = unit
    return found


def paths(program: Program, at: int | None = None) -> Iterator[list[int]]:
    for after in program.starts if at is None else program.places[at].successors:
        if after == program.end:
            yield []
        else:
            yield from ([after, *rest] for rest in paths(program, after))


def by_the_text(instance: Instance, proofs: Sequence[Weights]) -> int | None:
    """The sharpest of what these weights prove for z of each group, or along a chain; None if they are none."""
    try:
        uppers = [_by_the_text(instance, proof) for proof in proofs]
    except Overdrawn:
        return None
    return min(map(max, uppers)) if instance.has_barriers else max(map(min, zip(*uppers, strict=True)))


def _by_the_text(instance: Instance, proof: Weights) -> list[int]:
    units = {unit.name: unit for unit in instance.machine.units}
    counted = [units[name] for name in proof.classes]
    scale = lcm(*(unit.capacity for unit in counted))
    mass = {unit.name: unit.interval * scale // unit.capacity for unit in counted}
    caps = dict(zip(proof.classes, proof.caps, strict=True))
    cost = {
        name: scale * (max(unit.latency.most, unit.interval) if name in mass else unit.latency.most)
        for name, unit in units.items()
    }
    late = {  # who may have issued last while the port was free
        unit.name: min(instance.warps - 1, unit.capacity * -(-unit.latency.most // unit.interval) - 1)
        for unit in counted
    }
    price = {name: (caps[name] - mass[name]) * late[name] for name in mass}
    walked = [
        [steps(group.program, path, row, mass, caps) for path in paths(group.program)]
        for group, row in zip(instance.groups, proof.reserves, strict=True)
    ]
    left = [max(sum(mass.get(step.unit, 0) - step.taken for step in path) for path in own) for own in walked]
    everybody = sum(group.warps * own for group, own in zip(instance.groups, left, strict=True))

    def at_the_end(step: Step) -> int:
        return units[step.unit].latency.most * scale - cost[step.unit]

    def paid(step: Step) -> int:
        return price.get(step.unit, 0) if step.turned else 0

    def outside(rivals: dict[str, Rivals]) -> int:
        rest = {name: one._replace(matters=one.matters and name not in mass) for name, one in rivals.items()}
        return waiting(replace(instance.machine, issue_width=None), rest, instance.warps - 1)

    if not instance.has_barriers:
        alone = [
            max(sum(cost[s.unit] + paid(s) for s in path) + at_the_end(path[-1]) for path in own) for own in walked
        ]
        return [
            (own + everybody - spared) // scale + outside(rivals)
            for own, spared, rivals in zip(alone, left, rivals_by_group(instance), strict=True)
        ]
    chain = Chain.of(instance)
    assert chain is not None
    longest = before = 0
    for phase in range(max(step.phase for own in walked for path in own for step in path) + 1):
        sums = []
        for path in (path for own in walked for path in own):
            here = [step for step in path if step.phase == phase]
            total = sum(cost[s.unit] - mass.get(s.unit, 0) + s.taken + paid(s) for s in here)
            sums.append((total, total + at_the_end(here[-1]) if here else 0))
        passing, ending = map(max, zip(*sums, strict=True))
        longest, before = max(longest, before + ending), before + passing
    return [(everybody + longest) // scale + outside(chain.rivals(instance))]


def drawn(draw: random.Random, instance: Instance) -> Weights:
    """Weights of some classes, as a scan finds them for some caps, or with a reserve or two that it does not."""
    simple = [unit for unit in instance.machine.units if unit.capacity == 1 or unit.interval == 1]
    counted = [unit for unit in simple if draw.random() < 0.9]
    scale = lcm(*(unit.capacity for unit in counted))
    mass = {unit.name: unit.interval * scale // unit.capacity for unit in counted}
    caps = {
        name: draw.choice((own, draw.randint(own, max(mass.values())), max(mass.values())))
        for name, own in mass.items()
    }
    rows = [list(Pairing.scan(group.program, mass, caps).reserves) for group in instance.groups]
    for program, row in zip((group.program for group in instance.groups), rows, strict=True):
        for at in range(program.end) if draw.random() < 0.7 else ():
            most = caps.get(program.places[at].unit, 0)
            if draw.random() < 0.6:
                row[at] = tuple(sorted(draw.sample(range(most + 1), draw.randint(1, min(3, most + 1)))))
    return Weights(tuple(mass), tuple(caps.values()), tuple(map(tuple, rows)))


@pytest.mark.parametrize("kind", [KIND, WITH_BARRIERS], ids=["plain", "barriers"])
def test_random_weights_prove_what_the_text_says(kind: closed_form.Kind) -> None:
    draw, found = random.Random(1), Counter[str]()
    for _ in range(400):
        instance = several(draw, kind, countable(draw))
        proofs = [drawn(draw, instance) for _ in range(draw.choice((1, 1, 2, 3)))]
        upper = by_the_text(instance, proofs)
        if upper is None:
            found["refused"] += 1
            with pytest.raises(Refused, match="a pair takes more than the instructions behind it have"):
                pairs.bound(instance, proofs)
        else:
            found["proven"] += 1
            assert pairs.bound(instance, proofs) == upper
    assert min(found.values()) > 15


def test_no_pair_takes_more_than_the_largest() -> None:
    """With whichever of its reserves a place is left."""
    draw, several_reserves = random.Random(13), 0
    for _ in range(300):
        one = several(draw, KIND, countable(draw))
        proof = drawn(draw, one)
        with suppress(Refused):
            judge = pairs.PairCharges(one, proof, ProofSteps(10**5))
            caps = dict(zip(proof.classes, proof.caps, strict=True))
            for walk, row in zip(judge.walks, proof.reserves, strict=True):
                taken = []
                for at, place in enumerate(walk.program.places):
                    for after, reserve in product(place.successors, row[at]):
                        with suppress(Overdrawn):
                            taken.append(step(walk.program, row, judge.mass, caps, at, after, reserve)[0])
                assert walk.largest() == max(taken)
                several_reserves += max(taken) > 0 and any(len(some) > 1 for some in row)
    assert several_reserves > 50


@pytest.mark.parametrize(
    ("behind", "cycles"),
    [
        ((3,), (1 + 3 + 3) + (4 - 2)),  # nobody needs the port at the end
        ((3, 4), (1 + 3 + 3) + 4),  # some warp has ended at the barrier, where others were to begin
    ],
)
def test_of_the_last_instruction_of_a_chain_the_latency_is_enough(behind: tuple[int, ...], cycles: int) -> None:
    """L takes 5 cycles, a C its port for 3 and its warp 1; behind the barrier comes C, or C or nothing."""
    machine = Machine("m", (UnitClass("C", 1, 3), UnitClass("L", 1, 1, Latency(5, 5))))
    places = ProgramPlace("L", (1,)), ProgramPlace("C", (2,)), ProgramPlace(BARRIER, behind), ProgramPlace("C", (4,))
    one = Instance.of(Program(places), 1, machine)
    no_pairs = Weights(("C", "L"), (3, 3), (((0,),) * 4,))
    assert pairs.bound(one, [no_pairs]) == by_the_text(one, [no_pairs]) == cycles >= brute_force(one).upper == 9


def test_a_chain_takes_as_long_as_all_that_is_counted() -> None:
    """Also where its only instruction is over before its port is free."""
    machine = Machine("m", (UnitClass("C", 1, 3),))
    assert pairs.bound(Instance.of("C|", 2, machine), [Weights(("C",), (3,), (((0,), (0,)),))]) == 2 * 3


def test_disjoint_pairs_are_of_classes_that_are_used() -> None:
    one = Instance.of("CL|L", 3, Machine.of({"C": 1, "S": 1, "L": 1}))
    assert pairs.disjoint(one) == Weights(("C", "L"), (1, 1), (((0, 1), (0, 1), (0,), (0, 1)),))


def divided(draw: random.Random) -> Instance:
    """More warps, partitions and groups than brute force could take."""
    small = thresholds.divided(draw)
    machine = replace(small.machine, partitions=draw.choice((1, 1, 2, 3)))
    groups = []
    for program, warps in ((group.program, group.warps) for group in small.groups):
        starts = tuple(at for at in range(program.end) if at == 0 or draw.random() < 0.2)
        groups.append((replace(program, starts=starts), warps * draw.randint(1, 5)))
    return Instance.merged(groups, machine)


def blended(draw: random.Random) -> Instance:
    """Strings and automata that block or run ahead, with one issue slot or without."""
    machine = thresholds.machine(draw, slot=draw.random() < 0.7)
    units = "".join(machine.capacities)
    groups = [
        (thresholds.program(draw, units, draw.randint(1, 7)), draw.randint(1, 4)) for _ in range(draw.randint(1, 3))
    ]
    return Instance.merged(groups, machine)


@pytest.mark.parametrize("drawn", [blended, divided])
def test_random_thresholds_prove_what_the_engines_say(drawn: Callable[[random.Random], Instance]) -> None:
    draw, found = random.Random(2), 0
    for _ in range(650):
        instance = drawn(draw)
        question = _ThresholdQuestion.of(instance)
        if question is None or not question.counted:
            continue
        if not (instance.machine.is_divided or instance.issue_width or instance.runs_ahead):
            continue  # no thresholds
        found += 1
        proofs = [
            _ThresholdProof(question, {**question.free, **{name: draw.randint(1, 9) for name in question.counted}})
            for _ in range(2)
        ]
        uppers = [proof.upper for proof in proofs]
        assert [pairs.bound(instance, [proof.weights]) for proof in proofs] == uppers
        assert pairs.bound(instance, [proof.weights for proof in proofs]) == min(uppers)
    assert found >= 300


# What thresholds need


FREE = UnitClass("S", 2, 2)
SLOT = Machine("slot", (UnitClass("C", 1, 2), UnitClass("L", 1, 3), FREE), 1)
PARTS = replace(SLOT, partitions=2)
PLAIN = Instance.of("CLSC", 6, SLOT)
FIT = Weights(("C", "L"), (1, 2), (((0,),) * 4,), (2, 3))
DOES_NOT_APPLY = "theorem E does not apply"
NOT_THESE = "with thresholds they are of all classes that bind, in the order of the machine"
OUT_OF_RANGE = "a cap is not the mass that pairs may take, or a threshold is out of range"


@pytest.mark.parametrize("machine", [SLOT, PARTS], ids=["slot", "partitions"])
@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"classes": ("L", "C")}, NOT_THESE),
        ({"classes": ("C", "S")}, NOT_THESE),
        ({"thresholds": (2,)}, NOT_THESE),
        ({"caps": (1, 1)}, OUT_OF_RANGE),
        ({"caps": (2, 3)}, OUT_OF_RANGE),
        ({"thresholds": (2, 0)}, OUT_OF_RANGE),
        ({"thresholds": (MOST_THRESHOLD + 1, 2)}, OUT_OF_RANGE),
        ({"thresholds": ()}, "theorem E needs thresholds for an issue width that could bind"),
        ({"thresholds": (1, MOST_THRESHOLD)}, None),
        ({}, None),
    ],
)
def test_weights_with_thresholds_are_as_the_machine_says(
    machine: Machine, change: dict[str, tuple[int | str, ...]], why: str | None
) -> None:
    instance, proof = replace(PLAIN, machine=machine), replace(FIT, **change)  # type: ignore[arg-type]
    if why is None:
        assert pairs.bound(instance, [FIT, proof]) is not None
    else:
        with pytest.raises(Refused, match=why):
            pairs.bound(instance, [FIT, proof])


@pytest.mark.parametrize("partitions", [1, 2])
@pytest.mark.parametrize(
    ("string", "change"),
    [
        ("CLSC", {"issue_width": 2}),
        ("CL|C", {}),
        (f"CL{DELAY}C", {"units": (*SLOT.units, UnitClass.of_delays(6))}),
    ],
)
def test_what_thresholds_do_not_know(string: str, change: dict[str, Any], partitions: int) -> None:
    instance = Instance.of(string, 6, replace(SLOT, partitions=partitions, **change))
    with pytest.raises(Refused, match=DOES_NOT_APPLY):
        pairs.bound(instance, [FIT])


def test_any_other_class_has_a_port_whenever_the_slot_is_free() -> None:
    """Two warps hold both ports of S when the third one comes: in three cycles, or in one where no slot is needed."""
    held = replace(SLOT, units=(*SLOT.units[:2], UnitClass("S", 2, 3)))
    with pytest.raises(Refused, match=DOES_NOT_APPLY):
        pairs.bound(replace(PLAIN, machine=held), [FIT])
    ahead = replace(Program.chain("CLSC"), timings=(InstructionTiming(),) * 4)
    with pytest.raises(Refused, match=DOES_NOT_APPLY):
        pairs.bound(Instance.of(ahead, 6, replace(SLOT, issue_width=None)), [replace(FIT, caps=(2, 3))])


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"classes": ("C", "X")}, "the classes are not different ones of the machine"),
        ({"classes": ("C", "C")}, "the classes are not different ones of the machine"),
        ({"classes": ("C", "S")}, "several ports that are held for several cycles"),
        ({"caps": (1, 3)}, "a cap is less than the mass of its class, or more than any mass"),
        ({"caps": (2, 4)}, "a cap is less than the mass of its class, or more than any mass"),
        ({"reserves": (((0,),) * 3,)}, "3 places of 4"),
        ({"reserves": (((0,), (0,), (1,), (0,)),)}, "increasing numbers from 0 to its cap 0"),
        ({"reserves": (((0,), (1, 0), (0,), (0,)),)}, "increasing numbers from 0 to its cap 3"),
        ({"reserves": (((0,), (1, 1), (0,), (0,)),)}, "increasing numbers from 0 to its cap 3"),
        ({"reserves": (((0,), (), (0,), (0,)),)}, "increasing numbers from 0 to its cap 3"),
        ({"reserves": (((0,), (0, 4), (0,), (0,)),)}, "increasing numbers from 0 to its cap 3"),
        ({"reserves": (((0,), (-1, 0), (0,), (0,)),)}, "increasing numbers from 0 to its cap 3"),
        ({"reserves": (((0,), (3,), (0,), (0,)),)}, None),
        ({"caps": (3, 3)}, None),
        ({"thresholds": (2, 3)}, "else none"),
    ],
)
def test_weights_are_as_the_machine_says(change: dict[str, Any], why: str | None) -> None:
    instance = replace(PLAIN, machine=replace(SLOT, issue_width=None))
    fit = Weights(("C", "L"), (2, 3), (((0,),) * 4,))
    if why is None:
        assert pairs.bound(instance, [fit, replace(fit, **change)]) is not None
    else:
        with pytest.raises(Refused, match=why):
            pairs.bound(instance, [fit, replace(fit, **change)])


def test_weights_prove_nothing_where_all_work_has_been_done() -> None:
    assert pairs.bound(PLAIN, [FIT], ProofBudget(1)) is not None
    with pytest.raises(TooMuchWork):
        pairs.bound(PLAIN, [FIT], ProofBudget(0))


def test_no_weights_prove_nothing() -> None:
    with pytest.raises(Refused, match="theorem E needs weights"):
        pairs.bound(PLAIN, [])
