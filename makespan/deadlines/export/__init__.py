"""Task sets for other tools, as texts; what changes who runs when and cannot be expressed is refused, never left out.

What a tool takes differently is said in the notes, which stand in the texts too where their format has comments.

for name, text in export(task_set, Format.SIMSO, tick=units.PICOSECOND, stem="tasks").files.items(): ...
"""

from enum import StrEnum
from fractions import Fraction

from makespan.deadlines.export import pycpa, simso
from makespan.deadlines.export.common import ExportedTexts, refuse_unknown_here
from makespan.deadlines.task import TaskSet

__all__ = ["ExportedTexts", "Format", "export"]


class Format(StrEnum):
    """A tool that reads what `export` writes."""

    SIMSO = "simso"
    """XML of the simulator SimSo, and the module of its scheduler (Chéramy, Hladik and Déplanche, WATERS 2014)"""
    PYCPA = "pycpa"
    """Python script for compositional performance analysis (Diemer, Axer and Ernst, WATERS 2012)"""


_WRITERS = {
    Format.SIMSO: simso.simso_simulation,
    Format.PYCPA: pycpa.pycpa_script,
}


def export(task_set: TaskSet, kind: Format, *, tick: Fraction, stem: str) -> ExportedTexts:
    """Return texts by file name, each name beginning with `stem`, with notes on what differs from the task set.

    Args:
        tick: The length of a tick in seconds.

    Raises:
        InputError: the tool cannot express the task set; the message says what.
    """
    refuse_unknown_here(task_set)
    return _WRITERS[kind](task_set, tick, stem)
