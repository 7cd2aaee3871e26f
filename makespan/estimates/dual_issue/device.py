"""What the measurements need of a device: programs, what a run gives, and rules that a measuring loop must keep.

Everything else has to be found out. Source of the rules: the patent on the throughput test for FFMA in dual-issue mode;
the reasons stand in docs/dual_issue.md.
"""

from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import NamedTuple, Protocol

from makespan.estimates.dual_issue.registers import ZERO
from makespan.host.errors import InputError

PER_BLOCK = 7  # instructions of a block; with their scheduling word they are eight 64-bit words
CODES = 256
SINGLE_ISSUE = 0x20  # the code that the sources call single-issue mode: the next instruction follows one cycle later


class Opcode(StrEnum):
    """The instructions that the measurements need."""

    FFMA = "FFMA"
    FMUL = "FMUL"
    FADD = "FADD"
    NOP = "NOP"
    S2R = "S2R"  # reads the clock


# Source registers of the arithmetic instructions, which need the 32 lanes of a group for a cycle.
OPERANDS = {Opcode.FFMA: 3, Opcode.FMUL: 2, Opcode.FADD: 2}


@dataclass(frozen=True, slots=True)
class IssueInstruction:
    """An instruction of all lanes of a warp.

    Args:
        destination: None where nothing is written.
        code: the control code, one byte.
    """

    opcode: Opcode
    destination: int | None = None
    sources: tuple[int, ...] = ()
    code: int = SINGLE_ISSUE

    def __post_init__(self) -> None:
        if not 0 <= self.code < CODES:
            raise InputError(f"a control code is one byte, 0x00..0xff, not {self.code:#x}")
        if len(self.sources) != OPERANDS.get(self.opcode, len(self.sources)):
            raise InputError(f"{self.opcode} has {OPERANDS[self.opcode]} source registers, not {len(self.sources)}")
        named = self.sources if self.destination is None else (self.destination, *self.sources)
        if not all(0 <= register <= ZERO for register in named):
            raise InputError(f"{self.opcode}: registers are R0..R254 and RZ (255), not {named}")

    @property
    def is_arithmetic(self) -> bool:
        """Return whether the instruction needs the lanes of a group."""
        return self.opcode in OPERANDS

    def __str__(self) -> str:
        named = self.sources if self.destination is None else (self.destination, *self.sources)
        return f"{self.opcode} {', '.join('RZ' if number == ZERO else f'R{number}' for number in named)}".rstrip()


@dataclass(frozen=True, slots=True)
class IssueProgram:
    """The body of a loop: `body`, written down `unroll` times; it begins at a block of the instruction memory."""

    body: tuple[IssueInstruction, ...]
    unroll: int = 1

    def __post_init__(self) -> None:
        if not self.body or self.unroll < 1:
            raise InputError("a program has at least one instruction")

    def __len__(self) -> int:
        return len(self.body) * self.unroll

    @property
    def instructions(self) -> tuple[IssueInstruction, ...]:
        """Return the unrolled body."""
        return self.body * self.unroll

    def count(self, *opcodes: Opcode) -> int:
        """Return how many of its instructions have one of these opcodes."""
        return self.unroll * sum(instruction.opcode in opcodes for instruction in self.body)


class IssueRun(NamedTuple):
    """The result of one execution.

    Args:
        cycles: from the first instruction to the last of all warps; a fraction where the device averages.
        clock_samples: what the clock reads of warp 0 returned in the last iteration, in program order.
    """

    cycles: float
    clock_samples: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class SmDescription:
    """The given numbers of an SM, which no test measures.

    Args:
        lanes: for 32-bit floating-point numbers; also the FFMAs that it could complete per cycle.
        warp: threads of a warp.
        max_warps: that are resident at most.
        icache_instructions: that the L1 instruction cache holds; an assumption: 8 KiB, one of eight words schedules.
    """

    lanes: int = 192
    schedulers: int = 4
    warp: int = 32
    max_warps: int = 64
    icache_instructions: int = 896  # 8 KiB of words of 8 bytes, 7 of 8 of them instructions

    def __post_init__(self) -> None:
        if self.schedulers < 1 or self.warp < 1 or self.lanes < self.schedulers * self.warp:
            raise InputError(
                f"{self.lanes} lanes are fewer than those of {self.schedulers} schedulers with warps of {self.warp}"
            )

    @property
    def theory(self) -> float:
        """Return the lane-operations per cycle of single issue: each scheduler feeds the lanes of one warp."""
        return float(self.schedulers * self.warp)


