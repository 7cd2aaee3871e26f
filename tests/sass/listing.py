"""Kernels of machine code as text, so that tests need neither compiler nor disassembler.

A line of the head says what the kernel is, then follow lines of what is in banks of constants and where indirect
branches lead, then the instructions: address, word, text.
"""

import re

from makespan.kernels.flow import SourceLine
from makespan.kernels.sass import Address, KernelResources, SassInstruction, SassKernel, SassParameter

_INSTRUCTION = re.compile(r"(0x[0-9a-f]+) ([0-9a-f]{32}) (\d+) (?:@(\S+) )?([^ ;]+)(?: ([^;]*))?;")


def listed(kernel: SassKernel) -> str:
    """A kernel as text."""
    parameters = " ".join(f"{p.offset}:{p.size}" for p in kernel.parameters)
    lines = [f"{kernel.name} {kernel.sm} {kernel.first_parameter:#x} {kernel.resources.registers} {parameters}"]
    lines += [f"constants {bank} {data.hex()}" for bank, data in sorted(kernel.constants.items())]
    lines += [f"jump {at:#x} {' '.join(map(hex, to))}" for at, to in sorted(kernel.jumps.items())]
    lines += [f"{i.address} {i.word:032x} {i.ptx.line if i.ptx else 0} {i}" for i in kernel.code]
    return "\n".join(lines) + "\n"


def kernel_of(text: str, file: str = "k.sass") -> SassKernel:
    """The kernel of a text that `listed` made; its lines of PTX are those of `k.ptx`."""
    head, *lines = text.splitlines()
    name, sm, first, registers, *parameters = head.split()
    constants: dict[int, bytes] = {}
    jumps: dict[int, tuple[int, ...]] = {}
    code: list[SassInstruction] = []
    for line in lines:
        word, *rest = line.split(" ")
        if word == "constants":
            constants[int(rest[0])] = bytes.fromhex(rest[1])
        elif word == "jump":
            jumps[int(rest[0], 16)] = tuple(int(at, 16) for at in rest[1:])
        else:
            code.append(_instruction(line))
    taken = (parameter.split(":") for parameter in parameters)
    return SassKernel(
        name, file, file, int(sm), tuple(code), KernelResources(int(registers)),
        tuple(SassParameter(int(offset), int(size)) for offset, size in taken), int(first, 16), constants, jumps,
    )  # fmt: skip


def _instruction(line: str) -> SassInstruction:
    found = _INSTRUCTION.fullmatch(line)
    assert found is not None, line
    address, word, ptx, guard, opcode, operands = found.groups()
    source = SourceLine("k.ptx", int(ptx)) if ptx != "0" else None
    parts = tuple(operands.split(", ")) if operands else ()
    return SassInstruction(Address(int(address, 16)), opcode, parts, guard, int(word, 16), source)
