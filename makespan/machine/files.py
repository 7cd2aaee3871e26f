"""Machine files: TOML with a source beside each number."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.resources.abc import Traversable
from pathlib import Path

from makespan.errors import InputError, did_you_mean
from makespan.machine.values import (
    ONE_CYCLE,
    UNTIMED,
    Latency,
    Machine,
    Scheduler,
    UnitClass,
    check_whole,
    class_name,
    printable,
    shown,
)
from makespan.text_file import named_file, parse_toml, read_text, shipped_files

MAX_FILE_BYTES = 16 << 10  # tomllib takes quadratic time for a long dotted key
MAX_FIGURE = 10**9
WARP = 32

ISSUE = {
    "width": "warps that issue per cycle",
    "schedulers": "warp schedulers; each warp belongs to one of them",
    "dispatch": "instructions that a scheduler may issue per cycle, all of one warp",
}
RESIDENCY = {
    "warps": "resident warps per SM, at most",
    "blocks": "resident blocks per SM, at most",
    "registers": "32-bit registers per SM",
    "shared_bytes": "bytes of shared memory per SM",
}
CORE_THROUGHPUT = {
    "fp32": "32-bit floating-point add, multiply, multiply-add",
    "int_add": "32-bit integer add",
    "int_mul": "32-bit integer multiply",
    "shift": "32-bit shift",
    "cmp_minmax": "compare, minimum, maximum",
    "logic": "32-bit logic",
    "popc_clz": "bit counts",
    "shuffle": "warp shuffle",
    "cvt": "conversions of types, other than from 8-bit and to 64-bit ones",
}
THROUGHPUT = {
    **CORE_THROUGHPUT,
    "fp64": "64-bit floating-point add, multiply, multiply-add",
    "sfu": "reciprocal, square root, sine, exponential and so on, 32-bit",
    "ldst": "lanes of the load/store units",
    "sync": "__syncthreads()",
}
_SUFFIX = ".toml"
_TEXTS = {"name", "architecture", "examples", "clock", "source", "scheduler"}
_LISTS = {"compute_capability", "notes"}
_FIGURES = {"issue": ISSUE, "residency": RESIDENCY, "throughput": THROUGHPUT}


@dataclass(frozen=True, slots=True)
class Datum:
    """One number of a machine file; `key` says which, and nobody can verify one without a source."""

    key: str
    value: int | Latency
    source: str | None
    verified: bool


@dataclass(frozen=True, slots=True)
class MachineFile:
    """A machine, what its file says about it, and each number with its source.

    Args:
        clock: which clock counts the cycles.
        data: every number of the file; a key that is not there is not known.
    """

    machine: Machine
    architecture: str | None
    compute_capability: tuple[str, ...]
    examples: str | None
    clock: str | None
    source: str | None
    notes: tuple[str, ...]
    data: tuple[Datum, ...]

    def values(self, table: str) -> dict[str, int]:
        """The numbers of one of the tables issue, residency and throughput (results per cycle)."""
        return {
            datum.key.removeprefix(f"{table}."): datum.value
            for datum in self.data
            if datum.key.startswith(f"{table}.") and isinstance(datum.value, int)
        }

    @property
    def unverified(self) -> tuple[Datum, ...]:
        """The numbers that nobody has confirmed."""
        return tuple(datum for datum in self.data if not datum.verified)

    @property
    def caveats(self) -> tuple[str, ...]:
        """Where the machine is known to be kinder than the GPU whose numbers it has."""
        return tuple(self._caveats())

    def _caveats(self) -> Iterator[str]:
        timed = {datum.key.split(".")[1] for datum in self.data if datum.key.endswith(".latency")}
        if untimed := [unit.name for unit in self.machine.units if self.architecture and unit.name not in timed]:
            yield f"{UNTIMED}{', '.join(untimed)}: 1 cycle, the least there is, stands in its place"
        schedulers = self.values("issue").get("schedulers", 1)
        if schedulers > 1:
            yield f"a warp belongs to one of {schedulers} schedulers; the machine lets any warps issue together"
        rates = self.values("throughput")
        if rates:
            yield "ports and intervals are throughputs in lowest terms; more ports of longer intervals can take longer"
        fp32 = rates.get("fp32", 0)
        slower = [f"{name} {rates[name]}" for name in CORE_THROUGHPUT if rates.get(name, fp32) < fp32]
        if slower and "C" in self.machine.capacities:
            yield f"C is as fast as fp32 ({fp32} results per cycle); slower: {', '.join(slower)}"


def shipped() -> dict[str, MachineFile]:
    """The machines that come with the package, by name."""
    return {name: _read(file, file.name) for name, file in shipped_files("machines", _SUFFIX).items()}


def find(name: str) -> MachineFile:
    """A machine that comes with the package, by its name, or that of a file, by a path that ends in `.toml`.

    Raises:
        InputError: neither, or see `read`.
    """
    return _read(*named_file(name, "machines", _SUFFIX, "machine"))


def read(path: Path) -> MachineFile:
    """Read a machine file.

    Raises:
        InputError: a file that cannot be read or is too large, no TOML, an unknown key, or a value out of range.
    """
    return _read(path, str(path))


def _read(file: Path | Traversable, where: str) -> MachineFile:
    text = read_text(file, "machine file", MAX_FILE_BYTES, where=where)
    document = parse_toml(text, "machine file", where)
    try:
        return _machine_file(document, Path(where).stem)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def _machine_file(document: Mapping[str, object], stem: str) -> MachineFile:
    _only(document, _TEXTS | _LISTS | {"units"} | set(_FIGURES), "")
    texts = {key: printable(document[key], key) if key in document else None for key in _TEXTS}
    units = document.get("units")
    if not isinstance(units, dict):
        raise InputError("needs a table [units] such as C = { capacity = 1 }")
    classes, data = [], []
    for name, given in units.items():
        unit, its_data = _unit(name, given)
        classes.append(unit)
        data += its_data
    for table, known in _FIGURES.items():
        data += _data(table, document.get(table, {}), known)
    width = next((datum.value for datum in data if datum.key == "issue.width"), None)
    assert not isinstance(width, Latency)  # noqa: S101 - only units have one
    found = MachineFile(
        machine=Machine(texts["name"] or stem, tuple(classes), width, scheduler=_scheduler(texts["scheduler"])),
        architecture=texts["architecture"],
        compute_capability=_texts(document, "compute_capability"),
        examples=texts["examples"],
        clock=texts["clock"],
        source=texts["source"],
        notes=_texts(document, "notes"),
        data=tuple(data),
    )
    return replace(found, machine=replace(found.machine, caveats=found.caveats))


def _unit(name: str, given: object) -> tuple[UnitClass, list[Datum]]:
    if misplaced := _above(name, "units"):
        raise InputError(misplaced)
    where = f"units.{class_name(name)}"
    if isinstance(given, dict):
        _only(given, {"capacity", "interval", "latency", "source", "verified"}, where)
    if not isinstance(given, dict) or "capacity" not in given:
        raise InputError(f"units.{shown(name)} needs {{ capacity = N }}")
    latency = given.get("latency")
    table = latency if isinstance(latency, dict) else {"value": latency}
    _only(table, {"value", "source", "verified"}, f"{where}.latency")
    cycles = ONE_CYCLE if latency is None else _latency(table.get("value"), f"{where}.latency")
    unit = UnitClass(name, given["capacity"], given.get("interval", 1), cycles)
    source, verified = _origin(given, where)
    keys = [key for key in ("capacity", "interval") if key in given]
    data = [Datum(f"{where}.{key}", given[key], source, verified) for key in keys]
    if latency is not None:
        own = _origin(table, f"{where}.latency") if isinstance(latency, dict) else (source, verified)
        data.append(Datum(f"{where}.latency", cycles, *own))
    return unit, data


def _latency(given: object, where: str) -> Latency:
    both = given if isinstance(given, list) else [given, given]
    if len(both) != 2:
        raise InputError(f"{where} is N or [least, most], not {shown(given)}")
    try:
        return Latency(*both)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def _data(table: str, given: object, known: Mapping[str, str]) -> Iterator[Datum]:
    if not isinstance(given, dict):
        raise InputError(f"{table} is a table of numbers, not {shown(given)}")
    _only(given, set(known), table)
    for key, number in given.items():
        where = f"{table}.{key}"
        origin = number if isinstance(number, dict) else {"value": number}
        _only(origin, {"value", "source", "verified"}, where)
        check_whole(origin.get("value"), where, MAX_FIGURE)
        yield Datum(where, origin["value"], *_origin(origin, where))


def _origin(table: Mapping[str, object], where: str) -> tuple[str | None, bool]:
    source = printable(table["source"], f"{where}: source") if "source" in table else None
    verified = table.get("verified", source is not None)
    if not isinstance(verified, bool):
        raise InputError(f"{where}: verified must be true or false, not {shown(verified)}")
    if verified and source is None:
        raise InputError(f"{where}: verified by what? give a source")
    return source, verified


def _scheduler(given: str | None) -> Scheduler:
    if given not in (None, *Scheduler):
        raise InputError(f"scheduler is {' or '.join(Scheduler)}, not {shown(given)}")
    return Scheduler(given or Scheduler.ANY)


def _texts(document: Mapping[str, object], key: str) -> tuple[str, ...]:
    given = document.get(key, [])
    if not isinstance(given, list):
        raise InputError(f"{key} must be a list of texts, not {shown(given)}")
    return tuple(printable(item, key) for item in given)


def _only(table: Mapping[str, object], known: set[str], where: str) -> None:
    if unknown := sorted(set(table) - known):
        at = f"{where}: " if where else ""
        if where and (misplaced := _above(unknown[0], where)):
            raise InputError(misplaced)
        near = did_you_mean(unknown[0], sorted(known))
        raise InputError(f"{at}unknown key {shown(unknown[0])}{near or ';'} known: {', '.join(sorted(known))}")


def _above(key: str, where: str) -> str:
    """What to say of a key of the whole file that stands in a table, as TOML reads all that follows its head."""
    if key not in _TEXTS | _LISTS:
        return ""
    return f"{where}: {key} is a key of the whole file: write it above the first [table]"
