"""What the measurements need of a device, and no more: everything else has to be found out."""

from dataclasses import dataclass
from typing import Protocol

from makespan.errors import InputError
from makespan.estimators.dual_issue.program import Program


@dataclass(frozen=True, slots=True)
class Run:
    """What one execution gives.

    Args:
        cycles: from the first instruction to the last of all warps; a fraction where the device averages.
        clock_samples: what the clock reads of warp 0 returned in the last iteration, in program order.
    """

    cycles: float
    clock_samples: tuple[float, ...]


class IssueDevice(Protocol):
    """One SM that executes programs with given registers and control codes."""

    @property
    def lanes(self) -> int:
        """32-bit floating-point lanes of the SM."""
        ...

    @property
    def schedulers(self) -> int:
        """Warp schedulers of the SM."""
        ...

    @property
    def warp(self) -> int:
        """Threads of a warp."""
        ...

    @property
    def max_warps(self) -> int:
        """Resident warps at most."""
        ...

    @property
    def icache_instructions(self) -> int:
        """Instructions that the L1 instruction cache holds."""
        ...

    def run(self, program: Program, warps: int, loops: int) -> Run:
        """Let `warps` warps execute the program `loops` times each."""
        ...


def check_run(device: IssueDevice, program: Program, warps: int, loops: int) -> None:
    """Refuse what cannot be measured.

    Raises:
        InputError: more warps than the SM holds, none, no iteration, or a loop beyond the instruction cache.
    """
    if not 1 <= warps <= device.max_warps:
        raise InputError(f"warps must be 1..{device.max_warps} on this device, not {warps}")
    if loops < 1:
        raise InputError(f"loops must be at least 1, not {loops}")
    if len(program) > device.icache_instructions:
        raise InputError(
            f"the loop has {len(program)} instructions and the instruction cache {device.icache_instructions}:"
            " unroll it less"
        )
