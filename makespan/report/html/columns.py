"""Columns of whole numbers as short text, so that a page can carry 100,000 cycles and a script decode them at once."""

from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

PLAIN, RUNS = "p", "r"


def encode_column(values: Sequence[int]) -> str:
    """Return the numbers as `p` or `r` and base64 of bytes: `r` has pairs of a number and how often it stands in a row.

    Bytes are of base 128, the lowest digit first, with the top bit set on all but the last; a number n is written as
    2n where it is not negative and as -2n-1 where it is. The shorter of the two forms is taken.

    >>> encode_column([5, 5, 5, 5]), encode_column([1, -1, 64])
    ('rCgg=', 'pAgGAAQ==')
    """
    plain = bytes(_digits(values))
    runs = bytes(_digits(_pairs(values)))
    return min((PLAIN + _text(plain), RUNS + _text(runs)), key=len)


def differences(values: Iterable[int]) -> list[int]:
    """Return each number less the one before it, the first one less 0."""
    found, before = [], 0
    for value in values:
        found.append(value - before)
        before = value
    return found


def _pairs(values: Iterable[int]) -> Iterator[int]:
    for value, equal in groupby(values):
        yield value
        yield sum(1 for _ in equal)


def _digits(values: Iterable[int]) -> Iterator[int]:
    for value in values:
        rest = 2 * value if value >= 0 else -2 * value - 1
        while rest > 127:
            yield rest & 127 | 128
            rest >>= 7
        yield rest


def _text(data: bytes) -> str:
    return b64encode(data).decode("ascii")
