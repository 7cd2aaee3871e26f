"""From a bundle to a verdict: which claims follow from the evidence."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from itertools import pairwise

from makespan.certificate import Certificate, Weights
from makespan.errors import BrokenPromiseError
from makespan.instance import Instance
from makespan.machine import Scheduler
from makespan.result import Upper
from makespan.verify import bounds, multiprocessor, pairs, partitions, phases, potential, reading, states
from makespan.verify.proofs import Pieces
from makespan.verify.reading import Bundle, Claim
from makespan.verify.refusal import Effort, Refused, TooMuchWork
from makespan.verify.witness import replay

MOST_STATES = 1_000_000
MOST_PROOFS = 10  # of the largest size
_BY_ITSELF = (Upper.PESSIMISTIC, *bounds.CLOSED_FORMS, Upper.THEOREM_E, Upper.POTENTIAL, Upper.TWO_WARP_DP)
_Interval = tuple[int, int]

UNCHECKED = (
    "assumptions", "interrupted", "seconds", "backend", "versions", "the machine's name",
    "when, by whom and how the steps of the history were found",
)  # fmt: skip
"""What a result says and no bundle can prove."""


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


class _Prover:
    """Upper bounds of one instance that were proven again; each attribute only grows sharper.

    Args:
        claimed: the upper bound to be proven, in cycles.
        evidence: what is said to prove it.
        certificate: potentials, which must hold whether or not the claim rests on them.
        weights: of pairs; whatever they prove counts.
        phases: the phases between barriers, and what is said of each.
        partitions: the partitions that have nothing in common, and what is said of each.
        best_case: whether the shortest schedule matters, too.
        most_states: how many states may be enumerated.
        effort: what other proofs may take.
    """

    def __init__(
        self,
        instance: Instance,
        claimed: int,
        evidence: str,
        certificate: Certificate | None,
        weights: tuple[Weights, ...],
        phases: Pieces = (),
        partitions: Pieces = (),
        *,
        best_case: bool = False,
        most_states: int,
        effort: Effort,
    ) -> None:
        self.instance, self.claimed, self.evidence = instance, claimed, evidence
        self.certificate, self.weights = certificate, weights
        self.phases, self.partitions, self.best_case = phases, partitions, best_case
        self.most_states, self.effort = most_states, effort
        self.is_multiprocessor = bounds.is_multiprocessor(instance)
        self.uppers: dict[Upper, int] = {}
        self.shortest: int | None = None  # of all schedules, exactly
        self.longest: int | None = None
        self.enumerated = False

    @property
    def upper(self) -> int:
        """The smallest upper bound that was proven."""
        return min(self.uppers.values())

    def prove(self) -> None:
        """The cheap proofs, the one that the claim names, then others until one suffices."""
        self.uppers[Upper.PESSIMISTIC] = bounds.pessimistic(self.instance)
        self._certificate()
        self._pairs()
        self._phases()
        self._partitions()
        self._named()
        closed_forms = (partial(self._closed_form, name) for name in bounds.CLOSED_FORMS)
        attempts: tuple[Callable[[], object], ...] = (*closed_forms, self.two_warps, self.enumerate)
        for attempt in attempts:
            if self.upper > self.claimed:
                attempt()

    def _certificate(self) -> None:
        if self.certificate is not None:
            if self.is_multiprocessor:
                raise Refused("potentials do not speak of partitions, resources, or warps that run ahead")
            proven = potential.bound(self.instance, self.certificate, self.effort)
            if proven > self.certificate.upper:
                raise Refused(f"the certificate says {self.certificate.upper} cycles and proves {proven}")
            self.uppers[Upper.POTENTIAL] = proven

    def _pairs(self) -> None:
        if self.weights or self.evidence == Upper.THEOREM_E:
            bound = pairs.bound(self.instance, self.weights, self.effort)
            if bound is not None:
                self.uppers[Upper.THEOREM_E] = bound

    def _phases(self) -> None:
        """What is said of the phases must hold, and add up to the claim if this rests on it."""
        if not self.phases:
            return
        lag = phases.lag(self.instance)
        total = sum(phase.upper for _, phase in self.phases) + lag
        proven = self._proven(self.phases)
        if self.evidence == Upper.PHASES and total > self.claimed:
            raise Refused(f"upper {self.claimed} reported by phases, which add up to {total}")
        self.uppers[Upper.PHASES] = sum(proven[question] for question, _ in self.phases) + lag

    def _partitions(self) -> None:
        """What is said of the partitions must hold, and be no more than the claim if this rests on it."""
        if not self.partitions:
            return
        longest = max(partition.upper for _, partition in self.partitions)
        proven = self._proven(self.partitions)
        if self.evidence == Upper.PARTITIONS and longest > self.claimed:
            raise Refused(f"upper {self.claimed} reported by partitions, one of which takes up to {longest}")
        self.uppers[Upper.PARTITIONS] = max(proven.values())

    def _proven(self, pieces: Pieces) -> dict[Instance, int]:
        """The upper bound of each different question that was proven."""
        different = dict(pieces)
        proven = dict[Instance, int]()
        for question, piece in different.items():
            prover = _Prover(
                question,
                piece.upper,
                piece.evidence,
                piece.certificate,
                piece.weights,
                partitions=tuple(zip(partitions.questions(question) or (), piece.partitions, strict=False)),
                most_states=self.most_states // len(different),
                effort=self.effort,
            )
            prover.prove()
            proven[question] = prover.upper
        return proven

    def _named(self) -> None:
        """Evidence that can be checked at any size must itself prove the claim."""
        name, claimed = self.evidence, self.claimed
        if name in bounds.CLOSED_FORMS and not self._closed_form(Upper(name)):
            raise Refused(f"{_PROOFS[Upper(name)]} does not apply to this instance")
        if name == Upper.TWO_WARP_DP:
            if self.instance.warps != 2:
                raise Refused(f"two-warp-dp does not apply to {self.instance.warps} warps")
            self.two_warps()
        if name == Upper.POTENTIAL and name not in self.uppers:
            raise Refused("upper is reported by potential, but there is no certificate")
        proven = {str(proof): value for proof, value in self.uppers.items()}
        if name in (Upper.PHASES, Upper.PARTITIONS) and name not in proven:
            raise Refused(f"upper is reported by {name}, but none are given")
        if name in _BY_ITSELF and proven.get(name, 0) > claimed:
            raise Refused(f"upper {claimed} reported by {name}, which proves only {proven[name]}")

    def _closed_form(self, name: Upper) -> bool:
        """Whether it applies, and its bound unless that takes too long."""
        if name in self.uppers:
            return True
        if self.is_multiprocessor != (name == Upper.THEOREM_1S):
            return False
        try:
            bound = bounds.CLOSED_FORMS[name](self.instance, self.effort)
        except TooMuchWork:
            return True
        if bound is not None:
            self.uppers[name] = bound
        return bound is not None

    def two_warps(self) -> None:
        """All pairs of places, where they are not too many."""
        if (
            not self.is_multiprocessor
            and self.longest is None
            and (longest := bounds.two_warps(self.instance, max, self.effort))
        ):
            shortest = bounds.two_warps(self.instance, min, self.effort) if self.best_case else None
            self._use(Upper.TWO_WARP_DP, shortest, longest)

    def enumerate(self) -> None:
        """All states, where they are not too many."""
        if self.longest is None and not self.enumerated:
            self.enumerated = True
            walker = multiprocessor if self.is_multiprocessor else states
            found = walker.shortest_and_longest(self.instance, self.most_states)
            if found is not None:
                self._use(Upper.SEARCH, *found)

    def _use(self, name: Upper, shortest: int | None, longest: int) -> None:
        """Exact values refute as well as prove; those of any scheduler only bound one that promises something."""
        self.longest, self.uppers[name] = longest, longest
        if self.instance.machine.scheduler is not Scheduler.ANY:
            return
        self.shortest = shortest
        if longest > self.claimed:
            raise Refused(f"upper {self.claimed} is wrong: a schedule takes {_cycles(longest)}")


class _Judge:
    """Every claim of a bundle in turn."""

    def __init__(self, bundle: Bundle, most_states: int) -> None:
        self.instance: Instance = bundle.instance
        self.claim: Claim = bundle.claim
        self.bundle = bundle
        self.prover = _Prover(
            bundle.instance,
            bundle.claim.upper,
            bundle.claim.evidence,
            bundle.certificate,
            bundle.weights,
            bundle.phases,
            bundle.partitions,
            best_case=bundle.claim.best_case is not None,
            most_states=most_states,
            effort=Effort(MOST_PROOFS),
        )

    def verdict(self) -> Verdict:
        """The cheap claims first."""
        claim, prover = self.claim, self.prover
        lower = replay(self.instance, self.bundle.witness)
        pessimistic = bounds.pessimistic(self.instance)
        # a real multiprocessor's may be larger: it is the same theorem, with a choice of prices
        if pessimistic != claim.pessimistic and not (pessimistic < claim.pessimistic and self.prover.is_multiprocessor):
            raise Refused(f"pessimistic is {pessimistic}, not {claim.pessimistic}")
        prover.prove()
        best_case = self._best_case(lower)
        upper = prover.upper
        if upper < lower:
            raise BrokenPromiseError(f"an upper bound of {upper} cycles, and a schedule of {lower}")
        _check_history(claim)
        gaps = []
        if upper > claim.upper:
            gaps.append(f"upper {claim.upper} reported by {claim.evidence}, re-proved only to {upper}")
        if best_case and claim.best_case and not _within(best_case, claim.best_case):
            gaps.append(f"best case {_text(claim.best_case)} reported, re-proved only to {_text(best_case)}")
        outcome = Outcome.UNPROVEN if gaps else Outcome.ACCEPTED
        uppers = tuple(prover.uppers.items())
        return Verdict(outcome, "; ".join(gaps) or self._summary(), claim, lower, uppers, best_case)

    def _best_case(self, lower: int) -> _Interval | None:
        """What is proven of the shortest schedule, as far as the claim needs it."""
        claimed = self.claim.best_case
        if claimed is None:
            return None
        proven = bounds.best_case_floor(self.instance), lower
        if not _within(proven, claimed):
            self.prover.two_warps()
            self.prover.enumerate()
        if (shortest := self.prover.shortest) is not None:
            proven = shortest, shortest
        if claimed[1] < proven[0] or claimed[0] > proven[1]:
            raise Refused(f"best case {_text(claimed)} is wrong: it is {_text(proven)}")
        return proven

    def _summary(self) -> str:
        bounds_text = (
            f"the worst case is {_cycles(self.claim.upper)}"
            if self.claim.lower == self.claim.upper
            else f"the worst case is at least {self.claim.lower} and at most {_cycles(self.claim.upper)}"
        )
        uppers, claim = self.prover.uppers, self.claim
        name = min(uppers, key=lambda proof: (uppers[proof] > claim.upper, proof != claim.evidence))
        how = _PROOFS[name]
        return f"{bounds_text}; the witness was executed, the upper bound proven by {how}"


_PROOFS = {
    Upper.PESSIMISTIC: "M^L + M^C",
    Upper.THEOREM_E: "theorem E",
    Upper.THEOREM_L: "theorem L",
    Upper.THEOREM_A: "theorem A",
    Upper.ISSUE_SLOTS: "theorem O1 or O2",
    Upper.THEOREM_F: "theorem F",
    Upper.THEOREM_1S: "theorem 1S",
    Upper.POTENTIAL: "its potential",
    Upper.TWO_WARP_DP: "all pairs of places",
    Upper.PHASES: "the phases between its barriers",
    Upper.PARTITIONS: "its partitions, one by one",
    Upper.SEARCH: "enumeration of all states",
}


def _check_history(claim: Claim) -> None:
    """No step gives up what the one before had proven, and the last one is the result; so all of them enclose it."""
    for number, (before, after) in enumerate(pairwise(claim.history), start=2):
        if not before.lower <= after.lower <= after.upper <= before.upper:
            raise Refused(f"history: {after.lower}..{after.upper} of step {number} is not within the step before")
    if claim.history:
        last = claim.history[-1]
        if (last.lower, last.upper, last.evidence) != (claim.lower, claim.upper, claim.evidence):
            raise Refused(f"history: it ends with {last.lower}..{last.upper} by {last.evidence}, not with the result")


def _within(inner: _Interval, outer: _Interval) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1]


def _text(interval: _Interval) -> str:
    return str(interval[0]) if interval[0] == interval[1] else f"{interval[0]}..{interval[1]}"


def _cycles(count: int) -> str:
    return f"{count} cycle" if count == 1 else f"{count} cycles"
