"""Partitions that share nothing are questions of their own, and how warps can be spread over partitions.

Without a barrier, and with ports of its own for all that its warps use, no partition can see what another one does: a
schedule of the whole is one schedule for each partition, and any such row of schedules is one of the whole. So its
worst case is the largest of theirs. (docs/theory.md, 8, proposition Q.)
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from makespan.model.instance import Instance
from makespan.model.machine import Machine, SchedulerPromise, WarpAssignment

MOST_SPREADS = 1000
"""Different ways to spread the warps; beyond, an instance is not cut."""

MOST_CREWS = 100
"""Kinds of warps, by program and block, that are spread in different ways."""

PartitionContent = tuple[int, ...]
"""How many warps of each crew (the warps of a group in one block) belong to a partition."""

WarpSpread = tuple[PartitionContent, ...]
"""The content of every partition."""


@dataclass(frozen=True, slots=True)
class Partitions:
    """The question that each possible content of a partition is, and the ways to spread the warps."""

    questions: dict[PartitionContent, Instance]
    spreads: tuple[WarpSpread, ...]


def partitions(instance: Instance) -> Partitions | None:
    """Return the partitions of an instance; None where they may wait for each other, or for too many ways.

    >>> from makespan.model.machine import Machine, UnitClass
    >>> cut = partitions(Instance.of("CC", 5, Machine("four", (UnitClass("C", 1),), partitions=4)))
    >>> [(content, question.warps) for content, question in cut.questions.items()]
    [((2,), 2), ((1,), 1)]
    """
    machine = instance.machine
    # proposition Q supposes no barrier, and a scheduler that promises nothing
    if machine.partitions == 1 or instance.has_barriers or machine.scheduler is not SchedulerPromise.ANY:
        return None
    if instance.has_lapses:  # a fence makes all partitions lapse
        return None
    if len(instance.groups) > MOST_CREWS:
        return None
    alone = _alone(machine, set().union(*(group.program.units for group in instance.groups)))
    ways = tuple(islice(spreads(instance), MOST_SPREADS + 1))
    if alone is None or len(ways) > MOST_SPREADS:
        return None
    found = dict.fromkeys(content for spread in ways for content in spread if any(content))
    # the fullest first: they are likely the slowest, and decide
    ordered = found if instance.partition_of_warp is not None else sorted(found, key=_order, reverse=True)
    questions = {
        content: Instance.merged(
            ((group.program, warps) for group, warps in zip(instance.groups, content, strict=True) if warps), alone
        )
        for content in ordered
    }
    return Partitions(questions, ways)


def _order(content: PartitionContent) -> tuple[int, PartitionContent]:
    return sum(content), content


def _alone(machine: Machine, used: set[str]) -> Machine | None:
    """Return one partition with the classes that are used, and what these use; None where some of that is shared."""
    alone = machine.serving(used)
    if any(ports.shared for ports in alone.ports):
        return None
    return replace(alone, partitions=1, assignment=WarpAssignment.ANY)


def spreads(instance: Instance) -> Iterator[WarpSpread]:
    """Yield every way to spread the warps over the partitions, up to the names of equal warps and of partitions.

    >>> from makespan.model.machine import Machine, UnitClass
    >>> list(spreads(Instance.of("C", 5, Machine("two", (UnitClass("C", 1),), partitions=2))))
    [((3,), (2,))]
    """
    parts, crews = instance.machine.partitions, [group.warps // instance.blocks for group in instance.groups]
    counts = tuple(warps for warps in crews for _ in range(instance.blocks))
    if (fixed := instance.partition_of_warp) is not None:
        belong = [[0] * len(counts) for _ in range(parts)]
        crew_of = (crew for crew, warps in enumerate(counts) for _ in range(warps))
        for crew, part in zip(crew_of, fixed, strict=True):
            belong[part][crew] += 1
        yield tuple(map(tuple, belong))
        return
    least, larger = divmod(instance.warps, parts)  # sizes differ by one at most

    def spread(part: int, left: PartitionContent, larger: int, before: PartitionContent) -> Iterator[WarpSpread]:
        if part == parts:
            yield ()
            return
        for more in (1, 0):
            if (larger if more else parts - part - larger) > 0:
                for own in _contents(left, least + more):
                    if own <= before:  # partitions have no names: in falling order each spread comes once
                        rest = tuple(n - taken for n, taken in zip(left, own, strict=True))
                        yield from ((own, *others) for others in spread(part + 1, rest, larger - more, own))

    yield from spread(0, counts, larger, counts)


def _contents(available: Sequence[int], size: int) -> Iterator[PartitionContent]:
    if not available:
        yield from ((),) if size == 0 else ()
        return
    first, *others = available
    for taken in range(min(first, size), max(0, size - sum(others)) - 1, -1):
        yield from ((taken, *rest) for rest in _contents(others, size - taken))
