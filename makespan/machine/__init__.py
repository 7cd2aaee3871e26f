"""The machine: classes of execution units on one streaming multiprocessor, and machine files."""

from makespan.machine.files import Datum, MachineFile, find, read, shipped
from makespan.machine.values import (
    DELAY,
    MAX_CAPACITY,
    MAX_INTERVAL,
    MAX_ISSUE_WIDTH,
    MAX_LATENCY,
    ONE_CYCLE,
    PAPER,
    UNTIMED,
    Latency,
    Machine,
    Scheduler,
    UnitClass,
    class_name,
)

__all__ = [
    "DELAY",
    "MAX_CAPACITY",
    "MAX_INTERVAL",
    "MAX_ISSUE_WIDTH",
    "MAX_LATENCY",
    "ONE_CYCLE",
    "PAPER",
    "UNTIMED",
    "Datum",
    "Latency",
    "Machine",
    "MachineFile",
    "Scheduler",
    "UnitClass",
    "class_name",
    "find",
    "read",
    "shipped",
]
