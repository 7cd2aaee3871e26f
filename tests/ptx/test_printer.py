"""A module that is printed and read again is the same."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from makespan.host.errors import InputError
from makespan.kernels.ptx import parse, read, render
from makespan.kernels.ptx.module import PtxKernel
from tests.ptx.texts import CORPUS, SAMPLES, entry

NAMES = st.from_regex(r"[A-Za-z_$%][A-Za-z0-9_$]{1,6}", fullmatch=True)
NUMBERS = st.sampled_from(["0", "-7", "12U", "0xFFu"[:-1], "0f3F800000", "0d3FF0000000000000", "1.5e-3"])
ATOMS = NAMES | NUMBERS | st.tuples(NAMES, NUMBERS).map("+".join)
OPERANDS = ATOMS | st.lists(ATOMS, min_size=1, max_size=4).map(lambda several: "{" + ",".join(several) + "}")
OPERANDS |= ATOMS.map("[{}]".format) | st.lists(ATOMS, max_size=3).map(lambda several: "(" + ", ".join(several) + ")")
OPCODES = st.from_regex(r"[a-z][a-z0-9]{0,5}(\.[a-z][a-z0-9]{0,3}){0,3}(::[a-z0-9]{1,3})?", fullmatch=True)
GUARDS = st.just("") | NAMES.map("@{} ".format) | NAMES.map("@!{} ".format)
INSTRUCTIONS = st.builds(
    "{}{} {};".format, GUARDS, OPCODES, st.lists(OPERANDS, max_size=4).map(lambda several: " ,\t".join(several))
)
STATEMENTS = (
    INSTRUCTIONS
    | NAMES.map("{}:".format)
    | NAMES.map(".reg .u32 {}<4>;".format)
    | NAMES.map(".shared .align 16 .b8 {}[4][2];".format)
    | st.sampled_from(['.pragma "nounroll";', ".loc 1 2 3", "// makespan: loop 4\n", "/* x */", "// x\n"])
)
BODIES = st.recursive(
    st.lists(STATEMENTS, max_size=6).map("\n".join),
    lambda inner: st.tuples(inner, inner).map(lambda two: f"{two[0]}\n{{\n{two[1]}\n}}\n"),
    max_leaves=6,
)


@given(BODIES)
def test_printing_and_parsing_gives_the_same_module(body: str) -> None:
    module = parse(entry(body), "k.ptx")
    assert parse(render(module), "other.ptx") == module


@pytest.mark.parametrize("path", SAMPLES, ids=lambda p: p.stem)
def test_samples_survive_printing(path: Path) -> None:
    module = read(path)
    assert parse(render(module), "again.ptx") == module


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus is not beside this checkout")
def test_the_corpus_survives_printing() -> None:
    printed = 0
    for path in sorted(CORPUS.rglob("*.ptx")):
        try:
            module = read(path)
        except InputError:
            continue
        assert parse(render(module), "again.ptx") == module, path
        printed += 1
    assert printed > 150


def test_every_part_of_a_module_is_printed() -> None:
    text = """.version 8.7
.target sm_90a, debug
.global .align 8 .u64 t[2] = {generic(a), generic(a)+4, 0xFF00(generic(a)+8), b+8};
.extern .func (.param .b32 r) vprintf (.param .b64 a)
;
.visible .entry k (.param .u64 .ptr .global .align 1 x)
.maxntid 128, 1, 1
.pragma "nounroll";
{
	.reg .pred %p<2>;
L:
	// makespan: loop 4
	.loc 1 2 3
	@!%p1 add.s32 %r1, [%r2+4], {a, b};
	{
	.pragma "x";
	}
}
.file 1 "k.cu", 1, 2
.section .debug_str
{
	.b8 1, 2
}
"""
    assert render(parse(text, "k.ptx")) == text


def test_differences_are_seen() -> None:
    module = parse(entry("add.s32 %r1, %r2, 1;"), "k.ptx")
    assert parse(entry("add.s32 %r1, %r2, 2;"), "k.ptx") != module
    assert parse(entry("@p add.s32 %r1, %r2, 1;"), "k.ptx") != module
    assert isinstance(module.items[-1], PtxKernel)
