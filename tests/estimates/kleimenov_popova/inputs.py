"""GPUs and kernels for the tests of the model of Kleimenov and Popova."""

from collections.abc import Callable

from makespan.estimates.kinds import InstructionKind
from makespan.estimates.kleimenov_popova import GpuParameters, HitRates, KernelModel, Levels, Thread, WarpDemand
from makespan.estimates.kleimenov_popova.thread_time import Sequence, Single
from makespan.kernels import ptx
from makespan.kernels.ptx import PtxKernel
from makespan.model.machine.gpus import Gpu, gpu_datum
from makespan.model.machine.occupancy import SmLimits

LIMITS = SmLimits(
    warp_size=32,
    registers=65536,
    shared_bytes=98304,
    warps=8,
    blocks=16,
    block_threads=1024,
    register_unit=256,
    register_scope="warp",
    shared_unit=256,
)
LATENCIES = Levels(80, 220, 400, 680)
UNLIMITED = Levels(1e9, 1e9, 1e9, 1e9)


def device(bandwidth: Levels = UNLIMITED, latency: Levels = LATENCIES) -> GpuParameters:
    """The GPU of the worked examples: 2 SMs with 2 processing blocks each, 1 GHz."""
    return GpuParameters(2, 2, 1.0, latency, bandwidth, LIMITS)


def alike(
    *,
    delay: float = 40,
    syncs: float = 1,
    blocks: int = 20,
    mem: float = 16,
    uncoal: float = 4,
    time: Callable[[float], float] = lambda lat: 50 + 4 * lat,
    threads: int = 64,
    hits: tuple[float, float] = (0.5, 0.25),
) -> KernelModel:
    """The kernel of the worked examples: all threads alike."""
    one = Thread(time, delay, mem, uncoal, HitRates(*hits), syncs)
    return of_threads(threads, blocks, lambda _: one, registers=32, shared_bytes=0)


def of_threads(threads: int, blocks: int, thread: Callable[[int], Thread], **resources: int | None) -> KernelModel:
    """A kernel by the threads of each block, by their number."""
    several = [thread(number) for number in range(threads)]
    warps = [WarpDemand.of(several[first : first + 32]) for first in range(0, threads, 32)]
    return KernelModel(threads, blocks, warps, **resources)


_PASCAL = {
    "lat_DRAM": 400, "lat_uncoal": 680, "band_L1": 64, "band_L2": 100, "band_uncoal": 20, "delay.global": 1,
    **{f"{table}.{kind}": value for table, value in (("latency", 6), ("delay", 1))
       for kind in ("mov", "i32_mul", "setp", "cvt", "bra", "param", "i64")},
}  # fmt: skip
PASCAL = tuple(word for key, value in _PASCAL.items() for word in ("--set", f"kleimenov_popova.{key}={value}"))
"""Options that complete the description of gtx1050."""

FIGURES = {
    "sms": 2,
    "warp_size": 32,
    "clock_ghz": 1.0,
    "limits.registers": 65536,
    "limits.shared_bytes": 98304,
    "limits.warps": 8,
    "limits.blocks": 16,
    "limits.block_threads": 1024,
    "kleimenov_popova.pb_per_sm": 2,
    "kleimenov_popova.lat_L1": 80,
    "kleimenov_popova.lat_L2": 220,
    "kleimenov_popova.lat_DRAM": 400,
    "kleimenov_popova.lat_uncoal": 680,
    **{f"kleimenov_popova.band_{level}": 10**9 for level in ("L1", "L2", "DRAM", "uncoal")},
    **{f"kleimenov_popova.latency.{kind}": 6 for kind in InstructionKind},
    **{f"kleimenov_popova.delay.{kind}": 1 for kind in InstructionKind},
}


def gpu(**figures: float) -> Gpu:
    """A GPU of which everything is known; `latency_f64=8` and the like change the figures of this model."""
    own = {f"kleimenov_popova.{name.replace('_', '.', 1)}": value for name, value in figures.items()}
    return Gpu("test", {key: gpu_datum(key, value, source="test") for key, value in {**FIGURES, **own}.items()})


def kernel(body: str) -> PtxKernel:
    """A kernel with registers of every type, and parameters `data` and `n`."""
    text = f"""
.version 7.0
.target sm_75
.address_size 64
.visible .entry k(.param .u64 data, .param .u32 n)
{{
    .reg .pred %p<8>;
    .reg .b32 %r<16>;
    .reg .f32 %f<16>;
    .reg .f64 %fd<16>;
    .reg .b64 %rd<16>;
{body}
}}
"""
    return ptx.parse(text, "k.ptx").kernel()


FIGURE_3 = """
    mov.f64 %fd1, 0d3FF0000000000000;
    mov.u32 %r1, 0;
LOOP:
    setp.lt.s32 %p1, %r1, 15;
    @!%p1 bra DONE;
    mul.f64 %fd2, %fd1, 0d3FF4CCCCCCCCCCCD;
    add.f64 %fd3, %fd2, 0d4020000000000000;
    add.f64 %fd1, %fd3, %fd9;
    add.s32 %r1, %r1, 1;
    bra LOOP;
DONE:
    ret;
"""
"""The loop of figure 3 of the paper, in PTX."""


def single(number: int, kind: str, reads: str = "", writes: str = "", *, is_back_edge: bool = False) -> Single:
    """An instruction, with registers separated by blanks."""
    return Single(number, kind, tuple(reads.split()), tuple(writes.split()), is_back_edge)


def straight(*steps: tuple[str, str, str]) -> Sequence:
    """Instructions (kind, reads, writes) one after the other."""
    return Sequence(tuple(single(number, *step) for number, step in enumerate(steps)))
