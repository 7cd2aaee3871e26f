"""Small text files: those that users give, read whole within a limit, and those that come with the package."""

from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from makespan.errors import InputError


def read_text(file: Path | Traversable, what: str, most_bytes: int, *, where: str | None = None) -> str:
    """The text of a file, without a byte order mark; `what` and `where` (the path by default) are for messages.

    Raises:
        InputError: a file that cannot be read, has more than `most_bytes`, or is not UTF-8.
    """
    place = str(file) if where is None else where
    try:
        with file.open("rb") as stream:
            data = stream.read(most_bytes + 1)
    except OSError as error:
        raise InputError(f"{place}: cannot read the {what}: {error.strerror or error}") from None
    if len(data) > most_bytes:
        raise InputError(f"{place}: larger than {_size(most_bytes)}, too large for a {what}")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{place}: cannot read the {what}: it is not UTF-8 text") from None


def shipped_files(folder: str, suffix: str) -> dict[str, Traversable]:
    """The files of a folder of the package's data, by name without the suffix, in alphabetical order."""
    found = (resources.files("makespan") / "data" / folder).iterdir()
    return dict(sorted((file.name.removesuffix(suffix), file) for file in found if file.name.endswith(suffix)))


def _size(count: int) -> str:
    return f"{count >> 20} MiB" if count >= 1 << 20 else f"{count >> 10} KiB"
