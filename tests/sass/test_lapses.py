"""What machine code says of lapses and of lines, against a recount of the text of its instructions by patterns."""

import random
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path

import pytest

from makespan.host import tool
from makespan.host.errors import InputError, MissingInputsError
from makespan.kernels import ptx
from makespan.kernels.flow import Launch
from makespan.kernels.gpu_question import SharedLaunch, of_kernels
from makespan.kernels.question import KernelQuestion, launch_kernel
from makespan.kernels.sass import (
    KernelLines,
    SassKernel,
    SassModule,
    assemble_ptx,
    disassemble,
    leave_room,
    program,
    warps,
)
from makespan.kernels.sass.graph import flow
from makespan.kernels.sass.timing import timed_code
from makespan.model.conditions import conditions
from makespan.model.gpu import GpuInstance
from makespan.model.instance import Instance
from makespan.model.lapses import CacheLine, PlaceLapses
from makespan.model.machine import (
    PAPER,
    CacheSize,
    KnownLapses,
    LineCache,
    Machine,
    RegisterReads,
    given_latencies,
)
from makespan.model.program import Program
from tests.sass.coded import coded

REGISTERS = RegisterReads(banks=2, ports=1, is_variable=True)
CONSTANTS = LineCache(line=64, sets=4, ways=2, window=79)
CODE = {sm: LineCache(line=128, sets=sets, ways=32, window=86, ahead=8) for sm, sets in ((75, 4), (86, 8))}
NEXT = CacheSize(line=128, sets=64, ways=16)
FENCE = {"block": 53, "gpu": 186, "system": 2900}
GIVEN = given_latencies(["fetch=..600", "constant-miss=..500"])

needs_tools = pytest.mark.skipif(
    tool.find("ptxas") is None or tool.find("nvdisasm") is None, reason="the tools for machine code are not installed"
)


def known(sm: int = 86) -> KnownLapses:
    return KnownLapses(REGISTERS, 1, 4, CONSTANTS, CODE[sm], FENCE)


def machine(lapses: KnownLapses) -> Machine:
    return replace(PAPER, lapses=lapses)


def lapses(
    kernel: SassKernel, known_lapses: KnownLapses, *, warm: bool = False, partitions: int = 1
) -> tuple[PlaceLapses, ...]:
    """By instruction."""
    chosen = replace(machine(known_lapses), partitions=partitions)
    return timed_code(flow(kernel), chosen, {name: GIVEN[name] for name in chosen.fetches}, warm).lapses


def one(line: str, known_lapses: KnownLapses) -> PlaceLapses:
    """Of an instruction alone, with control bits that count nothing unless they stand before it."""
    line = line if line.startswith("B-") else f"B------:R-:W-:-:S04 {line}"
    return lapses(coded(f"{line};\nB------:R-:W-:-:S05 EXIT;"), known_lapses)[0]


# All sample kernels, counted again


@cache
def samples(sm: int) -> SassModule:
    """All of them in one module: the tools start once."""
    head = re.compile(r"(?m)^\s*\.(version|target|address_size)\b.*$")
    files = sorted(Path(__file__).parents[2].joinpath("ptx").glob("*.ptx"))
    text = "\n".join(head.sub("", file.read_text()) for file in files if file.stem != "nearest_point_paper")
    ptx = f".version 9.0\n.target sm_75\n.address_size 64\n{text}"
    return disassemble(assemble_ptx(ptx, "samples.ptx", f"sm_{sm}"), "samples.cubin", "samples.cubin")


FIXED = re.compile(r"(FADD|FFMA|FMUL|FSEL|FSETP|FMNMX|IADD3|IMAD|IMNMX|ISETP|LEA|LOP3|MOV|SEL|SHF)\b")
STORES = re.compile(r"(ST[GS]|RED)\b")
WITHOUT_RESULT = re.compile(r"(BAR|BRA|BSSY|BSYNC|EXIT|NOP|ST[GS]|RED)\b")


def recounted_registers(text: str) -> Iterator[int]:
    """The registers that an instruction reads, from its text: each sample kernel uses few forms of operands."""
    opcode, _, rest = re.sub(r"^@\S+ ", "", text).rstrip(";").partition(" ")
    operands = [] if WITHOUT_RESULT.match(opcode) else [""]
    operands += re.split(r", ", rest)
    if not WITHOUT_RESULT.match(opcode):
        del operands[: 2 + (re.fullmatch("P[T0-9]", operands[1]) is not None)]
    wide = {".64": 2, ".128": 4}
    for place, operand in enumerate(operands):
        for number, is_pair in re.findall(r"(?<![A-Z])R([0-9]+)(\.64)?", operand):
            is_address = operand.startswith("[") and ".E" in opcode and "UR" not in operand  # of 64 bits on sm_75
            width = 1 + (bool(is_pair) or is_address)
            if STORES.match(opcode) and place == 1:
                width = max(wide.get(size, 1) for size in re.findall(r"\.[0-9]+", opcode) or [""])
            if "IMAD.WIDE" in opcode and place == 2:
                width = 2
            yield from range(int(number), int(number) + width)


def recounted(text: str, word: int, size: int) -> int:
    """The credit of an instruction without that of constants."""
    most = max(Counter(number % 2 for number in recounted_registers(text)).values(), default=0)
    counters = {word >> at & 7 for at in (110, 113)}
    opcode = re.sub(r"^@\S+ ", "", text)
    is_fixed = FIXED.match(opcode) is not None and counters == {7}
    return (max(0, most - 1) if is_fixed else most) + ("IMAD" in opcode) * size


