"""Scheduling policies that hardware uses: what each of them means, and its runs.

In every cycle, as long as some ready warp of a partition finds all that it needs free, the policy of the partition
picks the next of these *able* warps, and it issues. A pick takes away ports and slots and gives none back, so when no
warp is able any more, no ready warp that is left out could be added: the set is maximal, and every policy is
work-conserving, whatever it picks. A run is one schedule of many: it bounds no other run.

Partitions pick in turns. Who has taken a port that all share goes to the end of the line, from the next cycle on.

A policy holds one turn for its partition, not one per class.
`makespan.model.simulate.runner` does the same fast where nothing runs ahead or is divided.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from itertools import chain

from makespan.model.instance import Instance
from makespan.model.machine import Machine
from makespan.model.schedule import Schedule
from makespan.model.simulate.choices import Choices, UseChoices, WarpRoutes, policy_draws
from makespan.model.simulate.floor import Floor, HeldPort


class SchedulingPolicy:
    """Picks who issues next; the cycles come in order, each begun once.

    Args:
        watches: whether it has to be told of cycles, too, in which none of its warps finds a port.
    """

    watches = False

    def begin(self, cycle: int, waiting: Iterable[int]) -> None:
        """A cycle begins in which these warps are ready, whether they find a port or not."""

    def put(self, warp: int) -> None:
        """Another warp has this number from now on."""

    def state(self, cycle: int) -> Hashable:
        """Return all that it remembers from one cycle to the next, counted from a cycle on; () if that is nothing."""
        del cycle
        return ()

    def pick(self, able: Sequence[int]) -> int:
        """Return the warp that issues next, one of `able`, which are in increasing order and at least one."""
        raise NotImplementedError


class LooseRoundRobin(SchedulingPolicy):
    """The turn passes on: first the warps after the one that issued last, in a circle.

    Source: Narasiman et al., MICRO 2011, the baseline; "loose" because a warp that is not able is passed over.
    """

    def __init__(self) -> None:
        self._last = -1

    def pick(self, able: Sequence[int]) -> int:
        """Return the first one after the last."""
        self._last = min(able, key=lambda warp: (warp <= self._last, warp))
        return self._last

    def state(self, cycle: int) -> Hashable:
        """Who has issued last."""
        del cycle
        return self._last


class GreedyPolicy(SchedulingPolicy):
    """The greedy warp goes first as long as it is able, then the oldest, which is the one with the smallest number.

    Greedy is who was picked first in the last cycle in which anybody issued: where several warps issue in a cycle, the
    others only use what it leaves over.

    Args:
        then_youngest: the youngest instead of the oldest.

    Source: Rogers, O'Connor and Aamodt, MICRO 2012; then the youngest: Huerta, Abaie Shoushtary, Cruz and Gonzalez,
    MICRO 2025, who measured it on NVIDIA GPUs.
    """

    def __init__(self, *, then_youngest: bool = False) -> None:
        self._greedy, self._is_first = -1, True
        self._next = -1 if then_youngest else 0

    def begin(self, cycle: int, waiting: Iterable[int]) -> None:
        """The next pick is the first one."""
        del cycle, waiting
        self._is_first = True

    def pick(self, able: Sequence[int]) -> int:
        """Return the greedy warp, or the oldest or youngest."""
        chosen = self._greedy if self._greedy in able else able[self._next]
        if self._is_first:
            self._greedy, self._is_first = chosen, False
        return chosen

    def state(self, cycle: int) -> Hashable:
        """Who is greedy."""
        del cycle
        return self._greedy


class RankedPolicy(SchedulingPolicy):
    """A fixed order of all warps: the able one that stands first in it."""

    def __init__(self, order: Sequence[int]) -> None:
        self._rank = {warp: rank for rank, warp in enumerate(order)}

    def pick(self, able: Sequence[int]) -> int:
        """Return the one of the smallest rank."""
        return min(able, key=self._rank.__getitem__)


class TwoLevelPolicy(SchedulingPolicy):
    """Fetch groups of consecutive warps: the current group goes first, in round robin, then the groups after it.

    The next group, in a circle, takes over in a cycle in which no warp of the current one is ready.

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
        """Return the first one after the last of its group, in the group that is next."""
        chosen = min(able, key=self._turn)
        self._last[self._group[chosen]] = chosen
        return chosen

    def state(self, cycle: int) -> Hashable:
        """Return the current group, and who has issued last in each of them."""
        del cycle
        return self._current, tuple(self._last)

    def _distance(self, group: int) -> int:
        return (group - self._current) % self._groups

    def _turn(self, warp: int) -> tuple[int, bool, int]:
        group = self._group[warp]
        return self._distance(group), warp <= self._last[group], warp


