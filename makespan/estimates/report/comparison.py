"""What is proven for one SM and what models estimate for a launch, kept apart: schema `makespan.estimates/1`."""

import platform
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from makespan.estimates import Estimate
from makespan.estimates.report import estimate as single
from makespan.model.wording import promise_words
from makespan.proof.policy_gap import PolicyGap
from makespan.report import policy_gap
from makespan.report.lines import align_columns
from makespan.report.result import text
from makespan.report.result.document import result_document
from makespan.version import __version__

SCHEMA = "makespan.estimates/1"
PROVEN = "proven, for one SM and every work-conserving scheduler"
ESTIMATED = "estimates, not bounds, for the whole launch"
_APART = (
    "these numbers answer different questions: a proven one is of so many warps on one SM, in cycles of its machine;"
    " an estimate is of all blocks on a GPU, in cycles of its clock"
)


@dataclass(frozen=True, slots=True)
class Estimates:
    """The two sides of a comparison.

    Args:
        launch: what is launched, in words.
        gpu: its name, and what is known of it in a few words.
        gap: best case, runs of policies and worst case of one SM.
        settings: what the policies leave open, in words.
        found: by method.
        missing: by method that can say nothing, what it lacks.
    """

    launch: str
    gpu: str
    gap: PolicyGap
    settings: str
    found: Mapping[str, Estimate]
    missing: Mapping[str, str]


def report(estimates: Estimates) -> str:
    """Return the whole comparison in words."""
    return "\n".join(
        [
            f"launch: {estimates.launch}",
            "",
            f"{PROVEN}{promise_words(estimates.gap.result.caveats)}:",
            *(f"  {line}" for line in _proven(estimates)),
            "",
            f"{ESTIMATED} on {estimates.gpu}:",
            *(f"  {line}" for line in _estimate_lines(estimates)),
            "",
            *(f"warning ({name}): {said}" for name, one in estimates.found.items() for said in one.warnings),
            _APART,
            text.verdict_line(estimates.gap.result),
        ]
    )


def document(estimates: Estimates) -> dict[str, Any]:
    """Return the same as plain data."""
    return {
        "schema": SCHEMA,
        "launch": estimates.launch,
        "gpu": estimates.gpu,
        "proven": result_document(estimates.gap.result),
        "runs": policy_gap.runs_document(estimates.gap),
        "estimates": [single.document(one) for one in estimates.found.values()],
        "missing": dict(estimates.missing),
        "versions": {"makespan": __version__, "python": platform.python_version()},
    }


def _proven(estimates: Estimates) -> Iterator[str]:
    yield text.subject_line(estimates.gap.result)
    yield estimates.settings
    yield from policy_gap.gap_table(estimates.gap).splitlines()


def _estimate_lines(estimates: Estimates) -> Iterator[str]:
    width = max((len(name) for name in (*estimates.found, *estimates.missing)), default=0)
    rows = [(" " * width, "cycles", "seconds", "limited by")]
    for name, one in estimates.found.items():
        rows.append((name, _number(one.cycles), _number(one.seconds), one.limiting))
    if estimates.found:
        yield from align_columns(rows, right=(1, 2))
    yield from (f"{name:<{width}}  says nothing: {lacks}" for name, lacks in estimates.missing.items())


def _number(value: float | None) -> str:
    return "-" if value is None else single.number(value)
