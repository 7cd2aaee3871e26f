"""Task sets for other tools, as texts; what a tool cannot express is refused, never left out.

for name, text in export(task_set, Format.SIMSO, tick=units.PICOSECOND, stem="tasks").items(): ...
"""

from collections.abc import Mapping
from enum import StrEnum
from fractions import Fraction

from makespan.schedulability.export import pycpa, rt_app, schedule_abstraction, simso
from makespan.schedulability.export.common import refuse_unassigned
from makespan.schedulability.task import TaskSet

__all__ = ["Format", "export"]


class Format(StrEnum):
    """A tool that reads what `export` writes."""

    SIMSO = "simso"
    """XML of the simulator SimSo, and the module of its scheduler (Chéramy, Hladik and Déplanche, WATERS 2014)"""
    SCHEDULE_ABSTRACTION = "schedule-abstraction"
    """CSV job sets of the exact analysis of non-preemptive jobs (Nasri and Brandenburg, RTSS 2017)"""
    PYCPA = "pycpa"
    """Python script for compositional performance analysis (Diemer, Axer and Ernst, WATERS 2012)"""
    RT_APP = "rt-app"
    """JSON for the workload emulator rt-app of Linux"""


_WRITERS = {
    Format.SIMSO: simso.files,
    Format.SCHEDULE_ABSTRACTION: schedule_abstraction.files,
    Format.PYCPA: pycpa.files,
    Format.RT_APP: rt_app.files,
}


def export(task_set: TaskSet, kind: Format, *, tick: Fraction, stem: str) -> Mapping[str, str]:
    """Texts by file name, each name beginning with `stem`.

    Args:
        tick: length of a tick in seconds.

    Raises:
        InputError: the tool cannot express the task set; the message says what.
    """
    refuse_unassigned(task_set)
    return _WRITERS[kind](task_set, tick, stem)
