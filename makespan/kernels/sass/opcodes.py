"""The table of machine opcodes: the operation of each, how to read its operands, and listings that show it."""

import re
from collections.abc import Mapping
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import NamedTuple

from makespan.host.errors import UnsupportedError
from makespan.kernels.sass.module import SassInstruction, SassKernel
from makespan.model.machine import Machine

UNBOUNDED = "-"
"""The operation of an instruction whose time has no known bound."""

_LANE_REGISTER = re.compile(r"(?<!\w)R\d")
_SIZES = frozenset({"64", "96", "128", "192", "256", "512", "WIDE", "F64", "S64", "U64"})


class SassOpcodeRow(NamedTuple):
    """A row of machine_opcodes.tsv: the modifiers that it takes, and its columns.

    Args:
        writes: the operands that are written, from the left, in the words of the table.
        reads: those that follow.
    """

    modifiers: tuple[str, ...]
    operation: str
    writes: tuple[str, ...]
    reads: tuple[str, ...]


def operations(kernel: SassKernel) -> tuple[str, ...]:
    """Return the operation of every instruction, in order: a name in `machine.OPERATIONS`.

    Raises:
        UnsupportedError: an opcode that the table does not have, or one whose time has no known bound.
    """
    return tuple(operation(instruction, kernel.file) for instruction in kernel.code)


def operation(instruction: SassInstruction, file: str) -> str:
    """Return the operation of one instruction in a file.

    Raises:
        UnsupportedError: as `operations`.

    >>> from makespan.kernels.sass import Address
    >>> operation(SassInstruction(Address(0), "IMAD.MOV.U32", ("R1", "RZ", "RZ", "c[0x0][0x28]")), "k.cubin")
    'int-multiply'
    """
    found = opcode_row(instruction, file).operation
    if found == UNBOUNDED:
        raise UnsupportedError(
            f"{file}:{instruction.line}: `{instruction}`: nobody bounds how long it takes, so no machine that times"
            " operations takes it"
        )
    # all lanes read one address, as they do of parameters
    is_alike = found == "constant" and not any(map(_LANE_REGISTER.search, instruction.operands[1:]))
    return "parameter" if is_alike else found


def opcode_row(instruction: SassInstruction, file: str) -> SassOpcodeRow:
    """Return the row of the table for an instruction in a file.

    Raises:
        UnsupportedError: an opcode that the table does not have, or not with such operands.
    """
    fitting = [
        row for row in opcode_table().get(instruction.name, ()) if _is_within(row.modifiers, instruction.modifiers)
    ]
    if not fitting:
        raise unknown_form_error(instruction, file)
    best = max(fitting, key=lambda row: len(row.modifiers))  # the most specific row
    sized = {*best.writes, *best.reads} & {"m", "m?"}
    if _SIZES & {*instruction.modifiers} - {*best.modifiers} and not sized:  # a wider form than the row describes
        raise unknown_form_error(instruction, file)
    return best


def unknown_form_error(instruction: SassInstruction, file: str) -> UnsupportedError:
    """Return the error about an instruction that the table does not have in this form."""
    return UnsupportedError(
        f"{file}:{instruction.line}: `{instruction}`: opcode {instruction.opcode!r} is not known with these operands;"
        " analyse the PTX instead, or say what it is in machine_opcodes.tsv"
    )


@cache
def opcode_table() -> Mapping[str, tuple[SassOpcodeRow, ...]]:
    """Return the shipped rows, by name of the opcode."""
    text = (resources.files("makespan") / "data" / "machine_opcodes.tsv").read_text("utf-8")
    found: dict[str, tuple[SassOpcodeRow, ...]] = {}
    for line in text.splitlines():
        if not line.startswith(("#", "opcode\t")):
            opcode, kind, writes, reads, _ = line.split("\t")
            name, *modifiers = opcode.split(".")
            row = SassOpcodeRow(tuple(modifiers), kind, _operands(writes), _operands(reads))
            found[name] = (*found.get(name, ()), row)
    return MappingProxyType(found)


def _operands(text: str) -> tuple[str, ...]:
    return () if text == "-" else tuple(text.split())


def _is_within(some: tuple[str, ...], others: tuple[str, ...]) -> bool:
    waiting = iter(others)
    return all(word in waiting for word in some)


class SassListingRow(NamedTuple):
    """One instruction in words.

    Args:
        control: its control bits: wait mask, read and write counter, yield, stall.
        unit: the class of the machine that serves it; None where its opcode is not known, or not timed.
        operation: what it is on a machine that times operations; None where its opcode is not known.
        ptx: where in the PTX it comes from.
        source: where in the source.
    """

    address: str
    control: str
    unit: str | None
    text: str
    operation: str | None
    ptx: str | None
    source: str | None


def listing(kernel: SassKernel, machine: Machine) -> tuple[SassListingRow, ...]:
    """Return every instruction once, in text order, whatever the control flow."""
    units = {operation.name: operation.unit for operation in machine.operations}
    return tuple(_listing_row(instruction, kernel.file, units) for instruction in kernel.code)


def _listing_row(instruction: SassInstruction, file: str, units: dict[str, str]) -> SassListingRow:
    try:
        operation = opcode_row(instruction, file).operation
    except UnsupportedError:
        operation = None
    return SassListingRow(
        str(instruction.address),
        str(instruction.control),
        units.get(operation or ""),
        str(instruction),
        operation,
        None if instruction.ptx is None else str(instruction.ptx),
        None if instruction.source is None else str(instruction.source),
    )
