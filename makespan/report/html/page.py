"""The page as text: template, style and script of this package around its data, under a policy that allows no other.

Source: Content Security Policy Level 3, W3C: a script or style element may run by the SHA-256 of its text.
"""

import hashlib
import json
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from makespan.report.html import marks
from makespan.wording import promised

if TYPE_CHECKING:
    from jinja2 import Template

_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def render(data: Mapping[str, Any]) -> str:
    """The HTML of page data, see `data.page_data`; equal data give equal text."""
    return _rendered(
        "page.html.j2",
        data,
        ladder=[marks.ladder(data["ladder"], layout) for layout in marks.LAYOUTS],
        occupancy=[marks.occupancy(data["occupancy"], layout) for layout in marks.LAYOUTS],
        curve=[marks.curve(data["curve"], layout) for layout in marks.LAYOUTS] if data["curve"] else None,
    )


def render_gpu(data: Mapping[str, Any], pictures: Sequence[bytes]) -> str:
    """The HTML of the data of a whole GPU, see `gpu.page_data`, with its picture for wide and narrow pages as PNG."""
    return _rendered("gpu.html.j2", data, pictures=[b64encode(picture).decode() for picture in pictures])


def render_deadlines(data: Mapping[str, Any], pictures: Mapping[str, Sequence[Any]]) -> str:
    """The HTML of the data of a task set, see `deadlines.deadlines_page_data`, with drawings of schedules by task."""
    return _rendered("deadlines.html.j2", data, pictures=pictures)


def _rendered(template: str, data: Mapping[str, Any], **drawn: Any) -> str:
    from markupsafe import Markup

    style, script = part("page.css"), part("page.js")
    return _template(template).render(
        page=data,
        policy=policy(style, script),
        style=Markup(style),  # noqa: S704 - files of this package
        script=Markup(script),  # noqa: S704
        embedded=Markup(embedded(data)),  # noqa: S704 - nothing in it can end the element
        **drawn,
    )


@cache
def _template(name: str) -> "Template":
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    environment = Environment(
        loader=FunctionLoader(part), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"interval": interval, "percent": percent, "share": share, "promised": promised}
    return environment.get_template(name)


def embedded(data: Any) -> str:
    r"""JSON that no HTML parser and no script takes for anything else.

    >>> print(embedded("</script>"))
    "\u003c/script\u003e"
    """
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return re.sub("[<>&\u2028\u2029]", lambda match: _ESCAPES[match[0]], text)


def interval(row: Mapping[str, Any]) -> str:
    """`lower` and `upper` of a row as one number or two."""
    return marks.interval(row["lower"], row["upper"])


def percent(part: int, whole: int) -> str:
    """A share of the whole."""
    return f"{100 * part / whole:.1f} %"


def share(row: Mapping[str, Any], whole: int) -> str:
    """`lower` and `upper` of a row as shares of the whole."""
    return " to ".join(dict.fromkeys(percent(part, whole) for part in (row["lower"], row["upper"])))


def policy(style: str, script: str) -> str:
    """A Content Security Policy under which this style and this script are all there is."""
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


def part(name: str) -> str:
    """A file of the pages, such as `page.css`."""
    return resources.files(__package__).joinpath(name).read_text("utf-8")
