"""The JSON of a result, schema `makespan.result/2`."""

from collections.abc import Iterable
from itertools import groupby
from typing import Any

from makespan.model.deadline import Deadline
from makespan.model.instance import Instance
from makespan.model.machine import Machine, SchedulerPromise
from makespan.model.result import Bounds, LapseProof, Result
from makespan.proof.bounds import any_units
from makespan.version import versions

SCHEMA = "makespan.result/2"


def result_document(result: Result) -> dict[str, Any]:
    """Return a result as plain data. The witness is in the bundle, not here."""
    return {
        **claim_document(result),
        "any_units": bound_of_any_units(result.instance),
        "caveats": list(result.caveats),
        "robust_against": list(map(str, result.robust_against)),
    }


def claim_document(result: Result) -> dict[str, Any]:
    """Return what a bundle states of a result: all of it except for what follows from the rest."""
    instance, shortest = result.instance, result.best_case_seconds
    return {
        "schema": SCHEMA,
        **_numbers(result),
        "warps": instance.warps,
        "blocks": instance.blocks,
        **machine_document(instance.machine),
        "machine": instance.machine.name,
        "string": instance.groups[0].program.letters if instance.identical else None,
        "groups": [
            {"program": group.program.letters or str(group.program), "warps": group.warps} for group in instance.groups
        ],
        **order_document(instance.effective_order),
        **_origin(result),
        **({} if shortest is None else {"best_case_seconds": round(shortest, 6)}),
        **_course(result),
        **_lapses_document(result),
        "assumptions": [note.document for note in result.assumptions],
        "versions": versions(),
    }


def _numbers(result: Result) -> dict[str, Any]:
    return {
        "status": str(result.status),
        "lower": result.bounds.lower,
        "upper": result.bounds.upper,
        "pessimistic": result.pessimistic,
        "best_case": _bounds_value(result.best_case),
    }


def _origin(result: Result) -> dict[str, Any]:
    return {
        "backend": result.backend,
        "evidence": {"lower": "witness", "upper": str(result.upper_evidence)},
        "seconds": round(result.seconds, 6),
    }


def _course(result: Result) -> dict[str, Any]:
    return {
        "interrupted": result.interrupted,
        "history": [{**step._asdict(), "evidence": str(step.evidence)} for step in result.history],
    }


def _lapses_document(result: Result) -> dict[str, Any]:
    """Return what lapses add to a bound, and the claim about the same warps without them; empty if there are none."""
    if result.lapses is None or result.without_lapses is None:
        return {}
    inner = result.without_lapses
    return {
        "lapses": lapse_proof_document(result.lapses),
        "without_lapses": {**_numbers(inner), **_origin(inner), **_course(inner)},
    }


def lapse_proof_document(proof: LapseProof) -> dict[str, Any]:
    """Return the parts of a bound with lapses as plain data, without the weights of pairs."""
    base = {"upper": proof.base.upper, "evidence": str(proof.base.evidence)}
    return {"base": base, "credits": proof.credits, "windows": proof.windows, "misses": proof.misses}


def order_document(order: Iterable[int]) -> dict[str, Any]:
    """Return the order of a launch, each group with the number of its warps in a row; empty if there is none.

    >>> order_document((0, 1, 1, 0))
    {'order': [[0, 1], [1, 2], [0, 1]]}
    """
    runs = [[group, len(list(equal))] for group, equal in groupby(order)]
    return {"order": runs} if runs else {}


def bound_of_any_units(instance: Instance) -> int | None:
    """Return the bound `any_units` if it says more than the pessimistic bound, else None.

    It says more if a class has an interval. It says nothing about real multiprocessors, lapses and queues.
    """
    if instance.is_multiprocessor or instance.has_lapses:
        return None
    return any_units(instance) if any(unit.interval > 1 for unit in instance.machine.units) else None


def deadline_document(gate: Deadline, bounds: Bounds) -> dict[str, Any]:
    """Return whether the worst case is in time, with exact numbers as fractions in text."""
    return {
        "cycles": gate.cycles,
        "seconds": None if gate.seconds is None else str(gate.seconds),
        "clock_hz": None if gate.clock is None else str(gate.clock),
        "outcome": str(gate.outcome(bounds)),
        "slack_cycles": gate.cycles - bounds.upper,
    }


def machine_document(machine: Machine) -> dict[str, Any]:
    """Return a machine without its name as plain data: classes, issue width (or None), and further features."""
    return {
        "capacity": machine.capacities,
        "interval": {unit.name: unit.interval for unit in machine.units},
        "latency": {unit.name: [unit.latency.least, unit.latency.most] for unit in machine.units},
        "issue_width": machine.issue_width,
        **({} if machine.scheduler is SchedulerPromise.ANY else {"scheduler": str(machine.scheduler)}),
        **_multiprocessor_document(machine),
    }


def _multiprocessor_document(machine: Machine) -> dict[str, Any]:
    """Return partitions with what they share, resources with the classes that use them, and queues, if any."""
    parts = {"partitions": machine.partitions, "assignment": str(machine.assignment)} if machine.partitions > 1 else {}
    found: dict[str, dict[str, Any] | list[str]] = {
        "shared": [ports.name for ports in machine.ports if ports.shared],
        "resources": {resource.name: resource.capacity for resource in machine.resources},
        "uses": {
            unit.name: [[list(use.resources), use.least, use.most] for use in unit.uses]
            for unit in machine.units
            if unit.uses
        },
        "queues": {queue.name: [list(queue.units), queue.places, queue.blocks] for queue in machine.queues},
    }
    return parts | {key: value for key, value in found.items() if value}


def _bounds_value(bounds: Bounds | None) -> int | list[int] | None:
    if bounds is None:
        return None
    return bounds.lower if bounds.lower == bounds.upper else [bounds.lower, bounds.upper]
