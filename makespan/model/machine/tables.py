"""The tables of a machine file: the values that their keys may hold, and the source of each number in them."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar, cast

from makespan.host.errors import InputError, did_you_mean, prefix_errors
from makespan.model.machine.values import (
    ONE_CYCLE,
    OPERATIONS,
    Latency,
    PortResource,
    TimedOperation,
    UnitClass,
    Use,
    check_whole,
    class_name,
    printable,
    shown,
)

MAX_FIGURE = 10**9
OF_FILE = {
    *("name", "architecture", "examples", "clock", "source", "scheduler", "partitions", "assignment"),
    *("compute_capability", "notes", "caveats"),
}
"""The keys of the whole file: all but the tables."""
_ORIGIN = {"source", "verified"}
_OR = " or "
_DatumOrigin = tuple[str | None, bool]
_NO_SOURCE = (None, False)
_T = TypeVar("_T")


class CycleRange(NamedTuple):
    """A range of cycles. `most` is None if no source knows an upper end."""

    least: int
    most: int | None

    def __str__(self) -> str:
        return str(self.least) if self.least == self.most else f"{self.least}..{self.most or ''}"


@dataclass(frozen=True, slots=True)
class MachineDatum:
    """One number of a machine file. `key` is its place there; a number without a source cannot be verified."""

    key: str
    value: int | CycleRange
    source: str | None
    verified: bool


def parse_figures(table: str, given: object, known: Mapping[str, str]) -> Iterator[MachineDatum]:
    """Yield the numbers of a table that has only numbers."""
    if not isinstance(given, dict):
        raise InputError(f"{table} is a table of numbers, not {shown(given)}")
    check_keys(given, known, table)
    for key, number in given.items():
        yield parse_figure(f"{table}.{key}", number)


def parse_figure(where: str, given: object, most: int = MAX_FIGURE) -> MachineDatum:
    """Return a whole number with its source."""
    found = _parse_number(where, given, _NO_SOURCE)
    check_whole(found.value, where, most)
    return found


def parse_resource(name: str, given: object) -> tuple[PortResource, MachineDatum]:
    """Return a resource, and its capacity with the source."""
    where = f"resources.{printable(name, 'the name of a resource')}"
    table = _check_table(given, where, {"capacity", "shared"}, "{ capacity = N }", {"capacity"})
    capacity = _parse_number(f"{where}.capacity", table["capacity"], _parse_origin(table, where))
    return PortResource(name, _whole_value(capacity), _is_shared(table, where)), capacity


def parse_unit(
    name: str, given: object, resources: Collection[PortResource], operations: Collection[TimedOperation]
) -> tuple[UnitClass, tuple[PortResource, ...], list[MachineDatum]]:
    """Return a class that may use these resources, the resources of its own, and its numbers with their sources."""
    if name in OF_FILE:
        raise InputError(_misplaced_key(name, "units"))
    where = f"units.{class_name(name)}"
    table = _check_table(
        given, where, {"capacity", "interval", "latency", "shared", "uses"}, "{ capacity = N }", {"capacity"}
    )
    origin, is_shared = _parse_origin(table, where), _is_shared(table, where)
    data = [_parse_number(f"{where}.capacity", table["capacity"], origin)]
    capacity, interval = _whole_value(data[0]), 1
    own: tuple[PortResource, ...] = ()
    uses = []
    if "interval" in table:
        data.append(datum := _parse_number(f"{where}.interval", table["interval"], origin))
        interval = _whole_value(datum)
        if isinstance(datum.value, list):
            # A class holds its port for a fixed time. A range of intervals therefore becomes a resource of its own,
            # which no other class uses: it then has the same effect.
            data[-1] = datum = _parse_range(f"{where}.interval", table["interval"], origin)
            # the class port is then held for one cycle, and a port of the resource for the range
            own, interval = (PortResource(f"{name.lower()}-ports", capacity, is_shared),), 1
            uses.append(_make_at(datum.key, Use, (own[0].name,), *_range_value(datum)))
    used = _check_table(table.get("uses", {}), f"{where}.uses", None, "{ RESOURCE = N or [least, most] }")
    for named, cycles in used.items():
        alternatives = tuple(named.split(_OR))
        check_keys(alternatives, [resource.name for resource in resources], f"{where}.uses", "resource")
        data.append(datum := _parse_range(f"{where}.uses.{named}", cycles, origin))
        uses.append(_make_at(datum.key, Use, alternatives, *_range_value(datum)))
    latency = latency_of_class(name, operations) or ONE_CYCLE
    if "latency" in table:
        data.append(datum := _parse_range(f"{where}.latency", table["latency"], origin))
        latency = _make_at(datum.key, Latency, *_range_value(datum))
    return UnitClass(name, capacity, interval, latency, is_shared, tuple(uses)), own, data


def parse_operation(name: str, given: object) -> tuple[TimedOperation, MachineDatum]:
    """Return an operation with the class that serves it and its latency, and the latency with its source."""
    check_keys({name}, OPERATIONS, "operations", "operation")
    where = f"operations.{name}"
    form = '{ class = "C", latency = N, [least, most] or { least = N } }'
    table = _check_table(given, where, {"class", "latency"}, form, {"class", "latency"})
    datum = _parse_range(f"{where}.latency", table["latency"], _parse_origin(table, where))
    unit = printable(table["class"], f"{where}.class")
    return _make_at(where, TimedOperation, name, unit, *_range_value(datum), datum.verified), datum


def latency_of_class(class_: str, operations: Collection[TimedOperation]) -> Latency | None:
    """Return the latency of an instruction of a class, whichever operation it is; None if it is not known."""
    its = [operation for operation in operations if operation.unit == class_]
    # one operation without an upper end leaves the class without one: a maximum over the rest would be no bound
    most = [operation.most for operation in its if operation.most is not None]
    return Latency(min(operation.least for operation in its), max(most)) if its and len(most) == len(its) else None


def check_keys(keys: Collection[str], known: Collection[str], where: str, what: str = "key") -> None:
    """Refuse a key that this table does not have."""
    if unknown := sorted(set(keys) - set(known)):
        at = f"{where}: " if where else ""
        if where and unknown[0] in OF_FILE:
            raise InputError(_misplaced_key(unknown[0], where))
        near = did_you_mean(unknown[0], sorted(known))
        raise InputError(
            f"{at}unknown {what} {shown(unknown[0])}{near or ';'} known: {', '.join(sorted(known)) or '-'}"
        )


def _misplaced_key(key: str, where: str) -> str:
    return f"{where}: {key} is a key of the whole file: write it above the first [table]"


def _check_table(
    given: object, where: str, keys: Collection[str] | None, form: str, needs: Collection[str] = ()
) -> dict[str, Any]:
    if isinstance(given, dict) and keys is not None:
        check_keys(given, {*keys, *_ORIGIN}, where)
    if not isinstance(given, dict) or not set(needs) <= set(given):
        raise InputError(f"{where} needs {form}")
    return given


def _parse_number(where: str, given: object, origin: _DatumOrigin) -> MachineDatum:
    """Return a number, plain or as `value` of a table with a source of its own. The caller checks its range."""
    value, origin = _plain_value(where, given, origin, {"value"})
    return MachineDatum(where, value, *origin)


def _parse_range(where: str, given: object, origin: _DatumOrigin) -> MachineDatum:
    """Return a range: N, [least, most] or { least = N }, which has no upper end."""
    value, origin = _plain_value(where, given, origin, {"value", "least"})
    ends = value if isinstance(value, list) else [value, value]
    if len(ends) != 2:
        raise InputError(f"{where} is N or [least, most], not {shown(value)}")
    return MachineDatum(where, CycleRange(*ends), *origin)


def _plain_value(where: str, given: object, origin: _DatumOrigin, keys: Collection[str]) -> tuple[Any, _DatumOrigin]:
    if not isinstance(given, dict):
        return given, origin
    check_keys(given, {*keys, *_ORIGIN}, where)
    if "least" in given and "value" not in given:
        return [given["least"], None], _parse_origin(given, where) if _ORIGIN & set(given) else origin
    return given.get("value"), _parse_origin(given, where)


def _whole_value(datum: MachineDatum) -> int:
    return cast("int", datum.value)


def _range_value(datum: MachineDatum) -> CycleRange:
    assert isinstance(datum.value, CycleRange)  # noqa: S101 - read as a range
    return datum.value


def _make_at(where: str, make: Callable[..., _T], *given: object) -> _T:
    """Return the value that `make` builds. A message about a wrong one begins with `where`."""
    with prefix_errors(where):
        return make(*given)


def _parse_origin(table: Mapping[str, object], where: str) -> _DatumOrigin:
    source = printable(table["source"], f"{where}: source") if "source" in table else None
    verified = _parse_truth(table.get("verified", source is not None), f"{where}: verified")  # a source verifies
    if verified and source is None:
        raise InputError(f"{where}: verified by what? give a source")
    return source, verified


def _is_shared(table: Mapping[str, object], where: str) -> bool:
    return _parse_truth(table.get("shared", False), f"{where}: shared")


def _parse_truth(given: object, what: str) -> bool:
    if not isinstance(given, bool):
        raise InputError(f"{what} must be true or false, not {shown(given)}")
    return given
