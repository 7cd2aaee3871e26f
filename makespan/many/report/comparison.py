"""A comparison as a table for a terminal, as CSV, and as JSON, schema `makespan.comparison/2`."""

import csv
import io
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from makespan.many.study.comparison import NOT_COMPUTED, BestCase, Comparison, ComparisonPoint, PointResult
from makespan.model.assumptions import Assumption
from makespan.model.result import Bounds, Status, Upper
from makespan.model.wording import pessimistic_name
from makespan.report.result.document import machine_document
from makespan.report.result.text import ResultTable, count_states, excess_percent, interval_text
from makespan.version import versions

SCHEMA = "makespan.comparison/2"
COLUMNS = (
    "warps", "quantity", "value", "status", "lower", "lower_evidence", "upper", "upper_evidence", "pessimistic",
    "pessimistic_evidence", "excess_percent_least", "excess_percent_most", "best_status", "best_lower",
    "best_lower_evidence", "best_upper", "best_upper_evidence", "engine", "seconds",
)  # fmt: skip
"""The columns of the CSV. What is not known, or was not asked for, is empty."""


def comparison_subject(comparison: Comparison) -> str:
    """Return one line: the warps and the machines."""
    first, machine, axis = comparison.points[0].instance, comparison.machine, comparison.axis
    blocks = f" in {first.blocks} blocks" if first.blocks > 1 else ""
    varied = "" if axis is None else f" with {axis.name}={_values_text(axis.values)}"
    warps = f"{_values_text(comparison.warps)} x {first.groups[0].program}{blocks}"
    return f"{warps} on machine {machine}{varied}"


def _values_text(values: Sequence[int]) -> str:
    """Return the values as `8`, `1..48` if none between is left out, or else `1,20,400`."""
    if len(values) > 1 and values[-1] - values[0] == len(values) - 1:
        return f"{values[0]}..{values[-1]}"
    return ",".join(map(str, values))


def comparison_summary(comparison: Comparison) -> str:
    """Return one line: how far M^L + M^C is above the worst case, over all computed points."""
    found = comparison.found
    if not found:
        return "no point was computed"
    least, most = min(one.excess[0] for one in found), max(one.excess[1] for one in found)
    above = f"{most:.1f} %" if f"{least:.1f}" == f"{most:.1f}" else f"{least:.1f} to {most:.1f} %"
    return f"{pessimistic_name(comparison.machine)} is {above} above the worst case"


def status_counts(comparison: Comparison) -> str:
    """Return one line: how many points are exact, bounded and not computed."""
    states = [point.status for point in comparison.points]
    order = [*map(str, Status), NOT_COMPUTED]
    said = count_states("point", sorted(states, key=order.index), comparison.caveats)
    return f"{said}{' (interrupted)' * comparison.interrupted}"


def comparison_table(comparison: Comparison) -> str:
    """Return a row per number of warps. With an axis, a column per value has cycles first and then percent."""
    if comparison.axis is None:
        return "\n".join(_curve_rows(comparison))
    cycles = _matrix(comparison, lambda found: interval_text(found.worst))
    percent = _matrix(comparison, _percent)
    return "\n".join(
        [
            f"worst case in cycles, by warps and {comparison.axis.label}; A..B: bounded; -: not computed",
            *cycles,
            f"{pessimistic_name(comparison.machine)} above it in percent;"
            " >=: at least, because the worst case is only bounded",
            *percent,
        ]
    )


def _percent(found: PointResult) -> str:
    return excess_percent(found.worst, found.pessimistic)


def _curve_rows(comparison: Comparison) -> Iterator[str]:
    best = any(found.best_case for found in comparison.found)
    table = ResultTable(pessimistic_name(comparison.machine), best)
    yield table.head()
    for point in comparison.points:
        found = point.found
        if found is None:
            yield table.unknown(point.warps, point.status)
            continue
        fastest = None if found.best_case is None else found.best_case.bounds
        yield table.row(point.warps, found.worst, found.pessimistic, found.upper_evidence, best=fastest)


