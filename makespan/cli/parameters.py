"""Types of command-line parameters: text in, checked value out."""

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import click

from makespan.host.errors import InputError, did_you_mean
from makespan.model.instance import MAX_WARPS
from makespan.model.machine import Machine

_BYTES = {"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "KB": 10**3, "MB": 10**6, "GB": 10**9}
_DIGITS = 12  # longer numbers are refused before they are converted


def choice(name: str, among: str | Sequence[str], help: str, *, default: bool = True) -> Callable[[Any], Any]:
    """An option that takes one word, of a sequence or a text with spaces between; the first is the default, if any.

    >>> choice("--rep", "real ceil", "fillings of an SM")(click.command("x")(lambda rep: None)).params[0].default
    'real'
    """
    words = among.split() if isinstance(among, str) else among
    return click.option(name, type=OneOf(words), default=words[0] if default else None, show_default=default, help=help)


class OneOf(click.Choice[str]):
    """One of several words, and a question where another one was meant."""

    def get_invalid_choice_message(self, value: object, ctx: click.Context | None) -> str:
        """Which words there are, and which is near."""
        said = super().get_invalid_choice_message(value, ctx).rstrip(".")
        return f"{said}{did_you_mean(str(value), map(str, self.choices))}"


class Capacity(click.ParamType[Machine]):
    """`C=1,L=1`: a machine from capacities."""

    name = "X=N,..."

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Machine:
        """Return the machine, named "custom"."""
        if isinstance(value, Machine):
            return value
        capacities: dict[str, int] = {}
        for item in str(value).split(","):
            match = re.fullmatch(rf"\s*([^=\s]+)\s*=\s*(-?\d{{1,{_DIGITS}}})\s*", item)
            if match is None:
                self.fail(f"{item!r} is not CLASS=NUMBER, such as C=1", param, ctx)
            if match[1] in capacities:
                self.fail(f"class {match[1]} is given twice", param, ctx)
            capacities[match[1]] = int(match[2])
        try:
            return Machine.of(capacities)
        except InputError as error:
            self.fail(str(error), param, ctx)


class Warps(click.ParamType[range]):
    """`8` or `1..48`: one count or a range of counts, both ends included."""

    name = "N|A..B"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> range:
        """Return the counts."""
        if isinstance(value, range):
            return value
        match = re.fullmatch(rf"(\d{{1,{_DIGITS}}})(?:\.\.(\d{{1,{_DIGITS}}}))?", str(value))
        if match is None:
            self.fail(f"{value!r} is neither a number of warps nor a range such as 1..48", param, ctx)
        first, last = int(match[1]), int(match[2] or match[1])
        if not 1 <= first <= last <= MAX_WARPS:
            self.fail(f"{value} must be a number or a rising range within 1..{MAX_WARPS}", param, ctx)
        return range(first, last + 1)


class Seconds(click.ParamType[float]):
    """A positive, finite number of seconds."""

    name = "SECONDS"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the seconds."""
        try:
            seconds = float(str(value))
        except ValueError:
            self.fail(f"{value!r} is not a number of seconds", param, ctx)
        if not (math.isfinite(seconds) and seconds > 0):
            self.fail(f"{value} must be positive and finite", param, ctx)
        return seconds


class Memory(click.ParamType[int]):
    """`8GiB`, `500MB` or a number of bytes."""

    name = "SIZE"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the bytes."""
        match = re.fullmatch(rf"(\d{{1,{_DIGITS}}})\s*([A-Za-z]*)", str(value))
        if match is None or match[2] not in _BYTES or int(match[1]) == 0:
            self.fail(f"{value!r} is not a size such as 8GiB; units: {', '.join(filter(None, _BYTES))}", param, ctx)
        return int(match[1]) * _BYTES[match[2]]


def extents(text: str, what: str) -> tuple[int, ...]:
    """Return a shape such as `4096x4096`.

    Raises:
        InputError: no such thing.
    """
    if not re.fullmatch(rf"\d{{1,{_DIGITS}}}(x\d{{1,{_DIGITS}}})*", text, re.ASCII):
        raise InputError(f"{what} {text!r}: a shape is numbers with x between, such as 4096x4096")
    return tuple(map(int, text.split("x")))
