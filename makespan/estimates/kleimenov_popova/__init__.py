"""Static prediction of kernel time: dependences, waves and bandwidth fixed points.

Source: A. A. Kleimenov and N. N. Popova, A method for prediction execution time of GPU programs, Computational
Nanotechnology 8(1), 2021, pp. 38-45.
"""

from makespan.estimates.kleimenov_popova.demand import (
    WORST_CASE_CACHE,
    HitRates,
    KernelModel,
    SyncUnit,
    Thread,
    WarpDemand,
)
from makespan.estimates.kleimenov_popova.device import GpuParameters, LaunchLine, Levels, relative_error
from makespan.estimates.kleimenov_popova.from_ptx import PtxModel, device_of, from_ptx
from makespan.estimates.kleimenov_popova.gpu_timing import Timing, by_throughput, by_units
from makespan.estimates.kleimenov_popova.prediction import (
    Fixpoint,
    Rules,
    StaticFixpointResult,
    WaveResult,
    estimate,
    fixpoint,
)
from makespan.estimates.kleimenov_popova.recurrence import LoopRule
from makespan.estimates.kleimenov_popova.thread_time import expressions, thread_time

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
    "device_of",
    "estimate",
    "expressions",
    "fixpoint",
    "from_ptx",
    "relative_error",
    "thread_time",
]
