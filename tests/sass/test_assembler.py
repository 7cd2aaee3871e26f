"""PTX becomes a cubin that tells how it was made; what goes wrong on the way is one clear line."""

from pathlib import Path

import pytest

from makespan.host import tool
from makespan.host.errors import InputError
from makespan.kernels.sass.cubin import assemble_ptx

PTX = ".version 7.5\n.target sm_75\n.address_size 64\n.visible .entry k() {\n%s\nret; }\n"

needs_ptxas = pytest.mark.skipif(tool.find("ptxas") is None, reason="ptxas is not installed")


@needs_ptxas
def test_ptx_becomes_a_cubin() -> None:
    assert assemble_ptx(PTX % "", "k.ptx", "sm_86").startswith(b"\x7fELF")


@needs_ptxas
@pytest.mark.parametrize(
    ("text", "arch", "message"),
    [
        (PTX % "foo;", "sm_86", "k.ptx:5: ptxas says: Not a name of any known instruction: 'foo'"),
        (PTX % "", "sm_20", "k.ptx: ptxas says: Value 'sm_20' is not defined for option 'gpu-name'"),
        (PTX % "", "compute_86", "'compute_86' is no architecture of GPUs; expected one such as sm_86"),
        (PTX % "", "sm_86 -v", "'sm_86 -v' is no architecture of GPUs; expected one such as sm_86"),
        ((PTX % "").replace("sm_75", "sm_86"), "sm_75", "k.ptx"),
        ("\x1b[31m", "sm_86", "k.ptx"),
    ],
)
def test_what_ptxas_does_not_accept_is_one_line(text: str, arch: str, message: str) -> None:
    with pytest.raises(InputError) as refusal:
        assemble_ptx(text, "k.ptx", arch)
    assert str(refusal.value).startswith(message)
    assert str(refusal.value).isprintable()


def test_without_ptxas_there_is_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool, "find", lambda name: None)
    with pytest.raises(InputError, match=r"k.ptx: no ptxas .* pip install 'makespan\[sass\]'"):
        assemble_ptx(PTX, "k.ptx", "sm_86")


def test_a_ptxas_that_leaves_nothing_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    silent = tmp_path / "ptxas"
    silent.write_text("#!/bin/sh\nexit 3\n")
    silent.chmod(0o755)
    monkeypatch.setattr(tool, "find", lambda name: silent)
    with pytest.raises(InputError, match=r"k\.ptx: ptxas says: nothing, but it ended with code 3 and left no cubin"):
        assemble_ptx(PTX, "k.ptx", "sm_86")
