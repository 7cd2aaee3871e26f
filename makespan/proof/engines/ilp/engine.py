"""The engine by integer linear programming: the published programme."""

from collections.abc import Iterator

from makespan.model.feature import Features
from makespan.model.instance import Instance
from makespan.proof.engines.engine import KnownBounds
from makespan.proof.engines.finding import Finding
from makespan.proof.engines.ilp import NAME
from makespan.proof.engines.limits import Limits


class Ilp:
    """The programme in its tightened form, by CBC; of what is known it takes the horizon."""

    name = backend = NAME
    about = "the published integer programme in a tightened form, by CBC"
    knows: Features = frozenset()  # see `model.KNOWS`

    def obstacle(self, instance: Instance, limits: Limits) -> str | None:
        """See `Engine`; there is none, the programme may only be too large."""

    def find(self, instance: Instance, known: KnownBounds, limits: Limits) -> Iterator[Finding]:
        """See `Engine`."""
        from makespan.proof.engines.ilp import solver

        yield solver.solve(instance, limits, horizon=known.upper, form="tightened")
