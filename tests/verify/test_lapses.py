"""The checker on instances with lapses: honest bundles of random instances, and what a forger does to them."""

import copy
import random
from dataclasses import replace
from functools import cache
from typing import Any

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
from makespan.verify import Outcome, Refused, digest, instances, machine_form, verify
from makespan.verify.proving import RULES
from makespan.verify.rule import ClaimedBound
from tests.forgery import Document
from tests.schemas import published

NAMES = "code 0", "code 1", "constants 0"
ONE = PlaceLapses(credit=1)
QUEUES = (UnitQueue("memory", ("L",), 2, False),)
FORGED = 2000
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


# What a forger does


def less(draw: random.Random, number: int) -> int:
    """A smaller number, or where there is none one more."""
    return draw.randrange(number) if number else 1


def parts_of(document: Document) -> dict[str, Any]:
    found: dict[str, Any] = document["result"]["lapses"]
    return found


def set_upper(document: Document, upper: int) -> None:
    """Claim this bound, in each place that says so."""
    result = document["result"]
    result["upper"] = upper
    result["status"] = "exact" if upper == result["lower"] else "bounded"
    for step in result["history"]:
        step["upper"] = upper


def part_changed(draw: random.Random, document: Document) -> None:
    parts = parts_of(document)
    name = draw.choice(("credits", "windows", "misses"))
    parts[name] = less(draw, parts[name])


def base_changed(draw: random.Random, document: Document) -> None:
    base = parts_of(document)["base"]
    base["upper"] = less(draw, base["upper"])


def evidence_renamed(draw: random.Random, document: Document) -> None:
    names = ("pessimistic", "theorem-1s", "theorem-e", "theorem-l", "issue-slots", "search", "phases", "lapses")
    parts_of(document)["base"]["evidence"] = draw.choice(names)


def base_exact(_: random.Random, document: Document) -> None:
    """The bound without lapses as base, whatever proves it."""
    inner = document["result"]["without_lapses"]
    parts_of(document)["base"].update(upper=inner["upper"])


def base_by_search(_: random.Random, document: Document) -> None:
    inner = document["result"]["without_lapses"]
    parts_of(document)["base"] = {"upper": inner["upper"], "evidence": inner["evidence"]["upper"]}


def upper_changed(draw: random.Random, document: Document) -> None:
    set_upper(document, draw.randint(document["result"]["lower"], document["result"]["upper"]))


def inner_changed(draw: random.Random, document: Document) -> None:
    inner = document["result"]["without_lapses"]
    inner["upper"] = max(1, inner["upper"] - draw.randint(1, 2))
    inner["status"] = "exact" if inner["upper"] == inner["lower"] else "bounded"
    inner["history"] = []


def pessimistic_changed(draw: random.Random, document: Document) -> None:
    of = draw.choice((document["result"], document["result"]["without_lapses"]))
    of["pessimistic"] = less(draw, of["pessimistic"])


def lapses_left_out(_: random.Random, document: Document) -> None:
    """The instance keeps its lapses, but the claim is that without them."""
    result = document["result"]
    del result["lapses"]
    result.update(result.pop("without_lapses"))


def lapses_forgotten(_: random.Random, document: Document) -> None:
    """As before, with the name of the evidence."""
    result = document["result"]
    inner = result["without_lapses"]
    set_upper(document, inner["upper"])
    result["lapses"] = {"base": {"upper": inner["upper"], "evidence": "theorem-1s"}} | dict.fromkeys(
        ("credits", "windows", "misses"), 0
    )


def weights_dropped(_: random.Random, document: Document) -> None:
    document["weights"] = []


def of_some_group(draw: random.Random, document: Document) -> tuple[list[list[Any]], list[list[Any]]]:
    """The lines and the rows of the lapses of some group that has any."""
    group = draw.choice([group for group in document["instance"]["groups"] if "lapses" in group])
    return group["lapses"]["lines"], group["lapses"]["places"]


def place_changed(draw: random.Random, document: Document) -> None:
    _, rows = of_some_group(draw, document)
    row, number = draw.choice(rows)[1], draw.randrange(3)
    row[number] = draw.choice((0, less(draw, row[number]), row[number] + 1))


def lines_dropped(draw: random.Random, document: Document) -> None:
    _, rows = of_some_group(draw, document)
    draw.choice(rows)[1][3] = []


def window_changed(draw: random.Random, document: Document) -> None:
    lines, _ = of_some_group(draw, document)
    if lines:
        line = draw.choice(lines)
        line[1] = draw.choice((0, less(draw, line[1]), line[1] + 1))


def lines_made_one(draw: random.Random, document: Document) -> None:
    lines, _ = of_some_group(draw, document)
    if lines:
        draw.choice(lines)[0] = draw.choice(lines)[0]


def places_dropped(draw: random.Random, document: Document) -> None:
    _, rows = of_some_group(draw, document)
    at = draw.randrange(len(rows))
    rows[at][0] += draw.choice((-1, 1))


def row_dropped(draw: random.Random, document: Document) -> None:
    _, rows = of_some_group(draw, document)
    if len(rows) > 1:
        rows.pop(draw.randrange(len(rows)))


def all_dropped(draw: random.Random, document: Document) -> None:
    del draw.choice([group for group in document["instance"]["groups"] if "lapses" in group])["lapses"]


CHANGES = (
    part_changed, part_changed, base_changed, evidence_renamed, base_exact, base_by_search, upper_changed,
    inner_changed, pessimistic_changed, lapses_left_out, lapses_forgotten, weights_dropped, place_changed,
    place_changed, lines_dropped, window_changed, lines_made_one, places_dropped, row_dropped, all_dropped,
)  # fmt: skip


def made_consistent(document: Document) -> None:
    """Let the parts add up to the bound, and the bound be that of the history."""
    parts = document["result"].get("lapses")
    if parts:
        set_upper(document, parts["base"]["upper"] + parts["credits"] + parts["windows"] + parts["misses"])


def honest_bound(document: Document) -> int:
    """The smallest bound of the instance that a bundle states."""
    instance = instances.instance(document["instance"])
    return min(proof.upper for proof in lapse_proofs(instance))


def accepts(document: Document) -> bool:
    verdict = verify(document)
    if verdict.outcome is not Outcome.ACCEPTED:
        return False
    assert verdict.upper is not None
    assert verdict.upper <= document["result"]["upper"]
    return True


def has_lapses_left(document: Document) -> bool:
    return "lapses" in document["result"] and any("lapses" in group for group in document["instance"]["groups"])


def test_no_forged_bundle_proves_less_than_its_instance_has() -> None:
    """Whatever of it is accepted says no less than what the engines prove of the instance that it states."""
    draw, accepted = random.Random(7), 0
    honest = bundles(60)
    for _ in range(FORGED):
        told = copy.deepcopy(draw.choice(honest))
        changes = draw.sample(CHANGES, draw.choice((1, 1, 2)))
        for change in changes:
            if has_lapses_left(told):
                change(draw, told)
        if draw.random() < 0.7:
            made_consistent(told)
        told["sha256"] = digest(told)
        if accepts(told):
            accepted += 1
            assert told["result"]["upper"] >= honest_bound(told), [one.__name__ for one in changes]
    assert FORGED // 50 < accepted < FORGED // 2
