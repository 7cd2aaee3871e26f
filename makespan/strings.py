"""Instance files: instruction strings with warps, capacities and, where known, the worst case.

Two formats with the same fields. TOML, for people: a list of tables `[[instance]]`. JSON lines, for programs: one
object a line. Fields: `string` and `warps`, or `groups` (a list of tables with both); `capacity`; optional `blocks`,
over which each group is spread evenly, `name`, `source` and `makespan`, the expected worst case in cycles. Unknown
fields are refused. In a string, `|` is a barrier for the warps of a block.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import msgspec

from makespan.errors import InputError
from makespan.instance import Instance
from makespan.machine import Machine
from makespan.program import BARRIER, MAX_PLACES, Program
from makespan.result import Bounds
from makespan.text_file import read_text

MAX_FILE_BYTES = 256 << 20
SUFFIXES = (".toml", ".jsonl")


@dataclass(frozen=True, slots=True)
class NamedInstance:
    """An instance from a file, with what the file says about it; `makespan` is the expected value in cycles."""

    instance: Instance
    where: str
    name: str | None = None
    makespan: int | None = None
    source: str | None = None

    def agrees(self, proven: Bounds) -> bool:
        """Whether the expected worst case, if there is one, lies in the proven interval."""
        return self.makespan is None or proven.lower <= self.makespan <= proven.upper


class _Group(msgspec.Struct, forbid_unknown_fields=True):
    string: str
    warps: int


class _Record(msgspec.Struct, forbid_unknown_fields=True):
    capacity: dict[str, int]
    string: str | None = None
    warps: int | None = None
    groups: list[_Group] | None = None
    blocks: int = 1
    makespan: int | None = None
    name: str | None = None
    source: str | None = None


class _Document(msgspec.Struct, forbid_unknown_fields=True):
    instance: list[_Record] = []


def parse_string(letters: str, machine: Machine) -> Program:
    """The program of an instruction string; white space in it is ignored, and `|` is a barrier.

    Raises:
        InputError: an empty string, or a letter that is no unit class of `machine`; names the position.
    """
    string = "".join(letters.split())
    if not string:
        raise InputError("the instruction string is empty; write one letter per instruction, such as CLLC")
    if len(string) > MAX_PLACES:
        raise InputError(f"the instruction string has {len(string)} letters; the limit is {MAX_PLACES}")
    known = machine.capacities
    for position, letter in enumerate(string, start=1):
        if letter not in known and letter != BARRIER:
            raise InputError(
                f"instruction string: {letter!r} at position {position} is no unit class of machine"
                f" {machine.name!r}; use {', '.join(known)}, and {BARRIER} for a barrier"
            )
    return Program.chain(string)


def read_instances(path: Path) -> tuple[NamedInstance, ...]:
    """All instances of a `.toml` or `.jsonl` file; the whole file is checked before anything is returned.

    Raises:
        InputError: the file cannot be read, is too large, or something in it is not an instance.
    """
    return parse_instances(read_text(path, "file of instances", MAX_FILE_BYTES), str(path), path.suffix)


def parse_instances(text: str, where: str, suffix: str) -> tuple[NamedInstance, ...]:
    """The instances in `text`, which has the format of a file with this suffix; `where` is for messages."""
    records = _from_toml(text, where) if suffix == ".toml" else _from_json_lines(text, where)
    if not records:
        what = "a table [[instance]]" if suffix == ".toml" else "an object"
        raise InputError(f"{where}: no instance in it; write {what} with string, warps and capacity for each")
    return tuple(_named(record, at) for at, record in records)


def _from_toml(text: str, where: str) -> list[tuple[str, _Record]]:
    try:
        document = msgspec.toml.decode(text, type=_Document)
    except (msgspec.DecodeError, RecursionError) as error:
        raise InputError(f"{where}: not an instance file: {error}") from None
    return [(f"{where}: instance {number}", record) for number, record in enumerate(document.instance, start=1)]


def _from_json_lines(text: str, where: str) -> list[tuple[str, _Record]]:
    records = []
    for number, line in enumerate(text.split("\n"), start=1):  # splitlines would also cut at U+2028, which JSON allows
        if line.strip():
            try:
                fields = json.loads(line, object_pairs_hook=_once)
                records.append((f"{where}:{number}", msgspec.convert(fields, _Record)))
            except (ValueError, RecursionError) as error:
                raise InputError(f"{where}:{number}: not an instance: {error}") from None
    return records


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """An object whose keys differ; of two equal ones JSON readers silently take either."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ValueError(f"field {next(key for key in fields if sum(k == key for k, _ in pairs) > 1)!r} is given twice")
    return fields


def _named(record: _Record, where: str) -> NamedInstance:
    try:
        machine = Machine.of(record.capacity)
        instance = Instance.merged(
            ((parse_string(string, machine), warps) for string, warps in _strings(record)),
            machine,
            blocks=record.blocks,
        )
        if record.makespan is not None and record.makespan < 1:
            raise InputError(f"makespan must be at least 1 cycle, not {record.makespan}")
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    return NamedInstance(instance, where, record.name, record.makespan, record.source)


def _strings(record: _Record) -> list[tuple[str, int]]:
    if record.groups is not None and record.string is None and record.warps is None:
        return [(group.string, group.warps) for group in record.groups]
    if record.groups is None and record.string is not None and record.warps is not None:
        return [(record.string, record.warps)]
    raise InputError("give either string and warps, or groups")
