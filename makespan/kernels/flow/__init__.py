"""The theory of control flow: from the graph of a kernel, in any language, to the programs of its warps.

A language package, such as `makespan.kernels.ptx`, gives what `instruction_set` asks for; nothing here knows an
opcode. What follows from the graph is asked for here: loops and their bounds, which branches part lanes, paths,
abstract execution.

networkx is imported when the first graph is asked for, numpy when threads are told apart.
"""

from makespan.kernels.flow.analysis import LanguageAnalysis
from makespan.kernels.flow.branches import SIDES, BranchInfo, TraceStep, branch_infos, parse_takes, read_trace
from makespan.kernels.flow.computation import Computation, SourceOperand
from makespan.kernels.flow.dataflow import Partings, influential_registers, live_registers
from makespan.kernels.flow.divergence import closure, reconvergences
from makespan.kernels.flow.execution import (
    AbstractState,
    Execution,
    LoopEffort,
    PreparedCode,
    TooLongError,
    prepare_execution,
    reverse_postorder,
)
from makespan.kernels.flow.graph import BasicBlock, Flow
from makespan.kernels.flow.grid import (
    WARP_LANES,
    Dim3,
    Launch,
    LaunchInput,
    ParameterValue,
    ThreadRegisters,
    dim3_text,
    find_parameter,
    launch,
)
from makespan.kernels.flow.instruction_set import (
    SHARED_REGISTER,
    AskedBound,
    Barrier,
    ControlTransfer,
    Effect,
    Guard,
    Instruction,
    InstructionSet,
    LoopMark,
    Routine,
    Semantics,
    SourceLine,
    TransferredBound,
)
from makespan.kernels.flow.loop_bound import (
    MAX_ITERATIONS,
    BoundBasis,
    GivenBound,
    LoopBound,
    given_bound,
    loop_bounds,
    read_bounds,
)
from makespan.kernels.flow.loop_info import LoopInfo, bounds_that_fit, loop_infos
from makespan.kernels.flow.loops import LoopNest, goes_around, loop_nest
from makespan.kernels.flow.operations import SECTOR, TimedCode, dram_access, missing_latencies, serving_operations
from makespan.kernels.flow.paths import missing_inputs_error, refuse_unbounded
from makespan.kernels.flow.programs import KernelWarps, PathMode, WarpOptions
from makespan.kernels.flow.runs import ThreadDetail, ThreadGroup, thread_groups
from makespan.kernels.flow.spread import UNIFORM, LaneSpread, LaneSpreads, Surroundings, special_spreads
from makespan.kernels.flow.uniformity import decided_sides, declared_uniform, uniform_branches
from makespan.kernels.flow.walk import BoundedFlow

__all__ = [
    "MAX_ITERATIONS",
    "SECTOR",
    "SHARED_REGISTER",
    "SIDES",
    "UNIFORM",
    "WARP_LANES",
    "AbstractState",
    "AskedBound",
    "Barrier",
    "BasicBlock",
    "BoundBasis",
    "BoundedFlow",
    "BranchInfo",
    "Computation",
    "ControlTransfer",
    "Dim3",
    "Effect",
    "Execution",
    "Flow",
    "GivenBound",
    "Guard",
    "Instruction",
    "InstructionSet",
    "KernelWarps",
    "LaneSpread",
    "LaneSpreads",
    "LanguageAnalysis",
    "Launch",
    "LaunchInput",
    "LoopBound",
    "LoopEffort",
    "LoopInfo",
    "LoopMark",
    "LoopNest",
    "ParameterValue",
    "Partings",
    "PathMode",
    "PreparedCode",
    "Routine",
    "Semantics",
    "SourceLine",
    "SourceOperand",
    "Surroundings",
    "ThreadDetail",
    "ThreadGroup",
    "ThreadRegisters",
    "TimedCode",
    "TooLongError",
    "TraceStep",
    "TransferredBound",
    "WarpOptions",
    "bounds_that_fit",
    "branch_infos",
    "closure",
    "decided_sides",
    "declared_uniform",
    "dim3_text",
    "dram_access",
    "find_parameter",
    "given_bound",
    "goes_around",
    "influential_registers",
    "launch",
    "live_registers",
    "loop_bounds",
    "loop_infos",
    "loop_nest",
    "missing_inputs_error",
    "missing_latencies",
    "parse_takes",
    "prepare_execution",
    "read_bounds",
    "read_trace",
    "reconvergences",
    "refuse_unbounded",
    "reverse_postorder",
    "serving_operations",
    "special_spreads",
    "thread_groups",
    "uniform_branches",
]
