"""How a kernel is launched: the block, the grid, and what is known of the parameters."""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from makespan.errors import InputError

Extent: TypeAlias = tuple[int, int, int]
"""Numbers of threads or blocks along x, y and z."""

WARP_LANES = 32
MAX_BLOCK_THREADS = 1024
MAX_BLOCK: Extent = (1024, 1024, 64)
MAX_GRID: Extent = (2**31 - 1, 65_535, 65_535)
"""Source: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability"."""

_EXTENT = re.compile(r"[0-9]{1,40}(?:x[0-9]{1,40}){0,2}")
_PARAMETER = re.compile(r"(?:param\s+)?(?P<name>[^=\s]+)\s*=\s*(?P<value>[^=\s]+)")
_WHOLE = re.compile(r"[-+]?(?:0[xX][0-9A-Fa-f]{1,16}|[0-9]{1,20})")
_REAL = re.compile(r"[-+]?(?:[0-9]{1,40}\.?[0-9]{0,40}|\.[0-9]{1,40})(?:[eE][-+]?[0-9]{1,4})?")


class Parameter(NamedTuple):
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
        lane_masks: by relation (eq, lt, le, gt, ge), the lanes of which the number is in this relation to its own.
    """

    thread: tuple[str, str, str]
    block_size: tuple[str, str, str]
    block: tuple[str, str, str]
    grid_size: tuple[str, str, str]
    lane: str
    lane_masks: Mapping[str, str]

    @property
    def names(self) -> frozenset[str]:
        """All of them."""
        axes = (*self.thread, *self.block_size, *self.block, *self.grid_size)
        return frozenset((*axes, self.lane, *self.lane_masks.values()))

    def sizes(self, launch: "Launch") -> dict[str, int]:
        """The registers that are the same in all threads of a launch, as far as it is known."""
        known = ((self.block_size, launch.block), (self.grid_size, launch.grid))
        return {name: size for names, extent in known if extent for name, size in zip(names, extent, strict=True)}

    def place(self, number: int, block: Extent) -> dict[str, int]:
        """Where the thread with this number in its block is."""
        x, y, _ = block
        return dict(zip(self.thread, (number % x, number // x % y, number // (x * y)), strict=True))


@dataclass(frozen=True, slots=True)
class Launch:
    """What a user says of a launch; None and missing parameters are unknown.

    Args:
        block: threads of a block along x, y, z.
        grid: blocks along x, y, z.
        parameters: values by name; the language of the kernel says which names there are.

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
            raise InputError(f"--block {shown(self.block)}: more than {MAX_BLOCK_THREADS} threads in a block")
        if not isinstance(self.parameters, Mapping):
            raise InputError(f"the parameters of a launch are values by name, not {self.parameters!r:.40}")
        object.__setattr__(self, "parameters", dict(self.parameters))

    def __str__(self) -> str:
        """What is known, as on a command line; empty if nothing is."""
        extents = (("block", self.block), ("grid", self.grid))
        known = [f"{name} {shown(extent)}" for name, extent in extents if extent is not None]
        return ", ".join([*known, *(f"{name}={value}" for name, value in self.parameters.items())])

    @property
    def threads_per_block(self) -> int | None:
        """Threads of a block; None without one."""
        return None if self.block is None else math.prod(self.block)

    @property
    def warps_per_block(self) -> int | None:
        """Warps of a block, the last perhaps partial; None without a block."""
        return None if self.threads_per_block is None else -(-self.threads_per_block // WARP_LANES)


def launch(block: str | None = None, grid: str | None = None, parameters: Iterable[str] = ()) -> Launch:
    """Read what follows `--block` (256 or 16x16), `--grid` (64 or 8x8x2) and `--param` (NAME=VALUE).

    >>> str(launch("16x16", parameters=["n=0x400"]))
    'block 16x16x1, n=1024'

    Raises:
        InputError: anything else, or an extent out of range.
    """
    found: dict[str, int | float] = {}
    for text in parameters:
        name, value = _parameter(text)
        if found.setdefault(name, value) != value:
            raise InputError(f"--param {text}: {name} already has the value {found[name]}")
    return Launch(_extent(block, "--block"), _extent(grid, "--grid"), found)


def shown(extent: Extent) -> str:
    """An extent as on a command line.

    >>> shown((16, 16, 1))
    '16x16x1'
    """
    return "x".join(map(str, extent))


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
    if extent is None:
        return
    if not (isinstance(extent, tuple) and len(extent) == len(most) and all(type(size) is int for size in extent)):
        raise InputError(
            f"{option}: three whole numbers along x, y and z are needed, such as (256, 1, 1), not {extent!r:.40}"
        )
    if not all(1 <= size <= limit for size, limit in zip(extent, most, strict=True)):
        raise InputError(f"{option} {shown(extent)}: at least 1 and at most {shown(most)} along x, y and z")
