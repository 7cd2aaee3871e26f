"""How a command runs: its exit codes, and what Ctrl-C and SIGTERM do to it."""

import signal
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

from makespan.cli.progress import notice, progress
from makespan.model.deadline import Deadline, DeadlineOutcome
from makespan.model.gpu import GpuResult
from makespan.model.result import Result, Status, Step
from makespan.model.strings import NamedInstance

if TYPE_CHECKING:
    from makespan.proof.engines import Limits

DONE, NO, BAD_INPUT, UNDECIDED, NOT_MEASURED, BUG, INTERRUPTED = 0, 1, 2, 3, 4, 70, 130
GATE = {DeadlineOutcome.MET: DONE, DeadlineOutcome.MISSED: NO, DeadlineOutcome.UNDECIDED: UNDECIDED}
"""What a deadline makes of an answer."""

BROKEN_PIPE = 141
"""As of a process that SIGPIPE ends: whoever reads has had enough, and an answer that was not told is none."""

TERMINATED = 143
"""As of a process that SIGTERM ends, and else as `INTERRUPTED`."""

_STOPPING = signal.SIGINT, signal.SIGTERM
_stopped_by = list[int]()


def exit_code(result: Result | GpuResult, asked: NamedInstance | None = None, gate: Deadline | None = None) -> int:
    """Return the exit code of a result.

    It says whether the user stopped the search before it was exact, whether the result is not as expected, and with a
    deadline what that makes of it; else whether the result is exact or bounded.
    """
    if result.interrupted:  # first: what was not searched to its end says nothing about an expected value
        return INTERRUPTED
    if asked is not None and not asked.agrees(result.bounds):
        return NO
    if gate is not None:
        return GATE[gate.outcome(result.bounds)]
    return DONE if result.status is Status.EXACT else UNDECIDED


def worst_code(codes: Collection[int]) -> int:
    """Return the exit code of a command that has several answers.

    >>> worst_code([DONE, UNDECIDED, DONE]), worst_code([NO, UNDECIDED])
    (3, 1)
    """
    return next((code for code in (INTERRUPTED, NO, UNDECIDED) if code in codes), DONE)


@contextmanager
def stoppable() -> Iterator[None]:
    """Let SIGTERM, which `timeout` and batch systems send, do what Ctrl-C does within the block."""
    _stopped_by.clear()  # tests run several commands in one process
    before = signal.signal(signal.SIGTERM, _abort)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def interrupted_code() -> int:
    """Return the exit code of a command that was stopped: that of the signal that came first."""
    return TERMINATED if _stopped_by[:1] == [signal.SIGTERM] else INTERRUPTED


def _abort(number: int, frame: FrameType | None) -> NoReturn:
    _stopped_by.append(number)
    signal.default_int_handler(number, frame)


@contextmanager
def interruptible(limits: "Limits", *, quiet: bool = False) -> Iterator[None]:
    """Show progress within the block, and let the first Ctrl-C or SIGTERM ask the engines to stop.

    The engines then keep what they have proven. The second signal ends the command at once.
    """

    def interrupt(number: int, frame: FrameType | None) -> None:
        del frame
        _stopped_by.append(number)
        limits.interrupt()  # the engines look at it and return what they have proven
        for either in _STOPPING:  # a second signal must work even if an engine hangs
            signal.signal(either, _abort)
        notice("interrupted: finishing with the bounds so far (again to abort)")

    told = limits.improved

    def improved(step: Step) -> None:
        line.improved(step)
        told(step)

    before = [signal.signal(number, interrupt) for number in _STOPPING]
    try:
        with progress(quiet=quiet) as line:
            limits.progress, limits.improved = line, improved
            yield
    finally:
        for number, handler in zip(_STOPPING, before, strict=True):
            signal.signal(number, handler)
