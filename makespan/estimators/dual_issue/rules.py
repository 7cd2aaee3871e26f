"""Rules that a measuring loop must keep, or its numbers mean something else.

Source: the patent on the throughput test for FFMA in dual-issue mode; the reasons stand in docs/dual_issue.md.
"""

from collections.abc import Sequence
from itertools import pairwise

from makespan.errors import InputError
from makespan.estimators.dual_issue.device import Sm, check_run
from makespan.estimators.dual_issue.program import Instruction, Opcode, Program
from makespan.estimators.dual_issue.registers import Banks, ways

TIMED_LOOPS = 2
"""Iterations of a loop with clock reads: the first pays for cache misses, the samples of the last survive."""
CLOCK_STALL = 14
"""Cycles between two clock reads, at least."""
MOST_OVERHEAD = 0.005
"""Share of a loop's instructions that its own control may have."""


def check_unrolled(count: int, overhead: int = 1) -> None:
    """Refuse a loop whose control weighs too much: the conflict threshold is only half a percent away.

    Args:
        count: measured instructions of an iteration.
        overhead: instructions of the loop's own control.

    Raises:
        InputError: half a percent or more.
    """
    if overhead >= MOST_OVERHEAD * (count + overhead):
        least = int(overhead / MOST_OVERHEAD) - overhead + 1
        raise InputError(
            f"{count} unrolled instructions to {overhead} of loop control: unroll at least {least}, so that the control"
            f" stays below {MOST_OVERHEAD:.1%}"
        )


def check_timed(
    sm: Sm,
    program: Program,
    warps: int,
    loops: int,
    *,
    stalls: Sequence[int] | None = None,
    banks: Banks | None = None,
    dependent: tuple[Instruction, Instruction] | None = None,
) -> None:
    """Refuse a loop with clock reads that breaks a rule.

    Args:
        stalls: gap in cycles of each control code, where known; otherwise every instruction counts as one cycle.
        banks: of the registers, where known; otherwise two different source registers are a possible conflict.
        dependent: the two instructions whose distance is measured, where that is the latency.

    Raises:
        InputError: the first rule that is broken.
    """
    check_run(sm, program, warps, loops)
    if loops != TIMED_LOOPS:
        raise InputError(f"a loop with clock reads runs exactly {TIMED_LOOPS} times, not {loops}")
    if warps > sm.schedulers:
        raise InputError(f"{warps} warps on {sm.schedulers} schedulers: a latency needs a scheduler per warp")
    code = program.instructions
    for instruction in code:
        if instruction.is_arithmetic and _may_conflict(instruction, banks):
            raise InputError(f"{instruction}: its source registers may share a bank; choose others")
    reads = [at for at, instruction in enumerate(code) if instruction.opcode is Opcode.S2R]
    if len(reads) < 2:
        raise InputError("read the clock at least twice inside of the loop; outside, cache misses count too")
    for first, second in pairwise(reads):
        between = sum(1 if stalls is None else stalls[one.code] for one in code[first:second])
        if between < CLOCK_STALL:
            raise InputError(
                f"{between} cycles between two clock reads, which take {CLOCK_STALL}: put fillers or a stall in between"
            )
    if dependent is not None and dependent[0].destination not in dependent[1].sources:
        raise InputError(f"{dependent[1]} does not read what {dependent[0]} writes: that is no latency")


def _may_conflict(instruction: Instruction, banks: Banks | None) -> bool:
    sources = set(instruction.sources)
    return len(sources) > 1 if banks is None else ways(sources, banks) > 1
