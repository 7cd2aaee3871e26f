"""The Gantt chart of a page as data: for each warp what it does, one stretch after another from cycle 0 to its end.

Long lists of whole numbers are encoded as short texts (`encode_column`), so that a page can hold 100,000 cycles and its
script can decode them at once.
"""

import sys
from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby, pairwise
from typing import Any

from makespan.model.instance import Instance
from makespan.model.program import BARRIER
from makespan.report.gantt.chart import IDLE, GanttLook
from makespan.report.gantt.svg import TILES
from makespan.report.lines import make_visible
from makespan.report.schedule.activity import Bar, ScheduleTrace, Why, lanes
from makespan.report.schedule.picture import ScheduleSpan, SpanRows, lane_rows, span_look, warp_rows

PLAIN, RUNS = "p", "r"


def encode_column(values: Sequence[int]) -> str:
    """Return the numbers as `p` or `r` and base64 of bytes. `r` has pairs of a number and the length of its run.

    Numbers are written in base 128, the lowest digit first, with the top bit set on all bytes but the last. A number n
    is written as 2n if it is not negative, and as -2n-1 if it is. The shorter of the two forms is taken.

    >>> encode_column([5, 5, 5, 5]), encode_column([1, -1, 64])
    ('rCgg=', 'pAgGAAQ==')
    """
    plain = bytes(_digits(values))
    runs = bytes(_digits(_pairs(values)))
    # runs are shorter for most columns of long schedules, plain numbers for differences that vary
    return min((PLAIN + _text(plain), RUNS + _text(runs)), key=len)


def differences(values: Iterable[int]) -> list[int]:
    """Return the difference of each number to the one before it, and the first number itself."""
    found, before = [], 0
    for value in values:
        found.append(value - before)
        before = value
    return found


def _pairs(values: Iterable[int]) -> Iterator[int]:
    for value, equal in groupby(values):
        yield value
        yield sum(1 for _ in equal)


def _digits(values: Iterable[int]) -> Iterator[int]:
    for value in values:
        rest = 2 * value if value >= 0 else -2 * value - 1  # small negative numbers stay short
        while rest > 127:
            yield rest & 127 | 128
            rest >>= 7
        yield rest


def _text(data: bytes) -> str:
    return b64encode(data).decode("ascii")


MOST_STRETCHES = 1_500_000
"""The most stretches of a page. More would make it too large for a browser."""
MOST_WARPS = 1024
MOST_BUCKETS = 300

_OF_ALL_CLASSES: dict[Why | None, str] = {
    Why.STALLED: "stalled: a latency or stall passes",
    Why.RESULT: "waits for a result",
    Why.RESOURCE: "ready, waits for a resource",
    Why.SLOT: "ready, no issue slot left",
}

ISSUES = "issues"
"""The word that stands for the reason of a wait if a warp issues."""


def chart_data(trace: ScheduleTrace) -> dict[str, Any]:
    """Return the chart as plain data. `omitted` is the reason if there is none.

    `rows` are those of the pictures, but for each port and warp. A row holds columns (see `encode_column`) over its
    stretches in the order of time: `kind`, an index into `kinds`; `gap`, the cycles since the one before it; `cycles`;
    `who`, its warp, or -1; the difference of its `place` to the one before it, 0 where nothing is issued and the first
    to -1; and the `port` that an issue takes.
    """
    instance = trace.instance
    count = len(trace.bars) + len(trace.waits)
    if instance.warps > MOST_WARPS:
        return {"omitted": f"{instance.warps} warps are more rows than the {MOST_WARPS} that a page holds"}
    if count > MOST_STRETCHES:
        return {"omitted": f"{count} stretches are more than the {MOST_STRETCHES} that a page holds"}
    units = tuple(instance.machine.capacities)
    lanes, warps = lane_rows(trace, sys.maxsize), warp_rows(trace, sys.maxsize)
    kinds = sorted(
        # classes without an issue keep their kind, so that the legend names all classes of the machine
        {(span.why, span.unit) for of in (lanes, warps) for span in of.spans} | {(None, unit) for unit in units},
        key=lambda kind: (kind[0] is not None, str(kind[0]), (*units, BARRIER).index(kind[1])),
    )
    numbers = {kind: number for number, kind in enumerate(kinds)}
    return {
        "omitted": None,
        "makespan": trace.schedule.makespan,
        "idle": {"colour": IDLE},
        "units": list(units),
        "kinds": [_kind_data(why, unit) for why, unit in kinds],
        "legend": list(_legend_entries(kinds)),
        "warps": {
            "group": encode_column(instance.group_of_warp()),
            "block": encode_column(instance.block_of_warp()),
        },
        "rows": [*_row_columns(lanes, numbers), *_row_columns(warps, numbers, by_warp=True)],
        **_origin_lines(instance, trace.bars),
    }


