"""Listings: read, and checked against banks and blocks; the portable pair of kernels."""

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makespan.estimates.dual_issue import listing
from makespan.estimates.dual_issue.arbiter import PATTERNS, spell
from makespan.estimates.dual_issue.control_codes import PER_BLOCK, code_text, encode
from makespan.estimates.dual_issue.listing import Listing, ListingLine, check, pattern_of
from makespan.estimates.dual_issue.pattern_ranking import distance
from makespan.estimates.dual_issue.registers import GK110_BANKS
from makespan.estimates.microbench.programs import ffma_source
from makespan.host.errors import InputError, ParseError
from makespan.kernels.ptx import cuda

GOLDEN = """\
-:-:D:-:05 FFMA R31, R150, R147, R31
-:-:D:-:04 FFMA R27, R150, R146, R27
-:-:D:-:05 FFMA R6,  R149, R146, R6
-:-:D:-:04 FFMA R7,  R148, R147, R7
-:-:D:-:05 FFMA R2,  R149, R147, R2
-:-:D:-:04 FFMA R3,  R148, R146, R3
T:-:D:S:00 LDS.64 R168, [R222+0x400]
"""
"""Z: figure 7b of Zhang et al., PPoPP 2017."""


def test_n9_z_operand_cache_example() -> None:
    reports = check(listing.parse(GOLDEN, "golden"), GK110_BANKS)
    assert [(report.reads, report.banks, report.cached, report.shared) for report in reports] == [
        ((31, 147, 150), (3, 1, 2), (), ()),
        ((6, 27, 146, 149), (2, 1, 0, 3), (150,), (146,)),
        ((2, 7, 147, 148), (0, 3, 1, 2), (149,), (147,)),
        ((3, 146), (1, 0), (148,), ()),
    ]
    assert [report.ways for report in reports] == [1, 1, 1, 1]
    assert pattern_of(reports, 0) == (1, 2, 2, 1)


def test_n9_z_without_the_cache_both_dual_cycles_conflict() -> None:
    reports = check(listing.parse(GOLDEN, "golden"), GK110_BANKS, cache=False)
    assert [report.ways for report in reports] == [1, 2, 2, 1]
    assert [len(report.reads) for report in reports[1:3]] == [5, 5]


def test_n8_z_the_example_encodes_to_its_word() -> None:
    read = listing.parse(GOLDEN, "golden")
    assert encode([line.code for line in read.lines]) == 0x0A40101410141014
    assert listing.parse(f"# block 0: 0x0a40101410141014\n{GOLDEN}", "with its word") == read


def test_dependent_instructions_are_7_for_4_cycles_apart() -> None:
    assert distance(120) == 210
    assert distance(9) == 16


REGISTERS = st.integers(0, 254).map(lambda number: f"R{number}")
LINES = st.one_of(
    st.builds(ListingLine, st.integers(0, 255), st.just("FFMA"), st.tuples(REGISTERS, REGISTERS, REGISTERS, REGISTERS)),
    st.builds(
        ListingLine, st.integers(0, 255), st.just("FADD"), st.tuples(REGISTERS, REGISTERS.map("-{}".format), REGISTERS)
    ),
    st.builds(
        ListingLine, st.integers(0, 255), st.just("LDS.128"), st.tuples(REGISTERS, REGISTERS.map("[{}+0x40]".format))
    ),
    st.builds(ListingLine, st.integers(0, 255), st.just("ISETP.NE.AND"), st.just(("P0", "PT", "R1", "RZ", "PT"))),
    st.builds(ListingLine, st.integers(0, 255), st.just("BRA"), st.just(("LOOP",)), st.just("@!P0")),
)


@settings(max_examples=60)
@given(st.lists(LINES, min_size=1, max_size=30), st.sampled_from([None, *PATTERNS]))
def test_a_listing_is_read_as_it_was_written(lines: list[ListingLine], pattern: tuple[int, ...] | None) -> None:
    text = [] if pattern is None else [f"# pattern: {spell(pattern)}"]
    text += [f"HERE:\n{code_text(line.code)} {line};" for line in lines]
    blocks = tuple(tuple(lines[at : at + PER_BLOCK]) for at in range(0, len(lines), PER_BLOCK))
    assert listing.parse("\n".join(text), "again") == Listing(blocks, pattern)


def test_what_a_line_reads_and_writes() -> None:
    (block,) = listing.parse(
        "-:-:-:-:00 LDS.64 R8, [R222+0x400];\n-:-:-:-:00 ST.E [R4], R6;\n-:-:-:-:00 FFMA RZ, -R1, R2, RZ; // comment\n"
        "-:-:-:-:00 IADD R3, R4, c[0x0][0x140];\n-:-:-:-:00 MOV R5, 0x7f;\n",
        "x",
    ).blocks
    assert [line.written for line in block] == [(8, 9), (), (), (3,), (5,)]
    assert [line.sources for line in block] == [(222,), (4, 6), (1, 2), (4,), ()]


