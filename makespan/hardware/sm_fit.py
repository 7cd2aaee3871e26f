"""From samples of a multiprocessor to numbers of its machine file, and whether it ever left a ready warp out.

Ranges are the least and the most that was seen; nothing bounds what was not. Times are differences of two lengths, so
that what does not depend on the length cancels.

A number that is measured takes the place of that of another machine file.
"""

import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import ceil, floor
from statistics import median
from types import MappingProxyType
from typing import Any, NamedTuple

from makespan.estimates.microbench.samples import MicrobenchSample
from makespan.hardware.sm_lapses import AGAIN, FIRST, READERS
from makespan.hardware.sm_programs import (
    ALL,
    APART,
    BANK,
    BETWEEN,
    CHAIN,
    CHASE,
    LAPSE,
    LINE,
    LOG,
    NOBODY,
    ONE,
    PAIR,
    QUEUE,
    SINGLE,
    STREAM,
)
from makespan.host.errors import InputError, MeasurementError
from makespan.model.machine import CycleRange, Machine, MachineFile, TimedOperation, UnitClass
from makespan.model.machine.files import MAX_FILE_BYTES, machine_file
from makespan.model.machine.values import MAX_TEXT, shown

TOLERANCE = Fraction(1, 4)
"""The part of a cycle by which a mean over a chain may miss a whole number."""
SLOWER = Fraction(3, 2)
"""The slowdown above which two warps count as of one partition. Two of a partition take twice as long as two of
different partitions."""

TimesByCount = Mapping[int, Sequence[Fraction]]
RunKey = tuple[str, str, str, int]


MAX_LOG_CYCLES = 10_000
_WITH: Mapping[str, str] = MappingProxyType(
    {
        CHAIN: rf"{'|'.join(SINGLE)}|[0-9]{{1,2}}",
        STREAM: f"{ONE}|{ALL}",
        BANK: "[0-9]{1,2}",
        CHASE: NOBODY,
        PAIR: "[0-9]{1,2}-[0-9]{1,2}",
        LOG: r"[a-z0-9]{1,16}\.[0-9]{1,2}",
        LAPSE: "|".join(READERS),
        QUEUE: f"{ONE}|{ALL}",
        LINE: f"{FIRST}|{AGAIN}",
    }
)


class WarpGroups(NamedTuple):
    """The groups of warps that slow each other down.

    Args:
        number: the number of groups.
        are_modulo: whether warp w belongs to group w mod `number`.
    """

    number: int
    are_modulo: bool


@dataclass(frozen=True, slots=True)
class FittedNumber:
    """A number of a machine file.

    Args:
        key: its place in the file, such as `("operations", "fp32", "latency")`.
        seen: the cycles, or the number of partitions. `most` None means that no upper end can be measured.
        samples: the number of samples from which it comes.
        note: the kind of measurement.
    """

    key: tuple[str, ...]
    seen: CycleRange
    samples: int
    note: str


@dataclass(frozen=True, slots=True)
class IssueEvidence:
    """The evidence of logs of issue about work conservation.

    Args:
        waited: the number of cycles in which a warp was ready and did not issue.
        left_out: those of them in which no other warp held the slot, each as (run, warps, warp, cycle of the log).
        runs: the number of logs with two or more warps.
    """

    waited: int
    left_out: tuple[tuple[str, int, int, int], ...]
    runs: int


@dataclass(frozen=True, slots=True)
class MachineFit:
    """The numbers and facts that the samples show.

    Args:
        shared: for each class, whether all partitions share its ports.
        modulo: whether warp w seems to belong to partition w mod K. None means that no pair was measured.
        stays: the reasons why numbers stay as they are.
    """

    found: tuple[FittedNumber, ...]
    shared: Mapping[str, bool]
    modulo: bool | None
    issue: IssueEvidence | None
    stays: tuple[str, ...]


