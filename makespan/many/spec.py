"""Files of questions: TOML files that name and multiply questions to `makespan solve`, and libraries, folders of them.

Options at the top hold for every block `[[question]]`, those of a block for itself; what is in `each` is multiplied.
"""

import glob
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, product
from math import prod
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeVar

import msgspec

from makespan.host.errors import InputError, did_you_mean
from makespan.host.text_file import is_file, parse_toml, read_text

MAX_BYTES = 4 << 20
MAX_JOBS = 100_000
MAX_FAMILIES, MAX_INSTANCES = 256, 10_000
_BLOCKS, _BLOCKS_BEFORE = "question", "sweep"
_RANGE = re.compile(r"(\d{1,9})\.\.(\d{1,9})", re.ASCII)
_PATTERN = re.compile(r"[*?[]")

_Name = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9][a-z0-9.+-]{0,63}\Z")]
"""The name of an instance or a family: it may become the name of a file."""


class SpecQuestion(NamedTuple):
    """A question of a spec: its options by their long names, `source` for the argument.

    Args:
        family: the name of the spec, which is that of its file without its end.
        name: what the spec calls the question; empty where it has no name.
    """

    ask: dict[str, Any]
    family: str
    name: str

    @property
    def place(self) -> str:
        """Return the place of the question in a library, for messages."""
        return f"{self.family}.toml: {_BLOCKS} {self.name!r}"


class _SpecBlock(msgspec.Struct, forbid_unknown_fields=True):
    """The part of a block that is no option."""

    name: _Name | None = None
    note: str = ""
    each: dict[str, Any] = {}


class _SpecHead(msgspec.Struct, forbid_unknown_fields=True):
    """The part of the top of a spec that is no option: what the file is, and where its questions come from."""

    title: str = ""
    origin: str = ""
    each: dict[str, Any] = {}
    question: Annotated[list[dict[str, Any]], msgspec.Meta(min_length=1)] = msgspec.field(default_factory=lambda: [{}])


_Own = TypeVar("_Own", _SpecBlock, _SpecHead)


def read_spec(path: Path) -> tuple[SpecQuestion, ...]:
    """Return the questions of a spec, each once, in the order of the file; the last of several lists changes first.

    Names of files start from the folder of the spec, and so do patterns in `source`.

    Raises:
        InputError: a file that is no spec, more than `MAX_JOBS` questions, or a pattern that no file matches.
    """
    document = parse_toml(read_text(path, "spec", MAX_BYTES), "spec", str(path))
    try:
        return _questions(document, path)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _questions(document: dict[str, Any], path: Path) -> tuple[SpecQuestion, ...]:
    if isinstance(document.get("ask"), dict) or isinstance(document.get("instance"), list):
        raise InputError(
            f"a family of a former makespan: write [[{_BLOCKS}]] for [[instance]], the options of each ask beside the"
            " name or at the top, and origin for source"
        )
    if _BLOCKS_BEFORE in document:  # files of before stay what they are
        if _BLOCKS in document:  # one of the two would be lost, and a gate would pass without its deadlines
            raise InputError(
                f"[[{_BLOCKS_BEFORE}]] is the former name of [[{_BLOCKS}]]: write {_BLOCKS} for all of them"
            )
        document = {_BLOCKS if key == _BLOCKS_BEFORE else key: value for key, value in document.items()}
    head, common = _split(document, _SpecHead)
    several = []
    for number, table in enumerate(head.question, start=1):
        try:
            block, own = _split(table, _SpecBlock)
            # What a block says itself, once or in `each`, replaces what stands at the top.
            said = {name: value for name, value in head.each.items() if name not in own} | block.each
            fixed = {name: value for name, value in (common | own).items() if name not in block.each}
            axes = {name: _values(name, value, path.parent) for name, value in said.items()}
            if block.name is not None and prod(map(len, axes.values())) > 1:
                raise InputError(f"{block.name} is the name of several questions: leave it out, or each")
        except InputError as error:
            where = f"{_BLOCKS} {number}: " if _BLOCKS in document else ""
            raise InputError(f"{where}{error}") from None
        several.append((block.name or "", fixed, axes))
    # Counted before they are made: a spec of a few lines may ask for billions.
    count = sum(prod(map(len, axes.values())) for _, _, axes in several)
    if count > MAX_JOBS:
        raise InputError(f"{count} questions exceed the limit of {MAX_JOBS}: divide the spec")
    found = [
        SpecQuestion(fixed | dict(zip(axes, values, strict=True)), path.stem, name)
        for name, fixed, axes in several
        for values in product(*axes.values())
    ]
    # Blocks may overlap: a question that several of them ask is asked once.
    return tuple({(one.name, repr(sorted(one.ask.items()))): one for one in found}.values())


