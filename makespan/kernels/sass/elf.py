"""A cubin as an ELF file: its sections, symbols, relocations and the attributes that its compiler left for the driver.

The file is not trusted: every offset, size and number is checked before anything is read by it.

Source: ELF-64 Object File Format; llvm/BinaryFormat/ELF.h (EM_CUDA, EF_CUDA_SM and its mask of ABI version 8,
STO_CUDA_ENTRY); `cuobjdump -elf` of CUDA 13.5 for attributes, and CuAssembler's CuNVInfo.py for their numbers.
"""

import re
import struct
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from makespan.host.errors import InputError, UnsupportedError

MAX_BYTES = 64 * 2**20
INSTALL = "pip install 'makespan[sass]'"
"""The command that installs the tools that read and make machine code."""

_MAGIC = b"\x7fELF"

_MACHINE, _EXECUTABLE = 190, 2
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = {9: struct.Struct("<QQ"), 4: struct.Struct("<QQq")}
"""The forms of relocations by type of section: REL, whose addends stand in place, and RELA."""

_STRINGS, _SYMBOLS, _NO_BITS = 3, 2, 8
_MOST_SECTIONS, _MOST_SYMBOLS, _MOST_RELOCATIONS, _MOST_ATTRIBUTES = 50_000, 2**16, 200_000, 200_000
_LONGEST_NAME = 2048
_MOST_OVERLAP = 4
"""The number of sections that hold a byte, on average, at most; some tools let two sections share bytes."""
_NAME = re.compile(r"[\w.$@]*", re.ASCII)
_INFO_SIZES = {1: 0, 2: 1, 3: 2}
"""Bytes of the value of an attribute, by its format; one of format 4 tells its size."""


class Section(NamedTuple):
    """A section; one of type NOBITS has a size and no data. Its address is a multiple of `alignment` bytes."""

    name: str
    number: int
    kind: int
    flags: int
    link: int
    info: int
    size: int
    data: memoryview
    alignment: int = 1


class Symbol(NamedTuple):
    """A symbol, with its number and that of its section."""

    name: str
    number: int
    section: int
    value: int
    size: int
    is_function: bool
    is_kernel: bool


class Relocation(NamedTuple):
    """A place at which the address of a symbol is added; `addend` is None where it stands in place."""

    offset: int
    symbol: Symbol
    addend: int | None


class Attribute(NamedTuple):
    """An entry of a section `.nv.info`, which the compiler left for the driver."""

    number: int
    value: bytes


@dataclass(frozen=True, slots=True)
class Elf:
    """A cubin that is ready to run, for architecture `sm`."""

    file: str
    sm: int
    sections: tuple[Section, ...]
    symbols: tuple[Symbol, ...]
    _named: Mapping[str, list[Section]] = field(repr=False)
    _relocating: Mapping[int, list[Section]] = field(repr=False)

    def section(self, name: str) -> Section | None:
        """Return the section of this name; None if there is none.

        Raises:
            InputError: there are several.
        """
        found = self._named.get(name, ())
        if found[1:]:
            raise _damage_error(self.file, f"{len(found)} sections {name:.60}")
        return found[0] if found else None

    def relocations(self, section: Section) -> Iterator[Relocation]:
        """Yield what is added to the words of a section.

        Raises:
            InputError: a table of relocations that is ill-formed.
        """
        for table in self._relocating.get(section.number, ()):
            entry = _RELOCATION[table.kind]
            for offset, info, *addend in _table(self.file, table, entry, _MOST_RELOCATIONS):
                if offset >= section.size or info >> 32 >= len(self.symbols):  # offsets of a hostile file lead anywhere
                    raise _damage_error(self.file, f"a relocation of {section.name:.60} that leads nowhere")
                yield Relocation(offset, self.symbols[info >> 32], addend[0] if addend else None)

    def attributes(self, name: str) -> Iterator[Attribute]:
        """Yield the entries of a section such as `.nv.info.saxpy`; none if there is no such section.

        Raises:
            InputError: it is ill-formed.
        """
        section = self.section(name)
        data, at = section.data if section is not None else memoryview(b""), 0
        for _ in range(_MOST_ATTRIBUTES):
            if at == len(data):
                return
            start = at + 4
            if start > len(data):
                break
            size = _INFO_SIZES.get(data[at], 0)
            if data[at] == 4:
                size = int.from_bytes(data[at + 2 : start], "little")
                value, at = data[start : start + size], start + size
            elif data[at] in _INFO_SIZES:
                value, at, size = data[at + 2 : at + 2 + size], start, size
            else:
                break
            if len(value) != size:
                break
            yield Attribute(int(data[start - 3]), bytes(value))
        raise _damage_error(self.file, f"section {name:.60} is ill-formed")


