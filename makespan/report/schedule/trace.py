"""A schedule as trace events, for Perfetto or chrome://tracing: a track per port and per warp.

Source: Trace Event Format, 2016, "Complete Events" and "Metadata Events" (JSON object format); times in microseconds,
of which one stands for a cycle here.
"""

from collections.abc import Iterator
from typing import Any

from makespan.model.instance import Instance
from makespan.model.program import InstructionOrigin
from makespan.model.schedule import Schedule
from makespan.report.schedule.activity import Why, bars, full, holds, lanes, partitions, split, waits
from makespan.report.schedule.by_number import order_by_number

_UNITS, _WARPS = 1, 2
_WORDS = {
    Why.STALLED: "stalled on latency of {}",
    Why.RESULT: "waits for the result of {1} ({0})",
    Why.PORT: "waits for {}",
    Why.RESOURCE: "waits for {1} ({0})",
    Why.SLOT: "waits for an issue slot ({})",
    Why.BARRIER: "waits at a barrier",
}


def trace_document(instance: Instance, schedule: Schedule) -> dict[str, Any]:
    """Return the JSON object: on a port's track a slice while it is held, on a warp's track all that it does.

    Tracks are numbered from 1; `args.warp` and the names of the tracks count from 0.
    """
    instance, schedule = order_by_number(instance, schedule)
    return {
        "traceEvents": [*_track_names(instance, schedule), *_slices(instance, schedule)],
        "displayTimeUnit": "ns",
        "otherData": {
            "schema": "trace events of a makespan schedule",
            "time_unit": "1 microsecond stands for 1 cycle",
            "makespan_cycles": schedule.makespan,
            "machine": instance.machine.name,
        },
    }


def _track_names(instance: Instance, schedule: Schedule) -> Iterator[dict[str, Any]]:
    parts, parted = partitions(instance, schedule), instance.machine.partitions > 1
    of = [f" of partition {part}" if parted else "" for part in parts]
    order = sorted(range(instance.warps), key=lambda warp: (parts[warp], warp))
    for process, name, threads in (
        (_UNITS, "units", [(number, _name(*lane[:2])) for number, lane in enumerate(lanes(instance.machine), 1)]),
        (_WARPS, "warps", [(warp + 1, f"warp {warp}{of[warp]}") for warp in order]),
    ):
        yield _metadata_event("process_name", process, 0, {"name": name})
        yield _metadata_event("process_sort_index", process, 0, {"sort_index": process})
        for place, (number, thread) in enumerate(threads, 1):
            yield _metadata_event("thread_name", process, number, {"name": thread})
            yield _metadata_event("thread_sort_index", process, number, {"sort_index": place})


def _metadata_event(what: str, process: int, thread: int, args: dict[str, Any]) -> dict[str, Any]:
    return {"name": what, "ph": "M", "ts": 0, "pid": process, "tid": thread, "args": args}


def _name(ports: str, port: int) -> str:
    return f"{ports}{port}" if ports.isupper() else f"{ports} {port}"


def _slices(instance: Instance, schedule: Schedule) -> Iterator[dict[str, Any]]:
    track = {(name, port): number for number, (name, port, _) in enumerate(lanes(instance.machine), 1)}
    issued = bars(instance, schedule)
    groups = instance.group_of_warp()
    origins = [group.program.origins for group in instance.groups]
    for first, cycles, warp, place, unit, port, latency in issued:
        known = origins[groups[warp]]
        args = {"warp": warp, "place": place, "latency": latency, **(_source(known[place]) if known else {})}
        yield _slice_event(f"warp {warp}", "port", first, cycles, _UNITS, track[unit, port], args)
        yield _slice_event(unit, "issue", first, 1, _WARPS, warp + 1, {**args, "port": f"{unit}{port}"})
    for first, cycles, warp, unit, resource, port in holds(instance, schedule, issued):
        args = {"warp": warp, "unit": unit}
        yield _slice_event(f"warp {warp}", "resource", first, cycles, _UNITS, track[resource, port], args)
    for first, cycles, warp, unit, why, _, cause in split(waits(instance, schedule, issued), full(instance, issued)):
        what = f"place {cause}" if why is Why.RESULT else cause
        yield _slice_event(_WORDS[why].format(unit, what), str(why), first, cycles, _WARPS, warp + 1, {"warp": warp})


def _source(origin: InstructionOrigin) -> dict[str, str]:
    compiled = {"compiled_from": origin.source} if origin.source else {}
    return {"source": f"{origin.file}:{origin.line}", **compiled}


def _slice_event(
    name: str, category: str, first: int, cycles: int, process: int, track: int, args: dict[str, Any]
) -> dict[str, Any]:
    return {
        "name": name, "cat": category, "ph": "X", "ts": first, "dur": cycles, "pid": process, "tid": track, "args": args
    }  # fmt: skip
