"""Results in a notebook: after `%load_ext makespan` results and figures show themselves, and `gantt` draws a schedule.

A result does not know its reports, so they are registered with IPython. No module of this package imports IPython.
"""

import re
from dataclasses import dataclass
from html import escape
from io import BytesIO
from typing import TYPE_CHECKING, Any

from makespan.model.result import Result
from makespan.report.lines import make_visible
from makespan.report.result.text import bound_rows, picture_subtitle, result_report, subject_line, verdict_line

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_DOTS_PER_INCH = 144
_SIZE = re.compile(r'<svg([^>]*?) width="([\d.]+pt)" height="[\d.]+pt"')
_LEFT, _RIGHT = 'style="text-align:left"', 'style="text-align:right"'
_ROW = f"<tr><th {_LEFT}>{{}}</th><td {_RIGHT}>{{}}</td><td {_LEFT}>{{}}</td></tr>"


@dataclass(frozen=True, slots=True)
class NotebookPicture:
    """A drawing that notebooks show, never wider than their page."""

    svg: str

    def _repr_svg_(self) -> str:
        return _SIZE.sub(r'<svg\1 width="100%" style="max-width: \2; height: auto"', self.svg, count=1)


def gantt(result: Result) -> NotebookPicture:
    """Return a picture of the schedule that takes as long as the lower bound; docs/pictures.md explains it."""
    from makespan.report.schedule.picture import ScheduleView, render_gantt

    svg = render_gantt(
        result.instance, result.witness, ".svg", ScheduleView(verdict_line(result), picture_subtitle(result))
    )
    return NotebookPicture(svg.decode())


def result_html(result: Result) -> str:
    """Return the verdict, the interval with its evidence, and the assumptions, as a fragment of HTML.

    Text from outside (names of machines, assumptions) is escaped, and what prints nothing is written as numbers.
    """
    rows = "".join(_ROW.format(*map(_html_text, row)) for row in bound_rows(result))
    assumptions = "".join(f"<li>{_html_text(str(note))}</li>" for note in result.assumptions)
    return (
        f"<div><strong>{_html_text(verdict_line(result))}</strong><br>{_html_text(subject_line(result))}<table>{rows}</table>"
        f"<details><summary>assumptions</summary><ul>{assumptions}</ul></details></div>"
    )


def load_ipython_extension(shell: Any) -> None:
    """Register the reports with IPython; `%load_ext makespan` calls this."""
    formatters = shell.display_formatter.formatters
    formatters["text/html"].for_type(Result, result_html)
    formatters["text/plain"].for_type(Result, lambda result, printer, _cycle: printer.text(result_report(result)))
    formatters["image/png"].for_type_by_name("matplotlib.figure", "Figure", _png)


def _png(figure: "Figure") -> bytes:
    """Return a figure as PNG. IPython does this by itself only if pyplot is loaded, which our figures never need."""
    figure.savefig(drawn := BytesIO(), format="png", dpi=_DOTS_PER_INCH)
    return drawn.getvalue()


def _html_text(text: str) -> str:
    return escape(make_visible(text)).replace("M^L + M^C", "M<sup>L</sup> + M<sup>C</sup>")
