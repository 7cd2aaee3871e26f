"""Runs of a whole GPU: a policy on every SM, and a dispatcher. Repeated cycles are executed once.

While blocks are left, every SM gets as many as it has room for. So SMs under a policy without random numbers all do the
same until the last blocks are dispatched, and one SM stands for all of them. Once it is in an earlier state again, it
repeats the cycles since then. With random numbers every SM differs, and every block is executed.

With several grids, all SMs get blocks of the first grid as long as it has enough for the room of all of them, then of
the next one. The rest of all grids comes last, in the same order.
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
    RulePolicy,
    SchedulingPolicy,
    warps_of_partition,
)
from makespan.model.simulate.runs import PolicyRun

DISPATCH = ("round-robin", "least-loaded", "most-loaded", "random")
"""The ways to choose an SM with room for the next block: the next one in turn, the one with the fewest blocks, the one
with the most blocks (so that it is full before another gets any), or a random one.
"""

STARVING = dict(zip(("behind", "starve-together", "starve-in-turn"), STARVING_RULES, strict=True))
"""Rules by their names as policies. Either the warp that is furthest behind goes first, or the last slot waits for all
others. Of the others, the warp goes first that is furthest behind, or the one that is furthest ahead.
"""
FAIRLY = dict(zip(("fair", "fair-together", "fair-in-turn"), FAIR_RULES, strict=True))
"""The same for a fair scheduler: the warp that is ready for longest goes first, and the rule breaks ties."""

_SOON = ("starve-together", "starve-in-turn", "gto", "gty", "oldest", "youngest")
"""Policies under which one block goes before another, so that an SM soon repeats a state. They are tried first."""

_FIRST = {
    SchedulerPromise.ANY: ("starve-in-turn", "starve-together"),
    SchedulerPromise.FAIR: ("fair-in-turn", "fair-together"),
}
"""The policies that make the guaranteed run. The first one usually needs the least work before a state repeats."""

_FAVOUR = 3
"""The factor by which the work of a policy may exceed that of the next one while all of them are tried."""

MAX_WORK = 20_000_000
"""The most cycles and warp-instructions that are executed one by one."""

_CYCLES_PER_LOOK = 1024
_DISPATCHER, _SM, _BLOCK = 100, 101, 102
"""The streams of random numbers besides those of `simulate.choices`."""


class FoundRun(NamedTuple):
    """A schedule, with the dispatcher and the policy that made it, as a phrase."""

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
    """Return the schedule that a policy on all SMs and a dispatcher make. It is one of many, and bounds no other.

    Args:
        policy: a key of `POLICIES`, `STARVING` or, for a fair scheduler, `FAIRLY`.
        dispatch: one of `DISPATCH`.
        choices: the choices that no policy makes. With random paths, latencies or intervals, and under the policy
            `random`, each SM and each block draws its own.
        delay: the cycles from when a block gets its room until its warps begin. None means the most.
        order: the order of the grids, by number. None means by increasing number.

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
    """Return the longest run that is found. A replay makes it a lower bound on the worst case.

    One run is made whatever `expired` returns, and its work does not depend on any clock. The result is None if no SM
    repeats a state within `MAX_WORK` in that run, and no other run is found in time.

    Args:
        expired: a function that returns whether the search must end with what has been found.
        enough: a function that returns whether the search may end as soon as one run has been found.

    Raises:
        UnsupportedError: `run_gpu` knows no policy for the machine.
    """
    ends = [Choices(latency=latency) for latency in ("most", "least")]
    return _best_run(gpu, ends, gpu.dispatch, max, expired, enough, _cheapest_run(gpu, ends[::-1], gpu.dispatch))


def shortest_gpu_run(
    gpu: GpuInstance, expired: Callable[[], bool] = _never, *, enough: Callable[[], bool] = _never
) -> FoundRun | None:
    """Return the shortest run that is found in time, or None. A replay makes it an upper bound on the best case."""
    least = [Choices(path=path, latency="least", interval="least") for path in ("shortest", "longest")]
    return _best_run(gpu, least, 0, min, expired, enough)


class _StoppedError(Exception):
    """A run has been stopped before its end."""


