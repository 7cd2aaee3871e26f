"""A whole GPU as values: its question, a schedule of it, and what is proven of it."""

from makespan.model.gpu.instance import Block, GpuInstance, Grid, assuming, resident
from makespan.model.gpu.result import GpuResult, LastDispatch
from makespan.model.gpu.schedule import Begin, Course, GpuSchedule, History, Stretch

__all__ = [
    "Begin",
    "Block",
    "Course",
    "GpuInstance",
    "GpuResult",
    "GpuSchedule",
    "Grid",
    "History",
    "LastDispatch",
    "Stretch",
    "assuming",
    "resident",
]
