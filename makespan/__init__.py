"""Proven worst-case makespan of GPU warps on one streaming multiprocessor."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from makespan import early  # noqa: F401 - before anything that takes time
from makespan.engines import Limits, solve
from makespan.errors import BrokenPromiseError, InputError, InvalidScheduleError, MakespanError, ParseError
from makespan.instance import Group, Instance
from makespan.machine import PAPER, Latency, Machine, UnitClass
from makespan.program import Program
from makespan.result import Bounds, Result, Status
from makespan.schedule import Schedule
from makespan.version import __version__

if TYPE_CHECKING:
    from makespan.ptx import parse as parse_ptx
    from makespan.simulate import replay

__all__ = [
    "PAPER",
    "Bounds",
    "BrokenPromiseError",
    "Group",
    "InputError",
    "Instance",
    "InvalidScheduleError",
    "Latency",
    "Limits",
    "Machine",
    "MakespanError",
    "ParseError",
    "Program",
    "Result",
    "Schedule",
    "Status",
    "UnitClass",
    "__version__",
    "parse_ptx",
    "replay",
    "solve",
]

_LAZY = {
    "load_ipython_extension": ("makespan.report.jupyter", "load_ipython_extension"),
    "parse_ptx": ("makespan.ptx", "parse"),
    "replay": ("makespan.simulate", "replay"),
}
"""What needs a heavy library comes when it is used."""


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _LAZY[name]
    return getattr(import_module(module), attribute)
