"""The numbers that a GPU description may hold: name, unit, meaning, and the way to get one that is missing.

The tables in `data/gpu_keys` list them: one for what the core reads, and one for each model of a satellite. A key that
no table lists is refused in every file: a typing error must not turn into a missing number.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple

from makespan.host.text_file import shipped_files


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
