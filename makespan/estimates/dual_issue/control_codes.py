"""Control codes of GK110: eight bits for each of the seven instructions of a block, and what the codes do.

Source: Zhang, Tan, Xue, Li, Zhou and Chen, PPoPP 2017.
"""

PER_BLOCK = 7  # instructions of a block; with their scheduling word they are eight 64-bit words
CODES = 256
SINGLE_ISSUE = 0x20  # the code that the sources call single-issue mode: the next instruction follows one cycle later

GK110_DUAL = 0x04
GK110_PARTNERS = (0x05, 0x06, 0x07)  # codes of the second instruction of a pair
_GK110_LONGEST = 32  # cycles; longer stalls are cut there


def gk110_gap(code: int) -> int:
    """Return the cycles from an instruction with this code to the next of its warp, on the reference machine.

    Source: Zhang et al., PPoPP 2017, digitised figure and text; between the digitised points a straight line.
    """
    if code < 0x20:
        return {0x00: 16, GK110_DUAL: 0}.get(code, 1)
    if 0x80 <= code < 0xE0:
        step = code & 15
        return 2 * step + 1 if step <= 10 else _GK110_LONGEST
    step = code & 31
    return step + 1 if step <= 20 else _GK110_LONGEST


GK110_GAPS = tuple(map(gk110_gap, range(CODES)))
