"""The engine that searches: over all states where these are few, else over those that matter, in compiled code."""

from collections.abc import Iterator

from makespan.engines.engine import Known
from makespan.engines.finding import Finding
from makespan.engines.limits import Limits
from makespan.feature import BARRIERS, PROGRAMS, TIMES
from makespan.instance import Instance
from makespan.result import Bounds


class Search:
    """The plain search where it is quick or the only one, else the packed one, which prunes by what is known."""

    name = backend = "search"
    about = "exact search over states, worst and best case"
    knows = PROGRAMS | TIMES | BARRIERS

    def obstacle(self, instance: Instance, limits: Limits) -> str | None:
        """See `Engine`; there is none, the states may only be too many."""

    def find(self, instance: Instance, known: Known, limits: Limits) -> Iterator[Finding]:
        """See `Engine`; the plain search finds the best case, too."""
        with limits.preparing():
            from makespan.engines.search import choose, plain
        if not self.is_packed(instance, limits):
            yield plain.solve(instance, limits)
        else:
            yield choose.solve(instance, limits, certificate=known.certificate, incumbent=known.witness.makespan)

    def best_case(self, instance: Instance, limits: Limits) -> Bounds | None:
        """The best case, exactly, or what is proven when a limit stops the search, if anything."""
        from makespan.engines.search import choose, plain

        if self.is_packed(instance, limits):
            return choose.best_case(instance, limits)
        return plain.solve(instance, limits).best_case

    def is_small(self, instance: Instance, limits: Limits) -> bool:
        """Whether there are so few states that nothing else is quicker."""
        with limits.preparing():
            from makespan.engines.search import plain
        return plain.is_small(instance)

    def is_quick(self, instance: Instance, limits: Limits) -> bool:
        """Whether the exact answer takes about a second."""
        with limits.preparing():
            from makespan.engines.search import choose
        return choose.is_quick(instance, limits)

    def is_vast(self, instance: Instance, limits: Limits) -> bool:
        """Whether there are so many states that time is better spent on certificates."""
        with limits.preparing():
            from makespan.engines.search import choose
        return choose.is_vast(instance)

    def is_packed(self, instance: Instance, limits: Limits) -> bool:
        """Whether the packed search is taken, which lowers what is proven while it runs; the plain one does not."""
        with limits.preparing():
            from makespan.engines.search import choose
        return not self.is_small(instance, limits) and choose.applies(instance)
