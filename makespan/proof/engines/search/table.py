"""The exact worst or best case from one table that holds every count state of strings.

Equal warps are interchangeable, so a state of a group is the sorted tuple p_1 <= ... <= p_W of the places of its
warps, where the number of places, I, stands for "finished". Its rank in the combinatorial number system is

    sum over k of C(p_k + k - 1, k),

which numbers the C(I + W, W) states of the group without a gap; several groups are the digits of one rank.

*Order.* Moving the last of the warps that stand at p, number k, raises its rank by C(p + k - 1, k - 1) and keeps the
tuple sorted; further warps that move, at the same place or elsewhere, add their own amounts. So every cycle leads to
a state of a higher rank, and what it adds to the rank is a sum over the warps that move.

*Exactness.* Ranks are filled in from the highest, where all warps have finished and no cycle remains, down to 0, where
all stand at their first instruction. When the turn of a state comes, all states to which a cycle leads are done, and
its own value is one cycle more than the largest (or the smallest) of theirs. There is no bound and no pruning to
trust. A table that is not full proves nothing.

Source: D. Knuth, The Art of Computer Programming 4A, 7.2.1.3, for the number system.
"""

import time
from collections.abc import Iterator
from functools import cache
from itertools import accumulate, groupby
from math import comb, inf, prod
from operator import mul
from statistics import fmean

import numpy as np

from makespan.host.compiled import Ints, ints
from makespan.host.errors import BrokenPromiseError
from makespan.model.feature import Feature
from makespan.model.instance import Group, Instance
from makespan.model.schedule import Schedule
from makespan.proof.engines.limits import Limits
from makespan.proof.engines.search import table_compiled as loops

KNOWS = frozenset({Feature.CLASSES, Feature.GROUPS})

MOST_LEAVES = 1 << 20
"""Ways to go on from one state, counted generously, so that a look at the limits comes in time."""

_MOST_CYCLES = (1 << 15) - 1
_BYTES_PER_STATE = 2
_BYTES_PER_NUMBER = 8
_FIRST_BUDGET = 1 << 12
_CALL_SECONDS = 0.08
_SAMPLES = 64
_STATES_PER_SAMPLE = 1 << 10
_BUDGET_PER_SAMPLE = 1 << 16


@cache
def load() -> None:
    """Load or compile every loop."""
    table = CountTable(Instance.of("CL", 2), 1)
    table.fill(Limits(inf))
    table.witness()


def count_states(instance: Instance) -> int:
    """Return how many entries the table has."""
    return prod(map(_size, instance.groups))


def applies(instance: Instance, memory_bytes: int) -> bool:
    """Return whether all warps run strings and the table, whose entries have two bytes, fits."""
    return (
        not instance.beyond(KNOWS)
        and sum(group.warps * group.program.end for group in instance.groups) <= _MOST_CYCLES
        and prod(_leaves(instance)) <= MOST_LEAVES
        and _BYTES_PER_STATE * count_states(instance) + _BYTES_PER_NUMBER * _room(instance) <= memory_bytes
    )


