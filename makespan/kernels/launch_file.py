"""Tables that describe kernel launches, and files of launches that share a GPU: TOML, a table for each kernel."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from makespan.host.errors import InputError, did_you_mean
from makespan.host.text_file import parse_toml, read_text
from makespan.model.gpu.instance import MAX_GRIDS, MAX_ROOM
from makespan.model.instance import MAX_WARPS
from makespan.model.machine import Machine, find_machine, given_latencies
from makespan.model.machine.values import check_name, check_whole, shown

if TYPE_CHECKING:
    from makespan.kernels.gpu_question import SharedLaunch
    from makespan.kernels.question import KernelQuestion
    from makespan.model.machine.gpus import Gpu

MAX_FILE_BYTES = 1 << 20
MAX_LINE = 2000
MAX_TEXT = 500
MAX_BLOCKS = 2**31 - 1
MAX_ITEMS = 1000
MAX_SHARED_BYTES = 1 << 20
MAX_RESOURCES = 16

LAUNCH_KEYS = (
    "entry", "block", "grid", "warps", "blocks_per_sm", "param", "loop_bound", "take", "trace", "profile", "classes",
    "unknown", "machine", "capacity", "dependences", "latency", "hold", "arch", "dynamic_shared",
)  # fmt: skip

_OF_ALL_LAUNCHES = ("machine", "capacity", "hold", "blocks_per_sm")
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

Choice = TypeVar("Choice", bound=StrEnum)
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Launches:
    """Launches that are there together.

    Args:
        room: what an SM has of each resource; None where machine code and the GPU tell.
    """

    launches: tuple["SharedLaunch", ...]
    room: Mapping[str, int] | None


def read(path: Path, machine: Machine | None = None, card: "Gpu | None" = None) -> Launches:
    """Return the launches that a file describes; paths in it start from its folder.

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


def _launches(document: Mapping[str, object], folder: Path, machine: Machine | None, card: "Gpu | None") -> Launches:
    from makespan.kernels.gpu_question import SharedLaunch
    from makespan.kernels.question import launched

    if "instance" in document:
        raise InputError("an instance file is about one SM, and on a whole GPU there are tables [[launch]]")
    only(document, ("room", "launch"), "the file")
    room = amounts(document["room"], "room", 1) if "room" in document else None
    if room == {}:
        raise InputError("room is empty: say what an SM has, such as room = { blocks = 16 }")
    found = [launch_entry(table, folder) for table in tables(document, "launch", MAX_GRIDS, needed=True)]
    names = [name for name, _, _ in found]
    if twice := [name for name in names if names.count(name) > 1]:
        raise InputError(f"two launches are called {twice[0]}")
    if room is None and (said := [name for name, _, takes in found if takes]):
        raise InputError(f"launch {said[0]}: takes is nothing without room: say what an SM has in [room]")
    shared = (SharedLaunch(name, launched(question, machine, card), takes) for name, question, takes in found)
    return Launches(tuple(shared), room)


def checked_text(path: Path, what: str) -> str:
    """Return the text of a file that people write.

    Raises:
        InputError: it cannot be read, is too large, or has a line that is too long.
    """
    content = read_text(path, what, MAX_FILE_BYTES)
    for number, line in enumerate(content.splitlines(), start=1):
        if len(line) > MAX_LINE:
            raise InputError(f"{path}:{number}: a line of {len(line)} characters; the limit is {MAX_LINE}")
    return content


def launch_entry(table: Mapping[str, object], folder: Path) -> tuple[str, "KernelQuestion", dict[str, int]]:
    """Return a table `[[launch]]` of a kernel that shares a GPU with others: its name, and what a block takes of an SM.

    Raises:
        InputError: an unknown key, one that nothing is proven of, or one that is missing or does not fit.
    """
    name = entry_name(table, "a launch")
    where = f"launch {name}"
    for keys, reason in _NOT_OF_A_LAUNCH.items():
        if said := [key for key in keys if key in table]:
            raise InputError(f"{where}: {said[0]}: {reason}")
    only(table, ("name", "kernel", "takes", *(key for key in LAUNCH_KEYS if key not in _OF_ALL_LAUNCHES)), where)
    if "kernel" not in table:
        raise InputError(f"{where} has no kernel: give its file")
    try:
        path = folder / text(table["kernel"], "kernel")
        return name, launch_question(table, path, folder), amounts(table.get("takes", {}), "takes", 0)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def launch_question(table: Mapping[str, object], path: Path, folder: Path) -> "KernelQuestion":
    """Return the question about a kernel that a table describes; paths in it start from `folder`.

    Raises:
        InputError: a value does not fit.
    """
    from makespan.kernels import flow, ptx
    from makespan.kernels.question import KernelQuestion

    def given(key: str, read: Callable[[object, str], Value]) -> Value | None:
        return read(table[key], key) if key in table else None

    def file(value: object, what: str) -> Path:
        return folder / text(value, what)

    def warps(value: object, what: str) -> int:
        return count(value, what, MAX_WARPS)

    def size(value: object, what: str) -> int:
        return 0 if value == 0 and not isinstance(value, bool) else count(value, what, MAX_SHARED_BYTES)

    def dependences(value: object, what: str) -> ptx.Dependences:
        return choice(value, ptx.Dependences, what)

    profile, classes, trace = given("profile", text) or "paper", given("classes", file), given("trace", file)
    if profile not in ptx.PROFILES:
        raise InputError(f"profile must be one of {', '.join(ptx.PROFILES)}, not {shown(profile)}")
    bounds = given("loop_bound", texts) or ()
    return KernelQuestion(
        path,
        entry=given("entry", text),
        launch=flow.launch(given("block", _extent), given("grid", _extent), given("param", _params) or (), named=_key),
        warps=given("warps", warps),
        blocks_per_sm=given("blocks_per_sm", warps),
        dynamic_shared=given("dynamic_shared", size),
        loop_bounds=flow.loop_bounds(item if "=" in item else str(folder / item) for item in bounds),
        classes=ptx.Classes(profile, {} if classes is None else ptx.read_classes(classes), given("unknown", text)),
        take=flow.parse_takes(given("take", texts) or ()),
        trace=None if trace is None else flow.read_trace(trace),
        dependences=given("dependences", dependences),
        latencies=given_latencies(given("latency", texts) or ()),
        arch=given("arch", text),
        named=_key,
    )


