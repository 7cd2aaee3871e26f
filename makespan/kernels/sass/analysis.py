"""What control flow tells of machine code: its loops with their bounds, its branches, a bounds file to fill in."""

from makespan.kernels.flow import LanguageAnalysis
from makespan.kernels.sass.graph import SassFlow, flow
from makespan.kernels.sass.module import SassKernel

_OF_MACHINE_CODE = LanguageAnalysis[SassKernel, SassFlow](flow, "machine code")
loops = _OF_MACHINE_CODE.loops
branches = _OF_MACHINE_CODE.branches
bounds_for = _OF_MACHINE_CODE.bounds_for
bounds_template = _OF_MACHINE_CODE.bounds_template
