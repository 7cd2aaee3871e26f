"""The documentation does what it says: its Python runs, and its commands print what stands beside them."""

import re
import shlex
import shutil
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import NamedTuple

import pytest

from makespan import cli
from makespan.errors import InputError
from makespan.ptx import cuda

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BOUNDED_IS_FINE = {"sha256_round.ptx", "known_worst_cases.toml"}
"""Commands about these sources take a minute or more to be exact; here they are stopped early."""


class Outcome(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return _timeless(self.out + self.err)


class Shell:
    """`makespan ...` lines in a folder with copies of the samples."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.capsys = capsys

    def __call__(self, line: str, *extra: str) -> Outcome:
        words = shlex.split(line, comments=True)
        file = None
        if ">" in words:
            *words, _, file = words
        assert words[0] == "makespan"
        code = cli.run([*words[1:], *extra])
        outcome = Outcome(code, *self.capsys.readouterr())
        if file is None:
            return outcome
        Path(file).write_text(outcome.out)
        return outcome._replace(out="")


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    for folder in ("ptx", "instruction_strings", "examples"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return Shell(capsys)


def _timeless(text: str) -> list[str]:
    """Lines without how long something took."""
    lines = re.sub(r" in \d+\.\d+ s$", " in ... s", text, flags=re.MULTILINE).splitlines()
    return [re.sub(r"^(\d+,(?:exact|bounded),.*,)\d+\.\d+$", r"\1...", line) for line in lines]


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)


def named(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=named)
def test_the_python_of_a_page_runs_and_prints_what_its_comments_say(
    page: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)  # pages read the samples by the paths that a reader sees
    namespace: dict[str, object] = {"__name__": "page"}
    for block in blocks(page, "python"):
        printed = StringIO()
        with redirect_stdout(printed):
            exec(compile(block, str(page), "exec"), namespace)
        expected = re.findall(r"^print\(.*\)  # (.+)$", block, re.MULTILINE)
        assert [line for line in printed.getvalue().splitlines() if line in expected] == expected


def test_the_picture_of_the_readme_is_made_as_it_says(shell: Shell) -> None:
    readme = (ROOT / "README.md").read_text()
    command = re.search(r"^    (makespan solve .*)\n\n```text$", readme, re.MULTILINE)
    assert command is not None
    done = shell(command[1])
    expected = _timeless(blocks(ROOT / "README.md", "text")[0])
    assert done.code == 0
    assert len(expected) >= 5
    assert done.lines[-len(expected) :] == expected
    assert Path("vecadd.png").stat().st_size > 1_000


def has_cuda_compiler() -> bool:
    try:
        cuda.choose("readme")
    except InputError:
        return False
    return True


def test_the_commands_of_the_readme_work(shell: Shell) -> None:
    use = (ROOT / "README.md").read_text().split("## Use\n")[1].split("\n## ")[0]
    commands = re.findall(r"^    (makespan .*)$", use, re.MULTILINE)
    assert len(commands) >= 9
    for command in commands:
        if ".cu " in command and not has_cuda_compiler():
            continue
        slow = any(name in command for name in BOUNDED_IS_FINE)
        done = shell(command, *(["--time-limit", "0.2"] if slow else []))
        assert done.code in ((0, 3) if slow else (0,)), (command, done)
    assert Path("bounds.csv").stat().st_size > 0
    assert Path("evidence.json").stat().st_size > 0


METHOD_PAGES = ["hong_kim", "kleimenov_popova", "opencl_cost_table", "dual_issue"]
EXAMPLES = [
    (page, text)
    for page in ("../README", "cli", "schedulability", "estimators", *METHOD_PAGES)
    for text in blocks(ROOT / "docs" / f"{page}.md", "console")
]
FILES = {"kleimenov_popova": {"figure3.ptx": "ptx", "example.toml": "toml"}}
"""Files that the commands of a page read and the page shows, by the language of the block."""


def test_every_page_of_a_method_has_commands_and_is_linked() -> None:
    assert {page for page, _ in EXAMPLES} > set(METHOD_PAGES)
    overview = (ROOT / "docs" / "estimators.md").read_text()
    assert all(f"({page}.md)" in overview for page in METHOD_PAGES)


@pytest.mark.parametrize(("page", "example"), EXAMPLES)
def test_the_commands_of_a_page_print_what_stands_below_them(page: str, example: str, shell: Shell) -> None:
    for name, language in FILES.get(page, {}).items():
        (text,) = blocks(ROOT / "docs" / f"{page}.md", language)
        Path(name).write_text(text)
    for step in example.removeprefix("$ ").split("\n$ "):
        command, *expected = step.splitlines()
        stated = re.search(r"# exit (\d+)$", command)
        done = shell(command)
        assert done.code == (int(stated[1]) if stated else 0), (command, done)
        printed = iter(done.lines)
        for line in _timeless("\n".join(expected)):  # in this order, others may stand between
            assert line in printed, (command, line, done)


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=named)
def test_links_of_a_page_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text())
    assert [target for target in targets if not (page.parent / target).exists()] == []