class IssueDevice(Protocol):
    """An SM that executes programs with given registers and control codes."""

    @property
    def sm(self) -> SmDescription:
        """Return the description of the SM."""
        ...

    def run(self, program: IssueProgram, warps: int, loops: int) -> IssueRun:
        """Let `warps` warps execute the program `loops` times each."""
        ...


def check_run(sm: SmDescription, program: IssueProgram, warps: int, loops: int) -> None:
    """Refuse what cannot be measured.

    Raises:
        InputError: more warps than the SM holds, none, no iteration, or a loop beyond the instruction cache.
    """
    if not 1 <= warps <= sm.max_warps:
        raise InputError(f"warps must be 1..{sm.max_warps} on this device, not {warps}")
    if loops < 1:
        raise InputError(f"loops must be at least 1, not {loops}")
    if len(program) > sm.icache_instructions:
        raise InputError(
            f"the loop has {len(program)} instructions and the instruction cache {sm.icache_instructions}:"
            " unroll it less"
        )


# Iterations of a loop with clock reads: the first pays for cache misses, the samples of the last survive.
TIMED_LOOPS = 2
CLOCK_STALL = 14  # cycles between two clock reads, at least
MOST_OVERHEAD = 0.005  # share of a loop's instructions that its own control may have


def check_unrolled(count: int) -> None:
    """Refuse so few measured instructions of an iteration that the loop's own control, one more, weighs too much.

    Raises:
        InputError: half a percent or more; the conflict threshold is no farther away.
    """
    least = int(1 / MOST_OVERHEAD)
    if count < least:
        raise InputError(
            f"{count} unrolled instructions to 1 of loop control: unroll at least {least}, so that the control"
            f" stays below {MOST_OVERHEAD:.1%}"
        )


def check_timed(
    sm: SmDescription,
    program: IssueProgram,
    warps: int,
    loops: int,
    *,
    dependent: tuple[IssueInstruction, IssueInstruction] | None = None,
) -> None:
    """Refuse a loop with clock reads that breaks a rule; different source registers are a possible bank conflict.

    Args:
        dependent: the two instructions whose distance is measured, where that is the latency.

    Raises:
        InputError: the first rule that is broken.
    """
    check_run(sm, program, warps, loops)
    if loops != TIMED_LOOPS:
        raise InputError(f"a loop with clock reads runs exactly {TIMED_LOOPS} times, not {loops}")
    if warps > sm.schedulers:  # two warps of a scheduler would delay each other
        raise InputError(f"{warps} warps on {sm.schedulers} schedulers: a latency needs a scheduler per warp")
    code = program.instructions
    for instruction in code:
        if instruction.is_arithmetic and len(set(instruction.sources)) > 1:  # banks are found only later
            raise InputError(f"{instruction}: its source registers may share a bank; choose others")
    reads = [at for at, instruction in enumerate(code) if instruction.opcode is Opcode.S2R]
    if len(reads) < 2:
        raise InputError("read the clock at least twice inside of the loop; outside, cache misses count too")
    for first, second in pairwise(reads):
        if second - first < CLOCK_STALL:
            raise InputError(
                f"{second - first} cycles between two clock reads, which take {CLOCK_STALL}: put fillers in between"
            )
    if dependent is not None and dependent[0].destination not in dependent[1].sources:
        raise InputError(f"{dependent[1]} does not read what {dependent[0]} writes: that is no latency")
