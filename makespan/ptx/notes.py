"""Loop bounds in comments of the PTX: `// makespan: loop N`, and what the compiler nvopencc knew.

In CUDA C++, `asm volatile("// makespan: loop 16");` in the body of a loop becomes such a comment, without adding an
instruction. It marks a point that is passed once in every iteration of that source loop, so at most N times for each
entry. A compiler that unrolls the loop copies the comment. If every pass through a loop of the PTX meets at least k
copies, there are at most floor(N / k) passes, and floor(N / k) takes the place of N. Copies on different sides of a
branch are not added up: only those that no pass avoids count. A loop tested at its bottom keeps at least 1, because
it is only entered when it runs.

Comments of one loop may also be those of two source loops with the same N, of which the inner one was unrolled
entirely; neither text nor `.loc` tells, for an inlined function or a macro may write both. N as it stands is safe in
either case. It is divided only where the whole loop is one body three times or more, instruction by instruction, and
all that it counts up by constants goes up by a multiple of k in each pass. Comments that a pass can avoid tell no
bound, for there may be more passes.
"""

import re
from collections import Counter
from collections.abc import Iterator
from heapq import heappop, heappush
from typing import NamedTuple

from makespan.errors import InputError
from makespan.flow.graph import Flow
from makespan.flow.loop_bounds import MAX_ITERATIONS, Bound
from makespan.flow.loops import Loop, Nest
from makespan.ptx.module import Instruction, Kernel, Location, Note

_OWN = re.compile(r"//\s*makespan:\s*loop\s+([0-9]{1,9})")
_IS_OWN = re.compile(r"//\s*makespan:")
_FEWEST_COPIES = 3
_CONSTANT, _STEP = re.compile(r"-?[0-9]"), re.compile(r"-?(?:0|[1-9][0-9]{0,17})")
_COMPILER = re.compile(r"//\s*<loop>.*,\s*iterations:\s*([0-9]{1,9})")


