"""Loads, stores and atomic operations, lane by lane."""

import re
from collections.abc import Callable

import numpy as np

from tests.ptx_interpreter.values import LANES, Array
from tests.sass_interpreter.faults import KernelFault
from tests.sass_interpreter.handlers import handles
from tests.sass_interpreter.integers import computes, total_of
from tests.sass_interpreter.machine import LOCAL_BYTES, Action, Group, Warp
from tests.sass_interpreter.operands import U32, U64, Decoding, Reader, Writer, register_writer

BASE = 1 << 20
"""The address at which global memory begins."""

_SIZES = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16}


def _size(d: Decoding) -> int:
    return next((_SIZES[m] for m in d.modifiers if m in _SIZES), 4)


def _address(d: Decoding, position: int) -> Reader:
    """The sum within brackets: registers, perhaps scaled, and a number; of 64 bits for `.64`, and where all is."""
    text = re.sub(r"^desc\[[^\]]*\]", "", d.operands[position])
    if not text.startswith("[") or not text.endswith("]"):
        raise d.unsupported(f"the address {text}")
    parts = [part for part in re.split(r"\+(?=-?[0-9RU])", text[1:-1]) if part]
    is_global = d.name in GLOBAL
    has_wide = ".64" in text
    terms: list[Reader] = []
    for part in parts:
        if re.fullmatch(r"-?0x[0-9a-f]+", part):
            terms.append(_constant(int(part, 16)))
            continue
        name, *notes = part.split(".")
        scale = next((int(n[1:]) for n in notes if re.fullmatch(r"X\d+", n)), 1)
        is_wide = "64" in notes or (
            is_global and "U32" not in notes and (not has_wide or name.startswith("U")) and d.has("E")
        )
        terms.append(_term(d, name, is_wide, scale, signed="U32" not in notes and not is_global))
    mask = U64(2**64 - 1) if is_global else U64(2**32 - 1)
    return lambda w: total_of(term(w) for term in terms) & mask


def _constant(number: int) -> Reader:
    return lambda w: np.full(LANES, number % 2**64, U64)


def _term(d: Decoding, name: str, is_wide: bool, scale: int, *, signed: bool) -> Reader:
    read = d._integer(name, wide=is_wide)
    if is_wide or not signed:
        return lambda w: read(w).astype(U64) * U64(scale)
    return lambda w: (read(w).view(np.int32).astype(np.int64) * scale).astype(U64)


GLOBAL = {"LDG", "STG", "RED", "REDG", "ATOM", "ATOMG", "LD", "ST"}
SHARED = {"LDS", "STS", "ATOMS"}
LOCAL = {"LDL", "STL"}


class Access:
    """Where an instruction finds its bytes."""

    def __init__(self, d: Decoding, position: int) -> None:
        if d.name not in GLOBAL | SHARED | LOCAL:
            raise d.unsupported()
        self.space = d.name
        self.address = _address(d, position)

    def bytes(self, warp: Warp, lane: int, address: int, size: int) -> Array:
        if address % size:
            raise KernelFault(f"{address:#x} is no multiple of {size}")
        if self.space in LOCAL:
            return _slice(warp.local[lane], address % LOCAL_BYTES, size)
        if self.space in SHARED:
            return _slice(warp.block.shared, address, size)
        return _slice(warp.block.memory, address - BASE, size)


def _slice(held: Array, at: int, size: int) -> Array:
    if not 0 <= at <= len(held) - size:
        raise KernelFault(f"there is no memory of {size} bytes at {at:#x} of {len(held):#x}")
    return held[at : at + size]


