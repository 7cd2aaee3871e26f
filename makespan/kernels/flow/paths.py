"""One path through the control flow, as `take` or a trace fixes it."""

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence, Set

from makespan.host.errors import MissingInput, MissingInputsError, Naming, UnsupportedError
from makespan.kernels.flow.branches import SIDES, TraceStep, branch_keys, controlled_loops, preferred_sides
from makespan.kernels.flow.grid import LaunchInput
from makespan.kernels.flow.instruction_set import Routine
from makespan.kernels.flow.walk import BoundedFlow, Tracer, by_preference, walk

_MOST_LISTED = 12
"""The loops that a message lists; where there are more, it asks for a file of bounds."""


def by_take(bounded: BoundedFlow, take: Mapping[str, str]) -> list[int]:
    """Return the blocks of the path that `take` and the loop bounds determine; other loops run as often as they may.

    All loops that it may come to have a bound, see `unbounded_on_path`.

    Raises:
        InputError: a `take` that does not fit.
        UnsupportedError: a choice that is left.
    """
    preferred = preferred_sides(bounded.flow, take)
    reached = _reachable_blocks(bounded, preferred)
    _refuse_choices(bounded, _open(bounded, reached - preferred.keys(), to_maximum=bool(take)))
    return list(walk(bounded, by_preference(bounded, preferred)))


def by_trace(bounded: BoundedFlow, steps: Sequence[TraceStep]) -> list[int]:
    """Return the blocks of the path that a trace tells.

    Raises:
        InputError: a trace that does not fit.
    """
    tracer = Tracer(bounded, steps)
    path = list(walk(bounded, tracer.choose))
    tracer.finish()
    return path


def _reachable_blocks(bounded: BoundedFlow, preferred: Mapping[int, int]) -> set[int]:
    """Return the blocks that may be executed, given the preferred sides and that a loop bound may overrule them."""
    found, waiting = set[int](), [0]
    while waiting:
        block = waiting.pop()
        if block not in found and block != bounded.flow.exit:
            found.add(block)
            sides = bounded.flow.blocks[block].successors
            # a bound may overrule the preferred side later
            if block in preferred and not bounded.may_die(block, sides[preferred[block]]):
                sides = (sides[preferred[block]],)
            waiting += (after for after in sides if not bounded.is_dead(block, after))
    return found


def _controls(bounded: BoundedFlow, block: int) -> list[int]:
    return list(controlled_loops(bounded.flow, bounded.nest, block)) if bounded.flow.is_branch(block) else []


def _open(bounded: BoundedFlow, blocks: Set[int], *, to_maximum: bool) -> list[int]:
    choices = [b for b in sorted(blocks) if len(set(bounded.flow.blocks[b].successors)) == 2]
    return [b for b in choices if not (_is_decided(bounded, b) or (to_maximum and _controls(bounded, b)))]


def _is_decided(bounded: BoundedFlow, block: int) -> bool:
    """Return whether exact bounds leave no choice: the branch is the only way out of the loops that it controls."""
    loops = _controls(bounded, block)
    return bool(loops) and all(bounded.is_exact(n) and len(bounded.nest.loops[n].exits) == 1 for n in loops)


def unbounded_on_path(bounded: BoundedFlow, preferred: Mapping[int, int]) -> Iterator[int]:
    """Return the loops, by number, that a path with these preferred sides may come to and that have no bound."""
    return unbounded_in(bounded, _reachable_blocks(bounded, preferred))


def unbounded_in(bounded: BoundedFlow, reached: Set[int]) -> Iterator[int]:
    """Yield the loops, by number, whose head is among these blocks and that have no bound."""
    for number, (loop, info) in enumerate(zip(bounded.nest.loops, bounded.infos, strict=True)):
        if loop.header in reached and info.bound is None:
            yield number


