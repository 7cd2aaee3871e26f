"""`makespan machines`: the machines that come with the package, and where their numbers come from."""

from collections.abc import Iterator, Sequence

import click

from makespan.cli.gpus import gpus_text
from makespan.cli.help_page import HelpCommand, examples
from makespan.cli.output import format_option, render
from makespan.model.feature import Feature
from makespan.model.machine import (
    OPERATIONS,
    CycleRange,
    KnownLapses,
    Latency,
    LineCache,
    Machine,
    MachineFile,
    PortResource,
    SchedulerPromise,
    TimedOperation,
    UnitClass,
    UnitQueue,
    Use,
    find_machine,
    shipped_machines,
)
from makespan.model.machine.numbers import MachineDatum
from makespan.model.wording import count_words, cycle_words
from makespan.proof.engines import ENGINES
from makespan.report.lines import align_columns, bullet_lines, fact_lines, terminal_width

_HEADER = ("name", "architecture", "capability", "partitions", "issue", "unverified", "classes")
_LEGEND = (
    "C=3/2: 3 ports, each held for 2 cycles by a warp-instruction; latency 1 unless it follows after @",
    "+r/2: and a port of r, held for 2 cycles; shared: by all partitions",
    "issue: warp-instructions per cycle, all classes together; unverified: numbers that nobody has confirmed",
    "partitions: schedulers with warps, issue, and ports of their own, so many each",
)


@click.command(
    "machines",
    cls=HelpCommand,
    epilog=examples(
        "makespan machines turing", "makespan machines examples/partitioned.toml", "makespan machines --gpus rtx-3070"
    ),
)
@click.argument("machine", metavar="[NAME|FILE.toml]", required=False)
@click.option("--gpus", is_flag=True, help="GPUs in the place of machines")
@format_option()
def command(machine: str | None, gpus: bool, output: str) -> None:
    """List the machines that come with the package, or show one, or a machine file, with all its sources."""
    if gpus:
        click.echo(gpus_text(machine, output))
        return
    files = list(shipped_machines().values()) if machine is None else [find_machine(machine)]
    said = render(
        output,
        text=lambda: "\n".join(_table(files) if machine is None else _page(files[0])),
        data=lambda: map(_document, files),
    )
    click.echo(said)


def _table(files: Sequence[MachineFile]) -> Iterator[str]:
    yield from align_columns([_HEADER, *map(_row, files)], right=(3, 4, 5))
    yield ""
    yield from _LEGEND


def _row(file: MachineFile) -> tuple[str, ...]:
    machine, capability = file.machine, ", ".join(file.compute_capability) or "-"
    classes = " ".join(f"{unit}{' shared' * unit.shared}" for unit in machine.units)
    about = machine.name, file.architecture or "-", capability
    return (*about, str(machine.partitions), _issue(file), _doubt(file), classes)


def _issue(file: MachineFile) -> str:
    width = file.machine.issue_width
    return "-" if width is None else str(width)


def _doubt(file: MachineFile) -> str:
    return f"{len(file.unverified)} of {len(file.data)}"


def _page(file: MachineFile) -> Iterator[str]:
    machine = file.machine
    yield f"machine {machine.name}"
    known = {
        "architecture": file.architecture,
        "capability": ", ".join(file.compute_capability),
        "examples": file.examples,
        "clock": file.clock,
        "source": file.source,
        "partitions": "" if machine.partitions == 1 else f"{machine.partitions}, warps assigned: {machine.assignment}",
        "issue width": _issue(file) if machine.issue_width else "no limit",
        "scheduler": "" if machine.scheduler is SchedulerPromise.ANY else str(machine.scheduler),
        **{unit.name: _machine_text(unit) for unit in machine.units},
        **{ports.name: f"{_ports(ports)}, which classes use" for ports in machine.resources},
        **{f"queue {queue.name}": _queue_text(queue) for queue in machine.queues},
        **_lapses_texts(machine.lapses),
        "engines": _support(machine),
        "unverified": _doubt(file),
    }
    width = terminal_width()
    yield from fact_lines({name: fact for name, fact in known.items() if fact}, width)
    yield from _operations(machine)
    yield from bullet_lines("not what the GPU does", map(str, file.caveats), width)
    yield from bullet_lines("notes", file.notes, width)
    yield "numbers:"
    figures = [(f"  {datum.key}", str(datum.value), _source(datum)) for datum in file.data]
    yield from align_columns(figures, right=[1])


def _source(datum: MachineDatum) -> str:
    return f"{'' if datum.verified else 'UNVERIFIED: '}{datum.source or 'no source'}"


def _ports(ports: UnitClass | PortResource) -> str:
    many = "1 port" if ports.capacity == 1 else f"{ports.capacity} ports"
    return f"{many} shared by all partitions" if ports.shared else many


