"""From a bundle to a verdict: which claims follow from the evidence."""

from dataclasses import dataclass
from enum import StrEnum

from makespan.errors import BrokenPromiseError
from makespan.instance import Instance
from makespan.result import Upper
from makespan.verify import bounds, potential, reading
from makespan.verify.reading import Bundle, Claim
from makespan.verify.refusal import Refused
from makespan.verify.states import shortest_and_longest
from makespan.verify.witness import replay

MOST_STATES = 1_000_000
_BY_ITSELF = (Upper.PESSIMISTIC, Upper.THEOREM_A, Upper.POTENTIAL, Upper.TWO_WARP_DP)
_Interval = tuple[int, int]


class Outcome(StrEnum):
    """`unproven`: nothing is wrong, but not every claim could be re-proved within the limits."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"
    UNPROVEN = "unproven"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a bundle claims and what was proven again, in cycles.

    Args:
        reason: one line: what is proven, or why not.
        claim: what the result says; None when it could not be read.
        lower: makespan of the witness, executed anew; None when it is no evidence.
        uppers: the upper bounds that were proven again, by the name of their proof.
        best_case: interval of the shortest schedule that was proven again; None when nothing is claimed about it.
    """

    outcome: Outcome
    reason: str
    claim: Claim | None = None
    lower: int | None = None
    uppers: tuple[tuple[Upper, int], ...] = ()
    best_case: _Interval | None = None

    @property
    def upper(self) -> int | None:
        """The smallest upper bound that was proven again."""
        return min((value for _, value in self.uppers), default=None)

    def __str__(self) -> str:
        return f"{self.outcome}: {self.reason}"


def verify(document: object, *, most_states: int = MOST_STATES) -> Verdict:
    """Check every claim of a bundle.

    Args:
        document: what `parse` returned.
        most_states: how many states may be enumerated where only an enumeration decides.

    Raises:
        BrokenPromiseError: a proof and a schedule contradict each other, a bug of this checker.
    """
    claim = None
    try:
        bundle = reading.bundle(document)
        claim = bundle.claim
        return _Judge(bundle, most_states).verdict()
    except Refused as refusal:
        return Verdict(Outcome.REJECTED, " ".join(str(refusal).split())[:300], claim)


