"""The data of a Gantt chart as JSON, schema `makespan.schedule/1`."""

from typing import Any

from makespan.instance import Instance
from makespan.machine import UnitClass
from makespan.report.schedule.activity import bars, full, gaps, held, split, waits
from makespan.schedule import Schedule

SCHEMA = "makespan.schedule/1"
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
    issued = bars(instance, schedule)
    between = waits(issued, held(instance, schedule, issued))
    idle: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for gap in gaps(instance, issued, between, schedule.makespan):
        stretch = {"first_cycle": gap.first_cycle, "cycles": gap.cycles, "why": str(gap.why)}
        idle.setdefault((gap.unit, gap.port), []).append(stretch)
    return {
        "schema": SCHEMA,
        "notes": list(_NOTES),
        "makespan": schedule.makespan,
        "machine": instance.machine.name,
        "issue_width": instance.machine.issue_width,
        "units": [_unit(unit) for unit in instance.machine.units],
        "warps": instance.warps,
        "block_of_warp": list(instance.block_of_warp()),
        "bars": [bar._asdict() for bar in issued],
        "waits": [{**wait._asdict(), "why": str(wait.why)} for wait in split(between, full(instance, issued))],
        "lanes": [
            {"unit": unit, "port": port, "idle": idle.get((unit, port), [])}
            for unit, capacity in instance.machine.capacities.items()
            for port in range(capacity)
        ],
    }


def _unit(unit: UnitClass) -> dict[str, Any]:
    latency = [unit.latency.least, unit.latency.most]
    return {"name": unit.name, "capacity": unit.capacity, "interval": unit.interval, "latency": latency}
