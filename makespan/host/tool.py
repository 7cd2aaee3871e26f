"""Compilers and disassemblers as processes of their own, with limits on time, memory and files; and temporary files."""

import errno
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from makespan.host import limited
from makespan.host.errors import InputError

MAX_MEMORY_BYTES = 4 * 2**30
MAX_LOG_BYTES = 2**20
SECONDS = 60.0
_LOG = "log.txt"
_FULL = errno.ENOSPC, errno.EDQUOT, errno.EFBIG


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Yield a folder that is deleted with all its files when the block ends.

    Raises:
        InputError: there is no place for one, or no room for what is written within the context.
    """
    try:
        made = TemporaryDirectory(prefix="makespan-")
    except OSError as error:
        raise no_room(error) from None
    with made as name:
        try:
            yield Path(name).resolve()
        except OSError as error:
            if error.errno in _FULL:
                raise no_room(error) from None
            raise


def no_room(error: OSError) -> InputError:
    """Return the error that no temporary file can be made or filled."""
    return InputError(f"temporary files: {error.strerror or error}; the environment variable TMPDIR names their folder")


@contextmanager
def folder_with(name: str, data: bytes) -> Iterator[Path]:
    """Yield a temporary folder that has one file, under a name that no input chooses."""
    with temporary_folder() as folder:
        (folder / name).write_bytes(data)
        yield folder


def run(
    command: Sequence[str],
    folder: Path,
    *,
    output: str | None = None,
    most_bytes: int,
    seconds: float = SECONDS,
    late: str,
) -> tuple[int, str]:
    """Run a command in `folder`; return its exit code, negative for a signal, and the first part of its output.

    Nothing of its process group outlives a time limit or a Ctrl-C.

    Args:
        output: the file in `folder` that takes its standard output where this is no text.
        most_bytes: the largest size of any file that it writes.
        late: the message if the time limit is exceeded.

    Raises:
        InputError: it cannot be started, or is not done in time.
    """
    limits = (MAX_MEMORY_BYTES, most_bytes, int(seconds) + 1)
    limited_to = (sys.executable, "-I", limited.__file__, *map(str, limits))
    environment = {**os.environ, "TMPDIR": str(folder), "LC_ALL": "C"}
    with (folder / _LOG).open("wb") as words, (folder / (output or os.devnull)).open("wb") as out:
        try:
            process = subprocess.Popen(  # noqa: S603 - no shell, and no word of the command comes from the input
                (*limited_to, *command),
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=words if output is None else out,
                stderr=words,
                start_new_session=True,
            )
        except OSError as error:
            raise InputError(f"{sys.executable}: cannot start {command[0]}: {error.strerror or error}") from None
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise InputError(late) from None
        finally:
            # it leads a session of its own, so that what it has started ends with it
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    return code, (head(folder / _LOG, MAX_LOG_BYTES) or b"").decode("utf-8", "replace")


def find(name: str) -> Path | None:
    """Return a tool of CUDA: of the installed wheels, which read what every older toolkit wrote, else on PATH."""
    wheels = (path for root in wheel_roots() for path in sorted(root.glob(f"*/bin/{name}"), reverse=True))
    found = next((path for path in wheels if os.access(path, os.X_OK)), None) or shutil.which(name)
    return Path(found).absolute() if found else None


def wheel_roots() -> tuple[Path, ...]:
    """Return the folders of the installed wheels of CUDA."""
    spec = find_spec("nvidia")
    return tuple(Path(place) for place in (spec.submodule_search_locations or ())) if spec else ()


def head(path: Path, most_bytes: int) -> bytes | None:
    """Return the first bytes of a file, None if it does not exist."""
    if not path.is_file():
        return None
    with path.open("rb") as stream:
        return stream.read(most_bytes)


def printable(text: str) -> str:
    """Return a text on one line, harmless to a terminal, and without backslashes, which PTX takes for escapes."""
    return "".join(c if c.isprintable() and c != "\\" else "?" for c in text)
