"""The wall between languages and control flow: all that this package knows of an instruction set and of a kernel.

A language package (such as `makespan.kernels.ptx`) turns a kernel into a `graph.Flow`: its blocks, an `Effect` for
every instruction, and a `Semantics` that answers what depends on the launch. Instructions are numbered in text order.
"""

from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass
from enum import Enum
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from makespan.kernels.flow.grid import KernelSignature, LaunchInput, ParameterValue, ThreadRegisters
from makespan.kernels.flow.spread import LaneSpread, LaneSpreads, Surroundings

if TYPE_CHECKING:
    from makespan.kernels.flow.arithmetic import RegisterValue


class SourceOperand(NamedTuple):
    """An input of a computation: a register (or special register) by its own name, or else a constant."""

    register: str | None
    constant: int | None
    mask: int
    is_negated: bool = False


class Computation(NamedTuple):
    """The function that an instruction computes, with its sources and results.

    Args:
        results: the registers that it writes, by their own names; None where a result is thrown away.
        compute: from the values of the sources to those of the results; only if `is_lenient`, it takes unknown ones.
    """

    results: tuple[str | None, ...]
    sources: tuple[SourceOperand, ...]
    compute: "Callable[..., tuple[RegisterValue, ...]]"
    is_lenient: bool = False

    @property
    def yields_predicates(self) -> bool:
        """Return whether all results are 0 or 1, as they are at the largest values of all sources."""
        return all(value in (0, 1) for value in self.apply(self._masks))

    def may_be_known(self, unknown: Set[str]) -> bool:
        """Return whether results may be known although these registers are not, as `p or q` is where p holds.

        It tries the least and the largest values of the others, and those with which they are compared.
        """
        if not self.is_lenient:
            return not any(source.register in unknown for source in self.sources)
        constants = {source.constant for source in self.sources if source.constant is not None}
        tried = {
            # borders of signed and unsigned ranges, and the numbers compared with
            name: {0, 1, mask >> 1, mask, *(constant & mask for constant in constants)}
            for name, mask in self._masks.items()
            if name not in unknown
        }
        states = (dict(zip(tried, values, strict=True)) for values in product(*tried.values()))
        return any(value is not None for state in states for value in self.apply(state))

    @property
    def _masks(self) -> dict[str, int]:
        return {source.register: source.mask for source in self.sources if source.register is not None}

    def apply(self, state: "Mapping[str, RegisterValue]") -> "tuple[RegisterValue, ...]":
        """Return the values of the results, given those of the registers; a register that is missing is unknown."""
        values: list[Any] = []
        for register, constant, mask, is_negated in self.sources:
            value: Any = constant if register is None else state.get(register)
            if value is not None:
                value = value & mask
                values.append(1 - value if is_negated else value)
            elif self.is_lenient:
                values.append(None)
            else:
                return (None,) * len(self.results)  # without leniency one unknown source makes all unknown
        return self.compute(*values)


SHARED_REGISTER = "?"
"""Stands for every register that code outside of the kernel may change at any time: its value is never known."""


class Instruction(Protocol):
    """An instruction as messages and listings show it; `str` is its text."""

    @property
    def line(self) -> int:
        """Return its line in the file of its kernel."""

    @property
    def opcode(self) -> str:
        """Return the opcode, without operands."""


class Routine(Protocol):
    """A kernel or function as messages show it."""

    @property
    def name(self) -> str:
        """Return the name by which the user calls it."""

    @property
    def file(self) -> str:
        """Return the file to which its lines belong."""

    @property
    def line(self) -> int:
        """Return the line at which it begins."""

    @property
    def source(self) -> str:
        """Return the file that the user gave."""

    @property
    def labels(self) -> frozenset[str]:
        """Return the labels of its text, whether its control flow is understood or not."""


class ControlTransfer(Enum):
    """The way in which an instruction may hand over control, other than to the next one."""

    DIRECT = "to the place that it names, or to the end of the warp"
    INDIRECT = "to one of several places, by a register"
    INLINED = "into or out of a function that stands in place of its call"


class Barrier(Enum):
    """The way in which the lanes of a warp come to a barrier of the block."""

    ALIGNED = "all together or not at all"
    BY_LANE = "each for itself"


class Guard(NamedTuple):
    """The predicate register, by its own name, without which an instruction does nothing."""

    register: str
    is_negated: bool = False

    @property
    def acts_at(self) -> int:
        """Return the value of the register at which the instruction does something."""
        return int(not self.is_negated)


