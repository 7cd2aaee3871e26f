"""The engines, what each may prove, and how their findings become one result."""

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from math import comb, prod
from typing import NamedTuple

from makespan.bounds import least_possible, pessimistic, theorem_a
from makespan.certificate import Certificate
from makespan.engines.finding import Finding
from makespan.engines.limits import Limits
from makespan.errors import UnsupportedError
from makespan.instance import Instance
from makespan.result import Bounds, Result, Status, Step, Upper
from makespan.schedule import Schedule
from makespan.simulate import Choices, replay, shortest
from makespan.simulate.choices import routes

BACKENDS = {
    "auto": "certificate, then search and CP-SAT if a gap is left",
    "certificate": "bounds and constructed witnesses, no search",
    "search": "exact search over states, worst and best case",
    "cpsat": "CP-SAT, one boolean per warp, place and cycle",
    "ilp": "the published integer programme in a tightened form, by CBC",
}
"""What `backend` may be."""

SMALL_STATES = 20_000
"""Up to so many states, searching them all is quicker than anything else."""

SHARE_OF_TIME = 0.5
"""What certificates and beams may take of the time before the search begins."""

SHARE_OF_BEST_CASE = 0.25
"""What is left for the best case, where it is asked for, however hard the worst case is."""

SHARE_BEFORE_TABLE = 0.05
"""The same where the search is a matter of a second: a certificate is still preferred, for it can be checked again."""


class _Proof(NamedTuple):
    """What is known so far: the longest replayed schedule, and the smallest proven upper bound."""

    witness: Schedule
    upper: int
    evidence: Upper
    engine: str
    certificate: Certificate | None = None
    best_case: Bounds | None = None
    history: tuple[Step, ...] = ()

    @property
    def closed(self) -> bool:
        return self.witness.makespan == self.upper


def solve(instance: Instance, *, backend: str, best_case: bool, budget: Limits) -> Result:
    """The worst case of an instance as a whole, see `phased.solve`; barriers only by bounds and plain search.

    Raises:
        UnsupportedError: an engine that was asked for does not know barriers.
    """
    limits = budget.part(1 - SHARE_OF_BEST_CASE) if best_case else budget
    proof = _worst_case(instance, backend, limits)
    seconds = limits.elapsed
    shortest = _best_case(instance, backend, proof, budget) if best_case else None
    return Result(
        instance=instance,
        bounds=Bounds(proof.witness.makespan, proof.upper),
        witness=proof.witness,
        upper_evidence=proof.evidence,
        pessimistic=pessimistic(instance),
        best_case=shortest,
        backend=backend if backend != "auto" else proof.engine,
        seconds=seconds,
        assumptions=assumptions(instance),
        interrupted=budget.interrupted,
        certificate=proof.certificate,
        history=proof.history,
        best_case_seconds=budget.elapsed - seconds if best_case else None,
    )


def _worst_case(instance: Instance, backend: str, budget: Limits) -> _Proof:
    """What the engines prove, one after another, until the gap is closed."""
    proof = _bounded(instance, budget)
    proof = proof._replace(history=(_step(proof, "certificate", budget),))

    def known() -> _Proof:
        return proof

    with closing(_engines(instance, backend, known, budget)) as engines:
        for engine, findings in engines:
            if proof.closed and backend != engine:
                break
            for found in findings:
                before, proof = proof, _add(instance, proof, found, engine)
                if (proof.witness.makespan, proof.upper) != (before.witness.makespan, before.upper):
                    proof = proof._replace(history=(*proof.history, _step(proof, engine, budget)))
                if proof.closed:
                    break
    return proof


def _best_case(instance: Instance, backend: str, proof: _Proof, limits: Limits) -> Bounds:
    """Between the work to be done and the fastest policy; exactly, where an engine says so in time."""
    from makespan.engines.two_warps import grid

    known = fastest_known(instance, proof.witness, limits)
    if proof.best_case is not None:  # by the way
        known &= proof.best_case
    if known.status is Status.EXACT or limits.expired or backend in ("cpsat", "ilp"):
        return known
    if grid.knows_best_case(instance):
        found = grid.best_case(instance, limits)
    else:
        found = None if backend == "certificate" else _shortest(instance, limits)
    return known if found is None else known & found


def _shortest(instance: Instance, limits: Limits) -> Bounds | None:
    """The best case by search."""
    from makespan.engines.search import choose, plain

    if _is_plain(instance):
        return plain.solve(instance, limits).best_case
    return choose.best_case(instance, limits)


