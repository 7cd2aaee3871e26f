"""Files that are written whole, and refused in time."""

import os
import sys
from pathlib import Path

import pytest

from makespan import cli
from makespan.host.errors import InputError
from makespan.host.output_file import check_writable, write_whole


def test_a_name_that_no_file_can_have_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot write the page: File name too long"):
        check_writable(tmp_path / ("a" * 5_000 + ".html"), "the page")


def test_a_link_stays_and_its_target_is_written(tmp_path: Path) -> None:
    target, link = tmp_path / "target.txt", tmp_path / "link.txt"
    link.symlink_to(target)
    check_writable(link, "the page")
    write_whole(link, b"text", "the page")
    assert link.is_symlink()
    assert target.read_bytes() == b"text"


def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path: Path) -> None:
    pipe, link = tmp_path / "pipe", tmp_path / "link.txt"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_whole(link, b"text", "the page")
        assert os.read(reader, 10) == b"text"
    finally:
        os.close(reader)
    assert pipe.is_fifo()


def test_a_link_into_a_missing_folder_is_refused(tmp_path: Path) -> None:
    link = tmp_path / "link.txt"
    link.symlink_to(tmp_path / "missing" / "target.txt")
    with pytest.raises(InputError, match="No such file or directory"):
        check_writable(link, "the page")


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="a folder that takes no file, whoever asks")
def test_a_folder_that_takes_no_file_is_refused_in_time() -> None:
    with pytest.raises(InputError, match=r"/proc/x\.png: cannot write the picture: "):
        check_writable(Path("/proc/x.png"), "the picture")


def test_what_is_checked_is_not_there_after(tmp_path: Path) -> None:
    check_writable(tmp_path / "x.png", "the picture")
    assert not list(tmp_path.iterdir())


def test_two_outputs_of_one_name_are_refused_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    asked = ["solve", "--string", "CL", "--warps", "2", "--gantt", "s.json", "--bundle", "./s.json"]
    assert cli.run(asked) == 2
    assert capsys.readouterr().err == "makespan: s.json: two outputs have this name\n"
    assert not list(tmp_path.iterdir())


class _NoPlace:
    """As matplotlib where it can write nowhere."""

    def find_spec(self, name: str, *_: object) -> None:
        if name == "matplotlib":
            raise OSError("Matplotlib requires access to a writable cache directory")


def test_where_matplotlib_finds_no_place_for_its_cache_a_picture_is_refused_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "meta_path", [_NoPlace(), *sys.meta_path])
    monkeypatch.delitem(sys.modules, "matplotlib", raising=False)
    code = cli.run(["solve", "--string", "CL", "--warps", "1", "--gantt", str(tmp_path / "g.png")])
    said = capsys.readouterr()
    assert (code, said.out.split("\n")[0][:5]) == (2, "exact")
    assert said.err == "makespan: cannot draw: Matplotlib requires access to a writable cache directory\n"
