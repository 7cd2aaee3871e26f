"""Proven worst-case makespan of GPU warps on one streaming multiprocessor, and of grids on a whole GPU."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from makespan.host import interrupt as early  # noqa: F401 - before anything that takes time
from makespan.host.errors import (
    BrokenPromiseError,
    InputError,
    InvalidScheduleError,
    MakespanError,
    ParseError,
    UnsupportedError,
)
from makespan.model.instance import Group, Instance
from makespan.model.machine import PAPER, Latency, Machine, UnitClass
from makespan.model.program import Program
from makespan.model.result import Bounds, Result, Status
from makespan.model.schedule import Schedule
from makespan.proof.engines import Limits, solve
from makespan.version import __version__

if TYPE_CHECKING:
    from makespan.kernels.flow import Launch
    from makespan.kernels.gpu_question import gpu_instance
    from makespan.kernels.question import KernelQuestion, read_kernel
    from makespan.model.gpu import GpuInstance, GpuResult
    from makespan.model.simulate import replay
    from makespan.proof.engines.gpu import solve_gpu

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
    "GpuInstance": "makespan.model.gpu",
    "GpuResult": "makespan.model.gpu",
    "KernelQuestion": "makespan.kernels.question",
    "Launch": "makespan.kernels.flow",
    "gpu_instance": "makespan.kernels.gpu_question",
    "load_ipython_extension": "makespan.report.jupyter",
    "read_kernel": "makespan.kernels.question",
    "replay": "makespan.model.simulate",
    "solve_gpu": "makespan.proof.engines.gpu",
}
"""What needs a heavy library comes when it is used."""


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LAZY[name]), name)