def _split(table: Mapping[str, Any], form: type[_Own]) -> tuple[_Own, dict[str, Any]]:
    """Return what a table says besides options, and its options."""
    keys = form.__struct_fields__
    try:
        own = msgspec.convert({key: value for key, value in table.items() if key in keys}, form)
    except msgspec.ValidationError as error:
        raise InputError(f"not a spec: {error}; see docs/sweep.md") from None
    options = {name: value for name, value in table.items() if name not in keys}
    if twice := sorted(options.keys() & own.each.keys()):
        raise InputError(f"{twice[0]} is said once and in each: which is it?")
    for name, value in options.items():
        if isinstance(value, dict):
            raise InputError(f"{name} is a table: the tables of a spec are each and [[{_BLOCKS}]]")
    return own, options


def _values(name: str, said: object, folder: Path) -> tuple[Any, ...]:
    items = said if isinstance(said, list) else [said]
    found = tuple(islice((value for item in items for value in _expand_item(name, item, folder)), MAX_JOBS + 1))
    if not found:
        raise InputError(f"each.{name} is empty: a list of values, or a range such as 1..48")
    if len(found) > MAX_JOBS:
        raise InputError(f"each.{name} has more than {MAX_JOBS} values")
    return found


def _expand_item(name: str, item: object, folder: Path) -> Iterator[Any]:
    if isinstance(item, str) and (match := _RANGE.fullmatch(item)):
        first, last = map(int, match.groups())
        if first > last:
            raise InputError(f"each.{name}: {item} is no rising range")
        yield from range(first, last + 1)
    elif name == "source" and isinstance(item, str) and _PATTERN.search(item) and not is_file(folder / item):
        # One more than the limit: enough to see that there are too many.
        matching = islice(glob.iglob(item, root_dir=folder, recursive=True), MAX_JOBS + 1)  # noqa: PTH207 - as named
        files = sorted(each for each in matching if is_file(folder / each))
        if not files:
            raise InputError(f"each.{name}: no file matches {item!r:.80}")
        yield from files
    else:
        yield item


def read_library(folder: Path) -> tuple[SpecQuestion, ...]:
    """Return the instances of a library: the questions of all specs in a folder, each of which has a name of its own.

    Raises:
        InputError: no folder, no spec in it, a file that is none, a question without a name, two of one name, or too
            many of them.
    """
    if not os.path.isdir(folder):  # noqa: PTH112 - that of a path raises where a name is too long
        raise InputError(f"{folder}: no folder; a library is a folder with a TOML file for each family")
    paths = sorted(folder.glob("*.toml"), key=lambda path: path.stem)
    if not 1 <= len(paths) <= MAX_FAMILIES:
        raise InputError(f"{folder}: {len(paths)} TOML files; a library has one for each family, 1..{MAX_FAMILIES}")
    found = tuple(question for path in paths for question in read_spec(path))
    if len(found) > MAX_INSTANCES:
        raise InputError(f"{folder}: {len(found)} instances exceed the limit of {MAX_INSTANCES}")
    # A name is that of a file of evidence: it must be unique over all families.
    names = Counter(question.name for question in found)
    for question in found:
        if not question.name:
            raise InputError(f"{folder / question.family}.toml: a {_BLOCKS} of a library needs a name")
        if names[question.name] > 1:
            raise InputError(f"{folder / question.place}: another one has the name, too")
    return found


def choose_questions(
    every: Sequence[SpecQuestion], families: Sequence[str], names: Sequence[str], folder: Path
) -> tuple[SpecQuestion, ...]:
    """Return the questions of these families, and those with these names; all where neither is said.

    Raises:
        InputError: there is no such family or instance.
    """
    for what, asked, known in (
        ("family", families, [question.family for question in every]),
        ("instance", names, [question.name for question in every]),
    ):
        if unknown := [name for name in asked if name not in known]:
            raise InputError(f"{folder}: no {what} {unknown[0]!r:.80} in this library{did_you_mean(unknown[0], known)}")
    is_all = not families and not names
    return tuple(one for one in every if is_all or one.family in families or one.name in names)
