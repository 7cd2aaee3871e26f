"""A file that is no cubin, or not one that can be read, is refused by what is wrong with it."""

import struct
from pathlib import Path

import pytest

from makespan.host.errors import InputError
from makespan.kernels.sass.elf import read_elf

SAMPLE = (Path(__file__).parents[2] / "ptx" / "reduction.sm_86.cubin").read_bytes()
TABLE, COUNT = struct.unpack_from("<Q", SAMPLE, 0x28)[0], struct.unpack_from("<H", SAMPLE, 0x3C)[0]


def changed(at: int, value: bytes) -> bytes:
    return SAMPLE[:at] + value + SAMPLE[at + len(value) :]


def overlapping() -> bytes:
    data = bytearray(SAMPLE)
    for number in range(1, COUNT):
        struct.pack_into("<QQ", data, TABLE + 64 * number + 24, 0, len(SAMPLE))
    return bytes(data)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "this is no cubin: it does not begin as one does"),
        (b"// PTX", "this is no cubin: it does not begin as one does"),
        (changed(18, b"\x3e\x00"), "this is no cubin: it does not begin as one does"),
        (changed(5, b"\x02"), "this cubin is damaged: it is not for 64 bits, lowest byte first; make it again"),
        (changed(16, b"\x01"), "this cubin is relocatable; link it (nvlink, nvcc -dlink) and give the result"),
        (changed(0x31, b"\x3d"), "machine code for sm_61; sm_70 and later can be read"),
        (SAMPLE[:-300], "this cubin is damaged: its table of sections does not fit; make it again"),
        (changed(0x3E, b"\xff"), "this cubin is damaged: its sections have no names; make it again"),
        (
            changed(TABLE + 64 + 32, b"\xff" * 4),
            "this cubin is damaged: a section is longer than the file; make it again",
        ),
        (overlapping(), "this cubin is damaged: its sections overlap; make it again"),
        (
            SAMPLE.replace(b"reduction", b"redu,tion"),
            "this cubin is damaged: it has an ill-formed name '.nv.info.redu,tion'",
        ),
    ],
)
def test_what_cannot_be_read_is_refused_by_name(data: bytes, message: str) -> None:
    with pytest.raises(InputError) as refusal:
        read_elf(data, "k.cubin")
    assert str(refusal.value).startswith(f"k.cubin: {message}")


def test_older_files_tell_their_architecture_elsewhere() -> None:
    older = changed(8, b"\x07")
    assert read_elf(SAMPLE, "k.cubin").sm == 86
    assert read_elf(older[:0x30] + (0x500556).to_bytes(4, "little") + older[0x34:], "k.cubin").sm == 86
