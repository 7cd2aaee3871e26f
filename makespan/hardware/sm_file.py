"""A machine file whose numbers are measured if samples have them, and those of another file if not."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from makespan.hardware.sm_fit import FittedNumber, MachineFit
from makespan.host.errors import InputError
from makespan.model.machine import CycleRange, MachineFile
from makespan.model.machine.files import MAX_FILE_BYTES, machine_file
from makespan.model.machine.values import MAX_TEXT

NEEDED = ("gpu", "driver", "clocks")
"""The remarks that a file of samples must have, because they say what was measured."""
VIRTUAL = "virtual"
"""The remark of samples that do not come from a GPU."""
_PLACES = 3


def measured_machine(base: Mapping[str, Any], fit: MachineFit, remarks: Mapping[str, str], file: str) -> dict[str, Any]:
    """Return the document of a machine file, from that of a base. Its name says that it is another one.

    No range counts as verified, because the largest value that was seen is no bound. An operation without an upper end
    in the base gets none. Nothing from virtual samples is verified.

    Args:
        remarks: the remarks of the samples, see `NEEDED`.
        file: the name of the file of samples, for sources.

    Raises:
        InputError: remarks are missing, or the file would be too large.
    """
    if missing := [name for name in NEEDED if not remarks.get(name)]:
        raise InputError(f"{file}: nothing says on what it was measured; it needs a line such as # {missing[0]}: ...")
    document: dict[str, Any] = json.loads(json.dumps(base))
    is_virtual = VIRTUAL in remarks
    how = VIRTUAL if is_virtual else "measured"
    document["name"] = f"{base.get('name', 'machine')}-{how}"
    for found in fit.found:
        _put(
            document, found, f"{how} on {remarks['gpu']}, {file}: {found.note}; {found.samples} samples", not is_virtual
        )
    for name, is_shared in fit.shared.items():
        document["units"][name] |= {"shared": is_shared} if is_shared or "shared" in document["units"][name] else {}
    if fit.modulo is False:
        document["assignment"] = "any"
    provenance = "; ".join(f"{key} {value}" for key, value in remarks.items())
    document.setdefault("notes", []).append(_cut(f"{file}, {how}: {provenance}"))
    document.setdefault("caveats", []).extend(map(_cut, _caveats(base, fit, file, is_virtual=is_virtual)))
    if len(machine_toml(document).encode()) > MAX_FILE_BYTES:
        raise InputError(f"the machine file would exceed {MAX_FILE_BYTES} bytes; shorten the notes of the base")
    machine_file(document, "measured")
    return document


def _put(document: dict[str, Any], found: FittedNumber, source: str, is_real: bool) -> None:
    *path, last = found.key
    table = document
    for name in path:
        table = table[name]
    if last == "partitions":
        table[last] = {"value": found.seen.least, "source": _cut(source), "verified": is_real}
        return
    is_operation = path[0] == "operations"
    is_open = found.seen.most is None or (is_operation and is_open_ended(table[last]))
    is_one = found.seen.least == found.seen.most and not is_operation
    origin = {"source": _cut(source), "verified": is_real and (is_open or is_one)}
    table[last] = {"least": found.seen.least} | origin if is_open else {"value": _ends(found.seen)} | origin


def _ends(span: CycleRange) -> int | list[int | None]:
    return span.least if span.least == span.most else [span.least, span.most]


def is_open_ended(latency: object) -> bool:
    """Return whether a latency of a document has no upper end."""
    return isinstance(latency, dict) and "value" not in latency


def _caveats(base: Mapping[str, Any], fit: MachineFit, file: str, *, is_virtual: bool) -> Iterator[str]:
    if is_virtual:
        yield f"{VIRTUAL}: numbers of {file} are those of a virtual multiprocessor, and of no GPU"
    names = [found.key[1] for found in fit.found if found.key[0] == "operations" and found.seen.most is not None]
    closed = [name for name in names if not is_open_ended(base["operations"][name]["latency"])]
    if closed:
        yield f"upper ends of {', '.join(closed)} are the most that {file} has seen, which is no bound"
    if fit.issue and fit.issue.left_out:
        run, warps, warp, cycle = fit.issue.left_out[0]
        yield (
            f"NOT WORK-CONSERVING in {file}: in cycle {cycle} of run {run} with {warps} warps, ready warp {warp} was"
            " left out while the slot was free; no bound of the model holds for such a scheduler"
        )


def lower_than(base: MachineFile, found: FittedNumber) -> str | None:
    """The range of the base, where its upper end is above what was seen, or there is none; None where it is not."""
    old = next((datum.value for datum in base.data if datum.key == ".".join(found.key)), None)
    span = old if isinstance(old, CycleRange) else None if old is None else CycleRange(old, old)
    if span is None or found.seen.most is None or (span.most is not None and span.most <= found.seen.most):
        return None
    return str(span)


def machine_toml(document: Mapping[str, Any]) -> str:
    """Return the text of a TOML document of plain data; reading it gives an equal one.

    >>> print(machine_toml({"name": "mine", "units": {"C": {"capacity": 1, "latency": [2, 4]}}}), end="")
    name = "mine"
    <BLANKLINE>
    [units.C]
    capacity = 1
    latency = [2, 4]
    """
    lines = [f"{_key(key)} = {_value(value)}" for key, value in document.items() if not isinstance(value, dict)]
    lines += [f"{key} = {_value(document[key])}" for key in ("partitions",) if isinstance(document.get(key), dict)]
    for name, table in document.items():
        if not isinstance(table, dict) or name == "partitions":
            continue
        if table and all(isinstance(entry, dict) for entry in table.values()):
            for key, entry in table.items():
                lines += ["", f"[{name}.{_key(key)}]", *(f"{_key(k)} = {_value(v)}" for k, v in entry.items())]
        else:
            lines += ["", f"[{name}]", *(f"{_key(key)} = {_value(value)}" for key, value in table.items())]
    return "\n".join(lines) + "\n"


def _value(value: object) -> str:
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{_key(key)} = {_value(each)}' for key, each in value.items())} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    return json.dumps(value, ensure_ascii=False)  # JSON writes whole numbers, truth and printable text as TOML does


def _key(key: str) -> str:
    return key if key.replace("-", "").replace("_", "").isalnum() and key.isascii() else json.dumps(key)


def _cut(text: str) -> str:
    return text if len(text) <= MAX_TEXT else f"{text[: MAX_TEXT - _PLACES]}..."
