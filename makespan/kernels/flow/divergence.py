"""The points at which lanes of a warp that went different ways reconverge.

Lanes reconverge at the immediate post-dominator of the branch that parted them. A lane that ends early blurs what that
is: hardware may count its end as a way to the end of the kernel, or take the lane out and let the others reconverge as
if it had never been there. Which of these an assembler chooses is not documented, so each is a `Reconvergence` of its
own, and what a warp may issue is the union over them.
"""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass

from makespan.host.errors import UnsupportedError
from makespan.kernels.flow.graph import Flow

MAX_BLOCKS = 5_000


@dataclass(frozen=True, slots=True)
class Reconvergence:
    """The block at which the lanes that part at the end of a block wait for each other, by number of that block.

    It is the virtual exit where they never meet again. `drops` tells whether lanes may end before they come to their
    point, which then no longer waits for them.
    """

    points: Mapping[int, int]
    drops: bool


def reconvergences(flow: Flow) -> tuple[Reconvergence, ...]:
    """Return every way in which hardware may choose the points, without repetitions: one, unless lanes end early.

    Where the code itself says the points, there is that way alone, and lanes that end are waited for no longer.

    All ends of the kernel count as one; or a guarded end only takes lanes out; or only the last end of the text counts.

    Raises:
        UnsupportedError: flow from which no way leads to the end, or too many blocks.
    """
    reached = reachable(flow)
    if len(reached) > MAX_BLOCKS:  # dominators and closures of more blocks would take too long
        kernel = flow.kernel
        raise UnsupportedError(
            f"{kernel.file}:{kernel.line}: {kernel.name} has {len(reached)} basic blocks; divergent branches are"
            f" followed in up to {MAX_BLOCKS}: fix one path with --take or --trace"
        )
    ends = [block for block in reached if flow.exit in flow.blocks[block].successors]
    unconditional = [block for block in ends if set(flow.blocks[block].successors) == {flow.exit}]
    _refuse_endless(flow, reached)  # a block without a way to the end has no post-dominator
    if flow.meetings is not None:
        return (Reconvergence(flow.meetings, drops=True),)
    found: list[dict[int, int]] = []
    for counted in (ends, unconditional, [max(unconditional)] if unconditional else []):
        points = _points(flow, reached, frozenset(counted))
        if points not in found:  # the same points give the same sequences
            found.append(points)
    # with all ends counted, no lane can end before its point
    return tuple(Reconvergence(points, drops=number > 0) for number, points in enumerate(found))


def reachable(flow: Flow) -> frozenset[int]:
    """Return the blocks to which a way leads from the entry."""
    return closure(flow, [0] if flow.blocks else [])


def blocks_between(flow: Flow, block: int, point: int) -> frozenset[int]:
    """Return the blocks that lanes may execute between parting at the end of `block` and meeting at `point`."""
    return closure(flow, flow.blocks[block].successors, avoid=point)


def closure(flow: Flow, begin: Iterable[int], avoid: int | None = None) -> frozenset[int]:
    """Return the blocks to which ways lead from some blocks, those included, without passing `avoid`."""
    found, waiting = set[int](), list(begin)
    while waiting:
        block = waiting.pop()
        if block not in (flow.exit, avoid) and block not in found:  # `avoid` is where lanes wait, so ways stop there
            found.add(block)
            waiting += flow.blocks[block].successors
    return frozenset(found)


def _points(flow: Flow, reached: Set[int], ends: Set[int]) -> dict[int, int]:
    """Return the immediate post-dominators of the blocks that branch, where only `ends` lead to the virtual exit."""
    import networkx as nx

    backwards: nx.DiGraph[int] = nx.DiGraph()
    backwards.add_node(flow.exit)
    for block in reached:
        afters = (after for after in flow.blocks[block].successors if after != flow.exit or block in ends)
        backwards.add_edges_from((after, block) for after in afters)
    above = nx.immediate_dominators(backwards, flow.exit)  # dominators of the reversed graph are post-dominators
    return {block: above.get(block, flow.exit) for block in sorted(reached) if len(flow.blocks[block].successors) > 1}


def _refuse_endless(flow: Flow, reached: Set[int]) -> None:
    before: dict[int, list[int]] = {}
    for block in reached:
        for after in flow.blocks[block].successors:
            before.setdefault(after, []).append(block)
    ending, waiting = set[int](), [flow.exit]
    while waiting:
        block = waiting.pop()
        if block not in ending:
            ending.add(block)
            waiting += before.get(block, ())
    if endless := sorted(reached - ending):
        raise UnsupportedError(
            f"{flow.kernel.file}:{flow.blocks[endless[0]].line}: from {flow.name(endless[0])} on, kernel"
            f" {flow.kernel.name} never ends: no way leads to a {flow.semantics.instruction_set.ends}"
        )
