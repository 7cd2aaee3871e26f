"""Comments and directives of PTX that tell of its source: `// makespan: loop N`, what nvopencc knew, and `.loc`.

In CUDA C++, `asm volatile("// makespan: loop 16");` in the body of a loop becomes such a comment, without adding an
instruction. What follows from it is said in `makespan.kernels.flow.notes`.
"""

import re
from collections.abc import Iterator, Sequence

from makespan.host.errors import InputError
from makespan.kernels.flow import LoopMark, SourceLine
from makespan.kernels.ptx.module import Location, Note, PtxInstruction, PtxKernel

_OWN = re.compile(r"//\s*makespan:\s*loop\s+([0-9]{1,9})")
_IS_OWN = re.compile(r"//\s*makespan:")
_CONSTANT, _STEP = re.compile(r"-?[0-9]"), re.compile(r"-?(?:0|[1-9][0-9]{0,17})")
_COMPILER = re.compile(r"//\s*<loop>.*,\s*iterations:\s*([0-9]{1,9})")


def source_lines(kernel: PtxKernel) -> tuple[SourceLine | None, ...]:
    """Return the source line of every statement, as the `.loc` directives tell."""
    files, source = dict(kernel.files), None
    found: list[SourceLine | None] = []
    for statement in kernel.statements:
        if isinstance(statement, Location) and statement.file_number in files:
            source = SourceLine(files[statement.file_number], statement.source_line)
        found.append(source)
    return tuple(found)


def marks(kernel: PtxKernel, blocks: Sequence[range]) -> Iterator[LoopMark]:
    """Yield the comments that tell a bound; `blocks` are given by their statements.

    Raises:
        InputError: a comment that is ill-formed.
    """
    sources, places, number = source_lines(kernel), _places(kernel), 0
    for block, span in enumerate(blocks):
        for at in span:
            statement = kernel.statements[at]
            number += isinstance(statement, PtxInstruction)
            if isinstance(statement, Note) and (told := _iterations_of(statement, kernel.file)) is not None:
                is_own = _IS_OWN.match(statement.text) is not None
                yield LoopMark(block, number, told, statement.line, sources[at], places[at], is_own)


def counting_step(instruction: PtxInstruction) -> tuple[str, int] | None:
    """What a register is counted up by; 1, which no number of copies divides, for a constant in another notation."""
    if instruction.name not in ("add", "sub") or len(instruction.operands) != 3:
        return None
    to, *sources = instruction.operands
    steps = [text for text in sources if _CONSTANT.match(text)]
    if to not in sources or not steps:
        return None
    return to, int(steps[0]) if _STEP.fullmatch(steps[0]) else 1


def _places(kernel: PtxKernel) -> list[str]:
    """Return the whole of the `.loc` before every statement, with column and what it was inlined into."""
    place, found = "", []
    for statement in kernel.statements:
        if isinstance(statement, Location):
            place = statement.text
        found.append(place)
    return found


def _iterations_of(note: Note, file: str) -> int | None:
    """Return the iterations of which a comment tells; None when a compiler does not know them."""
    if _IS_OWN.match(note.text) is None:
        match = _COMPILER.match(note.text)
    elif (match := _OWN.fullmatch(note.text)) is None:
        raise InputError(
            f"{file}:{note.line}: expected a comment such as `// makespan: loop 16`, got `{note.text[:60]}`"
        )
    return int(match[1]) if match else None
