"""Listings of machine code with control codes, in the syntax of KeplerAs, and what they do cycle by cycle.

A line is `T:G:D:S:nn [@P0] MNEMONIC operands;`, with `#` and `//` for comments and `NAME:` for labels. Two comments
mean something: `# pattern: 1-2-2-1`, and `# block N[: 0xWORD]` in front of seven instructions. Without block comments a
block is every seven instructions.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from makespan.estimates.dual_issue.arbiter import Pattern, parse_pattern, spell
from makespan.estimates.dual_issue.control_codes import GK110_DUAL, PER_BLOCK, decode, parse_code
from makespan.estimates.dual_issue.device import OPERANDS, Opcode
from makespan.estimates.dual_issue.registers import ZERO, Banks, ways
from makespan.host.errors import InputError, ParseError, UnsupportedError
from makespan.host.text_file import read_text

MAX_BYTES = 4 << 20
_ARITHMETIC = {"FFMA", "FMUL", "FADD"}
_NO_RESULT = ("ST", "BRA", "EXIT", "NOP", "BAR", "ISETP", "FSETP", "RED", "TEXDEPBAR", "RET", "MEMBAR")
_WIDE = {"64": 2, "128": 4}
_INSTRUCTION = re.compile(r"(\S+)\s+(@!?P[0-7T]\s+)?([A-Z][A-Z0-9]*(?:\.[A-Za-z0-9]+)*)\s*([^;]*?)\s*;?")
_LABEL = re.compile(r"[A-Za-z_]\w*:")
_REGISTER = re.compile(r"(?<![\w.])R(\d+|Z)(?!\w)")
_PATTERN = re.compile(r"#\s*pattern:\s*(\S+)\s*")
_BLOCK = re.compile(r"#\s*block\s+(\d{1,6})\s*(?::\s*(0[xX][0-9a-fA-F]{1,16}))?\s*")
_OPERAND = re.compile(r"[\w\s.\-+|~!\[\]*]+")
_MOST_DIGITS = 9


@dataclass(frozen=True, slots=True)
class ListingLine:
    """An instruction of a listing.

    Args:
        code: the control code.
        mnemonic: with its modifiers, such as `LDS.64`.
        guard: `@P0`, `@!P0` or nothing.
        number: in the file, for messages.
    """

    code: int
    mnemonic: str
    operands: tuple[str, ...] = ()
    guard: str = ""
    number: int = field(default=0, compare=False)

    @property
    def base(self) -> str:
        """Return the mnemonic without modifiers."""
        return self.mnemonic.partition(".")[0]

    @property
    def is_arithmetic(self) -> bool:
        """Return whether the instruction needs lanes, and reads registers through the ports of the banks."""
        return self.base in _ARITHMETIC

    @property
    def written(self) -> tuple[int, ...]:
        """Return the registers that the instruction writes, other than RZ."""
        if self.base.startswith(_NO_RESULT) or not self.operands:
            return ()
        first = _registers(self.operands[0])
        if not first or first[0] == ZERO:
            return ()
        return tuple(range(first[0], first[0] + self._width))

    @property
    def sources(self) -> tuple[int, ...]:
        """Return the registers that the instruction reads, other than RZ; a store reads its address and its data."""
        skipped = 0 if self.base.startswith(_NO_RESULT) else 1
        named = (register for operand in self.operands[skipped:] for register in _registers(operand))
        return tuple(register for register in named if register != ZERO)

    @property
    def _width(self) -> int:
        parts = self.mnemonic.split(".")[1:]
        return max((_WIDE.get(part, 1) for part in parts), default=1) if self.base.startswith("LD") else 1

    def __str__(self) -> str:
        guard = f"{self.guard} " if self.guard else ""
        operands = f" {', '.join(self.operands)}" if self.operands else ""
        return f"{guard}{self.mnemonic}{operands}"


Block = tuple[ListingLine, ...]


@dataclass(frozen=True, slots=True)
class Listing:
    """A listing in blocks of seven instructions; the last block may be shorter.

    Args:
        pattern: of single and dual issues that the listing says it has.
    """

    blocks: tuple[Block, ...]
    pattern: Pattern | None = None

    @property
    def lines(self) -> tuple[ListingLine, ...]:
        """Return all instructions in order."""
        return tuple(line for block in self.blocks for line in block)


def read(path: Path) -> Listing:
    """Return the listing in a file.

    Raises:
        InputError: a file that cannot be read, is too large, or is no listing.
    """
    return parse(read_text(path, "listing", MAX_BYTES), str(path))


def parse(content: str, where: str) -> Listing:
    """Return the listing in a text.

    Raises:
        ParseError: the first line that is not understood, a block of more or fewer than seven instructions, or a
            scheduling word that is none or does not fit the codes below it.
    """
    pattern = None
    marks: list[tuple[int, int, int | None]] = []  # line number, instructions before it, scheduling word
    lines: list[ListingLine] = []
    for number, raw in enumerate(content.split("\n"), start=1):
        try:
            line = raw.strip()
            if line.startswith("#"):
                if match := _PATTERN.fullmatch(line):
                    pattern = parse_pattern(match[1])
                elif match := _BLOCK.fullmatch(line):
                    marks.append((number, len(lines), int(match[2], 16) if match[2] else None))
            elif (code := re.split(r"//|#", line, maxsplit=1)[0].strip()) and not _LABEL.fullmatch(code):
                lines.append(ListingLine(*_fields(code), number))
        except InputError as error:
            raise ParseError(where, number, 1, str(error), raw[:200]) from None
    if not lines:
        raise ParseError(where, 1, 1, "no instruction in the listing")
    return Listing(_blocks(lines, marks, where), pattern)


@lru_cache(maxsize=4096)
def _fields(line: str) -> tuple[int, str, tuple[str, ...], str]:
    """Return code, mnemonic, operands and guard of an instruction; loops have the same line many times."""
    if line.startswith("<"):
        raise UnsupportedError("sections and macros of KeplerAs are not read; give the expanded listing")
    match = _INSTRUCTION.fullmatch(line)
    if match is None:
        raise InputError("expected T:G:D:S:nn MNEMONIC operands;")
    code, guard, mnemonic, rest = parse_code(match[1]), (match[2] or "").strip(), match[3], match[4]
    operands = tuple(" ".join(part.split()) for part in rest.split(",")) if rest else ()
    for operand in operands:
        if not _OPERAND.fullmatch(operand):
            raise InputError(f"operand {operand[:40]!r} is not understood")
        _registers(operand)
    base = mnemonic.partition(".")[0]
    if base in _ARITHMETIC and len(operands) != 1 + OPERANDS[Opcode(base)]:
        raise InputError(f"{mnemonic} has a destination and {OPERANDS[Opcode(base)]} sources")
    return code, mnemonic, operands, guard


def _registers(operand: str) -> tuple[int, ...]:
    named = _REGISTER.findall(operand)
    if any(name != "Z" and (len(name) > _MOST_DIGITS or int(name) >= ZERO) for name in named):
        raise InputError(f"{operand[:40]}: registers are R0..R{ZERO - 1} and RZ")
    return tuple(ZERO if name == "Z" else int(name) for name in named)


def _blocks(
    lines: Sequence[ListingLine], marks: Sequence[tuple[int, int, int | None]], where: str
) -> tuple[Block, ...]:
    if not marks:
        return tuple(tuple(lines[at : at + PER_BLOCK]) for at in range(0, len(lines), PER_BLOCK))
    if marks[0][1]:
        raise ParseError(where, lines[0].number, 1, "instructions in front of the first block comment")
    ends = [*[before for _, before, _ in marks[1:]], len(lines)]
    blocks = []
    for index, ((number, start, word), end) in enumerate(zip(marks, ends, strict=True)):
        block = tuple(lines[start:end])
        last = index == len(marks) - 1
        if len(block) > PER_BLOCK or not block or (len(block) < PER_BLOCK and not last):
            message = f"a block has {PER_BLOCK} instructions, this one {len(block)}: pad with NOP or cut"
            raise ParseError(where, number, 1, message)
        if word is not None:
            _check_word(word, block, where, number)
        blocks.append(block)
    return tuple(blocks)


def _check_word(word: int, block: Block, where: str, number: int) -> None:
    try:
        stated = decode(word)
    except InputError as error:
        raise ParseError(where, number, 1, str(error)) from None
    if stated[: len(block)] != tuple(line.code for line in block):
        raise ParseError(where, number, 1, f"the codes below are not those of the scheduling word {word:#018x}")


_WHOLE = [1, 1, 2, 2]


@dataclass(frozen=True, slots=True)
class CycleReport:
    """An issue cycle. Only arithmetic instructions count: addresses are not read through the ports of the banks.

    Args:
        block: which block the instructions are of, from 0.
        reads: registers that the banks have to deliver, rising.
        banks: the bank of each of them.
        cached: registers that the operand cache still has from the issue cycle before.
        shared: registers that both instructions need.
        ways: the most reads of one bank; 0 or 1 is free of conflicts.
    """

    block: int
    lines: tuple[ListingLine, ...]
    reads: tuple[int, ...]
    banks: tuple[int, ...]
    cached: tuple[int, ...]
    shared: tuple[int, ...]
    ways: int

    @property
    def issued(self) -> int:
        """Return the number of arithmetic instructions."""
        return sum(line.is_arithmetic for line in self.lines)


def check(
    listing: Listing, banks: Banks, *, dual: Collection[int] = (GK110_DUAL,), cache: bool = True
) -> tuple[CycleReport, ...]:
    """Return what each issue cycle of a listing does.

    Args:
        dual: control codes that open a dual issue.
        cache: whether there is an operand cache.

    Raises:
        InputError: a dual issue that no hardware does (over the end of a block, of dependent instructions), or a
            pattern of single and dual issues that does not fit its block.
    """
    reports: list[CycleReport] = []
    before: frozenset[int] = frozenset()
    for number, block in enumerate(listing.blocks):
        for lines in _cycles(block, number, dual):
            needed = [frozenset(line.sources) for line in lines if line.is_arithmetic]
            need = frozenset().union(*needed)
            cached = need & before if cache else frozenset()
            reads = tuple(sorted(need - cached))
            shared = needed[0] & needed[1] if len(needed) > 1 else frozenset()
            reports.append(
                CycleReport(
                    number, lines, reads, tuple(map(banks, reads)), tuple(sorted(cached)), tuple(sorted(shared)),
                    ways(reads, banks),
                )
            )  # fmt: skip
            before = need  # the operand cache holds what the last issue cycle read
    for number in range(len(listing.blocks)):
        _check_pattern(pattern_of(reports, number), listing.pattern, number)
    return tuple(reports)


def pattern_of(reports: Collection[CycleReport], block: int) -> Pattern:
    """Return how many arithmetic instructions each issue cycle of a block has, those without any left out."""
    return tuple(report.issued for report in reports if report.block == block and report.issued)


def _cycles(block: Block, number: int, dual: Collection[int]) -> Iterator[tuple[ListingLine, ...]]:
    if len(block) == PER_BLOCK and block[-1].code in dual:
        raise InputError(
            f"line {block[-1].number}: a dual code on the last slot of block {number}: nothing can issue with"
            f" {block[-1]}"
        )
    at = 0
    while at < len(block):
        first = block[at]
        if first.code not in dual:
            yield (first,)
            at += 1
            continue
        if at + 1 == len(block):
            raise InputError(f"line {first.number}: a dual code on the last instruction of the listing")
        second = block[at + 1]
        if hazard := set(first.written) & {*second.sources, *second.written}:  # read after write, and write after write
            raise InputError(
                f"line {second.number}: {second} depends on {first} by R{min(hazard)}: they cannot issue together"
            )
        yield (first, second)
        at += 2


def _check_pattern(found: Pattern, stated: Pattern | None, block: int) -> None:
    """Refuse a block whose pattern is not the stated one, or has dual issues and is none of the six."""
    if 2 not in found and stated is None:
        return
    if (stated is None and sorted(found) != _WHOLE) or (stated is not None and found and found != stated):
        wanted = "two single and two dual issues" if stated is None else spell(stated)
        raise InputError(
            f"block {block} has the FFMA pattern {spell(found)} instead of {wanted}: a pattern must not cross the"
            " boundary of an 8-word block; align it, six FFMAs and a free slot to a block"
        )
