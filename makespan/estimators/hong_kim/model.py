"""The model: cycles of a whole launch from memory and computation warp parallelism, in exact rationals.

MWP is the number of warps of an SM that have memory requests in flight at the same time; CWP the number whose
computation fits into one warp's wait for memory, itself included. Source of all equations: S. Hong and H. Kim, "An
analytical model for a GPU architecture with memory-level and thread-level parallelism awareness", ISCA 2009.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Literal

from makespan.estimators.hong_kim.exact import exact
from makespan.estimators.hong_kim.inputs import HongKimGPU, HongKimKernel
from makespan.estimators.hong_kim.memory import MemoryParallelism, memory_parallelism
from makespan.estimators.hong_kim.residency import Rep, Residency, residency
from makespan.estimators.hong_kim.throughput import CompModel, comp_cycles
from makespan.estimators.hong_kim.throughput import comp_model as chosen_comp_model

Variant = Literal["isca09", "issue-bounded"]


class Case(StrEnum):
    """Which of the published formulas applies."""

    FEW_WARPS = "case 1"
    """neither memory nor computation is saturated: MWP = CWP = N"""
    MEMORY = "case 2"
    """CWP >= MWP, or more computation than memory"""
    COMPUTATION = "case 3"
    """MWP > CWP"""
    COMPUTE_ONLY = "compute-only"
    """no access to device memory"""


class Bound(StrEnum):
    """What the time depends on."""

    MEMORY = "memory"
    COMPUTE = "compute"
    LATENCY = "latency"
    COMPUTE_ONLY = "compute-only"


@dataclass(frozen=True, slots=True)
class HongKimResult:
    """The estimate with every quantity on its way; times are cycles of the SM unless they say seconds.

    Args:
        memory: None for a kernel without accesses to device memory, as are the next three.
        cwp_full: warps whose computation fits into one warp's wait; `cwp` is at most the active warps.
        comp_p: computation between two memory instructions.
        published_exec: by the published formula of the case; `exec_cycles` is what the variant makes of it.
        issue_bound: cycles that an SM needs to issue all instructions: no kernel is faster.
        synch_cost: what barriers add to `exec_cycles`.
        cpi: cycles per instruction of a warp, of one SM.
    """

    variant: Variant
    comp_model: CompModel
    residency: Residency
    memory: MemoryParallelism | None
    mem_insts: Fraction
    total_insts: Fraction
    comp_cycles: Fraction
    cwp_full: Fraction | None
    cwp: Fraction | None
    comp_p: Fraction | None
    case: Case
    bound: Bound
    published_exec: Fraction
    issue_bound: Fraction
    exec_cycles: Fraction
    synch_cost: Fraction
    total_cycles: Fraction
    seconds: Fraction
    cpi: Fraction
    warnings: tuple[str, ...]

    @property
    def mwp(self) -> Fraction | None:
        """Warps of an SM with memory requests in flight; None without memory instructions."""
        return None if self.memory is None else self.memory.mwp

    @property
    def below_issue_bound(self) -> bool:
        """Whether the published formula promises more than the SM can issue."""
        return self.published_exec < self.issue_bound


def estimate(
    gpu: HongKimGPU,
    kernel: HongKimKernel,
    *,
    variant: Variant = "isca09",
    rep: Rep = "real",
    comp_model: CompModel | None = None,
) -> HongKimResult:
    """The likely time of a launch; never a bound.

    Args:
        variant: `isca09` is as published; `issue-bounded` is at least the time to issue all instructions.
        rep: see `Residency`.
        comp_model: see `comp_cycles`.

    Raises:
        InputError: a block that no SM can hold, a parameter that was not measured, or no time between departures.
    """
    resident = residency(gpu, kernel, rep=rep)
    computation = comp_cycles(gpu, kernel, comp_model)
    memory = memory_parallelism(gpu, kernel, resident) if kernel.mem_insts else None
    cwp_full = (memory.mem_cycles + computation) / computation if memory else None  # (12)
    comp_p = computation / kernel.mem_insts if memory else None  # (13)
    case, bound = _case(memory, computation, cwp_full, resident.active_warps)
    published = _exec(case, memory, computation, comp_p, resident)
    issue_bound = computation * resident.active_warps * resident.rep
    cycles = max(published, issue_bound) if variant == "issue-bounded" else published
    synch = _synch_cost(memory, kernel, resident)
    return HongKimResult(
        variant=variant,
        comp_model=chosen_comp_model(gpu, kernel, comp_model),
        residency=resident,
        memory=memory,
        mem_insts=kernel.mem_insts,
        total_insts=kernel.total_insts,
        comp_cycles=computation,
        cwp_full=cwp_full,
        cwp=None if cwp_full is None else min(cwp_full, Fraction(resident.active_warps)),
        comp_p=comp_p,
        case=case,
        bound=bound,
        published_exec=published,
        issue_bound=issue_bound,
        exec_cycles=cycles,
        synch_cost=synch,
        total_cycles=cycles + synch,
        seconds=cycles_to_seconds(cycles + synch, exact(gpu.freq_ghz, "freq_ghz")),
        cpi=_cpi(cycles, gpu, kernel, resident),
        warnings=(*resident.warnings, *_warnings(memory, kernel, published, issue_bound, variant)),
    )


def cycles_to_seconds(cycles: Fraction, freq_ghz: Fraction) -> Fraction:
    """Seconds of so many cycles."""
    return cycles / (freq_ghz * 10**9)


def _case(
    memory: MemoryParallelism | None, computation: Fraction, cwp_full: Fraction | None, warps: int
) -> tuple[Case, Bound]:
    """The case, decided on the values before `min`."""
    if memory is None or cwp_full is None:
        return Case.COMPUTE_ONLY, Bound.COMPUTE_ONLY
    if memory.is_saturated and cwp_full >= warps:
        return Case.FEW_WARPS, Bound.LATENCY
    if min(cwp_full, Fraction(warps)) >= memory.mwp:
        return Case.MEMORY, Bound.MEMORY
    if computation > memory.mem_cycles:
        return Case.MEMORY, Bound.COMPUTE
    return Case.COMPUTATION, Bound.COMPUTE


def _exec(
    case: Case, memory: MemoryParallelism | None, computation: Fraction, comp_p: Fraction | None, resident: Residency
) -> Fraction:
    warps = resident.active_warps
    if memory is None or comp_p is None:
        return computation * warps * resident.rep
    beside = comp_p * max(memory.mwp - 1, Fraction(0))
    if case is Case.FEW_WARPS:
        return (memory.mem_cycles + computation + beside) * resident.rep
    if case is Case.MEMORY:
        return (memory.mem_cycles * warps / memory.mwp + beside) * resident.rep
    return (memory.mem_l + computation * warps) * resident.rep


def _synch_cost(memory: MemoryParallelism | None, kernel: HongKimKernel, resident: Residency) -> Fraction:
    """What the barriers add, (14): the warps of a block leave for the memory one after another."""
    if memory is None:
        return Fraction(0)
    waits = exact(kernel.synch_insts, "synch_insts") * resident.active_blocks_per_sm * resident.rep
    return memory.departure_delay * max(memory.mwp - 1, Fraction(0)) * waits


def _cpi(cycles: Fraction, gpu: HongKimGPU, kernel: HongKimKernel, resident: Residency) -> Fraction:
    warps = Fraction(kernel.threads_per_block, gpu.warp_size)  # as published: not in whole warps
    return cycles / (kernel.total_insts * warps * Fraction(kernel.blocks, resident.active_sms))  # (15)


def _warnings(
    memory: MemoryParallelism | None,
    kernel: HongKimKernel,
    published: Fraction,
    issue_bound: Fraction,
    variant: Variant,
) -> Iterator[str]:
    if 0 < kernel.mem_insts < 1:
        yield (
            f"a thread makes {float(kernel.mem_insts):.3g} accesses to device memory, and the formulas mean at least 1:"
            " they charge more computation between two accesses than there is"
        )
    if memory is not None and memory.mwp < 1:
        yield (
            f"MWP is {float(memory.mwp):.3g}: the bandwidth does not feed one warp of each SM;"
            " MWP - 1 counts as 0 in the formulas"
        )
    if published < issue_bound:
        says = f"the published formula gives {float(published):.10g} cycles, less than the {float(issue_bound):.10g}"
        remedy = " (variant issue-bounded gives those)" if variant == "isca09" else ", which are taken instead"
        yield f"{says} that an SM needs to issue all instructions{remedy}"
