"""What the measurements need of a device, and no more: everything else has to be found out."""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

from makespan.errors import InputError
from makespan.estimators.dual_issue.program import Program


class Run(NamedTuple):
    """What one execution gives.

    Args:
        cycles: from the first instruction to the last of all warps; a fraction where the device averages.
        clock_samples: what the clock reads of warp 0 returned in the last iteration, in program order.
    """

    cycles: float
    clock_samples: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Sm:
    """What is given of an SM, not measured.

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
    icache_instructions: int = 896

    def __post_init__(self) -> None:
        if self.schedulers < 1 or self.warp < 1 or self.lanes < self.schedulers * self.warp:
            raise InputError(
                f"{self.lanes} lanes are fewer than those of {self.schedulers} schedulers with warps of {self.warp}"
            )

    @property
    def theory(self) -> float:
        """Lane-operations per cycle of single issue: each scheduler feeds the lanes of one warp."""
        return float(self.schedulers * self.warp)


class IssueDevice(Protocol):
    """One SM that executes programs with given registers and control codes."""

    @property
    def sm(self) -> Sm:
        """What it says of itself."""
        ...

    def run(self, program: Program, warps: int, loops: int) -> Run:
        """Let `warps` warps execute the program `loops` times each."""
        ...


def check_run(sm: Sm, program: Program, warps: int, loops: int) -> None:
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
