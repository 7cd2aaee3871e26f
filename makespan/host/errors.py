"""The few ways in which `makespan` can fail; an unwelcome answer is a value, not an error."""

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import NamedTuple, TypeAlias

_LONGEST_NAME, _NEAR, _VERY_NEAR = 40, 0.7, 0.9
_LEAST_BEGIN, _MOST_NAMES = 3, 6
_CONTEXT_WIDTH = 120

Naming: TypeAlias = Callable[[str], str]
"""What the user calls a field: `--keep-ptx` on a command line, `keep_ptx` in Python; empty where it cannot be given."""


class MakespanError(Exception):
    """Base of everything this package raises on purpose."""


class InputError(MakespanError):
    """The input cannot be used as it is; the message is one line and names the remedy."""


class ParseError(InputError):
    """A place in a text is not understood; the message reads `file:line:column: what was wrong`."""

    def __init__(self, file: str | Path, line: int, column: int, message: str, context: str = "") -> None:
        self.file, self.line, self.column = str(file), line, column
        self.message, self.context = message, context
        super().__init__(f"{self.file}:{line}:{column}: {message}")

    @classmethod
    def at(cls, file: str | Path, text: str, position: int, message: str) -> "ParseError":
        """Return the error about a position in a text, with the line there and a caret below the place.

        >>> print(ParseError.at("k.ptx", "a b c", 2, "what is b?").context)
        a b c
          ^
        """
        start = text.rfind("\n", 0, position) + 1
        line, column = text[start:].split("\n", 1)[0].rstrip("\r"), position - start
        cut = max(0, column - _CONTEXT_WIDTH // 2)
        shown = "".join(letter if letter.isprintable() else " " for letter in line[cut : cut + _CONTEXT_WIDTH])
        context = f"{shown}\n{' ' * (column - cut)}^"
        return cls(file, text.count("\n", 0, position) + 1, column + 1, message, context)

    def adding(self, hint: str) -> "ParseError":
        """Return the same with a hint behind the message."""
        return ParseError(self.file, self.line, self.column, f"{self.message} ({hint})", self.context)


class MissingInput(NamedTuple):
    """An input without which a question has no answer.

    Args:
        field: of the question or its launch, such as `loop_bounds`.
        blank: what to write there, with N for a number that is to be filled in, such as `gemm.cu:24=N`. A flag has
            nothing there.
        what: it is, in words.
        instead: fields with blanks which, given all together, make this input unnecessary.
        hint: why it is not known although something is said of it; empty if nothing is.
    """

    field: str
    blank: str
    what: str
    instead: tuple[tuple[str, str], ...] = ()
    hint: str = ""

    def given(self, named: Naming) -> str:
        """Return how to give it, such as `--loop-bound 'gemm.cu:24=N'`; it can be copied to a command line.

        >>> MissingInput("loop_bounds", "$L__BB0_2=N", "a bound").given(str)
        "loop_bounds '$L__BB0_2=N'"
        """
        return _option_text(self.field, self.blank, named)


class MissingInputsError(InputError):
    """Inputs are missing; the message names all that can be named at once, each with its remedy."""

    def __init__(self, message: str, missing: Sequence[MissingInput] = ()) -> None:
        self.missing = tuple(missing)
        super().__init__(message)

    @classmethod
    def of(
        cls, where: str, missing: Sequence[MissingInput], named: Naming = str, more: str = ""
    ) -> "MissingInputsError":
        """Return the error about these inputs.

        >>> bytes_given = MissingInput("dynamic_shared", "N", "the bytes of shared memory that the launch adds")
        >>> print(MissingInputsError.of("gemm.cu", [bytes_given]))
        gemm.cu: 1 input is missing: the bytes of shared memory that the launch adds (dynamic_shared N)

        Args:
            where: the file, and what in it.
            named: what the user calls a field.
            more: what stands behind all of them.
        """
        count = "1 input is missing" if len(missing) == 1 else f"{len(missing)} inputs are missing"
        listed = "; ".join(_remedies_text(one, named) for one in missing) + more
        return cls("\n  ".join([f"{where}: {count}: {listed}", *(one.hint for one in missing if one.hint)]), missing)

    def adding(self, line: str) -> "MissingInputsError":
        """Return the same with one more line at the end."""
        return MissingInputsError(f"{self}\n{line}", self.missing)

    def with_command(self, words: Sequence[str], named: Naming) -> "MissingInputsError":
        """Return the same with a command in its second line: these words, and blanks for what is missing."""
        first, *hints = str(self).split("\n")
        # options end at `--`, so the missing ones go in front of it
        end = words.index("--") if "--" in words else len(words)
        given = (one.given(named) for one in self.missing)
        command = " ".join(filter(None, [shlex.join(words[:end]), *given, shlex.join(words[end:])]))
        return MissingInputsError("\n".join([first, f"  {command}", *hints]), self.missing)


def _remedies_text(missing: MissingInput, named: Naming) -> str:
    # a field without a name cannot be given here, so it is no remedy
    can_be_given = all(named(field) for field, _ in missing.instead)
    others = " and ".join(_option_text(field, blank, named) for field, blank in missing.instead if can_be_given)
    return f"{missing.what} ({missing.given(named)}{f', or {others}' if others else ''})"


def _option_text(field: str, blank: str, named: Naming) -> str:
    """Return a field with its value, as a shell takes it. Labels of loops are always in quotes; a flag stands alone."""
    if not blank:
        return named(field)
    quoted = shlex.quote(blank)
    return f"{named(field)} {repr(blank) if quoted == blank and field == 'loop_bounds' else quoted}"


class UnsupportedError(InputError):
    """A valid request that this backend or reader cannot serve; the message names one that can."""


class OutOfTimeError(InputError):
    """The time limit was up before there was anything to solve; the message says what took time, and what helps."""


@contextmanager
def prefix_errors(where: str) -> Iterator[None]:
    """Let errors about the input say where it stands: in a file, in a table, or in one of several launches."""
    try:
        yield
    except InputError as error:
        # the place of a ParseError stands in its message already
        kind = InputError if isinstance(error, ParseError) else type(error)
        raise kind(f"{where}: {error}") from None


class MeasurementError(MakespanError):
    """A measurement failed, its result is not usable, or its device is missing; the message says what to do."""


class BrokenPromiseError(MakespanError):
    """Two proofs of this program contradict each other, which is a bug and never the user's fault."""


class InvalidScheduleError(BrokenPromiseError):
    """A schedule breaks a rule of the machine; the message names the first rule and cycle."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a question that follows an unknown name; empty where none of the known ones is near.

    The same letters and digits come first, then a name that differs by about one letter, then all names that begin
    like this one, and then the nearest of the others: who asks for an `h100` means no `h200`.

    >>> did_you_mean("slove", ["solve", "verify"]), did_you_mean("magic", ["solve"])
    ("; did you mean 'solve'?", '')
    >>> did_you_mean("H100", ["h100-pcie", "h100-sxm", "h200"])
    "; did you mean 'h100-pcie' or 'h100-sxm'?"
    """
    cut, names = name[:_LONGEST_NAME], list(dict.fromkeys(known))
    return meant(
        [each for each in names if _plain(each) == _plain(cut)]
        or get_close_matches(cut, names, 1, _VERY_NEAR)
        or [each for each in names if begins(cut, each)]
        or get_close_matches(cut, names, 1, _NEAR)
    )


def meant(names: Sequence[str]) -> str:
    """Return the question whether one of these names was meant; empty without any.

    >>> meant(["a", "b", "c"]), meant([])
    ("; did you mean 'a', 'b' or 'c'?", '')
    """
    *others, last = map(repr, names[:_MOST_NAMES]) if names else ("",)
    listed = f"{', '.join(others)} or {last}" if others else last
    return f"; did you mean {listed}?" if names else ""


def begins(part: str, name: str) -> bool:
    """Return whether a name begins with these letters and digits, at least three; case and other signs do not matter.

    >>> begins("RTX 30", "rtx-3070"), begins("rtx-3070-ti", "rtx-3070"), begins("r", "rtx-3070")
    (True, False, False)
    """
    plain = _plain(part)
    return len(plain) >= _LEAST_BEGIN and _plain(name).startswith(plain)


def _plain(name: str) -> str:
    return re.sub(r"[\W_]", "", name).lower()
