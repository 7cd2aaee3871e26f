"""What makespan claims of an instance, held against its shortest and longest schedule."""

import json
import random
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

from benchmarks.crosscheck import Question, extremes, judged, misplaced
from benchmarks.explorer import Truth
from benchmarks.small_instances import improved, rebuilt
from makespan import Instance, Limits, Result, Status
from makespan.host.errors import UnsupportedError
from makespan.model.feature import MULTIPROCESSOR
from makespan.model.simulate import POLICIES, Choices, replay, run
from makespan.proof.bounds import CLOSED_FORMS, any_units, closed_form, least_possible, pessimistic, phases
from makespan.proof.bounds.pessimistic import KNOWS as ANY_UNITS_KNOWS
from makespan.proof.bounds.theorem_1s import bound as theorem_1s_of_any
from makespan.proof.engines import solve
from makespan.proof.engines.engine import Finding
from makespan.report.result.bundle import result_bundle
from makespan.verify import Outcome, parse, verify

MOST_DEFINED = 500
"""Steps of an instance of which the definition is asked, too: it takes a thousand times as long."""

BACKENDS = {"auto": 1, "search": 1, "certificate": 10, "cpsat": 50, "ilp": 50}
"""Those that solve instances, and every how many of the instances that are solved."""


class Claims(NamedTuple):
    """Cycles that no schedule exceeds, and that every schedule takes, by who says so."""

    most: dict[str, int]
    least: dict[str, int]


def claims(instance: Instance) -> Claims:
    """All that follows from the instance without a search."""
    plain = "theorem 1S" if MULTIPROCESSOR & instance.features.keys() else "M^L + M^C"
    most, least = {plain: pessimistic(instance)}, {"least possible": least_possible(instance)}
    if not instance.beyond(ANY_UNITS_KNOWS):
        most["any units"] = any_units(instance)
    for one in dict.fromkeys((instance, instance.relaxed)):
        for form in CLOSED_FORMS:
            if (found := form(one)) is not None:
                most[found.evidence] = min(found.upper, most.get(found.evidence, found.upper))
    if instance.has_barriers and (cut := phases(instance)) is not None:
        most["phases"] = sum(closed_form(phase.instance).upper + phase.lag for phase in cut)
        least["phases"] = sum(least_possible(phase.instance) for phase in cut)
    return Claims(most, least)


def faults(found: Claims, truth: Truth) -> Iterator[str]:
    """Whatever of them is not so."""
    for name, cycles in found.most.items():
        if cycles < truth.longest:
            yield f"{name} says at most {cycles} cycles, and a schedule takes {truth.longest}"
    for name, cycles in found.least.items():
        if cycles > truth.shortest:
            yield f"{name} says at least {cycles} cycles, and a schedule takes {truth.shortest}"


class Relative(NamedTuple):
    """Another instance, which takes at most so many cycles by what is claimed of the one from which it is made."""

    claim: str
    instance: Instance
    most: int


def relatives(draw: random.Random, instance: Instance) -> Iterator[Relative]:
    """What a robust bound and one for any units have to hold for; and a plain machine itself, for theorem 1S."""
    yield Relative("robust", improved(draw, instance), pessimistic(instance))
    if not instance.beyond(ANY_UNITS_KNOWS):
        same_throughput = replace(instance, machine=rebuilt(draw, instance.machine))
        yield Relative("any units", same_throughput, any_units(instance))
        yield Relative("theorem 1S", instance, theorem_1s_of_any(instance))


class Verdict(NamedTuple):
    """Of one look at an instance: what was looked at and came of it, to be counted; and what is wrong, if anything."""

    outcome: str
    fault: str = ""


def verdicts(
    draw: random.Random, instance: Instance, truth: Truth, backends: Iterable[str], seconds: float
) -> Iterator[Verdict]:
    """The definition, the run of a policy that is drawn, and what these backends say, each in so many seconds.

    The bundle of `auto` is verified.
    """
    question = Question(instance, truth.longest, truth.shortest)
    yield from _guarded("definition", _defined(instance, truth))
    yield from _guarded("policy", _run(draw, question))
    for backend in backends:
        yield from _guarded(backend, _solved(question, backend, seconds))


def _guarded(name: str, looks: Iterator[Verdict]) -> Iterator[Verdict]:
    """Whoever does not know what the instance has says nothing; any other exception is a finding."""
    try:
        yield from looks
    except UnsupportedError:
        yield Verdict(f"{name} refuses")
    except Exception as error:  # noqa: BLE001 - and the others go on
        yield Verdict(name, f"{name}: an exception, {error!r}")


def _defined(instance: Instance, truth: Truth) -> Iterator[Verdict]:
    if truth.steps <= MOST_DEFINED and (defined := extremes(instance)) is not None:
        differs = (defined.lower, defined.upper) != truth[:2]
        yield Verdict("definition", f"the definition says {defined}, the explorer {truth}" if differs else "")


def _run(draw: random.Random, question: Question) -> Iterator[Verdict]:
    policy = draw.choice(list(POLICIES))
    at_random = Choices("random", "random", seed=draw.randrange(1000))
    choices = draw.choice((Choices(), Choices("least", "shortest"), at_random))
    wrong = misplaced(question, replay(question.instance, run(question.instance, policy, choices)))
    yield Verdict("policy", f"a run of {policy} with {choices} takes {wrong}" if wrong else "")


def _solved(question: Question, backend: str, seconds: float) -> Iterator[Verdict]:
    result = solve(question.instance, backend=backend, best_case=True, limits=Limits(seconds))
    found = Finding(result.witness, result.bounds.upper, result.upper_evidence, best_case=result.best_case)
    said = "agrees" if result.status is Status.EXACT else "open"
    verdict = judged(question, found)
    yield Verdict(f"{backend} {said}", "" if verdict == said else f"{backend}: {verdict}")
    if backend == "auto":
        yield _verified(question, result)


def _verified(question: Question, result: Result) -> Verdict:
    """The bundle, by the checker; what it proves again may be less than what is claimed, but no less than the truth."""
    said = verify(parse(json.dumps(result_bundle(result)).encode()))
    fault = "" if said.outcome is not Outcome.REJECTED else f"the bundle is rejected: {said.reason}"
    if said.upper is not None and said.upper < question.worst:
        fault = f"verify proves {said.upper} cycles, and a schedule takes {question.worst}"
    if said.best_case is not None and question.best is not None and said.best_case[0] > question.best:
        fault = f"verify proves at least {said.best_case[0]} cycles, and a schedule takes {question.best}"
    return Verdict(f"bundle {said.outcome}", fault)