@needs_tools
@pytest.mark.parametrize("sm", [75, 86])
def test_reads_and_multiplies_of_every_instruction_of_the_sample_kernels(sm: int) -> None:
    seen = Counter[int]()
    for kernel in samples(sm).kernels:
        got = lapses(kernel, KnownLapses(REGISTERS, 1))
        for instruction, own in zip(flow(kernel).code, got, strict=True):
            assert own == PlaceLapses(recounted(str(instruction), instruction.word, 1)), str(instruction)
            seen[own.credit] += 1
    assert seen.total() > 780
    assert {*seen} >= {0, 1, 2, 3}


@needs_tools
@pytest.mark.parametrize("sm", [75, 86])
def test_constants_and_lines_of_every_instruction_of_the_sample_kernels(sm: int) -> None:
    """All fit their caches. Each constant counts in turn, and less only where its line was asked for before."""
    for kernel in samples(sm).kernels:
        found = flow(kernel)
        got = lapses(kernel, KnownLapses(constant=4, constants=CONSTANTS, code=CODE[sm]))
        assert got == lapses(kernel, KnownLapses(constant=4, constants=CONSTANTS, code=CODE[sm]))
        for number, (instruction, own) in enumerate(zip(found.code, got, strict=True)):
            text = str(instruction)
            named = [] if "LDC" in text else re.findall(r"c\[0x0\]\[(0x[0-9a-f]+)\]", text)
            rows = {f"{kernel.name} c[0x0] {int(at, 16) // 64 * 64:#x}" for at in named}
            code = f"{kernel.name} code {number_of(text, instruction.address):#x}"
            assert [line.name for line in own.lines] == sorted({*rows, code})
            assert {line.window for line in own.lines} <= {500, 600}
            assert own.misses == own.fence == 0
            straight = {row for before in found.code[:number] for row in before_rows(str(before), kernel.name)}
            assert own.credit in {0, 4 * len(rows)}
            assert own.credit == 4 * len(rows) or rows <= straight, text
        first = next((own for own in got if len(own.lines) > 1), PlaceLapses(4))
        assert first.credit == 4


def number_of(text: str, address: int) -> int:
    return address - address % 128


def before_rows(text: str, name: str) -> set[str]:
    """The lines of constants that an instruction asks for whatever its guard."""
    if "LDC" in text or text.startswith("@"):
        return set()
    return {f"{name} c[0x0] {int(at, 16) // 64 * 64:#x}" for at in re.findall(r"c\[0x0\]\[(0x[0-9a-f]+)\]", text)}


@needs_tools
def test_kernels_of_one_module_have_lines_of_their_own() -> None:
    names = [{line.name for own in lapses(each, known()) for line in own.lines} for each in samples(86).kernels]
    assert all(names)
    assert len(set.union(*names)) == sum(map(len, names))


@needs_tools
def test_a_module_tells_where_its_kernels_may_begin() -> None:
    assert {kernel.alignment for kernel in samples(86).kernels} == {128}
    for kernel in samples(86).kernels:
        assert kernel.padded_bytes % 128 == 0
        assert kernel.padded_bytes >= 16 * len(kernel.code)


# Reads of registers


@pytest.mark.parametrize(
    ("line", "credit"),
    [
        ("FFMA R1, R2, R4, R6", 2),
        ("FFMA R1, R2, R3, R4", 1),
        ("FFMA R1, R2, R2, R3", 1),  # an operand named twice is read twice
        ("FMUL R1, R3, R3", 1),
        ("FFMA R1, R2, c[0x0][0x160], RZ", 0),
        ("MOV R1, UR4", 0),
        ("DFMA R0, R2, R4, R6", 3),  # three in each bank, from a queue
        ("IMAD.WIDE R2, R4, R6, R8", 2),  # R4, R6 and R8 are in one bank
        ("IMAD.WIDE R2, R4, R7, R8", 1),
        ("HMMA.16816.F32 R0, R4, R8, R12", 4),  # 4 + 2 + 4 registers
        ("STG.E.128 [R2.64], R4", 3),  # R2, R4 and R6
        ("STG.E [R2.64+0x8], R4", 2),
        ("LDG.E R0, [R2.64]", 1),
        ("LDG.E R0, [R3.U32+UR4]", 1),
        ("MUFU.RCP R1, R2", 1),
        ("VOTE.ANY R0, PT, P0", 0),
        ("BRA 0x10", 0),
        ("B------:R-:W2:-:S04 MATCH.ANY R1, R2", 1),  # counted by a scoreboard, so it reads from a queue
        ("B------:R-:W2:-:S04 FCHK P0, R2, R4", 2),
        ("B------:R1:W-:-:S04 FCHK P0, R2, R4", 2),
        ("FCHK P0, R2, R4", 1),
    ],
)
def test_reads_of_one_bank_come_one_after_another(line: str, credit: int) -> None:
    assert one(line, KnownLapses(REGISTERS)) == PlaceLapses(credit)


def test_more_ports_or_banks_read_more_registers_at_once() -> None:
    assert one("FFMA R1, R2, R4, R6", KnownLapses(RegisterReads(2, 2, is_variable=True))).credit == 1
    assert one("FFMA R1, R2, R4, R6", KnownLapses(RegisterReads(4, 1, is_variable=True))).credit == 1
    assert one("STG.E.128 [R2.64], R4", KnownLapses(RegisterReads(2, 2, is_variable=True))).credit == 2


