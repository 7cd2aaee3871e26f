"""Inputs like others: bytes, words and lines changed, moved, taken from another input, or made extreme."""

import re
import struct
from collections.abc import Sequence
from contextlib import suppress
from random import Random

from makespan.host.errors import MakespanError
from tests.sass.test_fuzz import DAMAGES

MOST_BYTES = 60_000
_NUMBERS = b"0 -1 1 00 1e9 1e999 -0.0 nan inf NaN 0x1p9 1_0 99999999999 18446744073709551616 1970-01-01"
_WORDS = b"true null '' [] {} = == .. [ ] { } ( ) | , ; : # @ /* % $ -- \\ \" \\ud800"
_LETTERS = "\u00b9 \u0663 \u2028 \ufeff \x1b[31m \x7f \x85".encode() + b" \xed\xa0\x80 \xff"
_LONG = b"9" * 5000, b"[" * 3000, b"a." * 300, b"1" * 90, b"\x7f" * 8, b"\xff" * 8, b"\0", b" ", b"\n", b"\r"
EXTREME = (*_NUMBERS.split(b" "), *_WORDS.split(b" "), *_LETTERS.split(b" "), *_LONG)
_WORD = re.compile(rb"\w+|\s+|[^\w\s]")


def mutant(data: bytes, other: bytes, draw: Random) -> bytes:
    """One to a few changes of `data`, some with parts of `other`; of machine code mostly of its sections."""
    if data.startswith(b"\x7fELF") and draw.random() < 0.7:
        sections = bytearray(data)
        with suppress(MakespanError, struct.error, LookupError, ValueError):  # it is damaged already
            draw.choice(DAMAGES)(sections, draw)
        return bytes(sections)
    for _ in range(draw.choice((1, 1, 1, 2, 3, 8))):
        kind = draw.randrange(4)
        if kind == 0:
            data = _of_bytes(bytearray(data), draw)
        elif kind == 1:
            data = b"\n".join(_of_parts(data.split(b"\n"), other.split(b"\n"), draw))
        else:
            data = b"".join(_of_parts(_WORD.findall(data), _WORD.findall(other), draw))
    return data[:MOST_BYTES]


def _of_bytes(data: bytearray, draw: Random) -> bytes:
    at, size = draw.randrange(len(data) + 1), draw.choice((1, 2, 4, 8, 40))
    match draw.randrange(4):
        case 0 if at < len(data):
            data[at] = draw.choice((0, 1, 0x7F, 0x80, 0xFF, draw.randrange(256), data[at] ^ 1 << draw.randrange(8)))
        case 1:
            del data[at : at + size]
        case 2:
            data[at : at + size] = draw.randbytes(size)
        case _:
            data[at : at + size] = draw.choice((b"\0", b"\xff", b"\x7f")) * size
    return bytes(data)


def _of_parts(parts: Sequence[bytes], others: Sequence[bytes], draw: Random) -> list[bytes]:
    some = list(parts)
    if not some:
        return [draw.choice(EXTREME)]
    at, to = draw.randrange(len(some)), draw.randrange(len(some))
    match draw.randrange(7):
        case 0:
            some[at] = draw.choice(EXTREME)
        case 1:
            some.insert(at, draw.choice(EXTREME))
        case 2:
            some[at], some[to] = some[to], some[at]
        case 3:
            del some[at : at + draw.choice((1, 1, 2, 5))]
        case 4:
            some[to:to] = some[at : at + draw.choice((1, 2, 9))]
        case 5:
            some[at] = draw.choice(others or [b""])
        case _:
            number = re.fullmatch(rb"\d{1,9}", some[at])
            some[at] = b"%d" % (int(number[0]) + draw.choice((-1, 1, 1000))) if number else some[to]
    return some
