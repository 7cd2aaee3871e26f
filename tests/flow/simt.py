"""A warp with a stack of groups, plainly: what a branch may do to lanes whose paths are known beforehand.

Shares nothing with `divergence` and `automaton` of `makespan.kernels.flow`: post-dominators are found by taking blocks
out, and lanes walk one by one.
"""

from collections.abc import Callable, Mapping, Sequence

from makespan.kernels.flow.automaton import Automaton
from makespan.kernels.flow.graph import Flow
from makespan.model.program import Program

Graph = Mapping[int, tuple[int, ...]]
Pick = Callable[[int], int]
"""A number below the one given."""


def graph(flow: Flow) -> Graph:
    return {number: block.successors for number, block in enumerate(flow.blocks)}


def without_guarded_ends(flow: Flow) -> Graph:
    """Ends of some lanes are no branches: the other lanes go on."""
    found = {}
    for number, afters in graph(flow).items():
        rest = tuple(after for after in afters if after != flow.exit)
        found[number] = rest or afters
    return found


def without_early_ends(flow: Flow, reached: set[int]) -> Graph:
    """Only the last unconditional end counts as the way to the end of the kernel."""
    ends = [n for n in reached - {flow.exit} if set(flow.blocks[n].successors) == {flow.exit}]
    return {
        number: tuple(after for after in afters if after != flow.exit or (ends and number == max(ends)))
        for number, afters in graph(flow).items()
    }


def reached(edges: Graph, begin: int, out: int | None = None) -> set[int]:
    found, waiting = set[int](), [begin]
    while waiting:
        block = waiting.pop()
        if block != out and block not in found:
            found.add(block)
            waiting += edges.get(block, ())
    return found


def point(edges: Graph, block: int, exit_block: int) -> int:
    """The nearest block that every way from `block` to the end passes; the end itself if none comes there."""
    ways = reached(edges, block)
    if exit_block not in ways:
        return exit_block
    cuts = [d for d in ways if d != block and (d == exit_block or exit_block not in reached(edges, block, out=d))]
    return next(d for d in cuts if all(other == d or other not in reached(edges, block, out=d) for other in cuts))


def execute(flow: Flow, edges: Graph, paths: Sequence[Sequence[int]], pick: Pick) -> list[int]:
    """The blocks that a warp issues whose lanes take these paths, under the points that `edges` tell."""
    at = [0] * len(paths)
    issued: list[int] = []

    def run(lanes: list[int], stop: int) -> list[int]:
        """Let lanes that stand at one block run to `stop`; those that come there."""
        while lanes:
            block = paths[lanes[0]][at[lanes[0]]]
            assert {paths[lane][at[lane]] for lane in lanes} == {block}
            if block in (stop, flow.exit):
                return lanes if block == stop else []
            issued.append(block)
            sides: dict[int, list[int]] = {}
            for lane in lanes:
                at[lane] += 1
                sides.setdefault(paths[lane][at[lane]], []).append(lane)
            if len(sides) == 1:
                continue
            meeting = point(edges, block, flow.exit)
            groups = list(sides.values())
            lanes = []
            while groups:
                lanes += run(groups.pop(pick(len(groups))), meeting)
        return []

    run(list(range(len(paths))), flow.exit)
    return issued


def accepts(automaton: Automaton | Program, word: Sequence[str]) -> bool:
    """Whether some path through the automaton, from a start to the end, spells the word."""
    if not word:
        return isinstance(automaton, Automaton) and automaton.may_be_empty
    end = len(automaton.places)
    here = set(automaton.starts)
    for letter in word:
        places = [automaton.places[place] for place in here if place != end]
        here = {after for place in places if place.unit == letter for after in place.successors}
        if not here:
            return False
    return end in here
