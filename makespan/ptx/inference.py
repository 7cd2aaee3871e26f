"""Loop bounds that follow from the code and the launch."""

from collections.abc import Iterable, Mapping

from makespan.ptx.bounds import MAX_ITERATIONS, Bound
from makespan.ptx.cfg import Flow
from makespan.ptx.execution import Code, Count, Effort, Execution, TooLongError, prepare
from makespan.ptx.launch import Launch, known_parameters
from makespan.ptx.loops import Loop, Nest
from makespan.ptx.threads import Detail, details, threads

MAX_STEPS = 1_000_000
"""What one abstract execution may take, in about as many microseconds; what takes longer is tried in less detail."""


def inferred_bounds(flow: Flow, nest: Nest, launch: Launch, warp: int | None = None) -> dict[int, Bound]:
    """The bounds that can be proven, by number of the loop; `warp` restricts them to one warp of the block.

    They hold for every entry to the loop, by every warp of every block. A bound is exact if each entry makes so many
    iterations. A loop that this launch never enters gets the least bound there is.

    Raises:
        InputError: a launch that does not fit the kernel, or a warp that the block does not have.
    """
    if not nest.loops:
        return {}
    launch = launch.for_kernel(flow.kernel)
    parameters = known_parameters(flow.kernel, launch)
    code = prepare(flow, nest, parameters)
    counts: dict[int, Count | None] = {}
    for detail in details(launch, code.registers):
        for effort in (Effort.ALL, Effort.EACH):
            found, is_complete = _counts(code, launch, warp, detail, effort)
            counts = found | counts
            if is_complete:
                return _bounds(nest, counts, _source(code, launch, parameters))
    return _bounds(nest, counts, _source(code, launch, parameters))


def _counts(
    code: Code, launch: Launch, warp: int | None, detail: Detail, effort: Effort
) -> tuple[dict[int, Count | None], bool]:
    """What an abstract execution counts, None for loops never entered; and whether more effort finds no more."""
    counts: dict[int, Count] = {}
    unknown, given_up = set[int](), set[int]()
    steps = MAX_STEPS
    for group in threads(launch, code.registers, detail, warp):
        execution = Execution(code, effort, group.size, steps, steps)
        try:
            execution.run(dict(group.state))
        except TooLongError:
            return {}, False
        steps = min(execution.steps_left, execution.attempts_left)
        for number, count in execution.counts.items():
            counts[number] = counts[number] | count if number in counts else count
        unknown |= execution.endless
        given_up |= execution.given_up
    known = {n: counts.get(n) for n in range(len(code.nest.loops)) if n not in unknown | given_up}
    return known, not given_up


def _bounds(nest: Nest, counts: Mapping[int, Count | None], source: str) -> dict[int, Bound]:
    found = ((number, _bound(nest.loops[number], count, source)) for number, count in sorted(counts.items()))
    return {number: bound for number, bound in found if bound.maximum <= MAX_ITERATIONS}


def _bound(loop: Loop, count: Count | None, source: str) -> Bound:
    """The bound that means as many repeats as were counted; see `walk.Terrain.most_repeats`."""
    first = int(loop.is_bottom_tested)
    if count is None:
        return Bound(first, exact=False, source=f"{source}, never entered")
    return Bound(count.most + first, exact=count.least == count.most, source=source)


def _source(code: Code, launch: Launch, parameters: Iterable[str]) -> str:
    """What was inferred from, in words."""
    registers = {name.partition(".")[0] for name in code.registers}
    said = [f"{name}={launch.parameters[name]}" for name in parameters if name in code.registers]
    for option, extent, names in (
        ("block", launch.block, {"%tid", "%ntid"}),
        ("grid", launch.grid, {"%ctaid", "%nctaid"}),
    ):
        if extent is not None and names & registers:
            said.append(f"{option} {'x'.join(map(str, extent))}")
    return f"inferred: {', '.join(said) or 'from the code alone'}"
