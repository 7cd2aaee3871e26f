"""A whole GPU as values: its question, a schedule of it, and what is proven of it."""

from makespan.model.gpu.instance import BlockPrograms, GpuInstance, Grid, assuming, resident
from makespan.model.gpu.result import GpuResult, LastDispatch
from makespan.model.gpu.schedule import BlockStart, BlockTrace, GpuSchedule, RepeatedCycles, SmHistory

__all__ = [
    "BlockPrograms",
    "BlockStart",
    "BlockTrace",
    "GpuInstance",
    "GpuResult",
    "GpuSchedule",
    "Grid",
    "LastDispatch",
    "RepeatedCycles",
    "SmHistory",
    "assuming",
    "resident",
]
