"""The natural loops of a kernel, as a forest, and their bounds as a user gives them.

A loop is entered at its header only. Flow with a second way in ("irreducible") has no such loops and is refused.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from makespan.host.errors import InputError, UnsupportedError
from makespan.host.text_file import read_text
from makespan.kernels.flow.graph import Flow

MAX_LOOP_DEPTH = 64


@dataclass(frozen=True, slots=True)
class Loop:
    """A natural loop of a kernel.

    Args:
        header: the block through which every entry and every iteration passes.
        blocks: all blocks of the loop, those of inner loops included.
        latches: the blocks from which a back edge leads to the header.
        exits: the edges that leave the loop.
        depth: 1 for a loop in no other.
        outer: the innermost loop around it, as a number in `LoopNest.loops`.
    """

    header: int
    blocks: frozenset[int]
    latches: frozenset[int]
    exits: tuple[tuple[int, int], ...]
    depth: int
    outer: int | None

    @property
    def is_bottom_tested(self) -> bool:
        """Return whether only a latch can leave the loop, so that an iteration once begun is completed."""
        return all(source in self.latches for source, _ in self.exits)


@dataclass(frozen=True, slots=True)
class LoopNest:
    """The loops of a kernel in text order of their headers, and the innermost loop around each block in one."""

    loops: tuple[Loop, ...]
    innermost: Mapping[int, int]

    def around(self, block: int) -> Iterator[int]:
        """Yield the loops around a block, by number, innermost first."""
        number = self.innermost.get(block)
        while number is not None:
            yield number
            number = self.loops[number].outer


def loop_nest(flow: Flow) -> LoopNest:
    """Return the loops that can be reached from the entry.

    Raises:
        UnsupportedError: a loop with a second entry, or loops nested deeper than 64.

    Source: R. E. Tarjan, Testing flow graph reducibility, J. Computer and System Sciences 9, 1974: the blocks that
        reach a back edge without its header must all descend from the header in a depth-first tree. In contrast to
        dominators this needs no fixed point, and the limit on the depth keeps it linear.
    """
    bodies = _bodies(flow, _spans(flow))
    headers = sorted(bodies)
    outer: dict[int, int | None] = {}
    depth: dict[int | None, int] = {None: 0}
    innermost: dict[int, int] = {}
    for number in sorted(range(len(headers)), key=lambda n: -len(bodies[headers[n]])):
        outer[number] = innermost.get(headers[number])
        depth[number] = depth[outer[number]] + 1
        innermost.update(dict.fromkeys(bodies[headers[number]], number))
    if max(depth.values()) > MAX_LOOP_DEPTH:
        raise _too_deep(flow)
    loops = (_loop(flow, header, bodies[header], depth[n], outer[n]) for n, header in enumerate(headers))
    return LoopNest(tuple(loops), innermost)


def goes_around(flow: Flow, loop: Loop, past: Set[int]) -> bool:
    """Return whether a way around a loop, from its head back to it, meets none of these blocks."""
    found, waiting = set[int](), [] if loop.header in past else [loop.header]
    while waiting:
        for after in flow.blocks[waiting.pop()].successors:
            if after == loop.header:
                return True
            if after in loop.blocks and after not in found and after not in past:
                found.add(after)
                waiting.append(after)
    return False


def _loop(flow: Flow, header: int, body: set[int], depth: int, outer: int | None) -> Loop:
    edges = [(block, after) for block in sorted(body) for after in flow.blocks[block].successors]
    return Loop(
        header,
        blocks=frozenset(body),
        latches=frozenset(block for block, after in edges if after == header),
        exits=tuple(edge for edge in edges if edge[1] not in body),
        depth=depth,
        outer=outer,
    )


def _spans(flow: Flow) -> dict[int, tuple[int, int]]:
    """Return when a depth-first search from the entry comes to a block and leaves it, for every block in reach."""
    came: dict[int, int] = {}
    left: dict[int, int] = {}
    stack = [(0, False)] if flow.blocks else []
    while stack:
        block, done = stack.pop()
        if done:
            left[block] = len(came) + len(left)
        elif block not in came:
            came[block] = len(came) + len(left)
            stack.append((block, True))  # comes back after all descendants
            stack += ((after, False) for after in flow.blocks[block].successors if after != flow.exit)
    return {block: (came[block], left[block]) for block in came}


def _bodies(flow: Flow, spans: Mapping[int, tuple[int, int]]) -> dict[int, set[int]]:
    def descends(block: int, above: int) -> bool:
        return spans[above][0] <= spans[block][0] and spans[block][1] <= spans[above][1]

    before: dict[int, list[int]] = {block: [] for block in spans}
    for block in spans:
        for after in flow.blocks[block].successors:
            if after != flow.exit:
                before[after].append(block)
    bodies: dict[int, set[int]] = {}
    total = 0
    for header in sorted(spans):
        # a back edge comes from a descendant of its target
        if latches := [block for block in before[header] if descends(block, header)]:
            body = bodies[header] = {header}
            while latches:
                block = latches.pop()
                if not descends(block, header):  # a second entry: the graph is irreducible
                    raise _irreducible(flow, header, block)
                if block not in body:
                    body.add(block)
                    latches += before[block]
            total += len(body)
        if total > MAX_LOOP_DEPTH * len(spans):  # before the bodies eat the memory
            raise _too_deep(flow)
    return bodies


def _irreducible(flow: Flow, header: int, block: int) -> UnsupportedError:
    head, other = flow.blocks[header].line, flow.blocks[block].line
    return UnsupportedError(
        f"{flow.kernel.file}:{head}: the loop at {flow.name(header)} is also entered past its head, by way of"
        f" {flow.at(other)} (irreducible control flow); restructure kernel {flow.kernel.name}"
    )


def _too_deep(flow: Flow) -> UnsupportedError:
    kernel = flow.kernel
    return UnsupportedError(f"{kernel.file}:{kernel.line}: loops in {kernel.name} nest deeper than {MAX_LOOP_DEPTH}")


MAX_ITERATIONS = 65_536
MAX_BOUNDS_BYTES = 2**20

_GIVEN = re.compile(r"(?P<key>.*[^=\s])\s*(?P<sign>==?)(?P<count>[^=]*)")
_COUNT = re.compile(r"[0-9]{1,5}")


@dataclass(frozen=True, slots=True)
class GivenBound:
    """A bound that is not yet matched to a loop.

    Args:
        key: a label, `line:N` for the line at which a loop begins, or FILE:LINE of what the kernel was compiled from.
        maximum: iterations; 0 is for loops that test before their body.
        exact: whether the loop always runs so often, never fewer.
        place: file and line of a bounds file; empty for the command line.
        kernel: the only kernel that is meant; None for any.
        trusted: whether it counts even where the code proves that it is wrong.
    """

    key: str
    maximum: int
    exact: bool = False
    place: str = ""
    kernel: str | None = None
    trusted: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.maximum, bool) or not 0 <= self.maximum <= MAX_ITERATIONS:  # bool is an int, and no count
            raise InputError(f"{self.source}: a loop bound must be 1..{MAX_ITERATIONS}, not {self.maximum}")

    @property
    def source(self) -> str:
        """Return where the bound was given, in words."""
        return f"bounds file {self.place}" if self.place else "command line"


class BoundBasis(StrEnum):
    """The basis of a bound: a proof from the code, a user, a comment, or the compiler's table of lines."""

    CODE = "code"
    USER = "user"
    COMMENT = "comment"
    LINES = "lines"


