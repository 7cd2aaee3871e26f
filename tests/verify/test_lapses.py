"""The checker on instances with lapses: honest bundles of random instances, and what a forger does to them."""

import random
from dataclasses import replace
from functools import cache

import pytest

from benchmarks import multiprocessors
from makespan.model.instance import Group, Instance
from makespan.model.lapses import CacheLine, PlaceLapses
from makespan.model.machine import Machine, UnitClass, UnitQueue
from makespan.model.program import Program
from makespan.model.result import Bounds, LapseProof, Result, Step, Upper
from makespan.proof.bounds import lapse_proofs
from makespan.proof.engines import solve
from makespan.report.result.bundle import instance_data, result_bundle
from makespan.verify import Outcome, Refused, instances, machine_form, verify
from makespan.verify.proving import RULES, UpperBoundProver
from makespan.verify.rule import ClaimedBound
from tests.forgery import Document
from tests.schemas import published

NAMES = "code 0", "code 1", "constants 0"
ONE = PlaceLapses(credit=1)
QUEUES = (UnitQueue("memory", ("L",), 2, False),)
TWO = Machine("two schedulers", (UnitClass("C", 1),), issue_width=1, partitions=2)


def place_lapses(draw: random.Random) -> PlaceLapses:
    """Some places cost nothing."""
    names = sorted(draw.sample(NAMES, draw.choice((0, 0, 1, 1, 2))))
    return PlaceLapses(
        draw.choice((0, 0, 1, 2)),
        draw.choice((0, 0, 0, 1)),
        draw.choice((0, 0, 0, 1, 3)),
        tuple(CacheLine(name, draw.randint(1, 4)) for name in names),
    )


def lapsing(draw: random.Random, instance: Instance) -> Instance:
    """The same instance with lapses of some programs, of one of them for sure."""
    while True:
        groups = [
            replace(group, program=group.program.lapsing(tuple(place_lapses(draw) for _ in group.program.places)))
            if draw.random() < 0.8
            else group
            for group in instance.groups
        ]
        found = replace(instance, groups=tuple(groups))
        if any(group.program.has_lapses for group in groups):
            return found


def with_pairs(draw: random.Random) -> Instance:
    """A few warps that theorem E knows: strings that block, some with barriers, and no issue width."""
    machine = Machine("pairs", (UnitClass("C", 1, draw.randint(1, 2)), UnitClass("L", draw.randint(1, 2))))
    letters = "CL|" if draw.random() < 0.4 else "CL"
    strings = {draw.choice("CL") + "".join(draw.choices(letters, k=draw.randint(1, 5))) for _ in range(2)}
    return Instance.merged([(Program.chain(one), draw.randint(1, 3)) for one in sorted(strings)], machine)


def result_of(instance: Instance, proof: LapseProof | None = None) -> Result:
    """The result with lapses, of the smallest bound or of the one that this proof says."""
    inner = solve(instance.without_lapses)
    proofs = lapse_proofs(instance)
    chosen = proof or min(proofs, key=lambda one: one.upper)
    bounds = Bounds(inner.bounds.lower, chosen.upper)
    return replace(
        inner,
        instance=instance,
        bounds=bounds,
        upper_evidence=Upper.LAPSES,
        pessimistic=proofs[0].upper,
        best_case=None,
        certificate=None,
        weights=(),
        phases=(),
        partitions=(),
        history=(Step(0.0, "lapses", bounds.lower, bounds.upper, Upper.LAPSES),),
        lapses=chosen,
        without_lapses=inner,
    )


@cache
def questions(count: int) -> tuple[Instance, ...]:
    draw = random.Random(43)
    made = (with_pairs if number % 3 == 2 else multiprocessors.instance for number in range(count))
    return tuple(lapsing(draw, make(draw)) for make in made)


@cache
def bundles(count: int) -> tuple[Document, ...]:
    """Of every question a bundle with each proof."""
    return tuple(
        result_bundle(result_of(question, proof)) for question in questions(count) for proof in lapse_proofs(question)
    )


def test_honest_bundles_are_accepted() -> None:
    evidence = set()
    for document in bundles(60):
        verdict = verify(document)
        assert verdict.outcome is Outcome.ACCEPTED, (verdict, document["instance"])
        assert verdict.upper == document["result"]["upper"] or document["instance"]["machine"]["name"] == "random"
        evidence.add(document["result"]["lapses"]["base"]["evidence"])
        published("bundle-3").validate(document)
        published("result-2").validate(document["result"])
    assert evidence == {"pessimistic", "theorem-1s", "theorem-e"}


def test_what_is_read_is_what_was_written() -> None:
    for question in questions(60):
        again = instances.instance(instance_data(question))
        assert instance_data(again) == instance_data(question)
        assert [group.program.lapses for group in again.groups] == [group.program.lapses for group in question.groups]


@pytest.mark.parametrize("name", RULES)
def test_no_rule_can_be_applied_to_an_instance_with_lapses(name: Upper) -> None:
    """Every rule takes a claim, and there is none about such an instance."""
    bare = Instance.of("CLC", 2)
    claim = ClaimedBound(bare, 6, name)
    for groups, queues in (((Group(Program.chain("CLC").lapsing((ONE,) * 3), 2),), ()), (bare.groups, QUEUES)):
        lapsing_ = replace(bare, groups=groups, machine=replace(bare.machine, queues=queues))
        assert machine_form.has_lapses(lapsing_)
        with pytest.raises(Refused, match="no rule but that of lapses"):
            replace(claim, instance=lapsing_)
    UpperBoundProver(claim)
