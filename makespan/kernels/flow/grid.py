"""The launch of a kernel: the block, the grid, and the known parameters; and what a kernel declares of them."""

import math
import re
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from makespan.host.errors import InputError, Naming

Dim3: TypeAlias = tuple[int, int, int]
"""Numbers of threads or blocks along x, y and z."""

WARP_LANES = 32
MAX_BLOCK_THREADS = 1024
MAX_BLOCK: Dim3 = (1024, 1024, 64)
MAX_GRID: Dim3 = (2**31 - 1, 65_535, 65_535)
"""Source: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability"."""

_DIM3 = re.compile(r"[0-9]{1,40}(?:x[0-9]{1,40}){0,2}")
_PARAMETER = re.compile(r"(?:param\s+)?(?P<name>[^=\s]+)\s*=\s*(?P<value>[^=\s]+)")
_WHOLE = re.compile(r"[-+]?(?:0[xX][0-9A-Fa-f]{1,16}|[0-9]{1,20})")
_REAL = re.compile(r"[-+]?(?:[0-9]{1,40}\.?[0-9]{0,40}|\.[0-9]{1,40})(?:[eE][-+]?[0-9]{1,4})?")


class ParameterValue(NamedTuple):
    """The value of a parameter as its bits: a non-negative int below 2^bits.

    Args:
        words: by what names instructions read it, where that is not its own.
    """

    value: int
    bits: int
    words: tuple[str, ...] = ()


