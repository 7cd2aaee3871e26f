"""The page as text: template, style and script of this package around its data, under a policy that allows no other.

Source: Content Security Policy Level 3, W3C: a script or style element may run by the SHA-256 of its text.
"""

import hashlib
import json
import re
from base64 import b64encode
from collections.abc import Mapping
from functools import cache, partial
from importlib import resources
from typing import TYPE_CHECKING, Any

from makespan.model.wording import promise_words
from makespan.report.gantt.chart import MARKS
from makespan.report.gantt.svg import WIDTHS, chart_svg, legend_svg
from makespan.report.html import marks

if TYPE_CHECKING:
    from jinja2 import Template

    from makespan.report.gantt.chart import Gantt

_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def render_page(data: Mapping[str, Any]) -> str:
    """Return the HTML of page data, see `data.page_data`. Equal data give equal text."""
    return render_template(
        "page.html.j2",
        data,
        figures=marks.LAYOUTS,
        occupancy=[marks.occupancy(data["occupancy"], layout) for layout in marks.LAYOUTS],
        scale=marks.PageScale,
    )


def render_gpu_page(data: Mapping[str, Any], chart: "Gantt | None") -> str:
    """Return the HTML of the data of a whole GPU, see `data.gpu_page_data`, with its chart."""
    return render_template("gpu.html.j2", data, chart=chart)


def render_template(template: str, data: Mapping[str, Any], package: str = __package__, **drawn: Any) -> str:
    """Return the HTML of page data in a template.

    Args:
        template: the name of the file of the template.
        data: the data that the page shows. Its script reads the same data as JSON.
        package: the package whose folder has the template. The files that it includes may lie there or here.
        drawn: pictures and other values for the template only.
    """
    from markupsafe import Markup

    # the policy allows exactly these two texts, by their digests
    style, script = page_file("page.css"), page_file("page.js")
    return _template(template, package).render(
        page=data,
        policy=security_policy(style, script),
        style=Markup(style),  # noqa: S704 - files of this package
        script=Markup(script),  # noqa: S704
        embedded=Markup(embed_json(data)),  # noqa: S704 - nothing in it can end the element
        **drawn,
    )


@cache
def _template(name: str, package: str) -> "Template":
    from jinja2 import ChoiceLoader, Environment, FunctionLoader, StrictUndefined

    environment = Environment(
        loader=ChoiceLoader([FunctionLoader(partial(_in_folder, folder)) for folder in (package, __package__)]),
        # texts of the data may come from outside
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"interval": interval, "percent": percent, "share": share, "promised": promise_words}
    environment.globals |= {"chart_svg": chart_svg, "legend_svg": legend_svg, "layouts": WIDTHS, "MARKS": MARKS}
    return environment.get_template(name)


def embed_json(data: Any) -> str:
    r"""Return JSON that neither an HTML parser nor a script can take for anything else.

    >>> print(embed_json("</script>"))
    "\u003c/script\u003e"
    """
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return re.sub("[<>&\u2028\u2029]", lambda match: _ESCAPES[match[0]], text)


def interval(row: Mapping[str, Any]) -> str:
    """Return `lower` and `upper` of a row as one number or two."""
    return marks.interval_words(row["lower"], row["upper"])


def percent(part: int, whole: int) -> str:
    """Return a share of the whole in percent."""
    return f"{100 * part / whole:.1f} %"


def share(row: Mapping[str, Any], whole: int) -> str:
    """Return `lower` and `upper` of a row as shares of the whole in percent."""
    return " to ".join(dict.fromkeys(percent(part, whole) for part in (row["lower"], row["upper"])))


def security_policy(style: str, script: str) -> str:
    """Return a Content Security Policy that allows only this style and this script."""
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src {_hash(script)}",
            f"style-src {_hash(style)}",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _in_folder(package: str, name: str) -> str | None:
    file = resources.files(package).joinpath(name)
    return file.read_text("utf-8") if file.is_file() else None


def page_file(name: str) -> str:
    """Return the text of a file of the pages, such as `page.css`."""
    return resources.files(__package__).joinpath(name).read_text("utf-8")
