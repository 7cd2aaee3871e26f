"""Loads, stores and atomic operations."""

from collections.abc import Callable

import numpy as np

from tests.ptx_interpreter.decoding import Decoding, Reader, handles
from tests.ptx_interpreter.faults import KernelFault
from tests.ptx_interpreter.machine import Action, Warp
from tests.ptx_interpreter.operands import Vector
from tests.ptx_interpreter.values import TYPES, U32, Array, Mask, Type, mask, where

HINTS = {
    "volatile", "relaxed", "acquire", "release", "acq_rel", "weak", "cta", "gpu", "sys", "cluster", "nc", "ca", "cg",
    "cs", "lu", "cv", "wb", "wt", "L1::evict_normal", "L1::evict_unchanged", "L1::evict_first", "L1::evict_last",
    "L1::no_allocate", "L2::64B", "L2::128B", "L2::256B", "noftz",
}  # fmt: skip
"""Words that say how memory is reached or ordered, not what is there; warps run one at a time here."""
SPACES = ("global", "shared", "local", "const", "param", "shared::cta", "param::entry", "param::func")


def _plan(d: Decoding, position: int) -> tuple[Reader, str]:
    """The addresses of an operand, and their space."""
    d.flag(*HINTS)
    named = d.choice(SPACES, "generic").partition("::")[0]
    addresses, told = d.address(position)
    if named == "generic" and told is None:
        return addresses, "generic"
    if told is None:
        return addresses, _legal(d, named)
    if named not in (told, "generic") and (named, told) != ("param", "local"):
        raise d.unsupported()
    return addresses, told  # parameters of functions lie in the frame


def _legal(d: Decoding, named: str) -> str:
    if named == "param" and not d.code.routine.kernel.is_entry:
        raise d.unsupported()
    return named


def _elements(d: Decoding, position: int) -> int:
    width = int(d.choice(("v2", "v4", "v8"), "v1")[1:])
    found = d.operand(position)
    if (len(found.elements) if isinstance(found, Vector) else 1) != width:
        raise d.unsupported()
    return width


@handles("ld", "ldu")
def load(d: Decoding) -> Action:
    kind = d.type()
    width = _elements(d, 0)
    addresses, space = _plan(d, 1)
    d.done()
    found = d.operand(0)
    writers = [d.write(e, kind) for e in (found.elements if isinstance(found, Vector) else (found,))]
    size = kind.bytes

    def action(warp: Warp, m: Mask) -> None:
        first = addresses(warp, m.bits).copy()
        _aligned(first, m, size * width)
        values = [warp.load(space, first + np.uint64(i * size), m, size).view(kind.dtype) for i in range(width)]
        for write, value in zip(writers, values, strict=True):
            write(warp, m, value)

    return action


@handles("st")
def store(d: Decoding) -> Action:
    kind = d.type()
    width = _elements(d, 1)
    addresses, space = _plan(d, 0)
    d.done()
    found = d.operand(1)
    readers = [d.read(e, kind) for e in (found.elements if isinstance(found, Vector) else (found,))]
    size = kind.bytes

    def action(warp: Warp, m: Mask) -> None:
        first = addresses(warp, m.bits)
        _aligned(first, m, size * width)
        for position, read in enumerate(readers):
            values = np.ascontiguousarray(read(warp, m.bits)).view(f"u{size}")
            warp.store(space, first + np.uint64(position * size), m, values)

    return action


def _aligned(addresses: Array, m: Mask, size: int) -> None:
    wrong = addresses[m.lanes] % np.uint64(size)
    if wrong.any():
        raise KernelFault(f"{int(addresses[m.lanes][wrong != 0][0]):#x} is no multiple of {size}")


# ---- atomic operations: the lanes come one after the other


@handles("atom", "red")
def atom(d: Decoding) -> Action:
    kind = d.type()
    name = d.choice(("add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec"))
    first = 1 if d.name == "atom" else 0
    addresses, space = _plan(d, first)
    d.done()
    if d.count != first + (3 if name == "cas" else 2) or (d.name == "red" and name in ("exch", "cas")):
        raise d.unsupported()
    sources = [d.source(i, kind) for i in range(first + 1, d.count)]
    write = d.target(0, kind) if first else None
    function = _function(d, name, kind)

    def action(warp: Warp, m: Mask) -> None:
        places = addresses(warp, m.bits).copy()
        values = [read(warp, m.bits) for read in sources]
        before = np.zeros(len(places), kind.dtype)
        for lane in m.indices:
            one = mask(1 << lane)
            old = warp.load(space, places, one, kind.bytes).view(kind.dtype)
            before[lane] = old[lane]
            old[lane : lane + 1] = function(old[lane : lane + 1], *[v[lane : lane + 1] for v in values])
            warp.store(space, places, one, old.view(f"u{kind.bytes}"))
        if write:
            write(warp, m, before)

    return action


def _function(d: Decoding, name: str, kind: Type) -> Callable[..., Array]:
    """From the value in memory and the operands to the value in memory."""
    functions: dict[str, Callable[..., Array]] = {
        "add": np.add,
        "min": np.minimum,
        "max": np.maximum,
        "and": np.bitwise_and,
        "or": np.bitwise_or,
        "xor": np.bitwise_xor,
        "exch": lambda _, new: new,
        "cas": lambda old, compared, new: where(old == compared, new, old),
        "inc": lambda old, top: where(old >= top, np.uint32(0), old + np.uint32(1)),
        "dec": lambda old, top: where((old == 0) | (old > top), top, old - np.uint32(1)),
    }
    if kind.bits < 32 or (name in ("inc", "dec") and kind is not U32) or (kind.is_float and name != "add"):
        raise d.unsupported()
    if (kind.kind == "b") != (name in ("and", "or", "xor", "exch", "cas")) or kind is TYPES["pred"]:
        raise d.unsupported()
    return functions[name]
