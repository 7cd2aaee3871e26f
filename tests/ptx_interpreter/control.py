"""Branches, calls, barriers, and the ends of a thread."""

import re
from dataclasses import dataclass

import numpy as np

from makespan.kernels.ptx.module import Declaration
from tests.ptx_interpreter.decoding import Decoding, Reader, handles
from tests.ptx_interpreter.faults import KernelFault, UnsupportedInstruction
from tests.ptx_interpreter.flow import Scope
from tests.ptx_interpreter.machine import Action, Arrival, Code, Frame, Warp
from tests.ptx_interpreter.operands import Name, Number, operand, variables
from tests.ptx_interpreter.values import LANES, PRED, TYPES, U32, U64, Array, Mask, bits_of

_WORD = re.compile(r"[^,()\s]+")


@handles("bra")
def branch(d: Decoding) -> Action:
    uniform = d.flag("uni")
    d.done()
    (target,) = d.code.routine.targets[d.at]

    def action(warp: Warp, m: Mask) -> None:
        if uniform and m.bits != warp.frame.stack[-1].lanes:
            raise KernelFault("the lanes diverge")
        warp.jump(d.at, [(target, m.bits)])

    return action


@handles("brx")
def branch_by_index(d: Decoding) -> Action:
    d.flag("idx", "uni")
    d.done()
    targets = d.code.routine.targets[d.at]
    index = d.source(0, U32)

    def action(warp: Warp, m: Mask) -> None:
        chosen = index(warp, m.bits)
        if any(chosen[lane] >= len(targets) for lane in m.indices):
            raise KernelFault("the index is behind the list of targets")
        lanes = [0] * len(targets)
        for lane in m.indices:
            lanes[chosen[lane]] |= 1 << lane
        warp.jump(d.at, list(zip(targets, lanes, strict=True)))

    return action


@handles("ret")
def ret(d: Decoding) -> Action:
    uniform = d.flag("uni")
    d.done()

    def action(warp: Warp, m: Mask) -> None:
        if uniform and m.bits != warp.frame.stack[-1].lanes:
            raise KernelFault("the lanes diverge")
        if len(warp.frames) == 1:
            warp.exit(m.bits)
        else:
            warp.frame.leave(m.bits)

    return action


@handles("exit")
def leave(d: Decoding) -> Action:
    d.done()
    return lambda warp, m: warp.exit(m.bits)


@handles("trap")
def trap(d: Decoding) -> Action:
    d.done()

    def action(_warp: Warp, _m: Mask) -> None:
        raise KernelFault("a trap")

    return action


# ---- calls


@dataclass(frozen=True, slots=True)
class Spot:
    """Where a value is that a call passes: a register, a part of the frame, or an immediate."""

    slot: int | None = None
    offset: int | None = None
    constant: Array | None = None

    def take(self, warp: Warp, frame: Frame, size: int) -> tuple[Array, Array]:
        """`size` bytes of every lane, and which of them have been written."""
        if self.constant is not None:
            return _bytes(self.constant)[:, :size], np.ones((LANES, size), bool)
        if self.slot is not None:
            values = frame.values[self.slot]
            defined = np.array([[frame.defined[self.slot] >> lane & 1] for lane in range(LANES)], bool)
            plain = np.zeros(LANES, np.uint64) if values is None else values
            return _bytes(plain)[:, :size], np.broadcast_to(defined, (LANES, size))
        assert self.offset is not None
        start = frame.base + self.offset
        return warp.local.data[:, start : start + size], warp.local.written[:, start : start + size]

    def put(self, warp: Warp, frame: Frame, m: Mask, data: Array, written: Array) -> None:
        size = data.shape[1]
        if self.slot is not None:
            held = frame.values[self.slot]
            values = np.zeros((LANES, 8), np.uint8) if held is None else _bytes(held).copy()
            values[m.lanes] = 0
            values[m.lanes, :size] = data[m.lanes]
            frame.values[self.slot] = values.view(np.uint64).reshape(LANES)
            frame.defined[self.slot] = (frame.defined[self.slot] & ~m.bits) | (
                m.bits & bits_of(np.all(written, axis=1))
            )
            return
        if self.offset is None:
            raise UnsupportedInstruction("a result for an immediate")
        start = frame.base + self.offset
        warp.local.data[m.lanes, start : start + size] = data[m.lanes]
        warp.local.written[m.lanes, start : start + size] = written[m.lanes]


def _bytes(values: Array) -> Array:
    return values.view(np.uint8).reshape(LANES, 8)


@handles("call")
def call(d: Decoding) -> Action:
    d.flag("uni")
    d.done()
    texts = list(d.instruction.operands)
    results = _WORD.findall(texts.pop(0)) if texts[0].startswith("(") else []
    name = texts.pop(0)
    actuals = _WORD.findall(texts.pop(0)) if texts and texts[0].startswith("(") else []
    known = d.code.register(d.scope, name) is None
    called = d.code.image.code(name) if known else None
    pointer = None if known else d.read(operand(name), U64)

    def action(warp: Warp, m: Mask) -> None:
        code = called or _function(
            d, {int(address) for address in pointer(warp, m.bits)[m.lanes]} if pointer else set()
        )
        _enter(d, warp, m, code, results, actuals)

    return action


def _function(d: Decoding, addresses: set[int]) -> Code:
    if len(addresses) > 1:
        raise UnsupportedInstruction("the lanes call different functions")
    names = {at: name for name, at in d.code.image.functions.items()}
    (address,) = addresses
    if address not in names:
        raise KernelFault(f"no function begins at {address:#x}")
    return d.code.image.code(names[address])


