"""Runs of a whole GPU: a policy on every SM, and a dispatcher; what returns is executed once.

While blocks are left every SM gets as many as it has room for. So SMs under a policy that draws no random numbers all
do the same until the last blocks are dispatched, and one of them stands for all; and once it is where it has been
before, it goes round in a circle. With random numbers every SM is another one, and every block is executed.

Of several grids all SMs get blocks of one, as long as there are as many as all have room for, then of the next one; the
rest of all grids comes last, in the same order.
"""

from collections import Counter
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import replace
from heapq import heappop, heappush
from itertools import chain, count, islice, product
from typing import Any, NamedTuple

from makespan.host.errors import InputError, UnsupportedError
from makespan.model.gpu import BlockStart, BlockTrace, GpuInstance, GpuSchedule, RepeatedCycles, SmHistory
from makespan.model.machine import SchedulerPromise
from makespan.model.simulate.choices import Choices, SplitMix, UseChoices, assign_partitions, choose_routes
from makespan.model.simulate.floor import Floor, Walk, walks
from makespan.model.simulate.policies import (
    FAIR_RULES,
    POLICIES,
    STARVING_RULES,
    PolicyRun,
    RulePolicy,
    SchedulingPolicy,
    warps_of_partition,
)

DISPATCH = ("round-robin", "least-loaded", "most-loaded", "random")
"""Which SM gets the next block, of those with room: the next one in turn; the one with the fewest blocks; the one with
the most, so that it is full before another gets any; or any.
"""

STARVING = dict(zip(("behind", "starve-together", "starve-in-turn"), STARVING_RULES, strict=True))
"""Rules by their names as policies: who is furthest behind goes first; or the last slot waits for all others, of which
who is furthest behind goes first, or who is furthest ahead.
"""
FAIRLY = dict(zip(("fair", "fair-together", "fair-in-turn"), FAIR_RULES, strict=True))
"""The same of a scheduler that promises to be fair: who is ready for longest goes first, and the rule decides ties."""

_SOON = ("starve-together", "starve-in-turn", "gto", "gty", "oldest", "youngest")
"""Policies under which one block goes before another: an SM is soon where it was before. They are tried first."""

_FIRST = {
    SchedulerPromise.ANY: ("starve-in-turn", "starve-together"),
    SchedulerPromise.FAIR: ("fair-in-turn", "fair-together"),
}
"""Policies of which one makes the run that there always is. The first one mostly needs the least work until then."""

_FAVOUR = 3
"""How many times as much work the run of a policy may be as that of the next one, while all of them are tried."""

MAX_WORK = 20_000_000
"""Cycles and warp-instructions that are executed one by one."""

_CYCLES_PER_LOOK = 1024
_DISPATCHER, _SM, _BLOCK = 100, 101, 102
"""Streams of random numbers beside those of `simulate.choices`."""


class FoundRun(NamedTuple):
    """A schedule, and in words who made it."""

    schedule: GpuSchedule
    policy: str


def run_gpu(
    gpu: GpuInstance,
    policy: str,
    dispatch: str = DISPATCH[0],
    choices: Choices | None = None,
    *,
    delay: int | None = None,
    order: Sequence[int] | None = None,
) -> GpuSchedule:
    """Return the schedule that a policy on all SMs and a dispatcher make: one of many, so no bound on any other.

    Args:
        policy: of `POLICIES`, `STARVING`, or for a scheduler that promises to be fair of `FAIRLY`.
        dispatch: of `DISPATCH`.
        choices: what no policy decides. With random paths, latencies or intervals, and under the policy `random`, each
            SM and each block draws its own.
        delay: cycles from when a block gets its room until its warps begin; by default the most.
        order: of the grids, by number.

    >>> from makespan import Machine, Program
    >>> block = ((Program.chain("CLL"), 8),)
    >>> gpu = GpuInstance.of(block, 10**6, Machine.of({"C": 1, "L": 1}), sms=46, resident=6)
    >>> run_gpu(gpu, "lrr")
    GpuSchedule(46 SMs, 347841 cycles)

    Raises:
        InputError: an unknown name, a delay that is too long, or too many blocks to draw random numbers for each.
        UnsupportedError: random numbers for several grids, a policy that does not keep the promise of the scheduler, or
            an SM that does not come back to where it was within `MAX_WORK`.
    """
    choices, delay = choices or Choices(), gpu.dispatch if delay is None else delay
    _check_scheduler(gpu)
    if dispatch not in DISPATCH:
        raise InputError(f"unknown dispatch {dispatch!r}; known: {', '.join(DISPATCH)}")
    if not 0 <= delay <= gpu.dispatch:
        raise InputError(f"a block begins 0..{gpu.dispatch} cycles after it got its room, not {delay}")
    if policy == "random" or "random" in (choices.path, choices.latency, choices.interval):
        return _run_random(gpu, policy, dispatch, choices, delay)
    (schedule,) = _EqualSms(gpu, policy, choices, delay, order or range(len(gpu.grids))).schedules(dispatch)
    return schedule


