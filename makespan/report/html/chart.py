"""The Gantt chart of a page as data: for each warp what it does, one stretch after another from cycle 0 to its end.

Long lists of whole numbers are encoded as short texts (`encode_column`), so that a page can hold 100,000 cycles and its
script can decode them at once.
"""

from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby
from typing import Any, NamedTuple

from makespan.model.instance import Instance
from makespan.model.program import BARRIER
from makespan.model.schedule import Schedule
from makespan.report.gantt.chart import IDLE
from makespan.report.lines import make_visible
from makespan.report.schedule.activity import Bar, IdleGap, ResourceHold, Wait, Why, lanes, partitions
from makespan.report.schedule.picture import span_look

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
_PATTERNS = {"": "", "/": "slash", ".": "dots", "x": "cross", "-": "lines", "+": "grid", "\\": "back"}

_OF_ALL_CLASSES: dict[Why | None, str] = {
    Why.STALLED: "stalled: a latency or stall passes",
    Why.RESULT: "waits for a result",
    Why.RESOURCE: "ready, waits for a resource",
    Why.SLOT: "ready, no issue slot left",
}

ISSUES = "issues"
"""The word that stands for the reason of a wait if a warp issues."""


class WarpStretch(NamedTuple):
    """A stretch of cycles in which one warp does one thing. `place` and `port` are None if it issues nothing."""

    first_cycle: int
    cycles: int
    why: Why | None
    unit: str
    place: int | None
    port: int | None


StretchRows = Sequence[Sequence[WarpStretch]]


class TracedSchedule(NamedTuple):
    """A schedule as it is drawn: bars, idle gaps of ports, and all stretches of a warp in the order of time."""

    bars: Sequence[Bar]
    gaps: Sequence[IdleGap]
    rows: StretchRows


def stretches(warps: int, bars: Iterable[Bar], waits: Iterable[Wait]) -> StretchRows:
    """Return, for every warp, its stretches until it has finished, without holes and overlaps.

    Raises:
        ValueError: the bars and waits leave a hole.
    """
    rows: list[list[WarpStretch]] = [[] for _ in range(warps)]
    for bar in bars:
        rows[bar.warp].append(WarpStretch(bar.first_cycle, 1, None, bar.unit, bar.place, bar.port))
    for wait in waits:
        rows[wait.warp].append(WarpStretch(wait.first_cycle, wait.cycles, wait.why, wait.unit, None, None))
    for warp, row in enumerate(rows):
        row.sort(key=lambda stretch: stretch.first_cycle)
        # a hole or an overlap would be an error of the activities: no page may hide it
        reached = 0
        for stretch in row:
            if stretch.first_cycle != reached:
                raise ValueError(f"warp {warp} does nothing known in cycle {reached}")
            reached += stretch.cycles
    return rows


def chart_data(instance: Instance, schedule: Schedule, traced: TracedSchedule) -> dict[str, Any]:
    """Return the chart as plain data. `omitted` is the reason if there is none.

    `rows` holds columns (see `encode_column`) over all stretches of all warps, warp after warp: `stretches` per warp,
    then of each stretch its `kind`, an index into `kinds`; of each wait its `cycles` (issuing takes one); of each
    instruction the difference of its `place` to the one before it, of -1 for the first, and its `port`. `home` is the
    partition of each warp and port, None where all share it or there is one.
    """
    count = sum(map(len, traced.rows))
    if instance.warps > MOST_WARPS:
        return {"omitted": f"{instance.warps} warps are more rows than the {MOST_WARPS} that a page holds"}
    if count > MOST_STRETCHES:
        return {"omitted": f"{count} stretches are more than the {MOST_STRETCHES} that a page holds"}
    units = tuple(instance.machine.capacities)
    homes: dict[str, list[int | None]] = {name: [] for name in (*units, *(r.name for r in instance.machine.resources))}
    for lane in lanes(instance.machine):
        homes[lane.name].append(lane.partition)
    home = encode_column(partitions(instance, schedule)) if instance.machine.partitions > 1 else None
    kinds = sorted(
        # classes without an issue keep their kind, so that the legend names all classes of the machine
        {(stretch.why, stretch.unit) for row in traced.rows for stretch in row} | {(None, unit) for unit in units},
        key=lambda kind: (kind[0] is not None, str(kind[0]), (*units, BARRIER).index(kind[1])),
    )
    return {
        "omitted": None,
        "makespan": schedule.makespan,
        "idle": {"colour": IDLE},
        "units": [
            {"name": unit.name, "capacity": len(homes[unit.name]), "interval": unit.interval, "home": homes[unit.name]}
            for unit in instance.machine.units
        ],
        "kinds": [_kind_data(why, unit) for why, unit in kinds],
        "legend": list(_legend_entries(kinds)),
        "warps": {
            "group": encode_column(instance.group_of_warp()),
            "block": encode_column(instance.block_of_warp()),
            "home": home,
        },
        "rows": _row_columns(traced.rows, {kind: number for number, kind in enumerate(kinds)}),
        "lacking": _lacking_columns(traced.gaps, units),
        **_origin_lines(instance, traced.bars),
    }


