"""All engines, each as a `makespan.proof.engines.engine.Engine`, and the backends under which users ask for them.

What is heavy (numba, OR-Tools, the compiled loops) is imported when an engine is asked, inside `limits.preparing`, so
that the command line starts at once and no solve pays for what depends on the installation alone.
"""

from collections.abc import Iterator

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


class TwoWarps:
    """Two warps exactly, on the grid of their places or from event to event; more warps where one runs ahead."""

    name = "two-warp-dp"
    backend = "certificate"
    about = "two warps exactly"
    knows = PROGRAMS | TIMES | BARRIERS | {Feature.RESOURCES, Feature.STALL_ON_USE}

    def obstacle(self, instance: Instance, limits: Limits) -> str | None:
        """Return why the instance has too many warps or too large tables, if so."""
        with limits.preparing():
            from makespan.proof.engines.two_warps import events, grid, running_ahead
        if grid.applies(instance) or (instance.beyond(PROGRAMS) and events.applies(instance)):
            return None
        if running_ahead.applies(instance):
            return None
        return f"{self.name} is for two warps, with strings on a basic machine, and tables of limited size"

    def find(self, instance: Instance, known: KnownBounds, limits: Limits) -> Iterator[Finding]:  # noqa: ARG002 - exact
        """Yield the exact worst case."""
        from makespan.proof.engines.two_warps import events, grid, running_ahead

        if running_ahead.applies(instance):
            yield running_ahead.solve(instance, limits)
        else:
            yield grid.solve(instance) if grid.applies(instance) else events.solve(instance, limits)

    def best_case(self, instance: Instance, limits: Limits) -> Bounds | None:
        """Return the exact best case; None where limits do not suffice, or the grid was taken, which has none."""
        from makespan.proof.engines.two_warps import events, grid, running_ahead

        if running_ahead.applies(instance):
            return running_ahead.best_case(instance, limits)
        return None if grid.applies(instance) else events.best_case(instance, limits)


class Certificates:
    """A beam along theorem E, climbing, then ever finer potentials (see `bounds.potential`), each with a beam."""

    name = backend = "certificate"
    about = "bounds, certificates and schedules that follow them, no search"
    knows = PROGRAMS | TIMES

    def obstacle(self, instance: Instance, limits: Limits) -> str | None:
        """Return None: this engine takes every instance, but it may prove nothing."""

    def find(self, instance: Instance, known: KnownBounds, limits: Limits) -> Iterator[Finding]:
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


class LevelsEngine:
    """A few equal strings that wait for one issue slot, exactly, by all ways in which the warps can be late."""

    name = "levels"
    backend = "search"
    about = "by how late each warp is, where a few of one string wait for one issue slot"
    knows = KNOWN_TO_ISSUE_SLOTS

    def obstacle(self, instance: Instance, limits: Limits) -> str | None:
        """Return why the warps do not wait for one issue slot, or are too many, if so."""
        with limits.preparing():
            from makespan.proof.engines import levels
        if levels.applies(instance):
            return None
        return f"{self.name} are for a few warps of one string, with fixed latencies, that wait for one issue slot"

    def find(self, instance: Instance, known: KnownBounds, limits: Limits) -> Iterator[Finding]:
        """Yield the exact worst case, if the limits suffice."""
        from makespan.proof.engines import levels

        yield levels.solve(instance, limits, known.witness.makespan)


