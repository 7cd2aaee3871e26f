"""How a kernel is launched: the block, the grid, and what is known of the parameters."""

import math
import re
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from makespan.errors import InputError
from makespan.ptx.module import Declaration, Kernel
from makespan.ptx.signature import names_of

Extent: TypeAlias = tuple[int, int, int]
"""Numbers of threads or blocks along x, y and z."""

WARP_LANES = 32
MAX_BLOCK_THREADS = 1024
MAX_BLOCK: Extent = (1024, 1024, 64)
MAX_GRID: Extent = (2**31 - 1, 65_535, 65_535)
"""Source: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability"."""

_EXTENT = re.compile(r"[0-9]{1,10}(?:x[0-9]{1,10}){0,2}")
_PARAMETER = re.compile(r"(?:param\s+)?(?P<name>[^=\s]+)\s*=\s*(?P<value>[^=\s]+)")
_WHOLE = re.compile(r"[-+]?(?:0[xX][0-9A-Fa-f]{1,16}|[0-9]{1,20})")
_REAL = re.compile(r"[-+]?(?:[0-9]{1,40}\.?[0-9]{0,40}|\.[0-9]{1,40})(?:[eE][-+]?[0-9]{1,4})?")
_SCALAR = re.compile(r"\.([busf])(8|16|32|64)(?![0-9A-Za-z_])")
_DIRECTIVE = re.compile(r"(\.(?:req|max)ntid) ([0-9]{1,4})(?:, ([0-9]{1,4}))?(?:, ([0-9]{1,4}))?")


class Parameter(NamedTuple):
    """The value of a parameter as its bits: a non-negative int below 2^bits."""

    value: int
    bits: int


