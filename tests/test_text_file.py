"""Small text files, and those of the package."""

from pathlib import Path

import pytest

from makespan.errors import InputError
from makespan.text_file import named_file, parse_toml, read_text, shipped_files


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "some.toml"


def test_a_byte_order_mark_is_no_part_of_the_text(file: Path) -> None:
    file.write_bytes(b"\xef\xbb\xbfa = 1\n")
    assert read_text(file, "note", 100) == "a = 1\n"


def test_a_file_of_just_the_limit_is_read(file: Path) -> None:
    file.write_bytes(b"#" * 2048)
    assert len(read_text(file, "note", 2048)) == 2048
    with pytest.raises(InputError, match=r"some\.toml: larger than 1 KiB, too large for a note"):
        read_text(file, "note", 1024)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xff", "cannot read the note: it is not UTF-8 text"),
        (None, "cannot read the note: No such file or directory"),
    ],
)
def test_what_cannot_be_read_is_refused_by_the_name_that_the_user_knows(
    file: Path, content: bytes | None, message: str
) -> None:
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(InputError, match=f"^the place: {message}"):
        read_text(file, "note", 100, where="the place")


def test_a_name_is_one_of_the_package_or_a_path_with_the_suffix() -> None:
    assert list(shipped_files("gpus", ".toml")) == sorted(shipped_files("gpus", ".toml"))
    file, where = named_file("gtx280", "gpus", ".toml", "GPU")
    assert (file.read_text("utf-8").startswith("name"), where) == (True, "gtx280.toml")
    assert named_file("./own.toml", "gpus", ".toml", "GPU") == (Path("own.toml"), "own.toml")
    with pytest.raises(InputError, match=r"unknown GPU 'own'; shipped: .*gtx280.*; or give a \.toml file"):
        named_file("own", "gpus", ".toml", "GPU")


@pytest.mark.parametrize("text", ["a = ", "a = 1\na = 2", "a = " + "[" * 5000, "a = " + "9" * 5000])
def test_what_is_no_toml_is_one_line(text: str) -> None:
    with pytest.raises(InputError, match=r"^here: not a TOML note: [^\n]+$"):
        parse_toml(text, "note", "here")
