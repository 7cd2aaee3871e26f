"""All engines, each as a `makespan.proof.engines.engine.Engine`, and the backends under which users ask for them.

What is heavy (numba, OR-Tools, the compiled loops) is imported when an engine is asked, inside `limits.preparing`, so
that the command line starts at once and no solve pays for what depends on the installation alone.
"""

from collections.abc import Iterator
from types import ModuleType

from makespan.model.feature import BARRIERS, MULTIPROCESSOR, PROGRAMS, TIMES, Feature
from makespan.model.instance import Instance
from makespan.model.result import Bounds
from makespan.proof.bounds.issue_slots import KNOWS as KNOWN_TO_ISSUE_SLOTS
from makespan.proof.engines import cpsat, ilp
from makespan.proof.engines.engine import Engine, Finding, KnownBounds
from makespan.proof.engines.ilp.model import KNOWS as KNOWN_TO_ILP
from makespan.proof.engines.limits import Limits

SHARE = 0.4
"""The share of the time that the first beam may take, and that climbing may take where no beam knows the instance."""

SHARE_BESIDE_BEAMS = 0.1
"""The share of the time that climbing may take where beams know the instance, too: they find more there."""


# --- two warps ------------------------------------------------------------------------------------------------


def _method_for_two(instance: Instance, limits: Limits) -> ModuleType | None:
    with limits.preparing():
        from makespan.proof.engines.two_warps import events, grid, running_ahead
    if running_ahead.applies(instance):
        return running_ahead
    if grid.applies(instance):
        return grid
    return events if instance.beyond(PROGRAMS) and events.applies(instance) else None


def _obstacle_of_two_warps(instance: Instance, limits: Limits) -> str | None:
    if _method_for_two(instance, limits) is not None:
        return None
    return "two-warp-dp is for two warps, with strings on a basic machine, and tables of limited size"


def _solve_two_warps(instance: Instance, _: KnownBounds, limits: Limits) -> Iterator[Finding]:
    if (method := _method_for_two(instance, limits)) is not None:
        yield method.solve(instance, limits)


def _best_case_of_two_warps(instance: Instance, limits: Limits) -> Bounds | None:
    method = _method_for_two(instance, limits)
    found: Bounds | None = None if method is None else method.best_case(instance, limits)
    return found


# --- certificates, and the levels of one issue slot -----------------------------------------------------------


def _certify(instance: Instance, known: KnownBounds, limits: Limits) -> Iterator[Finding]:
    """Yield ever longer schedules and ever smaller upper bounds."""
    with limits.preparing():
        from makespan.proof.engines.certificate import beam, improve
        from makespan.proof.engines.construct import ranking

        ranking.load()
    yield from improve.follow_theorem_e(instance, limits.part(SHARE))
    share = SHARE if instance.beyond(beam.KNOWS) else SHARE_BESIDE_BEAMS
    for witness in ranking.climb(instance, limits.part(share), known.upper):
        limits.progress(f"climbing: at least {witness.makespan} cycles")
        yield Finding(witness=witness)
    yield from improve.improve(instance, limits)


def _obstacle_of_levels(instance: Instance, limits: Limits) -> str | None:
    with limits.preparing():
        from makespan.proof.engines import levels
    if levels.applies(instance):
        return None
    return "levels are for a few warps of one string, with fixed latencies, that wait for one issue slot"


def _explore_levels(instance: Instance, known: KnownBounds, limits: Limits) -> Iterator[Finding]:
    from makespan.proof.engines import levels

    yield levels.solve(instance, limits, known.witness.makespan)


# --- search ---------------------------------------------------------------------------------------------------


def _obstacle_of_search(instance: Instance, limits: Limits) -> str | None:
    """Return why the search over a whole multiprocessor does not take it; any other may only have many states."""
    if not instance.is_multiprocessor:
        return None
    with limits.preparing():
        from makespan.proof.engines.search import sm_states
    reason = sm_states.obstacle(instance)
    return None if reason is None else f"backend search does not take this instance: {reason}"


