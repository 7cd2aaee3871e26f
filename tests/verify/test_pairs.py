"""Theorem E in the checker: bundles that rest on weights, what a forger does to these, and bundles from before."""

import json
import random
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks import closed_form
from makespan.model.certificate import Weights
from makespan.model.instance import Instance
from makespan.model.machine import Latency, Machine, UnitClass
from makespan.model.result import Bounds, Result, Upper
from makespan.proof.bounds import theorem_e
from makespan.proof.engines import solve
from makespan.proof.engines.limits import Limits
from makespan.proof.engines.search import plain
from makespan.report.result.bundle import result_bundle
from makespan.verify import Outcome, digest, pairs, verify
from tests.forgery import Document, forged
from tests.oracle import brute_force

BEFORE = Path(__file__).parent.parent / "data" / "bundles_of_theorem_a.json"
UNITS = UnitClass("C", 1, 2, Latency(1, 3)), UnitClass("L", 2, 1, Latency(2, 2)), UnitClass("S", 2, 2)
MIXED = Machine("mixed", UNITS)


def by_weights(instance: Instance) -> Result:
    """A result that rests on its weights, with what costs nothing beside."""
    found = theorem_e(instance)
    assert found is not None
    result = solve(instance, backend="certificate", limits=Limits(0))
    bounds = Bounds(result.bounds.lower, found.upper)
    return replace(result, bounds=bounds, upper_evidence=Upper.THEOREM_E, weights=found.weights, history=())


@pytest.mark.parametrize(
    "instance",
    [
        Instance.of("CLLCLL", 4),
        Instance.of("CLCLLC", 5, MIXED),
        Instance.of("CLSC", 3, MIXED),
        Instance.of("CLL|CLC", 4, blocks=2),
        Instance.of("CLL|LC", 4, MIXED, blocks=2),
    ],
    ids=str,
)
def test_a_bundle_that_rests_on_weights_is_accepted(instance: Instance) -> None:
    verdict = verify(json.loads(json.dumps(result_bundle(by_weights(instance)))))
    assert verdict.outcome is Outcome.ACCEPTED, verdict
    assert dict(verdict.uppers)[Upper.THEOREM_E] == by_weights(instance).bounds.upper


def test_bundles_from_before_are_accepted() -> None:
    documents = json.loads(BEFORE.read_text())
    named = [document["result"]["evidence"]["upper"] for document in documents]
    named += [phase["evidence"] for document in documents for phase in document["phases"]]
    assert named.count("theorem-a") == 4
    for document in documents:
        assert "weights" not in document
        assert verify(document).outcome is Outcome.ACCEPTED


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda d: d.update(weights=[]), "theorem E needs weights"),
        (lambda d: d.pop("weights"), "theorem E needs weights"),
        (lambda d: d.update(weights={}), "weights is not a list"),
        (lambda d: d["weights"][0].pop("classes"), "weights lacks 'classes'"),
        (lambda d: d["weights"][0].update(classes=["C", "C"]), "the classes are not different ones"),
        (lambda d: d["weights"][0].update(classes=["C", "X"]), "the classes are not different ones"),
        (
            lambda d: d["weights"][0].update(classes=["C", "L", "S"], caps=[4] * 3),
            "several ports that are held for several cycles",
        ),
        (lambda d: d["weights"][0].update(classes=[], caps=[]), "increasing numbers from 0 to its cap 0"),
        (lambda d: d["weights"][0].pop("caps"), "weights lacks 'caps'"),
        (lambda d: d["weights"][0].update(caps=[4]), "caps is not a list of 2..2 items"),
        (lambda d: d["weights"][0].update(caps=[4, 1.5]), "caps holds something that is not a whole number"),
        (lambda d: d["weights"][0].update(caps=[3, 1]), "a cap is less than the mass of its class, or more than"),
        (lambda d: d["weights"][0].update(caps=[5, 1]), "a cap is less than the mass of its class, or more than"),
        (lambda d: d["weights"][0].update(caps=[4, 4]), "reported by theorem-e, which proves only"),
        (lambda d: d["weights"][0].update(caps=[4, 4], groups=[[0, 4, 0, 0]]), "more than the instructions behind it"),
        (lambda d: d["weights"][0]["groups"].append([0]), "groups is not a list of 1..1 items"),
        (lambda d: d["weights"][0]["groups"][0].pop(), "weights is not a list of 4..4 items"),
        (lambda d: d["weights"][0]["groups"][0].__setitem__(1, 2), "numbers from 0 to its cap 1"),
        (lambda d: d["weights"][0]["groups"][0].__setitem__(1, -1), "numbers from 0 to its cap 1"),
        (lambda d: d["weights"][0]["groups"][0].__setitem__(1, [1, 0]), "numbers from 0 to its cap 1"),
        (lambda d: d["weights"][0]["groups"][0].__setitem__(1, []), "numbers from 0 to its cap 1"),
        (lambda d: d["weights"][0]["groups"][0].__setitem__(1, 0.5), "weights holds something that is not a whole"),
        (lambda d: d["weights"][0]["groups"][0].__setitem__(1, True), "weights holds something that is not a whole"),
        (lambda d: d["weights"][0]["groups"][0].__setitem__(1, 0), "reported by theorem-e, which proves only"),
        (lambda d: d["instance"]["machine"].update(issue_width=9), "issue_width does not follow"),
    ],
)
def test_forged_weights_are_rejected(change: Callable[[Document], object], why: str) -> None:
    def apply(document: Document) -> None:
        change(document)

    checked = verify(forged(result_bundle(by_weights(Instance.of("CLSC", 3, MIXED))), apply))
    assert checked.outcome is Outcome.REJECTED
    assert re.search(why, checked.reason), checked


