"""The model: cycles of a whole launch from memory and computation warp parallelism, in exact rationals.

MWP is the number of warps of an SM that have memory requests in flight at the same time; CWP the number whose
computation fits into one warp's wait for memory, itself included. Source of all equations: S. Hong and H. Kim, "An
analytical model for a GPU architecture with memory-level and thread-level parallelism awareness", ISCA 2009; their
numbers stand in the notes of the symbols. Source of the throughputs: an undated slide deck by Ostapenko, Southern
Federal University, which ports the model to an AMD GPU.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from math import ceil, isfinite
from types import MappingProxyType
from typing import Literal, TypeAlias

from makespan.estimates.estimate import ModelQuantity, Origin
from makespan.host.errors import InputError
from makespan.model.machine.occupancy import Occupancy, SmLimits, occupancy
from makespan.model.machine.values import shown

RealNumber: TypeAlias = int | float | Fraction

# Larger numbers, and positive ones below its inverse, are typing errors; within it no result overflows a float.
LARGEST = 10**18


def exact(value: object, what: str, *, positive: bool = False) -> Fraction:
    """Return the number, which must be finite and not negative; `what` names it in messages.

    A float is the shortest decimal that prints like it: 1.35 is 27/20, as its writer meant.

    Raises:
        InputError: no number, or one out of range.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | Fraction):  # True is an int to Python
        raise InputError(f"{what} must be a number, not {shown(value)}")
    if isinstance(value, float) and not isfinite(value):
        raise InputError(f"{what} must be finite, not {value}")
    text = str(value) if isinstance(value, Fraction) else shown(value)
    if value < 0 or (positive and value == 0):
        raise InputError(f"{what} must be {'above 0' if positive else 'at least 0'}, not {text}")
    if value > LARGEST or 0 < value * LARGEST < 1:  # so that no result overflows a float
        raise InputError(f"{what} must be within 1e-18..1e18, not {text}")
    # the decimal that was meant, not its binary neighbour
    return Fraction(repr(float(value))) if isinstance(value, float) else Fraction(value)


