"""The data of a Gantt chart as JSON, schema `makespan.schedule/1`."""

from collections.abc import Sequence
from typing import Any

from makespan.model.instance import Instance
from makespan.model.machine import UnitClass
from makespan.model.schedule import Schedule
from makespan.report.schedule.activity import Bar, Wait, bars, full, gaps, holds, lanes, partitions, split, waits
from makespan.report.schedule.by_number import order_by_number

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
    """Everything that a Gantt chart shows: bars, waits and lanes, by docs/schema/schedule-1.schema.json."""
    instance, schedule = order_by_number(instance, schedule)
    machine, issued = instance.machine, bars(instance, schedule)
    between = waits(instance, schedule, issued)
    idle: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for gap in gaps(instance, schedule, issued, between):
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
        "block_of_warp": list(instance.block_of_warp()),
        **({"partition_of_warp": list(partitions(instance, schedule))} if machine.partitions > 1 else {}),
        "bars": [bar._asdict() for bar in issued],
        "waits": [_wait(wait) for wait in split(between, full(instance, issued))],
        "lanes": [
            {"unit": unit, "port": port, "idle": idle.get((unit, port), []), **of}
            for unit in machine.capacities
            for name, port, part in lanes(machine)
            if name == unit
            for of in [{"partition": part} if machine.partitions > 1 else {}]
        ],
        **_resources(instance, schedule, issued),
    }


def _wait(wait: Wait) -> dict[str, Any]:
    told = {**wait._asdict(), "why": str(wait.why)}
    left_out = ("place", "cause") if wait.cause is None else ("place",)
    return {name: value for name, value in told.items() if name not in left_out}


def _resources(instance: Instance, schedule: Schedule, issued: Sequence[Bar]) -> dict[str, Any]:
    resources = instance.machine.resources
    if not resources:
        return {}
    return {
        "resources": [{"name": each.name, "capacity": each.capacity, "shared": each.shared} for each in resources],
        "holds": [hold._asdict() for hold in holds(instance, schedule, issued)],
    }


def _unit(unit: UnitClass) -> dict[str, Any]:
    latency = [unit.latency.least, unit.latency.most]
    return {"name": unit.name, "capacity": unit.capacity, "interval": unit.interval, "latency": latency}
