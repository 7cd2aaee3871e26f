"""Who is where on one SM, and which ports are held: all rules of the machine, cycle by cycle."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from makespan.model.machine import Machine, SchedulerPromise, UnitClass
from makespan.model.program import BARRIER
from makespan.verify.refusal import Refused, StepBudget, TooMuchWork

MOST_COMPARISONS = 50_000_000  # of a warp that goes first with one that waits

_Pools = tuple[int, ...]
"""Ports by the numbers of their pools."""


class RouteStep(NamedTuple):
    """A place that a warp comes to.

    Args:
        unit: the class of its instruction, or a barrier.
        latency: least and most cycles.
        stall: cycles until the warp may go on; None if it waits out the latency.
        sets: the tokens that are pending for the latency.
        awaits: those of which none may be pending.
    """

    unit: str
    latency: tuple[int, int]
    stall: int | None = None
    sets: tuple[int, ...] = ()
    awaits: tuple[int, ...] = ()


@dataclass(eq=False, slots=True)
class _IssueNeeds:
    """What instructions of a class need in one partition.

    Args:
        unit: the class.
        held: a port of each of these pools, for so many cycles.
        choices: and for each use one of these, where the adversary has a choice.
        ready: so many warps could issue one now.
    """

    unit: UnitClass
    held: tuple[tuple[int, int], ...]
    choices: tuple[_Pools, ...]
    ready: int = 0

    def fits(self, free: Sequence[int], also: _Pools = ()) -> bool:
        """Return whether a port is free of all that it needs, if `also` of these pools one more is."""
        for pool, _ in self.held:
            if not free[pool] and pool not in also:
                return False
        return all(any(free[pool] or pool in also for pool in pools) for pools in self.choices)


class Script(NamedTuple):
    """What a warp does on its way.

    Args:
        steps: what it comes to, barriers included.
        latencies: of the instructions that it executes.
        uses: what those that have uses hold of each of them, where there is a choice.
    """

    steps: Sequence[RouteStep]
    latencies: Sequence[int]
    uses: Sequence[Sequence[tuple[int, int]]]


class SmExecution:
    """Where all warps are on their ways, and which ports are held.

    Args:
        partitions: of every warp that can be there at one time.
        blocks: the block of each, whose warps meet at barriers.
        name: how messages call a warp.
        where: how they begin.

    Attributes:
        unfinished: so many warps are there and have not finished.
        ended: the blocks whose last warp has finished, for the caller to take note of and to remove.
        shift: cycles that went by before this clock began; messages count them.
    """

    def __init__(
        self,
        machine: Machine,
        partitions: Sequence[int],
        blocks: Sequence[int],
        *,
        name: Callable[[int], str] = "warp {}".format,
        where: str = "",
    ) -> None:
        warps = len(partitions)
        self._scripts: list[Script | None] = [None] * warps
        self._steps: list[Sequence[RouteStep]] = [()] * warps
        self._latencies: list[Iterator[int]] = [iter(())] * warps
        self._uses: list[Iterator[Sequence[tuple[int, int]]]] = [iter(())] * warps
        pools, kinds = _kinds(machine)
        self._names, self._free = [name for name, _ in pools], [ports for _, ports in pools]
        self._kinds = [kind for of_partition in kinds for kind in of_partition.values()]
        self._kinds_of = [kinds[part] for part in partitions]
        self._done = [0] * warps
        self._back = [0] * warps  # the cycle in which a warp comes to its next place
        self._pending: list[dict[int, int]] = [{} for _ in range(warps)]  # the cycle in which a token is so no more
        self._block, self._name, self._where = blocks, name, where
        self.unfinished, self.shift = 0, 0
        self._running = dict.fromkeys(blocks, 0)
        self.ended: list[int] = []
        self._held: dict[int, list[int]] = {block: [] for block in self._running}  # at the barrier of the block
        self._due: dict[int, list[int]] = {}  # who comes to a next place in which cycle
        self._freed: dict[int, list[int]] = {}  # ports that are free again from a cycle on
        self._line = _FairQueue(warps, self._kinds) if machine.scheduler is SchedulerPromise.FAIR else None

    def admit(self, cycle: int, warp: int, script: Script) -> None:
        """The warp begins in this cycle or later, in the place of one that has finished."""
        self._scripts[warp] = script
        self._steps[warp], self._latencies[warp], self._uses[warp] = (
            script.steps,
            iter(script.latencies),
            iter(script.uses),
        )
        self._done[warp], self._back[warp], self._pending[warp] = 0, cycle, {}
        self._due.setdefault(cycle, []).append(warp)
        self.unfinished += 1
        self._running[self._block[warp]] += 1
        if self._line is not None:
            self._line.enter(warp)

    def state(self, cycle: int) -> object:
        """Return all on which it depends what may follow from this cycle on; ways are told apart by identity."""
        there = [
            warp
            for warp, script in enumerate(self._scripts)
            if script is not None and not self._has_finished(warp, cycle)
        ]
        return (
            [
                (
                    warp,
                    id(self._scripts[warp]),
                    self._done[warp],
                    max(-1, self._back[warp] - cycle),
                    sorted((token, until - cycle) for token, until in self._pending[warp].items() if until > cycle),
                )
                for warp in there
            ],
            sorted((back - cycle, sorted(pools)) for back, pools in self._freed.items()),
            None if self._line is None else self._line.state(there),
        )

    def _refusal(self, cycle: int, what: str) -> Refused:
        return Refused(f"witness: {self._where}cycle {self.shift + cycle}: {what}")

    def _has_finished(self, warp: int, cycle: int) -> bool:
        """Before what happens in this cycle."""
        return self._done[warp] == len(self._steps[warp]) and self._back[warp] < cycle

    def begin(self, cycle: int) -> bool:
        """What happens before a cycle: latencies pass, ports are free again. Whether anything does."""
        freed, coming = self._freed.pop(cycle, None), self._due.pop(cycle, None)
        for pool in freed or ():
            self._free[pool] += 1
        if coming:
            self._come(coming, cycle)
        return bool(freed or coming)

    def execute(self, cycle: int, warps: Collection[int]) -> None:
        """These warps issue one instruction each."""
        free, only_now = self._free, list[int]()
        served = {warp: self._issue(warp, cycle, only_now) for warp in warps}
        if not self.unfinished:
            raise self._refusal(cycle, "all warps have finished already")
        for kind in self._kinds:
            if kind.ready and kind.fits(free):
                what = f"an instruction of class {kind.unit.name} is left out although all that it needs is free"
                raise self._refusal(cycle, what)
        passed = None if self._line is None else self._line.leave(cycle, served, free)
        if passed is not None:
            raise self._refusal(cycle, f"{self._name(passed)} is passed over by a scheduler that is fair")
        for pool in only_now:
            free[pool] += 1
        for warp in warps:
            self._go_on(warp, cycle)

    def _issue(self, warp: int, cycle: int, only_now: list[int]) -> tuple[_IssueNeeds, _Pools]:
        """Take all ports for the next instruction of a warp; those for one cycle are added to `only_now`."""
        kind = self._next_of(warp, cycle)
        held = kind.held
        if kind.choices:
            chosen = zip(kind.choices, next(self._uses[warp]), strict=True)
            held = (*held, *((pools[which], cycles) for pools, (which, cycles) in chosen))
        for pool, cycles in held:
            if not self._free[pool]:
                raise self._refusal(cycle, f"{self._name(warp)} finds no free {self._names[pool]}")
            self._free[pool] -= 1
            if cycles == 1:
                only_now.append(pool)
            else:
                self._freed.setdefault(cycle + cycles, []).append(pool)
        kind.ready -= 1
        return kind, tuple(pool for pool, _ in held)

    def _next_of(self, warp: int, cycle: int) -> _IssueNeeds:
        """What kind of instruction a warp executes in this cycle."""
        steps, at = self._steps[warp], self._done[warp]
        if cycle < self._back[warp]:
            what = "a latency" if not at or steps[at - 1].stall is None else "a stall or a result"
            raise self._refusal(cycle, f"{self._name(warp)} waits for {what}")
        if at == len(steps):
            raise self._refusal(cycle, f"{self._name(warp)} has finished already")
        if steps[at].unit == BARRIER:
            raise self._refusal(cycle, f"{self._name(warp)} waits at a barrier")
        return self._kinds_of[warp][steps[at].unit]

    def _go_on(self, warp: int, cycle: int) -> None:
        """The warp has issued, and will come to its next place."""
        step, latency = self._steps[warp][self._done[warp]], next(self._latencies[warp])
        self._done[warp] += 1
        if step.stall is None:
            back = cycle + latency
        else:
            pending = self._pending[warp]
            for token in step.sets:
                pending[token] = max(cycle + latency, pending.get(token, 0))
            back = self._arrival(warp, cycle + step.stall)
        self._back[warp] = back
        self._due.setdefault(back, []).append(warp)

    def _arrival(self, warp: int, cycle: int) -> int:
        """When the warp is at its next place or has finished, from this cycle on: not while it waits for a token."""
        pending = self._pending[warp]
        steps, at = self._steps[warp], self._done[warp]
        awaits = pending if at == len(steps) else steps[at].awaits
        return max((cycle, *(pending.get(token, 0) for token in awaits)))

    def _come(self, warps: list[int], cycle: int) -> None:
        """These warps have come to their next place, and those whose barrier opens to the one after it."""
        coming = warps
        while coming:
            for warp in coming:
                block, steps, at = self._block[warp], self._steps[warp], self._done[warp]
                if at == len(steps):
                    self.unfinished -= 1
                    self._running[block] -= 1
                    if not self._running[block]:
                        self.ended.append(block)
                elif steps[at].unit == BARRIER:
                    self._held[block].append(warp)
                else:
                    kind = self._kinds_of[warp][steps[at].unit]
                    kind.ready += 1
                    if self._line is not None:
                        self._line.join(cycle, warp, kind)
            touched = {self._block[warp] for warp in coming}
            passing = [w for b in touched if len(self._held[b]) == self._running[b] for w in self._held[b]]
            coming = []
            for warp in passing:
                self._done[warp] += 1
                self._held[self._block[warp]] = []
                self._back[warp] = back = self._arrival(warp, cycle)
                (coming if back == cycle else self._due.setdefault(back, [])).append(warp)


class _FairQueue:
    """Who waits for what, for a fair scheduler: z goes before w if it came earlier and issued earlier."""

    def __init__(self, warps: int, kinds: Iterable[_IssueNeeds]) -> None:
        self._waiting: dict[_IssueNeeds, dict[int, int]] = {kind: {} for kind in kinds}  # since when, in order
        self._last = [-1] * warps
        self._work = StepBudget(MOST_COMPARISONS)

    def enter(self, warp: int) -> None:
        """A new warp in the place of another, which has never issued."""
        self._last[warp] = -1

    def state(self, warps: Collection[int]) -> object:
        """Who of these came and issued before whom: nothing else matters."""
        came = {warp: since for waiting in self._waiting.values() for warp, since in waiting.items()}
        first = {cycle: rank for rank, cycle in enumerate(sorted(set(came.values())))}
        last = {cycle: rank for rank, cycle in enumerate(sorted({-1, *(self._last[warp] for warp in warps)}))}
        return [(first[came[warp]] if warp in came else None, last[self._last[warp]]) for warp in warps]

    def join(self, cycle: int, warp: int, kind: _IssueNeeds) -> None:
        """The warp is ready from this cycle on."""
        self._waiting[kind][warp] = cycle

    def leave(self, cycle: int, served: Mapping[int, tuple[_IssueNeeds, _Pools]], free: Sequence[int]) -> int | None:
        """Return these warps issue and take these ports; a warp that one of them may not go before, if there is any.

        Who waits has the turn of another if its ports would suffice.
        """
        came = {warp: self._waiting[kind].pop(warp) for warp, (kind, _) in served.items()}
        different = {taken for _, taken in served.values()}
        for kind, waiting in self._waiting.items():
            enough = {taken for taken in different if kind.fits(free, taken)} if waiting else set[_Pools]()
            ahead = [warp for warp, (_, taken) in served.items() if taken in enough]
            if not ahead:
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
                    return passed
        for warp in served:
            self._last[warp] = cycle
        return None


def _kinds(machine: Machine) -> tuple[list[tuple[str, int]], list[dict[str, _IssueNeeds]]]:
    """All pools of ports, each with its name and size; and for every partition what its instructions need, by class."""
    pools: list[tuple[str, int]] = []
    numbers: list[dict[str, int]] = [{} for _ in range(machine.partitions)]
    slot = "" if machine.issue_width is None else "issue slot"
    every = [(ports.name, f"port of {ports.name}", ports.capacity, ports.shared) for ports in machine.ports]
    if machine.issue_width is not None:
        every.append((slot, slot, machine.issue_width, False))
    for name, words, capacity, shared in every:
        for part, of_partition in enumerate(numbers):
            if not (shared and part):
                pools.append((words, capacity))
            of_partition[name] = len(pools) - 1

    def kind(unit: UnitClass, of: Mapping[str, int]) -> _IssueNeeds:
        held = [(of[unit.name], unit.interval), *([(of[slot], 1)] if slot else [])]
        if machine.fixed_uses:
            held += [(of[use.resources[0]], use.least) for use in unit.uses]
            return _IssueNeeds(unit, tuple(held), ())
        return _IssueNeeds(unit, tuple(held), tuple(tuple(of[name] for name in use.resources) for use in unit.uses))

    return pools, [{unit.name: kind(unit, of) for unit in machine.units} for of in numbers]
