"""The answers of machine code to control flow beyond its effects: `makespan.kernels.flow.Semantics`.

The code does not tell the type of a parameter, only where it lies and how many bytes it has. So where no PTX says that
it is a float, a whole number is taken for an integer, and one with a point, such as 2.0, for a float.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from makespan.kernels.flow import (
    Computation,
    DeclaredParameter,
    InstructionSet,
    KernelSignature,
    LaneSpread,
    LaneSpreads,
    Launch,
    LoopMark,
    ParameterValue,
    Surroundings,
)
from makespan.kernels.flow.arithmetic import as_signed
from makespan.kernels.sass.effects import SassAccess, barrier_obstacle
from makespan.kernels.sass.evaluate import computation, vector_opcode
from makespan.kernels.sass.meaning import KnownBytes
from makespan.kernels.sass.module import SassInstruction, SassKernel, SassParameter
from makespan.kernels.sass.operands import constant_name, machine_code, split_operands
from makespan.kernels.sass.spread import sass_spread

COMPILER_BANK = 2
"""The bank of the constants that a compiler puts into a kernel; others hold what the host may write before a launch."""

_SIZES = (1, 2, 4, 8)


def signature(kernel: SassKernel) -> KernelSignature:
    """Return the parameters of a kernel by PTX names or positions, with the words of constants that hold them."""
    parameters = dict[str, DeclaredParameter]()
    for name, declared in _parameters_by_name(kernel).items():
        bits = 8 * declared.size if declared.size in _SIZES else None
        first = kernel.first_parameter + declared.offset
        inside = () if bits is None else range(first - first % 4, first + declared.size)
        parameters[name] = DeclaredParameter(
            f"a parameter of {declared.size} bytes",
            declared.name or f"the one at byte {declared.offset}",
            bits,
            "f" * declared.is_float,
            words=tuple(constant_name(0, offset) for offset in inside),
        )
    return KernelSignature(kernel.name, parameters, kernel.resources.block, kernel.resources.most_threads)


def fit_launch(launch: Launch, kernel: SassKernel) -> Launch:
    """Return the launch by `KernelSignature.fit`."""
    return signature(kernel).fit(launch)


def known_bytes(kernel: SassKernel, parameters: Mapping[str, ParameterValue]) -> dict[tuple[int, int], int]:
    """Return the known bytes of constants, by bank and offset in bytes."""
    # only this bank cannot be changed by the host
    found = {(COMPILER_BANK, at): byte for at, byte in enumerate(kernel.constants.get(COMPILER_BANK, b""))}
    for name, declared in _parameters_by_name(kernel).items():
        if name in parameters:
            packed = parameters[name].value.to_bytes(declared.size, "little")
            found |= {(0, kernel.first_parameter + declared.offset + at): byte for at, byte in enumerate(packed)}
    return found


def _parameters_by_name(kernel: SassKernel) -> dict[str, SassParameter]:
    names = [declared.name for declared in kernel.parameters]
    return {
        declared.name if declared.name and names.count(declared.name) == 1 else str(position): declared
        for position, declared in enumerate(kernel.parameters)
    }


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

    @cached_property
    def signature(self) -> KernelSignature:
        """Return the parameters and blocks by `signature`."""
        return signature(self.kernel)

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
