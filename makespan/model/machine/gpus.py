"""Descriptions of whole GPUs: one TOML file each, with a source and a status beside every number, or `KEY=VALUE`.

A number that is not in the file is not known. The message about it says how to measure it. No default is assumed.

The tables in `data/gpu_keys` list the keys: one for what the core reads, and one for each model of a satellite. A key
that no table lists is refused in every file: a typing error must not turn into a missing number.
"""

import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from importlib.resources.abc import Traversable
from math import isfinite
from pathlib import Path
from types import MappingProxyType
from typing import Literal, NamedTuple, TypeAlias

from makespan.host.errors import InputError, did_you_mean, prefix_errors
from makespan.host.text_file import named_file, parse_toml, read_text, shipped_files
from makespan.model.machine.files import machines_for
from makespan.model.machine.occupancy import SmLimits, residency
from makespan.model.machine.values import MAX_SMS, Machine, capability, printable, shown


class ValueRange(StrEnum):
    """The range of values that a datum may take."""

    WHOLE = "a whole number of at least 1"
    POSITIVE = "a number above 0"
    NOT_NEGATIVE = "a number of at least 0"
    COUNT = "a whole number of at least 0"


class GpuKey(NamedTuple):
    """The description of a datum before it has a value.

    Args:
        values: a `ValueRange`, or the texts that the value may be, separated by `|`.
        how: the way to get the number, in the imperative, for the message that it is missing.
        instead: the tables whose keys of the same last name state the same datum in another way.
    """

    unit: str
    values: str
    meaning: str
    how: str
    instead: str = ""

    @property
    def choices(self) -> tuple[str, ...]:
        """Return the texts that the value may be. Empty means that it is a number."""
        return () if self.values in set(ValueRange) else tuple(self.values.split("|"))


_NUMBER = re.compile(r"(?<=\.)[1-9][0-9]{0,2}(?=\.|gb?(?:\.|$))")  # as in mig.1g.10gb and launch.12.x1


def _read_keys() -> Iterator[tuple[str, GpuKey]]:
    for file in shipped_files("gpu_keys", ".toml").values():
        table = tomllib.loads(file.read_text("utf-8"))
        lists = {f"<{name}>": given.split() for name, given in table.items() if isinstance(given, str)}
        for pattern, given in ((key, given) for key, given in table.items() if isinstance(given, list)):
            placeholder = next((each for each in lists if each in pattern), "")
            for name in lists.get(placeholder, [""]):  # a key without a placeholder stands for itself
                key, *texts = (text.replace(placeholder, name) for text in (pattern, *given))
                yield key, GpuKey(*texts)


# By dotted key, in the order in which files are written; <N> stands for a whole number.
KEYS: Mapping[str, GpuKey] = MappingProxyType(dict(_read_keys()))


def listed_key(key: str) -> str:
    """Return the key as the tables list it, whether or not they do.

    >>> listed_key("mig.1g.10gb"), listed_key("hong_kim.mem_ld")
    ('mig.<N>g.<N>gb', 'hong_kim.mem_ld')
    """
    return _NUMBER.sub("<N>", key.replace("<", "?"))  # a user who writes <N> means no number


def alternatives(key: str) -> tuple[str, ...]:
    """Return the other keys that state the same datum, as an issue delay is stated by a throughput or by units."""
    model, _, rest = key.partition(".")
    tables = KEYS[listed_key(key)].instead.split()
    return tuple(f"{model}.{table}.{rest.partition('.')[2]}" for table in tables)


_DIGITS = 40  # longer numbers are refused


def parse_number(text: str) -> float | None:
    """Return the number, possibly infinite or NaN, that an ASCII text of at most 40 characters holds; else None.

    >>> parse_number("1.5e-6"), parse_number("1_000"), parse_number("٣")
    (1.5e-06, None, None)
    """
    # `float` accepts digits of any script and underscores, which files may not have
    if len(text) > _DIGITS or not text.isascii() or "_" in text:
        return None
    try:
        return float(text)
    except ValueError:
        return None


MAX_FILE_BYTES = 64 << 10
MAX_VALUE = 1e15
_SUFFIX = ".toml"
_TEXTS = ("name", "architecture", "compute_capability")

DatumValue: TypeAlias = int | float | str


class DatumStatus(StrEnum):
    """The degree to which a number can be trusted."""

    MEASURED = "measured"
    DATA_SHEET = "data sheet"
    LITERATURE = "literature, unverified"
    ASSUMED = "assumed (same generation)"
    GIVEN = "given"
    """The number was given on the command line or by a caller, for this estimate alone."""