NOPS = "-:-:-:-:00 NOP;\n"
FFMA = "-:-:{}:-:{:02d} FFMA R{}, R0, R1, R4;\n"


def dual(first: int, second: int) -> str:
    return FFMA.format("D", 4, first) + FFMA.format("D", 5, second)


def single(register: int) -> str:
    return FFMA.format("D", 5, register)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "1:1: no instruction in the listing"),
        ("-:-:D:-:05 FFMA R1, R2, R3", "1:1: FFMA has a destination and 3 sources"),
        ("-:-:D:-:05 FFMA.FTZ R1, R2, R3", "1:1: FFMA.FTZ has a destination and 3 sources"),
        ("-:-:D:-:05 FFMA R1, R2, R99999999999, R3", "1:1: R99999999999: registers are R0..R254 and RZ"),
        ("-:-:D:-:17 NOP", "1:1: '-:-:D:-:17' is no control code"),
        ("NOP", "1:1: expected T:G:D:S:nn MNEMONIC"),
        ("\n-:-:D:-:05 FFMA R1, R2, R255, R3", "2:1: R255: registers are R0..R254 and RZ"),
        ("-:-:D:-:05 FFMA R1, R2, {x}, R3", "1:1: operand '{x}' is not understood"),
        ("<CODE>", "1:1: sections and macros of KeplerAs are not read"),
        ("# pattern: 3\n" + NOPS, "1:1: '3' is no pattern"),
        ("# block 0\n" + NOPS * 8, "1:1: a block has 7 instructions, this one 8"),
        ("# block 0\n" + NOPS * 6 + "# block 1\n" + NOPS, "1:1: a block has 7 instructions, this one 6"),
        (NOPS + "# block 0\n" + NOPS, "1:1: instructions in front of the first block comment"),
        ("# block 0: 0x1880808080808080\n" + NOPS * 7, "1:1: 0x1880808080808080 is no scheduling word"),
        ("# block 0: 0x0880808080808084\n" + NOPS * 7, "1:1: the codes below are not those of the scheduling word"),
    ],
)
def test_listings_that_are_none_name_the_line(text: str, message: str) -> None:
    with pytest.raises(ParseError) as error:
        listing.parse(text, "k.sass")
    assert str(error.value).startswith(f"k.sass:{message}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (NOPS * 6 + FFMA.format("D", 4, 9), "line 7: a dual code on the last slot of block 0"),
        (NOPS * 5 + FFMA.format("D", 4, 9) + FFMA.format("D", 4, 10), "line 7: a dual code on the last slot of block"),
        (FFMA.format("D", 4, 9), "line 1: a dual code on the last instruction"),
        (FFMA.format("D", 4, 9) + "-:-:D:-:05 FFMA R8, R9, R1, R4", "line 2: FFMA R8, R9, R1, R4 depends on"),
        (dual(9, 9), "depends on FFMA R9, R0, R1, R4 by R9"),
        (single(8) + dual(9, 10) + NOPS * 4 + dual(11, 12) + single(13), "block 0 has the FFMA pattern 1-2 instead of"),
        ("# pattern: 1-2-2-1\n" + dual(8, 9) + single(10) + dual(11, 12) + single(13) + NOPS, "instead of 1-2-2-1"),
    ],
)
def test_listings_that_no_hardware_executes_as_meant(text: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        check(listing.parse(text, "k.sass"), GK110_BANKS)
    assert message in str(error.value)


def test_a_dual_pair_may_write_what_a_load_reads_in_another_cycle() -> None:
    text = dual(8, 9) + dual(10, 11) + single(12) + single(13) + "-:-:-:-:00 LDS R8, [R8];\n"
    reports = check(listing.parse(text, "k.sass"), GK110_BANKS)
    assert [report.issued for report in reports] == [2, 2, 1, 1, 0]


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read the listing: No such file"):
        listing.read(tmp_path / "none.sass")
    binary = tmp_path / "binary.sass"
    binary.write_bytes(b"\xff\x80")
    with pytest.raises(InputError, match="not UTF-8"):
        listing.read(binary)
    large = tmp_path / "large.sass"
    large.write_text("#" * (listing.MAX_BYTES + 1))
    with pytest.raises(InputError, match="larger than 4 MiB"):
        listing.read(large)


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")
def test_the_portable_pair_compiles_and_keeps_its_instructions(tmp_path: Path) -> None:
    source, binary = tmp_path / "ffma.cu", tmp_path / "out.cubin"
    source.write_text(ffma_source()["ffma.cu"])
    done = subprocess.run(
        ["nvcc", "-arch=sm_75", "-cubin", str(source), "-o", str(binary)], capture_output=True, text=True, timeout=600
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert binary.stat().st_size > 0
    module = cuda.read(source)
    assert [kernel.name for kernel in module.kernels] == ["ffma_latency", "ffma_throughput"]
    counts = [sum(i.opcode == "fma.rn.f32" for i in kernel.instructions) for kernel in module.kernels]
    assert counts == [128, 8 * 64]
