"""The lines of PTX and of source from which instructions come, by the line tables of a cubin.

Source: DWARF 4, section 6.2, line number information; what NVIDIA adds (extended opcodes for inlined calls) is skipped.
"""

import struct
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from makespan.host.errors import InputError
from makespan.host.tool import printable
from makespan.kernels.flow import SourceLine
from makespan.kernels.sass.elf import Elf
from makespan.kernels.sass.module import Address

SOURCE_LINES, PTX_LINES, PTX_TEXT = ".debug_line", ".nv_debug_line_sass", ".nv_debug_ptx_txt"

_VERSIONS = 2, 3, 4
_HEADER = struct.Struct("<IHI")
_MOST_BYTES, _MOST_ROWS, _MOST_FILES, _MOST_LINE = 2**23, 2**20, 10_000, 2**31


class LineRow(NamedTuple):
    """A row of a table: code from this address on comes from this line; 0 means that no line is known."""

    address: int
    file: str | None
    line: int


class SectionLines:
    """The lines of the instructions in one section of code; `file` is the name of files that have none."""

    def __init__(self, rows: Sequence[LineRow], file: str | None = None) -> None:
        self._rows = sorted(rows, key=lambda row: (row.address, row.line > 0))  # at one address a row with a line wins
        self._addresses = [row.address for row in self._rows]
        self._file = file

    def __getitem__(self, address: Address) -> SourceLine | None:
        at = bisect_right(self._addresses, address)
        row = self._rows[at - 1] if at else None
        file = None if row is None else row.file or self._file
        return SourceLine(file, row.line) if row is not None and row.line and file is not None else None


def line_table(image: Elf, name: str) -> Mapping[int, Sequence[LineRow]]:
    """Return the rows of a line table by number of the section; none if there is no table that can be read.

    Raises:
        InputError: the table is damaged or too large.
    """
    section = image.section(name)
    found: dict[int, list[LineRow]] = defaultdict(list)
    if section is None:
        return found
    if section.size > _MOST_BYTES:
        raise InputError(
            f"{image.file}: {name} is larger than {_MOST_BYTES >> 20} MiB; make the file without -lineinfo"
        )
    places = {found.offset: found for found in image.relocations(section)}
    origins = {at: (found.symbol.section, found.symbol.value + (found.addend or 0)) for at, found in places.items()}
    try:
        for number, (of_section, row) in enumerate(_rows(_LineReader(section.data, 0, section.size), origins)):
            found[of_section].append(row)
            if number > _MOST_ROWS:
                raise InputError(
                    f"{image.file}: more than {_MOST_ROWS} lines in {name}; make the file without -lineinfo"
                )
    except (IndexError, struct.error):
        raise InputError(f"{image.file}: this cubin is damaged: {name} is ill-formed; make it again") from None
    return found


class _LineReader:
    """A reader of numbers and texts one after the other; beyond the end it raises IndexError."""

    def __init__(self, data: memoryview, at: int, end: int) -> None:
        if end > len(data):
            raise IndexError
        self.data, self.at, self.end = data, at, end

    def number(self, size: int) -> int:
        self.at += size
        if self.at > self.end:
            raise IndexError
        return int.from_bytes(self.data[self.at - size : self.at], "little")

    def leb(self, *, signed: bool = False) -> int:
        value, shift = 0, 0
        while shift < 64:  # longer numbers are damage
            byte = self.number(1)
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value - (1 << shift) if signed and byte & 0x40 else value
        raise IndexError

    def text(self) -> str:
        begin = self.at
        while self.number(1):
            pass
        return printable(bytes(self.data[begin : self.at - 1]).decode("utf-8", "replace"))


def _rows(cursor: _LineReader, origins: Mapping[int, tuple[int, int]]) -> Iterator[tuple[int, LineRow]]:
    while cursor.at < cursor.end:
        length, version, header_length = _HEADER.unpack(cursor.data[cursor.at : cursor.at + _HEADER.size])
        unit = _LineReader(cursor.data, cursor.at + _HEADER.size, cursor.at + 4 + length)
        cursor.at = unit.end
        if version in _VERSIONS:
            program = unit.at + header_length
            yield from _unit(unit, version, program, origins)