_SCOPES: Mapping[str | None, Literal["block", "warp"]] = {"block": "block", "warp": "warp"}
_MIG = "mig."


@dataclass(frozen=True, slots=True)
class GpuDatum:
    """One number of a GPU, or one of a few texts, with its source."""

    value: DatumValue
    unit: str
    source: str
    status: DatumStatus


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU, as far as it is known.

    Args:
        data: the known numbers by dotted key, see `KEYS`.

    Raises:
        InputError: an unknown key, a value out of range, or a compute capability that is none.
    """

    name: str
    data: Mapping[str, GpuDatum]
    architecture: str | None = None
    compute_capability: str | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for key, known in self.data.items():
            _check_value(_known_key(key), key, known.value)
        if self.compute_capability is not None:
            capability(self.compute_capability)
        object.__setattr__(self, "data", MappingProxyType(dict(self.data)))  # a GPU cannot change after its check

    def get(self, key: str) -> float | None:
        """Return the number, or None if it is not known."""
        found = self.data.get(key) if _known_key(key) else None
        return None if found is None else float(found.value)

    def number(self, key: str) -> float:
        """Return the number of a key as a float.

        Raises:
            InputError: it is not known. The message says what it is and how to measure or give it.
        """
        return float(self.datum(key).value)

    def whole(self, key: str) -> int:
        """Return the number of a key that counts something; raises as `number` does."""
        return int(self.datum(key).value)

    def text(self, key: str) -> str | None:
        """Return the text of a key that has choices, or None if it is not known."""
        return str(self.data[key].value) if _known_key(key) and key in self.data else None

    def datum(self, key: str) -> GpuDatum:
        """Return the number with its source; raises as `number` does."""
        known = _known_key(key)
        if key not in self.data:
            unit = f" [{known.unit}]" if known.unit else ""
            raise InputError(f"GPU {self.name}: {key}{unit} is not known ({known.meaning}); {known.how}, or give it")
        return self.data[key]

    def missing(self, *keys: str) -> tuple[str, ...]:
        """Return those of the keys that are not known."""
        return tuple(key for key in keys if _known_key(key) and key not in self.data)

    def require(self, *keys: str, where: Mapping[str, str] | None = None) -> None:
        """Refuse a GPU for which some of these numbers are not known.

        Args:
            where: the input that needs a number, by key.

        Raises:
            InputError: a number is not known. The message names all of them, and how to get each.
        """
        missing = self.missing(*keys)
        if len(missing) == 1 and missing[0] not in (where or {}):
            self.datum(missing[0])
        if not missing:
            return
        by_how: dict[str, list[str]] = {}
        for key in missing:
            needs = f" ({where[key]})" if where and key in where else ""
            by_how.setdefault(_known_key(key).how, []).append(key + needs)
        hows = "; ".join(f"{', '.join(several)}: {how}" for how, several in by_how.items())
        count = "1 number is" if len(missing) == 1 else f"{len(missing)} numbers are"
        raise InputError(f"GPU {self.name}: {count} not known; {hows}; or give each with --set KEY=N")

    def hertz(self, key: str) -> Fraction:
        """Return a clock in hertz, exactly the decimal number of GHz that is written; raises as `number` does."""
        # the decimal digits of the file, and not the nearest binary float, are the number that the source states
        return Fraction(str(self.datum(key).value)) * 10**9

    @property
    def bandwidth(self) -> Fraction:
        """Return the bytes per second that DRAM moves at its peak, exact; raises as `number` does.

        >>> print(find_gpu("rtx-3070").bandwidth)
        448000000000
        """
        return Fraction(str(self.datum("mem_bw_gbs").value)) * 10**9

    @property
    def sm(self) -> int | None:
        """Return the compute capability as code names it, 86 for 8.6; None if it is not known."""
        return None if self.compute_capability is None else capability(self.compute_capability)

    @property
    def machine(self) -> Machine:
        """Return the machine of its SMs: the one of the package for its compute capability.

        Raises:
            InputError: there is none, or several.
        """
        # two machines for one capability would be a choice that only the user can make
        found = () if self.sm is None else machines_for(self.sm)
        if len(found) != 1:
            raise InputError(
                f"GPU {self.name}: {len(found) or 'no'} machines with partitions come with the package for compute"
                f" capability {self.compute_capability or '(not known)'}: say which machine it is with --machine"
            )
        return found[0]

    @property
    def mig(self) -> dict[str, int]:
        """Return the number of SMs of each instance of Multi-Instance GPU (MIG), by its name, such as `1g.10gb`."""
        return {key.removeprefix(_MIG): self.whole(key) for key in self.data if key.startswith(_MIG)}

    def count_sms(self, asked: str | None = None) -> int:
        """Return the number of SMs that take part: all of them, the number `asked`, or those of a MIG instance.

        >>> card = find_gpu("a100-sxm")
        >>> card.count_sms(), card.count_sms("10"), card.count_sms("3g.40gb")
        (108, 10, 42)

        Raises:
            InputError: more than there are, or an instance that the file of the GPU does not have.
        """
        most, mig = self.whole("sms"), self.mig
        if asked is None:
            return most
        count = mig.get(asked, parse_number(asked) if asked.isdecimal() else None)
        if count is None or not 1 <= count <= most:
            named = f", or one of {', '.join(mig)}" if mig else " (it has no MIG instances)"
            raise InputError(f"GPU {self.name}: the number of SMs must be 1..{most}{named}, not {shown(asked)}")
        return int(count)

    @property
    def limits(self) -> SmLimits:
        """Return the limits of an SM: those of the file, and else those of every SM of its compute capability.

        Raises:
            InputError: the warp size is not known.
        """
        named = (name for name in SmLimits.__slots__ if f"limits.{name}" in KEYS and name != "register_scope")
        known = {name: self.whole(key) for name in named if not self.missing(key := f"limits.{name}")}
        of_all = None if self.sm is None else residency().get(self.sm)
        found = of_all or SmLimits(warp_size=self.whole("warp_size"))
        scope = _SCOPES.get(self.text("limits.register_scope")) or found.register_scope
        return replace(found, **known, register_scope=scope)

    def with_data(self, data: Mapping[str, GpuDatum]) -> "Gpu":
        """Return the same GPU with these data in addition to, and instead of, its own."""
        # a delay has three spellings; a new one must not stand beside an old one that says something else
        replaced = {other for key in data for other in alternatives(key)}
        kept = {key: known for key, known in self.data.items() if key not in replaced}
        return replace(self, data={**kept, **data})


def gpu_datum(key: str, value: DatumValue, *, source: str, status: DatumStatus = DatumStatus.GIVEN) -> GpuDatum:
    """Return a datum with the unit of its key.

    Raises:
        InputError: an unknown key, or a value out of range.
    """
    known = _known_key(key)
    _check_value(known, key, value)
    return GpuDatum(value, known.unit, source, status)


def shipped_gpus() -> dict[str, Gpu]:
    """Return the GPUs that come with the package, by name."""
    return {name: _read(file, file.name) for name, file in shipped_files("gpus", _SUFFIX).items()}


def find_gpu(name: str, *, rewritten: bool = False) -> Gpu:
    """Return the GPU of a file: one of the package, by its name, or another, by a path that ends in `.toml`.

    Args:
        rewritten: whether the file may be written again, completed.

    Raises:
        InputError: neither, or see `read_gpu`.
    """
    return _read(*named_file(name, "gpus", _SUFFIX, "GPU"), rewritten=rewritten)


def read_gpu(path: Path) -> Gpu:
    """Read a GPU file.

    Raises:
        InputError: a file that cannot be read or is too large, no TOML, an unknown key, a value out of range, a number
            without source or status.
    """
    return _read(path, str(path))


def gpu_text(gpu: Gpu) -> str:
    """Return the text of a GPU file; reading it gives an equal value."""
    lines = [f"name = {_quote(gpu.name)}"]
    lines += [f"{key} = {_quote(text)}" for key in _TEXTS[1:] if (text := getattr(gpu, key)) is not None]
    if gpu.notes:
        lines += ["notes = [", *(f"  {_quote(note)}," for note in gpu.notes), "]"]
    tables: dict[str, list[str]] = {"": []}
    order = list(KEYS)
    for key in sorted(gpu.data, key=lambda key: (order.index(listed_key(key)), *map(int, re.findall(r"\d+", key)))):
        table, _, name = key.rpartition(".")
        one = gpu.data[key]
        value = _quote(one.value) if isinstance(one.value, str) else repr(one.value)
        origin = f"source = {_quote(one.source)}, status = {_quote(one.status)}"
        tables.setdefault(table, []).append(f"{name} = {{ value = {value}, {origin} }}")
    lines += ["", *tables.pop("")]
    for table, entries in tables.items():
        lines += ["", f"[{table}]", *entries]
    return "\n".join(lines) + "\n"


def _read(file: Path | Traversable, where: str, *, rewritten: bool = False) -> Gpu:
    text = read_text(file, "GPU file", MAX_FILE_BYTES, where=where, rewritten=rewritten)
    document = parse_toml(text, "GPU file", where)
    with prefix_errors(where):
        return _parse_gpu(document, Path(where).stem)


def _parse_gpu(document: Mapping[str, object], stem: str) -> Gpu:
    texts = {key: printable(document[key], key) if key in document else None for key in _TEXTS}
    notes = document.get("notes", [])
    if not isinstance(notes, list):
        raise InputError(f"notes must be a list of texts, not {shown(notes)}")
    tables = {key: value for key, value in document.items() if key not in (*_TEXTS, "notes")}
    return Gpu(
        name=texts["name"] or stem,
        data=dict(_parse_data(tables, "")),
        architecture=texts["architecture"],
        compute_capability=texts["compute_capability"],
        notes=tuple(printable(note, "notes") for note in notes),
    )


def _parse_data(table: Mapping[str, object], prefix: str) -> Iterator[tuple[str, GpuDatum]]:
    for name, given in table.items():
        key, inside = f"{prefix}{name}", listed_key(f"{prefix}{name}.")
        if isinstance(given, dict) and any(known.startswith(inside) for known in KEYS):
            yield from _parse_data(given, f"{key}.")
        else:
            yield key, _parse_datum(key, given)


def _parse_datum(key: str, given: object) -> GpuDatum:
    _known_key(key)
    if not isinstance(given, dict) or set(given) != {"value", "source", "status"}:
        raise InputError(f'{key} must be {{ value = ..., source = "...", status = "..." }}, not {shown(given)}')
    statuses = [status.value for status in DatumStatus]
    if given["status"] not in statuses:
        raise InputError(f"{key}: status {shown(given['status'])}; there are: {'; '.join(statuses)}")
    source = printable(given["source"], f"{key}: source")
    return gpu_datum(key, given["value"], source=source, status=DatumStatus(given["status"]))


def _known_key(key: str) -> GpuKey:
    listed = listed_key(key)
    if listed not in KEYS:
        table = listed.rpartition(".")[0]
        near = [known for known in KEYS if known.rpartition(".")[0] == table]
        others = f"{', '.join(near[:12])}{', ...' * (len(near) > 12)}" if near else "see docs/estimators.md"
        tables = filter(None, (known.rpartition(".")[0] for known in KEYS))
        raise InputError(f"unknown key {shown(key)}{did_you_mean(key, [*KEYS, *tables]) or ';'} known: {others}")
    return KEYS[listed]


def _check_value(known: GpuKey, key: str, value: object) -> None:
    if known.choices:
        if value not in known.choices:
            raise InputError(f"{key} must be one of {', '.join(known.choices)}, not {shown(value)}")
        return
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"{key} must be {known.values}, not {shown(value)}")
    is_right = {
        ValueRange.WHOLE: isinstance(value, int) and value >= 1,
        ValueRange.POSITIVE: value > 0,
        ValueRange.NOT_NEGATIVE: value >= 0,
        ValueRange.COUNT: isinstance(value, int) and value >= 0,
    }[ValueRange(known.values)]
    most = MAX_SMS if key == "sms" or key.startswith(_MIG) else MAX_VALUE
    if not (is_right and value <= most):
        raise InputError(f"{key} must be {known.values}, at most {most:g}, not {shown(value)}")


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def with_settings(gpu: Gpu, settings: Iterable[str], source: str, *, model: str | None = None) -> Gpu:
    """Return the GPU with these data in place of its own.

    Args:
        source: the source of the data in reports and messages.
        model: the model whose name keys may leave out: `mem_ld=420` stands for `hong_kim.mem_ld=420`.

    Raises:
        InputError: an unknown key, one that is given twice, or no value that it may have.
    """
    given: dict[str, GpuDatum] = {}
    for setting in settings:
        name, _, text = (part.strip() for part in setting.partition("="))
        key = f"{model}.{name}" if listed_key(f"{model}.{name}") in KEYS else name
        if key in given:
            raise InputError(f"{source} {name}: given twice")
        given[key] = gpu_datum(key, _parse_value(key, text, f"{source} {name}"), source=source)
    return gpu.with_data(given)


def _parse_value(key: str, text: str, what: str) -> DatumValue:
    known = _known_key(key)
    if known.choices:
        return text
    value = parse_number(text)
    if value is None or not isfinite(value):
        raise InputError(f"{what} must be a number, not {shown(text)}")
    return int(value) if known.values == ValueRange.WHOLE and value.is_integer() else value
