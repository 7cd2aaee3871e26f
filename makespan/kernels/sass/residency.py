"""The blocks of a kernel that an SM holds at the same time: its occupancy."""

import re

from makespan.host.errors import InputError, MissingInput, MissingInputsError, prefix_errors
from makespan.kernels.sass.module import SassKernel
from makespan.model.machine.occupancy import Occupancy, SmLimits, occupancy

_SHARING = re.compile(r"(LDS|LDSM|STS|STSM|ATOMS|LDGSTS|LD|ST|ATOM|SYNCS|UBLK.*|UT.*)")
"""Opcodes that can reach shared memory."""
_EXTERN = re.compile(r"\.extern\s+\.shared\b")


def residency(
    kernel: SassKernel, threads: int, dynamic_shared: int | None = None, limits: SmLimits | None = None
) -> Occupancy:
    """Return the blocks of a launch that an SM can hold, if nothing else is on it.

    It is the most there can be: a driver may leave an SM less shared memory, and other kernels may take their share.

    Args:
        threads: of a block.
        dynamic_shared: bytes of shared memory that the launch gives each block, besides those that the kernel declares;
            None is not known, which counts as none where the kernel has no use for any.
        limits: of the SM, which may be of a later architecture than the code; None for those of the code.

    >>> from makespan.kernels.sass.module import KernelResources
    >>> saxpy = SassKernel("saxpy", "saxpy.cubin", "saxpy.cubin", 86, (), KernelResources(registers=96))
    >>> print(residency(saxpy, 256))
    2 blocks of 8 warps can be resident: registers limit

    Raises:
        MissingInputsError: it is not known how much shared memory the launch gives.
        InputError: a block that the kernel or the architecture does not allow; or the limits of the architecture are
            not known.
    """
    takes, where = kernel.resources, f"{kernel.source}: kernel {kernel.name}"
    if takes.most_threads is not None and threads > takes.most_threads:  # such a launch would fail
        raise InputError(f"{where} allows blocks of {takes.most_threads} threads at most, not {threads}")
    if missing := missing_shared(kernel, dynamic_shared):
        raise MissingInputsError.of(where, missing)
    with prefix_errors(where):
        room = limits or SmLimits.of_sm(kernel.sm)
        return occupancy(
            room,
            warps_per_block=room.warps_of(threads),
            registers=takes.registers,
            shared_bytes=takes.shared_bytes + (dynamic_shared or 0),
            barriers=takes.barriers,
        )


def missing_shared(kernel: SassKernel, dynamic_shared: int | None) -> tuple[MissingInput, ...]:
    """Return the shared memory of a launch as a missing input, where the kernel may use it."""
    if dynamic_shared is not None or not _may_use_dynamic_shared(kernel):
        return ()
    what = "the bytes of shared memory that the launch gives each block, 0 for none"
    return (MissingInput("dynamic_shared", "N", what),)


def _may_use_dynamic_shared(kernel: SassKernel) -> bool:
    """Return whether the kernel may have an array of a size that the launch says; only PTX tells for sure."""
    if not any(_SHARING.fullmatch(instruction.name) for instruction in kernel.code):
        return False
    return kernel.ptx_text is None or _EXTERN.search(kernel.ptx_text) is not None
