"""A device that is a simulation of the model: its truth is known, and what it says is no measurement."""

from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum

from makespan.bounds import pessimistic
from makespan.errors import InputError, MeasurementError
from makespan.flow import WARP_LANES
from makespan.instance import Group, Instance
from makespan.program import MAX_CYCLES_OF_PLACE, Program
from makespan.simulate import POLICIES, Choices, run
from makespan.simulate.choices import ASSIGNMENTS, LATENCIES, PATHS, Draws
from makespan.validation.device import Extent, Identity, Neighbours
from makespan.validation.instrument import RECORD_BYTES

_ALIGNED = 256
_EVERY = 8
_LATE = 4
_LARGEST_BASE = 1 << 40


class Fault(StrEnum):
    """How a device is not what the model says, in every eighth launch.

    Args:
        LATE: latencies are four times the largest of the machine.
        IDLE: the scheduler leaves warps that are ready waiting, for as long as the pessimistic bound.
    """

    LATE = "late"
    IDLE = "idle"


class VirtualDevice:
    """Runs of the machine of an instance, with policies, latencies and paths that are drawn anew in every launch.

    Args:
        instance: the warps of a block with records, alone on an SM.
        capability: the compute capability that it claims.
        seed: of all that is drawn.
        sms: a block runs on the SM of its number, modulo this; blocks that share an SM do not disturb each other.
    """

    def __init__(
        self, instance: Instance, capability: str, seed: int, fault: Fault | None = None, sms: int = 4
    ) -> None:
        self.instance, self._fault = instance, fault
        self._draws = Draws(seed)
        self._memory: dict[int, bytearray] = {}
        self._next, self._launches = _ALIGNED, 0
        name = f"virtual, seed {seed}" + (f", {fault}" if fault else "")
        self.identity = Identity(name, capability, "none", sms, None, virtual=True)
        self._clocks = tuple(map(_clock_reads, instance.programs()))

    def load(self, image: bytes, kernel: str) -> None:
        """See `Device`: it executes the instance, whatever is loaded."""

    def allocate(self, size: int) -> int:
        """See `Device`."""
        address = self._next
        self._memory[address] = bytearray(size)
        self._next += -(-max(size, 1) // _ALIGNED) * _ALIGNED
        return address

    def write(self, address: int, data: bytes) -> None:
        """See `Device`."""
        memory, at = self._place(address, len(data))
        memory[at : at + len(data)] = data

    def read(self, address: int, size: int) -> bytes:
        """See `Device`."""
        memory, at = self._place(address, size)
        return bytes(memory[at : at + size])

    def overwrite_cache(self) -> None:
        """See `Device`: caches are in the latencies, which are drawn anyway."""

    def launch(
        self, grid: Extent, block: Extent, shared: int, arguments: Sequence[bytes], neighbours: Neighbours
    ) -> tuple[int, ...]:
        """See `Device`: the last argument says where the records are."""
        del shared, neighbours
        records, threads = int.from_bytes(arguments[-1], "little"), block[0] * block[1] * block[2]
        is_faulty = self._fault is not None and self._launches % _EVERY == _EVERY - 1
        self._launches += 1
        for number in range(grid[0] * grid[1] * grid[2]):
            base, sm = self._draws.below(_LARGEST_BASE), number % self.identity.sms
            for warp, (start, end) in enumerate(self._spans(is_faulty=is_faulty)):
                lanes = min(WARP_LANES, threads - warp * WARP_LANES)
                one = _record(base + start, sm, warp, base + end)
                self.write(records + (number * threads + warp * WARP_LANES) * RECORD_BYTES, one * lanes)
        return ()

    def _spans(self, *, is_faulty: bool) -> list[tuple[int, int]]:
        """The cycles in which every warp reads the clock first and last."""
        below = self._draws.below
        instance = _slowed(self.instance) if is_faulty and self._fault is Fault.LATE else self.instance
        choices = Choices(
            LATENCIES[below(len(LATENCIES))],
            PATHS[below(len(PATHS))],
            below(1 << 32),
            interval=LATENCIES[below(len(LATENCIES))],
            assignment=ASSIGNMENTS[below(len(ASSIGNMENTS))],
        )
        schedule = run(instance, list(POLICIES)[below(len(POLICIES))], choices)
        spans: dict[int, tuple[int, int]] = {}
        for cycle, warp, place in schedule.ops(instance):
            if place in self._clocks[warp]:
                spans[warp] = spans.get(warp, (cycle, cycle))[0], cycle
        idle = pessimistic(instance) if is_faulty and self._fault is Fault.IDLE else 0
        return [(start, end + idle) for _, (start, end) in sorted(spans.items())]

    def _place(self, address: int, size: int) -> tuple[bytearray, int]:
        start = max((each for each in self._memory if each <= address), default=None)
        if start is None or address - start + size > len(self._memory[start]):
            raise MeasurementError(f"{self.identity.name}: no {size} bytes of memory at {address:#x}")
        return self._memory[start], address - start


def _clock_reads(program: Program) -> frozenset[int]:
    """The places that read the clock."""
    found = frozenset(number for number, origin in enumerate(program.origins) if "SR_CLOCK" in origin.text)
    if not found:
        raise InputError("a virtual device needs a kernel that reads its clock: one with records")
    return found


def _slowed(instance: Instance) -> Instance:
    """The same warps with all latencies at four times their upper ends."""

    def slow(program: Program) -> Program:
        most = (min(MAX_CYCLES_OF_PLACE, _LATE * timing.latency[1]) for timing in program.timings)
        timings = (t._replace(latency=(late, late)) for t, late in zip(program.timings, most, strict=True))
        return replace(program, timings=tuple(timings))

    return replace(instance, groups=tuple(Group(slow(group.program), group.warps) for group in instance.groups))


def _record(start: int, sm: int, slot: int, end: int) -> bytes:
    """What `instrument` lets each thread write down."""
    fields = ((start, 8), (sm, 4), (slot, 4), (end, 8), (0, 8))
    return b"".join(number.to_bytes(size, "little") for number, size in fields)
