"""One path through the control flow, as `take` or a trace fixes it."""

from collections import Counter
from collections.abc import Mapping, Sequence, Set

from makespan.errors import InputError, UnsupportedError
from makespan.flow.branches import SIDES, Step, controlled, keys, preferences
from makespan.flow.graph import Flow
from makespan.flow.loop_info import LoopInfo
from makespan.flow.walk import Terrain, Tracer, by_preference, walk

_MOST_EXAMPLES = 3


def by_take(terrain: Terrain, take: Mapping[str, str]) -> list[int]:
    """The blocks of the path that `take` and the loop bounds determine; other loops run as often as they may.

    Raises:
        InputError: a loop without bound, or a `take` that does not fit.
        UnsupportedError: a choice that is left.
    """
    preferred = preferences(terrain.flow, take)
    reached = _reached(terrain, preferred)
    refuse_unbounded(terrain, reached)
    _refuse_choices(terrain, _open(terrain, reached - preferred.keys(), to_maximum=bool(take)))
    return list(walk(terrain, by_preference(terrain, preferred)))


def by_trace(terrain: Terrain, steps: Sequence[Step]) -> list[int]:
    """The blocks of the path that a trace tells.

    Raises:
        InputError: a trace that does not fit.
    """
    tracer = Tracer(terrain, steps)
    path = list(walk(terrain, tracer.choose))
    tracer.finish()
    return path


def _reached(terrain: Terrain, preferred: Mapping[int, int]) -> set[int]:
    """The blocks that may be executed, given the preferred sides and that a loop bound may overrule them."""
    found, waiting = set[int](), [0]
    while waiting:
        block = waiting.pop()
        if block not in found and block != terrain.flow.exit:
            found.add(block)
            sides = terrain.flow.blocks[block].successors
            if block in preferred and not terrain.may_die(block, sides[preferred[block]]):
                sides = (sides[preferred[block]],)
            waiting += (after for after in sides if not terrain.is_dead(block, after))
    return found


def _controls(terrain: Terrain, block: int) -> list[int]:
    return list(controlled(terrain.flow, terrain.nest, block)) if terrain.flow.is_branch(block) else []


def _open(terrain: Terrain, blocks: Set[int], *, to_maximum: bool) -> list[int]:
    """The branches among these blocks that nothing decides."""
    choices = [b for b in sorted(blocks) if len(set(terrain.flow.blocks[b].successors)) == 2]
    return [b for b in choices if not (_is_decided(terrain, b) or (to_maximum and _controls(terrain, b)))]


def _is_decided(terrain: Terrain, block: int) -> bool:
    """Whether exact bounds leave no choice: the branch is the only way out of the loops that it controls."""
    loops = _controls(terrain, block)
    return bool(loops) and all(terrain.is_exact(n) and len(terrain.nest.loops[n].exits) == 1 for n in loops)


def refuse_unbounded(terrain: Terrain, reached: Set[int]) -> None:
    """Refuse loops without a bound, all of them at once.

    Raises:
        InputError: a loop whose head is among the blocks and that has no bound.
    """
    kernel = terrain.flow.kernel
    loops = zip(terrain.nest.loops, terrain.infos, strict=True)
    missing = [info for loop, info in loops if loop.header in reached and info.bound is None]
    if missing:
        places = ", ".join(_named(terrain.flow, info) for info in missing)
        count = "1 loop has" if len(missing) == 1 else f"{len(missing)} loops have"
        options = " ".join(f"--loop-bound '{info.label}=N'" for info in missing[:_MOST_EXAMPLES])
        hints = "".join(f"\n  {info.hint}" for info in missing if info.hint)
        raise InputError(
            f"{kernel.file}:{missing[0].line}: {count} no bound in kernel {kernel.name}: {places}; give {options}, or"
            f" fill in the file that 'makespan bounds-template {kernel.source}' prints{hints}"
        )


def _named(flow: Flow, info: LoopInfo) -> str:
    """A loop by its label and its places in the code, which for an address is the same, and in the source."""
    places = [flow.at(info.line)] if info.label != str(info.line) else []
    places += [info.source_line] if info.source_line else []
    return f"{info.label} ({', '.join(places)})" if places else info.label


def _refuse_choices(terrain: Terrain, blocks: Sequence[int]) -> None:
    if blocks:
        flow = terrain.flow
        labels = Counter(flow.ending(block).target for block in range(flow.exit) if flow.is_branch(block))
        count = "1 branch leaves" if len(blocks) == 1 else f"{len(blocks)} branches leave"
        raise UnsupportedError(
            f"{flow.kernel.file}: {count} a choice in kernel {flow.kernel.name}, and one path is asked for; fix it,"
            " or take all paths with --paths automaton:\n  "
            + "\n  ".join(_choice(terrain, block, labels) for block in blocks)
        )


def _choice(terrain: Terrain, block: int, labels: Mapping[str, int]) -> str:
    """One line about a branch that is left open: where it is, and what would decide it."""
    flow = terrain.flow
    line, label = keys(flow, block)
    key = label if labels[label] == 1 else line
    branch = f"{flow.at(flow.last(block).line)}: {str(flow.last(block)).removesuffix(';')}"
    loop = next(iter(_controls(terrain, block)), None)
    bound = None if loop is None else terrain.infos[loop].bound
    if loop is None or bound is None or bound.exact or len(terrain.nest.loops[loop].exits) > 1:
        return f"{branch}   (--take '{key}=taken' or '=fall')"
    name = terrain.infos[loop].label
    stays = SIDES[0 if flow.blocks[block].successors[0] in terrain.nest.loops[loop].blocks else 1]
    return (
        f"{branch}   (loop {name}, {bound}, may end early: --loop-bound '{name}=={bound.maximum}' if it never does,"
        f" or --take '{key}={stays}')"
    )
