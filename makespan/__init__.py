"""Proven worst-case makespan of GPU warps on one streaming multiprocessor, and of grids on a whole GPU."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from makespan import early  # noqa: F401 - before anything that takes time
from makespan.engines import Limits, solve
from makespan.errors import (
    BrokenPromiseError,
    InputError,
    InvalidScheduleError,
    MakespanError,
    ParseError,
    UnsupportedError,
)
from makespan.instance import Group, Instance
from makespan.machine import PAPER, Latency, Machine, UnitClass
from makespan.program import Program
from makespan.result import Bounds, Result, Status
from makespan.schedule import Schedule
from makespan.version import __version__

if TYPE_CHECKING:
    from makespan.engines.gpu import solve_gpu
    from makespan.flow import Launch
    from makespan.gpu import GpuInstance, GpuResult
    from makespan.gpu_question import gpu_instance
    from makespan.question import KernelQuestion, read_kernel
    from makespan.simulate import replay

__all__ = [
    "PAPER",
    "Bounds",
    "BrokenPromiseError",
    "GpuInstance",
    "GpuResult",
    "Group",
    "InputError",
    "Instance",
    "InvalidScheduleError",
    "KernelQuestion",
    "Latency",
    "Launch",
    "Limits",
    "Machine",
    "MakespanError",
    "ParseError",
    "Program",
    "Result",
    "Schedule",
    "Status",
    "UnitClass",
    "UnsupportedError",
    "__version__",
    "gpu_instance",
    "read_kernel",
    "replay",
    "solve",
    "solve_gpu",
]

_LAZY = {
    "GpuInstance": "makespan.gpu",
    "GpuResult": "makespan.gpu",
    "KernelQuestion": "makespan.question",
    "Launch": "makespan.flow",
    "gpu_instance": "makespan.gpu_question",
    "load_ipython_extension": "makespan.report.jupyter",
    "read_kernel": "makespan.question",
    "replay": "makespan.simulate",
    "solve_gpu": "makespan.engines.gpu",
}
"""What needs a heavy library comes when it is used."""


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LAZY[name]), name)
