"""Task files, TOML with everything in it or CSV with one task a row, as descriptions.

Every key of a table is known, and every value has its type, unit and range.
"""

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeAlias

from makespan.deadlines.chains import predecessors
from makespan.deadlines.description import (
    BundleFile,
    ChainEntry,
    CpuEntry,
    Description,
    ExecutionTime,
    GivenCycles,
    GivenTime,
    KernelLaunch,
    PartitionEntry,
    Priorities,
    ServedEntry,
    SlicesEntry,
    TaskEntry,
    TimeSource,
    task_set,
)
from makespan.deadlines.task import (
    MAX_SEGMENTS,
    MAX_TASKS,
    TIME_SLICED,
    ChainStart,
    CopyEngine,
    GpuPartition,
    HostWait,
    SegmentKind,
    ServerPolicy,
)
from makespan.host.errors import InputError, prefix_errors
from makespan.host.text_file import parse_toml
from makespan.kernels.options import FLAG, LAUNCH_OPTIONS, WHOLE, kernel_question, key_of_field, launch_values
from makespan.kernels.toml_table import (
    ValueReader,
    checked_text,
    choice,
    count,
    entry_name,
    one_word,
    only,
    read_values,
    tables,
    text,
    texts,
)
from makespan.model.machine import find_machine, given_intervals, gpus
from makespan.model.machine.gpus import Gpu
from makespan.model.machine.values import MAX_SMS, shown
from makespan.model.units import PICOSECOND, duration, frequency

MAX_PRIORITY = 10**9
MAX_GIVEN_CYCLES = 10**15

NUMBERS = frozenset({"cycles", "priority", "sms"}) | {
    key for key, option in LAUNCH_OPTIONS.items() if option.in_toml == WHOLE
}
"""Keys whose values are whole numbers."""
LISTS = frozenset(key for key, option in LAUNCH_OPTIONS.items() if option.many)
"""Keys whose values are lists of texts."""
_TRUTHS = {"true": True, "false": False}
_FLAGS = frozenset(key for key, option in LAUNCH_OPTIONS.items() if option.form is FLAG)


def _positive(value: object, what: str) -> Fraction:
    seconds = duration(value, what)
    if seconds == 0:
        raise InputError(f"{what} must be more than zero")
    return seconds


def _evidence(value: object, what: str) -> str:
    found = text(value, what)
    if not found.strip():
        raise InputError(f"{what} is blank: say who vouches, and why")
    return found


