"""The schedule of a whole GPU, executed: every SM keeps the rules of the machine, and the dispatcher those of a GPU.

A stretch that ends as it began, but for the cycle, does so however often it comes: then one more time is as good as
all. For each grid the cycles in which a block of it would fit on some SM are intervals; in no cycle may blocks of all
grids that have any left fit somewhere, or else the dispatcher would not be work-conserving.
"""

from collections.abc import Sequence
from itertools import chain, pairwise

from makespan.model.gpu import BlockStart, BlockTrace, GpuInstance, GpuSchedule, RepeatedCycles, SmHistory
from makespan.model.instance import MAX_CYCLES
from makespan.model.machine import WarpAssignment
from makespan.verify import fields
from makespan.verify.gpu_reading import fixed_latencies
from makespan.verify.refusal import ProofSteps, Refused, TooMuchWork
from makespan.verify.sm_execution import Script, SmExecution
from makespan.verify.witness import is_increasing, scripts

_Spans = list[tuple[int, int]]  # cycles, from one to before another
_EVER = 10 ** (3 * fields.MOST_DIGITS)  # a cycle that is never reached


def replay(gpu: GpuInstance, witness: GpuSchedule) -> int:
    """Return the makespan of `witness`, in cycles.

    Raises:
        Refused: an SM breaks a rule of the machine, a block gets room that is taken, begins too late or never ends, all
            blocks that are left would fit somewhere, or they are not those of the grids, or it is too large.
    """
    room, cycles = ProofSteps(fields.MOST_INSTRUCTIONS), ProofSteps(MAX_CYCLES)
    try:
        courses = [_scripts(gpu, number, course) for number, course in enumerate(witness.courses)]
        sms = [
            _HistoryReplay(gpu, witness.courses, courses, number, history, room, cycles)
            for number, history in enumerate(witness.histories)
        ]
        makespan = max(sm.run() for sm in sms)
        _check_blocks(gpu, witness)
        _check_dispatcher(gpu, witness, sms, room)
    except TooMuchWork:
        most = f"over {fields.MOST_INSTRUCTIONS} warp-instructions, or {MAX_CYCLES} cycles, that do not repeat"
        raise Refused(f"the witness is too large for this checker: {most}") from None
    return makespan


def _scripts(gpu: GpuInstance, number: int, course: BlockTrace) -> list[Script]:
    grid, machine = gpu.grids[course.grid], gpu.machine
    programs = [program for program, warps in grid.block for _ in range(warps)]
    latencies = None if fixed_latencies(gpu, grid) else course.latencies
    try:
        return scripts(machine, programs, course.paths, latencies, None if machine.fixed_uses else course.uses)
    except Refused as refusal:
        raise Refused(f"course {number}: {refusal}") from None


