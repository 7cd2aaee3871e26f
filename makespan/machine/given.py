"""What a user says of a machine: latencies of operations, such as `global=..900`, and intervals, such as `memory=1`."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from makespan.errors import InputError
from makespan.machine.values import (
    INTERVAL_AS_GIVEN,
    MAX_INTERVAL,
    MAX_LATENCY,
    OPERATIONS,
    Latency,
    Machine,
    Operation,
    shown,
)

_FORM = re.compile(r"([a-z0-9-]{1,32})=(?:([0-9]{1,9})\.\.|(\.\.))?([0-9]{1,9})")


class GivenRange(NamedTuple):
    """Cycles; `least` None leaves the lower end as the machine has it."""

    least: int | None
    most: int

    def __str__(self) -> str:
        unit = "cycle" if self.most == 1 else "cycles"
        if self.least is None:
            return f"at most {self.most} {unit}"
        return f"{Latency(self.least, self.most)} {unit}"


def given_latencies(texts: Iterable[str]) -> dict[str, GivenRange]:
    """What such texts say, by operation.

    >>> given_latencies(["global=..900", "sfu=20"])
    {'global': GivenRange(least=None, most=900), 'sfu': GivenRange(least=20, most=20)}

    Raises:
        InputError: a text of another form, no such operation, cycles out of range, or an operation given twice.
    """
    found = _given(texts, "latency", "global=400, global=300..900 or global=..900", MAX_LATENCY)
    if unknown := [name for name in found if name not in OPERATIONS]:
        raise InputError(f"unknown operation {unknown[0]!r}; known: {', '.join(OPERATIONS)}")
    return found


def given_intervals(texts: Iterable[str]) -> dict[str, GivenRange]:
    """For how long instructions hold a port, as such texts say, by resource.

    >>> given_intervals(["memory=..4"])
    {'memory': GivenRange(least=None, most=4)}

    Raises:
        InputError: a text of another form, cycles out of range, or a resource given twice.
    """
    return _given(texts, "interval", "memory=1, memory=1..4 or memory=..4", MAX_INTERVAL)


def _given(texts: Iterable[str], what: str, form: str, limit: int) -> dict[str, GivenRange]:
    found: dict[str, GivenRange] = {}
    for text in texts:
        match = _FORM.fullmatch(text)
        if match is None:
            raise InputError(f"{'an' if what[0] == 'i' else 'a'} {what} is given as {form}, not {shown(text)}")
        name, least, is_open, most = match.groups()
        if name in found:
            raise InputError(f"the {what} of {name} is given twice")
        given = GivenRange(None if is_open else int(least or most), int(most))
        for cycles in given:
            if cycles is not None and not 1 <= cycles <= limit:
                raise InputError(f"{what} of {name}: 1..{limit} cycles, not {cycles}")
        if given.least is not None and given.least > given.most:
            raise InputError(f"{what} of {name}: {given.least}..{given.most} is no range")
        found[name] = given
    return found


def timed(machine: Machine, given: Mapping[str, GivenRange]) -> dict[str, Operation]:
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


def narrowed(machine: Machine, given: Mapping[str, GivenRange]) -> Machine:
    """The machine whose ranges of intervals are no larger than given; the caveats say so. Fixed intervals stay.

    >>> from makespan.machine import Resource, UnitClass, Use
    >>> loads = UnitClass("L", 1, uses=(Use(("memory",), 1, 32),))
    >>> machine = narrowed(Machine("m", (loads,), resources=(Resource("memory", 1),)), {"memory": GivenRange(None, 4)})
    >>> print(*machine.units, *machine.caveats)
    L=1+memory/1..4 interval as given: class L holds memory for at most 4 cycles; the machine says 1..32

    Raises:
        InputError: a resource that no class holds for a range of cycles, or cycles outside of that range.
    """
    units, said = {unit.name: unit for unit in machine.units}, []
    for name, cycles in given.items():
        ranges = [(unit, use) for unit in units.values() for use in unit.uses if use.least < use.most]
        meant = [(unit, use) for unit, use in ranges if name in use.resources]
        if not meant:
            names = ", ".join(dict.fromkeys(name for _, use in ranges for name in use.resources))
            known = f"it has a range for {names}" if names else "its intervals are no ranges"
            raise InputError(f"machine {machine.name!r}: no class holds {shown(name)} for a range of cycles; {known}")
        for unit, use in meant:
            least = use.least if cycles.least is None else cycles.least
            holds, own = f"class {unit.name} holds {' or '.join(use.resources)} for", f"{use.least}..{use.most}"
            if not use.least <= least <= cycles.most <= use.most:
                raise InputError(
                    f"machine {machine.name!r}: {holds} {own} cycles, not for {cycles}; a range can only become"
                    " narrower (a wider one belongs into a machine file)"
                )
            less = replace(use, least=least, most=cycles.most)
            units[unit.name] = replace(unit, uses=tuple(less if each is use else each for each in unit.uses))
            said.append(f"{INTERVAL_AS_GIVEN}{holds} {cycles}; the machine says {own}")
    return replace(machine, units=tuple(units.values()), caveats=(*machine.caveats, *said))
