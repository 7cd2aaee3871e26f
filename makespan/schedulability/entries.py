"""Tables of a task file as entries of a description: every key is known, every value has its type, unit and range."""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from makespan.errors import InputError
from makespan.gpu.instance import MAX_ROOM
from makespan.instance import MAX_WARPS
from makespan.machine import Machine, find, given_intervals, given_latencies
from makespan.machine.gpus import Gpu
from makespan.machine.values import MAX_SMS, check_whole, shown
from makespan.schedulability.description import (
    BundleFile,
    ChainEntry,
    GivenCycles,
    GivenTime,
    KernelLaunch,
    PartitionEntry,
    Source,
    TaskEntry,
)
from makespan.schedulability.task import Activation, Partition, Policy, check_name
from makespan.schedulability.units import duration

if TYPE_CHECKING:
    from makespan.question import KernelQuestion

MAX_TEXT = 500
MAX_BLOCKS = 2**31 - 1
MAX_PRIORITY = 10**9
MAX_GIVEN_CYCLES = 10**15
MAX_ITEMS = 1000
MAX_SHARED_BYTES = 1 << 20
MAX_RESOURCES = 16

NUMBERS = frozenset({"cycles", "priority", "warps", "blocks_per_sm", "dynamic_shared", "sms"})
"""Keys whose values are whole numbers."""
LISTS = frozenset({"param", "loop_bound", "take", "latency", "hold"})
"""Keys whose values are lists of texts."""

