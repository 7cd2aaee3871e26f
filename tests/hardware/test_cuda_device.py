"""A GPU by the driver API: what the driver is asked, in the stead of which a table answers here."""

import ctypes
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from makespan.hardware.device import HOG, CudaDevice, DeviceLaunch, NeighbourLoad
from makespan.host.errors import MeasurementError
from makespan.kernels import ptx, sass

ATTRIBUTES = {
    "COMPUTE_CAPABILITY_MAJOR": 8,
    "COMPUTE_CAPABILITY_MINOR": 6,
    "MULTIPROCESSOR_COUNT": 46,
    "CLOCK_RATE": 1_725_000,
    "L2_CACHE_SIZE": 4 << 20,
}
SIZES = {"kernel of code": (8, 4, 8), "hog of ptx": (8, 8, 8, 8)}


class Driver:
    """Answers like `cuda.bindings.driver`, keeps memory in bytes, and remembers what it was asked."""

    def __init__(self, **failing: int) -> None:
        self.failing, self.asked, self.memory, self.next = failing, [], {}, 0x1000  # type: ignore[var-annotated]
        self.CUfunction_attribute = SimpleNamespace(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES="most shared")
        self.CUdevice_attribute = SimpleNamespace(**{f"CU_DEVICE_ATTRIBUTE_{name}": name for name in ATTRIBUTES})

    def __getattr__(self, name: str) -> Callable[..., tuple[Any, ...]]:
        if name.startswith("_"):
            raise AttributeError(name)

        def function(*arguments: Any) -> tuple[Any, ...]:
            self.asked.append((name, *arguments))
            if name in self.failing:
                return (self.failing[name],) + (None,) * 9
            found = getattr(self, f"_{name}", lambda *_: None)(*arguments)
            return (0,) if found is None else (0, found)

        return function

    def names(self) -> list[str]:
        return [each[0] for each in self.asked]

    def _cuDeviceGetCount(self) -> int:  # noqa: N802 - the driver's
        return 1

    def _cuDeviceGetName(self, length: int, device: object) -> bytes:  # noqa: N802
        return b"NVIDIA Test\0\0"

    def _cuDriverGetVersion(self) -> int:  # noqa: N802
        return 13010

    def _cuDeviceGetAttribute(self, name: str, device: object) -> int:  # noqa: N802
        return ATTRIBUTES[name]

    def _cuGetErrorString(self, code: int) -> bytes:  # noqa: N802
        return b"no CUDA-capable device is detected"

    def _cuModuleLoadData(self, image: bytes) -> str:  # noqa: N802
        return "ptx" if image.startswith(b".version") else "code"

    def _cuModuleGetFunction(self, module: str, name: bytes) -> str:  # noqa: N802
        return f"{name.decode()} of {module}"

    def _cuMemAlloc(self, size: int) -> int:  # noqa: N802
        self.next += 1 << 32
        self.memory[self.next] = bytearray(min(size, 4096))
        return self.next

    def _cuMemcpyHtoD(self, address: int, data: bytes, size: int) -> None:  # noqa: N802
        self.memory[address][:size] = data

    def _cuMemcpyDtoH(self, data: bytearray, address: int, size: int) -> None:  # noqa: N802
        data[:] = self.memory[address][:size]

    def _cuLaunchKernel(self, kernel: str, *given: Any) -> None:  # noqa: N802
        pointers = (ctypes.c_void_p * len(SIZES[kernel])).from_address(given[8])
        passed = [ctypes.string_at(at or 0, size) for at, size in zip(pointers, SIZES[kernel], strict=True)]
        self.asked[-1] = ("launch", kernel, *given[:8], passed)


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Driver:
    found = Driver()
    monkeypatch.setitem(sys.modules, "cuda.bindings.driver", found)
    return found


ARGUMENTS = [(7).to_bytes(8, "little"), (35).to_bytes(4, "little"), (9).to_bytes(8, "little")]


def test_it_says_who_it_is(driver: Driver) -> None:
    told = CudaDevice(0).identity
    assert (told.name, told.capability, told.driver, told.sms) == ("NVIDIA Test", "8.6", "CUDA 13.1", 46)
    assert (told.clock_khz, told.virtual) == (1_725_000, False)


def test_a_kernel_gets_the_bytes_of_its_arguments(driver: Driver) -> None:
    device = CudaDevice(0)
    device.load(b"\x7fELF", "kernel")
    assert device.launch(DeviceLaunch((2, 1, 1), (40, 1, 1), 64, ARGUMENTS), NeighbourLoad.IDLE) == ()
    (launched,) = [each for each in driver.asked if each[0] == "launch"]
    assert launched == ("launch", "kernel of code", 2, 1, 1, 40, 1, 1, 64, 0, ARGUMENTS)
    assert ("cuFuncSetAttribute", "kernel of code", "most shared", 64) in driver.asked
    assert driver.names()[-1] == "cuCtxSynchronize"
    device.load(b"\x7fELF", "kernel")
    assert driver.names()[-3:] == ["cuModuleUnload", "cuModuleLoadData", "cuModuleGetFunction"]


def test_memory_is_written_and_read(driver: Driver) -> None:
    device = CudaDevice(0)
    address = device.allocate(4)
    device.write(address, b"abcd")
    assert device.read(address, 4) == b"abcd"
    device.overwrite_cache()
    device.overwrite_cache()
    fills = [each for each in driver.asked if each[0] == "cuMemsetD8"]
    assert [each[3] for each in fills] == [8 << 20] * 2
    assert driver.names().count("cuMemAlloc") == 2


def test_neighbours_read_memory_on_all_sms_but_one_and_say_where(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("makespan.hardware.device.time", SimpleNamespace(sleep=lambda seconds: None))
    device = CudaDevice(0)
    device.load(b"\x7fELF", "kernel")
    assert device.launch(DeviceLaunch((1, 1, 1), (40, 1, 1), 0, ARGUMENTS), NeighbourLoad.HOG) == (0,) * 45
    hog, kernel = [each for each in driver.asked if each[0] == "launch"]
    assert hog[:5] == ("launch", "hog of ptx", 45, 1, 1)
    assert kernel[1] == "kernel of code"


def test_neighbours_are_code_that_assemblers_take() -> None:
    code = sass.disassemble(sass.assemble_ptx(ptx.parse(HOG).text, "hog", "sm_86"), "hog", "hog").kernel("hog")
    assert [each.name for each in code.code if each.name == "LDG"]


@pytest.mark.parametrize(
    ("name", "why"),
    [("cuInit", "the GPU failed: cuInit: no CUDA-capable device"), ("cuMemAlloc", "the GPU failed: cuMemAlloc: ")],
)
def test_what_the_driver_refuses_is_one_line(driver: Driver, name: str, why: str) -> None:
    driver.failing = {name: 100}
    with pytest.raises(MeasurementError, match=why):
        CudaDevice(0).allocate(4)


def test_a_gpu_that_is_not_there_is_none(driver: Driver) -> None:
    with pytest.raises(MeasurementError, match="no GPU 1: the driver knows 1"):
        CudaDevice(1)


def test_without_a_driver_there_is_no_gpu(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(flags: int) -> None:
        raise RuntimeError('"cuda" is an NVIDIA driver library\nlong')

    monkeypatch.setattr(driver, "cuInit", missing, raising=False)
    with pytest.raises(MeasurementError, match=r'no driver of NVIDIA: "cuda" is an NVIDIA driver library$'):
        CudaDevice(0)
