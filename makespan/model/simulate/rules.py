"""Rules that make bad schedules: who goes first, by what he has done, and who is kept behind all others."""

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence

from makespan.model.simulate.policies import SchedulingPolicy

PriorityRule = Callable[[int, int, int, bool], tuple[int, ...]]
"""(ready since cycle, warp, instructions done, whether it is a laggard) -> sort key; the smallest execute first."""

STARVING_RULES: tuple[PriorityRule, ...] = (
    lambda _, warp, done, laggard: (done, laggard, warp),  # furthest behind first
    lambda _, warp, done, laggard: (laggard, done, warp),  # one laggard, the others side by side
    lambda _, warp, done, laggard: (laggard, -done, warp),  # one laggard, the others one after another
)

FAIR_RULES: tuple[PriorityRule, ...] = (
    lambda since, warp, _, laggard: (since, laggard, warp),
    lambda since, warp, done, laggard: (since, laggard, done, warp),
    lambda since, warp, done, laggard: (since, laggard, -done, warp),
)
"""Oldest ready first, which is fair, with different ties."""


class RulePolicy(SchedulingPolicy):
    """A rule as a policy.

    Args:
        laggards: the warps that are kept behind.
    """

    def __init__(self, rule: PriorityRule, laggards: Collection[int]) -> None:
        self.watches = rule in FAIR_RULES
        self._rule, self._laggards = rule, laggards
        self._done, self._since = Counter[int](), dict[int, int]()

    def begin(self, cycle: int, waiting: Iterable[int]) -> None:
        """Who waits since when."""
        for warp in waiting if self.watches else ():
            self._since.setdefault(warp, cycle)

    def pick(self, able: Sequence[int]) -> int:
        """Return the one with the smallest key."""
        chosen = min(able, key=self._key)
        self._done[chosen] += 1
        self._since.pop(chosen, None)
        return chosen

    def _key(self, warp: int) -> tuple[int, ...]:
        return self._rule(self._since.get(warp, 0), warp, self._done[warp], warp in self._laggards)

    def put(self, warp: int) -> None:
        """It has done nothing yet."""
        self._done[warp] = 0

    def state(self, cycle: int) -> Hashable:
        """What everybody has done, and since when he waits."""
        done = tuple(sorted(self._done.items()))
        return done, tuple(sorted((warp, since - cycle) for warp, since in self._since.items()))