_TIMES = ("period", "deadline", "jitter", "offset", "cpu_before", "cpu_after")
_PLACES = ("priority", "partition", "core")
_SOURCES = ("wcet", "cycles", "bundle", "kernel")
_LAUNCH = (
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


def task(table: Mapping[str, object], folder: Path, *, vouched: str = 'evidence = "..."') -> TaskEntry:
    """A table `[[task]]`, or a row with the same keys.

    Args:
        vouched: where evidence belongs, for a message.

    Raises:
        InputError: an unknown key, a missing one, or a value that does not fit; the message names the task.
    """
    name = _name(table, "a task")
    where = f"task {name}"
    only(table, ("name", *_TIMES, *_PLACES, *_SOURCES, "evidence", *_LAUNCH), where)
    times = {key: duration(table[key], f"{where}: {key}") for key in _TIMES if key in table}
    for key in ("period", "deadline"):
        if key not in times:
            raise InputError(f'{where} has no {key}: give one such as {key} = "10ms"')
        if times[key] == 0:
            raise InputError(f"{where}: {key} must be more than zero")
    core = _optional_text(table, "core", where)
    before, after = times.get("cpu_before", Fraction(0)), times.get("cpu_after", Fraction(0))
    if core is None and before + after:
        raise InputError(f'{where} has CPU time and no core: say which one runs it, such as core = "cpu0"')
    return TaskEntry(
        name=name,
        source=_source(table, folder, where, vouched),
        period=times["period"],
        deadline=times["deadline"],
        jitter=times.get("jitter", Fraction(0)),
        offset=times.get("offset"),
        priority=_priority(table, where),
        before=before,
        after=after,
        core=core,
        partition=_optional_text(table, "partition", where),
    )


def partition(table: Mapping[str, object], card: Gpu | None = None) -> PartitionEntry:
    """A table `[[partition]]`, of SMs of a GPU if somebody says which.

    Raises:
        InputError: an unknown key, no name or policy, no such policy, or not so many SMs.
    """
    name = _name(table, "a partition")
    where = f"partition {name}"
    only(table, ("name", "policy", "sms"), where)
    if "policy" not in table:
        raise InputError(f"{where} has no policy: give one of {', '.join(Policy)}")
    policy = choice(table["policy"], Policy, f"{where}: policy")
    return PartitionEntry(Partition(name, policy), sms(table.get("sms"), card, f"{where}: sms"))


def sms(value: object, card: Gpu | None, what: str) -> int:
    """A number of SMs; of a GPU also the name of a MIG instance, which has so many.

    Where nothing is said (None) it is one SM, but not of a GPU: there each partition says how many are its own.
    """
    if value is None:
        if card is not None:
            raise InputError(f"{what} is missing: how many SMs of GPU {card.name} does it have? give sms = N")
        return 1
    if card is None or not isinstance(value, str):
        count(value, what, MAX_SMS)
    if card is None:
        return int(str(value))
    try:
        return card.count_sms(str(value))
    except InputError as error:
        raise InputError(f"{what}: {error}") from None


def launch(table: Mapping[str, object], folder: Path) -> tuple[str, "KernelQuestion", dict[str, int]]:
    """A table `[[launch]]` of a kernel that shares a GPU with others: its name, and what a block takes of an SM.

    Raises:
        InputError: an unknown key, one that nothing is proven of, or one that is missing or does not fit.
    """
    name = _name(table, "a launch")
    where = f"launch {name}"
    for keys, reason in _NOT_OF_A_LAUNCH.items():
        if said := [key for key in keys if key in table]:
            raise InputError(f"{where}: {said[0]}: {reason}")
    only(table, ("name", "kernel", "takes", *(key for key in _LAUNCH if key not in _OF_ALL_LAUNCHES)), where)
    if "kernel" not in table:
        raise InputError(f"{where} has no kernel: give its file")
    try:
        path = folder / text(table["kernel"], "kernel")
        return name, _question(table, path, folder), amounts(table.get("takes", {}), "takes", 0)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def amounts(value: object, what: str, least: int) -> dict[str, int]:
    """A table of whole numbers, such as `{ blocks = 16, warps = 48 }`."""
    if not isinstance(value, dict) or len(value) > MAX_RESOURCES:
        raise InputError(f"{what} must be a table of at most {MAX_RESOURCES} numbers, not {shown(value)}")
    for name, number in value.items():
        text(name, what)
        if number != 0 or isinstance(number, bool) or least:
            count(number, f"{what}: {name}", MAX_ROOM)
    return value


def chain(table: Mapping[str, object]) -> ChainEntry:
    """A table `[[chain]]`.

    Raises:
        InputError: an unknown key, or one that is missing or does not fit.
    """
    name = _name(table, "a chain")
    where = f"chain {name}"
    only(table, ("name", "tasks", "activation", "deadline"), where)
    for key in ("tasks", "activation"):
        if key not in table:
            raise InputError(f"{where} has no {key}")
    activation = choice(table["activation"], Activation, f"{where}: activation")
    deadline = duration(table["deadline"], f"{where}: deadline") if "deadline" in table else None
    if deadline == 0:
        raise InputError(f"{where}: deadline must be more than zero")
    return ChainEntry(name, _texts(table["tasks"], f"{where}: tasks"), activation, deadline)


def tables(document: Mapping[str, object], key: str, most: int, *, needed: bool = False) -> list[dict[str, object]]:
    """The list of tables `[[key]]`.

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
        raise InputError(f"{where}: unknown key {shown(unknown[0])}{remedy}; known: {', '.join(known)}")


def choice(value: object, kinds: type[Choice], what: str) -> Choice:
    """One of the values of an enumeration."""
    if not isinstance(value, str) or value not in list(kinds):
        raise InputError(f"{what} must be one of {', '.join(kinds)}, not {shown(value)}")
    return kinds(value)


# Where an execution time comes from


def _source(table: Mapping[str, object], folder: Path, where: str, vouched: str) -> Source:
    given = [key for key in _SOURCES if key in table]
    if len(given) != 1:
        problem = f"{' and '.join(given)} exclude each other" if given else "has no execution time"
        raise InputError(f"{where}{': ' if given else ' '}{problem}: give exactly one of {', '.join(_SOURCES)}")
    kind = given[0]
    if kind != "kernel" and (launch := [key for key in _LAUNCH if key in table]):
        raise InputError(f"{where}: {launch[0]} belongs to a kernel, and the execution time comes from {kind}")
    evidence = _optional_text(table, "evidence", where)
    if evidence is not None and not evidence.strip():
        raise InputError(f"{where}: evidence is blank: say who vouches, and why")
    if kind in ("wcet", "cycles") and evidence is None:
        raise InputError(f"{where}: who vouches for this {kind}? say it in {vouched}")
    if kind == "wcet":
        return _given_time(table, evidence or "", where)
    if kind == "cycles":
        return GivenCycles(count(table["cycles"], f"{where}: cycles", MAX_GIVEN_CYCLES), evidence or "")
    path = folder / text(table[kind], f"{where}: {kind}")
    return BundleFile(path, evidence) if kind == "bundle" else _launch(table, path, folder, evidence, where)


def _given_time(table: Mapping[str, object], evidence: str, where: str) -> GivenTime:
    seconds = duration(table["wcet"], f"{where}: wcet")
    if seconds == 0:
        raise InputError(f"{where}: wcet must be more than zero")
    return GivenTime(seconds, evidence)


def _launch(table: Mapping[str, object], path: Path, folder: Path, evidence: str | None, where: str) -> KernelLaunch:
    try:
        holds = given_intervals(_texts(table.get("hold", []), "hold"))
        return KernelLaunch(_question(table, path, folder), _machine(table, folder), evidence, holds)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def _question(table: Mapping[str, object], path: Path, folder: Path) -> "KernelQuestion":
    from makespan import flow, ptx
    from makespan.question import KernelQuestion

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
    bounds = given("loop_bound", _texts) or ()
    return KernelQuestion(
        path,
        entry=given("entry", text),
        launch=flow.launch(given("block", _extent), given("grid", _extent), given("param", _params) or ()),
        warps=given("warps", warps),
        blocks_per_sm=given("blocks_per_sm", warps),
        dynamic_shared=given("dynamic_shared", size),
        loop_bounds=flow.loop_bounds(item if "=" in item else str(folder / item) for item in bounds),
        classes=ptx.Classes(profile, {} if classes is None else ptx.read_classes(classes), given("unknown", text)),
        take=flow.takes(given("take", _texts) or ()),
        trace=None if trace is None else flow.read_trace(trace),
        dependences=given("dependences", dependences),
        latencies=given_latencies(given("latency", _texts) or ()),
        arch=given("arch", text),
    )


def _machine(table: Mapping[str, object], folder: Path) -> Machine | None:
    if "machine" in table and "capacity" in table:
        raise InputError("machine and capacity exclude each other")
    if "capacity" in table:
        return Machine.of(_capacities(table["capacity"]))
    if "machine" not in table:
        return None
    name = text(table["machine"], "machine")
    return find(str(folder / name) if name.endswith(".toml") else name).machine


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
    return _texts(value, what)


def _extent(value: object, what: str) -> str:
    """`256` or `"16x16"`."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(count(value, what, MAX_BLOCKS))
    return text(value, what)


# Types


def text(value: object, what: str) -> str:
    """A short printable text."""
    if not isinstance(value, str) or not value.isprintable() or not 1 <= len(value) <= MAX_TEXT:
        raise InputError(f"{what} must be a text of 1..{MAX_TEXT} printable characters, not {shown(value)}")
    return value


def _optional_text(table: Mapping[str, object], key: str, where: str) -> str | None:
    return text(table[key], f"{where}: {key}") if key in table else None


def _texts(value: object, what: str) -> tuple[str, ...]:
    if not isinstance(value, list) or len(value) > MAX_ITEMS:
        raise InputError(f"{what} must be a list of texts, not {shown(value)}")
    return tuple(text(item, what) for item in value)


def _name(table: Mapping[str, object], what: str) -> str:
    if "name" not in table:
        raise InputError(f"{what} has no name: it has {', '.join(map(shown, table)) or 'nothing'}")
    check_name(table["name"], what)
    return str(table["name"])


def _priority(table: Mapping[str, object], where: str) -> int | None:
    value = table.get("priority")
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > MAX_PRIORITY:
        raise InputError(f"{where}: priority must be a whole number of at most 1e9, not {shown(value)}")
    return value


def count(value: object, what: str, most: int) -> int:
    """A whole number 1..`most`."""
    check_whole(value, what, most)
    return int(str(value))
