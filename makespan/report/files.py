"""Files that appear whole or not at all."""

import secrets
from pathlib import Path

from makespan.errors import InputError


def write_whole(path: Path, content: bytes, what: str) -> None:
    """Replace `path` by `content` in one step; `what` is for the message.

    Raises:
        InputError: the file cannot be written; nothing is left behind.
    """
    temporary = path.with_name(f".makespan-{secrets.token_hex(8)}.tmp")
    try:
        try:
            temporary.write_bytes(content)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"{path}: cannot write {what}: {error.strerror or error}") from None