class Search:
    """The search over all states where these are few, else over those that matter, in compiled code.

    A whole multiprocessor has a search of its own.
    """

    name = backend = "search"
    about = "exact search over states, worst and best case"
    knows = PROGRAMS | TIMES | BARRIERS | MULTIPROCESSOR

    def obstacle(self, instance: Instance, limits: Limits) -> str | None:
        """Return why the search over a whole multiprocessor does not take it; any other may only have many states."""
        if not instance.is_multiprocessor:
            return None
        with limits.preparing():
            from makespan.proof.engines.search import sm_states
        reason = sm_states.obstacle(instance)
        return None if reason is None else f"backend {self.backend} does not take this instance: {reason}"

    def find(self, instance: Instance, known: KnownBounds, limits: Limits) -> Iterator[Finding]:
        """Yield the worst case; the plain search and that over a whole multiprocessor find the best case, too."""
        with limits.preparing():
            from makespan.proof.engines.search import choose, plain, sm_states
        if instance.is_multiprocessor:
            yield sm_states.solve(instance, limits)
        elif not self.is_packed(instance, limits):
            yield plain.solve(instance, limits)
        else:
            yield choose.solve(instance, limits, certificate=known.certificate, incumbent=known.witness.makespan)

    def best_case(self, instance: Instance, limits: Limits) -> Bounds | None:
        """Return the best case, exactly, or what is proven when a limit stops the search, if anything."""
        from makespan.proof.engines.search import choose, plain, sm_states

        if instance.is_multiprocessor:
            return sm_states.solve(instance, limits).best_case
        if self.is_packed(instance, limits):
            return choose.best_case(instance, limits)
        return plain.solve(instance, limits).best_case

    def is_small(self, instance: Instance, limits: Limits) -> bool:
        """Return whether there are so few states that nothing else is quicker."""
        with limits.preparing():
            from makespan.proof.engines.search import plain, sm_states
        return sm_states.is_small(instance) if instance.is_multiprocessor else plain.is_small(instance)

    def is_quick(self, instance: Instance, limits: Limits) -> bool:
        """Return whether the exact answer takes about a second."""
        with limits.preparing():
            from makespan.proof.engines.search import choose
        return choose.is_quick(instance, limits)

    def is_vast(self, instance: Instance, limits: Limits) -> bool:
        """Return whether there are so many states that time is better spent on certificates."""
        with limits.preparing():
            from makespan.proof.engines.search import choose
        return choose.is_vast(instance)

    def spare(self, instance: Instance, limits: Limits) -> float | None:
        """Return the share of the time that is left over if the exact answer is to be there in it.

        None means that it is not known whether it will be there in time.
        """
        with limits.preparing():
            from makespan.proof.engines.search import choose
        return choose.spare(instance, limits)

    def is_futile(self, instance: Instance, limits: Limits) -> bool:
        """Return whether a whole multiprocessor has more states than the search could ever visit."""
        with limits.preparing():
            from makespan.proof.engines.search import sm_states
        return instance.is_multiprocessor and sm_states.is_vast(instance)

    def is_packed(self, instance: Instance, limits: Limits) -> bool:
        """Return whether the packed search is taken, which lowers what is proven while it runs."""
        with limits.preparing():
            from makespan.proof.engines.search import choose
        return not self.is_small(instance, limits) and choose.applies(instance)


class CpSat:
    """OR-Tools CP-SAT on a declarative model; of what is known it takes the horizon and a schedule to start from."""

    name = backend = cpsat.NAME
    about = "CP-SAT, one boolean per warp, place and cycle"
    knows = PROGRAMS | TIMES

    def obstacle(self, instance: Instance, limits: Limits) -> str | None:
        """Return None: this engine takes every instance, but the model may be too large."""

    def find(self, instance: Instance, known: KnownBounds, limits: Limits) -> Iterator[Finding]:
        """Yield the worst case, or what is proven when a limit stops the solver."""
        with limits.preparing():
            from makespan.proof.engines.cpsat import solver
        yield solver.solve(
            instance, limits, horizon=known.upper, hint=known.witness, workers=limits.threads, seed=limits.seed
        )


class Ilp:
    """The published integer programme in its tightened form, by CBC; of what is known it takes the horizon."""

    name = backend = ilp.NAME
    about = "the published integer programme in a tightened form, by CBC"
    knows = KNOWN_TO_ILP

    def obstacle(self, instance: Instance, limits: Limits) -> str | None:
        """Return None: this engine takes every instance, but the programme may be too large."""

    def find(self, instance: Instance, known: KnownBounds, limits: Limits) -> Iterator[Finding]:
        """Yield the worst case, or what is proven when a limit stops the solver."""
        from makespan.proof.engines.ilp import solver

        yield solver.solve(instance, limits, horizon=known.upper, form="tightened")


TWO_WARPS, CERTIFICATES, LEVELS = TwoWarps(), Certificates(), LevelsEngine()
SEARCH, CPSAT, ILP = Search(), CpSat(), Ilp()

ENGINES: tuple[Engine, ...] = (TWO_WARPS, CERTIFICATES, LEVELS, SEARCH, CPSAT, ILP)
"""All engines; of several with one backend, the first that can take an instance is asked."""

AUTO = "auto"
BOUNDS = CERTIFICATES.backend
"""The name of what is known before any engine begins: closed-form bounds and policies' schedules."""

BACKENDS = {
    AUTO: "certificate, then search and CP-SAT if a gap is left",
    **{each.backend: "; ".join(e.about for e in ENGINES if e.backend == each.backend) for each in ENGINES},
}
"""What users may ask for as `backend`, with a line about each."""
