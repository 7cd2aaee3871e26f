"""One path through the control flow, as `take` or a trace fixes it."""

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence, Set

from makespan.host.errors import MissingInput, MissingInputsError, Naming, UnsupportedError
from makespan.kernels.flow.branches import SIDES, Step, controlled, keys, preferences
from makespan.kernels.flow.grid import LaunchInput
from makespan.kernels.flow.instruction_set import Routine
from makespan.kernels.flow.walk import Terrain, Tracer, by_preference, walk

_MOST_LISTED = 12
"""The loops that a message lists; where there are more, it asks for a file of bounds."""


def by_take(terrain: Terrain, take: Mapping[str, str]) -> list[int]:
    """Return the blocks of the path that `take` and the loop bounds determine; other loops run as often as they may.

    All loops that it may come to have a bound, see `unbounded`.

    Raises:
        InputError: a `take` that does not fit.
        UnsupportedError: a choice that is left.
    """
    preferred = preferences(terrain.flow, take)
    reached = _reached(terrain, preferred)
    _refuse_choices(terrain, _open(terrain, reached - preferred.keys(), to_maximum=bool(take)))
    return list(walk(terrain, by_preference(terrain, preferred)))


def by_trace(terrain: Terrain, steps: Sequence[Step]) -> list[int]:
    """Return the blocks of the path that a trace tells.

    Raises:
        InputError: a trace that does not fit.
    """
    tracer = Tracer(terrain, steps)
    path = list(walk(terrain, tracer.choose))
    tracer.finish()
    return path


def _reached(terrain: Terrain, preferred: Mapping[int, int]) -> set[int]:
    """Return the blocks that may be executed, given the preferred sides and that a loop bound may overrule them."""
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
    """Return the branches among these blocks that nothing decides."""
    choices = [b for b in sorted(blocks) if len(set(terrain.flow.blocks[b].successors)) == 2]
    return [b for b in choices if not (_is_decided(terrain, b) or (to_maximum and _controls(terrain, b)))]


def _is_decided(terrain: Terrain, block: int) -> bool:
    """Return whether exact bounds leave no choice: the branch is the only way out of the loops that it controls."""
    loops = _controls(terrain, block)
    return bool(loops) and all(terrain.is_exact(n) and len(terrain.nest.loops[n].exits) == 1 for n in loops)


def unbounded(terrain: Terrain, preferred: Mapping[int, int]) -> Iterator[int]:
    """Return the loops, by number, that a path with these preferred sides may come to and that have no bound."""
    return unbounded_in(terrain, _reached(terrain, preferred))


def unbounded_in(terrain: Terrain, reached: Set[int]) -> Iterator[int]:
    """Yield the loops, by number, whose head is among these blocks and that have no bound."""
    for number, (loop, info) in enumerate(zip(terrain.nest.loops, terrain.infos, strict=True)):
        if loop.header in reached and info.bound is None:
            yield number


def refuse_unbounded(terrain: Terrain, reached: Set[int], named: Naming = str) -> None:
    """Refuse loops without a bound, all of them at once.

    Args:
        named: what the user calls a field of a question.

    Raises:
        MissingInputsError: a loop whose head is among the blocks and that has no bound.
    """
    missing = missing_bounds(terrain, unbounded_in(terrain, reached))
    if missing:
        raise lacking(terrain.flow.kernel, missing, named)


def lacking(kernel: Routine, missing: Sequence[MissingInput], named: Naming) -> MissingInputsError:
    """Return the error about inputs that a question about a kernel lacks."""
    template = f"; 'makespan bounds-template {kernel.source}' prints a file of bounds to fill in"
    more = template if any(each.field == "loop_bounds" for each in missing) else ""
    return MissingInputsError.of(
        f"{kernel.source.partition(' --arch ')[0]}: kernel {kernel.name}", missing, named, more
    )


def missing_bounds(terrain: Terrain, numbers: Iterable[int], asked: Container[str] = ()) -> tuple[MissingInput, ...]:
    """Return the bounds of these loops, as inputs that are missing.

    Args:
        asked: the fields of the launch that are asked for anyway; where they alone decide a loop, it needs no bound.
    """
    found: dict[str, MissingInput] = {}
    for number in numbers:
        info, told = terrain.infos[number], terrain.flow.told.get(terrain.nest.loops[number].header)
        hint = info.hint or "" if told is None or not told.asks else ""
        for name, place, deciders in info.asks:
            others = tuple((each.field, each.blank) for each in deciders if each.field not in asked)
            if others or not deciders:
                what = f"a bound for the loop {place}{_depending(deciders)}"
                found.setdefault(name, MissingInput("loop_bounds", f"{name}=N", what, others, hint))
    if len(found) <= _MOST_LISTED:
        return tuple(found.values())
    what = f"a file with bounds for {len(found)} loops, from {next(iter(found))} to {list(found)[-1]}"
    instead = [each.instead for each in found.values()]
    together = tuple(sorted({one for each in instead for one in each})) if all(instead) else ()
    return (MissingInput("loop_bounds", "FILE", what, together),)


def _depending(deciders: Sequence[LaunchInput]) -> str:
    """On what of the launch a bound depends."""
    on = [each.name or f"the {each.field}" for each in deciders]
    return f", which depends on {' and '.join(filter(None, [', '.join(on[:-1]), on[-1]]))}" if on else ""


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
    """Return one line about a branch that is left open: where it is, and what would decide it."""
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
