"""Claims of several solvers about one instance: the best bounds, what beats them, and what contradicts them."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from makespan.many.library.claims import BoundClaim
from makespan.many.library.judgement import (
    ClaimEvidence,
    ClaimProofs,
    InstanceStanding,
    backed_claim,
    best_claims,
    judge_claims,
)

Sides = tuple[int | None, int | None]


def claim(lower: int | None, upper: int | None, solver: str = "s", instance: str = "a") -> BoundClaim:
    return BoundClaim(
        instance=instance, digest="0" * 64, solver=solver, version="1", seconds=1.0, lower=lower, upper=upper
    )


sides = st.tuples(st.none() | st.integers(1, 12), st.none() | st.integers(1, 12)).filter(any)
several = st.lists(sides.map(lambda pair: claim(*pair)), max_size=5)


def interval(claims: list[BoundClaim]) -> Sides:
    """The largest lower and the smallest upper bound, found plainly."""
    lowers = sorted(one.lower for one in claims if one.lower is not None)
    uppers = sorted(one.upper for one in claims if one.upper is not None)
    return lowers[-1] if lowers else None, uppers[0] if uppers else None


@given(several, several)
def test_what_is_known_afterwards_is_what_all_claims_say_together(
    known: list[BoundClaim], new: list[BoundClaim]
) -> None:
    lower, upper = interval(known + new)
    told = judge_claims(["a"], known, new)
    assert InstanceStanding((*known, *new)).interval == (lower, upper)
    assert bool(told.contradictions) == (lower is not None and upper is not None and lower > upper)
    if told.contradictions:
        assert (told.contradictions[0].lower.lower, told.contradictions[0].upper.upper) == (lower, upper)
        assert not told.beaten
        return
    old = interval(known)
    assert {(one.side, one.known) for one in told.beaten} == {
        (side, before)
        for side, before, after in zip(("lower", "upper"), old, (lower, upper), strict=True)
        if None is not before != after
    }
    kept = best_claims(["a"], [*known, *new])
    assert len(kept) <= 2
    assert interval(list(kept)) == (lower, upper)


@given(several, several)
def test_who_was_first_keeps_the_honour(known: list[BoundClaim], again: list[BoundClaim]) -> None:
    kept = best_claims(["a"], [*known, *again])
    for one in kept:
        if interval(known) == interval([*known, *again]):
            assert any(one is first for first in known)


def test_claims_are_told_with_numbers_and_names() -> None:
    known, new = [claim(10, 20, "one")], [claim(12, None, "two"), claim(5, 6, "two", "b")]
    told = judge_claims(["a", "b"], known, new)
    assert list(map(str, told.beaten)) == ["BEATEN: a: lower 12 by two 1, 10 was known"]
    (wrong,) = judge_claims(["a"], known, [claim(21, None, "two")]).contradictions
    assert str(wrong) == (
        "CONTRADICTION: a: some schedule takes 21 cycles, says two 1, and none more than 20, says one 1 (no evidence"
        " named)"
    )


def test_a_word_alone_never_becomes_known() -> None:
    both = claim(10, 20)
    assert backed_claim(both, ClaimProofs()) is None
    assert backed_claim(both, ClaimProofs(lower=ClaimEvidence.SCHEDULE)) == claim(10, None)
    assert backed_claim(both, ClaimProofs(upper=ClaimEvidence.BUNDLE)) == claim(None, 20)
    assert backed_claim(both, ClaimProofs(ClaimEvidence.BUNDLE, ClaimEvidence.BUNDLE)) == both
    said = replace(both, evidence="search", bundle="0" * 64)
    assert backed_claim(said, ClaimProofs(lower=ClaimEvidence.SCHEDULE)) == claim(10, None)
    assert backed_claim(said, ClaimProofs(upper=ClaimEvidence.BUNDLE)) == replace(said, lower=None)
