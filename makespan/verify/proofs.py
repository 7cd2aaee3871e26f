"""The evidence in a bundle, read: certificates, weights of pairs, and the bounds of phases and partitions."""

import re
from collections.abc import Sequence
from typing import Any

from makespan.model.certificate import FINISHED_LABEL, Certificate, Potential, PotentialNode, PotentialTable, Weights
from makespan.model.instance import Instance
from makespan.model.result import Upper, UpperBound
from makespan.verify import delays, fields, partitions, phases
from makespan.verify.refusal import ProofSteps, Refused
from makespan.verify.rule import Pieces

LEAST_PROGRESSION = 4
_MOST_COEFFICIENT = 10**fields.MOST_DIGITS
_COEFFICIENTS_PER_NODE = 16  # a node takes as much memory

_NAME = re.compile("[a-z][a-z0-9-]{0,39}")


def name_of_proof(value: object) -> str:
    """Return the name of an `Upper`, or of an engine; then the bound must follow from something else."""
    # No engine is called a theorem, so a theorem that is not known here is refused.
    name = fields.text(value, "evidence")
    if not _NAME.fullmatch(name) or (name.startswith("theorem-") and name not in tuple(Upper)):
        raise Refused(f"unknown evidence: {name!r:.40}")
    return name


def phase_bounds(value: object, instance: Instance, room: ProofSteps) -> Pieces:
    """Return the phases with their claimed bounds; `room` counts coefficients."""
    return _pieces(value, "phases", instance, room)


def partition_bounds(value: object, instance: Instance, room: ProofSteps) -> Pieces:
    """Return the partitions with their claimed bounds; `room` counts coefficients."""
    return _pieces(value, "partitions", instance, room)


def _pieces(value: object, name: str, instance: Instance, room: ProofSteps) -> Pieces:
    entries = fields.items(value, name, 0)
    if not entries:
        return ()
    # the checker cuts the instance itself: a bundle only says what it claims of each different question, in order
    made, cut = ("barriers make", phases) if name == "phases" else ("the machine makes", partitions)
    questions = cut.questions(instance) or []
    different = list(dict.fromkeys(questions))
    if len(different) != len(entries):
        raise Refused(f"{len(entries)} {name} are given, but {made} {len(different)} different ones")
    said = {
        question: _piece(entry, name[:-1], question, room) for entry, question in zip(entries, different, strict=True)
    }
    return tuple((question, said[question]) for question in questions)


def _piece(value: object, name: str, question: Instance, room: ProofSteps) -> UpperBound:
    some = ["partitions"] if name == "phase" and "partitions" in fields.entries(value) else []
    parts = fields.table(value, name, "upper", "evidence", "certificate", *some, later="weights")
    proof = None if parts["certificate"] is None else certificate(parts["certificate"], question, room)
    upper, evidence = fields.whole(parts["upper"], "upper", 1), name_of_proof(parts["evidence"])
    said = (bound for _, bound in partition_bounds(parts.get("partitions", []), question, room))
    return UpperBound(upper, evidence, proof, weights(parts["weights"], question, room), tuple(said))


def weights(value: object, instance: Instance, room: ProofSteps) -> tuple[Weights, ...]:
    """Return weights of pairs that have the right shape; whether they prove anything is for `pairs` to say."""
    return tuple(_set(item, instance, room) for item in fields.items(value, "weights", 0))


def _set(value: object, instance: Instance, room: ProofSteps) -> Weights:
    parts = fields.table(value, "weights", "classes", "caps", "groups", later="thresholds")
    classes = tuple(fields.text(name, "class") for name in fields.items(parts["classes"], "classes", 0))
    caps = fields.items(parts["caps"], "caps", len(classes), len(classes))
    thresholds = fields.items(parts["thresholds"], "thresholds", 0, len(classes))
    _check_coefficients("caps", *caps, *thresholds)
    rows = fields.items(parts["groups"], "groups", len(instance.groups), len(instance.groups))
    room.spend(sum(group.program.end for group in instance.groups))
    reserves = tuple(_row(row, group.program.end, room) for row, group in zip(rows, instance.groups, strict=True))
    return Weights(classes, tuple(caps), reserves, tuple(thresholds))