def _step(proof: _Proof, engine: str, budget: Limits) -> Step:
    return Step(round(budget.elapsed, 6), engine, proof.witness.makespan, proof.upper, proof.evidence)


def _engines(
    instance: Instance, backend: str, known: Callable[[], _Proof], limits: Limits
) -> Generator[tuple[str, Iterable[Finding]], None, None]:
    """The engines in the order in which they are tried, each with what it will find; they start when asked."""
    if backend in ("cpsat", "ilp"):
        _refuse_barriers(instance, backend)
        yield backend, _model(instance, backend, known(), limits)
        return
    if backend == "search":
        yield "search", _search(instance, known, limits)
        return
    if instance.has_barriers:  # what is left are the bounds that were made first
        if backend == "auto":
            yield "search", _search(instance, known, limits)
        return
    yield "certificate", _constructions(instance, limits)
    small = _count_states(instance) <= SMALL_STATES
    if backend == "auto" and small:
        yield "search", _search(instance, known, limits)
    if limits.expired:
        return
    if not known().closed:
        share = limits if backend == "certificate" else _before_search(instance, limits)
        yield "certificate", _improve(instance, share)
    if backend == "auto" and not small:
        yield from _race(instance, known, limits)


def _before_search(instance: Instance, limits: Limits) -> Limits:
    """What certificates and beams may take in `auto`."""
    from makespan.engines.search import choose

    return limits.part(SHARE_BEFORE_TABLE if choose.is_quick(instance, limits) else SHARE_OF_TIME)


def _race(instance: Instance, known: Callable[[], _Proof], limits: Limits) -> Iterator[tuple[str, Iterable[Finding]]]:
    """Search and CP-SAT: side by side with several threads, else CP-SAT in the time that the search leaves over."""
    if limits.threads == 1:
        yield "search", _search(instance, known, _for_search(instance, limits))
        if not limits.expired and not known().closed:
            yield "cpsat", _model(instance, "cpsat", known(), limits)
        return
    from concurrent.futures import ThreadPoolExecutor

    searching, modelling = limits.part(1), limits.part(1)
    searching.memory_bytes = modelling.memory_bytes = limits.memory_bytes // 2
    modelling.threads -= 1
    start = known()

    def model() -> list[Finding]:
        found = list(_model(instance, "cpsat", start, modelling))
        if any(_closes(finding, start) for finding in found):
            searching.interrupt()
        return found

    with ThreadPoolExecutor(1) as pool:
        modelled = pool.submit(model)
        try:
            findings = list(_search(instance, known, searching))
            if any(_closes(finding, start) for finding in findings):
                modelling.interrupt()
            yield "search", findings
            yield "cpsat", modelled.result()
        finally:
            modelling.interrupt()  # nobody asks any more


def _for_search(instance: Instance, limits: Limits) -> Limits:
    """All the time that is left for the packed search, a share of it for the plain one."""
    from makespan.engines.search import choose

    return limits if choose.applies(instance) else limits.part(SHARE_OF_TIME)


def _closes(found: Finding, start: _Proof) -> bool:
    """Whether a finding leaves no gap of the worst case open."""
    longest = max(start.witness.makespan, found.witness.makespan if found.witness is not None else 0)
    return found.upper is not None and found.upper <= longest


def _refuse_barriers(instance: Instance, backend: str) -> None:
    if instance.has_barriers:
        raise UnsupportedError(
            f"backend {backend} does not know barriers between several blocks, nor where a warp may skip a phase that"
            " others take part in; use backend auto or search"
        )


