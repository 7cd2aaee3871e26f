"""Why a checker stops: the evidence is wrong, or checking it would take too long."""

from makespan.errors import MakespanError


class Refused(MakespanError):
    """The bundle does not prove what it claims; the message is one line."""


class TooMuchWork(MakespanError):
    """An enumeration reached its limit; nothing is known from it."""


class Work:
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
