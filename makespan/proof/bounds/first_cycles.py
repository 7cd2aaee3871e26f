"""The first cycles, enumerated: from the states after them a certificate bounds the rest more tightly."""

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import chain, combinations_with_replacement, product
from typing import NamedTuple

from makespan.model.feature import PROGRAMS
from makespan.model.instance import Instance

PlaceCounts = tuple[tuple[tuple[int, int], int], ...]
"""((group, place), number of warps there), sorted; finished warps are left out."""

MAX_STARTS = 20_000

KNOWS = PROGRAMS


class Front(NamedTuple):
    """All states that `cycles` cycles can lead to; the empty state if all warps may have finished by then."""

    cycles: int
    states: frozenset[PlaceCounts]


def front(instance: Instance, most_states: int, stop: Callable[[], bool] = lambda: False) -> Front | None:
    """The latest front of at most `most_states` states, or an earlier one at `stop`; None if the starts are too many.

    With a feature that this does not know it is that of the starts, whatever `most_states` is.
    """
    layer: set[PlaceCounts] = set()
    for state in _starts(instance):
        layer.add(state)
        if len(layer) > MAX_STARTS:
            return None
    cycles, known = 0, not instance.beyond(KNOWS)
    while known:
        after: set[PlaceCounts] = set()
        if stop():
            return Front(cycles, frozenset(layer))
        for state in layer:
            after.update(_steps(instance, state))
            if len(after) > most_states:
                return Front(cycles, frozenset(layer))
        if not any(after) or () in layer:
            return Front(cycles, frozenset(layer))
        layer, cycles = after, cycles + 1
    return Front(0, frozenset(layer))


def _starts(instance: Instance) -> Iterator[PlaceCounts]:
    ways = (
        combinations_with_replacement([(number, start) for start in group.program.starts], group.warps)
        for number, group in enumerate(instance.groups)
    )
    return (tuple(sorted(Counter(chain.from_iterable(places)).items())) for places in product(*ways))


def _steps(instance: Instance, state: PlaceCounts) -> Iterator[PlaceCounts]:
    ready: dict[str, list[tuple[tuple[int, int], int]]] = {unit: [] for unit in instance.machine.capacities}
    for (group, place), count in state:
        ready[instance.groups[group].program.places[place].unit].append(((group, place), count))
    shares = (_shares(ready[unit], capacity) for unit, capacity in instance.machine.capacities.items())
    for chosen in product(*shares):
        moved = tuple(pair for pairs in chosen for pair in pairs)
        rest = Counter(dict(state))
        rest.subtract(dict(moved))
        for arrivals in product(*(_arrivals(instance, place, count) for place, count in moved)):
            after = rest + Counter(chain.from_iterable(arrivals))
            yield tuple(sorted(after.items()))


def _shares(ready: list[tuple[tuple[int, int], int]], capacity: int) -> list[tuple[tuple[tuple[int, int], int], ...]]:
    """Return every way in which min(capacity, all) of the ready warps execute."""
    ways: list[tuple[tuple[tuple[tuple[int, int], int], ...], int]] = [((), min(capacity, sum(n for _, n in ready)))]
    behind = sum(count for _, count in ready)
    for place, count in ready:
        behind -= count
        ways = [
            ((*taken, (place, n)) if n else taken, left - n)
            for taken, left in ways
            for n in range(max(0, left - behind), min(count, left) + 1)
        ]
    return [taken for taken, _ in ways]


def _arrivals(instance: Instance, place: tuple[int, int], count: int) -> list[tuple[tuple[int, int], ...]]:
    """Yield every way in which `count` warps may go on from a place: a multiset of successors without finished ones."""
    program = instance.groups[place[0]].program
    return [
        tuple((place[0], target) for target in targets if target != program.end)
        for targets in combinations_with_replacement(program.places[place[1]].successors, count)
    ]
