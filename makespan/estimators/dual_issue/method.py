"""The four tests in their order, each with what the ones before have found."""

from collections.abc import Sequence
from dataclasses import dataclass

from makespan.errors import MeasurementError
from makespan.estimators.dual_issue.arbiter import PATTERNS, Pattern
from makespan.estimators.dual_issue.bank_relation import BankResult, Threshold, banks
from makespan.estimators.dual_issue.code_meaning import CodeResult, codes
from makespan.estimators.dual_issue.device import IssueDevice, Sm
from makespan.estimators.dual_issue.pattern_ranking import PatternResult, best, codes_for, patterns
from makespan.estimators.dual_issue.timing import latency, pair_latency, reference

_AGREE = 0.5
"""Cycles that the two ways to measure the latency may differ by."""


@dataclass(frozen=True, slots=True)
class Characteristics:
    """What the tests found out of an SM.

    Args:
        name: of the device.
        origin: how it was measured, for a reader who asks for the source.
        is_virtual: whether the device is a simulation, which proves nothing about hardware.
        latency: cycles from an FFMA to one that reads its result; None where it was not measured.
        single: FMUL lane-operations per cycle and SM in single-issue mode, without conflicts.
        noise: relative standard deviation of a time; None if it is not known.
        banks: None where they were not measured.
        codes: None where they were not measured.
        patterns: the best first; empty where there were none to measure.
    """

    name: str
    origin: str
    is_virtual: bool
    sm: Sm
    latency: float | None
    single: float
    noise: float | None
    banks: BankResult | None
    codes: CodeResult | None
    patterns: tuple[PatternResult, ...]

    @property
    def sustained(self) -> float:
        """FFMA lane-operations per cycle and SM that the best measured code reaches."""
        return max([self.single, *(result.ops_per_cycle for result in self.patterns)])

    @property
    def best(self) -> tuple[PatternResult, ...]:
        """The best patterns, as far as the noise lets one tell; empty where none was measured."""
        return best(self.patterns, self.noise or 0.0) if self.patterns else ()


def characterise(
    device: IssueDevice,
    registers: Sequence[int],
    threshold: Threshold = Threshold.AUTO,
    *,
    name: str,
    origin: str,
    is_virtual: bool,
    fast: bool = False,
    single_code: bool = False,
    only: Sequence[Pattern] = PATTERNS,
) -> Characteristics:
    """Measure a device: latency and throughput, banks, control codes, patterns.

    Args:
        registers: that are compared, see `banks`.
        single_code: see `codes_for`.
        only: the patterns to measure.

    Raises:
        MeasurementError: a test whose result would be a guess; see the four tests.
    """
    known = reference(device)
    chain, pair = latency(device, noise=known.noise), pair_latency(device, noise=known.noise)
    if abs(chain - pair) > _AGREE:
        raise MeasurementError(f"unresolved: the latency is {chain:.2f} cycles by a chain and {pair:.2f} by a pair")
    found = banks(device, registers, threshold, fast=fast)
    meaning = codes(device)
    reached = patterns(device, found, codes_for(meaning, single_code=single_code), only=only)
    return Characteristics(name, origin, is_virtual, device.sm, chain, known.rate, known.noise, found, meaning, reached)
