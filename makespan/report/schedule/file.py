"""A schedule in a file: the end of its name says whether as a picture, as data or as a trace."""

import json
from pathlib import Path

from makespan.errors import InputError
from makespan.instance import Instance
from makespan.report.files import check_writable, write_whole
from makespan.report.pictures import PICTURES
from makespan.report.schedule.document import chart_document
from makespan.report.schedule.panels import Window
from makespan.report.schedule.picture import draw_gantt
from makespan.report.schedule.table import table
from makespan.report.schedule.trace import trace
from makespan.schedule import Schedule

_TRACE = ".trace.json"


def check_schedule_path(path: Path) -> None:
    """Refuse a path at once that no schedule can be written to, so that no work is lost on it.

    Raises:
        InputError: another end than a known one, a folder, or a folder that takes no file.
    """
    if path.suffix.lower() not in (*PICTURES, ".json", ".csv"):
        raise InputError(
            f"{path}: the name must end in .png, .svg or .pdf for a picture, in .json or .csv for data,"
            f" or in {_TRACE} for trace events"
        )
    check_writable(path, "the schedule")


def write_schedule(
    instance: Instance,
    schedule: Schedule,
    path: Path,
    *,
    title: str,
    subtitle: str = "",
    window: Window | None = None,
) -> None:
    """Write `schedule` to `path`, whole or not at all; title, subtitle and window are for pictures.

    Raises:
        InputError: an unknown end of the name, or a file that cannot be written.
    """
    check_schedule_path(path)
    name = path.name.lower()
    if path.suffix.lower() in PICTURES:
        draw_gantt(instance, schedule, path, title=title, subtitle=subtitle, window=window)
        return
    if name.endswith(".csv"):
        text = table(instance, schedule)
    else:
        data = trace(instance, schedule) if name.endswith(_TRACE) else chart_document(instance, schedule)
        text = f"{json.dumps(data, separators=(',', ':'))}\n"
    write_whole(path, text.encode("utf-8", "backslashreplace"), "the schedule")
