"""A schedule as letters for a terminal: warps by partition from top to bottom, cycles from left to right."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from makespan.model.instance import Instance
from makespan.model.schedule import Schedule
from makespan.report.gantt.chart import round_numbers
from makespan.report.schedule.activity import ScheduleTrace, Why

_SIGNS = {Why.STALLED: ".", Why.RESULT: ",", Why.PORT: "-", Why.RESOURCE: "+", Why.SLOT: "=", Why.BARRIER: "|"}
_WORDS = {
    ".": "stalled on latency",
    ",": "waits for a result",
    "-": "waits for a port",
    "+": "waits for a resource",
    "=": "no issue slot left",
    "|": "waits at a barrier",
}
_MOST_BLOCKS = 4
_MOST_ROWS = 64
_FEWEST_COLUMNS = 10

TimelineRow = Sequence[tuple[int, int, str]]
"""The first cycle, the number of cycles and the sign of everything that a warp does, in the order of time."""


def timeline_text(instance: Instance, schedule: Schedule, *, width: int) -> str:
    """Return every warp in every cycle as one letter: the class of its issue, or a sign for the reason of a wait.

    A schedule that does not fit into `width` characters is cut into blocks. If there would be too many blocks, a column
    stands for several cycles, and shows what takes most of them.

    >>> instance = Instance.of("CL", 2)
    >>> print(timeline_text(instance, Schedule.of_chains(instance, [(0,), (0, 1), (1,)]), width=40))
    letter: issues to that class; -: waits for a port
            0
    warp 0  CL
    warp 1  -CL
    """
    trace = ScheduleTrace.of(instance, schedule)
    instance, schedule = trace.instance, trace.schedule
    rows = _rows(trace)
    name = len(f"warp {len(rows) - 1}") + 2
    columns = max(_FEWEST_COLUMNS, width - name)
    # at most `_MOST_BLOCKS` blocks of lines, whatever the makespan
    cycles = -(-schedule.makespan // (columns * _MOST_BLOCKS))
    signs = {sign for row in rows for *_, sign in row}
    said = _WORDS | ({".": "stalled after its issue"} if instance.runs_ahead else {})
    keys = ["letter: issues to that class", *(f"{sign}: {words}" for sign, words in said.items() if sign in signs)]
    lines = ["; ".join(keys)]
    if cycles > 1:
        lines.append(f"a column stands for {cycles} cycles and shows what the warp does in most of them")
    parts = trace.partitions
    order = sorted(range(instance.warps), key=lambda warp: (parts[warp], warp))[:_MOST_ROWS]
    texts = {warp: "".join(_column_signs(rows[warp], cycles, schedule.makespan)) for warp in order}
    for first in range(0, -(-schedule.makespan // cycles), columns):
        last = min(first + columns, -(-schedule.makespan // cycles))
        lines.append(" " * name + _ruler(first, last, cycles))
        for partition, warps in groupby(order, key=lambda warp: parts[warp]):
            lines += [f"partition {partition}"] if instance.machine.partitions > 1 else []
            shown = ((warp, texts[warp][first : first + columns].rstrip()) for warp in warps)
            lines += [f"warp {warp}".ljust(name) + text if text else f"warp {warp}" for warp, text in shown]
    if len(rows) > _MOST_ROWS:
        lines.append(f"and {len(rows) - _MOST_ROWS} more warps")
    return "\n".join(lines)


def _rows(trace: ScheduleTrace) -> list[TimelineRow]:
    rows: list[list[tuple[int, int, str]]] = [[] for _ in range(trace.instance.warps)]
    for bar in trace.bars:
        rows[bar.warp].append((bar.first_cycle, 1, bar.unit))
    for wait in trace.waits:
        rows[wait.warp].append((wait.first_cycle, wait.cycles, _SIGNS[wait.why]))
    return list(map(sorted, rows))


def _column_signs(row: TimelineRow, cycles: int, makespan: int) -> Iterator[str]:
    """Yield, for every column, the sign of most cycles. Of equal ones a letter is taken, and then the first."""
    shares: list[dict[str, int]] = [{} for _ in range(-(-makespan // cycles))]
    for first, length, sign in row:
        for column in range(first // cycles, (first + length - 1) // cycles + 1):
            inside = min(first + length, (column + 1) * cycles) - max(first, column * cycles)
            shares[column][sign] = shares[column].get(sign, 0) + inside
    for share in shares:
        yield max(share, key=lambda sign: (share[sign], sign.isalpha()), default=" ")


def _ruler(first: int, last: int, cycles: int) -> str:
    """Return numbers of cycles above the columns in which they begin, as far apart as they need."""
    room = len(str(last * cycles)) + 2  # of the largest number, and a space on either side
    step = next(step for step in round_numbers() if step >= room)
    text = ""
    for column in range(-(-first // step) * step, last, step):
        text = text.ljust(column - first) + str(column * cycles)
    return text
