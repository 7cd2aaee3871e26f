"""What an opcode is to a table of latencies, and what it does to memory."""

import re
from functools import cache
from typing import NamedTuple

from makespan.estimates.kinds import InstructionKind
from makespan.host.errors import InputError
from makespan.kernels.ptx import PtxInstruction, operation_of_opcode

DEVICE = frozenset({"global", "local", "generic"})  # the spaces whose accesses go to the device memory

_TYPE = re.compile(r"(?:[busf]|bf|tf|e[0-9]m)([0-9]+)(?:x2)?")
_VECTOR = {"v2": 2, "v4": 4, "v8": 8}
_BY_SPACE = {
    "global": InstructionKind.GLOBAL,
    "local": InstructionKind.GLOBAL,
    "shared": InstructionKind.SHARED,
    "const": InstructionKind.CONST,
    "param": InstructionKind.PARAM,
}
_ACCESSES = frozenset({"ld", "ldu", "st", "atom", "red"})
# What tables of latencies tell apart and the table of opcodes does not.
_BY_NAME = {
    **dict.fromkeys(("bra", "brx", "ret", "exit", "call"), InstructionKind.BRA),
    **dict.fromkeys(("setp", "set", "selp", "slct", "testp"), InstructionKind.SETP),
    **dict.fromkeys(("mov", "cvta"), InstructionKind.MOV),
    **dict.fromkeys(("shl", "shr", "shf"), InstructionKind.SHIFT),
    **dict.fromkeys(("wmma", "wgmma", "tcgen05"), InstructionKind.MATRIX),
    **dict.fromkeys(("ldmatrix", "stmatrix"), InstructionKind.SHARED),
    "cvt": InstructionKind.CVT,
}
_BY_OPERATION = {
    "fp16": InstructionKind.F16,
    "fp32": InstructionKind.F32,
    "fp64": InstructionKind.F64,
    "int": InstructionKind.I32,
    "bit-count": InstructionKind.I32,
    "int-multiply": InstructionKind.I32_MUL,
    "predicate": InstructionKind.SETP,
    "sfu": InstructionKind.SFU,
    "barrier": InstructionKind.BAR,
    "shuffle": InstructionKind.WARP,
    "vote": InstructionKind.WARP,
    "tensor": InstructionKind.MATRIX,
    "texture": InstructionKind.TEXTURE,
}
_WIDE = {InstructionKind.I32: InstructionKind.I64, InstructionKind.I32_MUL: InstructionKind.I64_MUL}


class MemoryAccess(NamedTuple):
    """An access of an instruction to memory: its space, the bytes of one lane, and the address operand.

    Args:
        elements: of a vector, which are the accesses of one lane; 1 for a scalar.
    """

    space: str
    lane_bytes: int
    address: str
    is_load: bool
    elements: int

    @property
    def is_device(self) -> bool:
        """Return whether it goes to the device memory."""
        return self.space in DEVICE


def kind(instruction: PtxInstruction, file: str) -> InstructionKind:
    """Return the class of an instruction.

    Raises:
        InputError: an opcode that no table knows, with its line.
    """
    if operation_of_opcode(instruction.opcode) is None:
        raise InputError(f"{file}:{instruction.line}: no class is known for `{instruction.opcode}`")
    return _kind(instruction.opcode)


def memory_access(instruction: PtxInstruction) -> MemoryAccess | None:
    """Return the access of an instruction; None if it is no load, store or atomic operation on an address."""
    if instruction.name not in _ACCESSES:
        return None
    address = next((text for text in instruction.operands if text.startswith("[")), None)
    if address is None:
        return None
    parts = instruction.opcode.split(".")[1:]
    elements = next((_VECTOR[part] for part in parts if part in _VECTOR), 1)
    is_load = instruction.name in ("ld", "ldu")
    return MemoryAccess(_space(parts), elements * _bits(parts) // 8, address, is_load, elements)


@cache
def _kind(opcode: str) -> InstructionKind:
    name, *parts = opcode.split(".")
    if name in _ACCESSES:
        return _BY_SPACE.get(_space(parts), InstructionKind.GLOBAL)
    if name in _BY_NAME or opcode.startswith("bar.warp"):
        return _BY_NAME.get(name, InstructionKind.WARP)
    last, operation = parts[-1] if parts else "", str(operation_of_opcode(opcode)).removesuffix("+")
    if operation == "sfu" and name in ("div", "rem"):
        return InstructionKind.F32_DIV if last.startswith("f") else InstructionKind.INT_DIV
    if operation == "sfu" and last == "f64":  # only the first step of it is that of a special-function unit
        return InstructionKind.F64
    found = _BY_OPERATION.get(operation, InstructionKind.OTHER)
    return _WIDE.get(found, found) if last.endswith("64") else found


def _space(parts: list[str]) -> str:
    words = [part.partition("::")[0] for part in parts]
    return next((word for word in words if word in _BY_SPACE), "generic")


def _bits(parts: list[str]) -> int:
    """Return the width of the type that ends an opcode; predicates and others count as a byte."""
    found = [match for match in map(_TYPE.fullmatch, reversed(parts)) if match]
    return int(found[0][1]) if found else 8
