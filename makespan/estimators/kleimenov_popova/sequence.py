"""The instructions that a thread executes, in order: single ones, and loops that repeat a body."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Single:
    """One instruction.

    Args:
        number: of the instruction in its kernel.
        kind: the class whose latency and issue delay it has.
        reads: registers it waits for, predicates among them.
        writes: registers that are ready after its latency.
        is_back_edge: whether it is the unconditional branch back to the head of its loop.
    """

    number: int
    kind: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    is_back_edge: bool = False


@dataclass(frozen=True, slots=True)
class Repeat:
    """A loop: `trips` iterations of its body."""

    label: str
    body: "Sequence"
    trips: int


Step: TypeAlias = Single | Repeat


@dataclass(frozen=True, slots=True)
class Sequence:
    """Steps one after the other."""

    steps: tuple[Step, ...] = field(default=())

    def executions(self, *, with_back_edges: bool) -> Mapping[int, int]:
        """How often each instruction is executed."""
        found: Counter[int] = Counter()
        for step in self.steps:
            if isinstance(step, Repeat):
                inner = step.body.executions(with_back_edges=with_back_edges)
                found.update({number: count * step.trips for number, count in inner.items()})
            elif with_back_edges or not step.is_back_edge:
                found[step.number] += 1
        return found

    @property
    def loops(self) -> tuple[Repeat, ...]:
        """All loops in it, outer ones first."""
        own = [step for step in self.steps if isinstance(step, Repeat)]
        return tuple(loop for outer in own for loop in (outer, *outer.body.loops))
