"""A bundle read strictly: every key and type is checked, and every field that the instance determines.

The writer is `makespan.report.result.bundle`; both follow docs/schema/bundle-3.schema.json and share no code.
What comes out is made of the package's value types, whose own checks have passed; what is not understood is refused.
"""

import hashlib
import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby, repeat
from typing import Any, NoReturn

from makespan.model.assumptions import Assumption
from makespan.model.instance import MAX_CYCLES, Instance
from makespan.model.machine import MAX_INTERVAL, MAX_LATENCY, Machine, SchedulerPromise
from makespan.model.machine.values import MAX_RESOURCES
from makespan.model.program import MAX_PLACES, Program
from makespan.model.result import Status, Step, Upper
from makespan.model.schedule import Schedule
from makespan.verify import conditions, fields, instances, machine_form, proofs
from makespan.verify.lapses import LapseClaim, LapseParts
from makespan.verify.outcome import BundleClaim
from makespan.verify.refusal import ProofSteps, Refused, TooMuchWork
from makespan.verify.rule import ClaimedBound

SCHEMA, RESULT_SCHEMA = "makespan.bundle/3", "makespan.result/2"
OLDER_SCHEMAS = ("makespan.bundle/1", "makespan.bundle/2")  # their assumptions are words
_ANY_VERSION = "makespan.bundle/"
MOST_BYTES = 128 << 20
_LONG_NUMBER = re.compile(rb"[0-9]{%d}" % (fields.MOST_DIGITS + 1))  # or a text of many digits: then all are looked at
MOST_COEFFICIENTS = 20_000_000  # of all potentials
MOST_BRACKETS = 20_000_000  # lists and objects


@dataclass(frozen=True, slots=True)
class SmClaim(BundleClaim):
    """A claim with the pessimistic bound, in cycles, and the steps in which the interval became smaller."""

    pessimistic: int
    history: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Bundle:
    """A claim and its evidence.

    Args:
        instance: the question.
        claim: the claim about it.
        witness: a schedule, in which no scheduler lapses and no line is late.
        without_lapses: the claim about the same warps without lapses; that of the question where it has none.
        bound: the upper bound of that claim.
        lapses: the upper bound of the question where it has lapses.
        said: what the result assumes; None where an older bundle says that in words.
    """

    instance: Instance
    claim: SmClaim
    witness: Schedule
    without_lapses: SmClaim
    bound: ClaimedBound
    lapses: LapseClaim | None
    said: tuple[Assumption, ...] | None


def parse(content: bytes) -> object:
    """Return the JSON document in `content`; stricter than `json.loads`.

    Raises:
        Refused: not UTF-8, not JSON, a key twice in one object, NaN or infinity, a number of over 100 digits, nested
            too deeply, larger than 128 MiB, or more than 20 million lists and objects.
    """
    if len(content) > MOST_BYTES:
        raise Refused(f"not a bundle: larger than {MOST_BYTES >> 20} MiB")
    if content.count(b"[") + content.count(b"{") > MOST_BRACKETS:  # each takes far more than its byte
        raise Refused(f"not a bundle: over {MOST_BRACKETS} lists and objects")
    try:
        return json.loads(
            content.decode("utf-8-sig"),
            object_pairs_hook=_object,
            parse_int=_int if _LONG_NUMBER.search(content) else int,
            parse_float=_float,
            parse_constant=_constant,
        )
    except UnicodeDecodeError:
        raise Refused("not a bundle: not UTF-8 text") from None
    except RecursionError:
        raise Refused("not a bundle: nested too deeply") from None
    except json.JSONDecodeError as error:
        place = f"see line {error.lineno}, column {error.colno}" if content.strip() else "the file is empty"
        raise Refused(f"not a bundle: it is not JSON; {place}") from None
    except ValueError as error:
        raise Refused(f"not a bundle: {error}") from None