class LoopBound(NamedTuple):
    """A bound on the iterations of a loop, with its source.

    Args:
        source: who says so, as text.
        given: of a bound that was transferred from PTX, the bounds of PTX loops on which it rests and that a user or a
            comment says, such as `L=16`.
    """

    maximum: int
    exact: bool
    source: str
    by: BoundBasis
    given: tuple[str, ...] = ()

    def given_for(self, label: str) -> tuple[str, ...]:
        """Return the bounds that a user or a comment gave: of the loop with this label, and of those behind its bound.

        >>> LoopBound(16, exact=True, source="command line", by=BoundBasis.USER).given_for("L")
        ('L==16',)
        """
        own = (  # bounds that the code proves, or that stand elsewhere, are not conditions of this loop
            (f"{label}{'==' if self.exact else '='}{self.maximum}",)
            if self.by in (BoundBasis.USER, BoundBasis.COMMENT)
            else ()
        )
        return own + self.given

    @property
    def iterations(self) -> str:
        """Return the bound in words, such as "at most 16 iterations"."""
        return iterations_text("exactly" if self.exact else "at most", self.maximum)

    def __str__(self) -> str:
        return f"{self.iterations} ({self.source})"


def iterations_text(how: str, count: int) -> str:
    """Return a count of iterations in words, such as "at least 1 iteration"."""
    return f"{how} {count} iteration{'s' * (count != 1)}"


