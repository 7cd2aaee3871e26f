"""Effort that is counted, not timed: it is the same on every machine, loaded or not."""

import sys
from collections.abc import Callable
from types import FrameType

from makespan.proof.engines import Limits


class Looks(Limits):
    """A budget that is used up by looking at it: of `Looks(n)`, each look takes one of n seconds."""

    looked = 0

    @property
    def elapsed(self) -> float:
        """How often somebody has looked before."""
        self.looked += 1
        return float(self.looked - 1)


class TooManyCalls(Exception):
    """A function does more than it should."""


def calls(function: Callable[[], object], most: int = sys.maxsize) -> int:
    """How many functions, Python's own among them, `function` calls; more than `most` raise `TooManyCalls`."""
    made = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal made
        made += event in ("call", "c_call")
        if made > most:
            raise TooManyCalls

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        function()
    finally:
        sys.setprofile(before)
    return made
