"""The witness, executed cycle by cycle: it proves the lower bound if it keeps every rule of the machine."""

from collections import Counter
from collections.abc import Iterable
from itertools import pairwise

from makespan.instance import Instance
from makespan.program import BARRIER, Program
from makespan.schedule import Schedule
from makespan.verify.refusal import Refused


def replay(instance: Instance, witness: Schedule) -> int:
    """The makespan of `witness`, in cycles.

    Raises:
        Refused: a path that its program lacks, two instructions of a warp in a cycle, too many or too few
            instructions of a class in a cycle, a barrier that is not kept, or a warp that does not finish.
    """
    programs = tuple(instance.programs())
    floor = _Floor(instance, [_letters(program, path) for program, path in zip(programs, witness.paths, strict=True)])
    for cycle, warps in enumerate(witness.cycles):
        if any(a >= b for a, b in pairwise(warps)):
            raise Refused(f"witness: cycle {cycle}: the executing warps are not in increasing order")
        executing = Counter(floor.next_of(warp, cycle) for warp in warps)
        for unit, capacity in instance.machine.capacities.items():
            # one equation: more breaks the capacity, fewer breaks work conservation
            if executing[unit] != min(capacity, floor.ready[unit]):
                raise Refused(
                    f"witness: cycle {cycle}: {executing[unit]} instructions of class {unit} execute where"
                    f" {floor.ready[unit]} are ready for {capacity} units"
                )
        floor.execute(warps, executing)
    if unfinished := floor.running.total():
        raise Refused(f"witness: {unfinished} warps have not finished after {witness.makespan} cycles")
    return witness.makespan


class _Floor:
    """Where all warps are on their paths.

    Args:
        letters: the unit classes along the path of every warp, and barriers.
    """

    def __init__(self, instance: Instance, letters: list[list[str]]) -> None:
        self.ready: Counter[str] = Counter()
        self._letters, self._done = letters, [0] * len(letters)
        self._block = instance.block_of_warp()
        self.running = Counter(self._block)
        self._held: dict[int, list[int]] = {block: [] for block in self.running}  # at the barrier of the block
        self._come(range(len(letters)))

    def next_of(self, warp: int, cycle: int) -> str:
        """The class of the instruction that a warp executes in this cycle."""
        letters, at = self._letters[warp], self._done[warp]
        if at == len(letters):
            raise Refused(f"witness: cycle {cycle}: warp {warp} has finished already")
        if letters[at] == BARRIER:
            raise Refused(f"witness: cycle {cycle}: warp {warp} waits at a barrier")
        return letters[at]

    def execute(self, warps: Iterable[int], used: Counter[str]) -> None:
        """These warps execute one instruction each."""
        self.ready -= used
        for warp in warps:
            self._done[warp] += 1
        self._come(warps)

    def _come(self, warps: Iterable[int]) -> None:
        """These warps have come to their next place, and those whose barrier opens to the one after it."""
        coming = list(warps)
        while coming:
            for warp in coming:
                block, letters, at = self._block[warp], self._letters[warp], self._done[warp]
                if at == len(letters):
                    self.running[block] -= 1
                elif letters[at] == BARRIER:
                    self._held[block].append(warp)
                else:
                    self.ready[letters[at]] += 1
            touched = {self._block[warp] for warp in coming}
            coming = [w for b in touched if len(self._held[b]) == self.running[b] for w in self._held[b]]
            for warp in coming:
                self._done[warp] += 1
                self._held[self._block[warp]] = []


def _letters(program: Program, path: tuple[int, ...]) -> list[str]:
    """The unit classes along a path from a start to the end of its program."""
    if path[0] not in program.starts:
        raise Refused(f"witness: no warp of its program begins at place {path[0]}")
    for place, after in zip(path, (*path[1:], program.end), strict=True):
        if place >= program.end or after not in program.places[place].successors:
            raise Refused(f"witness: place {after} does not follow place {place}")
    return [program.places[place].unit for place in path]
