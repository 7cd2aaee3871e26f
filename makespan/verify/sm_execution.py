"""An SM executed cycle by cycle under all rules of the machine: where its warps are, and which ports are held.

A lower bound is a schedule that occurs, so every rule is checked here as section 1 and 14 of docs/theory.md have it:
each warp is ready when it issues, each port is free when it is taken, and no warp is left out that could issue.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from makespan.model.machine import Machine, SchedulerPromise
from makespan.model.program import BARRIER
from makespan.verify.machine_form import SLOT, class_holds, numbered_pools
from makespan.verify.refusal import ProofSteps, Refused, TooMuchWork

MOST_COMPARISONS = 50_000_000  # of a warp that goes first with one that waits

_Pools = tuple[int, ...]  # a port of each of these pools, by their numbers


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
    """The ports that an instruction of a class needs in one partition, and who waits for them.

    Args:
        unit: the name of the class.
        held: pairs of a pool of which it takes a port, and the cycles for which it holds the port.
        choices: for each use, where the adversary has a choice, the pools of which it takes a port of one.
        ready: the number of warps that could issue such an instruction now if the ports were free.
    """

    unit: str
    held: tuple[tuple[int, int], ...]
    choices: tuple[_Pools, ...]
    ready: int = 0

    def fits(self, free: Sequence[int], also: _Pools = ()) -> bool:
        """Return whether all ports that it needs are free, if one more port were free of each of the pools `also`."""
        for pool, _ in self.held:
            if not free[pool] and pool not in also:
                return False
        # no pool is in two holds of one class, so each hold may be looked at by itself
        return all(any(free[pool] or pool in also for pool in pools) for pools in self.choices)


class Script(NamedTuple):
    """The choices of a warp: its path, and all that the adversary settles for its instructions.

    Args:
        steps: the places on its path in order, barriers included.
        latencies: of the instructions that it executes, in cycles.
        uses: where there is a choice, for each instruction with uses the position of the resource and the cycles.
    """

    steps: Sequence[RouteStep]
    latencies: Sequence[int]
    uses: Sequence[Sequence[tuple[int, int]]]


class SmExecution:
    """The state of one SM, which follows a schedule cycle by cycle, and refuses it where it breaks a rule.

    Args:
        machine: the SM.
        partitions: the partition of every warp that can be there at one time.
        blocks: the block of each, whose warps meet at barriers.
        name: gives the words by which messages call a warp.
        where: the words with which messages begin.

    Attributes:
        unfinished: the number of warps that have been admitted and have not finished.
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
        pools, numbers = numbered_pools(machine)
        self._names = ["issue slot" if name == SLOT else f"port of {name}" for name, _ in pools]
        self._free = [ports for _, ports in pools]
        needs = [_needs_of_partition(machine, of_partition) for of_partition in numbers]
        self._needs = [need for of_partition in needs for need in of_partition.values()]
        self._needs_of = [needs[part] for part in partitions]
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
        self._queue = _FairQueue(warps, self._needs) if machine.scheduler is SchedulerPromise.FAIR else None

    def admit(self, cycle: int, warp: int, script: Script) -> None:
        """Let a warp begin in this cycle or later, in the place of one that has finished."""
        self._scripts[warp] = script
        self._steps[warp], self._latencies[warp] = script.steps, iter(script.latencies)
        self._uses[warp] = iter(script.uses)
        self._done[warp], self._back[warp], self._pending[warp] = 0, cycle, {}
        self._due.setdefault(cycle, []).append(warp)
        self.unfinished += 1
        self._running[self._block[warp]] += 1
        if self._queue is not None:
            self._queue.enter(warp)

    def state(self, cycle: int) -> object:
        """Return everything that decides which schedules may follow from this cycle on."""
        # Cycles count from this one, and scripts are told apart by identity, so that a stretch of a schedule which ends
        # in the state in which it began may be repeated.
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
            None if self._queue is None else self._queue.state(there),
        )

    def _refusal(self, cycle: int, what: str) -> Refused:
        return Refused(f"witness: {self._where}cycle {self.shift + cycle}: {what}")

    def _has_finished(self, warp: int, cycle: int) -> bool:
        return self._done[warp] == len(self._steps[warp]) and self._back[warp] < cycle

    def begin(self, cycle: int) -> bool:
        """Let latencies pass and ports be free again that do so before a cycle; return whether there were any."""
        freed, coming = self._freed.pop(cycle, None), self._due.pop(cycle, None)
        for pool in freed or ():
            self._free[pool] += 1
        if coming:
            self._come(coming, cycle)
        return bool(freed or coming)

    def execute(self, cycle: int, warps: Collection[int]) -> None:
        """Let these warps, and no others, issue one instruction each.

        Raises:
            Refused: one of them may not, or another one is left out that the rules do not leave out.
        """
        free, only_now = self._free, list[int]()
        served = {warp: self._issue(warp, cycle, only_now) for warp in warps}
        if not self.unfinished:
            raise self._refusal(cycle, "all warps have finished already")
        # work conservation: after all issues of the cycle no way to issue is free for any warp that is still ready
        for need in self._needs:
            if need.ready and need.fits(free):
                what = f"an instruction of class {need.unit} is left out although all that it needs is free"
                raise self._refusal(cycle, what)
        passed = None if self._queue is None else self._queue.leave(cycle, served, free)
        if passed is not None:
            raise self._refusal(cycle, f"{self._name(passed)} is passed over by a scheduler that is fair")
        for pool in only_now:  # held for this cycle alone, so free again only now that all have been looked at
            free[pool] += 1
        for warp in warps:
            self._go_on(warp, cycle)

    def _issue(self, warp: int, cycle: int, only_now: list[int]) -> tuple[_IssueNeeds, _Pools]:
        """Take all ports for the next instruction of a warp; those for one cycle are added to `only_now`."""
        need = self._next_of(warp, cycle)
        held = need.held
        if need.choices:
            chosen = zip(need.choices, next(self._uses[warp]), strict=True)
            held = (*held, *((pools[which], cycles) for pools, (which, cycles) in chosen))
        for pool, cycles in held:
            if not self._free[pool]:
                raise self._refusal(cycle, f"{self._name(warp)} finds no free {self._names[pool]}")
            self._free[pool] -= 1
            if cycles == 1:
                only_now.append(pool)
            else:
                self._freed.setdefault(cycle + cycles, []).append(pool)
        need.ready -= 1
        return need, tuple(pool for pool, _ in held)

    def _next_of(self, warp: int, cycle: int) -> _IssueNeeds:
        steps, at = self._steps[warp], self._done[warp]
        if cycle < self._back[warp]:
            what = "a latency" if not at or steps[at - 1].stall is None else "a stall or a result"
            raise self._refusal(cycle, f"{self._name(warp)} waits for {what}")
        if at == len(steps):
            raise self._refusal(cycle, f"{self._name(warp)} has finished already")
        if steps[at].unit == BARRIER:
            raise self._refusal(cycle, f"{self._name(warp)} waits at a barrier")
        return self._needs_of[warp][steps[at].unit]

    def _go_on(self, warp: int, cycle: int) -> None:
        step, latency = self._steps[warp][self._done[warp]], next(self._latencies[warp])
        self._done[warp] += 1
        if step.stall is None:
            back = cycle + latency
        else:
            pending = self._pending[warp]
            for token in step.sets:  # it stays pending as long as any earlier setter of it is not done
                pending[token] = max(cycle + latency, pending.get(token, 0))
            back = self._arrival(warp, cycle + step.stall)
        self._back[warp] = back
        self._due.setdefault(back, []).append(warp)

    def _arrival(self, warp: int, cycle: int) -> int:
        """Return the cycle, this one or later, in which no token keeps the warp from its next place any more."""
        # At the end of its program a warp waits for everything that it has set.
        pending = self._pending[warp]
        steps, at = self._steps[warp], self._done[warp]
        awaits = pending if at == len(steps) else steps[at].awaits
        return max((cycle, *(pending.get(token, 0) for token in awaits)))

    def _come(self, warps: list[int], cycle: int) -> None:
        """Let warps arrive at their next places; those whose barrier opens go on, maybe to a barrier again at once."""
        coming = warps
        while coming:
            for warp in coming:
                self._arrive(warp, cycle)
            touched = {self._block[warp] for warp in coming}
            # a barrier opens when every unfinished warp of its block is held there
            passing = [w for b in touched if len(self._held[b]) == self._running[b] for w in self._held[b]]
            coming = []
            for warp in passing:
                self._done[warp] += 1
                self._held[self._block[warp]] = []
                self._back[warp] = back = self._arrival(warp, cycle)
                (coming if back == cycle else self._due.setdefault(back, [])).append(warp)

    def _arrive(self, warp: int, cycle: int) -> None:
        block, steps, at = self._block[warp], self._steps[warp], self._done[warp]
        if at == len(steps):
            self.unfinished -= 1
            self._running[block] -= 1
            if not self._running[block]:
                self.ended.append(block)
        elif steps[at].unit == BARRIER:
            self._held[block].append(warp)
        else:
            need = self._needs_of[warp][steps[at].unit]
            need.ready += 1
            if self._queue is not None:
                self._queue.join(cycle, warp, need)


