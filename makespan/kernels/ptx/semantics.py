"""The answers of PTX to control flow beyond the effects of instructions: `makespan.kernels.flow.Semantics`.

Comments and directives tell about the source: `// makespan: loop N`, the iterations that nvopencc knew, and `.loc`. In
CUDA C++, `asm volatile("// makespan: loop 16");` in the body of a loop becomes such a comment and adds no instruction.
`makespan.kernels.flow.loop_info` says which bounds follow from them.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from makespan.host.errors import InputError
from makespan.kernels.flow import (
    Computation,
    InstructionSet,
    KernelSignature,
    LaneSpread,
    LaneSpreads,
    LoopMark,
    ParameterValue,
    SourceLine,
    Surroundings,
)
from makespan.kernels.ptx.effects import PTX, PtxAccess, barrier_obstacle, is_barrier, is_indirect, is_inlined
from makespan.kernels.ptx.evaluate import computation
from makespan.kernels.ptx.module import Declaration, Location, Note, PtxInstruction, PtxKernel
from makespan.kernels.ptx.parameters import signature
from makespan.kernels.ptx.spread import PtxContext, ptx_spread


@dataclass(frozen=True)
class PtxSemantics:
    """The meaning of the instructions of one kernel, its calls inlined; `blocks` are ranges of statements."""

    kernel: PtxKernel
    code: tuple[PtxInstruction, ...]
    accesses: tuple[PtxAccess, ...]
    blocks: tuple[range, ...]
    instruction_set: InstructionSet = PTX

    @cached_property
    def signature(self) -> KernelSignature:
        """Return the parameters and blocks by `parameters.signature`."""
        return signature(self.kernel)

    def computation(self, number: int, parameters: Mapping[str, ParameterValue]) -> Computation | None:
        """Return the computation by `evaluate.computation`."""
        return computation(self.code[number], self.accesses[number], parameters)

    def spread(self, number: int, spreads: LaneSpreads, around: Surroundings) -> LaneSpread | None:
        """Return the spread by `spread.ptx_spread`."""
        context = PtxContext(around.specials, around.parameters, self.kernel.is_entry, self._symbols)
        return ptx_spread(self.code[number], self.accesses[number], spreads, context)

    def step(self, number: int) -> tuple[str, int] | None:
        """Return the step by `counting_step`."""
        return counting_step(self.code[number])

    def refusal(self, number: int, threads: int | None) -> str | None:
        """Return why no program can express a call that stays, or a barrier; None if one can."""
        instruction = self.code[number]
        if is_barrier(instruction):
            return barrier_obstacle(instruction, threads)
        if instruction.name != "call" or is_inlined(instruction):  # all other instructions can be expressed
            return None
        why, remedy = "calls what has no body in this file", "have the function compiled into it"
        if is_indirect(self.kernel, instruction):
            why, remedy = "calls what a register points to, which is not followed", "call the function by its name"
        return f"{why}; {remedy}, or leave the call out with --take"

    def marks(self) -> Iterator[LoopMark]:
        """Return the marks by `loop_marks`."""
        return loop_marks(self.kernel, self.blocks)

    @cached_property
    def _symbols(self) -> frozenset[str]:
        declared = [s for s in (*self.kernel.variables, *self.kernel.statements) if isinstance(s, Declaration)]
        symbols = {name for declaration in declared if not declaration.is_register for name, _ in declaration.names}
        return frozenset(symbols.union(name for p in self.kernel.parameters or () for name, _ in p.names))


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


def loop_marks(kernel: PtxKernel, blocks: Sequence[range]) -> Iterator[LoopMark]:
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
    """Return a register and the constant that it is counted up by; 1 for a constant in another notation."""
    if instruction.name not in ("add", "sub") or len(instruction.operands) != 3:
        return None
    to, *sources = instruction.operands
    steps = [text for text in sources if _CONSTANT.match(text)]
    if to not in sources or not steps:
        return None
    # 1 divides by no number of copies, so unrolling is not assumed
    return to, int(steps[0]) if _STEP.fullmatch(steps[0]) else 1


def _places(kernel: PtxKernel) -> list[str]:
    place, found = "", []
    for statement in kernel.statements:
        if isinstance(statement, Location):
            place = statement.text
        found.append(place)
    return found


def _iterations_of(note: Note, file: str) -> int | None:
    if _IS_OWN.match(note.text) is None:
        match = _COMPILER.match(note.text)
    elif (match := _OWN.fullmatch(note.text)) is None:
        raise InputError(
            f"{file}:{note.line}: expected a comment such as `// makespan: loop 16`, got `{note.text[:60]}`"
        )
    return int(match[1]) if match else None
