"""Equal strings, fixed latencies, one issue slot: the worst case by all ways in which the warps can be late.

A warp that has waited for d cycles so far stands where it would have stood d cycles ago had it never waited. So the
cycle and how late each of the equal warps is make a state; and if at most one warp is ready, it remains as it is. The
worst case is what the string takes alone, and the most that anybody can be late.
"""

from functools import cache
from math import inf

import numpy as np

from makespan.host.compiled import Ints
from makespan.host.errors import BrokenPromiseError
from makespan.model.instance import Instance
from makespan.model.machine import Machine, UnitClass
from makespan.model.schedule import Schedule
from makespan.proof.bounds import closed_form
from makespan.proof.bounds.issue_slots import slots_of
from makespan.proof.engines import levels_compiled as loops
from makespan.proof.engines.engine import Finding
from makespan.proof.engines.limits import Limits

EVIDENCE = "levels"

KEY_BITS = 63

MOST_CYCLES = 1_000_000
"""Of a string alone."""

_KEYS_PER_CALL = 200_000
_COPIES = 4
"""Of a level in memory while the next one is made, for each warp: what is written, joined and sorted."""


def applies(instance: Instance) -> bool:
    """Return whether warps of one string wait for one slot only, no latency is a choice, and a state fits into a key.

    Without an issue width, the one slot is the port of a single class: then closed forms are exact.
    """
    machine = instance.machine
    if not instance.identical or not machine.fixed_latencies or machine.issue_width != 1 or slots_of(instance) != 1:
        return False
    return _alone(instance) <= MOST_CYCLES and instance.warps * _bits(instance) <= KEY_BITS


def _alone(instance: Instance) -> int:
    return instance.groups[0].program.heaviest({unit.name: unit.latency.most for unit in instance.machine.units})


def _bits(instance: Instance) -> int:
    return (closed_form(instance).upper - _alone(instance)).bit_length()


def solve(instance: Instance, limits: Limits, incumbent: int) -> Finding:
    """Return the exact worst case, and a schedule if it is longer than the incumbent; nothing if limits stop it.

    The instance is one to which the module `applies`.
    """
    with limits.preparing():
        load()
    levels = LatenessLevels(instance)
    if not levels.explore(limits, incumbent):
        return Finding()
    witness = levels.witness()
    return Finding(witness, incumbent if witness is None else witness.makespan, EVIDENCE)


@cache
def load() -> None:
    """Load or compile every loop."""
    levels = LatenessLevels(Instance.of("CCC", 3, Machine("slot", (UnitClass("C", 1),), issue_width=1)))
    levels.explore(Limits(inf), 0)
    levels.witness()


class LatenessLevels:
    """The states of every cycle that may lead to a schedule longer than any known."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        latency = {unit.name: unit.latency.most for unit in instance.machine.units}
        gaps = np.array([latency[place.unit] for place in instance.groups[0].program.places], dtype=np.int64)
        begins = np.concatenate(([0], np.cumsum(gaps[:-1])))
        self._alone = _alone(instance)
        self._most = closed_form(instance).upper - self._alone
        self.bits = self._most.bit_length()
        issues = np.zeros(begins[-1] + 1, dtype=np.int64)
        issues[begins] = 1
        longest = gaps[:-1].max(initial=0)
        long = np.zeros(len(issues) + 1, dtype=np.int64)
        if instance.warps <= longest:  # so that a gap has room for a letter of each of the others
            long[begins[:-1][gaps[:-1] == longest] + 1] = 1
        left = np.cumsum(issues[::-1])[::-1].copy()
        late, ready = (np.zeros(instance.warps, dtype=np.int64) for _ in range(2))
        self._scene = loops.LevelsScene(issues, left, np.cumsum(long), late, ready)
        self._levels = [np.zeros(1, dtype=np.int64)]
        self._latest: tuple[int, int] | None = None

    def explore(self, limits: Limits, incumbent: int) -> bool:
        """Explore until no warp can become later than known; return False when a limit comes first."""
        floor, kept = incumbent - self._alone, 0
        while len(keys := self._levels[-1]):
            grown = self._next(keys, floor, limits)  # without states from which no warp becomes later than the floor
            if grown is None:
                return False
            if len(grown) and grown is not keys:
                kept += grown.nbytes
            # all levels are kept for the way back to a witness; where nothing changed they are one array
            if kept + 8 * _COPIES * self._instance.warps * len(grown) > limits.memory_bytes:
                limits.need_memory()
                return False
            self._levels.append(grown)
            if len(grown) and (most := int(grown[-1]) >> self.bits * (self._instance.warps - 1)) > floor:
                floor, self._latest = most, (len(self._levels) - 1, int(grown[-1]))
        return True

    def _next(self, keys: Ints, floor: int, limits: Limits) -> Ints | None:
        cycle, parts, changed = len(self._levels) - 1, list[Ints](), False
        for begin in range(0, len(keys), _KEYS_PER_CALL):
            if limits.expired:
                return None
            some = keys[begin : begin + _KEYS_PER_CALL]
            same, new = np.empty_like(some), np.empty(len(some) * self._instance.warps, dtype=np.int64)
            kept, made = loops.grow(cycle, some, self.bits, floor, self._most, self._scene, same, new)
            parts += [same[:kept], np.unique(new[:made])]
            changed = changed or kept < len(some)
        return np.unique(np.concatenate(parts)) if changed else keys

    def witness(self) -> Schedule | None:
        """Return a schedule in which a warp is as late as any warp can be; None if no warp is later than was known."""
        if self._latest is None:
            return None
        cycle, key = self._latest
        keys = [key]
        for at in range(cycle - 1, -1, -1):  # back from level to level: some state before leads to each
            number = loops.parent(at, self._levels[at], self.bits, key, self._scene)
            if number < 0:
                raise BrokenPromiseError("a level has a state to which none before it leads")
            key = int(self._levels[at][number])
            keys.append(key)
        return self._schedule(keys[::-1])

    def _schedule(self, keys: list[int]) -> Schedule:
        """Name the warps; behind the last key anybody who is ready may issue."""
        late, cycles = np.zeros(self._instance.warps, dtype=np.int64), list[tuple[int, ...]]()
        after, issues = np.zeros_like(late), self._scene.issues
        while (len(cycles) - late < len(issues)).any():
            at = len(cycles) - late
            ready = issues[np.clip(at, 0, len(issues) - 1)] * (at >= 0) * (at < len(issues))
            choices = [int(warp) for warp in np.flatnonzero(ready)]
            if len(cycles) + 1 < len(keys) and len(choices) > 1:
                loops.unpack(keys[len(cycles) + 1], self.bits, after)
                choices = [w for w in choices if (np.sort(late + ready - (np.arange(len(late)) == w)) == after).all()]
            cycles.append(tuple(choices[:1]))
            late += ready
            late[choices[:1]] -= 1  # all that were ready became later by one, but for the one that issues
        cycles += [()] * (self._alone + int(late.max()) - len(cycles))
        return Schedule.of_chains(self._instance, cycles)
