"""A rule says how evidence of one kind proves an upper bound; each theorem has its own, in a module of its own.

The module of a rule says what the evidence says, which inequality is checked, and why the bound follows. `proving` has
the table of all rules, and says in which order they are applied.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, NoReturn

from makespan.model.certificate import Certificate, Weights
from makespan.model.instance import Instance
from makespan.model.result import Upper, UpperBound
from makespan.verify.machine_form import has_lapses
from makespan.verify.refusal import ProofBudget, Refused

MOST_STATES = 1_000_000

Pieces = tuple[tuple[Instance, UpperBound], ...]
"""The question of every phase between barriers, or of every partition, with the bound claimed of it."""

ProvePieces = Callable[[Pieces], Mapping[Instance, int]]
"""Proves the bounds claimed of pieces again, each by its own evidence; the bounds that are proven, by question."""


class Extremes(NamedTuple):
    """The makespans of the shortest schedule, None if it was not asked for, and of the longest one, exactly."""

    shortest: int | None
    longest: int


@dataclass(frozen=True, eq=False)
class ClaimedBound:
    """An upper bound of one instance as a bundle claims it, and everything that is given to prove it.

    There is none of an instance with lapses, late lines or queues, because no rule of the table knows them. `lapses`
    adds what they cost to a bound without them.

    Args:
        instance: the question.
        upper: the bound, in cycles.
        evidence: the name of the rule on which the claim rests, or of an engine.
        certificate: potentials, which must hold whether or not the claim rests on them.
        weights: of pairs; whatever they prove counts.
        phases: the phases between barriers, each with the bound that is claimed of it.
        partitions: the partitions that have nothing in common, each with the bound that is claimed of it.
        best_case: whether the shortest schedule matters, too.
        most_states: the number of states that may be enumerated.
        effort: the work that all rules may take together.

    Raises:
        Refused: the instance has lapses.
    """

    instance: Instance
    upper: int
    evidence: str
    certificate: Certificate | None = None
    weights: tuple[Weights, ...] = ()
    phases: Pieces = ()
    partitions: Pieces = ()
    best_case: bool = False
    most_states: int = MOST_STATES
    effort: ProofBudget = field(default_factory=lambda: ProofBudget(1))

    def __post_init__(self) -> None:
        # every rule takes such a claim, so none can be applied to schedulers that may idle
        if has_lapses(self.instance):
            raise Refused("no rule but that of lapses knows lapses of schedulers, late lines and queues")


@dataclass(frozen=True)
class ProofRule:
    """A way in which evidence of one kind proves an upper bound.

    Args:
        name: the name of the evidence.
        words: the proof in words, for a verdict.
        prove: returns the bound that is proven, in cycles; None where a premise fails, or evidence is missing. It
            raises `Refused` if evidence is given that does not hold, and `TooMuchWork` if nothing is known.
        is_given: returns whether the claim has such evidence, which must hold even if the claim rests on another.
        absence: why a claim that names the rule is refused where `prove` returns None.
        may_fall_short: whether a claim that names the rule may still hold if the rule proves less.
        is_last: whether the rule is applied only where no other one suffices, even to a claim that names it.
    """

    name: Upper
    words: str
    prove: Callable[[ClaimedBound, ProvePieces], int | Extremes | None]
    is_given: Callable[[ClaimedBound], object] = lambda _: False
    absence: str = ""
    may_fall_short: bool = False
    is_last: bool = False

    def refuse(self, claim: ClaimedBound) -> NoReturn:
        """Refuse a claim that names the rule, of which the rule proves nothing."""
        reason = self.absence or f"{self.words} does not apply to this instance"
        raise Refused(reason.format(name=self.name, warps=claim.instance.warps))


def of_instance(name: Upper, words: str, bound: Callable[[Instance, ProofBudget], int | None]) -> ProofRule:
    """Return the rule of a theorem that the instance alone proves, for warps that block, on one partition."""
    return ProofRule(
        name,
        words,
        lambda claim, _: None if claim.instance.is_multiprocessor else bound(claim.instance, claim.effort),
    )
