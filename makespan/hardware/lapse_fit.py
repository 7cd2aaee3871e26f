"""What samples say about the lapses, the queues and the late lines that a machine has: whether they refute a number.

A machine says how many cycles an instruction costs at most besides its port. Samples that show more refute it. Samples
that show less prove nothing, as no run need be the worst one.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import floor
from statistics import median
from typing import NamedTuple

from makespan.estimates.microbench.samples import MicrobenchSample
from makespan.hardware.sm_fit import TOLERANCE, RunKey, TimesByCount, slopes, sort_samples
from makespan.hardware.sm_lapses import AGAIN, BEHIND, FIRST, LOADS, OTHER, OWN, SAME
from makespan.hardware.sm_programs import ALL, APART, LAPSE, LINE, ONE, QUEUE
from makespan.model.machine import KnownLapses, Machine

_TimesByRun = Mapping[RunKey, TimesByCount]


@dataclass(frozen=True, slots=True)
class LapseCheck:
    """A number of a machine beside what was measured.

    Args:
        key: the place of the number in a machine file, such as `lapses.multiply`.
        about: what was measured.
        least: the least cycles of all samples, and `most` the most.
        said: the most cycles that the machine says. None means that it says nothing.
    """

    key: str
    about: str
    least: Fraction
    most: Fraction
    samples: int
    said: int | None

    @property
    def is_refuted(self) -> bool:
        """Return whether more was measured than the machine says."""
        return self.said is not None and self.most > self.said + TOLERANCE

    @property
    def verdict(self) -> str:
        """Return what the samples say about the number, as a phrase."""
        if self.said is None:
            return "the machine says nothing about it"
        if self.is_refuted:
            return f"REFUTED, the machine says at most {self.said}"
        is_reached = self.most >= self.said - TOLERANCE
        return f"{'confirmed' if is_reached else 'not refuted'}, the machine says at most {self.said}"

    def __str__(self) -> str:
        return (
            f"{self.key}: {self.about}: {float(self.least):.2f}..{float(self.most):.2f}, {self.samples} samples:"
            f" {self.verdict}"
        )


class _Mechanism(NamedTuple):
    """A worker, one of the same length that lacks what is measured, and the cycles of an item that a machine says."""

    key: str
    about: str
    worker: str
    control: str
    whose: str
    known: Callable[[KnownLapses], int | None]


def _reads(number: int, *, from_queue: bool = False) -> Callable[[KnownLapses], int | None]:
    """Return the lapses of an instruction that reads so many registers, all of them even ones."""

    def known(lapses: KnownLapses) -> int | None:
        registers = lapses.registers
        if registers is None or registers.banks > 2:  # else even registers are not known to share a bank
            return None
        return registers.credit(number, from_queue=from_queue)

    return known


def _miss(known: KnownLapses) -> int | None:
    if known.constants is None or known.constant is None:
        return None
    return known.constants.window + known.constants.crowd + known.constant


def _fence(scope: str) -> _Mechanism:
    about = f"cycles of another partition at a fence of the {scope}"
    return _Mechanism("lapses.fence", about, f"fence-{scope}", "store", OTHER, lambda known: known.fence.get(scope))


_READ = "lapses.register-read"
_MECHANISMS = (
    _Mechanism(_READ, "cycles of three reads of a bank", "reads-3", "reads-1", OWN, _reads(3)),
    _Mechanism(_READ, "cycles of two reads of a bank", "reads-2", "reads-1", OWN, _reads(2)),
    _Mechanism(_READ, "cycles of a read from a queue", "special", "spaced", OWN, _reads(1, from_queue=True)),
    _Mechanism("lapses.multiply", "cycles of an IMAD", "multiply", "plain", OWN, lambda known: known.multiply),
    _Mechanism("lapses.constant", "cycles of a constant that misses", "constants", "constant", OWN, _miss),
    _Mechanism(
        "lapses.constant", "cycles of warps beside a miss", "constants", "constant", SAME, lambda known: known.constant
    ),
    *map(_fence, ("block", "gpu", "system")),
)


def check_lapses(samples: Iterable[MicrobenchSample], machine: Machine, *, are_modulo: bool) -> tuple[LapseCheck, ...]:
    """Return what samples say about the lapses, queues and late lines of a machine, as far as they were measured.

    Args:
        are_modulo: whether warp w is known to belong to partition w mod 4. Only then is it told what one warp costs
            others.
    """
    runs, _ = sort_samples(samples)
    found = [*_queue_checks(runs, machine, are_modulo=are_modulo), *_line_checks(runs, machine.lapses)]
    for row in _MECHANISMS:
        if row.whose == OWN or are_modulo:
            said = None if machine.lapses is None else row.known(machine.lapses)
            found += _check(row.key, row.about, _excess(runs, row.worker, row.control, row.whose), said)
    return tuple(sorted(found, key=lambda check: check.key))


def _check(key: str, about: str, seen: Iterable[Fraction], said: int | None) -> Iterator[LapseCheck]:
    values = list(seen)
    if values:
        yield LapseCheck(key, about, min(values), max(values), len(values), said)


def _excess(runs: _TimesByRun, worker: str, control: str, whose: str) -> list[Fraction]:
    """Return the cycles of an item, less those of an item of the control."""
    keys = [(LAPSE, name, whose, 1 if whose == OWN else 3) for name in (worker, control)]
    if any(key not in runs for key in keys):
        return []
    costs, plain = (slopes(key, runs[key], may_stand=True) for key in keys)
    return [cost - median(plain) for cost in costs]


def _queue_checks(runs: _TimesByRun, machine: Machine, *, are_modulo: bool) -> Iterator[LapseCheck]:
    """Yield how long a load holds its ports, how many loads wait, and what a load costs other warps."""
    names = [operation.unit for operation in machine.operations if operation.name == "shared"]
    uses = [use for unit in machine.units if unit.name in names for use in unit.uses if len(use.resources) == 1]
    queue = next((queue for queue in machine.queues if set(names) & set(queue.units)), None)
    key = f"queues.{queue.name}" if queue else "queues"
    common = {resource.name for resource in machine.resources if resource.shared}
    for where, warps in ((ONE, 1), (ALL, APART)):
        times = runs.get((QUEUE, "shared", where, warps), {})
        if any(count not in times for count in LOADS):
            continue
        held = slopes((QUEUE, "shared", where, warps), {count: times[count] for count in BEHIND})
        for use in uses:
            if (use.resources[0] in common) == (where == ALL):
                port = f"units.{names[0]}.uses.{use.resources[0]}"
                yield from _check(port, "cycles of a load behind others", [each / warps for each in held], use.most)
        if where == ONE:
            waiting = map(Fraction, _waiting(times, median(held)))
            yield from _check(key, "loads that wait at once", waiting, queue and queue.places)
    if are_modulo:
        alone = max((use.most for use in uses if use.resources[0] not in common), default=1)
        said = queue and (alone - 1 if queue.blocks else 0)  # a load that waits keeps the slot while its port is held
        excess = _excess(runs, "load", "reads-1", SAME)
        yield from _check(key, "cycles of warps beside a load that waits", excess, said)


def _waiting(times: TimesByCount, held: Fraction) -> Iterator[int]:
    """Yield the number of loads that wait behind each other when the next one cannot be issued yet.

    The m-th load is issued m - 1 cycles after the first, if none before it had to wait. Of these m loads one has begun
    for each `held` cycles. If none has to wait among those that are counted one by one, there may be more places.
    """
    one_by_one = [count for count in LOADS if count not in BEHIND]
    for run in zip(*(times[count] for count in one_by_one), strict=False):
        gaps = [late - early for early, late in pairwise(run)]
        usual = min(gaps[0], held - 2 * TOLERANCE)  # where there is no queue, the second load waits for the port
        issued = next((count for count, gap in enumerate(gaps, 1) if gap > usual + TOLERANCE), len(run))
        yield issued - 1 - floor((issued - 1) / held)


def _line_checks(runs: _TimesByRun, known: KnownLapses | None) -> Iterator[LapseCheck]:
    """Yield how late lines of code are: those that the next cache has, and those that no cache has had before."""
    code = known.code if known else None
    for warps in (1, APART):
        usual, late, first = (
            [time for seen in runs.get((LINE, name, execution, warps), {}).values() for time in seen]
            for name, execution in (("short", AGAIN), ("long", AGAIN), ("short", FIRST))
        )
        if usual:
            said = code and code.window + warps * code.crowd  # each request may keep those of all partitions waiting
            by = f"by {warps} warp{'s' * (warps > 1)}"
            next_cache, no_cache = ([time - median(usual) for time in times] for times in (late, first))
            yield from _check("lapses.fetch", f"cycles of a line that the next cache has, {by}", next_cache, said)
            yield from _check("--latency fetch=..", f"cycles of a line in the first execution, {by}", no_cache, None)