def _never() -> bool:
    return False


def longest_gpu_run(
    gpu: GpuInstance, expired: Callable[[], bool] = _never, *, enough: Callable[[], bool] = _never
) -> FoundRun | None:
    """Return the longest run that is found, of which a replay makes a lower bound on the worst case.

    One run is made whatever `expired` says, and how much work that is does not depend on any clock. None if no SM comes
    back to where it was within `MAX_WORK` in that run, and none is found in time that does.

    Args:
        expired: once it says so, only what has been found by then counts.
        enough: the same, as soon as one run is found.

    Raises:
        UnsupportedError: a machine of which `run_gpu` knows no policy.
    """
    ends = [Choices(latency=latency) for latency in ("most", "least")]
    return _best_run(gpu, ends, gpu.dispatch, max, expired, enough, _cheapest_run(gpu, ends[::-1], gpu.dispatch))


def shortest_gpu_run(
    gpu: GpuInstance, expired: Callable[[], bool] = _never, *, enough: Callable[[], bool] = _never
) -> FoundRun | None:
    """The shortest run that is found in time, of which a replay makes an upper bound on the best case; or None."""
    least = [Choices(path=path, latency="least", interval="least") for path in ("shortest", "longest")]
    return _best_run(gpu, least, 0, min, expired, enough)


class _StoppedError(Exception):
    """A run has been stopped before its end."""


def _cheapest_run(gpu: GpuInstance, choices: Sequence[Choices], delay: int) -> FoundRun | None:
    """A run of one of a few policies, that which needs the least work; the first ones may need more than the others."""
    _check_scheduler(gpu)
    tried = list(product(_distinct_choices(gpu, choices), _FIRST[gpu.machine.scheduler]))
    runs = [_EqualSms(gpu, policy, chosen, delay, range(len(gpu.grids))) for chosen, policy in tried]
    work = dict.fromkeys(range(len(runs)), 0)
    while work:
        number = min(work, key=lambda number: work[number] * _FAVOUR**number)
        try:
            done = next(runs[number].supplying, None)
            if done is None:
                (schedule,) = runs[number].schedules(DISPATCH[0])
                return FoundRun(schedule, f"{DISPATCH[0]} dispatch, {tried[number][1]}")
            work[number] = done
        except UnsupportedError:
            del work[number]  # it does not come back to where it was; another may
    return None


def _best_run(
    gpu: GpuInstance,
    choices: Sequence[Choices],
    delay: int,
    better: Callable[..., FoundRun],
    expired: Callable[[], bool],
    enough: Callable[[], bool],
    known: FoundRun | None = None,
) -> FoundRun | None:
    """The best run of all policies and dispatchers that draw no random numbers; one that is known if it is better."""
    found: FoundRun | None = None
    _check_scheduler(gpu)

    def stop() -> bool:
        return expired() or ((found or known) is not None and enough())

    others = sorted({*STARVING, *POLICIES} - {*_SOON, "random"})
    names = tuple(FAIRLY) if gpu.machine.scheduler is SchedulerPromise.FAIR else (*_SOON, *others)
    ascending = tuple(range(len(gpu.grids)))
    orders = dict.fromkeys([ascending, ascending[::-1]])
    for chosen, policy, order in product(_distinct_choices(gpu, choices), names, orders):
        if (found or known) and stop():
            break
        try:
            alike = _EqualSms(gpu, policy, chosen, delay, order, stop)
            last = "" if order == ascending else ", the last grid first"
            for dispatch, schedule in zip(DISPATCH[::2], alike.schedules(*DISPATCH[::2]), strict=True):
                made = FoundRun(schedule, f"{dispatch} dispatch, {policy}{last}")
                found = better(found or made, made, key=lambda one: one.schedule.makespan)
        except UnsupportedError:
            continue  # it does not come back to where it was; another may
        except _StoppedError:
            break
    some = [one for one in (found, known) if one is not None]
    return better(some, key=lambda one: one.schedule.makespan) if some else None


