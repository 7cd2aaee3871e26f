"""Operands: how their texts are read and written, 32 lanes at a time."""

import re
import struct
from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np

from makespan.kernels.sass import SassInstruction
from tests.ptx_interpreter.values import LANES, Array
from tests.sass_interpreter.faults import KernelFault, UnsupportedInstruction
from tests.sass_interpreter.machine import Warp

Reader: TypeAlias = Callable[[Warp], Array]
Writer: TypeAlias = Callable[[Warp, Array, Array], None]

U32, U64 = np.uint32, np.uint64

_GENERAL = re.compile(r"(R|UR)(Z|\d+)((?:\.[A-Z0-9_]+)*)")
_PREDICATE = re.compile(r"(!?)(P|UP)(T|\d+)")
_CONSTANT = re.compile(r"cx?\[(0x[0-9a-f]+|UR\d+)\]\[([^\]]*)\]")
_BYTES = {"B0": 0, "B1": 8, "B2": 16, "B3": 24}
_HALVES = {"H0": 0, "H0_H0": 0, "H1": 16, "H1_H1": 16}


class Decoding:
    """An instruction, while its operands are turned into readers and writers."""

    def __init__(self, instruction: SassInstruction, names: Mapping[str, int]) -> None:
        self.instruction = instruction
        self.names = names
        self.operands = [operand.replace(".reuse", "") for operand in instruction.operands]
        self.modifiers = list(instruction.modifiers)

    @property
    def name(self) -> str:
        return self.instruction.name

    @property
    def count(self) -> int:
        return len(self.operands)

    def unsupported(self, why: str = "not known") -> UnsupportedInstruction:
        return UnsupportedInstruction(f"{self.instruction.address}: {self.instruction}: {why}")

    def has(self, modifier: str) -> bool:
        return modifier in self.modifiers

    def is_predicate(self, position: int) -> bool:
        return position < self.count and _PREDICATE.fullmatch(self.operands[position]) is not None

    # ---- reading

    def read(self, position: int) -> Reader:
        """32 bits, as they are used in sums: minus is two's complement."""
        return self._integer(self.operands[position], wide=False)

    def read_wide(self, position: int) -> Reader:
        """64 bits: two registers, or a number that keeps its sign."""
        return self._integer(self.operands[position], wide=True)

    def sign(self, position: int) -> tuple[str, Reader]:
        """The prefix of a summand, and what stands behind it."""
        text = self.operands[position]
        prefix = text[0] if text[0] in "-~" and not text[1:].startswith("0x") else ""
        return prefix, self._integer(text[len(prefix) :], wide=False)

    def predicate(self, position: int) -> Reader:
        return predicate(self.operands[position])

    def _integer(self, text: str, *, wide: bool) -> Reader:
        kind = U64 if wide else U32
        if text.startswith(("-", "~")) and not text[1:].startswith("0x"):
            inner = self._integer(text[1:], wide=wide)
            return (lambda w: ~inner(w)) if text[0] == "~" else (lambda w: (~inner(w) + kind(1)).astype(kind))
        if text.startswith("|") and text.endswith("|"):
            inner = self._integer(text[1:-1], wide=wide)
            signed = np.int64 if wide else np.int32
            return lambda w: np.abs(inner(w).view(signed)).view(kind)
        if found := _GENERAL.fullmatch(text):
            return _register(found[1], found[2], found[3].split(".")[1:], wide, self)
        if found := _CONSTANT.fullmatch(text):
            return constant(found[1], found[2], 8 if wide else 4, kind, self)
        return _full(self._number(text, wide), kind)

    def _number(self, text: str, wide: bool) -> int:
        try:
            return int(text, 0) % (1 << (64 if wide else 32))
        except ValueError:
            value = float_of(text)
            return int.from_bytes(struct.pack("<d" if wide else "<f", value), "little")

    def number(self, position: int) -> int:
        """A number that stands in the instruction."""
        return int(self.operands[position], 0)

    def float(self, position: int, *, double: bool = False) -> Reader:
        return self._float(self.operands[position], double)

    def _float(self, text: str, double: bool) -> Reader:
        kind = np.float64 if double else np.float32
        if text.startswith("-|") or (text.startswith("-") and not re.match(r"-[\d.IQS]", text)):
            inner = self._float(text[1:], double)
            return lambda w: -inner(w)
        if text.startswith("|"):
            inner = self._float(text.strip("|"), double)
            return lambda w: np.abs(inner(w))
        if _GENERAL.fullmatch(text) or _CONSTANT.fullmatch(text):
            raw = self._integer(text, wide=double)
            return lambda w: raw(w).view(kind)
        return _full(float_of(text), kind)

    # ---- writing

    def write(self, position: int) -> Writer:
        """32 bits; uniform registers are the same for all lanes."""
        return register_writer(self.operands[position], self)

    def write_wide(self, position: int) -> Writer:
        low, high = (register_writer(name, self) for name in self.following(position, 2))

        def both(warp: Warp, lanes: Array, value: Array) -> None:
            low(warp, lanes, value.astype(U32))
            high(warp, lanes, (value >> U64(32)).astype(U32))

        return both

    def write_predicate(self, position: int) -> Writer:
        found = _PREDICATE.fullmatch(self.operands[position])
        if found is None or found[1]:
            raise self.unsupported("this is no predicate")
        return _writer(found[2] + found[3], Warp.predicate)

    def following(self, position: int, count: int) -> list[str]:
        """The names of so many registers from this one on."""
        found = _GENERAL.fullmatch(self.operands[position])
        if found is None:
            raise self.unsupported("this is no register")
        if found[2] == "Z":
            return [found[1] + "Z"] * count
        return [f"{found[1]}{int(found[2]) + k}" for k in range(count)]


