"""The FFMA throughput that an SM can sustain, and the register banks, control codes and patterns that reach it.

A table of measurements (`measurements`) has the results of four tests: latency and throughput, register banks
(`register_banks`), control codes (`control_codes`), order of single and dual issues. What they mean for a kernel of
FFMAs is an estimate (`ffma_bound`).

Source: a patent on the throughput test for FFMA in dual-issue mode, and Zhang, Tan, Xue, Li, Zhou and Chen,
"Understanding the GPU Microarchitecture to Achieve Bare-Metal Performance Tuning", PPoPP 2017. See docs/dual_issue.md.
"""

from makespan.estimates.dual_issue.control_codes import CodeResult, StallField
from makespan.estimates.dual_issue.ffma_bound import FfmaWork, estimate
from makespan.estimates.dual_issue.measurements import K20, Characteristics, PatternResult, SmDescription, find
from makespan.estimates.dual_issue.register_banks import BankFunction, BankResult, Threshold

__all__ = [
    "K20",
    "BankFunction",
    "BankResult",
    "Characteristics",
    "CodeResult",
    "FfmaWork",
    "PatternResult",
    "SmDescription",
    "StallField",
    "Threshold",
    "estimate",
    "find",
]
