"""What an opcode is to a table of latencies, and what it does to memory."""

import re
from functools import cache
from typing import NamedTuple

from makespan.host.errors import InputError
from makespan.kernels.ptx import Classes, Instruction
from makespan.model.machine.gpu_keys import Kind

DEVICE = frozenset({"global", "local", "generic"})
"""The spaces whose accesses go to the device memory."""

_SPACES = ("global", "local", "shared", "const", "param")
_TYPE = re.compile(r"(?:[busf]|bf|tf|e[0-9]m)([0-9]+)(?:x2)?")
_VECTOR = {"v2": 2, "v4": 4, "v8": 8}
_BY_SPACE = {
    "global": Kind.GLOBAL,
    "local": Kind.GLOBAL,
    "generic": Kind.GLOBAL,
    "shared": Kind.SHARED,
    "const": Kind.CONST,
    "param": Kind.PARAM,
}
_ACCESSES = frozenset({"ld", "ldu", "st", "atom", "red"})
_NAMED: dict[str, Kind] = {
    **dict.fromkeys(("bar", "barrier"), Kind.BAR),
    **dict.fromkeys(("bra", "brx", "ret", "exit", "call"), Kind.BRA),
    **dict.fromkeys(("setp", "set", "selp", "slct", "testp", "isspacep"), Kind.SETP),
    **dict.fromkeys(("mov", "cvta"), Kind.MOV),
    **dict.fromkeys(("shl", "shr", "shf"), Kind.SHIFT),
    **dict.fromkeys(("shfl", "vote", "match", "redux", "activemask", "elect", "movmatrix"), Kind.WARP),
    **dict.fromkeys(("mma", "wmma", "wgmma", "tcgen05"), Kind.MATRIX),
    **dict.fromkeys(("tex", "tld4", "txq", "suld", "sust", "sured", "suq"), Kind.TEXTURE),
    **dict.fromkeys(("ldmatrix", "stmatrix"), Kind.SHARED),
    "cvt": Kind.CVT,
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
    """What an instruction does to memory: its space, the bytes of one lane, and which operand is the address."""

    space: str
    lane_bytes: int
    address: str
    is_load: bool

    @property
    def is_device(self) -> bool:
        """Return whether it goes to the device memory."""
        return self.space in DEVICE


def kind(instruction: Instruction, file: str) -> Kind:
    """Return the class of an instruction.

    Raises:
        InputError: an opcode that no table knows, with its line.
    """
    if not Classes().classifies(instruction.opcode):
        raise InputError(f"{file}:{instruction.line}: no class is known for `{instruction.opcode}`")
    return _kind(instruction.opcode)


def memory_access(instruction: Instruction) -> MemoryAccess | None:
    """What it does to memory; None if it is no load, store or atomic operation on an address."""
    if instruction.name not in _ACCESSES:
        return None
    address = next((text for text in instruction.operands if text.startswith("[")), None)
    if address is None:
        return None
    parts = instruction.opcode.split(".")[1:]
    lanes = next((_VECTOR[part] for part in parts if part in _VECTOR), 1)
    return MemoryAccess(_space(parts), lanes * _bits(parts) // 8, address, instruction.name in ("ld", "ldu"))


@cache
def _kind(opcode: str) -> Kind:
    name, *parts = opcode.split(".")
    if name in _ACCESSES:
        return _BY_SPACE[_space(parts)]
    if name == "bar" and parts[:1] == ["warp"]:
        return Kind.WARP
    if name in _NAMED:
        return _NAMED[name]
    last = parts[-1] if parts else ""
    is_double = last in ("f64", "f64x2")
    if name in _SPECIAL:
        return Kind.F64 if is_double else Kind.SFU
    if name in ("div", "rem"):
        return Kind.F64 if is_double else Kind.F32_DIV if last.startswith("f") else Kind.INT_DIV
    if name not in _PRODUCTS | _ARITHMETIC:
        return Kind.OTHER
    if "16" in last and not last.startswith(("s", "u", "b1")):
        return Kind.F16
    if last.startswith("f"):
        return Kind.F64 if is_double else Kind.F32
    if last == "pred":
        return Kind.SETP
    is_wide = last.endswith("64")
    if name in _PRODUCTS:
        return Kind.I64_MUL if is_wide else Kind.I32_MUL
    return Kind.I64 if is_wide else Kind.I32


def _space(parts: list[str]) -> str:
    words = [part.partition("::")[0] for part in parts]
    return next((word for word in words if word in _SPACES), "generic")


def _bits(parts: list[str]) -> int:
    """Return the width of the type that ends an opcode; predicates and others count as a byte."""
    found = [match for match in map(_TYPE.fullmatch, reversed(parts)) if match]
    return int(found[0][1]) if found else 8