def _enter(d: Decoding, warp: Warp, m: Mask, code: Code, results: list[str], actuals: list[str]) -> None:
    kernel = code.routine.kernel
    passed = _paired(d, code, kernel.parameters or (), actuals)
    returned = _paired(d, code, kernel.returns or (), results)
    caller = warp.frame

    def leaves(callee: Frame) -> None:
        for inner, outer, size in returned:
            outer.put(warp, caller, m, *inner.take(warp, callee, size))

    callee = warp.enter(code, m.bits, leaves)
    for inner, outer, size in passed:
        inner.put(warp, callee, m, *outer.take(warp, caller, size))


def _paired(
    d: Decoding, code: Code, formals: tuple[Declaration, ...], texts: list[str]
) -> list[tuple[Spot, Spot, int]]:
    """For every formal parameter: where it is in the function, where at the call, and its bytes."""
    if len(formals) != len(texts):
        raise UnsupportedInstruction(f"a call with {len(texts)} values where {len(formals)} are declared")
    inside = code.routine.outermost
    found = []
    for formal, text in zip(formals, texts, strict=True):
        name, size = formal.names[0][0], formal_bytes(formal)
        found.append((_spot(code, inside, name), _spot(d.code, d.scope, text), size))
    return found


def formal_bytes(formal: Declaration) -> int:
    if not formal.is_register:
        return variables(formal)[0].bytes
    return next(TYPES[word[1:]].bytes for word in formal.text.split() if word[1:] in TYPES)


def _spot(code: Code, scope: Scope, text: str) -> Spot:
    found = operand(text)
    if isinstance(found, Number) and found.whole is not None:
        return Spot(constant=np.full(LANES, found.whole % 2**64, np.uint64))
    if isinstance(found, Number):
        bits = found.single_bits if found.double_bits is None else found.double_bits
        return Spot(constant=np.full(LANES, bits, np.uint64))
    if not isinstance(found, Name) or found.offset:
        raise UnsupportedInstruction(f"{text} in a call")
    slot = code.register(scope, found.name)
    place = None if slot is not None else code.place(scope, found.name)
    if slot is None and (place is None or not place[2]):
        raise UnsupportedInstruction(f"{text} in a call")
    return Spot(slot=slot, offset=place[1] if place else None)


# ---- barriers


@handles("bar", "barrier")
def barrier(d: Decoding) -> Action:
    aligned = d.name == "bar" or d.flag("aligned")
    d.flag("cta")
    if d.flag("warp"):
        return _warp_barrier(d)
    kind = d.choice(("sync", "arrive", "red"))
    if kind == "red":
        return _reduction(d)
    d.done()
    number = d.source(0, U32)
    threads = d.source(1, U32) if d.count > 1 else None

    def action(warp: Warp, m: Mask) -> None:
        _together(warp, m, aligned)
        arrival = Arrival(_one(number, warp, m), threads and _one(threads, warp, m), waits=kind == "sync")
        warp.block.arrive(warp, arrival)

    return action


def _reduction(d: Decoding) -> Action:
    function = d.choice(("and", "or", "popc"))
    kind = d.type()
    d.done()
    write, number = d.target(0, kind), d.source(1, U32)
    threads = d.source(2, U32) if d.count > 3 else None
    predicate = d.source(d.count - 1, PRED)

    def action(warp: Warp, m: Mask) -> None:
        _together(warp, m, True)
        own = predicate(warp, m.bits)[m.lanes]

        def released(everything: Array) -> None:
            result = {"and": everything.all(), "or": everything.any(), "popc": everything.sum()}[function]
            write(warp, m, np.full(LANES, result))

        threads_ = threads and _one(threads, warp, m)
        warp.block.arrive(warp, Arrival(_one(number, warp, m), threads_, True, own, released))

    return action


def _warp_barrier(d: Decoding) -> Action:
    d.flag("sync")
    d.done()
    members = d.source(0, U32)
    return lambda warp, m: all_here(warp, m, members)


def _together(warp: Warp, m: Mask, aligned: bool) -> None:
    """At a barrier of the block, all lanes of a warp that still live must be there."""
    if m.bits != warp.live:
        problem = "only some lanes of the warp are at this barrier"
        raise KernelFault(problem) if aligned else UnsupportedInstruction(problem)


def _one(reader: Reader, warp: Warp, m: Mask) -> int:
    values = {int(value) for value in reader(warp, m.bits)[m.lanes]}
    if len(values) > 1:
        raise KernelFault("the lanes name different barriers or numbers of threads")
    return values.pop()


def all_here(warp: Warp, m: Mask, members: Reader) -> None:
    """Check that the lanes that shall take part are exactly those that execute this.

    Raises:
        UnsupportedInstruction: others would have to come first, from the other side of a branch.
        KernelFault: a lane executes this that is not among the members.
    """
    for lanes in {int(value) for value in members(warp, m.bits)[m.lanes]}:
        if lanes & warp.live & ~m.bits:
            raise UnsupportedInstruction(f"waits for lanes on the other side of a branch: {lanes:#x}, has {m.bits:#x}")
    own = members(warp, m.bits)
    if any(not int(own[lane]) >> lane & 1 for lane in m.indices):
        raise KernelFault("a lane executes this that is not in the mask of members")


@handles("membar", "fence", "nanosleep", "prefetch", "prefetchu", "pmevent")
def nothing(_d: Decoding) -> Action:
    """No effect on values: memory is sequentially consistent here, and time does not exist."""
    return lambda _warp, _m: None
