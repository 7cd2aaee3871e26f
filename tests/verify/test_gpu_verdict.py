"""What follows from the evidence of a whole GPU, and what does not: one claim changed at a time."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from makespan.host.errors import BrokenPromiseError
from makespan.model.gpu import GpuResult
from makespan.model.result import Bounds
from makespan.model.simulate.gpu_run import run_gpu
from makespan.report.gpu.bundle import gpu_bundle
from makespan.verify import Outcome, Verdict, digest, theorem_g, verify
from makespan.verify.lower_bounds import least_makespan_of_gpu
from makespan.verify.outcome import UNCHECKED_OF_GPU
from tests.verify.test_gpu import of, of_one_wave, of_theorem_g

WAVE = of("CLC LLC", 2, 2, 2)


@cache
def waves() -> GpuResult:
    return of_one_wave(WAVE)


@cache
def later() -> GpuResult:
    """One block of two warps after another; a schedule may take 15 cycles, and theorem G is larger."""
    gpu = of("CL CL", 5, 1, 1)
    return of_theorem_g(gpu, run_gpu(gpu, "lrr"))


def judged(result: GpuResult, change: Callable[[dict[str, Any]], None] = lambda _: None) -> Verdict:
    document = gpu_bundle(result)
    change(document)
    return verify({**document, "sha256": digest(document)})


def test_a_verdict_names_the_proof_of_the_claim_where_it_suffices() -> None:
    assert judged(later()).reason.endswith("the upper bound proven by theorem G")
    assert judged(waves()).reason.endswith("proven by those of its SMs, which have all blocks from the beginning")
    assert dict(judged(waves()).uppers) == {"one-wave": waves().bounds.upper, "theorem-g": theorem_g.bound(WAVE, ())}
    assert judged(later()).unchecked == judged(waves()).unchecked == UNCHECKED_OF_GPU


def test_the_smaller_of_two_proofs_counts() -> None:
    """Both SMs have a result; theorem G proves less, but more than enough for a weaker claim."""
    large = theorem_g.bound(WAVE, ())
    assert large > waves().bounds.upper
    weaker = replace(waves(), bounds=Bounds(waves().bounds.lower, large))
    assert judged(weaker).upper == waves().bounds.upper
    assert judged(weaker).outcome is Outcome.ACCEPTED
    assert judged(weaker).reason.endswith("proven by those of its SMs, which have all blocks from the beginning")


@pytest.mark.parametrize(
    ("best_case", "outcome"),
    [
        ((0, 0), Outcome.ACCEPTED),
        ((-1, 0), Outcome.ACCEPTED),
        ((0, 1), Outcome.ACCEPTED),
        ((-2, -1), Outcome.REJECTED),
        ((-1, -1), Outcome.REJECTED),
        ((1, 2), Outcome.REJECTED),
    ],
)
def test_a_best_case_is_where_it_is_proven_to_be(best_case: tuple[int, int], outcome: Outcome) -> None:
    """The only schedule takes 5 cycles; the claim is so many off."""
    gpu = of("CCLLC", 1, 1, 1)
    shown = of_theorem_g(gpu, run_gpu(gpu, "lrr"))
    assert least_makespan_of_gpu(gpu) == shown.witness.makespan == 5  # type: ignore[union-attr]
    claimed = Bounds(5 + best_case[0], 5 + best_case[1])
    assert judged(replace(shown, best_case=claimed)).outcome is outcome


def test_a_best_case_of_which_less_is_proven_is_not_wrong() -> None:
    shown = later()
    least, most = least_makespan_of_gpu(shown.instance), shown.bounds.lower
    assert least < most - 1
    for best_case, outcome in (((least, most), Outcome.ACCEPTED), ((least + 1, most - 1), Outcome.UNPROVEN)):
        found = judged(replace(shown, best_case=Bounds(*best_case)))
        assert (found.outcome, found.best_case) == (outcome, (least, most))


def test_a_lower_bound_is_that_of_its_schedule() -> None:
    shown = later()
    for by in (-1, 1):
        lower = shown.bounds.lower + by
        claim = {"lower": lower, "upper": lower + 9, "status": "bounded"}
        other = judged(shown, lambda document, claim=claim: document["result"].update(claim))  # type: ignore[misc]
        why = f"the witness takes {shown.bounds.lower} cycles, the lower bound says {lower}"
        assert (other.outcome, other.reason) == (Outcome.REJECTED, why)


def test_an_upper_bound_that_is_not_proven_again_is_said() -> None:
    shown = later()
    proven = theorem_g.bound(shown.instance, shown.last_dispatch.weights if shown.last_dispatch else ())
    assert shown.bounds.lower < proven
    assert judged(replace(shown, bounds=Bounds(shown.bounds.lower, proven))).outcome is Outcome.ACCEPTED
    less = judged(replace(shown, bounds=Bounds(shown.bounds.lower, proven - 1)))
    why = f"upper {proven - 1} reported by theorem-g, re-proved only to {proven}"
    assert (less.outcome, less.reason, less.upper) == (Outcome.UNPROVEN, why, proven)


def test_a_proof_below_a_schedule_is_an_error_of_the_checker(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = later()
    for bound in (shown.bounds.lower, shown.bounds.lower - 1):
        monkeypatch.setattr(theorem_g, "bound", lambda _gpu, _weights, bound=bound: bound)
        if bound == shown.bounds.lower:
            assert judged(shown).outcome is Outcome.ACCEPTED
            continue
        with pytest.raises(BrokenPromiseError, match=f"an upper bound of {bound} cycles, and a schedule of"):
            judged(shown)


def test_blocks_of_one_wave_begin_as_late_as_the_dispatcher_may() -> None:
    """One block of each SM begins up to two cycles late; where there are two of them, they may begin apart."""
    alone = of_one_wave(of("LC", 2, 2, 1, dispatch=2))
    assert alone.bounds.upper == 2 + 2
    assert judged(alone).outcome is Outcome.ACCEPTED
    assert dict(judged(alone).uppers)["one-wave"] == 4
    less = {**gpu_bundle(alone), "witness": None}
    less["result"] |= {"lower": 1, "upper": 3, "status": "bounded"}
    refused = verify({**less, "sha256": digest(less)})
    assert refused.reason == "upper 3 reported by one-wave, but an SM may take up to 4 cycles"
    two = judged(of_one_wave(of("LC", 2, 2, 2, dispatch=1)))
    assert two.reason == "one-wave proves nothing where blocks of an SM may begin in different cycles"


@pytest.mark.parametrize("number", [0, 1])
def test_each_sm_is_proven_by_its_own_evidence(number: int) -> None:
    """One cycle less for an SM with one block, or with two, is not believed; one more is, and counts."""

    def change(by: int) -> Callable[[dict[str, Any]], None]:
        def changed(document: dict[str, Any]) -> None:
            each = document["sms"][number]
            each["upper"] += by
            document["result"]["upper"] = max(one["upper"] for one in document["sms"])
            document["result"]["status"] = "bounded"

        return changed

    assert judged(waves(), change(-1)).outcome is Outcome.REJECTED
    assert judged(waves(), change(1)).outcome is Outcome.ACCEPTED
