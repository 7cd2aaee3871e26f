"""A damaged cubin is refused in one line or read, within little time and memory; never is there a traceback."""

import random
import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from makespan.host.errors import InputError
from makespan.kernels.sass import disassembler
from makespan.kernels.sass.elf import read_elf
from makespan.kernels.sass.module import SassKernel

SAMPLES = [path.read_bytes() for path in sorted((Path(__file__).parents[2] / "ptx").glob("*.cubin"))]
EXTREMES = 0, 1, 7, 0x7F, 0xFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 0x7FFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFFFF
TRIALS = 300


def flipped(data: bytearray, chance: random.Random) -> None:
    for _ in range(chance.randint(1, 8)):
        data[chance.randrange(len(data))] = chance.choice((0, 0xFF, chance.randrange(256)))


def cut(data: bytearray, chance: random.Random) -> None:
    del data[chance.randrange(len(data)) :]


def moved(data: bytearray, chance: random.Random) -> None:
    size, a, b = chance.randint(1, 512), chance.randrange(len(data)), chance.randrange(len(data))
    data[a : a + size] = data[b : b + size]


def section_changed(data: bytearray, chance: random.Random) -> None:
    """A field of a section takes an extreme value, or that of another section."""
    table, count = struct.unpack_from("<Q", data, 0x28)[0], struct.unpack_from("<H", data, 0x3C)[0]
    one, other = (table + 64 * chance.randrange(count) for _ in range(2))
    at, size = chance.choice(((0, 4), (4, 4), (8, 8), (24, 8), (32, 8), (40, 4), (44, 4)))
    value = chance.choice((data[other + at : other + at + size], chance.choice(EXTREMES).to_bytes(8, "little")[:size]))
    data[one + at : one + at + size] = value


def content_changed(data: bytearray, chance: random.Random) -> None:
    """A few bytes of one section change, such as of a table of lines or of attributes."""
    image = read_elf(bytes(data), "k.cubin")
    section = chance.choice([section for section in image.sections if section.data.nbytes])
    begin = bytes(data).find(bytes(section.data))
    for _ in range(chance.randint(1, 4)):
        data[begin + chance.randrange(section.size)] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))


DAMAGES: tuple[Callable[[bytearray, random.Random], None], ...] = (
    flipped,
    cut,
    moved,
    section_changed,
    content_changed,
)


def nops(data: bytes, file: str) -> Any:
    """Stands for nvdisasm: as many instructions as there are words, with the predicates of these."""
    image = read_elf(data, file)
    functions = [
        {
            "function-name": section.name.removeprefix(".text."),
            "start": 0,
            "length": section.size,
            "sass-instructions": [
                {"opcode": "NOP", "predicate": predicate(section.data[at + 1])} for at in range(0, section.size, 16)
            ],
        }
        for section in image.sections
        if section.name.startswith(".text.") and section.data.nbytes == section.size
    ]
    return {"SM": {"version": {"major": image.sm // 10, "minor": image.sm % 10}}}, functions


def predicate(byte: int) -> str:
    number = byte >> 4 & 7
    return f"@{'!' if byte & 0x80 else ''}P{'T' if number == 7 else number}"


def outcome(data: bytes) -> str:
    try:
        kernels = disassembler.disassemble(data, "k.cubin", "k.cubin").kernels
    except InputError as refusal:
        said = str(refusal)
        if not said.startswith("k.cubin: ") or not said.isprintable():
            raise
        return "refused"
    assert all(isinstance(kernel, SassKernel) for kernel in kernels)
    return "read"


def test_damaged_cubins_are_refused_or_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disassembler, "_nvdisasm", nops)
    chance, seen = random.Random(86), {"read": 0, "refused": 0}
    tracemalloc.start()
    try:
        for trial in range(TRIALS):
            data = bytearray(chance.choice(SAMPLES))
            DAMAGES[trial % len(DAMAGES)](data, chance)
            seen[outcome(bytes(data))] += 1
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2**25
    assert min(seen.values()) > TRIALS // 20, seen


def test_an_undamaged_cubin_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disassembler, "_nvdisasm", nops)
    assert len(SAMPLES) > 5
    assert {outcome(data) for data in SAMPLES} == {"read"}
