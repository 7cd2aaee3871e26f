"""The devices that a campaign may measure: a GPU of this computer, or a simulation of the model.

A GPU is asked by the driver API of CUDA; package and library are looked for when it is opened. The truth of a simulated
device is known, and what it reports is no measurement.
"""

import ctypes
import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from importlib import import_module
from itertools import chain
from math import prod
from typing import Any, NamedTuple, Protocol, TypeAlias

import msgspec

from makespan.hardware.instrument import RECORD_BYTES
from makespan.host.errors import InputError, MeasurementError
from makespan.kernels.flow import WARP_LANES
from makespan.model.gpu import BlockTrace, GpuInstance, SmHistory
from makespan.model.machine import is_compatible
from makespan.model.program import BARRIER, MAX_CYCLES_OF_PLACE, Program
from makespan.model.simulate import POLICIES, Choices, gpu_run
from makespan.model.simulate.choices import ASSIGNMENTS, LATENCIES, PATHS, SplitMix
from makespan.proof.bounds.theorem_g import theorem_g

LaunchExtent: TypeAlias = tuple[int, int, int]


class CacheState(StrEnum):
    """The state of the caches when a kernel starts.

    Args:
        WARM: the kernel has just run on the same buffers.
        THRASHED: memory of twice the size of the L2 cache was written after the buffers were filled.
        COLD: the same, and the code was loaded anew.
    """

    WARM = "warm"
    THRASHED = "thrashed"
    COLD = "cold"


class NeighbourLoad(StrEnum):
    """The load of the other SMs: nothing that the campaign started, or reading memory all the time."""

    IDLE = "idle"
    HOG = "hog"


