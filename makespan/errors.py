"""The few ways in which `makespan` can fail; an unwelcome answer is a value, not an error."""

from collections.abc import Callable, Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import TypeAlias

_LONGEST_NAME, _NEAR = 40, 0.7

Naming: TypeAlias = Callable[[str], str]
"""What the user calls a field: `--keep-ptx` on a command line, `keep_ptx` in Python."""


class MakespanError(Exception):
    """Base of everything this package raises on purpose."""


class InputError(MakespanError):
    """The input cannot be used as it is; the message is one line and names the remedy."""


class ParseError(InputError):
    """A place in a text that is not understood; reads `file:line:column: what was wrong`."""

    def __init__(self, file: str | Path, line: int, column: int, message: str, context: str = "") -> None:
        self.file, self.line, self.column = str(file), line, column
        self.message, self.context = message, context
        super().__init__(f"{self.file}:{line}:{column}: {message}")

    def adding(self, hint: str) -> "ParseError":
        """The same with a hint behind the message."""
        return ParseError(self.file, self.line, self.column, f"{self.message} ({hint})", self.context)


class UnsupportedError(InputError):
    """A valid request that this backend or reader cannot serve; the message names one that can."""


class OutOfTimeError(InputError):
    """The time limit was up before there was anything to solve; the message says what took it, and what shortens it."""


class MeasurementError(MakespanError):
    """A measurement failed, its result is not usable, or its device is missing; the message says what to do."""


class BrokenPromiseError(MakespanError):
    """Two of our own proofs contradict each other: a bug, never the user's fault."""


class InvalidScheduleError(BrokenPromiseError):
    """A schedule breaks a rule of the machine; the message names the first rule and cycle."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A question that follows an unknown name; empty where none of the known ones is near.

    >>> did_you_mean("slove", ["solve", "verify"]), did_you_mean("magic", ["solve"])
    ("; did you mean 'solve'?", '')
    """
    near = get_close_matches(name[:_LONGEST_NAME], known, 1, _NEAR)
    return f"; did you mean {near[0]!r}?" if near else ""
