"""Witnesses by climbing: schedules that follow a ranking of places, and better rankings found by trial.

Who stands at a place of smaller rank issues first, and the laggard, if there is one, has ranks of its own. Every such
schedule is work-conserving. To move a few places in the ranking changes the schedule a little, which is what climbing
needs; and a run costs so little that thousands can be tried (docs/theory.md).
"""

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import accumulate, groupby, pairwise

import numpy as np

from makespan.engines.construct import ranking_compiled as loops
from makespan.engines.limits import Limits
from makespan.feature import PROGRAMS, TIMES
from makespan.instance import Instance
from makespan.schedule import Schedule
from makespan.simulate.choices import Choices, Routes, routes
from makespan.simulate.runner import Runner
from makespan.simulate.runner_compiled import Log

KNOWS = PROGRAMS | TIMES

Rule = Callable[[int, int], tuple[int, ...]]
"""(instructions done, equal letters left in the run) -> sort key; the smallest issue first."""

RULES: tuple[Rule, ...] = (
    lambda done, _: (done,),  # furthest behind first
    lambda done, _: (-done,),  # furthest ahead first
    lambda done, run: (-run, done),  # in lockstep through every run
)

PATIENCE = 20
"""After so many runs for every place that has a rank, and no longer one among them, climbing ends."""

_ISSUES_PER_LOOK = 100_000


def climb(instance: Instance, limits: Limits, enough: int) -> Iterator[Schedule]:
    """Ever longer schedules, on the longest paths with the largest latencies: with a laggard, and without.

    Args:
        instance: what runs; without barriers.
        limits: once they are reached, no more is tried.
        enough: cycles that no schedule exceeds.
    """
    instance.require(KNOWS, "climbing")
    lasts = (last - 1 for last in accumulate(group.warps for group in instance.groups))
    starts = [_longest(instance, laggards, limits) for laggards in ([None], lasts)]
    longest = 0
    for climber in sorted(filter(None, starts), key=lambda start: -start.makespan):
        while longest < enough:
            if climber.makespan > longest:
                longest = climber.makespan
                yield climber.schedule()
            if limits.expired or not climber.climb():
                break


def _longest(instance: Instance, laggards: Iterable[int | None], limits: Limits) -> "_Climber | None":
    """The rule to begin with, as far as there is time."""
    starts = (_Climber(instance, laggard, rule) for laggard in laggards for rule in RULES if not limits.expired)
    return max(starts, key=lambda start: start.makespan, default=None)


@cache
def load() -> None:
    """Load or compile the inner loops."""
    _Climber(Instance.of("CL", 2), None, RULES[0]).climb()


class _Climber:
    """A ranking that gets better; the places of `laggard`, a warp, stay behind those of all others."""

    def __init__(self, instance: Instance, laggard: int | None, rule: Rule) -> None:
        paths, latencies = routes(instance, Choices())
        # a path of its own means ranks of its own
        paths = tuple((*path,) if warp == laggard else path for warp, path in enumerate(paths))
        self._runner = runner = Runner(instance, Routes(paths, latencies))
        letters, first = runner.work.letters.tolist(), runner.work.first.tolist()
        begins = sorted(set(first))
        keys: list[tuple[int, ...]] = []
        for begin, end in pairwise((*begins, len(letters))):
            behind = laggard is not None and begin == first[laggard]
            for _, run in groupby(letters[begin:end]):
                left = len(tuple(run))
                keys += ((behind, *rule(len(keys) - begin, left - gone)) for gone in range(left))
        entries = np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.int64)
        self._movable = sum(not behind for behind, *_ in keys)
        self._kept, self._ranking = entries.copy(), loops.Ranking(entries, np.argsort(entries))
        self._state = loops.prepared(runner.work, runner.units, runner.longest)
        self._draws = np.zeros(1, dtype=np.uint64)
        self._runs_per_look = max(1, _ISSUES_PER_LOOK // sum(map(len, latencies)))
        self._vain = 0
        self.makespan = self._run(runner.nothing)

    def climb(self) -> bool:
        """Try some more rankings; False once there is no hope of a better one."""
        before, runner, runs = self.makespan, self._runner, min(self._runs_per_look, PATIENCE * self._movable)
        with np.errstate(over="ignore"):  # without a compiler: random numbers and bits wrap around on purpose
            self.makespan = int(
                loops.climb(
                    runner.work,
                    runner.units,
                    self._ranking,
                    self._movable,
                    self._kept,
                    self._state,
                    runner.nothing,
                    self._draws,
                    runs,
                    before,
                )
            )
        self._vain = self._vain + runs if self.makespan == before else 0
        return self._vain < PATIENCE * self._movable

    def schedule(self) -> Schedule:
        """The run of the best ranking."""
        log = self._runner.log()
        return self._runner.logged(log, self._run(log))

    def _run(self, log: Log) -> int:
        runner = self._runner
        with np.errstate(over="ignore"):
            return int(loops.run(runner.work, runner.units, self._ranking, self._state, log))
