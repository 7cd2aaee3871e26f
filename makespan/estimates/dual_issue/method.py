"""The four tests in their order, each with what the ones before have found; the result as a machine file."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil

from makespan.estimates.dual_issue.arbiter import PATTERNS, Pattern
from makespan.estimates.dual_issue.bank_relation import BankResult, Threshold, banks
from makespan.estimates.dual_issue.code_meaning import CodeResult, codes
from makespan.estimates.dual_issue.device import IssueDevice, SmDescription
from makespan.estimates.dual_issue.pattern_ranking import PatternResult, best, codes_for, patterns
from makespan.estimates.dual_issue.timing import latency, pair_latency, reference
from makespan.host.errors import InputError, MeasurementError

_AGREE = 0.5  # cycles that the two ways to measure the latency may differ by


@dataclass(frozen=True, slots=True)
class Characteristics:
    """The characteristics of an SM that the tests found.

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
    sm: SmDescription
    latency: float | None
    single: float
    noise: float | None
    banks: BankResult | None
    codes: CodeResult | None
    patterns: tuple[PatternResult, ...]

    @property
    def sustained(self) -> float:
        """Return the FFMA lane-operations per cycle and SM that the best measured code reaches."""
        return max([self.single, *(result.ops_per_cycle for result in self.patterns)])

    @property
    def best(self) -> tuple[PatternResult, ...]:
        """Return the best patterns, as far as the noise lets one tell; empty where none was measured."""
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


_TOLERANCE = 0.25
_MOST_TEXT = 480


def machine_file(found: Characteristics) -> str:
    """Return a machine file with one class of units, C: the 32-bit floating-point lanes.

    What a machine file cannot say (dual issues, stall codes, banks) stands in its notes. Numbers of a virtual device
    are not verified.

    Raises:
        InputError: the latency was not measured; a machine would take 1 in its place, and prove too little.
    """
    if found.latency is None:
        raise InputError(f"{found.name}: a machine file needs the latency of FFMA; add a row such as latency,FFMA,,,9")
    return "\n".join([*_lines(found, found.latency), ""])


def _lines(found: Characteristics, latency: float) -> Iterator[str]:
    source = found.origin
    yield f"name = {_toml_string(found.name)}"
    yield f"source = {_toml_string(source)}"
    yield 'clock = "SM clock"'
    yield "notes = ["
    yield from (f"    {_toml_string(note)}," for note in _notes(found))
    yield "]"
    yield ""
    yield "[units.C]"
    yield f"capacity = {found.sm.lanes // found.sm.warp}"
    yield from _origin(f"lanes of the SM, {found.sm.warp} a warp: given", "true")
    verified = "false" if found.is_virtual else "true"
    most = max(1, ceil(latency - _TOLERANCE))
    told = _toml_string(f"FFMA to an independent instruction 1, to a dependent one {most}: {source}")
    yield f"latency = {{ value = [1, {most}], source = {told}, verified = {verified} }}"
    yield ""
    yield "[issue]"
    for key, value, told, sure in (
        ("width", found.sm.schedulers, "one per scheduler and cycle, all of different warps: given", "true"),
        ("schedulers", found.sm.schedulers, "given", "true"),
        ("dispatch", 2 if found.codes and found.codes.dual else 1, f"control codes: {source}", verified),
    ):
        if key != "dispatch" or found.codes is not None:
            yield f"{key} = {{ value = {value}, source = {_toml_string(told)}, verified = {sure} }}"


def _origin(source: str, verified: str) -> Iterator[str]:
    yield f"source = {_toml_string(source)}"
    yield f"verified = {verified}"


def _notes(found: Characteristics) -> Iterator[str]:
    yield "a part of a machine: only the class of 32-bit floating-point instructions was measured; add the others"
    per_scheduler = found.sustained / found.sm.warp / found.sm.schedulers
    yield f"sustained FFMA: {found.sustained:.2f} per cycle of {found.sm.lanes}, {per_scheduler:.4f} per scheduler"
    if found.best:
        names = ", ".join(str(result) for result in found.best)
        yield f"best pattern of single and dual issues, with its share of all lanes: {names}"
    if found.codes is not None:
        yield from _code_notes(found.codes)
    if found.banks is not None:
        shape = str(found.banks.function) if found.banks.function else "no function of three bits or fewer"
        yield f"register banks: {len(found.banks.classes)}; bank of register r: {shape}"
        if found.banks.slowdown is not None:
            yield f"bank conflicts: two registers of a bank in one instruction add {found.banks.slowdown:.2%} to it"


def _code_notes(codes: CodeResult) -> Iterator[str]:
    if codes.dual:
        names = ", ".join(f"{code:#04x}" for code in codes.dual)
        yield (
            f"co-issue: after code {names} the next instruction of the warp issues in the same cycle; two FFMAs need"
            " the lanes that two schedulers share"
        )
    for field in codes.fields:
        beyond = f", then {field.saturation}" if field.saturation is not None else ""
        yield (
            f"issue gap of codes {field.base:#04x} + (n << {field.shift}): {field.start:g} + {field.slope} n cycles for"
            f" n = 0..{field.last}{beyond}"
        )


def _toml_string(value: str) -> str:
    """Return a TOML string; what cannot be printed becomes a question mark."""
    printable = "".join(letter if letter.isprintable() else "?" for letter in value)
    return json.dumps(printable[:_MOST_TEXT], ensure_ascii=False)
