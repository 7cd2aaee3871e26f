"""The policy over the engines: who is tried when, for how long, and how their findings become one result."""

from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from math import inf
from typing import NamedTuple, TypeAlias

from makespan.host.errors import InvalidScheduleError, UnsupportedError
from makespan.model.certificate import Certificate, Weights
from makespan.model.instance import Instance
from makespan.model.machine import SchedulerPromise
from makespan.model.result import Bounds, Result, Status, Step
from makespan.model.schedule import Schedule
from makespan.model.simulate import Choices, replay, shortest_run
from makespan.model.simulate.choices import choose_routes
from makespan.proof.bounds import least_possible, pessimistic, tightest
from makespan.proof.engines.backends import (
    AUTO,
    BACKENDS,
    BOUNDS,
    CERTIFICATES,
    CPSAT,
    ENGINES,
    LEVELS,
    SEARCH,
    TWO_WARPS,
    is_packed,
    is_small,
)
from makespan.proof.engines.engine import Engine, Finding, KnownBounds, refusal
from makespan.proof.engines.limits import Limits

SHARE_OF_TIME = 0.5
"""What certificates and beams may take of the time before the search begins."""

SHARE_BEFORE_VAST_SEARCH = 0.8
"""The same where there are too many states for a search to end."""

SHARE_OF_LEVELS = 0.25
"""What levels may take before certificates begin."""

SHARE_OF_BEST_CASE = 0.25
"""What is left for the best case, where it is asked for, however hard the worst case is."""

SHARE_BEFORE_TABLE = 0.05
"""The same where the search is a matter of a second: a certificate is still preferred, for it can be checked again."""

SHARE_OF_SPARE = 0.5
"""The same of what a table leaves over that will be full in time, and exact: the rest is for its being late."""

_FINDING_BEST_CASES = {AUTO: (TWO_WARPS, SEARCH), SEARCH.backend: (TWO_WARPS, SEARCH), BOUNDS: (TWO_WARPS,)}
"""Who is asked for the best case, the first that can take the instance and has one; others leave what is known."""

_Turn: TypeAlias = tuple[tuple[Engine, Limits], ...]
"""Engines that work side by side, each with what it may spend."""


class _PortfolioProof(NamedTuple):
    """The longest replayed schedule and the smallest proven upper bound so far; `plain` is M^L + M^C."""

    witness: Schedule
    upper: int
    evidence: str
    backend: str
    plain: int
    certificate: Certificate | None = None
    weights: tuple[Weights, ...] = ()
    best_case: Bounds | None = None
    history: tuple[Step, ...] = ()

    @property
    def closed(self) -> bool:
        return self.witness.makespan == self.upper

    @property
    def known(self) -> KnownBounds:
        return KnownBounds(self.witness, self.upper, self.certificate)


def solve(instance: Instance, *, backend: str, best_case: bool, budget: Limits) -> Result:
    """Return the worst case of an instance as a whole, see `phased.solve`.

    Raises:
        UnsupportedError: the engine that was asked for does not know what the instance has.
    """
    limits = budget
    if best_case:
        limits = budget.part(1 - SHARE_OF_BEST_CASE)
        limits.improved = budget.improved
    promises = instance.machine.scheduler is not SchedulerPromise.ANY
    proof = (_keeping_promise if promises else _worst_case)(instance, backend, limits)
    seconds = limits.elapsed
    shortest = _best_case(instance, backend, proof, budget) if best_case else None
    return Result(
        instance=instance,
        bounds=Bounds(proof.witness.makespan, proof.upper),
        witness=proof.witness,
        upper_evidence=proof.evidence,
        pessimistic=proof.plain,
        best_case=shortest,
        backend=backend if backend != AUTO else proof.backend,
        seconds=seconds,
        assumptions=instance.assumptions,
        interrupted=budget.interrupted,
        certificate=proof.certificate,
        weights=proof.weights,
        history=proof.history,
        best_case_seconds=budget.elapsed - seconds if best_case else None,
    )


def _worst_case(instance: Instance, backend: str, budget: Limits, enough: float = inf) -> _PortfolioProof:
    proof = _note_step(_cheap_proof(instance, budget), BOUNDS, budget)

    def current() -> _PortfolioProof:
        return proof

    with closing(_turns(instance, backend, current, budget)) as turns:
        for turn in turns:
            if proof.witness.makespan >= enough or (proof.closed and backend not in (each.backend for each, _ in turn)):
                break
            with closing(_findings(instance, turn, proof.known)) as findings:
                for backend_of_finding, found in findings:
                    before, proof = proof, _add(instance, proof, found, backend_of_finding)
                    if (proof.witness.makespan, proof.upper) != (before.witness.makespan, before.upper):
                        proof = _note_step(proof, backend_of_finding, budget)
                    if proof.closed:
                        break
    return proof


