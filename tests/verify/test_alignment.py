"""Theorem L in the checker: bundles that name it, and what a forger or a large string does to them."""

import json
import random
from collections import Counter
from dataclasses import replace

import pytest

from makespan.model.instance import Instance
from makespan.model.machine import Latency, Machine, UnitClass
from makespan.model.program import Program, ProgramPlace
from makespan.model.result import Bounds, Result, Upper
from makespan.proof.bounds import theorem_l
from makespan.proof.engines import solve
from makespan.proof.engines.limits import Limits
from makespan.report.result.bundle import result_bundle
from makespan.verify import Outcome, alignment, verify
from makespan.verify.refusal import ProofBudget
from tests.oracle import brute_force

LOADS = Machine("loads", (UnitClass("C", 1), UnitClass("L", 1, 1, Latency(60, 60))))
STRING = "CCLCCCLLCCLCCL"


def named(instance: Instance, less: int = 0) -> Result:
    """A result that rests on theorem L, with what costs nothing beside."""
    found = theorem_l(instance)
    assert found is not None
    result = solve(instance, backend="certificate", limits=Limits(0))
    bounds = Bounds(min(result.bounds.lower, found.upper - less), found.upper - less)
    return replace(
        result, bounds=bounds, upper_evidence=Upper.THEOREM_L, certificate=None, weights=(), phases=(), history=()
    )


def test_a_bundle_that_rests_on_it_is_accepted() -> None:
    result = solve(Instance.of(STRING, 6, LOADS))
    alone, spread, runs = 9 + 5 * 60, 6 - 1, (6 - 1) * (1 + 2 + 1 + 1)
    assert result.bounds == Bounds(alone + spread + runs, alone + spread + runs)
    assert result.upper_evidence is Upper.THEOREM_L
    verdict = verify(json.loads(json.dumps(result_bundle(result))))
    assert verdict.outcome is Outcome.ACCEPTED, verdict
    assert verdict.reason.endswith("the upper bound proven by theorem L")


def test_equals_wait_for_each_other_from_their_first_block_on() -> None:
    """c + (W-1)(1 + S) = 16 + 1 + 3 is attained; a path that came back to the first block would be worth its letter."""
    loads = replace(LOADS, units=(LOADS.units[0], UnitClass("L", 1, 1, Latency(5, 5))))
    instance = Instance.of("CLCLCCCC", 2, loads)
    assert brute_force(instance).upper == alignment.bound(instance, ProofBudget(1)) == 20


def test_it_is_the_bound_of_the_engines_and_applies_where_theirs_does() -> None:
    draw, found = random.Random(27), Counter[bool]()
    for _ in range(1500):
        latencies = draw.choice((1, 1, 3)), draw.randint(1, 40), draw.choice((1, 2, 9, 30))
        units = (UnitClass(name, 1, 1, Latency(one, one)) for name, one in zip("CLS", latencies, strict=True))
        strings = (
            "".join(draw.choices("CLS", (5, 3, 1), k=draw.randint(1, 14))) for _ in range(draw.choice((1, 2, 3)))
        )
        warps = [(Program.chain(string), draw.randint(1, 5)) for string in strings]
        instance = Instance.merged(warps, Machine("m", tuple(units)))
        bound = theorem_l(instance)
        assert alignment.bound(instance, ProofBudget(1)) == (bound and bound.upper), instance
        found[bound is None] += 1
    assert min(found.values()) > 300


@pytest.mark.parametrize(("string", "latency", "value"), [("CLLCLCCLLCCCL", 7, 61), ("CLCCLCLCLCLCLCCCL", 7, 77)])
def test_a_path_through_a_large_block_is_worth_more_than_one_through_a_later_small_one(
    string: str, latency: int, value: int
) -> None:
    """Of the jobs before one, in the same row or in earlier ones, the last is not the best."""
    loads = replace(LOADS, units=(LOADS.units[0], UnitClass("L", 1, 1, Latency(latency, latency))))
    instance = Instance.of(string, 3, loads)
    found = theorem_l(instance)
    assert alignment.bound(instance, ProofBudget(1)) == (found and found.upper) == value


def test_one_string_does_not_make_strings_of_all_programs() -> None:
    branch = Program((ProgramPlace("C", (1, 2)), ProgramPlace("C", (2,))))
    for groups in ([(Program.chain("C"), 1), (branch, 1)], [(branch, 1), (Program.chain("C"), 1)]):
        assert alignment.bound(Instance.merged(groups, LOADS), ProofBudget(1)) is None


def test_phases_may_rest_on_it() -> None:
    result = solve(Instance.of(f"{STRING}|{STRING}|CL", 6, LOADS))
    assert result.bounds == Bounds(2 * 339 + 66, 2 * 339 + 66)
    assert Upper.THEOREM_L in {phase.evidence for phase in result.phases}
    assert verify(json.loads(json.dumps(result_bundle(result)))).outcome is Outcome.ACCEPTED


def test_a_bound_that_is_too_low_is_rejected() -> None:
    loose = Instance.of("LCLLCCLCLLCC", 3, replace(LOADS, units=(LOADS.units[0], UnitClass("L", 1, 1, Latency(5, 5)))))
    document = result_bundle(named(loose, less=1))
    found = theorem_l(loose)
    assert found is not None
    verdict = verify(json.loads(json.dumps(document)))
    assert verdict.outcome is Outcome.REJECTED
    assert verdict.reason == f"upper {found.upper - 1} reported by theorem-l, which proves only {found.upper}"


def test_what_it_does_not_apply_to_is_rejected() -> None:
    many = replace(solve(Instance.of("CLLC", 90, LOADS), limits=Limits(0)), upper_evidence=Upper.THEOREM_L, history=())
    verdict = verify(json.loads(json.dumps(result_bundle(many))))
    assert verdict.reason == "theorem L does not apply to this instance"


def test_what_takes_too_long_is_unproven(monkeypatch: pytest.MonkeyPatch) -> None:
    document = json.loads(json.dumps(result_bundle(named(Instance.of(STRING, 6, LOADS)))))
    monkeypatch.setattr(alignment, "MOST_STEPS", 20)
    verdict = verify(document, most_states=10)
    assert verdict.outcome is Outcome.UNPROVEN
    assert "re-proved only to" in verdict.reason