def _check_scheduler(gpu: GpuInstance) -> None:
    """Refuse what no policy here is made for."""
    alone = [gpu.alone(grid).sm(1) for grid in range(len(gpu.grids))]
    if gpu.machine.scheduler is SchedulerPromise.FAIR and any(one.is_multiprocessor for one in alone):
        raise UnsupportedError(
            "runs of a whole GPU do not know a fair scheduler together with partitions, resources or warps that run"
            ' ahead; leave the promise out: scheduler = "any" in the machine file'
        )


def _distinct_choices(gpu: GpuInstance, choices: Sequence[Choices]) -> Sequence[Choices]:
    """What differs of these, which is nothing where no path, latency or interval is to be chosen."""
    alone = [gpu.alone(grid).sm(1) for grid in range(len(gpu.grids))]
    is_sole = all(group.program.is_chain for one in alone for group in one.groups)
    has_none = is_sole and all(one.fixed_latencies for one in alone) and gpu.machine.fixed_uses
    return [Choices()] if has_none else choices


def _policies(
    gpu: GpuInstance, policy: str, choices: Choices, slots: int, partitions: Sequence[int]
) -> list[SchedulingPolicy]:
    """Return the policy of every partition of an SM."""
    parts, last = range(gpu.machine.partitions), range((slots - 1) * gpu.width, slots * gpu.width)
    is_fair = gpu.machine.scheduler is SchedulerPromise.FAIR
    rules = FAIRLY if is_fair else STARVING
    if policy in rules:
        return [RulePolicy(rules[policy], last) for _ in parts]
    known = rules if is_fair else (*POLICIES, *rules)
    if policy not in known:
        raise InputError(f"unknown policy {policy!r} of a scheduler of this kind; known: {', '.join(known)}")
    return [POLICIES[policy](warps_of_partition(partitions, part), choices, part) for part in parts]


class _BlockConduct(NamedTuple):
    """What a block does: its course, and for every warp what its instructions take; `uses` as in `Routes`."""

    course: BlockTrace
    latencies: tuple[tuple[int, ...], ...]
    uses: tuple[tuple[UseChoices, ...], ...]


def _slot_partitions(gpu: GpuInstance, slots: int, choices: Choices) -> tuple[list[tuple[int, ...]], bool]:
    """For every slot the partitions of its warps, and whether there is a choice; of several grids there always is."""
    width, parts = range(gpu.width), gpu.machine.partitions
    if len(gpu.grids) > 1:
        return [tuple((slot * gpu.width + warp) % parts for warp in width) for slot in range(slots)], parts > 1
    together = gpu.sm(slots)
    found = dict(zip(gpu.slots_of_warps(slots), assign_partitions(together, choices), strict=True))
    return [tuple(found[slot, warp] for warp in width) for slot in range(slots)], together.partition_of_warp is None


def _block_conduct(gpu: GpuInstance, grid: int, choices: Choices) -> _BlockConduct:
    only = gpu.alone(grid)
    alone = only.sm(1).relaxed
    chosen, numbers = choose_routes(alone, choices), dict(zip(only.slots_of_warps(1), count()))
    order = [numbers[0, warp] for warp in range(only.width)]
    paths, latencies = (tuple(rows[number] for number in order) for rows in (chosen.paths, chosen.latencies))
    uses = tuple(chosen.uses[number] for number in order) if chosen.uses else ()
    return _BlockConduct(BlockTrace(grid, paths, () if alone.fixed_latencies else latencies), latencies, uses)


class _DispatchedBlock(NamedTuple):
    """A block that got its room: what it does, and what its warps use, which is known once it has ended."""

    begin: BlockStart
    conduct: _BlockConduct
    used: tuple[list[UseChoices], ...]

    def known(self) -> BlockTrace:
        """Return the course, now that the block has ended."""
        return self.conduct.course._replace(uses=tuple(map(tuple, self.used)))


class _RunStretch(NamedTuple):
    """A stretch whose courses have no numbers yet."""

    first: int
    cycles: tuple[tuple[tuple[int, int], ...], ...]
    blocks: list[_DispatchedBlock]
    repeat: int


