"""Kernels of machine code as listings with control codes show them, without other words: control bits and text."""

import re

from makespan.kernels.sass import Address, Control, KernelResources, SassInstruction, SassKernel, with_control

_LINE = re.compile(
    r"B([-0-5]{6}):R([-0-5]):W([-0-5]):([-Y]):S([0-9]{2})\s+(?:@(!?U?P\w)\s+)?([A-Z][\w.]*)\s*([^;]*);?", re.ASCII
)


def coded(text: str, sm: int = 86) -> SassKernel:
    """A kernel of these lines, such as `B------:R-:W2:-:S01 @P0 LDG.E R4, [R2.64]`, its first at address 0."""
    lines = [line.strip() for line in text.strip().splitlines()]
    code = tuple(_instruction(number, line) for number, line in enumerate(lines))
    return SassKernel("listed", "listed.cubin", "listed.cubin", sm, code, KernelResources(32), first_parameter=0x160)


def _instruction(number: int, line: str) -> SassInstruction:
    found = _LINE.fullmatch(line)
    assert found is not None, line
    waits, read, write, yields, stall, guard, opcode, operands = found.groups()
    mask = sum(1 << counter for counter, shown in enumerate(waits) if shown != "-")
    bits = Control(int(stall), yields == "Y", _counter(write), _counter(read), mask, 0)
    named = tuple(re.sub(r"\s", "", operand) for operand in re.split(r",(?![^{]*})", operands) if operand.strip())
    return SassInstruction(Address(16 * number), opcode, named, guard, with_control(0, bits))


def _counter(shown: str) -> int | None:
    return None if shown == "-" else int(shown)
