"""Characteristics of an SM as text, as JSON of schema `makespan.dual-issue/2`, and as a machine file."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from math import ceil
from typing import Any

from makespan.estimates.dual_issue import BankResult, Characteristics, CodeResult
from makespan.host.errors import InputError
from makespan.version import __version__

SCHEMA = "makespan.dual-issue/2"
_TOLERANCE = 0.25  # cycles by which a mean latency may exceed a whole number
_MOST_TEXT = 480  # letters of a text in a machine file


def text(found: Characteristics) -> str:
    """Return the whole report, test by test; the sustained throughput comes last."""
    return "\n".join(_lines(found))


def _lines(found: Characteristics) -> Iterator[str]:
    sm = found.sm
    yield f"device {found.name}: {sm.lanes} lanes, {sm.schedulers} schedulers, warps of {sm.warp}"
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
        yield f"  {result.pattern:<11}  {result.ops_per_cycle:7.2f} per cycle  {result.efficiency:7.2%}{mark}"
    share, per_scheduler = found.sustained / sm.lanes, found.sustained / sm.theory
    yield (
        f"sustained: {found.sustained:.2f} FFMA lane-operations per cycle and SM, {share:.2%} of the lanes;"
        f" {per_scheduler:.4f} FFMAs per cycle and scheduler"
    )


def _bank_lines(found: BankResult) -> Iterator[str]:
    count = len(found.classes)
    yield f"register banks {count}, from {found.runs} pairs, conflict at or below {found.limit:.3%} of theory"
    for bank, members in enumerate(found.classes):
        yield f"  {bank}: {', '.join(map(str, members))}"
    yield f"  bank of register r: {found.function or 'no function of three bits or fewer'}"
    if found.slowdown is not None:
        yield f"  two registers of a bank in one instruction add {found.slowdown:.2%} to its issue time"


def _code_lines(found: CodeResult) -> Iterator[str]:
    kinds = (("open dual issue", found.dual), ("no extra delay", found.immediate), ("delayed", found.delayed))
    yield "control codes  " + ", ".join(f"{name} {len(members)}" for name, members in kinds)
    yield f"  dual: {', '.join(f'{code:#04x}' for code in found.dual) or 'none'}"
    for field in found.fields:
        beyond = f", then {field.saturation} cycles" if field.saturation is not None else ""
        yield (
            f"  {field.base:#04x}..{field.codes[-1]:#04x}: field of {field.width} bits from bit {field.shift}, gap"
            f" {field.start:g} + {field.slope} n for n = 0..{field.last}{beyond}"
        )


def document(found: Characteristics) -> dict[str, Any]:
    """Return the same as plain data."""
    banks, codes = found.banks, found.codes
    return {
        "schema": SCHEMA,
        "device": found.name,
        "origin": found.origin,
        **asdict(found.sm),
        "latency": found.latency,
        "single_ops_per_cycle": found.single,
        "banks": banks and {**asdict(banks), "function": banks.function and banks.function.bits},
        "codes": codes
        and {**asdict(codes), "dual": codes.dual, "immediate": codes.immediate, "delayed": codes.delayed},
        "patterns": [{**asdict(result), "is_best": result in found.best} for result in found.patterns],
        "sustained_ops_per_cycle": found.sustained,
        "versions": {"makespan": __version__},
    }


_MACHINE_FILE = """name = {name}
source = {source}
clock = "SM clock"
notes = [
{notes}
]

[units.C]
capacity = {capacity}
source = {lanes}
verified = true
latency = {{ value = [1, {latency}], source = {dependent}, verified = {verified} }}

[issue]
width = {{ value = {schedulers}, source = {width}, verified = true }}
schedulers = {{ value = {schedulers}, source = "given", verified = true }}
{dispatch}"""


def machine_file(found: Characteristics) -> str:
    """Return a machine file with one class of units, C: the 32-bit floating-point lanes.

    The whole report stands in its notes, because a machine file cannot say dual issues, stall codes and banks.
    Published numbers are not verified: the reader has measured none of them.

    Raises:
        InputError: the latency was not measured; a machine would take 1 in its place, and prove too little.
    """
    if found.latency is None:
        raise InputError(f"{found.name}: a machine file needs the latency of FFMA; add a row such as latency,FFMA,,,9")
    part = "a part of a machine: only the class of 32-bit floating-point instructions was measured; add the others"
    verified = "false" if found.is_published else "true"
    latency, dual = max(1, ceil(found.latency - _TOLERANCE)), 2 if found.codes and found.codes.dual else 1
    source = _toml_text(f"control codes: {found.origin}")
    dispatch = f"dispatch = {{ value = {dual}, source = {source}, verified = {verified} }}\n"
    return _MACHINE_FILE.format(
        name=_toml_text(found.name),
        source=_toml_text(found.origin),
        notes="\n".join(f"    {_toml_text(note.strip())}," for note in (part, *_lines(found))),
        capacity=found.sm.lanes // found.sm.warp,
        lanes=_toml_text(f"lanes of the SM, {found.sm.warp} a warp: given"),
        latency=latency,
        verified=verified,
        dependent=_toml_text(f"FFMA to an independent instruction 1, to a dependent one {latency}: {found.origin}"),
        schedulers=found.sm.schedulers,
        width=_toml_text("one per scheduler and cycle, all of different warps: given"),
        dispatch=dispatch if found.codes is not None else "",
    )


def _toml_text(value: str) -> str:
    """Return a TOML string; what cannot be printed becomes a question mark."""
    printable = "".join(letter if letter.isprintable() else "?" for letter in value)
    return json.dumps(printable[:_MOST_TEXT], ensure_ascii=False)
