"""The state of the instances of a library and the claims of solvers, as tables: by family, or instance by instance."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from makespan.many.library.claims import BoundClaim
from makespan.many.library.judgement import InstanceStanding, standings
from makespan.many.spec import SpecQuestion
from makespan.report.lines import align_columns

SCHEMA = "makespan.benchmark/1"
KNOWN = "best known"
_EVERY = "all"
_TRIVIAL_SECONDS, _EASY_SECONDS = 0.1, 1.0


@dataclass(frozen=True, slots=True)
class FamilyRow:
    """The claims of a solver about a family.

    Args:
        claimed: the number of instances with a claim.
        exact: the number of instances whose bounds meet.
        median_gap: how far the upper bound is above the lower one, in percent of it, for instances with both.
        largest_gap: the largest of these gaps.
        seconds: the time of the claims with its best bounds, together.
    """

    family: str
    instances: int
    solver: str
    claimed: int
    exact: int
    median_gap: float | None
    largest_gap: float | None
    seconds: float


@dataclass(frozen=True, slots=True)
class InstanceRow:
    """The best bounds of an instance. `seconds` is the time of the slower of the claims with these bounds."""

    instance: str
    lower: int | None
    upper: int | None
    gap: float | None
    solver: str
    evidence: str
    seconds: float | None
    difficulty: str


LibraryRow = FamilyRow | InstanceRow


def family_rows(entries: Sequence[SpecQuestion], solvers: Mapping[str, Sequence[BoundClaim]]) -> Iterator[FamilyRow]:
    """Yield a row for each family and solver and, if there are several families, for all of them together."""
    names: dict[str, list[str]] = {}
    for entry in entries:
        names.setdefault(entry.family, []).append(entry.name)
    whole = {_EVERY: [entry.name for entry in entries]} if len(names) > 1 else {}
    for family, members in {**names, **whole}.items():
        for solver, claims in solvers.items():
            found = [standing for standing in standings(members, claims).values() if standing.claims]
            gaps = [standing.gap for standing in found if standing.gap is not None]
            yield FamilyRow(
                family,
                len(members),
                solver,
                len(found),
                sum(standing.is_solved for standing in found),
                median(gaps) if gaps else None,
                max(gaps, default=None),
                sum((claim.seconds for standing in found for claim in standing.best), start=0.0),
            )


def instance_rows(entries: Sequence[SpecQuestion], claims: Sequence[BoundClaim]) -> Iterator[InstanceRow]:
    """Yield a row for each instance, with the best bounds that are claimed."""
    for name, standing in standings([entry.name for entry in entries], claims).items():
        best, (lower, upper) = standing.best, standing.interval
        yield InstanceRow(
            name,
            lower,
            upper,
            standing.gap,
            " and ".join(dict.fromkeys(claim.who for claim in best)),
            "" if standing.upper is None else standing.upper.evidence or "",
            max((claim.seconds for claim in best), default=None),
            instance_difficulty(standing),
        )


def instance_difficulty(standing: InstanceStanding) -> str:
    """Return its difficulty: unknown, open, or by the time of the slower proof trivial, easy or hard."""
    if not standing.claims:
        return "unknown"
    if not standing.is_solved:
        return "open"
    seconds = max(claim.seconds for claim in standing.best)
    return "trivial" if seconds < _TRIVIAL_SECONDS else "easy" if seconds < _EASY_SECONDS else "hard"


def library_text(rows: Sequence[LibraryRow]) -> str:
    """Return the rows in columns, with numbers to the right."""
    cells = [_heads(rows), *(_cells(row) for row in rows)]
    return "\n".join(align_columns(cells, right=_numbers(rows)))


def library_markdown(rows: Sequence[LibraryRow]) -> str:
    """Return the rows as a table in Markdown."""
    heads, numbers = _heads(rows), _numbers(rows)
    line = ["---:" if number in numbers else "---" for number in range(len(heads))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (heads, line, *map(_cells, rows)))


def library_document(rows: Sequence[LibraryRow]) -> dict[str, Any]:
    """Return the rows as plain data. Gaps are percentages."""
    return {"schema": SCHEMA, "rows": [asdict(row) for row in rows]}


def _heads(rows: Sequence[LibraryRow]) -> list[str]:
    return [name.replace("_", " ") for name in asdict(rows[0])]


def _numbers(rows: Sequence[LibraryRow]) -> list[int]:
    types = rows[0].__dataclass_fields__.values()
    return [number for number, field in enumerate(types) if field.type is not str]


def _cells(row: LibraryRow) -> list[str]:
    return [_cell(name, value) for name, value in asdict(row).items()]


def _cell(name: str, value: str | float | None) -> str:
    if value is None:
        return ""
    if name.endswith("gap"):
        return f"{value:.1f} %"
    return f"{value:.2f}" if isinstance(value, float) else str(value)
