"""The documentation site builds from the pages as they are: no page is left out, no link inside leads nowhere."""

import runpy
import subprocess
import sys
from itertools import zip_longest
from pathlib import Path

import click
import pytest

import makespan
from makespan import Instance, InvalidScheduleError, Schedule, cli, replay
from tests.browser import EXECUTABLE, browser

ROOT = Path(__file__).parents[1]
SITE = ROOT / "docs" / "site"
SPHINX = "import gc, sys; gc.disable(); from sphinx.cmd.build import main; sys.exit(main(sys.argv[1:]))"
"""The collector would look again and again at trees of pages, which all stay: a quarter of the time."""
TOOLS = "the tools of the site (dependency group site) are not installed"


def build(builder: str, to: Path, *options: str) -> "subprocess.CompletedProcess[str]":
    """The site, made by Sphinx, with warnings as errors."""
    pytest.importorskip("furo", reason=TOOLS)
    command = [
        sys.executable,
        "-c",
        SPHINX,
        "-qEW",
        "--keep-going",
        "-b",
        builder,
        "-c",
        str(SITE),
        *options,
        str(ROOT),
        str(to),
    ]
    return subprocess.run(command, cwd=to, capture_output=True, text=True, check=False)


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    """Every page is in the table of contents, and every link and anchor inside leads somewhere; nothing is written."""
    done = build("dummy", tmp_path)
    assert done.stderr == ""
    assert done.returncode == 0


@pytest.mark.soak
@pytest.mark.skipif(EXECUTABLE is None, reason="no Chromium")
def test_pages_ask_the_network_for_nothing_and_fit_narrow_and_wide(tmp_path: Path) -> None:
    """The site with its notebooks as they run; sideways only tables and code scroll, each by itself."""
    assert build("html", tmp_path, "-D", "execute=1").returncode == 0
    with browser() as tab:
        for page in sorted(tmp_path.rglob("*.html")):
            for width in (1400, 400):
                tab.resize(width, 900)
                tab.open(page)
                assert (page.name, tab.run("document.documentElement.scrollWidth <= innerWidth")) == (page.name, True)
        assert [address for address in tab.requests() if not address.startswith(("file:", "data:", "about:"))] == []
        assert tab.complaints() == []


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> None:
    """What makes the site can be imported."""
    pytest.importorskip("furo", reason=TOOLS)
    monkeypatch.syspath_prepend(str(SITE))


@pytest.mark.usefixtures("modules")
def test_the_reference_has_every_command_and_option() -> None:
    import command_line

    lines = command_line.reference().splitlines()
    headings = [line.lstrip("#").strip() for line in lines if line.startswith("##")]
    assert [name for name in headings if " " not in name] == cli.cli.list_commands(click.Context(cli.cli))
    assert {"measure sm", "measure opencl"} <= set(headings)
    solve = cli.cli.get_command(click.Context(cli.cli), "solve")
    assert solve is not None
    section = "\n".join(lines[lines.index("## solve") : lines.index("## simulate")])
    assert [
        name for option in solve.params for name in option.opts if name.startswith("--") and name not in section
    ] == []


@pytest.mark.usefixtures("modules")
def test_the_reference_has_everything_that_the_package_offers() -> None:
    import interface

    headings = [line.removeprefix("### ") for line in interface.reference().splitlines() if line.startswith("### ")]
    assert {*headings, "PAPER", "__version__"} == {*makespan.__all__}


@pytest.mark.usefixtures("modules")
def test_a_docstring_becomes_markdown() -> None:
    import interface

    text = "First.\n\n    >>> 1 + 1\n    2\n\nArgs:\n    name: what\n        it is.\n    other: not.\n\nSource: a book."
    example, args = "```pycon\n>>> 1 + 1\n2\n```", "* name: what\n    it is.\n* other: not."
    assert interface.markdown(text).rstrip() == f"First.\n\n{example}\n\n**Args.**\n\n{args}\n\n**Source.** a book."


@pytest.mark.usefixtures("modules")
def test_a_notebook_becomes_markdown_with_what_its_cells_show(tmp_path: Path) -> None:
    import notebook

    code = "# %% [markdown]\n# # Title\n\n# %%\nprint('so')\n1 + 1\n"
    assert notebook.markdown(code, tmp_path, execute=False) == "# Title\n\n``````python\nprint('so')\n1 + 1\n``````"


@pytest.mark.usefixtures("modules")
def test_a_page_is_listed_where_it_is_named_first() -> None:
    import pages

    tables = list(
        pages.tables_of_contents(
            "# T\n\n## A\n\n[x](model.md) [y](cli.md#a)\n\n## B\n\n[x](model.md), [r](../README.md)\n"
        )
    )
    assert [table.split("\n\n")[1].split() for table in tables] == [["/docs/model", "```"], ["/README", "```"]]


def test_the_picture_of_work_conservation_shows_two_schedules_and_one_that_is_none() -> None:
    drawn = runpy.run_path(str(ROOT / "docs" / "work_conserving_picture.py"))["SCHEDULES"].values()
    pair = Instance.of("CLLCLL", 2)
    shortest, longest, none = (Schedule(tuple(map(issuing, zip_longest(*rows))), PATHS) for rows in drawn)
    assert [replay(pair, shortest), replay(pair, longest)] == [9, 10]
    with pytest.raises(InvalidScheduleError, match="cycle 1"):
        replay(pair, none)


PATHS = (tuple(range(6)),) * 2


def issuing(letters: tuple[str | None, ...]) -> tuple[int, ...]:
    """The warps that issue in a cycle of the picture."""
    return tuple(warp for warp, letter in enumerate(letters) if letter in {"C", "L"})
