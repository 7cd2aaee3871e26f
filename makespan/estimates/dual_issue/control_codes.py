"""Control codes of GK110: scheduling words of eight bits for each of seven instructions, and what the codes do.

Source: Zhang, Tan, Xue, Li, Zhou and Chen, PPoPP 2017, and its assembler KeplerAs.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from makespan.host.errors import InputError

PER_BLOCK = 7  # instructions of a block; with their scheduling word they are eight 64-bit words
CODES = 256
SINGLE_ISSUE = 0x20  # the code that the sources call single-issue mode: the next instruction follows one cycle later

_OPCODE, _OPCODE_MASK = 0x0800_0000_0000_0000, 0xFC00_0000_0000_0003
_FIRST, _BITS = 2, 8  # lowest bit of the first code, and bits of each
_SPELLED = re.compile(r"([T-]):([G-]):([D-]):([S-]):([0-9]{2})")
_TEXTURE, _GLOBAL, _NOT_DUAL, _SHARED, _STALL = 0x80, 0x40, 0x20, 0x10, 0x0F


def check_code(code: int, what: str = "a control code") -> int:
    """Return the code itself.

    Raises:
        InputError: not 0..255.
    """
    if not 0 <= code < CODES:
        raise InputError(f"{what} is one byte, 0x00..0xff, not {code:#x}")
    return code


def encode(codes: Sequence[int]) -> int:
    """Return the scheduling word of a block.

    >>> hex(encode([0x05, 0x04, 0x05, 0x04, 0x05, 0x04, 0x90]))
    '0xa40101410141014'

    Raises:
        InputError: not seven codes, or one outside 0..255.
    """
    if len(codes) != PER_BLOCK:
        raise InputError(f"a scheduling word has {PER_BLOCK} codes, one per instruction of its block, not {len(codes)}")
    return _OPCODE | sum(check_code(code) << (_FIRST + _BITS * at) for at, code in enumerate(codes))


def decode(word: int) -> tuple[int, ...]:
    """Return the seven codes of a scheduling word.

    Raises:
        InputError: no 64-bit word, or one without the opcode of scheduling words (0x08 on top, 00 in the lowest bits).
    """
    if not 0 <= word < 1 << 64:
        raise InputError("a scheduling word has 64 bits, 16 hexadecimal digits at most")
    if word & _OPCODE_MASK != _OPCODE:
        raise InputError(
            f"{word:#018x} is no scheduling word: its top six and lowest two bits must be those of {_OPCODE:#018x}"
        )
    return tuple(word >> (_FIRST + _BITS * at) & 0xFF for at in range(PER_BLOCK))


def code_text(code: int) -> str:
    """Return a code as KeplerAs writes it, T:G:D:S:nn: bits 7, 6, 5 (inverted) and 4, and the low four in decimal.

    >>> code_text(0x05), code_text(0x20)
    ('-:-:D:-:05', '-:-:-:-:00')
    """
    check_code(code)
    flags = (
        "T" if code & _TEXTURE else "-",
        "G" if code & _GLOBAL else "-",
        "-" if code & _NOT_DUAL else "D",
        "S" if code & _SHARED else "-",
    )
    return ":".join((*flags, f"{code & _STALL:02d}"))


def parse_code(text: str) -> int:
    """Return the code that `code_text` wrote.

    Raises:
        InputError: other text.
    """
    match = _SPELLED.fullmatch(text)
    if match is None or int(match[5]) > _STALL:
        raise InputError(f"{text!r} is no control code; write T:G:D:S:nn with '-' for what is off and nn = 00..15")
    bits = (match[1] == "T", match[2] == "G", match[3] == "-", match[4] == "S")
    return sum(bit << place for bit, place in zip(bits, (7, 6, 5, 4), strict=True)) | int(match[5])


GK110_DUAL = 0x04
GK110_PARTNERS = (0x05, 0x06, 0x07)  # codes of the second instruction of a pair
_GK110_LONGEST = 32  # cycles; longer stalls are cut there


def gk110_gap(code: int) -> int:
    """Return the cycles from an instruction with this code to the next of its warp, on the reference machine.

    Source: Zhang et al., PPoPP 2017, digitised figure and text; between the digitised points a straight line.
    """
    if code < 0x20:
        return {0x00: 16, GK110_DUAL: 0}.get(code, 1)
    if 0x80 <= code < 0xE0:
        step = code & 15
        return 2 * step + 1 if step <= 10 else _GK110_LONGEST
    step = code & 31
    return step + 1 if step <= 20 else _GK110_LONGEST


GK110_GAPS = tuple(map(gk110_gap, range(CODES)))


@dataclass(frozen=True, slots=True)
class StallField:
    """A contiguous field of the code's bits that counts stall cycles.

    Args:
        base: the code with an empty field; the other bits are those of `base`.
        shift: the lowest bit of the field.
        width: bits of the field.
        start: gap of an empty field, on the straight line: code `base` itself may open a dual issue instead.
        slope: cycles per step.
        last: the largest field value of the straight line; it starts at 0.
        saturation: the gap beyond `last`, where that is one and the same; None where there is none.
    """

    base: int
    shift: int
    width: int
    start: float
    slope: int
    last: int
    saturation: int | None

    @property
    def codes(self) -> tuple[int, ...]:
        """Return the codes of the field, by rising field value."""
        return tuple(self.base + (value << self.shift) for value in range(1 << self.width))
