"""Draws docs/work_conserving.png: `python docs/work_conserving_picture.py`."""

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

SCHEDULES = {
    "the shortest: 9 cycles": ("CLLC-LL", "-C-LLC-LL"),
    "the longest: 10 cycles. Its scheduler chooses badly, and never idles": ("CLLCLL", "-C-L--LCLL"),
    "not one of them: in cycle 1 the core idles, and warp 1 wants it": ("CLLCLL", "--CL--LCLL"),
}
"""What two warps CLLCLL do in each cycle: the letter that issues, or - while the warp waits."""

IDLE = (2, 1, 1)
"""Panel, warp and cycle in which the last one breaks the rule."""

GREY, RED = "#5a5a5a", "#c40000"
COLOURS = {"C": "#cfe2f6", "L": "#fbd8ae", "-": "#f2f2f2"}


def panel(ax: Axes, title: str, rows: tuple[str, ...], broken: tuple[int, int] | None) -> None:
    """One row for each warp, one box for each cycle."""
    for warp, row in enumerate(rows):
        ax.text(-0.2, -warp, f"warp {warp}", ha="right", va="center", fontsize=10)
        for cycle, letter in enumerate(row):
            is_broken = (warp, cycle) == broken
            edge, width, order = (RED, 2.5, 3) if is_broken else (GREY, 0.8, 2)
            box = Rectangle((cycle, -warp - 0.42), 1, 0.84, facecolor=COLOURS[letter], edgecolor=edge)
            box.set(linewidth=width, zorder=order)
            ax.add_patch(box)
            ax.text(cycle + 0.5, -warp, {"-": "waits"}.get(letter, letter), ha="center", va="center", fontsize=10)
    for cycle in range(max(map(len, rows))):
        ax.text(cycle + 0.5, 0.62, str(cycle), ha="center", va="center", fontsize=8, color=GREY)
    ax.set_title(title, loc="left", fontsize=11)
    ax.set(xlim=(-1.3, 10.1), ylim=(-1.5, 0.75))
    ax.axis("off")


def figure() -> Figure:
    """The shortest and the longest schedule, and one that is none."""
    drawn = Figure(figsize=(8, 4.9), layout="constrained")
    for number, (title, rows) in enumerate(SCHEDULES.items()):
        broken = IDLE[1:] if IDLE[0] == number else None
        panel(drawn.add_subplot(len(SCHEDULES), 1, number + 1), title, rows, broken)
    return drawn


if __name__ == "__main__":
    figure().savefig(Path(__file__).with_name("work_conserving.png"), dpi=110, metadata={"Software": "makespan"})
