"""Progress on stderr: in a terminal one line that is rewritten, elsewhere a new line now and then."""

import logging
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

from makespan.host.stopwatch import about_left, clock_time
from makespan.model.result import Step

SECONDS = 2.0
"""Between two lines, and before the first: quick work says nothing."""

_SECONDS_OF_TERMINAL = 0.25
_NARROWEST, _USUAL = 20, 80
_WIPE = "\r\x1b[K"
_shown: "list[Progress]" = []


class Progress:
    """A line of progress: it says how long the work has been going on, and what is proven so far."""

    def __init__(self, *, quiet: bool = False, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._began, self._bounds, self._is_there = clock, clock(), "", False
        self._is_terminal = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._every, self._next = (_SECONDS_OF_TERMINAL if self._is_terminal else SECONDS), 0.0
        self._next = float("inf") if quiet else self._began + self._every

    def __call__(self, line: str) -> None:
        """Show a line, if the last one has been there long enough."""
        if (now := self._clock()) < self._next:
            return
        self._next = now + self._every
        said = f"{clock_time(now - self._began)}  {self._bounds}{line}"
        if not self._is_terminal:
            click.echo(said, err=True)
            return
        self._is_there = True
        click.echo(f"{_WIPE}{said[: _columns() - 1]}", err=True, nl=False, color=True)

    def improved(self, step: Step) -> None:
        """Keep the proven interval of the worst case, in cycles, for the lines that follow."""
        self._bounds = f"worst case {step.lower}..{step.upper}; "

    def clear(self) -> None:
        """Take the line away, before something else is said."""
        if self._is_there:
            self._is_there = False
            click.echo(_WIPE, err=True, nl=False, color=True)

    def end(self) -> None:
        """Show nothing more, even if a thread of a solver that still winds up asks for it."""
        self._next = float("inf")  # a solver thread may still call
        self.clear()


def _columns() -> int:
    try:
        known = os.get_terminal_size(sys.stderr.fileno()).columns
    except OSError:
        known = 0
    return max(_NARROWEST, known or _USUAL)  # 0: a terminal that does not say


@contextmanager
def progress(*, quiet: bool = False) -> Iterator[Progress]:
    """Show progress until the end of the block."""
    line = Progress(quiet=quiet)
    _shown.append(line)
    try:
        yield line
    finally:
        _shown.remove(line)
        line.end()


@contextmanager
def counting(total: int, what: str, *, quiet: bool = False) -> Iterator[Callable[[], None]]:
    """Show the progress of `total` steps; the block calls what it gets after each of them."""
    with progress(quiet=quiet) as line:
        rest = RemainingTime(total)
        yield lambda: line(f"{what}: {rest.after_one()}")


class RemainingTime:
    """A count of steps that are done, with an estimate of the time for the rest from the second step on."""

    def __init__(self, total: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._total, self._done, self._clock, self._began = total, 0, clock, 0.0

    def after_one(self) -> str:
        """Count one more step and return a text such as `3 of 8, about 0:01:40 left`."""
        self._done += 1
        now = self._clock()
        # The first step loads libraries and compiles: it would make the estimate far too long.
        if self._done == 1:
            self._began = now
        rest = about_left(now - self._began, self._done - 1, self._total - self._done)
        return f"{self._done} of {self._total}{rest}"


def notice(line: str) -> None:
    """Write a line to stderr that stays, whatever progress is shown."""
    for each in _shown:  # or the notice would stand behind a half-written line
        each.clear()
    click.echo(line, err=True)


class Notices(logging.Handler):
    """A handler that shows log messages as notices, such as that a loop is compiled."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write the message of a record to stderr."""
        notice(f"makespan: {record.getMessage()}")
