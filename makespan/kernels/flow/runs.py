"""The abstract executions of a kernel under one launch: each is made once, whoever asks for what it saw."""

from collections.abc import Iterator
from typing import NamedTuple

from makespan.kernels.flow.execution import Execution, LoopEffort, TooLongError, prepare_execution
from makespan.kernels.flow.graph import Flow
from makespan.kernels.flow.grid import Launch
from makespan.kernels.flow.loops import LoopNest, loop_nest
from makespan.kernels.flow.threads import ThreadDetail, ThreadGroup, thread_groups, useful_details

MAX_STEPS = 1_000_000
"""What one try may take, in about as many microseconds; one that comes to nothing halves it for later ones like it."""


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
        self.launch = flow.semantics.fit_launch(launch)
        self.parameters = flow.semantics.parameters(self.launch)
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
        key = str(flow.semantics.fit_launch(launch))
        found = flow.memo.get(key)
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
        limit = self._steps.setdefault((detail, effort), MAX_STEPS)
        steps = attempts = limit
        found = []
        try:
            for group in thread_groups(self._special, self.launch, self.code.registers, detail, warp):
                execution = Execution(self.code, effort, group.size, steps, attempts)
                execution.run(dict(group.state))
                steps, attempts = execution.steps_left, execution.attempts_left
                found.append(AbstractRun(group, execution))
        except TooLongError:
            found = []
        if not found or any(run.seen.given_up for run in found):
            self._steps[detail, effort] = limit // 2
        return tuple(found) or None