def _count_states(instance: Instance) -> int:
    """How many ways there are to place the warps: no fewer than a search can meet."""
    longest = {unit.name: unit.latency.most for unit in instance.machine.units}
    crews = (
        (sum(longest.get(place.unit, 1) for place in group.program.places), group.warps // instance.blocks)
        for group in instance.groups
    )
    ports = prod(comb(unit.interval - 1 + unit.capacity, unit.capacity) for unit in instance.machine.units)
    ways: int = prod(comb(places + warps, warps) ** instance.blocks for places, warps in crews)
    return ports * ways


def _search(instance: Instance, known: Callable[[], _Proof], limits: Limits) -> Iterator[Finding]:
    """The plain search where it is quick, else the packed one, which prunes by what is known."""
    with limits.preparing():
        from makespan.engines.search import choose, plain
    if _is_plain(instance):
        yield plain.solve(instance, limits)
        return
    proof = known()
    yield choose.solve(instance, limits, certificate=proof.certificate, incumbent=proof.witness.makespan)


def _is_plain(instance: Instance) -> bool:
    """Whether the plain search is the one to take."""
    from makespan.engines.search import choose

    return instance.has_barriers or _count_states(instance) <= SMALL_STATES or not choose.applies(instance)


def _model(instance: Instance, backend: str, known: _Proof, limits: Limits) -> Iterator[Finding]:
    """A declarative model; of what is known it takes the horizon, and CP-SAT a schedule to start from."""
    if backend == "cpsat":
        with limits.preparing():
            from makespan.engines.cpsat import engine as cpsat
        yield cpsat.solve(
            instance, limits, horizon=known.upper, hint=known.witness, workers=limits.threads, seed=limits.seed
        )
    else:
        from makespan.engines.ilp import engine as ilp

        yield ilp.solve(instance, limits, horizon=known.upper, form="tightened")


def _improve(instance: Instance, limits: Limits) -> Iterator[Finding]:
    with limits.preparing():
        from makespan.engines.certificate import improve
    yield from improve.improve(instance, limits)


def _constructions(instance: Instance, limits: Limits) -> Iterator[Finding]:
    """Two warps, exactly."""
    with limits.preparing():
        from makespan.engines.two_warps import grid
    if grid.applies(instance):
        yield grid.solve(instance, limits)


def _bounded(instance: Instance, limits: Limits) -> _Proof:
    """What costs next to nothing: a constructed schedule below, the closed-form bounds above."""
    from makespan.engines.construct import convoy, greedy

    worst_bound, by_pairs = pessimistic(instance), theorem_a(instance)
    if convoy.applies(instance):
        witness = convoy.schedule(instance)
    else:
        witness = greedy.longest(instance, limits, worst_bound if by_pairs is None else min(worst_bound, by_pairs))
    replay(instance, witness)
    proof = _Proof(witness, worst_bound, Upper.PESSIMISTIC, "certificate")
    return _add(instance, proof, Finding(upper=by_pairs, evidence=Upper.THEOREM_A), "certificate")


def _add(instance: Instance, proof: _Proof, found: Finding, engine: str) -> _Proof:
    """Keep the longer witness, once it has been replayed, and the smaller upper bound."""
    better = proof
    if found.witness is not None and found.witness.makespan > proof.witness.makespan:
        replay(instance, found.witness)
        better = better._replace(witness=found.witness, engine=engine)
    if found.upper is not None and found.evidence is not None and found.upper < proof.upper:
        better = better._replace(upper=found.upper, evidence=found.evidence, engine=engine)
    if found.certificate is not None and found.upper is not None and found.upper <= better.upper:
        better = better._replace(certificate=found.certificate)
    if found.best_case is not None:
        better = better._replace(best_case=found.best_case)
    Bounds(better.witness.makespan, better.upper)  # raises when two proofs contradict each other
    return better


def fastest_known(instance: Instance, witness: Schedule, limits: Limits) -> Bounds:
    """The best case, between the work to be done and the fastest policy or, where a limit comes first, a witness."""
    from makespan.engines.construct import greedy

    least, most, quickest = least_possible(instance), witness.makespan, Choices("least", "shortest")
    if least < most and not limits.expired:
        greedy.load(instance, routes(instance, quickest), limits)
        most = min(most, replay(instance, shortest(instance, quickest)))
    return Bounds(least, most)


def assumptions(instance: Instance) -> tuple[str, ...]:
    """What must hold for the worst case of the instance to be one of its source."""
    machine = instance.machine
    units = ", ".join(map(str, machine.units))
    width = f", issue width {machine.issue_width}" if machine.issue_width is not None else ""
    holds = (
        "an instruction holds one unit of its class for one cycle"
        if machine.is_basic
        else "X=P/I@T is a class X of P ports, which an instruction holds for I cycles; its warp goes on after T cycles"
    )
    model: tuple[str, ...] = (
        f"machine {machine.name!r}: units {units}{width}; {holds}",
        "all warps start in cycle 0; a warp executes at most one instruction per cycle, in program order",
        "the scheduler is work-conserving"
        + (
            " in every class"
            if machine.is_basic
            else ": it issues whenever a warp is ready, a port free and a slot left"
        ),
        *machine.caveats,
    )
    if not machine.fixed_latencies:
        model += ("each instruction takes any latency of the range of its class",)
    if instance.has_barriers:
        where = "all warps are in one block" if instance.blocks == 1 else f"the warps are in {instance.blocks} blocks"
        model += (f"{where}; at a barrier a warp waits for the others of its block, those that have ended aside",)
    return model + tuple(dict.fromkeys(note for group in instance.groups for note in group.program.assumptions))
