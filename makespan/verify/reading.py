"""A bundle read strictly: every key and type is checked, and every field that the instance determines.

The writer is `makespan.report.result.bundle`; both follow docs/schema/bundle-1.schema.json and share no code.
What comes out is made of the package's value types, whose own checks have passed; what is not understood is refused.
"""

import hashlib
import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any, NoReturn

from makespan.certificate import Certificate, Node, Potential, Table, Weights
from makespan.errors import InputError
from makespan.instance import MAX_CYCLES, MAX_WARPS, Group, Instance
from makespan.machine import MAX_ISSUE_WIDTH, MAX_LATENCY, Latency, Machine, UnitClass, class_name
from makespan.program import MAX_PLACES, Place, Program
from makespan.result import PhaseBound, Status, Step
from makespan.schedule import Schedule
from makespan.verify import delays, phases
from makespan.verify.refusal import Refused, TooMuchWork, Work

SCHEMA, RESULT_SCHEMA = "makespan.bundle/1", "makespan.result/1"
MOST_BYTES = 128 << 20
MOST_PLACES = 2_000_000
MOST_INSTRUCTIONS = 10_000_000  # warp-instructions of a witness
MOST_COEFFICIENTS = 20_000_000  # of all potentials
MOST_BRACKETS = 20_000_000  # lists and objects
LEAST_PROGRESSION = 4
_MOST_DIGITS = 100
_NAME = re.compile("[a-z][a-z0-9-]{0,39}")
_MOST_CYCLES = 10**12
_MOST_TEXT = 1_000_000
_MOST_COEFFICIENT = 10**_MOST_DIGITS


@dataclass(frozen=True, slots=True)
class Claim:
    """What the result says, in cycles; `best_case` is an interval."""

    lower: int
    upper: int
    evidence: str
    pessimistic: int
    best_case: tuple[int, int] | None
    history: tuple[Step, ...]


Phases = tuple[tuple[Instance, PhaseBound], ...]
"""The question of every phase between barriers, in order, and what is said of it; equal questions share that."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """A claim and its evidence."""

    instance: Instance
    claim: Claim
    witness: Schedule
    certificate: Certificate | None
    weights: tuple[Weights, ...]
    phases: Phases


def parse(content: bytes) -> object:
    """The JSON document in `content`; stricter than `json.loads`.

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
            parse_int=_int,
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
    """SHA-256 of everything but the digest itself, in canonical JSON."""
    content = {key: value for key, value in document.items() if key != "sha256"}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def bundle(document: object) -> Bundle:
    """The claim and the evidence in `document`.

    Raises:
        Refused: a key or type is wrong, a value contradicts the instance, or the digest does not match.
    """
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        _bad(f"schema is not {SCHEMA!r}")
    keys = ("schema", "instance", "result", "witness", "certificate", "phases", "sha256")
    parts = _table(document, "bundle", *keys, later="weights")
    try:
        instance = _instance(parts["instance"])
    except InputError as error:
        raise Refused(f"not a bundle: {error}") from None
    claim = _claim(parts["result"], instance)
    witness = _witness(parts["witness"], instance, claim.lower)
    room = Work(MOST_COEFFICIENTS)
    try:
        certificate = None if parts["certificate"] is None else _certificate(parts["certificate"], instance, room)
        weights = _weights(parts["weights"], instance, room)
        pieces = _phases(parts["phases"], instance, room)
    except TooMuchWork:
        raise Refused(f"the evidence is too large for this checker: over {MOST_COEFFICIENTS} coefficients") from None
    if _text(parts["sha256"], "sha256") != digest(document):
        raise Refused("the digest does not match the content: the file was changed after it was written")
    return Bundle(instance, claim, witness, certificate, weights, pieces)


# Instance


def _instance(value: object) -> Instance:
    parts = _table(value, "instance", "machine", "blocks", "groups")
    groups = _list(parts["groups"], "groups", most=MAX_WARPS)
    if sum(map(_size, groups)) > MOST_PLACES:
        raise Refused(f"the instance is too large for this checker: over {MOST_PLACES} places")
    blocks = _whole(parts["blocks"], "blocks", 1, MAX_WARPS)
    return Instance(tuple(map(_group, groups)), _machine(parts["machine"]), blocks)


