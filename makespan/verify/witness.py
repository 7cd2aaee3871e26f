"""The witness, executed cycle by cycle: it proves the lower bound if it keeps every rule of the machine."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from makespan.instance import Instance
from makespan.machine import Machine, Scheduler, UnitClass
from makespan.program import BARRIER, Program
from makespan.schedule import Schedule
from makespan.verify.refusal import Refused, TooMuchWork, Work

MOST_COMPARISONS = 50_000_000  # of a warp that goes first with one that waits

_Pools = tuple[int, ...]
"""Ports by the numbers of their pools."""


def replay(instance: Instance, witness: Schedule) -> int:
    """The makespan of `witness`, in cycles.

    Raises:
        Refused: a path that its program lacks, a latency, resource or interval that its instruction lacks, partitions
            of uneven sizes, an instruction for which no port or issue slot is free, or whose warp has to wait for a
            latency, a stall, a result or a barrier, a warp left out for which all is free, one that does not finish, a
            cycle after the end, or a scheduler that breaks its promise.
    """
    floor = _Floor(instance, witness)
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


class _Step(NamedTuple):
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
class _Kind:
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
        """Whether a port is free of all that it needs, if `also` of these pools one more is."""
        for pool, _ in self.held:
            if not free[pool] and pool not in also:
                return False
        return all(any(free[pool] or pool in also for pool in pools) for pools in self.choices)


class _Floor:
    """Where all warps are on their paths, and which ports are held."""

    def __init__(self, instance: Instance, witness: Schedule) -> None:
        machine, warps = instance.machine, instance.warps
        self._steps = _routes(instance, witness.paths)
        self._latencies = _latencies(instance, self._steps, witness.latencies)
        self._uses = _uses(machine, self._steps, witness.uses)
        pools, kinds = _kinds(machine)
        self._names, self._free = [name for name, _ in pools], [ports for _, ports in pools]
        self._kinds = [kind for of_partition in kinds for kind in of_partition.values()]
        self._kinds_of = [kinds[part] for part in _partitions(instance, witness)]
        self._done = [0] * warps
        self._back = [0] * warps  # the cycle in which a warp comes to its next place
        self._pending: list[dict[int, int]] = [{} for _ in range(warps)]  # the cycle in which a token is so no more
        self._block = instance.block_of_warp()
        self.unfinished = warps
        self._running = Counter(self._block)
        self._held: dict[int, list[int]] = {block: [] for block in self._running}  # at the barrier of the block
        self._due: dict[int, list[int]] = {0: list(range(warps))}  # who comes to a next place in which cycle
        self._freed: dict[int, list[int]] = {}  # ports that are free again from a cycle on
        self._line = _Line(warps, self._kinds) if machine.scheduler is Scheduler.FAIR else None

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
            raise Refused(f"witness: cycle {cycle}: all warps have finished already")
        for kind in self._kinds:
            if kind.ready and kind.fits(free):
                raise Refused(
                    f"witness: cycle {cycle}: an instruction of class {kind.unit.name} is left out"
                    " although all that it needs is free"
                )
        if self._line is not None:
            self._line.leave(cycle, served, free)
        for pool in only_now:
            free[pool] += 1
        for warp in warps:
            self._go_on(warp, cycle)

    def _issue(self, warp: int, cycle: int, only_now: list[int]) -> tuple[_Kind, _Pools]:
        """Take all ports for the next instruction of a warp; those for one cycle are added to `only_now`."""
        kind = self._next_of(warp, cycle)
        held = kind.held
        if kind.choices:
            chosen = zip(kind.choices, next(self._uses[warp]), strict=True)
            held = (*held, *((pools[which], cycles) for pools, (which, cycles) in chosen))
        for pool, cycles in held:
            if not self._free[pool]:
                raise Refused(f"witness: cycle {cycle}: warp {warp} finds no free {self._names[pool]}")
            self._free[pool] -= 1
            if cycles == 1:
                only_now.append(pool)
            else:
                self._freed.setdefault(cycle + cycles, []).append(pool)
        kind.ready -= 1
        return kind, tuple(pool for pool, _ in held)

    def _next_of(self, warp: int, cycle: int) -> _Kind:
        """What kind of instruction a warp executes in this cycle."""
        steps, at = self._steps[warp], self._done[warp]
        if cycle < self._back[warp]:
            what = "a latency" if not at or steps[at - 1].stall is None else "a stall or a result"
            raise Refused(f"witness: cycle {cycle}: warp {warp} waits for {what}")
        if at == len(steps):
            raise Refused(f"witness: cycle {cycle}: warp {warp} has finished already")
        if steps[at].unit == BARRIER:
            raise Refused(f"witness: cycle {cycle}: warp {warp} waits at a barrier")
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
                    self._running[block] -= 1
                    self.unfinished -= 1
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


class _Line:
    """Who waits for what, for a fair scheduler: z goes before w if it came earlier and issued earlier."""

    def __init__(self, warps: int, kinds: Iterable[_Kind]) -> None:
        self._waiting: dict[_Kind, dict[int, int]] = {kind: {} for kind in kinds}  # since when, in order
        self._last = [-1] * warps
        self._work = Work(MOST_COMPARISONS)

    def join(self, cycle: int, warp: int, kind: _Kind) -> None:
        """The warp is ready from this cycle on."""
        self._waiting[kind][warp] = cycle

    def leave(self, cycle: int, served: Mapping[int, tuple[_Kind, _Pools]], free: Sequence[int]) -> None:
        """These warps issue and take these ports; who waits has the turn of another if its ports would suffice."""
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
                    raise Refused(f"witness: cycle {cycle}: warp {passed} is passed over by a scheduler that is fair")
        for warp in served:
            self._last[warp] = cycle


def _kinds(machine: Machine) -> tuple[list[tuple[str, int]], list[dict[str, _Kind]]]:
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

    def kind(unit: UnitClass, of: Mapping[str, int]) -> _Kind:
        held = [(of[unit.name], unit.interval), *([(of[slot], 1)] if slot else [])]
        if machine.fixed_uses:
            held += [(of[use.resources[0]], use.least) for use in unit.uses]
            return _Kind(unit, tuple(held), ())
        return _Kind(unit, tuple(held), tuple(tuple(of[name] for name in use.resources) for use in unit.uses))

    return pools, [{unit.name: kind(unit, of) for unit in machine.units} for of in numbers]


def _partitions(instance: Instance, witness: Schedule) -> tuple[int, ...]:
    """That of every warp."""
    chosen, fixed, parts = witness.partitions, instance.partition_of_warp, range(instance.machine.partitions)
    if fixed is not None:
        if chosen not in ((), fixed):
            raise Refused("witness: the machine leaves no choice of a partition")
        return fixed
    if len(chosen) != instance.warps or not set(chosen) <= set(parts):
        raise Refused(f"witness: {len(chosen)} partitions in 0..{parts[-1]} for {instance.warps} warps")
    sizes = [chosen.count(part) for part in parts]
    if max(sizes) > min(sizes) + 1:
        raise Refused(f"witness: the warps are not spread evenly over the partitions: {sizes}")
    return chosen


def _routes(instance: Instance, paths: tuple[tuple[int, ...], ...]) -> list[list[_Step]]:
    """What every warp comes to on its way, barriers included."""
    classes = {unit.name: (unit.latency.least, unit.latency.most) for unit in instance.machine.units}
    known: dict[int, list[_Step]] = {}
    routes: dict[tuple[int, int], list[_Step]] = {}
    found = []
    for program, path in zip(instance.programs(), paths, strict=True):
        if id(program) not in known:
            known[id(program)] = _places(program, classes)
        if (id(program), id(path)) not in routes:
            routes[id(program), id(path)] = _route(program, path, known[id(program)])
        found.append(routes[id(program), id(path)])
    return found


def _places(program: Program, classes: Mapping[str, tuple[int, int]]) -> list[_Step]:
    if not program.timings:
        return [_Step(place.unit, classes.get(place.unit, (0, 0))) for place in program.places]
    return [
        _Step(place.unit, timing.latency, timing.stall, timing.sets, timing.awaits)
        for place, timing in zip(program.places, program.timings, strict=True)
    ]


def _route(program: Program, path: tuple[int, ...], places: list[_Step]) -> list[_Step]:
    """The steps along a path from a start to the end of its program."""
    if path[0] not in program.starts:
        raise Refused(f"witness: no warp of its program begins at place {path[0]}")
    for place, after in zip(path, (*path[1:], program.end), strict=True):
        if place >= program.end or after not in program.places[place].successors:
            raise Refused(f"witness: place {after} does not follow place {place}")
    return [places[place] for place in path]


def _executed(route: Iterable[_Step]) -> list[_Step]:
    return [step for step in route if step.unit != BARRIER]


def _latencies(
    instance: Instance, routes: Sequence[list[_Step]], chosen: tuple[tuple[int, ...], ...]
) -> list[Iterator[int]]:
    """For every warp the latencies of its instructions, in order: those of the witness where there is a choice."""
    if not chosen and instance.fixed_latencies:
        return [(step.latency[0] for step in route if step.unit != BARRIER) for route in routes]
    if len(chosen) != len(routes):
        raise Refused(f"witness: latencies of {len(chosen)} warps for {len(routes)} warps")
    for warp, (route, row) in enumerate(zip(routes, chosen, strict=True)):
        executed = _executed(route)
        if len(row) != len(executed):
            raise Refused(f"witness: {len(row)} latencies for {len(executed)} instructions of warp {warp}")
        for step, latency in zip(executed, row, strict=True):
            if not step.latency[0] <= latency <= step.latency[1]:
                raise Refused(f"witness: a latency of {latency} for class {step.unit} of warp {warp}")
    return [iter(row) for row in chosen]


def _uses(
    machine: Machine, routes: Sequence[list[_Step]], chosen: Sequence[Sequence[Sequence[tuple[int, int]]]]
) -> list[Iterator[Sequence[tuple[int, int]]]]:
    """For every warp what its instructions hold of each use of their class, in order; nothing without a choice."""
    if not chosen and machine.fixed_uses:
        return []
    if len(chosen) != len(routes):
        raise Refused(f"witness: uses of {len(chosen)} warps for {len(routes)} warps")
    uses = {unit.name: unit.uses for unit in machine.units}
    for warp, (route, row) in enumerate(zip(routes, chosen, strict=True)):
        executed = _executed(route)
        if len(row) != len(executed):
            raise Refused(f"witness: uses of {len(row)} instructions for {len(executed)} of warp {warp}")
        for step, held in zip(executed, row, strict=True):
            known = uses[step.unit]
            if len(held) != len(known) or not all(
                0 <= which < len(use.resources) and use.least <= cycles <= use.most
                for use, (which, cycles) in zip(known, held, strict=False)
            ):
                raise Refused(f"witness: uses {held} for class {step.unit} of warp {warp}")
    return [iter([held for held in row if held]) for row in chosen]  # a class without uses does not ask
