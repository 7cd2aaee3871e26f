"""The engine by constraint programming."""

from collections.abc import Iterator

from makespan.model.feature import PROGRAMS, TIMES
from makespan.model.instance import Instance
from makespan.proof.engines.cpsat import NAME
from makespan.proof.engines.engine import KnownBounds
from makespan.proof.engines.finding import Finding
from makespan.proof.engines.limits import Limits


class CpSat:
    """OR-Tools CP-SAT on a declarative model; of what is known it takes the horizon and a schedule to start from."""

    name = backend = NAME
    about = "CP-SAT, one boolean per warp, place and cycle"
    knows = PROGRAMS | TIMES

    def obstacle(self, instance: Instance, limits: Limits) -> str | None:
        """See `Engine`; there is none, the model may only be too large."""

    def find(self, instance: Instance, known: KnownBounds, limits: Limits) -> Iterator[Finding]:
        """See `Engine`."""
        with limits.preparing():
            from makespan.proof.engines.cpsat import solver
        yield solver.solve(
            instance, limits, horizon=known.upper, hint=known.witness, workers=limits.threads, seed=limits.seed
        )
