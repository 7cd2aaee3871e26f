"""Files that users give, read whole within a limit, and those that come with the package."""

import codecs
import tomllib
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from reprlib import repr as shown
from typing import IO, Any

from makespan.errors import InputError, did_you_mean


def read_text(file: Path | Traversable, what: str, most_bytes: int, *, where: str | None = None) -> str:
    """The text of a file, without a byte order mark; `what` and `where` (the path by default) are for messages.

    Raises:
        InputError: a file that cannot be read, has more than `most_bytes`, or is not UTF-8.
    """
    place = str(file) if where is None else where
    return decoded(read_bytes(file, what, most_bytes, where=place), what, place)


def read_bytes(file: Path | Traversable, what: str, most_bytes: int, *, where: str | None = None) -> bytes:
    """The bytes of a file, which may be a pipe or have no known size; `what` and `where` are for messages.

    Raises:
        InputError: a file that cannot be read, or has more than `most_bytes`.
    """
    place = str(file) if where is None else where
    try:
        with file.open("rb") as stream:
            return read_stream(stream, what, most_bytes, place)
    except OSError as error:
        raise InputError(f"{place}: cannot read the {what}: {error.strerror or error}") from None


def read_stream(stream: IO[bytes], what: str, most_bytes: int, where: str) -> bytes:
    """What is left of an open file, such as the standard input.

    Raises:
        InputError: more than `most_bytes`.
    """
    data = stream.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise InputError(f"{where}: larger than {_size(most_bytes)}, too large for a {what}")
    return data


def decoded(data: bytes, what: str, where: str) -> str:
    """Text without a byte order mark.

    Raises:
        InputError: it is not UTF-8.
    """
    refuse_utf16(data, what, where)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{where}: cannot read the {what}: it is not UTF-8 text") from None


def refuse_utf16(data: bytes, what: str, where: str) -> None:
    """Windows PowerShell writes UTF-16 where it redirects the output of a program.

    Raises:
        InputError: the byte order mark of UTF-16.
    """
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        remedy = "save it as UTF-8, in PowerShell with | Out-File -Encoding utf8"
        raise InputError(f"{where}: cannot read the {what}: it is UTF-16 text; {remedy}")


def parse_toml(text: str, what: str, where: str) -> dict[str, Any]:
    """The document in a text that is small: tomllib takes quadratic time for a long dotted key.

    Raises:
        InputError: no TOML.
    """
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # ValueError: also an integer of too many digits
        raise InputError(f"{where}: not a TOML {what}: {' '.join(str(error).split())}") from None


def named_file(name: str, folder: str, suffix: str, what: str) -> tuple[Traversable | Path, str]:
    """A file of the package by its name, or one of the user by a path that ends in `suffix`; and what messages call it.

    Raises:
        InputError: neither.
    """
    files = shipped_files(folder, suffix)
    if name in files:
        return files[name], files[name].name
    if name.endswith(suffix):
        path = Path(name)
        return path, str(path)
    near = did_you_mean(name, files)
    raise InputError(f"unknown {what} {shown(name)}{near or ';'} shipped: {', '.join(files)}; or give a {suffix} file")


def shipped_files(folder: str, suffix: str) -> dict[str, Traversable]:
    """The files of a folder of the package's data, by name without the suffix, in alphabetical order."""
    found = (resources.files("makespan") / "data" / folder).iterdir()
    return dict(sorted((file.name.removesuffix(suffix), file) for file in found if file.name.endswith(suffix)))


def _size(count: int) -> str:
    units = (f"{count >> 20} MiB", f"{count >> 10} KiB", f"{count} bytes")
    return next(text for text in units if not text.startswith("0 "))
