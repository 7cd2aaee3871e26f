"""The engine that searches: over all states where these are few, else over those that matter, in compiled code.

A whole multiprocessor has a search of its own.
"""

from collections.abc import Iterator

from makespan.model.feature import BARRIERS, MULTIPROCESSOR, PROGRAMS, TIMES
from makespan.model.instance import Instance
from makespan.model.result import Bounds
from makespan.proof.engines.engine import KnownBounds
from makespan.proof.engines.finding import Finding
from makespan.proof.engines.limits import Limits


class Search:
    """The plain search where it is quick or the only one, else the packed one, which prunes by what is known."""

    name = backend = "search"
    about = "exact search over states, worst and best case"
    knows = PROGRAMS | TIMES | BARRIERS | MULTIPROCESSOR

    def obstacle(self, instance: Instance, limits: Limits) -> str | None:
        """See `Engine`; mostly there is none, the states may only be too many."""
        if not instance.is_multiprocessor:
            return None
        with limits.preparing():
            from makespan.proof.engines.search import whole
        reason = whole.obstacle(instance)
        return None if reason is None else f"backend {self.backend} does not take this instance: {reason}"

    def find(self, instance: Instance, known: KnownBounds, limits: Limits) -> Iterator[Finding]:
        """See `Engine`; the plain search finds the best case, too."""
        with limits.preparing():
            from makespan.proof.engines.search import choose, plain, whole
        if instance.is_multiprocessor:
            yield whole.solve(instance, limits)
        elif not self.is_packed(instance, limits):
            yield plain.solve(instance, limits)
        else:
            yield choose.solve(instance, limits, certificate=known.certificate, incumbent=known.witness.makespan)

    def best_case(self, instance: Instance, limits: Limits) -> Bounds | None:
        """Return the best case, exactly, or what is proven when a limit stops the search, if anything."""
        from makespan.proof.engines.search import choose, plain, whole

        if instance.is_multiprocessor:
            return whole.solve(instance, limits).best_case
        if self.is_packed(instance, limits):
            return choose.best_case(instance, limits)
        return plain.solve(instance, limits).best_case

    def is_small(self, instance: Instance, limits: Limits) -> bool:
        """Return whether there are so few states that nothing else is quicker."""
        with limits.preparing():
            from makespan.proof.engines.search import plain, whole
        return whole.is_small(instance) if instance.is_multiprocessor else plain.is_small(instance)

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
        """The share of the time that is left over if the exact answer is to be there in it; None where that is open."""
        with limits.preparing():
            from makespan.proof.engines.search import choose
        return choose.spare(instance, limits)

    def is_futile(self, instance: Instance, limits: Limits) -> bool:
        """Whether it is sure to say nothing: a whole multiprocessor with more states than it could ever visit."""
        with limits.preparing():
            from makespan.proof.engines.search import whole
        return instance.is_multiprocessor and whole.is_vast(instance)

    def is_packed(self, instance: Instance, limits: Limits) -> bool:
        """Whether the packed search is taken, which lowers what is proven while it runs; the plain one does not."""
        with limits.preparing():
            from makespan.proof.engines.search import choose
        return not self.is_small(instance, limits) and choose.applies(instance)