def test_what_reads_from_a_queue_may_stop_nobody() -> None:
    quiet = KnownLapses(RegisterReads(2, 1, is_variable=False))
    assert one("STG.E.128 [R2.64], R4", quiet).credit == 0
    assert one("FFMA R1, R2, R4, R6", quiet).credit == 2
    assert one("B------:R-:W2:-:S04 FCHK P0, R2, R4", quiet).credit == 1


@pytest.mark.parametrize("line", ["IMAD R1, RZ, RZ, RZ", "IMAD.MOV.U32 R1, RZ, RZ, R2", "UIMAD UR4, UR4, UR5, UR6"])
def test_every_multiply_add_counts(line: str) -> None:
    assert one(line, KnownLapses(multiply=1)) == PlaceLapses(1)
    assert one("IADD3 R1, R2, R3, R4", KnownLapses(multiply=1)) == PlaceLapses()


@pytest.mark.parametrize(
    ("line", "cycles"),
    [
        ("MEMBAR.SC.CTA", 53),
        ("MEMBAR.ALL.GPU", 186),
        ("MEMBAR.SC.SYS", 2900),
        ("MEMBAR.SC.VC", 2900),  # of an unknown scope
        ("ERRBAR", 0),
    ],
)
def test_a_fence_stops_the_sm_by_its_scope(line: str, cycles: int) -> None:
    assert one(line, KnownLapses(fence=FENCE)) == PlaceLapses(fence=cycles)
    assert one("MEMBAR.SC.CTA", KnownLapses(fence={"gpu": 186})).fence == 186


# Constants

NOPS = "B------:R-:W-:-:S01 NOP;\n"
PARAMETERS = "\n".join(f"B------:R-:W-:-:S04 FADD R0, R0, c[0x0][{at:#x}];" for at in range(0x160, 0x560, 4))


def own_constants(text: str, cache: LineCache = CONSTANTS) -> tuple[PlaceLapses, ...]:
    return lapses(coded(f"{text}\nB------:R-:W-:-:S05 EXIT;"), KnownLapses(constant=4, constants=cache))[:-1]


def test_more_lines_of_constants_than_their_cache_has_may_be_late_at_each_use() -> None:
    found = own_constants(PARAMETERS)
    assert len(found) == 256
    assert {*found} == {PlaceLapses(4, misses=500)}


def test_a_line_stays_where_its_own_set_has_room() -> None:
    lines = [0x000, 0x100, 0x200, 0x040]  # three lines of one set, and one of another
    text = "\n".join(f"B------:R-:W-:-:S04 FADD R0, R0, c[0x0][{at:#x}];" for at in lines)
    *crowded, alone = own_constants(text)
    assert {*crowded} == {PlaceLapses(4, misses=500)}
    assert alone == PlaceLapses(4, lines=(CacheLine("listed c[0x0] 0x40", 500),))
    *_, third, beside = own_constants(text, CONSTANTS._replace(ways=3))
    assert third.misses == beside.misses == 0


def test_lines_that_are_fetched_ahead_take_room() -> None:
    """Lines 0 and 3 of a bank, and line 4, which is of the set of line 0."""
    text = "\n".join(f"B------:R-:W-:-:S04 FADD R0, R0, c[0x0][{at:#x}];" for at in (0x0, 0xC0))
    one_way = CONSTANTS._replace(ways=1)
    assert [own.misses for own in own_constants(text, one_way)] == [0, 0]
    assert [own.misses for own in own_constants(text, one_way._replace(ahead=1))] == [500, 0]


def test_a_line_of_another_bank_may_be_in_any_set() -> None:
    text = "\n".join(f"B------:R-:W-:-:S04 FADD R0, R0, c[{at}];" for at in ("0x0][0x0", "0x0][0x100", "0x2][0x0"))
    assert {each.misses for each in own_constants(text)} == {500}
    *_, other = own_constants(text.replace("[0x100]", "[0x40]"))
    assert other == PlaceLapses(4, lines=(CacheLine("listed c[0x2] 0x0", 500),))


def test_an_unknown_constant_may_be_anywhere() -> None:
    line = "B------:R-:W-:-:S04 FADD R0, R0, {};"
    for unknown in ("cx[UR4][0x10]", "c[0x3][R4+0x10]"):
        found = own_constants(f"{line.format(unknown)}\n{line.format('c[0x0][0x160]')}")
        assert {*found} == {PlaceLapses(4, misses=500)}


def test_loads_of_constants_go_through_another_cache() -> None:
    assert own_constants(
        "B------:R-:W0:-:S01 LDC R0, c[0x0][0x160];\nB------:R-:W-:-:S01 ULDC UR4, c[0x0][0x168];"
    ) == (
        PlaceLapses(),
        PlaceLapses(),
    )


def test_a_line_longer_than_the_alignment_of_a_bank_stays_nowhere() -> None:
    for known_next in (None, NEXT):
        (found,) = own_constants(
            "B------:R-:W-:-:S04 FADD R0, R0, c[0x0][0x160];", CONSTANTS._replace(line=256, next=known_next)
        )
        assert found == PlaceLapses(4, misses=500)


