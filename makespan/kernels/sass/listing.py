"""What a listing shows of machine code: every instruction with its control bits and where it comes from."""

from typing import NamedTuple

from makespan.host.errors import UnsupportedError
from makespan.kernels.sass.module import SassInstruction, SassKernel
from makespan.kernels.sass.opcodes import opcode_row
from makespan.model.machine import Machine


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
