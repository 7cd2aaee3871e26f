"""Tables of TOML files that people write: every key is known, and every value has its type and range."""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from makespan.host.errors import InputError, did_you_mean
from makespan.host.text_file import parse_toml, read_text
from makespan.model.gpu.instance import MAX_ROOM
from makespan.model.machine.values import check_name, check_whole, shown

MAX_FILE_BYTES = 1 << 20
MAX_LINE = 2000
MAX_TEXT = 500
MAX_ITEMS = 1000
MAX_RESOURCES = 16

Choice = TypeVar("Choice", bound=StrEnum)

ValueReader: TypeAlias = Callable[[object, str], Any]
"""A function that returns what a value says, or raises an `InputError` that begins with the name of the value."""


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


def read_tables(path: Path, what: str) -> dict[str, object]:
    """Return what a TOML file that people write says.

    Raises:
        InputError: see `checked_text`, or it is not TOML.
    """
    return parse_toml(checked_text(path, what), what, str(path))


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
    """Refuse keys that are not known: a misspelt one must not be silently without effect.

    Raises:
        InputError: the first of them, with the remedy.
    """
    if unknown := [key for key in table if key not in known]:
        # A string is solved by itself, and its bundle can stand in a task.
        is_string = unknown[0] == "string" and "bundle" in known
        remedy = "; give the bundle that 'makespan solve --string ... --bundle FILE.json' leaves" if is_string else ""
        near = did_you_mean(unknown[0], known)
        raise InputError(f"{where}: unknown key {shown(unknown[0])}{remedy}{near or ';'} known: {', '.join(known)}")


def read_values(
    table: Mapping[str, object], readers: Mapping[str, ValueReader], where: str, needed: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return what a table says, by key.

    Args:
        readers: the readers of the values, for every key that the table may have.
        needed: the remedies for keys that the table must have.

    Raises:
        InputError: an unknown key, one that is missing, or a value that does not fit.
    """
    only(table, tuple(readers), where)
    for key, remedy in (needed or {}).items():
        if key not in table:
            raise InputError(f"{where} has no {key}: {remedy}")
    return {key: readers[key](value, f"{where}: {key}") for key, value in table.items()}


def entry_name(table: Mapping[str, object], what: str) -> str:
    """Return the name of an entry.

    Raises:
        InputError: it has none, or it is not a short printable text.
    """
    if "name" not in table:
        raise InputError(f"{what} has no name: it has {', '.join(map(shown, table)) or 'nothing'}")
    check_name(table["name"], what)
    return str(table["name"])


def choice(value: object, kinds: type[Choice], what: str) -> Choice:
    """Return one of the values of an enumeration.

    Raises:
        InputError: the value is none of them.
    """
    return kinds(one_word(value, tuple(kinds), what))


def one_word(value: object, words: Sequence[str], what: str) -> str:
    """Return one of several words.

    Raises:
        InputError: the value is none of them.
    """
    if not isinstance(value, str) or value not in words:
        raise InputError(f"{what} must be one of {', '.join(words)}, not {shown(value)}")
    return value


def text(value: object, what: str) -> str:
    """Return a short printable text.

    Raises:
        InputError: the value is something else.
    """
    if not isinstance(value, str) or not value.isprintable() or not 1 <= len(value) <= MAX_TEXT:
        raise InputError(f"{what} must be a text of 1..{MAX_TEXT} printable characters, not {shown(value)}")
    return value


def truth(value: object, what: str) -> bool:
    """Return a truth value.

    Raises:
        InputError: the value is something else.
    """
    if not isinstance(value, bool):
        raise InputError(f"{what} must be true or false, not {shown(value)}")
    return value


def texts(value: object, what: str) -> tuple[str, ...]:
    """Return a list of short printable texts.

    Raises:
        InputError: the value is something else.
    """
    if not isinstance(value, list) or len(value) > MAX_ITEMS:
        raise InputError(f"{what} must be a list of texts, not {shown(value)}")
    return tuple(text(item, what) for item in value)


def count(value: object, what: str, most: int, least: int = 1) -> int:
    """Return a whole number `least`..`most`, where `least` is 0 or 1.

    Raises:
        InputError: the value is something else.
    """
    if least or value != 0 or isinstance(value, bool):
        check_whole(value, what, most)  # whose least is 1
    return int(str(value))


def amounts(value: object, what: str, least: int) -> dict[str, int]:
    """Return a table of whole numbers from `least` on, such as `{ blocks = 16, warps = 48 }`.

    Raises:
        InputError: the value is something else, or has too many numbers.
    """
    if not isinstance(value, dict) or len(value) > MAX_RESOURCES:
        raise InputError(f"{what} must be a table of at most {MAX_RESOURCES} numbers, not {shown(value)}")
    for name, number in value.items():
        text(name, what)
        count(number, f"{what}: {name}", MAX_ROOM, least)
    return value
