"""Task files: TOML with everything in it, or CSV with one task a row."""

import csv
import io
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from makespan.deadlines.chains import predecessors
from makespan.deadlines.description import Description, ExecutionTime, PartitionEntry, Priorities, TaskEntry, task_set
from makespan.deadlines.entries import (
    LISTS,
    NUMBERS,
    chain_entry,
    copy_engine,
    launch_delay,
    partition_entry,
    sms_count,
    task_entry,
)
from makespan.deadlines.task import MAX_TASKS, TIME_SLICED, GpuPartition, SegmentKind, ServerPolicy
from makespan.host.errors import InputError
from makespan.host.text_file import parse_toml
from makespan.kernels.launch_file import checked_text, choice, only, tables, text
from makespan.model.machine import gpus
from makespan.model.machine.gpus import Gpu
from makespan.model.machine.values import shown
from makespan.model.units import PICOSECOND, duration, frequency

SUFFIXES = (".toml", ".csv")

_TOP = ("gpu", "clock", "tick", "priorities", "launch_delay", "launch_evidence")
_TABLES = ("partition", "copy_engine", "task", "chain")
_NOT_IN_A_ROW = ("segments", "copy", "engine")
_LIST_SEPARATOR = ";"
_DIGITS = re.compile(r"-?[0-9]{1,30}")


def read(path: Path, *, gpu: str | None = None, clock: str | None = None, priorities: str | None = None) -> Description:
    """Return the tasks that a `.toml` or `.csv` file describes; paths in it start from its folder.

    Args:
        gpu: for a CSV file, which cannot say it: whose SMs the partitions are, see `gpus.find_gpu`.
        clock: for a CSV file: the SM clock, such as `1.4GHz`.
        priorities: for a CSV file: one of `Priorities`.

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
    shortest = ExecutionTime(PICOSECOND)
    system, _ = task_set(found, dict.fromkeys(found.executions, shortest))  # all but execution times
    try:
        predecessors(system)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    return found


def _on_card(found: Description) -> Description:
    """With the clock that the GPU has at least, where no other is said; refuse more SMs than it has."""
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
    """Rows with the keys of a task as columns, and `policy` and `sms` of its partition."""
    try:
        rows = list(csv.reader(io.StringIO(content, newline=""), strict=True))
    except csv.Error as error:
        raise InputError(f"{path}: not a CSV task file: {error}") from None
    if not rows or not any(cell.strip() for cell in rows[0]):
        raise InputError(f"{path}: the first line must name the columns, such as name,wcet,evidence,period,deadline")
    header = [cell.strip() for cell in rows[0]]
    if len(header) == 1 and _LIST_SEPARATOR in header[0]:
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
    (place,) = (part.place for part in entry.executions.values())
    if place is None or policy is None:
        missing = "partition" if place is None else "policy"
        raise InputError(f"task {entry.name} needs a {missing}: a CSV file has columns partition and policy")
    if policy == TIME_SLICED:
        raise InputError(f"partition {place} is {TIME_SLICED}: of how long a slice only a TOML file can say")
    where = f"partition {place}: sms"
    served = PartitionEntry(
        GpuPartition(place, choice(policy, ServerPolicy, "policy")), sms_count(given_sms, card, where)
    )
    if partitions.setdefault(place, served) != served:
        raise InputError(f"partition {place} has another policy or number of SMs in an earlier row")


def _cell(column: str, cell: str) -> Any:
    """Return the value that TOML would have there."""
    if column in NUMBERS and _DIGITS.fullmatch(cell):
        return int(cell)
    if column in LISTS:
        return [item.strip() for item in cell.split(_LIST_SEPARATOR)]
    return cell
