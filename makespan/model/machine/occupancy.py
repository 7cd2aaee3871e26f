"""Occupancy: the number of blocks and warps that are resident on an SM at the same time."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Literal, NamedTuple

from makespan.host.errors import InputError

_WARP_SIZE = 32  # the warp size of every GPU by NVIDIA


@dataclass(frozen=True, slots=True)
class SmLimits:
    """The limits of an SM. None means that a limit is not known; it then limits nothing.

    Args:
        register_unit: the unit in which registers are allocated, for a block or for a warp (`register_scope`). If it is
            not known, registers count unrounded, and `Occupancy.unrounded` says so. The same holds for `shared_unit`.
        shared_unit: the unit in which shared memory is allocated, in bytes.
        block_shared_bytes: the most shared memory of one block, of the `shared_bytes` of the SM.
        barriers: the barriers of all blocks of the SM. None means that they limit nothing.
        thread_registers: the most registers of a thread.
        register_parts: the number of register files of an SM, equal in size. The registers of a warp lie in one of
            them.
        reserved_shared_bytes: the bytes that every block takes besides what it asks for.
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
    barriers: int | None = None
    thread_registers: int | None = None
    register_parts: int = 1
    reserved_shared_bytes: int = 0

    def __post_init__(self) -> None:
        for name in self.__slots__:
            value, least = getattr(self, name), 0 if name == "reserved_shared_bytes" else 1
            if name != "register_scope" and value is not None and value < least:
                raise InputError(f"limits: {name} must be at least {least}, not {value}")
        if self.register_parts > 1 and self.register_scope != "warp":
            raise InputError("limits: registers in several parts are those of warps")

    @classmethod
    def of_sm(cls, sm: int) -> "SmLimits":
        """Return the limits of an SM by its compute capability, if all limits are known.

        >>> limits = SmLimits.of_sm(86)
        >>> limits.warps, limits.blocks, limits.shared_bytes
        (48, 16, 102400)

        Raises:
            InputError: no table has this compute capability.

        Source: `data/residency.tsv`.
        """
        known = residency()
        if sm not in known:
            listed = ", ".join(map(str, known))
            raise InputError(f"what an SM of compute capability sm_{sm} holds is not known; known: {listed}")
        return known[sm]

    def warps_of(self, threads: int) -> int:
        """Return the number of warps of a block with this number of threads.

        Raises:
            InputError: no thread, or more than a block may have.
        """
        if threads < 1:
            raise InputError(f"threads per block must be at least 1, not {threads}")
        if self.block_threads is not None and threads > self.block_threads:
            raise InputError(f"{threads} threads per block: a block of this GPU has at most {self.block_threads}")
        return -(-threads // self.warp_size)


class ResourceShare(NamedTuple):
    """The share of a block in a resource of an SM as it is allocated, and the room of the SM, in the same unit."""

    takes: int
    room: int
    unit: str


@dataclass(frozen=True, slots=True)
class Occupancy:
    """The number of blocks that fit on an SM, and the resources that limit it.

    Args:
        shares: the share of a block in each resource that it takes.
        unknown: the resources that were left out because their demand or their limit is not known.
        unrounded: the missing keys of the GPU description without which more may be allocated than is counted here.
    """

    blocks_per_sm: int
    warps_per_block: int
    shares: Mapping[str, ResourceShare]
    unknown: tuple[str, ...] = ()
    unrounded: tuple[str, ...] = ()

    @property
    def by_resource(self) -> dict[str, int]:
        """Return the number of blocks that each limit would allow by itself."""
        return {name: share.room // share.takes for name, share in self.shares.items()}

    @property
    def notes(self) -> tuple[str, ...]:
        """Return sentences about what makes the number doubtful."""
        if not self.unrounded:
            return ()
        return (
            f"{', '.join(self.unrounded)} not known: registers or shared memory count without rounding up to the units"
            " in which they are allocated, so that fewer blocks may be resident",
        )

    @property
    def limiting(self) -> tuple[str, ...]:
        """Return the resources that allow no more."""
        return tuple(name for name, blocks in self.by_resource.items() if blocks == self.blocks_per_sm)

    def __str__(self) -> str:
        """Return the occupancy as a sentence.

        >>> print(occupancy(SmLimits.of_sm(86), warps_per_block=8, registers=96))
        2 blocks of 8 warps can be resident: registers limit
        """
        blocks = "1 block" if self.blocks_per_sm == 1 else f"{self.blocks_per_sm} blocks"
        warps = "1 warp" if self.warps_per_block == 1 else f"{self.warps_per_block} warps"
        verb = "limits" if self.limiting == ("shared memory",) else "limit"
        return f"{blocks} of {warps} can be resident: {' and '.join(self.limiting)} {verb}"


def occupancy(
    limits: SmLimits,
    *,
    warps_per_block: int,
    registers: int | None = None,
    shared_bytes: int | None = None,
    barriers: int = 0,
) -> Occupancy:
    """Return how many blocks fit on one SM at a time, whatever the grid, with all shared memory that an SM can offer.

    Args:
        registers: the registers per thread, as `ptxas -v` prints them. None means that they are not known.
        shared_bytes: the shared memory per block, static and dynamic. None means that it is not known.
        barriers: the barriers per block.

    Raises:
        InputError: a block that fits on no SM, naming the resource; or nothing known that limits the blocks.

    Source: each limit over the allocated demand, as S. Hong and H. Kim, ISCA 2009, take it from the vendor's
        occupancy calculator; allocation in whole units, files of registers, barriers and what is reserved from NVIDIA,
        `cuda_occupancy.h`. Its other test of registers, that a block with its warps rounded up to whole parts has no
        more than an SM, follows: with r registers a warp, ceil(warps / parts) * r * parts > registers means that fewer
        than warps / parts of them fit in a part.
    """
    if warps_per_block < 1:
        raise InputError(f"warps per block must be at least 1, not {warps_per_block}")
    if registers is not None and registers < 0:
        raise InputError(f"registers per thread must be at least 0, not {registers}")
    if registers is not None and limits.thread_registers is not None and registers > limits.thread_registers:
        raise InputError(f"{registers} registers per thread: a thread has at most {limits.thread_registers}")
    if barriers < 0:
        raise InputError(f"barriers per block must be at least 0, not {barriers}")
    if limits.block_shared_bytes is not None and shared_bytes is not None and shared_bytes > limits.block_shared_bytes:
        raise InputError(
            f"the block needs {shared_bytes} bytes of shared memory, a block may have {limits.block_shared_bytes}"
        )
    # each resource is counted on its own, as the vendor's calculator does
    demands = {
        "blocks": (1, limits.blocks, "blocks"),
        "warps": (warps_per_block, limits.warps, "warps"),
        "registers": _register_demand(limits, warps_per_block, registers),
        "shared memory": (_shared_demand(limits, shared_bytes), limits.shared_bytes, "bytes of shared memory"),
        "barriers": (barriers if limits.barriers else 0, limits.barriers, "barriers"),
    }
    found: dict[str, ResourceShare] = {}
    unknown: list[str] = []
    for name, (demand, limit, unit) in demands.items():
        if demand is None or (limit is None and demand):
            unknown.append(name)
        elif limit is not None and demand:
            found[name] = ResourceShare(demand, limit, unit)
            if demand > limit:
                raise InputError(f"the block fits on no SM: it needs {demand} {unit}, an SM has {limit}")
    if not found:
        raise InputError(f"the occupancy is not known: no limit is, for {', '.join(unknown)}; give the active blocks")
    # each resource limits the blocks on its own, and the tightest limit counts
    most = min(share.room // share.takes for share in found.values())
    return Occupancy(most, warps_per_block, found, tuple(unknown), tuple(_unknown_units(limits, found)))


_ALLOCATION = {"registers": ("register_unit", "register_scope"), "shared memory": ("shared_unit",)}


def _unknown_units(limits: SmLimits, used: Iterable[str]) -> Iterator[str]:
    names = [name for resource in used for name in _ALLOCATION.get(resource, ())]
    yield from (f"limits.{name}" for name in names if getattr(limits, name) is None)


def _register_demand(limits: SmLimits, warps: int, registers: int | None) -> tuple[int | None, int | None, str]:
    """Return a block's demand, the room of an SM, and their unit: registers, or warps if there are several files."""
    if registers is None:
        return None, limits.registers, "registers"
    warp = limits.warp_size * registers
    if limits.register_scope != "warp":
        # allocation per block: the registers of all its warps are rounded together
        return _round_up(warps * warp, limits.register_unit), limits.registers, "registers"
    allocated = _round_up(warp, limits.register_unit)
    if limits.register_parts == 1 or limits.registers is None or not allocated:
        return warps * allocated, limits.registers, "registers"
    # the registers of a warp lie in one file, so what is left over in a file is lost
    room = limits.registers // limits.register_parts // allocated * limits.register_parts
    return warps, room, f"warps of {allocated} registers"


def _shared_demand(limits: SmLimits, asked: int | None) -> int | None:
    if asked is None:
        return None
    if asked < 0:
        raise InputError(f"shared memory must be at least 0 bytes, not {asked}")
    return _round_up(asked + limits.reserved_shared_bytes, limits.shared_unit)


def _round_up(demand: int, unit: int | None) -> int:
    return demand if unit is None else -(-demand // unit) * unit


@cache
def residency() -> Mapping[int, SmLimits]:
    """Return the limits of an SM by compute capability, as `data/residency.tsv` lists them."""
    text = (resources.files("makespan") / "data" / "residency.tsv").read_text("utf-8")
    columns, *rows = (line.split("\t") for line in text.splitlines() if not line.startswith("#"))
    numbers = ({name: int(cell) for name, cell in zip(columns, row, strict=True) if cell != "-"} for row in rows)
    return {row.pop("sm"): SmLimits(warp_size=_WARP_SIZE, register_scope="warp", **row) for row in numbers}