class _Judge:
    """Proofs made so far; each attribute only grows sharper."""

    def __init__(self, bundle: Bundle, most_states: int) -> None:
        self.instance: Instance = bundle.instance
        self.claim: Claim = bundle.claim
        self.bundle, self.most_states = bundle, most_states
        self.uppers: dict[Upper, int] = {}
        self.shortest: int | None = None  # of all schedules, exactly
        self.longest: int | None = None
        self.enumerated = False

    def verdict(self) -> Verdict:
        """Each claim in turn, the cheap ones first."""
        claim = self.claim
        lower = replay(self.instance, self.bundle.witness)
        pessimistic = bounds.pessimistic(self.instance)
        if pessimistic != claim.pessimistic:
            raise Refused(f"pessimistic is {pessimistic}, not {claim.pessimistic}")
        self.uppers[Upper.PESSIMISTIC] = pessimistic
        self._certificate()
        self._named()
        self._rest()
        best_case = self._best_case(lower)
        upper = min(self.uppers.values())
        if upper < lower:
            raise BrokenPromiseError(f"an upper bound of {upper} cycles, and a schedule of {lower}")
        gaps = []
        if upper > claim.upper:
            gaps.append(f"upper {claim.upper} reported by {claim.evidence}, re-proved only to {upper}")
        if best_case and claim.best_case and not _within(best_case, claim.best_case):
            gaps.append(f"best case {_text(claim.best_case)} reported, re-proved only to {_text(best_case)}")
        outcome = Outcome.UNPROVEN if gaps else Outcome.ACCEPTED
        return Verdict(outcome, "; ".join(gaps) or self._summary(), claim, lower, tuple(self.uppers.items()), best_case)

    def _certificate(self) -> None:
        """A certificate must hold and prove what it says, whether or not the claim rests on it."""
        certificate = self.bundle.certificate
        if certificate is not None:
            proven = potential.bound(self.instance, certificate)
            if proven > certificate.upper:
                raise Refused(f"the certificate says {certificate.upper} cycles and proves {proven}")
            self.uppers[Upper.POTENTIAL] = proven

    def _named(self) -> None:
        """Evidence that can be checked at any size must itself prove the claim."""
        name, claimed = self.claim.evidence, self.claim.upper
        if name is Upper.THEOREM_A:
            self._theorem_a()
            if name not in self.uppers:
                raise Refused("theorem A does not apply: it needs at most two classes, of one unit each")
        if name is Upper.TWO_WARP_DP:
            if self.instance.warps != 2:
                raise Refused(f"two-warp-dp does not apply to {self.instance.warps} warps")
            self._two_warps()
        if name is Upper.POTENTIAL and name not in self.uppers:
            raise Refused("upper is reported by potential, but there is no certificate")
        if name in _BY_ITSELF and self.uppers.get(name, 0) > claimed:
            raise Refused(f"upper {claimed} reported by {name}, which proves only {self.uppers[name]}")

    def _rest(self) -> None:
        """Other proofs, until one suffices."""
        attempts = (self._theorem_a, self._two_warps, self._enumerate)
        for attempt in attempts:
            if min(self.uppers.values()) > self.claim.upper:
                attempt()

    def _theorem_a(self) -> None:
        bound = bounds.theorem_a(self.instance)
        if bound is not None:
            self.uppers[Upper.THEOREM_A] = bound

    def _two_warps(self) -> None:
        if self.longest is None and (longest := bounds.two_warps(self.instance)) is not None:
            shortest = None if self.claim.best_case is None else bounds.two_warps(self.instance, min)
            self._use(Upper.TWO_WARP_DP, shortest, longest)

    def _enumerate(self) -> None:
        if self.longest is None and not self.enumerated:
            self.enumerated = True
            found = shortest_and_longest(self.instance, self.most_states)
            if found is not None:
                self._use(Upper.SEARCH, *found)

    def _use(self, name: Upper, shortest: int | None, longest: int) -> None:
        """Exact values refute as well as prove."""
        self.shortest, self.longest, self.uppers[name] = shortest, longest, longest
        if longest > self.claim.upper:
            raise Refused(f"upper {self.claim.upper} is wrong: a schedule takes {_cycles(longest)}")

    def _best_case(self, lower: int) -> _Interval | None:
        """What is proven of the shortest schedule, as far as the claim needs it."""
        claimed = self.claim.best_case
        if claimed is None:
            return None
        proven = bounds.best_case_floor(self.instance), lower
        if not _within(proven, claimed):
            self._two_warps()
            self._enumerate()
        if self.shortest is not None:
            proven = self.shortest, self.shortest
        if claimed[1] < proven[0] or claimed[0] > proven[1]:
            raise Refused(f"best case {_text(claimed)} is wrong: it is {_text(proven)}")
        return proven

    def _summary(self) -> str:
        bounds_text = (
            f"the worst case is {_cycles(self.claim.upper)}"
            if self.claim.lower == self.claim.upper
            else f"the worst case is at least {self.claim.lower} and at most {_cycles(self.claim.upper)}"
        )
        name = min(self.uppers, key=lambda proof: (self.uppers[proof] > self.claim.upper, proof != self.claim.evidence))
        how = _PROOFS[name]
        return f"{bounds_text}; the witness was executed, the upper bound proven by {how}"


_PROOFS = {
    Upper.PESSIMISTIC: "M^L + M^C",
    Upper.THEOREM_A: "theorem A",
    Upper.POTENTIAL: "its potential",
    Upper.TWO_WARP_DP: "all pairs of places",
    Upper.SEARCH: "enumeration of all states",
}


def _within(inner: _Interval, outer: _Interval) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1]


def _text(interval: _Interval) -> str:
    return str(interval[0]) if interval[0] == interval[1] else f"{interval[0]}..{interval[1]}"


def _cycles(count: int) -> str:
    return f"{count} cycle" if count == 1 else f"{count} cycles"
