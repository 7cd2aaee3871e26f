"""The families of benchmarks/library that are drawn or constructed: `python -m benchmarks.families` writes them again.

Random strings come from a seed, so that everybody can draw more of them; constructed ones are words of which something
is known: Thue-Morse (no cube), Fibonacci (balanced), the ternary Thue-Morse word (no square), convoys, and tails.
"""

import random
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

FOLDER = Path(__file__).with_name("library")
SEED = 2026
COMMAND = "python -m benchmarks.families"

Ask = dict[str, Any]
Row = tuple[str, Ask]


class Drawn(NamedTuple):
    """A family: its file, what it is, options of all instances, and the instances."""

    name: str
    title: str
    ask: Ask
    rows: list[Row]

    @property
    def text(self) -> str:
        lines = [f'title = "{self.title}"', f'origin = "{COMMAND}"', *_entries(self.ask)]
        rows = [f"  {{ {', '.join(_entries({'name': name, **ask}))} }}," for name, ask in self.rows]
        return "\n".join([*lines, "", "question = [", *rows, "]", ""])


def _entries(ask: Ask) -> list[str]:
    return [f'{key} = "{value}"' if isinstance(value, str) else f"{key} = {value}" for key, value in ask.items()]


def families() -> Iterator[Drawn]:
    """All of them, in alphabetical order."""
    yield Drawn("barriers", "Strings with barriers, one block and several", {}, list(_barriers()))
    yield Drawn("constructed", "Words without chance: Thue-Morse, Fibonacci, convoys, tails", {}, list(_constructed()))
    latencies = "Latencies, intervals and an issue width: 40 random letters, and short strings"
    yield Drawn("latencies", latencies, {}, list(_latencies()))
    partitions = "Random strings of warps that run ahead, on two schedulers that share a memory unit"
    yield Drawn("partitions", partitions, {"machine": "../../examples/partitioned.toml"}, list(_partitions()))
    yield Drawn("random", "Random strings over C and L, each letter with the same chance", {}, list(_random()))


def _slug(units: str) -> str:
    """`C=2,L=1` as c2l1."""
    return units.replace("=", "").replace(",", "").lower()


def _random() -> Iterator[Row]:
    draw = random.Random(SEED)
    for letters, warps in ((8, 8), (12, 16), (16, 12), (22, 8), (22, 48), (40, 48), (100, 48), (420, 48)):
        for units in ("C=2,L=1", "C=2,L=2", "C=4,L=2"):
            string = "".join(draw.choice("CL") for _ in range(letters))
            yield f"random-{letters}-{_slug(units)}-{warps}", _asked(string, warps, units)


def _asked(string: str, warps: int, units: str) -> Ask:
    return {"string": string, "warps": warps, "capacity": units}


def thue_morse(letters: int, classes: str) -> str:
    """The word of digit sums: binary without a cube; over three letters the numbers of ones between zeros of it."""
    binary = [number.bit_count() % 2 for number in range(4 * letters + 4)]
    if len(classes) == 2:
        return "".join(classes[bit] for bit in binary[:letters])
    zeros = [at for at, bit in enumerate(binary) if bit == 0]
    return "".join(classes[after - at - 1] for at, after in pairwise(zeros))[:letters]


def fibonacci(letters: int) -> str:
    """C, CL, CLC, CLCCL, ...: each the one before with the one before that behind it."""
    before, word = "L", "C"
    while len(word) < letters:
        before, word = word, word + before
    return word[:letters]


