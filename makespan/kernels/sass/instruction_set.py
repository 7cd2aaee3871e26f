"""Machine code as control flow knows it: the registers by which a thread knows where it is, and the words of messages.

The size of a block and of the grid lie in constant bank 0, below the parameters of the kernel.
"""

import re
from functools import cache

from makespan.kernels.flow import InstructionSet, ThreadRegisters

_WORD = re.compile(r"c\[0x([0-9a-f]{1,4})\]\[(?:0x([0-9a-f]{1,8})|U?RZ)\]")
_SIZES = {100: (0x360, 0x370), 70: (0x0, 0xC)}
"""From this architecture on, where in bank 0 the threads of a block and the blocks of the grid lie.

Source: `mov.u32 %r, %ntid.x` and its like, compiled by ptxas 13 for sm_75, 80, 86, 89, 90, 100, 103, 110, 120 and 121.
"""


def constant_name(bank: int, offset: int) -> str:
    """Return the own name of four bytes of constants.

    >>> constant_name(0, 0x160)
    'c[0x0][0x160]'
    """
    return f"c[{bank:#x}][{offset:#x}]"


def constant_place(text: str) -> tuple[int, int] | None:
    """Bank and offset in bytes of an operand that names constants; None where a register has a say in it.

    >>> constant_place("c[0x0][0x160]"), constant_place("c[0x0][RZ]"), constant_place("c[0x3][R4+0x10]")
    ((0, 352), (0, 0), None)
    """
    match = _WORD.fullmatch(text)
    return None if match is None else (int(match[1], 16), int(match[2] or "0", 16))


@cache
def machine_code(sm: int) -> InstructionSet:
    """Return the words and registers of the kernels of an architecture, such as 86."""
    block, grid = next(places for since, places in _SIZES.items() if sm >= since)
    return InstructionSet(
        ThreadRegisters(
            thread=_axes("SR_TID"),
            block_size=_words(block),
            block=_axes("SR_CTAID"),
            grid_size=_words(grid),
            lane="SR_LANEID",
            lane_masks={relation: f"SR_{relation.upper()}MASK" for relation in ("eq", "lt", "le", "gt", "ge")},
        ),
        ends="EXIT",
        aligned_barrier="BAR.SYNC",
        has_lines=False,
    )


def _axes(name: str) -> tuple[str, str, str]:
    return f"{name}.X", f"{name}.Y", f"{name}.Z"


def _words(offset: int) -> tuple[str, str, str]:
    return constant_name(0, offset), constant_name(0, offset + 4), constant_name(0, offset + 8)
