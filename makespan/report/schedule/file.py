"""A schedule as a file: a picture, JSON (schema `makespan.schedule/1`), CSV, or trace events.

Source of the trace: Trace Event Format, 2016, "Complete Events" and "Metadata Events" (JSON object format), which
Perfetto and chrome://tracing read. Its times are microseconds; one microsecond stands for one cycle here.
"""

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from makespan.host.errors import InputError
from makespan.host.output_file import check_writable, write_whole
from makespan.model.instance import Instance
from makespan.model.machine import UnitClass
from makespan.model.program import InstructionOrigin
from makespan.model.schedule import Schedule
from makespan.report.pictures import PICTURES
from makespan.report.schedule.activity import ScheduleTrace, Wait, Why, lanes
from makespan.report.schedule.picture import ScheduleView, draw_gantt

SCHEMA = "makespan.schedule/1"
_MORE_NOTES = (
    "a warp that runs ahead may issue again after its stall, and its result is there latency cycles after first_cycle;"
    " waits: result: what it needs is not there yet, which the instruction at place cause computes; resource: it is"
    " ready, a port of the class is free, and no port of the resources that cause names",
    "partitions: ports of classes and resources are numbered through all of them, those of partition 0 first; a lane"
    " without a partition is shared; holds: what instructions hold besides the ports of their classes",
)
_NOTES = (
    "all times are cycles, counted from 0; an entry covers cycles from first_cycle on",
    "bars: the warp issues the instruction at this place in first_cycle, the port is held for cycles, also beyond the"
    " makespan, and the warp may go on latency cycles after first_cycle",
    "waits: what a warp does between its bars and until it has finished; stalled: a latency passes; port: it is ready"
    " and all ports of the class are held; slot: it is ready, a port is free, and others use up the issue width;"
    " barrier: it waits for its block, and the unit is |",
    "lanes: one per port, with the stretches before the makespan in which it is idle; slot: a ready warp lacks an"
    " issue slot; nobody: no warp is ready for the class",
)


def chart_document(instance: Instance, schedule: Schedule) -> dict[str, Any]:
    """Return all that a Gantt chart shows: bars, waits and lanes, by docs/schema/schedule-1.schema.json."""
    trace, machine = ScheduleTrace.of(instance, schedule), instance.machine
    idle: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for gap in trace.gaps:
        stretch = {"first_cycle": gap.first_cycle, "cycles": gap.cycles, "why": str(gap.why)}
        idle.setdefault((gap.unit, gap.port), []).append(stretch)
    return {
        "schema": SCHEMA,
        "notes": [*_NOTES, *(_MORE_NOTES if instance.is_multiprocessor else ())],
        "makespan": schedule.makespan,
        "machine": instance.machine.name,
        "issue_width": instance.machine.issue_width,
        "units": [_unit(unit) for unit in instance.machine.units],
        "warps": instance.warps,
        "block_of_warp": list(trace.instance.block_of_warp()),
        **({"partition_of_warp": list(trace.partitions)} if machine.partitions > 1 else {}),
        "bars": [bar._asdict() for bar in trace.bars],
        "waits": [_wait(wait) for wait in trace.waits],
        "lanes": [
            {"unit": unit, "port": port, "idle": idle.get((unit, port), []), **of}
            for unit in machine.capacities
            for name, port, part in lanes(machine)
            if name == unit
            for of in [{"partition": part} if machine.partitions > 1 else {}]
        ],
        **_resources(trace),
    }


def _wait(wait: Wait) -> dict[str, Any]:
    told = {**wait._asdict(), "why": str(wait.why)}
    left_out = ("place", "cause") if wait.cause is None else ("place",)
    return {name: value for name, value in told.items() if name not in left_out}


def _resources(trace: ScheduleTrace) -> dict[str, Any]:
    resources = trace.instance.machine.resources
    if not resources:
        return {}
    return {
        "resources": [{"name": each.name, "capacity": each.capacity, "shared": each.shared} for each in resources],
        "holds": [hold._asdict() for hold in trace.holds],
    }


def _unit(unit: UnitClass) -> dict[str, Any]:
    latency = [unit.latency.least, unit.latency.most]
    return {"name": unit.name, "capacity": unit.capacity, "interval": unit.interval, "latency": latency}


HEADER = (
    "cycle", "warp", "block", "place", "unit", "port", "interval", "latency", "finish_cycle", "source", "compiled_from"
)  # fmt: skip
PARTITION = ("partition",)
"""The last column, if the machine has several partitions."""
_FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")  # and their wide forms


