"""Scheduling policies of hardware: their definitions.

A ready warp is *able* if all ports and the issue slot that it needs are free. In every cycle, as long as some warp of a
partition is able, the policy of the partition picks one of these warps, and it issues. A pick takes ports and slots and
gives none back. So once no warp is able, no ready warp that is left out could be added: the set of issuing warps is
maximal, and every policy is work-conserving, whatever it picks. A run is one schedule of many and bounds no other run.

Partitions pick in turns. A partition that has taken a shared port goes to the end of the line, from the next cycle on.

A policy has one turn for its partition, not one per class. `makespan.model.simulate.runs` runs these definitions, and
`makespan.model.simulate.runner` makes the same runs in compiled code.

The rules at the end of this module are policies that make bad schedules, for lower bounds on worst cases.
"""

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence

from makespan.model.instance import Instance
from makespan.model.schedule import Schedule
from makespan.model.simulate.choices import Choices, WarpRoutes, policy_draws


class SchedulingPolicy:
    """A policy that picks the warp that issues next. Cycles come in order, and each begins once.

    Args:
        watches: whether `begin` is also called in cycles in which none of its warps finds a port.
    """

    watches = False

    def begin(self, cycle: int, waiting: Iterable[int]) -> None:
        """Begin a cycle in which the warps in `waiting` are ready, whether or not they find a port."""

    def put(self, warp: int) -> None:
        """Forget what is known of the warp with this number: another warp has the number from now on."""

    def state(self, cycle: int) -> Hashable:
        """Return all that the policy remembers between cycles, relative to a cycle; () if that is nothing."""
        del cycle
        return ()

    def pick(self, able: Sequence[int]) -> int:
        """Return the warp that issues next, one of `able`. That list is in increasing order and not empty."""
        raise NotImplementedError


class LooseRoundRobin(SchedulingPolicy):
    """The policy in which the turn passes on in a circle: first come the warps after the one that issued last.

    Source: Narasiman et al., MICRO 2011, the baseline; "loose" because a warp that is not able is passed over.
    """

    def __init__(self) -> None:
        self._last = -1

    def pick(self, able: Sequence[int]) -> int:
        """Return the first able warp after the one that issued last, in a circle."""
        self._last = min(able, key=lambda warp: (warp <= self._last, warp))
        return self._last

    def state(self, cycle: int) -> Hashable:
        """Return the warp that issued last."""
        del cycle
        return self._last


class GreedyPolicy(SchedulingPolicy):
    """The policy that prefers the greedy warp as long as it is able, and then the oldest: the smallest number.

    The greedy warp is the one that was picked first in the last cycle with an issue. Where several warps issue in a
    cycle, the others use the ports and slots that it leaves.

    Args:
        then_youngest: whether the youngest warp follows instead of the oldest.

    Source: Rogers, O'Connor and Aamodt, MICRO 2012; then the youngest: Huerta, Abaie Shoushtary, Cruz and Gonzalez,
    MICRO 2025, who measured it on NVIDIA GPUs.
    """

    def __init__(self, *, then_youngest: bool = False) -> None:
        self._greedy, self._is_first = -1, True
        self._next = -1 if then_youngest else 0

    def begin(self, cycle: int, waiting: Iterable[int]) -> None:
        """Let the next pick be the first one of its cycle."""
        del cycle, waiting
        self._is_first = True

    def pick(self, able: Sequence[int]) -> int:
        """Return the greedy warp if it is able, else the oldest or the youngest."""
        chosen = self._greedy if self._greedy in able else able[self._next]
        if self._is_first:
            self._greedy, self._is_first = chosen, False
        return chosen

    def state(self, cycle: int) -> Hashable:
        """Return the greedy warp."""
        del cycle
        return self._greedy


class RankedPolicy(SchedulingPolicy):
    """The policy with a fixed order of all warps: it picks the able warp that comes first in it."""

    def __init__(self, order: Sequence[int]) -> None:
        self._rank = {warp: rank for rank, warp in enumerate(order)}

    def pick(self, able: Sequence[int]) -> int:
        """Return the able warp of the smallest rank."""
        return min(able, key=self._rank.__getitem__)


