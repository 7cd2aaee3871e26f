"""Resident blocks from what a cubin says of its kernel."""

import pytest

from makespan.host.errors import InputError
from makespan.kernels.sass import Address, KernelResources, SassInstruction, SassKernel, residency

WITH_ARRAY = ".version 8.0\n.extern  .shared .align 16 .b8 tile[];\n"
WITHOUT = ".version 8.0\n.shared .align 16 .b8 tile[400];\n"


def kernel(
    sm: int = 86,
    *opcodes: str,
    ptx: str | None = None,
    most: int | None = None,
    registers: int = 32,
    shared_bytes: int = 0,
    barriers: int = 0,
) -> SassKernel:
    code = tuple(SassInstruction(Address(16 * at), opcode) for at, opcode in enumerate(opcodes))
    resources = KernelResources(registers, shared_bytes, barriers=barriers, most_threads=most)
    return SassKernel("k", "k.cubin", "k.cu", sm, code, resources, ptx_text=ptx)


@pytest.mark.parametrize(
    ("made", "threads", "dynamic", "expected"),
    [
        (kernel(86), 256, None, "6 blocks of 8 warps can be resident: warps limit"),
        (kernel(80), 256, None, "8 blocks of 8 warps can be resident: warps and registers limit"),
        (kernel(75), 256, None, "4 blocks of 8 warps can be resident: warps limit"),
        (kernel(75), 225, None, "4 blocks of 8 warps can be resident: warps limit"),
        (kernel(86, registers=255), 32, None, "8 blocks of 1 warp can be resident: registers limit"),
        (kernel(86, shared_bytes=20 << 10), 32, 13 << 10, "2 blocks of 1 warp can be resident: shared memory limits"),
        (kernel(120, barriers=5), 32, 0, "4 blocks of 1 warp can be resident: barriers limit"),
    ],
)
def test_what_is_resident(made: SassKernel, threads: int, dynamic: int | None, expected: str) -> None:
    assert str(residency(made, threads, dynamic)) == expected


@pytest.mark.parametrize(
    ("made", "asks"),
    [
        (kernel(86, "LDG.E", "FADD"), False),
        (kernel(86, "LDS.64", ptx=WITHOUT), False),
        (kernel(86, "FADD", ptx=WITH_ARRAY), False),
        (kernel(86, "LDS.64"), True),
        (kernel(86, "LDS.64", ptx=WITH_ARRAY), True),
        (kernel(86, "LD.E", ptx=WITH_ARRAY), True),
        (kernel(90, "UTMALDG.2D"), True),
    ],
)
def test_shared_memory_that_a_launch_gives_is_asked_for_where_it_may_be_used(made: SassKernel, asks: bool) -> None:
    if asks:
        with pytest.raises(
            InputError, match="1 input is missing: the bytes of shared memory that the launch gives each block"
        ):
            residency(made, 64)
    assert asks or residency(made, 64) == residency(made, 64, 0)


@pytest.mark.parametrize(
    ("made", "threads", "message"),
    [
        (kernel(86, most=128), 129, "kernel k allows blocks of 128 threads at most, not 129"),
        (kernel(86), 1025, "kernel k: 1025 threads per block: a block of this GPU has at most 1024"),
        (kernel(86, registers=128), 1024, "it needs 32 warps of 4096 registers, an SM has 16"),
        (kernel(99), 32, "kernel k: what an SM of compute capability sm_99 holds is not known"),
        (kernel(86, registers=300), 32, "kernel k: 300 registers per thread: a thread has at most 255"),
    ],
)
def test_blocks_that_cannot_be_resident_are_refused(made: SassKernel, threads: int, message: str) -> None:
    with pytest.raises(InputError, match=message):
        residency(made, threads)
