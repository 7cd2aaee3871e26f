"""Runs one block of a kernel of machine code and tells what its warps issued."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from makespan.kernels.sass import SassKernel, SassParameter
from tests.ptx_interpreter.values import Array
from tests.sass_interpreter import control, floats, integers, memory
from tests.sass_interpreter.handlers import decoded
from tests.sass_interpreter.machine import Block, Issue, LaunchedBlock, Order, Watch
from tests.sass_interpreter.operands import Decoding, predicate

SEMANTICS = (control, floats, integers, memory)
"""The modules that register what instructions do."""

Argument: TypeAlias = "int | float | np.floating[Any] | Array | None"
Extent: TypeAlias = tuple[int, int, int]

STACK = 0x2000
"""Where the stack of a lane begins, which grows down."""


@dataclass(frozen=True, slots=True)
class Trace:
    """What every warp issued, in the order of the issues."""

    kernel: SassKernel = field(repr=False)
    warps: tuple[tuple[Issue, ...], ...] = field(repr=False)

    def addresses(self, warp: int) -> tuple[int, ...]:
        """The instructions that a warp issued."""
        return tuple(issue.address for issue in self.warps[warp])

    def counts(self, warp: int) -> Counter[int]:
        """How often it issued each."""
        return Counter(self.addresses(warp))


def run(
    kernel: SassKernel,
    *,
    block: Extent = (32, 1, 1),
    grid: Extent = (1, 1, 1),
    block_index: Extent = (0, 0, 0),
    arguments: Sequence[Argument] = (),
    order: Order = "nested",
    seed: int = 0,
    watch: "Watch | None" = None,
    max_instructions: int = 10**5,
) -> Trace:
    """Execute one block of a kernel.

    Args:
        arguments: by parameter. An array is passed as the address of its bytes, which the kernel changes in place; the
            same array twice is the same memory. None is the null pointer.
        order: which lanes run first where they part; what is left open is drawn by `seed`.
        watch: sees every instruction that acts.
        max_instructions: of all warps together.

    Raises:
        KernelFault: the kernel does what has no defined result, never ends, or exceeds `max_instructions`.
        UnsupportedInstruction: an instruction that is not known; those that are never reached may be.
    """
    arrays: dict[int, tuple[int, Array]] = {}
    size = 0
    for value in arguments:
        if isinstance(value, np.ndarray) and value.ndim and id(value) not in arrays:
            arrays[id(value)] = (size, value)
            size += -(-value.nbytes // 256) * 256 + 256
    held = np.zeros(size, np.uint8)
    for at, array in arrays.values():
        held[at : at + array.nbytes] = array.reshape(-1).view(np.uint8)
    banks = {number: np.frombuffer(data, np.uint8) for number, data in kernel.constants.items()}
    banks[0] = _bank(kernel, block, grid, [_number(value, arrays) for value in arguments])
    launched = LaunchedBlock(block, grid, block_index, order, seed, watch)
    running = Block(kernel, launched, banks, held, {int(i.address): _decoded(kernel, i) for i in kernel.code})
    with np.errstate(all="ignore"):
        running.run(max_instructions)
    for at, array in arrays.values():
        array.reshape(-1).view(np.uint8)[:] = held[at : at + array.nbytes]
    return Trace(kernel, tuple(tuple(warp.issues) for warp in running.warps))


def _decoded(kernel: SassKernel, instruction: Any) -> Any:
    guard = None if instruction.guard is None else predicate(instruction.guard)
    try:
        return guard, decoded(Decoding(instruction, {kernel.name: 0}))
    except NotImplementedError as why:
        message = why

    def refuse(*_: object) -> None:
        raise message

    return guard, refuse


def _number(value: Argument, arrays: dict[int, tuple[int, Array]]) -> "int | np.floating[Any]":
    if isinstance(value, np.ndarray) and value.ndim:
        return memory.BASE + arrays[id(value)][0]
    if isinstance(value, float | np.floating):
        return np.float32(value) if isinstance(value, float) else value
    return int(value or 0)


def _bank(kernel: SassKernel, block: Extent, grid: Extent, values: Sequence[Any]) -> Array:
    """Bank 0: block and grid, where the stack begins, and the parameters.

    Source: what compiled kernels read: from 0x0 up to sm_90, and 0x20 bytes before the parameters from sm_100 on.
    """
    if len(values) != len(kernel.parameters):
        raise ValueError(f"{kernel.name} takes {len(kernel.parameters)} arguments, not {len(values)}")
    bank = np.zeros(0x1000, np.uint8)
    first = kernel.first_parameter

    def put(at: int, number: int, size: int = 4) -> None:
        bank[at : at + size] = np.frombuffer((number % (1 << 8 * size)).to_bytes(size, "little"), np.uint8)

    for k, count in enumerate((*block, *grid)):
        put((first - 0x20 if kernel.sm >= 100 else 0) + 4 * k, count)
    put(first - 4 if kernel.sm >= 100 else 0x28, STACK)
    for parameter, value in zip(kernel.parameters, values, strict=True):
        put(first + parameter.offset, _raw(value, parameter), parameter.size)
    return bank


def _raw(value: Any, parameter: SassParameter) -> int:
    if isinstance(value, np.floating):
        return int.from_bytes(value.astype(f"f{parameter.size}").tobytes(), "little")
    return int(value)