def _key(field: str) -> str:
    """What a field of a kernel question is called in a table."""
    return {"loop_bounds": "loop_bound", "latencies": "latency", "parameters": "param"}.get(field, field)


def launch_machine(table: Mapping[str, object], folder: Path) -> Machine | None:
    """Return the machine that a table names, or describes by its capacities; None where it does neither.

    Raises:
        InputError: it does both, or a value does not fit.
    """
    if "machine" in table and "capacity" in table:
        raise InputError("machine and capacity exclude each other")
    if "capacity" in table:
        return Machine.of(_capacities(table["capacity"]))
    if "machine" not in table:
        return None
    name = text(table["machine"], "machine")
    return find_machine(str(folder / name) if name.endswith(".toml") else name).machine


def _capacities(value: object) -> dict[str, int]:
    """`{ C = 2, L = 1 }` or `"C=2,L=1"`."""
    if isinstance(value, str):
        parts = [item.partition("=") for item in value.split(",")]
        value = {name.strip(): int(n) if n.strip().isdecimal() and len(n) < 10 else n for name, _, n in parts}
    if not isinstance(value, dict) or not value:
        raise InputError(f"capacity must be units per class such as {{ C = 2, L = 1 }}, not {shown(value)}")
    return value


def _params(value: object, what: str) -> tuple[str, ...]:
    """`["n=1024"]` or `{ n = 1024 }`."""
    if isinstance(value, dict):
        for name, number in value.items():
            if isinstance(number, bool) or not isinstance(number, (int, float)):
                raise InputError(f"{what}: {shown(name)} must be a number, not {shown(number)}")
        value = [f"{name}={number!r}" for name, number in value.items()]
    return texts(value, what)


def _extent(value: object, what: str) -> str:
    """`256` or `"16x16"`."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(count(value, what, MAX_BLOCKS))
    return text(value, what)


def amounts(value: object, what: str, least: int) -> dict[str, int]:
    """Return a table of whole numbers, such as `{ blocks = 16, warps = 48 }`."""
    if not isinstance(value, dict) or len(value) > MAX_RESOURCES:
        raise InputError(f"{what} must be a table of at most {MAX_RESOURCES} numbers, not {shown(value)}")
    for name, number in value.items():
        text(name, what)
        if number != 0 or isinstance(number, bool) or least:
            count(number, f"{what}: {name}", MAX_ROOM)
    return value


def tables(document: Mapping[str, object], key: str, most: int, *, needed: bool = False) -> list[dict[str, object]]:
    """Return the list of tables `[[key]]`.

    Raises:
        InputError: something else is there, too many, or none where at least one is needed.
    """
    found = document.get(key, [])
    if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
        raise InputError(f"{key} must be tables: begin each with [[{key}]]")
    if len(found) > most:
        raise InputError(f"{len(found)} tables [[{key}]]; the limit is {most}")
    if needed and not found:
        raise InputError(f"there is no [[{key}]]; give at least one")
    return found


def only(table: Mapping[str, object], known: Sequence[str], where: str) -> None:
    """Refuse keys that are not known: a misspelt one must not be silently without effect."""
    if unknown := [key for key in table if key not in known]:
        is_string = unknown[0] == "string" and "bundle" in known
        remedy = "; give the bundle that 'makespan solve --string ... --bundle FILE.json' leaves" if is_string else ""
        near = did_you_mean(unknown[0], known)
        raise InputError(f"{where}: unknown key {shown(unknown[0])}{remedy}{near or ';'} known: {', '.join(known)}")


def choice(value: object, kinds: type[Choice], what: str) -> Choice:
    """Return one of the values of an enumeration."""
    if not isinstance(value, str) or value not in list(kinds):
        raise InputError(f"{what} must be one of {', '.join(kinds)}, not {shown(value)}")
    return kinds(value)


def entry_name(table: Mapping[str, object], what: str) -> str:
    """Return the name of an entry.

    Raises:
        InputError: it has none, or it is not a short printable text.
    """
    if "name" not in table:
        raise InputError(f"{what} has no name: it has {', '.join(map(shown, table)) or 'nothing'}")
    check_name(table["name"], what)
    return str(table["name"])


def text(value: object, what: str) -> str:
    """Return a short printable text."""
    if not isinstance(value, str) or not value.isprintable() or not 1 <= len(value) <= MAX_TEXT:
        raise InputError(f"{what} must be a text of 1..{MAX_TEXT} printable characters, not {shown(value)}")
    return value


def texts(value: object, what: str) -> tuple[str, ...]:
    """Return a list of short printable texts.

    Raises:
        InputError: the value is something else.
    """
    if not isinstance(value, list) or len(value) > MAX_ITEMS:
        raise InputError(f"{what} must be a list of texts, not {shown(value)}")
    return tuple(text(item, what) for item in value)


def count(value: object, what: str, most: int) -> int:
    """Return a whole number 1..`most`."""
    check_whole(value, what, most)
    return int(str(value))