def digest(document: dict[str, Any]) -> str:
    """Return the SHA-256 of everything but the digest itself, in canonical JSON."""
    content = {key: value for key, value in document.items() if key != "sha256"}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def bundle(document: object) -> Bundle:
    """Return the claim and the evidence in `document`.

    Raises:
        Refused: a key or type is wrong, a value contradicts the instance, or the digest does not match.
    """
    if not isinstance(document, dict):
        fields.bad(f"schema is not {SCHEMA!r}")
    _check_schema(schema := document.get("schema"))
    keys = ("schema", "instance", "result", "witness", "certificate", "phases", "sha256")
    some = ["partitions"] if "partitions" in document else []
    parts = fields.table(document, "bundle", *keys, *some, later="weights")
    if parts["schema"] == OLDER_SCHEMAS[0]:
        _check_older(parts, *fields.items(parts["phases"], "phases", 0))
    instance = instances.instance(parts["instance"])
    is_older = schema in OLDER_SCHEMAS
    claim, inner, lapses = _claims(parts["result"], instance, is_older=is_older)
    asked = instance if lapses is None else lapses.without_lapses
    said = None if is_older else conditions.assumptions(parts["result"]["assumptions"])
    schedule = witness(parts["witness"], instance, claim.lower)
    room = ProofSteps(MOST_COEFFICIENTS)
    try:
        certificate = None if parts["certificate"] is None else proofs.certificate(parts["certificate"], asked, room)
        weights = proofs.weights(parts["weights"], asked, room)
        phases = proofs.phase_bounds(parts["phases"], asked, room)
        partitions = proofs.partition_bounds(parts.get("partitions", []), asked, room)
    except TooMuchWork:
        raise Refused(f"the evidence is too large for this checker: over {MOST_COEFFICIENTS} coefficients") from None
    if fields.text(parts["sha256"], "sha256") != digest(document):
        raise Refused("the digest does not match the content: the file was changed after it was written")
    if said is not None:
        conditions.check(said, instance.machine, [instance])
    is_asked = inner.best_case is not None
    bound = ClaimedBound(
        asked, inner.upper, inner.evidence, certificate, weights, phases, partitions, best_case=is_asked
    )
    proven = None if lapses is None else replace(lapses, weights=weights)
    return Bundle(instance, claim, schedule, inner, bound, proven, said)


def _check_schema(schema: object) -> None:
    if schema not in (SCHEMA, *OLDER_SCHEMAS):
        is_bundle = isinstance(schema, str) and schema.startswith(_ANY_VERSION)
        remedy = f": {schema!r:.40} is of another makespan; verify it with that one, or solve anew" if is_bundle else ""
        fields.bad(f"schema is not {SCHEMA!r}{remedy}")


def _check_older(*parts: object) -> None:
    # evidence of version 1 is that of today, but its potentials rest on an older theorem
    if any(fields.entries(part).get("certificate") is not None for part in parts):
        raise Refused(f"potentials of {OLDER_SCHEMAS[0]} rest on an older theorem: solve the question again")


# Result


_CLAIMED = ("status", "lower", "upper", "pessimistic", "best_case")
_FOUND = ("backend", "evidence", "seconds", "interrupted", "history")


def _claims(value: object, instance: Instance, *, is_older: bool) -> tuple[SmClaim, SmClaim, LapseClaim | None]:
    """Return the claim about the instance, that without its lapses, and what the former adds to a bound without."""
    determined = _fields_of_instance(instance) | ({"schema": "makespan.result/1"} if is_older else {})
    has_lapses = machine_form.has_lapses(instance)
    parts = ("lapses", "without_lapses") if has_lapses else ()
    result = fields.table(value, "result", *determined, *_CLAIMED, *_FOUND, *parts, "assumptions", "versions")
    for key, expected in determined.items():
        if not _same(result[key], expected):
            raise Refused(f"result: {key} does not follow from the instance")
    check_remarks(result, is_older=is_older)
    claim = _claim(result)
    if not has_lapses:
        _check_is_without_lapses(claim)
        return claim, claim, None
    if claim.evidence != Upper.LAPSES:
        raise Refused(f"upper is reported by {claim.evidence}, which knows no lapses")
    inner = _claim(fields.table(result["without_lapses"], "without_lapses", *_CLAIMED, *_FOUND))
    _check_is_without_lapses(inner)
    if inner.lower != claim.lower:
        raise Refused(f"lower is {claim.lower}, but without lapses {inner.lower}, by the same witness")
    return claim, inner, _lapses(result["lapses"], instance, claim)


