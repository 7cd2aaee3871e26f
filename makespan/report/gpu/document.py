"""The result for a whole GPU as JSON, schema `makespan.gpu-result/2`, and the clock that turns its cycles into time."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from makespan.model import assumptions
from makespan.model.assumptions import Assumption
from makespan.model.gpu import GpuInstance, GpuResult, Grid, LastDispatch
from makespan.model.program import merge_groups
from makespan.model.result import Bounds
from makespan.model.units import shown_frequency, time_at_least, time_at_most
from makespan.report.result.document import machine_document, order_document
from makespan.version import versions


@dataclass(frozen=True, slots=True)
class GpuClock:
    """A frequency that the clock of an SM has at least. It is an assumption: no proof covers it.

    Args:
        source: the source of the frequency.
    """

    hertz: Fraction
    source: str

    def __str__(self) -> str:
        return f"{shown_frequency(self.hertz)} ({self.source})"

    @property
    def assumption(self) -> Assumption:
        """Return the assumption under which a time holds."""
        text = f"the clock of the SMs is {self} at least, and whatever it is no latency has more cycles"
        return assumptions.clock(text)

    def time(self, bounds: Bounds) -> str:
        """Return the times of both ends to six digits, the least rounded down and the most rounded up.

        >>> GpuClock(Fraction(10**9), "as given").time(Bounds(500, 1500))
        '500 ns .. 1.5 us'
        >>> GpuClock(Fraction(3 * 10**9), "as given").time(Bounds(1000, 1000))
        '333.333 ns .. 333.334 ns'
        """
        ends = time_at_least(bounds.lower / self.hertz), time_at_most(bounds.upper / self.hertz)
        return " .. ".join(dict.fromkeys(ends))


SCHEMA = "makespan.gpu-result/2"


def gpu_result_document(result: GpuResult, *, name: str | None = None, clock: GpuClock | None = None) -> dict[str, Any]:
    """Return a result as plain data. The witness is in the bundle, not here.

    Args:
        name: the name of the GPU.
    """
    gpu, last = result.instance, result.last_dispatch
    return {
        "schema": SCHEMA,
        "status": str(result.status),
        "lower": result.bounds.lower,
        "upper": result.bounds.upper,
        "best_case": None if result.best_case is None else [result.best_case.lower, result.best_case.upper],
        "time": None if clock is None else _time_document(result.bounds, clock),
        "gpu": name,
        "sms": gpu.sms,
        "room": list(gpu.room),
        "dispatch_cycles": gpu.dispatch,
        "dram_cycles": gpu.dram,
        "grids": [_grid(gpu, grid) for grid in gpu.grids],
        "machine": {"name": gpu.machine.name, **machine_document(gpu.machine)},
        "evidence": {"lower": "witness" if result.witness else "least-possible", "upper": result.upper_evidence},
        "policy": result.policy or None,
        "last_dispatch": None if last is None else _last_dispatch(last),
        **({} if result.without_lapses is None else {"without_lapses": _without_lapses(result.without_lapses)}),
        "sm_results": [
            {
                "blocks": each.instance.warps // gpu.grid.warps,
                "lower": each.bounds.lower,
                "upper": each.bounds.upper,
                "evidence": str(each.upper_evidence),
            }
            for each in result.sms
        ],
        "seconds": round(result.seconds, 6),
        "interrupted": result.interrupted,
        "assumptions": [note.document for note in (*result.assumptions, *((clock.assumption,) if clock else ()))],
        "caveats": list(result.caveats),
        "versions": versions(),
    }


def _grid(gpu: GpuInstance, grid: Grid) -> dict[str, Any]:
    return {
        "blocks": grid.blocks,
        "resident": gpu.most_resident(grid),
        "takes": list(grid.takes),
        "groups": [
            {"program": program.letters or str(program), "warps": warps} for program, warps in merge_groups(grid.block)
        ],
        **(order_document(gpu.sm(1).effective_order) if len(gpu.grids) == 1 else {}),
    }


def _last_dispatch(last: LastDispatch) -> dict[str, Any]:
    fields = (
        "counting",
        "block",
        "charged",
        "scale",
        "spared",
        "dispatched",
        "tail",
        *["windows"] * bool(last.windows),
    )
    return {**{name: getattr(last, name) for name in fields}, "latest": last.block * last.charged // last.scale}


def _without_lapses(result: GpuResult) -> dict[str, Any]:
    """Return the numbers of the same GPU without lapses."""
    return {
        "status": str(result.status),
        "lower": result.bounds.lower,
        "upper": result.bounds.upper,
        "evidence": result.upper_evidence,
    }


def _time_document(bounds: Bounds, clock: GpuClock) -> dict[str, str]:
    lower, upper = (str(Fraction(end) / clock.hertz) for end in (bounds.lower, bounds.upper))
    return {"clock_hz": str(clock.hertz), "clock_source": clock.source, "lower_seconds": lower, "upper_seconds": upper}