BRANCHES = """
B------:R-:W-:-:S04 ISETP.NE.AND P0, PT, R0, RZ, PT;
B------:R-:W-:-:S05 @P0 BRA 0x40;
B------:R-:W-:-:S04 FADD R0, R0, c[0x0][0x160];
B------:R-:W-:-:S04 @P0 FADD R0, R0, c[0x0][0x1c0];
B------:R-:W-:-:S04 FADD R0, R0, c[0x0][0x164];
B------:R-:W-:-:S04 FADD R0, R0, c[0x0][0x1c4];
B------:R-:W-:-:S04 FADD R0, R0, c[0x0][0x168];
B------:R-:W-:-:S05 @P1 BRA 0x50;
B------:R-:W-:-:S04 FADD R0, R0, c[0x0][0x1c8];
B------:R-:W-:-:S05 EXIT;
"""


def test_a_line_that_was_asked_for_on_every_way_is_there() -> None:
    known_lapses = KnownLapses(constant=4, constants=CONSTANTS)
    found = [own.credit for own in lapses(coded(BRANCHES), known_lapses)]
    # after a branch around it, and after an instruction whose guard may fail, a line counts once more; a loop counts
    # each time what it asks for first
    assert found == [0, 0, 4, 4, 4, 4, 0, 0, 0, 0]
    assert [own.credit for own in lapses(coded(BRANCHES), known_lapses, warm=True)] == [0] * 10
    assert not any(own.lines for own in lapses(coded(BRANCHES), known_lapses, warm=True))


# Lines of code


def straight(count: int, **changed: int) -> SassKernel:
    text = "\n".join(["B------:R-:W-:-:S01 NOP;"] * (count - 1))
    return replace(coded(f"{text}\nB------:R-:W-:-:S05 EXIT;"), **changed)  # type: ignore[arg-type]


