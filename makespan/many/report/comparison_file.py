"""A comparison in a file: the end of its name says whether as a picture or as data."""

from collections.abc import Callable, Mapping
from pathlib import Path

from makespan.host.errors import InputError
from makespan.host.output_file import check_writable, write_whole
from makespan.many.report.comparison import comparison_csv, comparison_json
from makespan.many.report.comparison_picture import draw_comparison
from makespan.many.study.comparison import Comparison
from makespan.report.pictures import PICTURES

DATA: Mapping[str, Callable[[Comparison], str]] = {".csv": comparison_csv, ".json": comparison_json}
"""What a file of data holds, by the end of its name."""


def check_comparison_path(path: Path) -> None:
    """Refuse a path at once that no comparison can be written to, so that no work is lost on it.

    Raises:
        InputError: another end than a known one, a folder, or a folder that takes no file.
    """
    _check_end(path)
    check_writable(path, "the comparison")


def write_comparison(comparison: Comparison, path: Path) -> None:
    """Write curves, a heat map or data to `path`, whole or not at all.

    Raises:
        InputError: an unknown end of the name, or a file that cannot be written.
    """
    _check_end(path)
    if path.suffix.lower() in PICTURES:
        draw_comparison(comparison, path)
        return
    write_whole(path, DATA[path.suffix.lower()](comparison).encode("utf-8"), "the comparison")


def _check_end(path: Path) -> None:
    if path.suffix.lower() not in (*PICTURES, *DATA):
        raise InputError(f"{path}: the name of an output must end in .png, .svg, .pdf, .csv or .json")