def _keeping_promise(instance: Instance, backend: str, budget: Limits) -> _PortfolioProof:
    """Return what the engines prove for a scheduler that promises something, of which they do not know.

    An upper bound for any scheduler is one for this one. A schedule counts if it happens to keep the promise.
    """
    # what holds for every scheduler holds for this one
    before = _note_step(_cheap_proof(instance, budget), BOUNDS, budget)
    if backend not in (AUTO, BOUNDS):
        _engine_of_backend(
            instance.relaxed, backend, budget
        )  # refuses what it refuses without the promise, closed or not
    if before.closed or budget.expired:
        return before
    any_scheduler = _worst_case(instance.relaxed, backend, budget.part(1), enough=before.upper)
    witness = any_scheduler.witness if _keeps_promise(instance, any_scheduler.witness) else None
    upper, evidence, weights = any_scheduler.upper, any_scheduler.evidence, any_scheduler.weights
    finding = Finding(witness, upper, evidence, any_scheduler.certificate, weights)
    proof = _add(instance, before, finding, any_scheduler.backend)
    if (proof.witness, proof.upper) == (before.witness, before.upper):
        return proof
    return _note_step(proof._replace(history=before.history), proof.backend, budget)


def _keeps_promise(instance: Instance, witness: Schedule) -> bool:
    try:
        replay(instance, witness)
    except InvalidScheduleError:
        return False
    return True


def _best_case(instance: Instance, backend: str, proof: _PortfolioProof, limits: Limits) -> Bounds:
    """Return an interval between the work to be done and the fastest policy; exact where an engine is in time."""
    known = fastest_known(instance, proof.witness, limits)
    if proof.best_case is not None:  # by the way
        known &= proof.best_case
    for engine in _FINDING_BEST_CASES.get(backend, ()):
        if known.status is Status.EXACT or limits.expired:
            break
        if engine.find_best_case is None or refusal(engine, instance, limits) is not None:
            continue
        if (found := engine.find_best_case(instance, limits)) is not None:
            return known & found
    return known


def _note_step(proof: _PortfolioProof, backend: str, budget: Limits) -> _PortfolioProof:
    """Return the proof with its interval at the end of its history, and told."""
    step = Step(round(budget.elapsed, 6), backend, proof.witness.makespan, proof.upper, proof.evidence)
    budget.improved(step)
    return proof._replace(history=(*proof.history, step))


def _turns(
    instance: Instance, backend: str, current: Callable[[], _PortfolioProof], limits: Limits
) -> Generator[_Turn, None, None]:
    """Yield the engines in their turns, each chosen by what is known once the ones before have ended."""
    if backend not in (AUTO, BOUNDS):
        yield ((_engine_of_backend(instance, backend, limits), limits),)
        return
    auto = backend == AUTO
    is_quick = auto and is_small(instance, limits)
    # exact and quick where it applies, so it goes first
    if refusal(TWO_WARPS, instance, limits) is None:
        yield ((TWO_WARPS, limits),)
    if is_quick:
        yield ((SEARCH, limits),)
    if auto and not current().closed and refusal(LEVELS, instance, limits) is None:
        yield ((LEVELS, limits.part(SHARE_OF_LEVELS)),)
    if limits.expired:
        return
    if not current().closed and refusal(CERTIFICATES, instance, limits) is None:
        yield ((CERTIFICATES, _before_search(instance, limits) if auto else limits),)
    if auto and not is_quick and not _is_futile(instance, limits):
        yield from _search_and_model(instance, current, limits)


def _is_futile(instance: Instance, limits: Limits) -> bool:
    """Return whether a whole multiprocessor has more states than the search could ever visit."""
    with limits.preparing():
        from makespan.proof.engines.search import sm_states
    return instance.is_multiprocessor and sm_states.is_vast(instance)


def _engine_of_backend(instance: Instance, backend: str, limits: Limits) -> Engine:
    """Return the engine that a user has asked for.

    Raises:
        UnsupportedError: it cannot take the instance; the message names those that can.
    """
    reasons = []
    for engine in (engine for engine in ENGINES if engine.backend == backend):
        if (reason := refusal(engine, instance, limits)) is None:
            return engine
        reasons.append(reason)
    able = {each.backend for each in ENGINES if refusal(each, instance, limits) is None} | {AUTO, BOUNDS}
    *others, last = (name for name in BACKENDS if name in able)
    raise UnsupportedError(f"{'; '.join(reasons)}; use backend {', '.join(others)} or {last}")


