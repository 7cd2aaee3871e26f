"""The threads of a launch, as far as they differ in registers that matter, and their abstract executions.

Each execution is made once, whoever asks for what it saw.
"""

from collections.abc import Collection, Iterator
from enum import IntEnum
from math import prod
from typing import TYPE_CHECKING, NamedTuple

from makespan.host.errors import InputError
from makespan.kernels.flow.execution import Execution, LoopEffort, TooLongError, prepare_execution
from makespan.kernels.flow.graph import Flow
from makespan.kernels.flow.grid import WARP_LANES, Launch, ThreadRegisters
from makespan.kernels.flow.loops import LoopNest, loop_nest

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from makespan.kernels.flow.arithmetic import RegisterValue


MAX_THREADS = 2**22
"""In a launch with more threads than this to tell apart, the number of the block counts as unknown."""

_AT_ONCE = 2**16


class ThreadDetail(IntEnum):
    """The threads that are told apart: none, those of a block, or also the blocks of the grid."""

    NOTHING = 0
    THREADS = 1
    BLOCKS = 2


class ThreadGroup(NamedTuple):
    """Some threads of a launch.

    Args:
        state: their special registers, as far as they are known.
        size: how many are told apart.
        warps: a number for the warp of each; None if they are one.
    """

    state: "dict[str, RegisterValue]"
    size: int
    warps: "NDArray[np.int64] | None"


def useful_details(special: ThreadRegisters, launch: Launch, registers: Collection[str]) -> tuple[ThreadDetail, ...]:
    """Return the details that make a difference where these registers matter, from most to none."""
    lanes = (special.lane, *special.lane_masks.values(), *(special.thread if launch.block else ()))
    telling = {
        ThreadDetail.THREADS: any(name in registers for name in lanes),
        ThreadDetail.BLOCKS: launch.grid is not None and any(name in registers for name in special.block),
        ThreadDetail.NOTHING: True,
    }
    return tuple(detail for detail in reversed(ThreadDetail) if telling[detail])


