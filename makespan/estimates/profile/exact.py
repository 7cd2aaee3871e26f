"""Exact counts of a launch that decides every branch: all its threads at once, on known values.

The sweep lets lanes that parted meet wherever their ways meet; hardware lets them meet at the immediate post-dominator.
Both count the same unless the two sides of a branch share a block before that, which is looked for.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from makespan.estimates.profile.coalescing import transactions
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


@dataclass(slots=True)
class AccessCount:
    """The sums over those executions of one access, in all warps, that are alike in being coalesced."""

    executions: int = 0
    lanes: int = 0
    transactions: int = 0


@dataclass(frozen=True, slots=True)
class ExactCounts:
    """The exact counts of a launch.

    Args:
        blocks: by block of the flow, how often all warps together execute it.
        classes: warps that execute the same blocks equally often, with the executions by block.
        accesses: by number of an instruction, and by whether it is coalesced; None where that is not known, or the
            access does not go to the device memory.
        watched: the instructions whose accesses were looked at.
        shared_ways: the branches whose sides share a block before lanes meet again; empty if the counts are exact.
    """

    blocks: tuple[int, ...]
    classes: tuple[WarpClass, ...]
    accesses: dict[tuple[int, bool | None], AccessCount]
    watched: frozenset[int]
    shared_ways: tuple[int, ...]


def exact_counts(
    found: Probed, launch: Launch, coalescing: Coalescing, warp_size: int, *, with_addresses: bool
) -> ExactCounts:
    """Count by executing; the launch has a block and a grid.

    Raises:
        UndecidedError: a branch or loop depends on what is not known, or it takes too long.
        UnsupportedError: control flow that has no natural loops.
    """
    several = found.probes.values() if with_addresses else ()
    registers = [probe.address for probe in several if probe.access.is_device]
    registers += [probe.guard for probe in several if probe.guard is not None]
    total = np.zeros(found.flow.exit, np.int64)
    classes: dict[tuple[int, ...], int] = {}
    accesses: dict[tuple[int, bool | None], AccessCount] = {}
    parting, warps = set[int](), 0

    def counting(code: PreparedCode, group: ThreadGroup, steps: int) -> _CountingExecution:
        layout = _WarpLayout.of(group, launch, warp_size)
        return _CountingExecution(
            code, group, steps, layout, coalescing, found.by_block if with_addresses else {}, accesses
        )

    try:
        for done in follow(found, launch, registers, MAX_WORK, counting):
            parting |= done.parting
            total += done.executions.sum(axis=1)
            warps += done.executions.shape[1]
            columns, numbers = np.unique(done.executions, axis=1, return_counts=True)
            for column, number in zip(columns.T.tolist(), numbers.tolist(), strict=True):
                classes[tuple(column)] = classes.get(tuple(column), 0) + number
    except TooLongError:
        raise TooManyError("the launch takes too long to be followed thread by thread") from None
    scale = _warps(launch, warp_size) // warps  # groups that were followed stand for equal ones that were not
    if scale * warps != _warps(launch, warp_size):
        raise TooManyError("the launch has too many threads to be told apart")
    for count in accesses.values():
        count.executions, count.lanes, count.transactions = (
            scale * number for number in (count.executions, count.lanes, count.transactions)
        )
    return ExactCounts(
        tuple(scale * number for number in total.tolist()),
        tuple(WarpClass(scale * number, column) for column, number in classes.items()),
        accesses,
        frozenset(found.probes if with_addresses else ()),
        tuple(_shared_ways(found, parting)),
    )


def _warps(launch: Launch, warp_size: int) -> int:
    return -(-prod(launch.block or ()) // warp_size) * prod(launch.grid or ())


def _shared_ways(found: Probed, parting: set[int]) -> Iterator[int]:
    rules = reconvergences(found.flow) if parting else ()
    for block in sorted(parting):
        for rule in rules[:1]:
            sides = [closure(found.flow, [after], rule.points[block]) for after in found.flow.blocks[block].successors]
            if sides[0] & sides[1]:
                yield block


@dataclass
class _WarpLayout:
    """The places of the threads of a group: warp in the group, and lane of it."""

    rows: NDArray[np.int64]
    lanes: NDArray[np.int64]
    shape: tuple[int, int]

    @classmethod
    def of(cls, group: ThreadGroup, launch: Launch, warp_size: int) -> "_WarpLayout":
        """Return the warps of a group in order, whatever the warp size."""
        laneid: Any = group.state["%laneid"]
        if group.warps is None:
            return cls(np.zeros(1, np.int64), np.zeros(1, np.int64), (1, warp_size))
        in_front = -(-prod(launch.block or ()) // WARP_LANES)
        number = group.warps % in_front * WARP_LANES + np.asarray(laneid).astype(np.int64)
        warps = -(-prod(launch.block or ()) // warp_size)
        rows = group.warps // in_front * warps + number // warp_size
        return cls(rows, number % warp_size, (int(rows.max()) + 1, warp_size))


class _CountingExecution(GroupExecution):
    """An execution that counts, and gives up where something is not known."""

    def __init__(
        self,
        code: PreparedCode,
        group: ThreadGroup,
        steps: int,
        layout: _WarpLayout,
        coalescing: Coalescing,
        watched: Mapping[int, Sequence[tuple[int, AddressProbe]]],
        accesses: dict[tuple[int, bool | None], AccessCount],
    ) -> None:
        super().__init__(code, group, steps)
        self._layout, self._coalescing, self._watched, self._accesses = layout, coalescing, watched, accesses
        self.executions = np.zeros((code.flow.exit, layout.shape[0]), np.int64)
        self.parting: set[int] = set()

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
        active = self._active(mask)
        self.executions[block] += active.any(axis=1)
        ways = [self._active(there.mask).any(axis=1) for there in onward]
        if len(ways) > 1 and bool((ways[0] & ways[1]).any()):  # a warp with lanes on both sides
            self.parting.add(block)
        for number, probe in self._watched.get(block, ()):
            self._spend(_ACCESS if probe.access.is_device else 1)
            self._access(number, probe, state, active)

    def _active(self, mask: Any) -> NDArray[np.bool_]:
        found = np.zeros(self._layout.shape, bool)
        found[self._layout.rows, self._layout.lanes] = mask
        return found

    def _access(self, number: int, probe: AddressProbe, state: Any, active: NDArray[np.bool_]) -> None:
        value, guard = state.get(probe.address), state.get(probe.guard)
        enabled = active
        if guard is not None:  # one that is not known is taken to be executed
            enabled = active & self._active((np.asarray(guard) & 1) == (1 - probe.is_negated))
        if value is None or not probe.access.is_device:
            self._add((number, None), enabled.any(axis=1), enabled, np.zeros(len(enabled)))
            return
        addresses = np.zeros(self._layout.shape, np.int64)
        addresses[self._layout.rows, self._layout.lanes] = np.asarray(value, np.uint64).astype(np.int64)
        found = transactions(addresses, enabled, probe.access.lane_bytes, self._coalescing)
        for coalesced in (True, False):
            alike = found.coalesced if coalesced else ~found.coalesced
            self._add((number, coalesced), enabled.any(axis=1) & alike, enabled, found.served)

    def _add(self, key: tuple[int, bool | None], warps: Any, enabled: NDArray[np.bool_], count: Any) -> None:
        """Add the executions of some warps; `warps` and `count` are by warp."""
        if warps.any():
            found = self._accesses.setdefault(key, AccessCount())
            found.executions += int(warps.sum())
            found.lanes += int(enabled[warps].sum())
            found.transactions += int(count[warps].sum())
