"""What is said of an instance, and of its parts, is proven again, or refused, or left unproven."""

from collections.abc import Callable
from typing import Any

import pytest

from makespan.model.instance import Instance
from makespan.model.machine import Machine, UnitClass, WarpAssignment
from makespan.model.result import Upper, UpperBound
from makespan.verify import Refused, partitions, phases, states, two_warps
from makespan.verify.proving import UpperBoundProver
from makespan.verify.refusal import ProofBudget
from makespan.verify.rule import ClaimedBound

BARRIER = Instance.of("CL|CL", 2)  # each phase takes 3 cycles, at most 4 by the sum of all instructions
HALVES = Machine("halves", (UnitClass("C", 1), UnitClass("L", 1)), partitions=2, assignment=WarpAssignment.MODULO)
APART = Instance.merged(
    [(Instance.of(s, 1).groups[0].program, n) for s, n in (("CCC", 1), ("L", 1), ("CC", 2))], HALVES
)


def proven(instance: Instance, claimed: int, evidence: str, **said: Any) -> UpperBoundProver:
    claim = ClaimedBound(instance, claimed, evidence, **{"most_states": 1000, "effort": ProofBudget(3), **said})
    prover = UpperBoundProver(claim)
    prover.prove()
    return prover


def of_phases(upper: int, evidence: str = "search") -> dict[str, Any]:
    return {"phases": tuple((question, UpperBound(upper, evidence)) for question in phases.questions(BARRIER) or ())}


def of_partitions(*uppers: int) -> dict[str, Any]:
    rows = zip(partitions.questions(APART) or (), uppers, strict=True)
    return {"partitions": tuple((question, UpperBound(upper, "search")) for question, upper in rows)}


def test_phases_add_up() -> None:
    assert proven(BARRIER, 6, Upper.PHASES, **of_phases(3)).uppers[Upper.PHASES] == 3 + 3
    with pytest.raises(Refused, match="upper 5 reported by phases, which add up to 6"):
        proven(BARRIER, 5, Upper.PHASES, **of_phases(3))
    with pytest.raises(Refused, match="upper 2 is wrong: a schedule takes 3 cycles"):
        proven(BARRIER, 4, Upper.PHASES, **of_phases(2))


def test_phases_of_which_too_little_is_said_do_not_refute_another_proof() -> None:
    prover = proven(BARRIER, 6, Upper.SEARCH, **of_phases(4, Upper.PESSIMISTIC))
    assert prover.upper == 6


def test_a_phase_that_cannot_be_proven_again_leaves_the_claim_unproven() -> None:
    """The first one takes 14 cycles, of which only 17 are proven with so few states."""
    instance = Instance.of("CLLCL|C", 4, Machine.of({"C": 2, "L": 1}))
    questions = phases.questions(instance)
    assert questions is not None
    said = tuple((one, UpperBound(upper, "search")) for one, upper in zip(questions, (14, 2), strict=True))
    prover = proven(instance, 16, Upper.PHASES, phases=said, most_states=20)
    assert prover.uppers[Upper.PHASES] == 17 + 2 > prover.claim.upper


def test_the_longest_partition_counts() -> None:
    assert [question.warps for question in partitions.questions(APART) or ()] == [2, 2]
    prover = proven(APART, 5, Upper.PARTITIONS, **of_partitions(5, 3))
    assert prover.uppers[Upper.PARTITIONS] == 5
    with pytest.raises(Refused, match="upper 4 reported by partitions, one of which takes up to 5"):
        proven(APART, 4, Upper.PARTITIONS, **of_partitions(5, 3))
    with pytest.raises(Refused, match="upper 4 is wrong: a schedule takes 5 cycles"):
        proven(APART, 4, Upper.PARTITIONS, **of_partitions(4, 3))
    with pytest.raises(Refused, match="none are given"):
        proven(APART, 5, Upper.PARTITIONS)


def test_partitions_of_which_too_much_is_said_do_not_refute_another_proof() -> None:
    assert proven(APART, 5, Upper.SEARCH, **of_partitions(9, 9)).upper == 5


def test_two_warps_are_followed_even_if_less_suffices() -> None:
    instance = Instance.of("CL", 2)
    assert proven(instance, 4, Upper.TWO_WARP_DP).uppers == {Upper.PESSIMISTIC: 4, Upper.TWO_WARP_DP: 3}
    assert proven(instance, 4, Upper.SEARCH).uppers == {Upper.PESSIMISTIC: 4}
    with pytest.raises(Refused, match="two-warp-dp does not apply to 3 warps"):
        proven(Instance.of("CL", 3), 6, Upper.TWO_WARP_DP)


def test_no_search_is_made_twice_or_where_all_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def counted(name: str, search: Callable[..., Any]) -> Callable[..., Any]:
        def made_again(*given: object) -> object:
            made.append(name)
            return search(*given)

        return made_again

    monkeypatch.setattr(two_warps, "two_warps", counted("two warps", two_warps.two_warps))
    monkeypatch.setattr(states, "shortest_and_longest", counted("states", states.shortest_and_longest))
    known = proven(Instance.of("CL", 2), 3, Upper.SEARCH)
    for _ in range(2):
        known.find_shortest()
    assert made == ["two warps"]
    unknown = proven(Instance.of("CLLCL", 4, Machine.of({"C": 2, "L": 1})), 14, Upper.SEARCH, most_states=10)
    unknown.find_shortest()  # of four warps only the states are asked
    assert made == ["two warps", "states"]