def _machine(value: object) -> Machine:
    parts = _table(value, "machine", "name", "capacity", "interval", "latency", "issue_width")
    names = list(map(class_name, _dict(parts["capacity"])))
    capacities, intervals, latencies = (_table(parts[key], key, *names) for key in ("capacity", "interval", "latency"))
    units = []
    for name in names:
        least, most = (_whole(side, "latency") for side in _list(latencies[name], "latency", 2, 2))
        capacity, interval = _whole(capacities[name], "capacity"), _whole(intervals[name], "interval")
        units.append(UnitClass(name, capacity, interval, Latency(least, most)))
    width = parts["issue_width"]
    return Machine(
        _text(parts["name"], "machine name"),
        tuple(units),
        None if width is None else _whole(width, "issue_width", 1, MAX_ISSUE_WIDTH),
    )


def _size(value: object) -> int:
    group = _dict(value)
    program = group.get("string", group.get("places"))
    return len(program) if isinstance(program, (str, list)) else 0


def _group(value: object) -> Group:
    if "string" in _dict(value):
        parts = _table(value, "group", "warps", "string")
        program = Program.chain(_text(parts["string"], "string"))
    else:
        parts = _table(value, "group", "warps", "starts", "places")
        places = _list(parts["places"], "places", most=MAX_PLACES)
        program = Program(tuple(map(_place, places)), _wholes(parts["starts"], "starts"))
        if len(set(program.starts)) != len(program.starts):
            _bad(f"starts {program.starts} name a place twice")
    return Group(program, _whole(parts["warps"], "warps", 1, MAX_WARPS))


def _place(value: object) -> Place:
    unit, successors = _list(value, "place", 2, 2)
    return Place(_text(unit, "unit"), _wholes(successors, "successors"))


# Result


def _claim(value: object, instance: Instance) -> Claim:
    determined = _determined(instance)
    claimed = (
        "status lower upper pessimistic best_case backend evidence seconds interrupted history assumptions versions"
    )
    result = _table(value, "result", *determined, *claimed.split())
    lower, upper = (_whole(result[side], side, 1) for side in ("lower", "upper"))
    if lower > upper:
        raise Refused(f"lower {lower} exceeds upper {upper}")
    status = str(Status.EXACT if lower == upper else Status.BOUNDED)
    for key, expected in {**determined, "status": status}.items():
        if not _same(result[key], expected):
            raise Refused(f"result: {key} does not follow from the instance and the bounds")
    _remarks(result)
    evidence = _table(result["evidence"], "evidence", "lower", "upper")
    if _text(evidence["lower"], "evidence") != "witness":
        raise Refused(f"unknown evidence: {evidence['lower']!r:.40}")
    pessimistic = _whole(result["pessimistic"], "pessimistic", 1)
    best_case, history = _best_case(result["best_case"]), tuple(map(_step, _list(result["history"], "history", 0)))
    return Claim(lower, upper, _evidence(evidence["upper"]), pessimistic, best_case, history)


def _step(value: object) -> Step:
    parts = _table(value, "step", "seconds", "engine", "lower", "upper", "evidence")
    _duration(parts["seconds"])
    engine, evidence = _text(parts["engine"], "engine"), _evidence(parts["evidence"])
    return Step(
        parts["seconds"], engine, _whole(parts["lower"], "lower", 1), _whole(parts["upper"], "upper", 1), evidence
    )


def _determined(instance: Instance) -> dict[str, object]:
    """What a result says of its instance."""
    machine = instance.machine
    return {
        "schema": RESULT_SCHEMA,
        "warps": instance.warps,
        "blocks": instance.blocks,
        "capacity": machine.capacities,
        "interval": {unit.name: unit.interval for unit in machine.units},
        "latency": {unit.name: [unit.latency.least, unit.latency.most] for unit in machine.units},
        "issue_width": machine.issue_width,
        "machine": machine.name,
        "string": instance.groups[0].program.letters if instance.identical else None,
        "groups": [
            {"program": group.program.letters or str(group.program), "warps": group.warps} for group in instance.groups
        ],
    }


