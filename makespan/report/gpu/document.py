"""The JSON of a result for a whole GPU, schema `makespan.gpu-result/2`."""

from fractions import Fraction
from typing import Any

from makespan.model.gpu import GpuInstance, GpuResult, Grid, LastDispatch
from makespan.model.program import merge_groups
from makespan.model.result import Bounds
from makespan.report.gpu.clock import GpuClock
from makespan.report.provenance import versions
from makespan.report.result.document import machine_document, order_document

SCHEMA = "makespan.gpu-result/2"


def gpu_result_document(result: GpuResult, *, name: str | None = None, clock: GpuClock | None = None) -> dict[str, Any]:
    """Return a result as plain data; the witness is in the bundle, not here.

    Args:
        name: of the GPU.
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
    fields = ("counting", "block", "charged", "scale", "spared", "dispatched", "tail")
    return {**{name: getattr(last, name) for name in fields}, "latest": last.block * last.charged // last.scale}


def _time_document(bounds: Bounds, clock: GpuClock) -> dict[str, str]:
    """Seconds and hertz exactly, as fractions in text."""
    lower, upper = (str(Fraction(end) / clock.hertz) for end in (bounds.lower, bounds.upper))
    return {"clock_hz": str(clock.hertz), "clock_source": clock.source, "lower_seconds": lower, "upper_seconds": upper}
