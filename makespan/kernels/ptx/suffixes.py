"""The suffixes that PTX has: a misspelt one is not taken for something new."""

import re
from functools import cache
from importlib import resources

_PATTERN = re.compile(r"m[0-9]+n[0-9]+(k[0-9]+)?|[0-9]+x[0-9]+b(x2)?|b[0-7]{1,4}|h[0-3]{1,2}")


@cache
def suffixes() -> frozenset[str]:
    """Return the shipped words."""
    text = (resources.files("makespan") / "data" / "suffixes.txt").read_text("utf-8")
    return frozenset(word for line in text.splitlines() if not line.startswith("#") for word in line.split())


def unknown_suffix(opcode: str) -> str | None:
    """Return the first suffix that no instruction of PTX has; None if each is one.

    >>> unknown_suffix("ld.global.L1::no_allocate.v4.f32x7")
    'f32x7'
    """
    return next((suffix for suffix in opcode.split(".")[1:] if not all(map(_is_known, suffix.split("::")))), None)


def _is_known(word: str) -> bool:
    return word in suffixes() or _PATTERN.fullmatch(word) is not None