def _evidence(value: object) -> str:
    """An `Upper`, or an engine whose word nobody can check: then the bound must follow from something else."""
    name = _text(value, "evidence")
    if not _NAME.fullmatch(name):
        raise Refused(f"unknown evidence: {name!r:.40}")
    return name


def _same(value: object, expected: object) -> bool:
    """Equality that keeps True, 1 and 1.0 apart."""
    if type(value) is not type(expected):
        return False
    if isinstance(value, dict) and isinstance(expected, dict):
        return value.keys() == expected.keys() and all(_same(value[key], expected[key]) for key in value)
    if isinstance(value, list) and isinstance(expected, list):
        return len(value) == len(expected) and all(map(_same, value, expected))
    return value == expected


def _remarks(result: dict[str, Any]) -> None:
    """What nobody can check (`verdict.UNCHECKED`): who computed it, for how long, and what the user takes on trust."""
    _duration(result["seconds"])
    if type(result["interrupted"]) is not bool:
        _bad("interrupted is neither true nor false")
    _text(result["backend"], "backend")
    for note in _list(result["assumptions"], "assumptions", 0):
        _text(note, "assumption")
    for version in _table(result["versions"], "versions", "makespan", "python").values():
        _text(version, "version")


def _duration(value: object) -> None:
    if type(value) not in (int, float) or not 0 <= value < math.inf:  # type: ignore[operator]
        _bad("seconds is not a duration")


def _best_case(value: object) -> tuple[int, int] | None:
    if value is None:
        return None
    if not isinstance(value, list):
        cycles = _whole(value, "best_case", 1)
        return cycles, cycles
    lower, upper = (_whole(side, "best_case", 1) for side in _list(value, "best_case", 2, 2))
    if lower >= upper:
        raise Refused(f"best_case is not an interval: {lower}..{upper}")
    return lower, upper


# Witness


def _witness(value: object, instance: Instance, makespan: int) -> Schedule:
    parts = _table(value, "witness", "paths", "latencies", "cycles")
    runs: list[tuple[int, tuple[int, ...]]] = []
    for entry in _list(parts["cycles"], "cycles"):
        count, executing = _list(entry, "cycle", 2, 2)
        runs.append((_whole(count, "repeat", 1), _wholes(executing, "warps", instance.warps - 1, 0)))
    # counted before they are unfolded
    if sum(times * len(warps) for times, warps in runs) > MOST_INSTRUCTIONS:
        raise Refused(f"the witness is too large for this checker: over {MOST_INSTRUCTIONS} warp-instructions")
    cycles = sum(times for times, _ in runs)
    if cycles > MAX_CYCLES:
        raise Refused(f"the witness is too large for this checker: over {MAX_CYCLES} cycles")
    if cycles != makespan:
        raise Refused(f"the witness takes {cycles} cycles, the lower bound says {makespan}")
    unfolded = tuple(chain.from_iterable(repeat(warps, times) for times, warps in runs))
    return Schedule(unfolded, _paths(parts["paths"], instance), _latencies(parts["latencies"], instance))


def _latencies(value: object, instance: Instance) -> tuple[tuple[int, ...], ...]:
    if instance.machine.fixed_latencies:
        if value is not None:
            _bad("the machine leaves no choice of a latency: latencies must be null")
        return ()
    return _per_warp(value, "latencies", instance, MAX_LATENCY)


def _paths(value: object, instance: Instance) -> tuple[tuple[int, ...], ...]:
    if all(group.program.is_chain for group in instance.groups):
        if value is not None:
            _bad("a string has one path: paths must be null")
        whole = [tuple(range(group.program.end)) for group in instance.groups]
        return tuple(whole[group] for group in instance.group_of_warp())
    return _per_warp(value, "paths", instance, MAX_PLACES)


