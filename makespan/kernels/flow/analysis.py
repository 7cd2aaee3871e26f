"""The analyses of control flow that every language offers: loops with bounds, branches, a bounds file."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from makespan.kernels.flow import loop_info
from makespan.kernels.flow.branches import BranchInfo, branch_infos
from makespan.kernels.flow.graph import Flow
from makespan.kernels.flow.grid import Launch
from makespan.kernels.flow.instruction_set import Routine
from makespan.kernels.flow.loop_bound import GivenBound
from makespan.kernels.flow.loop_info import LoopInfo, loop_infos
from makespan.kernels.flow.loops import loop_nest


class CompiledRoutine(Routine, Protocol):
    """A kernel that may remember how it was made."""

    @property
    def compilation(self) -> object | None:
        """Return how the kernel was made, in words; None if it was given as it is."""


K = TypeVar("K", bound=CompiledRoutine)
F = TypeVar("F", bound=Flow)


@dataclass(frozen=True)
class LanguageAnalysis(Generic[K, F]):
    """The analyses of a language, which takes kernels apart by `flow`; messages call what it reads by `name`."""

    flow: Callable[[K | F], F]
    name: str

    def loops(
        self, kernel: K | F, loop_bounds: Sequence[GivenBound] = (), launch: Launch | None = None
    ) -> tuple[LoopInfo, ...]:
        """Return the loops of a kernel in text order, each with its bound as far as one is known.

        Raises:
            InputError: a bound for no loop, or one that another bound or the code contradicts.
            UnsupportedError: control flow that has no natural loops.
        """
        found = self.flow(kernel)
        return loop_infos(found, loop_nest(found), loop_bounds, launch or Launch())

    def branches(self, kernel: K | F) -> tuple[BranchInfo, ...]:
        """Return the conditional branches that can be reached, in text order.

        Raises:
            InputError: control flow that is not understood.
        """
        return branch_infos(self.flow(kernel))

    def bounds_for(self, kernel: K, given: Iterable[GivenBound], kernels: Iterable[K]) -> tuple[GivenBound, ...]:
        """Return the bounds without those that fit only another of these kernels, so that one set can serve them all.

        Raises:
            InputError: control flow of `kernel` that is not understood.
        """
        return loop_info.bounds_for(kernel, given, kernels, self.flow)

    def bounds_template(
        self,
        kernels: K | Sequence[K],
        loop_bounds: Sequence[GivenBound] = (),
        launch: Launch | None = None,
        *,
        loops: Callable[[K], Sequence[LoopInfo]] | None = None,
    ) -> str:
        """Return a bounds file to fill in: a line for each loop, `LABEL,?` where no bound is known.

        Args:
            loops: what tells those of a kernel; the default follows from the other arguments.

        Raises:
            InputError: see `loops`.
        """
        several = kernels if isinstance(kernels, Sequence) else [kernels]

        def own(kernel: K) -> Sequence[LoopInfo]:
            return self.loops(kernel, self.bounds_for(kernel, loop_bounds, several), launch)

        made = dict.fromkeys(kernel.compilation for kernel in several if kernel.compilation)
        remarks = [f"Labels hold for this {self.name} only: {compilation}" for compilation in made]
        return loop_info.bounds_template(several, loops or own, remarks)