def _check_is_without_lapses(claim: SmClaim) -> None:
    if claim.evidence == Upper.LAPSES:
        raise Refused("upper is reported by lapses, but there are none")


def _lapses(value: object, instance: Instance, claim: SmClaim) -> LapseClaim:
    said = fields.table(value, "lapses", *LapseParts._fields)
    base = fields.table(said["base"], "base", "upper", "evidence")
    parts = LapseParts(
        fields.whole(base["upper"], "upper", 1),
        *(fields.whole(said[name], name) for name in LapseParts._fields[1:]),
    )
    if sum(parts) != claim.upper:
        raise Refused(f"upper {claim.upper} reported by lapses, which add up to {sum(parts)}")
    return LapseClaim(instance, parts, proofs.name_of_proof(base["evidence"]), claim.pessimistic)


def _claim(result: dict[str, Any]) -> SmClaim:
    lower, upper = (fields.whole(result[side], side, 1) for side in ("lower", "upper"))
    if lower > upper:
        raise Refused(f"lower {lower} exceeds upper {upper}")
    if not _same(result["status"], str(Status.EXACT if lower == upper else Status.BOUNDED)):
        raise Refused("result: status does not follow from the instance and the bounds")
    fields.text(result["backend"], "backend")
    _check_course(result)
    evidence = fields.table(result["evidence"], "evidence", "lower", "upper")
    if fields.text(evidence["lower"], "evidence") != "witness":
        raise Refused(f"unknown evidence: {evidence['lower']!r:.40}")
    pessimistic = fields.whole(result["pessimistic"], "pessimistic", 1)
    history = tuple(map(_step, fields.items(result["history"], "history", 0)))
    return SmClaim(
        lower, upper, proofs.name_of_proof(evidence["upper"]), best_case(result["best_case"]), pessimistic, history
    )


def _step(value: object) -> Step:
    parts = fields.table(value, "step", "seconds", "engine", "lower", "upper", "evidence")
    _duration(parts["seconds"])
    engine, evidence = fields.text(parts["engine"], "engine"), proofs.name_of_proof(parts["evidence"])
    lower, upper = (fields.whole(parts[side], side, 1) for side in ("lower", "upper"))
    return Step(parts["seconds"], engine, lower, upper, evidence)


def _fields_of_instance(instance: Instance) -> dict[str, object]:
    machine = instance.machine
    return {
        "schema": RESULT_SCHEMA,
        "warps": instance.warps,
        "blocks": instance.blocks,
        "capacity": machine.capacities,
        "interval": {unit.name: unit.interval for unit in machine.units},
        "latency": {unit.name: [unit.latency.least, unit.latency.most] for unit in machine.units},
        "issue_width": machine.issue_width,
        **({} if machine.scheduler is SchedulerPromise.ANY else {"scheduler": str(machine.scheduler)}),
        **_of_multiprocessor(machine),
        "machine": machine.name,
        "string": instance.groups[0].program.letters if instance.identical else None,
        "groups": [
            {"program": group.program.letters or str(group.program), "warps": group.warps} for group in instance.groups
        ],
        **_of_order(instance),
    }


def _of_order(instance: Instance) -> dict[str, object]:
    if not instance.order or not machine_form.numbers_matter(instance.machine):
        return {}
    return {"order": [[group, len(list(equal))] for group, equal in groupby(instance.order)]}


