"""Schedules as tables, trace events and JSON."""

import csv
import io
import json
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makespan.host.errors import InputError
from makespan.model.instance import Instance
from makespan.model.program import InstructionOrigin, Program
from makespan.model.schedule import Schedule
from makespan.report.schedule.activity import bars, gaps, holds, partitions, waits
from makespan.report.schedule.file import (
    HEADER,
    PARTITION,
    chart_document,
    csv_table,
    safe_cell,
    trace_document,
    write_schedule,
)
from makespan.report.schedule.picture import ScheduleView
from tests.report.schedule.cases import Case, cases
from tests.schemas import published

SCHEMA = published("schedule-1")


def two_warps(origins: tuple[InstructionOrigin, ...] = ()) -> Case:
    instance = Instance.of(Program.chain("CL", origins=origins), 2)
    return instance, Schedule.of_chains(instance, [(0,), (0, 1), (1,)])


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


@given(cases())
@settings(deadline=None)
def test_a_table_has_a_row_per_warp_instruction(case: Case) -> None:
    instance, schedule = case
    blocks = instance.block_of_warp()
    told = rows(csv_table(*case))
    parted, parts = instance.machine.partitions > 1, partitions(*case)
    assert [tuple(row) for row in told] == [HEADER + PARTITION if parted else HEADER] * len(told)
    for row, bar in zip(told, bars(*case), strict=True):
        numbers = [int(row[name]) for name in ("cycle", "warp", "place", "port", "interval", "latency")]
        assert numbers == [bar.first_cycle, bar.warp, bar.place, bar.port, bar.cycles, bar.latency]
        assert int(row["finish_cycle"]) == bar.first_cycle + bar.latency
        assert instance.runs_ahead or bar.first_cycle + bar.latency <= schedule.makespan
        assert (row["unit"], int(row["block"]), row["source"]) == (bar.unit, blocks[bar.warp], "")
        assert row.get("partition") == (str(parts[bar.warp]) if parted else None)


def test_a_table_names_the_lines_that_instructions_come_from() -> None:
    told = rows(csv_table(*two_warps((InstructionOrigin("a.ptx", 3, "add", "a.cu:1"), InstructionOrigin("a.ptx", 4)))))
    assert [(row["source"], row["compiled_from"]) for row in told[:2]] == [("a.ptx:3", "a.cu:1"), ("a.ptx:4", "")]


@pytest.mark.parametrize("begin", ["=", "+", "-", "@", "\t=", "\r\n+", " =", "\uff1d", "'="])
def test_a_name_is_no_formula_of_a_spreadsheet(begin: str) -> None:
    name = f'{begin}cmd|"/c calc"!A1'
    told = rows(csv_table(*two_warps((InstructionOrigin(name, 3, "", name), InstructionOrigin("b", 4)))))
    for text in (told[0]["source"], told[0]["compiled_from"]):
        assert text.startswith("'")
        assert text.isprintable()


@given(st.text())
def test_any_text_becomes_one_harmless_cell(text: str) -> None:
    written = io.StringIO()
    csv.writer(written).writerow([safe_cell(text), "next"])
    assert [row[1:] for row in csv.reader(io.StringIO(written.getvalue(), newline=""))] == [["next"]]
    assert not safe_cell(text).startswith(("=", "+", "-", "@"))
    assert all(letter.isprintable() for letter in safe_cell(text))


