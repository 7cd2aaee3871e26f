"""The witness, executed cycle by cycle: it proves the lower bound if it keeps every rule of the machine."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import pairwise

from makespan.instance import Instance
from makespan.machine import Scheduler, UnitClass
from makespan.program import BARRIER, Program
from makespan.schedule import Schedule
from makespan.verify.refusal import Refused, TooMuchWork, Work

MOST_COMPARISONS = 50_000_000  # of a warp that goes first with one that waits


def replay(instance: Instance, witness: Schedule) -> int:
    """The makespan of `witness`, in cycles.

    Raises:
        Refused: a path that its program lacks, a latency that its class lacks, two instructions of a warp in a cycle,
            too many or too few instructions of a class or of all in a cycle, a latency or a barrier that is not kept,
            a warp that does not finish, a cycle after the end, or a scheduler that breaks its promise.
    """
    programs = tuple(instance.programs())
    letters = [_letters(program, path) for program, path in zip(programs, witness.paths, strict=True)]
    floor = _Floor(instance, letters, _latencies(instance, letters, witness.latencies))
    idle = False  # in the cycle before
    for cycle, warps in enumerate(witness.cycles):
        if not floor.begin(cycle) and idle and not warps:
            continue  # nothing can be issued that could not in the cycle before
        idle = not warps
        if any(a >= b for a, b in pairwise(warps)):
            raise Refused(f"witness: cycle {cycle}: the executing warps are not in increasing order")
        floor.execute(cycle, warps)
    floor.begin(witness.makespan)
    if floor.unfinished:
        raise Refused(f"witness: {floor.unfinished} warps have not finished after {witness.makespan} cycles")
    return witness.makespan


class _Floor:
    """Where all warps are on their paths, and which ports are held.

    Args:
        letters: the unit classes along the path of every warp, and barriers.
        latencies: for every warp those of its instructions, in order.
    """

    def __init__(self, instance: Instance, letters: list[list[str]], latencies: list[Iterator[int]]) -> None:
        self.ready = dict.fromkeys(instance.machine.capacities, 0)
        self._width, self._capacities = instance.machine.issue_width, instance.machine.capacities
        self._intervals = {unit.name: unit.interval for unit in instance.machine.units if unit.interval > 1}
        self._free = instance.machine.capacities  # of classes with an interval of 1 all are, in every cycle
        self._letters, self._latencies, self._done = letters, latencies, [0] * len(letters)
        self._block = instance.block_of_warp()
        self.unfinished = len(letters)
        self._running = Counter(self._block)
        self._held: dict[int, list[int]] = {block: [] for block in self._running}  # at the barrier of the block
        self._due: dict[int, list[int]] = {0: list(range(len(letters)))}  # who comes to a next place in which cycle
        self._freed: dict[int, list[tuple[str, int]]] = {}  # ports that are free again from a cycle on
        self._back = [0] * len(letters)  # the cycle in which the last latency of a warp has passed
        self._line = _Line(len(letters), self._capacities) if instance.machine.scheduler is Scheduler.FAIR else None

    def begin(self, cycle: int) -> bool:
        """What happens before a cycle: latencies pass, ports are free again. Whether anything does."""
        freed, coming = self._freed.pop(cycle, None), self._due.pop(cycle, None)
        for unit, count in freed or ():
            self._free[unit] += count
        if coming:
            self._come(coming, cycle)
        return bool(freed or coming)

    def _next_of(self, warp: int, cycle: int) -> str:
        """The class of the instruction that a warp executes in this cycle."""
        letters, at = self._letters[warp], self._done[warp]
        if cycle < self._back[warp]:
            raise Refused(f"witness: cycle {cycle}: warp {warp} waits for a latency")
        if at == len(letters):
            raise Refused(f"witness: cycle {cycle}: warp {warp} has finished already")
        if letters[at] == BARRIER:
            raise Refused(f"witness: cycle {cycle}: warp {warp} waits at a barrier")
        return letters[at]

    def execute(self, cycle: int, warps: Collection[int]) -> None:
        """These warps issue one instruction each."""
        issued: dict[str, int] = {}
        for warp in warps:
            unit = self._next_of(warp, cycle)
            issued[unit] = issued.get(unit, 0) + 1
        if not self.unfinished:
            raise Refused(f"witness: cycle {cycle}: all warps have finished already")
        self._check(cycle, issued, len(warps))
        if self._line is not None:
            open_to_all = {unit for unit, free in self._free.items() if free > issued.get(unit, 0)}
            self._line.leave(cycle, {warp: self._letters[warp][self._done[warp]] for warp in warps}, open_to_all)
        for unit, count in issued.items():
            self.ready[unit] -= count
            if unit in self._intervals:
                self._free[unit] -= count
                self._freed.setdefault(cycle + self._intervals[unit], []).append((unit, count))
        for warp in warps:
            self._done[warp] += 1
            self._back[warp] = cycle + next(self._latencies[warp])
            self._due.setdefault(self._back[warp], []).append(warp)

    def _check(self, cycle: int, issued: Mapping[str, int], total: int) -> None:
        """Neither more than there are ports and issue slots, nor less than work conservation demands."""
        width, possible = self._width, 0
        for unit, capacity in self._capacities.items():
            count, most = issued.get(unit, 0), min(self._free[unit], self.ready[unit])
            possible += most
            # without an issue width one equation: more breaks the capacity, fewer breaks work conservation
            if count > most or (width is None and count < most):
                raise Refused(
                    f"witness: cycle {cycle}: {count} instructions of class {unit} execute where"
                    f" {self.ready[unit]} are ready for {self._free[unit]} free ports of {capacity}"
                )
        if width is not None and total != min(width, possible):
            raise Refused(
                f"witness: cycle {cycle}: {total} instructions execute where {possible} could,"
                f" and the issue width is {width}"
            )

    def _come(self, warps: list[int], cycle: int) -> None:
        """These warps have come to their next place, and those whose barrier opens to the one after it."""
        coming = warps
        while coming:
            for warp in coming:
                block, letters, at = self._block[warp], self._letters[warp], self._done[warp]
                if at == len(letters):
                    self._running[block] -= 1
                    self.unfinished -= 1
                elif letters[at] == BARRIER:
                    self._held[block].append(warp)
                else:
                    self.ready[letters[at]] += 1
                    if self._line is not None:
                        self._line.join(cycle, warp, letters[at])
            touched = {self._block[warp] for warp in coming}
            coming = [w for b in touched if len(self._held[b]) == self._running[b] for w in self._held[b]]
            for warp in coming:
                self._done[warp] += 1
                self._held[self._block[warp]] = []


class _Line:
    """Who waits for which class, for a fair scheduler: z goes before w if it came earlier and issued earlier."""

    def __init__(self, warps: int, classes: Iterable[str]) -> None:
        self._waiting: dict[str, dict[int, int]] = {unit: {} for unit in classes}  # since when, in order
        self._last = [-1] * warps
        self._work = Work(MOST_COMPARISONS)

    def join(self, cycle: int, warp: int, unit: str) -> None:
        """The warp is ready for the class from this cycle on."""
        self._waiting[unit][warp] = cycle

    def leave(self, cycle: int, served: Mapping[int, str], open_to_all: Collection[str]) -> None:
        """These warps issue an instruction of these classes; who waits for one that is open could have any's turn."""
        came = {warp: self._waiting[unit].pop(warp) for warp, unit in served.items()}
        for unit, waiting in self._waiting.items():
            ahead = [warp for warp, own in served.items() if own == unit or unit in open_to_all]
            if not ahead or not waiting:
                continue
            newest = max(came[warp] for warp in ahead)
            for passed, since in waiting.items():
                if since >= newest:
                    break
                try:
                    self._work.spend(len(ahead))
                except TooMuchWork:
                    raise Refused("the witness is too large for this checker: too many warps wait") from None
                if any(came[warp] > since and self._last[warp] > self._last[passed] for warp in ahead):
                    raise Refused(f"witness: cycle {cycle}: warp {passed} is passed over by a scheduler that is fair")
        for warp in served:
            self._last[warp] = cycle


