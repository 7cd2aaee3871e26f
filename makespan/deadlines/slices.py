"""What a kernel waits for on a partition that contexts take in turn, a slice of time each.

Within a context kernels go first in, first out. Proof: docs/schedulability_theory.md, theorem 10.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from makespan.deadlines.task import Slices


class BoundedWork(Protocol):
    """What somebody can ask for in a window."""

    def within(self, length: int) -> int:
        """Ticks of a window of `length` ticks that it can take."""


def with_switches(work: int, slices: Slices) -> int:
    """Ticks that a kernel takes with the switches to its context, at most, whoever comes between its slices.

    >>> with_switches(25, Slices(10, 2))
    31
    """
    return work + -(-work // slices.length) * slices.switch


class ContextShare(NamedTuple):
    """What one context asks for: `fixed` ticks at any time, and so much more in a window."""

    fixed: int
    more: Sequence[BoundedWork]

    def within(self, length: int) -> int:
        """Ticks of a window."""
        return self.fixed + sum(work.within(length) for work in self.more)


class ContextTurns(NamedTuple):
    """What a kernel of `wcet` ticks waits for.

    Args:
        own: what else its own context does before it, without switches.
        others: what each other context does, with switches; None: nobody knows how much.
    """

    wcet: int
    slices: Slices
    own: ContextShare
    others: tuple[ContextShare | None, ...]

    @property
    def cost(self) -> int:
        """Additions for one length."""
        return 1 + sum(1 if share is None else 1 + len(share.more) for share in (self.own, *self.others))

    def within(self, length: int) -> int:
        """Ticks of a window: before each turn of its context, every other one has a turn or less.

        Source: round robin as in Wang, Liu, Wong and Kim, ECRTS 2024, Lemma 1, with the switches back to the context.
        """
        before = self.own.within(length)
        if not self.others:
            return before
        length_of_turn, switch = self.slices.length, self.slices.switch
        turns = -(-(self.wcet + before) // length_of_turn)
        most = turns * (length_of_turn + switch)
        waits = (most if share is None else min(most, share.within(length)) for share in self.others)
        return before + turns * switch + sum(waits)
