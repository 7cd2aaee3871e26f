"""Specs: TOML files that multiply values of options to questions.

Options at the top hold for every block `[[sweep]]`, those of a block for itself; what is in `each` is multiplied.
"""

import glob
import re
from collections.abc import Iterator, Mapping
from itertools import islice, product
from math import prod
from pathlib import Path
from typing import Any

from makespan.host.errors import InputError
from makespan.host.text_file import is_file, parse_toml, read_text

MAX_BYTES = 1 << 20
MAX_JOBS = 100_000
_EACH, _BLOCKS, _SOURCE = "each", "sweep", "source"
_RANGE = re.compile(r"(\d{1,9})\.\.(\d{1,9})", re.ASCII)
_PATTERN = re.compile(r"[*?[]")

SpecTable = Mapping[str, Any]


def read_spec(path: Path) -> tuple[dict[str, Any], ...]:
    """Return the questions of a spec, each once, in the order of the file; the last of several lists changes first.

    Names of files start from the folder of the spec, and so do patterns in `source`.

    Raises:
        InputError: a file that is no spec, more than `MAX_JOBS` questions, or a pattern that no file matches.
    """
    document = parse_toml(read_text(path, "spec", MAX_BYTES), "spec", str(path))
    try:
        return _questions(document, path.parent)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _questions(document: SpecTable, folder: Path) -> tuple[dict[str, Any], ...]:
    blocks = document.get(_BLOCKS, [{}])
    if not isinstance(blocks, list) or not blocks or not all(isinstance(block, dict) for block in blocks):
        raise InputError(f"{_BLOCKS} must be tables [[{_BLOCKS}]]")
    common, multiplied = _split_each({name: value for name, value in document.items() if name != _BLOCKS})
    several = []
    for block in blocks:
        own, axes = _split_each(block)
        # What a block says itself, once or in `each`, replaces what stands at the top.
        said = {name: value for name, value in multiplied.items() if name not in own} | axes
        fixed = {name: value for name, value in (common | own).items() if name not in axes}
        several.append((fixed, {name: _values(name, value, folder) for name, value in said.items()}))
    # Counted before they are made: a spec of a few lines may ask for billions.
    count = sum(prod(map(len, axes.values())) for _, axes in several)
    if count > MAX_JOBS:
        raise InputError(f"{count} questions exceed the limit of {MAX_JOBS}: divide the spec")
    found = [
        fixed | dict(zip(axes, values, strict=True)) for fixed, axes in several for values in product(*axes.values())
    ]
    # Blocks may overlap: a question that several of them ask is asked once.
    return tuple({repr(sorted(question.items())): question for question in found}.values())


def _split_each(table: SpecTable) -> tuple[dict[str, Any], dict[str, Any]]:
    each = table.get(_EACH, {})
    if not isinstance(each, dict):
        raise InputError(f"{_EACH} must be a table of lists, such as each.warps = [4, 8]")
    fixed = {name: value for name, value in table.items() if name != _EACH}
    if twice := sorted(fixed.keys() & each.keys()):
        raise InputError(f"{twice[0]} is said once and in {_EACH}: which is it?")
    for name, value in fixed.items():
        if isinstance(value, dict):
            raise InputError(f"{name} is a table: the tables of a spec are {_EACH} and [[{_BLOCKS}]]")
    return fixed, each


def _values(name: str, said: object, folder: Path) -> tuple[Any, ...]:
    items = said if isinstance(said, list) else [said]
    found = tuple(islice((value for item in items for value in _expand_item(name, item, folder)), MAX_JOBS + 1))
    if not found:
        raise InputError(f"{_EACH}.{name} is empty: a list of values, or a range such as 1..48")
    if len(found) > MAX_JOBS:
        raise InputError(f"{_EACH}.{name} has more than {MAX_JOBS} values")
    return found


def _expand_item(name: str, item: object, folder: Path) -> Iterator[Any]:
    if isinstance(item, str) and (match := _RANGE.fullmatch(item)):
        first, last = map(int, match.groups())
        if first > last:
            raise InputError(f"{_EACH}.{name}: {item} is no rising range")
        yield from range(first, last + 1)
    elif name == _SOURCE and isinstance(item, str) and _PATTERN.search(item) and not is_file(folder / item):
        # One more than the limit: enough to see that there are too many.
        matching = islice(glob.iglob(item, root_dir=folder, recursive=True), MAX_JOBS + 1)  # noqa: PTH207 - as named
        files = sorted(each for each in matching if is_file(folder / each))
        if not files:
            raise InputError(f"{_EACH}.{name}: no file matches {item!r:.80}")
        yield from files
    else:
        yield item
