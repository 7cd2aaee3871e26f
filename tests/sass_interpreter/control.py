"""Where lanes go: branches, calls, ends, and the places at which they wait for each other."""

import re

import numpy as np

from tests.ptx_interpreter.values import LANES, Array
from tests.sass_interpreter.faults import KernelFault
from tests.sass_interpreter.handlers import handles
from tests.sass_interpreter.machine import ALL, Action, Group, Wait, Warp, bits_of, first, lanes_of
from tests.sass_interpreter.operands import Decoding


def _barrier(d: Decoding, position: int) -> int:
    found = re.fullmatch(r"B(\d+)", d.operands[position])
    if found is None:
        raise d.unsupported("this is no barrier of lanes")
    return int(found[1])


def _target(d: Decoding) -> int:
    """The address at the end of the operands; the name of the kernel is its begin."""
    text = d.operands[-1]
    if re.fullmatch(r"-?0x[0-9a-f]+", text):
        return int(text, 16)
    if text.strip("`()") in d.names:
        return d.names[text.strip("`()")]
    raise d.unsupported(f"{text} is no address")


@handles("BRA", "JMP")
def branch(d: Decoding) -> Action:
    """`BRA.DIV` jumps where lanes of the mask are elsewhere."""
    target = _target(d)
    if d.has("DIV"):
        mask = d.read(0)

        def apart(warp: Warp, group: Group, lanes: Array) -> None:
            here = bits_of(lanes)
            if int(mask(warp)[first(here)]) & warp.alive & ~here:
                warp.split(group, here, target)

        return apart
    conditions = [d.predicate(position) for position in range(d.count - 1)]

    def action(warp: Warp, group: Group, lanes: Array) -> None:
        for condition in conditions:
            lanes = lanes & condition(warp)
        warp.split(group, bits_of(lanes), target)

    return action


@handles("EXIT")
def leave(d: Decoding) -> Action:
    conditions = [d.predicate(position) for position in range(d.count)]

    def action(warp: Warp, group: Group, lanes: Array) -> None:
        for condition in conditions:
            lanes = lanes & condition(warp)
        warp.end(group, bits_of(lanes))

    return action


@handles("BRX", "RET", "CALL")
def by_register(d: Decoding) -> Action:
    """A base in the instruction plus 64 bits of a register; calls may have none."""
    if d.name == "CALL" and d.count == 1:
        target = _target(d)
        return lambda warp, group, lanes: warp.split(group, bits_of(lanes), target)
    if d.name != "BRX" and not d.has("REL"):
        raise d.unsupported()
    register = d.read_wide(0)
    base = _target(d)
    if d.name == "BRX":
        base += int(d.instruction.address) + 16

    def action(warp: Warp, group: Group, lanes: Array) -> None:
        places = register(warp).astype(np.int64) + base
        for place in sorted(set(places[lanes].tolist()))[1:]:
            warp.split(group, bits_of(lanes & (places == place)), int(place))
        rest = lanes & (places == places[lanes].min())
        warp.split(group, bits_of(rest), int(places[lanes].min()))

    return action


@handles("BSSY")
def expect(d: Decoding) -> Action:
    """The lanes that are here are to meet at the BSYNC of this register."""
    number, target = _barrier(d, 0), _target(d)

    def action(warp: Warp, group: Group, lanes: Array) -> None:
        for lane in np.nonzero(lanes)[0]:
            warp.mask(number)[lane] = group.lanes
            warp.meeting[number, int(lane)] = target

    return action


@handles("BSYNC")
def meet(d: Decoding) -> Action:
    number = _barrier(d, 0)

    def action(warp: Warp, group: Group, lanes: Array) -> None:
        if bits_of(lanes) != group.lanes:
            raise KernelFault("a guarded meeting")
        target = warp.meeting.get((number, first(group.lanes)))
        if target not in (None, group.at, group.at - 16):
            raise KernelFault(f"lanes meet here, but were told to do so at {target}")
        group.wait = Wait("bsync", number)

    return action


@handles("BREAK")
def forget(d: Decoding) -> Action:
    """The lanes that are here will not come to the BSYNC."""
    number = _barrier(d, d.count - 1)
    conditions = [d.predicate(position) for position in range(d.count - 1)]

    def action(warp: Warp, group: Group, lanes: Array) -> None:
        for condition in conditions:
            lanes = lanes & condition(warp)
        gone = bits_of(lanes)
        held = warp.mask(number)
        for lane in range(LANES):
            if held[lane] & gone:
                held[lane] = 0 if gone >> lane & 1 else held[lane] & ~gone

    return action


@handles("BMOV")
def move_barrier(d: Decoding) -> Action:
    """`BMOV.32.CLEAR R, B` reads and clears, `BMOV.32 B, R` writes."""
    if d.operands[0].startswith("B"):
        number, source = _barrier(d, 0), d.read(1)

        def write(warp: Warp, group: Group, lanes: Array) -> None:
            for lane in np.nonzero(lanes)[0]:
                warp.mask(number)[lane] = int(source(warp)[lane])
                warp.meeting.pop((number, int(lane)), None)

        return write
    number, target = _barrier(d, 1), d.write(0)
    clears = d.has("CLEAR")

    def read(warp: Warp, group: Group, lanes: Array) -> None:
        held = warp.mask(number)
        target(warp, lanes, np.array(held, np.uint32))
        for lane in np.nonzero(lanes)[0]:
            if clears:
                held[lane] = 0

    return read


@handles("WARPSYNC")
def together(d: Decoding) -> Action:
    if d.has("COLLECTIVE") or d.has("EXCLUSIVE"):
        raise d.unsupported()
    mask = None if d.has("ALL") else d.read(0)

    def action(warp: Warp, group: Group, lanes: Array) -> None:
        wanted = ALL if mask is None else int(mask(warp)[first(group.lanes)])
        group.wait = Wait("warpsync", wanted)

    return action


@handles("BAR")
def barrier(d: Decoding) -> Action:
    if d.count != 1 or not d.has("SYNC"):
        raise d.unsupported()
    number = d.read(0)

    def action(warp: Warp, group: Group, lanes: Array) -> None:
        if not np.array_equal(lanes, lanes_of(group.lanes)):
            raise KernelFault("a guarded barrier")
        group.wait = Wait("bar", int(number(warp)[first(group.lanes)]))

    return action


@handles("NOP", "YIELD", "DEPBAR", "MEMBAR", "ERRBAR", "CCTL", "CCTLL", "NANOSLEEP", "LDGDEPBAR", "PREEXIT", "ACQBULK")
def nothing(d: Decoding) -> Action:
    """Time and order of memory: warps run one after the other here."""
    return lambda warp, group, lanes: None
