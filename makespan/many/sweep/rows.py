"""The table of a sweep as rows: a question with its answer, with why it has none, or with neither."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from makespan.host.errors import InputError, did_you_mean
from makespan.many.sweep.store import AnswerStore, StoredQuestion
from makespan.model.result import Bounds

FAILED, MISSING = "failed", "missing"
"""The reasons for no answer: all attempts failed, or there was no attempt yet."""

CONTRADICTED = "contradicted by another answer"
"""A caveat: one of two proofs is wrong, so neither number is to be used."""

_NUMBERS = re.compile(r"(\d+)")


@dataclass(frozen=True, slots=True)
class SweepRow:
    """A question of a sweep and what is known of it.

    Args:
        question: its options as text or numbers; several values of one are one text.
        status: `exact`, `bounded`, `FAILED` or `MISSING`.
        worst: cycles, proven; None where there is no answer.
        outcome: of a deadline, where the question has one.
        reason: the last attempt, where there is no answer.
    """

    question: Mapping[str, Any]
    key: str
    status: str
    worst: Bounds | None = None
    best: Bounds | None = None
    evidence: str = ""
    outcome: str = ""
    caveats: tuple[str, ...] = ()
    seconds: float | None = None
    digest: str = ""
    attempts: int = 0
    reason: str = ""


def sweep_rows(store: AnswerStore) -> tuple[SweepRow, ...]:
    """Return all questions, in an order that does not depend on who was done first.

    Raises:
        InputError: a value in the table that no answer has.
    """
    contradicted = store.contradicted()
    found = (_row(asked, (CONTRADICTED,) if asked.key in contradicted else ()) for asked in store.asked())
    return tuple(sorted(found, key=lambda row: sorted_as(repr(sorted(row.question.items())))))


def sorted_as(value: object) -> tuple[tuple[int, int | str], ...]:
    """Return a key that sorts texts as people count.

    >>> sorted(["C=10,L=1", "C=2,L=1"], key=sorted_as)
    ['C=2,L=1', 'C=10,L=1']
    """
    # Numbers and texts alternate, so that equal places are always of one type.
    parts = enumerate(_NUMBERS.split(str(value)))
    return tuple((0, int(part[:4000])) if at % 2 else (1, part) for at, part in parts)


def _row(asked: StoredQuestion, caveats: tuple[str, ...]) -> SweepRow:
    question = {name: _plain_value(value) for name, value in asked.question.items()}
    document, failure = asked.document, asked.failure
    if document is None:
        reason = "" if failure is None else failure.reason
        return SweepRow(question, asked.key, FAILED if failure else MISSING, attempts=asked.attempts, reason=reason)
    try:
        worst, best, deadline = (
            _bounds([document["lower"], document["upper"]]),
            document["best_case"],
            document.get("deadline"),
        )
        return SweepRow(
            question,
            asked.key,
            str(worst.status),
            worst,
            None if best is None else _bounds(best if isinstance(best, list) else [best, best]),
            str(document["evidence"]["upper"]),
            "" if deadline is None else str(deadline["outcome"]),
            (*caveats, *map(str, document["caveats"])),
            float(document["seconds"]),
            str(asked.digest),
            asked.attempts,
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"key {asked.key:.64}: an answer that is none: {error!r:.100}") from None


def _plain_value(value: object) -> Any:
    """Return a value as one cell holds it."""
    if isinstance(value, list):
        return " ".join(map(str, value))
    return value if isinstance(value, str | int | float) and not isinstance(value, bool) else str(value).lower()


def _bounds(ends: Sequence[Any]) -> Bounds:
    lower, upper = ends
    if not (type(lower) is int and type(upper) is int and 0 <= lower <= upper):
        raise ValueError(f"no interval of cycles: {ends}")
    return Bounds(lower, upper)


def options(found: Iterable[SweepRow]) -> tuple[str, ...]:
    """Return all that some question says, in alphabetical order."""
    return tuple(sorted({name for row in found for name in row.question}))


def columns(found: Sequence[SweepRow]) -> dict[str, list[Any]]:
    """A list for each column, None where a row has nothing: options first, and what a number is worth beside it."""
    table: dict[str, list[Any]] = {name: [row.question.get(name) for row in found] for name in options(found)}
    ends = {"": "worst", "best_": "best"}
    told: dict[str, list[Any]] = {
        "status": [row.status for row in found],
        **{
            f"{prefix}{end}": [None if (each := getattr(row, field)) is None else getattr(each, end) for row in found]
            for prefix, field in ends.items()
            for end in ("lower", "upper")
        },
        "evidence": [row.evidence or None for row in found],
        "deadline_outcome": [row.outcome or None for row in found],
        "caveats": ["; ".join(row.caveats) or None for row in found],
        "seconds": [row.seconds for row in found],
        "attempts_failed": [row.attempts for row in found],
        "reason": [row.reason or None for row in found],
        "digest": [row.digest or None for row in found],
        "key": [row.key for row in found],
    }
    return table | told


def choose_rows(found: Sequence[SweepRow], wanted: Iterable[tuple[str, str]]) -> tuple[SweepRow, ...]:
    """Return the rows in which every option has its value, as text.

    Raises:
        InputError: an option that no question says, or no row that is left.
    """
    left = tuple(found)
    for name, value in wanted:
        check_option(name, found)
        left = tuple(row for row in left if str(row.question.get(name, "")) == value)
        if not left:
            values = sorted({str(row.question.get(name, "")) for row in found}, key=sorted_as)
            raise InputError(f"no question has {name} = {value!r:.80}: there are {', '.join(values)[:200]}")
    return left


def check_option(name: str, found: Iterable[SweepRow]) -> None:
    """Refuse a name that no question says.

    Raises:
        InputError: it is none.
    """
    said = options(found)
    if name not in said:
        raise InputError(f"no question says {name!r:.60}{did_you_mean(name, said)}; there are {', '.join(said)}")
