"""Temporary files: where there is no place for them, or no room, a line says so."""

import errno
import tempfile
from pathlib import Path

import pytest

from makespan.host.errors import InputError
from makespan.host.tool import folder_with, temporary_folder


def test_a_temporary_folder_ends_with_its_context() -> None:
    with folder_with("a", b"content") as folder:
        assert (folder / "a").read_bytes() == b"content"
    assert not folder.exists()


def test_no_place_for_temporary_files_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    with pytest.raises(InputError, match=r"^temporary files: No such file or directory; .* TMPDIR"), temporary_folder():
        pass


def test_no_room_within_a_temporary_folder_is_one_line_and_any_other_failure_stays_itself() -> None:
    with pytest.raises(InputError, match=r"^temporary files: No space left on device; "), temporary_folder():
        raise OSError(errno.ENOSPC, "No space left on device")
    with pytest.raises(ConnectionResetError), temporary_folder():
        raise ConnectionResetError
