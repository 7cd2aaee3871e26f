"""Files of launches that share a GPU: TOML, a table for each kernel and one of what an SM has room for."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from makespan.errors import InputError
from makespan.gpu.instance import MAX_GRIDS
from makespan.schedulability.entries import amounts, launch, only, tables
from makespan.schedulability.files import checked_text
from makespan.text_file import parse_toml

if TYPE_CHECKING:
    from makespan.gpu_question import SharedLaunch
    from makespan.machine import Machine
    from makespan.machine.gpus import Gpu


@dataclass(frozen=True, slots=True)
class Launches:
    """Launches that are there together.

    Args:
        room: what an SM has of each resource; None where machine code and the GPU tell.
    """

    launches: tuple["SharedLaunch", ...]
    room: Mapping[str, int] | None


def read(path: Path, machine: "Machine | None" = None, card: "Gpu | None" = None) -> Launches:
    """The launches that a file describes; paths in it start from its folder.

    Args:
        machine: the one that is named, and `card` the GPU, see `question.launched`.

    Raises:
        InputError: a file that cannot be read, anything unknown in it, or a kernel that is none.
    """
    what = "file of launches"
    document = parse_toml(checked_text(path, what), what, str(path))
    try:
        return _launches(document, path.parent, machine, card)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _launches(document: Mapping[str, object], folder: Path, machine: "Machine | None", card: "Gpu | None") -> Launches:
    from makespan.gpu_question import SharedLaunch
    from makespan.question import launched

    if "instance" in document:
        raise InputError("an instance file is about one SM, and on a whole GPU there are tables [[launch]]")
    only(document, ("room", "launch"), "the file")
    room = amounts(document["room"], "room", 1) if "room" in document else None
    if room == {}:
        raise InputError("room is empty: say what an SM has, such as room = { blocks = 16 }")
    found = [launch(table, folder) for table in tables(document, "launch", MAX_GRIDS, needed=True)]
    names = [name for name, _, _ in found]
    if twice := [name for name in names if names.count(name) > 1]:
        raise InputError(f"two launches are called {twice[0]}")
    if room is None and (said := [name for name, _, takes in found if takes]):
        raise InputError(f"launch {said[0]}: takes is nothing without room: say what an SM has in [room]")
    shared = (SharedLaunch(name, launched(question, machine, card), takes) for name, question, takes in found)
    return Launches(tuple(shared), room)
