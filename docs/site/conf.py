"""Settings of the documentation site: `make site` builds it from the pages as they stand in the repository."""

import sys
from pathlib import Path
from urllib.parse import quote

sys.path.insert(0, str(Path(__file__).parent))

import pages
from sphinx.application import Sphinx

from makespan.version import __version__

project = "makespan"
author = "The makespan authors"
project_copyright = author
version = release = __version__

root_doc = pages.ROOT
include_patterns = pages.SOURCES
exclude_patterns = pages.WITHOUT
source_suffix = {".md": "markdown", ".py": "markdown"}

extensions = ["myst_parser"]
myst_heading_anchors = 6
nitpicky = True
smartquotes = False  # `--option` keeps its dashes
suppress_warnings = ["misc.highlighting_failure"]  # the lexer of PTX knows no guards; it marks the rest all the same

_CURVES = "".join(
    f'<feFunc{channel} type="table" tableValues=".92 .86 .8 .74 .68 .62 .56 .5 .43 .33 .08"/>' for channel in "RGB"
)
_NIGHT = (
    '<svg xmlns="http://www.w3.org/2000/svg"><filter id="night" color-interpolation-filters="sRGB">'
    f"<feComponentTransfer>{_CURVES}</feComponentTransfer></filter></svg>"
)
"""How pictures are inverted in the dark: as those of a report (`report/html/head.html.j2`)."""

html_theme = "furo"
html_title = "makespan"
html_theme_options = {
    "dark_css_variables": {"night": f"url(data:image/svg+xml,{quote(_NIGHT)}#night) hue-rotate(180deg)"}
}
html_static_path = ["style.css"]
html_css_files = ["style.css"]
html_copy_source = html_show_sphinx = False
html_extra_path = ["index.html"]
highlight_language = "text"
pygments_style, pygments_dark_style = "tango", "monokai"


def setup(app: Sphinx) -> None:
    """Notebooks are executed only if asked for (`-D execute=1`): the tests execute them elsewhere."""
    app.add_config_value("execute", default=False, rebuild="env")
    app.connect("source-read", pages.complete)