def predicate(text: str) -> Reader:
    """A predicate, perhaps negated."""
    found = _PREDICATE.fullmatch(text)
    if found is None:
        raise UnsupportedInstruction(f"{text} is no predicate")
    negated, name = bool(found[1]), found[2] + found[3]
    if found[3] == "T":
        return _full(not negated, np.bool_)
    return (lambda w: ~w.predicate(name)) if negated else (lambda w: w.predicate(name).copy())


def float_of(text: str) -> float:
    """As listings write it."""
    plain = text.upper().replace("QNAN", "nan").replace("SNAN", "nan")
    try:
        return float.fromhex(text) if "0x" in text else float(plain)
    except ValueError:
        raise UnsupportedInstruction(f"{text} is no number") from None


def _full(value: object, kind: type) -> Reader:
    return lambda warp: np.full(LANES, value, kind)


def _seen(value: Array, lanes: Array) -> Array:
    """A value that all active lanes share, for all lanes: that of the first."""
    return np.full(LANES, np.broadcast_to(value, LANES)[np.nonzero(lanes)[0][0]])


def _register(kind: str, number: str, parts: list[str], wide: bool, d: Decoding) -> Reader:
    known = {"64", "U32", "H0", "H0_H0", "H1", "H1_H1", *_BYTES, "X4", "X8", "X16"}
    if set(parts) - known:
        raise d.unsupported(f"a register {'.'.join(parts)}")
    if number == "Z":
        return _full(0, U64 if wide else U32)
    name = kind + number
    if wide:
        above = f"{kind}{int(number) + 1}"
        return lambda w: w.register(name).astype(U64) | w.register(above).astype(U64) << U64(32)
    for part in parts:
        if part in _BYTES:
            at = U32(_BYTES[part])
            return lambda w: w.register(name) >> at & U32(0xFF)
        if part in _HALVES:
            shift = U32(_HALVES[part])
            return lambda w: w.register(name) >> shift & U32(0xFFFF)
    return lambda w: w.register(name).copy()


def register_writer(text: str, d: Decoding) -> Writer:
    found = _GENERAL.fullmatch(text)
    if found is None or found[3]:
        raise d.unsupported(f"{text} is no destination")
    return _writer(found[1] + found[2], Warp.register)


def _writer(name: str, held_by: Callable[[Warp, str], Array]) -> Writer:
    """Writes a register or predicate, unless it keeps nothing."""
    if name.endswith(("T", "Z")):
        return lambda warp, lanes, value: None

    def one(warp: Warp, lanes: Array, value: Array) -> None:
        held = held_by(warp, name)
        held[:] = _seen(value, lanes) if name.startswith("U") else np.where(lanes, value, held)

    return one


def constant(bank: str, index: str, size: int, kind: type, d: Decoding) -> Reader:
    """What lies in a bank of constants, at a number, a register, or their sum."""
    if not bank.startswith("0x"):
        raise d.unsupported("a bank in a register")
    number = int(bank, 16)
    *registers, last = index.split("+") if index else ["0x0"]
    if last.startswith(("R", "U")):
        registers, last = [*registers, last], "0x0"
    offset = int(last, 0)
    readers = [d._integer(register, wide=False) for register in registers]

    def read(warp: Warp) -> Array:
        at = np.full(LANES, offset, np.int64)
        for reader in readers:
            at = at + reader(warp).view(np.int32)
        if number not in warp.block.banks:
            raise KernelFault(f"there is no bank {number} of constants")
        held = warp.block.banks[number]
        at = np.where((at >= 0) & (at + size <= len(held)), at, 0) if readers else at
        if at[0] + size > len(held):
            raise KernelFault(f"bank {number} has {len(held)} bytes")
        gathered: Array = np.ascontiguousarray(held[at[:, None] + np.arange(size)]).view(kind)[:, 0]
        return gathered

    return read
