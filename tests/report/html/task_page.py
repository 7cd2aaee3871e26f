"""A task set and what its page shows."""

from pathlib import Path
from typing import NoReturn

from makespan.deadlines.assessment import Assessment, assessments
from makespan.deadlines.evidence import worst_window
from makespan.deadlines.files import read
from makespan.deadlines.report.chart import ALL
from makespan.deadlines.report.page import PageContents
from makespan.deadlines.wcet import Solver, execution_times
from makespan.report.html.data import PageInput

EVIL = "</script><b>"
TEXT = f"""
priorities = "larger-first"
[[partition]]
name = "gpu"
policy = "fixed-priority"
[[copy_engine]]
name = "h2d"
policy = "fifo"
[[task]]
name = "camera"
core = "cpu0"
wait = "spin"
priority = 2
period = "20ms"
deadline = "20ms"
jitter = "1ms"
segments = [
    {{ cpu = "1ms" }},
    {{ copy = "2ms", engine = "h2d", evidence = "{EVIL}" }},
    {{ wcet = "3ms", evidence = "timed", partition = "gpu" }},
]
[[task]]
name = "net"
wcet = "9ms"
evidence = "timed"
priority = 1
period = "20ms"
deadline = "20ms"
partition = "gpu"
[[task]]
name = "{EVIL}"
wcet = "1ms"
evidence = "timed"
priority = 0
period = "20ms"
deadline = "20ms"
partition = "gpu"
[[chain]]
name = "c"
tasks = ["camera", "net"]
activation = "data"
"""


def assessed(folder: Path, text: str) -> Assessment:
    (folder / "tasks.toml").write_text(text)
    description = read(folder / "tasks.toml")
    *_, found = assessments(description, execution_times(description, Solver(_refuse)))
    return found


def found(known: Assessment) -> PageContents:
    names = ("camera", "net")
    windows = {name: worst_window(known.task_set, names=(name,), tries=3) for name in names}
    return PageContents(windows, {EVIL: "no time is known"}, ALL, (PageInput("tasks", "tasks.toml", TEXT.encode()),))


def _refuse() -> NoReturn:
    raise AssertionError("there is nothing to solve")
