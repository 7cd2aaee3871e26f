"""A notebook in jupytext's percent format as Markdown, with what its cells show if it is executed."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jupytext
from nbclient import NotebookClient

_SECONDS_PER_CELL = 1200


def markdown(code: str, folder: Path, *, execute: bool) -> str:
    """The text, the code and, where it is executed, each output in the richest of its forms."""
    notebook = jupytext.reads(code, fmt="py:percent")
    if execute:
        where = {"metadata": {"path": str(folder)}}
        NotebookClient(
            notebook, timeout=_SECONDS_PER_CELL, kernel_name="python3", coalesce_streams=True, resources=where
        ).execute()
    return "\n\n".join(part for cell in notebook.cells for part in _cell(cell))


def _cell(cell: Any) -> Iterator[str]:
    if cell.cell_type == "markdown":
        yield cell.source
        return
    yield _fenced("python", cell.source)
    for output in cell.get("outputs", []):
        yield _shown(output)


def _shown(output: Any) -> str:
    if output.output_type == "stream":
        return _fenced("text", output.text.rstrip())
    data = output.data
    for kind in ("text/html", "image/svg+xml"):
        if kind in data:
            return _fenced("{raw} html", f'<div class="output">{data[kind]}</div>')
    if "image/png" in data:
        return _fenced(
            "{raw} html", f'<div class="output"><img alt="" src="data:image/png;base64,{data["image/png"]}"></div>'
        )
    return _fenced("text", data["text/plain"])


def _fenced(language: str, text: str) -> str:
    return f"``````{language}\n{text}\n``````"
