"""From an instruction to what reads its sources, computes, and writes its target."""

from collections.abc import Callable, Iterable
from typing import TypeAlias

import numpy as np

from tests.ptx_interpreter.faults import KernelFault, UnsupportedInstruction
from tests.ptx_interpreter.machine import Action, Code, Place, Warp
from tests.ptx_interpreter.operands import Address, Name, Number, Operand, Pair, operand
from tests.ptx_interpreter.values import LANES, PRED, TYPES, U64, Array, Mask, Type, bits_of, raw, seen_as

Reader: TypeAlias = Callable[[Warp, int], Array]
"""What the lanes, of which those of the bits are asked for, read; valid until the next write."""
Writer: TypeAlias = Callable[[Warp, Mask, Array], None]
Handler: TypeAlias = Callable[["Decoding"], Action]

HANDLERS: dict[str, Handler] = {}


def handles(*names: str) -> Callable[[Handler], Handler]:
    """Register what decodes the instructions of these names."""

    def register(handler: Handler) -> Handler:
        HANDLERS.update(dict.fromkeys(names, handler))
        return handler

    return register


def decode(code: Code, at: int) -> Action:
    """Decode an instruction and its guard, once."""
    d = Decoding(code, at)
    if d.name not in HANDLERS:
        raise UnsupportedInstruction(f"no semantics for the opcode {d.instruction.opcode}")
    action = HANDLERS[d.name](d)
    if d.instruction.guard is not None:
        holds = d.read(operand(d.instruction.guard), PRED)
        code.guards[at] = lambda warp, lanes: lanes & bits_of(holds(warp, lanes))
    code.actions[at] = action
    return action


class Decoding:
    """An instruction in its place. The words behind the name of the opcode are taken one after the other."""

    def __init__(self, code: Code, at: int) -> None:
        self.code = code
        self.at = at
        self.instruction = code.routine.instructions[at]
        self.scope = code.routine.scopes[at]
        self.name, *self.words = self.instruction.opcode.split(".")
        self.count = len(self.instruction.operands)

    @property
    def opcode(self) -> str:
        return self.instruction.opcode

    def unsupported(self) -> UnsupportedInstruction:
        return UnsupportedInstruction(f"this form of {self.name} is not known: {self.opcode}")

    # ---- the words of the opcode

    def flag(self, *words: str) -> bool:
        """Take any of these words away; whether one was there."""
        found = any(word in self.words for word in words)
        self.words = [word for word in self.words if word not in words]
        return found

    def choice(self, words: Iterable[str], default: str | None = None) -> str:
        """Take the one word of these away."""
        found = [word for word in self.words if word in set(words)]
        if len(found) > 1 or (not found and default is None):
            raise self.unsupported()
        self.words = [word for word in self.words if word not in found]
        return found[0] if found else str(default)

    def type(self) -> Type:
        """Take the last type away."""
        for position in reversed(range(len(self.words))):
            if self.words[position] in TYPES:
                return TYPES[self.words.pop(position)]
        raise self.unsupported()

    def done(self) -> None:
        """No word may be left."""
        if self.words:
            raise self.unsupported()

    # ---- the operands

    def operand(self, position: int) -> Operand:
        return operand(self.text(position))

    def text(self, position: int) -> str:
        if position >= self.count:
            raise self.unsupported()
        return self.instruction.operands[position]

    def source(self, position: int, kind: Type) -> Reader:
        return self.read(self.operand(position), kind)

    def target(self, position: int, kind: Type) -> Writer:
        text = self.text(position)
        return self.write(None if text == "_" else operand(text), kind)

    def read(self, found: Operand | None, kind: Type) -> Reader:
        if isinstance(found, Number):
            return _constant(_immediate(found, kind))
        if not isinstance(found, Name):
            raise self.unsupported()
        slot = self.code.register(self.scope, found.name) if not found.offset else None
        if slot is not None:
            return _register(slot, found.name, kind, found.negated)
        place = self.place(found)
        if place is not None:
            return _address(place, kind)
        return self._special(found, kind)

    def write(self, found: Operand | None, kind: Type) -> Writer:
        if found is None:
            return lambda _warp, _mask, _values: None
        slot = self.code.register(self.scope, found.name) if isinstance(found, Name) else None
        if slot is None:
            raise self.unsupported()
        return _target(slot, kind)

    def pair(self, position: int, kind: Type) -> tuple[Writer, Writer]:
        """The targets of `d|p`; the second is a predicate, and discarded when there is none."""
        found = self.operand(position)
        if isinstance(found, Pair):
            return self.write(found.first, kind), self.write(found.second, PRED)
        return self.write(found, kind), self.write(None, PRED)

    def place(self, found: Name) -> Place | None:
        """The place of a variable or function."""
        place = self.code.place(self.scope, found.name)
        if place is None and found.name in self.code.image.functions:
            return "function", self.code.image.functions[found.name], False
        return place and (place[0], place[1] + found.offset, place[2])

    def _special(self, found: Name, kind: Type) -> Reader:
        if found.offset or found.negated or kind.is_float:
            raise self.unsupported()
        reader = special(found.name)
        if reader is None:
            raise UnsupportedInstruction(f"{found.name} is no register, variable or function that is known here")
        return lambda warp, _: seen_as(np.broadcast_to(reader(warp), LANES).astype(np.uint64), kind)

    def address(self, position: int) -> tuple[Reader, str | None]:
        """The addresses of `[a+4]`, and the space when it is a variable that tells it."""
        found = self.operand(position)
        if not isinstance(found, Address):
            raise self.unsupported()
        base = found.base
        if isinstance(base, Number):
            return self.read(base, U64), None
        slot = self.code.register(self.scope, base.name)
        if slot is None:
            place = self.place(base)
            if place is None:
                raise self.unsupported()
            return _address(place, U64), place[0]
        plain = _register(slot, base.name, U64, False)
        if not base.offset:
            return plain, None
        offset = np.uint64(base.offset % 2**64)
        return lambda warp, lanes: plain(warp, lanes) + offset, None


