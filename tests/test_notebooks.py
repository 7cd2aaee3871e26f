"""The notebooks run as notebooks, from the first cell to the last, and results show themselves in them."""

import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from makespan import PAPER, Instance, Machine, Result, solve
from makespan.model.result import Bounds
from makespan.report import jupyter

FOLDER = Path(__file__).parents[1] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.py"))
SECONDS_PER_CELL = 1200


def executed(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The notebook that `code` is, in jupytext's percent format, after a kernel of its own has run all cells."""
    for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR"):  # nothing of the user's, and nothing left
        monkeypatch.setenv(name, str(tmp_path / name))
    import jupytext
    from nbclient import NotebookClient

    notebook = jupytext.reads(code, fmt="py:percent")
    where = {"metadata": {"path": str(FOLDER)}}
    NotebookClient(notebook, timeout=SECONDS_PER_CELL, kernel_name="python3", resources=where).execute()
    return notebook


def shown(notebook: Any, kind: str) -> list[str]:
    """What the cells show of a MIME type."""
    outputs = (output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs)
    return [output.data[kind] for output in outputs if kind in output.get("data", {})]


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """IPython within this process: a kernel takes seconds to start, and imports what is there already."""
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    monkeypatch.chdir(FOLDER)
    yield InteractiveShell.instance(config=Config({"HistoryManager": {"enabled": False}}))
    InteractiveShell.clear_instance()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_shows_what_it_found(path: Path, shell: Any) -> None:
    import jupytext
    from IPython.utils.capture import capture_output

    outputs = []
    for cell in jupytext.reads(path.read_text(), fmt="py:percent").cells:
        if cell.cell_type == "code":
            with shell.display_trap, capture_output() as captured:
                shell.run_cell(cell.source).raise_error()
            outputs += [output.data for output in captured.outputs]
    assert any(": the worst case is" in data.get("text/html", "") for data in outputs)
    assert any(data.keys() & {"image/png", "image/svg+xml"} for data in outputs), "a picture"


@pytest.mark.soak
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_kernel_runs_a_notebook(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = executed(path.read_text(), tmp_path, monkeypatch)
    assert all(cell.execution_count for cell in notebook.cells if cell.cell_type == "code")
    assert any(": the worst case is" in text for text in shown(notebook, "text/html"))


def test_a_claim_that_is_false_stops_a_notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from nbclient.exceptions import CellExecutionError

    with pytest.raises(CellExecutionError, match="AssertionError"):
        executed("# %%\n1\n\n# %%\nassert 1 == 2\n", tmp_path, monkeypatch)


def test_there_are_notebooks() -> None:
    known = "certificates cost_table dual_issue kernel_to_verdict machine_code paper schedulability"
    assert [path.stem for path in NOTEBOOKS] == known.split()


def test_a_result_shows_itself_once_the_extension_is_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = [
        "from makespan import Instance, solve\nresult = solve(Instance.of('CLLCLL', 2))\nresult",
        "# %load_ext makespan",
        "result",
        "from makespan.report.jupyter import gantt\ngantt(result)",
    ]
    notebook = executed("\n\n".join(f"# %%\n{cell}" for cell in cells), tmp_path, monkeypatch)
    before, _, after, picture = (cell.outputs for cell in notebook.cells)
    assert set(before[0].data) == {"text/plain"}
    assert (
        before[0].data["text/plain"]
        == "Result(exact if every instruction takes one cycle: the worst case is 10 cycles)"
    )
    assert "exact if every instruction takes one cycle: the worst case is 10 cycles" in after[0].data["text/html"]
    assert (
        after[0]
        .data["text/plain"]
        .startswith("exact if every instruction takes one cycle: the worst case is 10 cycles\n")
    )
    assert picture[0].data["image/svg+xml"].count("<svg") == 1


def rows(result: Result) -> dict[str, tuple[str, str]]:
    """The table of a result, which is well-formed."""
    table = ElementTree.fromstring(jupyter.result_html(result).replace("<br>", "<br/>")).find("table")
    assert table is not None
    cells = (["".join(cell.itertext()) for cell in row] for row in table)
    return {name: (cycles, why) for name, cycles, why in cells}


def test_a_result_as_html_has_both_sides_and_their_evidence() -> None:
    assert rows(solve(Instance.of("CLLCLL", 2), best_case=True)) == {
        "at least": ("10", "a schedule that takes so long, replayed"),
        "at most": ("10", "proven by theorem-e"),
        "ML + MC": ("12", "pessimistic: what each class needs alone, added up; 20.0 % above"),
        "robust": ("12", "holds even if warps run ahead, anything is shorter, ports more or warps fewer"),
        "best case": ("9", "the shortest work-conserving schedule"),
    }


def test_the_pessimistic_bound_has_superscripts() -> None:
    assert "M<sup>L</sup> + M<sup>C</sup>" in jupyter.result_html(solve(Instance.of("CLLCLL", 2)))


def test_what_is_not_exact_does_not_look_exact() -> None:
    exact = solve(Instance.of("CLLCLL", 2))
    bounded = replace(exact, bounds=Bounds(10, 13))
    assert rows(bounded)["at most"][0] == "13"
    assert (
        "bounded if every instruction takes one cycle: the worst case is at least 10 and at most 13 cycles"
        in jupyter.result_html(bounded)
    )
    assert "exact" not in jupyter.result_html(bounded)


def test_names_from_outside_stay_text() -> None:
    evil = Machine("<script>alert(1)</script>\u202e", PAPER.units)
    shown = jupyter.result_html(solve(Instance.of("CL", 2, evil)))
    assert "<script" not in shown
    assert "\u202e" not in shown
    assert "&lt;script&gt;" in shown


def test_the_picture_is_that_of_the_witness_and_hostile_names_stay_text() -> None:
    evil = Machine("<script>x</script>", PAPER.units)
    picture = jupyter.gantt(solve(Instance.of("CLLCLL", 3, evil)))._repr_svg_()
    root = ElementTree.fromstring(picture)
    assert root.tag.endswith("svg")
    assert (root.get("width"), root.get("height")) == ("100%", None), "it fits the page"
    assert re.fullmatch(r"max-width: [\d.]+pt; height: auto", root.get("style") or "")
    assert not [node for node in root.iter() if node.tag.endswith("script")]
    assert "worst case is 14 cycles" in "".join(root.itertext())
