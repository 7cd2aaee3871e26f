"""Data of a GPU that a user gives for one estimate, as `KEY=VALUE`."""

from collections.abc import Iterable
from math import isfinite

from makespan.errors import InputError
from makespan.estimators.decimal_text import number
from makespan.estimators.gpu import Datum, Gpu, Value, datum
from makespan.estimators.gpu_keys import KEYS, Range
from makespan.machine.values import shown


def with_settings(gpu: Gpu, settings: Iterable[str], source: str, *, model: str | None = None) -> Gpu:
    """The GPU with these data in place of its own.

    Args:
        source: of the data, as it stands in reports and messages.
        model: whose keys may leave out its name: `mem_ld=420` for `hong_kim.mem_ld=420`.

    Raises:
        InputError: an unknown key, one that is given twice, or no value that it may have.
    """
    given: dict[str, Datum] = {}
    for setting in settings:
        name, _, text = (part.strip() for part in setting.partition("="))
        key = f"{model}.{name}" if f"{model}.{name}" in KEYS else name
        if key in given:
            raise InputError(f"{source} {name}: given twice")
        given[key] = datum(key, _value(key, text, f"{source} {name}"), source=source)
    return gpu.with_data(given)


def _value(key: str, text: str, what: str) -> Value:
    if key in KEYS and KEYS[key].choices:
        return text
    value = number(text)
    if value is None or not isfinite(value):
        raise InputError(f"{what} must be a number, not {shown(text)}")
    is_whole = key in KEYS and KEYS[key].range is Range.WHOLE and value.is_integer()
    return int(value) if is_whole else value
