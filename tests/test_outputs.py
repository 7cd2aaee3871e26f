"""No command writes over what it reads, by whatever name; what the program keeps for itself it may write again."""

import os
from collections.abc import Callable
from io import TextIOWrapper
from pathlib import Path

import pytest

from makespan import cli
from makespan.host.errors import InputError
from makespan.host.output_file import check_writable, write_whole
from makespan.host.text_file import inputs_kept, read_text
from tests.command import Runner

ROOT = Path(__file__).parent.parent
MACHINE = b"[units]\nC = { capacity = 1 }\nL = { capacity = 1 }\n"
INSTANCES = b'[[instance]]\nstring = "CL"\nwarps = 2\ncapacity = {C = 1, L = 1}\n'
NONE = b"# none\n"
KERNEL = "k.ptx --block 256"
CASES = {
    "m.toml": (MACHINE, "export --string CL --warps 2 --machine m.toml --model lp -o m.toml"),
    "b.toml": (MACHINE, "solve --string CL --warps 2 --machine b.toml --bundle b.toml"),
    "i.toml": (INSTANCES, "export i.toml --model lp -o i.toml"),
    "p.toml": (INSTANCES, "solve i.toml --bundle i.toml"),
    "b.csv": (NONE, f"solve {KERNEL} --loop-bound b.csv --gantt b.csv"),
    "b.json": (NONE, f"solve {KERNEL} --loop-bound b.json --bundle ../here/b.json"),
    "c.csv": (NONE, f"simulate {KERNEL} --loop-bound c.csv --policy gto --gantt c.csv"),
    "p.svg": (NONE, f"simulate {KERNEL} --loop-bound p.svg --plot p.svg"),
    "c.json": (NONE, "compare k.ptx --warps 1..2 --loop-bound c.json -o c.json"),
    "c.html": (NONE, f"report {KERNEL} --classes c.html -o c.html"),
    "e.json": (NONE, f"report {KERNEL} --loop-bound e.json -o page.html --bundle e.json"),
    "t.toml": (NONE, "schedulability t.toml --no-cache --export pycpa t.toml"),
    "table.csv": (NONE, "measure dual-issue --import table.csv --machine-out table.csv"),
    "samples.toml": (NONE, "measure latency --fit samples.toml --gpu-out samples.toml"),
    "kept.ptx": (NONE, "solve k.cu --block 256 --loop-bound kept.ptx --keep-ptx kept.ptx"),
    "classes.ptx": (NONE, "strings k.cu --classes classes.ptx --keep-ptx classes.ptx"),
    "regs.ptx": (
        NONE,
        "estimate --method hong-kim k.cu --gpu gtx280 --block 64 --grid 2 --ptxas regs.ptx --keep-ptx regs.ptx",
    ),
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a kernel, in which commands run."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    for suffix in (".ptx", ".cu"):
        (folder / f"k{suffix}").write_bytes((ROOT / "ptx" / f"vecadd{suffix}").read_bytes())
    return folder


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("name", CASES)
def test_an_output_that_is_an_input_is_refused(name: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given, line = CASES[name]
    output = line.split()[-1]
    Path(output).write_bytes(given)
    before = content(here)
    command, *arguments = line.split()
    done = Runner(command, capsys)(*arguments)
    assert (done.code, done.err) == (2, f"makespan: {output}: is an input of this command; write to another file\n")
    assert done.out == ""
    assert content(here) == before


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_a_link_is_the_file_that_it_leads_to(
    link: Callable[[str, str], None], here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    link("k.ptx", "same.json")
    before = content(here)
    done = Runner("solve", capsys)("k.ptx", "--block", 256, "--bundle", "same.json")
    assert (done.code, done.err.split(": ")[1:2]) == (2, ["same.json"])
    assert content(here) == before


def test_the_standard_input_is_an_input_where_it_is_a_file(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("k.json").write_bytes(Path("k.ptx").read_bytes())
    before = content(here)
    with Path("k.json").open("rb") as stream:
        monkeypatch.setattr("sys.stdin", TextIOWrapper(stream))
        done = Runner("solve", capsys)("-", "--input-format", "ptx", "--block", 256, "--bundle", "k.json")
    assert (done.code, "k.json: is an input of this command" in done.err) == (2, True)
    assert content(here) == before


def test_the_source_of_a_page_is_not_its_bundle(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = content(here)
    done = Runner("report", capsys)("k.ptx", "--block", 256, "-o", "p.html", "--bundle", "k.ptx")
    assert (done.code, done.err.startswith("makespan: k.ptx: ")) == (2, True)
    assert content(here) == before


def test_a_page_that_leads_to_its_bundle_is_refused(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("p.html").symlink_to("b.json")
    done = Runner("report", capsys)("k.ptx", "--block", 256, "-o", "p.html", "--bundle", "b.json")
    assert (done.code, done.err) == (2, "makespan: p.html: the page and the bundle need two names\n")
    assert not Path("b.json").exists()


def test_an_output_of_one_command_is_written_again_and_read_by_the_next(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        assert Runner("solve", capsys)("k.ptx", "--block", 256, "--bundle", "b.json").code == 0
        assert Runner("verify", capsys)("b.json").code == 0


def test_a_bundle_is_named_as_one(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = content(here)
    done = Runner("solve", capsys)("--string", "CL", "--warps", 2, "--bundle", "new.ptx")
    message = "makespan: new.ptx: the name of a bundle must end in .json, or have no end\n"
    assert (done.code, done.out, done.err) == (2, "", message)
    assert content(here) == before


def test_a_library_may_write_what_it_has_read(here: Path) -> None:
    path = here / "note"
    path.write_text("old")
    read_text(path, "note", 10)
    write_whole(path, b"new", "the note")
    assert read_text(path, "note", 10) == "new"


def test_what_the_program_keeps_for_itself_is_written_again(here: Path) -> None:
    path = here / "note"
    path.write_text("old")
    with inputs_kept():
        read_text(path, "note", 10, rewritten=True)
        write_whole(path, b"new", "the note")
    assert path.read_text() == "new"


@pytest.mark.parametrize("reads_first", [True, False])
def test_neither_order_of_reading_and_writing_passes(reads_first: bool, here: Path) -> None:
    path = here / "note"
    path.write_text("old")
    steps: list[Callable[[], object]] = [
        lambda: read_text(path, "note", 10),
        lambda: check_writable(path, "the note"),
    ]
    first, second = steps if reads_first else reversed(steps)
    with inputs_kept():
        first()
        with pytest.raises(InputError, match=r"note: is an input of this command; write to another file$"):
            second()
    second()


def test_a_device_is_read_and_written(capsys: pytest.CaptureFixture[str]) -> None:
    line = ["solve", "--string", "CL", "--warps", "2", "--bundle", os.devnull]
    assert cli.run(line) == 0
    with inputs_kept():
        read_text(Path(os.devnull), "note", 10)
        check_writable(Path(os.devnull), "the note")
