"""What machine code tells control flow beyond the effects of its instructions: `makespan.flow.Semantics`."""
# ruff: noqa: ARG002 - these answer so for every instruction

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from makespan.flow import (
    Computation,
    InstructionSet,
    Launch,
    Mark,
    Parameter,
    Spread,
    Spreads,
    Surroundings,
)
from makespan.sass.instruction_set import machine_code
from makespan.sass.module import Instruction, Kernel


class Access(Protocol):
    """The registers of one instruction, by own names."""

    @property
    def writes(self) -> tuple[str, ...]:
        """What it may write."""

    @property
    def reads(self) -> tuple[str, ...]:
        """What it may read."""


@dataclass(frozen=True)
class SassSemantics:
    """What the instructions of one kernel mean, its subroutines inlined."""

    kernel: Kernel
    code: tuple[Instruction, ...]
    accesses: Sequence[Access]

    @cached_property
    def instruction_set(self) -> InstructionSet:
        """See `instruction_set.machine_code`."""
        return machine_code(self.kernel.sm)

    def fitted(self, launch: Launch) -> Launch:
        """The launch as it is."""
        return launch

    def parameters(self, launch: Launch) -> Mapping[str, Parameter]:
        """No parameter is known."""
        return {}

    def computation(self, number: int, parameters: Mapping[str, Parameter]) -> Computation | None:
        """Nothing is known."""
        return None

    def spread(self, number: int, spreads: Spreads, around: Surroundings) -> Spread | None:
        """Nothing is known."""
        return None

    def step(self, number: int) -> tuple[str, int] | None:
        """No instruction counts, for there are no marks."""
        return None

    def refusal(self, number: int, threads: int | None) -> str | None:
        """Nothing is refused."""
        return None

    def marks(self) -> Iterator[Mark]:
        """There are none."""
        return iter(())