def test_an_issue_width_is_a_premise() -> None:
    document = result_bundle(by_weights(Instance.of("CLLC", 5, Machine.of({"C": 1, "L": 1}))))
    narrow = Machine("paper", Machine.of({"C": 1, "L": 1}).units, 1)
    other = result_bundle(solve(Instance.of("CLLC", 5, narrow)))
    other["weights"] = document["weights"]
    other["sha256"] = digest(other)
    assert (verify(other).reason or "").startswith("theorem E needs thresholds for an issue width that could bind")


@pytest.mark.parametrize("latency", [1, 2])
@pytest.mark.parametrize(("warps", "width"), [(2, 2), (3, 2), (4, 9)])
def test_an_issue_width_that_cannot_bind_is_as_good_as_none(warps: int, width: int, latency: int) -> None:
    units = UnitClass("C", 1, 1, Latency(latency, latency)), UnitClass("L", 1), UnitClass("S", 8)
    wide, free = (solve(Instance.of("CLLCL", warps, Machine("m", units, slots))) for slots in (width, None))
    assert (wide.bounds, wide.upper_evidence) == (free.bounds, free.upper_evidence)
    assert verify(json.loads(json.dumps(result_bundle(wide)))).outcome is Outcome.ACCEPTED


def test_a_class_that_is_not_counted_is_paid_for_two_cycles_where_a_slot_binds() -> None:
    """Without a pair: z takes 2 + 2 + 2 cycles, and two others 2 + 1 + 2 each; that much can happen."""
    units = UnitClass("C", 1, 1, Latency(2, 2)), UnitClass("L", 1, 2, Latency(2, 2))
    instance = Instance.of("LCL", 3, Machine("slot", units, 1))
    no_pairs = Weights(("L",), (1,), (((0,),) * 3,), (2,))
    assert brute_force(instance).upper == pairs.bound(instance, [no_pairs]) == 16


def test_more_paths_than_can_be_followed_prove_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """One walk on 40 places says what a warp has left, another one how long z takes alone; a step less is too few."""
    found = by_weights(Instance.of("CLLC" * 10, 9, Machine.of({"C": 2, "L": 3})))
    for most, outcome in ((80, Outcome.ACCEPTED), (79, Outcome.UNPROVEN)):
        monkeypatch.setattr(pairs, "MOST_STEPS", most)
        assert verify(json.loads(json.dumps(result_bundle(found))), most_states=1).outcome is outcome


def forgeries(count: int, seed: int) -> dict[str, int]:
    """Random weights for random claims: what is accepted is true, and no more than the weights prove."""
    draw, outcomes = random.Random(seed), {"accepted": 0, "rejected": 0}
    kinds = [closed_form.KINDS[name] for name in closed_form.OF_THEOREM_E]
    for number in range(count):
        instance = closed_form.instance(draw, kinds[number % len(kinds)])
        document = result_bundle(by_weights(instance))

        def change(copied: dict[str, Any]) -> None:
            for item in copied["weights"]:
                item["caps"] = [cap + (draw.random() < 0.2) * draw.randint(-1, 2) for cap in item["caps"]]
                for row in item["groups"]:
                    for _ in range(draw.randint(0, 3)):
                        row[draw.randrange(len(row))] = draw.choice((0, 1, 2, 3, [0, 1], [1, 2], [0, 1, 2]))
            if draw.random() < 0.5:
                result = copied["result"]
                upper = max(result["lower"], result["upper"] - draw.randint(0, 2))
                result.update(upper=upper, status="exact" if upper == result["lower"] else "bounded")

        document = forged(document, change)
        verdict = verify(document)
        assert verdict.outcome is not Outcome.UNPROVEN
        outcomes[verdict.outcome] += 1
        if verdict.outcome is Outcome.ACCEPTED:
            exact = plain.solve(instance, Limits()).upper
            assert exact is not None
            assert exact <= dict(verdict.uppers)[Upper.THEOREM_E] <= document["result"]["upper"]
    return outcomes


def test_hundreds_of_forgeries_are_rejected_unless_they_still_prove_the_claim() -> None:
    outcomes = forgeries(400, 7)
    print(outcomes)
    assert min(outcomes.values()) > 40


def test_phases_between_barriers_rest_on_weights() -> None:
    slow = Machine("slow", (UnitClass("C", 1), UnitClass("L", 1, 1, Latency(9, 9))))
    result = solve(Instance.of("CLCL|LLCCLCL", 9, slow), backend="certificate", limits=Limits(0))
    document = result_bundle(result)
    assert [phase["evidence"] for phase in document["phases"]] == ["theorem-e"] * 2
    assert verify(document).outcome is Outcome.ACCEPTED
    emptied = forged(document, lambda copied: copied["phases"][0].update(weights=[]))
    assert verify(emptied).reason == "theorem E needs weights"
