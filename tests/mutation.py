"""What a forger does to a potential, or to a value of a document."""

import copy
import random
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from makespan.model.certificate import Potential, PotentialNode, PotentialTable


def copied_along(document: dict[str, Any], path: Iterable[Any]) -> tuple[dict[str, Any], Any]:
    """A copy, and what is at the end of the path in it; only what is on the path may be changed."""
    copied: dict[str, Any] = copy.copy(document)
    inside: Any = copied
    for key in path:
        inside[key] = copy.copy(inside[key])
        inside = inside[key]
    return copied, inside


def mutated(draw: random.Random, potential: Potential, unit: int) -> Potential:
    """Some coefficients changed by about `unit`; now and then also a node or the stops, or the front."""
    tables, nodes = list(potential.tables), list(potential.nodes)
    for _ in range(draw.choice((1, 1, 2, 5))):
        number = draw.randrange(len(tables))
        change = draw.choice((-1, 1)) * max(1, unit // draw.choice((1, 1, 3, 10, 100)))
        changed = _changed(draw, tables[number], change)
        if draw.random() < 0.5:
            tables[number] = changed
        else:
            at = draw.randrange(len(nodes))
            nodes[at] = nodes[at][0], len(tables)
            tables.append(changed)
    if draw.random() < 0.2:
        nodes = draw.choice((_dropped, _swapped, _moved, _stopping, _looking))(draw, nodes)
    thresholds = list(potential.thresholds)
    if draw.random() < 0.03:
        thresholds[draw.randrange(len(thresholds))] += draw.choice((-1, 1))
    front = draw.choice((potential.front,) * 9 + (draw.randrange(6),))
    return replace(potential, tables=tuple(tables), nodes=tuple(nodes), thresholds=tuple(thresholds), front=front)


_Nodes = list[tuple[PotentialNode, int]]


def _dropped(draw: random.Random, nodes: _Nodes) -> _Nodes:
    return draw.sample(nodes, max(1, len(nodes) - 1))


def _swapped(draw: random.Random, nodes: _Nodes) -> _Nodes:
    """Two nodes change tables."""
    a, b = draw.randrange(len(nodes)), draw.randrange(len(nodes))
    tables = {nodes[a][0]: nodes[b][1], nodes[b][0]: nodes[a][1]}
    return [(node, tables.get(node, table)) for node, table in nodes]


def _moved(draw: random.Random, nodes: _Nodes) -> _Nodes:
    """A table of one label becomes that of another."""
    node, _ = draw.choice(nodes)
    if node.label is None:
        return nodes
    label = draw.randrange(-2, 3)
    return [(replace(n, label=label) if n == node else n, t) for n, t in nodes if n != replace(node, label=label)]


def _stopping(draw: random.Random, nodes: _Nodes) -> _Nodes:
    """A situation becomes a stop, with the table of any of its labels."""
    node, table = draw.choice(nodes)
    situation = replace(node, label=None)
    return [*((n, t) for n, t in nodes if replace(n, label=None) != situation), (situation, table)]


def _looking(draw: random.Random, nodes: _Nodes) -> _Nodes:
    """A stop becomes none, with its table for all labels or that of another."""
    node, table = draw.choice(nodes)
    situation = replace(node, label=None)
    kept = [(n, t) for n, t in nodes if replace(n, label=None) != situation]
    numbers = [table, table, draw.choice(nodes)[1]]
    return [*kept, *((replace(situation, label=label), draw.choice(numbers)) for label in range(-2, 3))]


def _changed(draw: random.Random, table: PotentialTable, change: int) -> PotentialTable:
    what = draw.randrange(5 if any(table.ports) else 4)
    if what == 0:
        return replace(table, constant=table.constant + change)
    if what == 1:
        return replace(table, last=tuple(value + change for value in table.last))
    if what == 2:
        last = list(table.last)
        last[draw.randrange(len(last))] += change
        return replace(table, last=tuple(last))
    rows = [list(row) for row in (table.others if what == 3 else table.ports)]
    row = draw.choice([row for row in rows if row])
    row[draw.randrange(len(row))] += change
    changed = tuple(map(tuple, rows))
    return replace(table, others=changed) if what == 3 else replace(table, ports=changed)