def thread_groups(
    special: ThreadRegisters, launch: Launch, registers: Collection[str], detail: ThreadDetail, warp: int | None = None
) -> Iterator[ThreadGroup]:
    """Yield all threads of the launch, or of one warp of every block, in groups that hold each warp as a whole.

    Args:
        special: how threads read who they are.
        registers: the registers that matter; threads that differ in no other stand for each other.

    Raises:
        InputError: a warp that the block does not have.
    """
    fixed: dict[str, RegisterValue] = {**special.sizes(launch)}
    if warp is not None and launch.warps_per_block is not None and not 0 <= warp < launch.warps_per_block:
        raise InputError(f"there is no warp {warp}: a block of this launch has {launch.warps_per_block} warps, from 0")
    lanes = _lanes(special, launch, registers, warp) if detail >= ThreadDetail.THREADS else [({}, 0)]
    blocks = _block_axes(special, launch, registers) if detail >= ThreadDetail.BLOCKS else {}
    if len(lanes) * prod(blocks.values()) > MAX_THREADS:  # the block number counts as unknown, which is safe
        blocks = {}
    count = prod(blocks.values())
    if count * len(lanes) == 1:
        yield ThreadGroup(fixed | lanes[0][0] | dict.fromkeys(blocks, 0), 1, None)
        return
    import numpy as np

    in_block = {name: np.array([lane[name] for lane, _ in lanes], dtype=np.uint64) for name in lanes[0][0]}
    warp_of = np.array([number for _, number in lanes], dtype=np.int64)
    step = max(1, _AT_ONCE // len(lanes))  # whole blocks, so that each warp is in one group
    for first in range(0, count, step):
        number = np.arange(first, min(first + step, count), dtype=np.uint64)
        rest, state = number, dict(fixed)
        for name, size in blocks.items():
            state[name] = np.repeat(rest % size, len(lanes))
            rest = rest // size
        state |= {name: np.tile(values, len(number)) for name, values in in_block.items()}
        warps = np.repeat(np.arange(len(number)), len(lanes)) * (warp_of.max() + 1) + np.tile(warp_of, len(number))
        yield ThreadGroup(state, len(number) * len(lanes), warps)


def _block_axes(special: ThreadRegisters, launch: Launch, registers: Collection[str]) -> dict[str, int]:
    axes = zip(special.block, launch.grid or (), strict=False)
    return {name: size for name, size in axes if name in registers or size == 1}  # an axis of size 1 is known to be 0


def _lanes(
    special: ThreadRegisters, launch: Launch, registers: Collection[str], warp: int | None
) -> list[tuple[dict[str, int], int]]:
    """Return the special registers of every thread, and its warp; without a block, those of all 32 lanes."""
    everyone = range(prod(launch.block)) if launch.block else range(WARP_LANES)
    if warp is not None and launch.block:
        everyone = everyone[warp * WARP_LANES : (warp + 1) * WARP_LANES]
    found: dict[tuple[tuple[str, int], ...], tuple[dict[str, int], int]] = {}
    for number in everyone:
        own = {name: value for name, value in _own(special, number, launch).items() if name in registers}
        group = number // WARP_LANES if own else 0
        found.setdefault((*own.items(), ("", group)), (own, group))  # threads alike in all that matters are one
    return list(found.values())


def _own(special: ThreadRegisters, number: int, launch: Launch) -> dict[str, int]:
    lane = number % WARP_LANES
    bit = 1 << lane
    ones = 2**WARP_LANES - 1
    masks = {"eq": bit, "lt": bit - 1, "le": 2 * bit - 1, "gt": ones - (2 * bit - 1), "ge": ones - (bit - 1)}
    found = {special.lane: lane} | {name: masks[relation] for relation, name in special.lane_masks.items()}
    return found if launch.block is None else found | special.place(number, launch.block)


MAX_STEPS = 1_000_000
"""The steps of one try, about a microsecond each; a try without a result halves them for later ones like it."""


class AbstractRun(NamedTuple):
    """An execution that has ended, and the threads that it stands for."""

    threads: ThreadGroup
    seen: Execution


class AbstractRuns:
    """The abstract executions of a kernel under one launch, for all warps or for one; `of` makes them once.

    Raises:
        InputError: a launch that does not fit the kernel.
    """

    def __init__(self, flow: Flow, nest: LoopNest, launch: Launch) -> None:
        self.launch = flow.semantics.signature.fit(launch)
        self.parameters = flow.semantics.signature.known(self.launch)
        self._special = flow.semantics.instruction_set.registers
        self.code = prepare_execution(flow, nest, self.parameters)
        self._made: dict[tuple[int | None, ThreadDetail, LoopEffort], tuple[AbstractRun, ...] | None] = {}
        self._steps: dict[tuple[ThreadDetail, LoopEffort], int] = {}

    @classmethod
    def of(cls, flow: Flow, launch: Launch) -> "AbstractRuns":
        """Return the runs under this launch, which the flow remembers.

        Raises:
            InputError: a launch that does not fit the kernel.
            UnsupportedError: control flow that has no natural loops.
        """
        key = str(flow.semantics.signature.fit(launch))
        found = flow.memo.get(key)  # bounds, sides and uniform branches ask for the same runs
        if not isinstance(found, AbstractRuns):
            found = flow.memo[key] = cls(flow, loop_nest(flow), launch)
        return found

    def tries(self, warp: int | None) -> Iterator[tuple[AbstractRun, ...]]:
        """Yield all threads, of one warp or of all, in ever less detail and effort, without tries that take too long.

        Raises:
            InputError: a warp that the block does not have.
        """
        for detail in useful_details(self._special, self.launch, self.code.registers):
            for effort in (LoopEffort.ALL, LoopEffort.EACH):
                key = (warp, detail, effort)
                if key not in self._made:
                    self._made[key] = self._try(*key)
                if (found := self._made[key]) is not None:
                    yield found

    def _try(self, warp: int | None, detail: ThreadDetail, effort: LoopEffort) -> tuple[AbstractRun, ...] | None:
        limit = self._steps.setdefault((detail, effort), MAX_STEPS)  # a hopeless detail gets less and less
        steps = attempts = limit
        found = []
        try:
            for group in thread_groups(self._special, self.launch, self.code.registers, detail, warp):
                execution = Execution(self.code, effort, group.size, steps, attempts)
                execution.run(dict(group.state))
                steps, attempts = execution.steps_left, execution.attempts_left
                found.append(AbstractRun(group, execution))
        except TooLongError:
            found = []  # one group without a result spoils the whole try
        if not found or any(run.seen.given_up for run in found):
            self._steps[detail, effort] = limit // 2
        return tuple(found) or None
