"""What an instruction leaves pending and awaits, by name, in a warp that waits for a result where it is needed.

Names are those of registers, and of what no text shows: the carry, accesses to memory, fences, asynchronous copies, and
the way of a warp. Sources: PTX ISA, "membar, fence" (prior ld, st, atom and red are performed before later ones),
"Asynchronous Data Copy", and "Memory Consistency Model" for .acquire and .release.
"""

from typing import NamedTuple

from makespan.kernels.flow import Effect
from makespan.kernels.ptx.barriers import is_barrier
from makespan.kernels.ptx.effects import JUMPS
from makespan.kernels.ptx.module import PtxInstruction

_CARRY, ACCESSES, _FENCE, _COPIES = "<carry>", "<accesses>", "<fence>", "<copies>"

WAY = "<way>"
"""Pending while nobody knows where a warp goes on, so that all its instructions await it."""

UNREAD = frozenset({ACCESSES, _COPIES})
"""What a warp need not wait for at its end: its stores and copies go on without it."""

_SINK = "_"
_READS_CARRY = frozenset({"addc", "subc", "madc"})
_ACCESS = frozenset({"ld", "ldu", "st", "atom", "red", "multimem", "ldmatrix", "stmatrix"})
_FENCES = frozenset({"membar", "fence"})
_HOLDS_UP = JUMPS | {"call", "nanosleep"}
_WAITS_FOR_COPIES = frozenset({"wait_group", "wait_all"})


class PtxNeeds(NamedTuple):
    """What is pending until the result of an instruction is there, and what must not be pending when it is issued."""

    sets: frozenset[str]
    awaits: frozenset[str]


def needs(instruction: PtxInstruction, effect: Effect) -> PtxNeeds:
    """The needs of one instruction; registers by the names of its effect, which may hold names of variables, too.

    >>> from makespan.kernels import ptx
    >>> load = ptx.flow(ptx.parse(".entry k() { ld.global.v2.u32 {%r1, %r2}, [%rd1]; ret; }", "k.ptx").kernel())
    >>> sorted(needs(load.code[0], load.effects[0]).sets)
    ['%r1', '%r2', '<accesses>']
    """
    name, suffixes = instruction.name, frozenset(instruction.opcode.replace("::", ".").split(".")[1:])
    sets = set() if name == "call" else set(effect.writes) - {_SINK}  # what is called writes for itself
    awaits = {*sets, *effect.reads, WAY} - {_SINK}  # a register that is written must not be pending either
    if name in _HOLDS_UP or instruction.opcode.startswith("bar.warp"):
        sets.add(WAY)
    if "cc" in suffixes:
        sets.add(_CARRY)
    if "cc" in suffixes or name in _READS_CARRY:
        awaits.add(_CARRY)
    if name in _ACCESS and not suffixes & {"param", "const"}:
        sets.add(ACCESSES)
        awaits.add(_FENCE)
    if name in _FENCES or suffixes & {"acquire", "acq_rel"}:
        sets.add(_FENCE)
    if name in _FENCES or suffixes & {"release", "acq_rel"}:
        awaits |= {ACCESSES, _FENCE}
    if name == "cp" and suffixes & _WAITS_FOR_COPIES:
        awaits.add(_COPIES)
    elif name == "cp" and "commit_group" not in suffixes:
        sets.add(_COPIES)
    return PtxNeeds(frozenset() if is_barrier(instruction) else frozenset(sets), frozenset(awaits))
