"""How many blocks and warps are resident on an SM at the same time."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from makespan.errors import InputError
from makespan.estimators.gpu import Gpu


@dataclass(frozen=True, slots=True)
class Limits:
    """What an SM can hold; None is not known, and then limits nothing.

    Args:
        register_unit: registers are allocated in multiples of this, for a block or for a warp (`register_scope`); where
            that is not known, as it is with `shared_unit`, they count as they are, and `Occupancy.unrounded` says so.
        shared_unit: bytes of shared memory are allocated in multiples of this.
        block_shared_bytes: what one block may have, of the `shared_bytes` of the SM.
    """

    warp_size: int
    registers: int | None = None
    shared_bytes: int | None = None
    block_shared_bytes: int | None = None
    warps: int | None = None
    blocks: int | None = None
    block_threads: int | None = None
    register_unit: int | None = None
    register_scope: Literal["block", "warp"] | None = None
    shared_unit: int | None = None

    def __post_init__(self) -> None:
        for name in self.__slots__:
            value = getattr(self, name)
            if name != "register_scope" and value is not None and value < 1:
                raise InputError(f"limits: {name} must be at least 1, not {value}")

    @classmethod
    def of(cls, gpu: Gpu) -> "Limits":
        """The limits of an SM of this GPU.

        Raises:
            InputError: its warp size is not known.
        """
        numbers = [name for name in cls.__slots__ if name not in ("warp_size", "register_scope")]
        known = {name: gpu.whole(key) for name in numbers if not gpu.missing(key := f"limits.{name}")}
        scope = _SCOPES.get(gpu.text("limits.register_scope"))
        return cls(warp_size=gpu.whole("warp_size"), register_scope=scope, **known)

    def warps_of(self, threads: int) -> int:
        """The warps of a block of so many threads.

        Raises:
            InputError: no thread, or more than a block may have.
        """
        if threads < 1:
            raise InputError(f"threads per block must be at least 1, not {threads}")
        if self.block_threads is not None and threads > self.block_threads:
            raise InputError(f"{threads} threads per block: a block of this GPU has at most {self.block_threads}")
        return -(-threads // self.warp_size)


@dataclass(frozen=True, slots=True)
class Occupancy:
    """The blocks that fit on an SM.

    Args:
        by_resource: how many blocks each limit would allow by itself.
        limiting: the resources that allow no more than `blocks_per_sm`; empty if there is no known limit.
        unknown: the resources that were left out, as their demand or their limit is not known.
        unrounded: the keys of a GPU description that lack: what is allocated may be more than what counts here.
    """

    blocks_per_sm: int
    warps_per_block: int
    by_resource: Mapping[str, int]
    unknown: tuple[str, ...] = ()
    unrounded: tuple[str, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """What makes the number doubtful, for a reader."""
        if not self.unrounded:
            return ()
        return (
            f"{', '.join(self.unrounded)} not known: registers or shared memory count without rounding up to the units"
            " in which they are allocated, so that fewer blocks may be resident",
        )

    @property
    def limiting(self) -> tuple[str, ...]:
        """The resources that allow no more."""
        return tuple(name for name, blocks in self.by_resource.items() if blocks == self.blocks_per_sm)


def occupancy(
    limits: Limits, *, warps_per_block: int, registers: int | None = None, shared_bytes: int | None = None
) -> Occupancy:
    """How many blocks fit on one SM at a time, whatever the grid.

    Args:
        registers: per thread, as `ptxas -v` tells; None if not known.
        shared_bytes: per block, static and dynamic; None if not known.

    Raises:
        InputError: a block that fits on no SM, naming the resource; or nothing known that limits the blocks.

    Source: each limit over the allocated demand, as S. Hong and H. Kim, ISCA 2009, take it from the vendor's
        occupancy calculator; allocation in whole units from the same calculator.
    """
    if warps_per_block < 1:
        raise InputError(f"warps per block must be at least 1, not {warps_per_block}")
    if limits.block_shared_bytes is not None and shared_bytes is not None and shared_bytes > limits.block_shared_bytes:
        raise InputError(
            f"the block needs {shared_bytes} bytes of shared memory, a block may have {limits.block_shared_bytes}"
        )
    demands = {
        "blocks": (1, limits.blocks),
        "warps": (warps_per_block, limits.warps),
        "registers": (_registers(limits, warps_per_block, registers), limits.registers),
        "shared memory": (_rounded(shared_bytes, limits.shared_unit), limits.shared_bytes),
    }
    found: dict[str, int] = {}
    unknown: list[str] = []
    for name, (demand, limit) in demands.items():
        if demand is None or (limit is None and demand):
            unknown.append(name)
        elif limit is not None and demand:
            found[name] = limit // demand
            if not found[name]:
                raise InputError(f"the block fits on no SM: it needs {demand} {_UNITS[name]}, an SM has {limit}")
    if not found:
        raise InputError(f"the occupancy is not known: no limit is, for {', '.join(unknown)}; give the active blocks")
    return Occupancy(min(found.values()), warps_per_block, found, tuple(unknown), tuple(_unrounded(limits, found)))


_SCOPES: Mapping[str | None, Literal["block", "warp"]] = {"block": "block", "warp": "warp"}
_ALLOCATION = {"registers": ("register_unit", "register_scope"), "shared memory": ("shared_unit",)}


def _unrounded(limits: Limits, used: Iterable[str]) -> Iterator[str]:
    """What is not known of how the resources that limit are allocated."""
    names = [name for resource in used for name in _ALLOCATION.get(resource, ())]
    yield from (f"limits.{name}" for name in names if getattr(limits, name) is None)


_UNITS = {"blocks": "blocks", "warps": "warps", "registers": "registers", "shared memory": "bytes of shared memory"}


def _registers(limits: Limits, warps: int, registers: int | None) -> int | None:
    if registers is None:
        return None
    if registers < 0:
        raise InputError(f"registers per thread must be at least 0, not {registers}")
    warp = limits.warp_size * registers
    if limits.register_scope == "warp":
        return warps * (_rounded(warp, limits.register_unit) or 0)
    return _rounded(warps * warp, limits.register_unit)


def _rounded(demand: int | None, unit: int | None) -> int | None:
    if demand is not None and demand < 0:
        raise InputError(f"shared memory must be at least 0 bytes, not {demand}")
    return demand if demand is None or unit is None else -(-demand // unit) * unit