def _per_warp(value: object, name: str, instance: Instance, most: int) -> tuple[tuple[int, ...], ...]:
    """A row of numbers for every warp, each with how many warps share it."""
    rows: list[tuple[int, ...]] = []
    for entry in _list(value, name, most=instance.warps):
        count, numbers = _list(entry, name, 2, 2)
        rows.extend((_wholes(numbers, name, most),) * _whole(count, "count", 1, instance.warps - len(rows)))
    if len(rows) != instance.warps:
        _bad(f"{len(rows)} {name} for {instance.warps} warps")
    return tuple(rows)


# Certificate


def _phases(value: object, instance: Instance, room: Work) -> Phases:
    entries = _list(value, "phases", 0)
    if not entries:
        return ()
    cut = phases.questions(instance) or []
    different = list(dict.fromkeys(cut))
    if len(different) != len(entries):
        raise Refused(f"{len(entries)} phases are given, but barriers make {len(different)} different ones")
    said = {question: _phase(entry, question, room) for entry, question in zip(entries, different, strict=True)}
    return tuple((question, said[question]) for question in cut)


def _phase(value: object, question: Instance, room: Work) -> PhaseBound:
    parts = _table(value, "phase", "upper", "evidence", "certificate", later="weights")
    certificate = None if parts["certificate"] is None else _certificate(parts["certificate"], question, room)
    upper, evidence = _whole(parts["upper"], "upper", 1), _evidence(parts["evidence"])
    return PhaseBound(upper, evidence, certificate, _weights(parts["weights"], question, room))


def _weights(value: object, instance: Instance, room: Work) -> tuple[Weights, ...]:
    return tuple(_set(item, instance, room) for item in _list(value, "weights", 0))


def _set(value: object, instance: Instance, room: Work) -> Weights:
    parts = _table(value, "weights", "classes", "groups")
    classes = tuple(_text(name, "class") for name in _list(parts["classes"], "classes", 0))
    rows = _list(parts["groups"], "groups", len(instance.groups), len(instance.groups))
    room.spend(sum(group.program.end for group in instance.groups))
    reserves = tuple(_row(row, group.program.end, room) for row, group in zip(rows, instance.groups, strict=True))
    return Weights(classes, reserves)


def _row(value: object, places: int, room: Work) -> tuple[tuple[int, ...], ...]:
    """For every place of a group a number, or a list of them."""
    found: list[tuple[int, ...]] = []
    for item in _list(value, "weights", places, places):
        numbers = item if type(item) is list else [item]
        room.spend(len(numbers))
        _check_coefficients("weights", *numbers)
        found.append(tuple(numbers))
    return tuple(found)


def _certificate(value: object, instance: Instance, room: Work) -> Certificate:
    parts = _table(value, "certificate", "upper", "potentials")
    potentials, sizes = _list(parts["potentials"], "potentials", most=len(instance.groups)), delays.sizes(instance)
    upper = _whole(parts["upper"], "upper", 1)
    return Certificate(upper, tuple(_potential(item, instance, sizes, room) for item in potentials))


def _potential(value: object, instance: Instance, sizes: Sequence[int], room: Work) -> Potential:
    parts = _table(value, "potential", "last_group", "classes", "thresholds", "front", "nodes")
    last = _whole(parts["last_group"], "last_group", 0, len(instance.groups) - 1)
    classes = tuple(_text(name, "class") for name in _list(parts["classes"], "classes"))
    thresholds = _wholes(parts["thresholds"], "thresholds")
    items = _list(parts["nodes"], "nodes", 0)
    if items:
        room.spend(len(items) * (sum(sizes) + sizes[last]))  # before progressions are unfolded
    intervals = {unit.name: unit.interval for unit in instance.machine.units}
    held = [intervals[name] - 1 for name in classes if intervals.get(name, 1) > 1]
    nodes = tuple(_node(item, sizes, last, held) for item in items)
    if len({node for node, _ in nodes}) != len(nodes):
        _bad("a node of the potential is given twice")
    return Potential(last, classes, thresholds, _whole(parts["front"], "front"), nodes)