def _matrix(comparison: Comparison, told: Callable[[PointResult], str]) -> Iterator[str]:
    if comparison.axis is None:
        raise ValueError("a matrix needs an axis")
    cells = {
        (point.warps, point.value): "-" if point.found is None else told(point.found) for point in comparison.points
    }
    values = comparison.axis.values
    width = 2 + max(map(len, (*cells.values(), *map(str, values))))
    yield f"{'warps':>5}" + "".join(f"{value:>{width}}" for value in values)
    for warps in comparison.warps:
        yield f"{warps:>5}" + "".join(f"{cells[warps, value]:>{width}}" for value in values)


def comparison_json(comparison: Comparison) -> str:
    """Return one object, schema `makespan.comparison/2`. What is unknown is null."""
    axis, first = comparison.axis, comparison.points[0].instance
    document = {
        "schema": SCHEMA,
        "name": comparison.name,
        "program": first.groups[0].program.letters or str(first.groups[0].program),
        "blocks": first.blocks,
        "machine": {"name": comparison.machine.name, **machine_document(comparison.machine)},
        "axis": None if axis is None else {"name": axis.name, "label": axis.label, "values": axis.values},
        "interrupted": comparison.interrupted,
        "caveats": comparison.caveats,
        "assumptions": [note.document for note in comparison.assumptions],
        "points": [_point(point, comparison.assumptions) for point in comparison.points],
        "versions": versions(),
    }
    return json.dumps(document, indent=1) + "\n"


def _point(point: ComparisonPoint, known: Sequence[Assumption]) -> dict[str, Any]:
    machine, found = point.instance.machine, point.found
    asked = {
        "warps": point.warps,
        "value": point.value,
        "machine": {"name": machine.name, **machine_document(machine)},
        "status": point.status,
    }
    if found is None:
        return {**asked, "worst_case": None, "pessimistic": None, "excess_percent": None, "best_case": None}
    best = found.best_case
    return {
        **asked,
        "worst_case": _interval(found.worst, "witness", found.upper_evidence),
        "pessimistic": {"value": found.pessimistic, "evidence": str(Upper.PESSIMISTIC)},
        "excess_percent": dict(zip(("least", "most"), found.excess, strict=True)),
        "best_case": None if best is None else _best_interval(best),
        "engine": found.engine,
        "seconds": round(found.seconds, 6),
        "assumptions": [note.document for note in found.assumptions if note not in known],
    }


def _interval(bounds: Bounds, lower: str, upper: str) -> dict[str, Any]:
    evidence = {"lower": lower, "upper": str(upper)}
    return {"lower": bounds.lower, "upper": bounds.upper, "status": str(bounds.status), "evidence": evidence}


def _best_interval(best: BestCase) -> dict[str, Any]:
    return _interval(best.bounds, best.lower_evidence, best.upper_evidence)


def comparison_csv(comparison: Comparison) -> str:
    """Return a header and a row per point."""
    text = io.StringIO()
    rows = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    rows.writeheader()
    for point in comparison.points:
        axis = {} if comparison.axis is None else {"quantity": comparison.axis.name, "value": point.value}
        known = {} if point.found is None else _columns(point.found)
        rows.writerow({"warps": point.warps, "status": point.status, **axis, **known})
    return text.getvalue()


def _columns(found: PointResult) -> dict[str, Any]:
    least, most = found.excess
    best = found.best_case
    return {
        **_interval_columns("", _interval(found.worst, "witness", found.upper_evidence)),
        "pessimistic": found.pessimistic,
        "pessimistic_evidence": Upper.PESSIMISTIC,
        "excess_percent_least": f"{least:.4f}",
        "excess_percent_most": f"{most:.4f}",
        "engine": found.engine,
        "seconds": f"{found.seconds:.3f}",
        **({} if best is None else _interval_columns("best_", _best_interval(best))),
    }


def _interval_columns(prefix: str, interval: dict[str, Any]) -> dict[str, Any]:
    evidence = {f"{prefix}{side}_evidence": name for side, name in interval["evidence"].items()}
    return {**{f"{prefix}{key}": interval[key] for key in ("status", "lower", "upper")}, **evidence}