def _before_search(instance: Instance, limits: Limits) -> Limits:
    with limits.preparing():
        from makespan.proof.engines.search import choose
    if choose.is_quick(instance, limits):
        return limits.part(SHARE_BEFORE_TABLE)
    share = SHARE_BEFORE_VAST_SEARCH if choose.is_vast(instance) else SHARE_OF_TIME
    spare = choose.spare(instance, limits)
    return limits.part(share if spare is None else min(share, SHARE_OF_SPARE * spare))


def _search_and_model(instance: Instance, current: Callable[[], _PortfolioProof], limits: Limits) -> Iterator[_Turn]:
    """Yield search and CP-SAT: side by side with several threads, else CP-SAT in what the search leaves over."""
    models = refusal(CPSAT, instance, limits) is None
    if limits.threads == 1 or not models:
        # the plain search may go on for ever without a word, so it leaves CP-SAT some time
        yield ((SEARCH, limits if is_packed(instance, limits) or not models else limits.part(SHARE_OF_TIME)),)
        if models and not limits.expired and not current().closed:
            yield ((CPSAT, limits),)
        return
    searching, modelling = limits.part(1), limits.part(1)
    searching.memory_bytes = modelling.memory_bytes = limits.memory_bytes // 2
    modelling.threads -= 1
    yield (SEARCH, searching), (CPSAT, modelling)


def _findings(instance: Instance, turn: _Turn, known: KnownBounds) -> Generator[tuple[str, Finding], None, None]:
    """Yield what the engines of a turn find, with their backends; the first that leaves no gap stops the others."""
    (first, limits), *others = turn
    if not others:
        yield from ((first.backend, finding) for finding in first.find(instance, known, limits))
        return
    from concurrent.futures import ThreadPoolExecutor

    def run(engine: Engine, limits: Limits) -> list[Finding]:
        found = list(engine.find(instance, known, limits))
        if any(_closes(finding, known) for finding in found):
            interrupt(engine)
        return found

    def interrupt(finished: Engine | None = None) -> None:
        for engine, limits in turn:
            if engine is not finished:
                limits.interrupt()

    with ThreadPoolExecutor(len(others)) as pool:
        running = [(engine, pool.submit(run, engine, own)) for engine, own in others]
        try:
            yield from ((first.backend, finding) for finding in run(first, limits))
            for engine, future in running:
                yield from ((engine.backend, finding) for finding in future.result())
        finally:
            interrupt()  # the caller has stopped asking


def _closes(found: Finding, known: KnownBounds) -> bool:
    """Return whether a finding leaves no gap of the worst case open."""
    longest = max(known.witness.makespan, found.witness.makespan if found.witness is not None else 0)
    return found.upper is not None and found.upper <= longest


def _cheap_proof(instance: Instance, limits: Limits) -> _PortfolioProof:
    """Return what costs next to nothing: a constructed schedule, and the closed-form bounds."""
    from makespan.proof.engines.construct import convoy, greedy

    plain = pessimistic(instance)
    bound = tightest(instance, plain)
    if convoy.applies(instance):
        witness = convoy.schedule(instance)
    else:
        witness = greedy.longest(instance, limits, bound.upper)
    replay(instance, witness)  # a constructed schedule counts only if the machine allows it
    return _PortfolioProof(witness, bound.upper, bound.evidence, BOUNDS, plain, weights=bound.weights)


def _add(instance: Instance, proof: _PortfolioProof, found: Finding, backend: str) -> _PortfolioProof:
    """Keep the longer witness, once it has been replayed, and the smaller upper bound."""
    better = proof
    if found.witness is not None and found.witness.makespan > proof.witness.makespan:
        replay(instance, found.witness)
        better = better._replace(witness=found.witness, backend=backend)
    if found.upper is not None and found.evidence is not None and found.upper < proof.upper:
        better = better._replace(upper=found.upper, evidence=found.evidence, weights=found.weights, backend=backend)
    if found.certificate is not None and found.upper is not None and found.upper <= better.upper:
        # also one that proves no less than what is known: the search prunes by it, and it can be checked again
        better = better._replace(certificate=found.certificate)
    if found.best_case is not None:
        better = better._replace(best_case=found.best_case)
    Bounds(better.witness.makespan, better.upper)  # raises when two proofs contradict each other
    return better


def fastest_known(instance: Instance, witness: Schedule, limits: Limits) -> Bounds:
    """Return the best case, between the work to be done and the fastest policy or, at a limit, a witness."""
    from makespan.proof.engines.construct import greedy

    least, most, quickest = least_possible(instance), witness.makespan, Choices("least", "shortest")
    if least < most and not limits.expired and instance.machine.scheduler is SchedulerPromise.ANY:
        greedy.load(instance, choose_routes(instance, quickest), limits)
        most = min(most, replay(instance, shortest_run(instance, quickest)))
    return Bounds(least, most)