def refuse_unbounded(bounded: BoundedFlow, reached: Set[int], named: Naming = str) -> None:
    """Refuse loops without a bound, all of them at once.

    Args:
        named: what the user calls a field of a question.

    Raises:
        MissingInputsError: a loop whose head is among the blocks and that has no bound.
    """
    missing = missing_bounds(bounded, unbounded_in(bounded, reached))
    if missing:
        raise missing_inputs_error(bounded.flow.kernel, missing, named)


def missing_inputs_error(kernel: Routine, missing: Sequence[MissingInput], named: Naming) -> MissingInputsError:
    """Return the error about inputs that a question about a kernel lacks."""
    template = f"; 'makespan strings {kernel.source} --bounds-template' prints a file of bounds to fill in"
    more = template if any(each.field == "loop_bounds" for each in missing) else ""
    return MissingInputsError.of(
        f"{kernel.source.partition(' --arch ')[0]}: kernel {kernel.name}", missing, named, more
    )


def missing_bounds(
    bounded: BoundedFlow, numbers: Iterable[int], asked: Container[str] = ()
) -> tuple[MissingInput, ...]:
    """Return the bounds of these loops, as inputs that are missing.

    Args:
        asked: the fields of the launch that are asked for anyway; where they alone decide a loop, it needs no bound.
    """
    found: dict[str, MissingInput] = {}
    for number in numbers:
        info, told = bounded.infos[number], bounded.flow.transferred.get(bounded.nest.loops[number].header)
        hint = info.hint or "" if told is None or not told.asks else ""
        for name, place, deciders in info.asks:
            others = tuple((each.field, each.blank) for each in deciders if each.field not in asked)
            if others or not deciders:  # what the launch will tell need not be asked for
                what = f"a bound for the loop {place}{_depending(deciders)}"
                found.setdefault(name, MissingInput("loop_bounds", f"{name}=N", what, others, hint))
    if len(found) <= _MOST_LISTED:
        return tuple(found.values())
    what = f"a file with bounds for {len(found)} loops, from {next(iter(found))} to {list(found)[-1]}"
    instead = [each.instead for each in found.values()]
    together = tuple(sorted({one for each in instead for one in each})) if all(instead) else ()
    return (MissingInput("loop_bounds", "FILE", what, together),)


def _depending(deciders: Sequence[LaunchInput]) -> str:
    on = [each.name or f"the {each.field}" for each in deciders]
    return f", which depends on {' and '.join(filter(None, [', '.join(on[:-1]), on[-1]]))}" if on else ""


def _refuse_choices(bounded: BoundedFlow, blocks: Sequence[int]) -> None:
    if blocks:
        flow = bounded.flow
        labels = Counter(flow.ending(block).target for block in range(flow.exit) if flow.is_branch(block))
        count = "1 branch leaves" if len(blocks) == 1 else f"{len(blocks)} branches leave"
        raise UnsupportedError(
            f"{flow.kernel.file}: {count} a choice in kernel {flow.kernel.name}, and one path is asked for; fix it,"
            " or take all paths with --paths automaton:\n  "
            + "\n  ".join(_choice(bounded, block, labels) for block in blocks)
        )


def _choice(bounded: BoundedFlow, block: int, labels: Mapping[str, int]) -> str:
    flow = bounded.flow
    line, label = branch_keys(flow, block)
    key = label if labels[label] == 1 else line
    branch = f"{flow.at(flow.last(block).line)}: {str(flow.last(block)).removesuffix(';')}"
    loop = next(iter(_controls(bounded, block)), None)
    bound = None if loop is None else bounded.infos[loop].bound
    if loop is None or bound is None or bound.exact or len(bounded.nest.loops[loop].exits) > 1:
        return f"{branch}   (--take '{key}=taken' or '=fall')"
    name = bounded.infos[loop].label
    stays = SIDES[0 if flow.blocks[block].successors[0] in bounded.nest.loops[loop].blocks else 1]
    return (
        f"{branch}   (loop {name}, {bound}, may end early: --loop-bound '{name}=={bound.maximum}' if it never does,"
        f" or --take '{key}={stays}')"
    )
