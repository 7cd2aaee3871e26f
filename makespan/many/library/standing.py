"""The claims about an instance together: the best known bounds, what beats them, and contradictions."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from makespan.many.library.claims import BoundClaim


@dataclass(frozen=True)
class InstanceStanding:
    """All claims about one instance, in the order in which they were made; the first of equal ones counts."""

    claims: tuple[BoundClaim, ...]

    @cached_property
    def lower(self) -> BoundClaim | None:
        """Return the claim with the largest lower bound."""
        # `max` keeps the first of equal ones, who made the claim first.
        return max(
            (claim for claim in self.claims if claim.lower is not None),
            key=lambda claim: claim.lower or 0,
            default=None,
        )

    @cached_property
    def upper(self) -> BoundClaim | None:
        """Return the claim with the smallest upper bound."""
        found = [claim for claim in self.claims if claim.upper is not None]
        return min(found, key=lambda claim: claim.upper or 0, default=None)

    @property
    def interval(self) -> tuple[int | None, int | None]:
        """Return the best known bounds, in cycles; None where there is none."""
        lower, upper = self.lower, self.upper
        return None if lower is None else lower.lower, None if upper is None else upper.upper

    @property
    def is_contradiction(self) -> bool:
        """Return whether two claims exclude each other, so that one of them is wrong."""
        lower, upper = self.interval
        return lower is not None and upper is not None and lower > upper

    @property
    def is_solved(self) -> bool:
        """Return whether the worst case is known."""
        lower, upper = self.interval
        return lower is not None and lower == upper

    @property
    def gap(self) -> float | None:
        """Return how far the upper bound is above the lower one, in percent of it."""
        lower, upper = self.interval
        return None if lower is None or upper is None else 100 * (upper - lower) / lower

    @property
    def best(self) -> tuple[BoundClaim, ...]:
        """Return the claims with the best known bounds, at most one for each side."""
        return tuple(claim for claim in self.claims if claim is self.lower or claim is self.upper)

    def beaten_by(self, other: "InstanceStanding") -> Iterator[tuple[str, int, BoundClaim]]:
        """Yield the bounds, `lower` or `upper`, that another standing improves: with what is known, and the claim."""
        low, high = other.lower, other.upper
        if low and self.lower and (low.lower or 0) > (known := self.lower.lower or 0):
            yield "lower", known, low
        if high and self.upper and (high.upper or 0) < (known := self.upper.upper or 0):
            yield "upper", known, high


def standings(names: Sequence[str], claims: Iterable[BoundClaim]) -> Mapping[str, InstanceStanding]:
    """Return the claims about each of these instances; claims about others are left out."""
    found: dict[str, list[BoundClaim]] = {name: [] for name in names}
    for claim in claims:
        if claim.instance in found:
            found[claim.instance].append(claim)
    return {name: InstanceStanding(tuple(about)) for name, about in found.items()}
