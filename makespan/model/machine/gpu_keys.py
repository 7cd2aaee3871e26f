"""The numbers that a GPU description may hold: name, unit, meaning, and the way to get one that is missing.

A key that is not listed here is refused in every file: a typing error must not turn into a missing number.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum


class InstructionKind(StrEnum):
    """The kind of an instruction, as tables of latencies tell instructions apart."""

    F16 = "f16"
    """half precision: add, multiply, multiply-add"""
    F32 = "f32"
    """add, multiply, multiply-add, minimum, absolute value, ..."""
    F64 = "f64"
    """double precision, divisions and roots included"""
    I32 = "i32"
    """integers of up to 32 bits: add, logic, minimum, bit fields"""
    I32_MUL = "i32_mul"
    """products of integers of up to 32 bits, wide ones included"""
    I64 = "i64"
    I64_MUL = "i64_mul"
    INT_DIV = "int_div"
    """quotient and remainder of integers, which a compiler expands"""
    F32_DIV = "f32_div"
    """division in single precision, which a compiler expands"""
    SHIFT = "shift"
    SETP = "setp"
    """comparisons and selections"""
    CVT = "cvt"
    SFU = "sfu"
    """reciprocal, root, sine, exponential, ..., single precision"""
    MOV = "mov"
    BRA = "bra"
    """branches, calls and ends"""
    SHARED = "shared"
    GLOBAL = "global"
    """device memory: global, local and generic addresses"""
    CONST = "const"
    PARAM = "param"
    BAR = "bar"
    """barriers of a block"""
    WARP = "warp"
    """exchange between lanes: shuffles, votes, matches"""
    MATRIX = "matrix"
    """matrix multiply-add of a warp"""
    TEXTURE = "texture"
    """textures and surfaces"""
    OTHER = "other"
    """what no table tells: fences, sleep, asynchronous copies, ..."""


class ValueRange(StrEnum):
    """The range of values that a datum may take."""

    WHOLE = "a whole number of at least 1"
    POSITIVE = "a number above 0"
    NOT_NEGATIVE = "a number of at least 0"
    COUNT = "a whole number of at least 0"


@dataclass(frozen=True, slots=True)
class GpuKey:
    """The description of a datum before it has a value.

    Args:
        how: the way to get the number, in the imperative, for the message that it is missing.
        choices: the texts that the value may be. Empty means that it is a number.
    """

    unit: str
    meaning: str
    how: str
    range: ValueRange = ValueRange.POSITIVE
    choices: tuple[str, ...] = ()


MAX_BLOCK_WARPS = 64
_DATA_SHEET = "take it from the data sheet"
_GUIDE = "take it from the vendor's table of compute capabilities"
_MEMORY = "measure it with `makespan measure memory`"
_THROUGHPUT = "measure it with `makespan measure throughput`"
_LATENCY = "measure it with `makespan measure latency`"
_PROFILES = "take it from `nvidia-smi mig -lgip`"
_LAUNCH = "measure it with `makespan measure launch`"

_DEVICE = {
    "sms": GpuKey("", "streaming multiprocessors (compute units)", _DATA_SHEET, ValueRange.WHOLE),
    "clock_ghz": GpuKey("GHz", "clock of the SM, in whose cycles times are counted", _DATA_SHEET),
    "base_clock_ghz": GpuKey("GHz", "clock of the SM that the vendor promises, the boost clock aside", _DATA_SHEET),
    "warp_size": GpuKey("threads", "threads of a warp (wavefront)", _DATA_SHEET, ValueRange.WHOLE),
    "mem_bw_gbs": GpuKey("GB/s", "bandwidth of the device memory, 1 GB = 10^9 B", _DATA_SHEET),
    "l2_bytes": GpuKey("B", "size of the last cache before the device memory", _DATA_SHEET, ValueRange.WHOLE),
    "dispatch_cycles": GpuKey(
        "cycles", "from when a block gets its room until its warps begin, at most", "measure it", ValueRange.COUNT
    ),
}

MAX_MIG_GIB = 300
_MIG = {
    f"mig.{slices}g.{memory}gb": GpuKey("", f"SMs of a MIG instance {slices}g.{memory}gb", _PROFILES, ValueRange.WHOLE)
    for slices in (1, 2, 3, 4, 7)
    for memory in range(1, MAX_MIG_GIB + 1)
}

_LIMITS = {
    "limits.registers": GpuKey("", "32-bit registers per SM", _GUIDE, ValueRange.WHOLE),
    "limits.shared_bytes": GpuKey("B", "shared memory per SM", _GUIDE, ValueRange.WHOLE),
    "limits.block_shared_bytes": GpuKey("B", "shared memory of one block, at most", _GUIDE, ValueRange.WHOLE),
    "limits.warps": GpuKey("warps", "resident warps per SM, at most", _GUIDE, ValueRange.WHOLE),
    "limits.blocks": GpuKey("blocks", "resident blocks per SM, at most", _GUIDE, ValueRange.WHOLE),
    "limits.block_threads": GpuKey("threads", "threads of a block, at most", _GUIDE, ValueRange.WHOLE),
    "limits.register_unit": GpuKey("", "registers are allocated in multiples of this", _GUIDE, ValueRange.WHOLE),
    "limits.register_scope": GpuKey("", "what registers are allocated for", _GUIDE, choices=("block", "warp")),
    "limits.shared_unit": GpuKey("B", "shared memory is allocated in multiples of this", _GUIDE, ValueRange.WHOLE),
}

_OPERATIONS = ("f32_add", "f32_sub", "f32_mul", "f32_div", "sin", "native_sin")


def _keys_of_each(prefix: str, names: Iterable[str], unit: str, meaning: str, how: str) -> dict[str, GpuKey]:
    return {f"{prefix}.{name}": GpuKey(unit, f"{meaning} {name}", how) for name in names}


_HONG_KIM = {
    "hong_kim.mem_ld": GpuKey("cycles", "latency of the device memory without load", _MEMORY),
    "hong_kim.departure_del_coal": GpuKey(
        "cycles", "least distance between two coalesced requests of an SM", _MEMORY, ValueRange.NOT_NEGATIVE
    ),
    "hong_kim.departure_del_uncoal": GpuKey(
        "cycles", "least distance between two transactions of an uncoalesced request", _MEMORY, ValueRange.NOT_NEGATIVE
    ),
    "hong_kim.issue_cycles": GpuKey("cycles", "issue of one warp instruction", _THROUGHPUT),
    "hong_kim.uncoal_per_mw": GpuKey(
        "transactions", "of an uncoalesced request of a warp", "leave it out: it is derived from the kernel"
    ),
    "hong_kim.coalescing_rule": GpuKey("", "how lanes share transactions", _GUIDE, choices=("cc10", "segments")),
    "hong_kim.segment_bytes": GpuKey("B", "segment that a transaction moves", _GUIDE, ValueRange.WHOLE),
    **_keys_of_each("hong_kim.throughput", _OPERATIONS, "operations/cycle", "per SM, scalar", _THROUGHPUT),
    **_keys_of_each("hong_kim.vector_throughput", _OPERATIONS, "components/cycle", "per SM, vector", _THROUGHPUT),
}

LEVELS = {"L1": "the L1 cache", "L2": "the L2 cache", "DRAM": "the device memory", "uncoal": "uncoalesced requests"}
_KLEIMENOV_POPOVA = {
    "kleimenov_popova.pb_per_sm": GpuKey("", "processing blocks per SM", _DATA_SHEET, ValueRange.WHOLE),
    **{
        f"kleimenov_popova.lat_{level}": GpuKey("cycles", f"latency of {name}", _LATENCY)
        for level, name in LEVELS.items()
    },
    **{
        f"kleimenov_popova.band_{level}": GpuKey("B/cycle", f"bandwidth of {name}", f"{_LATENCY}, or {_DATA_SHEET}")
        for level, name in LEVELS.items()
    },
    **_keys_of_each(
        "kleimenov_popova.latency", InstructionKind, "cycles", "until a dependent instruction can follow", _LATENCY
    ),
    **_keys_of_each(
        "kleimenov_popova.delay", InstructionKind, "cycles", "until the next instruction can follow", _LATENCY
    ),
    **_keys_of_each(
        "kleimenov_popova.throughput",
        InstructionKind,
        "operations/cycle",
        "of one processing block (delay by rule T)",
        _GUIDE,
    ),
    **_keys_of_each(
        "kleimenov_popova.units", InstructionKind, "units", "in one processing block (delay by rule U)", _DATA_SHEET
    ),
    **{
        f"kleimenov_popova.launch.{warps}.{name}": GpuKey(
            unit, f"{meaning}, for blocks of {warps} warps", _LAUNCH, ValueRange.NOT_NEGATIVE
        )
        for warps in range(1, MAX_BLOCK_WARPS + 1)
        for name, unit, meaning in (("x1", "s/block", "launch time per block"), ("x2", "s", "launch time of a grid"))
    },
}

KEYS: Mapping[str, GpuKey] = {**_DEVICE, **_MIG, **_LIMITS, **_HONG_KIM, **_KLEIMENOV_POPOVA}

_DELAYS = tuple(f"kleimenov_popova.{way}." for way in ("delay", "throughput", "units"))


def alternatives(key: str) -> tuple[str, ...]:
    """Return the other keys that state the same delay: an issue delay as such, by a throughput, or by units."""
    mine = next((way for way in _DELAYS if key.startswith(way)), None)
    return () if mine is None else tuple(way + key.removeprefix(mine) for way in _DELAYS if way != mine)
