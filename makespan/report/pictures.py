"""The look that all diagrams share, and the way a figure becomes a file."""

import io
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any, NamedTuple
from xml.sax.saxutils import escape

from makespan.host.errors import InputError
from makespan.host.output_file import check_writable, write_whole

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PROVEN, RUN, FASTEST, PESSIMISTIC, INK, GREY, LINES, SPAN = (
    "#0072B2", "#D55E00", "#009E73", "#5A5A5A", "#1A1A1A", "#5A5A5A", "#C8C8C8", "#EAF2F8",
)  # fmt: skip
"""Source of the first three: Okabe and Ito, Color Universal Design, 2008. Shapes differ as well, not only colours."""

DPI = 150
POINT = DPI / 72
MARGIN, LINE, _TITLE_LINE = 36, 32, 42
"""The margin of pages that are filled pixel by pixel, and the heights of lines of text on them, in pixels."""

CAPTION_INK = "#505050"
_BOLD: dict[str, Any] = {"size": 13, "weight": "bold"}
_PLAIN: dict[str, Any] = {"size": 9, "color": CAPTION_INK}
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
    """Refuse a path early if no picture can be written to it, so that no work is lost.

    Raises:
        InputError: a suffix other than .png, .svg and .pdf, a folder, or a folder that takes no file.
    """
    if path.suffix.lower() not in PICTURES:
        raise InputError(f"{path}: the name of a picture must end in .png, .svg or .pdf")
    check_writable(path, "the picture")


def render_figure(drawn: Callable[[], "Figure"], suffix: str, *, title: str, about: str = "", **style: Any) -> bytes:
    """Return the bytes of the figure that `drawn` returns, in the format of `suffix`; equal figures give equal bytes.

    Args:
        title: the title that screen readers read first and that file properties show.
        about: the description that screen readers read next.
        style: further settings of matplotlib, in addition to those that all pictures share.

    Raises:
        InputError: matplotlib finds no place for its cache, without which it does not load.
    """
    try:
        from matplotlib import style as styles
    except OSError as error:  # matplotlib makes its cache when it is imported
        raise InputError(f"cannot draw: {error}") from None
    content = io.BytesIO()
    said = dict(zip(_WORDS[suffix], map(replace_unprintable, (title, about)), strict=True))
    # settings of the user must not change the picture
    with styles.context(["default", {**_STYLE, **style}]), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        drawn().savefig(content, format=suffix[1:], dpi=DPI, metadata={**_METADATA[suffix], **said})
    if suffix != ".svg":
        return content.getvalue()
    return content.getvalue().replace(
        b"</title>", f"</title>\n <desc>{escape(replace_unprintable(about))}</desc>".encode(), 1
    )


def write_figure(drawn: Callable[[], "Figure"], path: Path, *, title: str, about: str = "") -> None:
    """Write what `drawn` returns to `path` (.png, .svg or .pdf), whole or not at all; equal figures give equal bytes.

    Raises:
        InputError: a file that cannot be written.
    """
    write_whole(path, render_figure(drawn, path.suffix.lower(), title=title, about=about), "the picture")


def replace_unprintable(text: str) -> str:
    """Return a text with a replacement for every letter that prints nothing."""
    return "".join(letter if letter.isprintable() or letter.isspace() else "\ufffd" for letter in text)


def formula_text(text: str) -> str:
    """Return a text of our own with M^L + M^C as a formula. Dollar signs in it stay dollar signs."""
    return text.replace("$", r"\$").replace("M^L + M^C", "M$^L$ + M$^C$")


def shorten(line: str, letters: int = 120) -> str:
    """Return a line of at most `letters` letters, with dots for what does not fit."""
    return line if len(line) <= letters else f"{line[: letters - 4]} ..."


def shorten_middle(name: str, letters: int) -> str:
    """Return a name of at most `letters` letters, with dots for its middle: its ends tell it apart from others.

    >>> shorten_middle("detector of lane 10", 12), shorten_middle("lane 10", 12)
    ('detec ... 10', 'lane 10')
    """
    if len(name) <= letters:
        return name
    tail = (letters - 5) // 3
    return f"{name[: letters - 5 - tail]} ... {name[-tail:].lstrip()}"


class PicturePage:
    """A figure that is filled in pixels from its upper left corner."""

    def __init__(self, width: int, height: int) -> None:
        from matplotlib.figure import Figure

        self.width, self.height = width, height
        self.figure = Figure(figsize=(width / DPI, height / DPI), facecolor="white")

    def write(self, x: float, y: float, text: str, **how: Any) -> None:
        """Write text at this point, its upper left corner unless `how` says otherwise.

        Dollar signs stay dollar signs.
        """
        self.figure.text(x / self.width, 1 - y / self.height, text, parse_math=False, **{"va": "top", **how})

    def head(self, lines: Iterable["HeadLine"]) -> int:
        """Write the lines at the top, and return the height at which they end."""
        y = MARGIN
        for line in lines:
            self.write(MARGIN, y, line.text, **line.look)
            y += line.height
        return y

    def axes(self, x: int, y: int, width: int, height: int) -> "Axes":
        """Return axes with this upper left corner and size, in pixels."""
        bottom = 1 - (y + height) / self.height
        return self.figure.add_axes((x / self.width, bottom, width / self.width, height / self.height))

    def legend(self, y: int, keys: "Sequence[Artist]", columns: int) -> None:
        """Draw the legend below `y`."""
        self.figure.legend(
            handles=keys, ncols=columns, loc="upper left", bbox_to_anchor=(MARGIN / self.width, 1 - y / self.height),
            frameon=False, borderpad=0, borderaxespad=0, handlelength=1.6, columnspacing=1.6, labelspacing=0.4,
        )  # fmt: skip


class HeadLine(NamedTuple):
    """A line of the title or of the subtitle, with its height in pixels."""

    text: str
    height: int
    look: dict[str, Any]


def head_lines(title: str, subtitles: Iterable[str], width: int) -> list[HeadLine]:
    """Return a title and subtitles, each in at most three lines that fit into `width` pixels."""
    lines = [HeadLine(line, _TITLE_LINE, _BOLD) for line in fitting_lines(title, width, **_BOLD)]
    told = (line for subtitle in subtitles for line in fitting_lines(subtitle, width, **_PLAIN))
    return lines + [HeadLine(line, LINE, _PLAIN) for line in told]


def fitting_lines(text: str, width: int, *, size: int, **look: Any) -> list[str]:
    """Return a text in at most three lines that fit into `width` pixels."""
    # letters differ in width, so the number that fits is found by measuring
    for letters in range(width // 8, 8, -4):
        lines = wrap(replace_unprintable(text), letters, max_lines=3, placeholder=" ...")
        if all(text_width(line, size=size, **look) <= width for line in lines):
            break
    return lines


def text_width(line: str, *, size: int, weight: str = "normal", **_: Any) -> float:
    """Return the width of a line in pixels."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=size, weight=weight)
    return POINT * float(text_to_path.get_text_width_height_descent(line, font, ismath=False)[0])