def code_lines(kernel: SassKernel, cache: LineCache) -> list[list[int]]:
    """The lines of each instruction, by their number; none for one whose line does not stay."""
    return [
        sorted(int(line.name.removeprefix("listed code 0x"), 16) // cache.line for line in own.lines)
        for own in lapses(kernel, KnownLapses(code=cache))
    ]


def test_a_kernel_that_begins_inside_a_line_needs_one_line_more() -> None:
    aligned = code_lines(straight(16, alignment=128), CODE[86])
    assert aligned == [[0]] * 8 + [[1]] * 8
    inside = code_lines(straight(16, alignment=16), CODE[86])
    for first in range(8):  # the number of instructions of another kernel in the first line
        assert all((first + at) // 8 in own for at, own in enumerate(inside))
    assert {line for own in inside for line in own} == {0, 1, 2}
    halves = code_lines(straight(16, alignment=64), CODE[86])
    assert halves == [[0]] * 4 + [[0, 1]] * 4 + [[1]] * 4 + [[1, 2]] * 4


@pytest.mark.parametrize("alignment", [16, 32, 128])
@pytest.mark.parametrize(("sets", "ways"), [(1, 12), (2, 6), (4, 3), (3, 4), (8, 2), (5, 3)])
def test_a_line_of_code_stays_if_no_set_can_overflow(alignment: int, sets: int, ways: int) -> None:
    """Against the numbers of lines in each set, for each place at which the kernel may begin."""
    for count, ahead in product(range(1, 100, 7), (0, 3)):
        cache = LineCache(128, sets, ways, 86, ahead=ahead)
        kernel = straight(count, alignment=alignment, padded_bytes=-(-count // 8) * 128)
        got = lapses(kernel, KnownLapses(code=cache))
        for first in range(0, 128, alignment):
            last = (first + kernel.padded_bytes - 1) // 128 + 1 + ahead
            filled = Counter(line % sets for line in range(last + 1))
            for at, own in enumerate(got):
                line = (first + 16 * at) // 128
                if filled[line % sets] > ways:
                    assert own.misses == 600
                else:
                    assert own.misses or f"listed code {line * 128:#x}" in {each.name for each in own.lines}
        if alignment == 128:
            assert all(own.misses == 0 or filled[at // 8 % sets] > ways for at, own in enumerate(got))


def test_the_sizes_of_known_caches_count_lines() -> None:
    """32 KiB of lines, less the one behind the end and the eight that may be fetched ahead of that."""
    fits = KnownLapses(code=CODE[86])
    assert not any(own.misses for own in lapses(straight(8 * 247, alignment=128), fits))
    over = lapses(straight(8 * 247 + 1, alignment=128), fits)
    assert {own.misses for own in over} == {0, 600}  # only one set has a line too many
    assert any(own.misses for own in lapses(straight(8 * 247, alignment=16), fits))
    padded = straight(8 * 247, alignment=128, padded_bytes=248 * 128)
    assert any(own.misses for own in lapses(padded, fits))


def test_a_first_fetch_is_no_shorter_than_one_from_the_next_cache() -> None:
    slow = KnownLapses(code=CODE[86]._replace(window=900))
    assert {line.window for own in lapses(straight(3), slow) for line in own.lines} == {900}


# The next cache


def late_places(kernel: SassKernel, *, warm: bool = False, **changed: object) -> set[PlaceLapses]:
    """The lapses of instructions on a machine whose caches hold one line; `changed`: of its cache of code."""
    code = LineCache(128, 1, 1, 86, next=NEXT)._replace(**changed)  # type: ignore[arg-type]
    constants = LineCache(64, 1, 1, 79, next=code.next)
    return {*lapses(kernel, KnownLapses(code=code, constants=constants), warm=warm)}


def test_a_line_that_the_next_cache_keeps_comes_from_there_after_the_first_time() -> None:
    first, second = (CacheLine(f"listed code {at}", 600) for at in ("0x0", "0x80"))
    kernel = straight(16, alignment=128)
    assert late_places(kernel) == {PlaceLapses(misses=86, lines=(line,)) for line in (first, second)}
    assert late_places(kernel, next=None) == {PlaceLapses(misses=600)}
    assert late_places(kernel, warm=True) == {PlaceLapses(misses=86)}
    assert late_places(kernel, warm=True, next=None) == {PlaceLapses(misses=600)}
    named = [warps(kernel, machine=machine(KnownLapses(code=LineCache(128, 1, 1, 86, next=at))), warm=True).missing()
             for at in (NEXT, None)]  # fmt: skip
    assert [[each.blank for each in missing] for missing in named] == [[], ["fetch=..N"]]


def test_an_instruction_waits_for_its_line_and_then_for_its_constant() -> None:
    text = "\n".join(f"B------:R-:W-:-:S04 FADD R0, R0, c[0x0][{at:#x}];" for at in range(0, 0x400, 64))
    kernel = replace(coded(f"{text}\nB------:R-:W-:-:S05 EXIT;"), alignment=128)
    *_, end = timed_lapses = lapses(kernel, KnownLapses(code=LineCache(128, 1, 1, 86, next=NEXT),
                                                       constants=LineCache(64, 4, 2, 79, next=NEXT)))  # fmt: skip
    assert {own.misses for own in timed_lapses[:-1]} == {86 + 79}
    assert end.misses == 86
    assert [line.window for line in timed_lapses[0].lines] == [500, 600]


def fills(draw: random.Random, sizes: CacheSize, kernel: SassKernel, places: set[tuple[int, int]]) -> Counter[int]:
    """How many lines are in each set of a cache if the kernel and its banks of constants begin at random addresses."""
    bases = {bank: 64 * draw.randrange(1000) for bank in range(4)}
    start = kernel.alignment * draw.randrange(1000)
    code = {(start + 16 * at) // sizes.line for at in range(len(kernel.code))}
    end = (start + kernel.padded_bytes - 1) // 128 * 128
    code |= {at // sizes.line for at in range(end, end + 256, sizes.line)}  # the last line, and the one behind it
    lines = [(None, line) for line in code] + [(b, (bases[b] + at) // sizes.line) for b, at in places]
    return Counter(line % sizes.sets for _, line in {*lines})


def test_no_addresses_let_the_next_cache_overflow_that_is_said_to_keep_all_lines() -> None:
    """Of code and of constants, be they operands or loaded, at random addresses."""
    draw, said = random.Random(1), Counter[bool]()
    for _ in range(150):
        places = {(draw.choice([0, 0, 3]), 4 * draw.randrange(200)) for _ in range(draw.randrange(1, 9))}
        operands = [f"c[{bank:#x}][{at:#x}]" for bank, at in sorted(places)]
        made = [draw.choice(["FADD R0, R0, {}", "LDC R0, {}", "ULDC UR4, {}"]).format(each) for each in operands]
        lines = [f"B------:R-:W-:-:S04 {each};" for each in made + ["NOP"] * draw.randrange(40)]
        text = "\n".join([*lines, "B------:R-:W-:-:S05 EXIT;"])
        kernel = replace(coded(text), alignment=draw.choice([16, 64, 128]), padded_bytes=16 * draw.randrange(50))
        kernel = replace(kernel, padded_bytes=max(kernel.padded_bytes, 16 * len(kernel.code)))
        size = CacheSize(draw.choice([64, 128]), draw.choice([1, 2, 4, 5]), draw.randrange(1, 14))
        is_kept = KernelLines(flow(kernel), KnownLapses(code=LineCache(128, 1, 1, 86, next=size))).stay_near
        said[is_kept] += 1
        for _ in range(30 * is_kept):
            assert max(fills(draw, size, kernel, places).values()) <= size.ways
    assert min(said.values()) > 30


def test_the_next_cache_keeps_as_many_lines_as_fit() -> None:
    """Two lines of code and one behind them; two of constants, of which one may lie in either of two."""
    text = "B------:R-:W-:-:S04 FADD R0, R0, c[0x0][0x40];\nB------:R-:W0:-:S02 LDC R1, c[0x0][0x200];\n"
    kernel = replace(coded(f"{text}{NOPS * 13}B------:R-:W-:-:S05 EXIT;"), alignment=128)
    for line, ways in ((128, 3 + 3), (64, 6 + 2), (256, 2 + 3)):
        kept = [
            KernelLines(flow(kernel), KnownLapses(code=LineCache(128, 1, 1, 86, next=CacheSize(line, 1, most))))
            for most in (ways - 1, ways)
        ]
        assert [each.stay_near for each in kept] == [False, True], line


def test_the_next_cache_has_room_for_what_is_fetched_ahead() -> None:
    """A line of constants and two ahead of it, a line of code and the one behind it; each may begin inside a line."""
    kernel = coded("B------:R-:W-:-:S04 FADD R0, R0, c[0x0][0x0];\nB------:R-:W-:-:S05 EXIT;")
    for line, ways in ((64, 3 + 6), (128, 2 + 3), (256, 1 + 2 + 1)):
        size = CacheSize(line, 1, ways)
        for own in (size, size._replace(ways=ways - 1)):
            caches = LineCache(128, 1, 1, 86, next=own), LineCache(64, 1, 1, 79, ahead=2, next=own)
            found = KernelLines(flow(kernel), KnownLapses(code=caches[0], constants=caches[1]))
            assert found.stay_near is (own == size), (line, own)


def test_code_may_begin_inside_a_longer_line_of_the_next_cache() -> None:
    for ways in (2, 3):  # four lines of 128 bytes, of which the first may be the second half of one of 256
        own = LineCache(128, 1, 1, 86, next=CacheSize(256, 1, ways))
        assert KernelLines(flow(straight(24, alignment=128)), KnownLapses(code=own)).stay_near is (ways == 3)


def test_an_unknown_constant_may_come_from_far_in_warm_caches_too() -> None:
    kernel = coded("B------:R-:W-:-:S04 FADD R0, R0, c[0x3][R4+0x10];\nB------:R-:W-:-:S05 EXIT;")
    near = KnownLapses(constants=CONSTANTS._replace(next=NEXT))
    assert KernelLines(flow(kernel), near).stay_near
    (missing,) = warps(kernel, machine=machine(near), warm=True).missing()
    assert missing.blank == "constant-miss=..N"


@pytest.mark.parametrize(
    ("line", "sets", "stays"),
    [
        ("LDC R1, c[0x3][R4+0x10]", 64, True),  # anywhere in a bank of 512 lines
        ("LDC R1, c[0x3][R4+0x10]", 32, False),
        ("LDC R1, cx[UR4][0x10]", 64, False),
        ("FADD R0, R0, c[0x3][R4+0x10]", 64, True),
    ],
)
def test_a_register_may_choose_any_word_of_a_bank(line: str, sets: int, stays: bool) -> None:
    kernel = replace(coded(f"B------:R-:W-:-:S04 {line};\nB------:R-:W-:-:S05 EXIT;"), alignment=128)
    known_lapses = KnownLapses(code=LineCache(128, 1, 1, 86, next=CacheSize(128, sets, 16)))
    assert KernelLines(flow(kernel), known_lapses).stay_near is stays


def test_fetches_of_one_way_keep_each_other_waiting() -> None:
    """Each request stands in the way of all others for a cycle, and so does each that is made ahead with it."""
    text = "\n".join(f"B------:R-:W-:-:S04 FADD R0, R0, c[0x0][{at:#x}];" for at in range(0, 0x400, 64))
    kernel = replace(coded(f"{text}\nB------:R-:W-:-:S05 EXIT;"), alignment=128)
    code, constants = CODE[86]._replace(gap=1, next=NEXT), CONSTANTS._replace(gap=2, next=NEXT)
    many = KnownLapses(constant=4, code=code, constants=constants)
    *found, end = lapses(kernel, many, partitions=4)
    assert {(own.credit, own.fence, own.misses) for own in found} == {(4, 2, 79)}
    assert end == PlaceLapses(lines=(CacheLine("listed code 0x100", 600),))
    # three lines of code stay; each of four partitions fetches them, with eight behind each
    assert all(CacheLine("listed first fetches", 4 * 3 * 9) in own.lines for own in found)
    assert not any(own.lines for own in lapses(kernel, many, partitions=4, warm=True))
    (unknown,) = own_constants("B------:R-:W-:-:S04 FADD R0, R0, cx[UR4][0x10];", constants)
    assert unknown == PlaceLapses(4, fence=2, misses=500)
    everywhere = lapses(kernel, replace(many, code=code._replace(ways=1, sets=1)), partitions=4)
    assert {own.fence for own in everywhere} == {2 + 9, 9 + 3 * 9}  # three instructions behind the end are fetched, too


@pytest.mark.parametrize(
    ("load", "requests"),
    [
        ("LDC R1, c[0x0][0x300]", 1),
        ("ULDC.64 UR4, c[0x0][0x300]", 1),
        ("LDC R1, c[0x3][UR4+0x10]", 1),
        ("LDC R1, c[0x3][R4+0x10]", 32),  # each lane may ask for another line
    ],
)
def test_loads_of_constants_keep_lines_waiting_that_do_not_stay(load: str, requests: int) -> None:
    """They have a cache of their own, which comes to its lines by the same way."""
    text = "\n".join(f"B------:R-:W-:-:S04 {each};" for each in (load, "FADD R0, R0, c[0x0][0x0]"))
    slow = CONSTANTS._replace(gap=2, ahead=1)
    assert [own.fence for own in own_constants(text, slow)] == [0, 0]
    assert [own.fence for own in own_constants(text, slow._replace(ways=0))] == [4 * requests, 4]


def test_a_buffer_fetches_what_its_warp_does_not_come_to() -> None:
    """The second line stays, and its end asks in vain for the third one, which shares a set with the first."""
    cache = LineCache(128, 2, 1, 86, gap=1)
    own = lapses(straight(16, alignment=128), KnownLapses(code=cache))
    assert [each.fence for each in own] == [1] * 8 + [0] * 7 + [3]
    jump = "B------:R-:W-:-:S05 @P0 BRA 0x80;\n"
    early = replace(coded(f"{NOPS * 13}{jump}{NOPS}B------:R-:W-:-:S05 EXIT;"), alignment=128)
    assert [each.fence for each in lapses(early, KnownLapses(code=cache))][-4:] == [0, 1, 0, 3]
    kept = lapses(early, KnownLapses(code=cache._replace(ways=2)))
    assert not any(each.fence for each in kept)


def test_a_line_behind_the_end_may_be_missing_in_warm_caches() -> None:
    """Both constants take the place of each other, and wait for what is fetched behind the end, once a partition."""
    text = "\n".join(f"B------:R-:W-:-:S04 FADD R0, R0, c[0x0][{at:#x}];" for at in (0x0, 0x40))
    code, constants = CODE[86]._replace(gap=1, next=NEXT), LineCache(64, 1, 1, 79, next=NEXT)
    for count, behind in ((5, ()), (6, (CacheLine("listed first fetches", 4 * 9),))):
        kernel = replace(coded(f"{text}\n{NOPS * (count - 3)}B------:R-:W-:-:S05 EXIT;"), alignment=128)
        own, *_ = lapses(kernel, KnownLapses(code=code, constants=constants), warm=True, partitions=4)
        assert (own.misses, own.lines) == (79, behind), count


def test_ends_in_many_lines_are_one_place() -> None:
    """Branches to 70 ends that are all alike, each in a line of its own."""
    ends = [16 * (72 + 8 * number) for number in range(70)]
    text = "".join(f"B------:R-:W-:-:S05 @P0 BRA.U {end:#x};\n" for end in ends)
    text += "B------:R-:W-:-:S05 EXIT;\n" + NOPS + f"B------:R-:W-:-:S05 EXIT;\n{NOPS * 7}" * 70
    made = program(replace(coded(text), alignment=128), machine=machine(known()), latencies=GIVEN)
    assert max(len(own.lines) for own in made.lapses) == 71


# Several kernels on an SM


def together(*kernels: SassKernel, known_lapses: KnownLapses) -> list[Program]:
    """The programs of launches of one block of one warp each, which share an SM."""
    chosen, launches = machine(known_lapses), []
    given = {name: GIVEN[name] for name in chosen.fetches}
    for number, kernel in enumerate(kernels):
        module = SassModule(kernel.file, (kernel,))
        asked = KernelQuestion(module, launch=Launch(block=32, grid=1), latencies=given)
        launches.append(SharedLaunch(f"launch {number}", launch_kernel(asked, chosen), {"slots": 1}))
    return [grid.block[0][0] for grid in of_kernels(launches, chosen, sms=1, room={"slots": 4}).grids]


def test_launches_that_share_an_sm_have_lines_of_their_own() -> None:
    kernel = coded(BRANCHES.replace("@P1 BRA 0x50", "NOP"))
    first, second = together(kernel, kernel, known_lapses=known())
    names = [{line.name for line in each.lines} for each in (first, second)]
    assert all(name.startswith("launch 0: listed c") for name in names[0])
    assert names[1] == {f"launch 1{name.removeprefix('launch 0')}" for name in names[0]}
    (alone,) = together(kernel, known_lapses=known())
    assert {line.name for line in alone.lines} == names[0]
    assert alone.lapses == first.lapses


@pytest.mark.parametrize(("ways", "stays"), [(4, True), (3, False)])
def test_lines_of_other_launches_may_be_in_any_set(ways: int, stays: bool) -> None:
    """Two sets: a kernel of one line, with eight behind it, fills one of them with five lines, and its like too."""
    cache = LineCache(128, 2, ways + 6, 86, ahead=8)
    both = together(straight(8, alignment=128), straight(8, alignment=128), known_lapses=KnownLapses(code=cache))
    assert [bool(each.lines) for each in both] == [stays] * 2
    assert [max(own.misses for own in each.lapses) for each in both] == [0 if stays else 600] * 2


@pytest.mark.parametrize("other", ["c[0x0][0x160]", "c[0x2][0x0]", "cx[UR4][0x10]", "RZ"])
def test_constants_of_other_launches_may_be_in_any_set(other: str) -> None:
    text = "B------:R-:W-:-:S04 FADD R0, R0, {};\nB------:R-:W-:-:S05 EXIT;"
    own, beside = coded(text.format("c[0x0][0x200]")), coded(text.format(other))
    for ways in range(1, 3):
        known_lapses = KnownLapses(constant=4, constants=CONSTANTS._replace(ways=ways))
        first, _ = together(own, beside, known_lapses=known_lapses)
        stays = other == "RZ" or (ways == 2 and "cx" not in other)
        assert bool(first.lines) is stays


def test_a_line_that_may_begin_before_its_bank_leaves_no_room() -> None:
    kernel = coded("B------:R-:W-:-:S04 FADD R0, R0, c[0x0][0x160];\nB------:R-:W-:-:S05 EXIT;")
    for line, ways in ((64, 1), (128, 0)):
        own = KnownLapses(constants=CONSTANTS._replace(line=line))
        left = leave_room(own, [KernelLines(flow(kernel), own)]).constants
        assert left is not None
        assert left.ways == ways


def test_a_kernel_of_unknown_lines_leaves_no_room() -> None:
    assert leave_room(known(), [None]) == replace(
        known(), code=CODE[86]._replace(ways=0), constants=CONSTANTS._replace(ways=0)
    )
    assert leave_room(KnownLapses(multiply=1), [None]) == KnownLapses(multiply=1)
    near = KnownLapses(code=CODE[86]._replace(next=NEXT))
    left = leave_room(near, [KernelLines(flow(straight(3)), near)]).code
    assert left == CODE[86]._replace(ways=30)  # what all kernels need of the next cache is not counted


# What must be given, and what is supposed


def test_first_fetches_are_asked_for_where_lines_may_come_from_far() -> None:
    short, parameters = straight(3), coded(f"{PARAMETERS}\nB------:R-:W-:-:S05 EXIT;")
    asked = [
        [each.blank for each in warps(kernel, machine=machine(known()), warm=warm).missing()]
        for kernel in (short, parameters)
        for warm in (False, True)
    ]
    assert asked == [["fetch=..N"], [], ["fetch=..N", "constant-miss=..N"], ["constant-miss=..N"]]
    with pytest.raises(MissingInputsError, match="the first fetch of a line of code"):
        program(short, machine=machine(known()))


FETCHES = "if a first fetch of code takes at most 600 cycles and a first fetch of constants at most 500"
KNOWN, WARM = "on the SM as it is known", "with warm caches of code and constants"


def said(kernel: SassKernel, known_lapses: KnownLapses, *, warm: bool = False) -> set[str]:
    """The conditions of an instance that come from lapses."""
    chosen = machine(known_lapses)
    given = {} if warm else {name: GIVEN[name] for name in chosen.fetches}
    instance = Instance.of(program(kernel, machine=chosen, latencies=given, warm=warm), 2, chosen)
    return {*conditions(instance.assumptions)} - {
        "for the machine code on paper",
        "if every instruction takes one cycle",
    }


def test_a_verdict_says_what_is_known_and_what_is_given() -> None:
    kernel = coded(BRANCHES.replace("@P1 BRA 0x50", "NOP"))
    assert said(kernel, known()) == {KNOWN, FETCHES}
    assert said(kernel, replace(known(), code=None, constants=None)) == {KNOWN}
    assert said(straight(3), replace(known(), constants=None), warm=True) == {WARM}  # it needs no register
    assert said(kernel, replace(known(), carried_over="8.6")) == {KNOWN, FETCHES, "with lapses as on 8.6"}
    assert said(kernel, KnownLapses()) == set()
    assert said(straight(3), known()) == {KNOWN, "if a first fetch of code takes at most 600 cycles"}


def test_a_verdict_about_a_gpu_says_where_lapses_are_left_out() -> None:
    left_out, kernel = "although lapses are left out", straight(3)
    gpu = replace(machine(known()), capabilities=(86,))
    for chosen, is_said in (
        (gpu, False),
        (replace(gpu, lapses=KnownLapses()), False),
        (replace(gpu, lapses=None), True),
    ):
        made = program(kernel, machine=chosen, latencies={name: GIVEN[name] for name in chosen.fetches})
        assert (left_out in conditions(Instance.of(made, 2, chosen).assumptions)) is is_said
    # the machine of the paper is no GPU
    assert left_out not in conditions(Instance.of(program(kernel), 2, PAPER).assumptions)
    text = ".visible .entry k()\n{\n.reg .u32 a;\nmov.u32 a, 0;\nret;\n}\n"
    module = ptx.parse(f".version 8.0\n.target sm_80\n.address_size 64\n{text}", "k.ptx")
    made = ptx.program(module.kernel(), machine=gpu)
    assert left_out in conditions(Instance.of(made, 2, gpu).assumptions)
    whole = GpuInstance.of([(made, 2)], 9, gpu, sms=2, resident=1)
    assert left_out in conditions(whole.assumptions)


def test_a_program_has_the_lapses_of_its_instructions() -> None:
    kernel = coded(BRANCHES.replace("@P1 BRA 0x50", "NOP"))
    made = program(kernel, machine=machine(known()), latencies=GIVEN)
    own = dict(zip((str(each.address) for each in flow(kernel).code), lapses(kernel, known()), strict=True))
    assert made.has_lapses
    assert [own[str(origin.line)] for origin in made.origins] == [*made.lapses]
    assert program(kernel).lapses == ()


def test_what_else_is_supposed_of_lapses_stands_in_the_list() -> None:
    constants = "constants among the operands are in the cache of constants"
    kernel = coded(BRANCHES.replace("@P1 BRA 0x50", "NOP"))
    texts = [str(note) for note in program(kernel, machine=machine(known()), latencies=GIVEN).assumptions]
    assert (
        "schedulers lapse on account of reads of registers, integer multiply-adds, constants among operands, fences, as"
        " the sources of the machine file tell, and of nothing else; not all of their numbers are confirmed"
    ) in texts
    assert (
        "nothing else than is asked about uses the caches of code (8 sets of 32 lines of 128 bytes) and of constants"
        " (4 sets of 2 lines of 64 bytes) of each partition, whose sets follow the addresses, and a line gives way to"
        " another one only where its set is full, and after all lines of anything else"
    ) in texts
    assert constants not in texts
    assert constants in map(str, program(kernel, machine=machine(KnownLapses(multiply=1))).assumptions)
    late = coded(f"{PARAMETERS}\nB------:R-:W-:-:S05 EXIT;")
    texts = [str(note) for note in program(late, machine=machine(known()), latencies=GIVEN).assumptions]
    text = "some lines of constants do not stay in the cache of a partition, and "
    assert f"{text}each use may be as long as a first fetch" in texts
    near = machine(replace(known(), code=CODE[86]._replace(next=NEXT)))
    texts = [str(note) for note in program(late, machine=near, latencies=GIVEN).assumptions]
    assert f"{text}the next cache keeps them, so that only the first time may be as long as a first fetch" in texts


def test_a_fetch_that_is_longer_than_any_place_may_take_is_refused() -> None:
    late = coded(f"{PARAMETERS}\nB------:R-:W-:-:S05 EXIT;")
    given = given_latencies(["fetch=..600", "constant-miss=..100000"])
    with pytest.raises(InputError, match=r"lapses and windows take 0\.\.100000 cycles"):
        program(late, machine=machine(replace(known(), code=LineCache(128, 1, 1, 86))), latencies=given)
