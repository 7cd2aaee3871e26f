"""Ranges that a user gives for a machine: latencies of operations (`global=..900`) and intervals (`memory=2`)."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

from makespan.host.errors import InputError, did_you_mean
from makespan.model import assumptions
from makespan.model.machine.known_lapses import FETCHES
from makespan.model.machine.values import (
    MAX_INTERVAL,
    MAX_LATENCY,
    MAX_SMS,
    OPERATIONS,
    SLEEP,
    Latency,
    Machine,
    TimedOperation,
    WarpAssignment,
    check_whole,
    shown,
)

_RANGE = r"(?P<name>[a-z0-9-]{1,32})=(?:(?P<least>[0-9]{1,9})\.\.|(?P<open>\.\.))?(?P<most>[0-9]{1,9})"
_INTERVAL = re.compile(_RANGE)
_GROWTH = r"(?:\+(?P<per_sm>[0-9]{1,9})n|(?P<table>:[0-9]{1,4}(?:,[0-9]{1,9}:[0-9]{1,4}){0,63}))?"
_DRAM = r"(?P<dram>\+dram(?:@(?P<share>0\.[0-9]{1,6}|1))?)?"
_LATENCY = re.compile(_RANGE + _GROWTH + _DRAM)


class GivenRange(NamedTuple):
    """A range of cycles that a user gives. `least` None leaves the lower end as the machine has it.

    Args:
        most: the upper end. If it grows with the number of active SMs, this is the value for one SM.
        per_sm: the cycles to add for every further active SM.
        steps: pairs (SMs, cycles), rising in both: the upper end with up to this number of active SMs.
        sms: the number of active SMs for which a growing upper end was evaluated.
        dram: the least share of its peak bandwidth that DRAM moves while it is busy. The cycles in which it is busy
            come on top. None means that the range includes all waiting for DRAM.
        is_beside_dram: whether the cycles in which DRAM is busy are counted elsewhere, and not in this range.
    """

    least: int | None
    most: int
    per_sm: int = 0
    steps: tuple[tuple[int, int], ...] = ()
    sms: int | None = None
    dram: Fraction | None = None
    is_beside_dram: bool = False

    def __str__(self) -> str:
        unit = "cycle" if self.most == 1 else "cycles"
        if self.depends_on:
            share = "" if self.dram in (None, 1) else f"@{float(self.dram or 0):.6f}".rstrip("0")
            return f"{self.least or ''}..{self._end}{'' if self.dram is None else f'+dram{share}'}"
        besides = " besides those in which DRAM is busy" if self.is_beside_dram else ""
        active = "" if self.sms is None else f" with {self.sms} active SM{'s' * (self.sms > 1)}"
        if self.least is None:
            return f"at most {self.most} {unit}{besides}{active}"
        return f"{Latency(self.least, self.most)} {unit}{besides}{active}"

    @property
    def _end(self) -> str:
        if self.steps:
            return ",".join(f"{cycles}:{sms}" for sms, cycles in self.steps)
        return f"{self.most - self.per_sm}+{self.per_sm}n" if self.per_sm else str(self.most)

    @property
    def grows(self) -> bool:
        """Return whether the upper end depends on the number of active SMs, which share caches and memory."""
        return bool(self.per_sm or self.steps)

    @property
    def depends_on(self) -> str:
        """Return words for what the range depends on in a launch; empty if it is plain cycles."""
        if self.dram is not None:
            return "what a launch asks of DRAM"
        return "how many SMs are active" if self.grows else ""

    def for_sms(self, active: int) -> "GivenRange":
        """Return the range while at most `active` SMs are active. Its upper end never falls with their number.

        >>> print(given_latencies(["global=..400+10n"])["global"].for_sms(46))
        at most 860 cycles with 46 active SMs
        >>> print(given_latencies(["global=300..400:1,600:16,900:46"])["global"].for_sms(12))
        300..600 cycles with 12 active SMs

        Raises:
            InputError: the table ends before this number of SMs, or the range is past the longest latency.
        """
        check_whole(active, "the number of active SMs", MAX_SMS)
        if not self.grows:
            return self
        # the upper end is for at most `active` SMs, and it never falls with their number, so it covers fewer SMs, too
        known = self.steps or ((active, self.most + self.per_sm * (active - 1)),)
        most = next((cycles for sms, cycles in known if active <= sms), None)
        if most is None:
            last, _ = self.steps[-1]
            raise InputError(
                f"latency {self}: says what it is with up to {last} active SMs, and {active} are active:"
                f" add ,N:{active}"
            )
        if most > MAX_LATENCY:
            raise InputError(f"latency {self}: 1..{MAX_LATENCY} cycles, not {most} with {active} active SMs")
        return GivenRange(self.least, most, sms=active, dram=self.dram)

    def beside_dram(self) -> "GivenRange":
        """Return the range without the cycles in which DRAM is busy, which the caller has to count.

        >>> print(given_latencies(["global=..450+dram@0.8"])["global"].beside_dram())
        at most 450 cycles besides those in which DRAM is busy
        """
        return self if self.dram is None else self._replace(dram=None, is_beside_dram=True)


def given_latencies(texts: Iterable[str]) -> dict[str, GivenRange]:
    """Return the ranges that such texts give, by operation.

    The upper end may grow with the number n of active SMs, as 400+10n, or by a table: 400:1,600:16 is 400 cycles with
    one SM, and 600 with up to 16. With +dram, the cycles in which DRAM is busy come on top. With +dram@0.8, DRAM moves
    80 % of its peak bandwidth in each of these cycles. The names of `FETCHES` stand beside those of operations; of them
    there is an upper end only, and DRAM is in it.

    >>> print(*given_latencies(["global=..900", "sfu=20", "local=..400+10n", "atomic=..450+dram"]).values(), sep=", ")
    at most 900 cycles, 20 cycles, ..400+10n, ..450+dram

    Raises:
        InputError: a text of another form, no such operation, cycles out of range, an operation given twice, or more
            than an upper end of a fetch.
    """
    form = (
        "global=400, global=300..900 or global=..900, on a GPU also global=..400+10n, global=..400:1,900:46,"
        " global=..450+dram or global=..450+dram@0.8"
    )
    found = _parse_ranges(texts, _LATENCY, "latency", form, MAX_LATENCY)
    known = (*OPERATIONS, *FETCHES)
    if unknown := [name for name in found if name not in known]:
        near = did_you_mean(unknown[0], known)
        raise InputError(f"unknown operation {unknown[0]!r}{near or ';'} known: {', '.join(known)}")
    for name in FETCHES.keys() & found.keys():
        # a line that comes sooner is no other case: the bound takes the upper end, and +dram counts accesses alone
        if found[name].least is not None or found[name].dram is not None:
            raise InputError(
                f"latency of {name}: give an upper end alone, which includes what DRAM takes: {name}=..900"
            )
    return found


def given_intervals(texts: Iterable[str]) -> dict[str, GivenRange]:
    """Return the cycles for which instructions hold a port, as such texts give them, by resource.

    >>> print(*given_intervals(["memory=..4"]).values())
    at most 4 cycles

    Raises:
        InputError: a text of another form, cycles out of range, or a resource given twice.
    """
    return _parse_ranges(texts, _INTERVAL, "interval", "memory=2, memory=2..4 or memory=..4", MAX_INTERVAL)


def _parse_ranges(
    texts: Iterable[str], pattern: re.Pattern[str], what: str, form: str, limit: int
) -> dict[str, GivenRange]:
    found: dict[str, GivenRange] = {}
    for text in texts:
        match = pattern.fullmatch(text)
        if match is None:
            raise InputError(f"{'an' if what[0] == 'i' else 'a'} {what} is given as {form}, not {shown(text)}")
        said = match.groupdict()
        name, most, is_fixed = said["name"], said["most"], not (said["least"] or said["open"])
        if name in found:
            raise InputError(f"the {what} of {name} is given twice")
        steps = _parse_steps(most + said["table"], f"{what} of {name}") if said.get("table") else ()
        per_sm = int(said.get("per_sm") or 0)
        least = None if said["open"] else int(said["least"] or most)
        dram = Fraction(said["share"] or 1) if said.get("dram") else None
        given = GivenRange(least, int(most) + per_sm, per_sm, steps, dram=dram)
        if is_fixed and given.grows:
            raise InputError(f"{what} of {name}: what grows with the number of active SMs is an upper end: ..{most}")
        if is_fixed and dram is not None:
            raise InputError(f"{what} of {name}: what +dram is added to is an upper end: ..{most}")
        if dram == 0:
            raise InputError(f"{what} of {name}: the share of its bandwidth that DRAM moves at least is above 0")
        if dram is not None and given.most < 2:  # a result after one cycle is awaited by nobody
            raise InputError(f"{what} of {name}: no access to DRAM takes less than 2 cycles")
        for cycles in (given.least, given.most, *(cycles for _, cycles in steps)):
            if cycles is not None and not 1 <= cycles <= limit:
                raise InputError(f"{what} of {name}: 1..{limit} cycles, not {cycles}")
        if given.least is not None and given.least > given.most:
            raise InputError(f"{what} of {name}: {given.least}..{given.most} is no range")
        found[name] = given
    return found


def _parse_steps(table: str, what: str) -> tuple[tuple[int, int], ...]:
    """Return the rows of a table such as `400:1,600:16`, which gives 600 cycles for up to 16 active SMs."""
    rows = [tuple(map(int, row.split(":"))) for row in table.split(",")]
    steps = tuple((sms, cycles) for cycles, sms in rows)
    for (fewer, shorter), (sms, cycles) in pairwise(((0, 0), *steps)):
        if sms <= fewer:
            raise InputError(f"{what}: {cycles}:{sms} follows {shorter}:{fewer}; numbers of SMs rise, from 1 on")
        if cycles < shorter:
            raise InputError(
                f"{what}: {cycles} cycles with {sms} active SMs, and {shorter} with {fewer}: it must not fall"
            )
    return steps


def timed_operations(machine: Machine, given: Mapping[str, GivenRange]) -> dict[str, TimedOperation]:
    """Return the operations of a machine by name, with the latencies that are given instead of its own.

    Names of `FETCHES` are checked and left out.

    Raises:
        InputError: a machine that does not time the operation, or knows no cache of what is fetched; or an upper end
            below its lower end.
    """
    found = {operation.name: operation for operation in machine.operations}
    # a machine file need not time sleep: its length comes from the user, its class from branches
    if "branch" in found:
        found.setdefault(SLEEP, TimedOperation(SLEEP, found["branch"].unit, 1, None))
    for name, latency in given.items():
        if latency.depends_on:
            where = "and ask about a whole launch, with --gpu and --grid" if latency.dram is not None else "with --gpu"
            raise InputError(f"latency of {name}: {latency} depends on {latency.depends_on}; say on which GPU, {where}")
        if name in FETCHES:
            if name not in machine.fetches:
                raise InputError(
                    f"machine {machine.name!r} knows no cache for {FETCHES[name]}, so {name} says nothing: leave it out"
                )
            continue
        if name not in found:
            has = (
                f"it times {', '.join(row.name for row in machine.operations)}"
                if found
                else "it times classes, with latencies in its file"
            )
            raise InputError(f"machine {machine.name!r} does not time the operation {name}; {has}")
        # an open lower end keeps that of the machine: a shorter latency can be the worse one, so it must not rise
        least = found[name].least if latency.least is None else latency.least
        if least > latency.most:
            raise InputError(
                f"machine {machine.name!r}: {name} takes {least} cycles at least, and at most {latency.most} are given;"
                f" say {name}={latency.most} to contradict it"
            )
        found[name] = replace(found[name], least=least, most=latency.most)
    return found


def narrow_intervals(machine: Machine, given: Mapping[str, GivenRange]) -> Machine:
    """Return the machine whose ranges of intervals are no larger than given; the caveats say so.

    The given cycles are about the class that may hold the resource for the longest time. Fixed intervals stay, and so
    does the range of another class that ends below the longest and within the given cycles.

    >>> from makespan.model.machine import PortResource, UnitClass, Use
    >>> loads = UnitClass("L", 1, uses=(Use(("memory",), 2, 32),))
    >>> wide = Machine("m", (loads,), resources=(PortResource("memory", 1),))
    >>> machine = narrow_intervals(wide, {"memory": GivenRange(None, 4)})
    >>> print(*machine.units, *machine.caveats)
    L=1+memory/2..4 interval as given: class L holds memory for at most 4 cycles; the machine says 2..32

    Raises:
        InputError: a resource that no class holds for a range of cycles, or cycles outside of that range.
    """
    units, said = {unit.name: unit for unit in machine.units}, []
    for name, cycles in given.items():
        ranges = [(unit, use) for unit in units.values() for use in unit.uses if use.least < use.most]
        meant = [(unit, use) for unit, use in ranges if name in use.resources]
        if not meant:
            names = list(dict.fromkeys(resource for _, use in ranges for resource in use.resources))
            known = f"it has a range for {', '.join(names)}" if names else "its intervals are no ranges"
            raise InputError(
                f"machine {machine.name!r}: no class holds {shown(name)} for a range of cycles"
                f"{did_you_mean(name, names) or ';'} {known}"
            )
        # the user means the class that may hold the resource for longest, such as loads that are not coalesced
        longest = max(use.most for _, use in meant)
        for unit, use in meant:
            if use.most < longest and use.most <= cycles.most:
                continue  # the range of this class already lies within the given cycles
            least = use.least if cycles.least is None else cycles.least
            held, own = f"class {unit.name} holds {' or '.join(use.resources)}", f"{use.least}..{use.most}"
            if not use.least <= least <= cycles.most <= use.most:
                raise InputError(
                    f"machine {machine.name!r}: {held} for {own} cycles, not for {cycles}; a range can only become"
                    " narrower (a wider one belongs into a machine file)"
                )
            less = replace(use, least=least, most=cycles.most)
            units[unit.name] = replace(unit, uses=tuple(less if each is use else each for each in unit.uses))
            said.append(assumptions.interval(held, str(cycles), own))
    return replace(machine, units=tuple(units.values()), caveats=(*machine.caveats, *said))


def assign_modulo(machine: Machine) -> Machine:
    """Return the machine whose warp w belongs to partition w mod K, if it leaves that open. The caveats say so.

    Raises:
        InputError: it has no partitions.
    """
    if machine.partitions == 1:
        raise InputError(f"machine {machine.name!r} has no partitions to which warps could be assigned")
    if machine.assignment is WarpAssignment.MODULO:
        return machine
    said = assumptions.assignment(machine.partitions)
    return replace(machine, assignment=WarpAssignment.MODULO, caveats=(*machine.caveats, said))
