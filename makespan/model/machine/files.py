"""Machine files: TOML with a source beside each number."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, TypeVar

from makespan.host.errors import InputError, prefix_errors
from makespan.host.text_file import named_file, parse_toml, read_text, shipped_files
from makespan.model import assumptions
from makespan.model.assumptions import Assumption, AssumptionKind
from makespan.model.machine.lapses_table import QUEUE_FORM, parse_lapses, parse_queue
from makespan.model.machine.numbers import (
    OF_FILE,
    MachineDatum,
    check_keys,
    check_table,
    make_at,
    misplaced_key,
    parse_figure,
    parse_figures,
    parse_number,
    parse_origin,
    parse_range,
    parse_truth,
    range_value,
    whole_value,
)
from makespan.model.machine.values import (
    MAX_PARTITIONS,
    ONE_CYCLE,
    OPERATIONS,
    Latency,
    Machine,
    PortResource,
    SchedulerPromise,
    TimedOperation,
    UnitClass,
    Use,
    WarpAssignment,
    capability,
    class_name,
    printable,
    shown,
)

_OR = " or "


def parse_resource(name: str, given: object) -> tuple[PortResource, MachineDatum]:
    """Return a resource, and its capacity with the source."""
    where = f"resources.{printable(name, 'the name of a resource')}"
    table = check_table(given, where, {"capacity", "shared"}, "{ capacity = N }", {"capacity"})
    capacity = parse_number(f"{where}.capacity", table["capacity"], parse_origin(table, where))
    return PortResource(name, whole_value(capacity), _is_shared(table, where)), capacity


def parse_unit(
    name: str, given: object, resources: Collection[PortResource], operations: Collection[TimedOperation]
) -> tuple[UnitClass, tuple[PortResource, ...], list[MachineDatum]]:
    """Return a class that may use these resources, the resources of its own, and its numbers with their sources."""
    if name in OF_FILE:
        raise InputError(misplaced_key(name, "units"))
    where = f"units.{class_name(name)}"
    table = check_table(
        given, where, {"capacity", "interval", "latency", "shared", "uses"}, "{ capacity = N }", {"capacity"}
    )
    origin, is_shared = parse_origin(table, where), _is_shared(table, where)
    data = [parse_number(f"{where}.capacity", table["capacity"], origin)]
    capacity, interval = whole_value(data[0]), 1
    own: tuple[PortResource, ...] = ()
    uses = []
    if "interval" in table:
        data.append(datum := parse_number(f"{where}.interval", table["interval"], origin))
        interval = whole_value(datum)
        if isinstance(datum.value, list):
            # A class holds its port for a fixed time. A range of intervals therefore becomes a resource of its own,
            # which no other class uses: it then has the same effect.
            data[-1] = datum = parse_range(f"{where}.interval", table["interval"], origin)
            # the class port is then held for one cycle, and a port of the resource for the range
            own, interval = (PortResource(f"{name.lower()}-ports", capacity, is_shared),), 1
            uses.append(make_at(datum.key, Use, (own[0].name,), *range_value(datum)))
    used = check_table(table.get("uses", {}), f"{where}.uses", None, "{ RESOURCE = N or [least, most] }")
    for named, cycles in used.items():
        alternatives = tuple(named.split(_OR))
        check_keys(alternatives, [resource.name for resource in resources], f"{where}.uses", "resource")
        data.append(datum := parse_range(f"{where}.uses.{named}", cycles, origin))
        uses.append(make_at(datum.key, Use, alternatives, *range_value(datum)))
    latency = latency_of_class(name, operations) or ONE_CYCLE
    if "latency" in table:
        data.append(datum := parse_range(f"{where}.latency", table["latency"], origin))
        latency = make_at(datum.key, Latency, *range_value(datum))
    return UnitClass(name, capacity, interval, latency, is_shared, tuple(uses)), own, data


def parse_operation(name: str, given: object) -> tuple[TimedOperation, MachineDatum]:
    """Return an operation with the class that serves it and its latency, and the latency with its source."""
    check_keys({name}, OPERATIONS, "operations", "operation")
    where = f"operations.{name}"
    form = '{ class = "C", latency = N, [least, most] or { least = N } }'
    table = check_table(given, where, {"class", "latency"}, form, {"class", "latency"})
    datum = parse_range(f"{where}.latency", table["latency"], parse_origin(table, where))
    unit = printable(table["class"], f"{where}.class")
    return make_at(where, TimedOperation, name, unit, *range_value(datum), datum.verified), datum


def latency_of_class(class_: str, operations: Collection[TimedOperation]) -> Latency | None:
    """Return the latency of an instruction of a class, whichever operation it is; None if it is not known."""
    its = [operation for operation in operations if operation.unit == class_]
    # one operation without an upper end leaves the class without one: a maximum over the rest would be no bound
    most = [operation.most for operation in its if operation.most is not None]
    return Latency(min(operation.least for operation in its), max(most)) if its and len(most) == len(its) else None


def _is_shared(table: Mapping[str, object], where: str) -> bool:
    return parse_truth(table.get("shared", False), f"{where}: shared")


MAX_FILE_BYTES = 32 << 10
WARP = 32

ISSUE = {
    "width": "warps that issue per cycle",
    "schedulers": "warp schedulers; each warp belongs to one of them",
    "dispatch": "instructions that a scheduler may issue per cycle, all of one warp",
}
RESIDENCY = {
    "warps": "resident warps per SM, at most",
    "blocks": "resident blocks per SM, at most",
    "registers": "32-bit registers per SM",
    "shared_bytes": "bytes of shared memory per SM",
}
CORE_THROUGHPUT = {
    "fp32": "32-bit floating-point add, multiply, multiply-add",
    "int_add": "32-bit integer add",
    "int_mul": "32-bit integer multiply",
    "shift": "32-bit shift",
    "cmp_minmax": "compare, minimum, maximum",
    "logic": "32-bit logic",
    "popc_clz": "bit counts",
    "shuffle": "warp shuffle",
    "cvt": "conversions of types, other than from 8-bit and to 64-bit ones",
}
THROUGHPUT = {
    **CORE_THROUGHPUT,
    "fp64": "64-bit floating-point add, multiply, multiply-add",
    "sfu": "reciprocal, square root, sine, exponential and so on, 32-bit",
    "ldst": "lanes of the load/store units",
    "sync": "__syncthreads()",
}
_SUFFIX = ".toml"
_LISTS = {"compute_capability", "notes", "caveats"}
_TEXTS = OF_FILE - _LISTS - {"partitions"}
_FIGURES = {"issue": ISSUE, "residency": RESIDENCY, "throughput": THROUGHPUT}
_VALUES = {"units", "resources", "operations", "lapses", "queues"}
_EnumChoice = TypeVar("_EnumChoice", bound=StrEnum)


@dataclass(frozen=True, slots=True)
class MachineFile:
    """The content of a machine file: the machine, and each number with its source.

    Args:
        clock: the clock that counts the cycles.
        stated: the caveats that stand in the file.
        data: every number of the file. A key that is missing is not known.
    """

    machine: Machine
    architecture: str | None
    compute_capability: tuple[str, ...]
    examples: str | None
    clock: str | None
    source: str | None
    notes: tuple[str, ...]
    stated: tuple[str, ...]
    data: tuple[MachineDatum, ...]

    def values(self, table: str) -> dict[str, int]:
        """Return the numbers of one of the tables issue, residency and throughput (results per cycle)."""
        return {
            datum.key.removeprefix(f"{table}."): datum.value
            for datum in self.data
            if datum.key.startswith(f"{table}.") and isinstance(datum.value, int)
        }

    @property
    def unverified(self) -> tuple[MachineDatum, ...]:
        """Return the numbers that no source confirms."""
        return tuple(datum for datum in self.data if not datum.verified)

    @property
    def caveats(self) -> tuple[Assumption, ...]:
        """Return the respects in which the machine is known to be kinder than the GPU whose numbers it has."""
        untimed = self.machine.untimed
        unknown = (assumptions.untimed_classes(self.machine.name, untimed),) if untimed else ()
        return (*map(assumptions.caveat, self.stated), *unknown, *self._simplified())

    def _simplified(self) -> Iterator[Assumption]:
        machine = self.machine
        if machine.partitions > 1:  # nothing is left out there
            return
        schedulers = self.values("issue").get("schedulers", 1)
        if schedulers > 1:
            yield assumptions.without_partitions(schedulers)
        rates = self.values("throughput")
        if rates:
            yield assumptions.lowest_terms()
        fp32 = rates.get("fp32", 0)
        # class C serves all of these at the rate of fp32, so a slower one makes the machine too kind
        slower = [f"{name} {rates[name]}" for name in CORE_THROUGHPUT if rates.get(name, fp32) < fp32]
        if slower and "C" in machine.capacities:
            yield assumptions.slower_than_fp32(fp32, slower)


def shipped_machines() -> dict[str, MachineFile]:
    """Return the machines that come with the package, by name."""
    return {name: _read(file, file.name) for name, file in shipped_files("machines", _SUFFIX).items()}


def find_machine(name: str) -> MachineFile:
    """Return the machine of a file: one of the package, by its name, or another, by a path that ends in `.toml`.

    Raises:
        InputError: neither, or see `read_machine`.
    """
    today = name.removesuffix("-unpartitioned")  # of machines of before, which left the partitions out
    if today != name and today in shipped_files("machines", _SUFFIX):
        raise InputError(f"machine {shown(name)} does not come with the package any more: take {today!r}")
    return _read(*named_file(name, "machines", _SUFFIX, "machine"))


def machines_for(sm: int) -> tuple[Machine, ...]:
    """Return the partitioned machines of the package for GPUs that execute code for this architecture, such as 86.

    >>> [machine.name for machine in machines_for(86)]
    ['ampere-ga10x']
    """
    return tuple(machine for machine in _partitioned_machines() if sm in machine.capabilities)


@cache
def _partitioned_machines() -> tuple[Machine, ...]:
    return tuple(file.machine for file in shipped_machines().values() if file.machine.partitions > 1)


def executes(machine: Machine, sm: int) -> bool:
    """Return whether GPUs of this machine execute machine code for an architecture, such as 86 for sm_86.

    A machine whose compute capabilities are not known may execute any.

    >>> [executes(file.machine, 86) for name, file in shipped_machines().items() if name in ("ada", "hopper", "paper")]
    [True, False, True]
    """
    return not machine.capabilities or any(is_compatible(sm, each) for each in machine.capabilities)


def is_compatible(code: int, sm: int) -> bool:
    """Return whether machine code for sm_80, say, runs on GPUs of sm_86.

    Source: CUDA C++ Programming Guide, "Binary Compatibility": code for X.y runs on X.z, where z is no less than y.

    >>> is_compatible(80, 86), is_compatible(86, 80), is_compatible(75, 86)
    (True, False, False)
    """
    # X.y runs on X.z with z >= y: the major number must be the same
    return code // 10 == sm // 10 and code % 10 <= sm % 10


def read_machine(path: Path) -> MachineFile:
    """Read a machine file.

    Raises:
        InputError: a file that cannot be read or is too large, no TOML, an unknown key, or a value out of range.
    """
    return _read(path, str(path))


def _read(file: Path | Traversable, where: str) -> MachineFile:
    text = read_text(file, "machine file", MAX_FILE_BYTES, where=where)
    document = parse_toml(text, "machine file", where)
    with prefix_errors(where):
        return machine_file(document, Path(where).stem)


def machine_file(document: Mapping[str, Any], stem: str) -> MachineFile:
    """Return the machine of a parsed document. Its name is `stem` if the document gives none."""
    check_keys(document, OF_FILE | _VALUES | set(_FIGURES), "")
    texts = {key: printable(document[key], key) if key in document else None for key in _TEXTS}
    data = [parse_figure("partitions", document["partitions"], MAX_PARTITIONS)] if "partitions" in document else []
    resources = [parse_resource(*item) for item in _table_items(document, "resources", "memory = { capacity = 1 }")]
    operations = [
        parse_operation(*item) for item in _table_items(document, "operations", '[operations.int] class = "C"')
    ]
    if "units" not in document:
        raise InputError("needs a table [units] such as C = { capacity = 1 }")
    given = _table_items(document, "units", "C = { capacity = 1 }")
    timed, ports = tuple(operation for operation, _ in operations), tuple(resource for resource, _ in resources)
    units = [parse_unit(*item, ports, timed) for item in given]
    data += [datum for _, datum in resources] + [datum for *_, its in units for datum in its]
    data += [datum for _, datum in operations]
    for table, known in _FIGURES.items():
        data += parse_figures(table, document.get(table, {}), known)
    lapses = None
    if "lapses" in document:
        lapses, its = parse_lapses(document["lapses"])
        data += its
    queues = [parse_queue(*item) for item in _table_items(document, "queues", QUEUE_FORM)]
    data += [datum for _, datum in queues]
    # ranges have no part in the keys that are read from here
    plain = {datum.key: datum.value for datum in data if isinstance(datum.value, int)}
    # one cycle stands for a latency that neither the class nor all of its operations state
    has_latency = {datum.key.split(".")[1] for datum in data if datum.key.endswith(".latency")}
    has_latency |= {unit.name for unit, *_ in units if latency_of_class(unit.name, timed)}
    machine = Machine(
        texts["name"] or stem,  # a file without a name is called like the file
        tuple(unit for unit, *_ in units),
        plain.get("issue.width"),
        scheduler=_enum_value(SchedulerPromise, texts, "scheduler", SchedulerPromise.ANY),
        partitions=plain.get("partitions", 1),
        assignment=_enum_value(WarpAssignment, texts, "assignment", WarpAssignment.ANY),
        resources=(*ports, *(resource for _, own, _ in units for resource in own)),
        operations=timed,
        untimed=tuple(unit.name for unit, *_ in units if texts["architecture"] and unit.name not in has_latency),
        capabilities=tuple(map(capability, _texts(document, "compute_capability"))),
        lapses=lapses,
        queues=tuple(queue for queue, _ in queues),
    )
    found = MachineFile(
        machine=machine,
        architecture=texts["architecture"],
        compute_capability=_texts(document, "compute_capability"),
        examples=texts["examples"],
        clock=texts["clock"],
        source=texts["source"],
        notes=_texts(document, "notes"),
        stated=_texts(document, "caveats"),
        data=tuple(data),
    )
    caveats = tuple(note for note in found.caveats if note.kind is not AssumptionKind.UNTIMED)  # an instance says these
    return replace(found, machine=replace(machine, caveats=caveats))


def _table_items(document: Mapping[str, Any], table: str, form: str) -> list[tuple[str, Any]]:
    given = document.get(table, {})
    if not isinstance(given, dict):
        raise InputError(f"needs a table [{table}] such as {form}")
    return list(given.items())


def _enum_value(
    kind: type[_EnumChoice], texts: Mapping[str, str | None], key: str, default: _EnumChoice
) -> _EnumChoice:
    given = texts[key]
    if given not in (None, *kind):
        raise InputError(f"{key} is {' or '.join(kind)}, not {shown(given)}")
    return default if given is None else kind(given)


def _texts(document: Mapping[str, object], key: str) -> tuple[str, ...]:
    given = document.get(key, [])
    if not isinstance(given, list):
        raise InputError(f"{key} must be a list of texts, not {shown(given)}")
    return tuple(printable(item, key) for item in given)