class RandomPolicy(SchedulingPolicy):
    """Each able warp with the same probability."""

    def __init__(self, seed: int, partition: int) -> None:
        self._draws = policy_draws(seed, partition)

    def pick(self, able: Sequence[int]) -> int:
        """One number is drawn for every pick."""
        return able[self._draws.below(len(able))]

    def state(self, cycle: int) -> Hashable:
        """Where the draws are."""
        del cycle
        return self._draws.state


class WitnessPolicy(SchedulingPolicy):
    """Repeats a schedule of one partition, whose routes the warps must take; shows its adversary, checks nothing."""

    def __init__(self, witness: Schedule) -> None:
        self._cycles = witness.cycles
        self._now: Iterator[int] = iter(())

    def begin(self, cycle: int, waiting: Iterable[int]) -> None:
        """Who issues in this cycle is known."""
        del waiting
        self._now = iter(self._cycles[cycle])

    def pick(self, able: Sequence[int]) -> int:
        """Return the next of them."""
        del able
        return next(self._now)


class NumberedPolicy(SchedulingPolicy):
    """A policy that knows warps by their numbers, where a run knows them by their places in a list.

    Args:
        number: of every warp in the list.
    """

    def __init__(self, policy: SchedulingPolicy, number: Sequence[int]) -> None:
        self._policy, self._number, self.watches = policy, number, policy.watches
        self._warp = {own: warp for warp, own in enumerate(number)}

    def begin(self, cycle: int, waiting: Iterable[int]) -> None:
        """The same warps are ready."""
        self._policy.begin(cycle, (self._number[warp] for warp in waiting))

    def put(self, warp: int) -> None:
        """The same warp comes."""
        self._policy.put(self._number[warp])

    def state(self, cycle: int) -> Hashable:
        """Return all that the policy remembers."""
        return self._policy.state(cycle)

    def pick(self, able: Sequence[int]) -> int:
        """Return the warp of the number that the policy picks."""
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
"""Policies by the name used on the command line, each for the warps of a partition, in increasing order."""

_ROUNDS_PER_LOOK = 256


def partition_policies(instance: Instance, policy: str, choices: Choices, chosen: WarpRoutes) -> list[SchedulingPolicy]:
    """Return the same policy for every partition; the age of a warp is its number on the SM.

    Raises:
        KeyError: a policy that is not known.
    """
    make, number = POLICIES[policy], instance.number_of_warp()
    partition = dict(zip(number, chosen.partitions, strict=True))
    by_number = [partition[warp] for warp in range(instance.warps)]
    made = [make(warps_of_partition(by_number, part), choices, part) for part in range(instance.machine.partitions)]
    return made if number == tuple(range(instance.warps)) else [NumberedPolicy(one, number) for one in made]


def warps_of_partition(partitions: Sequence[int], partition: int) -> list[int]:
    """Return the warps of a partition, in increasing order."""
    return [warp for warp, part in enumerate(partitions) if part == partition]


