"""The look that the diagrams share, and how a figure becomes a file."""

import io
import warnings
from collections.abc import Callable
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape

from makespan.errors import InputError
from makespan.report.files import check_writable, write_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

PROVEN, RUN, FASTEST, PESSIMISTIC, INK, GREY, LINES, SPAN = (
    "#0072B2", "#D55E00", "#009E73", "#5A5A5A", "#1A1A1A", "#5A5A5A", "#C8C8C8", "#EAF2F8",
)  # fmt: skip
"""Source of the first three: Okabe and Ito, Color Universal Design, 2008; what has them differs in shape, too."""

DPI = 150
_STYLE: dict[str, Any] = {"font.size": 9, "pdf.fonttype": 42, "svg.fonttype": "none", "svg.hashsalt": "makespan"}
_METADATA: dict[str, dict[str, Any]] = {
    ".png": {"Software": "makespan"},
    ".svg": {"Creator": "makespan", "Date": None},
    ".pdf": {"Creator": "makespan", "Producer": "makespan", "CreationDate": None},
}
_WORDS = {".png": ("Title", "Description"), ".svg": ("Title", "Description"), ".pdf": ("Title", "Subject")}
PICTURES = tuple(_METADATA)
"""The suffixes of pictures."""


def check_picture_path(path: Path) -> None:
    """Refuse a path at once that no picture can be written to, so that no work is lost on it.

    Raises:
        InputError: another suffix than .png, .svg and .pdf, a folder, or a folder that takes no file.
    """
    if path.suffix.lower() not in PICTURES:
        raise InputError(f"{path}: the name of a picture must end in .png, .svg or .pdf")
    check_writable(path, "the picture")


def rendered(drawn: Callable[[], "Figure"], suffix: str, *, title: str, about: str = "", **style: Any) -> bytes:
    """The bytes of the figure that `drawn` returns, in the format of `suffix`; equal figures give equal bytes.

    Args:
        title: what screen readers say first, and what properties of a file show.
        about: what they say then.
        style: matplotlib's settings beyond those that all pictures share.
    """
    from matplotlib import style as styles

    content = io.BytesIO()
    said = dict(zip(_WORDS[suffix], map(printable, (title, about)), strict=True))
    with styles.context(["default", {**_STYLE, **style}]), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        drawn().savefig(content, format=suffix[1:], dpi=DPI, metadata={**_METADATA[suffix], **said})
    if suffix != ".svg":
        return content.getvalue()
    return content.getvalue().replace(b"</title>", f"</title>\n <desc>{escape(printable(about))}</desc>".encode(), 1)


def write_figure(drawn: Callable[[], "Figure"], path: Path, *, title: str, about: str = "") -> None:
    """Write what `drawn` returns to `path` (.png, .svg or .pdf), whole or not at all; equal figures give equal bytes.

    Raises:
        InputError: a file that cannot be written.
    """
    write_whole(path, rendered(drawn, path.suffix.lower(), title=title, about=about), "the picture")


def padded() -> "ConstrainedLayoutEngine":
    """A layout that leaves a margin around everything."""
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    return ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.12)


def printable(text: str) -> str:
    """A text with a replacement for everything that prints nothing."""
    return "".join(letter if letter.isprintable() or letter.isspace() else "\ufffd" for letter in text)


def title_lines(text: str, letters: int) -> list[str]:
    """A title in at most three lines of so many letters, with dots for what does not fit."""
    return wrap(printable(text), letters, max_lines=3, placeholder=" ...")


def formula(text: str) -> str:
    """A line of ours with M^L + M^C as the axes have it; dollars in it are dollars."""
    return text.replace("$", r"\$").replace("M^L + M^C", "M$^L$ + M$^C$")


def cut(line: str, letters: int = 120) -> str:
    """A line that fits, with dots for what does not."""
    return line if len(line) <= letters else f"{line[: letters - 4]} ..."