class _LineHeader(NamedTuple):
    """The head of a unit: the unit of addresses, the rules of special opcodes, operands, files."""

    step: int
    base: int
    span: int
    first_special: int
    operands: list[int]
    files: dict[int, str]


def _header(unit: _LineReader, version: int) -> _LineHeader:
    step = unit.number(1)
    unit.number(2 if version == 4 else 1)
    base, span, first_special = unit.number(1), unit.number(1), unit.number(1)
    operands = [unit.number(1) for _ in range(first_special - 1)]
    if not span:  # a division by it follows
        raise IndexError
    return _LineHeader(step, base - ((base & 0x80) << 1), span, first_special, operands, _files(unit))


@dataclass(slots=True)
class _LineRegisters:
    """The registers of a line program; the section is None where addresses belong to none."""

    section: int | None = None
    address: int = 0
    file: int = 1
    line: int = 1


def _unit(
    unit: _LineReader, version: int, program: int, origins: Mapping[int, tuple[int, int]]
) -> Iterator[tuple[int, LineRow]]:
    header, now = _header(unit, version), _LineRegisters()
    if unit.at > program:
        raise IndexError
    unit.at = program
    while unit.at < unit.end:
        opcode = unit.number(1)
        if opcode == 0:
            ended = _run_extended(unit, now, origins)
            if ended is not None:
                yield ended[0], LineRow(ended[1], None, 0)
        elif opcode < header.first_special:
            _run_standard(opcode, unit, now, header)
        else:
            now.address += (opcode - header.first_special) // header.span * header.step
            now.line += header.base + (opcode - header.first_special) % header.span
        if now.section is not None and (opcode == 1 or opcode >= header.first_special):  # copy
            line = now.line if 0 < now.line < _MOST_LINE else 0  # a wrapped line number tells nothing
            yield now.section, LineRow(now.address, header.files.get(now.file), line)


def _run_extended(
    unit: _LineReader, now: _LineRegisters, origins: Mapping[int, tuple[int, int]]
) -> tuple[int, int] | None:
    """Execute end_sequence, which returns its place, or set_address; skip any other opcode."""
    size = unit.leb()
    behind, opcode, ended = unit.at + size, unit.number(1), None
    if opcode == 1:
        ended = None if now.section is None else (now.section, now.address)
        now.section, now.address, now.file, now.line = None, 0, 1, 1
    elif opcode == 2:
        now.section, start = origins.get(unit.at, (None, 0))
        now.address = unit.number(size - 1) + start
    if not unit.at <= behind <= unit.end:  # the length must cover what was read, and end within the unit
        raise IndexError
    unit.at = behind
    return ended


def _run_standard(opcode: int, unit: _LineReader, now: _LineRegisters, header: _LineHeader) -> None:
    match opcode:
        case 2:  # advance_pc
            now.address += unit.leb() * header.step
        case 3:  # advance_line
            now.line += unit.leb(signed=True)
        case 4:  # set_file
            now.file = unit.leb()
        case 8:  # const_add_pc
            now.address += (255 - header.first_special) // header.span * header.step
        case 9:  # fixed_advance_pc
            now.address += unit.number(2)
        case other:
            for _ in range(header.operands[other - 1]):
                unit.leb()


def _files(unit: _LineReader) -> dict[int, str]:
    folders = [""]
    while folder := unit.text():
        folders.append(folder)
    found: dict[int, str] = {}
    while name := unit.text():
        number, _, _ = unit.leb(), unit.leb(), unit.leb()
        if number >= len(folders) or len(found) > _MOST_FILES:
            raise IndexError
        is_whole = not number or name.startswith("/")
        found[len(found) + 1] = name if is_whole else f"{folders[number]}/{name}"
    return found
