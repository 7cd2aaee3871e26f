"""The result for a whole GPU: proven intervals, and the evidence for both of their sides."""

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
    """The parts of theorem G: `upper = dispatched + windows + tail + dram`, in cycles.

    Args:
        counting: the best way to count waits, see `bounds.theorem_g`.
        block: the cost of a block before the last one is dispatched, in units of `1 / scale` cycles of the whole GPU.
            For several grids, it is the cost of all blocks together.
        charged: the number of blocks that are charged. It is 1 for several grids, and 0 if there is room for all blocks
            from the beginning.
        scale: the scale for which `dispatched = floor(block * charged / scale)`, apart from what is `spared`.
        spared: the part of the cost that need not be counted, in the same units, because the tail counts it.
        dispatched: the cycle in which the last block gets its room, at most. If something is `spared`, only the sum
            with the tail is a bound, and the sum is rounded once.
        tail: the cycles from then on, at most.
        weights: the weights of theorem E, if it counts the waits.
        dram: the cycles in which DRAM may be busy. Theorem V adds them to the bound of theorem G.
        windows: the cycles before the last dispatch in which blocks may wait for lines of code and constants that come
            once, on each SM at most. All other lapses, and the lines after it, are in `block` and `tail`.
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
    windows: int = 0

    @property
    def upper(self) -> int:
        """Return the upper bound on the worst case, in cycles."""
        return self.dispatched + self.windows + self.tail + self.dram


@dataclass(frozen=True, slots=True)
class GpuResult:
    """The worst-case makespan of grids on a whole GPU, in cycles.

    Args:
        bounds: the proven interval of the worst case.
        witness: a schedule of `bounds.lower` cycles that a replay has checked. None means that runs take too long
            before they repeat; then no schedule is shorter than `bounds.lower`.
        upper_evidence: `theorem-g`; or `one-wave`, where all blocks are on the GPU from the beginning: the largest of
            `sms`.
        last_dispatch: the parts of theorem G, if it is the evidence.
        sms: in one wave, the result of an SM with each possible number of blocks, largest first.
        best_case: the proven interval of the shortest schedule. None means that it was not asked for.
        seconds: the wall-clock time.
        assumptions: what must hold for the number to be a worst case of the source.
        interrupted: whether the user stopped the solve. The interval is proven all the same.
        policy: the dispatcher and policy of the witness, as a phrase; empty in one wave, and without a witness.
        shortest: a schedule of `best_case.upper` cycles that a replay has checked. None means that the witness is as
            short, or that none is known.
        without_lapses: the result of the same grids without lapses, late lines and queues, whose witness is that of
            this result. None for an instance that has none of them.
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
    without_lapses: "GpuResult | None" = None

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
        plain = None if self.without_lapses is None else self.without_lapses.bounds
        return self.bounds.verdict(self.caveats, of=whole, interrupted=self.interrupted, without_lapses=plain)

    @property
    def status(self) -> Status:
        """Return whether worst case and proof meet."""
        return self.bounds.status

    @property
    def caveats(self) -> tuple[str, ...]:
        """Return the conditions without which the verdict would claim too much."""
        return conditions(self.assumptions)