def _letters(program: Program, path: tuple[int, ...]) -> list[str]:
    """The unit classes along a path from a start to the end of its program."""
    if path[0] not in program.starts:
        raise Refused(f"witness: no warp of its program begins at place {path[0]}")
    for place, after in zip(path, (*path[1:], program.end), strict=True):
        if place >= program.end or after not in program.places[place].successors:
            raise Refused(f"witness: place {after} does not follow place {place}")
    return [program.places[place].unit for place in path]


def _latencies(
    instance: Instance, letters: list[list[str]], chosen: tuple[tuple[int, ...], ...]
) -> list[Iterator[int]]:
    """For every warp the latencies of its instructions, in order: those of the witness where there is a choice."""
    units = {unit.name: unit for unit in instance.machine.units}
    executed = [[units[letter] for letter in own if letter != BARRIER] for own in letters]
    if not chosen and instance.machine.fixed_latencies:
        return [(unit.latency.least for unit in own) for own in executed]
    if len(chosen) != len(executed):
        raise Refused(f"witness: latencies of {len(chosen)} warps for {len(executed)} warps")
    for warp, (own, row) in enumerate(zip(executed, chosen, strict=True)):
        _check_latencies(warp, own, row)
    return [iter(row) for row in chosen]


def _check_latencies(warp: int, executed: list[UnitClass], chosen: tuple[int, ...]) -> None:
    if len(chosen) != len(executed):
        raise Refused(f"witness: {len(chosen)} latencies for {len(executed)} instructions of warp {warp}")
    for unit, latency in zip(executed, chosen, strict=True):
        if not unit.latency.least <= latency <= unit.latency.most:
            raise Refused(f"witness: a latency of {latency} for class {unit.name} of warp {warp}")
