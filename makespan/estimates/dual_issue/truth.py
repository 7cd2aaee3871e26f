"""What a virtual SM really is: the facts that the measurements have to find out, and what they give in a formula."""

from dataclasses import dataclass, field
from enum import StrEnum

from makespan.estimates.dual_issue.arbiter import Arbiter, Bubbles
from makespan.estimates.dual_issue.device import CODES, PER_BLOCK, IssueInstruction, IssueProgram, Opcode, SmDescription
from makespan.estimates.dual_issue.registers import GK110_BANKS, ZERO, ways
from makespan.host.errors import InputError

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

# FFMAs per cycle and SM without a bank conflict, with two and with three registers in one bank. Source: Zhang et al.,
# PPoPP 2017, table of conflicts; a patent of the same group has the same numbers.
CLEAN, TWO_WAY, THREE_WAY = 127.50, 119.18, 94.52
_OVERHEAD = 0.5 / 128  # 127.5 of 128 lane-operations were published
_DUAL_OVERHEAD = 1 - 0.9726  # the best published efficiency with dual issues


class Conflicts(StrEnum):
    """The cost of a bank conflict."""

    CALIBRATED = "calibrated"  # what was published: other warps hide most of it
    STRICT = "strict"  # k registers in one bank take k cycles


@dataclass(frozen=True, slots=True)
class Truth:
    """The facts of a virtual SM; the defaults are those of GK110.

    Args:
        banks: bank of each register R0..R254; RZ has none.
        gaps: cycles from an instruction to the next of its warp, for each control code; 0 is in the same cycle.
        keeps: codes after which the operand cache still has the sources when the same warp issues next.
        latency: cycles from an arithmetic instruction to one that reads its result.
        overhead: share of a timed loop that is lost to the loop itself: 128 lanes give 127.5.
        dual_overhead: the same for loops with dual issues of FFMAs; a calibration of the best published throughput.
        noise: relative standard deviation of every measured time.
        clock_interval: least cycles between two clock reads of a warp.
        miss_cycles: wait for a block of instructions that the cache does not have.
    """

    banks: tuple[int, ...] = tuple(map(GK110_BANKS, range(ZERO)))
    gaps: tuple[int, ...] = GK110_GAPS
    keeps: frozenset[int] = frozenset((GK110_DUAL, *GK110_PARTNERS))
    latency: int = 9
    conflicts: Conflicts = Conflicts.CALIBRATED
    bubbles: Bubbles = field(default_factory=lambda: Bubbles(1, 4))
    arbiter: Arbiter = Arbiter.FIXED
    overhead: float = _OVERHEAD
    dual_overhead: float = _DUAL_OVERHEAD
    noise: float = 0.0
    sm: SmDescription = field(default_factory=SmDescription)
    clock_interval: int = 14
    miss_cycles: int = 20

    def __post_init__(self) -> None:
        if len(self.banks) != ZERO or len(self.gaps) != CODES:
            raise InputError(f"a virtual SM needs {ZERO} banks and {CODES} gaps")
        if self.sm.schedulers % 2:
            raise InputError(f"schedulers come in pairs that share lanes, not {self.sm.schedulers}")
        if min(self.gaps) < 0 or self.latency < 1:
            raise InputError("gaps and latency are whole numbers of cycles from 0 and 1 on")
        if not all(0 <= share < 1 for share in (self.overhead, self.dual_overhead, self.noise)):
            raise InputError("overheads and noise are shares, 0 <= share < 1")

    def penalty(self, sources: frozenset[int]) -> float:
        """Return the extra issue cycles of a scheduler for reading these registers at once.

        Beyond three in a bank nothing is published: a full cycle for each further one.
        """
        most = ways(sources, self.banks.__getitem__)
        if most <= 1:
            return 0.0
        if self.conflicts is Conflicts.STRICT:
            return most - 1.0
        return CLEAN / TWO_WAY - 1 if most == 2 else CLEAN / THREE_WAY - 1 + (most - 3)

    def pairs(self, first: IssueInstruction, second: IssueInstruction) -> bool:
        """Return whether the codes and registers let the second instruction issue with the first."""
        written = first.destination
        depends = written is not None and written != ZERO and written in (*second.sources, second.destination)
        return self.gaps[first.code] == 0 and not depends and Opcode.S2R not in (first.opcode, second.opcode)

    def shape(self, block: tuple[IssueInstruction, ...]) -> tuple[tuple[IssueInstruction, ...], ...]:
        """Return the issue cycles of a block: what issues together if nothing but codes and registers hinders it."""
        cycles, at = [], 0
        while at < len(block):
            size = 2 if at + 1 < len(block) and self.pairs(block[at], block[at + 1]) else 1
            cycles.append(block[at : at + size])
            at += size
        return tuple(cycles)

    def bubble(self, block: tuple[IssueInstruction, ...]) -> int:
        """Return the issue cycles that a block costs beyond its own."""
        shape = tuple(sum(one.is_arithmetic for one in cycle) for cycle in self.shape(block))
        return self.bubbles.of(shape)

    def is_dual(self, instructions: tuple[IssueInstruction, ...]) -> bool:
        """Return whether a program issues two arithmetic instructions at once."""
        return any(
            all(one.is_arithmetic for one in cycle) and len(cycle) > 1
            for block in blocks(instructions)
            for cycle in self.shape(block)
        )


def blocks(instructions: tuple[IssueInstruction, ...]) -> list[tuple[IssueInstruction, ...]]:
    """Return the instructions in blocks of seven; the last block may be shorter."""
    return [instructions[at : at + PER_BLOCK] for at in range(0, len(instructions), PER_BLOCK)]


def closed_form_cycles(truth: Truth, program: IssueProgram, warps: int, loops: int) -> float | None:
    """Return the cycles of a noiseless execution; None for programs that the formula does not cover.

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
    most = -(-warps // truth.sm.schedulers)  # of the scheduler with the most warps
    cold = -(-len(program) // PER_BLOCK) * truth.miss_cycles  # every block is fetched once
    return (loops * max(most * slots, span) + cold) / (1 - truth.overhead)


def _is_free(truth: Truth, program: IssueProgram) -> bool:
    written = {one.destination for one in program.body}
    return len(program) <= truth.sm.icache_instructions and not any(
        truth.gaps[one.code] == 0
        or one.code in truth.keeps
        or one.opcode is Opcode.S2R
        or any(register in written for register in one.sources)
        for one in program.body
    )
