"""A schedule for readers, who know warps by their numbers. An instance, and a schedule of it, lists them by program."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from makespan.model.instance import Instance
from makespan.model.program import Program
from makespan.model.schedule import Schedule

_T = TypeVar("_T")


class _NumberedInstance(Instance):
    """The same question with warps listed by number. It is only for reports, because engines rely on the groups."""

    __slots__ = ()

    def number_of_warp(self) -> tuple[int, ...]:
        return tuple(range(self.warps))

    def block_of_warp(self) -> tuple[int, ...]:
        return _rows_by_number(self, Instance.block_of_warp(self))

    def group_of_warp(self) -> tuple[int, ...]:
        return _rows_by_number(self, Instance.group_of_warp(self))

    def programs(self) -> Iterator[Program]:
        return iter(_rows_by_number(self, tuple(Instance.programs(self))))


def order_by_number(instance: Instance, schedule: Schedule) -> tuple[Instance, Schedule]:
    """Return both with the warps in the order of their numbers.

    >>> from makespan.model.simulate import run
    >>> long, short = Program.chain("CC"), Program.chain("C")
    >>> instance = Instance.merged([(long, 1), (short, 1), (long, 1)])
    >>> schedule = run(instance, "oldest")
    >>> schedule.cycles, order_by_number(instance, schedule)[1].cycles
    (((0,), (0,), (2,), (1,), (1,)), ((0,), (0,), (1,), (2,), (2,)))
    """
    number = instance.number_of_warp()
    if number == tuple(range(instance.warps)):
        return instance, schedule
    return (
        _NumberedInstance(instance.groups, instance.machine, instance.blocks, instance.order),
        replace(
            schedule,
            cycles=tuple(tuple(sorted(number[warp] for warp in executing)) for executing in schedule.cycles),
            paths=_rows_by_number(instance, schedule.paths),
            latencies=_rows_by_number(instance, schedule.latencies),
            partitions=_rows_by_number(instance, schedule.partitions),
            uses=_rows_by_number(instance, schedule.uses),
            withheld=tuple(late._replace(warp=number[late.warp]) for late in schedule.withheld),
        ),
    )


def _rows_by_number(instance: Instance, rows: Sequence[_T]) -> tuple[_T, ...]:
    numbered = sorted(zip(Instance.number_of_warp(instance), rows, strict=True), key=lambda row: row[0]) if rows else ()
    return tuple(row for _, row in numbered)