def _of_multiprocessor(machine: Machine) -> dict[str, object]:
    said: dict[str, object] = {}
    if machine.partitions > 1:
        said = {"partitions": machine.partitions, "assignment": str(machine.assignment)}
    users = [unit for unit in machine.units if unit.uses]
    found: dict[str, dict[str, object] | list[str]] = {
        "shared": [ports.name for ports in machine.ports if ports.shared],
        "queues": {queue.name: [list(queue.units), queue.places, queue.blocks] for queue in machine.queues},
        "resources": {resource.name: resource.capacity for resource in machine.resources},
        "uses": {unit.name: [[list(use.resources), use.least, use.most] for use in unit.uses] for unit in users},
    }
    return said | {key: value for key, value in found.items() if value}


def _same(value: object, expected: object) -> bool:
    """Return whether two JSON values are equal; True, 1 and 1.0 differ."""
    if type(value) is not type(expected):
        return False
    if isinstance(value, dict) and isinstance(expected, dict):
        return value.keys() == expected.keys() and all(_same(value[key], expected[key]) for key in value)
    if isinstance(value, list) and isinstance(expected, list):
        return len(value) == len(expected) and all(map(_same, value, expected))
    return value == expected


def _check_course(result: dict[str, Any]) -> None:
    _duration(result["seconds"])
    if type(result["interrupted"]) is not bool:
        fields.bad("interrupted is neither true nor false")


def check_remarks(result: dict[str, Any], *, is_older: bool) -> None:
    """Refuse remarks of the wrong type; what they say, such as seconds, is no claim (`outcome.UNCHECKED`)."""
    _check_course(result)
    for note in fields.items(result["assumptions"], "assumptions", 0) if is_older else ():
        fields.text(note, "assumption")
    for version in fields.table(result["versions"], "versions", "makespan", "python").values():
        fields.text(version, "version")


def _duration(value: object) -> None:
    if type(value) not in (int, float) or not 0 <= value < math.inf:  # type: ignore[operator]
        fields.bad("seconds is not a duration")


def best_case(value: object, most: int = fields.MOST_CYCLES) -> tuple[int, int] | None:
    """Return an interval, which may be a single number, or nothing."""
    if value is None:
        return None
    if not isinstance(value, list):
        cycles = fields.whole(value, "best_case", 1, most)
        return cycles, cycles
    lower, upper = (fields.whole(side, "best_case", 1, most) for side in fields.items(value, "best_case", 2, 2))
    if lower >= upper:
        raise Refused(f"best_case is not an interval: {lower}..{upper}")
    return lower, upper


# Witness


def witness(value: object, instance: Instance, makespan: int) -> Schedule:
    """Return a schedule of `makespan` cycles.

    Raises:
        Refused: a key or type is wrong, it has another length, or it is too large.
    """
    chosen = [] if machine_form.warp_partitions(instance) is not None else ["partitions"]
    chosen += [] if instance.machine.fixed_uses else ["uses"]
    parts = fields.table(value, "witness", "paths", "latencies", "cycles", *chosen)
    routes = paths(parts["paths"], [(group.program, group.warps) for group in instance.groups])
    times = latencies(parts["latencies"], instance.warps, is_fixed=instance.fixed_latencies)
    partitions = _partitions(parts["partitions"], instance) if "partitions" in parts else ()
    held = uses(parts["uses"], instance.warps) if "uses" in parts else ()
    return Schedule(_cycles(parts["cycles"], instance.warps, makespan), routes, times, partitions, held)


