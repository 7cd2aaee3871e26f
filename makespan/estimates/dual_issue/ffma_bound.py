"""The time of a kernel that does nothing but FFMAs, at the throughput that an SM was found to sustain."""

from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING

from makespan.estimates.dual_issue.measurements import Characteristics
from makespan.estimates.estimate import Estimate, ModelQuantity, Origin, Term, from_gpu
from makespan.host.errors import InputError

if TYPE_CHECKING:
    from makespan.estimates.profile import KernelProfile
    from makespan.model.machine.gpus import Gpu

METHOD = "dual-issue"
_FLOPS = 2  # a multiply-add counts as two floating-point operations


@dataclass(frozen=True, slots=True)
class FfmaWork:
    """The FFMAs of a launch.

    Args:
        operations: lane-operations; a warp-instruction counts for all lanes of its warp, active or not.
        origin: given, or counted in a kernel.
    """

    operations: float
    origin: Origin = Origin.GIVEN
    note: str = ""
    warnings: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not (isfinite(self.operations) and self.operations > 0):
            raise InputError(f"FFMA lane-operations must be a number above 0, not {self.operations:g}")

    @classmethod
    def of(cls, profile: "KernelProfile") -> "FfmaWork":
        """Return the 32-bit multiply-adds of a launch.

        Raises:
            InputError: there are none.
        """
        each = sum(
            found.executions
            for found in profile.instructions
            if found.opcode.startswith("fma.") and found.opcode.endswith(".f32")
        )
        if not each:
            raise InputError(f"kernel {profile.kernel} executes no fma.rn.f32: there is no FFMA-bound time to estimate")
        warps = profile.warps_per_block * profile.blocks
        return cls(
            each * warps * profile.warp_size,
            Origin.DERIVED,
            f"{each:g} of a warp's {profile.total:g} instructions, {warps} warps of {profile.warp_size}",
            (
                f"FFMAs are {each / profile.total:.0%} of the instructions of a warp; the others are left out",
                *profile.notes,
            ),
        )


def estimate(
    found: Characteristics, work: FfmaWork, *, sms: int, clock_ghz: float | None, gpu: "Gpu | None" = None
) -> Estimate:
    """Return the time of one SM for its share of the FFMAs, if a scheduler never waits for one to be ready.

    Args:
        sms: streaming multiprocessors, over which the work is spread evenly.
        clock_ghz: for seconds and Gflop/s; None if it is not known.
        gpu: the description that says both; None if they are given.

    Raises:
        InputError: no SM, or a clock that is none.
    """
    if sms < 1:
        raise InputError(f"sms must be at least 1, not {sms}")
    if clock_ghz is not None and not (isfinite(clock_ghz) and clock_ghz > 0):
        raise InputError(f"the clock must be a number of GHz above 0, not {clock_ghz:g}")
    cycles = work.operations / sms / found.sustained  # all SMs have an equal share
    share, lanes, measured = found.sustained / found.sm.lanes, found.sm.lanes, (Origin.MEASURED, found.origin)
    pattern = found.best[0].pattern if found.best else "none: single issue"
    quantities = [
        ModelQuantity("ffma", work.operations, "lane-operations", work.origin, work.note),
        ModelQuantity("sms", sms, "", Origin.GIVEN) if gpu is None else from_gpu(gpu, "sms", "sms"),
        ModelQuantity("lanes", lanes, "per SM", Origin.GIVEN),
        ModelQuantity("sustained", found.sustained, "lane-operations per cycle and SM", *measured),
        ModelQuantity("efficiency", 100 * share, "% of the lanes", *measured),
        ModelQuantity("pattern", pattern, "", Origin.MEASURED, "order of single and dual issues that reaches it"),
    ]
    if clock_ghz is not None:
        given = ModelQuantity("clock", clock_ghz, "GHz", Origin.GIVEN)
        peak = peak_gflops(lanes, sms, clock_ghz)
        quantities += [
            given if gpu is None else from_gpu(gpu, "clock_ghz", "clock"),
            ModelQuantity("peak", peak, "Gflop/s", Origin.DERIVED, "2 * lanes * sms * clock"),
            ModelQuantity("reached", peak * share, "Gflop/s", Origin.DERIVED),
        ]
    warnings = [
        "only FFMAs count: no memory, no latency, no start-up; code that a compiler made may lack the best pattern",
        "work is spread evenly over the SMs, and every SM has enough warps",
    ]
    if len(found.best) > 1:
        names = ", ".join(result.pattern for result in found.best)
        warnings.append(f"several patterns cannot be told apart: {names}")
    return Estimate(
        method=METHOD,
        cycles=cycles,
        seconds=None if clock_ghz is None else cycles / (clock_ghz * 1e9),
        terms=(Term("FFMA throughput", cycles, is_limit=True),),
        limiting="FFMA throughput",
        quantities=tuple(quantities),
        warnings=(*warnings, *work.warnings),
    )


def peak_gflops(lanes: int, sms: int, clock_ghz: float) -> float:
    """Return the most that the lanes can do, in Gflop/s.

    >>> round(peak_gflops(192, 13, 0.706), 3)
    3524.352
    """
    return _FLOPS * lanes * sms * clock_ghz
