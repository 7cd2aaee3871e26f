"""What a listing shows of machine code: every instruction with its control bits and where it comes from."""

from typing import NamedTuple

from makespan.host.errors import UnsupportedError
from makespan.kernels.sass.module import Instruction, Kernel
from makespan.kernels.sass.opcodes import form
from makespan.model.machine import Machine


class ListedInstruction(NamedTuple):
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


def listing(kernel: Kernel, machine: Machine) -> tuple[ListedInstruction, ...]:
    """Return every instruction once, in text order, whatever the control flow."""
    units = {operation.name: operation.unit for operation in machine.operations}
    return tuple(_listed(instruction, kernel.file, units) for instruction in kernel.code)


def _listed(instruction: Instruction, file: str, units: dict[str, str]) -> ListedInstruction:
    try:
        operation = form(instruction, file).operation
    except UnsupportedError:
        operation = None
    return ListedInstruction(
        str(instruction.address),
        str(instruction.control),
        units.get(operation or ""),
        str(instruction),
        operation,
        None if instruction.ptx is None else str(instruction.ptx),
        None if instruction.source is None else str(instruction.source),
    )
