"""Upper bounds of one instance, proven again by whatever evidence is given for them, or by other means."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import partial

from makespan.model.certificate import Certificate, Weights
from makespan.model.instance import Instance
from makespan.model.machine import SchedulerPromise
from makespan.model.result import Upper
from makespan.verify import bounds, multiprocessor, pairs, partitions, phases, potential, states
from makespan.verify.outcome import cycles
from makespan.verify.proofs import Pieces
from makespan.verify.refusal import ProofBudget, Refused, TooMuchWork

_BY_ITSELF = (Upper.PESSIMISTIC, *bounds.CLOSED_FORMS, Upper.THEOREM_E, Upper.POTENTIAL, Upper.TWO_WARP_DP)

MOST_STATES = 1_000_000

PROOFS = {  # in words
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


@dataclass(eq=False)
class UpperBoundProver:
    """Upper bounds of one instance that were proven again; each attribute only grows sharper.

    Args:
        instance: the question.
        claimed: the upper bound to be proven, in cycles.
        evidence: the name of the proof on which the claim rests.
        certificate: potentials, which must hold whether or not the claim rests on them.
        weights: of pairs; whatever they prove counts.
        phases: the phases between barriers, each with the bound that is claimed of it.
        partitions: the partitions that have nothing in common, each with the bound that is claimed of it.
        best_case: whether the shortest schedule matters, too.
        most_states: the number of states that may be enumerated.
        effort: the work that other proofs may take.
    """

    instance: Instance
    claimed: int
    evidence: str
    certificate: Certificate | None
    weights: tuple[Weights, ...]
    phases: Pieces = ()
    partitions: Pieces = ()
    _: KW_ONLY
    best_case: bool = False
    most_states: int
    effort: ProofBudget

    def __post_init__(self) -> None:
        self.is_multiprocessor = bounds.is_multiprocessor(self.instance)
        self.uppers: dict[Upper, int] = {}
        self.shortest: int | None = None  # of all schedules, exactly
        self.longest: int | None = None
        self.enumerated = False

    @property
    def upper(self) -> int:
        """Return the smallest upper bound that was proven."""
        return min(self.uppers.values())

    def prove(self) -> None:
        """Prove again: by cheap proofs, by the one that the claim names, then by others until one suffices.

        Raises:
            Refused: some evidence does not hold, or does not prove what it is said to.
        """
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
        if not self.phases:
            return
        # the bounds claimed of phases must hold, and add up to the claim if this rests on them (proposition P)
        lag = phases.lag(self.instance)
        total = sum(phase.upper for _, phase in self.phases) + lag
        proven = self._proven(self.phases)
        if self.evidence == Upper.PHASES and total > self.claimed:
            raise Refused(f"upper {self.claimed} reported by phases, which add up to {total}")
        self.uppers[Upper.PHASES] = sum(proven[question] for question, _ in self.phases) + lag

    def _partitions(self) -> None:
        if not self.partitions:
            return
        # the last partition ends with the whole, so the largest bound of them is one of the whole (proposition Q)
        longest = max(partition.upper for _, partition in self.partitions)
        proven = self._proven(self.partitions)
        if self.evidence == Upper.PARTITIONS and longest > self.claimed:
            raise Refused(f"upper {self.claimed} reported by partitions, one of which takes up to {longest}")
        self.uppers[Upper.PARTITIONS] = max(proven.values())

    def _proven(self, pieces: Pieces) -> dict[Instance, int]:
        different = dict(pieces)
        proven = dict[Instance, int]()
        for question, piece in different.items():
            prover = UpperBoundProver(
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
        """Refuse a claim whose evidence can be checked at any size and does not itself prove it."""
        name, claimed = self.evidence, self.claimed
        if name in bounds.CLOSED_FORMS and not self._closed_form(Upper(name)):
            raise Refused(f"{PROOFS[Upper(name)]} does not apply to this instance")
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
        """Find the longest schedule of two warps from all pairs of places, where they are not too many."""
        if (
            not self.is_multiprocessor
            and self.longest is None
            and (longest := bounds.two_warps(self.instance, max, self.effort))
        ):
            shortest = bounds.two_warps(self.instance, min, self.effort) if self.best_case else None
            self._use(Upper.TWO_WARP_DP, shortest, longest)

    def enumerate(self) -> None:
        """Find the longest and the shortest schedule from all states, where they are not too many."""
        if self.longest is None and not self.enumerated:
            self.enumerated = True
            walker = multiprocessor if self.is_multiprocessor else states
            found = walker.shortest_and_longest(self.instance, self.most_states)
            if found is not None:
                self._use(Upper.SEARCH, *found)

    def _use(self, name: Upper, shortest: int | None, longest: int) -> None:
        """Take exact values, which refute as well as prove."""
        # For a scheduler that promises something they are of any scheduler, and so only bounds.
        self.longest, self.uppers[name] = longest, longest
        if self.instance.machine.scheduler is not SchedulerPromise.ANY:
            return
        self.shortest = shortest
        if longest > self.claimed:
            raise Refused(f"upper {self.claimed} is wrong: a schedule takes {cycles(longest)}")