def _priority(value: object, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > MAX_PRIORITY:
        raise InputError(f"{what} must be a whole number of at most 1e9, not {shown(value)}")
    return value


def _segment_tables(value: object, what: str) -> list[dict[str, object]]:
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise InputError(f'{what} must be a list of tables such as {{ cpu = "1ms" }}, not {shown(value)}')
    return value


def _as_said(value: object, _: str) -> object:
    """Return a value that is read later, together with other keys."""
    return value


_CPU = ("cpu_before", "cpu_after")
_DELAY = ("launch_delay", "launch_evidence")
_SLICES = ("slice", "switch", "switch_evidence")
_SOURCES = ("wcet", "cycles", "bundle", "kernel")
_POLICIES = (*ServerPolicy, TIME_SLICED)
_OF_TASK = ("name", "period", "deadline", "jitter", "offset", "priority", "core", "wait", "context")
"""The keys of a task that are fields of a `TaskEntry`."""
_TASK = (*_OF_TASK, "partition", *_DELAY)
"""The keys of every task, whatever its jobs run through."""
_SEGMENT: Mapping[str, Sequence[str]] = {
    "cpu": ("cpu",),
    "copy": ("copy", "engine", "evidence", *_DELAY),
} | dict.fromkeys(_SOURCES, (*_SOURCES, "partition", "evidence", *_DELAY, *LAUNCH_OPTIONS))
"""The keys of a segment, by the one that says what it is."""

_READERS: Mapping[str, ValueReader] = {
    **dict.fromkeys(("name", "sms", *LAUNCH_OPTIONS), _as_said),
    **dict.fromkeys(("period", "deadline", "cpu", "copy", "wcet", "slice"), _positive),
    **dict.fromkeys(("jitter", "offset", "launch_delay", "switch", *_CPU), duration),
    **dict.fromkeys(("evidence", "launch_evidence", "switch_evidence"), _evidence),
    **dict.fromkeys(("core", "context", "partition", "engine", "bundle", "kernel"), text),
    "policy": lambda value, what: one_word(value, _POLICIES, what),
    "priority": _priority,
    "cycles": lambda value, what: count(value, what, MAX_GIVEN_CYCLES),
    "wait": lambda value, what: choice(value, HostWait, what),
    "activation": lambda value, what: choice(value, ChainStart, what),
    "tasks": texts,
    "segments": _segment_tables,
}
"""What is read under each key of a task file, the same in all tables."""

SegmentEntries: TypeAlias = tuple[CpuEntry | ServedEntry, ...]


def _read(
    table: Mapping[str, object], keys: Sequence[str], where: str, needed: Mapping[str, str] | None = None
) -> dict[str, Any]:
    return read_values(table, {key: _READERS[key] for key in keys}, where, needed)


def task_entry(
    table: Mapping[str, object], folder: Path, launch: GivenTime | None = None, *, vouched: str = 'evidence = "..."'
) -> TaskEntry:
    """Return a table `[[task]]`, or a row with the same keys.

    Args:
        launch: The time that the launch of its copies and kernels takes where the table says nothing else.
        vouched: Where evidence belongs, for a message.

    Raises:
        InputError: an unknown key, a missing one, one without effect, or a value that does not fit; the message names
            the task.
    """
    where = f"task {entry_name(table, 'a task')}"
    keys = (*_TASK, *_SOURCES, *_CPU, "evidence", *LAUNCH_OPTIONS, "cpu", "segments")
    said = _read(table, keys, where, {key: f'give one such as {key} = "10ms"' for key in ("period", "deadline")})
    own = _launch_delay(said, where)
    segments = _segments(said, folder, where, vouched)
    _refuse_ineffective(said, segments, where)
    entries = tuple(_with_defaults(segment, said.get("partition"), own or launch) for segment in segments)
    return TaskEntry(segments=entries, **{key: said[key] for key in _OF_TASK if key in said})


def partition_entry(table: Mapping[str, object], card: Gpu | None = None) -> PartitionEntry:
    """Return a table `[[partition]]`, of SMs of a GPU if one is named.

    Raises:
        InputError: an unknown key, no name or policy, no such policy, or more SMs than there are.
    """
    name = entry_name(table, "a partition")
    where = f"partition {name}"
    said = _read(table, ("name", "policy", "sms", *_SLICES), where, {"policy": f"give one of {', '.join(_POLICIES)}"})
    slices = _slices(said, where)
    policy = ServerPolicy.FIFO if slices is not None else ServerPolicy(said["policy"])
    return PartitionEntry(GpuPartition(name, policy), sms_count(said.get("sms"), card, f"{where}: sms"), slices)


def copy_engine(table: Mapping[str, object]) -> CopyEngine:
    """Return a table `[[copy_engine]]`.

    Raises:
        InputError: an unknown key, no name or policy, or no such policy.
    """
    where = f"copy engine {entry_name(table, 'a copy engine')}"
    readers: dict[str, ValueReader] = {
        "name": _as_said,
        "policy": lambda value, what: choice(value, ServerPolicy, what),
    }
    return CopyEngine(**read_values(table, readers, where, {"policy": f"give one of {', '.join(ServerPolicy)}"}))


def sms_count(value: object, card: Gpu | None, what: str) -> int:
    """Return a number of SMs; for a GPU it may also be the name of a MIG instance.

    A missing value (None) means one SM if no GPU is named; with a GPU each partition must say its number.
    """
    if value is None:
        if card is not None:
            raise InputError(f"{what} is missing: how many SMs of GPU {card.name} does it have? give sms = N")
        return 1
    if card is None or not isinstance(value, str):
        count(value, what, MAX_SMS)
    if card is None:
        return int(str(value))
    with prefix_errors(what):
        return card.count_sms(str(value))


def chain_entry(table: Mapping[str, object]) -> ChainEntry:
    """Return a table `[[chain]]`.

    Raises:
        InputError: an unknown key, or one that is missing or does not fit.
    """
    where = f"chain {entry_name(table, 'a chain')}"
    needed = {"tasks": "name those that hand data on", "activation": f"give one of {', '.join(ChainStart)}"}
    return ChainEntry(**_read(table, ("name", "tasks", "activation", "deadline"), where, needed))


# What a job runs through


def _launch_delay(said: Mapping[str, Any], where: str) -> GivenTime | None:
    """Return the launch delay of a table with its evidence; None where both keys are missing."""
    if "launch_delay" in said and "launch_evidence" not in said:
        raise InputError(f"{where}: who vouches for this launch_delay? say it in launch_evidence")
    if "launch_evidence" in said and "launch_delay" not in said:
        raise InputError(f"{where}: launch_evidence has no effect without launch_delay: give both, or none")
    return GivenTime(said["launch_delay"], said["launch_evidence"]) if "launch_delay" in said else None


def _segments(said: Mapping[str, Any], folder: Path, where: str, vouched: str) -> SegmentEntries:
    """Return what a job runs through: a list of segments, CPU time alone, or a kernel with CPU time around it."""
    listed = next((key for key in ("segments", "cpu") if key in said), None)
    if listed is not None and (others := [key for key in said if key not in (*_TASK, listed)]):
        remedy = "list what a job runs through in segments, each with its own keys, and nothing beside it"
        raise InputError(f"{where}: {listed} and {others[0]} exclude each other: {remedy}")  # they would have no effect
    if listed == "cpu":
        return (CpuEntry(said["cpu"]),)
    if listed is not None:
        if not 1 <= len(said["segments"]) <= MAX_SEGMENTS:
            raise InputError(f"{where}: a job has 1..{MAX_SEGMENTS} segments, not {len(said['segments'])}")
        return tuple(_segment(item, folder, f"{where}: segments[{n}]") for n, item in enumerate(said["segments"]))
    given = [key for key in _SOURCES if key in said]
    if not given:
        known = ", ".join(_SOURCES)
        raise InputError(
            f'{where} has no execution time: give exactly one of {known} (or cpu = "1ms" alone, or segments)'
        )
    kind = _only_kind(given, _SOURCES, where)
    kernel = ServedEntry(SegmentKind.KERNEL, _source(kind, said, folder, where, vouched))
    before, after = ([CpuEntry(said[key])] if said.get(key) else [] for key in _CPU)
    return (*before, kernel, *after)


def _only_kind(given: Sequence[str], known: Sequence[str], where: str) -> str:
    if len(given) != 1:
        problem = f"{' and '.join(given)} exclude each other" if given else "it says nothing that a job runs"
        raise InputError(f"{where}: {problem}: give exactly one of {', '.join(known)}")
    return given[0]


def _segment(table: Mapping[str, object], folder: Path, where: str) -> CpuEntry | ServedEntry:
    only(table, tuple(dict.fromkeys(key for keys in _SEGMENT.values() for key in (*_SEGMENT, *keys))), where)
    kind = _only_kind([key for key in _SEGMENT if key in table], tuple(_SEGMENT), where)
    said = _read(table, _SEGMENT[kind], where)
    if kind == "cpu":
        return CpuEntry(said["cpu"])
    if kind == "copy" and "engine" not in said:
        raise InputError(f'{where}: the copy has no engine: say which serves it, such as engine = "h2d"')
    what, resource = (SegmentKind.COPY, "engine") if kind == "copy" else (SegmentKind.KERNEL, "partition")
    source = _source(kind, said, folder, where, 'evidence = "..."')
    return ServedEntry(what, source, said.get(resource), _launch_delay(said, where))


def _source(kind: str, said: Mapping[str, Any], folder: Path, where: str, vouched: str) -> TimeSource:
    """Return where the execution time of a copy or kernel comes from."""
    if kind != "kernel" and (launch := [key for key in LAUNCH_OPTIONS if key in said]):
        raise InputError(f"{where}: {launch[0]} belongs to a kernel, and the execution time comes from {kind}")
    evidence = said.get("evidence")
    if kind in ("kernel", "bundle"):
        path = folder / said[kind]
        return BundleFile(path, evidence) if kind == "bundle" else _launch(said, path, folder, evidence, where)
    if evidence is None:
        raise InputError(f"{where}: who vouches for this {kind}? say it in {vouched}")
    return GivenCycles(said["cycles"], evidence) if kind == "cycles" else GivenTime(said[kind], evidence)


def _launch(table: Mapping[str, object], path: Path, folder: Path, evidence: str | None, where: str) -> KernelLaunch:
    with prefix_errors(where):
        if "machine" in table and "capacity" in table:
            raise InputError("machine and capacity exclude each other")
        values = launch_values(table, folder)
        machine = find_machine(values["machine"]).machine if "machine" in values else values.get("capacity")
        question = kernel_question(path, values, key_of_field)
        return KernelLaunch(question, machine, evidence, given_intervals(values.get("holds", ())))


def _refuse_ineffective(table: Mapping[str, object], segments: SegmentEntries, where: str) -> None:
    """Refuse keys without effect on these segments, and CPU time without a core."""
    served = [segment for segment in segments if isinstance(segment, ServedEntry)]
    if "core" not in table and len(served) < len(segments):
        raise InputError(f'{where} has CPU time and no core: say which one runs it, such as core = "cpu0"')
    if "wait" in table and "core" not in table:
        raise InputError(f"{where}: wait has no effect without a core: say which one its thread is on, or leave it out")
    needs = {
        "wait": ("its jobs have no copy and no kernel to wait for", bool(served)),
        "launch_delay": ("it has no copy and no kernel that says none", any(s.launch is None for s in served)),
        "context": ("it has no kernel", any(s.kind is SegmentKind.KERNEL for s in served)),
        "partition": (
            "it has no kernel that says none",
            any(s.kind is SegmentKind.KERNEL and s.resource is None for s in served),
        ),
    }
    for key, (lack, is_met) in needs.items():
        if key in table and not is_met:
            raise InputError(f"{where}: {key} has no effect, for {lack}: leave it out")


def _with_defaults(
    segment: CpuEntry | ServedEntry, partition: str | None, launch: GivenTime | None
) -> CpuEntry | ServedEntry:
    if isinstance(segment, CpuEntry):
        return segment
    return replace(segment, resource=segment.resource or partition, launch=segment.launch or launch)


def _slices(said: Mapping[str, Any], where: str) -> SlicesEntry | None:
    """Return how contexts take a partition in turn, None where they do not."""
    if said["policy"] != TIME_SLICED:
        if others := [key for key in _SLICES if key in said]:
            raise InputError(f'{where}: {others[0]} has no effect without policy = "{TIME_SLICED}": leave it out')
        return None
    remedy = 'say how long a turn of a context is and what a switch takes, such as slice = "1ms", switch = "200us"'
    for key in ("slice", "switch"):
        if key not in said:
            raise InputError(f"{where} is {TIME_SLICED} and has no {key}: {remedy}")
    if "switch_evidence" not in said:
        raise InputError(f"{where}: who vouches for this switch? say it in switch_evidence")
    return SlicesEntry(said["slice"], said["switch"], said["switch_evidence"])


SUFFIXES = (".toml", ".csv")

_TOP = ("gpu", "clock", "tick", "priorities", *_DELAY)
_TABLES = ("partition", "copy_engine", "task", "chain")
_NOT_IN_A_ROW = ("segments", "copy", "engine")
_LIST_SEPARATOR = ";"
_DIGITS = re.compile(r"-?[0-9]{1,30}")


def read(path: Path, *, gpu: str | None = None, clock: str | None = None, priorities: str | None = None) -> Description:
    """Return the tasks that a `.toml` or `.csv` file describes; paths in it start from its folder.

    Args:
        gpu: The GPU whose SMs the partitions are, see `gpus.find_gpu`; only for a CSV file, which cannot say it.
        clock: The SM clock, such as `1.4GHz`; only for a CSV file.
        priorities: One of `Priorities`; only for a CSV file.

    Raises:
        InputError: a file that cannot be read or is too large, anything unknown in it, values out of range, chains by
            data that contradict themselves, a GPU, clock or priorities beside a TOML file.
    """
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise InputError(f"{path}: unknown kind of task file; the name ends in {' or '.join(SUFFIXES)}")
    content = checked_text(path, "task file")
    if suffix == ".toml":
        if {gpu, clock, priorities} != {None}:
            raise InputError(
                f"{path}: a TOML file says GPU, clock and priorities itself: no --gpu, --clock, --priorities beside it"
            )
        found = _from_toml(content, path)
    else:
        found = replace(
            _from_csv(content, path, None if gpu is None else gpus.find_gpu(gpu)),
            clock=None if clock is None else frequency(clock, "--clock"),
            priorities=None if priorities is None else choice(priorities, Priorities, "--priorities"),
        )
    found = _on_card(found)
    shortest = ExecutionTime(PICOSECOND)  # a placeholder: execution times are not known yet
    system, _ = task_set(found, dict.fromkeys(found.executions, shortest))  # all but execution times
    with prefix_errors(str(path)):
        predecessors(system)
    return found


def _on_card(found: Description) -> Description:
    """Return the description with the base clock of its GPU if no other is given; refuse too many SMs."""
    card = found.card
    if card is None:
        return found
    sms, most = sum(found.sms.values()), card.count_sms()
    if sms > most:
        raise InputError(f"{found.where}: the partitions have {sms} SMs together, and GPU {card.name} has {most}")
    if found.clock is not None or card.missing("base_clock_ghz"):
        return found
    by = f"base clock of {card.name}: {card.datum('base_clock_ghz').status}"
    return replace(found, clock=card.hertz("base_clock_ghz"), clock_by=by)


# TOML


def _from_toml(content: str, path: Path) -> Description:
    document = parse_toml(content, "task file", str(path))
    with prefix_errors(str(path)):
        return _description(document, path)


def _description(document: Mapping[str, object], path: Path) -> Description:
    only(document, (*_TOP, *_TABLES), "the file")
    launch = _launch_delay(
        _read({key: document[key] for key in _DELAY if key in document}, _DELAY, "the file"), "the file"
    )
    card = _card(document, path.parent)
    tasks = tuple(task_entry(table, path.parent, launch) for table in tables(document, "task", MAX_TASKS, needed=True))
    has_kernels = any(part.kind is SegmentKind.KERNEL for entry in tasks for part in entry.executions.values())
    partitions = tables(document, "partition", MAX_TASKS, needed=has_kernels)
    return Description(
        where=str(path),
        tasks=tasks,
        partitions=tuple(partition_entry(table, card) for table in partitions),
        chains=tuple(map(chain_entry, tables(document, "chain", MAX_TASKS))),
        clock=frequency(document["clock"], "clock") if "clock" in document else None,
        step=_positive(document["tick"], "tick") if "tick" in document else None,
        priorities=choice(document["priorities"], Priorities, "priorities") if "priorities" in document else None,
        card=card,
        engines=tuple(map(copy_engine, tables(document, "copy_engine", MAX_TASKS))),
    )


def _card(document: Mapping[str, object], folder: Path) -> Gpu | None:
    if "gpu" not in document:
        return None
    name = text(document["gpu"], "gpu")
    return gpus.find_gpu(str(folder / name) if name.endswith(".toml") else name)


# CSV


def _from_csv(content: str, path: Path, card: Gpu | None) -> Description:
    """Return rows whose columns are the keys of a task, and `policy` and `sms` of its partition."""
    try:
        rows = list(csv.reader(io.StringIO(content, newline=""), strict=True))
    except csv.Error as error:
        raise InputError(f"{path}: not a CSV task file: {error}") from None
    if not rows or not any(cell.strip() for cell in rows[0]):
        raise InputError(f"{path}: the first line must name the columns, such as name,wcet,evidence,period,deadline")
    header = [cell.strip() for cell in rows[0]]
    if len(header) == 1 and _LIST_SEPARATOR in header[0]:  # a frequent mistake of spreadsheets
        raise InputError(f"{path}:1: one column, {shown(header[0])}: part the columns by commas, not by semicolons")
    if len(set(header)) < len(header):
        twice = next(name for name in header if header.count(name) > 1)
        raise InputError(f"{path}:1: column {shown(twice)} is there twice")
    if beyond := [name for name in header if name in _NOT_IN_A_ROW]:
        raise InputError(
            f"{path}:1: column {shown(beyond[0])}: a row has one kernel, or CPU time alone; write tasks with copies or"
            " several segments in a TOML file"
        )
    tasks: list[TaskEntry] = []
    partitions: dict[str, PartitionEntry] = {}
    for number, row in enumerate(rows[1:], start=2):
        if not any(cell.strip() for cell in row):
            continue
        with prefix_errors(f"{path}:{number}"):
            _add_row(header, row, path.parent, card, tasks, partitions)
    if not 1 <= len(tasks) <= MAX_TASKS:
        raise InputError(f"{path}: a task file has 1..{MAX_TASKS} tasks, not {len(tasks)}")
    return Description(str(path), tuple(tasks), tuple(partitions.values()), card=card)


def _add_row(
    header: list[str],
    row: list[str],
    folder: Path,
    card: Gpu | None,
    tasks: list[TaskEntry],
    partitions: dict[str, PartitionEntry],
) -> None:
    if len(row) != len(header):
        raise InputError(f"{len(row)} cells for {len(header)} columns")
    record = {name: _cell(name, cell.strip()) for name, cell in zip(header, row, strict=True) if cell.strip()}
    policy, given_sms = record.pop("policy", None), record.pop("sms", None)
    entry = task_entry(record, folder, vouched="column evidence")
    tasks.append(entry)
    if not entry.executions:
        if (policy, given_sms) != (None, None):
            raise InputError(f"task {entry.name} has no kernel: leave policy and sms empty, they are of a partition")
        return
    (resource,) = (part.resource for part in entry.executions.values())
    if resource is None or policy is None:
        missing = "partition" if resource is None else "policy"
        raise InputError(f"task {entry.name} needs a {missing}: a CSV file has columns partition and policy")
    if policy == TIME_SLICED:
        raise InputError(f"partition {resource} is {TIME_SLICED}: of how long a slice only a TOML file can say")
    where = f"partition {resource}: sms"
    served = PartitionEntry(
        GpuPartition(resource, choice(policy, ServerPolicy, "policy")), sms_count(given_sms, card, where)
    )
    if partitions.setdefault(resource, served) != served:  # each row repeats what its partition is
        raise InputError(f"partition {resource} has another policy or number of SMs in an earlier row")


def _cell(column: str, cell: str) -> Any:
    """Return the value that TOML would have there."""
    if column in NUMBERS and _DIGITS.fullmatch(cell):
        return int(cell)
    if column in _FLAGS and cell in _TRUTHS:
        return _TRUTHS[cell]
    if column in LISTS:
        return [item.strip() for item in cell.split(_LIST_SEPARATOR)]
    return cell
