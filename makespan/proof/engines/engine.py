"""Engines as values: what they are given, what they find, and how they refuse an instance."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from makespan.model.certificate import Certificate, Weights
from makespan.model.feature import Features
from makespan.model.instance import Instance
from makespan.model.result import Bounds
from makespan.model.schedule import Schedule
from makespan.proof.engines.limits import Limits


@dataclass(frozen=True, slots=True)
class Finding:
    """Parts of an answer; what an engine could not prove in time is None.

    Args:
        witness: a schedule; its length is a lower bound on the worst case once it has been replayed.
        upper: a proven upper bound on the worst case, in cycles.
        evidence: what proves `upper`: an `Upper`, or the name of the engine where no checker can prove it again.
        certificate: the potentials that prove `upper`, where these do.
        weights: of pairs, where these do.
        best_case: proven interval of the shortest schedule.
    """

    witness: Schedule | None = None
    upper: int | None = None
    evidence: str | None = None
    certificate: Certificate | None = None
    weights: tuple[Weights, ...] = ()
    best_case: Bounds | None = None


@dataclass(frozen=True, slots=True)
class KnownBounds:
    """Bounds that are proven when an engine begins; it may prune by them, start from them, or ignore them.

    Args:
        witness: the longest schedule so far; it was replayed.
        upper: the smallest upper bound so far, in cycles.
        certificate: the potentials that prove `upper` or a larger bound, if there are any.
    """

    witness: Schedule
    upper: int
    certificate: Certificate | None = None


def _takes_all(*_: object) -> None:
    """Return no obstacle: the engine takes every instance, but it may prove nothing."""


@dataclass(eq=False)
class Engine:
    """An exact method or a heuristic; whatever is heavy is imported when it begins.

    Args:
        name: its evidence in results, where it gives no proof of its own kind; small letters, digits and hyphens.
        backend: the choice of users to which it belongs, and what results and refusals name. Where several engines
            share one, the first that can take an instance is asked.
        about: one line for the list of backends.
        knows: the features of instances that it reads rightly; it never sees one with any other.
        find: yields what it proves, as soon as it has proven it; nothing where the limits do not suffice.
        obstacle: says why it cannot take an instance, although it knows all of its features, as a sentence.
        find_best_case: returns the best case, as far as the limits suffice; None for an engine that looks for none.
    """

    name: str
    backend: str
    about: str
    knows: Features
    find: Callable[[Instance, KnownBounds, Limits], Iterator[Finding]]
    obstacle: Callable[[Instance, Limits], str | None] = _takes_all
    find_best_case: Callable[[Instance, Limits], Bounds | None] | None = None


def refusal(engine: Engine, instance: Instance, limits: Limits) -> str | None:
    """Return in a line why this engine must not or cannot take this instance; None if it can.

    This is the one place that keeps instances with features that an engine does not know from it.
    """
    if beyond := instance.beyond(engine.knows):
        return f"backend {engine.backend} does not know {', '.join(beyond)}"
    return engine.obstacle(instance, limits)
