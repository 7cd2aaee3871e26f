"""Runs of a whole GPU: a policy on every SM, and a dispatcher; what returns is executed once.

While blocks are left every SM gets as many as it has room for. So SMs under a policy that draws no random numbers all
do the same until the last blocks are dispatched, and one of them stands for all; and once it is where it has been
before, it goes round in a circle. With random numbers every SM is another one, and every block is executed.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from heapq import heappop, heappush
from itertools import count, islice, product
from typing import NamedTuple

from makespan.errors import InputError, UnsupportedError
from makespan.feature import MULTIPROCESSOR
from makespan.gpu import Begin, Course, GpuInstance, GpuSchedule, History, Stretch
from makespan.machine import Scheduler
from makespan.simulate.choices import Choices, Draws, Uses, assigned, routes
from makespan.simulate.floor import Floor, Walk, walks
from makespan.simulate.gpu_replay import replay
from makespan.simulate.policies import POLICIES, Policy, Run, members
from makespan.simulate.rules import FAIR, RULES, Ruled

DISPATCH = ("round-robin", "least-loaded", "most-loaded", "random")
"""Which SM gets the next block, of those with room: the next one in turn; the one with the fewest blocks; the one with
the most, so that it is full before another gets any; or any.
"""

STARVING = dict(zip(("behind", "starve-together", "starve-in-turn"), RULES, strict=True))
"""Rules by their names as policies: who is furthest behind goes first; or the last slot waits for all others, of which
who is furthest behind goes first, or who is furthest ahead.
"""
FAIRLY = dict(zip(("fair", "fair-together", "fair-in-turn"), FAIR, strict=True))
"""The same of a scheduler that promises to be fair: who is ready for longest goes first, and the rule decides ties."""

_SOON = ("starve-together", "starve-in-turn", "gto", "gty", "oldest", "youngest")
"""Policies under which one block goes before another: an SM is soon where it was before. They are tried first."""

MAX_WORK = 20_000_000
"""Cycles and warp-instructions that are executed one by one."""

_CYCLES_PER_LOOK = 1024
_DISPATCHER, _SM, _BLOCK = 100, 101, 102
"""Streams of random numbers beside those of `simulate.choices`."""


class Found(NamedTuple):
    """A schedule, and in words who made it."""

    schedule: GpuSchedule
    policy: str


def run(
    gpu: GpuInstance,
    policy: str,
    dispatch: str = DISPATCH[0],
    choices: Choices | None = None,
    *,
    delay: int | None = None,
) -> GpuSchedule:
    """The schedule that a policy on all SMs and a dispatcher make: one of many, so no bound on any other.

    Args:
        policy: of `POLICIES`, `STARVING`, or for a scheduler that promises to be fair of `FAIRLY`.
        dispatch: of `DISPATCH`.
        choices: what no policy decides. With random paths, latencies or intervals, and under the policy `random`, each
            SM and each block draws its own.
        delay: cycles from when a block gets its room until its warps begin; by default the most.

    >>> from makespan import Machine, Program
    >>> block = ((Program.chain("CLL"), 8),)
    >>> gpu = GpuInstance.of(block, 10**6, Machine.of({"C": 1, "L": 1}), sms=46, resident=6)
    >>> run(gpu, "lrr")
    GpuSchedule(46 SMs, 347841 cycles)

    Raises:
        InputError: an unknown name, a delay that is too long, or too many blocks to draw random numbers for each.
        UnsupportedError: several grids, a policy that does not keep the promise of the scheduler, or an SM that does
            not come back to where it was within `MAX_WORK`.
    """
    return _schedule(gpu, policy, dispatch, choices or Choices(), gpu.dispatch if delay is None else delay, _never)


def longest(gpu: GpuInstance, expired: Callable[[], bool] = lambda: False) -> Found:
    """The longest run that is found, replayed: a lower bound on the worst case.

    Args:
        expired: once it says so, only what has been found by then counts; always one run.

    Raises:
        UnsupportedError: as `run` does, if no run is found.
    """
    ends = ("most", "least")
    return _best(gpu, (Choices(latency=latency) for latency in ends), gpu.dispatch, max, expired)


def shortest(gpu: GpuInstance, expired: Callable[[], bool] = lambda: False) -> Found:
    """The shortest run that is found, replayed: an upper bound on the best case; as `longest` otherwise."""
    least = (Choices(path=path, latency="least", interval="least") for path in ("shortest", "longest"))
    return _best(gpu, least, 0, min, expired)


def _never() -> bool:
    return False


class _StoppedError(Exception):
    """A run has been stopped before its end."""


def _best(
    gpu: GpuInstance,
    choices: Iterable[Choices],
    delay: int,
    better: Callable[..., Found],
    expired: Callable[[], bool],
) -> Found:
    """The best run of all policies and dispatchers that draw no random numbers."""
    found: Found | None = None
    refused = UnsupportedError("there is no policy")
    _check(gpu)
    others = sorted({*STARVING, *POLICIES} - {*_SOON, "random"})
    names = tuple(FAIRLY) if gpu.machine.scheduler is Scheduler.FAIR else (*_SOON, *others)
    asked = dict.fromkeys(one if _has_choice(gpu) else Choices() for one in choices)
    for chosen, policy in product(asked, names):
        try:
            alike = _Alike(gpu, policy, chosen, delay, expired if found else _never)
            for dispatch in DISPATCH[::2]:
                made = Found(alike.schedule(dispatch), f"{dispatch} dispatch, {policy}")
                found = better(found or made, made, key=lambda one: one.schedule.makespan)
        except UnsupportedError as error:
            refused = error
        except _StoppedError:
            break
    if found is None:
        raise refused
    replay(gpu, found.schedule)
    return found


def _check(gpu: GpuInstance) -> None:
    """Refuse what no policy here is made for."""
    if len(gpu.grids) > 1:
        raise UnsupportedError(f"runs of a whole GPU know one grid, not {len(gpu.grids)}; run each alone")
    if gpu.machine.scheduler is Scheduler.FAIR and gpu.sm(1).features.keys() & MULTIPROCESSOR:
        raise UnsupportedError(
            "runs of a whole GPU do not know a fair scheduler together with partitions, resources or warps that run"
            ' ahead; leave the promise out: scheduler = "any" in the machine file'
        )


def _has_choice(gpu: GpuInstance) -> bool:
    """Whether paths, latencies or intervals are to be chosen."""
    sm = gpu.sm(1)
    is_sole = all(group.program.is_chain for group in sm.groups)
    return not (is_sole and sm.fixed_latencies and gpu.machine.fixed_uses)


def _schedule(
    gpu: GpuInstance, policy: str, dispatch: str, choices: Choices, delay: int, stop: Callable[[], bool]
) -> GpuSchedule:
    _check(gpu)
    if dispatch not in DISPATCH:
        raise InputError(f"unknown dispatch {dispatch!r}; known: {', '.join(DISPATCH)}")
    if not 0 <= delay <= gpu.dispatch:
        raise InputError(f"a block begins 0..{gpu.dispatch} cycles after it got its room, not {delay}")
    if policy == "random" or "random" in (choices.path, choices.latency, choices.interval):
        return _apart(gpu, policy, dispatch, choices, delay)
    return _Alike(gpu, policy, choices, delay, stop).schedule(dispatch)


def _policies(gpu: GpuInstance, policy: str, choices: Choices, slots: int, partitions: Sequence[int]) -> list[Policy]:
    """The policy of every partition of an SM."""
    parts, last = range(gpu.machine.partitions), range((slots - 1) * gpu.grid.warps, slots * gpu.grid.warps)
    is_fair = gpu.machine.scheduler is Scheduler.FAIR
    rules = FAIRLY if is_fair else STARVING
    if policy in rules:
        return [Ruled(rules[policy], last) for _ in parts]
    known = rules if is_fair else (*POLICIES, *rules)
    if policy not in known:
        raise InputError(f"unknown policy {policy!r} of a scheduler of this kind; known: {', '.join(known)}")
    return [POLICIES[policy](members(partitions, part), choices, part) for part in parts]


class _Conduct(NamedTuple):
    """What a block does: its course, and for every warp what its instructions take; `uses` as in `Routes`."""

    course: Course
    latencies: tuple[tuple[int, ...], ...]
    uses: tuple[tuple[Uses, ...], ...]


def _conduct(gpu: GpuInstance, choices: Choices) -> _Conduct:
    alone = gpu.sm(1).relaxed
    chosen, numbers = routes(alone, choices), dict(zip(gpu.slots_of_warps(1), count()))
    order = [numbers[0, warp] for warp in range(gpu.grid.warps)]
    paths, latencies = (tuple(rows[number] for number in order) for rows in (chosen.paths, chosen.latencies))
    uses = tuple(chosen.uses[number] for number in order) if chosen.uses else ()
    return _Conduct(Course(0, paths, () if alone.fixed_latencies else latencies), latencies, uses)


class _Block(NamedTuple):
    """A block that got its room: what it does, and what its warps use, which is known once it has ended."""

    begin: Begin
    course: Course
    used: tuple[list[Uses], ...]

    def known(self) -> Course:
        """The course, now that the block has ended."""
        return self.course._replace(uses=tuple(map(tuple, self.used)))


class _Part(NamedTuple):
    """A stretch whose courses have no numbers yet."""

    first: int
    cycles: tuple[tuple[tuple[int, int], ...], ...]
    blocks: list[_Block]
    repeat: int


class _Sm:
    """An SM under a policy. Blocks are given to it in a cycle in which slots are empty; then it goes on to the next.

    Warps are numbered by slot.
    """

    def __init__(
        self, gpu: GpuInstance, slots: int, policy: str, choices: Choices, delay: int, stop: Callable[[], bool] = _never
    ) -> None:
        self._gpu, self._delay, self._stop, self._warps = gpu, delay, stop, gpu.grid.warps
        self._programs = [program for program, warps in gpu.grid.block for _ in range(warps)]
        together = gpu.sm(slots)
        parts = dict(zip(gpu.slots_of_warps(slots), assigned(together, choices), strict=True))
        self._partitions = [tuple(parts[slot, warp] for warp in range(self._warps)) for slot in range(slots)]
        self._has_choice = together.partition_of_warp is None
        flat = [part for row in self._partitions for part in row]
        self._floor = Floor(gpu.machine, len(flat))
        self._run = Run(gpu.machine, _policies(gpu, policy, choices, slots, flat), self._floor)
        self._walks: dict[tuple[Course, int], list[Walk]] = {}
        self.slots, self.cycle, self.empty, self.work = slots, 0, list(range(slots)), 0
        self._first, self._parts = 0, list[_Part]()
        self._cycles: list[tuple[tuple[int, int], ...]] = []
        self._blocks: list[_Block] = []

    @property
    def is_working(self) -> bool:
        """Whether a block is there."""
        return self._floor.unfinished > 0

    @property
    def cycles(self) -> int:
        """From cycle 0 on, repeats included."""
        return sum(part.repeat * len(part.cycles) for part in self._parts) + len(self._cycles)

    def give(self, conducts: Iterable[_Conduct]) -> None:
        """Blocks get the first of the empty slots."""
        for course, latencies, uses in conducts:
            slot = self.empty.pop(0)
            if (course, slot) not in self._walks:
                row = walks(self._gpu.machine, self._programs, course.paths, self._partitions[slot])
                self._walks[course, slot] = row
            for warp, walk in enumerate(self._walks[course, slot]):
                number = slot * self._warps + warp
                self._floor.put(self.cycle + self._delay, number, walk, slot)
                self._run.put(number, latencies[warp], uses[warp] if uses else None)
            numbers = range(slot * self._warps, (slot + 1) * self._warps) if uses else ()
            used = tuple(self._run.used[number] for number in numbers)
            self._blocks.append(_Block(Begin(self.cycle, slot, 0, self._delay), course, used))

    def advance(self) -> None:
        """Execute until the next block has ended, in whose cycle others may be given."""
        floor, warps = self._floor, self._warps
        floor.begin(self.cycle)
        is_new = True
        while not floor.ended:
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
        self.empty, floor.ended = sorted((*self.empty, *floor.ended)), []

    def _look(self) -> None:
        if self._stop():
            raise _StoppedError
        if self.work > MAX_WORK:
            raise UnsupportedError(
                f"a run of a whole GPU gives up after {MAX_WORK} cycles and instructions of an SM that does not come"
                " back to where it was"
            )

    def state(self) -> Hashable:
        """All that counts from here on, where all blocks do the same."""
        return self._floor.state(self.cycle), self._run.state(self.cycle), tuple(self.empty)

    def repeat(self, since: int, times: int) -> None:
        """What has been executed since a cycle comes so many times more before what is executed next."""
        self._cut(since, 1)
        self._cut(self.cycle, 1 + times)

    def _cut(self, until: int, repeat: int) -> None:
        length = until - self._first
        if length:
            here = [block for block in self._blocks if block.begin.cycle < until]
            self._parts.append(_Part(self._first, tuple(self._cycles[:length]), here, repeat))
            self._blocks, self._cycles = self._blocks[len(here) :], self._cycles[length:]
        self._first = until

    def history(self, sms: int, number: Callable[[Course], int]) -> History:
        """What has been executed, by so many SMs."""
        self._cut(self.cycle, 1)
        stretches = tuple(
            Stretch(
                part.cycles,
                tuple(
                    block.begin._replace(cycle=block.begin.cycle - part.first, course=number(block.known()))
                    for block in part.blocks
                ),
                part.repeat,
            )
            for part in self._parts
        )
        return History(sms, stretches, tuple(self._partitions) if self._has_choice else ())


class _Alike:
    """All SMs under a policy without random numbers: alike until the last blocks are dispatched.

    By then each has got `common` blocks, and in the same cycle there is room for `room` on each of them, more than the
    `left` blocks that there are.
    """

    def __init__(self, gpu: GpuInstance, policy: str, choices: Choices, delay: int, stop: Callable[[], bool]) -> None:
        self._gpu, self._conduct = gpu, _conduct(gpu, choices)
        self._new: Callable[[int], _Sm] = lambda slots: _Sm(gpu, slots, policy, choices, delay, stop)
        self._probe: _Sm | None = self._new(gpu.resident)
        spare = self._supply(self._probe, gpu.blocks // gpu.sms, is_cut_short=True)
        self.common = gpu.blocks // gpu.sms - spare
        self.room, self.left = len(self._probe.empty), gpu.blocks - gpu.sms * self.common
        self._seed = choices.seed
        self._ends: dict[int, _Sm] = {}

    def _supply(self, sm: _Sm, blocks: int, *, is_cut_short: bool = False) -> int:
        """Give these blocks to an SM as soon as there is room; or stop where more would fit, with how many are left."""
        seen: dict[Hashable, tuple[int, int]] | None = {}
        while blocks or is_cut_short:
            if is_cut_short and len(sm.empty) > blocks:
                return blocks
            if seen is not None:
                since, before = seen.setdefault(sm.state(), (sm.cycle, blocks))
                if before > blocks:
                    times = max(0, blocks // (before - blocks) - 1)  # what follows a circle goes round once more
                    if times:
                        sm.repeat(since, times)
                    blocks, seen = blocks - times * (before - blocks), None
            coming = min(blocks, len(sm.empty))
            sm.give([self._conduct] * coming)
            blocks -= coming
            sm.advance()
        while sm.is_working:
            sm.advance()
        return 0

    def schedule(self, dispatch: str) -> GpuSchedule:
        """What all SMs do if the last blocks go there."""
        counts = _shares(dispatch, self._gpu.sms, self.room, self.left, Draws(self._seed, _DISPATCHER))
        courses: dict[Course, int] = {}
        histories = [
            self._end(last).history(sms, lambda course: courses.setdefault(course, len(courses)))
            for last, sms in sorted(counts.items())
            if self.common + last
        ]
        return GpuSchedule(tuple(courses), tuple(histories))

    def _end(self, last: int) -> _Sm:
        """An SM that gets so many of the last blocks."""
        if last not in self._ends:
            sm, blocks = self._probe, last
            if sm is None or not self.common:
                sm, blocks = self._new(self._gpu.resident if self.common else last), self.common + last
            else:
                self._probe = None
            self._supply(sm, blocks)
            self._ends[last] = sm
        return self._ends[last]


def _shares(dispatch: str, sms: int, room: int, blocks: int, draws: Draws) -> Counter[int]:
    """How many SMs get how many blocks, if each has room for so many and all have equally many by now."""
    if dispatch == "most-loaded":
        full, rest = divmod(blocks, room)
        return Counter({room: full}) + Counter([rest] if full < sms else []) + Counter({0: max(0, sms - full - 1)})
    if dispatch == "random":
        return Counter(_spread(dispatch, [room] * sms, [0] * sms, blocks, draws))
    least, more = divmod(blocks, sms)
    return Counter({least + 1: more}) + Counter({least: sms - more})


def _spread(dispatch: str, room: Sequence[int], loads: Sequence[int], blocks: int, draws: Draws) -> list[int]:
    """How many of so many blocks each SM gets, which has room for so many, and that load."""
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


def _apart(gpu: GpuInstance, policy: str, dispatch: str, choices: Choices, delay: int) -> GpuSchedule:
    """A run in which every SM and every block has random numbers of its own."""
    most = gpu.blocks * sum(warps * program.most() for program, warps in gpu.grid.block)
    if most > MAX_WORK:
        raise InputError(
            f"{gpu.blocks} blocks with up to {most} warp-instructions are too many to draw random numbers for each:"
            f" {MAX_WORK} at most; take a policy and choices without random numbers"
        )

    def own(stream: int, number: int) -> Choices:
        return replace(choices, seed=Draws(choices.seed, stream, number).state)

    conducts: Iterator[_Conduct] = (_conduct(gpu, own(_BLOCK, number)) for number in count())
    draws, left = Draws(choices.seed, _DISPATCHER), gpu.blocks
    shares = _spread(dispatch, [gpu.resident] * gpu.sms, [0] * gpu.sms, left, draws)
    sms = [_Sm(gpu, share, policy, own(_SM, number), delay) for number, share in enumerate(shares) if share]
    waiting, turn = [(0, number) for number in range(len(sms))], 0
    while waiting:
        now, cycle = list[int](), waiting[0][0]
        while waiting and waiting[0][0] == cycle:
            now.append(heappop(waiting)[1])
        now.sort(key=lambda number: (number < turn, number))
        here = [sms[number] for number in now]
        loads = [sm.slots - len(sm.empty) for sm in here]
        for number, sm, coming in zip(
            now, here, _spread(dispatch, [len(sm.empty) for sm in here], loads, left, draws), strict=True
        ):
            sm.give(islice(conducts, coming))
            left -= coming
            turn = number + 1 if coming else turn
            if sm.is_working:
                sm.advance()
                heappush(waiting, (sm.cycle, number))
    courses: dict[Course, int] = {}
    histories = Counter(sm.history(1, lambda course: courses.setdefault(course, len(courses))) for sm in sms)
    return GpuSchedule(tuple(courses), tuple(replace(history, sms=same) for history, same in histories.items()))
