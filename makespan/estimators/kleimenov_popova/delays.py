"""Issue delays: the cycles that the dispatcher of a processing block is taken up by one warp instruction.

Source: A. A. Kleimenov and N. N. Popova, A method for prediction execution time of GPU programs, Computational
Nanotechnology 8(1), 2021; two rules, T from throughputs and U from the number of functional units.
"""

from math import isfinite

from makespan.errors import InputError

WARP_SIZE = 32


def by_throughput(operations_per_cycle: float, *, warp_size: int = WARP_SIZE) -> float:
    """Rule T: `warp_size / throughput` cycles, of operations per cycle of ONE processing block.

    Raises:
        InputError: a throughput that is not positive, or a delay below one cycle, as it comes out of a throughput of
            the whole SM that was not divided by its processing blocks.
    """
    refuse_not_positive(operations_per_cycle, "throughput of a processing block", "operations/cycle")
    return checked(
        warp_size / operations_per_cycle,
        f"rule T with {operations_per_cycle:g} operations/cycle; divide a figure per SM by the processing blocks of it",
    )


def by_units(units: float, *, warp_size: int = WARP_SIZE) -> float:
    """Rule U: `max(warp_size / units, 1)` cycles, of functional units in ONE processing block.

    Raises:
        InputError: a number of units that is not positive.
    """
    refuse_not_positive(units, "functional units of a processing block", "units")
    return max(warp_size / units, 1.0)


def checked(delay: float, where: str) -> float:
    """An issue delay, in cycles.

    Raises:
        InputError: less than one cycle, or no number.
    """
    if not (isfinite(delay) and delay >= 1):
        raise InputError(f"issue delay {delay:g} is below 1 cycle: {where}")
    return delay


def refuse_not_positive(value: float, what: str, unit: str) -> None:
    """Refuse a number that is none, or not above 0."""
    if not (isfinite(value) and value > 0):
        raise InputError(f"{what} must be positive and finite, not {value:g} {unit}")