class DeviceIdentity(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The identity of the device that was measured.

    Args:
        name: the name that the driver reports.
        capability: the compute capability, such as `8.6`.
        driver: the version of the driver.
        sms: the number of SMs.
        clock_khz: the highest clock of the SMs in kHz. None means that the driver does not report it.
        virtual: whether the device simulates the model, so that its runs are no measurements.
    """

    name: str
    capability: str
    driver: str
    sms: int
    clock_khz: int | None
    virtual: bool


class DeviceLaunch(NamedTuple):
    """A launch of the kernel that is loaded.

    Args:
        shared: the bytes of dynamic shared memory of a block.
        arguments: the bytes of every parameter.
    """

    grid: LaunchExtent
    block: LaunchExtent
    shared: int
    arguments: Sequence[bytes]


class MeasuredDevice(Protocol):
    """A GPU, or a simulation of one. Failures raise `MeasurementError`."""

    @property
    def identity(self) -> DeviceIdentity:
        """Return the identity of the device."""

    def load(self, image: bytes, kernel: str) -> None:
        """Load machine code in place of what was loaded before. `launch` runs this kernel from now on."""

    def allocate(self, size: int) -> int:
        """Return the address of `size` bytes of its memory, a multiple of 256."""

    def write(self, address: int, data: bytes) -> None:
        """Copy to its memory."""

    def read(self, address: int, size: int) -> bytes:
        """Copy from its memory."""

    def overwrite_cache(self) -> None:
        """Write memory of twice the size of its L2 cache."""

    def launch(self, launch: DeviceLaunch, neighbours: NeighbourLoad) -> tuple[int, ...]:
        """Run the kernel to its end, and return the SMs on which neighbours ran."""


_HOG_BYTES = 1 << 28
_HOG_THREADS = 1024
_HOG_NANOSECONDS = 10_000_000
_HEAD_START_SECONDS = 0.001
_NAME_BYTES = 256

HOG = """\
.version 6.3
.target sm_75
.address_size 64
.visible .entry hog(.param .u64 memory, .param .u64 mask, .param .u64 nanoseconds, .param .u64 sms)
{
    .reg .pred %p;
    .reg .u32 %a, %b, %c;
    .reg .u64 %memory, %mask, %end, %now, %at, %step, %sms;
    ld.param.u64 %memory, [memory];
    ld.param.u64 %mask, [mask];
    ld.param.u64 %end, [nanoseconds];
    ld.param.u64 %sms, [sms];
    mov.u32 %a, %ctaid.x;
    mul.wide.u32 %at, %a, 4;
    add.u64 %sms, %sms, %at;
    mov.u32 %b, %smid;
    st.global.u32 [%sms], %b;
    mov.u32 %b, %ntid.x;
    mov.u32 %c, %tid.x;
    mad.lo.u32 %c, %a, %b, %c;
    mul.wide.u32 %at, %c, 128;
    mov.u32 %a, %nctaid.x;
    mul.lo.u32 %a, %a, %b;
    mul.wide.u32 %step, %a, 128;
    mov.u64 %now, %globaltimer;
    add.u64 %end, %end, %now;
again:
    and.b64 %at, %at, %mask;
    add.u64 %now, %memory, %at;
    ld.volatile.global.u32 %a, [%now];
    add.u64 %at, %at, %step;
    mov.u64 %now, %globaltimer;
    setp.lt.u64 %p, %now, %end;
    @%p bra again;
    ret;
}
"""
"""A kernel that reads memory for some time on all SMs but one, and records the SM of each of its blocks."""


class CudaDevice:
    """The GPU with this number.

    Raises:
        MeasurementError: no package, no driver, no such GPU.
    """

    def __init__(self, number: int) -> None:
        try:
            self._cuda: Any = import_module("cuda.bindings.driver")
        except ImportError:
            raise MeasurementError(
                "no GPU can be measured: the package cuda-bindings is missing: pip install 'makespan[gpu]'; or try"
                " --device virtual:1, which measures nothing"
            ) from None
        try:
            self._do("cuInit", 0)
        except RuntimeError as error:
            raise MeasurementError(
                f"no GPU can be measured: no driver of NVIDIA: {str(error).splitlines()[0]}"
            ) from None
        count = self._do("cuDeviceGetCount")
        if number >= count:
            raise MeasurementError(f"no GPU {number}: the driver knows {count or 'none'}")
        self._device = self._do("cuDeviceGet", number)
        self._do("cuCtxSetCurrent", self._do("cuDevicePrimaryCtxRetain", self._device))
        self._module: Any = None
        self._kernel: Any = None
        self._hog: Any = None
        self._scratch: tuple[int, int] | None = None

    @property
    def identity(self) -> DeviceIdentity:
        """Return the identity as the driver reports it."""
        name = self._do("cuDeviceGetName", _NAME_BYTES, self._device)
        driver = self._do("cuDriverGetVersion")
        return DeviceIdentity(
            name.split(b"\0")[0].decode("utf-8", "replace"),
            f"{self._asked('COMPUTE_CAPABILITY_MAJOR')}.{self._asked('COMPUTE_CAPABILITY_MINOR')}",
            f"CUDA {driver // 1000}.{driver % 1000 // 10}",
            self._asked("MULTIPROCESSOR_COUNT"),
            self._asked("CLOCK_RATE") or None,
            virtual=False,
        )

    def load(self, image: bytes, kernel: str) -> None:
        """Load a kernel, see `MeasuredDevice`."""
        if self._module is not None:
            self._do("cuModuleUnload", self._module)
        self._module = self._do("cuModuleLoadData", image)
        self._kernel = self._do("cuModuleGetFunction", self._module, kernel.encode())

    def allocate(self, size: int) -> int:
        """Allocate memory, see `MeasuredDevice`. It is freed with the process."""
        return int(self._do("cuMemAlloc", max(size, 1)))

    def write(self, address: int, data: bytes) -> None:
        """Copy to memory, see `MeasuredDevice`."""
        self._do("cuMemcpyHtoD", address, data, len(data))

    def read(self, address: int, size: int) -> bytes:
        """Copy from memory, see `MeasuredDevice`."""
        data = bytearray(size)
        self._do("cuMemcpyDtoH", data, address, size)
        return bytes(data)

    def overwrite_cache(self) -> None:
        """Overwrite the L2 cache, see `MeasuredDevice`."""
        if self._scratch is None:
            size = 2 * self._asked("L2_CACHE_SIZE")  # so that no line of the buffers stays
            self._scratch = self.allocate(size), size
        self._do("cuMemsetD8", self._scratch[0], 0, self._scratch[1])
        self._do("cuCtxSynchronize")

    def launch(self, launch: DeviceLaunch, neighbours: NeighbourLoad) -> tuple[int, ...]:
        """Run the kernel, see `MeasuredDevice`."""
        if launch.shared:  # the driver grants more than 48 KiB only on request
            attribute = self._cuda.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            self._do("cuFuncSetAttribute", self._kernel, attribute, launch.shared)
        others = self._start_hog() if neighbours is NeighbourLoad.HOG else None
        self._started(self._kernel, launch, 0)
        self._do("cuCtxSynchronize")
        if others is None:
            return ()
        data = self.read(*others)
        return tuple(int.from_bytes(data[at : at + 4], "little") for at in range(0, len(data), 4))

    def _start_hog(self) -> tuple[int, int]:
        """Let all SMs but one read memory. Return the address and the size of the numbers of these SMs."""
        blocks = max(self._asked("MULTIPROCESSOR_COUNT") - 1, 1)
        if self._hog is None:
            module = self._do("cuModuleLoadData", HOG.encode() + b"\0")
            stream = self._do("cuStreamCreate", 1)  # which does not wait for the default stream
            where = self.allocate(_HOG_BYTES), self.allocate(4 * blocks)
            self._hog = self._do("cuModuleGetFunction", module, b"hog"), stream, where
        hog, stream, (memory, sms) = self._hog
        numbers = (memory, _HOG_BYTES - 4, _HOG_NANOSECONDS, sms)
        arguments = [number.to_bytes(8, "little") for number in numbers]
        self._started(hog, DeviceLaunch((blocks, 1, 1), (_HOG_THREADS, 1, 1), 0, arguments), stream)
        # the neighbours must run before the measured kernel starts, or it would get their SMs
        time.sleep(_HEAD_START_SECONDS)
        return sms, 4 * blocks

    def _started(self, kernel: Any, launch: DeviceLaunch, stream: Any) -> None:
        held = [ctypes.create_string_buffer(argument, len(argument)) for argument in launch.arguments]
        pointers = (ctypes.c_void_p * len(held))(*map(ctypes.addressof, held))
        self._do(
            "cuLaunchKernel", kernel, *launch.grid, *launch.block, launch.shared, stream, ctypes.addressof(pointers), 0
        )

    def _asked(self, attribute: str) -> int:
        code = getattr(self._cuda.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{attribute}")
        return int(self._do("cuDeviceGetAttribute", code, self._device))

    def _do(self, function: str, *arguments: Any) -> Any:
        """Call a function of the driver, and return what it returns besides the status.

        Raises:
            MeasurementError: another status than success.
        """
        status, *found = getattr(self._cuda, function)(*arguments)
        if int(status):
            _, words = self._cuda.cuGetErrorString(status)
            said = words.decode("utf-8", "replace") if isinstance(words, bytes) else f"error {int(status)}"
            raise MeasurementError(f"the GPU failed: {function}: {said}")
        return found[0] if found else None


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

    def launch(self, launch: DeviceLaunch, neighbours: NeighbourLoad) -> tuple[int, ...]:
        """Run the instance, see `MeasuredDevice`. The last argument is the address of the records."""
        del neighbours
        records, threads = int.from_bytes(launch.arguments[-1], "little"), prod(launch.block)
        gpu = replace(self._gpu, grids=(replace(self._gpu.grid, blocks=prod(launch.grid)),))
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


_NAME = re.compile(r"cuda:(?P<number>\d{1,3})|virtual:(?P<seed>\d{1,18})(?::(?P<fault>[a-z]{1,20}))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class NamedDevice:
    """A device that is not open yet.

    Args:
        number: the number of a GPU. None means a virtual device.
        seed: the seed of a virtual device.
        fault: the fault of a virtual device, if any.
    """

    number: int | None
    seed: int | None
    fault: DeviceFault | None

    def opened(self, capability: str, launch: Callable[[], GpuInstance]) -> MeasuredDevice:
        """Return the open device, which executes machine code for this compute capability.

        Args:
            launch: a function that returns the launch that a virtual device simulates.

        Raises:
            MeasurementError: there is no such device.
            InputError: the device does not execute the code.
        """
        if self.number is None:
            return SimulatedDevice(launch(), capability, self.seed or 0, self.fault)
        device = CudaDevice(self.number)
        has = int(device.identity.capability.replace(".", ""))
        if not is_compatible(int(capability.replace(".", "")), has):
            raise InputError(
                f"{device.identity.name} is of sm_{has} and does not execute this machine code: give --arch sm_{has},"
                " and the --gpu or --machine that it is"
            )
        return device


def named_device(name: str) -> NamedDevice:
    """Return the device of a name.

    Raises:
        InputError: no device has such a name.

    >>> named_device("virtual:7:late")
    NamedDevice(number=None, seed=7, fault=<DeviceFault.LATE: 'late'>)
    """
    match = _NAME.fullmatch(name)
    if match is None or (match["fault"] or "late") not in list(DeviceFault):
        known = ", ".join(DeviceFault)
        raise InputError(f"--device {name:.40}: expected cuda:N or virtual:SEED, perhaps with {known} behind")
    number, seed = (None if match[key] is None else int(match[key]) for key in ("number", "seed"))
    return NamedDevice(number, seed, None if match["fault"] is None else DeviceFault(match["fault"]))
