"""What a file of machine code says, as values: a module of kernels, each a run of instructions.

An instruction is known by its address in bytes from the start of its kernel, as listings show it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from makespan.host.errors import InputError
from makespan.kernels.flow import Dim3, SourceLine
from makespan.kernels.sass.control import Control, control

INSTRUCTION_BYTES = 16
"""On sm_70 and later."""


class Address(int):
    """The place of an instruction in its kernel, in bytes; it is written as 0x90."""

    def __str__(self) -> str:
        return hex(self)

    def __format__(self, specification: str) -> str:
        return format(str(self), specification)


@dataclass(frozen=True, slots=True)
class SassInstruction:
    """One machine instruction; operands are texts without blanks and `.reuse`, such as `[R4.64+0x10]`.

    Args:
        guard: the predicate, such as `P0` or `!UP1`; None where it always acts.
        word: its 128 bits.
        ptx: where in the PTX it comes from; None where the file does not tell.
        source: where in the source.
    """

    address: Address
    opcode: str
    operands: tuple[str, ...] = ()
    guard: str | None = None
    word: int = 0
    ptx: SourceLine | None = field(default=None, compare=False)
    source: SourceLine | None = field(default=None, compare=False)

    @property
    def line(self) -> Address:
        """What messages show as its place."""
        return self.address

    @property
    def name(self) -> str:
        """Return the opcode without its modifiers."""
        return self.opcode.partition(".")[0]

    @property
    def modifiers(self) -> tuple[str, ...]:
        """Return the modifiers of the opcode, in order."""
        return tuple(self.opcode.split(".")[1:])

    @property
    def control(self) -> Control:
        """What the scheduler is told."""
        return control(self.word)

    def __str__(self) -> str:
        guard = f"@{self.guard} " if self.guard else ""
        operands = f" {', '.join(self.operands)}" if self.operands else ""
        return f"{guard}{self.opcode}{operands};"


class SassParameter(NamedTuple):
    """A parameter of a kernel, by position, in constant bank 0.

    Args:
        offset: in bytes from the first parameter.
        size: in bytes.
        name: as the source or the PTX calls it; None where nobody tells.
        is_float: whether the PTX says that it is a float of 32 or 64 bits.
    """

    offset: int
    size: int
    name: str | None = None
    is_float: bool = False


class KernelResources(NamedTuple):
    """What a block of a kernel takes of an SM, as the compiler says.

    Args:
        registers: of a thread.
        shared_bytes: of a block, without what a launch adds.
        local_bytes: of a thread.
        barriers: of a block.
        most_threads: of a block; None where nobody says.
        block: the block that the kernel requires; None for any.
    """

    registers: int
    shared_bytes: int = 0
    local_bytes: int = 0
    barriers: int = 0
    most_threads: int | None = None
    block: Dim3 | None = None


@dataclass(frozen=True, slots=True)
class SassKernel:
    """A kernel as machine code.

    Args:
        name: as it is linked, which may be mangled.
        file: to which addresses belong, for messages.
        source: what the user gave: a file, perhaps with an architecture.
        sm: the number of its architecture, such as 86.
        code: its instructions in order, from address 0, without the padding behind the last.
        constants: by number, what is known of the banks of constants.
        first_parameter: where in bank 0 the parameters begin, in bytes.
        jumps: by address of an indirect branch, the addresses to which it may go, where the file tells.
        ptx_text: the PTX that was compiled, where the file has it.
        compilation: what made the file, in words.
    """

    name: str
    file: str
    source: str
    sm: int
    code: tuple[SassInstruction, ...]
    resources: KernelResources
    parameters: tuple[SassParameter, ...] = ()
    first_parameter: int = 0
    constants: Mapping[int, bytes] = field(default_factory=dict, repr=False)
    jumps: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    ptx_text: str | None = field(default=None, repr=False)
    compilation: str | None = None

    @property
    def line(self) -> Address:
        """At which it begins."""
        return Address(0)

    @property
    def labels(self) -> frozenset[str]:
        """Return the addresses of its instructions, as branches name them."""
        return frozenset(str(instruction.address) for instruction in self.code)


@dataclass(frozen=True, slots=True)
class SassModule:
    """The kernels in a file."""

    file: str
    kernels: tuple[SassKernel, ...]

    def kernel(self, name: str | None = None) -> SassKernel:
        """Return the kernel of this name, plain or mangled; None for the only one.

        Raises:
            InputError: no such kernel, or several.
        """
        listed = ", ".join(kernel.name for kernel in self.kernels[:20])
        found = [kernel for kernel in self.kernels if name in (None, kernel.name)]
        if not found and name is not None:  # _Z6vecaddPfS_i holds 6vecadd
            found = [kernel for kernel in self.kernels if f"{len(name)}{name}" in kernel.name]
        if len(found) == 1:
            return found[0]
        if not self.kernels:
            raise InputError(f"{self.file}: there is no kernel in it")
        if name is None:
            raise InputError(f"{self.file}: choose one of {len(found)} kernels with --kernel NAME: {listed}")
        problem = "several kernels match" if found else "no kernel"
        raise InputError(f"{self.file}: {problem} {name!r:.60}; the kernels are: {listed}")