def is_cubin(data: bytes) -> bool:
    """Return whether the data begin as an ELF file for GPUs does, readable or not."""
    return data.startswith(_MAGIC) and data[18:20] == _MACHINE.to_bytes(2, "little")


def read_elf(data: bytes, file: str) -> Elf:
    """Read what the header, the sections and the symbols of a cubin say.

    Raises:
        InputError: no cubin, or a damaged one.
        UnsupportedError: a cubin of another kind: relocatable, or older than sm_70.
    """
    if len(data) < _HEADER.size or not is_cubin(data):
        raise InputError(f"{file}: this is no cubin: it does not begin as one does")
    identity, kind, _, _, _, _, table, flags, _, _, _, entry, count, names = _HEADER.unpack_from(data)
    if identity[4:6] != b"\x02\x01":
        raise _damage_error(file, "it is not for 64 bits, lowest byte first")
    if kind != _EXECUTABLE:
        raise UnsupportedError(f"{file}: this cubin is relocatable; link it (nvlink, nvcc -dlink) and give the result")
    # ABI version 8 moved the architecture within the flags
    sm = flags >> 8 & 0xFF if identity[8] >= 8 else flags & 0xFF
    if sm < 70:
        raise UnsupportedError(f"{file}: machine code for sm_{sm}; sm_70 and later can be read")
    if entry != _SECTION.size or not 0 < count <= _MOST_SECTIONS or table + count * entry > len(data):
        raise _damage_error(file, "its table of sections does not fit")
    headers = [_SECTION.unpack_from(data, table + number * entry) for number in range(count)]
    view = memoryview(data)
    spans = [_span(view, header, file) for header in headers]
    if sum(map(len, spans)) > _MOST_OVERLAP * len(data):  # overlapping sections could multiply the work
        raise _damage_error(file, "its sections overlap")
    if not names < count:
        raise _damage_error(file, "its sections have no names")
    sections = tuple(
        Section(
            _text(spans[names], header[0], file),
            number,
            header[1],
            header[2],
            header[6],
            header[7],
            header[5],
            span,
            header[8],
        )
        for number, (header, span) in enumerate(zip(headers, spans, strict=True))
    )
    named, relocating = defaultdict(list), defaultdict(list)
    for section in sections:
        named[section.name].append(section)
        if section.kind in _RELOCATION:
            relocating[section.info].append(section)
    return Elf(file, sm, sections, tuple(_symbols(sections, file)), named, relocating)


def _span(view: memoryview, header: tuple[int, ...], file: str) -> memoryview:
    kind, offset, size = header[1], header[4], header[5]
    if kind in {0, _NO_BITS}:
        return view[:0]
    if offset + size > len(view):
        raise _damage_error(file, "a section is longer than the file")
    return view[offset : offset + size]


def _symbols(sections: tuple[Section, ...], file: str) -> Iterator[Symbol]:
    table = next((section for section in sections if section.kind == _SYMBOLS), None)
    if table is None:
        return
    if not table.link < len(sections) or sections[table.link].kind != _STRINGS:
        raise _damage_error(file, "its symbols have no names")
    names = sections[table.link].data
    for number, entry in enumerate(_table(file, table, _SYMBOL, _MOST_SYMBOLS)):
        name, info, other, section, value, size = entry
        is_function = info & 0xF == 2
        is_kernel = is_function and bool(other & 0x10)
        yield Symbol(_text(names, name, file), number, section, value, size, is_function, is_kernel)


def _table(file: str, section: Section, entry: struct.Struct, most: int) -> Iterator[tuple[int, ...]]:
    if section.data.nbytes % entry.size or section.data.nbytes > most * entry.size:
        raise _damage_error(file, f"section {section.name:.60} is no table of at most {most} entries")
    return entry.iter_unpack(section.data)


def _text(names: memoryview, at: int, file: str) -> str:
    """Return a name, which ends with a zero; one that a listing could take for something else is refused."""
    text, zero, _ = bytes(names[at : at + _LONGEST_NAME]).partition(b"\0")  # names end within a limit, or are refused
    name = text.decode("ascii", "replace")
    if not zero or not _NAME.fullmatch(name):
        raise _damage_error(file, f"it has an ill-formed name {name[:40]!r}")
    return name


def _damage_error(file: str, what: str) -> InputError:
    return InputError(f"{file}: this cubin is damaged: {what}; make it again")
