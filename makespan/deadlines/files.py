"""Task files, TOML with everything in it or CSV with one task a row, as descriptions.

Every key of a table is known, and every value has its type, unit and range.
"""

import csv
import io
import re
from collections.abc import Callable, Mapping, Sequence
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
from makespan.host.errors import InputError
from makespan.host.text_file import parse_toml
from makespan.kernels.options import LAUNCH_OPTIONS, WHOLE, kernel_question, key_of_field, launch_values
from makespan.kernels.toml_table import checked_text, choice, count, entry_name, only, tables, text, texts
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

_TIMES = ("period", "deadline", "jitter", "offset")
_HOST = ("priority", "core", "wait", "context")
_CPU = ("cpu_before", "cpu_after")
_DELAY = ("launch_delay", "launch_evidence")
_SLICES = ("slice", "switch", "switch_evidence")
_SOURCES = ("wcet", "cycles", "bundle", "kernel")


SegmentEntries: TypeAlias = tuple[CpuEntry | ServedEntry, ...]


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
    name = entry_name(table, "a task")
    where = f"task {name}"
    shared = ("name", *_TIMES, *_HOST, "partition", *_DELAY)
    only(table, (*shared, *_SOURCES, *_CPU, "evidence", *LAUNCH_OPTIONS, "cpu", "segments"), where)
    times = {key: duration(table[key], f"{where}: {key}") for key in _TIMES if key in table}
    for key in ("period", "deadline"):
        if key not in times:
            raise InputError(f'{where} has no {key}: give one such as {key} = "10ms"')
        if times[key] == 0:
            raise InputError(f"{where}: {key} must be more than zero")
    own = launch_delay(table, where)
    if "segments" in table or "cpu" in table:  # the other keys of a single kernel would have no effect
        _refuse_beside("segments" if "segments" in table else "cpu", table, shared, where)
    if "segments" in table:
        segments = _segments(table["segments"], folder, where)
    elif "cpu" in table:
        segments = (CpuEntry(_positive(table, "cpu", where)),)
    else:
        segments = _one_kernel(table, folder, where, vouched)
    resource = _optional_text(table, "partition", where)
    _refuse_ineffective(table, segments, where)
    return TaskEntry(
        name=name,
        segments=tuple(_with_defaults(segment, resource, own or launch) for segment in segments),
        period=times["period"],
        deadline=times["deadline"],
        jitter=times.get("jitter", Fraction(0)),
        offset=times.get("offset"),
        priority=_priority(table, where),
        core=_optional_text(table, "core", where),
        wait=choice(table["wait"], HostWait, f"{where}: wait") if "wait" in table else None,
        context=_optional_text(table, "context", where),
    )


def partition_entry(table: Mapping[str, object], card: Gpu | None = None) -> PartitionEntry:
    """Return a table `[[partition]]`, of SMs of a GPU if one is named.

    Raises:
        InputError: an unknown key, no name or policy, no such policy, or more SMs than there are.
    """
    name = entry_name(table, "a partition")
    where = f"partition {name}"
    only(table, ("name", "policy", "sms", *_SLICES), where)
    slices = _slices(table, where)
    policy = ServerPolicy.FIFO if slices is not None else _policy(table, where, TIME_SLICED)
    return PartitionEntry(GpuPartition(name, policy), sms_count(table.get("sms"), card, f"{where}: sms"), slices)


def copy_engine(table: Mapping[str, object]) -> CopyEngine:
    """Return a table `[[copy_engine]]`.

    Raises:
        InputError: an unknown key, no name or policy, or no such policy.
    """
    name = entry_name(table, "a copy engine")
    where = f"copy engine {name}"
    only(table, ("name", "policy"), where)
    return CopyEngine(name, _policy(table, where))


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
    try:
        return card.count_sms(str(value))
    except InputError as error:
        raise InputError(f"{what}: {error}") from None


def chain_entry(table: Mapping[str, object]) -> ChainEntry:
    """Return a table `[[chain]]`.

    Raises:
        InputError: an unknown key, or one that is missing or does not fit.
    """
    name = entry_name(table, "a chain")
    where = f"chain {name}"
    only(table, ("name", "tasks", "activation", "deadline"), where)
    for key in ("tasks", "activation"):
        if key not in table:
            raise InputError(f"{where} has no {key}")
    activation = choice(table["activation"], ChainStart, f"{where}: activation")
    deadline = duration(table["deadline"], f"{where}: deadline") if "deadline" in table else None
    if deadline == 0:
        raise InputError(f"{where}: deadline must be more than zero")
    return ChainEntry(name, texts(table["tasks"], f"{where}: tasks"), activation, deadline)


# What a job runs through