class SourceLine(NamedTuple):
    """A line of the program that was compiled."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class Effect:
    """The effect of one instruction on control and on registers, each by a name of its own in the whole kernel.

    An instruction that is not known writes every register that it mentions, and reads it, too.

    Args:
        writes: what it may write. With a guard, it may also leave them as they are.
        reads: what it may read, guard included; names of variables and labels may be among them.
        is_partial: whether it may write a part of a register and leave the rest.
        guard: None if it always acts.
        transfer: None if it always goes on behind itself.
        target: what a user calls the place to which it transfers control.
        is_uniform: whether it says of itself that all lanes go the same way.
        barrier: None if it is no barrier of the block.
        joins_lanes: whether it exchanges something between the lanes of a warp or waits for them.
        source: the line of the program that was compiled, as far as it is known.
    """

    writes: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    is_partial: bool = False
    guard: Guard | None = None
    transfer: ControlTransfer | None = None
    target: str = ""
    is_uniform: bool = False
    barrier: Barrier | None = None
    joins_lanes: bool = False
    source: SourceLine | None = None


class LoopMark(NamedTuple):
    """A remark in the text of a kernel that bounds the loop around it.

    Args:
        block: in which it stands.
        at: the number of the instruction before which it stands, or of the first behind the block.
        maximum: iterations, as they are told.
        place: tells apart copies that the compiler made from others, together with `source`.
        is_own: whether the author of the kernel says so; else it is the compiler.
    """

    block: int
    at: int
    maximum: int
    line: int
    source: SourceLine | None
    place: str
    is_own: bool


class AskedBound(NamedTuple):
    """A loop whose bound a user has to give.

    Args:
        name: by which it is best given: FILE:LINE of the source, if this means no other loop, or the label.
        place: where the loop is, as text that follows "the loop".
        deciders: what else could be said instead: the inputs of the launch that decide together how often it runs.
    """

    name: str
    place: str
    deciders: tuple[LaunchInput, ...] = ()


class TransferredBound(NamedTuple):
    """A bound that is known of a loop from outside of its kernel, such as from the text that was compiled.

    Args:
        maximum: iterations for each entry; None where no bound is known.
        source: who says so, or why there is none.
        origin: the place there, as text; None where it is not known.
        given: the bounds on which this rests and that a user or a comment says, such as `L=16`.
        asks: the loops there whose bounds have to be given before one is known of this loop.
    """

    maximum: int | None
    source: str
    origin: str | None = None
    given: tuple[str, ...] = ()
    asks: tuple[AskedBound, ...] = ()


@dataclass(frozen=True, slots=True)
class InstructionSet:
    """The words and registers that all kernels of a language share.

    Args:
        registers: where threads read who they are.
        ends: the instructions that end a warp, as text.
        aligned_barrier: the barrier that all lanes of a warp execute together, as text.
        has_lines: whether instructions stand in lines of a text; else at addresses.
    """

    registers: ThreadRegisters
    ends: str
    aligned_barrier: str
    has_lines: bool = True

    def at(self, *places: int) -> str:
        """Return places in words: `line 3`, `lines 3, 4` or, of addresses, `0x30, 0x40`."""
        word = f"line{'s' * (len(places) > 1)} " * self.has_lines
        return f"{word}{', '.join(map(str, places))}"


class Semantics(Protocol):
    """The answers of a language about one kernel, beyond its effects; instructions are given by number.

    Whatever it says is believed, so what is not sure is None. What it computes from is among what the effect of the
    instruction reads, and what it computes among what that writes.
    """

    @property
    def instruction_set(self) -> InstructionSet:
        """Return the instruction set of this kernel."""

    @property
    def signature(self) -> KernelSignature:
        """Return what the kernel declares of its launch."""

    def computation(self, number: int, parameters: Mapping[str, ParameterValue]) -> Computation | None:
        """Return what an instruction computes; None where that is not known for sure."""

    def spread(self, number: int, spreads: LaneSpreads, around: Surroundings) -> LaneSpread | None:
        """Return the bits in which lanes may differ in the results, guard apart; None if nothing is known."""

    def step(self, number: int) -> tuple[str, int] | None:
        """Return a register that an instruction counts up, and by which constant; 1 for one that is not read."""

    def refusal(self, number: int, threads: int | None) -> str | None:
        """Return why no program can express an instruction, in a block of this many threads; None if one can."""

    def marks(self) -> Iterator[LoopMark]:
        """Return the remarks of the kernel, in text order.

        Raises:
            InputError: one that is ill-formed.
        """