def _cheapest_run(gpu: GpuInstance, choices: Sequence[Choices], delay: int) -> FoundRun | None:
    """Return the run of one of a few policies: the one that needs the least work.

    The policies take turns, and earlier ones may use more work than later ones.
    """
    _check_scheduler(gpu)
    tried = list(product(_distinct_choices(gpu, choices), _FIRST[gpu.machine.scheduler]))
    runs = [_EqualSms(gpu, policy, chosen, delay, range(len(gpu.grids))) for chosen, policy in tried]
    work = dict.fromkeys(range(len(runs)), 0)
    while work:
        # the policies advance in turn, so a policy that never repeats a state cannot use up all the work
        number = min(work, key=lambda number: work[number] * _FAVOUR**number)
        try:
            done = next(runs[number].supplying, None)
            if done is None:
                (schedule,) = runs[number].schedules(DISPATCH[0])
                return FoundRun(schedule, f"{DISPATCH[0]} dispatch, {tried[number][1]}")
            work[number] = done
        except UnsupportedError:
            del work[number]  # this policy repeats no state within the limit; another one may
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
    """Return the best run of all policies and dispatchers without random numbers, or `known` if that is better."""
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
            continue  # this policy repeats no state within the limit; another one may
        except _StoppedError:
            break
    some = [one for one in (found, known) if one is not None]
    return better(some, key=lambda one: one.schedule.makespan) if some else None


def _check_scheduler(gpu: GpuInstance) -> None:
    alone = [gpu.alone(grid).sm(1) for grid in range(len(gpu.grids))]
    if gpu.machine.scheduler is SchedulerPromise.FAIR and any(one.is_multiprocessor for one in alone):
        raise UnsupportedError(
            "runs of a whole GPU do not know a fair scheduler together with partitions, resources or warps that run"
            ' ahead; leave the promise out: scheduler = "any" in the machine file'
        )


def _distinct_choices(gpu: GpuInstance, choices: Sequence[Choices]) -> Sequence[Choices]:
    """Return the choices that differ: only one if there is no path, latency or interval to choose."""
    alone = [gpu.alone(grid).sm(1) for grid in range(len(gpu.grids))]
    is_sole = all(group.program.is_chain for one in alone for group in one.groups)
    has_none = is_sole and all(one.fixed_latencies for one in alone) and gpu.machine.fixed_uses
    return [Choices()] if has_none else choices


def _policies(
    gpu: GpuInstance, policy: str, choices: Choices, slots: int, partitions: Sequence[int]
) -> list[SchedulingPolicy]:
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
    """The conduct of a block: its trace, and the times of the instructions of its warps, uses as in `WarpRoutes`."""

    course: BlockTrace
    latencies: tuple[tuple[int, ...], ...]
    uses: tuple[tuple[UseChoices, ...], ...]


def _slot_partitions(gpu: GpuInstance, slots: int, choices: Choices) -> tuple[list[tuple[int, ...]], bool]:
    """Return the partitions of the warps of every slot, and whether the machine leaves a choice."""
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
    """A block that got its room: its conduct, and the uses of its warps, which are complete once it has ended."""

    begin: BlockStart
    conduct: _BlockConduct
    used: tuple[list[UseChoices], ...]

    def known(self) -> BlockTrace:
        """Return the trace of the block with its uses, once it has ended."""
        return self.conduct.course._replace(uses=tuple(map(tuple, self.used)))


class _RunStretch(NamedTuple):
    """A stretch whose blocks have no trace numbers yet."""

    first: int
    cycles: tuple[tuple[tuple[int, int], ...], ...]
    blocks: list[_DispatchedBlock]
    repeat: int


