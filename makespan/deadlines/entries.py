"""Tables of a task file as entries of a description: every key is known, every value has its type, unit and range."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TypeAlias

from makespan.deadlines.description import (
    BundleFile,
    ChainEntry,
    CpuEntry,
    GivenCycles,
    GivenTime,
    KernelLaunch,
    PartitionEntry,
    ServedEntry,
    SlicesEntry,
    TaskEntry,
    TimeSource,
)
from makespan.deadlines.task import (
    MAX_SEGMENTS,
    TIME_SLICED,
    ChainStart,
    CopyEngine,
    GpuPartition,
    HostWait,
    SegmentKind,
    ServerPolicy,
)
from makespan.host.errors import InputError
from makespan.kernels.launch_file import (
    LAUNCH_KEYS,
    choice,
    count,
    entry_name,
    launch_machine,
    launch_question,
    only,
    text,
    texts,
)
from makespan.model.machine import given_intervals
from makespan.model.machine.gpus import Gpu
from makespan.model.machine.values import MAX_SMS, shown
from makespan.model.units import duration

MAX_PRIORITY = 10**9
MAX_GIVEN_CYCLES = 10**15

NUMBERS = frozenset({"cycles", "priority", "warps", "blocks_per_sm", "dynamic_shared", "sms"})
"""Keys whose values are whole numbers."""
LISTS = frozenset({"param", "loop_bound", "take", "latency", "hold"})
"""Keys whose values are lists of texts."""

_TIMES = ("period", "deadline", "jitter", "offset")
_HOST = ("priority", "core", "wait", "context")
_CPU = ("cpu_before", "cpu_after")
_DELAY = ("launch_delay", "launch_evidence")
_SLICES = ("slice", "switch", "switch_evidence")
_SOURCES = ("wcet", "cycles", "bundle", "kernel")


SegmentEntries: TypeAlias = tuple[CpuEntry | ServedEntry, ...]


def task_entry(
    table: Mapping[str, object], folder: Path, launch: GivenTime | None = None, *, vouched: str = 'evidence = "..."'
) -> TaskEntry:
    """Return a table `[[task]]`, or a row with the same keys.

    Args:
        launch: what the launch of its copies and kernels takes where it says nothing else.
        vouched: where evidence belongs, for a message.

    Raises:
        InputError: an unknown key, a missing one, one without effect, or a value that does not fit; the message names
            the task.
    """
    name = entry_name(table, "a task")
    where = f"task {name}"
    shared = ("name", *_TIMES, *_HOST, "partition", *_DELAY)
    only(table, (*shared, *_SOURCES, *_CPU, "evidence", *LAUNCH_KEYS, "cpu", "segments"), where)
    times = {key: duration(table[key], f"{where}: {key}") for key in _TIMES if key in table}
    for key in ("period", "deadline"):
        if key not in times:
            raise InputError(f'{where} has no {key}: give one such as {key} = "10ms"')
        if times[key] == 0:
            raise InputError(f"{where}: {key} must be more than zero")
    own = launch_delay(table, where)
    if "segments" in table or "cpu" in table:
        _refuse_beside("segments" if "segments" in table else "cpu", table, shared, where)
    if "segments" in table:
        segments = _segments(table["segments"], folder, where)
    elif "cpu" in table:
        segments = (CpuEntry(_positive(table, "cpu", where)),)
    else:
        segments = _one_kernel(table, folder, where, vouched)
    place = _optional_text(table, "partition", where)
    _refuse_ineffective(table, segments, where)
    return TaskEntry(
        name=name,
        segments=tuple(_with_defaults(segment, place, own or launch) for segment in segments),
        period=times["period"],
        deadline=times["deadline"],
        jitter=times.get("jitter", Fraction(0)),
        offset=times.get("offset"),
        priority=_priority(table, where),
        core=_optional_text(table, "core", where),
        wait=choice(table["wait"], HostWait, f"{where}: wait") if "wait" in table else None,
        context=_optional_text(table, "context", where),
    )


def partition_entry(table: Mapping[str, object], card: Gpu | None = None) -> PartitionEntry:
    """Return a table `[[partition]]`, of SMs of a GPU if somebody says which.

    Raises:
        InputError: an unknown key, no name or policy, no such policy, or not so many SMs.
    """
    name = entry_name(table, "a partition")
    where = f"partition {name}"
    only(table, ("name", "policy", "sms", *_SLICES), where)
    slices = _slices(table, where)
    policy = ServerPolicy.FIFO if slices is not None else _policy(table, where, TIME_SLICED)
    return PartitionEntry(GpuPartition(name, policy), sms_count(table.get("sms"), card, f"{where}: sms"), slices)


def copy_engine(table: Mapping[str, object]) -> CopyEngine:
    """Return a table `[[copy_engine]]`.

    Raises:
        InputError: an unknown key, no name or policy, or no such policy.
    """
    name = entry_name(table, "a copy engine")
    where = f"copy engine {name}"
    only(table, ("name", "policy"), where)
    return CopyEngine(name, _policy(table, where))


def sms_count(value: object, card: Gpu | None, what: str) -> int:
    """Return a number of SMs; of a GPU also the name of a MIG instance, which has so many.

    Where nothing is said (None) it is one SM, but not of a GPU: there each partition says how many are its own.
    """
    if value is None:
        if card is not None:
            raise InputError(f"{what} is missing: how many SMs of GPU {card.name} does it have? give sms = N")
        return 1
    if card is None or not isinstance(value, str):
        count(value, what, MAX_SMS)
    if card is None:
        return int(str(value))
    try:
        return card.count_sms(str(value))
    except InputError as error:
        raise InputError(f"{what}: {error}") from None


def chain_entry(table: Mapping[str, object]) -> ChainEntry:
    """Return a table `[[chain]]`.

    Raises:
        InputError: an unknown key, or one that is missing or does not fit.
    """
    name = entry_name(table, "a chain")
    where = f"chain {name}"
    only(table, ("name", "tasks", "activation", "deadline"), where)
    for key in ("tasks", "activation"):
        if key not in table:
            raise InputError(f"{where} has no {key}")
    activation = choice(table["activation"], ChainStart, f"{where}: activation")
    deadline = duration(table["deadline"], f"{where}: deadline") if "deadline" in table else None
    if deadline == 0:
        raise InputError(f"{where}: deadline must be more than zero")
    return ChainEntry(name, texts(table["tasks"], f"{where}: tasks"), activation, deadline)


# What a job runs through


def launch_delay(table: Mapping[str, object], where: str) -> GivenTime | None:
    """What `launch_delay` and `launch_evidence` say there, or that they say nothing.

    Raises:
        InputError: one without the other, or no time.
    """
    evidence = _evidence(table, "launch_evidence", where)
    if "launch_delay" not in table:
        if evidence is not None:
            raise InputError(f"{where}: launch_evidence has no effect without launch_delay: give both, or none")
        return None
    if evidence is None:
        raise InputError(f"{where}: who vouches for this launch_delay? say it in launch_evidence")
    return GivenTime(duration(table["launch_delay"], f"{where}: launch_delay"), evidence)


def _refuse_beside(key: str, table: Mapping[str, object], shared: Sequence[str], where: str) -> None:
    """What `segments`, or `cpu` alone, leaves no room for."""
    if others := [other for other in table if other not in (*shared, key)]:
        remedy = "list what a job runs through in segments, each with its own keys, and nothing beside it"
        raise InputError(f"{where}: {key} and {others[0]} exclude each other: {remedy}")


def _refuse_ineffective(table: Mapping[str, object], segments: SegmentEntries, where: str) -> None:
    """What has no effect on these segments, and CPU time that no core runs."""
    served = [segment for segment in segments if isinstance(segment, ServedEntry)]
    if "core" not in table and len(served) < len(segments):
        raise InputError(f'{where} has CPU time and no core: say which one runs it, such as core = "cpu0"')
    if "wait" in table and "core" not in table:
        raise InputError(f"{where}: wait has no effect without a core: say which one its thread is on, or leave it out")
    needs = {
        "wait": ("its jobs have no copy and no kernel to wait for", bool(served)),
        "launch_delay": ("it has no copy and no kernel that says none", any(s.launch is None for s in served)),
        "context": ("it has no kernel", any(s.kind is SegmentKind.KERNEL for s in served)),
        "partition": (
            "it has no kernel that says none",
            any(s.kind is SegmentKind.KERNEL and s.place is None for s in served),
        ),
    }
    for key, (lack, is_met) in needs.items():
        if key in table and not is_met:
            raise InputError(f"{where}: {key} has no effect, for {lack}: leave it out")


def _with_defaults(
    segment: CpuEntry | ServedEntry, partition: str | None, launch: GivenTime | None
) -> CpuEntry | ServedEntry:
    """With what its task says for all."""
    if isinstance(segment, CpuEntry):
        return segment
    return replace(segment, place=segment.place or partition, launch=segment.launch or launch)


def _one_kernel(table: Mapping[str, object], folder: Path, where: str, vouched: str) -> SegmentEntries:
    """Return a kernel between `cpu_before` and `cpu_after`."""
    kernel = ServedEntry(SegmentKind.KERNEL, _source(table, folder, where, vouched))
    before, after = (duration(table.get(key, "0s"), f"{where}: {key}") for key in _CPU)
    return (*([CpuEntry(before)] if before else []), kernel, *([CpuEntry(after)] if after else []))


def _segments(value: object, folder: Path, where: str) -> SegmentEntries:
    """Return the list `segments` of a task."""
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise InputError(f'{where}: segments must be a list of tables such as {{ cpu = "1ms" }}, not {shown(value)}')
    if not 1 <= len(value) <= MAX_SEGMENTS:
        raise InputError(f"{where}: a job has 1..{MAX_SEGMENTS} segments, not {len(value)}")
    return tuple(_segment(item, folder, f"{where}: segments[{index}]") for index, item in enumerate(value))


def _segment(table: Mapping[str, object], folder: Path, where: str) -> CpuEntry | ServedEntry:
    kinds = ("cpu", "copy", *_SOURCES)
    only(table, (*kinds, "engine", "partition", "evidence", *_DELAY, *LAUNCH_KEYS), where)
    given = [key for key in kinds if key in table]
    if len(given) != 1:
        problem = f"{' and '.join(given)} exclude each other" if given else "it says nothing that a job runs"
        raise InputError(f"{where}: {problem}: give exactly one of {', '.join(kinds)}")
    if given == ["cpu"]:
        only(table, ("cpu",), where)
        return CpuEntry(_positive(table, "cpu", where))
    if given == ["copy"]:
        only(table, ("copy", "engine", "evidence", *_DELAY), where)
        return _copy(table, where)
    only(table, (*_SOURCES, "partition", "evidence", *_DELAY, *LAUNCH_KEYS), where)
    source = _source(table, folder, where, 'evidence = "..."')
    return ServedEntry(
        SegmentKind.KERNEL, source, _optional_text(table, "partition", where), launch_delay(table, where)
    )


def _copy(table: Mapping[str, object], where: str) -> ServedEntry:
    if "engine" not in table:
        raise InputError(f'{where}: the copy has no engine: say which serves it, such as engine = "h2d"')
    evidence = _evidence(table, "evidence", where)
    if evidence is None:
        raise InputError(f'{where}: who vouches for this copy? say it in evidence = "..."')
    source = GivenTime(_positive(table, "copy", where), evidence)
    return ServedEntry(SegmentKind.COPY, source, _optional_text(table, "engine", where), launch_delay(table, where))


# Where an execution time comes from


def _source(table: Mapping[str, object], folder: Path, where: str, vouched: str) -> TimeSource:
    given = [key for key in _SOURCES if key in table]
    if len(given) != 1:
        problem = f"{' and '.join(given)} exclude each other" if given else "has no execution time"
        known = ", ".join(_SOURCES)
        rest = "" if given else ' (or cpu = "1ms" alone, or segments)'
        raise InputError(f"{where}{': ' if given else ' '}{problem}: give exactly one of {known}{rest}")
    kind = given[0]
    if kind != "kernel" and (launch := [key for key in LAUNCH_KEYS if key in table]):
        raise InputError(f"{where}: {launch[0]} belongs to a kernel, and the execution time comes from {kind}")
    evidence = _evidence(table, "evidence", where)
    if kind in ("wcet", "cycles") and evidence is None:
        raise InputError(f"{where}: who vouches for this {kind}? say it in {vouched}")
    if kind == "wcet":
        return GivenTime(_positive(table, "wcet", where), evidence or "")
    if kind == "cycles":
        return GivenCycles(count(table["cycles"], f"{where}: cycles", MAX_GIVEN_CYCLES), evidence or "")
    path = folder / text(table[kind], f"{where}: {kind}")
    return BundleFile(path, evidence) if kind == "bundle" else _launch(table, path, folder, evidence, where)


def _launch(table: Mapping[str, object], path: Path, folder: Path, evidence: str | None, where: str) -> KernelLaunch:
    try:
        holds = given_intervals(texts(table.get("hold", []), "hold"))
        return KernelLaunch(launch_question(table, path, folder), launch_machine(table, folder), evidence, holds)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def _optional_text(table: Mapping[str, object], key: str, where: str) -> str | None:
    return text(table[key], f"{where}: {key}") if key in table else None


def _evidence(table: Mapping[str, object], key: str, where: str) -> str | None:
    found = _optional_text(table, key, where)
    if found is not None and not found.strip():
        raise InputError(f"{where}: {key} is blank: say who vouches, and why")
    return found


def _positive(table: Mapping[str, object], key: str, where: str) -> Fraction:
    """Return a time of more than zero, in seconds."""
    seconds = duration(table[key], f"{where}: {key}")
    if seconds == 0:
        raise InputError(f"{where}: {key} must be more than zero")
    return seconds


def _policy(table: Mapping[str, object], where: str, *more: str) -> ServerPolicy:
    """Return one of those that need nothing else, where `more` there are as well."""
    known = ", ".join((*ServerPolicy, *more))
    if "policy" not in table:
        raise InputError(f"{where} has no policy: give one of {known}")
    if table["policy"] not in list(ServerPolicy):
        raise InputError(f"{where}: policy must be one of {known}, not {shown(table['policy'])}")
    return ServerPolicy(str(table["policy"]))


def _slices(table: Mapping[str, object], where: str) -> SlicesEntry | None:
    """Return how contexts take a partition in turn, None where they do not."""
    if table.get("policy") != TIME_SLICED:
        if said := [key for key in _SLICES if key in table]:
            raise InputError(f'{where}: {said[0]} has no effect without policy = "{TIME_SLICED}": leave it out')
        return None
    remedy = 'say how long a turn of a context is and what a switch takes, such as slice = "1ms", switch = "200us"'
    for key in ("slice", "switch"):
        if key not in table:
            raise InputError(f"{where} is {TIME_SLICED} and has no {key}: {remedy}")
    evidence = _evidence(table, "switch_evidence", where)
    if evidence is None:
        raise InputError(f"{where}: who vouches for this switch? say it in switch_evidence")
    return SlicesEntry(_positive(table, "slice", where), duration(table["switch"], f"{where}: switch"), evidence)


def _priority(table: Mapping[str, object], where: str) -> int | None:
    value = table.get("priority")
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > MAX_PRIORITY:
        raise InputError(f"{where}: priority must be a whole number of at most 1e9, not {shown(value)}")
    return value
