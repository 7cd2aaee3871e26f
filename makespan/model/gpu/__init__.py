"""A whole GPU as values: the question, a schedule, and the result."""

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