class SourceLine(NamedTuple):
    """A line of the program that was compiled."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class _Mark(NamedTuple):
    """A comment that bounds the loop around a block."""

    block: int
    maximum: int
    line: int
    source: SourceLine | None
    place: str
    is_own: bool


def noted_bounds(flow: Flow, nest: Nest) -> dict[int, Bound | str]:
    """The bounds of loops that comments tell, by number of the loop; our own comments win over the compiler's.

    Where comments stand in a loop and tell no bound, the reason stands in place of it.

    Raises:
        InputError: a comment that is ill-formed.
    """
    marks: dict[tuple[int, bool], list[_Mark]] = {}
    for mark in _marks(flow):
        if mark.block in nest.innermost:
            marks.setdefault((nest.innermost[mark.block], mark.is_own), []).append(mark)
    by_compiler = {n: _bound(flow, nest.loops[n], found) for (n, is_own), found in marks.items() if not is_own}
    return by_compiler | {n: _bound(flow, nest.loops[n], found) for (n, is_own), found in marks.items() if is_own}


def source_lines(kernel: Kernel) -> tuple[SourceLine | None, ...]:
    """The source line of every statement, as the `.loc` directives tell."""
    files, source = dict(kernel.files), None
    found: list[SourceLine | None] = []
    for statement in kernel.statements:
        if isinstance(statement, Location) and statement.file_number in files:
            source = SourceLine(files[statement.file_number], statement.source_line)
        found.append(source)
    return tuple(found)


def _marks(flow: Flow) -> Iterator[_Mark]:
    """The comments that tell a bound, each with the block in which it stands."""
    sources, places = source_lines(flow.kernel), _places(flow.kernel)
    for number, block in enumerate(flow.blocks):
        for at in block.statements:
            note = flow.kernel.statements[at]
            if isinstance(note, Note) and (told := _told(note, flow.kernel.file)) is not None:
                yield _Mark(number, told, note.line, sources[at], places[at], _IS_OWN.match(note.text) is not None)


def _places(kernel: Kernel) -> list[str]:
    """The whole of the `.loc` before every statement, with column and what it was inlined into."""
    place, found = "", []
    for statement in kernel.statements:
        if isinstance(statement, Location):
            place = statement.text
        found.append(place)
    return found


def _told(note: Note, file: str) -> int | None:
    """The iterations of which a comment tells; None when a compiler does not know them."""
    if _IS_OWN.match(note.text) is None:
        match = _COMPILER.match(note.text)
    elif (match := _OWN.fullmatch(note.text)) is None:
        raise InputError(
            f"{file}:{note.line}: expected a comment such as `// makespan: loop 16`, got `{note.text[:60]}`"
        )
    return int(match[1]) if match else None


def _bound(flow: Flow, loop: Loop, marks: list[_Mark]) -> Bound | str:
    """The bound that comments in one loop, copies of each other, tell; or why they do not."""
    first, file, name = marks[0], flow.kernel.file, flow.name(loop.header)
    for mark in marks:
        if (mark.maximum, mark.source) != (first.maximum, first.source):
            return (
                f"{file}:{mark.line}: this comment and that in line {first.line} differ, but stand in one loop,"
                f" {name} (an inner loop may be unrolled entirely); give a --loop-bound instead"
            )
    if not 0 <= first.maximum <= MAX_ITERATIONS:
        raise InputError(f"{file}:{first.line}: a loop bound must be 1..{MAX_ITERATIONS}, not {first.maximum}")
    source = f"comment at {file}:{first.line}"
    copies = _met(flow, loop, [mark.block for mark in marks])
    if not copies and first.is_own:
        return (
            f"{file}:{first.line}: loop {name} can repeat without passing this comment, which then tells no bound;"
            " put it where every iteration passes, or give a --loop-bound instead"
        )
    if copies > 1 and not _is_unrolled(flow, loop, marks):
        doubt = f"{source}, not divided by {copies}, as these need not be copies of one comment"
        return Bound(first.maximum, exact=False, source=doubt)
    if copies < 2:
        return Bound(first.maximum, exact=False, source=source)
    passes = max(first.maximum // copies, int(loop.is_bottom_tested))
    return Bound(passes, exact=False, source=f"{source}, {copies} copies of {first.maximum} iterations")


def _is_unrolled(flow: Flow, loop: Loop, marks: list[_Mark]) -> bool:
    """Whether a loop was made of so many passes of another one, with a mark in each."""
    if len(marks) < _FEWEST_COPIES or len({mark.place for mark in marks}) > 1:
        return False
    code = [instruction for block in loop.blocks for instruction in flow.instructions(block)]
    steps = [step for step in map(_step, code) if step is not None]
    totals = Counter[str]()
    for register, step in steps:
        totals[register] += step
    counts_up = bool(totals) and all(total % len(marks) == 0 for total in totals.values())
    return counts_up and _repeats_itself(flow, loop, marks)


def _step(instruction: Instruction) -> tuple[str, int] | None:
    """What a register is counted up by; 1, which no number of copies divides, for a constant in another notation."""
    if instruction.name not in ("add", "sub") or len(instruction.operands) != 3:
        return None
    to, *sources = instruction.operands
    steps = [text for text in sources if _CONSTANT.match(text)]
    if to not in sources or not steps:
        return None
    return to, int(steps[0]) if _STEP.fullmatch(steps[0]) else 1


def _repeats_itself(flow: Flow, loop: Loop, marks: list[_Mark]) -> bool:
    """Whether the text of a loop is one body again and again, with a mark in each, and control behind the last."""
    lines = {mark.line for mark in marks}
    pieces: list[list[str]] = [[]]
    for block in sorted(loop.blocks):
        for at in flow.blocks[block].statements:
            statement = flow.kernel.statements[at]
            if isinstance(statement, Note) and statement.line in lines:
                pieces.append([])
            elif isinstance(statement, Instruction):
                pieces[-1].append(statement.opcode)
    before, *between, after = pieces
    if not between[0] or any(piece != between[0] for piece in between):
        return False
    body = between[0]
    cuts = range(len(body) + 1)
    return any(after[:cut] == body[:cut] and before[len(before) - len(body) + cut :] == body[cut:] for cut in cuts)


def _met(flow: Flow, loop: Loop, marked: list[int]) -> int:
    """The fewest marks that a pass from the head of a loop to its back edge meets."""
    marks = Counter(marked)
    queue, done = [(marks[loop.header], loop.header)], set[int]()
    while queue:
        met, block = heappop(queue)
        if block in loop.latches:
            return met
        if block not in done:
            done.add(block)
            for after in loop.blocks.intersection(flow.blocks[block].successors):
                heappush(queue, (met + marks[after], after))
    return 0
