"""PTX of many compilers, if it lies beside this checkout, against a count that shares nothing with the grammar."""

import re
from pathlib import Path

import pytest

from makespan.host.errors import InputError
from makespan.kernels.ptx import read
from tests.ptx.texts import CORPUS, SAMPLES

NO_PTX = {
    "immediates.ptx",
    "vector_operand_convert.ptx",
    "default_reg_b32_reg_f16x2.ptx",
    "default_reg_b32_reg_v2_b16.ptx",
    "default_relaxed.ptx",
    "mode_conflict.ptx",
    "shared_ptr.ptx",
}
FILES = sorted(CORPUS.rglob("*.ptx"))


IGNORED = re.compile(
    r"""//[^\n]*|/\*.*?\*/|@@[^\n]*|"[^"\n]*"|\.section[^{]*\{[^}]*\}|\.(loc|file|version|target|address_size)\s[^\n]*""",
    re.DOTALL,
)
PRELUDE = re.compile(r"\s*(\.[^;{]*\{|[{}]|[\w$%]+\s*:(?!:))")
BEGINNING = re.compile(r"\s*(@\s*!?[\w$%]+\s+)?[a-z]")


def count_instructions(text: str) -> int:
    """Instructions by hand: what ends with a semicolon and, past labels, braces and heads, begins with a letter."""
    return sum(is_instruction(piece) for piece in IGNORED.sub(" ", text).split(";")[:-1])


def is_instruction(piece: str) -> bool:
    at = 0
    while prelude := PRELUDE.match(piece, at):
        at = prelude.end()
    return BEGINNING.match(piece, at) is not None


@pytest.mark.skipif(not FILES, reason="the corpus is not beside this checkout")
def test_every_file_parses_with_as_many_instructions_as_counted() -> None:
    parsed = 0
    for path in FILES:
        if path.name in NO_PTX:
            with pytest.raises(InputError):
                read(path)
            continue
        module = read(path)
        found = sum(len(k.instructions) for k in (*module.kernels, *module.functions))
        assert found == count_instructions(path.read_text("latin-1")), path
        parsed += 1
    assert parsed == len(FILES) - len(NO_PTX)


@pytest.mark.parametrize("path", SAMPLES, ids=lambda p: p.stem)
def test_samples_have_as_many_instructions_as_counted(path: Path) -> None:
    found = sum(len(k.instructions) for k in read(path).kernels)
    assert found == count_instructions(path.read_text("utf-8")) > 0
