"""What a launch executes, counted before it runs: instructions by class, accesses to memory, and their transactions."""

from makespan.estimators.profile.counting import profile
from makespan.estimators.profile.resources import Resources, parse_resources, read_resources
from makespan.estimators.profile.values import (
    Coalescing,
    InstructionCount,
    KernelProfile,
    MemoryOperation,
    Rule,
    WarpClass,
)

__all__ = [
    "Coalescing",
    "InstructionCount",
    "KernelProfile",
    "MemoryOperation",
    "Resources",
    "Rule",
    "WarpClass",
    "parse_resources",
    "profile",
    "read_resources",
]
