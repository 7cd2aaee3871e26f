"""Tables with made-up answers."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from makespan.many.sweep.job import FailureCause, JobAnswer, JobFailure, JobOutcome, SweepJob
from makespan.many.sweep.rows import SweepRow, sweep_rows
from makespan.many.sweep.store import open_store

Said = tuple[int, int] | str | None
"""What is known: bounds, why there is no answer, or nothing."""


def document(lower: int, upper: int) -> dict[str, Any]:
    return {
        "status": "exact" if lower == upper else "bounded",
        "lower": lower,
        "upper": upper,
        "best_case": None,
        "evidence": {"lower": "witness", "upper": "theorem-e"},
        "caveats": ["if every instruction takes one cycle"],
        "seconds": upper / 100,
    }


def table(path: Path, said: Sequence[tuple[Mapping[str, Any], Said]]) -> tuple[SweepRow, ...]:
    """Write a table, in this order, and read it."""
    jobs = [SweepJob(question, f"key {sorted(question.items())}") for question, _ in said]
    with open_store(path, create=True) as store:
        store.plan(jobs)
        for job, (_, known) in zip(jobs, said, strict=True):
            if isinstance(known, str):
                store.keep(JobOutcome(job, None, (JobFailure(FailureCause.REFUSED, known, 0.0),)))
            elif known is not None:
                store.keep(JobOutcome(job, JobAnswer(document(*known), "d")))
    with open_store(path) as store:
        return sweep_rows(store)
