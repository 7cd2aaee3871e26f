"""A schedule as trace events, for Perfetto or chrome://tracing: a track per port and per warp.

Source: Trace Event Format, 2016, "Complete Events" and "Metadata Events" (JSON object format); times in microseconds,
of which one stands for a cycle here.
"""

from collections.abc import Iterator
from typing import Any

from makespan.instance import Instance
from makespan.program import Origin
from makespan.report.schedule.activity import Why, bars, full, held, split, waits
from makespan.schedule import Schedule

_UNITS, _WARPS = 1, 2
_WORDS = {
    Why.STALLED: "stalled on latency of {}",
    Why.PORT: "waits for {}",
    Why.SLOT: "waits for an issue slot ({})",
    Why.BARRIER: "waits at a barrier",
}


def trace(instance: Instance, schedule: Schedule) -> dict[str, Any]:
    """The JSON object: on a port's track a slice while it is held, on a warp's track all that it does.

    Tracks are numbered from 1; `args.warp` and the names of the tracks count from 0.
    """
    return {
        "traceEvents": [*_names(instance), *_slices(instance, schedule)],
        "displayTimeUnit": "ns",
        "otherData": {
            "schema": "trace events of a makespan schedule",
            "time_unit": "1 microsecond stands for 1 cycle",
            "makespan_cycles": schedule.makespan,
            "machine": instance.machine.name,
        },
    }


def _names(instance: Instance) -> Iterator[dict[str, Any]]:
    ports = _ports(instance)
    for process, name, threads in (
        (_UNITS, "units", [f"{unit}{port}" for unit, port in ports]),
        (_WARPS, "warps", [f"warp {warp}" for warp in range(instance.warps)]),
    ):
        yield _named("process_name", process, 0, {"name": name})
        yield _named("process_sort_index", process, 0, {"sort_index": process})
        for number, thread in enumerate(threads, 1):
            yield _named("thread_name", process, number, {"name": thread})
            yield _named("thread_sort_index", process, number, {"sort_index": number})


def _named(what: str, process: int, thread: int, args: dict[str, Any]) -> dict[str, Any]:
    return {"name": what, "ph": "M", "ts": 0, "pid": process, "tid": thread, "args": args}


def _ports(instance: Instance) -> list[tuple[str, int]]:
    return [(unit, port) for unit, capacity in instance.machine.capacities.items() for port in range(capacity)]


def _slices(instance: Instance, schedule: Schedule) -> Iterator[dict[str, Any]]:
    track = {key: number for number, key in enumerate(_ports(instance), 1)}
    issued = bars(instance, schedule)
    groups = instance.group_of_warp()
    origins = [group.program.origins for group in instance.groups]
    for first, cycles, warp, place, unit, port, latency in issued:
        known = origins[groups[warp]]
        args = {"warp": warp, "place": place, "latency": latency, **(_source(known[place]) if known else {})}
        yield _slice(f"warp {warp}", "port", first, cycles, _UNITS, track[unit, port], args)
        yield _slice(unit, "issue", first, 1, _WARPS, warp + 1, {**args, "port": f"{unit}{port}"})
    for first, cycles, warp, unit, why in split(
        waits(issued, held(instance, schedule, issued)), full(instance, issued)
    ):
        yield _slice(_WORDS[why].format(unit), str(why), first, cycles, _WARPS, warp + 1, {"warp": warp})


def _source(origin: Origin) -> dict[str, str]:
    compiled = {"compiled_from": origin.source} if origin.source else {}
    return {"source": f"{origin.file}:{origin.line}", **compiled}


def _slice(
    name: str, category: str, first: int, cycles: int, process: int, track: int, args: dict[str, Any]
) -> dict[str, Any]:
    return {
        "name": name, "cat": category, "ph": "X", "ts": first, "dur": cycles, "pid": process, "tid": track, "args": args
    }  # fmt: skip
