"""The bundle: a result with all evidence as JSON, schema `makespan.bundle/3`, for `makespan verify`.

The reader is `makespan.verify.reading`; both follow docs/schema/bundle-3.schema.json and share no code.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

from makespan.host.errors import InputError, UnsupportedError
from makespan.host.output_file import check_writable, write_whole
from makespan.model.certificate import Certificate, Potential, Weights
from makespan.model.instance import Instance
from makespan.model.lapses import CacheLine, PlaceLapses
from makespan.model.machine import Machine
from makespan.model.program import Program
from makespan.model.result import Result, UpperBound
from makespan.model.schedule import Schedule
from makespan.report.result.document import claim_document, machine_document, order_document

SCHEMA = "makespan.bundle/3"
LEAST_PROGRESSION = 4
"""The fewest numbers in arithmetic progression that are written as [first, step, count]. Delays bring long ones."""


def result_bundle(result: Result) -> dict[str, Any]:
    """Return instance, claim and evidence as plain data, with the SHA-256 of their canonical JSON.

    Of an instance with lapses the evidence is that of the result without them, which the bound with them rests on.
    """
    proven = result.without_lapses or result
    # the bound with lapses may rest on weights of pairs though the one without them has other evidence
    weights = dict.fromkeys((*proven.weights, *(result.lapses.base.weights if result.lapses else ())))
    content: dict[str, Any] = {
        "schema": SCHEMA,
        "instance": instance_data(result.instance),
        "result": claim_document(replace(result, best_case_seconds=None)),  # nothing that anybody could check
        "witness": _witness(result.instance, result.witness),
        "certificate": None if proven.certificate is None else _certificate(proven.certificate),
        "weights": [weights_document(item) for item in weights],
        "phases": [piece_document(phase) for phase in proven.phases],
        **({"partitions": [piece_document(partition) for partition in proven.partitions]} if proven.partitions else {}),
    }
    return {**content, "sha256": hashlib.sha256(canonical_json(content)).hexdigest()}


def check_bundle_path(path: Path) -> None:
    """Refuse a path early if no bundle can be written to it, or if its name is that of something else.

    Raises:
        InputError: an end other than .json or none, a folder, a folder that takes no file, or an input of the command.
    """
    check_writable(path, "the bundle")
    if path.suffix.lower() not in ("", ".json"):
        raise InputError(f"{path}: the name of a bundle must end in .json, or have no end")


def write_bundle(result: Result, path: Path) -> None:
    """Write the bundle of `result` to `path`, whole or not at all.

    Raises:
        InputError: a file that cannot be written.
    """
    write_json(result_bundle(result), path)


def write_json(content: dict[str, Any], path: Path) -> None:
    """Write a bundle to `path`, whole or not at all.

    Raises:
        InputError: a file that cannot be written.
    """
    write_whole(path, bundle_bytes(content), "the bundle")


def bundle_bytes(content: dict[str, Any]) -> bytes:
    """Return the content of the file of a bundle, in the order in which one reads it."""
    text = json.dumps(content, separators=(",", ":"))
    return f"{text}\n".encode()


def canonical_json(content: dict[str, Any]) -> bytes:
    """Return the one form of the JSON from which digests are made."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode()


def instance_data(instance: Instance) -> dict[str, Any]:
    """Return only the question as plain data. Equal instances give equal data."""
    groups = [group_document(group.program, group.warps) for group in instance.groups]
    return {
        "machine": named_machine_document(instance.machine),
        "blocks": instance.blocks,
        "groups": groups,
        **order_document(instance.effective_order),
    }


def named_machine_document(machine: Machine) -> dict[str, Any]:
    """Return a machine with its name as plain data."""
    return {"name": machine.name, **machine_document(machine)}


def group_document(program: Program, warps: int) -> dict[str, Any]:
    """Return a number of warps of a program as plain data."""
    letters = program.letters
    lapses = {"lapses": lapses_document(program.lapses)} if program.lapses else {}
    if letters is not None:
        return {"warps": warps, "string": letters, **lapses}
    places = [[place.unit, list(place.successors)] for place in program.places]
    timed = [[at.stall, list(at.latency), list(at.sets), list(at.awaits)] for at in program.timings]
    timings = {"timings": timed} if timed else {}
    return {"warps": warps, "starts": list(program.starts), "places": places, **timings, **lapses}


