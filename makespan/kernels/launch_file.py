"""Files of launches that share a GPU: TOML, a table for each kernel."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from makespan.host.errors import InputError, prefix_errors
from makespan.kernels.options import LAUNCH_OPTIONS, kernel_question, key_of_field, launch_values
from makespan.kernels.question import KernelQuestion
from makespan.kernels.toml_table import amounts, entry_name, only, read_tables, tables, text
from makespan.model.gpu.instance import MAX_GRIDS

_NOT_OF_A_LAUNCH = {
    ("machine", "capacity", "hold"): "all launches are on the same SMs: say it on the command line",
    (
        "blocks_per_sm",
    ): "blocks of several launches share an SM: say what an SM has in [room], and what a block takes of it in takes",
    ("stream", "after", "depends"): "the proof knows no launch that waits for another one, as those of one stream do:"
    " ask for each alone, and add up",
    (
        "start",
        "offset",
        "period",
        "jitter",
    ): "the proof knows launches that are all there in cycle 0, at no other time",
    ("priority",): "the proof is for any order of blocks, so for that of priorities as well: leave it out (a block that"
    " runs is never preempted by one)",
    ("cooperative", "cluster"): "the proof knows no blocks that wait for each other, as those of cooperative launches"
    " and of clusters do",
}
"""What a launch beside others does not say, and why."""


class LaunchTable(NamedTuple):
    """A table `[[launch]]`: its name, its kernel, and what a block takes of each resource of an SM."""

    name: str
    question: KernelQuestion
    takes: Mapping[str, int]


class SharedLaunches(NamedTuple):
    """Launches that are there together.

    Args:
        launches: their tables.
        room: what an SM has of each resource; None where machine code and the GPU tell.
    """

    launches: tuple[LaunchTable, ...]
    room: Mapping[str, int] | None


def read_launches(path: Path) -> SharedLaunches:
    """Return what a file of launches says; paths in it start from its folder. No kernel is read.

    Raises:
        InputError: a file that cannot be read, or anything unknown in it.
    """
    document = read_tables(path, "file of launches")
    with prefix_errors(str(path)):
        if "instance" in document:
            raise InputError("an instance file is about one SM, and on a whole GPU there are tables [[launch]]")
        only(document, ("room", "launch"), "the file")
        room = amounts(document["room"], "room", 1) if "room" in document else None
        if room == {}:
            raise InputError("room is empty: say what an SM has, such as room = { blocks = 16 }")
        found = tuple(_launch(table, path.parent) for table in tables(document, "launch", MAX_GRIDS, needed=True))
        names = [launch.name for launch in found]
        if twice := [name for name in names if names.count(name) > 1]:
            raise InputError(f"two launches are called {twice[0]}")
        # Without room, machine code tells what a block takes: `takes` would have no effect.
        if room is None and (said := [launch.name for launch in found if launch.takes]):
            raise InputError(f"launch {said[0]}: takes is nothing without room: say what an SM has in [room]")
    return SharedLaunches(found, room)


def _launch(table: Mapping[str, object], folder: Path) -> LaunchTable:
    name = entry_name(table, "a launch")
    where = f"launch {name}"
    for keys, reason in _NOT_OF_A_LAUNCH.items():
        if said := [key for key in keys if key in table]:
            raise InputError(f"{where}: {said[0]}: {reason}")
    only(table, ("name", "kernel", "takes", *(key for key, each in LAUNCH_OPTIONS.items() if not each.alone)), where)
    if "kernel" not in table:
        raise InputError(f"{where} has no kernel: give its file")
    with prefix_errors(where):
        path = folder / text(table["kernel"], "kernel")
        question = kernel_question(path, launch_values(table, folder), key_of_field)
        return LaunchTable(name, question, amounts(table.get("takes", {}), "takes", 0))
