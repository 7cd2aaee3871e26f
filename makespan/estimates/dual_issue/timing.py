"""Test A: throughput and latency of instructions, and how noisy the device's times are."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, isfinite
from random import Random
from statistics import fmean, pstdev

from makespan.estimates.dual_issue.device import (
    CLOCK_STALL,
    OPERANDS,
    SINGLE_ISSUE,
    TIMED_LOOPS,
    IssueDevice,
    IssueInstruction,
    IssueProgram,
    Opcode,
    check_timed,
    check_unrolled,
)
from makespan.host.errors import MeasurementError

WARPS_PER_SCHEDULER = 4
UNROLLED = 255
LOOPS = 100_000  # so that what is outside of the loop does not count
_REFERENCE_RUNS = 64
_SURE = 0.06  # standard error, in cycles, that a distance of two instructions is measured to
_MOST_RUNS = 400  # beyond, the device is too noisy
SHORT_CHAIN, LONG_CHAIN = 4, 12  # instructions of the two chains whose difference is the latency
CLOCKS, _FREE = (0, 1), tuple(range(2, 64))  # registers for two clock reads, and those to choose operands from


def throughput(
    device: IssueDevice, *instructions: IssueInstruction, unroll: int | None = None, loops: int = LOOPS, warps: int = 0
) -> float:
    """Return the arithmetic lane-operations per cycle and SM of independent instructions in a straight-line loop.

    Args:
        unroll: how often the instructions are written down; as often as 255 instructions and the cache allow.
        warps: 0 is four per scheduler.

    Raises:
        InputError: a loop that is too short to outweigh its control, or too long for the instruction cache.
    """
    times = unroll or min(UNROLLED, device.sm.icache_instructions) // len(instructions)
    program = IssueProgram(instructions, times)
    check_unrolled(len(program))
    return rate(device, program, warps or WARPS_PER_SCHEDULER * device.sm.schedulers, loops)


def rate(device: IssueDevice, program: IssueProgram, warps: int, loops: int) -> float:
    """Return the arithmetic lane-operations per cycle and SM.

    Raises:
        MeasurementError: more than the device has lanes, or no time at all.
    """
    cycles = device.run(program, warps, loops).cycles
    if not isfinite(cycles):
        raise MeasurementError(f"the device returned {cycles:g} cycles: no measurement")
    operations = program.count(*OPERANDS) * device.sm.warp * warps * loops
    if cycles <= 0 or operations > cycles * device.sm.lanes * 1.05:
        raise MeasurementError(
            f"{operations} lane-operations in {cycles:g} cycles on {device.sm.lanes} lanes: too noisy"
        )
    return operations / cycles


def clean_instruction(destination: int, register: int, code: int = SINGLE_ISSUE) -> IssueInstruction:
    """Return an FMUL that cannot have a bank conflict: it reads one register."""
    return IssueInstruction(Opcode.FMUL, destination, (register, register), code)


@dataclass(frozen=True, slots=True)
class Reference:
    """The throughput without conflicts in single-issue mode, measured repeatedly.

    Args:
        rate: lane-operations per cycle and SM, on average.
        noise: relative standard deviation of one measurement.
    """

    rate: float
    noise: float


def reference(device: IssueDevice) -> Reference:
    """Measure what single issue without conflicts gives, and how much that varies."""
    rates = [throughput(device, clean_instruction(_FREE[0], _FREE[1])) for _ in range(_REFERENCE_RUNS)]
    mean = fmean(rates)
    return Reference(mean, pstdev(rates) / mean)


def time_program(
    device: IssueDevice,
    tested: Sequence[IssueInstruction],
    *,
    runs: int = 1,
    dependent: tuple[IssueInstruction, IssueInstruction] | None = None,
) -> float:
    """Return the mean cycles between the clock reads around `tested` and the fillers between the reads."""
    program = clock_program(tested)
    check_timed(device.sm, program, 1, TIMED_LOOPS, dependent=dependent)
    spans = []
    for _ in range(runs):
        samples = device.run(program, 1, TIMED_LOOPS).clock_samples
        if len(samples) != len(CLOCKS):
            raise MeasurementError(f"the device returned {len(samples)} clock samples of {len(CLOCKS)}")
        if not all(map(isfinite, samples)):
            raise MeasurementError(f"the device returned clock samples {samples}: no measurement")
        spans.append(samples[1] - samples[0])
    return fmean(spans)


def clock_program(tested: Sequence[IssueInstruction]) -> IssueProgram:
    """Return the instructions between two clock reads, with the fillers that the reads need."""
    first, last = (IssueInstruction(Opcode.S2R, register) for register in CLOCKS)
    return IssueProgram((first, *[IssueInstruction(Opcode.NOP)] * CLOCK_STALL, *tested, last))


def chain(first: int, second: int, code: int = SINGLE_ISSUE) -> tuple[IssueInstruction, ...]:
    """Return FFMAs that each read what the one before wrote, in two registers."""
    pairs = [(first, second), (second, first)] * (LONG_CHAIN // 2)
    return tuple(IssueInstruction(Opcode.FFMA, target, (source,) * 3, code) for source, target in pairs)


def runs_for(noise: float, cycles: float) -> int:
    """Return how often a span of this many cycles must be measured.

    Raises:
        MeasurementError: too often.
    """
    runs = max(1, ceil((noise * cycles / _SURE) ** 2))  # the error of a mean falls with the root of the runs
    if runs > _MOST_RUNS:
        raise MeasurementError(
            f"unresolved: times vary by {noise:.2%}, too much to tell single cycles apart; quieten the device"
        )
    return runs


def latency(device: IssueDevice, *, code: int = SINGLE_ISSUE, noise: float = 0.0, seed: int = 0) -> float:
    """Return the cycles from an FFMA to one that reads its result: what each further link adds to a chain.

    Args:
        code: control code of the instructions of the chain.
        noise: relative, of the device's times; decides how often to measure.
        seed: of the random choice of registers.

    Raises:
        MeasurementError: too noisy.
    """
    draw = Random(seed)  # noqa: S311 - a choice of registers
    a, b = draw.sample(_FREE, 2)
    links = chain(a, b, code)
    more = LONG_CHAIN - SHORT_CHAIN  # clock reads and fillers cancel in the difference
    first = max(time_program(device, links[:SHORT_CHAIN]) - CLOCK_STALL, 1)
    runs = runs_for(noise, 2 * LONG_CHAIN * first / SHORT_CHAIN / more)
    spans = [
        time_program(device, links[:n], runs=runs, dependent=(links[0], links[1])) for n in (SHORT_CHAIN, LONG_CHAIN)
    ]
    return (spans[1] - spans[0]) / more


def pair_latency(device: IssueDevice, *, noise: float = 0.0, seed: int = 0) -> float:
    """Return the latency from two instructions: their span if dependent, less that if independent, and the gap of 1.

    Raises:
        MeasurementError: too noisy.
    """
    draw = Random(seed)  # noqa: S311 - a choice of registers
    a, b, c = draw.sample(_FREE, 3)
    writer, reader = IssueInstruction(Opcode.FFMA, b, (a,) * 3), IssueInstruction(Opcode.FFMA, c, (b,) * 3)
    stranger = IssueInstruction(Opcode.FFMA, c, (a,) * 3)
    runs = runs_for(noise, 2 * time_program(device, (writer, reader)))
    dependent = time_program(device, (writer, reader), runs=runs, dependent=(writer, reader))
    return dependent - time_program(device, (writer, stranger), runs=runs) + 1