def lapses_document(lapses: Sequence[PlaceLapses]) -> dict[str, Any]:
    """Return the lapses of the places of a program as plain data, with a table of the lines that they need.

    >>> lapses_document([PlaceLapses(credit=2), PlaceLapses(lines=(CacheLine("code 0", 86),))])
    {'lines': [['code 0', 86]], 'places': [[1, [2, 0, 0, []]], [1, [0, 0, 0, [0]]]]}
    """
    lines: list[CacheLine] = sorted({line for place in lapses for line in place.lines})
    number = {line: n for n, line in enumerate(lines)}
    rows = ((place.credit, place.fence, place.misses, [number[line] for line in place.lines]) for place in lapses)
    return {"lines": [list(line) for line in lines], "places": run_lengths(list(rows))}


def _witness(instance: Instance, witness: Schedule) -> dict[str, Any]:
    if witness.lapses or witness.withheld:
        raise UnsupportedError("a bundle has a witness without lapses; `Instance.without_lapses` has such schedules")
    # what the question leaves no choice about is not written: the checker knows it
    chains = all(group.program.is_chain for group in instance.groups)
    return {
        "paths": None if chains else run_lengths(witness.paths),
        "latencies": None if instance.fixed_latencies else run_lengths(witness.latencies),
        **({} if instance.partition_of_warp is not None else {"partitions": list(witness.partitions)}),
        **({} if instance.machine.fixed_uses else {"uses": run_lengths(list(map(uses_document, witness.uses)))}),
        "cycles": run_lengths(witness.cycles),
    }


def uses_document(row: Sequence[Sequence[tuple[int, int]]]) -> tuple[list[list[int]], ...]:
    """Return, for every instruction of a warp and every use of its class, the resource and the cycles."""
    return tuple([list(held) for held in instruction] for instruction in row)


def run_lengths(rows: Sequence[tuple[Any, ...]]) -> list[list[Any]]:
    """Return rows with the number of times that each occurs in a row."""
    return [[len(list(equal)), list(row)] for row, equal in groupby(rows)]


def _progressions(row: Sequence[int]) -> list[int | list[int]]:
    """Return the numbers of a row, with stretches in arithmetic progression as [first, step, count]."""
    found: list[int | list[int]] = []
    at = 0
    while at < len(row):
        end = at + 2
        while end < len(row) and row[end] - row[end - 1] == row[at + 1] - row[at]:
            end += 1
        if end - at >= LEAST_PROGRESSION:
            found.append([row[at], row[at + 1] - row[at], end - at])
            at = end
        else:
            found.append(row[at])
            at += 1
    return found


def _certificate(certificate: Certificate) -> dict[str, Any]:
    return {"upper": certificate.upper, "potentials": [_potential(item) for item in certificate.potentials]}


def piece_document(bound: UpperBound) -> dict[str, Any]:
    """Return the evidence for a phase, a partition or an SM as plain data."""
    certificate = None if bound.certificate is None else _certificate(bound.certificate)
    weights = [weights_document(item) for item in bound.weights]
    partitions = (
        {"partitions": [piece_document(partition) for partition in bound.partitions]} if bound.partitions else {}
    )
    return {
        "upper": bound.upper,
        "evidence": str(bound.evidence),
        "certificate": certificate,
        "weights": weights,
        **partitions,
    }


def weights_document(weights: Weights) -> dict[str, Any]:
    """Return the weights of pairs as plain data, with a number for a place that has only one."""
    rows = [[place[0] if len(place) == 1 else list(place) for place in row] for row in weights.reserves]
    written = {"classes": list(weights.classes), "caps": list(weights.caps), "groups": rows}
    return written | ({"thresholds": list(weights.thresholds)} if weights.thresholds else {})


def _potential(potential: Potential) -> dict[str, Any]:
    return {
        "last_group": potential.last_group,
        "classes": list(potential.classes),
        "thresholds": list(potential.thresholds),
        "front": potential.front,
        "tables": [
            {
                "others": [_progressions(row) for row in table.others],
                "last": _progressions(table.last),
                "constant": table.constant,
                "ports": [_progressions(row) for row in table.ports],
            }
            for table in potential.tables
        ],
        "nodes": [[node.last, list(node.kind), node.label, table] for node, table in potential.nodes],
    }
