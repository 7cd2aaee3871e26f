"""Test D: in which order single and dual issues of FFMA reach the most."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from makespan.estimates.dual_issue.arbiter import PATTERNS, Pattern, spell
from makespan.estimates.dual_issue.bank_relation import BankResult
from makespan.estimates.dual_issue.code_meaning import CodeResult
from makespan.estimates.dual_issue.device import (
    PER_BLOCK,
    SINGLE_ISSUE,
    IssueDevice,
    IssueInstruction,
    IssueProgram,
    Opcode,
    check_unrolled,
)
from makespan.estimates.dual_issue.registers import ZERO
from makespan.estimates.dual_issue.timing import LOOPS, UNROLLED, rate
from makespan.host.errors import InputError, MeasurementError

_BLOCKS = 3  # blocks with accumulators of their own: 18 FFMAs take longer than the latency of one
_LEAST_DIFFERENCE = 0.002  # relative, of two efficiencies
_SURE = 4  # standard deviations that two efficiencies must differ by


@dataclass(frozen=True, slots=True)
class Codes:
    """The control codes of a pattern.

    Args:
        dual: of an FFMA with which the next instruction issues.
        partner: of that one.
        single: of an FFMA that issues alone.
    """

    dual: int
    partner: int
    single: int


@dataclass(frozen=True, slots=True)
class PatternResult:
    """The throughput that a pattern reaches.

    Args:
        ops_per_cycle: FFMA lane-operations per cycle and SM.
        efficiency: the same, of all lanes.
    """

    pattern: Pattern
    ops_per_cycle: float
    efficiency: float

    def __str__(self) -> str:
        return f"{spell(self.pattern)} {self.efficiency:.2%}"


def codes_for(found: CodeResult, *, single_code: bool = False) -> Codes:
    """Return the codes of a measured device; the partner of a dual code is the code after it, if that adds no delay.

    Args:
        single_code: whether FFMAs that issue alone have the code of single-issue mode instead of the partner's.

    Raises:
        MeasurementError: device has no dual issue.
    """
    dual = found.required_dual()
    partner = dual + 1 if dual + 1 in found.immediate else SINGLE_ISSUE
    return Codes(dual, partner, SINGLE_ISSUE if single_code else partner)


def layout(pattern: Pattern, codes: Codes, ffmas: Sequence[IssueInstruction]) -> tuple[IssueInstruction, ...]:
    """Return a block of eight words with this pattern: the FFMAs with their codes, and NOPs where slots are free.

    A free slot follows a single FFMA, the last one first, and issues with it, so that it does not disturb the rhythm.

    Raises:
        InputError: more FFMAs than slots, or more free slots than single issues.
    """
    free = PER_BLOCK - sum(pattern)
    singles = [at for at, issued in enumerate(pattern) if issued == 1]
    if not 0 <= free <= len(singles):
        raise InputError(
            f"pattern {spell(pattern)} leaves {free} of {PER_BLOCK} slots free; each needs a single issue to go with,"
            f" and there are {len(singles)}"
        )
    padded = set(singles[len(singles) - free :])  # the last single FFMAs issue together with a NOP
    supply, block = iter(ffmas), list[IssueInstruction]()
    for at, issued in enumerate(pattern):
        first = next(supply)
        if issued == 1:
            block.append(_with_code(first, codes.dual if at in padded else codes.single))
            block += [IssueInstruction(Opcode.NOP, code=codes.partner)] * (at in padded)
        else:
            block += [_with_code(first, codes.dual), _with_code(next(supply), codes.partner)]
    return tuple(block)


def _with_code(instruction: IssueInstruction, code: int) -> IssueInstruction:
    return IssueInstruction(instruction.opcode, instruction.destination, instruction.sources, code)


def program_for(pattern: Pattern, codes: Codes, classes: Sequence[Sequence[int]]) -> IssueProgram:
    """Return a loop body of this pattern whose FFMAs never conflict: all read the same registers, each of its own bank.

    Args:
        classes: registers by bank.
    """
    sources = tuple(members[0] for members in classes[:3])  # one of each bank: no conflict
    sources = (*sources, *sources[:1] * (3 - len(sources)))
    accumulators = iter([register for register in range(ZERO) if register not in sources])
    body = [
        layout(
            pattern, codes, [IssueInstruction(Opcode.FFMA, next(accumulators), sources) for _ in range(sum(pattern))]
        )
        for _ in range(_BLOCKS)
    ]
    instructions = tuple(instruction for block in body for instruction in block)
    return IssueProgram(instructions, UNROLLED // len(instructions))


def patterns(
    device: IssueDevice,
    found: BankResult,
    codes: Codes,
    *,
    only: Iterable[Pattern] = PATTERNS,
    warps: int = 0,
    loops: int = LOOPS,
) -> tuple[PatternResult, ...]:
    """Measure patterns, the best first.

    Args:
        found: registers by bank.
        warps: 0 is one per scheduler.

    Raises:
        InputError: a pattern that does not fit a block, or a device whose cache does not hold the loop.
        MeasurementError: see `rate`.
    """
    results = []
    for pattern in only:
        program = program_for(pattern, codes, found.classes)
        check_unrolled(len(program))
        reached = rate(device, program, warps or device.sm.schedulers, loops)
        results.append(PatternResult(pattern, reached, reached / device.sm.lanes))
    return rank_patterns(results)


def rank_patterns(results: Iterable[PatternResult]) -> tuple[PatternResult, ...]:
    """Return the patterns by falling efficiency; equal ones stand in rising order of the pattern."""
    return tuple(sorted(results, key=lambda result: (-result.efficiency, result.pattern)))


def best(results: Sequence[PatternResult], noise: float = 0.0) -> tuple[PatternResult, ...]:
    """Return the patterns that a measurement of this noise cannot tell from the best one.

    Raises:
        MeasurementError: nothing was measured.
    """
    if not results:
        raise MeasurementError("no pattern was measured")
    least = results[0].efficiency * (1 - max(_SURE * noise, _LEAST_DIFFERENCE))
    return tuple(result for result in results if result.efficiency >= least)
