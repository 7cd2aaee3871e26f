"""Scheduling policies that hardware uses: what each of them means, run on the definition of the machine.

In every cycle, as long as some ready warp finds a free port of its class and the issue width is not used up, the policy
picks the next of these *able* warps, and it issues. A pick takes away ports and slots and gives none back, so when no
warp is able any more, no ready warp that is left out could be added: the set is maximal, and every policy is
work-conserving, whatever it picks. A run is one schedule of many: it bounds no other run.

A policy holds one turn for the whole multiprocessor, not one per class. `makespan.simulate.runner` does the same fast.
"""

from collections.abc import Callable, Iterator, Sequence

from makespan.instance import Instance
from makespan.schedule import Schedule
from makespan.simulate.choices import Choices, Routes, draws_of_policy
from makespan.simulate.semantics import Issue, State, finished, moved, ready, released


class Policy:
    """Picks who issues next; the cycles come in order, each begun once."""

    def begin(self, cycle: int, waiting: Sequence[int]) -> None:
        """A cycle begins in which these warps, in increasing order, are ready, whether they find a port or not."""

    def pick(self, able: Sequence[int]) -> int:
        """The warp that issues next, one of `able`, which are in increasing order and at least one."""
        raise NotImplementedError


class LooseRoundRobin(Policy):
    """The turn passes on: first the warps after the one that issued last, in a circle.

    Source: Narasiman et al., MICRO 2011, the baseline; "loose" because a warp that is not able is passed over.
    """

    def __init__(self) -> None:
        self._last = -1

    def pick(self, able: Sequence[int]) -> int:
        """The first one after the last."""
        self._last = min(able, key=lambda warp: (warp <= self._last, warp))
        return self._last


class GreedyThenOldest(Policy):
    """The greedy warp goes first as long as it is able, then the oldest, which is the one with the smallest number.

    Greedy is who was picked first in the last cycle in which anybody issued: where several warps issue in a cycle, the
    others only use what it leaves over.

    Source: Rogers, O'Connor and Aamodt, MICRO 2012.
    """

    def __init__(self) -> None:
        self._greedy, self._is_first = -1, True

    def begin(self, cycle: int, waiting: Sequence[int]) -> None:
        """The next pick is the first one."""
        del cycle, waiting
        self._is_first = True

    def pick(self, able: Sequence[int]) -> int:
        """The greedy warp, or the oldest."""
        chosen = self._greedy if self._greedy in able else able[0]
        if self._is_first:
            self._greedy, self._is_first = chosen, False
        return chosen


class Ranked(Policy):
    """A fixed order of all warps: the able one that stands first in it."""

    def __init__(self, order: Sequence[int]) -> None:
        self._rank = {warp: rank for rank, warp in enumerate(order)}

    def pick(self, able: Sequence[int]) -> int:
        """The one of the smallest rank."""
        return min(able, key=self._rank.__getitem__)


class TwoLevel(Policy):
    """Fetch groups of consecutive warps: the current group goes first, in round robin, then the groups after it.

    The next group, in a circle, takes over in a cycle in which no warp of the current one is ready.

    Source: Narasiman et al., MICRO 2011.
    """

    def __init__(self, group_size: int, warps: int) -> None:
        self._size, self._groups = group_size, -(-warps // group_size)
        self._current, self._last = 0, [-1] * self._groups

    def begin(self, cycle: int, waiting: Sequence[int]) -> None:
        """Pass to the next group with a ready warp, if there is one."""
        del cycle
        self._current = min((warp // self._size for warp in waiting), key=self._distance, default=self._current)

    def pick(self, able: Sequence[int]) -> int:
        """The first one after the last of its group, in the group that is next."""
        chosen = min(able, key=self._turn)
        self._last[chosen // self._size] = chosen
        return chosen

    def _distance(self, group: int) -> int:
        return (group - self._current) % self._groups

    def _turn(self, warp: int) -> tuple[int, bool, int]:
        group = warp // self._size
        return self._distance(group), warp <= self._last[group], warp


class Random(Policy):
    """Each able warp with the same probability."""

    def __init__(self, seed: int) -> None:
        self._draws = draws_of_policy(seed)

    def pick(self, able: Sequence[int]) -> int:
        """One number is drawn for every pick."""
        return able[self._draws.below(len(able))]


class Adversarial(Policy):
    """Repeats a schedule, whose routes the warps must take: a picture of its adversary, and not a check of it."""

    def __init__(self, witness: Schedule) -> None:
        self._cycles = witness.cycles
        self._now: Iterator[int] = iter(())

    def begin(self, cycle: int, waiting: Sequence[int]) -> None:
        """Who issues in this cycle is known."""
        del waiting
        self._now = iter(self._cycles[cycle])

    def pick(self, able: Sequence[int]) -> int:
        """The next of them."""
        del able
        return next(self._now)


POLICIES: dict[str, Callable[[Instance, Choices], Policy]] = {
    "lrr": lambda *_: LooseRoundRobin(),
    "gto": lambda *_: GreedyThenOldest(),
    "oldest": lambda instance, _: Ranked(range(instance.warps)),
    "youngest": lambda instance, _: Ranked(range(instance.warps - 1, -1, -1)),
    "two-level": lambda instance, choices: TwoLevel(choices.group_size, instance.warps),
    "random": lambda _, choices: Random(choices.seed),
}
"""Policies by the name used on the command line."""


def simulated(instance: Instance, policy: Policy, routes: Routes) -> Schedule:
    """The schedule that `policy` makes of warps on these routes, step by step of the definition."""
    programs = tuple(instance.programs())
    targets = [iter((*path[1:], program.end)) for path, program in zip(routes.paths, programs, strict=True)]
    latencies = list(map(iter, routes.latencies))
    cycles: list[tuple[int, ...]] = []

    def past_barriers(state: State) -> State:
        while passing := released(instance, state):
            places = list(state.places)
            for warp in passing:
                places[warp] = next(targets[warp])
            state = state._replace(places=tuple(places))
        return state

    begun = State(tuple(path[0] for path in routes.paths), (0,) * len(programs), ((),) * len(instance.machine.units))
    state = past_barriers(begun)
    while not finished(instance, state):
        issuing = tuple(_picks(instance, state, policy, len(cycles)))
        moves = [Issue(warp, next(targets[warp]), next(latencies[warp])) for warp in issuing]
        state = past_barriers(moved(instance, state, moves))
        cycles.append(tuple(sorted(issuing)))
    return Schedule(tuple(cycles), routes.paths, () if instance.machine.fixed_latencies else routes.latencies)


def _picks(instance: Instance, state: State, policy: Policy, cycle: int) -> Iterator[int]:
    """The warps that issue in this cycle, in the order in which they are picked."""
    waiting = ready(instance, state)
    free = {
        unit.name: unit.capacity - len(ports) for unit, ports in zip(instance.machine.units, state.held, strict=True)
    }
    policy.begin(cycle, sorted(warp for warps in waiting.values() for warp in warps))
    for _ in range(instance.machine.issue_width or instance.warps):
        able = sorted(warp for unit, warps in waiting.items() if free[unit] for warp in warps)
        if not able:
            return
        chosen = policy.pick(able)
        unit = next(unit for unit, warps in waiting.items() if chosen in warps)
        waiting[unit].remove(chosen)
        free[unit] -= 1
        yield chosen
