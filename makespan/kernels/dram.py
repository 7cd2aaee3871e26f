"""The bytes that a launch asks of the DRAM that all SMs share, and the cycles for which they keep it busy.

The addresses are not known, so each access counts with all that its lanes can touch. docs/theory.md, 16, has the proof
of what these cycles do to a launch.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import ceil
from typing import NamedTuple

from makespan.host.errors import InputError
from makespan.model import assumptions
from makespan.model.assumptions import Assumption
from makespan.model.gpu import BlockPrograms
from makespan.model.machine import GivenRange
from makespan.model.machine.gpus import Gpu
from makespan.model.machine.occupancy import ResourceShare
from makespan.model.program import Program
from makespan.model.wording import count_words, cycle_words


def bytes_moved(program: Program) -> int:
    """Return the bytes that DRAM moves at most for all accesses of a warp, on any path.

    >>> from makespan.model.program import Access, ProgramPlace
    >>> load, store = Access("global", 1024, True), Access("global", 2048, False)
    >>> places = ProgramPlace("L", (1,)), ProgramPlace("C", (2,)), ProgramPlace("L", (3,))
    >>> bytes_moved(Program(places, accesses=(load, None, store)))
    3072

    Raises:
        InputError: it is not known of some access; the error names the line.
    """
    moved = [0 if access is None else access.moved for access in program.accesses or (None,) * program.end]
    if unknown := [at for at, own in enumerate(moved) if own is None]:
        where = _where(program, unknown[-1])
        raise InputError(f"{where}: nobody says how much DRAM moves for it, so +dram cannot count it")
    return program.heaviest([own or 0 for own in moved])


def bytes_in_flight(program: Program) -> int:
    """Return the bytes that DRAM moves at most for the accesses of a warp that are awaited and in flight at one time.

    An access is on its way until its warp has awaited what it sets. Stores, which are not awaited, are not counted,
    and neither are unknown numbers of bytes.

    >>> from makespan.model.program import Access, InstructionTiming, ProgramPlace
    >>> loads = (Access("global", 1024, True),) * 2
    >>> places = ProgramPlace("L", (1,)), ProgramPlace("L", (2,)), ProgramPlace("C", (3,))
    >>> ahead, last = InstructionTiming(1, (1, 400), (0,)), InstructionTiming(awaits=(0,))
    >>> bytes_in_flight(Program(places, timings=(ahead, ahead, last), accesses=(*loads, None)))
    2048
    """
    if not program.accesses:
        return 0
    flying = {start: _BytesInFlight() for start in program.starts}
    most = 0
    for at, access in enumerate(program.accesses):
        here = flying.pop(at)
        # before its own access: it issues when these are there
        here.settle(program.timings[at].awaits if program.timings else None)
        if access is not None and access.is_awaited:
            here.add(program.timings[at].sets if program.timings else (), access.moved or 0)
            most = max(most, here.total)
        *others, last = program.places[at].successors  # the last successor takes the state itself, others copies
        for after in others:
            flying.setdefault(after, _BytesInFlight()).join(here)
        if last in flying:
            flying[last].join(here)
        else:
            flying[last] = here
    return most


class _BytesInFlight:
    """Bytes of accesses in flight, by the tokens that they set; one such token awaited means that they are there."""

    def __init__(self) -> None:
        self.total = 0
        self.own: dict[tuple[int, ...], int] = {}
        self._several = 0

    def add(self, sets: tuple[int, ...], moved: int) -> None:
        self._raise(sets, self.own.get(sets, 0) + moved)

    def settle(self, awaits: tuple[int, ...] | None) -> None:
        """Drop what a warp has awaited: these tokens, or all if None."""
        gone = list(self.own) if awaits is None else [(token,) for token in awaits if (token,) in self.own]
        if awaits and self._several:  # most accesses set one token, which needs no search
            gone += [sets for sets in self.own if len(sets) > 1 and not {*sets}.isdisjoint(awaits)]
        for sets in gone:
            self.total -= self.own.pop(sets)
            self._several -= len(sets) > 1

    def join(self, other: "_BytesInFlight") -> None:
        for sets, own in other.own.items():
            self._raise(sets, max(own, self.own.get(sets, 0)))

    def _raise(self, sets: tuple[int, ...], own: int) -> None:
        self._several += len(sets) > 1 and sets not in self.own
        self.total += own - self.own.get(sets, 0)
        self.own[sets] = own


class DramRate(NamedTuple):
    """The peak of the DRAM of a GPU in bytes per second, and the largest clock of its SMs, also as the file has it."""

    card: str
    bandwidth: Fraction
    hertz: Fraction
    gigahertz: str

    @classmethod
    def of(cls, card: Gpu) -> "DramRate":
        """Return the rate of a GPU.

        Raises:
            InputError: its description lacks the bandwidth or the clock.
        """
        return cls(card.name, card.bandwidth, card.hertz("clock_ghz"), f"{card.datum('clock_ghz').value}")

    def cycles(self, count: int) -> Fraction:
        """Return the cycles of an SM at its largest clock in which DRAM moves these bytes at its peak."""
        return count * self.hertz / self.bandwidth

    def shown(self, share: Fraction = Fraction(1)) -> str:
        """Return a share of the peak as text."""
        return f"{float(self.bandwidth * share / 10**9):g} GB/s"


class LaunchedBlocks(NamedTuple):
    """The blocks of a launch: how many, the latencies that the user gives, and what a block takes of an SM, and why."""

    block: BlockPrograms
    launched: int
    latencies: Mapping[str, GivenRange]
    shares: dict[str, ResourceShare]
    told: tuple[Assumption, ...] = ()


class DramService(NamedTuple):
    """The doubts about the latencies of each launch, for how long DRAM is busy with all, and what that assumes."""

    doubts: list[tuple[Assumption, ...]]
    busy: int = 0
    told: tuple[Assumption, ...] = ()


def dram_service(parts: Sequence[LaunchedBlocks], at_once: Sequence[int], card: Gpu | None) -> DramService:
    """Return what DRAM does to launches that are on a GPU together, with at most `at_once` blocks of each.

    Raises:
        InputError: the GPU file lacks the bandwidth, the clock or the size of L2, or see `bytes_moved`.
    """
    if card is None:
        return DramService([() for _ in parts])
    shares = [latency.dram for part in parts for latency in part.latencies.values() if latency.dram is not None]
    unknown = card.missing("mem_bw_gbs", "clock_ghz")
    rate = None if unknown and not shares else DramRate.of(card)
    touched = sum(
        most * warps * bytes_in_flight(program)
        for part, most in zip(parts, at_once, strict=True)
        for program, warps in part.block
    )
    lacking = f"{', '.join(unknown)} of {card.name}"
    doubts = [_doubts(part, sum(at_once), touched, rate, lacking) for part in parts]
    if rate is None or not shares:
        return DramService(doubts)
    busy, told = _busy_cycles(parts, card.whole("l2_bytes"), rate, min(shares))
    return DramService(doubts, busy, (told,))


def _busy_cycles(
    parts: Sequence[LaunchedBlocks], dirty: int, rate: DramRate, share: Fraction
) -> tuple[int, Assumption]:
    """Return for how many cycles of an SM DRAM can be busy with all blocks of launches, and what that supposes.

    Args:
        dirty: bytes that L2 may have to write back: it may be full of lines that were written before the launch.
        share: of its peak bandwidth that DRAM moves at least, as long as an access waits for it.
    """
    total = dirty + sum(part.launched * n * bytes_moved(program) for part in parts for program, n in part.block)
    most = int(rate.cycles(total) / share)
    launched = count_words(sum(part.launched for part in parts), "block")
    peak = "its peak" if share == 1 else f"{float(100 * share):g} % of its peak"
    then = (
        f"{total} bytes keep it busy for at most {cycle_words(most)}: a sector of 32 bytes for each lane of each access"
        f" of {launched} (of local memory for each word), twice for what writes, as a part of a sector may have to be"
        f" read before, and what L2 ({dirty} bytes) has to write back of before. L2 fetches no sector that nobody asks"
        " for, DRAM moves nothing to translate addresses and no code or constants, and no port is held for longer"
        " because DRAM is busy. Nothing else uses L2 and DRAM: no copy, no display, no other kernel. A latency that is"
        " given holds with all SMs at work, and is two cycles longer than one that was measured. The clock of the SMs"
        f" is {rate.gigahertz} GHz at most"
    )
    return most, assumptions.dram_rate(f"{rate.shown(share)}, {peak}", then)


def check_clock(card: Gpu | None, hertz: Fraction | None) -> None:
    """Refuse a clock at which DRAM would be busy for more cycles than `dram_service` counts.

    Raises:
        InputError: it names the largest clock that the GPU file knows.
    """
    if card is not None and hertz is not None and hertz > card.hertz("clock_ghz"):
        raise InputError(
            f"+dram counts cycles of the largest clock of {card.name}, {card.datum('clock_ghz').value} GHz: give no"
            " larger clock, or a GPU file with a larger clock_ghz"
        )


def _doubts(
    part: LaunchedBlocks, at_once: int, touched: int, rate: DramRate | None, lacking: str
) -> tuple[Assumption, ...]:
    """Return whether DRAM can serve all that can be in flight within the latencies, by Little's law.

    Args:
        at_once: blocks of all launches that can be on the GPU at the same time.
        touched: bytes that DRAM moves at most for the loads in flight of all of them.
        lacking: what is not known of the GPU where there is no rate.
    """
    within: dict[str, int] = {}  # a latency beside DRAM is without the cycles in which DRAM is busy
    beside = {name for name, latency in part.latencies.items() if latency.dram is not None}
    for program, _ in part.block:
        for access, timing in zip(program.accesses, program.timings, strict=False):
            if access is not None and access.is_awaited and access.operation not in beside:
                within[access.operation] = max(timing.latency[1], within.get(access.operation, 0))
    if not within:
        return ()
    if rate is None:
        return (assumptions.gpu(f"nobody says whether DRAM serves what is in flight: {lacking} is not known"),)
    need = ceil(rate.cycles(touched))  # Little's law: what is in flight takes this long at the peak
    late = [f"{name} {most}" for name, most in within.items() if most < need]
    if not late:
        return ()
    then = (
        f"so the latency of {', '.join(late)} holds only if"
        f" less is in flight, or L2 serves enough of it: loads of {count_words(at_once, 'block')} at a time touch"
        f" {touched} bytes at most, a sector of 32 bytes for each lane (a load touches an eighth of that if lanes"
        " next to each other load words of 4 bytes next to each other), and stores come on top;"
        f" {rate.card} moves {rate.shown()} at its peak, and the clock of its SMs is {rate.gigahertz} GHz at most"
    )
    return (assumptions.dram_need(cycle_words(need), then),)


def _where(program: Program, at: int) -> str:
    origin = program.origins[at]
    return f"{origin.file}:{origin.line}: `{origin.text}`"