def _row_columns(
    shown: SpanRows, numbers: dict[tuple[Why | None, str], int], *, by_warp: bool = False
) -> Iterator[dict[str, Any]]:
    """Yield the columns of each row.

    Raises:
        ValueError: the stretches of a warp leave a hole.
    """
    of_row: list[list[ScheduleSpan]] = [[] for _ in shown.rows]
    for span in sorted(shown.spans, key=lambda span: span.first_cycle):
        of_row[span.row].append(span)
    for row, spans in zip(shown.rows, of_row, strict=True):
        ends = [0, *(span.first_cycle + span.cycles for span in spans)]
        gaps = [span.first_cycle - end for span, end in zip(spans, ends, strict=False)]
        # a hole or an overlap would be an error of the activities: no page may hide it
        if any(gap < 0 or (by_warp and gap) for gap in gaps):
            raise ValueError(f"{row.label} does nothing known in some cycle, or two things at once")
        places, issued = list[int](), -1
        for span in spans:
            places.append(issued := span.place if by_warp and span.place is not None else issued)
        yield {
            "name": row.label,
            "warp": spans[0].warp if by_warp else None,
            "group": row.group,
            "kind": encode_column([numbers[span.why, span.unit] for span in spans]),
            "gap": encode_column(gaps),
            "cycles": encode_column([span.cycles for span in spans]),
            "who": encode_column([-1 if span.warp is None else span.warp for span in spans]),
            # the first place, 0, is a step of 1 like most others
            "place": encode_column([place - before for before, place in pairwise([-1, *places])]),
            "port": encode_column([span.port or 0 for span in spans]),
        }


def _kind_data(why: Why | None, unit: str) -> dict[str, Any]:
    look = span_look(why, unit)
    return {
        "why": ISSUES if why is None else str(why),
        "unit": unit,
        "colour": look.face,
        "tile": TILES[look.hatch[0]] if look.hatch else "",
        "line": look.line,
        "ink": look.ink,
        "words": describe_stretch(why, unit),
    }


def _legend_entries(kinds: Iterable[tuple[Why | None, str]]) -> Iterator[dict[str, Any]]:
    shown = dict[GanttLook, str]()
    for why, unit in kinds:
        shown.setdefault(span_look(why, unit), _OF_ALL_CLASSES.get(why, describe_stretch(why, unit)))
    shown[GanttLook(IDLE)] = "idle port: no warp is ready for it"
    yield from ({"look": look, "words": words} for look, words in shown.items())


def describe_stretch(why: Why | None, unit: str) -> str:
    """Return a phrase for what a warp does in a stretch."""
    if why is None:
        return f"issues to {unit}"
    return {
        Why.STALLED: f"stalled: a latency or stall of {unit} passes",
        Why.RESULT: f"waits for a result of {unit}",
        Why.RESOURCE: f"ready for {unit}, waits for a resource",
        Why.PORT: f"ready, waits for a port of {unit}",
        Why.SLOT: f"ready for {unit}, no issue slot left",
        Why.BARRIER: "waits at a barrier",
    }[why]


def _origin_lines(instance: Instance, bars: Iterable[Bar]) -> dict[str, Any]:
    """Return the source lines of the executed places of every group.

    `lines` has each text once; `places` refers to it.
    """
    groups = instance.group_of_warp()
    visited: list[set[int]] = [set() for _ in instance.groups]
    for bar in bars:
        visited[groups[bar.warp]].add(bar.place)
    lines: dict[tuple[str, str, str], int] = {}
    places = []
    for group, seen in zip(instance.groups, visited, strict=True):
        known = group.program.origins
        shown = sorted(seen) if known else []
        index = [
            lines.setdefault((f"{origin.file}:{origin.line}", origin.text, origin.source), len(lines))
            for origin in (known[place] for place in shown)
        ]
        places.append({"place": encode_column(differences(shown)), "line": encode_column(index)})
    return {
        "lines": [
            {"at": make_visible(at), "text": make_visible(text), "source": make_visible(source)}
            for at, text, source in lines
        ],
        "places": places,
    }


def occupancy_data(trace: ScheduleTrace, *, most_buckets: int = MOST_BUCKETS) -> dict[str, Any]:
    """Return the port-cycles of every class and resource that are held in each bucket.

    All buckets but the last are equal.
    """
    # buckets keep the size of the page independent of the makespan
    instance, makespan = trace.instance, trace.schedule.makespan
    width = -(-makespan // most_buckets)
    buckets = range(0, makespan, width)
    ports = Counter(lane.name for lane in lanes(instance.machine))
    held = {each.name: [0] * len(buckets) for each in instance.machine.ports}
    stretches = chain(
        ((bar.unit, bar.first_cycle, bar.cycles) for bar in trace.bars),
        ((hold.resource, hold.first_cycle, hold.cycles) for hold in trace.holds),
    )
    for name, first, cycles in stretches:
        end = min(first + cycles, makespan)  # what is held past the end is not drawn
        for bucket in range(first // width, -(-end // width)):
            held[name][bucket] += min(end, (bucket + 1) * width) - max(first, bucket * width)
    return {
        "bucket_cycles": width,
        "makespan": makespan,
        "classes": [
            {
                "name": name,
                "capacity": ports[name],
                "held": buckets_of,
                "total": sum(buckets_of),
                "colour": span_look(None, name).face if name.isupper() else span_look(Why.RESOURCE, "").line,
            }
            for name, buckets_of in held.items()
        ],
    }


def warp_table(trace: ScheduleTrace, most: int) -> Iterator[dict[str, Any]]:
    """Yield what every warp spends its cycles on until it has finished, for the first `most` warps."""
    spent = [Counter[str]() for _ in range(trace.instance.warps)]
    for bar in trace.bars:
        spent[bar.warp]["instructions"] += 1
    for wait in trace.waits:
        spent[wait.warp][str(wait.why)] += wait.cycles
    blocks, groups = trace.instance.block_of_warp(), trace.instance.group_of_warp()
    for warp, own in enumerate(spent[:most]):
        yield {
            "warp": warp,
            "block": blocks[warp],
            "group": groups[warp],
            **{what: own[what] for what in ("instructions", *(str(why) for why in Why if why is not Why.NOBODY))},
            "finish_cycle": own.total(),
        }
