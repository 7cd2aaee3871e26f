"""The tables `[lapses]` and `[queues.NAME]` of machine files."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from makespan.host.errors import InputError, prefix_errors
from makespan.model.machine.known_lapses import CacheSize, KnownLapses, LineCache, RegisterReads, UnitQueue
from makespan.model.machine.numbers import (
    DatumOrigin,
    MachineDatum,
    check_keys,
    check_table,
    parse_number,
    parse_origin,
    parse_truth,
    whole_value,
)
from makespan.model.machine.values import (
    MAX_CAPACITY,
    MAX_LATENCY,
    class_name,
    printable,
    resource_name,
    shown,
)

QUEUE_FORM = 'memory = { units = ["L"], places = 5, blocks = true }'
"""An example of a queue."""

MAX_BANKS = 64
MAX_LINE_BYTES = 4096
MAX_LINES = 1 << 16

_LINE_UNIT = 16
"""An instruction has so many bytes, and lies in one line for that."""

_CARRIED, _EXPIRY = "carried-over", "expiry"
_CYCLES = (0, MAX_LATENCY)
_SIZE = {"line": (1, MAX_LINE_BYTES), "sets": (1, MAX_LINES), "ways": (1, MAX_LINES)}
_CACHE = {**_SIZE, "window": (1, MAX_LATENCY), "gap": _CYCLES, "ahead": (0, MAX_LINES)}
_FENCE = dict.fromkeys(("block", "gpu", "system"), _CYCLES)


class _NumbersForm(NamedTuple):
    """The form of a table of numbers: its keys, each with the least and the most that the number may be.

    Args:
        needs: the keys that the table must have.
        optional: the keys that it may have.
        others: the keys that it may have, and that are no numbers.
    """

    needs: Mapping[str, tuple[int, int]]
    optional: Mapping[str, tuple[int, int]] = MappingProxyType({})
    others: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{{ {', '.join(f'{key} = N' for key in self.needs)} }}"


_FORMS: Mapping[str, _NumbersForm] = {
    "register-read": _NumbersForm({"banks": (1, MAX_BANKS), "ports": (1, MAX_BANKS)}, others=("variable",)),
    "multiply": _NumbersForm({"cycles": _CYCLES}),
    "constant": _NumbersForm({"cycles": _CYCLES}, _CACHE),
    "fetch": _NumbersForm(_CACHE),
    "next": _NumbersForm(_SIZE),
    "fence": _NumbersForm(_FENCE),
}

_KnownNumbers: TypeAlias = Mapping[str, Mapping[str, int]]
"""The numbers of the tables within `[lapses]`, by table and key."""


def parse_lapses(given: object) -> tuple[KnownLapses, list[MachineDatum]]:
    """Return what the table `[lapses]` says, and its numbers with their sources.

    Raises:
        InputError: an unknown key, a number out of range, or one that is verified although it is carried over.
    """
    if not isinstance(given, dict):
        raise InputError(f"lapses is a table, not {shown(given)}: begin it with [lapses]")
    check_keys(given, {*_FORMS, _CARRIED, _EXPIRY}, "lapses")
    read = {key: _parse_numbers(f"lapses.{key}", given[key], form) for key, form in _FORMS.items() if key in given}
    known = {key: {name: whole_value(datum) for name, datum in its.items()} for key, its in read.items()}
    data = [datum for its in read.values() for datum in its.values()]
    if _EXPIRY not in given:  # 0 would be a promise, and the kindest one
        raise InputError(
            f"lapses needs {_EXPIRY} = N: for how many cycles behind the end of a warp may its lapses come?"
        )
    data.append(_parse_number(f"lapses.{_EXPIRY}", given[_EXPIRY], (None, False), _CYCLES))
    carried_over = printable(given[_CARRIED], f"lapses: {_CARRIED}") if _CARRIED in given else ""
    if carried_over and (verified := [datum.key for datum in data if datum.verified]):
        raise InputError(f"{verified[0]} is carried over from {carried_over}, so nothing confirms it: verified = false")
    lapses = KnownLapses(
        registers=_registers(given, known),
        multiply=known.get("multiply", {}).get("cycles"),
        constant=known.get("constant", {}).get("cycles"),
        constants=_cache("constant", known),
        code=_cache("fetch", known),
        fence=known.get("fence", {}),
        expiry=whole_value(data[-1]),
        carried_over=carried_over,
        is_verified=all(datum.verified for datum in data),
    )
    return lapses, data


def _registers(given: Mapping[str, Any], known: _KnownNumbers) -> RegisterReads | None:
    if "register-read" not in known:
        return None
    table, where = given["register-read"], "lapses.register-read"
    if "variable" not in table:
        raise InputError(f"{where} needs variable = true, or false: do reads from a queue make a scheduler lapse?")
    return RegisterReads(**known["register-read"], is_variable=parse_truth(table["variable"], f"{where}.variable"))


def _cache(key: str, known: _KnownNumbers) -> LineCache | None:
    """Return the cache of a table, or None where the table has only the lapses of a miss."""
    numbers = {name: number for name, number in known.get(key, {}).items() if name != "cycles"}
    if not numbers:
        return None
    if lacking := [name for name in _CACHE if name not in numbers]:
        raise InputError(f"lapses.{key} has {next(iter(numbers))} and no {lacking[0]}: it needs {', '.join(_CACHE)}")
    if numbers["line"] % _LINE_UNIT:
        raise InputError(f"lapses.{key}.line must be a multiple of {_LINE_UNIT} bytes, not {numbers['line']}")
    return LineCache(**numbers, next=CacheSize(**known["next"]) if "next" in known else None)


def _parse_numbers(where: str, given: object, form: _NumbersForm) -> dict[str, MachineDatum]:
    table = check_table(given, where, {*form.needs, *form.optional, *form.others}, str(form), form.needs)
    ranges, origin = {**form.needs, **form.optional}, parse_origin(table, where)
    return {
        key: _parse_number(f"{where}.{key}", table[key], origin, ends) for key, ends in ranges.items() if key in table
    }


def _parse_number(where: str, given: object, origin: DatumOrigin, ends: tuple[int, int]) -> MachineDatum:
    datum, (least, most) = parse_number(where, given, origin), ends
    if isinstance(datum.value, bool) or not isinstance(datum.value, int):  # a file may have anything there
        raise InputError(f"{where} must be a whole number, not {shown(datum.value)}")
    if not least <= datum.value <= most:
        raise InputError(f"{where} must be {least}..{most}, not {shown(datum.value)}")
    return datum


def parse_queue(name: str, given: object) -> tuple[UnitQueue, MachineDatum]:
    """Return a queue, and its places with the source.

    Raises:
        InputError: an unknown key, no class, or a number out of range.
    """
    where = f"queues.{resource_name(name, 'a queue')}"
    keys = {"units", "places", "blocks"}
    table = check_table(given, where, keys, "{ units = [CLASS, ...], places = N, blocks = true }", keys)
    units = table["units"]
    if not isinstance(units, list) or not units or len({*map(str, units)}) < len(units):
        raise InputError(f'{where}.units is a list of different classes, such as ["L"], not {shown(units)}')
    with prefix_errors(f"{where}.units"):
        served = tuple(class_name(printable(unit, "a class")) for unit in units)
    places = _parse_number(f"{where}.places", table["places"], parse_origin(table, where), (1, MAX_CAPACITY))
    return UnitQueue(name, served, whole_value(places), parse_truth(table["blocks"], f"{where}.blocks")), places
