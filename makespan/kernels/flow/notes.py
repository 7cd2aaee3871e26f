"""Loop bounds in comments of the kernel, and what its compiler knew.

A comment such as `// makespan: loop N` marks a point that is passed once in every iteration of a source loop, so at
most N times for each entry. A compiler that unrolls the loop copies the comment. If every pass through a loop of the
code meets at least k copies, there are at most floor(N / k) passes, and floor(N / k) takes the place of N. Copies on
different sides of a branch are not added up: only those that no pass avoids count. A loop tested at its bottom keeps at
least 1, because it is only entered when it runs.

Comments of one loop may also be those of two source loops with the same N, of which the inner one was unrolled
entirely; neither text nor line tells, for an inlined function or a macro may write both. N as it stands is safe in
either case. It is divided only where the whole loop is one body three times or more, instruction by instruction, and
all that it counts up by constants goes up by a multiple of k in each pass. Comments that a pass can avoid tell no
bound, for there may be more passes.
"""

from collections import Counter
from collections.abc import Sequence
from heapq import heappop, heappush

from makespan.host.errors import InputError
from makespan.kernels.flow.graph import Flow
from makespan.kernels.flow.instruction_set import LoopMark
from makespan.kernels.flow.loop_bound import MAX_ITERATIONS, BoundBasis, LoopBound
from makespan.kernels.flow.loops import Loop, LoopNest

_FEWEST_COPIES = 3


def noted_bounds(flow: Flow, nest: LoopNest) -> dict[int, LoopBound | str]:
    """Return the bounds of loops that comments tell, by number of the loop; our own comments win over the compiler's.

    Where comments stand in a loop and tell no bound, the reason stands in place of it.

    Raises:
        InputError: a comment that is ill-formed.
    """
    everywhere = tuple(flow.semantics.marks())
    marks: dict[tuple[int, bool], list[LoopMark]] = {}
    for mark in everywhere:
        if mark.block in nest.innermost:
            marks.setdefault((nest.innermost[mark.block], mark.is_own), []).append(mark)
    by_author = sorted(marks.items(), key=lambda item: item[0][1])  # the compiler first
    return {number: _bound(flow, nest.loops[number], found, everywhere) for (number, _), found in by_author}


def _bound(flow: Flow, loop: Loop, marks: list[LoopMark], everywhere: Sequence[LoopMark]) -> LoopBound | str:
    """Return the bound that the comments in one loop tell, or the reason why they tell none."""
    first, file, name = marks[0], flow.kernel.file, flow.name(loop.header)
    for mark in marks:
        if (mark.maximum, mark.source) != (first.maximum, first.source):  # comments of two source loops
            return (
                f"{file}:{mark.line}: this comment and that in line {first.line} differ, but stand in one loop,"
                f" {name} (an inner loop may be unrolled entirely); give a --loop-bound instead"
            )
    if not 0 <= first.maximum <= MAX_ITERATIONS:
        raise InputError(f"{file}:{first.line}: a loop bound must be 1..{MAX_ITERATIONS}, not {first.maximum}")
    source = f"comment at {file}:{first.line}"
    copies = _fewest_marks(flow, loop, [mark.block for mark in marks])
    if not copies and first.is_own:  # a pass can avoid the comment, which then bounds nothing
        return (
            f"{file}:{first.line}: loop {name} can repeat without passing this comment, which then tells no bound;"
            " put it where every iteration passes, or give a --loop-bound instead"
        )
    if copies > 1 and not _is_unrolled(flow, loop, marks, everywhere):  # N itself is safe in either case
        doubt = f"{source}, not divided by {copies}, as these need not be copies of one comment"
        return LoopBound(first.maximum, exact=False, source=doubt, by=BoundBasis.COMMENT)
    if copies < 2:
        return LoopBound(first.maximum, exact=False, source=source, by=BoundBasis.COMMENT)
    # each pass uses up `copies` iterations of the source
    passes = max(first.maximum // copies, int(loop.is_bottom_tested))
    said = f"{source}, {copies} copies of {first.maximum} iterations"
    return LoopBound(passes, exact=False, source=said, by=BoundBasis.COMMENT)


def _is_unrolled(flow: Flow, loop: Loop, marks: list[LoopMark], everywhere: Sequence[LoopMark]) -> bool:
    if len(marks) < _FEWEST_COPIES or len({mark.place for mark in marks}) > 1:  # two copies may be two loops by chance
        return False
    numbers = (number for block in loop.blocks for number in flow.numbers(block))
    totals = Counter[str]()
    for register, step in filter(None, map(flow.semantics.step, numbers)):
        totals[register] += step
    # counters must go up by as many steps as there are copies
    counts_up = bool(totals) and all(total % len(marks) == 0 for total in totals.values())
    return counts_up and _repeats_itself(flow, loop, marks, everywhere)


def _repeats_itself(flow: Flow, loop: Loop, marks: list[LoopMark], everywhere: Sequence[LoopMark]) -> bool:
    """Return whether the text is one body again and again, with a mark in each, and control behind the last."""
    lines = {mark.line for mark in marks}
    cuts_before = Counter((mark.block, mark.at) for mark in everywhere if mark.line in lines)
    pieces: list[list[str]] = [[]]
    for block in sorted(loop.blocks):
        for number in (*flow.numbers(block), flow.blocks[block].stop):
            pieces += ([] for _ in range(cuts_before[block, number]))
            if number < flow.blocks[block].stop:
                pieces[-1].append(flow.code[number].opcode)
    before, *between, after = pieces
    if not between[0] or any(piece != between[0] for piece in between):
        return False
    body = between[0]
    cuts = range(len(body) + 1)  # the loop may begin anywhere in the body
    return any(after[:cut] == body[:cut] and before[len(before) - len(body) + cut :] == body[cut:] for cut in cuts)


def _fewest_marks(flow: Flow, loop: Loop, marked: list[int]) -> int:
    marks = Counter(marked)
    queue, done = [(marks[loop.header], loop.header)], set[int]()
    while queue:
        met, block = heappop(queue)  # Dijkstra's algorithm, with marks as distances
        if block in loop.latches:
            return met
        if block not in done:
            done.add(block)
            for after in loop.blocks.intersection(flow.blocks[block].successors):
                heappush(queue, (met + marks[after], after))
    return 0
