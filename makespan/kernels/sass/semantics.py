"""The answers of machine code to control flow beyond its effects: `makespan.kernels.flow.Semantics`."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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
from makespan.kernels.flow.arithmetic import as_signed
from makespan.kernels.sass.effects import barrier_obstacle
from makespan.kernels.sass.evaluate import computation, vector_opcode
from makespan.kernels.sass.meaning import KnownBytes
from makespan.kernels.sass.module import SassInstruction, SassKernel
from makespan.kernels.sass.operands import machine_code, split_operands
from makespan.kernels.sass.parameters import fit_launch, known_bytes, known_parameters, numeric_parameter_names
from makespan.kernels.sass.registers import SassAccess
from makespan.kernels.sass.spread import sass_spread


@dataclass(frozen=True)
class SassSemantics:
    """The meaning of the instructions of one kernel, its subroutines inlined."""

    kernel: SassKernel
    code: tuple[SassInstruction, ...]
    accesses: Sequence[SassAccess]
    _memo: dict[tuple[tuple[str, ParameterValue], ...], KnownBytes] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )

    @cached_property
    def instruction_set(self) -> InstructionSet:
        """Return the instruction set by `operands.machine_code`."""
        return machine_code(self.kernel.sm)

    def fit_launch(self, launch: Launch) -> Launch:
        """Return the launch by `parameters.fit_launch`."""
        return fit_launch(launch, self.kernel)

    def parameters(self, launch: Launch) -> Mapping[str, ParameterValue]:
        """Return the parameters by `parameters.known_parameters`."""
        return known_parameters(self.kernel, launch)

    def parameter_names(self) -> Mapping[str, str]:
        """Return the names by `parameters.numeric_parameter_names`."""
        return numeric_parameter_names(self.kernel)

    def computation(self, number: int, parameters: Mapping[str, ParameterValue]) -> Computation | None:
        """Return the computation by `evaluate.computation`."""
        found, access = computation(self.code[number], self._known(parameters)), self.accesses[number]
        if found is None or not {name for name in found.results if name} <= {*access.writes}:
            return None
        read = {source.register for source in found.sources if source.register}
        return found if read <= {*access.reads} else None

    def spread(self, number: int, spreads: LaneSpreads, around: Surroundings) -> LaneSpread | None:
        """Return the spread by `spread.sass_spread`."""
        known = self._known(around.parameters)
        return sass_spread(self.code[number], self.accesses[number], spreads, around, known)

    def step(self, number: int) -> tuple[str, int] | None:
        """Return a register to which a constant is added."""
        instruction = self.code[number]
        operands = (
            split_operands(instruction.operands)
            if vector_opcode(instruction.name) in ("IADD3", "IADD", "VIADD")
            else None
        )
        if operands is None or operands.register is None or instruction.modifiers:
            return None
        texts = [value.sign + value.text for value in operands.values]  # a negated register is not counted up
        steps = [as_signed(value.number, 32) for value in operands.values if value.number]
        return (operands.register, steps[0]) if operands.register in texts and len(steps) == 1 else None

    def refusal(self, number: int, threads: int | None) -> str | None:
        """Return why no program can express a barrier; None if one can."""
        instruction = self.code[number]
        return barrier_obstacle(instruction, threads) if instruction.name == "BAR" else None

    def marks(self) -> Iterator[LoopMark]:
        """Return no marks, for machine code has none."""
        return iter(())

    def _known(self, parameters: Mapping[str, ParameterValue]) -> KnownBytes:
        key = tuple(parameters.items())
        if key not in self._memo:
            self._memo[key] = known_bytes(self.kernel, parameters)
        return self._memo[key]
