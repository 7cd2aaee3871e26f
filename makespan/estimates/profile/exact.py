"""Exact counts of a launch that decides every branch: all its threads at once, on known values.

This execution lets lanes that parted meet wherever their ways meet; hardware lets them meet at the immediate
post-dominator. Both count the same unless the two sides of a branch share a block before that, which is looked for.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from makespan.estimates.profile.accesses import AccessCount, AccessCounts, transactions
from makespan.estimates.profile.probes import AddressProbe, Probed
from makespan.estimates.profile.values import Coalescing, WarpClass
from makespan.kernels.flow import (
    WARP_LANES,
    AbstractState,
    Execution,
    Launch,
    LoopEffort,
    PreparedCode,
    ThreadDetail,
    ThreadGroup,
    TooLongError,
    closure,
    loop_nest,
    prepare_execution,
    reconvergences,
    thread_groups,
)


class GroupExecution(Execution):
    """The execution of a group of threads; those that inherit from it look at every block that it executes."""

    def __init__(self, code: PreparedCode, group: ThreadGroup, steps: int) -> None:
        super().__init__(code, LoopEffort.ALL, group.size, steps)
        self.group = group

    def look(self, block: int, mask: Any, onward: Sequence[AbstractState]) -> None:
        """Look at a block that some threads have executed.

        Args:
            mask: the threads that did.
            onward: what goes on to each of its successors; all have the registers behind the block.
        """

    def _block(self, block: int, front: AbstractState) -> Iterator[tuple[int, AbstractState]]:
        onward = list(super()._block(block, front))
        self.look(block, front.mask, [there for _, there in onward])
        return iter(onward)


F = TypeVar("F", bound=GroupExecution)


def follow(
    found: Probed,
    launch: Launch,
    registers: Iterable[str],
    steps: int,
    make: Callable[[PreparedCode, ThreadGroup, int], F],
) -> Iterator[F]:
    """Yield the executions of all groups of threads that differ, each once it has ended.

    Args:
        registers: whose values matter, beside those that decide branches.
        steps: of all of them together.

    Raises:
        TooLongError: more steps.
        UnsupportedError: control flow that has no natural loops.
    """
    code = prepare_execution(found.flow, loop_nest(found.flow), found.parameters, list(registers))
    special = found.flow.semantics.instruction_set.registers
    matter = code.registers | {special.lane, *special.thread}
    detail = ThreadDetail.THREADS if matter.isdisjoint(special.block) else ThreadDetail.BLOCKS
    for group in thread_groups(special, launch, matter, detail):
        following = make(code, group, steps)
        following.run(dict(group.state))
        steps = following.steps_left
        yield following


# Units of work, of a quarter of a microsecond or so, that an execution may take; beyond it, the structure counts.
MAX_WORK = 4_000_000

_STEP, _THREADS_A_UNIT, _ACCESS = 60, 256, 8  # units: of a step, threads of one unit, and of a watched access


class UndecidedError(Exception):
    """The launch leaves something open; says what."""


class TooManyError(UndecidedError):
    """The launch takes too long or has too many threads; without addresses fewer may have to be told apart."""


@dataclass(frozen=True, slots=True)
class ExactCounts:
    """The exact counts of a launch.

    Args:
        classes: warps that execute the same blocks equally often, with the executions by block.
        accesses: the executions of each access that was looked at.
        watched: the instructions whose accesses were looked at.
        shared_ways: the branches whose sides share a block before lanes meet again; empty if the counts are exact.
    """

    classes: tuple[WarpClass, ...]
    accesses: AccessCounts
    watched: frozenset[int]
    shared_ways: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _LaunchTally:
    """The executions of a launch that were counted so far: by blocks of a warp, and by access."""

    launch: Launch
    coalescing: Coalescing
    warp_size: int
    watched: Mapping[int, Sequence[tuple[int, AddressProbe]]]
    classes: Counter[tuple[int, ...]] = field(default_factory=Counter)
    accesses: dict[tuple[int, bool | None], AccessCount] = field(default_factory=dict)
    parting: set[int] = field(default_factory=set)

    @property
    def warps_per_block(self) -> int:
        return -(-prod(self.launch.block or ()) // self.warp_size)

    def places(self, group: ThreadGroup) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the warp and the lane of each thread of a group."""
        if group.warps is None:
            return np.zeros(1, np.int64), np.zeros(1, np.int64)
        in_front = self.launch.warps_per_block or 1  # warps of 32 lanes, whatever the warp size
        number = group.warps % in_front * WARP_LANES + np.asarray(group.state["%laneid"]).astype(np.int64)
        return group.warps // in_front * self.warps_per_block + number // self.warp_size, number % self.warp_size

    def add(self, key: tuple[int, bool | None], warps: Any, enabled: NDArray[np.bool_], served: Any) -> None:
        """Add the executions of an access by some warps; `warps` and `served` are by warp."""
        if warps.any():
            more = (warps, enabled[warps], served[warps])
            old = self.accesses.get(key, AccessCount(0, 0, 0))
            self.accesses[key] = AccessCount(*(n + int(each.sum()) for n, each in zip(old, more, strict=True)))


