"""The tables of a machine file: what their keys may hold, and the source of each number in them."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar, cast

from makespan.host.errors import InputError, did_you_mean
from makespan.model.machine.values import (
    ONE_CYCLE,
    OPERATIONS,
    Latency,
    Operation,
    Resource,
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
_Origin = tuple[str | None, bool]
_NO_ORIGIN = (None, False)
_T = TypeVar("_T")


class Span(NamedTuple):
    """A range of cycles; `most` is None where nobody knows an upper end."""

    least: int
    most: int | None

    def __str__(self) -> str:
        return str(self.least) if self.least == self.most else f"{self.least}..{self.most or ''}"


@dataclass(frozen=True, slots=True)
class Datum:
    """One number of a machine file; `key` says which, and nobody can verify one without a source."""

    key: str
    value: int | Span
    source: str | None
    verified: bool


def figures(table: str, given: object, known: Mapping[str, str]) -> Iterator[Datum]:
    """Yield the numbers of a table that has nothing else."""
    if not isinstance(given, dict):
        raise InputError(f"{table} is a table of numbers, not {shown(given)}")
    only(given, known, table)
    for key, number in given.items():
        yield figure(f"{table}.{key}", number)


def figure(where: str, given: object, most: int = MAX_FIGURE) -> Datum:
    """Return a whole number with its source."""
    found = _number(where, given, _NO_ORIGIN)
    check_whole(found.value, where, most)
    return found


def resource(name: str, given: object) -> tuple[Resource, Datum]:
    """Ports that classes use besides their own."""
    where = f"resources.{printable(name, 'the name of a resource')}"
    table = _table(given, where, {"capacity", "shared"}, "{ capacity = N }", {"capacity"})
    capacity = _number(f"{where}.capacity", table["capacity"], _origin(table, where))
    return Resource(name, _plain(capacity), _is_shared(table, where)), capacity


def unit(
    name: str, given: object, resources: Collection[Resource], operations: Collection[Operation]
) -> tuple[UnitClass, tuple[Resource, ...], list[Datum]]:
    """A class that may use these resources and serves these operations, resources of its own, and its numbers."""
    if name in OF_FILE:
        raise InputError(_misplaced(name, "units"))
    where = f"units.{class_name(name)}"
    table = _table(
        given, where, {"capacity", "interval", "latency", "shared", "uses"}, "{ capacity = N }", {"capacity"}
    )
    origin, is_shared = _origin(table, where), _is_shared(table, where)
    data = [_number(f"{where}.capacity", table["capacity"], origin)]
    capacity, interval = _plain(data[0]), 1
    own: tuple[Resource, ...] = ()
    uses = []
    if "interval" in table:
        data.append(datum := _number(f"{where}.interval", table["interval"], origin))
        interval = _plain(datum)
        if isinstance(datum.value, list):
            # A class holds its port for a fixed time; what is held for a varying one is a resource, of no other class.
            data[-1] = datum = _range(f"{where}.interval", table["interval"], origin)
            own, interval = (Resource(f"{name.lower()}-ports", capacity, is_shared),), 1
            uses.append(_at(datum.key, Use, (own[0].name,), *_ends(datum)))
    used = _table(table.get("uses", {}), f"{where}.uses", None, "{ RESOURCE = N or [least, most] }")
    for named, cycles in used.items():
        alternatives = tuple(named.split(_OR))
        only(alternatives, [resource.name for resource in resources], f"{where}.uses", "resource")
        data.append(datum := _range(f"{where}.uses.{named}", cycles, origin))
        uses.append(_at(datum.key, Use, alternatives, *_ends(datum)))
    latency = served(name, operations) or ONE_CYCLE
    if "latency" in table:
        data.append(datum := _range(f"{where}.latency", table["latency"], origin))
        latency = _at(datum.key, Latency, *_ends(datum))
    return UnitClass(name, capacity, interval, latency, is_shared, tuple(uses)), own, data


def operation(name: str, given: object) -> tuple[Operation, Datum]:
    """Which class serves an operation, and after how many cycles the result is there."""
    only({name}, OPERATIONS, "operations", "operation")
    where = f"operations.{name}"
    form = '{ class = "C", latency = N, [least, most] or { least = N } }'
    table = _table(given, where, {"class", "latency"}, form, {"class", "latency"})
    datum = _range(f"{where}.latency", table["latency"], _origin(table, where))
    unit = printable(table["class"], f"{where}.class")
    return _at(where, Operation, name, unit, *_ends(datum), datum.verified), datum


def served(class_: str, operations: Collection[Operation]) -> Latency | None:
    """Return how long an instruction of a class may take, whichever operation it is; None if that is not known."""
    its = [operation for operation in operations if operation.unit == class_]
    most = [operation.most for operation in its if operation.most is not None]
    return Latency(min(operation.least for operation in its), max(most)) if its and len(most) == len(its) else None


def only(keys: Collection[str], known: Collection[str], where: str, what: str = "key") -> None:
    """Refuse a key that nobody knows."""
    if unknown := sorted(set(keys) - set(known)):
        at = f"{where}: " if where else ""
        if where and unknown[0] in OF_FILE:
            raise InputError(_misplaced(unknown[0], where))
        near = did_you_mean(unknown[0], sorted(known))
        raise InputError(
            f"{at}unknown {what} {shown(unknown[0])}{near or ';'} known: {', '.join(sorted(known)) or '-'}"
        )


def _misplaced(key: str, where: str) -> str:
    """What to say of a key of the whole file that stands in a table, as TOML reads all that follows its head."""
    return f"{where}: {key} is a key of the whole file: write it above the first [table]"


def _table(
    given: object, where: str, keys: Collection[str] | None, form: str, needs: Collection[str] = ()
) -> dict[str, Any]:
    if isinstance(given, dict) and keys is not None:
        only(given, {*keys, *_ORIGIN}, where)
    if not isinstance(given, dict) or not set(needs) <= set(given):
        raise InputError(f"{where} needs {form}")
    return given


def _number(where: str, given: object, origin: _Origin) -> Datum:
    """Return a number, plain or as `value` of a table with a source of its own; who takes it checks it."""
    value, origin = _value(where, given, origin, {"value"})
    return Datum(where, value, *origin)


def _range(where: str, given: object, origin: _Origin) -> Datum:
    """Return the same of a range: N, [least, most] or { least = N }, which has no upper end."""
    value, origin = _value(where, given, origin, {"value", "least"})
    ends = value if isinstance(value, list) else [value, value]
    if len(ends) != 2:
        raise InputError(f"{where} is N or [least, most], not {shown(value)}")
    return Datum(where, Span(*ends), *origin)


def _value(where: str, given: object, origin: _Origin, keys: Collection[str]) -> tuple[Any, _Origin]:
    if not isinstance(given, dict):
        return given, origin
    only(given, {*keys, *_ORIGIN}, where)
    if "least" in given and "value" not in given:
        return [given["least"], None], _origin(given, where) if _ORIGIN & set(given) else origin
    return given.get("value"), _origin(given, where)


def _plain(datum: Datum) -> int:
    """Return a number that its taker checks, whatever it is."""
    return cast("int", datum.value)


def _ends(datum: Datum) -> Span:
    assert isinstance(datum.value, Span)  # noqa: S101 - read as a range
    return datum.value


def _at(where: str, make: Callable[..., _T], *given: object) -> _T:
    """Return a value; `where` begins what it says of a wrong one."""
    try:
        return make(*given)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def _origin(table: Mapping[str, object], where: str) -> _Origin:
    source = printable(table["source"], f"{where}: source") if "source" in table else None
    verified = _truth(table.get("verified", source is not None), f"{where}: verified")
    if verified and source is None:
        raise InputError(f"{where}: verified by what? give a source")
    return source, verified


def _is_shared(table: Mapping[str, object], where: str) -> bool:
    return _truth(table.get("shared", False), f"{where}: shared")


def _truth(given: object, what: str) -> bool:
    if not isinstance(given, bool):
        raise InputError(f"{what} must be true or false, not {shown(given)}")
    return given