def _kind_data(why: Why | None, unit: str) -> dict[str, Any]:
    look = span_look(why, unit)
    return {
        "why": ISSUES if why is None else str(why),
        "unit": unit,
        "colour": look.face,
        "pattern": _PATTERNS[look.hatch[:1]],
        "line": look.line,
        "ink": look.ink,
        "words": describe_stretch(why, unit),
    }


def _legend_entries(kinds: Iterable[tuple[Why | None, str]]) -> Iterator[dict[str, Any]]:
    shown = set()
    for why, unit in kinds:
        look = span_look(why, unit)
        if look not in shown:
            shown.add(look)
            yield {**_kind_data(why, unit), "words": _OF_ALL_CLASSES.get(why, describe_stretch(why, unit))}


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


def _row_columns(rows: StretchRows, number: dict[tuple[Why | None, str], int]) -> dict[str, str]:
    issued = [[stretch for stretch in row if stretch.place is not None] for row in rows]
    steps = [
        step for row in issued for step in differences((stretch.place or 0) + 1 for stretch in row)
    ]  # so that the first place, 0, is a step of 1 like most others
    return {
        "stretches": encode_column([len(row) for row in rows]),
        "kind": encode_column([number[stretch.why, stretch.unit] for row in rows for stretch in row]),
        "cycles": encode_column([stretch.cycles for row in rows for stretch in row if stretch.why is not None]),
        "place": encode_column(steps),
        "port": encode_column([stretch.port or 0 for row in issued for stretch in row]),
    }


def _lacking_columns(gaps: Iterable[IdleGap], units: Sequence[str]) -> dict[str, str]:
    """Return the idle times of ports for which a warp is ready: it lacks an issue slot, or (1) a resource."""
    found = [gap for gap in gaps if gap.why is not Why.NOBODY]
    return {
        "resource": encode_column([int(gap.why is Why.RESOURCE) for gap in found]),
        "unit": encode_column([units.index(gap.unit) for gap in found]),
        "port": encode_column([gap.port for gap in found]),
        "first_cycle": encode_column(differences(gap.first_cycle for gap in found)),
        "cycles": encode_column([gap.cycles for gap in found]),
    }


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


def occupancy_data(
    instance: Instance,
    makespan: int,
    bars: Iterable[Bar],
    holds: Iterable[ResourceHold] = (),
    *,
    most_buckets: int = MOST_BUCKETS,
) -> dict[str, Any]:
    """Return the port-cycles of every class and resource that are held in each bucket.

    All buckets but the last are equal.
    """
    # buckets keep the size of the page independent of the makespan
    width = -(-makespan // most_buckets)
    buckets = range(0, makespan, width)
    ports = Counter(lane.name for lane in lanes(instance.machine))
    held = {each.name: [0] * len(buckets) for each in instance.machine.ports}
    stretches = chain(
        ((bar.unit, bar.first_cycle, bar.cycles) for bar in bars),
        ((hold.resource, hold.first_cycle, hold.cycles) for hold in holds),
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


def warp_rows(instance: Instance, rows: StretchRows) -> Iterator[dict[str, Any]]:
    """Yield what every warp spends its cycles on until it has finished."""
    blocks, groups = instance.block_of_warp(), instance.group_of_warp()
    for warp, row in enumerate(rows):
        spent = Counter[Why | None]()
        for stretch in row:
            spent[stretch.why] += stretch.cycles
        yield {
            "warp": warp,
            "block": blocks[warp],
            "group": groups[warp],
            "instructions": spent[None],
            **{str(why): spent[why] for why in Why if why is not Why.NOBODY},
            "finish_cycle": sum(spent.values()),
        }
