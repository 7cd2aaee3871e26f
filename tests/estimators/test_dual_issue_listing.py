"""Listings: read, checked against banks and blocks, and emitted as kernels."""

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makespan.errors import InputError, ParseError
from makespan.estimators.dual_issue import kepler, listing
from makespan.estimators.dual_issue.arbiter import PATTERNS, parse_pattern, spell
from makespan.estimators.dual_issue.checker import check, pattern_of
from makespan.estimators.dual_issue.codec import PER_BLOCK
from makespan.estimators.dual_issue.gaps import GK110_GAPS
from makespan.estimators.dual_issue.listing import Line, Listing, blocked
from makespan.estimators.dual_issue.pattern_ranking import distance
from makespan.estimators.dual_issue.program import Instruction, Opcode, Program
from makespan.estimators.dual_issue.registers import GK110_BANKS
from makespan.estimators.dual_issue.rules import check_timed, check_unrolled
from makespan.estimators.dual_issue.virtual import VirtualSm
from makespan.estimators.microbench.programs import ffma_source

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
    text = listing.text(listing.parse(GOLDEN, "golden"))
    assert "# block 0: 0x0a40101410141014\n" in text
    assert listing.parse(text, "again") == listing.parse(GOLDEN, "golden")


def test_dependent_instructions_are_7_for_4_cycles_apart() -> None:
    assert distance(120) == 210
    assert distance(9) == 16


REGISTERS = st.integers(0, 254).map(lambda number: f"R{number}")
LINES = st.one_of(
    st.builds(Line, st.integers(0, 255), st.just("FFMA"), st.tuples(REGISTERS, REGISTERS, REGISTERS, REGISTERS)),
    st.builds(Line, st.integers(0, 255), st.just("FADD"), st.tuples(REGISTERS, REGISTERS.map("-{}".format), REGISTERS)),
    st.builds(Line, st.integers(0, 255), st.just("LDS.128"), st.tuples(REGISTERS, REGISTERS.map("[{}+0x40]".format))),
    st.builds(Line, st.integers(0, 255), st.just("ISETP.NE.AND"), st.just(("P0", "PT", "R1", "RZ", "PT"))),
    st.builds(Line, st.integers(0, 255), st.just("BRA"), st.just(("LOOP",)), st.just("@!P0"), st.just("HERE")),
)


@settings(max_examples=60)
@given(st.lists(LINES, min_size=1, max_size=30), st.sampled_from([None, *PATTERNS]))
def test_a_listing_is_read_as_it_was_written(lines: list[Line], pattern: tuple[int, ...] | None) -> None:
    written = Listing("kernel", blocked(lines), pattern)
    assert listing.parse(listing.text(written), "again") == written


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


def instruction_of(line: Line) -> Instruction:
    """A line as an instruction of a measurement."""
    assert line.mnemonic in Opcode.__members__
    assert not line.guard
    destination = listing._registers(line.operands[0])[0] if line.operands else None
    sources = tuple(register for operand in line.operands[1:] for register in listing._registers(operand))
    return Instruction(Opcode(line.mnemonic), destination, sources, line.code)


def measured(kernel: Listing) -> Program:
    """What the loop of a listing measures, without the control of the loop."""
    (start,) = (at for at, line in enumerate(kernel.lines) if line.label == kepler.LOOP)
    (end,) = (at for at, line in enumerate(kernel.lines) if line.base == "BRA" and line.operands == (kepler.LOOP,))
    assert start % PER_BLOCK == 0
    inside = kernel.lines[start : end + 1]
    return Program(
        tuple(instruction_of(line) for line in inside if str(kepler._COUNTER) not in str(line) and not line.guard)
    )


def emitted(test: str, count: int) -> dict[str, str]:
    return dict(kepler.listings(test, range(count)))


@pytest.mark.parametrize(("test", "files"), [("bank", 7), ("pattern", 7), ("latency", 5)])
def test_emitted_kernels_read_again_and_keep_the_rules(test: str, files: int) -> None:
    found = emitted(test, 4)
    assert len(found) == files
    for name, text in found.items():
        if name.endswith(".sass"):
            kernel = listing.parse(text, name)
            assert all(len(block) == 7 for block in kernel.blocks)
            program = measured(kernel)
            if program.count(Opcode.S2R):
                check_timed(VirtualSm().sm, program, 1, 2, stalls=GK110_GAPS, banks=GK110_BANKS)
            else:
                check_unrolled(len(program), 3)
                assert len(program) + 3 <= VirtualSm().sm.icache_instructions
            check(kernel, GK110_BANKS)


