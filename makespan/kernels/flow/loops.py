"""The natural loops of a kernel, as a forest.

A loop is entered at its header only. Flow with a second way in ("irreducible") has no such loops and is refused.
"""

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass

from makespan.host.errors import UnsupportedError
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
