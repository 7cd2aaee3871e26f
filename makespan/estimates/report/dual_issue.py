"""What the dual-issue tests found, in the words of a terminal and as JSON, schema `makespan.dual-issue/1`."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from makespan.estimates.dual_issue import BankResult, Characteristics, CodeResult
from makespan.estimates.dual_issue.arbiter import spell
from makespan.version import __version__

SCHEMA = "makespan.dual-issue/1"


def text(found: Characteristics) -> str:
    """Return the whole report, test by test; the sustained throughput comes last."""
    return "\n".join(_lines(found))


def _lines(found: Characteristics) -> Iterator[str]:
    sm = found.sm
    yield f"device {found.name}: {sm.lanes} lanes, {sm.schedulers} schedulers, warps of {sm.warp}"
    if found.is_virtual:
        yield "a virtual device: it shows that the method works, and says nothing about hardware"
    if found.noise is not None:
        yield f"noise          {found.noise:.3%} of a time"
    if found.latency is not None:
        yield f"FFMA latency   {found.latency:.2f} cycles"
    share, lanes = found.single / sm.lanes, f"{sm.lanes} lanes"
    yield f"single issue   {found.single:.2f} of {sm.theory:g} lane-operations per cycle, {share:.2%} of {lanes}"
    if found.banks is not None:
        yield from _bank_lines(found.banks)
    if found.codes is not None:
        yield from _code_lines(found.codes)
    if found.patterns:
        yield "patterns, FFMAs per issue cycle (1 single, 2 dual)"
    for result in found.patterns:
        mark = "  best" if result in found.best else ""
        yield f"  {spell(result.pattern):<11}  {result.ops_per_cycle:7.2f} per cycle  {result.efficiency:7.2%}{mark}"
    share, per_scheduler = found.sustained / sm.lanes, found.sustained / sm.theory
    yield (
        f"sustained: {found.sustained:.2f} FFMA lane-operations per cycle and SM, {share:.2%} of the lanes;"
        f" {per_scheduler:.4f} FFMAs per cycle and scheduler"
    )


def _bank_lines(found: BankResult) -> Iterator[str]:
    how = "pairs" if found.complete else "pairs, one register per bank (fast)"
    count = len(found.classes)
    yield f"register banks {count}, from {found.runs} {how}, conflict at or below {found.limit:.3%} of theory"
    if not found.complete:
        yield "  warning: not all pairs were measured, so that conflicts are those of banks is taken for granted"
    for bank, members in enumerate(found.classes):
        yield f"  {bank}: {_ranges(members)}"
    yield f"  bank of register r: {found.function or 'no function of three bits or fewer'}"
    if found.slowdown is not None:
        yield f"  two registers of a bank in one instruction add {found.slowdown:.2%} to its issue time"


def _code_lines(found: CodeResult) -> Iterator[str]:
    kinds = (("open dual issue", found.dual), ("no extra delay", found.immediate), ("delayed", found.delayed))
    yield "control codes  " + ", ".join(f"{name} {len(members)}" for name, members in kinds)
    yield f"  dual: {', '.join(f'{code:#04x}' for code in found.dual) or 'none'}"
    for field in found.fields:
        beyond = f", then {field.saturation} cycles" if field.saturation is not None else ""
        last = field.codes[-1]
        yield (
            f"  {field.base:#04x}..{last:#04x}: field of {field.width} bits from bit {field.shift}, gap"
            f" {field.start:g} + {field.slope} n for n = 0..{field.last}{beyond}"
        )


def _ranges(numbers: Sequence[int]) -> str:
    """Return rising numbers as text, with runs of three and more as `a-b`."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs)


def document(found: Characteristics) -> dict[str, Any]:
    """Return the same as plain data."""
    return {
        "schema": SCHEMA,
        "device": found.name,
        "origin": found.origin,
        "is_virtual": found.is_virtual,
        "lanes": found.sm.lanes,
        "schedulers": found.sm.schedulers,
        "warp": found.sm.warp,
        "noise": found.noise,
        "latency": found.latency,
        "single_ops_per_cycle": found.single,
        "banks": None if found.banks is None else _banks(found.banks),
        "codes": None if found.codes is None else _codes(found.codes),
        "patterns": [
            {**asdict(result), "pattern": spell(result.pattern), "is_best": result in found.best}
            for result in found.patterns
        ],
        "sustained_ops_per_cycle": found.sustained,
        "versions": {"makespan": __version__},
    }


def _banks(found: BankResult) -> dict[str, Any]:
    return {
        "classes": [list(members) for members in found.classes],
        "function_bits": None if found.function is None else list(found.function.bits),
        "limit": found.limit,
        "slowdown": found.slowdown,
        "runs": found.runs,
        "is_complete": found.complete,
    }


def _codes(found: CodeResult) -> dict[str, Any]:
    lists = {"gaps": found.gaps, "ops_per_cycle": found.throughput, "latency": found.latency}
    meanings = {"dual": found.dual, "immediate": found.immediate, "delayed": found.delayed}
    codes = {name: list(values) for name, values in (meanings | lists).items()}
    return {**codes, "fields": [asdict(field) for field in found.fields]}
