"""The result of a solve: a proven interval, and the evidence for both of its sides."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from makespan.host.errors import BrokenPromiseError
from makespan.model.assumptions import Assumption
from makespan.model.certificate import Certificate, Weights
from makespan.model.conditions import conditions
from makespan.model.instance import Instance
from makespan.model.machine import WarpAssignment
from makespan.model.schedule import Schedule
from makespan.model.wording import cycle_words, scope_words


class Status(StrEnum):
    """The status of an interval: `exact` if both proofs meet, else `bounded`."""

    EXACT = "exact"
    BOUNDED = "bounded"


class Upper(StrEnum):
    """The evidence of an upper bound for which an independent checker has a proof of its own.

    If only a solver vouches for a bound, its evidence is the name of the engine instead.
    """

    PHASES = "phases"
    PARTITIONS = "partitions"
    PESSIMISTIC = "pessimistic"
    THEOREM_E = "theorem-e"
    THEOREM_L = "theorem-l"
    THEOREM_F = "theorem-f"
    THEOREM_A = "theorem-a"  # of bundles from before theorem E, which contains it
    ISSUE_SLOTS = "issue-slots"
    THEOREM_1S = "theorem-1s"
    POTENTIAL = "potential"
    TWO_WARP_DP = "two-warp-dp"
    SEARCH = "search"
    LAPSES = "lapses"


class Anomaly(StrEnum):
    """A change that looks like an improvement and may yet lengthen a worst case. A bound that is robust still holds.

    Args:
        RUN_AHEAD: a warp does not wait for the latencies, stalls and results for which it waits in the model. It issues
            at most one instruction per cycle, and at a barrier it waits until all of them have passed.
        SHORTER_LATENCY: a latency is shorter than the least of the machine.
        SHORTER_INTERVAL: a port is held for fewer cycles.
        MORE_PORTS: a class has more ports, or the machine has more issue slots.
        FEWER_WARPS: there are fewer warps or instructions. Each path is still one of the program, and no partition has
            more warps.
    """

    RUN_AHEAD = "warps run ahead"
    SHORTER_LATENCY = "latencies are shorter"
    SHORTER_INTERVAL = "intervals are shorter"
    MORE_PORTS = "there are more ports or issue slots"
    FEWER_WARPS = "there are fewer warps"


@dataclass(frozen=True, slots=True)
class Bounds:
    """A proven interval, in cycles: `lower <= value <= upper`."""

    lower: int
    upper: int

    def __post_init__(self) -> None:
        if not 0 <= self.lower <= self.upper:
            raise BrokenPromiseError(f"not an interval: {self.lower}..{self.upper} cycles")

    @property
    def status(self) -> Status:
        """Return whether the interval is a single value."""
        return Status.EXACT if self.lower == self.upper else Status.BOUNDED

    def exceeded_by(self, bound: int) -> tuple[float, float]:
        """Return how far a bound is above the value, in percent of it: proven at least, and at most.

        >>> Bounds(40, 50).exceeded_by(60)
        (20.0, 50.0)
        """
        # the value lies between lower and upper, so the excess lies between these two
        least, most = (100 * (bound - value) / value for value in (self.upper, self.lower))
        return least, most

    def verdict(
        self,
        conditions: Iterable[str],
        *,
        of: str = "",
        interrupted: bool = False,
        without_lapses: "Bounds | None" = None,
    ) -> str:
        """Return what is proven of a worst case, as one line: the number, whether it is exact, and the conditions.

        Args:
            conditions: the conditions under which the number holds.
            of: the subject of the worst case, if it needs one.
            interrupted: whether the user stopped the solve.
            without_lapses: what is proven of the same warps without lapses, late lines and queues. None means that
                there are none of them.

        >>> Bounds(40, 50).verdict(["for this path only"], of="2 blocks on 1 SM")
        'bounded for this path only: the worst case of 2 blocks on 1 SM is at least 40 and at most 50 cycles'
        >>> Bounds(40, 50).verdict([], without_lapses=Bounds(40, 40))
        'bounded: the worst case is at least 40 and at most 50 cycles; without lapses it is exactly 40'
        """
        worst = cycle_words(self.upper)
        if self.status is Status.BOUNDED:
            worst = f"at least {self.lower} and at most {worst}"
        said = f"{self.status}{scope_words(conditions)}: the worst case{of and f' of {of}'} is {worst}"
        if (plain := without_lapses) is not None:
            said += f"; without lapses it is {'exactly' if plain.status is Status.EXACT else 'at most'} {plain.upper}"
        return said + " (interrupted)" * interrupted

    def __and__(self, other: "Bounds") -> "Bounds":
        """Keep what both prove; two proofs that contradict each other raise `BrokenPromiseError`."""
        # two sound intervals meet; if they do not, `Bounds` raises, as one of the proofs is wrong
        return Bounds(max(self.lower, other.lower), min(self.upper, other.upper))


@dataclass(frozen=True, slots=True)
class UpperBound:
    """A proven upper bound, in cycles, with its evidence; `Result` explains the evidence."""

    upper: int
    evidence: str
    certificate: Certificate | None = None
    weights: tuple[Weights, ...] = ()
    partitions: tuple["UpperBound", ...] = ()


class LapseProof(NamedTuple):
    """The parts of an upper bound that holds with lapses, late lines and queues (docs/theory.md, 17), in cycles.

    Args:
        base: a bound without lapses, of a theorem that still holds if warps are kept from issuing now and then. Where
            the machine has queues it counts them.
        credits: the cycles in which schedulers may lapse.
        windows: the cycles in which warps may wait for lines of code and constants that come once.
        misses: the cycles in which a warp may wait for lines that do not stay.
    """

    base: UpperBound
    credits: int
    windows: int
    misses: int

    @property
    def upper(self) -> int:
        """Return the upper bound on the worst case, in cycles."""
        return self.base.upper + self.credits + self.windows + self.misses


class Step(NamedTuple):
    """A moment at which `engine` made the interval smaller, `seconds` after the start; bounds are in cycles."""

    seconds: float
    engine: str
    lower: int
    upper: int
    evidence: str


@dataclass(frozen=True, slots=True)
class Result:
    """The worst-case makespan of `instance`, in cycles.

    Args:
        bounds: proven interval of the worst case.
        witness: a work-conserving schedule of `bounds.lower` cycles; replayed before it got here.
        upper_evidence: what proves `bounds.upper`.
        pessimistic: the bound M^L + M^C, for comparison, with what lapses add to it.
        best_case: proven interval of the shortest work-conserving schedule; None when not asked for.
        backend: the engine that was asked for or, with `auto`, the one that closed the gap.
        seconds: wall-clock time of the worst case, without that to load or compile what the engines consist of.
        assumptions: what must hold for the number to be a worst case of the source.
        interrupted: whether the user stopped the solve; the interval is proven all the same.
        certificate: the sharpest potentials found; they prove `bounds.upper` where `upper_evidence` is `potential`.
        weights: of pairs; they prove `bounds.upper` where `upper_evidence` is `theorem-e`, else there are none.
        phases: what is proven of each phase between barriers, different ones in order of appearance; their sum over
            all phases, and the cycles for which ports of earlier ones may keep a phase from beginning, prove
            `bounds.upper` where `upper_evidence` is `phases`.
        partitions: what is proven of each partition, different ones once, where they share nothing, see
            `makespan.proof.bounds.partitions`; the largest proves `bounds.upper` where `upper_evidence` is
            `partitions`.
        history: how the interval became smaller; the last step is the final one. With lapses the upper end is known
            from the beginning, and the lower ends are those of the steps without them.
        best_case_seconds: wall-clock time of the best case, which is not in `seconds`; None when not asked for.
        lapses: how lapses, late lines and queues are counted in `bounds.upper`; they prove it where `upper_evidence` is
            `lapses`. None for an instance that has none of them.
        without_lapses: the result of the same warps without any of them, whose witness is that of this result.
    """

    instance: Instance
    bounds: Bounds
    witness: Schedule
    upper_evidence: str
    pessimistic: int
    best_case: Bounds | None
    backend: str
    seconds: float
    assumptions: tuple[Assumption, ...]
    interrupted: bool = False
    certificate: Certificate | None = None
    weights: tuple[Weights, ...] = ()
    phases: tuple[UpperBound, ...] = ()
    partitions: tuple[UpperBound, ...] = ()
    history: tuple[Step, ...] = ()
    best_case_seconds: float | None = None
    lapses: LapseProof | None = None
    without_lapses: "Result | None" = None

    def __post_init__(self) -> None:
        if self.witness.makespan != self.bounds.lower:
            raise BrokenPromiseError(
                f"the witness takes {self.witness.makespan} cycles, the lower bound says {self.bounds.lower}"
            )

    def __repr__(self) -> str:
        return f"Result({self})"

    def __str__(self) -> str:
        """Return the verdict, one line: the number, whether it is exact, and under which conditions."""
        plain = None if self.without_lapses is None else self.without_lapses.bounds
        return self.bounds.verdict(self.caveats, interrupted=self.interrupted, without_lapses=plain)

    @property
    def status(self) -> Status:
        """Return whether worst case and proof meet."""
        return self.bounds.status

    @property
    def proven(self) -> UpperBound:
        """Return the upper side with its evidence, as part of the result of something larger."""
        return UpperBound(self.bounds.upper, self.upper_evidence, self.certificate, self.weights, self.partitions)

    @property
    def robust_against(self) -> tuple[Anomaly, ...]:
        """Return the anomalies that `bounds.upper` outlasts by its proof: those of `pessimistic`, or none.

        An equal number proves as much, whichever theorem came first. A sharper one leans on every rule of the machine.
        """
        # an upper bound no smaller than the pessimistic one follows from it, so it inherits its robustness; what
        # lapses add to that one is an upper end, too, and counts warps that are withheld however they run
        return robust_anomalies(self.instance) if self.bounds.upper >= self.pessimistic else ()

    @property
    def caveats(self) -> tuple[str, ...]:
        """Return the conditions without which the verdict would claim too much."""
        return conditions(self.assumptions)


def robust_anomalies(instance: Instance) -> tuple[Anomaly, ...]:
    """Return the anomalies against which the pessimistic bound is robust (docs/theory.md, 2 and 14).

    It is robust against all of them, with two exceptions. If warps that run ahead meet at barriers, the bound depends
    on the results for which they wait. And if warps are missing, the others may move to another partition, and share it
    with warps that are worse.
    """
    machine, found = instance.machine, list(Anomaly)
    if instance.runs_ahead and instance.has_barriers:
        found.remove(Anomaly.RUN_AHEAD)
    if machine.partitions > 1 and machine.assignment is not WarpAssignment.ANY and not instance.identical:
        found.remove(Anomaly.FEWER_WARPS)
    return tuple(found)
