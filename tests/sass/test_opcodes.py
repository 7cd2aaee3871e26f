"""The table of machine opcodes: complete rows, and refusals by name."""

import re

import pytest

from makespan.host.errors import UnsupportedError
from makespan.kernels.sass import Address, SassInstruction
from makespan.kernels.sass.opcodes import UNBOUNDED, opcode_row, opcode_table, operation
from makespan.model.machine import OPERATIONS

_OPERAND = re.compile(r"([1-9][0-9]?|[mapqxs])[?*]?|!")


def made(text: str) -> SassInstruction:
    opcode, _, operands = text.partition(" ")
    return SassInstruction(Address(0x90), opcode, tuple(filter(None, operands.replace(" ", "").split(","))))


def test_rows_name_operations_that_machines_can_time_and_operands_in_the_words_of_the_table() -> None:
    for name, rows in opcode_table().items():
        assert len({row.modifiers for row in rows}) == len(rows), name
        for row in rows:
            assert row.operation in {*OPERATIONS, UNBOUNDED}, name
            assert all(_OPERAND.fullmatch(operand) for operand in (*row.writes, *row.reads)), name


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("IMAD.MOV.U32 R1, RZ, RZ, c[0x0][0x28]", "int-multiply"),
        ("FFMA R1, R2, R3, R4", "fp32"),
        ("MUFU.RSQ R1, R2", "sfu"),
        ("ISETP.GE.AND P0, PT, R6, R7, PT", "predicate"),
        ("S2R R3, SR_TID.X", "special"),
        ("ULDC.64 UR4, c[0x0][0x118]", "parameter"),
        ("LDC R4, c[0x0][UR2]", "parameter"),
        ("LDC R4, c[0x3][R2]", "constant"),
        ("LDG.E.128.CONSTANT R4, [R2.64]", "global"),
        ("UIADD3 UR4, UR4, 0x1, URZ", "int"),
        ("BAR.SYNC.DEFER_BLOCKING 0x0", "barrier"),
        ("EXIT", "branch"),
    ],
)
def test_an_instruction_has_the_operation_of_its_opcode(text: str, expected: str) -> None:
    assert operation(made(text), "k.cubin") == expected


def test_the_row_with_the_most_modifiers_in_order_counts() -> None:
    assert opcode_row(made("F2F.F64.F32 R2, R4"), "k").writes == ("2",)
    assert opcode_row(made("F2F.F32.F64 R2, R4"), "k").writes == ("1",)


@pytest.mark.parametrize("text", ["FROB R1, R2", "FFMA.64 R1, R2, R3, R4", "IADD3.WIDE R2, R4, R6, R8"])
def test_an_unknown_opcode_or_size_is_refused_with_its_address_and_text(text: str) -> None:
    with pytest.raises(UnsupportedError, match=rf"^k\.cubin:0x90: `{text};`: opcode '{text.split()[0]}' is not known"):
        operation(made(text), "k.cubin")


def test_what_nobody_bounds_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="nobody bounds how long it takes"):
        operation(made("NANOSLEEP 0x64"), "k.cubin")
