"""Static prediction of kernel time: dependences, waves and bandwidth fixed points.

Source: A. A. Kleimenov and N. N. Popova, A method for prediction execution time of GPU programs, Computational
Nanotechnology 8(1), 2021, pp. 38-45.
"""

from makespan.estimates.kleimenov_popova.device import (
    GpuParameters,
    LaunchLine,
    Levels,
    Timing,
    by_throughput,
    by_units,
)
from makespan.estimates.kleimenov_popova.from_ptx import PtxModel, from_ptx
from makespan.estimates.kleimenov_popova.prediction import (
    Fixpoint,
    Rules,
    StaticFixpointResult,
    WaveResult,
    estimate,
    fixpoint,
    relative_error,
)
from makespan.estimates.kleimenov_popova.thread_time import LoopRule, thread_time
from makespan.estimates.kleimenov_popova.waves import (
    WORST_CASE_CACHE,
    HitRates,
    KernelModel,
    SyncUnit,
    Thread,
    WarpDemand,
)

__all__ = [
    "WORST_CASE_CACHE",
    "Fixpoint",
    "GpuParameters",
    "HitRates",
    "KernelModel",
    "LaunchLine",
    "Levels",
    "LoopRule",
    "PtxModel",
    "Rules",
    "StaticFixpointResult",
    "SyncUnit",
    "Thread",
    "Timing",
    "WarpDemand",
    "WaveResult",
    "by_throughput",
    "by_units",
    "estimate",
    "fixpoint",
    "from_ptx",
    "relative_error",
    "thread_time",
]