def _search(instance: Instance, known: KnownBounds, limits: Limits) -> Iterator[Finding]:
    """Yield the worst case; the plain search and that over a whole multiprocessor find the best case, too."""
    with limits.preparing():
        from makespan.proof.engines.search import choose, plain, sm_states
    if instance.is_multiprocessor:
        yield sm_states.solve(instance, limits)
    elif not is_packed(instance, limits):
        yield plain.solve(instance, limits)
    else:
        yield choose.solve(instance, limits, certificate=known.certificate, incumbent=known.witness.makespan)


def _search_best_case(instance: Instance, limits: Limits) -> Bounds | None:
    from makespan.proof.engines.search import choose, plain, sm_states

    if instance.is_multiprocessor:
        return sm_states.solve(instance, limits).best_case
    if is_packed(instance, limits):
        return choose.best_case(instance, limits)
    return plain.solve(instance, limits).best_case


def is_small(instance: Instance, limits: Limits) -> bool:
    """Return whether there are so few states that nothing is quicker than to search them."""
    with limits.preparing():
        from makespan.proof.engines.search import plain, sm_states
    return sm_states.is_small(instance) if instance.is_multiprocessor else plain.is_small(instance)


def is_packed(instance: Instance, limits: Limits) -> bool:
    """Return whether the packed search is taken, which lowers what is proven while it runs."""
    with limits.preparing():
        from makespan.proof.engines.search import choose
    return not is_small(instance, limits) and choose.applies(instance)


# --- models ---------------------------------------------------------------------------------------------------


def _solve_by_cpsat(instance: Instance, known: KnownBounds, limits: Limits) -> Iterator[Finding]:
    """Yield what CP-SAT finds; of what is known it takes the horizon and a schedule to start from."""
    with limits.preparing():
        from makespan.proof.engines.cpsat import solver
    yield solver.solve(
        instance, limits, horizon=known.upper, hint=known.witness, workers=limits.threads, seed=limits.seed
    )


def _solve_by_cbc(instance: Instance, known: KnownBounds, limits: Limits) -> Iterator[Finding]:
    from makespan.proof.engines.ilp import solver

    yield solver.solve(instance, limits, horizon=known.upper, form="tightened")


TWO_WARPS = Engine(
    "two-warp-dp",
    "certificate",
    "two warps exactly",
    PROGRAMS | TIMES | BARRIERS | {Feature.RESOURCES, Feature.STALL_ON_USE},
    _solve_two_warps,
    _obstacle_of_two_warps,
    _best_case_of_two_warps,
)
CERTIFICATES = Engine(
    "certificate",
    "certificate",
    "bounds, certificates and schedules that follow them, no search",
    PROGRAMS | TIMES,
    _certify,
)
LEVELS = Engine(
    "levels",
    "search",
    "by how late each warp is, where a few of one string wait for one issue slot",
    KNOWN_TO_ISSUE_SLOTS,
    _explore_levels,
    _obstacle_of_levels,
)
SEARCH = Engine(
    "search",
    "search",
    "exact search over states, worst and best case",
    PROGRAMS | TIMES | BARRIERS | MULTIPROCESSOR,
    _search,
    _obstacle_of_search,
    _search_best_case,
)
CPSAT = Engine(
    cpsat.NAME, cpsat.NAME, "CP-SAT, one boolean per warp, place and cycle", PROGRAMS | TIMES, _solve_by_cpsat
)
ILP = Engine(
    ilp.NAME, ilp.NAME, "the published integer programme in a tightened form, by CBC", KNOWN_TO_ILP, _solve_by_cbc
)

ENGINES = (TWO_WARPS, CERTIFICATES, LEVELS, SEARCH, CPSAT, ILP)
"""All engines; of several with one backend, the first that can take an instance is asked."""

AUTO = "auto"
BOUNDS = CERTIFICATES.backend
"""The name of what is known before any engine begins: closed-form bounds and policies' schedules."""

BACKENDS = {
    AUTO: "certificate, then search and CP-SAT if a gap is left",
    **{each.backend: "; ".join(e.about for e in ENGINES if e.backend == each.backend) for each in ENGINES},
}
"""What users may ask for as `backend`, with a line about each."""
