"""Conditional branches, and what a user says about them: which side is taken, once (`take`) or every time (`trace`)."""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from makespan.host.errors import InputError
from makespan.host.text_file import read_text
from makespan.kernels.flow.graph import Flow
from makespan.kernels.flow.loops import LoopNest, loop_nest

SIDES = ("taken", "fall")
"""The outcomes of a conditional branch, in the order of the successors of its block."""

MAX_TRACE_BYTES = 64 * 2**20
_STEP = re.compile(r"(\S+)\s+(taken|fall)")


class BranchInfo(NamedTuple):
    """A conditional branch as a report shows it; `loop` is the innermost loop that only one side stays in."""

    line: int
    text: str
    target: str
    loop: str | None


class TraceStep(NamedTuple):
    """One executed branch of a trace; `side` counts in `SIDES`, `place` is file and line of the trace."""

    key: str
    side: int
    place: str


def branch_infos(flow: Flow) -> tuple[BranchInfo, ...]:
    """Return the conditional branches that can be reached, in text order.

    Raises:
        UnsupportedError: control flow that has no natural loops.
    """
    loops = loop_nest(flow)
    return tuple(
        BranchInfo(
            flow.last(block).line,
            str(flow.last(block)),
            flow.ending(block).target,
            next((flow.name(loops.loops[n].header) for n in controlled_loops(flow, loops, block)), None),
        )
        for block in range(flow.exit)
        if flow.is_branch(block)
    )


def branch_keys(flow: Flow, block: int) -> tuple[str, str]:
    """Return the two names that a user may give the branch at the end of a block, the more specific one first."""
    return f":{flow.last(block).line}", flow.ending(block).target


def controlled_loops(flow: Flow, nest: LoopNest, block: int) -> Iterator[int]:
    """Return the loops around a branch, innermost first, in which one of its sides stays and the other does not."""
    taken, fall = flow.blocks[block].successors  # in the order of SIDES
    return (n for n in nest.around(block) if (taken in nest.loops[n].blocks) != (fall in nest.loops[n].blocks))


def parse_takes(texts: Iterable[str]) -> dict[str, str]:
    """Read the arguments of `--take`: LABEL=taken, :LINE=fall.

    >>> parse_takes(["Loop=taken", ":12=fall"])
    {'Loop': 'taken', ':12': 'fall'}

    Raises:
        InputError: anything else, or two that contradict each other.
    """
    found: dict[str, str] = {}
    for text in texts:
        key, _, side = text.strip().rpartition("=")
        if not key or side not in SIDES:
            raise InputError(f"--take {text}: give LABEL=taken, LABEL=fall, or :LINE for the branch in a line")
        if found.setdefault(key, side) != side:  # the last one must not win silently
            raise InputError(f"--take {key}: both taken and fall; use :LINE=... to tell branches apart")
    return found


def read_trace(path: Path) -> tuple[TraceStep, ...]:
    """Read a trace: `LABEL taken|fall` or `:LINE taken|fall`, a line for each executed branch; `#` begins a comment.

    Raises:
        InputError: a file that cannot be read, or a line that is something else.
    """
    found = []
    for number, line in enumerate(read_text(path, "trace", MAX_TRACE_BYTES).splitlines(), 1):
        if step := line.partition("#")[0].strip():
            match = _STEP.fullmatch(step)
            if match is None:
                raise InputError(f"{path}:{number}: expected `LABEL taken` or `LABEL fall`, got {step[:60]!r}")
            found.append(TraceStep(match[1], SIDES.index(match[2]), f"{path}:{number}"))
    return tuple(found)


def preferred_sides(flow: Flow, take: Mapping[str, str]) -> dict[int, int]:
    """Return the side that `take` chooses, by block; `:LINE` wins over a label.

    Raises:
        InputError: a key that no branch has, or a side that is neither taken nor fall.
    """
    by_key = {block: branch_keys(flow, block) for block in range(flow.exit) if flow.is_branch(block)}
    known = {key for pair in by_key.values() for key in pair}
    for key, side in take.items():
        if side not in SIDES:
            raise InputError(f"take {key}: {side!r} is neither taken nor fall")
        if key not in known:
            there = ", ".join(f"{label} or {line}" for line, label in by_key.values()) or "it has none"
            raise InputError(f"take: no conditional branch {key} in kernel {flow.kernel.name}; there are: {there}")
    chosen = {block: next((take[key] for key in pair if key in take), None) for block, pair in by_key.items()}
    return {block: SIDES.index(side) for block, side in chosen.items() if side is not None}
