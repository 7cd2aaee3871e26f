"""The engine for equal strings that wait for one issue slot: exact for a few warps."""

from collections.abc import Iterator

from makespan.model.instance import Instance
from makespan.proof.bounds.issue_slots import KNOWS
from makespan.proof.engines.engine import KnownBounds
from makespan.proof.engines.finding import Finding
from makespan.proof.engines.limits import Limits


class LevelsEngine:
    """By all ways in which the warps can be late, cycle by cycle."""

    name = "levels"
    backend = "search"
    about = "by how late each warp is, where a few of one string wait for one issue slot"
    knows = KNOWS

    def obstacle(self, instance: Instance, limits: Limits) -> str | None:
        """See `Engine`."""
        with limits.preparing():
            from makespan.proof.engines.levels import levels
        if levels.applies(instance):
            return None
        return f"{self.name} are for a few warps of one string, with fixed latencies, that wait for one issue slot"

    def find(self, instance: Instance, known: KnownBounds, limits: Limits) -> Iterator[Finding]:
        """See `Engine`."""
        from makespan.proof.engines.levels import levels

        yield levels.solve(instance, limits, known.witness.makespan)