def fit_machine(samples: Iterable[MicrobenchSample], machine: Machine) -> MachineFit:
    """Return what samples show about a multiprocessor whose operations are served by the classes of this machine.

    Raises:
        InputError: samples that do not fit together, such as chains of only one length.
        MeasurementError: a time does not grow with the length.
    """
    runs, logs = sort_samples(samples)
    operations, stays = {operation.name: operation for operation in machine.operations}, list[str]()
    found = [each for each in _latencies(runs) if _is_served(each, operations, stays)]
    groups = _warp_groups(_same_partition(runs))
    shared: dict[str, bool] = {}
    issue = None
    if groups != (APART, True):
        why = "no pairs say so" if groups is None else "the pairs say otherwise"
        stays.append(
            f"partitions, units, work conservation: warp w is not known to be of partition w mod {APART}: {why}"
        )
    else:
        issue = find_left_out(logs) if logs else None
        if machine.partitions == APART:
            found.append(
                FittedNumber(
                    ("partitions",), CycleRange(APART, APART), _count_pairs(runs), "pairs that slow each other down"
                )
            )
            for unit in machine.units:
                found += _interval(unit, operations, runs, shared, stays)
        else:
            stays.append(f"partitions, units: the GPU has {APART}, and units of the base are for {machine.partitions}")
    found += _bank(runs, operations, machine, stays)
    return MachineFit(tuple(found), shared, groups and groups.are_modulo, issue, tuple(stays))


def sort_samples(
    samples: Iterable[MicrobenchSample],
) -> tuple[dict[RunKey, dict[int, list[Fraction]]], dict[tuple[str, int], list[MicrobenchSample]]]:
    """Return times by measurement and count, and samples of logs by run and number of warps."""
    runs: dict[RunKey, dict[int, list[Fraction]]] = defaultdict(lambda: defaultdict(list))
    logs: dict[tuple[str, int], list[MicrobenchSample]] = defaultdict(list)
    for sample in samples:
        (measure, name, other), (warps, count) = sample.what, sample.counts
        if not re.fullmatch(_WITH[measure], other):
            raise InputError(f"{measure} of {name}: no such measurement with {shown(other)}")
        if measure == LOG:
            logs[other.partition(".")[0], warps].append(sample)
        else:
            runs[measure, name, other, warps][count].append(sample.time)
    return runs, logs


def slopes(key: RunKey, times: TimesByCount, *, may_stand: bool = False) -> list[Fraction]:
    """Return the cycles per counted item, for every repetition.

    Args:
        may_stand: whether the time need not grow with the count.
    """
    short, long = min(times), max(times)
    what = " of ".join(key[:3:2] if key[1] == key[2] else key[:3])
    if short == long:
        raise InputError(f"{what}: samples of two different counts are needed, not of {short} alone")
    # the difference of two lengths leaves out what does not depend on the length
    found = [(late - early) / (long - short) for early, late in zip(times[short], times[long], strict=False)]
    if min(found) <= 0 and not may_stand:
        raise MeasurementError(f"{what}: the time does not grow with the count; measure again")
    return found


def _whole_cycles(values: Collection[Fraction]) -> CycleRange:
    return CycleRange(max(1, floor(min(values) + TOLERANCE)), max(1, ceil(max(values) - TOLERANCE)))


def _latencies(runs: Mapping[RunKey, TimesByCount]) -> Iterable[FittedNumber]:
    """Yield the latency of each operation: that of its own chain, widened by what chains with other readers show.

    A closed chain over A and B shows only the sum of A's latency with reader B and B's latency with reader A; no chain
    can show more. The excess of the sum over their own chains may belong to either, so it counts for both. So the range
    contains both latencies, unless one reader is later and the other earlier than its own class.
    """
    own: dict[str, list[Fraction]] = defaultdict(list)
    pairs: dict[tuple[str, str], list[Fraction]] = {}
    for key, times in runs.items():
        measure, name, reader, _ = key
        if measure == CHAIN and reader in SINGLE and reader != name:
            pairs[name, reader] = [2 * each for each in slopes(key, times)]
        elif measure in (CHAIN, CHASE):
            # only a walk within the first cache shows the least latency of a load
            if measure == CHASE and name != "L1":
                continue
            own["global" if measure == CHASE else name] += slopes(key, times)
    for name, values in own.items():
        seen, readers = list(values), [name]
        for pair, sums in pairs.items():
            other = pair[1 - pair.index(name)] if name in pair else None
            if other in own:
                readers.append(other)
                more = [total - median(own[pair[0]]) - median(own[pair[1]]) for total in sums]
                seen += [min(values) + min(more), max(values) + max(more)]
        span, count = _whole_cycles(seen), len(values) + sum(len(pairs[pair]) for pair in pairs if name in pair)
        if name == "global":
            yield FittedNumber(
                ("operations", name, "latency"), CycleRange(span.least, None), count, "walk through the first cache"
            )
        else:
            said = "conflicts of 1 to 32 words" if name == "shared" else f"readers {', '.join(readers)}"
            yield FittedNumber(("operations", name, "latency"), span, count, f"chains, {said}")
    for name in BETWEEN:
        if (sums := pairs.get((name, "int"), [])) and "int" in own:
            span = _whole_cycles([min(sums) - max(own["int"]), max(sums) - min(own["int"])])
            yield FittedNumber(
                ("operations", name, "latency"), span, len(sums), "chains with int, less int's own latency"
            )


