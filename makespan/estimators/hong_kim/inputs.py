"""What the model asks for: the GPU, with its measured memory parameters, and the kernel with its launch."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from types import MappingProxyType

from makespan.errors import InputError
from makespan.estimators.hong_kim.exact import Number, exact, whole
from makespan.estimators.occupancy import Limits

LANE_BYTES = 4
"""Of a load whose width nobody gave: one float a lane, 128 bytes for a warp of 32."""

_KERNELS = {
    "mem_ld": "latency kernel of `makespan microbench memory`",
    "departure_del_coal": "coalesced kernel of `makespan microbench memory`",
    "departure_del_uncoal": "uncoalesced kernel of `makespan microbench memory`",
    "issue_cycles": "kernels of `makespan microbench throughput` (warp_size / operations per cycle)",
}
"""Which microbenchmark measures what."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HongKimGPU:
    """A GPU as the model sees it. NVIDIA's words; on AMD an SM is a compute unit, a warp a wavefront.

    Args:
        limits: what an SM holds, and the threads of a warp.
        issue_cycles: to issue one instruction for a warp; None if only operations of the `throughput` table are issued.
        freq_ghz: clock of the SM.
        mem_bw_gbs: of the device memory, 1 GB = 10^9 bytes.
        mem_ld: cycles until a load of an idle memory is answered; None until measured, as are the next two.
        departure_del_coal: cycles, at least, between two coalesced requests of an SM.
        departure_del_uncoal: cycles, at least, between two transactions of an uncoalesced request.
        uncoal_per_mw: transactions of an uncoalesced request, for kernels of which they are not known; None is one for
            each thread of a warp.
        throughput: operations per cycle and SM, by operation, where they differ from the issue of an instruction.

    Raises:
        InputError: a number that is negative, infinite or none, or zero where that means nothing.
    """

    limits: Limits
    sms: int
    freq_ghz: Number
    mem_bw_gbs: Number
    issue_cycles: Number | None = None
    mem_ld: Number | None = None
    departure_del_coal: Number | None = None
    departure_del_uncoal: Number | None = None
    uncoal_per_mw: Number | None = None
    throughput: Mapping[str, Number] = field(default_factory=dict)
    name: str = "GPU"

    def __post_init__(self) -> None:
        whole(self.sms, "sms")
        for name in ("freq_ghz", "mem_bw_gbs"):
            exact(getattr(self, name), name, positive=True)
        for name in _KERNELS:
            if getattr(self, name) is not None:
                exact(getattr(self, name), name, positive=name in ("issue_cycles", "mem_ld"))
        if self.uncoal_per_mw is not None and exact(self.uncoal_per_mw, "uncoal_per_mw") < 1:
            raise InputError(f"uncoal_per_mw must be at least 1, not {self.uncoal_per_mw}")
        for operation, rate in self.throughput.items():
            exact(rate, f"throughput of {operation}", positive=True)
        object.__setattr__(self, "throughput", MappingProxyType(dict(self.throughput)))

    @property
    def warp_size(self) -> int:
        """Threads of a warp."""
        return self.limits.warp_size

    def measured(self, name: str) -> Fraction:
        """A parameter in cycles that a microbenchmark measures.

        Raises:
            InputError: it was not measured; names the microbenchmark.
        """
        value = getattr(self, name)
        if value is None:
            raise InputError(f"GPU {self.name}: {name} is not known; measure it with the {_KERNELS[name]}, or give it")
        return exact(value, name)


@dataclass(frozen=True, slots=True, kw_only=True)
class HongKimKernel:
    """A kernel and its launch; instructions are dynamic, of one thread, and may be means.

    Args:
        comp_insts: all instructions but accesses to device memory and barriers.
        coal_mem_insts: accesses to device memory that are coalesced; `uncoal_mem_insts` those that are not.
        synch_insts: barriers, which count neither as computation nor as memory.
        uncoal_per_mw: transactions of one uncoalesced request of a warp; None leaves it to the GPU.
        load_bytes_per_warp: of a request; None is 4 bytes for each thread of a warp.
        regs_per_thread: None if not known, which then does not limit the resident blocks.
        smem_per_block: bytes of shared memory, static and dynamic.
        active_blocks_per_sm: resident blocks, in place of what occupancy and grid allow.
        operations: those among the `comp_insts` that have names in a table of throughputs.

    Raises:
        InputError: a number out of range, or no instruction at all.
    """

    threads_per_block: int
    blocks: int
    comp_insts: Number
    coal_mem_insts: Number = 0
    uncoal_mem_insts: Number = 0
    synch_insts: Number = 0
    uncoal_per_mw: Number | None = None
    load_bytes_per_warp: Number | None = None
    regs_per_thread: int | None = None
    smem_per_block: int | None = None
    active_blocks_per_sm: int | None = None
    operations: Mapping[str, Number] = field(default_factory=dict)

    def __post_init__(self) -> None:
        whole(self.threads_per_block, "threads_per_block")
        whole(self.blocks, "blocks")
        counts = [exact(getattr(self, name), name) for name in ("comp_insts", "coal_mem_insts", "uncoal_mem_insts")]
        exact(self.synch_insts, "synch_insts")
        if not sum(counts):
            raise InputError("comp_insts + coal_mem_insts + uncoal_mem_insts is 0: a kernel has instructions")
        if self.uncoal_per_mw is not None and exact(self.uncoal_per_mw, "uncoal_per_mw") < 1 and counts[2]:
            raise InputError(
                f"uncoal_per_mw must be at least 1 where requests are uncoalesced, not {self.uncoal_per_mw}"
            )
        if self.load_bytes_per_warp is not None:
            exact(self.load_bytes_per_warp, "load_bytes_per_warp", positive=True)
        for name in ("regs_per_thread", "smem_per_block"):
            if getattr(self, name) is not None:
                whole(getattr(self, name), name, least=0)
        if self.active_blocks_per_sm is not None:
            whole(self.active_blocks_per_sm, "active_blocks_per_sm")
        named = sum(exact(count, f"operations {name}") for name, count in self.operations.items())
        if named > counts[0]:
            raise InputError(f"operations: {float(named):g} are more than the {float(counts[0]):g} comp_insts")
        object.__setattr__(self, "operations", MappingProxyType(dict(self.operations)))

    @property
    def mem_insts(self) -> Fraction:
        """Accesses to device memory."""
        return Fraction(exact(self.coal_mem_insts, "") + exact(self.uncoal_mem_insts, ""))

    @property
    def total_insts(self) -> Fraction:
        """All instructions but barriers."""
        return self.mem_insts + exact(self.comp_insts, "")