def _constructed() -> Iterator[Row]:
    for letters, warps, units in (
        (16, 8, "C=2,L=1"), (16, 12, "C=2,L=2"), (32, 8, "C=2,L=1"), (32, 16, "C=4,L=2"), (128, 48, "C=2,L=2"),
    ):  # fmt: skip
        yield f"thue-morse-{letters}-{_slug(units)}-{warps}", _asked(thue_morse(letters, "CL"), warps, units)
    for letters, warps, units in ((13, 8, "C=2,L=1"), (21, 8, "C=2,L=2"), (34, 16, "C=2,L=1"), (89, 48, "C=4,L=2")):
        yield f"fibonacci-{letters}-{_slug(units)}-{warps}", _asked(fibonacci(letters), warps, units)
    for letters, warps, units in ((12, 6, "C=1,L=1,S=1"), (24, 12, "C=1,L=1,S=1"), (24, 12, "C=2,L=1,S=1")):
        yield f"square-free-{letters}-{_slug(units)}-{warps}", _asked(thue_morse(letters, "CLS"), warps, units)
    for name, string in (
        ("convoy", "CCCCCCLLLLLL"),
        ("alternating", "CL" * 8),
        ("tail", "L" + "C" * 15),
        ("head", "C" * 15 + "L"),
        ("comb", "CCCL" * 5),
    ):
        yield f"{name}-c3l2-24", _asked(string, 24, "C=3,L=2")


def _barriers() -> Iterator[Row]:
    short, long, tiles = "CL|LC", "CCLLC|LLC|CCLC", "LLCC|CCCC|LLCC|CCCC"
    for name, string, warps, blocks, units in (
        ("short", short, 4, 1, "C=1,L=1"),
        ("short", short, 2, 2, "C=1,L=1"),
        ("short", short, 2, 3, "C=2,L=1"),
        ("long", long, 8, 1, "C=2,L=1"),
        ("long", long, 8, 2, "C=1,L=1"),
        ("long", long, 8, 4, "C=2,L=2"),
        ("tiles", tiles, 8, 6, "C=2,L=1"),
        ("tiles", tiles, 16, 3, "C=2,L=1"),
    ):
        ask = _asked(string, warps, units) | {"blocks-per-sm": blocks}
        yield f"barriers-{name}-{_slug(units)}-{blocks}x{warps}", ask


def _latencies() -> Iterator[Row]:
    draw = random.Random(SEED)
    letters = "".join(draw.choice("CL") for _ in range(40))
    for machine, warps in (
        ("wide-4-30", 8), ("wide-4-30", 48), ("narrow-4-30", 4), ("narrow-4-30", 8), ("narrow-4-30", 16),
        ("narrow-4-30", 48), ("narrow-4-400", 8), ("narrow-4-400", 48), ("interval-2-30", 8), ("interval-2-30", 48),
    ):  # fmt: skip
        yield f"{machine}-40-{warps}", {"string": letters, "warps": warps, "machine": f"machines/{machine}.toml"}
    for string, warps in (("CLLC", 2), ("CLLC", 4), ("LCCLCC", 4), ("LCCLCCLCC", 8)):
        ask = {"string": string, "warps": warps, "machine": "../../examples/long_loads.toml"}
        yield f"long-loads-{len(string)}-{warps}", ask


def _partitions() -> Iterator[Row]:
    draw = random.Random(SEED)
    for letters, warps in (
        (3, 2),
        (3, 4),
        (4, 3),
        (4, 6),
        (5, 2),
        (5, 4),
        (6, 2),
        (6, 4),
        (8, 2),
        (8, 3),
        (12, 4),
        (20, 8),
        (40, 16),
    ):
        string = "".join(_running_ahead(draw, at) for at in range(letters))
        yield f"ahead-{letters}-{warps}", {"string": string, "warps": warps}


def _running_ahead(draw: random.Random, at: int) -> str:
    """A letter that waits for none, one or two of the instructions before it."""
    awaited = sorted(draw.sample(range(1, at + 1), min(at, draw.choice((0, 0, 1, 1, 2)))))
    return f"{draw.choice('CL')}({','.join(map(str, awaited))})"


def main() -> None:
    """Write them."""
    for family in families():
        (FOLDER / f"{family.name}.toml").write_text(family.text)


if __name__ == "__main__":
    main()
