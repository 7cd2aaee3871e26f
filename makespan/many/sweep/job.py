"""Jobs of a sweep and their outcomes: plain values that go from process to process."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


@dataclass(frozen=True, slots=True)
class SweepJob:
    """A question and its key, which equal questions share."""

    question: Mapping[str, Any]
    key: str


class FailureCause(StrEnum):
    """The reason why a job has no answer.

    Args:
        REFUSED: the question is not understood, or nothing is proven of its like.
        DIED: the process that was at it came to its end, for want of memory as a rule.
        TIME: the wall limit of a job was up.
        CHANGED: a file was another one when it was read than when the key was made, or is on another machine.
        BUG: an exception that is not raised on purpose, or two proofs that contradict each other.
    """

    REFUSED = "refused"
    DIED = "died"
    TIME = "time"
    CHANGED = "changed"
    BUG = "bug"


@dataclass(frozen=True, slots=True)
class JobFailure:
    """An attempt without an answer; the reason is one line."""

    cause: FailureCause
    reason: str
    seconds: float


@dataclass(frozen=True, slots=True)
class JobAnswer:
    """An answer as data: what `--format json` prints, the digest of its bundle, and the bundle if it was wanted."""

    document: Mapping[str, Any]
    digest: str
    bundle: str | None = None


@dataclass(frozen=True, slots=True)
class JobOutcome:
    """The outcome of a job: an answer, or None after the last attempt that failed; with all failed attempts."""

    job: SweepJob
    found: JobAnswer | None
    failures: tuple[JobFailure, ...] = ()
