"""A limit on the seconds that reading a kernel and making its programs may take.

An engine that is out of time returns what it has proven. Half a program proves nothing, and a program that depended on
the speed of the machine would be another one tomorrow: so here time that is up is an error.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import monotonic
from typing import NamedTuple

from makespan.errors import OutOfTimeError

LEAST_SECONDS = 10.0
"""What everybody has: compilers and libraries start slowly, and a short limit asks for a quick proof, not for none."""


class _Limit(NamedTuple):
    seconds: float
    end: float


_RUNNING: ContextVar[_Limit | None] = ContextVar("running", default=None)


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """What is done in the block must be done in so many seconds or `LEAST_SECONDS`, as far as it calls `check`."""
    given = max(seconds, LEAST_SECONDS)
    token = _RUNNING.set(_Limit(given, monotonic() + given))
    try:
        yield
    finally:
        _RUNNING.reset(token)


def check(doing: str, remedy: str) -> None:
    """Go on if there is time; `remedy` says what makes this work shorter.

    Raises:
        OutOfTimeError: the time is up.
    """
    limit = _RUNNING.get()
    if limit is not None and monotonic() >= limit.end:
        raise OutOfTimeError(
            f"the time limit of {limit.seconds:g} s was up while {doing}, before anything could be solved: {remedy},"
            " or raise the time limit"
        )
