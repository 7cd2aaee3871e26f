"""What an SM executes in a measurement: instructions with registers and control codes, unrolled, in a loop."""

from dataclasses import dataclass
from enum import StrEnum

from makespan.errors import InputError
from makespan.estimators.dual_issue.codec import SINGLE_ISSUE, check_code
from makespan.estimators.dual_issue.registers import ZERO


class Opcode(StrEnum):
    """The instructions that the measurements need."""

    FFMA = "FFMA"
    FMUL = "FMUL"
    FADD = "FADD"
    NOP = "NOP"
    LDS = "LDS"
    S2R = "S2R"
    """reads the clock"""


OPERANDS = {Opcode.FFMA: 3, Opcode.FMUL: 2, Opcode.FADD: 2}
"""Source registers of the arithmetic instructions, which need the 32 lanes of a group for a cycle."""


@dataclass(frozen=True, slots=True)
class Instruction:
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
        check_code(self.code)
        if len(self.sources) != OPERANDS.get(self.opcode, len(self.sources)):
            raise InputError(f"{self.opcode} has {OPERANDS[self.opcode]} source registers, not {len(self.sources)}")
        named = self.sources if self.destination is None else (self.destination, *self.sources)
        if not all(0 <= register <= ZERO for register in named):
            raise InputError(f"{self.opcode}: registers are R0..R254 and RZ (255), not {named}")

    @property
    def is_arithmetic(self) -> bool:
        """Whether it needs lanes."""
        return self.opcode in OPERANDS

    def __str__(self) -> str:
        named = self.sources if self.destination is None else (self.destination, *self.sources)
        return f"{self.opcode} {', '.join('RZ' if number == ZERO else f'R{number}' for number in named)}".rstrip()


@dataclass(frozen=True, slots=True)
class Program:
    """The body of a loop: `body`, written down `unroll` times; it begins at a block of the instruction memory."""

    body: tuple[Instruction, ...]
    unroll: int = 1

    def __post_init__(self) -> None:
        if not self.body or self.unroll < 1:
            raise InputError("a program has at least one instruction")

    def __len__(self) -> int:
        return len(self.body) * self.unroll

    @property
    def instructions(self) -> tuple[Instruction, ...]:
        """The unrolled body."""
        return self.body * self.unroll

    def count(self, *opcodes: Opcode) -> int:
        """How many of its instructions have one of these opcodes."""
        return self.unroll * sum(instruction.opcode in opcodes for instruction in self.body)
