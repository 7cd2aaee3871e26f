"""The values that a file of machine code is read into: a module of kernels, each a run of instructions.

An instruction is known by its address in bytes from the start of its kernel, as listings show it.

The control bits of an instruction, on sm_70 and later, are what the compiler tells the scheduler about it: bits
105..125 of the 128-bit word, from the low end: stall (4), yield (1, inverted), write barrier (3), read barrier (3),
wait mask (6), register reuse (4).

Source: Z. Jia et al., "Dissecting the NVIDIA Volta GPU Architecture via Microbenchmarking", 2018, section 2.1; D. Yan,
CuAssembler, user guide, "Control codes".
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from makespan.host.errors import InputError, MissingInput, MissingInputsError, prefix_errors
from makespan.kernels.flow import Dim3, SourceLine
from makespan.model.machine.occupancy import Occupancy, SmLimits, occupancy

COUNTERS = 6
"""Scoreboard counters of a warp."""

_FIRST_BIT = 105
_FIELDS = 4, 1, 3, 3, 6, 4
_NONE = 7


class Control(NamedTuple):
    """The control bits of an instruction, by which the compiler tells the scheduler when to issue.

    Args:
        stall: cycles from issue before which the warp issues nothing else.
        yields: whether the scheduler is asked to take another warp next.
        write_counter: the scoreboard counter that is up until the result is there; None for none.
        read_counter: the one that is up until the sources have been read; None for none.
        waits: the counters that must be down before issue, bit by bit.
        reuse: the operands that are kept for the next instruction, bit by bit.

    >>> control(0x000EA2000C1E9900_0000000402037981)
    Control(stall=1, yields=False, write_counter=2, read_counter=None, waits=0, reuse=0)
    """

    stall: int
    yields: bool
    write_counter: int | None
    read_counter: int | None
    waits: int
    reuse: int

    @property
    def awaited(self) -> tuple[int, ...]:
        """Return the counters that must be down before issue."""
        return tuple(counter for counter in range(COUNTERS) if self.waits >> counter & 1)

    def __str__(self) -> str:
        """Return the bits as published listings write them: wait mask, read and write counter, yield, stall.

        >>> str(control(0x000EA2000C1E9900_0000000402037981))
        'B------:R-:W2:-:S01'
        """
        waits = "".join(str(counter) if self.waits >> counter & 1 else "-" for counter in range(COUNTERS))
        read, write = ("-" if counter is None else counter for counter in (self.read_counter, self.write_counter))
        return f"B{waits}:R{read}:W{write}:{'Y' if self.yields else '-'}:S{self.stall:02}"


def control(word: int) -> Control:
    """Return the control bits of an instruction word of 128 bits."""
    stall, keeps, write, read, waits, reuse = _split(word >> _FIRST_BIT)  # the bit for yield is inverted
    return Control(stall, not keeps, _counter(write), _counter(read), waits, reuse)


def with_control(word: int, bits: Control) -> int:
    """Return the instruction word with other control bits."""
    write, read = (_NONE if counter is None else counter for counter in (bits.write_counter, bits.read_counter))
    packed, at = 0, 0
    fields = bits.stall, int(not bits.yields), write, read, bits.waits, bits.reuse
    for value, width in zip(fields, _FIELDS, strict=True):
        packed |= value << at
        at += width
    return word & ~(((1 << at) - 1) << _FIRST_BIT) | packed << _FIRST_BIT


def _split(packed: int) -> list[int]:
    found = []
    for width in _FIELDS:
        found.append(packed & ((1 << width) - 1))
        packed >>= width
    return found


def _counter(field: int) -> int | None:
    return None if field == _NONE else field


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
        """Return the address, which messages show as its place."""
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
        """Return the control bits."""
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
        name: as the source or the PTX calls it; None where it is not known.
        is_float: whether the PTX says that it is a float.
    """

    offset: int
    size: int
    name: str | None = None
    is_float: bool = False


class KernelResources(NamedTuple):
    """The resources of an SM that a block of a kernel takes, as the compiler says.

    Args:
        registers: of a thread.
        shared_bytes: of a block, without what a launch adds.
        local_bytes: of a thread.
        barriers: of a block.
        most_threads: of a block; None where it is not known.
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
        compilation: what made the file, as text.
        alignment: the bytes of which its address is a multiple.
        padded_bytes: its size with the padding behind the last instruction; 0 where the file does not tell.
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
    alignment: int = INSTRUCTION_BYTES
    padded_bytes: int = 0

    @property
    def line(self) -> Address:
        """Return the address at which it begins."""
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
        """Return the kernel of this name, plain or mangled; None means the only one.

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


_SHARING = re.compile(r"(LDS|LDSM|STS|STSM|ATOMS|LDGSTS|LD|ST|ATOM|SYNCS|UBLK.*|UT.*)")
"""Opcodes that can reach shared memory."""
_EXTERN = re.compile(r"\.extern\s+\.shared\b")


def residency(
    kernel: SassKernel, threads: int, dynamic_shared: int | None = None, limits: SmLimits | None = None
) -> Occupancy:
    """Return the blocks of a launch that an SM can hold, if nothing else is on it.

    It is the most there can be: a driver may leave an SM less shared memory, and other kernels may take their share.

    Args:
        threads: of a block.
        dynamic_shared: bytes of shared memory that the launch gives each block, besides those that the kernel declares;
            None is not known, which counts as none where the kernel has no use for any.
        limits: of the SM, which may be of a later architecture than the code; None for those of the code.

    >>> saxpy = SassKernel("saxpy", "saxpy.cubin", "saxpy.cubin", 86, (), KernelResources(registers=96))
    >>> print(residency(saxpy, 256))
    2 blocks of 8 warps can be resident: registers limit

    Raises:
        MissingInputsError: it is not known how much shared memory the launch gives.
        InputError: a block that the kernel or the architecture does not allow; or the limits of the architecture are
            not known.
    """
    takes, where = kernel.resources, f"{kernel.source}: kernel {kernel.name}"
    if takes.most_threads is not None and threads > takes.most_threads:  # such a launch would fail
        raise InputError(f"{where} allows blocks of {takes.most_threads} threads at most, not {threads}")
    if missing := missing_shared(kernel, dynamic_shared):
        raise MissingInputsError.of(where, missing)
    with prefix_errors(where):
        room = limits or SmLimits.of_sm(kernel.sm)
        return occupancy(
            room,
            warps_per_block=room.warps_of(threads),
            registers=takes.registers,
            shared_bytes=takes.shared_bytes + (dynamic_shared or 0),
            barriers=takes.barriers,
        )


def missing_shared(kernel: SassKernel, dynamic_shared: int | None) -> tuple[MissingInput, ...]:
    """Return the shared memory of a launch as a missing input, where the kernel may use it."""
    if dynamic_shared is not None or not _may_use_dynamic_shared(kernel):
        return ()
    what = "the bytes of shared memory that the launch gives each block, 0 for none"
    return (MissingInput("dynamic_shared", "N", what),)


def _may_use_dynamic_shared(kernel: SassKernel) -> bool:
    """Return whether the kernel may have an array of a size that the launch says; only PTX tells for sure."""
    if not any(_SHARING.fullmatch(instruction.name) for instruction in kernel.code):
        return False
    return kernel.ptx_text is None or _EXTERN.search(kernel.ptx_text) is not None
