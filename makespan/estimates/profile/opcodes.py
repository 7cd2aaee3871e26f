"""What an opcode is to a table of latencies, and what it does to memory."""

import re
from functools import cache
from typing import NamedTuple

from makespan.estimates.kinds import InstructionKind
from makespan.host.errors import InputError
from makespan.kernels.ptx import Classes, PtxInstruction

DEVICE = frozenset({"global", "local", "generic"})  # the spaces whose accesses go to the device memory

_SPACES = ("global", "local", "shared", "const", "param")
_TYPE = re.compile(r"(?:[busf]|bf|tf|e[0-9]m)([0-9]+)(?:x2)?")
_VECTOR = {"v2": 2, "v4": 4, "v8": 8}
_BY_SPACE = {
    "global": InstructionKind.GLOBAL,
    "local": InstructionKind.GLOBAL,
    "generic": InstructionKind.GLOBAL,
    "shared": InstructionKind.SHARED,
    "const": InstructionKind.CONST,
    "param": InstructionKind.PARAM,
}
_ACCESSES = frozenset({"ld", "ldu", "st", "atom", "red"})
_NAMED: dict[str, InstructionKind] = {
    **dict.fromkeys(("bar", "barrier"), InstructionKind.BAR),
    **dict.fromkeys(("bra", "brx", "ret", "exit", "call"), InstructionKind.BRA),
    **dict.fromkeys(("setp", "set", "selp", "slct", "testp", "isspacep"), InstructionKind.SETP),
    **dict.fromkeys(("mov", "cvta"), InstructionKind.MOV),
    **dict.fromkeys(("shl", "shr", "shf"), InstructionKind.SHIFT),
    **dict.fromkeys(("shfl", "vote", "match", "redux", "activemask", "elect", "movmatrix"), InstructionKind.WARP),
    **dict.fromkeys(("mma", "wmma", "wgmma", "tcgen05"), InstructionKind.MATRIX),
    **dict.fromkeys(("tex", "tld4", "txq", "suld", "sust", "sured", "suq"), InstructionKind.TEXTURE),
    **dict.fromkeys(("ldmatrix", "stmatrix"), InstructionKind.SHARED),
    "cvt": InstructionKind.CVT,
}
_SPECIAL = frozenset({"rcp", "sqrt", "rsqrt", "sin", "cos", "lg2", "ex2", "tanh"})
_PRODUCTS = frozenset({"mul", "mad", "mul24", "mad24", "madc", "dp2a", "dp4a"})
_ARITHMETIC = frozenset(
    """
    abs add addc and bfe bfi bfind bmsk brev clz cnot copysign fma fns lop3 max min neg not or popc prmt sad sub subc
    szext xor
    """.split()  # noqa: SIM905 - a list of so many strings cannot be read
)


class MemoryAccess(NamedTuple):
    """An access of an instruction to memory: its space, the bytes of one lane, and the address operand."""

    space: str
    lane_bytes: int
    address: str
    is_load: bool

    @property
    def is_device(self) -> bool:
        """Return whether it goes to the device memory."""
        return self.space in DEVICE


def kind(instruction: PtxInstruction, file: str) -> InstructionKind:
    """Return the class of an instruction.

    Raises:
        InputError: an opcode that no table knows, with its line.
    """
    if not Classes().classifies(instruction.opcode):
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
    lanes = next((_VECTOR[part] for part in parts if part in _VECTOR), 1)
    return MemoryAccess(_space(parts), lanes * _bits(parts) // 8, address, instruction.name in ("ld", "ldu"))


@cache
def _kind(opcode: str) -> InstructionKind:
    name, *parts = opcode.split(".")
    if name in _ACCESSES:
        return _BY_SPACE[_space(parts)]
    if name == "bar" and parts[:1] == ["warp"]:
        return InstructionKind.WARP
    if name in _NAMED:
        return _NAMED[name]
    last = parts[-1] if parts else ""
    is_double = last in ("f64", "f64x2")
    if name in _SPECIAL:
        return InstructionKind.F64 if is_double else InstructionKind.SFU
    if name in ("div", "rem"):
        return (
            InstructionKind.F64
            if is_double
            else InstructionKind.F32_DIV
            if last.startswith("f")
            else InstructionKind.INT_DIV
        )
    if name not in _PRODUCTS | _ARITHMETIC:
        return InstructionKind.OTHER
    if "16" in last and not last.startswith(("s", "u", "b1")):
        return InstructionKind.F16
    if last.startswith("f"):
        return InstructionKind.F64 if is_double else InstructionKind.F32
    if last == "pred":
        return InstructionKind.SETP
    is_wide = last.endswith("64")
    if name in _PRODUCTS:
        return InstructionKind.I64_MUL if is_wide else InstructionKind.I32_MUL
    return InstructionKind.I64 if is_wide else InstructionKind.I32


def _space(parts: list[str]) -> str:
    words = [part.partition("::")[0] for part in parts]
    return next((word for word in words if word in _SPACES), "generic")


def _bits(parts: list[str]) -> int:
    """Return the width of the type that ends an opcode; predicates and others count as a byte."""
    found = [match for match in map(_TYPE.fullmatch, reversed(parts)) if match]
    return int(found[0][1]) if found else 8
