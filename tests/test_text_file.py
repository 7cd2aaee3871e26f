"""Small text files, and those of the package."""

import io
import os
import sys
import threading
from pathlib import Path

import pytest

from makespan import cli
from makespan.host.errors import InputError
from makespan.host.text_file import named_file, parse_toml, read_bytes, read_stream, read_text, shipped_files
from tests.command import Runner

ROOT = Path(__file__).parent.parent
MARK = b"\xef\xbb\xbf"


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
        (b"\xff\xfea\0", "cannot read the note: it is UTF-16 text; save it as UTF-8, in PowerShell with | Out-File"),
        (b"\xfe\xff\0a", "cannot read the note: it is UTF-16 text; save it as UTF-8"),
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


def test_a_pipe_is_read_to_its_end_or_to_the_limit(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for size in (1000, 1001):
        writer = threading.Thread(target=pipe.write_bytes, args=(b"#" * size,))
        writer.start()
        if size == 1000:
            assert read_bytes(pipe, "note", 1000) == b"#" * 1000
        else:
            with pytest.raises(InputError, match="larger than 1000 bytes, too large for a note"):
                read_bytes(pipe, "note", 1000)
        writer.join()


def test_a_file_without_a_size_is_read() -> None:
    file = Path("/proc/self/status")
    assert file.stat().st_size == 0
    assert read_text(file, "note", 1 << 20).startswith("Name:")
    with pytest.raises(InputError, match=r"^/proc/self/status: larger than"):
        read_text(file, "note", 9)


def test_an_endless_stream_is_read_up_to_the_limit() -> None:
    with Path("/dev/zero").open("rb") as zeros, pytest.raises(InputError, match=r"^here: larger than 1 MiB"):
        read_stream(zeros, "note", 1 << 20, "here")
    assert read_stream(io.BytesIO(b"ab"), "note", 2, "here") == b"ab"


def test_a_name_is_one_of_the_package_or_a_path_with_the_suffix() -> None:
    assert list(shipped_files("gpus", ".toml")) == sorted(shipped_files("gpus", ".toml"))
    file, where = named_file("gtx280", "gpus", ".toml", "GPU")
    assert (file.read_text("utf-8").startswith("name"), where) == (True, "gtx280.toml")
    assert named_file("./own.toml", "gpus", ".toml", "GPU") == (Path("own.toml"), "own.toml")
    with pytest.raises(InputError, match=r"unknown GPU 'own'; shipped: .*gtx280.*; or give a \.toml file"):
        named_file("own", "gpus", ".toml", "GPU")


def test_a_line_with_many_dots_is_refused_as_a_key_of_them_would_take_quadratic_time() -> None:
    assert parse_toml(".".join("a" * 101) + " = 1", "file", "f.toml")
    with pytest.raises(InputError, match=r"^f.toml:2: a line with 101 dots; the limit is 100$"):
        parse_toml("\n" + ".".join("a" * 102) + " = 1", "file", "f.toml")


@pytest.mark.parametrize("text", ["a = ", "a = 1\na = 2", "a = " + "[" * 5000, "a = " + "9" * 5000])
def test_what_is_no_toml_is_one_line(text: str) -> None:
    with pytest.raises(InputError, match=r"^here: not a TOML note: [^\n]+$"):
        parse_toml(text, "note", "here")


TEXTS = {
    "a.jsonl": b'{"string": "CL", "warps": 2, "capacity": {"C": 1, "L": 1}}',
    "a.toml": b'[[instance]]\nstring = "CL"\nwarps = 2\ncapacity = {C = 1, L = 1}\n',
    "a.ptx": (ROOT / "ptx" / "vecadd.ptx").read_bytes(),
    "m.toml": (ROOT / "makespan" / "data" / "machines" / "paper.toml").read_bytes(),
    "b.csv": b"# none\n",
}
COMMANDS = {
    "a.jsonl": "solve a.jsonl",
    "a.toml": "solve a.toml",
    "a.ptx": "solve a.ptx --warps 2",
    "m.toml": "solve --string CL --warps 2 --machine m.toml",
    "b.csv": "solve a.ptx --warps 2 --loop-bound b.csv",
    "bundle": "verify bundle",
    "source of a page": "report a.ptx --warps 2 -o page.html",
}


@pytest.mark.parametrize("kind", COMMANDS)
def test_a_byte_order_mark_changes_nothing(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in TEXTS.items():
        Path(name).write_bytes(text)
    assert cli.run(["solve", "--string", "CL", "--warps", "2", "--bundle", "bundle"]) == 0
    capsys.readouterr()
    name, *arguments = COMMANDS[kind].split()
    plain = Runner(name, capsys)(*arguments)
    marked = next(Path(word) for word in arguments if word == kind or kind not in COMMANDS[kind])
    marked.write_bytes(MARK + marked.read_bytes())
    done = Runner(name, capsys)(*arguments)
    assert (done.code, done.out.splitlines()[-1]) == (plain.code, plain.out.splitlines()[-1])
    assert plain.code == 0, plain


@pytest.mark.parametrize("kind", ["jsonl", "toml", "ptx"])
def test_the_standard_input_is_read_as_a_file(
    kind: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["-", "--input-format", kind, *(["--warps", "2"] if kind == "ptx" else [])]

    def given(data: bytes) -> tuple[int, str]:
        """The exit code and the last line; others have times."""
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        done = Runner("solve", capsys)(*arguments)
        return done.code, (done.out + done.err).splitlines()[-1]

    text = TEXTS[f"a.{kind}"]
    assert given(text)[0] == 0
    assert given(MARK + text) == given(text)
    code, said = given(text.decode().encode("utf-16"))
    assert code == 2
    assert "it is UTF-16 text; save it as UTF-8" in said
    monkeypatch.setattr("makespan.cli.source.MAX_STDIN_BYTES", 10)
    assert given(text)[1].startswith("makespan: <stdin>: larger than 10 bytes, too large for a ")


@pytest.mark.parametrize(
    "words",
    ["solve {}", "sweep export {} -o t.csv", "benchmark show {}", "validate {} --gpu t4", "gate {}", "verify {}"],
)
def test_a_name_that_is_too_long_for_a_file_is_one_line(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(words.format("CL" * 1500).split()) == 2
    assert capsys.readouterr().err.count("\n") == 1
