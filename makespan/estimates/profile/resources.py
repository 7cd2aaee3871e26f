"""Registers and shared memory of a kernel: from its declarations, and from what `ptxas -v` says."""

import re
from dataclasses import dataclass
from pathlib import Path

from makespan.host.errors import InputError
from makespan.host.text_file import read_text
from makespan.kernels.ptx import Declaration, PtxInstruction, PtxKernel, names_in

MAX_BYTES = 1 << 24
_ENTRY = re.compile(r"Compiling entry function '([^']+)'")
_PROPERTIES = re.compile(r"Function properties for (\S+)")
_REGISTERS = re.compile(r"Used ([0-9]{1,4}) registers")
_SHARED = re.compile(r"([0-9]{1,9})(?:\+([0-9]{1,9}))? bytes smem")
_SPILLS = re.compile(r"([0-9]{1,9}) bytes spill stores, ([0-9]{1,9}) bytes spill loads")
_VARIABLE = re.compile(r"\.(?:[busf]|bf|tf)([0-9]{1,3})\b|\.pred\b")
_DIMENSION = re.compile(r"\[([0-9]{0,9})\]")
_ALIGNED = re.compile(r"\.align ([0-9]{1,4})")


@dataclass(frozen=True, slots=True)
class Resources:
    """The registers and memory that the assembler gave one kernel.

    Args:
        registers: of a thread.
        shared_bytes: of a block, without those that are only known at launch.
        spill_bytes: that a thread stores and loads because registers did not suffice; None if not said.
    """

    registers: int
    shared_bytes: int
    spill_bytes: int | None


def read_resources(path: Path, kernel: str) -> Resources:
    """Return the resources of a kernel from a file with the output of `ptxas -v`.

    Raises:
        InputError: a file that cannot be read, or that says nothing of this kernel.
    """
    return parse_resources(read_text(path, "output of ptxas -v", MAX_BYTES), kernel, str(path))


def parse_resources(text: str, kernel: str, where: str) -> Resources:
    """Return the same for a text; `where` is for messages."""
    found: dict[str, list[str]] = {}
    entry = None
    for line in text.splitlines():
        begin = _ENTRY.search(line) or _PROPERTIES.search(line)
        if begin is not None:
            entry = begin[1]
        elif entry is not None:
            found.setdefault(entry, []).append(line)
    lines = "\n".join(found.get(kernel, ()))
    registers = _REGISTERS.search(lines)
    if registers is None:
        known = ", ".join(name for name in found if _REGISTERS.search("\n".join(found[name]))) or "none"
        raise InputError(f"{where}: no line 'Used N registers' for kernel {kernel}; kernels there: {known}")
    shared, spills = _SHARED.search(lines), _SPILLS.search(lines)
    return Resources(
        int(registers[1]),
        sum(int(number or 0) for number in shared.groups()) if shared else 0,
        int(spills[1]) + int(spills[2]) if spills else None,
    )


def declared_shared_bytes(kernel: PtxKernel) -> int:
    """Return the bytes of the `.shared` variables that a kernel mentions, each at its alignment, in text order.

    Raises:
        InputError: a declaration whose size cannot be read.
    """
    operands = (text for s in kernel.statements if isinstance(s, PtxInstruction) for text in s.operands)
    mentioned = {name for text in operands for name in names_in(text)}
    declared = (*kernel.variables, *(s for s in kernel.statements if isinstance(s, Declaration)))
    end = 0
    for declaration in declared:
        if declaration.space == ".shared" and any(name in mentioned for name, _ in declaration.names):
            size, alignment = _size(declaration, kernel)
            end = -(-end // alignment) * alignment + size  # rounded up to its alignment
    return end


def _size(declaration: Declaration, kernel: PtxKernel) -> tuple[int, int]:
    """Return bytes and alignment of a variable; 0 bytes for one whose size only the launch gives."""
    kind = _VARIABLE.search(declaration.text)
    if kind is None or "=" in declaration.text or len(declaration.names) != 1:
        raise InputError(
            f"{kernel.file}:{declaration.line}: the size of `{declaration.text[:60]}` is not known;"
            " give the shared memory of a block"
        )
    element = max(int(kind[1] or 8) // 8, 1)
    vector = re.search(r"\.v([248])\b", declaration.text)
    count = int(vector[1]) if vector else 1
    for dimension in _DIMENSION.findall(declaration.text):
        count *= int(dimension or 0)
    aligned = _ALIGNED.search(declaration.text)
    return element * count, int(aligned[1]) if aligned else element * (int(vector[1]) if vector else 1)
