"""What operations cost a warp: all the same, or by a measured table, as the port of the model to AMD needs it.

Source of the throughputs: an undated slide deck by Ostapenko, Southern Federal University, which ports the model of
Hong and Kim to an AMD GPU. It does not say how its table enters Comp_cycles; `comp_cycles` is this package's reading.
"""

from collections.abc import Collection, Iterator
from fractions import Fraction
from typing import Literal

from makespan.estimates.hong_kim.inputs import HongKimGPU, HongKimKernel, RealNumber, exact, whole
from makespan.host.errors import InputError

CompModel = Literal["uniform", "throughput"]


def comp_cycles(gpu: HongKimGPU, kernel: HongKimKernel, model: CompModel | None = None) -> Fraction:
    """Return the cycles in which one warp issues all its instructions, (11).

    Args:
        model: `uniform` charges `issue_cycles` for every instruction, as published for NVIDIA; `throughput` charges a
            warp-wide operation of the table warp_size / throughput. None: the table, if it has an operation of the
            kernel.

    Raises:
        InputError: `throughput` for a kernel none of whose operations the table names.
    """
    if chosen_comp_model(gpu, kernel, model) == "uniform":
        return gpu.measured("issue_cycles") * kernel.total_insts
    known = _known_operations(gpu, kernel)
    # instructions without a price of their own
    others = kernel.total_insts - sum(exact(count, name) for name, count in known.items())
    return (others * gpu.measured("issue_cycles") if others else Fraction(0)) + sum(
        exact(count, name) * gpu.warp_size / exact(gpu.throughput[name], name) for name, count in known.items()
    )


def needed_parameters(
    kernel: HongKimKernel, operations: Collection[str], model: CompModel | None = None
) -> Iterator[str]:
    """Yield the measured parameters that the model asks for, by their names in `HongKimGPU`.

    Args:
        operations: those of the table of throughputs.
        model: see `comp_cycles`.
    """
    if kernel.mem_insts:
        yield "mem_ld"
    if kernel.coal_mem_insts:
        yield "departure_del_coal"
    if kernel.uncoal_mem_insts:
        yield "departure_del_uncoal"
    charged = sum(exact(count, name) for name, count in kernel.operations.items() if name in operations)
    if model == "uniform" or charged < kernel.total_insts:  # the rest is charged issue_cycles
        yield "issue_cycles"


def chosen_comp_model(gpu: HongKimGPU, kernel: HongKimKernel, model: CompModel | None = None) -> CompModel:
    """Return the model that `comp_cycles` takes; raises as it does."""
    known = _known_operations(gpu, kernel)
    if model == "throughput" and not known:
        raise InputError(
            f"GPU {gpu.name}: the throughput model has no operation of this kernel to charge for;"
            f" known: {', '.join(gpu.throughput) or 'none'}; measure them with `makespan measure throughput`"
        )
    return model or ("throughput" if known else "uniform")


def _known_operations(gpu: HongKimGPU, kernel: HongKimKernel) -> dict[str, RealNumber]:
    return {name: count for name, count in kernel.operations.items() if name in gpu.throughput}


def operations_per_cycle(
    *, global_size: int, operations: int, seconds: RealNumber, clock_mhz: RealNumber, compute_units: int
) -> Fraction:
    """Return the throughput of one SM or compute unit, in operations per cycle.

    Args:
        global_size: work-items, or threads.
        operations: of each of them; an operation on a vector counts for its components.
        seconds: for all of them.

    Source: the slide deck, global_work_size N / (T GpuMHz computeUnits 10^6).
    """
    work = whole(global_size, "global_size") * whole(operations, "operations")
    # MHz, so 10^6
    cycles = exact(seconds, "seconds", positive=True) * exact(clock_mhz, "clock_mhz", positive=True) * 10**6
    return Fraction(work) / (cycles * whole(compute_units, "compute_units"))
