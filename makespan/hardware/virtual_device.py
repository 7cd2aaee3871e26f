"""A device that simulates the model. Its truth is known, and what it reports is no measurement."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from enum import StrEnum
from itertools import chain

from makespan.hardware.device import DeviceIdentity, LaunchExtent, NeighbourLoad
from makespan.hardware.instrument import RECORD_BYTES
from makespan.host.errors import InputError, MeasurementError
from makespan.kernels.flow import WARP_LANES
from makespan.model.gpu import BlockTrace, GpuInstance, SmHistory
from makespan.model.program import BARRIER, MAX_CYCLES_OF_PLACE, Program
from makespan.model.simulate import POLICIES, Choices, gpu_run
from makespan.model.simulate.choices import ASSIGNMENTS, LATENCIES, PATHS, SplitMix
from makespan.proof.bounds.theorem_g import theorem_g

SMS = 4
"""The number of SMs of a device if none is given."""

_ALIGNED = 256
_EVERY = 8
_LATE = 4
_LARGEST_BASE = 1 << 40


class DeviceFault(StrEnum):
    """A way in which a device differs from the model, in every eighth launch.

    Args:
        LATE: latencies are four times the largest of the machine.
        IDLE: the scheduler lets ready warps wait for as long as the bound of the launch.
        FULL: the same, but only on SMs that are full.
    """

    LATE = "late"
    IDLE = "idle"
    FULL = "full"


class SimulatedDevice:
    """Runs of the model of a GPU, with policy, dispatcher, latencies and paths drawn for every launch.

    Args:
        gpu: the blocks with records, and the SMs on which they run. A launch sets the number of blocks.
        capability: the compute capability that the device claims.
        seed: the seed of all that is drawn.
    """

    def __init__(self, gpu: GpuInstance, capability: str, seed: int, fault: DeviceFault | None = None) -> None:
        self._gpu, self._fault = gpu, fault
        self._draws = SplitMix(seed)
        self._memory: dict[int, bytearray] = {}
        self._next, self._launches = _ALIGNED, 0
        name = f"virtual, seed {seed}" + (f", {fault}" if fault else "")
        self.identity = DeviceIdentity(name, capability, "none", gpu.sms, None, virtual=True)
        self._programs = tuple(program for program, warps in gpu.grid.block for _ in range(warps))
        self._clocks = tuple(map(_clock_reads, self._programs))

    def load(self, image: bytes, kernel: str) -> None:
        """Do nothing: the device executes its instance, whatever is loaded."""

    def allocate(self, size: int) -> int:
        """Allocate memory, see `MeasuredDevice`."""
        address = self._next
        self._memory[address] = bytearray(size)
        self._next += -(-max(size, 1) // _ALIGNED) * _ALIGNED  # addresses are multiples of 256, as on a GPU
        return address

    def write(self, address: int, data: bytes) -> None:
        """Copy to memory, see `MeasuredDevice`."""
        memory, at = self._place(address, len(data))
        memory[at : at + len(data)] = data

    def read(self, address: int, size: int) -> bytes:
        """Copy from memory, see `MeasuredDevice`."""
        memory, at = self._place(address, size)
        return bytes(memory[at : at + size])

    def overwrite_cache(self) -> None:
        """Do nothing: caches are part of the latencies, which are drawn anyway."""

    def launch(
        self,
        grid: LaunchExtent,
        block: LaunchExtent,
        shared: int,
        arguments: Sequence[bytes],
        neighbours: NeighbourLoad,
    ) -> tuple[int, ...]:
        """Run the instance, see `MeasuredDevice`. The last argument is the address of the records."""
        del shared, neighbours
        records, threads = int.from_bytes(arguments[-1], "little"), block[0] * block[1] * block[2]
        gpu = replace(self._gpu, grids=(replace(self._gpu.grid, blocks=grid[0] * grid[1] * grid[2]),))
        fault = self._fault if self._launches % _EVERY == _EVERY - 1 else None
        self._launches += 1
        for number, (sm, slot, spans) in enumerate(self._run(gpu, fault)):
            for warp, (start, end) in enumerate(spans):
                lanes = min(WARP_LANES, threads - warp * WARP_LANES)
                one = _record(start, sm, slot * len(spans) + warp, end)
                self.write(records + (number * threads + warp * WARP_LANES) * RECORD_BYTES, one * lanes)
        return ()

    def _run(self, gpu: GpuInstance, fault: DeviceFault | None) -> Iterator[tuple[int, int, list[tuple[int, int]]]]:
        """Yield, for every block, its SM, its slot there, and the first and last clock reading of each warp."""
        below = self._draws.below
        choices = Choices(
            LATENCIES[below(len(LATENCIES))],
            PATHS[below(len(PATHS))],
            below(1 << 32),
            interval=LATENCIES[below(len(LATENCIES))],
            assignment=ASSIGNMENTS[below(len(ASSIGNMENTS))],
        )
        policy, dispatch = list(POLICIES)[below(len(POLICIES))], gpu_run.DISPATCH[below(len(gpu_run.DISPATCH))]
        made = _slow_latencies(gpu) if fault is DeviceFault.LATE else gpu
        schedule = gpu_run.run_gpu(made, policy, dispatch, choices, delay=below(gpu.dispatch + 1))
        late = theorem_g(gpu).upper if fault in (DeviceFault.IDLE, DeviceFault.FULL) else 0
        sms = (history for history in schedule.histories for _ in range(history.sms))
        for sm, history in enumerate(sms):
            # the clocks of SMs begin at different values, as those of real SMs do
            base, blocks = below(_LARGEST_BASE), list(self._spans(history, schedule.courses))
            first = min(start for _, spans in blocks for start, _ in spans)
            is_full = len({slot for slot, _ in blocks}) == gpu.fitting(gpu.grid)
            idle = late if is_full or fault is DeviceFault.IDLE else 0
            for slot, spans in blocks:
                read = [base + cycle + idle * (cycle > first) for cycle in chain(*spans)]
                yield sm, slot, list(zip(read[::2], read[1::2], strict=True))

    def _spans(self, history: SmHistory, courses: Sequence[BlockTrace]) -> Iterator[tuple[int, list[tuple[int, int]]]]:
        """Yield, for every block of an SM, its slot, and the first and last clock reading of each warp."""
        for slot, course, issues in _block_issues(history, len(self._programs)):
            spans = []
            for program, clocks, path, cycles in zip(
                self._programs, self._clocks, courses[course].paths, issues, strict=True
            ):
                executed = (place for place in path if program.places[place].unit != BARRIER)
                read = [cycle for cycle, place in zip(cycles, executed, strict=True) if place in clocks]
                spans.append((read[0], read[-1]))  # the first reading and the last one
            yield slot, spans

    def _place(self, address: int, size: int) -> tuple[bytearray, int]:
        start = max((each for each in self._memory if each <= address), default=None)
        if start is None or address - start + size > len(self._memory[start]):
            raise MeasurementError(f"{self.identity.name}: no {size} bytes of memory at {address:#x}")
        return self._memory[start], address - start


def _clock_reads(program: Program) -> frozenset[int]:
    found = frozenset(number for number, origin in enumerate(program.origins) if "SR_CLOCK" in origin.text)
    if not found:
        raise InputError("a virtual device needs a kernel that reads its clock: one with records")
    return found


def _block_issues(history: SmHistory, warps: int) -> list[tuple[int, int, list[list[int]]]]:
    """Return, for every block of an SM, its slot, its trace, and the cycles in which each of its warps issues."""
    coming, there, found = defaultdict(list), dict[int, list[list[int]]](), []
    for cycle, begin in history.begins():
        coming[cycle].append(begin)
    stretches = (stretch.cycles for stretch in history.stretches for _ in range(stretch.repeat))
    for cycle, issued in enumerate(chain.from_iterable(stretches)):
        for begin in coming[cycle]:
            there[begin.slot] = [[] for _ in range(warps)]
            found.append((begin.slot, begin.course, there[begin.slot]))
        for slot, warp in issued:
            there[slot][warp].append(cycle)
    return found


def _slow_latencies(gpu: GpuInstance) -> GpuInstance:
    def slow(program: Program) -> Program:
        most = (min(MAX_CYCLES_OF_PLACE, _LATE * timing.latency[1]) for timing in program.timings)
        timings = (t._replace(latency=(late, late)) for t, late in zip(program.timings, most, strict=True))
        return replace(program, timings=tuple(timings))

    block = tuple((slow(program), warps) for program, warps in gpu.grid.block)
    return replace(gpu, grids=(replace(gpu.grid, block=block),))


def _record(start: int, sm: int, slot: int, end: int) -> bytes:
    """Return the bytes that `instrument` lets each thread write."""
    fields = ((start, 8), (sm, 4), (slot, 4), (end, 8), (0, 8))
    return b"".join(number.to_bytes(size, "little") for number, size in fields)
