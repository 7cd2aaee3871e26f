"""A launch for the model: counts from a profile or a text, numbers of the GPU, and the estimate for a reader."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from makespan.estimates.estimate import Estimate, ModelQuantity, Origin, Term, from_gpu
from makespan.estimates.hong_kim.model import (
    Bound,
    CompModel,
    HongKimGPU,
    HongKimKernel,
    HongKimResult,
    Rep,
    Variant,
    estimate,
    exact,
)
from makespan.estimates.kinds import InstructionKind
from makespan.estimates.profile import Coalescing, KernelProfile, MemoryOperation, Rule
from makespan.host.errors import InputError
from makespan.model.machine.gpus import DatumStatus, Gpu, parse_number
from makespan.model.machine.values import shown

METHOD = "hong-kim"
_LIMITING = {
    Bound.MEMORY: "memory: more warps wait for it than it serves at a time",
    Bound.COMPUTE: "computation: it hides the memory",
    Bound.LATENCY: "latency: too few warps to keep memory or computation busy",
    Bound.COMPUTE_ONLY: "computation: there is no access to device memory",
}
_DEVICE = {"sms": "sms", "freq_ghz": "clock_ghz", "mem_bw_gbs": "mem_bw_gbs", "warp_size": "warp_size"}
_MEASURED = {
    name: f"hong_kim.{name}"
    for name in ("mem_ld", "departure_del_coal", "departure_del_uncoal", "issue_cycles", "uncoal_per_mw")
}
# Prefix of the key, and suffix of the operation: `f32_add4` is an addition of vectors of four.
_TABLES = {"hong_kim.throughput.": "", "hong_kim.vector_throughput.": "4"}


def of_gpu(gpu: Gpu) -> HongKimGPU:
    """Return the numbers of a GPU description; a missing measured one is refused only when the model needs it.

    Raises:
        InputError: no number of SMs, clock, bandwidth or warp size.
    """
    gpu.require(*_DEVICE.values())
    return HongKimGPU(
        name=gpu.name,
        limits=gpu.limits,
        sms=gpu.whole("sms"),
        freq_ghz=gpu.number("clock_ghz"),
        mem_bw_gbs=gpu.number("mem_bw_gbs"),
        throughput=_throughput(gpu),
        **{name: gpu.get(key) for name, key in _MEASURED.items()},
    )


def _throughput(gpu: Gpu) -> dict[str, float]:
    """Return the operations per cycle, by operation."""
    return {
        key.removeprefix(prefix) + suffix: float(datum.value)
        for prefix, suffix in _TABLES.items()
        for key, datum in gpu.data.items()
        if key.startswith(prefix)
    }


def estimate_launch(
    gpu: Gpu,
    kernel: HongKimKernel,
    *,
    variant: Variant = "isca09",
    rep: Rep = "real",
    comp_model: CompModel | None = None,
    origin: Origin = Origin.GIVEN,
    notes: Mapping[str, str] | None = None,
    warnings: Iterable[str] = (),
) -> Estimate:
    """Return the likely time of a launch, explained.

    Args:
        origin: of the counts of the kernel.
        notes: what to know of a count, by its name in `HongKimKernel`.
        warnings: what is doubtful about the counts.
    """
    gpu.require(*_DEVICE.values(), *_needed_keys(kernel, _throughput(gpu), comp_model))
    result = estimate(of_gpu(gpu), kernel, variant=variant, rep=rep, comp_model=comp_model)
    keys = [key for key in (*_DEVICE.values(), *_MEASURED.values()) if key in gpu.data]
    assumed = [key for key in keys if gpu.data[key].status is DatumStatus.ASSUMED]
    return Estimate(
        method=METHOD,
        cycles=float(result.total_cycles),
        seconds=float(result.seconds),
        terms=(Term("execution", float(result["exec"])), Term("synchronisation", float(result["Synch_cost"]))),
        limiting=_LIMITING[result.bound],
        quantities=(
            *_given_quantities(kernel, origin, notes or {}),
            *(from_gpu(gpu, key, name) for name, key in (_DEVICE | _MEASURED).items() if key in gpu.data),
            *_of_result(result, variant),
        ),
        warnings=(*warnings, *(f"{key} is assumed: {gpu.data[key].source}" for key in assumed), *result.warnings),
    )


def _needed_keys(kernel: HongKimKernel, operations: Collection[str], model: CompModel | None) -> Iterator[str]:
    """Yield the keys of the measured parameters that the model asks for."""
    if kernel.mem_insts:
        yield _MEASURED["mem_ld"]
    if kernel.coal_mem_insts:
        yield _MEASURED["departure_del_coal"]
    if kernel.uncoal_mem_insts:
        yield _MEASURED["departure_del_uncoal"]
    charged = sum(exact(count, name) for name, count in kernel.operations.items() if name in operations)
    if model == "uniform" or charged < kernel.total_insts:  # the rest is charged issue_cycles
        yield _MEASURED["issue_cycles"]


_UNITS = {
    "threads_per_block": "threads",
    "smem_per_block": "B",
    "load_bytes_per_warp": "B",
    "uncoal_per_mw": "transactions",
}


def _given_quantities(kernel: HongKimKernel, origin: Origin, notes: Mapping[str, str]) -> Iterator[ModelQuantity]:
    for name in kernel.__slots__:
        value = getattr(kernel, name)
        said = Origin.GIVEN if name in ("threads_per_block", "blocks", "active_blocks_per_sm") else origin
        counts = {f"{each}_insts": count for each, count in value.items()} if name == "operations" else {name: value}
        for label, count in counts.items():
            if count is not None:
                plain = count if isinstance(count, int) else float(count)
                yield ModelQuantity(label, plain, _UNITS.get(name, ""), said, notes.get(name, ""))


def _of_result(result: HongKimResult, variant: Variant) -> Iterator[ModelQuantity]:
    for name, quantity in result.symbols.items():
        if name == "published exec":
            yield ModelQuantity("case", str(result.case), "", Origin.DERIVED)
            yield ModelQuantity("bound", str(result.bound), "", Origin.DERIVED)
            yield ModelQuantity("variant", variant, "", Origin.GIVEN)
        yield quantity
        if name == "issue_bound":
            yield ModelQuantity("below_issue_bound", str(result.below_issue_bound).lower(), "", Origin.DERIVED)


# Fields of `HongKimKernel` by the names that a list of counts has.
COUNTS = {
    "comp": "comp_insts",
    "coal": "coal_mem_insts",
    "uncoal": "uncoal_mem_insts",
    "synch": "synch_insts",
    "uncoal_per_mw": "uncoal_per_mw",
    "load_bytes": "load_bytes_per_warp",
}


def counts(text: str, what: str) -> dict[str, Fraction]:
    """Return the numbers of `NAME=N,...`, by field.

    >>> counts("comp=27,uncoal=6", "--counts")
    {'comp_insts': Fraction(27, 1), 'uncoal_mem_insts': Fraction(6, 1)}

    Raises:
        InputError: an unknown name, one that is given twice, or no number.
    """
    found: dict[str, Fraction] = {}
    for item in text.split(","):
        name, _, given = (part.strip() for part in item.partition("="))
        if name not in COUNTS:
            raise InputError(f"{what}: unknown name {shown(name)}; known: {', '.join(COUNTS)}")
        if COUNTS[name] in found:
            raise InputError(f"{what}: {name} is given twice")
        value = parse_number(given)
        if value is None:
            raise InputError(f"{what}: {name} must be a number, not {shown(given)}")
        found[COUNTS[name]] = exact(int(value) if value.is_integer() else value, f"{what}: {name}")
    return found


_DENOMINATOR = 10**9  # means over warps are ratios of whole numbers, which a float has rounded

# Operations that tables of throughputs know, by the first part of an opcode for single precision.
_NAMED = MappingProxyType({"add": "f32_add", "sub": "f32_sub", "mul": "f32_mul", "div": "f32_div", "sin": "native_sin"})
_NAMED_KINDS = (InstructionKind.F32, InstructionKind.F32_DIV, InstructionKind.SFU)


def coalescing(gpu: Gpu) -> Coalescing:
    """Return how lanes share transactions on this GPU: segments of 128 bytes if its description does not say."""
    default = Coalescing()
    rule, segment = gpu.text("hong_kim.coalescing_rule"), gpu.get("hong_kim.segment_bytes")
    return Coalescing(
        default.rule if rule is None else Rule(rule), default.segment_bytes if segment is None else int(segment)
    )


def estimate_profile(gpu: Gpu, profile: KernelProfile, *, active_blocks: int | None = None, **variant: Any) -> Estimate:
    """Return the likely time of a launch by the counts of one thread, the mean over the warps of the launch.

    An access whose lanes are all switched off counts as computation, as every instruction that is no access to device
    memory and no barrier.

    Args:
        active_blocks: resident blocks of an SM; None for as many as fit.
        variant: `variant`, `rep` and `comp_model` as `estimate_launch` takes them.

    Source: S. Hong and H. Kim, ISCA 2009, section 4: counts of PTX instructions, dynamic.
    """
    accesses = profile.device_memory
    coalesced = [access for access in accesses if access.coalesced]
    others = [access for access in accesses if not access.coalesced]
    total = sum((_exact_mean(one.executions) for one in profile.instructions), Fraction(0))
    barriers = _exact_mean(profile.barriers)
    operations: dict[str, Fraction] = {}
    for one in profile.instructions:
        name, _, rest = one.opcode.partition(".")
        if one.executions and one.kind in _NAMED_KINDS and rest.endswith("f32") and name in _NAMED:
            operations[_NAMED[name]] = operations.get(_NAMED[name], Fraction(0)) + _exact_mean(one.executions)
    kernel = HongKimKernel(
        threads_per_block=profile.threads_per_block,
        blocks=profile.blocks,
        comp_insts=max(total - barriers - _executions(accesses), Fraction(0)),  # means are rounded: may fall below 0
        coal_mem_insts=_executions(coalesced),
        uncoal_mem_insts=_executions(others),
        synch_insts=barriers,
        uncoal_per_mw=_weighted_mean(others, [one.transactions for one in others]),
        # of a whole warp, whichever lanes are active
        load_bytes_per_warp=_weighted_mean(accesses, [one.lane_bytes * profile.warp_size for one in accesses]),
        regs_per_thread=profile.registers,
        smem_per_block=profile.shared_bytes,
        active_blocks_per_sm=active_blocks,
        operations=operations,
    )
    how = "executed, by following every thread" if profile.is_exact else "from loop bounds and branches"
    memory = "accesses to global, local and generic addresses"
    notes = {
        "comp_insts": f"{how}; the mean over the warps",
        "coal_mem_insts": f"{memory}: {_line_list(coalesced)}",
        "uncoal_mem_insts": f"{memory}: {_line_list(others)}",
        "uncoal_per_mw": "mean over the uncoalesced accesses",
        "load_bytes_per_warp": "size of an element for each thread of a warp, mean over the accesses",
    }
    warnings = (*profile.notes, *(_guessed_coalescing(gpu) if kernel.mem_insts else ()))
    return estimate_launch(gpu, kernel, origin=Origin.DERIVED, notes=notes, warnings=warnings, **variant)


def _guessed_coalescing(gpu: Gpu) -> Iterator[str]:
    """Yield a warning if the GPU description does not say how lanes share transactions."""
    how = coalescing(gpu)
    used = ("hong_kim.coalescing_rule", *(("hong_kim.segment_bytes",) if how.rule is Rule.SEGMENTS else ()))
    missing = gpu.missing(*used)
    if missing:
        rule = f"segments of {how.segment_bytes} bytes" if how.rule is Rule.SEGMENTS else how.rule
        yield f"how lanes share transactions is assumed, {rule}: GPU {gpu.name} lacks {' and '.join(missing)}"


def _executions(accesses: Iterable[MemoryOperation]) -> Fraction:
    return sum((_exact_mean(access.executions) for access in accesses), Fraction(0))


def _weighted_mean(accesses: Collection[MemoryOperation], of: list[float | None]) -> Fraction | None:
    """Return the mean weighted by executions; None if there is no access or a value is not known."""
    values = [value for value in of if value is not None]
    if not accesses or len(values) < len(accesses):  # one unknown value leaves the mean unknown
        return None
    weighted = (_exact_mean(one.executions) * _exact_mean(value) for one, value in zip(accesses, values, strict=True))
    return sum(weighted, Fraction(0)) / _executions(accesses)


def _exact_mean(number: float) -> Fraction:
    return Fraction(number).limit_denominator(_DENOMINATOR)


def _line_list(accesses: Iterable[MemoryOperation]) -> str:
    lines = sorted({access.line for access in accesses})
    listed = ", ".join(map(str, lines[:8])) + ", ..." * (len(lines) > 8)
    return f"line{'s' * (len(lines) > 1)} {listed}" if lines else "none"
