"""Families of instances in a folder, each a TOML file of questions to `makespan solve` with names.

title = "..."                     what the family is
source = "..."                    where its instances come from
ask = { capacity = "C=2,L=1" }    options of all of its instances
instance = [{ name = "...", ask = { string = "CLLC", warps = 8 } }]
"""

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from makespan.host.errors import InputError, did_you_mean
from makespan.host.text_file import parse_toml, read_text

MAX_FILE_BYTES = 4 << 20
MAX_FAMILIES, MAX_INSTANCES = 256, 10_000
_NAME = re.compile(r"[a-z0-9][a-z0-9.+-]{0,63}")
"""Of an instance or a family: it may become the name of a file."""


@dataclass(frozen=True, slots=True)
class LibraryEntry:
    """An instance: the options of `makespan solve` by their long names, `source` for the argument."""

    name: str
    family: str
    ask: Mapping[str, Any]
    note: str


@dataclass(frozen=True, slots=True)
class InstanceFamily:
    """A family of instances of one kind, in the order of the file `path`."""

    name: str
    path: Path
    title: str
    source: str
    entries: tuple[LibraryEntry, ...]


@dataclass(frozen=True, slots=True)
class Library:
    """A library: all families in a folder, in alphabetical order; no two instances have the same name."""

    folder: Path
    families: tuple[InstanceFamily, ...]

    @property
    def entries(self) -> Iterator[LibraryEntry]:
        """Return the instances of all families."""
        return (entry for family in self.families for entry in family.entries)

    def chosen(self, families: Sequence[str], names: Sequence[str]) -> tuple[LibraryEntry, ...]:
        """Return the instances of these families, and those with these names; all where neither is said.

        Raises:
            InputError: there is no such family or instance.
        """
        for what, asked, known in (
            ("family", families, [family.name for family in self.families]),
            ("instance", names, [entry.name for entry in self.entries]),
        ):
            if unknown := [name for name in asked if name not in known]:
                near = did_you_mean(unknown[0], known)
                raise InputError(f"{self.folder}: no {what} {unknown[0]!r:.80} in this library{near}")
        every = not families and not names
        return tuple(entry for entry in self.entries if every or entry.family in families or entry.name in names)


class _InstanceTable(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    ask: dict[str, Any]
    note: str = ""


class _FamilyTable(msgspec.Struct, forbid_unknown_fields=True):
    title: str
    source: str
    instance: list[_InstanceTable]
    ask: dict[str, Any] = {}


def read_library(folder: Path) -> Library:
    """Return the library in a folder.

    Raises:
        InputError: no folder, no family in it, a file that is none, two instances of one name, or too many of them.
    """
    if not os.path.isdir(folder):  # noqa: PTH112 - that of a path raises where a name is too long
        raise InputError(f"{folder}: no folder; a library is a folder with a TOML file for each family")
    paths = sorted(folder.glob("*.toml"), key=lambda path: path.stem)
    if not 1 <= len(paths) <= MAX_FAMILIES:
        raise InputError(f"{folder}: {len(paths)} TOML files; a library has one for each family, 1..{MAX_FAMILIES}")
    library = Library(folder, tuple(map(_family, paths)))
    # A name is that of a file of evidence: it must be unique over all families.
    names = Counter(entry.name for entry in library.entries)
    if names.total() > MAX_INSTANCES:
        raise InputError(f"{folder}: {names.total()} instances exceed the limit of {MAX_INSTANCES}")
    for family in library.families:
        for number, entry in enumerate(family.entries, start=1):
            if names[entry.name] > 1:
                raise InputError(f"{family.path}: instance {number}: another instance has the name {entry.name!r}")
    return library


def _family(path: Path) -> InstanceFamily:
    document = parse_toml(read_text(path, "family of instances", MAX_FILE_BYTES), "family of instances", str(path))
    try:
        file = msgspec.convert(document, _FamilyTable)
    except msgspec.ValidationError as error:
        raise InputError(f"{path}: not a family of instances: {error}") from None
    _check_name(path.stem, "the name of a family, which is that of its file,", str(path))
    if not file.instance:
        raise InputError(f"{path}: no instance in it; write a table [[instance]] with name and ask for each")
    for number, entry in enumerate(file.instance, start=1):
        _check_name(entry.name, "the name of an instance", f"{path}: instance {number}")
    entries = (LibraryEntry(one.name, path.stem, {**file.ask, **one.ask}, one.note) for one in file.instance)
    return InstanceFamily(path.stem, path, file.title, file.source, tuple(entries))


def _check_name(name: str, what: str, where: str) -> None:
    if not _NAME.fullmatch(name):
        raise InputError(f"{where}: {what} has up to 64 of a-z, 0-9, '.', '+' and '-', and is not {name!r:.80}")