def test_every_control_code_has_four_kernels() -> None:
    names = [kernel.name for kernel in kepler._code(())]
    assert len(names) == 4 * 256
    assert names[4 * 0x2F : 4 * 0x30] == ["code_2f_gap", "code_2f_rate", "code_2f_chain4", "code_2f_chain12"]


def test_emitted_patterns_are_those_of_their_names() -> None:
    found = emitted("pattern", 4)
    for pattern in PATTERNS:
        name = f"pattern_{spell(pattern).replace('-', '')}.sass"
        reports = check(listing.parse(found[name], name), GK110_BANKS)
        found_patterns = [pattern_of(reports, block) for block in range(reports[-1].block + 1)]
        assert list(filter(None, found_patterns)) == [pattern] * 123
        assert max(report.ways for report in reports) == 1


def test_emitted_loops_run_on_the_virtual_device_and_give_what_it_has() -> None:
    found = emitted("bank", 3)
    rates = {}
    for name, text in found.items():
        if name.endswith(".sass"):
            program = measured(listing.parse(text, name))
            rates[name] = program.count(Opcode.FMUL) * 32 * 16 * 1000 / VirtualSm().run(program, 16, 1000).cycles
    assert rates["bank_R0_R2.sass"] == pytest.approx(119.18, rel=0.002)
    assert rates["bank_R0_R1.sass"] == pytest.approx(127.5, rel=0.002)
    spans = []
    for name in ("latency_dependent.sass", "latency_independent.sass"):
        program = measured(listing.parse(emitted("latency", 4)[name], name))
        samples = VirtualSm().run(program, 1, 2).clock_samples
        spans.append(samples[1] - samples[0])
    assert spans[0] - spans[1] + 1 == 9


def test_tables_to_fill_in_have_the_keys_of_their_test() -> None:
    assert emitted("bank", 3)["results.csv"].splitlines() == [
        "test,key,ops_per_cycle,gap,latency", "bank,R0:R1,,,", "bank,R0:R2,,,", "bank,R1:R2,,,",
    ]  # fmt: skip
    assert len(emitted("pattern", 3)["results.csv"].splitlines()) == 7


@pytest.mark.parametrize(
    ("test", "count", "message"),
    [
        ("speed", 4, "unknown test"),
        ("bank", 65, "at most 64 registers"),
        ("bank", 1, "2..255"),
        ("bank", 256, "2..255"),
    ],
)
def test_kernels_that_cannot_be_emitted(test: str, count: int, message: str) -> None:
    with pytest.raises(InputError) as error:
        emitted(test, count)
    assert message in str(error.value)


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")
@pytest.mark.parametrize("name", ["ffma.cu", "ffma.ptx"])
def test_the_portable_pair_compiles(name: str, tmp_path: Path) -> None:
    source, binary = tmp_path / name, tmp_path / "out.cubin"
    source.write_text(ffma_source()[name])
    done = subprocess.run(
        ["nvcc", "-arch=sm_75", "-cubin", str(source), "-o", str(binary)], capture_output=True, text=True, timeout=600
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert binary.stat().st_size > 0


def test_the_portable_pair_is_ptx_that_this_package_reads(tmp_path: Path) -> None:
    from makespan import ptx

    source = tmp_path / "ffma.ptx"
    source.write_text(ffma_source()["ffma.ptx"])
    names = [kernel.name for kernel in ptx.read(source).kernels]
    assert names == ["ffma_latency", "ffma_throughput"]
    assert ffma_source()["ffma.ptx"].count("fma.rn.f32") == 128 + 8 * 64


def test_programs_and_lines_say_the_same() -> None:
    program = Program(tuple(map(instruction_of, listing.parse(GOLDEN, "golden").lines[:6])))
    assert tuple(map(listing.line_of, program.body)) == listing.parse(GOLDEN, "golden").lines[:6]
    assert parse_pattern("1-2-2-1") == (1, 2, 2, 1)
