"""Files of launches that share a GPU: TOML, a table for each kernel."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from makespan.host.errors import InputError
from makespan.kernels.gpu_question import SharedLaunch, as_given, of_kernels
from makespan.kernels.options import LAUNCH_OPTIONS, kernel_question, key_of_field, launch_values
from makespan.kernels.question import KernelQuestion, launch_kernel
from makespan.kernels.toml_table import amounts, entry_name, only, read_tables, tables, text
from makespan.model.gpu import GpuInstance
from makespan.model.gpu.instance import MAX_GRIDS
from makespan.model.machine import GivenRange, Machine, narrow_intervals
from makespan.model.machine.gpus import Gpu

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


@dataclass(frozen=True, slots=True)
class SharedLaunches:
    """Launches that are there together.

    Args:
        room: what an SM has of each resource; None where machine code and the GPU tell.
    """

    launches: tuple[SharedLaunch, ...]
    room: Mapping[str, int] | None


def shared_gpu(
    path: Path, machine: Machine | None, card: Gpu | None, *, sms: int, holds: Mapping[str, GivenRange]
) -> GpuInstance:
    """Return all blocks of the launches that a file describes, on `sms` SMs.

    Args:
        machine: each SM; None for that of `card`, or without one for the one that all kernels are for by default.
        holds: for how long ports are held, see `narrow_intervals`.

    Raises:
        InputError: kernels for different machines where none is named; or see `read_launches` and `of_kernels`.
    """
    found = read_launches(path, machine, card)
    # All launches share the SMs, so there is one machine: that which is named, or the only default.
    defaults = () if machine or card else dict.fromkeys(launch.kernel.default_machine for launch in found.launches)
    if len(defaults) > 1:
        raise InputError(f"{path}: the launches are for different machines: say which one with --machine or --gpu")
    chosen = machine or (card.machine if card else next(iter(defaults)))
    try:
        gpu = of_kernels(found.launches, narrow_intervals(chosen, holds), sms=sms, card=card, room=found.room)
    except InputError as error:
        raise type(error)(f"{path}: {error}") from None
    return as_given(gpu, machine, card)


def read_launches(path: Path, machine: Machine | None = None, card: Gpu | None = None) -> SharedLaunches:
    """Return the launches that a file describes; paths in it start from its folder.

    Args:
        machine: the one that is named, and `card` the GPU, see `question.launched`.

    Raises:
        InputError: a file that cannot be read, anything unknown in it, or a kernel that is none.
    """
    document = read_tables(path, "file of launches")
    try:
        return _launches(document, path.parent, machine, card)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _launches(
    document: Mapping[str, object], folder: Path, machine: Machine | None, card: Gpu | None
) -> SharedLaunches:
    if "instance" in document:
        raise InputError("an instance file is about one SM, and on a whole GPU there are tables [[launch]]")
    only(document, ("room", "launch"), "the file")
    room = amounts(document["room"], "room", 1) if "room" in document else None
    if room == {}:
        raise InputError("room is empty: say what an SM has, such as room = { blocks = 16 }")
    found = [_launch(table, folder) for table in tables(document, "launch", MAX_GRIDS, needed=True)]
    names = [name for name, _, _ in found]
    if twice := [name for name in names if names.count(name) > 1]:
        raise InputError(f"two launches are called {twice[0]}")
    # Without room, machine code tells what a block takes: `takes` would have no effect.
    if room is None and (said := [name for name, _, takes in found if takes]):
        raise InputError(f"launch {said[0]}: takes is nothing without room: say what an SM has in [room]")
    # Kernels are read after all tables are checked: a compiler may take long.
    shared = (SharedLaunch(name, launch_kernel(question, machine, card), takes) for name, question, takes in found)
    return SharedLaunches(tuple(shared), room)


def _launch(table: Mapping[str, object], folder: Path) -> tuple[str, KernelQuestion, dict[str, int]]:
    """Return what a table `[[launch]]` says: its name, its kernel, and what a block takes of an SM."""
    name = entry_name(table, "a launch")
    where = f"launch {name}"
    for keys, reason in _NOT_OF_A_LAUNCH.items():
        if said := [key for key in keys if key in table]:
            raise InputError(f"{where}: {said[0]}: {reason}")
    only(table, ("name", "kernel", "takes", *(key for key, each in LAUNCH_OPTIONS.items() if not each.alone)), where)
    if "kernel" not in table:
        raise InputError(f"{where} has no kernel: give its file")
    try:
        path = folder / text(table["kernel"], "kernel")
        question = kernel_question(path, launch_values(table, folder), key_of_field)
        return name, question, amounts(table.get("takes", {}), "takes", 0)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
