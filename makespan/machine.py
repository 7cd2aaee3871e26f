"""The machine: classes of execution units on one streaming multiprocessor, and machine files."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from makespan.errors import InputError

MAX_CAPACITY = 1024
_SUFFIX = ".toml"


@dataclass(frozen=True, slots=True)
class UnitClass:
    """Units that serve the same instructions; `capacity` warp-instructions at most per cycle."""

    name: str
    capacity: int

    def __post_init__(self) -> None:
        if not (len(self.name) == 1 and "A" <= self.name <= "Z"):
            raise InputError(f"a unit class is one capital letter A-Z, not {self.name!r}")
        if isinstance(self.capacity, bool) or not isinstance(self.capacity, int):
            raise InputError(f"capacity of {self.name} must be a whole number, not {self.capacity!r}")
        if not 1 <= self.capacity <= MAX_CAPACITY:
            raise InputError(f"capacity of {self.name} must be 1..{MAX_CAPACITY}, not {self.capacity}")


@dataclass(frozen=True, slots=True)
class Machine:
    """One streaming multiprocessor. Every instruction holds one unit of its class for one cycle."""

    name: str
    units: tuple[UnitClass, ...]

    def __post_init__(self) -> None:
        names = [unit.name for unit in self.units]
        if not names:
            raise InputError(f"machine {self.name!r} has no unit class; give at least one, such as C=1")
        if len(set(names)) != len(names):
            raise InputError(f"machine {self.name!r} names a unit class twice: {', '.join(names)}")

    @classmethod
    def of(cls, capacities: Mapping[str, int], name: str = "custom") -> "Machine":
        """A machine from capacities.

        >>> Machine.of({"C": 2, "L": 1}).capacities
        {'C': 2, 'L': 1}
        """
        return cls(name, tuple(UnitClass(unit, capacity) for unit, capacity in capacities.items()))

    @property
    def capacities(self) -> dict[str, int]:
        """Warp-instructions per cycle by class name, in the order of the machine."""
        return {unit.name: unit.capacity for unit in self.units}


PAPER = Machine.of({"C": 1, "L": 1}, "paper")
"""Source: Berezovskyi, Bletsas and Andersson, ECRTS 2012, base case: one core and one load/store unit."""


def shipped_machines() -> dict[str, Machine]:
    """The machines that come with the package, by name."""
    folder = resources.files("makespan") / "data" / "machines"
    files = sorted((f for f in folder.iterdir() if f.name.endswith(_SUFFIX)), key=lambda f: f.name)
    return {f.name.removesuffix(_SUFFIX): _parse(f.read_text("utf-8"), f.name) for f in files}


def read_machine(path: Path) -> Machine:
    """Read a machine file: `name = "..."` and a table `[units]` with `C = { capacity = 1 }`.

    Raises:
        InputError: not TOML, an unknown key, a capacity out of range, or a file that cannot be read.
    """
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot read the machine file: {_reason(error)}") from None
    return _parse(text, str(path))


def _parse(text: str, where: str) -> Machine:
    try:
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f"{where}: not a TOML machine file: {error}") from None
    _only(document, {"name", "source", "units"}, where)
    units = document.get("units")
    if not isinstance(units, dict):
        raise InputError(f"{where}: needs a table [units] such as C = {{ capacity = 1 }}")
    for name, unit in units.items():
        if not isinstance(unit, dict) or "capacity" not in unit:
            raise InputError(f"{where}: unit {name} needs {{ capacity = N }}")
        _only(unit, {"capacity", "source"}, f"{where}: unit {name}")
    name = document.get("name", Path(where).stem)
    if not isinstance(name, str):
        raise InputError(f"{where}: name must be a text, not {name!r}")
    try:
        return Machine.of({unit: table["capacity"] for unit, table in units.items()}, name)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def _only(table: Mapping[str, object], known: set[str], where: str) -> None:
    if unknown := sorted(set(table) - known):
        raise InputError(f"{where}: unknown key {unknown[0]!r}; known: {', '.join(sorted(known))}")


def _reason(error: OSError | UnicodeDecodeError) -> str:
    return error.strerror or str(error) if isinstance(error, OSError) else "it is not UTF-8 text"
