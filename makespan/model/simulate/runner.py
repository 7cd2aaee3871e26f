"""Many runs of one instance in compiled code: policies, orders of warps, and rankings of instructions."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cache
from itertools import accumulate, chain, groupby, islice, pairwise
from typing import NamedTuple

import numpy as np

from makespan.host.compiled import Ints, Words, ints
from makespan.host.errors import InputError
from makespan.model.instance import Instance
from makespan.model.lowered import LoweredMachine, Reservation
from makespan.model.program import BARRIER, InstructionTiming
from makespan.model.schedule import Schedule
from makespan.model.simulate import floor_compiled as loops
from makespan.model.simulate.choices import KNOWS, Choices, UseChoices, WarpRoutes, choose_routes, policy_draws

_DEFAULT = Choices()
_KINDS = {
    "lrr": loops.ROUND_ROBIN,
    "gto": loops.GREEDY,
    "gty": loops.GREEDY,
    "oldest": loops.FIRST,
    "youngest": loops.FIRST,
    "two-level": loops.TWO_LEVEL,
    "random": loops.RANDOM,
}
_REVERSED = "youngest", "gty"
"""Policies that prefer the largest number."""


class PreparedRun(NamedTuple):
    """A policy as data, what runs under it, the state of a run, and the warp of each slot."""

    policy: loops.PolicyState
    work: loops.LoweredWork
    state: loops.RunState
    warps: Ints


class EntryRow(NamedTuple):
    """The row of entries that some warps execute: the first of these warps, the first entry, and that of the end."""

    warp: int
    first: int
    end: int


class Runner:
    """An instance on fixed routes, ready for many runs. Equal questions have equal answers.

    Args:
        instance: what runs.
        chosen: the routes of the warps. None means the longest paths with the largest latencies.
        apart: warps that share their row with no other warp, so that its entries may have ranks of their own.
    """

    def __init__(self, instance: Instance, chosen: WarpRoutes | None = None, apart: Collection[int] = ()) -> None:
        instance.require(KNOWS, "the compiled simulator")
        self._instance, self._routes = instance, chosen or choose_routes(instance, _DEFAULT)
        self.rows, self.work, self.state = _lower(instance, self._routes, apart)
        self._issues, self.nothing = sum(map(len, self._routes.latencies)), _new_log(0, 0)

    def makespan(self, policy: str, choices: Choices = _DEFAULT) -> int:
        """Return the makespan of a policy in cycles. Only what concerns policies counts of `choices`."""
        return self.run(self._of_policy(policy, choices))

    def schedule(self, policy: str, choices: Choices = _DEFAULT) -> Schedule:
        """Return the run of a policy."""
        return self.schedule_of(self._of_policy(policy, choices))

    def ranked(self, order: Sequence[int]) -> int:
        """Return the makespan in cycles if in every cycle those go first that stand first in `order`.

        Raises:
            InputError: an order that is not one of all warps.
        """
        return self.run(self._of_order(order))

    def ranked_schedule(self, order: Sequence[int]) -> Schedule:
        """Return the run of a fixed order of all warps."""
        return self.schedule_of(self._of_order(order))

    def by_ranks(
        self, kind: int, ranks: Ints, work: loops.LoweredWork | None = None, rows: Ints | None = None
    ) -> PreparedRun:
        """Return that who stands at the entry of the smallest rank goes first.

        Args:
            kind: `FIRST` or `LATEST`.
            ranks: a rank from 0 for every entry, which may be changed between two runs.
            work: other entries than those of the instance.
            rows: the first entry of every warp, if the entries are others.
        """
        among = [(0, len(ranks))] * self._instance.machine.partitions
        slots = self.state.slots.copy()
        if rows is not None:
            slots["row"] = rows
        ready = _words(len(self.state.kinds), len(ranks))
        state = self.state._replace(slots=slots, ready=ready, stand=np.zeros_like(ranks))
        policy = _policy_state(kind, 1, ranks, among, ints(()), [0] * len(among))
        return PreparedRun(policy, work or self.work, state, np.arange(len(slots)))

    def ranks(self, key: Callable[[EntryRow, int, int], tuple[int, ...]]) -> Ints:
        """Return the rank of every entry by a sort key.

        Args:
            key: the key of an entry, given its row, the number of instructions before it, and how many entries of its
                kind follow one another from it on.
        """
        keys: list[tuple[int, ...]] = []
        for row in self.rows:
            kinds = self.work.entries["kind"][row.first : row.end + 1].tolist()
            left = (left for _, run in groupby(kinds) for left in range(len(tuple(run)), 0, -1))
            done = 0
            for kind, run in zip(kinds, left, strict=True):
                keys.append(key(row, done, run))
                done += kind != loops.BARRIER
        ranks = np.empty(len(keys), dtype=np.int64)
        ranks[sorted(range(len(keys)), key=keys.__getitem__)] = np.arange(len(keys))
        return ranks

    def run(self, prepared: PreparedRun) -> int:
        """Return the makespan in cycles."""
        return self._run(prepared, self.nothing)

    def schedule_of(self, prepared: PreparedRun) -> Schedule:
        """Return the run as a schedule."""
        holds = int((self.state.kinds["end"] - self.state.kinds["hold"]).max()) if self._routes.uses else 0
        log = _new_log(self._issues, self._issues * holds)
        return self._schedule(log, self._run(prepared, log), prepared.warps[log.slots])

    def _run(self, prepared: PreparedRun, log: loops.IssueLog) -> int:
        with np.errstate(over="ignore"):  # without a compiler: random numbers and bits wrap around on purpose
            return int(loops.run(prepared.policy, prepared.work, prepared.state, log))

    def _of_policy(self, policy: str, choices: Choices) -> PreparedRun:
        # the age of a warp is its number on the SM, which need not be its place in the list
        by_age = sorted(range(self._instance.warps), key=self._instance.number_of_warp().__getitem__)
        return self._of_slots(_KINDS[policy], by_age[::-1] if policy in _REVERSED else by_age, choices)

    def _of_order(self, order: Sequence[int]) -> PreparedRun:
        warps = self._instance.warps
        if sorted(order) != list(range(warps)):
            raise InputError(f"an order of {warps} warps has each of 0..{warps - 1} once")
        return self._of_slots(loops.FIRST, order, _DEFAULT)

    def _of_slots(self, kind: int, order: Sequence[int], choices: Choices) -> PreparedRun:
        """Return the policy for slots that are the warps of one partition after the other, each in this order."""
        parts = self._instance.machine.partitions
        warps = ints(sorted(order, key=self._routes.partitions.__getitem__))
        behind = accumulate(map(self._routes.partitions.count, range(parts)), initial=0)
        seeds = [policy_draws(choices.seed, part).state for part in range(parts)]
        # the turn of a group begins with its first slot
        last = np.arange(-1, len(warps) - 1)
        policy = _policy_state(kind, min(choices.group_size, len(warps)), ints(()), pairwise(behind), last, seeds)
        return PreparedRun(policy, self.work, self.state._replace(slots=self.state.slots[warps]), warps)

    def _schedule(self, log: loops.IssueLog, makespan: int, warps: Ints) -> Schedule:
        """Return a log as a schedule, given the warp of each issue."""
        # the log is in the order of picks; a schedule lists the warps of a cycle in increasing order
        executing = iter(warps[np.lexsort((warps, log.cycles))].tolist())
        instance, routes = self._instance, self._routes
        return Schedule(
            tuple(tuple(islice(executing, size)) for size in np.bincount(log.cycles, minlength=makespan).tolist()),
            routes.paths,
            () if instance.fixed_latencies else routes.latencies,
            routes.partitions if instance.partition_of_warp is None else (),
            self._uses(iter(log.options.tolist()), warps.tolist()) if routes.uses else (),
        )

    def _uses(self, options: Iterator[int], warps: Sequence[int]) -> tuple[tuple[UseChoices, ...], ...]:
        """Return what the instructions of each warp have used, given the options of all holds in the order of issues.

        The first holds of an instruction are those without a choice: its issue slot, if there is one, and its class.
        """
        fixed = 1 if self._instance.machine.issue_width is None else 2
        chosen = list(map(iter, self._routes.uses))
        used: list[list[UseChoices]] = [[] for _ in chosen]
        for warp in warps:
            uses = next(chosen[warp])
            _, *taken = islice(options, fixed - 1, fixed + len(uses))
            used[warp].append(tuple((option, cycles) for option, (_, cycles) in zip(taken, uses, strict=True)))
        return tuple(map(tuple, used))


@cache
def load() -> None:
    """Load or compile the floor."""
    Runner(Instance.of("CL", 2)).makespan("lrr")


def _lower(
    instance: Instance, routes: WarpRoutes, apart: Collection[int]
) -> tuple[list[EntryRow], loops.LoweredWork, loops.RunState]:
    """Return the rows of all warps, the same in arrays, and the state of a run, in which a slot is its own rank."""
    machine, lowered = instance.machine, LoweredMachine.of(instance.machine)
    holds, options = list[tuple[int, ...]](), list[int]()
    services: dict[tuple[str, int, UseChoices], tuple[int, int]] = {}

    def serve(reservation: Reservation, part: int, uses: UseChoices) -> tuple[int, int]:
        """Return the first hold of an instruction that is served like that, and the one behind its last."""
        key = reservation.unit, part, uses
        if key not in services:
            first, numbers = len(holds), lowered.numbers[part]
            chosen = (*((0, hold.most) for hold in reservation.fixed), *uses)
            for hold, (begin, cycles) in zip(reservation.holds, chosen, strict=True):
                holds.append((numbers[hold.pools[0]], len(options), begin, len(hold.pools), cycles))
                options.extend(numbers[name] for name in hold.pools)
            services[key] = first, len(holds)
        return services[key]

    number = {unit: number for number, unit in enumerate(lowered.by_class)}
    each_kind = [(part, each) for part in range(machine.partitions) for each in lowered.by_class.values()]
    users = [list[int]() for _ in lowered.pools]
    for kind, (part, each) in enumerate(each_kind):
        for name in {name for hold in each.holds for name in hold.pools}:
            users[lowered.numbers[part][name]].append(kind)
    kinds = list[tuple[int, ...]]()
    for part, each in each_kind:
        pool = lowered.numbers[part][each.unit]
        is_alone = len(each.holds) == 1 == len(users[pool])
        has_options = any(len(hold.pools) > 1 for hold in each.holds)
        holding = *serve(each, part, each.least_uses), pool if is_alone else loops.NONE, each.holds[0].most
        kinds.append((*holding, has_options, 0, 0))
    entries, tokens, begins = list[tuple[int, ...]](), list[int](), list[int]()
    rows: dict[tuple[int, ...], EntryRow] = {}
    of_warps = zip(instance.programs(), routes.paths, routes.latencies, routes.partitions, strict=True)
    for warp, (program, path, latencies, part) in enumerate(of_warps):
        uses = routes.uses[warp] if routes.uses else None
        # warps with the same route share one row, which keeps the arrays small
        key = id(program), id(path), id(latencies), id(uses), part, warp if warp in apart else loops.NONE
        if key not in rows:
            rows[key] = EntryRow(warp, len(entries), len(entries) + len(path))
            taken, held, token = iter(latencies), iter(uses or ()), dict[int, int]()
            for place in path:
                timing = program.timings[place] if program.timings else InstructionTiming()
                sets = len(tokens)
                tokens += [token.setdefault(each, len(token)) for each in (*timing.sets, *timing.awaits)]
                named = sets, sets + len(timing.sets), len(tokens)
                reservation = lowered.reservation(program, place)
                if reservation.unit == BARRIER:
                    entries.append((loops.BARRIER, 0, 0, 0, 0, *named))
                    continue
                latency, used = next(taken), reservation.least_uses if uses is None else next(held)
                kind = part * len(number) + number[reservation.unit]
                stall = timing.stall if program.timings else latency
                entries.append((kind, latency, stall, *serve(reservation, part, used), *named))
            entries.append((loops.END, 0, 0, 0, 0, 0, 0, 0))
        begins.append(rows[key].first)
    ports = list(accumulate((pool.capacity for pool in lowered.pools), initial=0))
    ends = accumulate(map(len, users), initial=0)
    pools = [
        (port, pool.capacity, machine.partitions > 1 and pool.partition is None, *span, 0, 0)
        for port, pool, span in zip(ports, lowered.pools, pairwise(ends), strict=False)
    ]
    slots = [(row, block, 0, 0, 0, 0) for row, block in zip(begins, instance.block_of_warp(), strict=True)]
    work = loops.LoweredWork(
        np.array(entries, loops.ENTRY),
        ints(tokens),
        np.array(holds, loops.HOLD),
        ints(options),
        ints(chain.from_iterable(users)),
    )
    state = loops.RunState(
        slots=np.array(slots, loops.SLOT),
        kinds=np.array(kinds, loops.KIND),
        pools=np.array(pools, loops.POOL),
        blocks=np.zeros(instance.blocks, loops.BLOCK),
        ready=_words(len(kinds), len(slots)),
        free=np.zeros(ports[-1], dtype=np.int64),
        ring=np.zeros(1 + max(max(entry[1:3]) for entry in entries), dtype=np.int64),
        stand=ints(()),
        until=np.zeros((len(slots), max(tokens, default=-1) + 1), dtype=np.int64),
    )
    return list(rows.values()), work, state


def _words(kinds: int, ranks: int) -> Words:
    return np.zeros((kinds, (ranks + 63) // 64), dtype=np.uint64)


def _policy_state(
    kind: int, size: int, ranks: Ints, among: Iterable[tuple[int, int]], last: Ints, seeds: Sequence[int]
) -> loops.PolicyState:
    turns = [(low, high, loops.NONE if kind == loops.GREEDY else low - 1, -1, 0, 0) for low, high in among]
    return loops.PolicyState(kind, size, ranks, np.array(turns, loops.TURN), last, np.array(seeds, dtype=np.uint64))


def _new_log(issues: int, holds: int) -> loops.IssueLog:
    """Return a log with room for so many issues and holds."""
    return loops.IssueLog(*(np.zeros(size, dtype=np.int64) for size in (issues, issues, holds, 2)))
