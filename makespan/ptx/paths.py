"""From a kernel to the program of one warp: one path through the control flow, spelled in unit classes."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set

from makespan.errors import InputError, UnsupportedError
from makespan.program import Origin, Program
from makespan.ptx.bounds import GivenBound
from makespan.ptx.branches import SIDES, Step, controlled, keys, preferences, target
from makespan.ptx.cfg import JUMPS, Flow, flow
from makespan.ptx.isa import PROFILES, Classes, units_of
from makespan.ptx.loop_info import loop_infos
from makespan.ptx.loops import nest
from makespan.ptx.module import Kernel
from makespan.ptx.walk import Terrain, Tracer, by_preference, walk

_MOST_EXAMPLES = 3

PATH_ONLY = "this path only, not a worst case over inputs"
"""How an assumption begins that says which path was fixed."""


def program(
    kernel: Kernel,
    *,
    profile: str = "paper",
    classes: Mapping[str, str] | None = None,
    unknown: str | None = None,
    loop_bounds: Sequence[GivenBound] = (),
    take: Mapping[str, str] | None = None,
    trace: Sequence[Step] | None = None,
) -> Program:
    """The instruction string of one warp, with its source lines and what must hold for it.

    A chain stands for a kernel only where nothing is left to choose: the longest path need not be the worst case. So
    a branch must be decided by an exact loop bound, by `take`, or by `trace`; otherwise the kernel is refused. With
    `take`, a loop that is bounded from above runs as often as it may.

    Args:
        kernel: an entry or function with a body.
        profile: which unit classes there are, see `PROFILES`.
        loop_bounds: bounds that win over those in comments of the kernel.
        classes: own unit classes by opcode prefix, see `Classes`.
        unknown: the class of opcodes that nothing classifies.
        take: `taken` or `fall` by label, or by `:LINE`, of the branch.
        trace: the outcome of every executed branch, in order.

    Raises:
        InputError: a loop without bound, a bound, `take` or `trace` that does not fit, an unknown opcode.
        UnsupportedError: a choice that is left, a call, a barrier, an indirect branch, irreducible control flow.
    """
    if take and trace is not None:
        raise InputError("give either take or trace, not both")
    found = flow(kernel)
    if not found.code:
        raise InputError(f"{kernel.file}:{kernel.line}: {kernel.name} has no instruction")
    loops = nest(found)
    terrain = Terrain(found, loops, loop_infos(found, loops, loop_bounds))
    path = _by_take(terrain, take or {}) if trace is None else _by_trace(terrain, trace)
    chosen = Classes(profile, classes or {}, unknown)
    letters, origins = _spelled(found, path, units_of(kernel, chosen))
    if not letters:
        raise InputError(f"{kernel.file}:{kernel.line}: no instruction of {kernel.name} needs an execution unit")
    assumptions = tuple(_assumptions(terrain, path, chosen, take or {}, trace))
    return Program.chain(letters, origins=origins, assumptions=assumptions)


def _by_take(terrain: Terrain, take: Mapping[str, str]) -> list[int]:
    """The blocks of the path that `take` and the loop bounds determine."""
    preferred = preferences(terrain.flow, take)
    reached = _reached(terrain, preferred)
    for block in sorted(reached):
        _refuse_unsupported(terrain.flow, block)
    _refuse_unbounded(terrain, reached)
    _refuse_choices(terrain, _open(terrain, reached - preferred.keys(), to_maximum=bool(take)))
    return list(walk(terrain, by_preference(terrain, preferred)))


def _by_trace(terrain: Terrain, steps: Sequence[Step]) -> list[int]:
    """The blocks of the path that a trace tells."""
    tracer = Tracer(terrain, steps)
    path = []
    for block in walk(terrain, tracer.choose):
        _refuse_unsupported(terrain.flow, block)
        path.append(block)
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


def _refuse_unsupported(flow: Flow, block: int) -> None:
    for instruction in flow.instructions(block):
        where = f"{flow.kernel.file}:{instruction.line}: `{instruction}`"
        if instruction.name == "call":
            raise UnsupportedError(f"{where} is a call, which is not supported yet; have the function inlined")
        if instruction.name in ("bar", "barrier") and not instruction.opcode.startswith("bar.warp"):
            raise UnsupportedError(
                f"{where} is a barrier, which is not supported yet: a warp that waits at it is not ready, so without it"
                " the result would be neither an upper nor a lower bound; solve the parts between barriers separately"
            )


def _refuse_unbounded(terrain: Terrain, reached: Set[int]) -> None:
    kernel = terrain.flow.kernel
    loops = zip(terrain.nest.loops, terrain.infos, strict=True)
    missing = [info for loop, info in loops if loop.header in reached and info.bound is None]
    if missing:
        places = ", ".join(f"{info.label} (line {info.line})" for info in missing)
        count = "1 loop has" if len(missing) == 1 else f"{len(missing)} loops have"
        options = " ".join(f"--loop-bound '{info.label}=N'" for info in missing[:_MOST_EXAMPLES])
        raise InputError(
            f"{kernel.file}:{missing[0].line}: {count} no bound in kernel {kernel.name}: {places}; give {options}, or"
            f" fill in the file that 'makespan bounds-template {kernel.file}' prints"
        )


def _refuse_choices(terrain: Terrain, blocks: Sequence[int]) -> None:
    if blocks:
        flow = terrain.flow
        labels = Counter(target(flow, block) for block in range(flow.exit) if flow.is_branch(block))
        count = "1 branch leaves" if len(blocks) == 1 else f"{len(blocks)} branches leave"
        raise UnsupportedError(
            f"{flow.kernel.file}: {count} a choice in kernel {flow.kernel.name}, and the longest path need not be the"
            " worst case; fix one path:\n  " + "\n  ".join(_choice(terrain, block, labels) for block in blocks)
        )


def _choice(terrain: Terrain, block: int, labels: Mapping[str, int]) -> str:
    """One line about a branch that is left open: where it is, and what would decide it."""
    flow = terrain.flow
    line, label = keys(flow, block)
    key = label if labels[label] == 1 else line
    branch = f"line {flow.last(block).line}: {str(flow.last(block)).removesuffix(';')}"
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


def _spelled(flow: Flow, path: Sequence[int], units: Sequence[str | None]) -> tuple[str, list[Origin]]:
    """The letters of a path and where each comes from; instructions that need no unit are left out."""
    origins = [Origin(flow.kernel.file, i.line, str(i)) for i in flow.code]
    served = [
        [(unit, origins[at]) for at in range(block.first, block.stop) if (unit := units[at]) is not None]
        for block in flow.blocks
    ]
    letters = {block: "".join(unit for unit, _ in served[block]) for block in set(path)}
    return "".join(letters[block] for block in path), [origin for block in path for _, origin in served[block]]


def _assumptions(
    terrain: Terrain, path: Sequence[int], classes: Classes, take: Mapping[str, str], trace: Sequence[Step] | None
) -> Iterator[str]:
    """What must hold for the program to stand for the kernel."""
    flow, visited = terrain.flow, sorted(set(path))
    code = [instruction for block in visited for instruction in flow.instructions(block)]
    yield f"profile {classes.profile}: unit classes {', '.join(PROFILES[classes.profile])}"
    yield "the hardware executes the PTX as it is written, although ptxas expands, unrolls and drops instructions"
    if take:
        yield f"{PATH_ONLY}: {', '.join(f'{key}={side}' for key, side in take.items())}"
    if trace is not None:
        yield f"{PATH_ONLY}: a trace of {len(trace)} branches" + (f", from {trace[0].place}" if trace else "")
    for loop, info in zip(terrain.nest.loops, terrain.infos, strict=True):
        if loop.header in visited and info.bound is not None:
            to_maximum = ", run to this maximum unless take leaves it earlier" if take and not info.bound.exact else ""
            yield f"loop {info.label}: {info.bound}{to_maximum}"
    if guarded := sum(i.guard is not None and i.name not in JUMPS for i in code):
        yield f"guarded instructions are issued whatever their predicate ({guarded} on this path)"
    if classes.overrides:
        yield f"own unit classes: {', '.join(f'{prefix}={letter}' for prefix, letter in classes.overrides.items())}"
    if unknown := sorted(classes.unclassified(i.opcode for i in code)):
        yield f"opcodes that no table knows count as {classes.unknown}: {', '.join(unknown)}"
    if any(i.name == "nanosleep" for i in code):
        yield "nanosleep takes one cycle: the time asleep is not counted"
