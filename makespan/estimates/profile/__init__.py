"""What a launch executes, counted before it runs: instructions by class, accesses to memory, and their transactions."""

from makespan.estimates.profile.counting import profile
from makespan.estimates.profile.resources import Resources, parse_resources, read_resources
from makespan.estimates.profile.values import (
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
