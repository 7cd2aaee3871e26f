"""Why a checker stops: the evidence is wrong, or checking it would take too long."""

from collections.abc import Iterator
from contextlib import contextmanager

from makespan.host.errors import MakespanError


class Refused(MakespanError):
    """The bundle does not prove what it claims; the message is one line."""


class TooMuchWork(MakespanError):
    """An enumeration reached its limit; nothing is known from it."""


class ProofSteps:
    """A number of steps that may still be done."""

    __slots__ = ("left",)

    def __init__(self, steps: int) -> None:
        self.left = steps

    def spend(self, steps: int = 1) -> None:
        """Count `steps`.

        Raises:
            TooMuchWork: there are not so many left.
        """
        self.left -= steps
        if self.left < 0:
            raise TooMuchWork


class ProofBudget:
    """What all proofs of a bundle may take together: as much as `proofs` of the largest; a bundle can have thousands.

    Args:
        proofs: so many.
    """

    __slots__ = ("_left",)
    _WHOLE = 1_000_000

    def __init__(self, proofs: int) -> None:
        self._left = proofs * self._WHOLE

    @contextmanager
    def part(self, most: int) -> Iterator[ProofSteps]:
        """The steps of one proof, at most `most`; what it does not spend remains for others."""
        steps = most * min(self._left, self._WHOLE) // self._WHOLE
        work = ProofSteps(steps)
        try:
            yield work
        finally:
            self._left -= -(-self._WHOLE * (steps - max(work.left, 0)) // most)
