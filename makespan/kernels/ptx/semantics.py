"""What PTX tells control flow of a kernel beyond the effects of its instructions: `makespan.kernels.flow.Semantics`."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from makespan.kernels.flow import (
    Computation,
    InstructionSet,
    LaneSpread,
    LaneSpreads,
    Launch,
    LoopMark,
    ParameterValue,
    Surroundings,
)
from makespan.kernels.ptx import notes
from makespan.kernels.ptx.barriers import barrier_obstacle, is_barrier
from makespan.kernels.ptx.calls import is_indirect, is_inlined
from makespan.kernels.ptx.evaluate import computation
from makespan.kernels.ptx.instruction_set import PTX
from makespan.kernels.ptx.module import Declaration, PtxInstruction, PtxKernel
from makespan.kernels.ptx.parameters import fit_launch, known_parameters, numeric_parameter_names
from makespan.kernels.ptx.registers import PtxAccess
from makespan.kernels.ptx.spread import PtxContext, ptx_spread


@dataclass(frozen=True)
class PtxSemantics:
    """What the instructions of one kernel mean, its calls inlined; `blocks` are given by their statements."""

    kernel: PtxKernel
    code: tuple[PtxInstruction, ...]
    accesses: tuple[PtxAccess, ...]
    blocks: tuple[range, ...]
    instruction_set: InstructionSet = PTX

    def fit_launch(self, launch: Launch) -> Launch:
        """See `parameters.fitted`."""
        return fit_launch(launch, self.kernel)

    def parameters(self, launch: Launch) -> Mapping[str, ParameterValue]:
        """See `parameters.known_parameters`."""
        return known_parameters(self.kernel, launch)

    def parameter_names(self) -> Mapping[str, str]:
        """See `parameters.called`."""
        return numeric_parameter_names(self.kernel)

    def computation(self, number: int, parameters: Mapping[str, ParameterValue]) -> Computation | None:
        """See `evaluate.computation`."""
        return computation(self.code[number], self.accesses[number], parameters)

    def spread(self, number: int, spreads: LaneSpreads, around: Surroundings) -> LaneSpread | None:
        """See `ptx_spread.spread`."""
        context = PtxContext(around.specials, around.parameters, self.kernel.is_entry, self._symbols)
        return ptx_spread(self.code[number], self.accesses[number], spreads, context)

    def step(self, number: int) -> tuple[str, int] | None:
        """See `notes.step`."""
        return notes.counting_step(self.code[number])

    def refusal(self, number: int, threads: int | None) -> str | None:
        """Why no program can express a call that stays or a barrier."""
        instruction = self.code[number]
        if is_barrier(instruction):
            return barrier_obstacle(instruction, threads)
        if instruction.name != "call" or is_inlined(instruction):
            return None
        why, remedy = "calls what has no body in this file", "have the function compiled into it"
        if is_indirect(self.kernel, instruction):
            why, remedy = "calls what a register points to, which is not followed", "call the function by its name"
        return f"{why}; {remedy}, or leave the call out with --take"

    def marks(self) -> Iterator[LoopMark]:
        """See `notes.marks`."""
        return notes.marks(self.kernel, self.blocks)

    @cached_property
    def _symbols(self) -> frozenset[str]:
        """Return the names of variables in memory and of parameters."""
        declared = [s for s in (*self.kernel.variables, *self.kernel.statements) if isinstance(s, Declaration)]
        symbols = {name for declaration in declared if not declaration.is_register for name, _ in declaration.names}
        return frozenset(symbols.union(name for p in self.kernel.parameters or () for name, _ in p.names))
