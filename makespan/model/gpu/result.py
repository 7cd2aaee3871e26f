"""What is proven of a whole GPU."""

from dataclasses import dataclass
from typing import NamedTuple

from makespan.host.errors import BrokenPromiseError
from makespan.model.assumptions import Assumption
from makespan.model.certificate import Weights
from makespan.model.conditions import conditions
from makespan.model.gpu.instance import GpuInstance
from makespan.model.gpu.schedule import GpuSchedule
from makespan.model.result import Bounds, Result, Status
from makespan.model.wording import count_words


class LastDispatch(NamedTuple):
    """The parts of theorem G: `upper = dispatched + tail + dram`, in cycles.

    Args:
        counting: which of the ways to count waits was the best, see `bounds.theorem_g`.
        block: what a block costs before the last one is dispatched, in units of `1 / scale` cycles of the whole GPU; of
            several grids, all blocks together.
        charged: how many blocks are charged so; of several grids 1; 0 if there is room for all from the beginning.
        scale: so that `dispatched = floor(block * charged / scale)`, but for what is `spared`.
        spared: what of that need not be counted, in the same units, as the tail counts it.
        dispatched: the cycle in which the last block gets its room, at most; but where something is `spared`, only
            the sum with the tail is a bound, and is rounded as one.
        tail: the cycles from then on, at most.
        weights: of theorem E, where it counts the waits.
        dram: the cycles in which DRAM may be busy, which come on top of what theorem G says without (theorem V).
    """

    counting: str
    block: int
    charged: int
    scale: int
    spared: int
    dispatched: int
    tail: int
    weights: tuple[Weights, ...] = ()
    dram: int = 0

    @property
    def upper(self) -> int:
        """Return the bound."""
        return self.dispatched + self.tail + self.dram


@dataclass(frozen=True, slots=True)
class GpuResult:
    """The worst-case makespan of grids on a whole GPU, in cycles.

    Args:
        bounds: proven interval of the worst case.
        witness: a schedule of `bounds.lower` cycles; replayed before it got here. None where runs take too long
            before they repeat: then no schedule is shorter than `bounds.lower`.
        upper_evidence: `theorem-g`; or `one-wave`, where all blocks are on the GPU from the beginning: the largest of
            `sms`.
        last_dispatch: the parts of theorem G, where it is the evidence.
        sms: in one wave, the result of an SM with each number of blocks that there may be, largest first.
        best_case: proven interval of the shortest schedule; None when not asked for.
        seconds: wall-clock time.
        assumptions: what must hold for the number to be a worst case of the source.
        interrupted: whether the user stopped the solve; the interval is proven all the same.
        policy: in words, which dispatcher and policy the witness is of; empty in one wave, and without one.
        shortest: a schedule of `best_case.upper` cycles; replayed before it got here. None where the witness is as
            short, or none is known.
    """

    instance: GpuInstance
    bounds: Bounds
    witness: GpuSchedule | None
    upper_evidence: str
    last_dispatch: LastDispatch | None
    sms: tuple[Result, ...]
    best_case: Bounds | None
    seconds: float
    assumptions: tuple[Assumption, ...]
    interrupted: bool = False
    policy: str = ""
    shortest: GpuSchedule | None = None

    def __post_init__(self) -> None:
        if self.witness is not None and self.witness.makespan != self.bounds.lower:
            raise BrokenPromiseError(
                f"the witness takes {self.witness.makespan} cycles, the lower bound says {self.bounds.lower}"
            )
        best = None if self.best_case is None else self.best_case.upper
        if self.shortest is not None and self.shortest.makespan != best:
            raise BrokenPromiseError(
                f"the shortest schedule takes {self.shortest.makespan} cycles, the best case says {best} at most"
            )

    def __str__(self) -> str:
        """Return the verdict, one line: the number, whether it is exact, and under which conditions."""
        whole = f"{count_words(self.instance.blocks, 'block')} on {count_words(self.instance.sms, 'SM')}"
        return self.bounds.verdict(self.caveats, of=whole, interrupted=self.interrupted)

    @property
    def status(self) -> Status:
        """Return whether worst case and proof meet."""
        return self.bounds.status

    @property
    def caveats(self) -> tuple[str, ...]:
        """Return the conditions without which the verdict would claim too much."""
        return conditions(self.assumptions)
