"""The tests as kernels for KeplerAs, for those who have a GK110: a listing per measurement, and a table to fill in.

PTX controls neither registers nor control codes, so the kernels are machine code.
"""

from collections.abc import Iterator, Sequence

from makespan.errors import InputError
from makespan.estimators.dual_issue.arbiter import PATTERNS, spell
from makespan.estimators.dual_issue.bank_relation import all_pairs, check_registers, destination_for
from makespan.estimators.dual_issue.codec import CODES, PER_BLOCK, SINGLE_ISSUE
from makespan.estimators.dual_issue.device import Sm
from makespan.estimators.dual_issue.gaps import GK110_GAPS
from makespan.estimators.dual_issue.listing import Line, Listing, blocked, line_of, parse, text
from makespan.estimators.dual_issue.measurements import template
from makespan.estimators.dual_issue.pattern_ranking import GK110_CODES, layout
from makespan.estimators.dual_issue.program import Instruction, Opcode
from makespan.estimators.dual_issue.registers import GK110_BANKS
from makespan.estimators.dual_issue.rules import TIMED_LOOPS, check_timed, check_unrolled
from makespan.estimators.dual_issue.timing import LONG_CHAIN, LOOPS, SHORT_CHAIN, chain, clean_instruction, clocked

TESTS = ("bank", "code", "pattern", "latency")
MAX_REGISTERS = 64
"""Registers of which every pair gets a listing; more would be thousands of files."""
LOOP = "LOOP"
_BODY_BLOCKS = 126
"""Blocks of a throughput loop: within the instruction cache, and 3 of 882 instructions are its control."""
_COUNTER, _ADDRESS = 253, 250
_CONTROL = 3
_CLOCK_CODE = 0x2E
"""A stall of 14 by the sources, of 15 by the data: enough for a clock read either way."""
_A, _B, _C = 4, 6, 8


def listings(test: str, registers: Sequence[int]) -> Iterator[tuple[str, str]]:
    """Names of files and their contents: the kernels of a test, and the table `results.csv`.

    Args:
        registers: that the bank test compares.

    Raises:
        InputError: an unknown test, or registers that are none or too many.
    """
    if test not in TESTS:
        raise InputError(f"unknown test {test!r}; there are {', '.join(TESTS)}")
    for kernel in {"bank": _bank, "code": _code, "pattern": _pattern, "latency": _latency}[test](registers):
        written = text(kernel)
        if parse(written, kernel.name) != kernel:
            raise AssertionError(f"listing {kernel.name} does not read as it was written")
        yield f"{kernel.name}.sass", written
    rows = template(registers if test == "bank" else ()).splitlines(keepends=True)
    yield "results.csv", "".join(row for row in rows if row.partition(",")[0] in ("test", test))


def _kernel(name: str, body: Sequence[Instruction], loops: int) -> Listing:
    """A kernel that executes the body, a whole number of blocks with the loop's control, so many times."""
    counter = f"R{_COUNTER}"
    before = [
        Line(SINGLE_ISSUE, "MOV32I", (counter, f"{loops:#x}")),
        Line(SINGLE_ISSUE, "MOV", (f"R{_ADDRESS}", "c[0x0][0x140]")),
        Line(SINGLE_ISSUE, "MOV", (f"R{_ADDRESS + 1}", "c[0x0][0x144]")),
    ]
    lines = [*_padded(before), *map(line_of, body)]
    start = PER_BLOCK
    first = lines[start]
    lines[start] = Line(first.code, first.mnemonic, first.operands, first.guard, LOOP)
    lines += [
        Line(SINGLE_ISSUE, "IADD32I", (counter, counter, "-0x1")),
        Line(SINGLE_ISSUE, "ISETP.NE.AND", ("P0", "PT", counter, "RZ", "PT")),
        Line(SINGLE_ISSUE, "BRA", (LOOP,), "@P0"),
    ]
    lines = _padded(lines)
    if any(one.opcode is Opcode.S2R for one in body):
        stores = [f"[R{_ADDRESS}]", f"[R{_ADDRESS}+0x4]"]
        lines += [Line(SINGLE_ISSUE, "ST.E", (address, f"R{at}")) for at, address in enumerate(stores)]
    return Listing(name, blocked(_padded([*lines, Line(SINGLE_ISSUE, "EXIT")])))