class ThreadRegisters(NamedTuple):
    """The registers by which a language tells a thread where it is, along x, y, z.

    Args:
        thread: its number in the block.
        block_size: threads of a block.
        block: the number of its block in the grid.
        grid_size: blocks of the grid.
        lane: its number in the warp.
        lane_masks: by relation (eq, lt, le, gt, ge), the lanes whose number is in this relation to its own.
    """

    thread: tuple[str, str, str]
    block_size: tuple[str, str, str]
    block: tuple[str, str, str]
    grid_size: tuple[str, str, str]
    lane: str
    lane_masks: Mapping[str, str]

    @property
    def names(self) -> frozenset[str]:
        """Return all of these registers."""
        axes = (*self.thread, *self.block_size, *self.block, *self.grid_size)
        return frozenset((*axes, self.lane, *self.lane_masks.values()))

    def sizes(self, launch: "Launch") -> dict[str, int]:
        """Return the registers that are the same in all threads of a launch, as far as it is known."""
        known = ((self.block_size, launch.block), (self.grid_size, launch.grid))
        return {name: size for names, extent in known if extent for name, size in zip(names, extent, strict=True)}

    def place(self, number: int, block: Dim3) -> dict[str, int]:
        """Return the registers that hold the position in its block of the thread with this number."""
        x, y, _ = block
        # CUDA counts along x first, then y, then z
        return dict(zip(self.thread, (number % x, number // x % y, number // (x * y)), strict=True))


@dataclass(frozen=True, slots=True, init=False)
class Launch:
    """The launch of a kernel, as far as a user tells it; None and missing parameters are unknown.

    Args:
        block: threads of a block along x, y, z; a number is the extent along x, and an extent that is left out is 1.
        grid: blocks along x, y, z, given in the same way.
        parameters: values by name; the language of the kernel says which names there are.
        named: what the user calls these fields, for messages.

    Raises:
        InputError: an extent that is none, or out of range.

    >>> Launch(block=256).block, Launch(grid=(8, 4)).grid
    ((256, 1, 1), (8, 4, 1))
    """

    block: Dim3 | None
    grid: Dim3 | None
    parameters: Mapping[str, int | float]
    named: Naming = field(repr=False, compare=False)

    def __init__(
        self,
        block: int | Sequence[int] | None = None,
        grid: int | Sequence[int] | None = None,
        parameters: Mapping[str, int | float] = MappingProxyType({}),
        named: Naming = str,
    ) -> None:
        threads = _check_dim3(block, MAX_BLOCK, named("block"))
        blocks = _check_dim3(grid, MAX_GRID, named("grid"))
        if threads is not None and math.prod(threads) > MAX_BLOCK_THREADS:  # the product has a limit of its own
            raise InputError(f"{named('block')} {dim3_text(threads)}: more than {MAX_BLOCK_THREADS} threads in a block")
        if not isinstance(parameters, Mapping):
            raise InputError(f"the parameters of a launch are values by name, not {parameters!r:.40}")
        values = {"block": threads, "grid": blocks, "parameters": dict(parameters), "named": named}
        for name, value in values.items():
            object.__setattr__(self, name, value)  # the class is frozen

    def __str__(self) -> str:
        """Return what is known as on a command line; empty if nothing is."""
        extents = (("block", self.block), ("grid", self.grid))
        known = [f"{name} {dim3_text(extent)}" for name, extent in extents if extent is not None]
        return ", ".join([*known, *(f"{name}={value}" for name, value in self.parameters.items())])

    @property
    def threads_per_block(self) -> int | None:
        """Return the threads of a block; None without a block."""
        return None if self.block is None else math.prod(self.block)

    @property
    def warps_per_block(self) -> int | None:
        """Return the warps of a block, of which the last may be partial; None without a block."""
        return None if self.threads_per_block is None else -(-self.threads_per_block // WARP_LANES)  # rounded up


_FLOATS = {16: "<e", 32: "<f", 64: "<d"}


class DeclaredParameter(NamedTuple):
    """A parameter as a kernel declares it.

    Args:
        text: the declaration, for messages.
        shown: what a list of parameters calls it.
        bits: None where it holds more than a number.
        kind: f for a float, s for a signed number, u or b for a number of either sign; empty where the code does not
            tell, so that a value with a point, such as 2.0, is a float.
        source_name: its name in the source that was compiled; None where it is not known.
        is_hidden: whether instructions may read another value than the one that is given.
        words: see `ParameterValue`.
    """

    text: str
    shown: str
    bits: int | None
    kind: str = ""
    source_name: str | None = None
    is_hidden: bool = False
    words: tuple[str, ...] = ()

    def encode(self, name: str, value: int | float, said: str) -> ParameterValue:
        """Return the parameter of this name with a value; `said` is what the user calls parameters.

        Raises:
            InputError: a value that its type cannot hold.
        """
        if self.bits is None:
            raise InputError(f"{said} {name}: {self.text} holds more than a number; its value cannot be given")
        if self.kind == "f" or (not self.kind and isinstance(value, float)):
            # 2 bytes of an unknown type may be those of a bfloat16, which are others
            if self.bits not in _FLOATS or (not self.kind and self.bits == 16):
                raise InputError(f"{said} {name}={value}: expected a whole number for {self.text}")
            try:
                packed = struct.pack(_FLOATS[self.bits], value)
            except (OverflowError, struct.error):  # the latter of a whole number that no float holds
                raise InputError(f"{said} {name}={value}: too large for {self.text}") from None
            return ParameterValue(int.from_bytes(packed, "little"), self.bits, self.words)
        if not isinstance(value, int):
            raise InputError(f"{said} {name}={value}: expected a whole number for {self.text}")
        half = 1 << (self.bits - 1)
        least, most = -half, half - 1 if self.kind == "s" else 2 * half - 1
        if not least <= value <= most:
            raise InputError(f"{said} {name}={value}: {self.text} holds {least}..{most}")
        return ParameterValue(value % (2 * half), self.bits, self.words)


@dataclass(frozen=True)
class KernelSignature:
    """The parameters that a kernel declares, by its own names for them, and the block with which it can be launched.

    Args:
        required: the block that the kernel requires, if any.
        most: threads that the kernel allows in a block; None for any number.
        requires: where the kernel says what it requires; `allows` says the same of `most`.
    """

    kernel: str
    parameters: Mapping[str, DeclaredParameter] = field(default_factory=dict)
    required: Dim3 | None = None
    most: int | None = None
    requires: str = ""
    allows: str = ""

    def fit(self, launch: Launch) -> Launch:
        """Return the launch with parameters by the names of the kernel, and with the block that it requires.

        A parameter may be called by its name in the kernel, by its position ("3" is the fourth), by its name in the
        source that was compiled, or by the end of its name in the kernel from an underscore on. Twice is the same as
        once.

        Raises:
            InputError: a name that fits no parameter or several, two values for one, a value that its type cannot hold,
                another block than the required one, or too many threads.
        """
        found: dict[str, int | float] = {}
        said = launch.named("parameters")
        for key, value in launch.parameters.items():
            name = self._find(key, said)
            self.parameters[name].encode(name, value, said)
            if found.setdefault(name, value) != value:  # two names of one parameter
                raise InputError(f"{said}: two values for parameter {name}: {found[name]} and {value}")
        if launch.block is None:
            return replace(launch, parameters=found, block=self.required)
        where = f"{launch.named('block')} {dim3_text(launch.block)}: kernel {self.kernel}"
        if self.required not in (None, launch.block):
            raise InputError(f"{where} requires {dim3_text(self.required or launch.block)}{self.requires}")
        if self.most is not None and math.prod(launch.block) > self.most:
            allowed = f"allows at most {self.most} threads in a block{self.allows}"
            raise InputError(f"{where} {allowed}, so that it would not start")
        return replace(launch, parameters=found)

    def known(self, launch: Launch) -> dict[str, ParameterValue]:
        """Return the values of parameters that a launch tells, but for those that instructions may not read.

        Raises:
            InputError: see `fit`.
        """
        said, given = launch.named("parameters"), self.fit(launch).parameters
        return {
            name: self.parameters[name].encode(name, value, said)
            for name, value in given.items()
            if not self.parameters[name].is_hidden
        }

    @property
    def called(self) -> dict[str, str]:
        """Return how a user calls the parameters that can be given as numbers, by their names in the kernel.

        That is the name in the source, if it tells just this one; else the name in the kernel or, where a compiler made
        it of a number, the position.
        """
        own = [declared.source_name for declared in self.parameters.values()]
        found: dict[str, str] = {}
        for position, (name, declared) in enumerate(self.parameters.items()):
            if declared.bits is not None and not declared.is_hidden:
                said = declared.source_name
                is_number = name.endswith(f"_param_{position}")
                is_own = said is not None and said not in self.parameters and own.count(said) == 1
                found[name] = said if said is not None and is_own else str(position) if is_number else name
        return found

    def _find(self, key: str, option: str) -> str:
        """Return the one parameter that a user calls `key`."""
        names = list(self.parameters)
        if key in names:
            return key
        if key.isdecimal() and len(key) <= 4 and int(key) < len(names):
            return names[int(key)]
        found = [name for name, declared in self.parameters.items() if declared.source_name == key]
        if len(found) != 1:
            end = f"_{key.removeprefix('_')}"
            found = [name for name in names if name.endswith(end)] if key.strip("_") else []
        if len(found) == 1:
            return found[0]
        problem = f"fits {len(found)} parameters" if found else "no such parameter"
        listed = ", ".join(f"{at} is {declared.shown}" for at, declared in enumerate(self.parameters.values()))
        raise InputError(
            f"{option} {key}: {problem} of kernel {self.kernel}; give the position, or the name in the PTX:"
            f" {listed or 'there are none'}"
        )


class LaunchInput(NamedTuple):
    """A value that a user can give for a launch: a field of `Launch` and, of its parameters, which one."""

    field: str
    name: str = ""

    @property
    def blank(self) -> str:
        """Return the text to give, with N for a number that is to be filled in."""
        return f"{self.name}=N" if self.name else "N"

    def __str__(self) -> str:
        """Return the option that gives this input, as on a command line."""
        return f"--{'param' if self.field == 'parameters' else self.field} {self.blank}"


def launch(
    block: str | None = None, grid: str | None = None, parameters: Iterable[str] = (), *, named: Naming = str
) -> Launch:
    """Read a block as text (256 or 16x16), a grid (64 or 8x8x2) and parameters (NAME=VALUE).

    >>> str(launch("16x16", parameters=["n=0x400"]))
    'block 16x16x1, n=1024'

    Args:
        named: what the user calls the fields of a `Launch`, for messages.

    Raises:
        InputError: anything else, or an extent out of range.
    """
    found: dict[str, int | float] = {}
    for text in parameters:
        name, value = _parameter(text, named("parameters"))
        if found.setdefault(name, value) != value:
            raise InputError(f"{named('parameters')} {text}: {name} already has the value {found[name]}")
    return Launch(_parse_dim3(block, named("block")), _parse_dim3(grid, named("grid")), found, named)


def dim3_text(extent: Dim3) -> str:
    """Return the extents as on a command line.

    >>> dim3_text((16, 16, 1))
    '16x16x1'
    """
    return "x".join(map(str, extent))


def _parameter(text: str, option: str) -> tuple[str, int | float]:
    match = _PARAMETER.fullmatch(text.strip())
    if match is None:
        raise InputError(f"{option} {text[:60]!r}: give NAME=VALUE, or the position as in 3=1024")
    value = match["value"]
    if _WHOLE.fullmatch(value):
        return match["name"], int(value, 16 if "x" in value.lower() else 10)
    if _REAL.fullmatch(value) and math.isfinite(float(value)):
        return match["name"], float(value)
    raise InputError(f"{option} {text[:60]!r}: {value[:40]!r} is no number such as 1024, 0x400 or 0.5")


def _parse_dim3(text: str | None, option: str) -> Dim3 | None:
    if text is None:
        return None
    if _DIM3.fullmatch(text.strip()) is None:
        raise InputError(f"{option} {text[:40]!r}: give a number such as 256, or 16x16, or 8x8x4")
    sizes = [int(part) for part in text.strip().split("x")]
    x, y, z = sizes + [1] * (3 - len(sizes))
    return x, y, z


def _check_dim3(given: int | Sequence[int] | None, most: Dim3, field: str) -> Dim3 | None:
    if given is None:
        return None
    sizes = tuple(given) if isinstance(given, tuple | list) else (given,)
    if not (1 <= len(sizes) <= len(most) and all(_is_whole(size) for size in sizes)):
        raise InputError(
            f"{field} must be a whole number such as 256, or one to three of them such as (16, 16), not {given!r:.40}"
        )
    x, y, z = extent = (*map(int, sizes), *(1 for _ in most[len(sizes) :]))
    if not all(1 <= size <= limit for size, limit in zip(extent, most, strict=True)):
        raise InputError(f"{field} {dim3_text((x, y, z))}: at least 1 and at most {dim3_text(most)} along x, y and z")
    return x, y, z


def _is_whole(size: object) -> bool:
    return isinstance(size, Integral) and not isinstance(size, bool)  # True is an int in Python, and no size
