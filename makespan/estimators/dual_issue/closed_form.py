"""The virtual SM in a formula, for loops of instructions that are all alike in what they cost."""

from makespan.estimators.dual_issue.codec import PER_BLOCK
from makespan.estimators.dual_issue.program import Opcode, Program
from makespan.estimators.dual_issue.truth import Truth


def cycles(truth: Truth, program: Program, warps: int, loops: int) -> float | None:
    """Cycles of a noiseless execution; None for programs that the formula does not know.

    An iteration of the warps of a scheduler takes the issue slots of them all, with what conflicts add, or the gaps of
    one warp, whichever is more. That needs gaps of 1, which leave the scheduler no choice, or else equal gaps and
    equal conflicts of whole cycles; and no dual issues, dependences and clock reads.
    """
    if not _is_free(truth, program):
        return None
    costs = [1 + (truth.penalty(frozenset(one.sources)) if one.is_arithmetic else 0.0) for one in program.body]
    gaps = {truth.gaps[one.code] for one in program.body}
    if gaps != {1} and (len(gaps) > 1 or len(set(costs)) > 1 or costs[0] % 1):
        return None
    slots, span = program.unroll * sum(costs), len(program) * max(gaps)
    most = -(-warps // truth.sm.schedulers)
    cold = -(-len(program) // PER_BLOCK) * truth.miss_cycles
    return (loops * max(most * slots, span) + cold) / (1 - truth.overhead)


def _is_free(truth: Truth, program: Program) -> bool:
    """Whether nothing but gaps and conflicts delays an instruction."""
    written = {one.destination for one in program.body}
    return len(program) <= truth.sm.icache_instructions and not any(
        truth.gaps[one.code] == 0
        or one.code in truth.keeps
        or one.opcode is Opcode.S2R
        or any(register in written for register in one.sources)
        for one in program.body
    )
