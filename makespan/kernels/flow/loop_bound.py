"""Loop bounds as a user gives them: on the command line, or in a bounds file."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from makespan.host.errors import InputError
from makespan.host.text_file import read_text

MAX_ITERATIONS = 65_536
MAX_BOUNDS_BYTES = 2**20

_GIVEN = re.compile(r"(?P<key>.*[^=\s])\s*(?P<sign>==?)(?P<count>[^=]*)")
_COUNT = re.compile(r"[0-9]{1,5}")


@dataclass(frozen=True, slots=True)
class GivenBound:
    """A bound that is not yet matched to a loop.

    Args:
        key: a label, `line:N` for the line at which a loop begins, or FILE:LINE of what the kernel was compiled from.
        maximum: iterations; 0 is for loops that test before their body.
        exact: whether the loop always runs so often, never fewer.
        place: file and line of a bounds file; empty for the command line.
        kernel: the only kernel that is meant; None for any.
        trusted: whether it counts even where the code proves that it is wrong.
    """

    key: str
    maximum: int
    exact: bool = False
    place: str = ""
    kernel: str | None = None
    trusted: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.maximum, bool) or not 0 <= self.maximum <= MAX_ITERATIONS:  # bool is an int, and no count
            raise InputError(f"{self.source}: a loop bound must be 1..{MAX_ITERATIONS}, not {self.maximum}")

    @property
    def source(self) -> str:
        """Return where the bound was given, in words."""
        return f"bounds file {self.place}" if self.place else "command line"


class BoundBasis(StrEnum):
    """The basis of a bound: a proof from the code, a user, a comment, or the compiler's table of lines."""

    CODE = "code"
    USER = "user"
    COMMENT = "comment"
    LINES = "lines"


class LoopBound(NamedTuple):
    """A bound on the iterations of a loop, with its source.

    Args:
        source: who says so, as text.
        given: of a bound that was transferred from PTX, the bounds of PTX loops on which it rests and that a user or a
            comment says, such as `L=16`.
    """

    maximum: int
    exact: bool
    source: str
    by: BoundBasis
    given: tuple[str, ...] = ()

    def given_for(self, label: str) -> tuple[str, ...]:
        """Return the bounds that a user or a comment gave: of the loop with this label, and of those behind its bound.

        >>> LoopBound(16, exact=True, source="command line", by=BoundBasis.USER).given_for("L")
        ('L==16',)
        """
        own = (  # bounds that the code proves, or that stand elsewhere, are not conditions of this loop
            (f"{label}{'==' if self.exact else '='}{self.maximum}",)
            if self.by in (BoundBasis.USER, BoundBasis.COMMENT)
            else ()
        )
        return own + self.given

    @property
    def iterations(self) -> str:
        """Return the bound in words, such as "at most 16 iterations"."""
        return iterations_text("exactly" if self.exact else "at most", self.maximum)

    def __str__(self) -> str:
        return f"{self.iterations} ({self.source})"


def iterations_text(how: str, count: int) -> str:
    """Return a count of iterations in words, such as "at least 1 iteration"."""
    return f"{how} {count} iteration{'s' * (count != 1)}"


def given_bound(text: str) -> GivenBound:
    """Read `LABEL=N` (at most N iterations) or `LABEL==N` (exactly N); LABEL may be FILE:LINE.

    >>> bound = given_bound("saxpy.cu:12==16")
    >>> bound.key, bound.maximum, bound.exact
    ('saxpy.cu:12', 16, True)

    Raises:
        InputError: anything else, or an N out of range.
    """
    match = _GIVEN.fullmatch(text.strip())
    if match is None:
        raise InputError(f"{text!r} is no loop bound: give LABEL=N, LABEL==N or FILE:LINE=N")
    return GivenBound(match["key"], _count(match["count"], f"--loop-bound {text}"), match["sign"] == "==")


def read_bounds(path: Path) -> tuple[GivenBound, ...]:
    """Read a bounds file: a line `LABEL,N`, `LABEL,==N` or `LABEL,N,KERNEL` for a loop; `#` begins a comment.

    Raises:
        InputError: a file that cannot be read, a line that is something else, a bound not filled in.
    """
    lines = enumerate(read_text(path, "bounds file", MAX_BOUNDS_BYTES).splitlines(), 1)
    stripped = ((number, line.partition("#")[0].strip()) for number, line in lines)
    return tuple(_line_bound(line, f"{path}:{number}") for number, line in stripped if line)


def loop_bounds(arguments: Iterable[str], *, trusted: bool = False) -> tuple[GivenBound, ...]:
    """Read the arguments of `--loop-bound`: LABEL=N, or the name of a bounds file; `trusted` is `--trust-bounds`.

    Raises:
        InputError: see `given_bound` and `read_bounds`.
    """
    several = ((given_bound(text),) if "=" in text else read_bounds(Path(text)) for text in arguments)
    return tuple(replace(bound, trusted=trusted) for bounds in several for bound in bounds)


def _line_bound(line: str, place: str) -> GivenBound:
    match [part.strip() for part in line.split(",")]:
        case [key, count, *kernel] if key and len(kernel) <= 1:
            if count.removeprefix("==") == "?":  # left over from a template
                raise InputError(f"{place}: the bound of {key} is not filled in: put a number in place of the ?")
            maximum = _count(count.removeprefix("=="), place)
            return GivenBound(key, maximum, count.startswith("=="), place, next(iter(kernel), None))
    raise InputError(f"{place}: expected LABEL,N or LABEL,==N or LABEL,N,KERNEL, got {line[:60]!r}")


def _count(text: str, where: str) -> int:
    digits = text.strip()
    if _COUNT.fullmatch(digits) is None or int(digits) > MAX_ITERATIONS:
        raise InputError(f"{where}: a loop bound must be a whole number 1..{MAX_ITERATIONS}, not {digits[:20]!r}")
    return int(digits)