class _SmRun:
    """An SM under a policy. Blocks are given to it in a cycle in which there is room; then it goes on to the next.

    Warps are numbered by slot.
    """

    def __init__(
        self, gpu: GpuInstance, slots: int, policy: str, choices: Choices, delay: int, stop: Callable[[], bool] = _never
    ) -> None:
        self._gpu, self._delay, self._stop, self._warps = gpu, delay, stop, gpu.width
        self._programs = [[program for program, warps in grid.block for _ in range(warps)] for grid in gpu.grids]
        self._partitions, self._has_choice = _slot_partitions(gpu, slots, choices)
        flat = [part for row in self._partitions for part in row]
        self._floor = Floor(gpu.machine, len(flat))
        self._run = PolicyRun(gpu.machine, _policies(gpu, policy, choices, slots, flat), self._floor)
        self._walks: dict[tuple[BlockTrace, int], list[Walk]] = {}
        self.slots, self.cycle, self.work = slots, 0, 0
        self._grids: dict[int, int] = {}
        """For every slot with a block its grid."""
        self._first, self._parts = 0, list[_RunStretch]()
        self._cycles: list[tuple[tuple[int, int], ...]] = []
        self._blocks: list[_DispatchedBlock] = []

    @property
    def is_working(self) -> bool:
        """Return whether a block is there."""
        return self._floor.unfinished > 0

    @property
    def blocks(self) -> int:
        """That are there."""
        return len(self._grids)

    def fits(self, grid: int) -> int:
        """Return how many blocks of a grid there is room for."""
        taken = Counter(self._grids.values())
        rooms = [self.slots - len(self._grids)]
        for number, room in enumerate(self._gpu.room):
            if takes := self._gpu.grids[grid].takes[number]:
                left = room - sum(count * self._gpu.grids[other].takes[number] for other, count in taken.items())
                rooms.append(left // takes)
        return min(rooms)

    def give(self, conducts: Iterable[_BlockConduct]) -> None:
        """Blocks get the first of the empty slots."""
        slots = [slot for slot in range(self.slots) if slot not in self._grids]
        for slot, conduct in zip(slots, conducts, strict=False):
            course, latencies, uses = conduct
            self._grids[slot] = course.grid
            if (course, slot) not in self._walks:
                programs = self._programs[course.grid]
                row = walks(self._gpu.machine, programs, course.paths, self._partitions[slot][: len(programs)])
                self._walks[course, slot] = row
            for warp, walk in enumerate(self._walks[course, slot]):
                number = slot * self._warps + warp
                self._floor.put(self.cycle + self._delay, number, walk, slot)
                self._run.put(number, latencies[warp], uses[warp] if uses else None)
            numbers = range(slot * self._warps, slot * self._warps + len(uses))
            used = tuple(self._run.used[number] for number in numbers)
            self._blocks.append(_DispatchedBlock(BlockStart(self.cycle, slot, 0, self._delay), conduct, used))

    def advance(self, until: int | None = None) -> bool:
        """Execute until the next block has ended, in whose cycle others may be given, or until a cycle; which it is."""
        floor, warps = self._floor, self._warps
        floor.begin(self.cycle)
        is_new = True
        while not floor.ended and self.cycle != until:
            issued = sorted(self._run.picks(self.cycle)) if is_new and floor.ready else []
            self._cycles.append(tuple(divmod(warp, warps) for warp in issued))
            self.work += 1 + len(issued)
            self.cycle += 1
            is_new = bool(issued)
            if self.cycle in floor.arrivals or self.cycle in floor.releases:
                floor.begin(self.cycle)
                is_new = True
            if self.cycle % _CYCLES_PER_LOOK == 0:
                self._look()
        ended, floor.ended = floor.ended, []
        for slot in ended:
            del self._grids[slot]
        return bool(ended)

    def _look(self) -> None:
        if self._stop():
            raise _StoppedError
        if self.work > MAX_WORK:
            raise UnsupportedError(
                f"a run of a whole GPU gives up after {MAX_WORK} cycles and instructions of an SM that does not come"
                " back to where it was"
            )

    def state(self) -> Hashable:
        """Return all that counts from here on, where all blocks do the same."""
        return self._floor.state(self.cycle), self._run.state(self.cycle), frozenset(self._grids.items())

    def repeat(self, since: int, times: int) -> None:
        """What has been executed since a cycle comes so many times more before what is executed next."""
        self._cut(since, 1)
        self._cut(self.cycle, 1 + times)

    def copy(self) -> "_SmRun":
        """Another SM on which the same has happened as on this one up to now; what never changes they share."""
        blocks = [*self._blocks, *chain(*(part.blocks for part in self._parts))]
        given = chain(*((one.course, *one.latencies, *one.uses) for one in (block.conduct for block in blocks)))
        fixed = (self._gpu, self._programs, self._partitions, *(part.cycles for part in self._parts))
        known: dict[int, object] = {id(one): one for one in chain(fixed, given, *self._walks.values())}
        flat: Iterable[list[Any]] = chain((self._cycles,), *(block.used for block in blocks))
        return deepcopy(self, known | {id(one): one[:] for one in flat})

    def _cut(self, until: int, repeat: int) -> None:
        length = until - self._first
        if length:
            here = [block for block in self._blocks if block.begin.cycle < until]
            self._parts.append(_RunStretch(self._first, tuple(self._cycles[:length]), here, repeat))
            self._blocks, self._cycles = self._blocks[len(here) :], self._cycles[length:]
        self._first = until

    def history(self, sms: int, number: Callable[[BlockTrace], int]) -> SmHistory:
        """What has been executed, by so many SMs."""
        self._cut(self.cycle, 1)
        stretches = tuple(
            RepeatedCycles(
                part.cycles,
                tuple(
                    block.begin._replace(cycle=block.begin.cycle - part.first, course=number(block.known()))
                    for block in part.blocks
                ),
                part.repeat,
            )
            for part in self._parts
        )
        slots = 1 + max(block.begin.slot for part in self._parts for block in part.blocks)
        return SmHistory(sms, stretches, tuple(self._partitions[:slots]) if self._has_choice else ())


class _EqualSms:
    """All SMs under a policy without random numbers: alike until the rest is dispatched, of each grid less than fits.

    Args:
        order: in which grids are dispatched.

    Attributes:
        supplying: gives every SM its blocks but for the rest, as soon as there is room, and tells from time to time how
            much work has been done.
    """

    def __init__(
        self,
        gpu: GpuInstance,
        policy: str,
        choices: Choices,
        delay: int,
        order: Sequence[int],
        stop: Callable[[], bool] = _never,
    ) -> None:
        self._gpu, self._order, self._seed = gpu, order, choices.seed
        self._conducts = [_block_conduct(gpu, grid, choices) for grid in range(len(gpu.grids))]
        self._new: Callable[[int], _SmRun] = lambda slots: _SmRun(gpu, slots, policy, choices, delay, stop)
        self._sm = self._new(gpu.most_together)
        self._left = {grid: gpu.grids[grid].blocks for grid in order}
        self.supplying = self._supply_all()

    def _supply_all(self) -> Iterator[int]:
        for grid in self._order:
            each = self._left[grid] // self._gpu.sms
            left = yield from self._supply(grid, each)
            self._left[grid] -= self._gpu.sms * (each - left)

    def _supply(self, grid: int, blocks: int) -> Generator[int, None, int]:
        """Give these blocks to each SM as soon as there is room, until more would fit; how many are left."""
        sm, seen = self._sm, dict[Hashable, tuple[int, int]]()
        while blocks and (room := sm.fits(grid)) <= blocks:
            since, before = seen.setdefault(sm.state(), (sm.cycle, blocks))
            if before > blocks:
                times = blocks // (before - blocks) - 1  # what follows a circle goes round once more
                if times > 0:
                    sm.repeat(since, times)
                    blocks -= times * (before - blocks)
                seen.clear()
            sm.give([self._conducts[grid]] * room)
            blocks -= room
            if blocks:
                sm.advance()
                yield sm.work
        return blocks

    def schedules(self, *dispatches: str) -> Iterator[GpuSchedule]:
        """What all SMs do if dispatchers decide where the rest goes."""
        for _ in self.supplying:
            pass
        return (self._schedule(dispatch, self._sm.copy()) for dispatch in dispatches)

    def _schedule(self, dispatch: str, sm: _SmRun) -> GpuSchedule:
        """Grids in their order, each as soon as there is room for it; all SMs have done what one has up to now."""
        draws, left = SplitMix(self._seed, _DISPATCHER), dict(self._left)
        groups = [(sm, list(range(self._gpu.sms)))]
        while any(left.values()):
            for grid in self._order:
                groups = list(self._dispatched(groups, grid, left, dispatch, draws))
                if left[grid]:
                    break
            if any(left.values()):
                while sum(sm.advance(sm.cycle + 1) for sm, _ in groups) == 0:
                    pass  # all of them go on together
        courses: dict[BlockTrace, int] = {}
        histories = []
        for sm, numbers in groups:
            while sm.is_working:
                sm.advance()
            if sm.cycle:
                histories.append(sm.history(len(numbers), lambda course: courses.setdefault(course, len(courses))))
        return GpuSchedule(tuple(courses), tuple(histories))

    def _dispatched(
        self,
        groups: Iterable[tuple[_SmRun, list[int]]],
        grid: int,
        left: dict[int, int],
        dispatch: str,
        draws: SplitMix,
    ) -> Iterator[tuple[_SmRun, list[int]]]:
        """Groups of SMs that are alike, with their numbers, once blocks of a grid have come where there is room."""
        sms = dict(sorted(((number, sm) for sm, numbers in groups for number in numbers), key=lambda one: one[0]))
        rooms, loads = [sm.fits(grid) for sm in sms.values()], [sm.blocks for sm in sms.values()]
        given = dict(zip(sms, _blocks_per_sm(dispatch, rooms, loads, left[grid], draws), strict=True))
        left[grid] -= sum(given.values())
        for sm, numbers in groups:
            shares = Counter(given[number] for number in numbers)
            for blocks in sorted(shares):
                one = sm if blocks == max(shares) else sm.copy()
                if not sm.cycle and len(self._gpu.grids) == 1:  # which has as many slots as blocks in cycle 0
                    one = self._new(blocks) if blocks else sm
                one.give([self._conducts[grid]] * blocks)
                yield one, [number for number in numbers if given[number] == blocks]


def _blocks_per_sm(dispatch: str, room: Sequence[int], loads: Sequence[int], blocks: int, draws: SplitMix) -> list[int]:
    """Return how many of so many blocks each SM gets, which has room for so many, and that load."""
    if sum(room) > MAX_WORK:
        raise InputError(f"room for {sum(room)} blocks exceeds the limit of {MAX_WORK} that are dispatched one by one")
    keys: dict[str, Callable[[int, int], tuple[int, ...]]] = {
        "round-robin": lambda sm, nth: (nth, sm),
        "least-loaded": lambda sm, nth: (loads[sm] + nth, sm),
        "most-loaded": lambda sm, nth: (-loads[sm], sm, nth),
        "random": lambda *_: (draws.below(1 << 62),),
    }
    key = keys[dispatch]
    places = sorted((*key(sm, nth), sm) for sm, here in enumerate(room) for nth in range(here))
    given = Counter(place[-1] for place in places[:blocks])
    return [given[sm] for sm in range(len(room))]


def _run_random(gpu: GpuInstance, policy: str, dispatch: str, choices: Choices, delay: int) -> GpuSchedule:
    """Return a run in which every SM and every block has random numbers of its own."""
    if len(gpu.grids) > 1:
        raise UnsupportedError(
            f"runs of a whole GPU with random numbers know one grid, not {len(gpu.grids)}; take a policy and choices"
            " without random numbers"
        )
    most = gpu.blocks * sum(warps * program.most() for program, warps in gpu.grid.block)
    if most > MAX_WORK:
        raise InputError(
            f"{gpu.blocks} blocks with up to {most} warp-instructions are too many to draw random numbers for each:"
            f" {MAX_WORK} at most; take a policy and choices without random numbers"
        )

    def own(stream: int, number: int) -> Choices:
        return replace(choices, seed=SplitMix(choices.seed, stream, number).state)

    conducts: Iterator[_BlockConduct] = (_block_conduct(gpu, 0, own(_BLOCK, number)) for number in count())
    draws, left = SplitMix(choices.seed, _DISPATCHER), gpu.blocks
    shares = _blocks_per_sm(dispatch, [gpu.resident] * gpu.sms, [0] * gpu.sms, left, draws)
    sms = [_SmRun(gpu, share, policy, own(_SM, number), delay) for number, share in enumerate(shares) if share]
    waiting, turn = [(0, number) for number in range(len(sms))], 0
    while waiting:
        now, cycle = list[int](), waiting[0][0]
        while waiting and waiting[0][0] == cycle:
            now.append(heappop(waiting)[1])
        now.sort(key=lambda number: (number < turn, number))
        here = [sms[number] for number in now]
        loads, rooms = [sm.blocks for sm in here], [sm.fits(0) for sm in here]
        for number, sm, coming in zip(now, here, _blocks_per_sm(dispatch, rooms, loads, left, draws), strict=True):
            sm.give(islice(conducts, coming))
            left -= coming
            turn = number + 1 if coming else turn
            if sm.is_working:
                sm.advance()
                heappush(waiting, (sm.cycle, number))
    courses: dict[BlockTrace, int] = {}
    histories = Counter(sm.history(1, lambda course: courses.setdefault(course, len(courses))) for sm in sms)
    return GpuSchedule(tuple(courses), tuple(replace(history, sms=same) for history, same in histories.items()))