class _FairQueue:
    """The warps that wait for a fair scheduler, which lets z go before w if z came earlier and issued last earlier."""

    def __init__(self, warps: int, needs: Iterable[_IssueNeeds]) -> None:
        self._waiting: dict[_IssueNeeds, dict[int, int]] = {need: {} for need in needs}  # since when, in order
        self._last = [-1] * warps
        self._work = ProofSteps(MOST_COMPARISONS)

    def enter(self, warp: int) -> None:
        """Forget the issues of the warp that was in the place of a new one."""
        self._last[warp] = -1

    def state(self, warps: Collection[int]) -> object:
        """Return the orders in which these warps came and issued; by fairness nothing else matters."""
        came = {warp: since for waiting in self._waiting.values() for warp, since in waiting.items()}
        first = {cycle: rank for rank, cycle in enumerate(sorted(set(came.values())))}
        last = {cycle: rank for rank, cycle in enumerate(sorted({-1, *(self._last[warp] for warp in warps)}))}
        return [(first[came[warp]] if warp in came else None, last[self._last[warp]]) for warp in warps]

    def join(self, cycle: int, warp: int, need: _IssueNeeds) -> None:
        """Let a warp be ready from this cycle on."""
        self._waiting[need][warp] = cycle

    def leave(self, cycle: int, served: Mapping[int, tuple[_IssueNeeds, _Pools]], free: Sequence[int]) -> int | None:
        """Let warps issue that take these ports; return a warp that one of them may not go before, or None."""
        # A warp that waits has the turn of another if the ports of that one, with those that are left, would suffice.
        came = {warp: self._waiting[need].pop(warp) for warp, (need, _) in served.items()}
        different = {taken for _, taken in served.values()}
        for need, waiting in self._waiting.items():
            enough = {taken for taken in different if need.fits(free, taken)} if waiting else set[_Pools]()
            ahead = {warp: came[warp] for warp, (_, taken) in served.items() if taken in enough}
            if ahead and (passed := self._passed_over(waiting, ahead)) is not None:
                return passed
        for warp in served:
            self._last[warp] = cycle
        return None

    def _passed_over(self, waiting: Mapping[int, int], ahead: Mapping[int, int]) -> int | None:
        """Return a waiting warp that came and issued before one of those `ahead`, which issues now; both since when."""
        newest = max(ahead.values())
        for passed, since in waiting.items():
            if since >= newest:  # they are in the order in which they came: the rest came too late
                break
            try:
                self._work.spend(len(ahead))
            except TooMuchWork:
                raise Refused("the witness is too large for this checker: too many warps wait") from None
            if any(came > since and self._last[warp] > self._last[passed] for warp, came in ahead.items()):
                return passed
        return None


def _needs_of_partition(machine: Machine, numbers: Mapping[str, int]) -> dict[str, _IssueNeeds]:
    """Return by class what instructions need, in pools as one partition numbers them."""
    found = {}
    for unit in machine.units:
        own, *uses = class_holds(unit)
        fixed, chosen = (uses, []) if machine.fixed_uses else ([], uses)
        slot = [(numbers[SLOT], 1)] if SLOT in numbers else []
        held = ((numbers[unit.name], own.least), *slot, *((numbers[use.pools[0]], use.least) for use in fixed))
        choices = tuple(tuple(numbers[name] for name in use.pools) for use in chosen)
        found[unit.name] = _IssueNeeds(unit.name, held, choices)
    return found