class _HistoryReplay:
    """A history of an SM, executed stretch by stretch.

    Attributes:
        fits: for every grid the cycles in which a block of it would fit.
        last: for every grid the cycle in which its last block got its room.
    """

    def __init__(
        self,
        gpu: GpuInstance,
        courses: Sequence[BlockTrace],
        scripts: Sequence[Sequence[Script]],
        number: int,
        history: SmHistory,
        room: ProofSteps,
        cycles: ProofSteps,
    ) -> None:
        self._gpu, self._courses, self._scripts, self._history = gpu, courses, scripts, history
        self._room, self._cycles, self._where = room, cycles, f"witness: history {number}"
        slots = _slots(gpu, history, self._where)
        self._width = width = max(grid.warps for grid in gpu.grids)
        room.spend(slots * width)
        self._floor = SmExecution(
            gpu.machine,
            _partitions(gpu, history, slots, self._where),
            [slot for slot in range(slots) for _ in range(width)],
            name=lambda warp: f"warp {warp % width} of slot {warp // width}",
            where=f"history {number}, ",
        )
        self._slots: list[int | None] = [None] * slots  # the grid whose block is there
        self._left = list(gpu.room)
        self._clock = 0  # of the floor, which does not see what is skipped
        self.fits: list[_Spans] = [[] for _ in gpu.grids]
        self._since: list[int | None] = [None for _ in gpu.grids]
        self.last: dict[int, int] = {}

    def run(self) -> int:
        """Return the cycle in which its last block has ended."""
        for stretch in self._history.stretches:
            self._stretch(stretch)
        self._ends()
        if self._floor.unfinished:
            raise self._refusal(f"{self._floor.unfinished} warps have not finished")
        for spans in self.fits:
            spans.append((self._now, _EVER))
        return self._now

    @property
    def _now(self) -> int:
        return self._floor.shift + self._clock

    def _refusal(self, what: str) -> Refused:
        return Refused(f"{self._where}, cycle {self._now}: {what}")

    def _stretch(self, stretch: RepeatedCycles) -> None:
        """Execute a stretch as often as it comes, or until it leaves everything as it was, and skip the rest."""
        before = self._state() if stretch.repeat > 1 else None
        for left in range(stretch.repeat - 1, -1, -1):
            known = [len(spans) for spans in self.fits]
            self._once(stretch)
            if not left:
                return
            after = self._state()
            if after == before:
                self._skip(stretch, left, [spans[first:] for spans, first in zip(self.fits, known, strict=True)])
                return
            before = after

    def _state(self) -> object:
        self._room.spend(len(self._slots) * self._width)
        return self._floor.state(self._clock), tuple(self._slots)

    def _skip(self, stretch: RepeatedCycles, times: int, fits: Sequence[_Spans]) -> None:
        """Go on as if a stretch came `times` more, in each of which blocks fitted as in the last one."""
        length = len(stretch.cycles)
        begun, skipped = self._now - length, times * length
        for spans, again in zip(self.fits, fits, strict=True):
            if again == [(begun, self._now)]:
                spans.append((self._now, self._now + skipped))
                continue
            self._room.spend(times * len(again))
            spans += [(a + n * length, b + n * length) for a, b in again for n in range(1, times + 1)]
        for grid in {self._courses[begin.course].grid for begin in stretch.begins}:
            self.last[grid] += skipped
        self._since = [None if since is None else since + skipped for since in self._since]
        self._floor.shift += skipped

    def _once(self, stretch: RepeatedCycles) -> None:
        idle, waiting = False, list(reversed(stretch.begins))
        for cycle, issuing in enumerate(stretch.cycles):
            self._cycles.spend()
            changed = self._ends()
            while waiting and waiting[-1].cycle <= cycle:
                begin = waiting.pop()
                if begin.cycle < cycle:
                    raise self._refusal("the blocks that come are not in their order")
                self._admit(begin)
                changed = True
            if changed:
                self._floor.begin(self._clock)  # for those that have just come
                self._note([all(map(int.__le__, grid.takes, self._left)) for grid in self._gpu.grids])
            if changed or not idle or issuing:  # else nothing can be issued that could not in the cycle before
                self._execute(issuing)
            idle = not issuing
            self._clock += 1
        if waiting:
            raise self._refusal("a block comes after the end of its stretch")
        fit = [since is not None for since in self._since]
        self._note([False] * len(fit))
        self._note(fit)

    def _note(self, fit: Sequence[bool]) -> None:
        """Take note of the grids of which a block fits from now on."""
        for grid, (fits, since) in enumerate(zip(fit, self._since, strict=True)):
            if fits and since is None:
                self._since[grid] = self._now
            elif since is not None and not fits:
                self._room.spend()
                self.fits[grid].append((since, self._now))
                self._since[grid] = None

    def _ends(self) -> bool:
        """Let blocks end that do so before a cycle, and give back their room; return whether anything changed."""
        changed, ended = self._floor.begin(self._clock), self._floor.ended
        while ended:
            slot = ended.pop()
            grid, self._slots[slot] = self._slots[slot], None
            if grid is not None:
                self._take(grid, -1)
        return changed

    def _take(self, grid: int, sign: int) -> None:
        takes = self._gpu.grids[grid].takes
        self._left = [left - sign * one for left, one in zip(self._left, takes, strict=True)]

    def _admit(self, begin: BlockStart) -> None:
        if begin.course >= len(self._courses):
            raise self._refusal(f"there is no course {begin.course}")
        if self._slots[begin.slot] is not None:
            raise self._refusal(f"slot {begin.slot} is taken")
        grid = self._courses[begin.course].grid
        self._slots[begin.slot] = grid
        self._take(grid, 1)
        if min(self._left) < 0:
            raise self._refusal(f"there is no room for the block that comes to slot {begin.slot}")
        self.last[grid] = self._now
        written = self._scripts[begin.course]
        self._room.spend(len(written))
        for warp, script in enumerate(written, begin.slot * self._width):
            self._floor.admit(self._clock + begin.delay, warp, script)

    def _execute(self, issuing: Sequence[tuple[int, int]]) -> None:
        self._room.spend(len(issuing))
        if any(slot >= len(self._slots) or warp >= self._width for slot, warp in issuing):
            raise self._refusal("there is no such slot or warp")
        warps = [slot * self._width + warp for slot, warp in issuing]
        if not is_increasing(warps):
            raise self._refusal("the executing warps are not in increasing order")
        self._floor.execute(self._clock, warps)