@handles("LDG", "LDS", "LDL", "LD")
def load(d: Decoding) -> Action:
    size = _size(d)
    access = Access(d, 1)
    count = max(1, size // 4)
    names = d.following(0, count)
    sign = d.has("S8") or d.has("S16")
    writers: list[Writer] = [register_writer(name, d) for name in names]

    def action(warp: Warp, group: Group, lanes: Array) -> None:
        at = access.address(warp)
        found = np.zeros((count, LANES), U32)
        for lane in np.nonzero(lanes)[0]:
            raw = bytes(access.bytes(warp, int(lane), int(at[lane]), size))
            for k in range(count):
                found[k, lane] = int.from_bytes(raw[4 * k : 4 * k + 4], "little", signed=sign) % 2**32
        for write, value in zip(writers, found, strict=True):
            write(warp, lanes, value)

    return action


@handles("STG", "STS", "STL", "ST")
def store(d: Decoding) -> Action:
    size = _size(d)
    access = Access(d, 0)
    count = max(1, size // 4)
    if d.operands[1].startswith("U") or count == 1:
        readers = [d.read(1)]
    if count > 1:
        readers = [d._integer(name, wide=False) for name in d.following(1, count)]

    def action(warp: Warp, group: Group, lanes: Array) -> None:
        at = access.address(warp)
        values = [read(warp) for read in readers]
        for lane in np.nonzero(lanes)[0]:
            raw = b"".join(int(value[lane]).to_bytes(4, "little") for value in values)[:size]
            access.bytes(warp, int(lane), int(at[lane]), size)[:] = np.frombuffer(raw, np.uint8)

    return action


@handles("LDC", "LDCU")
def load_constant(d: Decoding) -> Action:
    wide = d.has("64")
    if d.has("128") or d.has("U8") or d.has("U16") or d.has("S8") or d.has("S16"):
        raise d.unsupported()
    return computes(d, d.read_wide(1) if wide else d.read(1), wide=wide)


@handles("ATOM", "ATOMG", "ATOMS", "RED", "REDG")
def atomic(d: Decoding) -> Action:
    """Lane by lane."""
    returns = not d.name.startswith("RED")
    first = d.name in ("ATOM", "ATOMG") and d.is_predicate(0)
    place = (1 if returns else 0) + first
    access = Access(d, place)
    operands = [d.read(k) for k in range(place + 1, d.count)]
    unsigned = not d.has("S32")
    kinds = {m for m in d.modifiers if m in ("ADD", "MIN", "MAX", "INC", "DEC", "AND", "OR", "XOR", "EXCH", "CAS")}
    if d.has("POPC") or d.has("64") or any(m.startswith("F") for m in d.modifiers) or len(kinds) > 1:
        raise d.unsupported()
    kind = next(iter(kinds), "CAS" if len(operands) == 2 else "")

    def number(x: int) -> int:
        return x if unsigned or x < 2**31 else x - 2**32

    functions: dict[str, Callable[..., int]] = {
        "ADD": lambda old, x: old + x,
        "MIN": lambda old, x: min(old, x, key=number),
        "MAX": lambda old, x: max(old, x, key=number),
        "INC": lambda old, x: 0 if old >= x else old + 1,
        "DEC": lambda old, x: x if old == 0 or old > x else old - 1,
        "AND": lambda old, x: old & x,
        "OR": lambda old, x: old | x,
        "XOR": lambda old, x: old ^ x,
        "EXCH": lambda old, x: x,
        "CAS": lambda old, x, y: y if old == x else old,
    }
    if kind not in functions:
        raise d.unsupported()
    write = d.write(int(first)) if returns else None

    def action(warp: Warp, group: Group, lanes: Array) -> None:
        at, values = access.address(warp), [read(warp) for read in operands]
        before = np.zeros(LANES, U32)
        for lane in np.nonzero(lanes)[0]:
            held = access.bytes(warp, int(lane), int(at[lane]), 4)
            old = int.from_bytes(bytes(held), "little")
            before[lane] = old
            new = functions[kind](old, *[int(v[lane]) for v in values]) % 2**32
            held[:] = np.frombuffer(new.to_bytes(4, "little"), np.uint8)
        if write:
            write(warp, lanes, before)

    return action
