"""The counts of the model from the profile of a kernel."""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType

from makespan.estimates.hong_kim.inputs import HongKimKernel
from makespan.estimates.kinds import InstructionKind
from makespan.estimates.profile import Coalescing, InstructionCount, KernelProfile, MemoryOperation, Rule
from makespan.model.machine.gpus import Gpu

_DENOMINATOR = 10**9  # means over warps are ratios of whole numbers, which a float has rounded

# Operations that tables of throughputs know, by the first part of an opcode for single precision.
_NAMED = MappingProxyType({"add": "f32_add", "sub": "f32_sub", "mul": "f32_mul", "div": "f32_div", "sin": "native_sin"})

MEMORY_NOTE = "accesses to global, local and generic addresses"


@dataclass(frozen=True, slots=True)
class Counted:
    """A kernel for the model, and what to know of its counts, by name."""

    kernel: HongKimKernel
    notes: dict[str, str]


def coalescing(gpu: Gpu) -> Coalescing:
    """Return how lanes share transactions on this GPU: segments of 128 bytes if its description does not say."""
    default = Coalescing()
    rule, segment = gpu.text("hong_kim.coalescing_rule"), gpu.get("hong_kim.segment_bytes")
    return Coalescing(
        default.rule if rule is None else Rule(rule), default.segment_bytes if segment is None else int(segment)
    )


def count(profile: KernelProfile, *, active_blocks_per_sm: int | None = None) -> Counted:
    """Return the counts of one thread, the mean over the warps of the launch.

    An access whose lanes are all switched off counts as computation, as every instruction that is no access to device
    memory and no barrier.

    Source: S. Hong and H. Kim, ISCA 2009, section 4: counts of PTX instructions, dynamic.
    """
    accesses = profile.device_memory
    coalesced = [access for access in accesses if access.coalesced]
    others = [access for access in accesses if not access.coalesced]
    total = sum((_exact(one.executions) for one in profile.instructions), Fraction(0))
    barriers = _exact(profile.barriers)
    kernel = HongKimKernel(
        threads_per_block=profile.threads_per_block,
        blocks=profile.blocks,
        comp_insts=max(total - barriers - _executions(accesses), Fraction(0)),  # means are rounded: may fall below 0
        coal_mem_insts=_executions(coalesced),
        uncoal_mem_insts=_executions(others),
        synch_insts=barriers,
        uncoal_per_mw=_mean(others, [one.transactions for one in others]),
        # of a whole warp, whichever lanes are active
        load_bytes_per_warp=_mean(accesses, [one.lane_bytes * profile.warp_size for one in accesses]),
        regs_per_thread=profile.registers,
        smem_per_block=profile.shared_bytes,
        active_blocks_per_sm=active_blocks_per_sm,
        operations=_operations(profile.instructions),
    )
    how = "executed, by following every thread" if profile.is_exact else "from loop bounds and branches"
    notes = {
        "comp_insts": f"{how}; the mean over the warps",
        "coal_mem_insts": f"{MEMORY_NOTE}: {_lines(coalesced)}",
        "uncoal_mem_insts": f"{MEMORY_NOTE}: {_lines(others)}",
        "uncoal_per_mw": "mean over the uncoalesced accesses",
        "load_bytes_per_warp": "size of an element for each thread of a warp, mean over the accesses",
    }
    return Counted(kernel, notes)


def _executions(accesses: Iterable[MemoryOperation]) -> Fraction:
    return sum((_exact(access.executions) for access in accesses), Fraction(0))


def _mean(accesses: list[MemoryOperation] | tuple[MemoryOperation, ...], of: list[float | None]) -> Fraction | None:
    """Return the mean weighted by executions; None if there is no access or a value is not known."""
    weights = [_exact(access.executions) for access in accesses]
    values = [value for value in of if value is not None]
    if not weights or len(values) < len(weights):  # one unknown value leaves the mean unknown
        return None
    return sum((w * _exact(v) for w, v in zip(weights, values, strict=True)), Fraction(0)) / sum(weights)


def _operations(instructions: Iterable[InstructionCount]) -> dict[str, Fraction]:
    found: dict[str, Fraction] = {}
    for one in instructions:
        name, _, rest = one.opcode.partition(".")
        if (
            one.executions
            and one.kind in (InstructionKind.F32, InstructionKind.F32_DIV, InstructionKind.SFU)
            and rest.endswith("f32")
            and name in _NAMED
        ):
            found[_NAMED[name]] = found.get(_NAMED[name], Fraction(0)) + _exact(one.executions)
    return found


def _lines(accesses: Iterable[MemoryOperation]) -> str:
    lines = sorted({access.line for access in accesses})
    shown = ", ".join(map(str, lines[:8])) + ", ..." * (len(lines) > 8)
    return f"line{'s' * (len(lines) > 1)} {shown}" if lines else "none"


def _exact(number: float) -> Fraction:
    return Fraction(number).limit_denominator(_DENOMINATOR)
