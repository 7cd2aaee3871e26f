"""A limit on the seconds that reading a kernel and making its programs may take, and what they leave over.

An engine that is out of time returns what it has proven. Half a program proves nothing, and a program that depended on
the speed of the machine would be another one tomorrow: so here time that is up is an error.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from time import monotonic
from typing import NamedTuple

from makespan.host.errors import OutOfTimeError

LEAST_SECONDS = 10.0
"""The least limit: compilers and libraries start slowly, and a short limit asks for a quick proof, not for none."""


@dataclass(slots=True)
class Reading:
    """The reading of a kernel; `left` are the seconds of the limit that remain for proofs once all is read."""

    left: float


class _Limit(NamedTuple):
    seconds: float
    end: float


_RUNNING: ContextVar[_Limit | None] = ContextVar("running", default=None)


@contextmanager
def within(seconds: float) -> Iterator[Reading]:
    """Limit the block to these seconds, or to `LEAST_SECONDS` if they are fewer, as far as it calls `check`."""
    given, began = max(seconds, LEAST_SECONDS), monotonic()
    token, reading = _RUNNING.set(_Limit(given, began + given)), Reading(seconds)
    try:
        yield reading
    finally:
        _RUNNING.reset(token)
        reading.left = max(0.0, seconds - (monotonic() - began))


def clock_time(seconds: float) -> str:
    """Return hours, minutes and seconds.

    >>> clock_time(100.2)
    '0:01:40'
    """
    minutes, whole = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{whole:02}"


def about_left(seconds: float, done: int, left: int) -> str:
    """Return words for how long the rest takes at the speed so far; empty where it is unknown, or all is done.

    >>> about_left(60, 3, 5), about_left(60, 0, 5), about_left(60, 3, 0)
    (', about 0:01:40 left', '', '')
    """
    return f", about {clock_time(seconds / done * left)} left" if done > 0 and left > 0 else ""


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
