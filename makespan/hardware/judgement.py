"""The comparison of runs with bounds, as values."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from makespan.hardware.campaign import Campaign, CampaignRun, WarpRecord, campaign_line
from makespan.hardware.device import NeighbourLoad
from makespan.host.errors import MeasurementError
from makespan.model.gpu import GpuResult
from makespan.model.result import Result


@dataclass(frozen=True, slots=True)
class SmWindow:
    """The cycles from the first start of a warp on an SM to the last end of one, by the clock of this SM.

    Args:
        block: the first of `blocks` blocks that began there.
        together: blocks that were there at the same time, at least, by what they wrote down.
        apart: cycles between the first and the last start of a warp of as many blocks, those that came first.
    """

    run: int
    sm: int
    block: int
    blocks: int
    cycles: int
    together: int
    apart: int


@dataclass(frozen=True, slots=True)
class WindowsByKind:
    """The windows of all runs, by kind.

    Args:
        alone: where an SM ran one block.
        shared: where it ran several, and no neighbours were started on others.
        set_aside: blocks in no window: they shared an SM while there were neighbours, or shared it with those.
    """

    alone: tuple[SmWindow, ...]
    shared: tuple[SmWindow, ...]
    set_aside: int


@dataclass(frozen=True, slots=True)
class WindowKind:
    """Windows of one kind beside what is proven of them.

    Args:
        result: of the kernel with records, its upper end is what is judged by: of a block alone on an SM, or of the
            launch on the whole GPU where blocks shared an SM.
        original: of the kernel without them, for comparison.
        policies: what scheduling policies take for the block with records, largest latencies, in cycles.

    Raises:
        MeasurementError: more blocks were on an SM together than the bound of a launch supposes.
    """

    windows: tuple[SmWindow, ...]
    result: Result | GpuResult
    original: Result | GpuResult
    policies: Mapping[str, int]

    def __post_init__(self) -> None:
        if (most := self.resident) is None:
            return
        for window in self.windows:
            if window.together > most:
                raise MeasurementError(
                    f"run {window.run}: {window.together} blocks were on SM {window.sm} at the same time, and the bound"
                    f" is of {most} at most: what limits them on this GPU is not what was counted"
                )

    @property
    def resident(self) -> int | None:
        """Return how many blocks an SM has room for in the bound of a launch. None means a block alone."""
        gpu = self.result.instance if isinstance(self.result, GpuResult) else None
        return None if gpu is None else gpu.fitting(gpu.grid)

    @property
    def bound(self) -> int:
        """Return the proven upper bound, in cycles."""
        return self.result.bounds.upper

    @property
    def violations(self) -> tuple[SmWindow, ...]:
        """Return the windows that are not below the bound: readings d cycles apart are issued in d + 1 cycles."""
        return tuple(window for window in self.windows if window.cycles >= self.bound)

    @property
    def longest(self) -> SmWindow:
        """Return the longest window."""
        return max(self.windows, key=lambda window: window.cycles)

    @property
    def cycles(self) -> list[int]:
        """Return the cycles of all windows, in increasing order."""
        return sorted(window.cycles for window in self.windows)


@dataclass(frozen=True, slots=True)
class CampaignJudgement:
    """A campaign and its windows by kind: blocks alone, SMs that several blocks shared, or both.

    Args:
        set_aside: the number of blocks in no window.
        estimates: the cycles that each method expects of the launch, including records. None means that it has no
            answer.
    """

    campaign: Campaign
    runs: tuple[CampaignRun, ...]
    kinds: tuple[WindowKind, ...]
    set_aside: int
    estimates: Mapping[str, float | None]

    @property
    def violations(self) -> tuple[SmWindow, ...]:
        """Return the violations of all kinds."""
        return tuple(window for held in self.kinds for window in held.violations)

    @property
    def counterexample(self) -> bytes:
        """Return a file with the runs that are not below a bound."""
        above = {window.run for window in self.violations}
        return b"".join(
            [campaign_line(self.campaign), *(campaign_line(run) for run in self.runs if run.number in above)]
        )

    @property
    def fixed(self) -> dict[str, str]:
        """Return the conditions that were the same in all runs."""
        each = [
            {name: str(getattr(run.condition, name)) for name in run.condition.__struct_fields__} for run in self.runs
        ]
        return {name: value for name, value in each[0].items() if all(other[name] == value for other in each)}


def judged_windows(runs: Sequence[CampaignRun]) -> WindowsByKind:
    """Return what can be judged of runs. Clocks of different SMs are never compared, and no block moves.

    Raises:
        MeasurementError: nothing can, or a clock went backward.
    """
    alone, shared, aside = list[SmWindow](), list[SmWindow](), 0
    for run in runs:
        for sm, blocks in _blocks_by_sm(run).items():
            if len(blocks) == 1 and sm not in run.others:
                alone.append(_window(run, sm, blocks))
            # with neighbours, a shared SM has blocks that the bound of the launch does not count
            elif len(blocks) > 1 and run.condition.neighbours is NeighbourLoad.IDLE:
                shared.append(_window(run, sm, blocks))
            else:
                aside += len(blocks)
    if not alone and not shared:
        raise MeasurementError(
            "nothing can be judged: all blocks shared their SM while neighbours ran: launch fewer, or --neighbours idle"
        )
    return WindowsByKind(tuple(alone), tuple(shared), aside)


def _blocks_by_sm(run: CampaignRun) -> dict[int, list[list[WarpRecord]]]:
    blocks, found = defaultdict[int, list[WarpRecord]](list), defaultdict[int, list[list[WarpRecord]]](list)
    for record in run.warps:
        blocks[record.block].append(record)
    for block, records in blocks.items():
        if len({record.sm for record in records}) > 1:
            raise MeasurementError(f"run {run.number}: the warps of block {block} say that they ran on several SMs")
        found[records[0].sm].append(records)
    return found


def _window(run: CampaignRun, sm: int, blocks: Iterable[Sequence[WarpRecord]]) -> SmWindow:
    """Return the window of an SM as a whole."""
    spans = []
    for records in blocks:
        if any(record.end < record.start for record in records):
            raise MeasurementError(f"run {run.number}: the clock of SM {sm} went backward")
        starts = [record.start for record in records]
        spans.append((min(starts), max(record.end for record in records), records[0].block, max(starts)))
    spans.sort()
    first, _, block, _ = spans[0]
    most = max(_blocks_together((start, end) for start, end, _, _ in spans))
    cycles = max(end for _, end, _, _ in spans) - first
    # only the first blocks can have begun together
    apart = max(last for _, _, _, last in spans[:most]) - first
    return SmWindow(run.number, sm, block, len(spans), cycles, most, apart)


def _blocks_together(spans: Iterable[tuple[int, int]]) -> Iterator[int]:
    """Yield the number of blocks after each start, and after each cycle in which one has read the clock last."""
    # a block that ends in a cycle still counts in that cycle: its end takes effect one cycle later
    steps = sorted(step for start, end in spans for step in ((start, 1), (end + 1, -1)))
    count = 0
    for _, step in steps:
        count += step
        yield count
