"""Runs of policies: by their definitions, or in compiled code where the instance is large."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import chain
from typing import overload

from makespan.model.instance import Instance
from makespan.model.machine import Machine, SchedulerPromise
from makespan.model.schedule import Schedule
from makespan.model.simulate.choices import Choices, UseChoices, WarpRoutes, choose_routes
from makespan.model.simulate.floor import Floor, HeldPort
from makespan.model.simulate.policies import (
    POLICIES,
    PriorityRule,
    RulePolicy,
    SchedulingPolicy,
    partition_policies,
    warps_of_partition,
)

SMALL = 20_000
"""The size of an instance up to which a run does without compiled code, see `is_compiled`."""

_DEFAULT = Choices()
_CYCLES_PER_LOOK = 256
_IDLE_CYCLES = 8
"""A run by definitions takes no longer for this many cycles without an issue than for the share of a warp in one."""


def run(instance: Instance, policy: str, choices: Choices = _DEFAULT) -> Schedule:
    """Return the schedule that a policy makes. It is one of many work-conserving schedules, and bounds no other.

    Args:
        policy: a key of `POLICIES`.
        choices: the choices that the policy does not make.

    Raises:
        KeyError: a policy that is not known.
    """
    chosen = choose_routes(instance, choices)
    if is_compiled(instance, chosen):
        from makespan.model.simulate.runner import Runner

        return Runner(instance, chosen).schedule(policy, choices)
    return simulate_policies(instance, partition_policies(instance, policy, choices, chosen), chosen)


def shortest_run(instance: Instance, choices: Choices = _DEFAULT) -> Schedule:
    """Return the shortest of the schedules that the policies make."""
    made = _schedules(instance, choose_routes(instance, choices), choices, lambda: False, min)
    return min(made, key=lambda run: run.makespan)


def longest_run(instance: Instance, chosen: WarpRoutes, stop: Callable[[], bool]) -> Schedule | None:
    """Return the longest schedule that the policies make on these routes, among those that `stop` leaves time for."""
    return max(_schedules(instance, chosen, _DEFAULT, stop, max), key=lambda run: run.makespan, default=None)


def _schedules(
    instance: Instance,
    chosen: WarpRoutes,
    choices: Choices,
    stop: Callable[[], bool],
    choose: Callable[..., str],
) -> Iterator[Schedule]:
    """Yield the schedules of the policies, of those that are compiled only the one that `choose` prefers."""
    asked = (policy for policy in POLICIES if not stop())
    if is_compiled(instance, chosen):
        from makespan.model.simulate.runner import Runner

        runner = Runner(instance, chosen)
        if makespans := {policy: runner.makespan(policy, choices) for policy in asked}:
            yield runner.schedule(choose(makespans, key=makespans.__getitem__), choices)
        return
    for policy in asked:
        made = simulate_policies(instance, partition_policies(instance, policy, choices, chosen), chosen, stop)
        if made is not None:
            yield made


def rule_runs(
    instance: Instance, chosen: WarpRoutes, rules: Iterable[PriorityRule], last: int, stop: Callable[[], bool]
) -> Iterator[Schedule]:
    """Yield the schedule of each rule until `stop`, with a laggard in each partition: its last warp up to `last`."""
    parts = [warps_of_partition(chosen.partitions, part) for part in range(instance.machine.partitions)]
    laggards = [max((warp for warp in own if warp <= last), default=-1) for own in parts]
    if not is_compiled(instance, chosen):
        for rule in rules:
            policies = [RulePolicy(rule, {laggard}) for laggard in laggards]
            if (made := simulate_policies(instance, policies, chosen, stop)) is None:
                return
            yield made
        return
    from makespan.model.simulate.floor_compiled import FIRST
    from makespan.model.simulate.runner import EntryRow, Runner

    runner = Runner(instance, chosen, laggards)
    for rule in rules:

        def key(row: EntryRow, done: int, _: int, rule: PriorityRule = rule) -> tuple[int, ...]:
            return rule(0, row.warp, done, row.warp in laggards)

        if stop():
            return
        yield runner.schedule_of(runner.by_ranks(FIRST, runner.ranks(key)))


def is_compiled(instance: Instance, chosen: WarpRoutes) -> bool:
    """Return whether compiled code knows all features of the instance and is worth the time to load it.

    The size is the number of warps times that of their instructions, and a share of the latencies.
    """
    issues, cycles = sum(map(len, chosen.latencies)), sum(map(sum, chosen.latencies))
    size = instance.warps * issues + cycles // _IDLE_CYCLES
    return instance.machine.scheduler is SchedulerPromise.ANY and size > SMALL


@overload
def simulate_policies(instance: Instance, policies: Sequence[SchedulingPolicy], chosen: WarpRoutes) -> Schedule: ...
@overload
def simulate_policies(
    instance: Instance, policies: Sequence[SchedulingPolicy], chosen: WarpRoutes, stop: Callable[[], bool]
) -> Schedule | None: ...
def simulate_policies(
    instance: Instance,
    policies: Sequence[SchedulingPolicy],
    chosen: WarpRoutes,
    stop: Callable[[], bool] = lambda: False,
) -> Schedule | None:
    """Return the schedule that the policies of the partitions make on these routes; None if `stop` ends it first."""
    run = PolicyRun(instance.machine, policies, Floor.of(instance, chosen.paths, chosen.partitions))
    for warp, taken in enumerate(chosen.latencies):
        run.put(warp, taken, chosen.uses[warp] if chosen.uses else None)
    cycles: list[tuple[int, ...]] = []
    floor, is_new = run.floor, False
    while True:
        if len(cycles) % _CYCLES_PER_LOOK == 0 and stop():
            return None
        if (cycle := len(cycles)) in floor.arrivals or cycle in floor.releases:
            floor.begin(cycle)
            is_new = True
        if not floor.unfinished:
            break
        issued = sorted(run.picks(cycle)) if is_new and floor.ready else ()
        cycles.append(tuple(issued))
        is_new = bool(issued)  # the warps that are left may rank differently in the next cycle
    return Schedule(
        tuple(cycles),
        chosen.paths,
        () if instance.fixed_latencies else chosen.latencies,
        chosen.partitions if instance.partition_of_warp is None else (),
        tuple(tuple(run.used[warp]) for warp in range(instance.warps)) if chosen.uses else (),
    )


class PolicyRun:
    """The run of policies, one for each partition, on a floor."""

    def __init__(self, machine: Machine, policies: Sequence[SchedulingPolicy], floor: Floor) -> None:
        self.floor, self._policies = floor, policies
        self._parts, self._watches = machine.partitions, any(policy.watches for policy in policies)
        self._line = list(range(self._parts))
        self._shared = {n for n, pool in enumerate(floor.pools) if self._parts > 1 and pool.partition is None}
        self._latencies: dict[int, Iterator[int]] = {}
        self._uses: dict[int, Iterator[UseChoices]] = {}
        self.used: dict[int, list[UseChoices]] = {}
        """The uses of the instructions of every warp so far: the resource of each use, and the cycles."""

    def put(self, warp: int, latencies: Iterable[int], uses: Iterable[UseChoices] | None) -> None:
        """Put a warp on the floor with the times of its instructions, in order.

        None means that there is no choice of uses.
        """
        self._latencies[warp] = iter(latencies)
        if uses is not None:
            self._uses[warp], self.used[warp] = iter(uses), []
        for policy in self._policies:
            policy.put(warp)

    def state(self, cycle: int) -> Hashable:
        """Return all that the run remembers besides the floor, relative to a cycle."""
        return tuple(self._line), tuple(policy.state(cycle) for policy in self._policies)

    def picks(self, cycle: int) -> Iterator[int]:
        """Yield the warps that issue in this cycle, in the order in which they are picked."""
        ready, fits, parts = self.floor.ready, self.floor.fits, self._parts
        is_any = self.floor.fitting() is not None
        if not is_any and not self._watches:
            return  # the common case where ports are held for long
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
                    served.append(part)  # it may pick again in this cycle
            line = served  # ports only become scarcer in a cycle: a partition without able warps stays so

    def _issue(self, cycle: int, warp: int) -> int:
        kind = self.floor.kind(warp)
        held = self._held(warp, kind) if self._uses else self.floor.kinds[kind].least
        self.floor.issue(cycle, warp, next(self._latencies[warp]), held)
        if self._shared and any(pool in self._shared for pool, _ in held):
            part = kind % self._parts
            self._line.remove(part)
            self._line.append(part)  # the next cycle begins with the others
        return warp

    def _held(self, warp: int, kind: int) -> tuple[HeldPort, ...]:
        needs, free = self.floor.kinds[kind], self.floor.free
        used = tuple(
            (next(which for n in range(len(pools)) if free[pools[which := (first + n) % len(pools)]]), cycles)
            for pools, (first, cycles) in zip(needs.uses, next(self._uses[warp]), strict=True)
        )
        self.used[warp].append(used)
        return needs.held(used)