def check_trace_events(told: dict[str, Any]) -> None:
    """The rules of the format for the two kinds of events that we write."""
    assert set(told) <= {"traceEvents", "displayTimeUnit", "otherData"}
    assert told["displayTimeUnit"] in ("ms", "ns")
    tracks = defaultdict(list)
    for event in told["traceEvents"]:
        assert type(event["name"]) is str
        assert all(type(event[key]) is int and event[key] >= 0 for key in ("ts", "pid", "tid"))
        assert type(event["args"]) is dict
        if event["ph"] == "M":
            assert event["name"] in ("process_name", "thread_name", "process_sort_index", "thread_sort_index")
            key, kind = ("name", str) if event["name"].endswith("_name") else ("sort_index", int)
            assert type(event["args"][key]) is kind
        else:
            assert event["ph"] == "X"
            assert type(event["cat"]) is str
            assert type(event["dur"]) is int
            assert event["dur"] > 0
            tracks[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    for slices in tracks.values():  # events of a track must nest; ours follow one another
        assert all(end <= first for (_, end), (first, _) in pairwise(sorted(slices)))
    named = {(e["pid"], e["tid"]) for e in told["traceEvents"] if e["name"] == "thread_name"}
    assert set(tracks) <= named
    assert all(track > 0 for _, track in named)


@given(cases())
@settings(deadline=None)
def test_a_trace_obeys_its_format_and_holds_exactly_the_slices_of_the_schedule(case: Case) -> None:
    instance, schedule = case
    told = json.loads(json.dumps(trace_document(*case)))
    check_trace_events(told)
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in told["traceEvents"] if e["name"] == "thread_name"}
    slices = [event for event in told["traceEvents"] if event["ph"] == "X"]
    shown = sorted((names[e["pid"], e["tid"]], e["ts"], e["dur"], e["cat"], e["args"]["warp"]) for e in slices)
    issued = bars(*case)
    between = waits(instance, schedule, issued)
    expected = [(f"{bar.unit}{bar.port}", bar.first_cycle, bar.cycles, "port", bar.warp) for bar in issued]
    beside = holds(instance, schedule, issued)
    expected += [(f"{h.resource} {h.port}", h.first_cycle, h.cycles, "resource", h.warp) for h in beside]
    parted = instance.machine.partitions > 1
    name = [f"warp {w}" + (f" of partition {part}" if parted else "") for w, part in enumerate(partitions(*case))]
    expected += [(name[bar.warp], bar.first_cycle, 1, "issue", bar.warp) for bar in issued]
    expected += [(name[wait.warp], wait.first_cycle, wait.cycles, str(wait.why), wait.warp) for wait in between]
    assert shown == sorted(expected)
    assert told["otherData"]["time_unit"] == "1 microsecond stands for 1 cycle"


def test_a_trace_escapes_what_files_say() -> None:
    text = json.dumps(
        trace_document(*two_warps((InstructionOrigin('a"\x00\ud800</script>', 3), InstructionOrigin("b", 4))))
    )
    assert text.isascii()
    assert text.isprintable()
    assert json.loads(text)["traceEvents"][-2]["args"]["warp"] == 1


@given(cases())
@settings(deadline=None)
def test_the_document_obeys_its_schema_and_holds_bars_waits_and_gaps(case: Case) -> None:
    instance, schedule = case
    told = json.loads(json.dumps(chart_document(*case)))
    SCHEMA.validate(told)
    issued = bars(*case)
    between = waits(instance, schedule, issued)
    assert [tuple(bar.values()) for bar in told["bars"]] == list(issued)
    assert told["waits"] == [
        {key: value for key, value in wait._asdict().items() if key != "place" and (key, value) != ("cause", None)}
        for wait in between
    ]
    if instance.machine.partitions > 1:
        assert told["partition_of_warp"] == list(partitions(*case))
    if instance.machine.resources:
        assert [tuple(hold.values()) for hold in told["holds"]] == list(holds(instance, schedule, issued))
    idle = [
        (gap["first_cycle"], gap["cycles"], lane["unit"], lane["port"], gap["why"])
        for lane in told["lanes"]
        for gap in lane["idle"]
    ]
    assert idle == list(gaps(instance, schedule, issued, between))
    assert told["makespan"] == schedule.makespan


@pytest.mark.parametrize(
    ("name", "begin"),
    [
        ("a.json", b'{"schema":"makespan.schedule/1"'),
        ("a.csv", b"cycle,warp,"),
        ("a.trace.json", b'{"traceEvents":['),
        ("A.TRACE.JSON", b'{"traceEvents":['),
        ("a.png", b"\x89PNG"),
        ("a.trace.json.csv", b"cycle,warp,"),
    ],
)
def test_the_end_of_the_name_says_what_is_written(name: str, begin: bytes, tmp_path: Path) -> None:
    write_schedule(*two_warps(), tmp_path / name, ScheduleView("t"))
    assert (tmp_path / name).read_bytes().startswith(begin)
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", ["a.txt", "json", ".json", "a.trace"])
def test_another_end_is_refused_with_those_that_are_known(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"in \.json or \.csv for data, or in \.trace\.json for trace events"):
        write_schedule(*two_warps(), tmp_path / name, ScheduleView("t"))
    assert not list(tmp_path.iterdir())
