"""The numbers of machine files, each with its source."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias, TypeVar, cast

from makespan.host.errors import InputError, did_you_mean, prefix_errors
from makespan.model.machine.values import check_whole, printable, shown

MAX_FIGURE = 10**9
OF_FILE = {
    *("name", "architecture", "examples", "clock", "source", "scheduler", "partitions", "assignment"),
    *("compute_capability", "notes", "caveats"),
}
"""The keys of the whole file: all but the tables."""
_ORIGIN = {"source", "verified"}
DatumOrigin: TypeAlias = tuple[str | None, bool]
"""The source of a number, and whether it confirms the number."""

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
    found = parse_number(where, given, _NO_SOURCE)
    check_whole(found.value, where, most)
    return found


def check_keys(keys: Collection[str], known: Collection[str], where: str, what: str = "key") -> None:
    """Refuse a key that this table does not have."""
    if unknown := sorted(set(keys) - set(known)):
        at = f"{where}: " if where else ""
        if where and unknown[0] in OF_FILE:
            raise InputError(misplaced_key(unknown[0], where))
        near = did_you_mean(unknown[0], sorted(known))
        raise InputError(
            f"{at}unknown {what} {shown(unknown[0])}{near or ';'} known: {', '.join(sorted(known)) or '-'}"
        )


def misplaced_key(key: str, where: str) -> str:
    """Return the message about a key of the whole file that stands in a table."""
    return f"{where}: {key} is a key of the whole file: write it above the first [table]"


def check_table(
    given: object, where: str, keys: Collection[str] | None, form: str, needs: Collection[str] = ()
) -> dict[str, Any]:
    """Return the table, which has only these keys, or any if None, and those that it needs; `form` is an example."""
    if isinstance(given, dict) and keys is not None:
        check_keys(given, {*keys, *_ORIGIN}, where)
    if not isinstance(given, dict) or not set(needs) <= set(given):
        raise InputError(f"{where} needs {form}")
    return given


def parse_number(where: str, given: object, origin: DatumOrigin) -> MachineDatum:
    """Return a number, plain or as `value` of a table with a source of its own. The caller checks its range."""
    value, origin = _plain_value(where, given, origin, {"value"})
    return MachineDatum(where, value, *origin)


def parse_range(where: str, given: object, origin: DatumOrigin) -> MachineDatum:
    """Return a range: N, [least, most] or { least = N }, which has no upper end."""
    value, origin = _plain_value(where, given, origin, {"value", "least"})
    ends = value if isinstance(value, list) else [value, value]
    if len(ends) != 2:
        raise InputError(f"{where} is N or [least, most], not {shown(value)}")
    return MachineDatum(where, CycleRange(*ends), *origin)


def _plain_value(where: str, given: object, origin: DatumOrigin, keys: Collection[str]) -> tuple[Any, DatumOrigin]:
    if not isinstance(given, dict):
        return given, origin
    check_keys(given, {*keys, *_ORIGIN}, where)
    if "least" in given and "value" not in given:
        return [given["least"], None], parse_origin(given, where) if _ORIGIN & set(given) else origin
    return given.get("value"), parse_origin(given, where)


def whole_value(datum: MachineDatum) -> int:
    """Return the value of a whole number."""
    return cast("int", datum.value)


def range_value(datum: MachineDatum) -> CycleRange:
    """Return the value of a range."""
    assert isinstance(datum.value, CycleRange)  # noqa: S101 - read as a range
    return datum.value


def make_at(where: str, make: Callable[..., _T], *given: object) -> _T:
    """Return the value that `make` builds. A message about a wrong one begins with `where`."""
    with prefix_errors(where):
        return make(*given)


def parse_origin(table: Mapping[str, object], where: str) -> DatumOrigin:
    """Return what a table says of the source of its numbers. A source confirms them unless the table denies it."""
    source = printable(table["source"], f"{where}: source") if "source" in table else None
    verified = parse_truth(table.get("verified", source is not None), f"{where}: verified")
    if verified and source is None:
        raise InputError(f"{where}: verified by what? give a source")
    return source, verified


def parse_truth(given: object, what: str) -> bool:
    """Return a truth value."""
    if not isinstance(given, bool):
        raise InputError(f"{what} must be true or false, not {shown(given)}")
    return given
