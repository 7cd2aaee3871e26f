"""A deadline for one makespan, and the outcome of a proven interval against it."""

import re
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from makespan.host.errors import InputError
from makespan.model.result import Bounds
from makespan.model.units import SECONDS, duration, frequency, shown_frequency, shown_time, ticks_down

_CYCLES = re.compile(r"(?P<number>[0-9]{1,18}) ?cycles?")
_PART = re.compile(r"[0-9]{1,18}\.[0-9]{1,18} ?cycles?")
_BARE = re.compile(r"[0-9.]{1,18}")


class DeadlineOutcome(StrEnum):
    """The outcome of a comparison of the worst case with a deadline."""

    MET = "met"
    """the proven upper bound is no later"""
    MISSED = "missed"
    """a schedule that was found is later"""
    UNDECIDED = "undecided"
    """the deadline lies between the two"""


@dataclass(frozen=True, slots=True)
class Deadline:
    """A deadline after the start of the warps.

    Args:
        cycles: The last whole cycle that is in time; a makespan is in time if it is no more.
        seconds: The time as it was given, or that of the cycles at `clock`; None without one.
        clock: The clock in hertz; it may be None for a deadline in cycles.
    """

    cycles: int
    seconds: Fraction | None = None
    clock: Fraction | None = None

    def __str__(self) -> str:
        if self.seconds is None or self.clock is None:
            return _cycles(self.cycles)
        return f"{shown_time(self.seconds)}, {_cycles(self.cycles)} at {shown_frequency(self.clock)}"

    def outcome(self, bounds: Bounds) -> DeadlineOutcome:
        """Return what a proven interval says.

        >>> [Deadline(10).outcome(bounds) for bounds in (Bounds(8, 10), Bounds(11, 12), Bounds(9, 11))]
        [<DeadlineOutcome.MET: 'met'>, <DeadlineOutcome.MISSED: 'missed'>, <DeadlineOutcome.UNDECIDED: 'undecided'>]
        """
        if bounds.upper <= self.cycles:
            return DeadlineOutcome.MET
        # a schedule attains `lower`
        return DeadlineOutcome.MISSED if bounds.lower > self.cycles else DeadlineOutcome.UNDECIDED


def read_deadline(deadline: str | None, clock: str | Fraction | None) -> Deadline | None:
    """Return the deadline of `--deadline` (200ns, or 280cycles) and `--clock` (1.4GHz, or hertz), None without.

    Whole cycles that fit into the time count: makespans are whole, so rounding down changes no answer. Cycles need no
    clock; with one they are shown as a time, too.

    Raises:
        InputError: not such a text, a time without a clock, or a clock without a time.
    """
    if deadline is None:
        if clock is not None:
            raise InputError("--clock turns a deadline into cycles: give --deadline, such as 200ns")
        return None
    if (match := _CYCLES.fullmatch(deadline.strip())) is not None:
        cycles, hertz = int(match["number"]), None if clock is None else _hertz(clock)
        return _refuse_zero(Deadline(cycles, None if hertz is None else cycles / hertz, hertz))
    if _PART.fullmatch(deadline.strip()):
        raise InputError(f"--deadline {deadline}: cycles must be whole, such as 280cycles")
    if _BARE.fullmatch(deadline.strip()):
        raise InputError(f"--deadline {deadline} lacks its unit: cycles, or with --clock one of {', '.join(SECONDS)}")
    seconds = duration(deadline, "--deadline")
    if clock is None:
        raise InputError(
            f"--deadline {deadline} needs --clock, the frequency that turns it into cycles, such as 1.4GHz"
            " (or give cycles, such as 280cycles)"
        )
    hertz = _hertz(clock)
    # makespans are whole, so down is exact
    return _refuse_zero(Deadline(ticks_down(seconds, 1 / hertz), seconds, hertz))


def _hertz(clock: str | Fraction) -> Fraction:
    return clock if isinstance(clock, Fraction) else frequency(clock, "--clock")


def _refuse_zero(deadline: Deadline) -> Deadline:
    if deadline.seconds == 0 or (deadline.seconds is None and deadline.cycles == 0):
        raise InputError("--deadline must be more than zero")
    return deadline


def _cycles(count: int) -> str:
    return f"{count} cycle" if count == 1 else f"{count} cycles"
