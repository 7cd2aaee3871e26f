"""The documentation does what it says: its Python runs, and its commands print what stands beside them."""

import re
import shlex
import shutil
from contextlib import redirect_stdout
from functools import cache
from io import StringIO
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import click
import pytest
from PIL import Image

from makespan import Instance, Machine, cli
from makespan.host.errors import InputError
from makespan.kernels.ptx import cuda
from makespan.model.result import Bounds
from makespan.model.simulate import POLICIES, run
from makespan.proof.engines import Limits

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
SEARCHED = {
    "solve --string CLLC --warps 4 --machine examples/long_loads.toml": Bounds(1214, 1214),
    "report ptx/matmul_tiled.ptx": Bounds(2996, 2996),
    "solve ptx/sha256_round.ptx": Bounds(6252, 6279),
    "solve ptx/vecadd.ptx --block 256 --machine turing": Bounds(1175, 1312),
    "solve ptx/vecadd.ptx --block 256 --grid 4096 --sms 46": Bounds(10228, 13615),
}
"""What is known, in cycles, about commands of docs/one_liners.md that search for seconds: they are stopped early."""


class Outcome(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return _timeless(self.out + self.err)


class Shell:
    """`makespan ...` lines in a folder with copies of the samples; pictures of pages say what they say there."""

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
        for name in drawn(words):
            assert caption(Path(name)) == caption(ROOT / "docs" / name)
        if file is None:
            return outcome
        Path(file).write_text(outcome.out)
        return outcome._replace(out="")


def drawn(words: list[str]) -> list[str]:
    """The pictures of pages that a command draws again."""
    return [word for word in words if word.endswith(".png") and (ROOT / "docs" / word).exists()]


def caption(picture: Path) -> tuple[str, str]:
    """The verdict that a picture carries as its title, and what it says below."""
    with Image.open(picture) as image:
        return image.info["Title"], image.info["Description"]


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    for folder in ("ptx", "instruction_strings", "examples", "benchmarks/library"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return Shell(capsys)


@pytest.fixture
def endless(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time stands still: no limit expires, so a slow machine finds what a fast one finds."""
    monkeypatch.setattr(Limits, "elapsed", 0.0)


def _timeless(text: str) -> list[str]:
    """Lines without how long something took."""
    lines = re.sub(r" in \d+\.\d+ s(?=,|$)", " in ... s", text, flags=re.MULTILINE).splitlines()
    return [re.sub(r"^(\d+,(?:exact|bounded),.*,)\d+\.\d+$", r"\1...", line) for line in lines]


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)


def page_text(name: str) -> str:
    return (ROOT / "docs" / name).read_text()


def named(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.usefixtures("endless")
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


@pytest.mark.usefixtures("endless")
def test_the_picture_of_the_readme_is_made_as_it_says(shell: Shell) -> None:
    readme = (ROOT / "README.md").read_text()
    command = re.search(r"^    (makespan solve .*)\n\n```text$", readme, re.MULTILINE)
    assert command is not None
    done = shell(command[1])
    expected = blocks(ROOT / "README.md", "text")[0].splitlines()
    assert done.code == 1
    first, last = expected[: expected.index("...")], expected[expected.index("...") + 1 :]
    assert len(first) >= 4
    assert done.out.splitlines()[: len(first)] == first
    assert done.out.splitlines()[-len(last) :] == last


def test_the_policies_of_the_readme_are_as_late_as_it_says() -> None:
    said = "We simulate seven scheduling policies, and all of them finish within 35 cycles"
    assert said in (ROOT / "README.md").read_text()
    shared = Instance.of("LCCLCCCLCL", 8, Machine.of({"C": 2, "L": 1}))
    late = [run(shared, policy).makespan for policy in POLICIES]
    assert (len(late), max(late)) == (7, 35)


def has_cuda_compiler() -> bool:
    try:
        cuda.choose_compiler("readme")
    except InputError:
        return False
    return True


def use() -> list[list[str]]:
    """The commands of docs/one_liners.md; one that reads what earlier ones write comes with them."""
    together: list[list[str]] = []
    for command in re.findall(r"^    (makespan .*)$", page_text("one_liners.md"), re.MULTILINE):
        words = set(shlex.split(command, comments=True))
        before = [group for group in together if written(group) & words]
        together = [group for group in together if group not in before] + [[*chain(*before), command]]
    return together


def written(commands: list[str]) -> set[str]:
    """The files that commands write."""
    return {file for command in commands for file in re.findall(r" (?:-o|--bundle|--gantt|>) (\S+)", command)}


def without_comment(commands: list[str]) -> str:
    return commands[0].partition("#")[0].strip()


@pytest.mark.parametrize("commands", use(), ids=without_comment)
def test_one_liners_work(commands: list[str], shell: Shell) -> None:
    if ".cu " in commands[0] and not has_cuda_compiler():
        pytest.skip("no CUDA compiler")
    for command in commands:
        searched = [known for part, known in SEARCHED.items() if part in command]
        done = shell(command, *(["--time-limit", "0.2"] if searched else []))
        assert done.code in ((0, 3) if searched else (0,)), (command, done)
        for known in searched:
            assert known & worst_case(done)
    assert all(Path(file).stat().st_size > 0 for file in written(commands))


@pytest.mark.soak
@pytest.mark.parametrize("part", SEARCHED)
def test_one_liners_that_search_find_what_is_known(part: str, shell: Shell) -> None:
    ((command,),) = [group for group in use() if part in group[0]]
    found = worst_case(shell(command, "--time-limit", "600"))
    assert found & SEARCHED[part] == found


def worst_case(done: Outcome) -> Bounds:
    """What the command says of the worst case."""
    (found,) = re.findall(
        r"the worst case (?:of .* )?is (?:at least (\d+) and at most )?(\d+) cycles$", done.out, re.MULTILINE
    )
    return Bounds(int(found[0] or found[1]), int(found[1]))


def test_the_table_of_the_readme_is_part_of_a_measurement() -> None:
    rows = re.findall(r"^\| \d, \d \|.*$", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert len(rows) == 6
    assert [row for row in rows if row not in page_text("benchmarks.md").splitlines()] == []


def test_the_page_about_the_command_line_begins_with_every_command() -> None:
    table = page_text("cli.md").partition("\n## ")[0]
    assert [name for name in cli.cli.list_commands(click.Context(cli.cli)) if f"`{name}`" not in table] == []


def test_the_commands_of_the_readme_are_among_those_of_other_pages() -> None:
    section = (ROOT / "README.md").read_text().split("## What you can ask\n")[1].split("\n## ")[0]
    commands = [line.partition("#")[0].strip() for line in re.findall(r"^    (makespan .*)$", section, re.MULTILINE)]
    others = page_text("one_liners.md") + "".join(blocks(ROOT / "docs" / "start.md", "console"))
    assert len(commands) == 3
    assert [command for command in commands if command not in others] == []


def test_the_pictures_of_the_gallery_are_drawn_by_commands_that_a_test_executes() -> None:
    """But for two: where a time limit ends a search, and a campaign of hours."""
    pictures = re.findall(r"^    (.* (\S+\.png))$", page_text("gallery.md"), re.MULTILINE)
    executed = (ROOT / "README.md").read_text() + page_text("one_liners.md")
    executed += "".join(text for _, text in EXAMPLES)
    searched = {name for command, name in pictures if command.split(" -o ")[0] not in executed}
    assert {name for _, name in pictures} - searched >= {
        "late.png",
        "vecadd.png",
        "partitions.png",
        "slow.png",
        "gpu.png",
    }
    assert searched == {"compare_map.png", "docs/schedulable_fraction.png"}


def test_there_are_one_liners_and_among_them_those_that_search() -> None:
    assert len(use()) >= 9
    assert {"bounds.csv", "evidence.json"} <= {file for group in use() for file in written(group)}
    assert [sum(part in group[0] for group in use()) for part in SEARCHED] == [1] * len(SEARCHED)


METHOD_PAGES = ["hong_kim", "kleimenov_popova", "opencl_cost_table", "dual_issue"]
EXAMPLES = [(page.stem, text) for page in PAGES if page.stem != "machines" for text in blocks(page, "console")]
"""But of machines.md, whose files are written by the test of machine files."""
FILES = {
    "gate": {"gate.toml": "toml"},
    "kleimenov_popova": {"figure3.ptx": "ptx", "example.toml": "toml"},
    "sweep": {"example.toml": "toml"},
}
"""Files that the commands of a page read and the page shows, by the language of the block."""


def test_every_page_of_a_method_has_commands_and_is_linked() -> None:
    assert {page for page, _ in EXAMPLES} > set(METHOD_PAGES)
    overview = (ROOT / "docs" / "estimators.md").read_text()
    assert all(f"({page}.md)" in overview for page in METHOD_PAGES)


@pytest.mark.usefixtures("endless")
@pytest.mark.parametrize(("page", "example"), EXAMPLES)
def test_the_commands_of_a_page_print_what_stands_below_them(page: str, example: str, shell: Shell) -> None:
    if ".cu " in example and not has_cuda_compiler():
        pytest.skip("no CUDA compiler")
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


def test_the_counts_of_campaigns_are_those_of_the_pages_that_they_are_from() -> None:
    """Each number stands in the section that is linked, or is the sum of a column of its table."""
    rows = re.findall(r"^\|.*\| (\d.*) \| 0 \| .*\((\w+\.md)#(.*)\) \|$", page_text("believe.md"), re.MULTILINE)
    assert len(rows) == 8
    for counts, page, anchor in rows:
        section = next(part for part in re.split(r"^#+ ", page_text(page), flags=re.MULTILINE) if slug(part) == anchor)
        tables = (re.findall(r"^\|[^|]*\| (\d+) \| (\d+) ", part, re.MULTILINE) for part in section.split("\n\n"))
        sums = {f"{sum(map(int, column)):,}" for rows in tables for column in zip(*rows, strict=True)}
        known = {*re.findall(r"[\d,]*\d{3}", section), *sums}
        assert set(re.findall(r"[\d,]*\d{3}", counts)) <= known


def slug(section: str) -> str:
    """The anchor of the heading with which a section begins."""
    return re.sub(r"[^\w -]", "", section.partition("\n")[0].lower()).replace(" ", "-")


def test_every_option_that_a_page_names_belongs_to_its_command() -> None:
    """Of commands that take a GPU, a server or hours, and of those whose files a reader has to bring."""
    pages = [*PAGES, *ROOT.glob("*/README.md")]
    shown = [(page, each) for page in pages for each in COMMAND.findall(page.read_text().replace("\\\n", ""))]
    unknown = [
        f"{named(page)}: {option} in {line}"
        for page, line in shown
        for option in re.findall(r"(?<![\w-])--[a-z][a-z-]*", line.partition(" # ")[0])
        if option not in options(line.split()[1:])
    ]
    assert unknown == []
    assert len(shown) > 300


COMMAND = re.compile(r"(?:^    |^\$ |`)(makespan [^\n`]+)", re.MULTILINE)


def options(words: list[str]) -> frozenset[str]:
    """Of the command that `words` begin with, and of all below it; `estimate` rewrites three before it parses."""
    command: click.Command = cli.cli
    context = click.Context(command)
    for word in words:
        if not isinstance(command, click.Group) or (below := command.get_command(context, word)) is None:
            break
        command = below
    return options_of(command) | ({"--method", "--compare", "--evaluate"} if words[0] == "estimate" else set())


@cache
def options_of(command: click.Command) -> frozenset[str]:
    found = {name for option in command.get_params(click.Context(command)) for name in option.opts}
    if isinstance(command, click.Group):
        names = command.list_commands(context := click.Context(command))
        found |= {name for each in names for name in options_of(command.get_command(context, each))}
    return frozenset(found)


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=named)
def test_links_of_a_page_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text())
    assert [target for target in targets if not (page.parent / target).exists()] == []


QUICK = (
    "solve, compare, simulate, report, verify, schedulability, machines, strings, export,"
    " estimate hong-kim, estimate opencl-cost-table, measure throughput,"
    " benchmark show"
)
"""Commands whose examples take no device and no time; tests/cli/test_help.py looks at those of all."""


@pytest.mark.parametrize("name", QUICK.split(", "))
def test_the_examples_in_the_help_of_a_command_work(name: str, shell: Shell) -> None:
    printed = shell(f"makespan {name} --help").out.split("Examples:\n")[1]
    examples = [line.strip() for line in printed.replace("\\\n", "").splitlines()]
    assert any(line.startswith("makespan ") for line in examples)
    assert {shell(line).code for line in examples} == {0}