class TwoLevelPolicy(SchedulingPolicy):
    """The policy with fetch groups of consecutive warps: the current group goes first, in round robin, then the others.

    The next group, in a circle, takes over in a cycle in which no warp of the current group is ready.

    Source: Narasiman et al., MICRO 2011.
    """

    watches = True

    def __init__(self, group_size: int, warps: Sequence[int]) -> None:
        self._group = {warp: number // group_size for number, warp in enumerate(warps)}
        self._groups = -(-len(warps) // group_size)
        self._current, self._last = 0, [-1] * self._groups

    def begin(self, cycle: int, waiting: Iterable[int]) -> None:
        """Pass to the next group with a ready warp, if there is one."""
        del cycle
        self._current = min((self._group[warp] for warp in waiting), key=self._distance, default=self._current)

    def pick(self, able: Sequence[int]) -> int:
        """Return the next warp, in round robin, of the first group that has an able one."""
        chosen = min(able, key=self._turn)
        self._last[self._group[chosen]] = chosen
        return chosen

    def state(self, cycle: int) -> Hashable:
        """Return the current group, and the warp of each group that issued last."""
        del cycle
        return self._current, tuple(self._last)

    def _distance(self, group: int) -> int:
        return (group - self._current) % self._groups

    def _turn(self, warp: int) -> tuple[int, bool, int]:
        group = self._group[warp]
        return self._distance(group), warp <= self._last[group], warp


class RandomPolicy(SchedulingPolicy):
    """The policy that picks each able warp with the same probability."""

    def __init__(self, seed: int, partition: int) -> None:
        self._draws = policy_draws(seed, partition)

    def pick(self, able: Sequence[int]) -> int:
        """Return one of the warps; every pick draws one number."""
        return able[self._draws.below(len(able))]

    def state(self, cycle: int) -> Hashable:
        """Return the state of the random numbers."""
        del cycle
        return self._draws.state


class WitnessPolicy(SchedulingPolicy):
    """The policy that repeats a schedule of one partition, whose routes the warps must take. It checks nothing."""

    def __init__(self, witness: Schedule) -> None:
        self._cycles = witness.cycles
        self._now: Iterator[int] = iter(())

    def begin(self, cycle: int, waiting: Iterable[int]) -> None:
        """Take the warps that issue in this cycle from the schedule."""
        del waiting
        self._now = iter(self._cycles[cycle])

    def pick(self, able: Sequence[int]) -> int:
        """Return the next of these warps."""
        del able
        return next(self._now)


class NumberedPolicy(SchedulingPolicy):
    """A wrapper for a policy that knows warps by their numbers, in a run that knows them by their places in a list.

    Args:
        number: the number of every warp in the list.
    """

    def __init__(self, policy: SchedulingPolicy, number: Sequence[int]) -> None:
        self._policy, self._number, self.watches = policy, number, policy.watches
        self._warp = {own: warp for warp, own in enumerate(number)}

    def begin(self, cycle: int, waiting: Iterable[int]) -> None:
        """Begin the cycle for the wrapped policy."""
        self._policy.begin(cycle, (self._number[warp] for warp in waiting))

    def put(self, warp: int) -> None:
        """Tell the wrapped policy that another warp has the number."""
        self._policy.put(self._number[warp])

    def state(self, cycle: int) -> Hashable:
        """Return the state of the wrapped policy."""
        return self._policy.state(cycle)

    def pick(self, able: Sequence[int]) -> int:
        """Return the warp whose number the wrapped policy picks."""
        return self._warp[self._policy.pick(sorted(self._number[warp] for warp in able))]


POLICIES: dict[str, Callable[[Sequence[int], Choices, int], SchedulingPolicy]] = {
    "lrr": lambda *_: LooseRoundRobin(),
    "gto": lambda *_: GreedyPolicy(),
    "gty": lambda *_: GreedyPolicy(then_youngest=True),
    "oldest": lambda warps, *_: RankedPolicy(warps),
    "youngest": lambda warps, *_: RankedPolicy(warps[::-1]),
    "two-level": lambda warps, choices, _: TwoLevelPolicy(choices.group_size, warps),
    "random": lambda _, choices, partition: RandomPolicy(choices.seed, partition),
}
"""Policies by their names on the command line. Each is made for the warps of a partition, in increasing order."""


def partition_policies(instance: Instance, policy: str, choices: Choices, chosen: WarpRoutes) -> list[SchedulingPolicy]:
    """Return the same policy for every partition; the age of a warp is its number on the SM.

    Raises:
        KeyError: a policy that is not known.
    """
    make, number = POLICIES[policy], instance.number_of_warp()
    # policies know warps by number (their age), runs by their place in the list
    partition = dict(zip(number, chosen.partitions, strict=True))
    by_number = [partition[warp] for warp in range(instance.warps)]
    made = [make(warps_of_partition(by_number, part), choices, part) for part in range(instance.machine.partitions)]
    # without a difference between number and place the wrapper would only cost time
    return made if number == tuple(range(instance.warps)) else [NumberedPolicy(one, number) for one in made]


def warps_of_partition(partitions: Sequence[int], partition: int) -> list[int]:
    """Return the warps of a partition, in increasing order."""
    return [warp for warp, part in enumerate(partitions) if part == partition]


PriorityRule = Callable[[int, int, int, bool], tuple[int, ...]]
"""Maps (ready since cycle, warp, instructions done, is a laggard) to a sort key. The smallest keys execute first."""

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
"""The warp that is ready for longest goes first, which is fair; the rules differ in how they break ties."""


class RulePolicy(SchedulingPolicy):
    """The policy of a rule.

    Args:
        laggards: the warps that are kept behind the others.
    """

    def __init__(self, rule: PriorityRule, laggards: Collection[int]) -> None:
        self.watches = rule in FAIR_RULES
        self._rule, self._laggards = rule, laggards
        self._done, self._since = Counter[int](), dict[int, int]()

    def begin(self, cycle: int, waiting: Iterable[int]) -> None:
        """Note since when each waiting warp is ready, if the rule asks for it."""
        for warp in waiting if self.watches else ():
            self._since.setdefault(warp, cycle)

    def pick(self, able: Sequence[int]) -> int:
        """Return the able warp with the smallest key."""
        chosen = min(able, key=self._key)
        self._done[chosen] += 1
        self._since.pop(chosen, None)  # it is ready anew when it comes back
        return chosen

    def _key(self, warp: int) -> tuple[int, ...]:
        return self._rule(self._since.get(warp, 0), warp, self._done[warp], warp in self._laggards)

    def put(self, warp: int) -> None:
        """Count the instructions of the warp from 0."""
        self._done[warp] = 0

    def state(self, cycle: int) -> Hashable:
        """Return the instructions that each warp has issued, and since when it has been ready."""
        done = tuple(sorted(self._done.items()))
        return done, tuple(sorted((warp, since - cycle) for warp, since in self._since.items()))
