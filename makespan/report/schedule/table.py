"""A schedule as a table, for a spreadsheet or a data frame: one row per warp-instruction."""

import csv
import io
from collections.abc import Iterator

from makespan.model.instance import Instance
from makespan.model.program import InstructionOrigin
from makespan.model.schedule import Schedule
from makespan.report.schedule.activity import bars, partitions
from makespan.report.schedule.by_number import order_by_number

HEADER = (
    "cycle", "warp", "block", "place", "unit", "port", "interval", "latency", "finish_cycle", "source", "compiled_from"
)  # fmt: skip
PARTITION = ("partition",)
"""The column that stands last where a machine has several."""
_FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")  # and their wide forms


def csv_table(instance: Instance, schedule: Schedule) -> str:
    r"""CSV with a header line; the rows by cycle of issue and then by warp.

    A port is held for `interval` cycles from `cycle` on; the result is there, and a warp that blocks goes on, in
    `finish_cycle`, which is `cycle` plus `latency`. `source` is FILE:LINE of the instruction and `compiled_from` that
    of what it was compiled from, both empty where unknown.

    >>> instance = Instance.of("C", 1)
    >>> csv_table(instance, Schedule.of_chains(instance, [(0,)])).splitlines()[1]
    '0,0,0,0,C,0,1,1,1,,'
    """
    instance, schedule = order_by_number(instance, schedule)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(HEADER + PARTITION if instance.machine.partitions > 1 else HEADER)
    writer.writerows(_rows(instance, schedule))
    return text.getvalue()


def _rows(instance: Instance, schedule: Schedule) -> Iterator[tuple[int | str, ...]]:
    parts = partitions(instance, schedule)
    blocks, groups = instance.block_of_warp(), instance.group_of_warp()
    origins = [[_cells(origin) for origin in group.program.origins] for group in instance.groups]
    for first, cycles, warp, place, unit, port, latency in bars(instance, schedule):
        known = origins[groups[warp]]
        where = known[place] if known else ("", "")
        part = (parts[warp],) if instance.machine.partitions > 1 else ()
        yield first, warp, blocks[warp], place, unit, port, cycles, latency, first + latency, *where, *part


def _cells(origin: InstructionOrigin) -> tuple[str, str]:
    return safe_cell(f"{origin.file}:{origin.line}"), safe_cell(origin.source)


def safe_cell(text: str) -> str:
    """Text from outside as one that no spreadsheet takes for a formula: such a one gets an apostrophe in front.

    >>> safe_cell("=1+1"), safe_cell("a.ptx:3")
    ("'=1+1", 'a.ptx:3')
    """
    printable = "".join(letter if letter.isprintable() else "\ufffd" for letter in text)
    return f"'{printable}" if printable.lstrip(" \ufffd'").startswith(_FORMULA) else printable
