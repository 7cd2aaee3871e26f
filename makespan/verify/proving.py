"""Upper bounds of one instance, proven again by the rule that the evidence names, or by other rules."""

from collections.abc import Mapping

from makespan.model.instance import Instance
from makespan.model.machine import SchedulerPromise
from makespan.model.result import Upper
from makespan.verify import (
    alignment,
    fair,
    interference,
    issue_slots,
    pairs,
    partitions,
    pessimistic,
    phases,
    potential,
    states,
    two_warps,
)
from makespan.verify.outcome import cycles
from makespan.verify.refusal import Refused, TooMuchWork
from makespan.verify.rule import ClaimedBound, Extremes, Pieces, ProofRule

RULES: Mapping[Upper, ProofRule] = {
    rule.name: rule
    for rule in (
        pessimistic.RULE,
        potential.RULE,
        pairs.RULE,
        phases.RULE,
        partitions.RULE,
        pairs.RULE_OF_DISJOINT_PAIRS,
        issue_slots.RULE,
        fair.RULE,
        alignment.RULE,
        interference.RULE,
        two_warps.RULE,
        states.RULE,
    )
}
"""All rules by the name of their evidence, in the order in which they are applied: the slowest come last."""
_EXACT = (Upper.TWO_WARP_DP, Upper.SEARCH)


class UpperBoundProver:
    """Upper bounds of one claim that were proven again; each attribute only grows sharper.

    Attributes:
        uppers: the bounds by the name of their rule, in cycles.
        shortest: the makespan of the shortest schedule, exactly; None if it is not known.
    """

    def __init__(self, claim: ClaimedBound) -> None:
        self.claim = claim
        self.uppers: dict[Upper, int] = {}
        self.shortest: int | None = None
        self._applied = set[Upper]()
        self._is_exact = False

    @property
    def upper(self) -> int:
        """Return the smallest upper bound that was proven."""
        return min(self.uppers.values())

    def prove(self) -> None:
        """Apply the rules whose evidence is given, the one that the claim names, then others until one suffices.

        Raises:
            Refused: some evidence does not hold, or does not prove what it is said to.
        """
        for rule in RULES.values():
            if rule.is_given(self.claim) or (rule.name == self.claim.evidence and not rule.is_last):
                self._apply(rule)
        for rule in RULES.values():
            if self.upper > self.claim.upper:
                self._apply(rule)

    def find_shortest(self) -> None:
        """Apply the rules that find the shortest schedule, until one does."""
        for name in _EXACT:
            self._apply(RULES[name])

    def _apply(self, rule: ProofRule) -> None:
        claim, is_named = self.claim, rule.name == self.claim.evidence
        if rule.name in self._applied or (rule.name in _EXACT and self._is_exact):
            return
        self._applied.add(rule.name)
        try:
            proven = rule.prove(claim, self._proven)
        except TooMuchWork:
            return
        if proven is None:
            if is_named:
                rule.refuse(claim)
            return
        self.uppers[rule.name] = self._used(proven) if isinstance(proven, Extremes) else proven
        if is_named and not rule.may_fall_short and self.uppers[rule.name] > claim.upper:
            raise Refused(f"upper {claim.upper} reported by {rule.name}, which proves only {self.uppers[rule.name]}")

    def _used(self, found: Extremes) -> int:
        """Take exact values, which refute as well as prove."""
        self._is_exact = True
        # For a scheduler that promises something they are of any scheduler, and so only bounds.
        if self.claim.instance.machine.scheduler is SchedulerPromise.ANY:
            self.shortest = found.shortest
            if found.longest > self.claim.upper:
                raise Refused(f"upper {self.claim.upper} is wrong: a schedule takes {cycles(found.longest)}")
        return found.longest

    def _proven(self, pieces: Pieces) -> Mapping[Instance, int]:
        different = dict(pieces)
        proven = dict[Instance, int]()
        for question, piece in different.items():
            own = zip(partitions.questions(question) or (), piece.partitions, strict=False)
            said = ClaimedBound(
                question,
                piece.upper,
                piece.evidence,
                piece.certificate,
                piece.weights,
                partitions=tuple(own),
                most_states=self.claim.most_states // len(different),
                effort=self.claim.effort,
            )
            prover = UpperBoundProver(said)
            prover.prove()
            proven[question] = prover.upper
        return proven
