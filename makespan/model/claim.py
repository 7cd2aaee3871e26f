"""The claim of a worst case: an interval with its subject, its proof and its conditions."""

from collections.abc import Iterator
from dataclasses import dataclass

from makespan.host.errors import InputError
from makespan.model.assumptions import Assumption
from makespan.model.gpu import GpuInstance, GpuResult
from makespan.model.instance import Instance
from makespan.model.program import Program
from makespan.model.result import Bounds, Result
from makespan.model.wording import count_words


@dataclass(frozen=True, slots=True)
class WorstCaseClaim:
    """A proven interval, in cycles, of the worst case of some warps or of all blocks of a launch.

    Args:
        subject: The warps or blocks whose worst case it is.
        proof: The method that proves `upper`.
        assumptions: What must hold for the number to be a worst case of the source.
        is_one_path: Whether every warp has a single path. With several, no input of the kernel need lead to the one
            that `lower` takes: a loop may make fewer iterations than its bound, and conditions can exclude each other.
    """

    lower: int
    upper: int
    subject: str
    proof: str
    assumptions: tuple[Assumption, ...]
    is_one_path: bool

    def __str__(self) -> str:
        status = "exact" if self.lower == self.upper else f"at least {self.lower}"
        return f"{self.subject}: {self.upper} cycles, {status}, by {self.proof}"

    @classmethod
    def of(cls, result: object) -> "WorstCaseClaim":
        """Return the claim of a `Result` or a `GpuResult`.

        Raises:
            InputError: anything else, such as an `Estimate`, which bounds nothing.
        """
        if not isinstance(result, Result | GpuResult):
            raise InputError(
                f"an execution time must be a proven upper bound, and {type(result).__name__} is none:"
                " take the Result of makespan.solve, or a bundle"
            )
        return cls.about(result.instance, result.bounds, str(result.upper_evidence), result.assumptions)

    @classmethod
    def about(
        cls,
        asked: Instance | GpuInstance,
        bounds: Bounds,
        proof: str,
        notes: tuple[Assumption, ...],
    ) -> "WorstCaseClaim":
        """Return a claim of these bounds; everything else follows from the instance."""
        one_path = all(program.is_chain for program in programs_of(asked))
        return cls(bounds.lower, bounds.upper, _subject_text(asked), proof, notes, one_path)


def programs_of(asked: Instance | GpuInstance) -> Iterator[Program]:
    """Yield the programs of the groups of an instance, or of the warps of a block of each grid."""
    if isinstance(asked, Instance):
        yield from (group.program for group in asked.groups)
    else:
        yield from (program for grid in asked.grids for program, _ in grid.block)


def _subject_text(asked: Instance | GpuInstance) -> str:
    if isinstance(asked, Instance):
        return f"{asked.warps} warps on machine {asked.machine.name}"
    blocks = " + ".join(
        f"{count_words(grid.blocks, 'block')} of {count_words(grid.warps, 'warp')}" for grid in asked.grids
    )
    each = f" with {asked.resident} each" if len(asked.grids) == 1 else ""
    return f"{blocks} on {count_words(asked.sms, 'SM')}{each}, {asked.machine.name}"
