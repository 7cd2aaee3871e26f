"""The engine of certificates: climbing, potentials that prove an upper bound, and witnesses that follow them."""

from collections.abc import Iterator

from makespan.model.feature import PROGRAMS, TIMES
from makespan.model.instance import Instance
from makespan.proof.engines.engine import KnownBounds
from makespan.proof.engines.finding import Finding
from makespan.proof.engines.limits import Limits

SHARE = 0.4
"""What the first beam may take of the time, and climbing of the rest where no beam knows the instance."""

SHARE_BESIDE_BEAMS = 0.1
"""What climbing may take where beams do: these find more there."""


class Certificates:
    """A beam along theorem E, climbing, then ever finer potentials (see `bounds.potential`), each with a beam."""

    name = backend = "certificate"
    about = "bounds, certificates and schedules that follow them, no search"
    knows = PROGRAMS | TIMES

    def obstacle(self, instance: Instance, limits: Limits) -> str | None:
        """See `Engine`; there is none, it may only prove nothing."""

    def find(self, instance: Instance, known: KnownBounds, limits: Limits) -> Iterator[Finding]:
        """See `Engine`."""
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
