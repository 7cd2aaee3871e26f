"""Witnesses by climbing: schedules that follow a ranking of places, and better rankings found by trial.

Who stands at a place of smaller rank issues first, and the laggard, if there is one, has ranks of its own. Every such
schedule is work-conserving. To move a few places in the ranking changes the schedule a little, which is what climbing
needs; and a run costs so little that thousands can be tried (docs/theory.md).
"""

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import accumulate, chain, groupby, pairwise

import numpy as np

from makespan.host.compiled import Ints
from makespan.model.feature import PROGRAMS, TIMES
from makespan.model.instance import Instance, requires
from makespan.model.schedule import Schedule
from makespan.model.simulate.choices import Choices, choose_routes
from makespan.model.simulate.runner import Runner
from makespan.model.simulate.runner_compiled import IssueLog, WarpRows
from makespan.proof.engines.construct import ranking_compiled as loops
from makespan.proof.engines.limits import Limits

KNOWS = PROGRAMS | TIMES

RankingRule = Callable[[int, int], tuple[int, ...]]
"""(instructions done, equal letters left in the run) -> sort key; the smallest issue first."""

RULES: tuple[RankingRule, ...] = (
    lambda done, _: (done,),  # furthest behind first
    lambda done, _: (-done,),  # furthest ahead first
    lambda done, run: (-run, done),  # in lockstep through every run
)

PATIENCE, PATIENCE_FOR_PARTS = 20, 5
"""After so many runs for every place that has a rank, and no longer one among them, climbing ends."""

HOPE = 0.9
"""The other start is left out if it is shorter than this share of what has been found."""

PART = 100
"""Instructions of the parts on which climbing begins: it takes long to improve a long path as a whole."""

_ISSUES_PER_LOOK = 100_000


@requires(KNOWS, "climbing")
def climb(instance: Instance, limits: Limits, enough: int) -> Iterator[Schedule]:
    """Yield ever longer schedules, on the longest paths with the largest latencies, with a laggard and without.

    Args:
        instance: what runs; without barriers.
        limits: once they are reached, no more is tried.
        enough: cycles that no schedule exceeds.
    """
    lasts = (last - 1 for last in accumulate(group.warps for group in instance.groups))
    starts = [_longest(instance, laggards, limits) for laggards in ([None], lasts)]
    longest = 0
    for climber in sorted(filter(None, starts), key=lambda start: -start.makespan):
        if climber.makespan < HOPE * longest:
            break
        for _ in climber.steps(limits):
            if climber.makespan > longest:
                longest = climber.makespan
                yield climber.schedule()
            if longest >= enough or limits.expired:
                break


def _longest(instance: Instance, laggards: Iterable[int | None], limits: Limits) -> "_Climber | None":
    starts = (_climber(instance, laggard, rule) for laggard in laggards for rule in RULES if not limits.expired)
    return max(starts, key=lambda start: start.makespan, default=None)


@cache
def load() -> None:
    """Load or compile the inner loops."""
    _climber(Instance.of("CL", 2), None, RULES[0]).climb()


def _climber(instance: Instance, laggard: int | None, rule: RankingRule) -> "_Climber":
    """Return the ranking of a rule, in which the places of `laggard`, a warp, stay behind those of all others."""
    chosen = choose_routes(instance, Choices())
    # a path of its own means ranks of its own
    paths = tuple((*path,) if warp == laggard else path for warp, path in enumerate(chosen.paths))
    runner = Runner(instance, chosen._replace(paths=paths))
    letters, first = runner.work.letters.tolist(), runner.work.first.tolist()
    keys: list[tuple[int, ...]] = []
    for begin, end in pairwise((*sorted(set(first)), len(letters))):
        behind = laggard is not None and begin == first[laggard]
        left = (left for _, run in groupby(letters[begin:end]) for left in range(len(tuple(run)), 0, -1))
        keys += [(behind, *rule(done, run)) for done, run in enumerate(left)]
    entries = np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.int64)
    return _Climber(runner, runner.work, entries, sum(not behind for behind, *_ in keys))


class _Climber:
    """A ranking of `work` that gets better: its first `movable` entries do, and stay the first."""

    def __init__(self, runner: Runner, work: WarpRows, entries: Ints, movable: int, patience: int = PATIENCE) -> None:
        self._runner, self._work, self._movable = runner, work, movable
        self._kept, self._ranking = entries.copy(), loops.PlaceRanking(entries, np.argsort(entries))
        self._state = loops.new_state(work, runner.units, runner.longest)
        self._draws = np.zeros(1, dtype=np.uint64)
        self._begins = np.unique(work.first)
        self._lengths = np.diff(self._begins, append=len(work.letters)) - 1
        issues = int(self._lengths[np.searchsorted(self._begins, work.first)].sum())
        self._most_vain = patience * movable
        self._runs = min(max(1, _ISSUES_PER_LOOK // max(1, issues)), self._most_vain)
        self._vain = 0
        self.makespan = self._run(runner.nothing)

    def steps(self, limits: Limits) -> Iterator[None]:
        """Climb, first on parts of long paths, which overlap; yield at the beginning and after every step."""
        yield
        length = int(self._lengths.max())
        for low in (*range(0, length, PART), *range(-PART // 2, length, PART)) if length > PART else ():
            self._climb_part(max(0, low), low + PART, limits)
            yield
        while self.climb():
            yield

    def climb(self) -> bool:
        """Try some more rankings; return False once there is no hope of a better one."""
        before, runner = self.makespan, self._runner
        with np.errstate(over="ignore"):  # without a compiler: random numbers and bits wrap around on purpose
            self.makespan = int(
                loops.climb(
                    self._work,
                    runner.units,
                    self._ranking,
                    self._movable,
                    self._kept,
                    self._state,
                    runner.nothing,
                    self._draws,
                    self._runs,
                    before,
                )
            )
        self._vain = self._vain + self._runs if self.makespan == before else 0
        return self._vain < self._most_vain

    def _climb_part(self, low: int, high: int, limits: Limits) -> None:
        """Climb as if the paths had only instructions `low` .. `high` - 1; keep it if the whole is no shorter."""
        work, (entries, ranks) = self._work, self._ranking
        rows = [
            [*range(begin + min(low, length), begin + min(high, length)), begin + length]
            for begin, length in zip(self._begins.tolist(), self._lengths.tolist(), strict=True)
        ]
        origins = np.array(list(chain.from_iterable(rows)), dtype=np.int64)
        firsts = np.array(list(accumulate(map(len, rows[:-1]), initial=0)), dtype=np.int64)
        first = firsts[np.searchsorted(self._begins, work.first)]
        places = np.sort(ranks[origins])
        short = WarpRows(work.letters[origins], work.latencies[origins], first, work.block)
        movable = int((places < self._movable).sum())
        part = _Climber(self._runner, short, np.argsort(ranks[origins]), movable, PATIENCE_FOR_PARTS)
        while not limits.expired and part.climb():
            pass
        entries[places] = origins[part._kept]
        ranks[entries[places]] = places
        found = self._run(self._runner.nothing)
        if found >= self.makespan:  # equal ones too: a plateau is crossed step by step
            self.makespan, self._kept[:] = found, entries
        else:
            entries[:] = self._kept
            ranks[entries] = np.arange(len(entries))

    def schedule(self) -> Schedule:
        """Return the run of the best ranking."""
        log = self._runner.log()
        return self._runner.logged(log, self._run(log))

    def _run(self, log: IssueLog) -> int:
        with np.errstate(over="ignore"):
            return int(loops.run(self._work, self._runner.units, self._ranking, self._state, log))