def launch_delay(table: Mapping[str, object], where: str) -> GivenTime | None:
    """Return the `launch_delay` of a table with its evidence; None where both keys are missing.

    Raises:
        InputError: one without the other, or no time.
    """
    evidence = _evidence(table, "launch_evidence", where)
    if "launch_delay" not in table:
        if evidence is not None:
            raise InputError(f"{where}: launch_evidence has no effect without launch_delay: give both, or none")
        return None
    if evidence is None:
        raise InputError(f"{where}: who vouches for this launch_delay? say it in launch_evidence")
    return GivenTime(duration(table["launch_delay"], f"{where}: launch_delay"), evidence)


def _refuse_beside(key: str, table: Mapping[str, object], shared: Sequence[str], where: str) -> None:
    """Refuse other keys beside `segments`, or `cpu` alone."""
    if others := [other for other in table if other not in (*shared, key)]:
        remedy = "list what a job runs through in segments, each with its own keys, and nothing beside it"
        raise InputError(f"{where}: {key} and {others[0]} exclude each other: {remedy}")


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


def _one_kernel(table: Mapping[str, object], folder: Path, where: str, vouched: str) -> SegmentEntries:
    kernel = ServedEntry(SegmentKind.KERNEL, _source(table, folder, where, vouched))
    before, after = (duration(table.get(key, "0s"), f"{where}: {key}") for key in _CPU)
    return (*([CpuEntry(before)] if before else []), kernel, *([CpuEntry(after)] if after else []))


def _segments(value: object, folder: Path, where: str) -> SegmentEntries:
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise InputError(f'{where}: segments must be a list of tables such as {{ cpu = "1ms" }}, not {shown(value)}')
    if not 1 <= len(value) <= MAX_SEGMENTS:
        raise InputError(f"{where}: a job has 1..{MAX_SEGMENTS} segments, not {len(value)}")
    return tuple(_segment(item, folder, f"{where}: segments[{index}]") for index, item in enumerate(value))


def _segment(table: Mapping[str, object], folder: Path, where: str) -> CpuEntry | ServedEntry:
    kinds = ("cpu", "copy", *_SOURCES)
    only(table, (*kinds, "engine", "partition", "evidence", *_DELAY, *LAUNCH_OPTIONS), where)
    given = [key for key in kinds if key in table]
    if len(given) != 1:
        problem = f"{' and '.join(given)} exclude each other" if given else "it says nothing that a job runs"
        raise InputError(f"{where}: {problem}: give exactly one of {', '.join(kinds)}")
    if given == ["cpu"]:
        only(table, ("cpu",), where)
        return CpuEntry(_positive(table, "cpu", where))
    if given == ["copy"]:
        only(table, ("copy", "engine", "evidence", *_DELAY), where)
        return _copy(table, where)
    only(table, (*_SOURCES, "partition", "evidence", *_DELAY, *LAUNCH_OPTIONS), where)
    source = _source(table, folder, where, 'evidence = "..."')
    return ServedEntry(
        SegmentKind.KERNEL, source, _optional_text(table, "partition", where), launch_delay(table, where)
    )


def _copy(table: Mapping[str, object], where: str) -> ServedEntry:
    if "engine" not in table:
        raise InputError(f'{where}: the copy has no engine: say which serves it, such as engine = "h2d"')
    evidence = _evidence(table, "evidence", where)
    if evidence is None:
        raise InputError(f'{where}: who vouches for this copy? say it in evidence = "..."')
    source = GivenTime(_positive(table, "copy", where), evidence)
    return ServedEntry(SegmentKind.COPY, source, _optional_text(table, "engine", where), launch_delay(table, where))


# Where an execution time comes from


def _source(table: Mapping[str, object], folder: Path, where: str, vouched: str) -> TimeSource:
    given = [key for key in _SOURCES if key in table]
    if len(given) != 1:
        problem = f"{' and '.join(given)} exclude each other" if given else "has no execution time"
        known = ", ".join(_SOURCES)
        rest = "" if given else ' (or cpu = "1ms" alone, or segments)'
        raise InputError(f"{where}{': ' if given else ' '}{problem}: give exactly one of {known}{rest}")
    kind = given[0]
    if kind != "kernel" and (launch := [key for key in LAUNCH_OPTIONS if key in table]):
        raise InputError(f"{where}: {launch[0]} belongs to a kernel, and the execution time comes from {kind}")
    evidence = _evidence(table, "evidence", where)
    if kind in ("wcet", "cycles") and evidence is None:
        raise InputError(f"{where}: who vouches for this {kind}? say it in {vouched}")
    if kind == "wcet":
        return GivenTime(_positive(table, "wcet", where), evidence or "")
    if kind == "cycles":
        return GivenCycles(count(table["cycles"], f"{where}: cycles", MAX_GIVEN_CYCLES), evidence or "")
    path = folder / text(table[kind], f"{where}: {kind}")
    return BundleFile(path, evidence) if kind == "bundle" else _launch(table, path, folder, evidence, where)