def _cycles(value: object, warps: int, makespan: int) -> tuple[tuple[int, ...], ...]:
    runs: list[tuple[int, tuple[int, ...]]] = []
    for entry in fields.items(value, "cycles"):
        count, executing = fields.items(entry, "cycle", 2, 2)
        runs.append((fields.whole(count, "repeat", 1), fields.wholes(executing, "warps", warps - 1, 0)))
    # counted before they are unfolded, since a few bytes can stand for any number of cycles
    if sum(times * len(executing) for times, executing in runs) > fields.MOST_INSTRUCTIONS:
        raise Refused(f"the witness is too large for this checker: over {fields.MOST_INSTRUCTIONS} warp-instructions")
    cycles = sum(times for times, _ in runs)
    if cycles > MAX_CYCLES:
        raise Refused(f"the witness is too large for this checker: over {MAX_CYCLES} cycles")
    if cycles != makespan:
        raise Refused(f"the witness takes {cycles} cycles, the lower bound says {makespan}")
    return tuple(chain.from_iterable(repeat(executing, times) for times, executing in runs))


def _partitions(value: object, instance: Instance) -> tuple[int, ...]:
    found = fields.wholes(value, "partitions", instance.machine.partitions - 1)
    if len(found) != instance.warps:
        fields.bad(f"{len(found)} partitions for {instance.warps} warps")
    return found


def uses(value: object, warps: int) -> tuple[tuple[tuple[tuple[int, int], ...], ...], ...]:
    """Return for every warp, instruction and use of its class the position of the resource and the cycles."""

    def pair(value: object) -> tuple[int, int]:
        which, cycles = fields.items(value, "use", 2, 2)
        return fields.whole(which, "resource", 0, MAX_RESOURCES - 1), fields.whole(cycles, "interval", 1, MAX_INTERVAL)

    rows: list[tuple[tuple[tuple[int, int], ...], ...]] = []
    for entry in fields.items(value, "uses", most=warps):
        count, row = fields.items(entry, "uses", 2, 2)
        held = tuple(tuple(map(pair, fields.items(one, "uses", 0, MAX_RESOURCES))) for one in fields.items(row, "uses"))
        rows.extend((held,) * fields.whole(count, "count", 1, warps - len(rows)))
    if len(rows) != warps:
        fields.bad(f"uses of {len(rows)} warps for {warps} warps")
    return tuple(rows)


def latencies(value: object, warps: int, *, is_fixed: bool) -> tuple[tuple[int, ...], ...]:
    """Return for every warp the latencies of its instructions; none if the adversary has no choice."""
    if is_fixed:
        if value is not None:
            fields.bad("the machine leaves no choice of a latency: latencies must be null")
        return ()
    return _per_warp(value, "latencies", warps, MAX_LATENCY)


def paths(value: object, crews: Sequence[tuple[Program, int]]) -> tuple[tuple[int, ...], ...]:
    """Return the path of every warp of these programs; strings leave no choice."""
    if not all(program.is_chain for program, _ in crews):
        return _per_warp(value, "paths", sum(warps for _, warps in crews), MAX_PLACES)
    if value is not None:
        fields.bad("a string has one path: paths must be null")
    return tuple(chain.from_iterable(repeat(tuple(range(program.end)), warps) for program, warps in crews))


def _per_warp(value: object, name: str, warps: int, most: int) -> tuple[tuple[int, ...], ...]:
    rows: list[tuple[int, ...]] = []
    for entry in fields.items(value, name, most=warps):
        count, numbers = fields.items(entry, name, 2, 2)
        rows.extend((fields.wholes(numbers, name, most),) * fields.whole(count, "count", 1, warps - len(rows)))
    if len(rows) != warps:
        fields.bad(f"{len(rows)} {name} for {warps} warps")
    return tuple(rows)


# JSON hooks


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    table = dict(pairs)
    if len(table) != len(pairs):
        raise ValueError("an object has a key twice")
    return table


def _int(digits: str) -> int:
    if len(digits) > fields.MOST_DIGITS:
        raise ValueError(f"a number of over {fields.MOST_DIGITS} digits")
    return int(digits)


def _float(digits: str) -> float:
    if not math.isfinite(number := float(digits)):
        raise ValueError("a number out of range")
    return number


def _constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")
