"""The FFMA throughput that an SM can sustain, and the register banks, control codes and patterns that reach it.

Four tests, each of which needs what those before it found: latency and throughput (`timing`), register banks
(`bank_relation`), control codes (`code_meaning`), order of single and dual issues (`pattern_ranking`). They know a
device only through `IssueDevice`: a virtual SM (`virtual`), whatever else executes programs, or imported measurements
(`measurements`).

Source: a patent on the throughput test for FFMA in dual-issue mode, and Zhang, Tan, Xue, Li, Zhou and Chen,
"Understanding the GPU Microarchitecture to Achieve Bare-Metal Performance Tuning", PPoPP 2017. See docs/dual_issue.md.
"""

from makespan.estimates.dual_issue.bank_relation import BankResult, Threshold, banks
from makespan.estimates.dual_issue.code_meaning import CodeResult, codes
from makespan.estimates.dual_issue.device import (
    IssueDevice,
    IssueInstruction,
    IssueProgram,
    IssueRun,
    Opcode,
    SmDescription,
)
from makespan.estimates.dual_issue.ffma_bound import FfmaWork, estimate
from makespan.estimates.dual_issue.method import Characteristics, characterise
from makespan.estimates.dual_issue.pattern_ranking import PatternResult, codes_for, patterns
from makespan.estimates.dual_issue.timing import latency, throughput
from makespan.estimates.dual_issue.truth import Truth
from makespan.estimates.dual_issue.virtual import VirtualSm, parse_device

__all__ = [
    "BankResult",
    "Characteristics",
    "CodeResult",
    "FfmaWork",
    "IssueDevice",
    "IssueInstruction",
    "IssueProgram",
    "IssueRun",
    "Opcode",
    "PatternResult",
    "SmDescription",
    "Threshold",
    "Truth",
    "VirtualSm",
    "banks",
    "characterise",
    "codes",
    "codes_for",
    "estimate",
    "latency",
    "parse_device",
    "patterns",
    "throughput",
]