def exact_counts(
    found: Probed, launch: Launch, coalescing: Coalescing, warp_size: int, *, with_addresses: bool
) -> ExactCounts:
    """Count by executing; the launch has a block and a grid.

    Raises:
        UndecidedError: a branch or loop depends on what is not known, or it takes too long.
        UnsupportedError: control flow that has no natural loops.
    """
    probes = found.probes if with_addresses else {}
    registers = [probe.address for probe in probes.values() if probe.access.is_device]
    registers += [probe.guard for probe in probes.values() if probe.guard is not None]
    tally = _LaunchTally(launch, coalescing, warp_size, found.by_block if with_addresses else {})

    def counting(code: PreparedCode, group: ThreadGroup, steps: int) -> _CountingExecution:
        return _CountingExecution(code, group, steps, tally)

    try:
        for done in follow(found, launch, registers, MAX_WORK, counting):
            columns, numbers = np.unique(done.executions, axis=1, return_counts=True)
            tally.classes.update(dict(zip(map(tuple, columns.T.tolist()), numbers.tolist(), strict=True)))
    except TooLongError:
        raise TooManyError("the launch takes too long to be followed thread by thread") from None
    # groups that were followed stand for equal ones that were not
    scale, rest = divmod(tally.warps_per_block * prod(launch.grid or ()), tally.classes.total())
    if rest:
        raise TooManyError("the launch has too many threads to be told apart")
    return ExactCounts(
        tuple(WarpClass(scale * number, column) for column, number in tally.classes.items()),
        {key: AccessCount(*(scale * number for number in count)) for key, count in tally.accesses.items()},
        frozenset(probes),
        tuple(_shared_ways(found, tally.parting)),
    )


def _shared_ways(found: Probed, parting: set[int]) -> Iterator[int]:
    points = reconvergences(found.flow)[0].points if parting else {}
    for block in sorted(parting):
        sides = [closure(found.flow, [after], [points[block]]) for after in found.flow.blocks[block].successors]
        if sides[0] & sides[1]:
            yield block


class _CountingExecution(GroupExecution):
    """An execution that counts, and gives up where something is not known."""

    def __init__(self, code: PreparedCode, group: ThreadGroup, steps: int, tally: _LaunchTally) -> None:
        super().__init__(code, group, steps)
        self._tally, self._places = tally, tally.places(group)
        self._shape = (int(self._places[0].max()) + 1, tally.warp_size)
        self.executions = np.zeros((code.flow.exit, self._shape[0]), np.int64)

    def _spend(self, steps: int) -> None:
        """Charge each step what numpy takes for it at least, so that small launches are not cheap either."""
        self.steps_left -= steps * (_STEP + self.threads // _THREADS_A_UNIT)
        if self.steps_left < 0:
            raise TooLongError

    def _unrolled(self, number: int, front: AbstractState) -> dict[int, AbstractState] | None:
        left = super()._unrolled(number, front)
        if left is None:
            name = self.code.flow.name(self.code.nest.loops[number].header)
            raise UndecidedError(f"how often loop {name} repeats depends on what is not known")
        return left

    def look(self, block: int, mask: Any, onward: Sequence[AbstractState]) -> None:
        flow, state = self.code.flow, onward[0].state
        if len(flow.blocks[block].successors) > 1 and state.get(self.code.branches[block][0]) is None:
            raise UndecidedError(f"the branch in line {flow.last(block).line} depends on what is not known")
        active = self._by_warp(mask, np.bool_)
        self.executions[block] += active.any(axis=1)
        ways = [self._by_warp(there.mask, np.bool_).any(axis=1) for there in onward]
        if len(ways) > 1 and bool((ways[0] & ways[1]).any()):  # a warp with lanes on both sides
            self._tally.parting.add(block)
        for number, probe in self._tally.watched.get(block, ()):
            self._spend(_ACCESS if probe.access.is_device else 1)
            self._access(number, probe, state, active)

    def _by_warp(self, values: Any, kind: type[Any]) -> NDArray[Any]:
        """Return values of the threads by warp and lane."""
        found = np.zeros(self._shape, kind)
        found[self._places] = values
        return found

    def _access(self, number: int, probe: AddressProbe, state: Any, active: NDArray[np.bool_]) -> None:
        value, guard = state.get(probe.address), state.get(probe.guard)
        if guard is not None:  # one that is not known is taken to be executed
            active = active & self._by_warp((np.asarray(guard) & 1) == (1 - probe.is_negated), np.bool_)
        some = active.any(axis=1)
        if value is None or not probe.access.is_device:
            self._tally.add((number, None), some, active, np.zeros(len(active)))
            return
        addresses = self._by_warp(np.asarray(value, np.uint64).astype(np.int64), np.int64)
        found = transactions(addresses, active, probe.access.lane_bytes, self._tally.coalescing)
        self._tally.add((number, True), some & found.coalesced, active, found.served)
        self._tally.add((number, False), some & ~found.coalesced, active, found.served)
