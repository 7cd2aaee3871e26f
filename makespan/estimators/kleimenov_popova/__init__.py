"""Static prediction of kernel time: dependences, waves and bandwidth fixed points.

Source: A. A. Kleimenov and N. N. Popova, A method for prediction execution time of GPU programs, Computational
Nanotechnology 8(1), 2021, pp. 38-45.
"""

from makespan.estimators.kleimenov_popova.delays import by_throughput, by_units
from makespan.estimators.kleimenov_popova.demand import WORST_CASE_CACHE, HitRates, KernelModel, Thread, Warp
from makespan.estimators.kleimenov_popova.device import Device, Levels
from makespan.estimators.kleimenov_popova.fixpoint import Fixpoint, Rules, fixpoint
from makespan.estimators.kleimenov_popova.from_ptx import PtxModel, device_of, from_ptx
from makespan.estimators.kleimenov_popova.launch_time import LaunchLine, relative_error
from makespan.estimators.kleimenov_popova.prediction import StaticFixpointResult, WaveResult, estimate
from makespan.estimators.kleimenov_popova.recurrence import LoopRule
from makespan.estimators.kleimenov_popova.thread_time import Timing, expressions, thread_time
from makespan.estimators.kleimenov_popova.waves import SyncUnit

__all__ = [
    "WORST_CASE_CACHE",
    "Device",
    "Fixpoint",
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
    "Warp",
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
