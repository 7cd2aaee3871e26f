"""Files that users give, read whole within a limit, and those that come with the package."""

import codecs
import os
import stat
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from reprlib import repr as shown
from typing import IO, Any

from makespan.host.errors import InputError, did_you_mean

MAX_DOTS = 100  # in a line of TOML


@dataclass(frozen=True, slots=True)
class _ClaimedFiles:
    """The files that a command reads and writes, by device and inode: a link is the file that it leads to."""

    inputs: set[tuple[int, int]] = field(default_factory=set)
    outputs: dict[tuple[int, int], Path] = field(default_factory=dict)


_FILES: ContextVar[_ClaimedFiles | None] = ContextVar("files of the command", default=None)


@contextmanager
def inputs_kept() -> Iterator[None]:
    """Refuse in the block to read a file as an input and to write it as well, whichever comes first."""
    token = _FILES.set(_ClaimedFiles())
    try:
        yield
    finally:
        _FILES.reset(token)


def claim_input(file: Path | IO[bytes]) -> None:
    """Remember, before it is read, that a file is an input; what is in memory, a pipe or a device cannot be lost.

    Raises:
        InputError: it is where the command writes.
    """
    files, found = _FILES.get(), _identity(file)
    if files is None or found is None:
        return
    files.inputs.add(found)
    output = files.outputs.get(found)
    if output is not None and _identity(output) == found:
        raise _is_input(output)


def claim_output(path: Path) -> None:
    """Remember, before it is written, where the command writes.

    Raises:
        InputError: that is an input of the command.
    """
    files, found = _FILES.get(), _identity(path)
    if files is None or found is None:
        return
    if found in files.inputs:
        raise _is_input(path)
    files.outputs[found] = path


def _is_input(path: Path) -> InputError:
    return InputError(f"{path}: is an input of this command; write to another file")


def _identity(file: Path | IO[bytes]) -> tuple[int, int] | None:
    try:
        found = file.stat() if isinstance(file, Path) else os.fstat(file.fileno())
    except OSError:  # there is no file, or none that has a number
        return None
    return (found.st_dev, found.st_ino) if stat.S_ISREG(found.st_mode) else None


def read_text(
    file: Path | Traversable, what: str, most_bytes: int, *, where: str | None = None, rewritten: bool = False
) -> str:
    """Return the text of a file, without a byte order mark; see `read_bytes`.

    Raises:
        InputError: a file that cannot be read, has more than `most_bytes`, or is not UTF-8.
    """
    place = str(file) if where is None else where
    return decode_text(read_bytes(file, what, most_bytes, where=place, rewritten=rewritten), what, place)


def read_bytes(
    file: Path | Traversable, what: str, most_bytes: int, *, where: str | None = None, rewritten: bool = False
) -> bytes:
    """Return the bytes of a file, which may be a pipe or have no known size.

    Args:
        what: for messages, as `where`, the path by default.
        rewritten: this program keeps the file and may write it again; any other is an input, see `inputs_kept`.

    Raises:
        InputError: a file that cannot be read, has more than `most_bytes`, or is where the command writes.
    """
    place = str(file) if where is None else where
    try:
        with file.open("rb") as stream:
            if not rewritten:
                claim_input(stream)
            return read_stream(stream, what, most_bytes, place)
    except OSError as error:
        raise InputError(f"{place}: cannot read the {what}: {error.strerror or error}") from None


def is_file(path: Path) -> bool:
    """Return whether it is a file, False for a name too long or a closed folder, for which `Path.is_file` raises."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def read_stream(stream: IO[bytes], what: str, most_bytes: int, where: str) -> bytes:
    """Return the rest of an open file, such as the standard input.

    Raises:
        InputError: more than `most_bytes`.
    """
    # one byte more than allowed says that there is more, without reading a pipe that never ends
    data = stream.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise InputError(f"{where}: larger than {_size(most_bytes)}, too large for a {what}")
    return data


def decode_text(data: bytes, what: str, where: str) -> str:
    """Return a text without its byte order mark.

    Raises:
        InputError: it is not UTF-8.
    """
    refuse_utf16(data, what, where)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{where}: cannot read the {what}: it is not UTF-8 text") from None


def refuse_utf16(data: bytes, what: str, where: str) -> None:
    """Refuse UTF-16, which Windows PowerShell writes where it redirects the output of a program.

    Raises:
        InputError: the byte order mark of UTF-16.
    """
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        remedy = "save it as UTF-8, in PowerShell with | Out-File -Encoding utf8"
        raise InputError(f"{where}: cannot read the {what}: it is UTF-16 text; {remedy}")


def parse_toml(text: str, what: str, where: str) -> dict[str, Any]:
    """Return the document in a text.

    Raises:
        InputError: no TOML, or a line with more than `MAX_DOTS` dots, as tomllib takes quadratic time for a long key.
    """
    for number, line in enumerate(text.split("\n"), start=1):
        if line.count(".") > MAX_DOTS:
            raise InputError(f"{where}:{number}: a line with {line.count('.')} dots; the limit is {MAX_DOTS}")
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # ValueError: also an integer of too many digits
        raise InputError(f"{where}: not a TOML {what}: {' '.join(str(error).split())}") from None


def named_file(name: str, folder: str, suffix: str, what: str) -> tuple[Traversable | Path, str]:
    """Return a file of the package by its name, or of the user by a path with this suffix, and its name in messages.

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
    """Return the files of a folder of the package's data, by name without the suffix, in alphabetical order."""
    found = (resources.files("makespan") / "data" / folder).iterdir()
    return dict(sorted((file.name.removesuffix(suffix), file) for file in found if file.name.endswith(suffix)))


def _size(count: int) -> str:
    units = (f"{count >> 20} MiB", f"{count >> 10} KiB", f"{count} bytes")
    return next(text for text in units if not text.startswith("0 "))
