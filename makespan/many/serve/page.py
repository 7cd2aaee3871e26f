"""The text of the page that asks: it is made once, and allows no script and no style but its own."""

from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

from makespan.many.serve.form import DEFAULT_SECONDS, KINDS, form_fields
from makespan.report.html.page import page_file, security_policy
from makespan.version import __version__

if TYPE_CHECKING:
    from makespan.many.serve.jobs import ServeLimits

EXAMPLE = {"kind": "string", "source": "CLLC|LCLCC", "warps": "6"}


@cache
def _own(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text("utf-8")


def _style() -> str:
    return page_file("page.css") + _own("page.css")


POLICY = f"{security_policy(_style(), _own('page.js'))}; connect-src 'self'; frame-src 'self'; frame-ancestors 'none'"


def page_text(limits: "ServeLimits", *, shared: bool) -> str:
    """Return the HTML of a server with these limits."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    # Strict: a name that is misspelt in the template is an error, and not an empty text.
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    main, more = form_fields()
    return environment.from_string(_own("page.html.j2")).render(
        style=Markup(_style()),  # noqa: S704 - files of this package
        script=Markup(_own("page.js")),  # noqa: S704
        main=main,
        more=more,
        kinds={kind: name for kind, name in KINDS.items() if kind != "cuda" or not shared},
        example=EXAMPLE,
        limits=limits,
        seconds=min(DEFAULT_SECONDS, limits.seconds),
        version=__version__,
    )
