"""What control flow tells of a PTX kernel: its loops with their bounds, its branches, a bounds file to fill in."""

from makespan.kernels.flow import LanguageAnalysis
from makespan.kernels.ptx.graph import PtxFlow, flow
from makespan.kernels.ptx.module import PtxKernel

_OF_PTX = LanguageAnalysis[PtxKernel, PtxFlow](flow, "PTX")
loops = _OF_PTX.loops
branches = _OF_PTX.branches
bounds_for = _OF_PTX.bounds_for
bounds_template = _OF_PTX.bounds_template