def _node(value: object, sizes: Sequence[int], last_group: int, held: Sequence[int]) -> tuple[Node, Table]:
    parts = _table(value, "node", "kind", "label", "others", "last", "constant", "ports")
    label = None if parts["label"] is None else _wholes(parts["label"], "label", least=0)
    others, ports = _rows(parts["others"], "others", sizes), _rows(parts["ports"], "ports", held)
    constant = _whole(parts["constant"], "constant", -_MOST_COEFFICIENT, _MOST_COEFFICIENT)
    last = _coefficients(parts["last"], "last", sizes[last_group])
    return Node(_wholes(parts["kind"], "kind"), label), Table(others, last, constant, ports)


def _rows(value: object, name: str, sizes: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    rows = _list(value, name, len(sizes), len(sizes))
    return tuple(_coefficients(row, name, size) for row, size in zip(rows, sizes, strict=True))


def _coefficients(value: object, name: str, size: int) -> tuple[int, ...]:
    """So many numbers; [first, step, count] stands for `count` of them in arithmetic progression."""
    numbers: list[Any] = []
    for item in _list(value, name, most=size):
        if type(item) is list:
            first, step, count = _list(item, name, 3, 3)
            _check_coefficients(name, first, step)
            count = _whole(count, f"the length of a progression in {name}", LEAST_PROGRESSION, size - len(numbers))
            numbers += [first + step * n for n in range(count)]
        else:
            numbers.append(item)
    if len(numbers) != size:
        _bad(f"{name} has {len(numbers)} numbers, not {size}")
    _check_coefficients(name, *numbers)
    return tuple(numbers)


def _check_coefficients(name: str, *numbers: object) -> None:
    if any(type(number) is not int or abs(number) > _MOST_COEFFICIENT for number in numbers):
        _bad(f"{name} holds something that is not a whole number of at most {_MOST_DIGITS} digits")


# Types


def _bad(reason: str) -> NoReturn:
    raise Refused(f"not a bundle: {reason}")


def _dict(value: object) -> dict[str, Any]:
    if type(value) is not dict or any(type(key) is not str for key in value):
        _bad("an object was expected")
    return value


def _table(value: object, name: str, *keys: str, later: str = "") -> dict[str, Any]:
    """An object with exactly these keys; one that came `later` may be absent, which is an empty list."""
    table = _dict(value)
    if later:
        table, keys = {later: []} | table, (*keys, later)
    if missing := [key for key in keys if key not in table]:
        _bad(f"{name} lacks {missing[0]!r}")
    if unknown := sorted(set(table) - set(keys)):
        _bad(f"{name} has the unknown key {unknown[0]!r:.40}")
    return table


def _list(value: object, name: str, least: int = 1, most: int = MOST_INSTRUCTIONS) -> list[Any]:
    if type(value) is not list or not least <= len(value) <= most:
        _bad(f"{name} is not a list of {least}..{most} items")
    return value


def _text(value: object, name: str) -> str:
    if type(value) is not str or len(value) > _MOST_TEXT:
        _bad(f"{name} is not a text of at most {_MOST_TEXT} letters")
    return value


def _whole(value: object, name: str, least: int = 0, most: int = _MOST_CYCLES) -> int:
    if type(value) is not int or not least <= value <= most:
        _bad(f"{name} is not a whole number in {least}..{most}")
    return value


def _wholes(value: object, name: str, most: int = _MOST_CYCLES, least: int = 1) -> tuple[int, ...]:
    """A list of numbers 0..`most`, with at least `least` of them."""
    numbers = _list(value, name, least)
    if any(type(number) is not int or not 0 <= number <= most for number in numbers):
        _bad(f"{name} holds something that is not a whole number in 0..{most}")
    return tuple(numbers)


# JSON hooks


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    table = dict(pairs)
    if len(table) != len(pairs):
        raise ValueError("an object has a key twice")
    return table


def _int(digits: str) -> int:
    if len(digits) > _MOST_DIGITS:
        raise ValueError(f"a number of over {_MOST_DIGITS} digits")
    return int(digits)


def _float(digits: str) -> float:
    if not math.isfinite(number := float(digits)):
        raise ValueError("a number out of range")
    return number


def _constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")