@dataclass(frozen=True, slots=True)
class Launch:
    """What a user says of a launch; None and missing parameters are unknown.

    Args:
        block: threads of a block along x, y, z.
        grid: blocks along x, y, z.
        parameters: values by name; see `for_kernel` for the names.

    Raises:
        InputError: an extent out of range.
    """

    block: Extent | None = None
    grid: Extent | None = None
    parameters: Mapping[str, int | float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check_extent(self.block, MAX_BLOCK, "--block")
        _check_extent(self.grid, MAX_GRID, "--grid")
        if self.block is not None and math.prod(self.block) > MAX_BLOCK_THREADS:
            raise InputError(f"--block {_text(self.block)}: more than {MAX_BLOCK_THREADS} threads in a block")
        object.__setattr__(self, "parameters", MappingProxyType(dict(self.parameters)))

    def __str__(self) -> str:
        """What is known, as on a command line; empty if nothing is."""
        extents = (("block", self.block), ("grid", self.grid))
        known = [f"{name} {_text(extent)}" for name, extent in extents if extent is not None]
        return ", ".join([*known, *(f"{name}={value}" for name, value in self.parameters.items())])

    @property
    def warps_per_block(self) -> int | None:
        """Warps of a block, the last perhaps partial; None without a block."""
        return None if self.block is None else -(-math.prod(self.block) // WARP_LANES)

    def for_kernel(self, kernel: Kernel) -> "Launch":
        """The same launch with parameters by their PTX names, and with the block that `.reqntid` tells.

        A parameter may be called by its PTX name, by its position ("3" is the fourth), by its name in the CUDA source
        that was compiled, or by the end of its PTX name from an underscore on. Calling this twice is the
        same as once; every analysis calls it.

        Raises:
            InputError: a name that fits no parameter or several, a value that its type cannot hold, a block that is
                not the one that the kernel requires, or has more threads than it allows.
        """
        declared = {name: parameter for parameter in kernel.parameters or () for name, _ in parameter.names}
        found: dict[str, int | float] = {}
        for key, value in self.parameters.items():
            name = _named(key, list(declared), kernel)
            encoded(declared[name], value)
            if found.setdefault(name, value) != value:
                raise InputError(f"--param: two values for parameter {name}: {found[name]} and {value}")
        return replace(self, block=self._block_of(kernel), parameters=found)

    def _block_of(self, kernel: Kernel) -> Extent | None:
        """The block as far as it is known, which fits what the kernel says of it.

        Source: PTX ISA, "Performance-Tuning Directives": `.maxntid` limits the product, not each extent.
        """
        said = _declared_extents(kernel)
        required, most = said.get(".reqntid"), said.get(".maxntid")
        if self.block is None:
            return required
        if required not in (None, self.block):
            raise InputError(
                f"--block {_text(self.block)}: kernel {kernel.name} requires {_text(required or self.block)} (.reqntid)"
            )
        if most is not None and math.prod(self.block) > math.prod(most):
            raise InputError(
                f"--block {_text(self.block)}: kernel {kernel.name} allows at most {math.prod(most)} threads in a block"
                f" (.maxntid {_text(most)}), so that it would not start"
            )
        return self.block


def launch(block: str | None = None, grid: str | None = None, parameters: Iterable[str] = ()) -> Launch:
    """Read what follows `--block` (256 or 16x16), `--grid` (64 or 8x8x2) and `--param` (NAME=VALUE).

    Raises:
        InputError: anything else, or an extent out of range.
    """
    found: dict[str, int | float] = {}
    for text in parameters:
        name, value = _parameter(text)
        if found.setdefault(name, value) != value:
            raise InputError(f"--param {text}: {name} already has the value {found[name]}")
    return Launch(_extent(block, "--block"), _extent(grid, "--grid"), found)


def scalar(declaration: Declaration) -> tuple[str, int] | None:
    """The kind of a parameter (b, u, s or f) and its bits; None for an aggregate, and for types of no such kind.

    >>> scalar(Declaration(".param", (("n", None),), ".param .u32 n"))
    ('u', 32)
    """
    types = _SCALAR.findall(declaration.text)
    if len(types) != 1 or "[" in declaration.text:
        return None
    return types[0][0], int(types[0][1])


def known_parameters(kernel: Kernel, launch: Launch) -> dict[str, Parameter]:
    """The known parameters of an entry by PTX name, but for those whose name the body declares anew.

    Raises:
        InputError: see `Launch.for_kernel`.
    """
    declared = {name: parameter for parameter in kernel.parameters or () for name, _ in parameter.names}
    inner = (name for s in kernel.statements if isinstance(s, Declaration) for name, _ in s.names)
    hidden = frozenset(inner) if kernel.is_entry else declared.keys()
    values = launch.for_kernel(kernel).parameters
    return {name: encoded(declared[name], value) for name, value in values.items() if name not in hidden}


def encoded(declaration: Declaration, value: int | float) -> Parameter:
    """A parameter with this value.

    Raises:
        InputError: a value that the type cannot hold.
    """
    found = scalar(declaration)
    name = declaration.names[0][0]
    if found is None:
        raise InputError(f"--param {name}: {declaration.text} holds more than a number; its value cannot be given")
    kind, bits = found
    if kind == "f" and bits >= 32:
        try:
            packed = struct.pack("<f" if bits == 32 else "<d", value)
        except OverflowError:
            raise InputError(f"--param {name}={value}: too large for {declaration.text}") from None
        return Parameter(int.from_bytes(packed, "little"), bits)
    if kind == "f" or not isinstance(value, int):
        raise InputError(f"--param {name}={value}: expected a whole number for {declaration.text}")
    half = 1 << (bits - 1)
    least, most = -half, 2 * half - 1 if kind in "bu" else half - 1
    if not least <= value <= most:
        raise InputError(f"--param {name}={value}: {declaration.text} holds {least}..{most}")
    return Parameter(value % (2 * half), bits)


def _declared_extents(kernel: Kernel) -> dict[str, Extent]:
    """What `.reqntid` and `.maxntid` say, missing extents being 1."""
    found = (match for match in map(_DIRECTIVE.fullmatch, kernel.attributes) if match)
    return {match[1]: (int(match[2]), int(match[3] or 1), int(match[4] or 1)) for match in found}


def _named(key: str, names: list[str], kernel: Kernel) -> str:
    """The parameter that a user calls `key`."""
    if key in names:
        return key
    if key.isdecimal() and len(key) <= 4 and int(key) < len(names):
        return names[int(key)]
    said = names_of(kernel.name, kernel.compilation.signatures, len(names)) if kernel.compilation else ()
    if said.count(key) == 1:
        return names[said.index(key)]
    found = [name for name in names if name.endswith(f"_{key.removeprefix('_')}")] if key.strip("_") else []
    if len(found) == 1:
        return found[0]
    called = [f"{own} or {name}" if own else name for own, name in zip_longest(said, names)]
    listed = ", ".join(f"{position} is {name}" for position, name in enumerate(called)) or "there are none"
    problem = f"fits {len(found)} parameters" if found else "no such parameter"
    raise InputError(
        f"--param {key}: {problem} of kernel {kernel.name}; give the position, or the name in the PTX: {listed}"
    )


def _parameter(text: str) -> tuple[str, int | float]:
    match = _PARAMETER.fullmatch(text.strip())
    if match is None:
        raise InputError(f"--param {text[:60]!r}: give NAME=VALUE, or the position as in 3=1024")
    value = match["value"]
    if _WHOLE.fullmatch(value):
        return match["name"], int(value, 16 if "x" in value.lower() else 10)
    if _REAL.fullmatch(value) and math.isfinite(float(value)):
        return match["name"], float(value)
    raise InputError(f"--param {text[:60]!r}: {value[:40]!r} is no number such as 1024, 0x400 or 0.5")


def _extent(text: str | None, option: str) -> Extent | None:
    if text is None:
        return None
    if _EXTENT.fullmatch(text.strip()) is None:
        raise InputError(f"{option} {text[:40]!r}: give a number such as 256, or 16x16, or 8x8x4")
    sizes = [int(part) for part in text.strip().split("x")]
    x, y, z = sizes + [1] * (3 - len(sizes))
    return x, y, z


def _check_extent(extent: Extent | None, most: Extent, option: str) -> None:
    if extent is not None and not all(1 <= size <= limit for size, limit in zip(extent, most, strict=True)):
        raise InputError(f"{option} {_text(extent)}: at least 1 and at most {_text(most)} along x, y and z")


def _text(extent: Extent) -> str:
    return "x".join(map(str, extent))
