"""What a solve may spend, how it is told to stop, and what makes it repeatable."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from makespan.model.result import Step


def _silent(_: object) -> None:
    pass


@dataclass(slots=True)
class Limits:
    """A budget that starts to run when it is made; the clock stands still while libraries and machine code are loaded.

    Args:
        seconds: wall-clock limit.
        memory_bytes: what the tables of a search may take; an engine stops cleanly before it.
        threads: for solvers that can use several; with one, nothing depends on chance but where a limit stops it.
        seed: of the random numbers of solvers.
        progress: called with one line now and then.
        improved: called with every interval that is proven of the question as a whole; a `part` says nothing there, for
            it may be about a phase, a partition or a scheduler that promises nothing.
        interrupted: whether the user has asked to stop.
        short_of_memory: whether `memory_bytes` has kept a search from its end, so that more might prove more.
        whole: the budget of which this is a part.
        clock: tells the time in seconds.
    """

    seconds: float = 60.0
    memory_bytes: int = 8 << 30
    threads: int = 1
    seed: int = 0
    progress: Callable[[str], None] = _silent
    improved: Callable[[Step], None] = _silent
    interrupted: bool = False
    short_of_memory: bool = False
    whole: "Limits | None" = None
    clock: Callable[[], float] = time.monotonic
    _started: float = field(init=False)

    def __post_init__(self) -> None:
        self._started = self.clock()

    @property
    def elapsed(self) -> float:
        """Seconds since the start, less those of `preparing`."""
        return self.clock() - self._started

    @property
    def remaining(self) -> float:
        """Seconds left, never below zero."""
        return max(0.0, self.seconds - self.elapsed)

    @property
    def expired(self) -> bool:
        """Return whether to stop now: out of time, or interrupted by the user."""
        # a part ends with the whole at the latest, whatever it was given
        whole_expired = self.whole is not None and self.whole.expired
        return self.interrupted or whole_expired or self.elapsed >= self.seconds

    def part(self, share: float) -> "Limits":
        """Return a budget of its own over a share of the time that is left, which ends with this one at the latest."""
        return Limits(
            self.remaining * share,
            self.memory_bytes,
            self.threads,
            self.seed,
            progress=self.progress,
            whole=self,
            clock=self.clock,
        )

    @contextmanager
    def rewording(self, changed: Callable[[Step], Step]) -> Iterator[None]:
        """Change each interval inside before `improved` hears of it."""
        told = self.improved
        self.improved = lambda step: told(changed(step))
        try:
            yield
        finally:
            self.improved = told

    @contextmanager
    def preparing(self) -> Iterator[None]:
        """Stop the clock inside, also that of the whole, for what depends on the installation alone.

        A limit then buys the same work in a first run, which compiles, as in every other.
        """
        began = self.clock()
        try:
            yield
        finally:
            self._grant(self.clock() - began)

    def _grant(self, seconds: float) -> None:
        self._started += seconds
        if self.whole is not None:
            self.whole._grant(seconds)  # noqa: SLF001 - another budget

    def need_memory(self) -> None:
        """Note, here and in the whole, that a search stops for want of memory."""
        self.short_of_memory = True
        if self.whole is not None:
            self.whole.need_memory()

    def interrupt(self) -> None:
        """Ask the engines to stop at their next look; what is proven so far is kept."""
        self.interrupted = True