def _is_served(found: FittedNumber, operations: Mapping[str, TimedOperation], stays: list[str]) -> bool:
    name = found.key[1]
    if name not in operations:
        stays.append(f"{name}: seen {found.seen} cycles, but no class of the machine serves it")
    return name in operations


def _same_partition(runs: Mapping[RunKey, TimesByCount]) -> dict[tuple[int, int], bool]:
    """Return, for every two warps, whether they slow each other down as two of one partition do."""
    times: dict[tuple[int, int], Fraction] = {}
    for (measure, _, pair, _), counts in runs.items():
        if measure == PAIR:
            one, _, other = pair.partition("-")
            times[int(one), int(other)] = median(counts[max(counts)])
    fastest = min(times.values(), default=Fraction(0))  # two warps of different partitions
    return {pair: time >= SLOWER * fastest for pair, time in times.items()}


def _count_pairs(runs: Mapping[RunKey, TimesByCount]) -> int:
    return sum(len(times) for key, counts in runs.items() if key[0] == PAIR for times in counts.values())


def _warp_groups(same: Mapping[tuple[int, int], bool]) -> WarpGroups | None:
    together = [pair for pair, is_same in same.items() if is_same]
    if not together:
        return None
    warps = {warp for pair in same for warp in pair}
    first = {warp: min([warp, *(one for one, other in together if other == warp)]) for warp in warps}
    number = len(set(first.values()))
    return WarpGroups(
        number, all((one % number == other % number) == is_same for (one, other), is_same in same.items())
    )


def _interval(
    unit: UnitClass,
    operations: Mapping[str, TimedOperation],
    runs: Mapping[RunKey, TimesByCount],
    shared: dict[str, bool],
    stays: list[str],
) -> list[FittedNumber]:
    """Return the interval of a port, from streams of one partition.

    Those of all partitions show whether ports are shared.
    """
    names = sorted({key[1] for key in runs if key[0] == STREAM and key[1] in operations})
    names = [name for name in names if operations[name].unit == unit.name]
    rates: dict[str, list[Fraction]] = {ONE: [], ALL: []}
    for where, rate in rates.items():
        for name in names:
            widest = max(
                (key for key in runs if key[:3] == (STREAM, name, where)), key=lambda key: key[3], default=None
            )
            if widest:
                rate += [each / widest[3] for each in slopes(widest, runs[widest])]
    if not rates[ONE]:
        return []
    if unit.uses:
        stays.append(
            f"units.{unit.name}: holds other ports besides its own, and a stream does not tell whose time it is"
        )
        return []
    if rates[ALL]:
        # streams of all partitions are `APART` times as fast as those of one if each has ports of its own, and as fast
        # if the ports are shared: the geometric middle of the two decides
        shared[unit.name] = (median(rates[ONE]) / median(rates[ALL])) ** 2 < APART
    if unit.capacity > 1 and min(rates[ONE]) < 1 + TOLERANCE:
        stays.append(f"units.{unit.name}.interval: {unit.capacity} ports take an instruction in every issue slot")
        return []
    span = _whole_cycles([rate * unit.capacity for rate in rates[ONE]])
    whose = (
        "" if unit.name not in shared else ", ports of all partitions" if shared[unit.name] else ", ports of its own"
    )
    note = f"streams of {', '.join(names)}{whose}; {unit.capacity} port{'s' * (unit.capacity > 1)} supposed"
    return [FittedNumber(("units", unit.name, "interval"), span, len(rates[ONE]), note)]


