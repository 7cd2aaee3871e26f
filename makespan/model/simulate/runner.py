"""Runs of a policy, in compiled code where the instance is large and no warp runs ahead and nothing is divided."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING

from makespan.host.errors import InputError
from makespan.model.feature import MULTIPROCESSOR
from makespan.model.instance import Instance
from makespan.model.program import BARRIER
from makespan.model.schedule import Schedule
from makespan.model.simulate.choices import KNOWS, Choices, WarpRoutes, choose_routes, policy_draws
from makespan.model.simulate.policies import POLICIES, partition_policies, simulate_policies

if TYPE_CHECKING:
    from makespan.model.simulate import runner_compiled as loops

SMALL = 20_000
"""The number of warps times the sum of their latencies up to which a run does without compiled code."""

_DEFAULT = Choices()
_REVERSED = "youngest", "gty"
"""Policies that prefer the largest number."""


def run(instance: Instance, policy: str, choices: Choices = _DEFAULT) -> Schedule:
    """Return the schedule that a policy makes. It is one of many work-conserving schedules, and bounds no other.

    Args:
        policy: a key of `POLICIES`.
        choices: the choices that the policy does not make.

    Raises:
        KeyError: a policy that is not known.
    """
    chosen = choose_routes(instance, choices)
    return _interpreted_run(instance, policy, choices, chosen) or Runner(instance, chosen).schedule(policy, choices)


def _interpreted_run(
    instance: Instance, policy: str, choices: Choices, chosen: WarpRoutes, stop: Callable[[], bool] = lambda: False
) -> Schedule | None:
    """Return the run of a policy without compiled code.

    None means that compiled code is better, or that `stop` ended it.
    """
    if is_compiled(instance, chosen):  # the caller takes the compiled way
        return None
    return simulate_policies(instance, partition_policies(instance, policy, choices, chosen), chosen, stop)


def shortest_run(instance: Instance, choices: Choices = _DEFAULT) -> Schedule:
    """Return the shortest of the schedules that the policies make."""
    chosen = choose_routes(instance, choices)
    if not is_compiled(instance, chosen):
        runs = (_interpreted_run(instance, policy, choices, chosen) for policy in POLICIES)
        return min(filter(None, runs), key=lambda schedule: schedule.makespan)
    runner = Runner(instance, chosen)
    return runner.schedule(min(POLICIES, key=lambda policy: runner.makespan(policy, choices)), choices)


@cache
def load() -> None:
    """Load or compile the runner."""
    Runner(Instance.of("CL", 2)).makespan("lrr")


def longest_run(instance: Instance, chosen: WarpRoutes, stop: Callable[[], bool]) -> Schedule | None:
    """Return the longest schedule that the policies make on these routes, among those that `stop` leaves time for."""
    asked = (policy for policy in POLICIES if not stop())
    if not is_compiled(instance, chosen):
        runs = (_interpreted_run(instance, policy, _DEFAULT, chosen, stop) for policy in asked)
        return max(filter(None, runs), key=lambda run: run.makespan, default=None)
    runner = Runner(instance, chosen)
    policy = max(asked, key=runner.makespan, default=None)
    return None if policy is None else runner.schedule(policy)


def is_compiled(instance: Instance, chosen: WarpRoutes) -> bool:
    """Return whether compiled code knows all features of the instance and is worth the time to load it."""
    is_known = not instance.is_multiprocessor
    return is_known and instance.warps * sum(map(sum, chosen.latencies)) > SMALL


def makespan(instance: Instance, order: Sequence[int], latencies: Sequence[Sequence[int]] | None = None) -> int:
    """Return the makespan if, in every cycle, the able warps issue in the sequence that `order` gives.

    It belongs to one schedule, and so is a lower bound on the worst case. For many orders of one instance keep a
    `Runner`.

    Args:
        order: all warps, in any order.
        latencies: the latency of every instruction, by warp, as in `Schedule`. None means the largest ones.

    Raises:
        InputError: an order that is not one of all warps, or latencies out of range.
    """
    chosen = choose_routes(instance, _DEFAULT)
    return Runner(instance, chosen if latencies is None else with_latencies(instance, chosen, latencies)).ranked(order)


def with_latencies(instance: Instance, chosen: WarpRoutes, latencies: Sequence[Sequence[int]]) -> WarpRoutes:
    """Return the same paths with other latencies.

    Raises:
        InputError: a wrong number of latencies, or one that is not in the range of its class.
    """
    ranges = {unit.name: unit.latency for unit in instance.machine.units}
    if len(latencies) != instance.warps:
        raise InputError(f"latencies of {len(latencies)} warps are given, of {instance.warps}")
    for warp, (program, path, own) in enumerate(zip(instance.programs(), chosen.paths, latencies, strict=True)):
        letters = [program.places[place].unit for place in path]
        allowed = [ranges[letter] for letter in letters if letter != BARRIER]
        if len(own) != len(allowed):
            raise InputError(f"warp {warp} has {len(own)} latencies for {len(allowed)} instructions")
        for latency, within in zip(own, allowed, strict=True):
            if not within.least <= latency <= within.most:
                raise InputError(f"warp {warp} has a latency of {latency}, which is not in {within}")
    return chosen._replace(latencies=tuple(map(tuple, latencies)))


class Runner:
    """An instance on fixed routes, ready for many runs. Equal questions have equal answers.

    Args:
        instance: what runs.
        chosen: the routes of the warps. None means the longest paths with the largest latencies.
    """

    def __init__(self, instance: Instance, chosen: WarpRoutes | None = None) -> None:
        import numpy as np

        from makespan.host.compiled import ints
        from makespan.model.simulate import runner_compiled as loops

        instance.require(KNOWS - MULTIPROCESSOR, "the compiled simulator")
        self._instance, self._routes = instance, chosen or choose_routes(instance, _DEFAULT)
        machine = instance.machine
        rows: dict[tuple[int, int, int], int] = {}
        letters, latencies, first = list[int](), list[int](), list[int]()
        codes = {unit.name: number for number, unit in enumerate(machine.units)} | {BARRIER: len(machine.units)}
        for program, path, own in zip(instance.programs(), self._routes.paths, self._routes.latencies, strict=True):
            # warps with the same route share one row, which keeps the arrays small
            key = id(program), id(path), id(own)
            if key not in rows:
                rows[key] = len(letters)
                units, coming = [program.places[place].unit for place in path], iter(own)
                letters += [*(codes[unit] for unit in units), len(machine.units) + 1]
                latencies += [*(0 if unit == BARRIER else next(coming) for unit in units), 0]
            first.append(rows[key])
        self.work = loops.WarpRows(*map(ints, (letters, latencies, first, instance.block_of_warp())))
        self.units = loops.UnitPorts(
            ints([unit.capacity for unit in machine.units]),
            ints([unit.interval for unit in machine.units]),
            machine.issue_width or instance.warps,
        )
        # the age of a warp is its number on the SM, which need not be its place in the list
        by_age = sorted(range(instance.warps), key=instance.number_of_warp().__getitem__)
        self._by_age = None if by_age == list(range(instance.warps)) else by_age
        self.longest = max(latencies)
        self.nothing = loops.IssueLog(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))

    def makespan(self, policy: str, choices: Choices = _DEFAULT) -> int:
        """Return the makespan of a policy in cycles. Only what concerns policies counts of `choices`."""
        return self._run(policy, choices, self.nothing)

    def schedule(self, policy: str, choices: Choices = _DEFAULT) -> Schedule:
        """Return the run of a policy."""
        log = self.log()
        return self.logged(log, self._run(policy, choices, log), self._order(policy))

    def ranked(self, order: Sequence[int]) -> int:
        """Return the makespan of a fixed order of all warps in cycles, see `makespan`.

        Raises:
            InputError: an order that is not one of all warps.
        """
        return self._ranked(order, self.nothing)

    def ranked_schedule(self, order: Sequence[int]) -> Schedule:
        """Return the run of a fixed order of all warps."""
        log = self.log()
        return self.logged(log, self._ranked(order, log), order)

    def _order(self, policy: str) -> Sequence[int] | None:
        """Return the warps in the order in which a policy counts them. None means the order of the list."""
        if policy not in _REVERSED:
            return self._by_age
        return range(self._instance.warps - 1, -1, -1) if self._by_age is None else self._by_age[::-1]

    def _run(self, policy: str, choices: Choices, log: "loops.IssueLog") -> int:
        from makespan.model.simulate import runner_compiled as loops

        kinds = {
            "lrr": loops.ROUND_ROBIN,
            "gto": loops.GREEDY,
            "gty": loops.GREEDY,
            "oldest": loops.OLDEST,
            "youngest": loops.OLDEST,
            "two-level": loops.TWO_LEVEL,
            "random": loops.RANDOM,
        }
        warps = self._instance.warps
        work = self.work if (order := self._order(policy)) is None else self._ordered(order)
        size = min(choices.group_size, warps)
        return self._execute(kinds[policy], size, policy_draws(choices.seed).state, work, log)

    def _ranked(self, order: Sequence[int], log: "loops.IssueLog") -> int:
        from makespan.model.simulate import runner_compiled as loops

        return self._execute(loops.OLDEST, self._instance.warps, 0, self._ordered(order), log)

    def _ordered(self, order: Sequence[int]) -> "loops.WarpRows":
        import numpy as np

        warps, chosen = self._instance.warps, np.asarray(order, dtype=np.int64)
        if chosen.shape != (warps,) or not np.array_equal(np.sort(chosen), np.arange(warps)):
            raise InputError(f"an order of {warps} warps has each of 0..{warps - 1} once")
        # a fixed order becomes a renumbering: the policy OLDEST prefers the smaller slot
        return self.work._replace(first=self.work.first[chosen], block=self.work.block[chosen])

    def _execute(self, kind: int, size: int, seed: int, work: "loops.WarpRows", log: "loops.IssueLog") -> int:
        import numpy as np

        from makespan.model.simulate import runner_compiled as loops

        turn = 0 if kind in (loops.OLDEST, loops.TWO_LEVEL) else loops.NONE
        policy = loops.PolicyState(
            kind,
            size,
            np.array([turn, 0], dtype=np.int64),
            np.arange(-1, self._instance.warps - 1, size, dtype=np.int64),
            np.array([seed], dtype=np.uint64),
        )
        with np.errstate(over="ignore"):  # without a compiler: random numbers and bits wrap around on purpose
            state = loops.prepare_state(work, self.units, self._instance.blocks, self.longest)
            return int(loops.run(policy, work, self.units, state, log))

    def log(self) -> "loops.IssueLog":
        """Return a log with room for every issue of a run."""
        import numpy as np

        from makespan.model.simulate import runner_compiled as loops

        size = sum(map(len, self._routes.latencies))
        return loops.IssueLog(np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64))

    def logged(self, log: "loops.IssueLog", makespan: int, order: Sequence[int] | None = None) -> Schedule:
        """Return a log as a schedule. Its slots are warps, or places in `order` if that is given."""
        import numpy as np

        warps = log.slots if order is None else np.asarray(order, dtype=np.int64)[log.slots]
        # the log is in the order of picks; a schedule lists the warps of a cycle in increasing order
        sorting = np.lexsort((warps, log.cycles))
        begins = np.flatnonzero(np.diff(log.cycles, prepend=-1))
        executing = iter(warps[sorting].tolist())
        cycles: list[tuple[int, ...]] = [()] * makespan
        sizes = np.diff(begins, append=len(warps)).tolist()
        for cycle, size in zip(log.cycles[begins].tolist(), sizes, strict=True):
            cycles[cycle] = tuple(next(executing) for _ in range(size))
        fixed = self._instance.machine.fixed_latencies
        return Schedule(tuple(cycles), self._routes.paths, () if fixed else self._routes.latencies)
