"""A schedule in a file: the end of its name says whether as a picture, as data or as a trace."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from makespan.host.errors import InputError
from makespan.host.output_file import check_writable, write_whole
from makespan.model.instance import Instance
from makespan.model.schedule import Schedule
from makespan.report.pictures import PICTURES
from makespan.report.schedule.document import chart_document
from makespan.report.schedule.picture import ScheduleView, draw_gantt
from makespan.report.schedule.table import csv_table
from makespan.report.schedule.trace import trace_document

_TRACE = ".trace.json"
_DATA: Mapping[str, Callable[[Instance, Schedule], str | dict[str, Any]]] = {
    ".json": chart_document,
    ".csv": csv_table,
    _TRACE: trace_document,
}
"""What a file holds, a text or a document, by the end of its name; the longest that fits counts."""

ENDS = (*PICTURES, *_DATA)
"""How the name of a schedule may end."""


def check_schedule_path(path: Path) -> None:
    """Refuse a path at once that no schedule can be written to, so that no work is lost on it.

    Raises:
        InputError: another end than a known one, a folder, or a folder that takes no file.
    """
    if path.suffix.lower() not in ENDS:
        raise InputError(
            f"{path}: the name must end in .png, .svg or .pdf for a picture, in .json or .csv for data,"
            f" or in {_TRACE} for trace events"
        )
    check_writable(path, "the schedule")


def write_schedule(instance: Instance, schedule: Schedule, path: Path, view: ScheduleView) -> None:
    """Write `schedule` to `path`, whole or not at all; the view is for pictures.

    Raises:
        InputError: an unknown end of the name, or a file that cannot be written.
    """
    check_schedule_path(path)
    if path.suffix.lower() in PICTURES:
        draw_gantt(instance, schedule, path, view)
        return
    made = _DATA[max((end for end in _DATA if path.name.lower().endswith(end)), key=len)](instance, schedule)
    text = made if isinstance(made, str) else f"{json.dumps(made, separators=(',', ':'))}\n"
    write_whole(path, text.encode("utf-8", "backslashreplace"), "the schedule")
