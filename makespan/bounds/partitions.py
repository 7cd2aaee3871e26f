"""How warps can be spread over partitions."""

from collections.abc import Iterator, Sequence

from makespan.instance import Instance

Spread = tuple[tuple[int, ...], ...]
"""For every partition, of each crew (the warps of a group in one block), how many warps belong to it."""


def spreads(instance: Instance) -> Iterator[Spread]:
    """Every way to spread the warps over the partitions, up to the names of equal warps and of partitions.

    >>> from makespan.machine import Machine, UnitClass
    >>> list(spreads(Instance.of("C", 5, Machine("two", (UnitClass("C", 1),), partitions=2))))
    [((3,), (2,))]
    """
    parts, crews = instance.machine.partitions, [g.warps // instance.blocks for g in instance.groups]
    counts = tuple(warps for warps in crews for _ in range(instance.blocks))
    if (fixed := instance.partition_of_warp) is not None:
        crew_of = [crew for crew, warps in enumerate(counts) for _ in range(warps)]
        belong = [[crew for crew, part in zip(crew_of, fixed, strict=True) if part == own] for own in range(parts)]
        yield tuple(tuple(map(own.count, range(len(counts)))) for own in belong)
        return
    least, larger = divmod(instance.warps, parts)

    def spread(part: int, left: Sequence[int], larger: int, before: tuple[int, ...]) -> Iterator[Spread]:
        if part == parts:
            yield ()
            return
        for more in (1, 0):
            if (larger if more else parts - part - larger) > 0:
                for own in contents(left, least + more):
                    if own <= before:
                        rest = [n - taken for n, taken in zip(left, own, strict=True)]
                        yield from ((own, *others) for others in spread(part + 1, rest, larger - more, own))

    yield from spread(0, counts, larger, counts)


def contents(available: Sequence[int], size: int) -> Iterator[tuple[int, ...]]:
    """Every way to take so many of these numbers of warps, in decreasing order."""
    if not available:
        yield from ((),) if size == 0 else ()
        return
    first, *others = available
    for taken in range(min(first, size), max(0, size - sum(others)) - 1, -1):
        yield from ((taken, *rest) for rest in contents(others, size - taken))