def _slots(gpu: GpuInstance, history: SmHistory, where: str) -> int:
    begins = [begin for stretch in history.stretches for begin in stretch.begins]
    slots = 1 + max((begin.slot for begin in begins), default=-1)
    if not slots or slots > len(begins):
        raise Refused(f"{where}: {slots} slots for {len(begins)} blocks")
    together = sum(begin.cycle == 0 for begin in history.stretches[0].begins)
    if len(gpu.grids) == 1 and together != slots:
        raise Refused(f"{where}: {together} of {slots} slots are taken in cycle 0, and others later")
    return slots


def _partitions(gpu: GpuInstance, history: SmHistory, slots: int, where: str) -> list[int]:
    parts, chosen = gpu.machine.partitions, history.partitions
    width = max(grid.warps for grid in gpu.grids)
    is_free = parts > 1 and (len(gpu.grids) > 1 or gpu.machine.assignment is WarpAssignment.ANY)
    if not is_free:
        if chosen:
            raise Refused(f"{where}: the machine leaves no choice of a partition")
        return [number % parts for number in range(slots * width)]
    found = list(chain.from_iterable(chosen))
    if list(map(len, chosen)) != [width] * slots or not set(found) <= set(range(parts)):
        raise Refused(f"{where}: there are not partitions 0..{parts - 1} for {width} warps of each of {slots} slots")
    sizes = [found.count(part) for part in range(parts)]
    if len(gpu.grids) == 1 and max(sizes) > min(sizes) + 1:
        raise Refused(f"{where}: the warps are not spread evenly over the partitions: {sizes}")
    return found


def _check_blocks(gpu: GpuInstance, witness: GpuSchedule) -> None:
    if sum(history.sms for history in witness.histories) > gpu.sms:
        raise Refused(f"witness: more than {gpu.sms} SMs")
    found = [0] * len(gpu.grids)
    for history in witness.histories:
        for stretch in history.stretches:
            for begin in stretch.begins:
                found[witness.courses[begin.course].grid] += history.sms * stretch.repeat
    for number, (grid, blocks) in enumerate(zip(gpu.grids, found, strict=True)):
        if blocks != grid.blocks:
            raise Refused(f"witness: {blocks} blocks of grid {number} are executed, not {grid.blocks}")


def _check_dispatcher(gpu: GpuInstance, witness: GpuSchedule, sms: Sequence[_HistoryReplay], work: ProofSteps) -> None:
    """Refuse a cycle in which blocks are left, and a block of each grid that has some left fits on some SM."""
    # Then whichever block comes next would have room, and a work-conserving dispatcher lets it begin.
    unused = sum(history.sms for history in witness.histories) < gpu.sms
    # in the cycle in which the last block of a grid gets its room the grid has none left, and limits nothing any more
    last = [max(sm.last.get(grid, 0) for sm in sms) for grid in range(len(gpu.grids))]
    changes: list[tuple[int, int, int]] = []  # the cycle, the grid, and on how many more SMs its blocks fit
    for grid, until in enumerate(last):
        for first, end in [(0, until)] * unused + [span for sm in sms for span in sm.fits[grid] if span[0] < until]:
            changes += [(first, grid, 1), (min(end, until), grid, -1)]
        changes.append((until, grid, 1))  # none is left: they do not matter
    work.spend(len(changes) * len(gpu.grids))
    fits = [0] * len(gpu.grids)
    for (cycle, grid, more), (after, _, _) in pairwise(sorted(changes)):
        fits[grid] += more
        if cycle < after and all(fits):
            raise Refused(f"witness: cycle {cycle}: all blocks that are left would fit, and none of them comes")
