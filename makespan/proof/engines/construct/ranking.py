"""Witnesses by climbing: schedules that follow a ranking of places, and better rankings found by trial.

Who stands at a place of smaller rank issues first, and the laggard, if there is one, has ranks of its own. Every such
schedule is work-conserving. To move a few places in the ranking changes the schedule a little, which is what climbing
needs; and a run costs so little that thousands can be tried (docs/theory.md).
"""

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import accumulate, chain
from typing import NamedTuple

import numpy as np

from makespan.host.compiled import Ints, inlined, ints, uncounted
from makespan.model.instance import Instance, requires
from makespan.model.schedule import Schedule
from makespan.model.simulate.choices import KNOWS
from makespan.model.simulate.floor_compiled import (
    END,
    LATEST,
    IssueLog,
    LoweredWork,
    PolicyState,
    RunState,
    draw,
    run,
)
from makespan.model.simulate.runner import PreparedRun, Runner
from makespan.proof.engines.limits import Limits

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
    runner = Runner(instance, apart=() if laggard is None else (laggard,))
    ranks = runner.ranks(lambda row, done, run: (row.warp == laggard, *rule(done, run)))
    movable = sum(row.end + 1 - row.first for row in runner.rows if row.warp != laggard)
    return _Climber(runner, runner.by_ranks(LATEST, ranks), movable)


class _Climber:
    """A ranking of entries that gets better: its first `movable` entries do, and stay the first."""

    def __init__(self, runner: Runner, prepared: PreparedRun, movable: int, patience: int = PATIENCE) -> None:
        self._runner, self._prepared, self._movable = runner, prepared, movable
        self._ranks = prepared.policy.ranks
        self._entries, self.kept = np.argsort(self._ranks), np.argsort(self._ranks)
        ends = np.flatnonzero(prepared.work.entries["kind"] == END).tolist()
        self._rows = [range(begin, end) for begin, end in zip((0, *(end + 1 for end in ends)), ends, strict=False)]
        first = prepared.state.slots["row"]
        issues = int((np.array(ends)[np.searchsorted(ends, first)] - first).sum())
        self._most_vain = patience * movable
        self.runs = min(max(1, _ISSUES_PER_LOOK // max(1, issues)), self._most_vain)
        self._vain = 0
        self.makespan = runner.run(prepared)

    def steps(self, limits: Limits) -> Iterator[None]:
        """Climb, first on parts of long paths, which overlap; yield at the beginning and after every step."""
        yield
        length = max(map(len, self._rows))
        for low in (*range(0, length, PART), *range(-PART // 2, length, PART)) if length > PART else ():
            self._climb_part(max(0, low), low + PART, limits)
            yield
        while self.climb():
            yield

    def climb(self) -> bool:
        """Try some more rankings; return False once there is no hope of a better one."""
        before, runner, (policy, work, state, _) = self.makespan, self._runner, self._prepared
        trial = TrialRanking(self._entries, self.kept, self._movable)
        with np.errstate(over="ignore"):  # without a compiler: random numbers and bits wrap around on purpose
            self.makespan = int(climb_ranking(policy, work, state, runner.nothing, trial, self.runs, before))
        self._vain = self._vain + self.runs if self.makespan == before else 0
        return self._vain < self._most_vain

    def _climb_part(self, low: int, high: int, limits: Limits) -> None:
        """Climb as if the paths had only instructions `low` .. `high` - 1; keep it if the whole is no shorter."""
        work, entries, ranks = self._prepared.work, self._entries, self._ranks
        parts = [[*row[low:high], row.stop] for row in self._rows]
        origins = ints(chain.from_iterable(parts))
        begins = ints(accumulate(map(len, parts[:-1]), initial=0))
        rows = begins[np.searchsorted([row.start for row in self._rows], self._prepared.state.slots["row"])]
        places = np.sort(ranks[origins])
        own = np.searchsorted(places, ranks[origins])
        short = self._runner.by_ranks(LATEST, own, work._replace(entries=work.entries[origins]), rows)
        part = _Climber(self._runner, short, int((places < self._movable).sum()), PATIENCE_FOR_PARTS)
        while not limits.expired and part.climb():
            pass
        entries[places] = origins[part.kept]
        ranks[entries[places]] = places
        found = self._runner.run(self._prepared)
        if found >= self.makespan:  # equal ones too: a plateau is crossed step by step
            self.makespan, self.kept[:] = found, entries
        else:
            entries[:] = self.kept
            ranks[entries] = np.arange(len(entries))

    def schedule(self) -> Schedule:
        """Return the run of the best ranking."""
        return self._runner.schedule_of(self._prepared)


class TrialRanking(NamedTuple):
    """The entry of every rank, the same of the best ranking so far, and how many ranks from 0 on may change."""

    entries: Ints
    kept: Ints
    movable: int


@inlined
def place(ranking: TrialRanking, ranks: Ints, entry: int, to: int) -> None:
    """Give an entry a rank, and those in between the one next to theirs."""
    at = ranks[entry]
    step = 1 if to > at else -1
    while at != to:
        moved = ranking.entries[at + step]
        ranking.entries[at], ranks[moved] = moved, at
        at += step
    ranking.entries[to], ranks[entry] = entry, to


@uncounted
def climb_ranking(
    policy: PolicyState,
    work: LoweredWork,
    state: RunState,
    nothing: IssueLog,
    ranking: TrialRanking,
    runs: int,
    best: int,
) -> int:
    """Return the makespan of the longest of several runs, the first of which is known to take `best` cycles.

    Each gives one to four of the entries that may move ranks of others, and is what the next one begins with if it is
    no shorter. The entries of the ranking are those that are kept, before and after.
    """
    entries, kept, ranks = ranking.entries, ranking.kept, policy.ranks
    for _ in range(runs):
        for _ in range(1 << draw(policy.draws, 0, 3)):
            moved = kept[draw(policy.draws, 0, ranking.movable)]
            place(ranking, ranks, moved, draw(policy.draws, 0, ranking.movable))
        found = run(policy, work, state, nothing)
        # a worse ranking is undone, entry by entry
        for rank in range(ranking.movable):
            if found >= best:
                kept[rank] = entries[rank]
            else:
                entries[rank], ranks[kept[rank]] = kept[rank], rank
        best = max(best, found)
    return best
