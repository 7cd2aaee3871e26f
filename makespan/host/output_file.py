"""Files that appear whole or not at all."""

import errno
import os
import secrets
import tempfile
from pathlib import Path

from makespan.host.errors import InputError
from makespan.host.text_file import claim_output


def check_writable(path: Path, what: str) -> None:
    """Refuse a path at once that no file can be written to, so that no work is lost on it.

    Raises:
        InputError: a folder, a folder that is missing or takes no file, or an input of the command.
    """
    try:
        target = path.resolve()
        missing, writable = not target.parent.is_dir(), os.access(target.parent, os.W_OK | os.X_OK)
        number = errno.EISDIR if target.is_dir() else errno.ENOENT if missing else 0 if writable else errno.EACCES
        if not number and (not target.exists() or target.is_file()):
            with tempfile.TemporaryFile(dir=target.parent):  # no permission tells of a file system that takes no file
                pass
    except (OSError, RuntimeError) as error:  # a name that is too long, links in a circle
        number = getattr(error, "errno", None) or errno.ELOOP
    if number:
        raise InputError(f"{path}: cannot write {what}: {os.strerror(number)}")
    claim_output(path)


def make_folder(folder: Path, what: str) -> None:
    """Make a folder where there is none; messages call it the folder of `what`.

    Raises:
        InputError: it cannot be made, or is a file.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot make the folder of {what}: {error.strerror or error}") from None


def write_whole(path: Path, content: bytes, what: str) -> None:
    """Replace `path`, or what it links to, by `content` in one step; messages call it `what`.

    A device or a pipe is written to and stays what it is.

    Raises:
        InputError: the file cannot be written, or is an input of the command; nothing is left behind.
    """
    claim_output(path)
    try:
        replace_whole(path, content)
    except OSError as error:
        raise InputError(f"{path}: cannot write {what}: {error.strerror or error}") from None


def replace_whole(path: Path, content: bytes) -> None:
    """Replace a path that the caller has claimed; an `OSError` is the caller's to report."""
    target = path.resolve()
    temporary = target.with_name(f".makespan-{secrets.token_hex(8)}.tmp")
    if target.exists() and not target.is_file():
        target.write_bytes(content)  # a device or a pipe cannot be replaced
        return
    try:
        temporary.write_bytes(content)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
