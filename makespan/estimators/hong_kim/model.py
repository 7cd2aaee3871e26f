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
from makespan.estimators.hong_kim.memory import memory_parallelism
from makespan.estimators.hong_kim.residency import Rep, residency
from makespan.estimators.hong_kim.row import Row, Rows
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
    """The estimate with every symbol on its way, by its name in the paper; times are cycles of the SM.

    Beside the paper's: `published exec` by the formula of the case, `exec` what the variant makes of it, `issue_bound`
    what an SM needs to issue all instructions, `D_bw` the distance of requests that the bandwidth alone would cause.
    """

    rows: Rows
    case: Case
    bound: Bound
    warnings: tuple[str, ...]
    seconds: Fraction

    def __getitem__(self, symbol: str) -> Fraction:
        """The number of a symbol, such as MWP, N or CPI; those of memory are there only if there are accesses to it."""
        return self.rows.value(symbol)

    @property
    def total_cycles(self) -> Fraction:
        """Execution and synchronisation."""
        return self["exec"] + self["Synch_cost"]

    @property
    def below_issue_bound(self) -> bool:
        """Whether the published formula promises more than the SM can issue."""
        return self["published exec"] < self["issue_bound"]


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
        rep: see `Rep`.
        comp_model: see `comp_cycles`.

    Raises:
        InputError: a block that no SM can hold, a parameter that was not measured, or no time between departures.
    """
    rows, doubts = residency(gpu, kernel, rep)
    counted = [Row("mem_insts", kernel.mem_insts), Row("total_insts", kernel.total_insts, "", "without barriers")]
    rows.update(Rows(counted))
    if kernel.mem_insts:
        rows.update(memory_parallelism(gpu, kernel, rows))
    uniform = chosen_comp_model(gpu, kernel, comp_model) == "uniform"
    charged = "issue_cycles for each instruction" if uniform else "by the table of throughputs"
    computation = comp_cycles(gpu, kernel, comp_model)
    rows.update(Rows([Row("Comp_cycles", computation, "cycles", f"(11) {charged}")]))
    if kernel.mem_insts:
        cwp_full = (rows.value("Mem_cycles") + computation) / computation
        cwp = Row("CWP", min(cwp_full, rows.value("N")), "warps", "(12)")
        comp_p = Row("Comp_p", computation / kernel.mem_insts, "cycles", "(13)")
        rows.update(Rows([Row("CWP_full", cwp_full, "warps", "(12)"), cwp, comp_p]))
    case, bound = _case(rows)
    published, issue_bound = _exec(case, rows), computation * rows.value("N") * rows.value("rep")
    cycles = max(published, issue_bound) if variant == "issue-bounded" else published
    synch = _synch_cost(kernel, rows)
    times = [
        Row("published exec", published, "cycles", "by the formula of the case"),
        Row("issue_bound", issue_bound, "cycles", "to issue all instructions"),
        Row("exec", cycles, "cycles"),
        Row("Synch_cost", synch, "cycles", "(14)"),
        Row("CPI", _cpi(cycles, gpu, kernel, rows), "cycles", "(15) per instruction of a warp"),
    ]
    rows.update(Rows(times))
    warnings = (*doubts, *_warnings(kernel, rows, variant))
    return HongKimResult(
        rows, case, bound, warnings, cycles_to_seconds(cycles + synch, exact(gpu.freq_ghz, "freq_ghz"))
    )


def cycles_to_seconds(cycles: Fraction, freq_ghz: Fraction) -> Fraction:
    """Seconds of so many cycles."""
    return cycles / (freq_ghz * 10**9)


def _case(rows: Rows) -> tuple[Case, Bound]:
    """The case, decided on the values before `min`."""
    if "MWP" not in rows:
        return Case.COMPUTE_ONLY, Bound.COMPUTE_ONLY
    warps = rows.value("N")
    full = (rows.value("MWP_without_BW_full"), rows.value("MWP_peak_BW"), rows.value("CWP_full"))
    if min(full) >= warps:
        return Case.FEW_WARPS, Bound.LATENCY
    if rows.value("CWP") >= rows.value("MWP"):
        return Case.MEMORY, Bound.MEMORY
    if rows.value("Comp_cycles") > rows.value("Mem_cycles"):
        return Case.MEMORY, Bound.COMPUTE
    return Case.COMPUTATION, Bound.COMPUTE


def _exec(case: Case, rows: Rows) -> Fraction:
    warps, rep, computation = rows.value("N"), rows.value("rep"), rows.value("Comp_cycles")
    if case is Case.COMPUTE_ONLY:
        return computation * warps * rep
    if case is Case.COMPUTATION:
        return (rows.value("Mem_L") + computation * warps) * rep
    mem_cycles, mwp = rows.value("Mem_cycles"), rows.value("MWP")
    beside = rows.value("Comp_p") * max(mwp - 1, Fraction(0))
    if case is Case.FEW_WARPS:
        return (mem_cycles + computation + beside) * rep
    return (mem_cycles * warps / mwp + beside) * rep


def _synch_cost(kernel: HongKimKernel, rows: Rows) -> Fraction:
    """What the barriers add, (14): the warps of a block leave for the memory one after another."""
    if "MWP" not in rows:
        return Fraction(0)
    waits = exact(kernel.synch_insts, "synch_insts") * rows.value("active_blocks") * rows.value("rep")
    return rows.value("Departure_delay") * max(rows.value("MWP") - 1, Fraction(0)) * waits


def _cpi(cycles: Fraction, gpu: HongKimGPU, kernel: HongKimKernel, rows: Rows) -> Fraction:
    warps = Fraction(kernel.threads_per_block, gpu.warp_size)  # as published: not in whole warps
    return cycles / (kernel.total_insts * warps * (kernel.blocks / rows.value("active_sms")))  # (15)


def _warnings(kernel: HongKimKernel, rows: Rows, variant: Variant) -> Iterator[str]:
    published, issue_bound = rows.value("published exec"), rows.value("issue_bound")
    if 0 < kernel.mem_insts < 1:
        yield (
            f"a thread makes {float(kernel.mem_insts):.3g} accesses to device memory, and the formulas mean at least 1:"
            " they charge more computation between two accesses than there is"
        )
    if "MWP" in rows and rows.value("MWP") < 1:
        yield (
            f"MWP is {float(rows.value('MWP')):.3g}: the bandwidth does not feed one warp of each SM;"
            " MWP - 1 counts as 0 in the formulas"
        )
    if published < issue_bound:
        says = f"the published formula gives {float(published):.10g} cycles, less than the {float(issue_bound):.10g}"
        remedy = " (variant issue-bounded gives those)" if variant == "isca09" else ", which are taken instead"
        yield f"{says} that an SM needs to issue all instructions{remedy}"
