"""Reports name warps by their numbers, in whatever order an instance lists them."""

import csv
import io
import json

from hypothesis import given, settings
from hypothesis import strategies as st

from makespan.model.instance import Instance
from makespan.model.machine import Machine, UnitClass, WarpAssignment
from makespan.model.program import Program
from makespan.model.schedule import Schedule
from makespan.model.simulate import run
from makespan.report.schedule.by_number import order_by_number
from makespan.report.schedule.explanation import explain
from makespan.report.schedule.file import chart_document, csv_table, trace_document
from makespan.report.schedule.timeline import timeline_text
from tests.oracle import launch_of, named
from tests.strategies import barrier_instances, multiprocessor_instances, runs

HALVES = Machine("halves", (UnitClass("C", 1), UnitClass("L", 1)), 1, partitions=2, assignment=WarpAssignment.MODULO)
LONG, SHORT = Program.chain("CCL"), Program.chain("L")
TURNS = Instance.merged([(LONG, 1), (SHORT, 1)] * 2, HALVES)


@settings(deadline=None)
@given(st.data(), multiprocessor_instances(most_warps=4) | barrier_instances())
def test_a_schedule_by_number_is_that_of_the_launch(data: st.DataObject, instance: Instance) -> None:
    schedule, launch = data.draw(runs(instance)), launch_of(instance)
    told, shown = order_by_number(instance, schedule)
    assert shown == named(schedule, launch.listed([group.program for group in instance.groups]))
    assert tuple(told.programs()) == launch.programs()
    assert told.block_of_warp() == launch.block_of_warp()
    assert told.partition_of_warp == launch.partition_of_warp
    assert [told.groups[group].program for group in told.group_of_warp()] == list(launch.programs())
    assert order_by_number(told, shown) == (told, shown)


def test_every_report_has_warps_in_the_partitions_of_their_numbers() -> None:
    """Warps 0 and 2 are long and share partition 0; the instance lists them side by side."""
    schedule = run(TURNS, "oldest")
    assert schedule.cycles[0] == (0, 2)
    document = chart_document(TURNS, schedule)
    assert document["partition_of_warp"] == [0, 1, 0, 1]
    assert [bar["warp"] for bar in document["bars"] if bar["unit"] == "C"] == [0, 0, 2, 2]
    rows = list(csv.DictReader(io.StringIO(csv_table(TURNS, schedule))))
    assert {(row["warp"], row["partition"]) for row in rows} == {("0", "0"), ("1", "1"), ("2", "0"), ("3", "1")}
    assert {row["warp"] for row in rows if row["unit"] == "C"} == {"0", "2"}
    names = [
        event["args"]["name"]
        for event in trace_document(TURNS, schedule)["traceEvents"]
        if event["name"] == "thread_name"
    ]
    assert [name for name in names if name.startswith("warp")] == [
        f"warp {warp} of partition {warp % 2}" for warp in (0, 2, 1, 3)
    ]
    assert explain(TURNS, schedule).warp == 2
    assert "warp 2  --=CCL" in timeline_text(TURNS, schedule, width=60).splitlines()
    assert json.dumps(document)


def test_the_oldest_warp_is_the_one_that_is_launched_first() -> None:
    one = Machine.of({"C": 1, "L": 1})
    instance = Instance.merged([(LONG, 1), (Program.chain("CC"), 1), (LONG, 1)], one)
    assert run(instance, "oldest").cycles[:5] == ((0,), (0,), (0, 2), (2,), (1,))
    assert run(instance, "youngest").cycles[:5] == ((1,), (1,), (1, 2), (2,), (0,))
    apart = Schedule.of_chains(instance, run(instance, "oldest").cycles)
    assert order_by_number(instance, apart)[1].cycles[:5] == ((0,), (0,), (0, 1), (1,), (2,))
