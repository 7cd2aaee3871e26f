"""The cubins in a fat binary come out of it unchanged; which, and whether there are any, is said in one line."""

import subprocess
from pathlib import Path

import pytest

from makespan.host import tool
from makespan.host.errors import InputError
from makespan.kernels.sass import cubin, disassembler
from tests.sass.test_fuzz import nops

SAMPLES = Path(__file__).parents[2] / "ptx"
FATBINARY, CUOBJDUMP = tool.find("fatbinary"), tool.find("cuobjdump")

needs_tools = pytest.mark.skipif(FATBINARY is None or CUOBJDUMP is None, reason="fatbinary and cuobjdump are missing")


def sample(sm: int) -> bytes:
    return (SAMPLES / f"reduction.sm_{sm}.cubin").read_bytes()


def packed(folder: Path, *architectures: int) -> Path:
    images = (f"--image3=kind=elf,sm={sm},file={SAMPLES / f'reduction.sm_{sm}.cubin'}" for sm in architectures)
    path = folder / "k.fatbin"
    subprocess.run((str(FATBINARY), "-64", f"--create={path}", *images), check=True)
    return path


@needs_tools
def test_an_architecture_is_chosen(tmp_path: Path) -> None:
    data = packed(tmp_path, 75, 86).read_bytes()
    assert cubin.cubins(data, "k.fatbin", "sm_86") == (sample(86),)
    assert cubin.cubins(data, "k.fatbin", "sm_75") == (sample(75),)
    with pytest.raises(InputError, match=r"^k.fatbin: it has machine code for sm_75, sm_86; say which with --arch$"):
        cubin.cubins(data, "k.fatbin")
    with pytest.raises(InputError, match=r"^k.fatbin: no machine code for sm_90, only for sm_75, sm_86$"):
        cubin.cubins(data, "k.fatbin", "sm_90")


@needs_tools
def test_the_only_one_need_not_be_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disassembler, "_nvdisasm", nops)
    (kernel,) = disassembler.read(packed(tmp_path, 86)).kernels
    assert (kernel.name, kernel.sm, kernel.resources.shared_bytes) == ("reduction", 86, 1024)


@needs_tools
@pytest.mark.parametrize("data", [b"", b"no machine code", b"\x50\xed\x55\xba" + bytes(60), b"!<arch>\n", b"\x7fELF"])
def test_a_file_without_machine_code_is_told(data: bytes) -> None:
    with pytest.raises(InputError, match=r"^k: (?:cuobjdump says: |there is no machine code in it)"):
        cubin.cubins(data, "k")


def test_a_cubin_is_for_one_architecture(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disassembler, "_nvdisasm", nops)
    path = SAMPLES / "reduction.sm_90.cubin"
    assert disassembler.read(path, arch="sm_90a").kernels[0].sm == 90
    with pytest.raises(InputError, match=r"reduction.sm_90.cubin: this cubin is for sm_90, not for sm_86$"):
        disassembler.read(path, arch="sm_86")


LISTING = """#!/bin/sh
case $1 in
-lelf) echo "ELF file    1: {name}" ;;
*) {extract} ;;
esac
"""


@pytest.mark.parametrize(
    ("name", "extract", "message"),
    [
        ("../image.sm_86.cubin", ":", "it has machine code by the name '../image.sm_86.cubin'; give a cubin"),
        ("image.sm_86.cubin", ":", "cuobjdump lists 1 cubins and takes out 0; give a cubin"),
        ("image.sm_86.cubin", "echo 'cuobjdump fatal   : no' && exit 1", "cuobjdump says: no"),
        ("image.sm_86.cubin", "head -c 100000000 /dev/zero > image.sm_86.cubin", "cuobjdump says: "),
    ],
)
def test_what_cuobjdump_does_is_checked(
    name: str, extract: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = tmp_path / "cuobjdump"
    fake.write_text(LISTING.format(name=name, extract=extract))
    fake.chmod(0o755)
    monkeypatch.setattr(tool, "find", lambda wanted: fake)
    with pytest.raises(InputError) as refusal:
        cubin.cubins(b"anything", "k")
    assert str(refusal.value).startswith(f"k: {message}")


def test_without_cuobjdump_there_is_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool, "find", lambda name: None)
    with pytest.raises(InputError, match=r"^k: no cuobjdump .* pip install 'makespan\[sass\]'"):
        cubin.cubins(b"", "k")
