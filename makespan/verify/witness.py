"""The witness, executed cycle by cycle: it proves the lower bound if it keeps every rule of the machine."""

from collections import Counter
from itertools import pairwise

from makespan.instance import Instance
from makespan.program import Program
from makespan.schedule import Schedule
from makespan.verify.refusal import Refused


def replay(instance: Instance, witness: Schedule) -> int:
    """The makespan of `witness`, in cycles.

    Raises:
        Refused: a path that its program lacks, two instructions of a warp in a cycle, too many or too few
            instructions of a class in a cycle, or a warp that does not finish.
    """
    programs = tuple(instance.programs())
    letters = [_letters(program, path) for program, path in zip(programs, witness.paths, strict=True)]
    done = [0] * len(letters)
    ready = Counter(string[0] for string in letters)
    for cycle, warps in enumerate(witness.cycles):
        if any(a >= b for a, b in pairwise(warps)):
            raise Refused(f"witness: cycle {cycle}: the executing warps are not in increasing order")
        if finished := [warp for warp in warps if done[warp] == len(letters[warp])]:
            raise Refused(f"witness: cycle {cycle}: warp {finished[0]} has finished already")
        executing = Counter(letters[warp][done[warp]] for warp in warps)
        for unit, capacity in instance.machine.capacities.items():
            # one equation: more breaks the capacity, fewer breaks work conservation
            if executing[unit] != min(capacity, ready[unit]):
                raise Refused(
                    f"witness: cycle {cycle}: {executing[unit]} instructions of class {unit} execute where"
                    f" {ready[unit]} are ready for {capacity} units"
                )
        ready -= executing
        for warp in warps:
            done[warp] += 1
            if done[warp] < len(letters[warp]):
                ready[letters[warp][done[warp]]] += 1
    if ready.total():
        raise Refused(f"witness: {ready.total()} warps have not finished after {witness.makespan} cycles")
    return witness.makespan


def _letters(program: Program, path: tuple[int, ...]) -> list[str]:
    """The unit classes along a path from a start to the end of its program."""
    if path[0] not in program.starts:
        raise Refused(f"witness: no warp of its program begins at place {path[0]}")
    for place, after in zip(path, (*path[1:], program.end), strict=True):
        if place >= program.end or after not in program.places[place].successors:
            raise Refused(f"witness: place {after} does not follow place {place}")
    return [program.places[place].unit for place in path]