def _bank(
    runs: Mapping[RunKey, TimesByCount], operations: Mapping[str, TimedOperation], machine: Machine, stays: list[str]
) -> list[FittedNumber]:
    """Return the cycles for which a load holds the shared resource, per word of a bank that its lanes read."""
    values = [each / key[3] for key, times in runs.items() if key[0] == BANK for each in slopes(key, times)]
    if not values or "shared" not in operations:
        return []
    (unit,) = (unit for unit in machine.units if unit.name == operations["shared"].unit)
    common = {resource.name for resource in machine.resources if resource.shared}
    used = [use.resources[0] for use in unit.uses if len(use.resources) == 1 and use.resources[0] in common]
    span = _whole_cycles(values)
    if len(used) != 1:
        stays.append(
            f"conflicts of banks: {span} cycles, but {unit.name} uses no one resource that all partitions share"
        )
        return []
    note = "loads whose lanes read 1 to 32 words of a bank"
    return [FittedNumber(("units", unit.name, "uses", used[0]), span, len(values), note)]


def find_left_out(logs: Mapping[tuple[str, int], Sequence[MicrobenchSample]]) -> IssueEvidence:
    """Return the cycles in which a ready warp did not read the clock while no warp of its partition did.

    A warp alone is never delayed, so its least time from one reading to the next shows when a warp is ready. A reading
    holds the slot, or the pipe of clocks, for the distance of the two closest readings of a partition.
    """
    read: dict[tuple[str, int], dict[int, list[int]]] = {}
    for run, samples in logs.items():
        read[run] = defaultdict(list)
        for sample in sorted(samples, key=lambda each: each.counts[1]):
            warp = sample.what[2].partition(".")[2]
            if sample.time.denominator != 1 or sample.time > MAX_LOG_CYCLES:
                raise InputError(f"log of {sample.what[2]}: whole cycles are needed, and at most {MAX_LOG_CYCLES}")
            read[run][int(warp)].append(int(sample.time))
    alone = [
        [late - early for early, late in pairwise(times)]
        for (_, warps), run in read.items()
        if warps == 1
        for times in run.values()
    ]
    # a warp alone is never delayed by others
    least = [min(gaps) for gaps in zip(*alone, strict=False)]
    if not least:
        raise InputError("logs of one warp alone are needed: they say when a warp is ready")
    every = {run: sorted(time for times in own.values() for time in times) for run, own in read.items()}
    hold = min(late - early for times in every.values() for early, late in pairwise(times))
    if hold < 1:
        raise MeasurementError("two warps of a log read the clock in one cycle: they are not of one partition")
    waited, lost = 0, list[tuple[str, int, int, int]]()
    for (name, warps), own in read.items():
        if warps == 1 or len(lost) > MAX_LOG_CYCLES:  # one warp alone never waits
            continue
        held = {cycle for time in every[name, warps] for cycle in range(time, time + hold)}
        for number, times in own.items():
            for (early, late), gap in zip(pairwise(times), least, strict=False):
                waited += max(0, late - early - gap)
                lost += [(name, warps, number, cycle) for cycle in range(early + gap, late) if cycle not in held]
    return IssueEvidence(waited, tuple(sorted(lost)), sum(warps > 1 for _, warps in read))


NEEDED = ("gpu", "driver", "clocks")
"""The remarks that a file of samples must have, because they say what was measured."""
VIRTUAL = "virtual"
"""The remark of samples that do not come from a GPU."""
_PLACES = 3


def measured_machine(
    base: Mapping[str, Any], fit: MachineFit, remarks: Mapping[str, str], file: str, refuted: Iterable[str] = ()
) -> dict[str, Any]:
    """Return the document of a machine file, from that of a base. Its name says that it is another one.

    No range counts as verified, because the largest value that was seen is no bound. An operation without an upper end
    in the base gets none. Nothing from virtual samples is verified.

    Args:
        refuted: sentences about the numbers that samples refute and that the file keeps.
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
    caveats = [*_caveats(base, fit, file, is_virtual=is_virtual), *(f"{file}: {why}" for why in refuted)]
    document.setdefault("caveats", []).extend(map(_cut, caveats))
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
    """Return the range of the base if it has no upper end, or one above all that was seen; else None."""
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
