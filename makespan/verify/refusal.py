"""The reasons why the checker stops: the evidence is wrong, or checking it would take too long."""

from collections.abc import Iterator
from contextlib import contextmanager

from makespan.host.errors import MakespanError


class Refused(MakespanError):
    """The bundle does not prove what it claims; the message is one line."""


class TooMuchWork(MakespanError):
    """An enumeration reached its limit; nothing is known from it."""


class ProofSteps:
    """A number of steps that a proof may still take; limits make the checker refuse, and never accept."""

    __slots__ = ("left",)

    def __init__(self, steps: int) -> None:
        self.left = steps

    def spend(self, steps: int = 1) -> None:
        """Take steps off.

        Raises:
            TooMuchWork: fewer are left.
        """
        self.left -= steps
        if self.left < 0:
            raise TooMuchWork


class ProofBudget:
    """The work that all proofs of a bundle, of which there may be thousands, may take together.

    Args:
        proofs: the number of proofs of the largest size for which it is enough.
    """

    __slots__ = ("_left",)
    _WHOLE = 1_000_000

    def __init__(self, proofs: int) -> None:
        self._left = proofs * self._WHOLE

    @contextmanager
    def part(self, most: int) -> Iterator[ProofSteps]:
        """Yield the steps of one proof, at most `most`; those that it does not spend remain for others."""
        steps = most * min(self._left, self._WHOLE) // self._WHOLE
        work = ProofSteps(steps)
        try:
            yield work
        finally:
            self._left -= -(-self._WHOLE * (steps - max(work.left, 0)) // most)