def given_bound(text: str) -> GivenBound:
    """Read `LABEL=N` (at most N iterations) or `LABEL==N` (exactly N); LABEL may be FILE:LINE.

    >>> bound = given_bound("saxpy.cu:12==16")
    >>> bound.key, bound.maximum, bound.exact
    ('saxpy.cu:12', 16, True)

    Raises:
        InputError: anything else, or an N out of range.
    """
    match = _GIVEN.fullmatch(text.strip())
    if match is None:
        raise InputError(f"{text!r} is no loop bound: give LABEL=N, LABEL==N or FILE:LINE=N")
    return GivenBound(match["key"], _count(match["count"], f"--loop-bound {text}"), match["sign"] == "==")


def read_bounds(path: Path) -> tuple[GivenBound, ...]:
    """Read a bounds file: a line `LABEL,N`, `LABEL,==N` or `LABEL,N,KERNEL` for a loop; `#` begins a comment.

    Raises:
        InputError: a file that cannot be read, a line that is something else, a bound not filled in.
    """
    lines = enumerate(read_text(path, "bounds file", MAX_BOUNDS_BYTES).splitlines(), 1)
    stripped = ((number, line.partition("#")[0].strip()) for number, line in lines)
    return tuple(_line_bound(line, f"{path}:{number}") for number, line in stripped if line)


def loop_bounds(arguments: Iterable[str], *, trusted: bool = False) -> tuple[GivenBound, ...]:
    """Read the arguments of `--loop-bound`: LABEL=N, or the name of a bounds file; `trusted` is `--trust-bounds`.

    Raises:
        InputError: see `given_bound` and `read_bounds`.
    """
    several = ((given_bound(text),) if "=" in text else read_bounds(Path(text)) for text in arguments)
    return tuple(replace(bound, trusted=trusted) for bounds in several for bound in bounds)


def _line_bound(line: str, place: str) -> GivenBound:
    match [part.strip() for part in line.split(",")]:
        case [key, count, *kernel] if key and len(kernel) <= 1:
            if count.removeprefix("==") == "?":  # left over from a template
                raise InputError(f"{place}: the bound of {key} is not filled in: put a number in place of the ?")
            maximum = _count(count.removeprefix("=="), place)
            return GivenBound(key, maximum, count.startswith("=="), place, next(iter(kernel), None))
    raise InputError(f"{place}: expected LABEL,N or LABEL,==N or LABEL,N,KERNEL, got {line[:60]!r}")


def _count(text: str, where: str) -> int:
    digits = text.strip()
    if _COUNT.fullmatch(digits) is None or int(digits) > MAX_ITERATIONS:
        raise InputError(f"{where}: a loop bound must be a whole number 1..{MAX_ITERATIONS}, not {digits[:20]!r}")
    return int(digits)
