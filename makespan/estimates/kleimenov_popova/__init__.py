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
from makespan.estimates.kleimenov_popova.prediction import Rules, StaticFixpointResult, estimate, fixpoint
from makespan.estimates.kleimenov_popova.waves import HitRates, KernelModel, Thread, WarpDemand

__all__ = [
    "GpuParameters",
    "HitRates",
    "KernelModel",
    "LaunchLine",
    "Levels",
    "PtxModel",
    "Rules",
    "StaticFixpointResult",
    "Thread",
    "Timing",
    "WarpDemand",
    "by_throughput",
    "by_units",
    "estimate",
    "fixpoint",
    "from_ptx",
]
