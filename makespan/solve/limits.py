"""What a solve may spend, how it is told to stop, and what makes it repeatable."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field


def _silent(_: str) -> None:
    pass


@dataclass(slots=True)
class Limits:
    """A budget that starts to run when it is made.

    Args:
        seconds: wall-clock limit.
        memory_bytes: what the tables of a search may take; an engine stops cleanly before it.
        threads: for solvers that can use several; with one, nothing depends on chance but where a limit stops it.
        seed: of the random numbers of solvers.
        progress: called with one line now and then.
        interrupted: whether the user has asked to stop.
        whole: the budget of which this is a part.
    """

    seconds: float = 60.0
    memory_bytes: int = 8 << 30
    threads: int = 1
    seed: int = 0
    progress: Callable[[str], None] = _silent
    interrupted: bool = False
    whole: "Limits | None" = None
    _started: float = field(default_factory=time.monotonic)

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._started

    @property
    def remaining(self) -> float:
        """Seconds left, never below zero."""
        return max(0.0, self.seconds - self.elapsed)

    @property
    def expired(self) -> bool:
        """Whether to stop now: out of time, or interrupted by the user."""
        whole_expired = self.whole is not None and self.whole.expired
        return self.interrupted or whole_expired or self.elapsed >= self.seconds

    def part(self, share: float) -> "Limits":
        """A budget of its own over a share of the time that is left, which ends with this one at the latest."""
        return Limits(
            self.remaining * share, self.memory_bytes, self.threads, self.seed, progress=self.progress, whole=self
        )

    def interrupt(self) -> None:
        """Ask the engines to stop at their next look; what is proven so far is kept."""
        self.interrupted = True