def _row(value: object, places: int, room: ProofSteps) -> tuple[tuple[int, ...], ...]:
    found: list[tuple[int, ...]] = []
    for item in fields.items(value, "weights", places, places):
        numbers = item if type(item) is list else [item]
        room.spend(len(numbers))
        _check_coefficients("weights", *numbers)
        found.append(tuple(numbers))
    return tuple(found)


def certificate(value: object, instance: Instance, room: ProofSteps) -> Certificate:
    """Return potentials that have the right shape; whether they prove anything is for `potential` to say."""
    parts = fields.table(value, "certificate", "upper", "potentials")
    potentials = fields.items(parts["potentials"], "potentials", most=len(instance.groups))
    sizes = delays.sizes(instance)
    upper = fields.whole(parts["upper"], "upper", 1)
    return Certificate(upper, tuple(_potential(item, instance, sizes, room) for item in potentials))


def _potential(value: object, instance: Instance, sizes: Sequence[int], room: ProofSteps) -> Potential:
    parts = fields.table(value, "potential", "last_group", "classes", "thresholds", "front", "tables", "nodes")
    last = fields.whole(parts["last_group"], "last_group", 0, len(instance.groups) - 1)
    classes = tuple(fields.text(name, "class") for name in fields.items(parts["classes"], "classes"))
    thresholds = fields.wholes(parts["thresholds"], "thresholds")
    items, entries = (fields.items(parts[name], name, 0) for name in ("tables", "nodes"))
    # before progressions are unfolded
    room.spend(len(items) * (sum(sizes) + sizes[last]) + len(entries) * _COEFFICIENTS_PER_NODE)
    intervals = {unit.name: unit.interval for unit in instance.machine.units}
    held = [intervals[name] - 1 for name in classes if intervals.get(name, 1) > 1]
    tables = tuple(_table(item, sizes, last, held) for item in items)
    nodes = tuple(_node(entry, len(classes), len(tables)) for entry in entries)
    if len({node for node, _ in nodes}) != len(nodes):
        fields.bad("a node of the potential is given twice")
    return Potential(last, classes, thresholds, fields.whole(parts["front"], "front"), tables, nodes)


def _table(value: object, sizes: Sequence[int], last_group: int, held: Sequence[int]) -> PotentialTable:
    parts = fields.table(value, "table", "others", "last", "constant", "ports")
    others, ports = _rows(parts["others"], "others", sizes), _rows(parts["ports"], "ports", held)
    constant = fields.whole(parts["constant"], "constant", -_MOST_COEFFICIENT, _MOST_COEFFICIENT)
    return PotentialTable(others, _coefficients(parts["last"], "last", sizes[last_group]), constant, ports)


def _node(value: object, classes: int, tables: int) -> tuple[PotentialNode, int]:
    last, kind, label, table = fields.items(value, "node", 4, 4)
    last = None if last is None else fields.whole(last, "the last warp's class", 0, classes - 1)
    label = None if label is None else fields.whole(label, "label", FINISHED_LABEL, classes - 1)
    return PotentialNode(last, fields.wholes(kind, "kind"), label), fields.whole(table, "table", 0, tables - 1)


def _rows(value: object, name: str, sizes: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    rows = fields.items(value, name, len(sizes), len(sizes))
    return tuple(_coefficients(row, name, size) for row, size in zip(rows, sizes, strict=True))


def _coefficients(value: object, name: str, size: int) -> tuple[int, ...]:
    """Return `size` numbers; [first, step, count] stands for `count` of them in arithmetic progression."""
    numbers: list[Any] = []
    for item in fields.items(value, name, most=size):
        if type(item) is list:
            first, step, count = fields.items(item, name, 3, 3)
            _check_coefficients(name, first, step)
            length, room = f"the length of a progression in {name}", size - len(numbers)
            count = fields.whole(count, length, LEAST_PROGRESSION, room)
            numbers += [first + step * n for n in range(count)]
        else:
            numbers.append(item)
    if len(numbers) != size:
        fields.bad(f"{name} has {len(numbers)} numbers, not {size}")
    _check_coefficients(name, *numbers)
    return tuple(numbers)


def _check_coefficients(name: str, *numbers: object) -> None:
    if any(type(number) is not int or abs(number) > _MOST_COEFFICIENT for number in numbers):
        fields.bad(f"{name} holds something that is not a whole number of at most {fields.MOST_DIGITS} digits")
