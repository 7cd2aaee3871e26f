"""What lanes of a warp tell each other: shuffles, votes, matches and reductions."""

from collections.abc import Callable

import numpy as np

from tests.ptx_interpreter.control import all_here
from tests.ptx_interpreter.decoding import Decoding, Reader, handles
from tests.ptx_interpreter.faults import KernelFault
from tests.ptx_interpreter.machine import Action, Warp
from tests.ptx_interpreter.values import B32, LANES, PRED, U32, Array, Mask, bits_of, where


def _members(d: Decoding) -> Reader | None:
    """The operand that names the lanes taking part, with .sync."""
    return d.source(d.count - 1, U32) if d.flag("sync") else None


@handles("shfl")
def shfl(d: Decoding) -> Action:
    """Source: PTX ISA, shfl.sync, whose pseudo-code this follows."""
    members = _members(d)
    mode = d.choice(("up", "down", "bfly", "idx"))
    kind = d.type()
    d.done()
    if kind is not B32 or d.count != (5 if members else 4):
        raise d.unsupported()
    write, write_valid = d.pair(0, kind)
    source, distance, limits = d.source(1, kind), d.source(2, U32), d.source(3, U32)

    def action(warp: Warp, m: Mask) -> None:
        if members:
            all_here(warp, m, members)
        values = source(warp, m.bits)
        out, valid = np.zeros(LANES, np.uint32), np.zeros(LANES, bool)
        b, c = distance(warp, m.bits), limits(warp, m.bits)
        for lane in m.indices:
            other, valid[lane] = _partner(mode, lane, int(b[lane]) & 31, int(c[lane]))
            if not m.bits >> other & 1:
                raise KernelFault(f"lane {lane} reads from lane {other}, which is not here")
            out[lane] = values[other]
        write(warp, m, out)
        write_valid(warp, m, valid)

    return action


def _partner(mode: str, lane: int, distance: int, limits: int) -> tuple[int, bool]:
    segment, clamp = limits >> 8 & 31, limits & 31
    last = (lane & segment) | (clamp & ~segment & 31)
    first = lane & segment
    other = {
        "up": lane - distance,
        "down": lane + distance,
        "bfly": lane ^ distance,
        "idx": first | (distance & ~segment & 31),
    }[mode]
    valid = other >= last if mode == "up" else other <= last
    return (other if valid else lane), valid


@handles("vote")
def vote(d: Decoding) -> Action:
    members = _members(d)
    mode = d.choice(("all", "any", "uni", "ballot"))
    kind = d.type()
    d.done()
    if kind is not (B32 if mode == "ballot" else PRED) or d.count != (3 if members else 2):
        raise d.unsupported()
    write, predicate = d.target(0, kind), d.source(1, PRED)

    def action(warp: Warp, m: Mask) -> None:
        if members:
            all_here(warp, m, members)
        yes = bits_of(predicate(warp, m.bits)) & m.bits
        found = {"all": yes == m.bits, "any": yes != 0, "uni": yes in (0, m.bits), "ballot": yes}[mode]
        write(warp, m, np.full(LANES, found))

    return action


@handles("activemask")
def activemask(d: Decoding) -> Action:
    kind = d.type()
    d.done()
    write = d.target(0, kind)
    return lambda warp, m: write(warp, m, np.full(LANES, m.bits, np.uint32))


@handles("match")
def match(d: Decoding) -> Action:
    members = _members(d)
    everyone = d.choice(("any", "all")) == "all"
    kind = d.type()
    d.done()
    if members is None or kind.kind != "b":
        raise d.unsupported()
    write, write_same = d.pair(0, U32)
    source = d.source(1, kind)

    def action(warp: Warp, m: Mask) -> None:
        all_here(warp, m, members)
        values = source(warp, m.bits)
        same = np.array([bits_of(values == value) & m.bits for value in values], np.uint32)
        agreed = same == m.bits
        write(warp, m, where(agreed, same, 0) if everyone else same)
        write_same(warp, m, agreed)

    return action


@handles("redux")
def redux(d: Decoding) -> Action:
    members = _members(d)
    functions: dict[str, Callable[[Array], Array]] = {
        "add": lambda v: v.sum(dtype=v.dtype),
        "min": np.min,
        "max": np.max,
        "and": np.bitwise_and.reduce,
        "or": np.bitwise_or.reduce,
        "xor": np.bitwise_xor.reduce,
    }
    function = functions[d.choice(functions)]
    kind = d.type()
    d.done()
    if members is None or kind.bits != 32 or kind.is_float:
        raise d.unsupported()
    write, source = d.target(0, kind), d.source(1, kind)

    def action(warp: Warp, m: Mask) -> None:
        all_here(warp, m, members)
        write(warp, m, np.full(LANES, function(source(warp, m.bits)[m.lanes])))

    return action
