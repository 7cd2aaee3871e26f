"""`makespan machines`: the machines that come with the package, and where their numbers come from."""

from collections.abc import Iterator, Sequence

import click

from makespan.cli.output import format_option, rendered
from makespan.engines import ENGINES
from makespan.feature import Feature
from makespan.machine import Latency, Machine, MachineFile, Scheduler, UnitClass, find, shipped
from makespan.report.lines import columns

_HEADER = ("name", "architecture", "capability", "classes", "issue", "unverified")
_LEGEND = (
    "C=3/2: 3 ports, each held for 2 cycles by a warp-instruction; latency 1 unless it follows after @",
    "issue: warp-instructions per cycle, all classes together; unverified: numbers that nobody has confirmed",
)


@click.command("machines")
@click.argument("machine", metavar="[NAME|FILE.toml]", required=False)
@format_option()
def command(machine: str | None, output: str) -> None:
    """List the machines that come with the package, or show one, or a machine file, with all its sources."""
    files = list(shipped().values()) if machine is None else [find(machine)]
    said = rendered(
        output,
        text=lambda: "\n".join(_table(files) if machine is None else _page(files[0])),
        data=lambda: map(_document, files),
    )
    click.echo(said)


def _table(files: Sequence[MachineFile]) -> Iterator[str]:
    yield from columns([_HEADER, *map(_row, files)])
    yield ""
    yield from _LEGEND


def _row(file: MachineFile) -> tuple[str, ...]:
    capability = ", ".join(file.compute_capability) or "-"
    return (file.machine.name, file.architecture or "-", capability, _classes(file.machine), _issue(file), _doubt(file))


def _classes(machine: Machine) -> str:
    return " ".join(map(str, machine.units))


def _issue(file: MachineFile) -> str:
    width = file.machine.issue_width
    return "-" if width is None else str(width)


def _doubt(file: MachineFile) -> str:
    return f"{len(file.unverified)} of {len(file.data)}"


def _page(file: MachineFile) -> Iterator[str]:
    yield f"machine {file.machine.name}"
    facts = {
        "architecture": file.architecture,
        "capability": ", ".join(file.compute_capability),
        "examples": file.examples,
        "clock": file.clock,
        "source": file.source,
        "issue width": _issue(file) if file.machine.issue_width else "no limit",
        "scheduler": "" if file.machine.scheduler is Scheduler.ANY else str(file.machine.scheduler),
        **{unit.name: _described(unit) for unit in file.machine.units},
        "engines": _support(file.machine),
        "unverified": _doubt(file),
    }
    for name, fact in facts.items():
        if fact:
            yield f"{name:<13}{fact}"
    yield from _bullets("not what the GPU does", file.caveats)
    yield from _bullets("notes", file.notes)
    yield "numbers"
    keys = max(len(datum.key) for datum in file.data)
    values = max(len(str(datum.value)) for datum in file.data)
    for datum in file.data:
        doubt = "" if datum.verified else "UNVERIFIED: "
        yield f"  {datum.key:<{keys}}  {datum.value!s:>{values}}  {doubt}{datum.source or 'no source'}"


def _described(unit: UnitClass) -> str:
    ports = "1 port" if unit.capacity == 1 else f"{unit.capacity} ports"
    held = "1 cycle" if unit.interval == 1 else f"{unit.interval} cycles"
    return f"{ports}, held for {held}; latency {unit.latency}"


def _support(machine: Machine) -> str:
    """Which backends know what the machine has; what its scheduler promises nobody needs to know for a bound."""
    has = {feature: words for feature, words in machine.features.items() if feature is not Feature.SCHEDULER}
    able = {engine.backend for engine in ENGINES if has.keys() <= engine.knows}
    ignorant = [backend for backend in dict.fromkeys(engine.backend for engine in ENGINES) if backend not in able]
    return f"all but {', '.join(ignorant)}: {', '.join(has.values())}" if ignorant else "all"


def _bullets(title: str, texts: Sequence[str]) -> Iterator[str]:
    if texts:
        yield title
        for text in texts:
            yield f"  - {text}"


def _document(file: MachineFile) -> dict[str, object]:
    return {
        "schema": "makespan.machine/1",
        "name": file.machine.name,
        "architecture": file.architecture,
        "compute_capability": list(file.compute_capability),
        "examples": file.examples,
        "clock": file.clock,
        "source": file.source,
        "basic": file.machine.is_basic,
        "issue_width": file.machine.issue_width,
        "scheduler": str(file.machine.scheduler),
        "units": {
            unit.name: {"capacity": unit.capacity, "interval": unit.interval, "latency": _range(unit.latency)}
            for unit in file.machine.units
        },
        "caveats": list(file.caveats),
        "notes": list(file.notes),
        "figures": [
            {
                "key": datum.key,
                "value": _range(datum.value) if isinstance(datum.value, Latency) else datum.value,
                "source": datum.source,
                "verified": datum.verified,
            }
            for datum in file.data
        ],
    }


def _range(latency: Latency) -> list[int]:
    return [latency.least, latency.most]
