"""Data of the pictures of a sweep: worst cases over one option or two, and how many were done in which time."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from makespan.host.errors import InputError
from makespan.many.sweep.rows import SweepRow, check_option, options, sorted_as
from makespan.model.result import Bounds, Status

MOST_CURVES, MOST_CELLS = 8, 200
"""As many looks as there are to tell apart, and cells beside each other."""


class SweepCurve(NamedTuple):
    """The answers of a group by the value of an option, rising; None stands for a missing answer."""

    name: str
    points: tuple[tuple[float, Bounds | None], ...]


class SweepMap(NamedTuple):
    """Worst cases over two options, by a pair of values; a pair that is not in `cells` is not known."""

    columns: tuple[Any, ...]
    rows: tuple[Any, ...]
    cells: dict[tuple[Any, Any], Bounds]


class AnswerTimes(NamedTuple):
    """The times of a group: how many questions it has, and the seconds of all answers and of exact ones, rising."""

    name: str
    questions: int
    answered: tuple[float, ...]
    exact: tuple[float, ...]


def sweep_curves(found: Sequence[SweepRow], over: str, by: str | None) -> tuple[SweepCurve, ...]:
    """Return worst cases over an option that is a number, with a curve for each value of another one.

    Raises:
        InputError: an option that no question says, a value that is no number, too many groups, or questions that
            differ in something else.
    """
    check_option(over, found)
    groups = _groups(found, by)
    made = []
    for name, group in groups.items():
        _one_for_each(group, (over,), by)
        points = {_number(over, row): row.worst for row in group}
        made.append(SweepCurve(name, tuple(sorted(points.items(), key=lambda point: point[0]))))
    return tuple(made)


def heat_map(found: Sequence[SweepRow], over: tuple[str, str]) -> SweepMap:
    """Return worst cases over two options.

    Raises:
        InputError: as `sweep_curves`.
    """
    axes = []
    for name in over:
        check_option(name, found)
        axes.append(tuple(sorted({row.question.get(name, "") for row in found}, key=sorted_as)))
        if len(axes[-1]) > MOST_CELLS:
            raise InputError(f"{name} has {len(axes[-1])} values, and at most {MOST_CELLS} fit: choose some by --where")
    _one_for_each(found, over, None)
    cells = {
        (row.question.get(over[0], ""), row.question.get(over[1], "")): row.worst
        for row in found
        if row.worst is not None
    }
    return SweepMap(axes[0], axes[1], cells)


def answer_times(found: Sequence[SweepRow], by: str | None) -> tuple[AnswerTimes, ...]:
    """Return how long answers took, by the value of an option.

    Raises:
        InputError: an option that no question says, or too many groups.
    """
    return tuple(
        AnswerTimes(name, len(group), _seconds(group, list(Status)), _seconds(group, [Status.EXACT]))
        for name, group in _groups(found, by).items()
    )


def _seconds(group: Sequence[SweepRow], states: Sequence[Status]) -> tuple[float, ...]:
    return tuple(sorted(row.seconds for row in group if row.seconds is not None and row.status in states))


def _groups(found: Sequence[SweepRow], by: str | None) -> dict[str, list[SweepRow]]:
    if by is None:
        return {"": list(found)}
    check_option(by, found)
    values = sorted({str(row.question.get(by, "")) for row in found}, key=sorted_as)
    if len(values) > MOST_CURVES:
        raise InputError(f"--by {by}: {len(values)} groups, and at most {MOST_CURVES} can be told apart: use --where")
    names = {value: f"{by} {value}" if value else f"without {by}" for value in values}
    return {names[value]: [row for row in found if str(row.question.get(by, "")) == value] for value in values}


def _number(name: str, row: SweepRow) -> float:
    try:
        return float(row.question[name])
    except (KeyError, TypeError, ValueError):
        raise InputError(
            f"--over {name}: {row.question.get(name, '')!r:.60} is no number; see --by and --where"
        ) from None


def _one_for_each(found: Sequence[SweepRow], over: Sequence[str], by: str | None) -> None:
    """Refuse rows that differ in what the picture does not show."""
    shown = {*over, by}
    varied = [
        name
        for name in options(found)
        if name not in shown and len({str(row.question.get(name, "")) for row in found}) > 1
    ]
    # Two answers in one place would hide one of them.
    places = [tuple(str(row.question.get(name, "")) for name in over) for row in found]
    if len(set(places)) < len(places):
        said = ", ".join(f"--where {name}=..." for name in varied) or "--where"
        raise InputError(f"several questions have one place in the picture: choose by {said}, or tell apart by --by")
