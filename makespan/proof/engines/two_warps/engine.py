"""The engine for two warps, or one that runs ahead: exact, however long they are, within the size of its tables."""

from collections.abc import Iterator

from makespan.model.feature import BARRIERS, PROGRAMS, TIMES, Feature
from makespan.model.instance import Instance
from makespan.model.result import Bounds
from makespan.proof.engines.engine import KnownBounds
from makespan.proof.engines.finding import Finding
from makespan.proof.engines.limits import Limits


class TwoWarps:
    """By the grid of pairs of places on basic machines, else from event to event: by a table where both warps block."""

    name = "two-warp-dp"
    backend = "certificate"
    about = "two warps exactly"
    knows = PROGRAMS | TIMES | BARRIERS | {Feature.RESOURCES, Feature.STALL_ON_USE}

    def obstacle(self, instance: Instance, limits: Limits) -> str | None:
        """See `Engine`."""
        with limits.preparing():
            from makespan.proof.engines.two_warps import ahead, events, grid
        if grid.applies(instance) or (instance.beyond(PROGRAMS) and events.applies(instance)):
            return None
        if ahead.applies(instance):
            return None
        return f"{self.name} is for two warps, with strings on a basic machine, and tables of limited size"

    def find(self, instance: Instance, known: KnownBounds, limits: Limits) -> Iterator[Finding]:  # noqa: ARG002 - exact
        """See `Engine`."""
        from makespan.proof.engines.two_warps import ahead, events, grid

        if ahead.applies(instance):
            yield ahead.solve(instance, limits)
        else:
            yield grid.solve(instance) if grid.applies(instance) else events.solve(instance, limits)

    def best_case(self, instance: Instance, limits: Limits) -> Bounds | None:
        """Return the exact best case; None where limits do not suffice, or the grid was taken, which has none."""
        from makespan.proof.engines.two_warps import ahead, events, grid

        if ahead.applies(instance):
            return ahead.best_case(instance, limits)
        return None if grid.applies(instance) else events.best_case(instance, limits)
