"""Latencies of operations as a user gives them: `global=400`, `global=300..900`, `global=..900`."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from makespan.errors import InputError
from makespan.machine.values import MAX_LATENCY, OPERATIONS, Latency, Machine, Operation, shown

_FORM = re.compile(r"([a-z0-9-]{1,32})=(?:([0-9]{1,9})\.\.|(\.\.))?([0-9]{1,9})")


class GivenLatency(NamedTuple):
    """Cycles that an operation takes; `least` None leaves the lower end as the machine has it."""

    least: int | None
    most: int

    def __str__(self) -> str:
        if self.least is None:
            return f"at most {self.most} cycles"
        return f"{Latency(self.least, self.most)} cycles"


def given_latencies(texts: Iterable[str]) -> dict[str, GivenLatency]:
    """What such texts say, by operation.

    >>> given_latencies(["global=..900", "sfu=20"])
    {'global': GivenLatency(least=None, most=900), 'sfu': GivenLatency(least=20, most=20)}

    Raises:
        InputError: a text of another form, no such operation, cycles out of range, or an operation given twice.
    """
    found: dict[str, GivenLatency] = {}
    for text in texts:
        match = _FORM.fullmatch(text)
        if match is None:
            raise InputError(f"a latency is given as global=400, global=300..900 or global=..900, not {shown(text)}")
        name, least, is_open, most = match.groups()
        if name not in OPERATIONS:
            raise InputError(f"unknown operation {name!r}; known: {', '.join(OPERATIONS)}")
        if name in found:
            raise InputError(f"the latency of {name} is given twice")
        given = GivenLatency(None if is_open else int(least or most), int(most))
        for cycles in given:
            if cycles is not None and not 1 <= cycles <= MAX_LATENCY:
                raise InputError(f"latency of {name}: 1..{MAX_LATENCY} cycles, not {cycles}")
        if given.least is not None and given.least > given.most:
            raise InputError(f"latency of {name}: {given.least}..{given.most} is no range")
        found[name] = given
    return found


def timed(machine: Machine, given: Mapping[str, GivenLatency]) -> dict[str, Operation]:
    """The operations of a machine by name, with the latencies that are given instead of its own.

    Raises:
        InputError: a machine that does not time the operation, or an upper end below its lower end.
    """
    found = {operation.name: operation for operation in machine.operations}
    for name, latency in given.items():
        if name not in found:
            has = f"it times {', '.join(found)}" if found else "it times classes, with latencies in its file"
            raise InputError(f"machine {machine.name!r} does not time the operation {name}; {has}")
        least = found[name].least if latency.least is None else latency.least
        if least > latency.most:
            raise InputError(
                f"machine {machine.name!r}: {name} takes {least} cycles at least, and at most {latency.most} are given;"
                f" say {name}={latency.most} to contradict it"
            )
        found[name] = replace(found[name], least=least, most=latency.most)
    return found
