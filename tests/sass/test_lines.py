"""Line programs say what they say to pyelftools."""

import struct
from inspect import signature
from io import BytesIO
from typing import Any

import pytest
from elftools.dwarf.dwarfinfo import DebugSectionDescriptor, DwarfConfig, DWARFInfo
from elftools.dwarf.structs import DWARFStructs
from hypothesis import given
from hypothesis import strategies as st

from makespan.host.errors import InputError
from makespan.kernels.flow import SourceLine
from makespan.kernels.sass.elf import Elf, Section, Symbol
from makespan.kernels.sass.lines import SOURCE_LINES, LineRow, SectionLines, line_table
from makespan.kernels.sass.module import Address

CODE = 7


def leb(value: int) -> bytes:
    found = bytearray()
    while not -64 <= value < 64:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*found, value & 0x7F))


SET_ADDRESS = st.integers(0, 2**20).map(lambda value: b"\0\x09\x02" + struct.pack("<Q", value))
OPERATIONS = st.one_of(
    st.integers(10, 255).map(lambda opcode: bytes((opcode,))),
    st.sampled_from((b"\x01", b"\x05\x03", b"\x06", b"\x07", b"\x08", b"\0\x02\x90\x05", b"\0\x01\x91")),
    st.integers(0, 5000).map(lambda value: b"\x02" + leb(value * 2)),
    st.integers(-50, 3000).map(lambda value: b"\x03" + leb(value)),
    st.integers(1, 3).map(lambda value: b"\x04" + leb(value)),
    st.integers(0, 2**16 - 1).map(lambda value: b"\x09" + struct.pack("<H", value)),
)
SEQUENCES = st.tuples(SET_ADDRESS, st.lists(OPERATIONS, max_size=20).map(b"".join)).map(lambda two: b"".join(two))
UNITS = st.lists(SEQUENCES.map(lambda sequence: sequence + b"\0\x01\x01"), min_size=1, max_size=3).map(b"".join)


@st.composite
def programs(draw: st.DrawFn) -> bytes:
    version, base, span = draw(st.integers(2, 4)), draw(st.integers(-10, 1)), draw(st.integers(1, 20))
    start = struct.pack("<B", draw(st.sampled_from((1, 4)))) + (b"\x01" if version == 4 else b"")
    fields = struct.pack("<BbBB", 1, base, span, 10) + bytes((0, 1, 1, 1, 1, 0, 0, 0, 1))
    files = b"inc\0/abs\0\0" + b"a.cu\0\x01\0\0" + b"b.h\0\x02\0\0" + b"/c.h\0\x01\0\0" + b"\0"
    header, body = start + fields + files, draw(UNITS)
    length = 2 + 4 + len(header) + len(body)
    return struct.pack("<IHI", length, version, len(header)) + header + body


def relocated(program: bytes) -> Elf:
    """Every address of the program belongs to the section of code."""
    at, places = 0, []
    while (at := program.find(b"\0\x09\x02", at)) >= 0:
        places.append(at + 3)
        at += 11
    relocations = b"".join(struct.pack("<QQq", place, 0, 0) for place in places)
    lines = Section(SOURCE_LINES, 1, 1, 0, 0, 0, len(program), memoryview(program))
    places_table = Section(".rela", 2, 4, 0, 0, 1, len(relocations), memoryview(relocations))
    symbol = Symbol("k", 0, CODE, 0, 0, True, True)
    return Elf("k.cubin", 86, (lines, places_table), (symbol,), {SOURCE_LINES: [lines]}, {1: [places_table]})


def as_pyelftools_says(program: bytes) -> list[LineRow]:
    section = DebugSectionDescriptor(BytesIO(program), SOURCE_LINES, 0, len(program), 0)
    others: Any = dict.fromkeys(
        parameter for parameter in signature(DWARFInfo).parameters if parameter.endswith("_sec")
    )
    info = DWARFInfo(DwarfConfig(True, "", 8), **{**others, "gnu_debugaltlink_sec": None, "debug_line_sec": section})
    structs = DWARFStructs(little_endian=True, dwarf_format=32, address_size=8)
    parsed = info._parse_line_program_at_offset(0, structs)
    names = "inc/a.cu", "/abs/b.h", "/c.h"
    states = [entry.state for entry in parsed.get_entries() if entry.state is not None]
    return [
        LineRow(state.address, None, 0)
        if state.end_sequence
        else LineRow(state.address, names[state.file - 1], max(state.line, 0))
        for state in states
    ]


@given(programs())
def test_rows_are_those_of_pyelftools(program: bytes) -> None:
    assert list(line_table(relocated(program), SOURCE_LINES)[CODE]) == as_pyelftools_says(program)


@given(programs(), st.integers(0, 400))
def test_a_table_that_is_cut_is_refused_or_read(program: bytes, size: int) -> None:
    try:
        line_table(relocated(program[:size]), SOURCE_LINES)
    except InputError as refusal:
        if "is damaged" not in str(refusal):
            raise


def test_the_last_row_before_an_address_counts() -> None:
    rows = [
        LineRow(0x40, "b", 8),
        LineRow(0x40, "b", 9),
        LineRow(0x60, None, 0),
        LineRow(0x20, "a", 3),
        LineRow(0x40, None, 0),
    ]
    found = SectionLines(rows)
    lines = [found[Address(at)] for at in (0, 0x10, 0x20, 0x30, 0x40, 0x50, 0x60)]
    a, b = SourceLine("a", 3), SourceLine("b", 9)
    assert lines == [None, None, a, a, b, b, None]
    assert SectionLines([LineRow(0, None, 5)], "k.ptx")[Address(0)] == SourceLine("k.ptx", 5)


def test_a_table_of_another_version_tells_nothing() -> None:
    assert not line_table(relocated(struct.pack("<IHI", 8, 5, 0) + b"\0\0"), SOURCE_LINES)


@pytest.mark.parametrize("program", [b"\x01", struct.pack("<IHI", 2**31, 3, 0), struct.pack("<IHI", 6, 3, 9)])
def test_a_damaged_table_is_refused(program: bytes) -> None:
    with pytest.raises(InputError, match=r"^k.cubin: this cubin is damaged: .debug_line is ill-formed; make it again$"):
        line_table(relocated(program), SOURCE_LINES)
