"""The theory of control flow: from the graph of a kernel, in any language, to the programs of its warps.

A language package, such as `makespan.kernels.ptx`, gives what `instruction_set` asks for; nothing here knows an
opcode. What follows from the graph is asked for here: loops and their bounds, which branches part lanes, paths,
abstract execution.

networkx is imported when the first graph is asked for, numpy when threads are told apart.
"""

from makespan.kernels.flow.analysis import Analysis
from makespan.kernels.flow.branches import SIDES, BranchInfo, Step, branch_infos, read_trace, takes
from makespan.kernels.flow.computation import Computation, Source
from makespan.kernels.flow.dataflow import influential
from makespan.kernels.flow.divergence import Reconvergence, closure, reconvergences
from makespan.kernels.flow.execution import Code, Effort, Execution, Front, TooLongError, order, prepare
from makespan.kernels.flow.graph import Block, Flow
from makespan.kernels.flow.grid import (
    WARP_LANES,
    Extent,
    Launch,
    LaunchInput,
    Parameter,
    ThreadRegisters,
    launch,
    shown,
)
from makespan.kernels.flow.instruction_set import (
    SHARED_REGISTER,
    Asked,
    Barrier,
    Effect,
    Guard,
    Instruction,
    InstructionSet,
    Mark,
    Routine,
    Semantics,
    SourceLine,
    Told,
    Transfer,
)
from makespan.kernels.flow.loop_bound import (
    MAX_ITERATIONS,
    Bound,
    By,
    GivenBound,
    given_bound,
    loop_bounds,
    read_bounds,
)
from makespan.kernels.flow.loop_info import LoopInfo, fitting, loop_infos
from makespan.kernels.flow.loops import Loop, Nest, goes_around, nest
from makespan.kernels.flow.operations import SECTOR, TimedCode, access, missing_latencies, served
from makespan.kernels.flow.paths import lacking, refuse_unbounded
from makespan.kernels.flow.programs import Paths, Warps
from makespan.kernels.flow.spread import UNIFORM, Spread, Spreads, Surroundings
from makespan.kernels.flow.threads import Detail, Threads, thread_groups
from makespan.kernels.flow.uniformity import decided, said_uniform, uniform_branches
from makespan.kernels.flow.walk import Terrain

__all__ = [
    "MAX_ITERATIONS",
    "SECTOR",
    "SHARED_REGISTER",
    "SIDES",
    "UNIFORM",
    "WARP_LANES",
    "Analysis",
    "Asked",
    "Barrier",
    "Block",
    "Bound",
    "BranchInfo",
    "By",
    "Code",
    "Computation",
    "Detail",
    "Effect",
    "Effort",
    "Execution",
    "Extent",
    "Flow",
    "Front",
    "GivenBound",
    "Guard",
    "Instruction",
    "InstructionSet",
    "Launch",
    "LaunchInput",
    "Loop",
    "LoopInfo",
    "Mark",
    "Nest",
    "Parameter",
    "Paths",
    "Reconvergence",
    "Routine",
    "Semantics",
    "Source",
    "SourceLine",
    "Spread",
    "Spreads",
    "Step",
    "Surroundings",
    "Terrain",
    "ThreadRegisters",
    "Threads",
    "TimedCode",
    "Told",
    "TooLongError",
    "Transfer",
    "Warps",
    "access",
    "branch_infos",
    "closure",
    "decided",
    "fitting",
    "given_bound",
    "goes_around",
    "influential",
    "lacking",
    "launch",
    "loop_bounds",
    "loop_infos",
    "missing_latencies",
    "nest",
    "order",
    "prepare",
    "read_bounds",
    "read_trace",
    "reconvergences",
    "refuse_unbounded",
    "said_uniform",
    "served",
    "shown",
    "takes",
    "thread_groups",
    "uniform_branches",
]