def _padded(lines: Sequence[Line]) -> list[Line]:
    return [*lines, *[Line(SINGLE_ISSUE, "NOP")] * (-len(lines) % PER_BLOCK)]


def _rate_kernel(name: str, instruction: Instruction) -> Listing:
    count = _BODY_BLOCKS * PER_BLOCK - _CONTROL
    check_unrolled(count, _CONTROL)
    return _kernel(name, [instruction] * count, LOOPS)


def _clock_kernel(
    name: str, tested: Sequence[Instruction], dependent: tuple[Instruction, Instruction] | None = None
) -> Listing:
    program = clocked(tested, _CLOCK_CODE)
    check_timed(Sm(), program, 1, TIMED_LOOPS, stalls=GK110_GAPS, banks=GK110_BANKS, dependent=dependent)
    return _kernel(name, program.instructions, TIMED_LOOPS)


def _bank(registers: Sequence[int]) -> Iterator[Listing]:
    check_registers(registers)
    if len(registers) > MAX_REGISTERS or max(registers) >= _ADDRESS:
        raise InputError(
            f"listings compare at most {MAX_REGISTERS} registers below R{_ADDRESS}: choose fewer, and others next time"
        )
    reserved = [*registers, _COUNTER, _ADDRESS, _ADDRESS + 1]
    target = destination_for(reserved)
    for a, b in all_pairs(registers):
        yield _rate_kernel(f"bank_R{a}_R{b}", Instruction(Opcode.FMUL, target, (a, b)))


def _code(_: Sequence[int]) -> Iterator[Listing]:
    for code in range(CODES):
        tested, other = (Instruction(Opcode.FFMA, target, (_A,) * 3, of) for target, of in ((_B, code), (_C, 0x20)))
        yield _clock_kernel(f"code_{code:02x}_gap", (tested, other))
        yield _rate_kernel(f"code_{code:02x}_rate", clean_instruction(_B, _A, code))
        links = chain(_A, _B, code)
        for count in (SHORT_CHAIN, LONG_CHAIN):
            yield _clock_kernel(f"code_{code:02x}_chain{count}", links[:count], (links[0], links[1]))


def _pattern(_: Sequence[int]) -> Iterator[Listing]:
    """Loops of whole blocks; the control of a loop has a block of its own."""
    sources = (0, 1, 4)
    targets = list(range(8, 8 + 3 * 6))
    for pattern in PATTERNS:
        ffmas = [Instruction(Opcode.FFMA, target, sources) for target in targets]
        blocks = [layout(pattern, GK110_CODES, ffmas[at : at + 6]) for at in range(0, len(ffmas), 6)]
        body = [one for _ in range(_BODY_BLOCKS // 3 - 1) for block in blocks for one in block]
        check_unrolled(len(body), _CONTROL)
        yield _kernel(f"pattern_{spell(pattern).replace('-', '')}", body, LOOPS)


def _latency(_: Sequence[int]) -> Iterator[Listing]:
    writer, reader = Instruction(Opcode.FFMA, _B, (_A,) * 3), Instruction(Opcode.FFMA, _C, (_B,) * 3)
    yield _clock_kernel("latency_dependent", (writer, reader), (writer, reader))
    yield _clock_kernel("latency_independent", (writer, Instruction(Opcode.FFMA, _C, (_A,) * 3)))
    links = chain(_A, _B)
    for count in (SHORT_CHAIN, LONG_CHAIN):
        yield _clock_kernel(f"latency_chain{count}", links[:count], (links[0], links[1]))