def csv_table(instance: Instance, schedule: Schedule) -> str:
    r"""Return the schedule as CSV with a header. Rows are sorted by cycle of issue and then by warp.

    A port is held for `interval` cycles from `cycle` on; the result is there, and a warp that blocks goes on, in
    `finish_cycle`, which is `cycle` plus `latency`. `source` is FILE:LINE of the instruction and `compiled_from` that
    of what it was compiled from, both empty where unknown.

    >>> instance = Instance.of("C", 1)
    >>> csv_table(instance, Schedule.of_chains(instance, [(0,)])).splitlines()[1]
    '0,0,0,0,C,0,1,1,1,,'
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(HEADER + PARTITION if instance.machine.partitions > 1 else HEADER)
    writer.writerows(_rows(ScheduleTrace.of(instance, schedule)))
    return text.getvalue()


def _rows(trace: ScheduleTrace) -> Iterator[tuple[int | str, ...]]:
    instance, parts = trace.instance, trace.partitions
    blocks, groups = instance.block_of_warp(), instance.group_of_warp()
    origins = [[_cells(origin) for origin in group.program.origins] for group in instance.groups]
    for first, cycles, warp, place, unit, port, latency in trace.bars:
        known = origins[groups[warp]]
        where = known[place] if known else ("", "")
        part = (parts[warp],) if instance.machine.partitions > 1 else ()
        yield first, warp, blocks[warp], place, unit, port, cycles, latency, first + latency, *where, *part


def _cells(origin: InstructionOrigin) -> tuple[str, str]:
    return safe_cell(f"{origin.file}:{origin.line}"), safe_cell(origin.source)


def safe_cell(text: str) -> str:
    """Return text from outside such that no spreadsheet takes it for a formula: an apostrophe precedes such a text.

    >>> safe_cell("=1+1"), safe_cell("a.ptx:3")
    ("'=1+1", 'a.ptx:3')
    """
    printable = "".join(letter if letter.isprintable() else "\ufffd" for letter in text)
    return f"'{printable}" if printable.lstrip(" \ufffd'").startswith(_FORMULA) else printable


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
    """Return the trace: a track per port with a slice for each hold, and a track per warp with all that it does.

    Tracks are numbered from 1; `args.warp` and the names of the tracks count from 0.
    """
    trace = ScheduleTrace.of(instance, schedule)
    return {
        "traceEvents": [*_track_names(trace), *_slices(trace)],
        "displayTimeUnit": "ns",
        "otherData": {
            "schema": "trace events of a makespan schedule",
            "time_unit": "1 microsecond stands for 1 cycle",
            "makespan_cycles": schedule.makespan,
            "machine": instance.machine.name,
        },
    }


def _track_names(trace: ScheduleTrace) -> Iterator[dict[str, Any]]:
    instance, parts, parted = trace.instance, trace.partitions, trace.instance.machine.partitions > 1
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


def _slices(trace: ScheduleTrace) -> Iterator[dict[str, Any]]:
    instance, groups = trace.instance, trace.instance.group_of_warp()
    track = {(name, port): number for number, (name, port, _) in enumerate(lanes(instance.machine), 1)}
    origins = [group.program.origins for group in instance.groups]
    for first, cycles, warp, place, unit, port, latency in trace.bars:
        known = origins[groups[warp]]
        args = {"warp": warp, "place": place, "latency": latency, **(_source(known[place]) if known else {})}
        yield _slice_event(f"warp {warp}", "port", first, cycles, _UNITS, track[unit, port], args)
        yield _slice_event(unit, "issue", first, 1, _WARPS, warp + 1, {**args, "port": f"{unit}{port}"})
    for first, cycles, warp, unit, resource, port in trace.holds:
        args = {"warp": warp, "unit": unit}
        yield _slice_event(f"warp {warp}", "resource", first, cycles, _UNITS, track[resource, port], args)
    for first, cycles, warp, unit, why, _, cause in trace.waits:
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


_TRACE = ".trace.json"
_DATA: Mapping[str, Callable[[Instance, Schedule], str | dict[str, Any]]] = {
    ".json": chart_document,
    ".csv": csv_table,
    _TRACE: trace_document,
}
"""The content of a file, a text or a document, by the end of its name. The longest end that fits counts."""

ENDS = (*PICTURES, *_DATA)
"""The ends that the name of a schedule may have."""


def check_schedule_path(path: Path) -> None:
    """Refuse a path early if no schedule can be written to it, so that no work is lost.

    Raises:
        InputError: an unknown end of the name, a folder, or a folder that takes no file.
    """
    if path.suffix.lower() not in ENDS:
        raise InputError(
            f"{path}: the name must end in .png, .svg or .pdf for a picture, in .json or .csv for data,"
            f" or in {_TRACE} for trace events"
        )
    check_writable(path, "the schedule")


def write_schedule(instance: Instance, schedule: Schedule, path: Path, view: ScheduleView) -> None:
    """Write `schedule` to `path`, whole or not at all. The view is for pictures.

    Raises:
        InputError: an unknown end of the name, or a file that cannot be written.
    """
    check_schedule_path(path)
    if path.suffix.lower() in PICTURES:
        draw_gantt(instance, schedule, path, view)
        return
    # `.trace.json` also ends in `.json`
    made = _DATA[max((end for end in _DATA if path.name.lower().endswith(end)), key=len)](instance, schedule)
    text = made if isinstance(made, str) else f"{json.dumps(made, separators=(',', ':'))}\n"
    write_whole(path, text.encode("utf-8", "backslashreplace"), "the schedule")