def _launch(table: Mapping[str, object], path: Path, folder: Path, evidence: str | None, where: str) -> KernelLaunch:
    try:
        if "machine" in table and "capacity" in table:
            raise InputError("machine and capacity exclude each other")
        values = launch_values(table, folder)
        machine = find_machine(values["machine"]).machine if "machine" in values else values.get("capacity")
        question = kernel_question(path, values, key_of_field)
        return KernelLaunch(question, machine, evidence, given_intervals(values.get("holds", ())))
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def _optional_text(table: Mapping[str, object], key: str, where: str) -> str | None:
    return text(table[key], f"{where}: {key}") if key in table else None


def _evidence(table: Mapping[str, object], key: str, where: str) -> str | None:
    found = _optional_text(table, key, where)
    if found is not None and not found.strip():
        raise InputError(f"{where}: {key} is blank: say who vouches, and why")
    return found


def _positive(table: Mapping[str, object], key: str, where: str) -> Fraction:
    seconds = duration(table[key], f"{where}: {key}")
    if seconds == 0:
        raise InputError(f"{where}: {key} must be more than zero")
    return seconds


def _policy(table: Mapping[str, object], where: str, *more: str) -> ServerPolicy:
    """Return a policy that needs no other key; `more` names those that do, for the message."""
    known = ", ".join((*ServerPolicy, *more))
    if "policy" not in table:
        raise InputError(f"{where} has no policy: give one of {known}")
    if table["policy"] not in list(ServerPolicy):
        raise InputError(f"{where}: policy must be one of {known}, not {shown(table['policy'])}")
    return ServerPolicy(str(table["policy"]))


def _slices(table: Mapping[str, object], where: str) -> SlicesEntry | None:
    """Return how contexts take a partition in turn, None where they do not."""
    if table.get("policy") != TIME_SLICED:
        if said := [key for key in _SLICES if key in table]:
            raise InputError(f'{where}: {said[0]} has no effect without policy = "{TIME_SLICED}": leave it out')
        return None
    remedy = 'say how long a turn of a context is and what a switch takes, such as slice = "1ms", switch = "200us"'
    for key in ("slice", "switch"):
        if key not in table:
            raise InputError(f"{where} is {TIME_SLICED} and has no {key}: {remedy}")
    evidence = _evidence(table, "switch_evidence", where)
    if evidence is None:
        raise InputError(f"{where}: who vouches for this switch? say it in switch_evidence")
    return SlicesEntry(_positive(table, "slice", where), duration(table["switch"], f"{where}: switch"), evidence)


def _priority(table: Mapping[str, object], where: str) -> int | None:
    value = table.get("priority")
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > MAX_PRIORITY:
        raise InputError(f"{where}: priority must be a whole number of at most 1e9, not {shown(value)}")
    return value


SUFFIXES = (".toml", ".csv")

_TOP = ("gpu", "clock", "tick", "priorities", "launch_delay", "launch_evidence")
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
    try:
        predecessors(system)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
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
    try:
        return _description(document, path)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _description(document: Mapping[str, object], path: Path) -> Description:
    only(document, (*_TOP, *_TABLES), "the file")
    folder, card, launch = path.parent, _card(document, path.parent), launch_delay(document, "the file")
    tasks = tuple(task_entry(table, folder, launch) for table in tables(document, "task", MAX_TASKS, needed=True))
    has_kernels = any(part.kind is SegmentKind.KERNEL for entry in tasks for part in entry.executions.values())
    partitions = tables(document, "partition", MAX_TASKS, needed=has_kernels)
    return Description(
        where=str(path),
        tasks=tasks,
        partitions=tuple(partition_entry(table, card) for table in partitions),
        chains=tuple(map(chain_entry, tables(document, "chain", MAX_TASKS))),
        clock=_optional(document, "clock", frequency),
        step=_step(document),
        priorities=None if "priorities" not in document else choice(document["priorities"], Priorities, "priorities"),
        card=card,
        engines=tuple(map(copy_engine, tables(document, "copy_engine", MAX_TASKS))),
    )


def _card(document: Mapping[str, object], folder: Path) -> Gpu | None:
    if "gpu" not in document:
        return None
    name = text(document["gpu"], "gpu")
    return gpus.find_gpu(str(folder / name) if name.endswith(".toml") else name)


def _optional(
    document: Mapping[str, object], key: str, read_value: Callable[[object, str], Fraction]
) -> Fraction | None:
    return read_value(document[key], key) if key in document else None


def _step(document: Mapping[str, object]) -> Fraction | None:
    found = _optional(document, "tick", duration)
    if found == 0:
        raise InputError("tick must be more than zero")
    return found


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
        try:
            _add_row(header, row, path.parent, card, tasks, partitions)
        except InputError as error:
            raise InputError(f"{path}:{number}: {error}") from None
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
    if column in LISTS:
        return [item.strip() for item in cell.split(_LIST_SEPARATOR)]
    return cell
