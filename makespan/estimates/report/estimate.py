"""An estimate in the words of a terminal and as JSON, schema `makespan.estimate/1`; each says that it is no bound."""

import platform
import textwrap
from collections.abc import Iterator
from dataclasses import asdict
from math import isfinite
from typing import Any

from makespan.estimates import Estimate, ModelQuantity, Origin
from makespan.version import __version__

SCHEMA = "makespan.estimate/1"
NOT_A_BOUND = "an estimate, not a bound: the launch may take more, or less"
_WIDTH = 110
_HEADINGS = {
    Origin.GIVEN: "given",
    Origin.DERIVED: "derived from the kernel and its launch",
    Origin.GPU: "from the description of the GPU",
    Origin.MEASURED: "measured on the device",
}


def text(estimate: Estimate, *, explain: bool = False) -> str:
    """Return the whole report; the verdict comes last, where the eye is.

    Args:
        explain: one line for each quantity, with its source and what to know of it.
    """
    lines = [f"method {estimate.method}: {NOT_A_BOUND}"]
    for origin, heading in _HEADINGS.items():
        found = [quantity for quantity in estimate.quantities if quantity.origin is origin]
        lines += _explained_lines(heading, found) if explain else _quantity_lines(heading, found)
    lines += _terms(estimate)
    lines += [f"limited by: {estimate.limiting}"]
    lines += [f"warning: {warning}" for warning in estimate.warnings]
    return "\n".join([*lines, verdict(estimate)])


def verdict(estimate: Estimate) -> str:
    """Return one line: the time, and that it is an estimate.

    >>> verdict(Estimate("hong-kim", 50728.1875, None, (), "memory", ()))
    'estimate (not a bound) by hong-kim: 50728.2 cycles'
    """
    return f"estimate (not a bound) by {estimate.method}: {time(estimate)}"


def time(estimate: Estimate) -> str:
    """Return the cycles and seconds that are known."""
    known = [(estimate.cycles, "cycles"), (estimate.seconds, "s")]
    return ", ".join(f"{number(value)} {unit}" for value, unit in known if value is not None)


def number(value: float | int | str) -> str:
    """Return a value as a reader wants it: whole numbers whole, others with six digits."""
    if isinstance(value, str):
        return value
    if isinstance(value, int) or (isfinite(value) and value == int(value) and abs(value) < 1e15):
        return str(int(value))
    return f"{value:.6g}"


def document(estimate: Estimate) -> dict[str, Any]:
    """Return the estimate as plain data."""
    return {
        "schema": SCHEMA,
        "kind": "estimate",
        "is_bound": False,
        "method": estimate.method,
        "cycles": estimate.cycles,
        "seconds": estimate.seconds,
        "terms": [asdict(term) for term in estimate.terms],
        "limiting": estimate.limiting,
        "quantities": [asdict(quantity) | {"value": _plain(quantity.value)} for quantity in estimate.quantities],
        "warnings": list(estimate.warnings),
        "versions": {"makespan": __version__, "python": platform.python_version()},
    }


def _quantity_lines(heading: str, quantities: list[ModelQuantity]) -> Iterator[str]:
    if quantities:
        said = ", ".join(_assignment(quantity) for quantity in quantities).replace(" ", "\N{NO-BREAK SPACE}")
        said = f"{heading}: {said}".replace(",\N{NO-BREAK SPACE}", ", ")
        lines = textwrap.wrap(said, _WIDTH, subsequent_indent="  ", break_on_hyphens=False)
        yield from (line.replace("\N{NO-BREAK SPACE}", " ") for line in lines)


def _explained_lines(heading: str, quantities: list[ModelQuantity]) -> Iterator[str]:
    if quantities:
        yield f"{heading}:"
    width = max((len(_assignment(quantity)) for quantity in quantities), default=0)
    for quantity in quantities:
        yield f"  {_assignment(quantity):<{width}}  {quantity.note}".rstrip()


def _assignment(quantity: ModelQuantity) -> str:
    return f"{quantity.name} = {number(quantity.value)} {quantity.unit}".rstrip()


def _terms(estimate: Estimate) -> Iterator[str]:
    unit = "s" if estimate.cycles is None else "cycles"
    groups = {"made of": False, "the largest counts": True}
    width = max((len(term.name) for term in estimate.terms), default=0)
    for heading, is_limit in groups.items():
        terms = [term for term in estimate.terms if term.is_limit is is_limit]
        if terms:
            yield f"{heading} ({unit}):"
        yield from (f"  {term.name:<{width}}  {number(term.value):>14}" for term in terms)


def _plain(value: float | int | str) -> float | int | str:
    """Return the value as JSON has it, which knows no infinity."""
    return str(value) if isinstance(value, float) and not isfinite(value) else value
