"""What the runs of a campaign say of a bound: all below it, or which are not."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from makespan.errors import MeasurementError
from makespan.result import Result
from makespan.validation.campaign import Campaign, Run


@dataclass(frozen=True, slots=True)
class Window:
    """The cycles from the first start of a warp of a block to the last end of one, on an SM that ran nothing else.

    Args:
        apart: cycles between the first and the last start.
    """

    run: int
    block: int
    sm: int
    cycles: int
    apart: int


@dataclass(frozen=True, slots=True)
class Judgement:
    """Windows beside what is proven.

    Args:
        result: of the kernel with records, a block alone on an SM; its upper end is what is judged by.
        original: of the kernel without them, for comparison.
        policies: what scheduling policies take for the kernel with records, largest latencies, in cycles.
        set_aside: blocks that shared their SM, and are not judged.
    """

    campaign: Campaign
    runs: tuple[Run, ...]
    result: Result
    original: Result
    policies: Mapping[str, int]
    windows: tuple[Window, ...]
    set_aside: int

    @property
    def bound(self) -> int:
        """The proven upper bound, in cycles."""
        return self.result.bounds.upper

    @property
    def violations(self) -> tuple[Window, ...]:
        """The windows that are not below the bound: readings of a clock d cycles apart are issued in d + 1 cycles."""
        return tuple(window for window in self.windows if window.cycles >= self.bound)

    @property
    def longest(self) -> Window:
        """The longest window."""
        return max(self.windows, key=lambda window: window.cycles)

    @property
    def cycles(self) -> list[int]:
        """Of all windows, in increasing order."""
        return sorted(window.cycles for window in self.windows)

    @property
    def fixed(self) -> dict[str, str]:
        """The conditions that were the same in all runs."""
        each = [
            {name: str(getattr(run.condition, name)) for name in run.condition.__struct_fields__} for run in self.runs
        ]
        return {name: value for name, value in each[0].items() if all(other[name] == value for other in each)}


def judged(
    campaign: Campaign, runs: Sequence[Run], result: Result, original: Result, policies: Mapping[str, int]
) -> Judgement:
    """Hold the runs against the bounds.

    Raises:
        MeasurementError: no block was alone on its SM, or a clock went backward.
    """
    windows = tuple(window for run in runs for window in _windows(run))
    if not windows:
        raise MeasurementError("no block had an SM for itself, and only those can be judged: launch fewer blocks")
    aside = campaign.blocks * len(runs) - len(windows)
    return Judgement(campaign, tuple(runs), result, original, policies, windows, aside)


def _windows(run: Run) -> Iterator[Window]:
    """Of each block that was alone on its SM. Clocks of different SMs are not comparable, and no block moves."""
    blocks = defaultdict(list)
    for record in run.warps:
        blocks[record.block].append(record)
    for block, records in blocks.items():
        if len({record.sm for record in records}) > 1:
            raise MeasurementError(f"run {run.number}: the warps of block {block} say that they ran on several SMs")
    shares = Counter(records[0].sm for records in blocks.values())
    for block, records in blocks.items():
        sm, starts = records[0].sm, [record.start for record in records]
        if shares[sm] > 1 or sm in run.others:
            continue
        if any(record.end < record.start for record in records):
            raise MeasurementError(f"run {run.number}: the clock of SM {sm} went backward")
        yield Window(
            run.number, block, sm, max(record.end for record in records) - min(starts), max(starts) - min(starts)
        )