class CountTable:
    """A table of every state: `sense` times the most (`sense` 1) or the fewest (-1) cycles that remain.

    The instance must be one to which the module `applies`.
    """

    def __init__(self, instance: Instance, sense: int) -> None:
        self.instance, self.sense = instance, sense
        self._ladder, self._scratch = _ladder(instance), _scratch(instance)
        self._values = np.zeros(count_states(instance), dtype=np.int16)

    def seconds(self) -> float:
        """Processor time that filling takes, from a sample; what the sample leaves behind is overwritten later."""
        apart = max(1, len(self._values) // _SAMPLES)
        rates = []
        for rank in range(apart // 2, len(self._values) - 1, apart):
            stop = max(0, rank + 1 - _STATES_PER_SAMPLE)
            self._fill(rank, stop, self._standing(rank), _BUDGET_PER_SAMPLE)  # the system finds the memory for it
            standing, began = self._standing(rank), time.thread_time()
            states = rank - self._fill(rank, stop, standing, _BUDGET_PER_SAMPLE)
            rates.append((time.thread_time() - began) / states)
        return fmean(rates) * len(self._values)

    def fill(self, limits: Limits) -> int | None:
        """Return the value of the start, `sense` times the worst or best case; None when a limit comes first."""
        rank, budget = len(self._values) - 2, _FIRST_BUDGET
        self._values[-1] = 0  # all have finished
        standing = self._standing(rank)
        while rank >= 0:
            if limits.expired:
                return None
            began = time.monotonic()
            rank = self._fill(rank, 0, standing, budget)
            seconds = time.monotonic() - began
            budget = budget * 2 if seconds < _CALL_SECONDS / 2 else max(1, budget // 2)
        return int(self._values[0])

    def witness(self) -> Schedule:
        """Return a schedule of the value of the start, once the table is full."""
        rank, cycles = 0, []
        standing = self._standing(rank)
        while rank < len(self._values) - 1:
            wanted = int(self._values[rank]) - self.sense  # some cycle leads to a state with one cycle less
            rank = loops.follow(rank, wanted, self._values, standing, self._ladder, self._scratch)
            if rank < 0:
                raise BrokenPromiseError("a state of the table has a value that no cycle gives")
            after = self._standing(rank)
            cycles.append(np.flatnonzero(after != standing).tolist())
            standing = after
        return Schedule.of_chains(self.instance, cycles)

    def _fill(self, rank: int, stop: int, standing: Ints, budget: int) -> int:
        return loops.fill(rank, stop, budget, self.sense, self._values, standing, self._ladder, self._scratch)

    def _standing(self, rank: int) -> Ints:
        places: list[int] = []
        for group in self.instance.groups:
            rank, left = divmod(rank, _size(group))
            place, own = group.program.end, []
            for number in range(group.warps, 0, -1):
                while comb(place + number - 1, number) > left:  # the digits of the combinatorial number system
                    place -= 1
                left -= comb(place + number - 1, number)
                own.append(place)
            places += reversed(own)
        return np.array(places, dtype=np.int64)


def _size(group: Group) -> int:
    return comb(group.program.end + group.warps, group.warps)


def _classes(instance: Instance) -> list[str]:
    return sorted(set().union(*(group.program.units for group in instance.groups)))


def _leaves(instance: Instance) -> list[int]:
    """Return, per class, no less than the number of ways to choose the warps that move."""
    return [_choices(instance, unit) for unit in _classes(instance)]


def _room(instance: Instance) -> int:
    units = _classes(instance)
    quotas = [_quota(instance, unit) for unit in units]
    sums = sum((quota + 1) * _choices(instance, unit) for quota, unit in zip(quotas, units, strict=True))
    sizes = 2 * (max(quotas) + 1) + 2 * len(units)  # of a warp
    return prod(_leaves(instance)) + sums + (instance.warps + 1) * sizes


def _quota(instance: Instance, unit: str) -> int:
    return min(instance.machine.capacities[unit], instance.warps)


def _choices(instance: Instance, unit: str) -> int:
    """Not all warps move only if more than `sigma` are ready; then `sigma` do, from any of the places."""
    sigma = _quota(instance, unit)
    places = sum(place.unit == unit for group in instance.groups for place in group.program.places)
    return min(comb(instance.warps, sigma), comb(sigma + places - 1, sigma))


def _ladder(instance: Instance) -> loops.TableLadder:
    groups = instance.groups
    number = {unit: at for at, unit in enumerate(_classes(instance))}
    worth = accumulate(map(_size, groups), mul, initial=1)
    gain = np.zeros((instance.warps, max(group.program.end for group in groups)), dtype=np.int64)
    warp = 0
    for group, digit in zip(groups, worth, strict=False):
        for below in range(group.warps):
            gain[warp, : group.program.end] = [digit * comb(p + below, below) for p in range(group.program.end)]
            warp += 1
    return loops.TableLadder(
        first=ints([0, *accumulate(group.warps for group in groups)]),
        base=ints([0, *accumulate(group.program.end for group in groups)]),
        end=ints([group.program.end for group in groups]),
        group=ints([*instance.group_of_warp()]),
        unit=ints([number[place.unit] for group in groups for place in group.program.places]),
        since=ints([first for group in groups for first in _since(group)]),
        sigma=ints([_quota(instance, unit) for unit in number]),
        gain=gain,
    )


def _since(group: Group) -> Iterator[int]:
    """Yield, for every place, the first one from which on all are of its class."""
    for _, places in groupby(enumerate(group.program.places), key=lambda numbered: numbered[1].unit):
        numbers = [number for number, _ in places]
        yield from [numbers[0]] * len(numbers)


def _scratch(instance: Instance) -> loops.TableScratch:
    units, rows = _classes(instance), instance.warps + 1
    numbers = max(_quota(instance, unit) for unit in units) + 1
    begin = np.zeros((len(units), numbers), dtype=np.int64)
    used = 0
    for at, unit in enumerate(units):
        for number in range(_quota(instance, unit) + 1):
            begin[at, number] = used
            used += _choices(instance, unit)
    size = np.zeros((rows, numbers), dtype=np.int64)
    size[-1, 0] = 1  # the sum of no warps, of whatever class
    return loops.TableScratch(
        begin=begin,
        sums=np.zeros(used, dtype=np.uint64),
        row=np.full((rows, len(units)), rows - 1, dtype=np.int64),
        size=size,
        whole=np.zeros_like(size),
        ready=np.zeros((rows, len(units)), dtype=np.int64),
        leaps=np.zeros(prod(_leaves(instance)), dtype=np.uint64),
    )
