"""A GPU of this computer, by the driver API of CUDA. Package and library are looked for when it is opened."""

import ctypes
import time
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from makespan.hardware.device import DeviceIdentity, LaunchExtent, NeighbourLoad
from makespan.host.errors import MeasurementError

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

    def launch(
        self,
        grid: LaunchExtent,
        block: LaunchExtent,
        shared: int,
        arguments: Sequence[bytes],
        neighbours: NeighbourLoad,
    ) -> tuple[int, ...]:
        """Run the kernel, see `MeasuredDevice`."""
        if shared:  # the driver grants more than 48 KiB only on request
            attribute = self._cuda.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            self._do("cuFuncSetAttribute", self._kernel, attribute, shared)
        others = self._start_hog() if neighbours is NeighbourLoad.HOG else None
        self._started(self._kernel, grid, block, shared, arguments, 0)
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
        self._started(hog, (blocks, 1, 1), (_HOG_THREADS, 1, 1), 0, arguments, stream)
        # the neighbours must run before the measured kernel starts, or it would get their SMs
        time.sleep(_HEAD_START_SECONDS)
        return sms, 4 * blocks

    def _started(
        self, kernel: Any, grid: LaunchExtent, block: LaunchExtent, shared: int, arguments: Sequence[bytes], stream: Any
    ) -> None:
        held = [ctypes.create_string_buffer(argument, len(argument)) for argument in arguments]
        pointers = (ctypes.c_void_p * len(held))(*map(ctypes.addressof, held))
        self._do("cuLaunchKernel", kernel, *grid, *block, shared, stream, ctypes.addressof(pointers), 0)

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
