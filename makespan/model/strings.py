"""Files of instances: instruction strings with warps, capacities and, if it is known, the worst case.

There are two formats with the same fields: TOML for people, a list of tables `[[instance]]`, and JSON lines for
programs, one object per line. The fields are `string` and `warps`, or `groups` (a list of tables with both), and
`capacity`. Optional fields are `blocks`, over which each group is spread evenly, `name`, `source` and `makespan`, the
expected worst case in cycles. Unknown fields are refused. In a string, `|` is a barrier for the warps of a block.

A warp whose string has only letters blocks: it waits for the end of every instruction. It runs ahead after a letter
with parentheses. They hold the numbers of the instructions, from 1, whose results the instruction needs:
`L()L()C(1,2)`. `@` with the latency, N or N..M, may follow if it is not that of the class, and then `+` with the stall
if it is not 1 cycle: `L()@400..900+2`. A barrier can wait for results, too: `L()|(1)C`.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import msgspec

from makespan.host.errors import InputError, did_you_mean, prefix_errors
from makespan.host.text_file import parse_toml, read_text
from makespan.model.instance import Instance
from makespan.model.machine import Machine
from makespan.model.machine.values import printable
from makespan.model.program import BARRIER, MAX_PLACES, InstructionTiming, Program, check_timing
from makespan.model.result import Bounds

MAX_FILE_BYTES = 256 << 20
_MOST_DIGITS = 7
SUFFIXES = (".toml", ".jsonl")


@dataclass(frozen=True, slots=True)
class NamedInstance:
    """An instance from a file, with its name, its source, and the expected worst case `makespan` in cycles."""

    instance: Instance
    where: str
    name: str | None = None
    makespan: int | None = None
    source: str | None = None

    def agrees(self, proven: Bounds) -> bool:
        """Return whether the expected worst case, if there is one, lies in the proven interval."""
        return self.makespan is None or proven.lower <= self.makespan <= proven.upper


class _GroupRecord(msgspec.Struct, forbid_unknown_fields=True):
    string: str
    warps: int


class _InstanceRecord(msgspec.Struct, forbid_unknown_fields=True):
    capacity: dict[str, int]
    string: str | None = None
    warps: int | None = None
    groups: list[_GroupRecord] | None = None
    blocks: int = 1
    makespan: int | None = None
    name: str | None = None
    source: str | None = None


class _InstanceDocument(msgspec.Struct, forbid_unknown_fields=True):
    instance: list[_InstanceRecord] = []


def parse_string(text: str, machine: Machine) -> Program:
    """Return the program of an instruction string. White space in it is ignored, and `|` is a barrier.

    >>> parse_string("L()C(1)@4", Machine.of({"C": 1, "L": 1})).timings[1]
    InstructionTiming(stall=1, latency=(4, 4), sets=(1,), awaits=(0,))

    Raises:
        InputError: an empty string, a letter that is no unit class of `machine`, or a timing that is none; names the
            position.
    """
    string = "".join(text.split())
    if not string:
        raise InputError("the instruction string is empty; write one letter per instruction, such as CLLC")
    letters = len(string) if "(" not in string else sum(1 for _ in _WRITTEN.finditer(string))  # before any list
    if letters > MAX_PLACES:
        raise InputError(f"the instruction string has {letters} letters; the limit is {MAX_PLACES}")
    if "(" not in string:
        _check_letters(enumerate(string, start=1), machine)
        return Program.chain(string)
    # the pattern matches any letter, so that `_check_letters` can name the first wrong one
    found = [_WrittenInstruction(at.start() + 1, *at.groups()) for at in _WRITTEN.finditer(string)]
    _check_letters(((written.position, written.unit) for written in found), machine)
    return replace(Program.chain("".join(written.unit for written in found)), timings=tuple(_timings(found, machine)))


def _check_letters(letters: Iterable[tuple[int, str]], machine: Machine) -> None:
    known = machine.capacities
    for position, letter in letters:
        if letter not in known and letter != BARRIER:
            hint = f"; {_NOTATION}" if letter in "()@+" else ""
            raise InputError(
                f"instruction string: {letter!r} at position {position} is no unit class of machine"
                f" {machine.name!r}; use {', '.join(known)}, and {BARRIER} for a barrier{hint}"
            )


_NOTATION = "a latency or a stall stands behind parentheses, such as L()@400..900+2, with needs in them, such as C(1,2)"
_WRITTEN = re.compile(r"(.)(?:\(([0-9,]*)\)(?:@([0-9]{1,9})(?:\.\.([0-9]{1,9}))?)?(?:\+([0-9]{1,9}))?)?")


class _WrittenInstruction(NamedTuple):
    """A letter at a position, with the needs, latency and stall behind it. None means that one is not given."""

    position: int
    unit: str
    needs: str | None = None
    least: str | None = None
    most: str | None = None
    stall: str | None = None


def _timings(found: list[_WrittenInstruction], machine: Machine) -> Iterator[InstructionTiming]:
    """Yield the timing of every place. Every instruction sets a token of its own."""
    latencies = {unit.name: unit.latency for unit in machine.units}
    instructions = 0
    # a letter without parentheses blocks: the next place awaits its token, so blocking and run-ahead parts mix
    awaited: tuple[int, ...] = ()
    for position, unit, needs, least, most, stall in found:
        where = f"instruction string: {unit!r} at position {position}"
        numbers = [number for number in (needs or "").split(",") if number]
        if any(len(number) > _MOST_DIGITS or not 1 <= int(number) <= instructions for number in numbers):
            if not instructions:
                raise InputError(
                    f"{where} is the first instruction, which needs no result: write {unit}(), not ({needs})"
                )
            raise InputError(f"{where} needs the results of instructions 1..{instructions} before it, not ({needs})")
        awaits = tuple(sorted({*awaited, *(int(number) - 1 for number in numbers)}))
        if unit == BARRIER:
            if least or stall:
                raise InputError(f"{where}: a barrier has neither a latency nor a stall")
            yield InstructionTiming(0, (0, 0), (), awaits)
            awaited = ()
            continue
        range_of_class = latencies[unit].least, latencies[unit].most
        latency = range_of_class if least is None else (int(least), int(most or least))
        timing = InstructionTiming(1 if stall is None else int(stall), latency, (instructions,), awaits)
        check_timing(timing, where, is_barrier=False)
        yield timing
        awaited = (instructions,) if needs is None else ()  # () ends the blocking
        instructions += 1


def read_instances(path: Path) -> tuple[NamedInstance, ...]:
    """Return all instances of a `.toml` or `.jsonl` file; the whole file is checked before anything is returned.

    Raises:
        InputError: the file cannot be read, is too large, or something in it is not an instance.
    """
    return parse_instances(read_text(path, "file of instances", MAX_FILE_BYTES), str(path), path.suffix)


def choose_instance(found: Sequence[NamedInstance], which: str, where: str) -> NamedInstance:
    """Return the instance with this name or, if no instance has it, with this number, from 1.

    Raises:
        InputError: there is none, or several have this name.
    """
    named = [one for one in found if one.name == which]
    if len(named) > 1:
        raise InputError(f"{where}: {len(named)} instances have the name {which!r}: choose one by its number")
    if named:
        return named[0]
    if which.isascii() and which.isdecimal() and len(which) <= _MOST_DIGITS and 1 <= int(which) <= len(found):
        return found[int(which) - 1]
    near = did_you_mean(which, [one.name for one in found if one.name])
    raise InputError(f"{where}: no instance {which!r} in it{near or f'; it has {len(found)}, numbered from 1'}")


def parse_instances(text: str, where: str, suffix: str) -> tuple[NamedInstance, ...]:
    """Return the instances in `text`, in the format of a file with this suffix. Messages begin with `where`."""
    records = _from_toml(text, where) if suffix == ".toml" else _from_json_lines(text, where)
    if not records:
        what = "a table [[instance]]" if suffix == ".toml" else "an object"
        raise InputError(f"{where}: no instance in it; write {what} with string, warps and capacity for each")
    return tuple(_named_instance(record, at) for at, record in records)


def _from_toml(text: str, where: str) -> list[tuple[str, _InstanceRecord]]:
    try:
        document = msgspec.convert(parse_toml(text, "instance file", where), _InstanceDocument)
    except msgspec.ValidationError as error:
        raise InputError(f"{where}: not an instance file: {error}") from None
    return [(f"{where}: instance {number}", record) for number, record in enumerate(document.instance, start=1)]


def _from_json_lines(text: str, where: str) -> list[tuple[str, _InstanceRecord]]:
    records = []
    for number, line in enumerate(text.split("\n"), start=1):  # splitlines would also cut at U+2028, which JSON allows
        if line.strip():
            try:
                fields = json.loads(line, object_pairs_hook=_unique_fields)
                records.append((f"{where}:{number}", msgspec.convert(fields, _InstanceRecord)))
            except (ValueError, RecursionError) as error:
                raise InputError(f"{where}:{number}: not an instance: {error}") from None
    return records


def _unique_fields(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return an object whose keys differ. JSON readers would silently take one of two equal keys."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ValueError(f"field {next(key for key in fields if sum(k == key for k, _ in pairs) > 1)!r} is given twice")
    return fields


def _named_instance(record: _InstanceRecord, where: str) -> NamedInstance:
    with prefix_errors(where):
        machine = Machine.of(record.capacity)
        instance = Instance.merged(
            ((parse_string(string, machine), warps) for string, warps in _strings_of_groups(record)),
            machine,
            blocks=record.blocks,
        )
        if record.makespan is not None and record.makespan < 1:
            raise InputError(f"makespan must be at least 1 cycle, not {record.makespan}")
        for key, text in (("name", record.name), ("source", record.source)):
            if text is not None:
                printable(text, key)
    return NamedInstance(instance, where, record.name, record.makespan, record.source)


def _strings_of_groups(record: _InstanceRecord) -> list[tuple[str, int]]:
    if record.groups is not None and record.string is None and record.warps is None:
        return [(group.string, group.warps) for group in record.groups]
    if record.groups is None and record.string is not None and record.warps is not None:
        return [(record.string, record.warps)]
    raise InputError("give either string and warps, or groups")
