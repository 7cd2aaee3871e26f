"""The measured points of a suite as a file, so that a suite that was interrupted goes on where it was."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from math import isfinite
from pathlib import Path

import msgspec

from makespan.estimates.opencl_cost_table.device import Measurement, TimedDevice
from makespan.estimates.opencl_cost_table.suite import Plan
from makespan.host.errors import InputError
from makespan.host.text_file import read_text

SCHEMA = "makespan.opencl-points/1"
MAX_BYTES = 16 << 20


class _Points(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    schema: str
    device: str
    driver: str
    plan: dict[str, str | float | bool]
    is_complete: bool
    points: dict[str, Measurement]


def beside(table: Path) -> Path:
    """Return the path at which the points of a table are kept."""
    return table.with_name(f"{table.stem}.points.json")


def text(device: TimedDevice, plan: Plan, points: Mapping[str, Measurement], *, is_complete: bool) -> str:
    """Return the text of the file; each point has mean, standard error, runs, median and whether it converged."""
    document = _Points(SCHEMA, device.name, device.driver, asdict(plan), is_complete, dict(points))
    return msgspec.json.encode(document).decode() + "\n"


def read_points(path: Path, device: TimedDevice, plan: Plan) -> dict[str, Measurement]:
    """Return the points of an interrupted suite on this device by this plan; none without a file or after its end.

    Raises:
        InputError: the file is of another device or plan, or no such file.
    """
    if not path.exists():
        return {}
    text = read_text(path, "file of measured points", MAX_BYTES, rewritten=True)
    try:
        found = msgspec.convert(json.loads(text), _Points)
        if found.schema != SCHEMA:
            raise ValueError(f"its schema is not {SCHEMA}")
        for key, point in found.points.items():
            if not all(isfinite(time) and time >= 0 for time in (point.mean, point.se, point.median)):
                raise ValueError(f"a point has a time that is none: {key[:80]!r}")
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not a file of measured points ({error}); remove it, or choose another -o") from None
    if found.is_complete:  # a suite that has ended is measured anew
        return {}
    if (found.device, found.driver, found.plan) != (device.name, device.driver, asdict(plan)):
        raise InputError(
            f"{path}: has points of {found.device} or of other options; remove it to start anew, or choose another -o"
        )
    return found.points
