"""Draws docs/model.png, the multiprocessor of model.md: `python docs/model_picture.py`."""

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

GREY, WHITE, WARPS, SLOTS, OWN, COMMON = "#5a5a5a", "#ffffff", "#f4f4f4", "#fff6c9", "#dbe9f8", "#fde3c4"
WIDTH, GAP = 5.2, 0.4


def box(ax: Axes, x: float, y: float, width: float, height: float, text: str, colour: str) -> None:
    """A rounded box with text in its middle."""
    shape = FancyBboxPatch((x, y), width, height, "round,pad=0,rounding_size=0.1", facecolor=colour, edgecolor=GREY)
    ax.add_patch(shape)
    ax.text(x + width / 2, y + height / 2, text, ha="center", va="center", fontsize=10, linespacing=1.3)


def arrow(ax: Axes, x: float, y: float, to_x: float, to_y: float) -> None:
    """From one point to another."""
    ax.annotate("", (to_x, to_y), (x, y), arrowprops={"arrowstyle": "-|>", "color": GREY, "shrinkA": 0, "shrinkB": 0})


def partition(ax: Axes, left: float, number: int) -> None:
    """One scheduler with its warps above, its pipes below and its way to the memory unit."""
    box(ax, left, 1.5, WIDTH, 4.5, "", WHITE)
    ax.text(left + 0.15, 5.7, f"partition {number}", fontsize=10, fontweight="bold", va="center")
    warps = ", ".join(str(number + 4 * row) for row in range(3))
    box(ax, left + 0.2, 4.7, WIDTH - 0.4, 0.7, f"warps {warps}, …", WARPS)
    arrow(ax, left + WIDTH / 2, 4.7, left + WIDTH / 2, 4.25)
    box(ax, left + 0.2, 3.55, WIDTH - 0.4, 0.7, "scheduler: issue width 1", SLOTS)
    for column, text in enumerate(("C\n1 port\n2 cycles", "S\n1 port\n8 cycles", "L\n1 port\n2 cycles")):
        x = left + 0.2 + column * 1.63
        arrow(ax, x + 0.77, 3.55, x + 0.77, 3.05)
        box(ax, x, 2.05, 1.54, 1.0, text, OWN)
    arrow(ax, left + 0.2 + 2 * 1.63 + 0.77, 2.05, left + 0.2 + 2 * 1.63 + 0.77, 1.0)


def figure() -> Figure:
    """Two of four partitions, and what they share."""
    drawn = Figure(figsize=(9, 5.2), layout="constrained")
    ax = drawn.subplots()
    for number in range(2):
        partition(ax, number * (WIDTH + GAP), number)
    ax.text(2 * WIDTH + GAP + 0.25, 3.7, "…  to\npartition 3", fontsize=10, va="center")
    box(ax, 0, 0, 2 * WIDTH + GAP, 1.0, "memory: a resource that all partitions share\n1 port, 1..32 cycles", COMMON)
    ax.set(xlim=(-0.1, 2 * WIDTH + GAP + 1.3), ylim=(-0.1, 6.1))
    ax.axis("off")
    return drawn


if __name__ == "__main__":
    figure().savefig(Path(__file__).with_name("model.png"), dpi=110, metadata={"Software": "makespan"})
