"""Runs one block of a kernel and tells what its warps issued."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from makespan.kernels.ptx import PtxKernel, PtxModule, parse, read
from tests.ptx_interpreter import arithmetic, bits, control, conversion, exchange, transfer
from tests.ptx_interpreter.decoding import decode
from tests.ptx_interpreter.faults import UnsupportedInstruction
from tests.ptx_interpreter.machine import Block, Image, Issue, order_of
from tests.ptx_interpreter.operands import variables as declared
from tests.ptx_interpreter.values import LANES, Array, Type

SEMANTICS = (arithmetic, bits, control, conversion, exchange, transfer)
"""The modules that register what instructions do."""

Argument: TypeAlias = "int | float | np.floating[Any] | bytes | Array | None"
Launch: TypeAlias = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Pointer:
    """The address of these bytes, as the value of a register."""

    to: Array


@dataclass(frozen=True, slots=True)
class Trace:
    """What every warp issued, in the order of the issues."""

    kernel: PtxKernel = field(repr=False)
    warps: tuple[tuple[Issue, ...], ...] = field(repr=False)
    labels: tuple[tuple[str, int, int], ...] = field(repr=False)
    """Name, line and instruction of every label of the kernel; one at the end has the number behind the last."""

    def indices(self, warp: int) -> tuple[int, ...]:
        """The instructions of the kernel itself that a warp issued, as numbers in text order."""
        return tuple(issue.index for issue in self.warps[warp] if issue.routine == self.kernel.name)

    def iterations(self, warp: int) -> dict[str, int]:
        """How often a warp executed the block behind each label of the kernel; lanes that diverged count apart.

        A label that the text has several times is called `name:line`.
        """
        executed = Counter(self.indices(warp))
        names = Counter(name for name, _, _ in self.labels)
        return {name if names[name] == 1 else f"{name}:{line}": executed[at] for name, line, at in self.labels}


def run(
    module_or_path: PtxModule | Path | str,
    kernel_name: str | None,
    *,
    block: Launch = (32, 1, 1),
    grid: Launch = (1, 1, 1),
    block_index: Launch = (0, 0, 0),
    arguments: Mapping[str, Argument] | Sequence[Argument] = (),
    variables: Mapping[str, Array] | None = None,
    registers: Mapping[str, int | Array | Pointer] | None = None,
    dynamic_shared_bytes: int = 0,
    order: Literal["taken-first", "fall-first", "random"] = "taken-first",
    seed: int = 0,
    max_instructions: int = 10**6,
) -> Trace:
    """Execute one block of a kernel.

    Args:
        module_or_path: a module, the path of one, or its text (whatever has a line break).
        arguments: by name of the parameter or in their order. An array is passed as the address of its bytes, which
            the kernel changes in place; the same array twice is the same memory. None is the null pointer; bytes fill
            a parameter that is an array.
        variables: the bytes of `.global` and `.const` variables, in place; those left out hold their initialiser or 0.
        registers: what registers of the kernel hold from the beginning: raw bits, the same or one per lane, or a
            `Pointer`; a register that is left out may not be read before it is written.
        order: which side of a divergent branch runs first: the lanes that jump, those that do not, or drawn by `seed`.
        max_instructions: of all warps together.

    Raises:
        KernelFault: the kernel does what has no defined result, never ends, or exceeds `max_instructions`.
        UnsupportedInstruction: an instruction that is reached and not known.
    """
    module = _module(module_or_path)
    kernel = module.kernel(kernel_name)
    contents = {name: _bytes(array, name) for name, array in (variables or {}).items()}
    image = Image(module, kernel, contents, dynamic_shared_bytes)
    _pass(image, kernel, arguments)
    held = {name: _held(image, name, value) for name, value in (registers or {}).items()}
    launched = Block(image, block, grid, block_index, order_of(order, seed), decode)
    with np.errstate(all="ignore"):
        launched.start()
        for warp in launched.warps:
            for name, value in held.items():
                warp.set_register(name, np.broadcast_to(np.asarray(value, np.uint64), LANES).copy())
        launched.run(max_instructions)
    labels = image.code(kernel.name).routine.labels
    return Trace(kernel, tuple(tuple(warp.issues) for warp in launched.warps), labels)


def _module(given: PtxModule | Path | str) -> PtxModule:
    if isinstance(given, PtxModule):
        return given
    if isinstance(given, str) and "\n" in given:
        return parse(given)
    return parsed(Path(given))


@cache
def parsed(path: Path) -> PtxModule:
    """A module of a file that does not change while the tests run."""
    return read(path)


def _bytes(array: Array, name: str) -> Array:
    if not array.flags.c_contiguous:
        raise ValueError(f"the array for {name} is not contiguous")
    return array.reshape(-1).view(np.uint8)


def _held(image: Image, name: str, value: int | Array | Pointer) -> int | Array:
    return image.spaces["global"].allocate(_bytes(value.to, name)) if isinstance(value, Pointer) else value


def _pass(image: Image, kernel: PtxKernel, arguments: Mapping[str, Argument] | Sequence[Argument]) -> None:
    """Lay out the parameters of the kernel and allocate what they point to."""
    parameters = [variable for declaration in kernel.parameters or () for variable in declared(declaration)]
    names = [parameter.name for parameter in parameters]
    given = arguments if isinstance(arguments, Mapping) else dict(zip(names, arguments, strict=True))
    if set(given) != set(names):
        raise ValueError(f"{kernel.name} takes {', '.join(names)}, not {', '.join(given)}")
    addresses: dict[int, int] = {}
    for parameter in parameters:
        value = given[parameter.name]
        if isinstance(value, np.ndarray) and value.ndim:
            if id(value) not in addresses:
                addresses[id(value)] = image.spaces["global"].allocate(_bytes(value, parameter.name))
            value = addresses[id(value)]
        data = np.zeros(parameter.bytes, np.uint8)
        data[:] = _argument(value, parameter.type, parameter.bytes, parameter.name)
        image.parameters[parameter.name] = image.spaces["param"].allocate(data, align=16)


def _argument(value: Any, kind: Type, size: int, name: str) -> Array:
    if isinstance(value, bytes | bytearray):
        found = np.frombuffer(value, np.uint8)
    elif size != kind.bytes:
        raise UnsupportedInstruction(f"the parameter {name} is an array: give it bytes")
    elif isinstance(value, float | np.floating):
        dtype = kind.dtype if kind.is_float else np.dtype(f"f{kind.bytes}")  # b32 and b64 hold floats as well
        found = np.array([value], dtype).view(np.uint8)
    elif kind.is_float:
        found = np.array([value], kind.dtype).view(np.uint8)
    else:
        found = np.frombuffer((int(value or 0) % (1 << kind.bits)).to_bytes(kind.bytes, "little"), np.uint8)
    if found.size != size:
        raise ValueError(f"the parameter {name} has {size} bytes, not {found.size}")
    return found