def simulate_policies(
    instance: Instance,
    policies: Sequence[SchedulingPolicy],
    chosen: WarpRoutes,
    stop: Callable[[], bool] = lambda: False,
) -> Schedule | None:
    """The schedule that policies, one for each partition, make of warps on these routes; None if `stop` comes first."""
    run = PolicyRun(instance.machine, policies, Floor.of(instance, chosen.paths, chosen.partitions))
    for warp, taken in enumerate(chosen.latencies):
        run.put(warp, taken, chosen.uses[warp] if chosen.uses else None)
    cycles: list[tuple[int, ...]] = []
    floor, is_new = run.floor, False
    while True:
        if len(cycles) % _ROUNDS_PER_LOOK == 0 and stop():
            return None
        if (cycle := len(cycles)) in floor.arrivals or cycle in floor.releases:
            floor.begin(cycle)
            is_new = True
        if not floor.unfinished:
            break
        issued = sorted(run.picks(cycle)) if is_new and floor.ready else ()
        cycles.append(tuple(issued))
        is_new = bool(issued)  # who is left may mean something else to a policy than in this cycle
    return Schedule(
        tuple(cycles),
        chosen.paths,
        () if instance.fixed_latencies else chosen.latencies,
        chosen.partitions if instance.partition_of_warp is None else (),
        tuple(tuple(run.used[warp]) for warp in range(instance.warps)) if chosen.uses else (),
    )


class PolicyRun:
    """A floor, the policies that serve it, one for each partition, and what is used."""

    def __init__(self, machine: Machine, policies: Sequence[SchedulingPolicy], floor: Floor) -> None:
        self.floor, self._policies = floor, policies
        self._parts, self._watches = machine.partitions, any(policy.watches for policy in policies)
        self._line = list(range(self._parts))
        self._shared = {n for n, pool in enumerate(floor.pools) if self._parts > 1 and pool.partition is None}
        self._latencies: dict[int, Iterator[int]] = {}
        self._uses: dict[int, Iterator[UseChoices]] = {}
        self.used: dict[int, list[UseChoices]] = {}
        """For every warp what its instructions have used: which of the resources of each use, for how many cycles."""

    def put(self, warp: int, latencies: Iterable[int], uses: Iterable[UseChoices] | None) -> None:
        """A warp is new on the floor; what its instructions take, in order, and no uses where there is no choice."""
        self._latencies[warp] = iter(latencies)
        if uses is not None:
            self._uses[warp], self.used[warp] = iter(uses), []
        for policy in self._policies:
            policy.put(warp)

    def state(self, cycle: int) -> Hashable:
        """Return all that is remembered besides the floor, counted from a cycle on."""
        return tuple(self._line), tuple(policy.state(cycle) for policy in self._policies)

    def picks(self, cycle: int) -> Iterator[int]:
        """Yield the warps that issue in this cycle, in the order in which they are picked."""
        ready, fits, parts = self.floor.ready, self.floor.fits, self._parts
        is_any = self.floor.fitting() is not None
        if not is_any and not self._watches:
            return  # as most cycles, where a port is held for long
        fitting = defaultdict[int, list[int]](list)
        for kind in ready if is_any else ():
            if fits(kind):
                fitting[kind % parts].append(kind)
        for part, policy in enumerate(self._policies):
            if part in fitting or policy.watches:
                waiting = (ready[kind] for kind in ready if kind % parts == part)
                policy.begin(cycle, chain.from_iterable(waiting))
        line = [part for part in self._line if part in fitting]
        while line:
            served = []
            for part in line:
                own = [kind for kind in fitting[part] if kind in ready and fits(kind)]
                if own:
                    able = sorted(chain.from_iterable(ready[kind] for kind in own))
                    yield self._issue(cycle, self._policies[part].pick(able))
                    served.append(part)
            line = served  # who is not able does not become so in this cycle

    def _issue(self, cycle: int, warp: int) -> int:
        kind = self.floor.kind(warp)
        held = self._held(warp, kind) if self._uses else self.floor.kinds[kind].least
        self.floor.issue(cycle, warp, next(self._latencies[warp]), held)
        if self._shared and any(pool in self._shared for pool, _ in held):
            part = kind % self._parts
            self._line.remove(part)
            self._line.append(part)
        return warp

    def _held(self, warp: int, kind: int) -> tuple[HeldPort, ...]:
        """What an instruction holds: of each use the first resource that is free, from the one chosen on."""
        needs, free = self.floor.kinds[kind], self.floor.free
        used = tuple(
            (next(which for n in range(len(pools)) if free[pools[which := (first + n) % len(pools)]]), cycles)
            for pools, (first, cycles) in zip(needs.uses, next(self._uses[warp]), strict=True)
        )
        self.used[warp].append(used)
        return needs.held(used)


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