def _constant(values: Array) -> Reader:
    return lambda _warp, _lanes: values


def _immediate(found: Number, kind: Type) -> Array:
    if kind.is_float:
        if found.whole is not None:
            raise UnsupportedInstruction(f"the integer {found.whole} as a {kind.name}")
        return np.full(LANES, found.value, kind.dtype)
    if found.whole is None:
        bits = found.single_bits if kind.bits == 32 else found.double_bits if kind.bits == 64 else None
        if bits is None or kind.kind != "b":
            raise UnsupportedInstruction(f"the constant {found.value} as a {kind.name}")
        return np.full(LANES, bits, kind.dtype)
    if kind is PRED:
        return np.full(LANES, found.whole != 0)
    return np.full(LANES, found.whole % (1 << kind.bits), f"u{kind.bytes}").view(kind.dtype)


def _register(slot: int, name: str, kind: Type, negated: bool) -> Reader:
    def read(warp: Warp, lanes: int) -> Array:
        frame = warp.frame
        values = frame.values[slot]
        if values is None or lanes & ~frame.defined[slot]:
            raise KernelFault(f"{name} is read before it is written")
        return seen_as(values, kind)

    if not negated:
        return read
    if kind is not PRED:
        raise UnsupportedInstruction(f"!{name}, which is no predicate")
    return lambda warp, lanes: ~read(warp, lanes)


def _target(slot: int, kind: Type) -> Writer:
    def write(warp: Warp, mask: Mask, values: Array) -> None:
        frame = warp.frame
        held = frame.values[slot]
        if held is None:
            held = frame.values[slot] = np.zeros(LANES, np.uint64)
        np.copyto(held, raw(values, kind), where=mask.lanes)
        frame.defined[slot] |= mask.bits

    return write


def _address(place: Place, kind: Type) -> Reader:
    _, address, in_frame = place
    if kind.bits < 32 or kind.is_float:
        raise UnsupportedInstruction(f"an address as a {kind.name}")
    if not in_frame:
        return _constant(np.full(LANES, address, kind.dtype))
    return lambda warp, _: np.full(LANES, warp.frame.base + address, kind.dtype)


def special(name: str) -> Callable[[Warp], Array] | None:
    """What reads a special register."""
    base, _, axis = name.partition(".")
    if axis and axis in "xyz":
        at = "xyz".index(axis)
        axes: dict[str, Callable[[Warp], Array]] = {
            "%tid": lambda w: w.thread[at],
            "%ntid": lambda w: np.array(w.block.shape[at]),
            "%ctaid": lambda w: np.array(w.block.index[at]),
            "%nctaid": lambda w: np.array(w.block.grid[at]),
        }
        return axes.get(base)
    return _PLAIN.get(name)


_ALL = np.arange(LANES)
_PLAIN: dict[str, Callable[[Warp], Array]] = {
    "WARP_SZ": lambda _: np.array(LANES),
    "%laneid": lambda _: _ALL,
    "%warpid": lambda w: np.array(w.number),
    "%lanemask_eq": lambda _: 1 << _ALL,
    "%lanemask_lt": lambda _: (1 << _ALL) - 1,
    "%lanemask_le": lambda _: (2 << _ALL) - 1,
    "%lanemask_gt": lambda _: 0xFFFFFFFF & ~((2 << _ALL) - 1),
    "%lanemask_ge": lambda _: 0xFFFFFFFF & ~((1 << _ALL) - 1),
    "%dynamic_smem_size": lambda w: np.array(w.block.image.dynamic_shared_bytes),
}
