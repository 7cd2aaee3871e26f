"""What is known of a launch before it runs: how often its warps execute what, and what they do to memory."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from makespan.estimates.kinds import InstructionKind
from makespan.estimates.profile.opcodes import DEVICE


class Rule(StrEnum):
    """The rule by which the lanes of a warp share transactions."""

    CC10 = "cc10"  # compute capability 1.0 and 1.1: a half-warp is served as one if its lanes address a row in order
    SEGMENTS = "segments"  # compute capability 1.2 and later, AMD: one transaction for each segment that lanes touch


@dataclass(frozen=True, slots=True)
class Coalescing:
    """The rule, with the bytes of a segment."""

    rule: Rule = Rule.SEGMENTS
    segment_bytes: int = 128


@dataclass(frozen=True, slots=True)
class InstructionCount:
    """The executions of one instruction by warps.

    Args:
        executions: of a warp, the mean over the warps of the launch.
    """

    line: int
    text: str
    opcode: str
    kind: InstructionKind
    executions: float


@dataclass(frozen=True, slots=True)
class MemoryOperation:
    """The executions of one load, store or atomic instruction that are alike in whether they are coalesced.

    Args:
        space: global, local, generic, shared, const or param.
        lane_bytes: that one lane moves.
        executions: of a warp, with at least one lane enabled; the mean over the warps of the launch.
        lanes: enabled in such an execution, the mean.
        transactions: of such an execution, the mean; None for what does not go to the device memory.
        coalesced: None for what does not go to the device memory.
        is_assumed: whether the number of transactions rests on the alignment of a base that is not known.
        reason: why it is counted as it is.
    """

    line: int
    text: str
    opcode: str
    space: str
    is_load: bool
    lane_bytes: int
    executions: float
    lanes: float
    transactions: float | None = None
    coalesced: bool | None = None
    is_assumed: bool = False
    reason: str = ""

    @property
    def warp_bytes(self) -> float:
        """Return the bytes that the lanes of an execution ask for."""
        return self.lane_bytes * self.lanes

    @property
    def is_device(self) -> bool:
        """Return whether it goes to the device memory."""
        return self.space in DEVICE


@dataclass(frozen=True, slots=True)
class WarpClass:
    """Warps that execute the same: their number, and how often each executes each instruction of the profile."""

    warps: int
    executions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class KernelProfile:
    """The counts of what the warps of a launch execute; the numbers of one warp are means over all.

    Args:
        threads_per_block: of which the last warp may be partial.
        instructions: in text order; every one of the kernel, executed or not.
        memory: accesses with an address; one instruction has two entries where some executions are coalesced.
        is_exact: whether the launch decides every branch, so that the counts are those of the launch itself.
        warp_classes: exact counts by warp; empty unless `is_exact`.
        notes: what the counts assume.
        registers: per thread; None unless given or read from `ptxas -v`.
        shared_bytes: per block, declared and dynamic.
        spill_bytes: moved by spilled registers of a thread, which the counts do not have; None if not known.
    """

    kernel: str
    file: str
    threads_per_block: int
    blocks: int
    warp_size: int
    instructions: tuple[InstructionCount, ...]
    memory: tuple[MemoryOperation, ...]
    is_exact: bool
    warp_classes: tuple[WarpClass, ...]
    notes: tuple[str, ...]
    registers: int | None = None
    shared_bytes: int = 0
    spill_bytes: int | None = None

    @property
    def warps_per_block(self) -> int:
        """Return the number of warps of a block, the last of which may be partial."""
        return -(-self.threads_per_block // self.warp_size)

    @property
    def total(self) -> float:
        """Return the instructions of one warp."""
        return sum(instruction.executions for instruction in self.instructions)

    @property
    def by_kind(self) -> Mapping[InstructionKind, float]:
        """Return the instructions of one warp by class; classes without any are left out."""
        found: dict[InstructionKind, float] = {}
        for instruction in self.instructions:
            if instruction.executions:
                found[instruction.kind] = found.get(instruction.kind, 0) + instruction.executions
        return found

    @property
    def barriers(self) -> float:
        """Return the number of barriers that one warp executes."""
        return self.by_kind.get(InstructionKind.BAR, 0)

    @property
    def device_memory(self) -> tuple[MemoryOperation, ...]:
        """Return the accesses that go to the device memory and are executed at all."""
        return tuple(operation for operation in self.memory if operation.is_device and operation.executions)