def _machine_text(unit: UnitClass) -> str:
    held = "1 cycle" if unit.interval == 1 else f"{unit.interval} cycles"
    uses = "".join(f"; uses {use}" for use in unit.uses)
    return f"{_ports(unit)}, held for {held}; latency {unit.latency}{uses}"


def _queue_text(queue: UnitQueue) -> str:
    places = count_words(queue.places, "place")
    return f"{places} for {', '.join(queue.units)}{'; while it is full nothing else may issue' * queue.blocks}"


def _lapses_texts(known: KnownLapses | None) -> dict[str, str]:
    """Return what is known of lapses, by what it is about."""
    if known is None:
        return {}
    reads, found = known.registers, dict[str, str]()
    if reads is not None:
        queued = "count" if reads.is_variable else "do not count"
        found["registers"] = f"{reads.banks} banks, {reads.ports} a cycle from each; reads from a queue {queued}"
    for name, cache in (("code", known.code), ("constants", known.constants)):
        if cache is not None:
            late = f"a line that the next cache has takes {cycle_words(cache.window)}"
            found[name] = f"{cache.sets} sets of {cache.ways} lines of {count_words(cache.line, 'byte')}; {late}"
    cycles = {"integer multiply-add": known.multiply, "late line of constants": known.constant}
    cycles |= {f"fence ({scope})": each for scope, each in known.fence.items()}
    if listed := [f"{name} {each}" for name, each in cycles.items() if each is not None]:
        found["lapses"] = f"cycles at most: {', '.join(listed)}"
    if known.carried_over:
        found["carried over"] = f"lapses, from {known.carried_over}"
    return found


def _operations(machine: Machine) -> Iterator[str]:
    if machine.operations:
        yield "operations, by class, with the cycles after which their result is there:"
        rows = [
            (f"  {each.name}", each.unit, str(CycleRange(each.least, each.most)), OPERATIONS[each.name])
            for each in machine.operations
        ]
        yield from align_columns(rows)


def _support(machine: Machine) -> str:
    """Return which backends know the features of a machine, in words."""
    # A bound for any scheduler holds for one that promises more, so no backend has to know the promise.
    has = {feature: words for feature, words in machine.features.items() if feature is not Feature.SCHEDULER}
    # A backend may have several engines: it knows the machine if one of them does.
    able = {engine.backend for engine in ENGINES if has.keys() <= engine.knows}
    ignorant = [backend for backend in dict.fromkeys(engine.backend for engine in ENGINES) if backend not in able]
    return f"all but {', '.join(ignorant)}: {', '.join(has.values())}" if ignorant else "all"


def _document(file: MachineFile) -> dict[str, object]:
    machine = file.machine
    return {
        "schema": "makespan.machine/1",
        "name": machine.name,
        "architecture": file.architecture,
        "compute_capability": list(file.compute_capability),
        "examples": file.examples,
        "clock": file.clock,
        "source": file.source,
        "basic": machine.is_basic,
        "partitions": machine.partitions,
        "assignment": str(machine.assignment),
        "issue_width": machine.issue_width,
        "scheduler": str(machine.scheduler),
        "units": {
            unit.name: {
                "capacity": unit.capacity,
                "interval": unit.interval,
                "latency": _range(unit.latency),
                "shared": unit.shared,
                "uses": [{"one_of": list(use.resources), "interval": _range(use)} for use in unit.uses],
            }
            for unit in machine.units
        },
        "resources": {ports.name: {"capacity": ports.capacity, "shared": ports.shared} for ports in machine.resources},
        "operations": {each.name: {"class": each.unit, "latency": _range(each)} for each in machine.operations},
        "lapses": None if machine.lapses is None else _lapses_data(machine.lapses),
        "queues": {
            queue.name: {"units": list(queue.units), "places": queue.places, "blocks": queue.blocks}
            for queue in machine.queues
        },
        "caveats": list(map(str, file.caveats)),
        "notes": list(file.notes),
        "figures": [
            {
                "key": datum.key,
                "value": _range(datum.value) if isinstance(datum.value, CycleRange) else datum.value,
                "source": datum.source,
                "verified": datum.verified,
            }
            for datum in file.data
        ],
    }


def _lapses_data(known: KnownLapses) -> dict[str, object]:
    reads = known.registers
    caches = {"constants": known.constants, "code": known.code}
    return {
        "registers": None
        if reads is None
        else {"banks": reads.banks, "ports": reads.ports, "variable": reads.is_variable},
        "multiply": known.multiply,
        "constant": known.constant,
        **{name: None if cache is None else _cache_data(cache) for name, cache in caches.items()},
        "fence": dict(known.fence),
        "expiry": known.expiry,
        "carried_over": known.carried_over or None,
        "verified": known.is_verified,
    }


def _cache_data(cache: LineCache) -> dict[str, object]:
    return cache._asdict() | {"next": None if cache.next is None else cache.next._asdict()}


def _range(of: Latency | CycleRange | Use | TimedOperation) -> list[int | None]:
    return [of.least, of.most]
