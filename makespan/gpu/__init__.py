"""A whole GPU as values: its question, a schedule of it, and what is proven of it."""

from makespan.gpu.instance import Block, GpuInstance, Grid, assuming, resident
from makespan.gpu.result import GpuResult, LastDispatch
from makespan.gpu.schedule import Begin, Course, GpuSchedule, History, Stretch

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
