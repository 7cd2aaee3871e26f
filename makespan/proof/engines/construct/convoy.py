"""The schedule that attains theorem E: three or more identical strings, one unit of each of two classes.

The greedy scan cuts the string into blocks X^n Y (X != Y) and a tail of one class. Warps 0..W-2, the convoy,
cross each block together while warp W-1, the laggard, stays in a run of class X and is kept from pairing.
docs/theory.md, 9, proves that each block costs exactly W-1 mixed cycles, as few as any schedule can have.
"""

from collections.abc import Iterator

from makespan.model.feature import LAPSES, Feature
from makespan.model.instance import Instance
from makespan.model.schedule import Schedule

KNOWS = LAPSES | {Feature.CLASSES}


def applies(instance: Instance) -> bool:
    """Return whether theorem E is attained, lapses apart: W >= 3 equal strings over at most two classes of one unit."""
    program = instance.groups[0].program
    unit_capacities = all(instance.machine.capacities[unit] == 1 for unit in program.units)
    return not instance.beyond(KNOWS) and instance.warps >= 3 and len(program.units) <= 2 and unit_capacities


def blocks(letters: str) -> list[tuple[int, int]]:
    """Return the greedy blocks as (first, last) position of their X-run; Y stands at last + 1.

    >>> blocks("LLCCLC")
    [(0, 1), (3, 3)]
    """
    found: list[tuple[int, int]] = []
    first = 0
    while True:
        last = first
        while last + 1 < len(letters) and letters[last + 1] == letters[first]:
            last += 1
        if last + 1 >= len(letters):
            return found
        found.append((first, last))
        first = last + 2


def _cycles(letters: str, warps: int) -> Iterator[tuple[int, ...]]:
    length, laggard = len(letters), warps - 1
    run_end = list(range(length))
    for place in range(length - 2, -1, -1):
        if letters[place] == letters[place + 1]:
            run_end[place] = run_end[place + 1]
    at = [0] * warps

    def advance(warp: int, to: int) -> Iterator[tuple[int, ...]]:
        """Yield pure cycles: all warps wait for the same class, and `warp` executes up to place `to`."""
        for _ in range(at[warp], to):
            at[warp] += 1
            yield (warp,)

    def together(*executing: int) -> tuple[int, ...]:
        """Return one mixed cycle."""
        for warp in executing:
            at[warp] += 1
        return executing

    phase_begins = True
    for first, last in blocks(letters):
        if phase_begins:  # the laggard runs to the end of its own run, and waits there for the class of the next
            yield from advance(laggard, run_end[at[laggard]])
        for warp in range(laggard):
            yield from advance(warp, last)
        yield from advance(0, last + 1)
        # a mixed cycle for each of the convoy: as few as theorem E allows, W - 1 in every block
        for warp in range(warps - 2):
            yield together(warp, warp + 1)
        class_goes_on = last + 2 < length and letters[last + 2] == letters[first]
        yield together(warps - 2, 0 if class_goes_on else laggard)
        phase_begins = not class_goes_on
    for warp in range(warps):
        yield from advance(warp, length)


def schedule(instance: Instance) -> Schedule:
    """Return the worst-case schedule; `applies(instance)` must hold."""
    letters = instance.groups[0].program.letters or ""
    return Schedule.of_chains(instance, _cycles(letters, instance.warps))
