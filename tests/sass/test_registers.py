"""Registers that machine instructions read and write, as nvdisasm tells them and by hand."""

from functools import cache
from pathlib import Path

import pytest

from makespan.host.errors import UnsupportedError
from makespan.kernels.sass import opcodes
from makespan.kernels.sass.effects import SassAccess, register_access, register_accesses
from makespan.kernels.sass.module import Address, KernelResources, SassInstruction, SassKernel
from makespan.kernels.sass.opcodes import SassOpcodeRow, opcode_table

_LISTING = Path(__file__).with_name("registers.tsv")
_IN_NO_REGISTER = {"BMOV.CLEAR", "CS2R", "CS2R.32", "S2R", "S2UR"}
_IN_REGISTERS_BESIDE_IT = {"FCHK", "HMMA.16816.F16", "IMMA.8832", "VABSDIFF4"}
"""Rows whose mutants the listing cannot tell: the next register is another operand."""
_KINDS = "R", "P", "U"


def made(text: str, sm: int = 86, word: int = 0) -> tuple[SassInstruction, SassKernel]:
    guard, _, rest = text.removeprefix("@").partition(" ") if text.startswith("@") else ("", "", text)
    opcode, _, operands = rest.partition(" ")
    listed = tuple(filter(None, operands.replace(" ", "").split(",")))
    instruction = SassInstruction(Address(0), opcode, listed, guard or None, word)
    return instruction, SassKernel("k", "k.cubin", "k.cubin", sm, (instruction,), KernelResources(8))


@cache
def listing() -> tuple[tuple[SassInstruction, SassKernel, frozenset[str], frozenset[str]], ...]:
    rows = (line.split("\t") for line in _LISTING.read_text("utf-8").splitlines() if not line.startswith("#"))
    return tuple(
        (*made(text, int(sm), int(word, 16)), frozenset(writes.split()), frozenset(reads.split()))
        for sm, word, text, writes, reads in rows
    )


def agrees(said: SassAccess, writes: frozenset[str], reads: frozenset[str]) -> bool:
    """Whether both tell the same registers that a thread may write; nvdisasm does not list constants and the like."""
    ours = (frozenset(name for name in names if name.startswith(_KINDS)) for names in said)
    return tuple(ours) == (writes, reads)


def test_every_instruction_reads_and_writes_what_nvdisasm_says() -> None:
    for instruction, kernel, writes, reads in listing():
        assert agrees(register_access(instruction, kernel), writes, reads), str(instruction)


def test_the_listing_notices_a_row_that_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each row that the listing uses, with one operand twice as wide, or taken for a read instead of a write."""
    used: dict[tuple[str, SassOpcodeRow], list[tuple[SassInstruction, SassKernel, frozenset[str], frozenset[str]]]] = {}
    for row in listing():
        used.setdefault((row[0].name, opcodes.opcode_row(row[0], "k")), []).append(row)
    missed = set[str]()
    for (name, form), rows in used.items():
        for mutant in _mutants(form):
            name = rows[0][0].name
            others = tuple(mutant if row == form else row for row in opcode_table()[name])
            monkeypatch.setattr(opcodes, "opcode_table", lambda name=name, others=others: {name: others})
            if not any(_is_noticed(row) for row in rows):
                missed.add(".".join((name, *form.modifiers)))
    assert missed == _IN_REGISTERS_BESIDE_IT | _IN_NO_REGISTER


def _mutants(form: SassOpcodeRow) -> list[SassOpcodeRow]:
    wider = {"1": "2", "2": "4", "4": "2"}
    found = []
    if form.writes[:1] and form.writes[0] in wider:
        found.append(form._replace(writes=(wider[form.writes[0]], *form.writes[1:])))
    if form.writes and form.reads:
        found.append(form._replace(writes=(), reads=(*form.writes, *form.reads)))
    if form.reads[:1] and form.reads[0] in wider and len(form.writes) == 1:
        found.append(form._replace(reads=(wider[form.reads[0]], *form.reads[1:])))
    return found


def _is_noticed(row: tuple[SassInstruction, SassKernel, frozenset[str], frozenset[str]]) -> bool:
    try:
        return not agrees(register_access(*row[:2]), *row[2:])
    except UnsupportedError:
        return True


@pytest.mark.parametrize(
    ("text", "writes", "reads"),
    [
        ("IMAD.WIDE R2, R4, 0x4, c[0x0][0x160]", "R2 R3", "R4 c[0x0][0x160] c[0x0][0x164]"),
        ("@!P0 IADD3 R2, P1, R2, R3, RZ", "R2 P1", "P0 R2 R3"),
        ("IADD3.X R2, R2, R3, RZ, P1, !PT", "R2", "R2 R3 P1"),
        ("S2R R0, SR_CTAID.X", "R0", "SR_CTAID.X"),
        ("LDC R1, c[0x0][RZ]", "R1", "c[0x0][0x0]"),
        ("R2P PR, R0, 0x5", "P0 P2", "R0"),
        ("P2R R0, PR, RZ, 0x6", "R0", "P1 P2"),
        ("BSSY B0, 0x90", "B0", ""),
        ("BREAK P1, B3", "B3", "P1 B3"),
        ("FADD RZ, R1, -|R2|", "", "R1 R2"),
        ("ATOMS.POPC.INC.32 R4, [R9]", "R4", "R9"),
        ("BRA.DIV 0x90", "", ""),
    ],
)
def test_names(text: str, writes: str, reads: str) -> None:
    instruction, kernel = made(text)
    (found,) = register_accesses(kernel)
    assert found == register_access(instruction, kernel)
    assert (" ".join(found.writes), " ".join(found.reads)) == (writes, reads)


@pytest.mark.parametrize(
    "text",
    ["FADD R1, R2", "FADD R1, R2, R3, R4", "FADD P0, R1, R2", "HMMA.9999.F32 R4, R8, R6, R4", "TEX R0, R2, R4, 2D",
     "P2R R0, PR, RZ, R4", "ISETP.GE.AND R1, PT, R2, R3, PT"],
)  # fmt: skip
def test_operands_that_the_table_does_not_have_are_refused(text: str) -> None:
    with pytest.raises(UnsupportedError, match=r"^k\.cubin:0x0: `.*is not known with these operands"):
        register_access(*made(text))