class _SmRun:
    """An SM under a policy. Blocks are given to it in a cycle with room; then it runs until room is free again.

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
        """The grid of the block in each taken slot."""
        self._first, self._parts = 0, list[_RunStretch]()
        self._cycles: list[tuple[tuple[int, int], ...]] = []
        self._blocks: list[_DispatchedBlock] = []

    @property
    def is_working(self) -> bool:
        """Return whether the SM has a block that has not ended."""
        return self._floor.unfinished > 0

    @property
    def blocks(self) -> int:
        """Return the number of blocks on the SM."""
        return len(self._grids)

    def fits(self, grid: int) -> int:
        """Return the number of further blocks of a grid for which there is room."""
        taken = Counter(self._grids.values())
        rooms = [self.slots - len(self._grids)]
        for number, room in enumerate(self._gpu.room):
            if takes := self._gpu.grids[grid].takes[number]:
                left = room - sum(count * self._gpu.grids[other].takes[number] for other, count in taken.items())
                rooms.append(left // takes)
        return min(rooms)

    def give(self, conducts: Iterable[_BlockConduct]) -> None:
        """Give these blocks the first empty slots."""
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
        """Execute until the next block has ended, or until a cycle. Return whether a block has ended."""
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
        """Return all that the future depends on, if all blocks do the same."""
        return self._floor.state(self.cycle), self._run.state(self.cycle), frozenset(self._grids.items())

    def repeat(self, since: int, times: int) -> None:
        """Repeat what has been executed since a cycle `times` times more, before what is executed next."""
        self._cut(since, 1)  # what came before happens once
        self._cut(self.cycle, 1 + times)  # the cycles in between repeat

    def copy(self) -> "_SmRun":
        """Return another SM with the same past. The two share what never changes."""
        blocks = [*self._blocks, *chain(*(part.blocks for part in self._parts))]
        given = chain(*((one.course, *one.latencies, *one.uses) for one in (block.conduct for block in blocks)))
        fixed = (self._gpu, self._programs, self._partitions, *(part.cycles for part in self._parts))
        # `deepcopy` copies no object that is in its memo: large values that never change are put there
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
        """Return what has been executed as the history of `sms` SMs."""
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
    """All SMs under a policy without random numbers, which do the same until the rest of the blocks is dispatched.

    Args:
        order: the order in which grids are dispatched.

    Attributes:
        supplying: an iterator that gives every SM its blocks except for the rest, as soon as there is room. It yields
            the work that has been done so far.
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
        """Give these blocks to each SM as soon as there is room, until more would fit. Return how many are left."""
        sm, seen = self._sm, dict[Hashable, tuple[int, int]]()
        while blocks and (room := sm.fits(grid)) <= blocks:
            since, before = seen.setdefault(sm.state(), (sm.cycle, blocks))
            if before > blocks:
                times = blocks // (before - blocks) - 1  # the last repeat is executed, as what follows needs its state
                if times > 0:
                    sm.repeat(since, times)
                    blocks -= times * (before - blocks)
                seen.clear()  # what follows is another stretch of history
            sm.give([self._conducts[grid]] * room)
            blocks -= room
            if blocks:
                sm.advance()
                yield sm.work
        return blocks

    def schedules(self, *dispatches: str) -> Iterator[GpuSchedule]:
        """Yield what all SMs do, for each of these dispatchers of the rest of the blocks."""
        for _ in self.supplying:
            pass
        return (self._schedule(dispatch, self._sm.copy()) for dispatch in dispatches)

    def _schedule(self, dispatch: str, sm: _SmRun) -> GpuSchedule:
        """Return the schedule with the rest of the blocks: grids in their order, each as soon as there is room."""
        draws, left = SplitMix(self._seed, _DISPATCHER), dict(self._left)
        groups = [(sm, list(range(self._gpu.sms)))]  # at first all SMs are alike
        while any(left.values()):
            for grid in self._order:
                groups = list(self._dispatched(groups, grid, left, dispatch, draws))
                if left[grid]:
                    break
            if any(left.values()):
                while sum(sm.advance(sm.cycle + 1) for sm, _ in groups) == 0:
                    pass  # all SMs advance by the same cycle, because the dispatcher looks at all of them
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
        """Yield groups of SMs that are alike, with their numbers, after blocks of a grid have filled the room."""
        sms = dict(sorted(((number, sm) for sm, numbers in groups for number in numbers), key=lambda one: one[0]))
        rooms, loads = [sm.fits(grid) for sm in sms.values()], [sm.blocks for sm in sms.values()]
        given = dict(zip(sms, _blocks_per_sm(dispatch, rooms, loads, left[grid], draws), strict=True))
        left[grid] -= sum(given.values())
        for sm, numbers in groups:
            shares = Counter(given[number] for number in numbers)
            for blocks in sorted(shares):
                # SMs that get different numbers of blocks part here: one keeps the object
                one = sm if blocks == max(shares) else sm.copy()
                if not sm.cycle and len(self._gpu.grids) == 1:  # which has as many slots as blocks in cycle 0
                    one = self._new(blocks) if blocks else sm
                one.give([self._conducts[grid]] * blocks)
                yield one, [number for number in numbers if given[number] == blocks]


def _blocks_per_sm(dispatch: str, room: Sequence[int], loads: Sequence[int], blocks: int, draws: SplitMix) -> list[int]:
    """Return the number of blocks that each SM gets, given the room and the load of each."""
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
        # round robin goes on behind the SM that got a block last
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