def whole(value: object, what: str, *, least: int = 1) -> int:
    """Return the whole number of at least `least`; raises as `exact` does."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise InputError(f"{what} must be a whole number, not {shown(value)}")
    if not least <= value <= LARGEST:
        raise InputError(f"{what} must be at least {least} and at most 1e18, not {shown(value)}")
    return value


LANE_BYTES = 4  # of a load of unknown width: one float a lane, 128 bytes for a warp of 32
_MEASURED = ("mem_ld", "departure_del_coal", "departure_del_uncoal", "issue_cycles")


@dataclass(frozen=True, slots=True, kw_only=True)
class HongKimGPU:
    """A GPU as the model sees it. NVIDIA's words; on AMD an SM is a compute unit, a warp a wavefront.

    Args:
        limits: what an SM holds, and the threads of a warp.
        issue_cycles: to issue one instruction for a warp; None if only operations of the `throughput` table are issued.
        freq_ghz: clock of the SM.
        mem_bw_gbs: of the device memory, 1 GB = 10^9 bytes.
        mem_ld: cycles until a load of an idle memory is answered; None until measured, as are the next two.
        departure_del_coal: cycles, at least, between two coalesced requests of an SM.
        departure_del_uncoal: cycles, at least, between two transactions of an uncoalesced request.
        uncoal_per_mw: transactions of an uncoalesced request, for kernels of which they are not known; None is one for
            each thread of a warp.
        throughput: operations per cycle and SM, by operation, where they differ from the issue of an instruction.

    Raises:
        InputError: a number that is negative, infinite or none, or zero where that means nothing.
    """

    limits: SmLimits
    sms: int
    freq_ghz: RealNumber
    mem_bw_gbs: RealNumber
    issue_cycles: RealNumber | None = None
    mem_ld: RealNumber | None = None
    departure_del_coal: RealNumber | None = None
    departure_del_uncoal: RealNumber | None = None
    uncoal_per_mw: RealNumber | None = None
    throughput: Mapping[str, RealNumber] = field(default_factory=dict)
    name: str = "GPU"

    def __post_init__(self) -> None:
        whole(self.sms, "sms")
        for name in ("freq_ghz", "mem_bw_gbs"):
            exact(getattr(self, name), name, positive=True)
        for name in _MEASURED:
            if getattr(self, name) is not None:
                exact(getattr(self, name), name, positive=name in ("issue_cycles", "mem_ld"))
        if self.uncoal_per_mw is not None and exact(self.uncoal_per_mw, "uncoal_per_mw") < 1:
            raise InputError(f"uncoal_per_mw must be at least 1, not {self.uncoal_per_mw}")
        for operation, rate in self.throughput.items():
            exact(rate, f"throughput of {operation}", positive=True)
        # a copy: the caller may change its own
        object.__setattr__(self, "throughput", MappingProxyType(dict(self.throughput)))

    @property
    def warp_size(self) -> int:
        """Return the number of threads of a warp."""
        return self.limits.warp_size

    def measured(self, name: str) -> Fraction:
        """Return a parameter in cycles that a microbenchmark measures.

        Raises:
            InputError: it was not measured; names the microbenchmark.
        """
        value = getattr(self, name)
        if value is None:
            command = f"makespan measure {'throughput' if name == 'issue_cycles' else 'memory'}"
            raise InputError(f"GPU {self.name}: {name} is not known; measure it with `{command}`, or give it")
        return exact(value, name)


@dataclass(frozen=True, slots=True, kw_only=True)
class HongKimKernel:
    """A kernel and its launch; instructions are dynamic, of one thread, and may be means.

    Args:
        comp_insts: all instructions but accesses to device memory and barriers.
        coal_mem_insts: accesses to device memory that are coalesced; `uncoal_mem_insts` those that are not.
        synch_insts: barriers, which count neither as computation nor as memory.
        uncoal_per_mw: transactions of one uncoalesced request of a warp; None leaves it to the GPU.
        load_bytes_per_warp: of a request; None is 4 bytes for each thread of a warp.
        regs_per_thread: None if not known, which then does not limit the resident blocks.
        smem_per_block: bytes of shared memory, static and dynamic.
        active_blocks_per_sm: resident blocks, in place of what occupancy and grid allow.
        operations: those among the `comp_insts` that have names in a table of throughputs.

    Raises:
        InputError: a number out of range, or no instruction at all.
    """

    threads_per_block: int
    blocks: int
    comp_insts: RealNumber
    coal_mem_insts: RealNumber = 0
    uncoal_mem_insts: RealNumber = 0
    synch_insts: RealNumber = 0
    uncoal_per_mw: RealNumber | None = None
    load_bytes_per_warp: RealNumber | None = None
    regs_per_thread: int | None = None
    smem_per_block: int | None = None
    active_blocks_per_sm: int | None = None
    operations: Mapping[str, RealNumber] = field(default_factory=dict)

    def __post_init__(self) -> None:
        whole(self.threads_per_block, "threads_per_block")
        whole(self.blocks, "blocks")
        counts = [exact(getattr(self, name), name) for name in ("comp_insts", "coal_mem_insts", "uncoal_mem_insts")]
        exact(self.synch_insts, "synch_insts")
        if not sum(counts):
            raise InputError("comp_insts + coal_mem_insts + uncoal_mem_insts is 0: a kernel has instructions")
        if self.uncoal_per_mw is not None and exact(self.uncoal_per_mw, "uncoal_per_mw") < 1 and counts[2]:
            raise InputError(
                f"uncoal_per_mw must be at least 1 where requests are uncoalesced, not {self.uncoal_per_mw}"
            )
        if self.load_bytes_per_warp is not None:
            exact(self.load_bytes_per_warp, "load_bytes_per_warp", positive=True)
        for name in ("regs_per_thread", "smem_per_block"):
            if getattr(self, name) is not None:
                whole(getattr(self, name), name, least=0)
        if self.active_blocks_per_sm is not None:
            whole(self.active_blocks_per_sm, "active_blocks_per_sm")
        named = sum(exact(count, f"operations {name}") for name, count in self.operations.items())
        if named > counts[0]:  # named operations are a part of comp_insts
            raise InputError(f"operations: {float(named):g} are more than the {float(counts[0]):g} comp_insts")
        object.__setattr__(self, "operations", MappingProxyType(dict(self.operations)))

    @property
    def mem_insts(self) -> Fraction:
        """Return the number of accesses to device memory."""
        return Fraction(exact(self.coal_mem_insts, "") + exact(self.uncoal_mem_insts, ""))

    @property
    def total_insts(self) -> Fraction:
        """Return all instructions but barriers."""
        return self.mem_insts + exact(self.comp_insts, "")


CompModel = Literal["uniform", "throughput"]


def comp_cycles(gpu: HongKimGPU, kernel: HongKimKernel, model: CompModel | None = None) -> Fraction:
    """Return the cycles in which one warp issues all its instructions, (11).

    Args:
        model: `uniform` charges `issue_cycles` for every instruction, as published for NVIDIA; `throughput` charges a
            warp-wide operation of the table warp_size / throughput. None: the table, if it has an operation of the
            kernel.

    Raises:
        InputError: `throughput` for a kernel none of whose operations the table names.
    """
    known = priced_operations(gpu, kernel, model)
    others = kernel.total_insts - sum(known.values())  # instructions without a price of their own
    priced = (count * gpu.warp_size / exact(gpu.throughput[name], name) for name, count in known.items())
    return (others * gpu.measured("issue_cycles") if others else Fraction(0)) + sum(priced)


def priced_operations(gpu: HongKimGPU, kernel: HongKimKernel, model: CompModel | None) -> dict[str, Fraction]:
    """Return the operations of a kernel that `comp_cycles` charges by the table; raises as it does."""
    named = kernel.operations.items() if model != "uniform" else ()
    known = {name: exact(count, name) for name, count in named if name in gpu.throughput}
    if model == "throughput" and not known:
        raise InputError(
            f"GPU {gpu.name}: the throughput model has no operation of this kernel to charge for;"
            f" known: {', '.join(gpu.throughput) or 'none'}; measure them with `makespan measure throughput`"
        )
    return known


def operations_per_cycle(
    *, global_size: int, operations: int, seconds: RealNumber, clock_mhz: RealNumber, compute_units: int
) -> Fraction:
    """Return the throughput of one SM or compute unit, in operations per cycle.

    Args:
        global_size: work-items, or threads.
        operations: of each of them; an operation on a vector counts for its components.
        seconds: for all of them.

    Source: the slide deck, global_work_size N / (T GpuMHz computeUnits 10^6).
    """
    work = whole(global_size, "global_size") * whole(operations, "operations")
    # MHz, so 10^6
    cycles = exact(seconds, "seconds", positive=True) * exact(clock_mhz, "clock_mhz", positive=True) * 10**6
    return Fraction(work) / (cycles * whole(compute_units, "compute_units"))


Variant = Literal["isca09", "issue-bounded"]
Rep = Literal["real", "ceil"]  # how often an SM is filled: a real number as published, or whole waves

_UNCOAL_NOTE = (
    "(8) charges an uncoalesced request as much as a coalesced one, although it moves a segment for each transaction:"
    " as published"
)


class Case(StrEnum):
    """The published formula that applies."""

    FEW_WARPS = "case 1"  # neither memory nor computation is saturated: MWP = CWP = N
    MEMORY = "case 2"  # CWP >= MWP, or more computation than memory
    COMPUTATION = "case 3"  # MWP > CWP
    COMPUTE_ONLY = "compute-only"  # no access to device memory


class Bound(StrEnum):
    """The resource that the time depends on."""

    MEMORY = "memory"
    COMPUTE = "compute"
    LATENCY = "latency"
    COMPUTE_ONLY = "compute-only"


class Symbols(dict[str, ModelQuantity]):
    """The symbols of the model with their values, in the order of the computation; `exact` keeps them unrounded."""

    def __init__(self) -> None:
        super().__init__()
        self.exact: dict[str, Fraction] = {}

    def put(self, name: str, value: Fraction | int, unit: str = "", note: str = "") -> Fraction:
        """Record a symbol and return its value."""
        shown = value if isinstance(value, int) else float(value)
        self[name] = ModelQuantity(name, shown, unit, Origin.DERIVED, note)
        self.exact[name] = Fraction(value)
        return self.exact[name]


@dataclass(frozen=True, slots=True)
class HongKimResult:
    """The estimate with every symbol on its way, by its name in the paper; times are cycles of the SM.

    Beside the paper's: `published exec` by the formula of the case, `exec` what the variant makes of it, `issue_bound`
    what an SM needs to issue all instructions, `D_bw` the distance of requests that the bandwidth alone would cause.
    """

    symbols: Symbols
    case: Case
    bound: Bound
    warnings: tuple[str, ...]
    seconds: Fraction

    def __getitem__(self, symbol: str) -> Fraction:
        """Return the value of a symbol, such as MWP, N or CPI; those of memory exist only if the kernel accesses it."""
        return self.symbols.exact[symbol]

    @property
    def total_cycles(self) -> Fraction:
        """Return the cycles of execution and synchronisation."""
        return self["exec"] + self["Synch_cost"]

    @property
    def below_issue_bound(self) -> bool:
        """Return whether the published formula promises more than the SM can issue."""
        return self["published exec"] < self["issue_bound"]


def estimate(
    gpu: HongKimGPU,
    kernel: HongKimKernel,
    *,
    variant: Variant = "isca09",
    rep: Rep = "real",
    comp_model: CompModel | None = None,
) -> HongKimResult:
    """Return the likely time of a launch; never a bound.

    Args:
        variant: `isca09` is as published; `issue-bounded` is at least the time to issue all instructions.
        rep: see `Rep`.
        comp_model: see `comp_cycles`.

    Raises:
        InputError: a block that no SM can hold, a parameter that was not measured, or no time between departures.
    """
    symbols = Symbols()
    put, of = symbols.put, symbols.exact
    warnings = [*_residency(symbols, gpu, kernel, rep)]
    memory_insts = put("mem_insts", kernel.mem_insts)
    put("total_insts", kernel.total_insts, "", "without barriers")
    if memory_insts:
        _memory_parallelism(symbols, gpu, kernel)
    by_table = priced_operations(gpu, kernel, comp_model)
    charged = "by the table of throughputs" if by_table else "issue_cycles for each instruction"
    computation = put("Comp_cycles", comp_cycles(gpu, kernel, comp_model), "cycles", f"(11) {charged}")
    if memory_insts:
        full = put("CWP_full", (of["Mem_cycles"] + computation) / computation, "warps", "(12)")
        put("CWP", min(full, of["N"]), "warps", "(12)")
        put("Comp_p", computation / memory_insts, "cycles", "(13)")
    case, bound = _case(of)
    published = put("published exec", _exec(case, of), "cycles", "by the formula of the case")
    issue_bound = put("issue_bound", computation * of["N"] * of["rep"], "cycles", "to issue all instructions")
    cycles = put("exec", max(published, issue_bound) if variant == "issue-bounded" else published, "cycles")
    synch = put("Synch_cost", _synch_cost(kernel, of), "cycles", "(14)")
    warps = Fraction(kernel.threads_per_block, gpu.warp_size)  # as published: not in whole warps
    cpi = cycles / (kernel.total_insts * warps * (kernel.blocks / of["active_sms"]))
    put("CPI", cpi, "cycles", "(15) per instruction of a warp")
    warnings += _warnings(of, variant)
    seconds = cycles_to_seconds(cycles + synch, exact(gpu.freq_ghz, "freq_ghz"))
    return HongKimResult(symbols, case, bound, tuple(warnings), seconds)


def cycles_to_seconds(cycles: Fraction, freq_ghz: Fraction) -> Fraction:
    """Return the seconds that these cycles take."""
    return cycles / (freq_ghz * 10**9)


def _residency(symbols: Symbols, gpu: HongKimGPU, kernel: HongKimKernel, rep: Rep) -> Iterator[str]:
    """Put down the resident blocks and warps of an SM and how often it is filled (table 1); yield the warnings.

    Raises:
        InputError: a block that no SM can hold, or no known limit and no `active_blocks_per_sm`.
    """
    given = kernel.active_blocks_per_sm
    warps_per_block = gpu.limits.warps_of(kernel.threads_per_block)
    found = _occupancy(gpu, kernel, warps_per_block)
    fitting = None if found is None else found.blocks_per_sm
    supplied = ceil(Fraction(kernel.blocks, gpu.sms))
    blocks = given or min(filter(None, (fitting, supplied)))  # a limit that is not known does not count
    sms = min(gpu.sms, kernel.blocks)  # a small grid leaves SMs without a block
    waves = Fraction(kernel.blocks, blocks * sms)  # a last, partial wave counts by its share, as published
    symbols.put("warps_per_block", warps_per_block)
    if fitting is not None:
        symbols.put("fitting_blocks_per_sm", fitting, "", "by what an SM holds")
    symbols.put("active_blocks", blocks, "", "of an SM")
    symbols.put("active_sms", sms)
    symbols.put("N", blocks * warps_per_block, "warps", "active warps of an SM")
    symbols.put("rep", Fraction(ceil(waves)) if rep == "ceil" else waves, "", "how often every SM is filled")
    if kernel.regs_per_thread is None and given is None and gpu.limits.registers is not None:
        yield "the registers of a thread are not known, and do not limit the resident blocks (--regs, --ptxas)"
    if found is not None and given is None:
        yield from found.notes
    if fitting is not None and blocks > fitting:
        yield f"{blocks} active blocks per SM were given, but only {fitting} fit"
    if blocks > supplied:
        yield f"{blocks} active blocks per SM were given, but the grid supplies at most {supplied} to an SM"
    if waves < 1 and rep == "real":
        yield (
            f"the grid is {float(waves):.3g} of a wave, and the published model charges no more than that"
            " (--rep ceil: a whole wave)"
        )


def _occupancy(gpu: HongKimGPU, kernel: HongKimKernel, warps_per_block: int) -> Occupancy | None:
    limits, registers, shared_bytes = gpu.limits, kernel.regs_per_thread, kernel.smem_per_block
    # a limit binds only if the demand is known, too
    by_demand = (limits.registers and registers) or (limits.shared_bytes and shared_bytes)
    # a given number needs no limit
    if kernel.active_blocks_per_sm is not None and not (limits.blocks or limits.warps or by_demand):
        return None
    try:
        return occupancy(limits, warps_per_block=warps_per_block, registers=registers, shared_bytes=shared_bytes)
    except InputError as error:
        raise InputError(f"GPU {gpu.name}: {error}") from None


def _memory_parallelism(symbols: Symbols, gpu: HongKimGPU, kernel: HongKimKernel) -> None:
    """Put down MWP and what it is computed from, for a kernel that has memory instructions: (1) to (10).

    A departure delay is asked for only where the kernel has requests of its kind.

    Raises:
        InputError: a parameter that was not measured, or no time at all between departures.
    """
    put, of = symbols.put, symbols.exact
    coal, uncoal = exact(kernel.coal_mem_insts, "coal_mem_insts"), exact(kernel.uncoal_mem_insts, "uncoal_mem_insts")
    transactions = kernel.uncoal_per_mw if kernel.uncoal_per_mw is not None else gpu.uncoal_per_mw
    per_request = exact(gpu.warp_size if transactions is None else transactions, "uncoal_per_mw")
    freq, bandwidth = exact(gpu.freq_ghz, "freq_ghz"), exact(gpu.mem_bw_gbs, "mem_bw_gbs")
    if uncoal:
        put("uncoal_per_mw used", per_request, "transactions")
    put("coal_per_mw", 1, "transactions", "a constant, in no equation")
    used = exact(kernel.load_bytes_per_warp or LANE_BYTES * gpu.warp_size, "load_bytes_per_warp")
    load_bytes = put("load_bytes_per_warp used", used, "B")
    mem_ld = gpu.measured("mem_ld")
    del_coal = gpu.measured("departure_del_coal") if coal else Fraction(0)
    del_uncoal = gpu.measured("departure_del_uncoal") if uncoal else Fraction(0)
    mem_l_uncoal = mem_ld + (per_request - 1) * del_uncoal  # the last transaction departs that much later
    if uncoal:
        put("Mem_L_Uncoal", mem_l_uncoal, "cycles", "(1)")
    put("Mem_L_Coal", mem_ld, "cycles", "(2)")
    weight_uncoal = put("Weight_uncoal", uncoal / (uncoal + coal), "", "(3)")
    weight_coal = put("Weight_coal", coal / (uncoal + coal), "", "(3)")
    mem_l = put("Mem_L", mem_l_uncoal * weight_uncoal + mem_ld * weight_coal, "cycles", "(4)")
    delay = put("Departure_delay", del_uncoal * per_request * weight_uncoal + del_coal * weight_coal, "cycles", "(5)")
    if not delay:
        raise InputError(
            f"GPU {gpu.name}: the departure delay is 0 cycles"
            f" (departure_del_coal {gpu.departure_del_coal}, departure_del_uncoal {gpu.departure_del_uncoal}):"
            " no memory takes requests at once; measure it with `makespan measure memory`"
        )
    full = put("MWP_without_BW_full", mem_l / delay, "warps", "(6)")
    without = put("MWP_without_BW", min(full, of["N"]), "warps", "(7)")
    per_warp = put("BW_per_warp", freq * load_bytes / mem_l, "GB/s", _UNCOAL_NOTE if uncoal else "(8)")
    peak = put("MWP_peak_BW", bandwidth / (per_warp * of["active_sms"]), "warps", "(8)")
    by_bandwidth = load_bytes * freq * of["active_sms"] / bandwidth  # cycles: B GHz / (GB/s), all SMs at once
    limit = "bandwidth" if by_bandwidth > delay else "request rate"
    put("D_bw", by_bandwidth, "cycles", f"distance of requests by bandwidth; what limits is the {limit}")
    put("MWP", min(without, peak), "warps", "(9)")
    put("Mem_cycles", mem_l_uncoal * uncoal + mem_ld * coal, "cycles", "(10)")


def _case(of: dict[str, Fraction]) -> tuple[Case, Bound]:
    """Return the case, decided on the values before `min`."""
    if "MWP" not in of:
        return Case.COMPUTE_ONLY, Bound.COMPUTE_ONLY
    # with what `min` cuts to N, this reads MWP = CWP = N
    if min(of["MWP_without_BW_full"], of["MWP_peak_BW"], of["CWP_full"]) >= of["N"]:
        return Case.FEW_WARPS, Bound.LATENCY
    if of["CWP"] >= of["MWP"]:
        return Case.MEMORY, Bound.MEMORY
    if of["Comp_cycles"] > of["Mem_cycles"]:
        return Case.MEMORY, Bound.COMPUTE
    return Case.COMPUTATION, Bound.COMPUTE


def _exec(case: Case, of: dict[str, Fraction]) -> Fraction:
    warps, rep, computation = of["N"], of["rep"], of["Comp_cycles"]
    if case is Case.COMPUTE_ONLY:
        return computation * warps * rep  # the published formulas divide by the accesses
    if case is Case.COMPUTATION:  # one wait for memory shows, all others are behind computation
        return (of["Mem_L"] + computation * warps) * rep
    beside = of["Comp_p"] * max(of["MWP"] - 1, Fraction(0))  # computation of the warps that wait beside the first
    if case is Case.FEW_WARPS:
        return (of["Mem_cycles"] + computation + beside) * rep
    return (of["Mem_cycles"] * warps / of["MWP"] + beside) * rep  # MWP warps share one wait for memory


def _synch_cost(kernel: HongKimKernel, of: dict[str, Fraction]) -> Fraction:
    """Return the cycles that the barriers add: the warps of a block leave for the memory one after another."""
    if "MWP" not in of:
        return Fraction(0)
    waits = exact(kernel.synch_insts, "synch_insts") * of["active_blocks"] * of["rep"]
    return of["Departure_delay"] * max(of["MWP"] - 1, Fraction(0)) * waits


def _warnings(of: dict[str, Fraction], variant: Variant) -> Iterator[str]:
    if 0 < of["mem_insts"] < 1:
        yield (
            f"a thread makes {float(of['mem_insts']):.3g} accesses to device memory, and the formulas mean at least 1:"
            " they charge more computation between two accesses than there is"
        )
    if of.get("MWP", 1) < 1:
        yield (
            f"MWP is {float(of['MWP']):.3g}: the bandwidth does not feed one warp of each SM;"
            " MWP - 1 counts as 0 in the formulas"
        )
    published, issue_bound = float(of["published exec"]), float(of["issue_bound"])
    if of["published exec"] < of["issue_bound"]:
        says = f"the published formula gives {published:.10g} cycles, less than the {issue_bound:.10g}"
        remedy = " (variant issue-bounded gives those)" if variant == "isca09" else ", which are taken instead"
        yield f"{says} that an SM needs to issue all instructions{remedy}"
