"""What the model asks for: the GPU with its measured memory parameters, the kernel with its launch; exact rationals."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import isfinite
from types import MappingProxyType
from typing import TypeAlias

from makespan.host.errors import InputError
from makespan.model.machine.gpus import Gpu, parse_number
from makespan.model.machine.occupancy import SmLimits
from makespan.model.machine.values import shown

RealNumber: TypeAlias = int | float | Fraction

# Larger numbers, and positive ones below its inverse, are typing errors; within it no result overflows a float.
LARGEST = 10**18


def exact(value: object, what: str, *, positive: bool = False) -> Fraction:
    """Return the number, which must be finite and not negative; `what` names it in messages.

    A float is the shortest decimal that prints like it: 1.35 is 27/20, as its writer meant.

    Raises:
        InputError: no number, or one out of range.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | Fraction):  # True is an int to Python
        raise InputError(f"{what} must be a number, not {shown(value)}")
    if isinstance(value, float) and not isfinite(value):
        raise InputError(f"{what} must be finite, not {value}")
    if value < 0 or (positive and value == 0):
        raise InputError(f"{what} must be {'above 0' if positive else 'at least 0'}, not {_number_text(value)}")
    if value > LARGEST or 0 < value * LARGEST < 1:  # so that no result overflows a float
        raise InputError(f"{what} must be within 1e-18..1e18, not {_number_text(value)}")
    # the decimal that was meant, not its binary neighbour
    return Fraction(repr(float(value))) if isinstance(value, float) else Fraction(value)


def whole(value: object, what: str, *, least: int = 1) -> int:
    """Return the whole number of at least `least`; raises as `exact` does."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise InputError(f"{what} must be a whole number, not {shown(value)}")
    if not least <= value <= LARGEST:
        raise InputError(f"{what} must be at least {least} and at most 1e18, not {shown(value)}")
    return value


def _number_text(value: int | float | Fraction) -> str:
    return str(value) if isinstance(value, Fraction) else shown(value)


LANE_BYTES = 4  # of a load of unknown width: one float a lane, 128 bytes for a warp of 32

# Which microbenchmark measures what.
_KERNELS = {
    "mem_ld": "latency kernel of `makespan measure memory`",
    "departure_del_coal": "coalesced kernel of `makespan measure memory`",
    "departure_del_uncoal": "uncoalesced kernel of `makespan measure memory`",
    "issue_cycles": "kernels of `makespan measure throughput` (warp_size / operations per cycle)",
}


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

    limits: SmLimits
    sms: int
    freq_ghz: RealNumber
    mem_bw_gbs: RealNumber
    issue_cycles: RealNumber | None = None
    mem_ld: RealNumber | None = None
    departure_del_coal: RealNumber | None = None
    departure_del_uncoal: RealNumber | None = None
    uncoal_per_mw: RealNumber | None = None
    throughput: Mapping[str, RealNumber] = field(default_factory=dict)
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
        # a copy: the caller may change its own
        object.__setattr__(self, "throughput", MappingProxyType(dict(self.throughput)))

    @property
    def warp_size(self) -> int:
        """Return the number of threads of a warp."""
        return self.limits.warp_size

    def measured(self, name: str) -> Fraction:
        """Return a parameter in cycles that a microbenchmark measures.

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
    comp_insts: RealNumber
    coal_mem_insts: RealNumber = 0
    uncoal_mem_insts: RealNumber = 0
    synch_insts: RealNumber = 0
    uncoal_per_mw: RealNumber | None = None
    load_bytes_per_warp: RealNumber | None = None
    regs_per_thread: int | None = None
    smem_per_block: int | None = None
    active_blocks_per_sm: int | None = None
    operations: Mapping[str, RealNumber] = field(default_factory=dict)

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
        if named > counts[0]:  # named operations are a part of comp_insts
            raise InputError(f"operations: {float(named):g} are more than the {float(counts[0]):g} comp_insts")
        object.__setattr__(self, "operations", MappingProxyType(dict(self.operations)))

    @property
    def mem_insts(self) -> Fraction:
        """Return the number of accesses to device memory."""
        return Fraction(exact(self.coal_mem_insts, "") + exact(self.uncoal_mem_insts, ""))

    @property
    def total_insts(self) -> Fraction:
        """Return all instructions but barriers."""
        return self.mem_insts + exact(self.comp_insts, "")


# Fields of `HongKimKernel` by the names that a list of counts has.
COUNTS = {
    "comp": "comp_insts",
    "coal": "coal_mem_insts",
    "uncoal": "uncoal_mem_insts",
    "synch": "synch_insts",
    "uncoal_per_mw": "uncoal_per_mw",
    "load_bytes": "load_bytes_per_warp",
}


def counts(text: str, what: str) -> dict[str, Fraction]:
    """Return the numbers of `NAME=N,...`, by field.

    >>> counts("comp=27,uncoal=6", "--counts")
    {'comp_insts': Fraction(27, 1), 'uncoal_mem_insts': Fraction(6, 1)}

    Raises:
        InputError: an unknown name, one that is given twice, or no number.
    """
    found: dict[str, Fraction] = {}
    for item in text.split(","):
        name, _, value = (part.strip() for part in item.partition("="))
        if name not in COUNTS:
            raise InputError(f"{what}: unknown name {shown(name)}; known: {', '.join(COUNTS)}")
        if COUNTS[name] in found:
            raise InputError(f"{what}: {name} is given twice")
        found[COUNTS[name]] = _exact(value, f"{what}: {name}")
    return found


def _exact(text: str, what: str) -> Fraction:
    value = parse_number(text)
    if value is None:
        raise InputError(f"{what} must be a number, not {shown(text)}")
    return exact(int(value) if value.is_integer() else value, what)


KEYS = {
    "mem_ld": "hong_kim.mem_ld",
    "departure_del_coal": "hong_kim.departure_del_coal",
    "departure_del_uncoal": "hong_kim.departure_del_uncoal",
    "issue_cycles": "hong_kim.issue_cycles",
    "uncoal_per_mw": "hong_kim.uncoal_per_mw",
}
DEVICE = ("sms", "clock_ghz", "mem_bw_gbs", "warp_size")
# Prefix of the key, and suffix of the operation: `f32_add4` is an addition of vectors of four.
_TABLES = {"hong_kim.throughput.": "", "hong_kim.vector_throughput.": "4"}


def of_gpu(gpu: Gpu) -> HongKimGPU:
    """Return the numbers of a GPU description; a missing measured one is refused only when the model needs it.

    Raises:
        InputError: no number of SMs, clock, bandwidth or warp size.
    """
    gpu.require(*DEVICE)
    return HongKimGPU(
        name=gpu.name,
        limits=gpu.limits,
        sms=gpu.whole("sms"),
        freq_ghz=gpu.number("clock_ghz"),
        mem_bw_gbs=gpu.number("mem_bw_gbs"),
        throughput=throughput_of(gpu),
        **{name: gpu.get(key) for name, key in KEYS.items()},
    )


def throughput_of(gpu: Gpu) -> dict[str, float]:
    """Return the operations per cycle, by operation."""
    return {
        key.removeprefix(prefix) + suffix: float(datum.value)
        for prefix, suffix in _TABLES.items()
        for key, datum in gpu.data.items()
        if key.startswith(prefix)
    }
