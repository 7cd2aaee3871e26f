"""What control flow tells of a PTX kernel: its loops with their bounds, its branches, a bounds file to fill in."""

from makespan.kernels.flow import Analysis
from makespan.kernels.ptx.graph import PtxFlow, flow
from makespan.kernels.ptx.module import Kernel

_OF_PTX = Analysis[Kernel, PtxFlow](flow, "PTX")
loops = _OF_PTX.loops
branches = _OF_PTX.branches
bounds_for = _OF_PTX.bounds_for
bounds_template = _OF_PTX.bounds_template
