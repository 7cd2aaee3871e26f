"""The names by which descriptions of GPUs, microbenchmarks and models tell their numbers apart.

`data/gpu_keys` lists the keys of these names; a test compares both.
"""

from enum import StrEnum

MAX_BLOCK_WARPS = 64  # of a block whose launch time is measured
LEVELS = ("L1", "L2", "DRAM", "uncoal")  # the ways to memory: two caches, device memory, and uncoalesced requests


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
