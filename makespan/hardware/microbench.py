"""`makespan measure sm`: the machine file of a card, from what was measured on it."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from makespan.cli.help_page import HelpCommand, examples
from makespan.cli.output import TEXT, format_option, render
from makespan.cli.parameters import FILE, choice
from makespan.cli.running import DONE, NO
from makespan.estimates.commands.measure import write_program
from makespan.host.errors import InputError
from makespan.model.machine.values import shown

if TYPE_CHECKING:
    from makespan.hardware.lapse_fit import LapseCheck
    from makespan.hardware.sm_fit import IssueEvidence, MachineFit
    from makespan.model.machine import MachineFile


@click.command(
    "sm",
    cls=HelpCommand,
    epilog=examples(
        "makespan measure sm --emit cuda -o bench", "makespan measure sm --fit sm.csv --machine turing -o my.toml"
    ),
)
@choice("--emit", "cuda", "write the program that measures", default=False)
@click.option("--operation", "operations", multiple=True, metavar="NAME", help="of --emit: this one only, and others")
@click.option("-o", "--output", "target", type=FILE, metavar="DIR|FILE.toml", help="folder, or machine file")
@click.option("--fit", "csv", type=FILE, metavar="SAMPLES.csv", help="numbers from samples")
@click.option("--machine", metavar="NAME|FILE.toml", help="of --fit: which classes there are, and all else")
@format_option(what="of the fit")
def command(
    emit: str | None,
    operations: tuple[str, ...],
    target: Path | None,
    csv: Path | None,
    machine: str | None,
    output: str,
) -> int:
    """Measure one multiprocessor for a machine file: write the program in CUDA, or fit its samples.

    Latencies, intervals, conflicts of banks, partitions, whether the scheduler ever leaves a ready warp out, and
    whether lapses, queues or late lines exceed what the machine says (exit code 1). What was not measured stays as the
    machine has it.
    """
    if (emit is None) == (csv is None):
        raise InputError("give one of --emit, --fit")
    if emit is not None:
        if machine is not None:
            raise InputError("--machine is for --fit")
        from makespan.hardware import sm_programs

        for name, text in sm_programs.sm_source(operations or sm_programs.OPERATIONS).items():
            click.echo(f"written: {write_program(target, name, text)}")
        return DONE
    if operations:
        raise InputError("--operation is for --emit")
    if csv is None or machine is None:
        raise InputError("--machine is missing: which classes the multiprocessor has")
    return _fit(csv, machine, target, output)


def _fit(csv: Path, machine: str, target: Path | None, output: str) -> int:
    from makespan.estimates.microbench import samples
    from makespan.hardware import lapse_fit, sm_fit
    from makespan.hardware.sm_programs import TABLE
    from makespan.host.output_file import check_writable, write_whole
    from makespan.host.text_file import named_file, parse_toml, read_text
    from makespan.model.machine.files import MAX_FILE_BYTES, find_machine

    if target is not None:
        if target.suffix != ".toml":
            raise InputError(f"-o {shown(str(target))}: the name of a machine file must end in .toml")
        check_writable(target, "the machine file")
    base, remarks = find_machine(machine), samples.remarks(csv)
    file, where = named_file(machine, "machines", ".toml", "machine")
    document = parse_toml(read_text(file, "machine file", MAX_FILE_BYTES, where=where), "machine file", where)
    measured = samples.read(csv, TABLE)
    told = sm_fit.fit_machine(measured, base.machine)
    checks = lapse_fit.check_lapses(measured, base.machine, are_modulo=told.modulo is True)
    refuted = [str(check) for check in checks if check.is_refuted]
    made = sm_fit.measured_machine(document, told, remarks, csv.name, refuted)
    if target is not None:
        write_whole(target, sm_fit.machine_toml(made).encode(), "the machine file")
    click.echo(
        render(
            output,
            text=lambda: "\n".join(_lines(told, checks, base, remarks)),
            data=lambda: _document(told, checks, remarks),
        )
    )
    if target is not None and output == TEXT:
        click.echo(f"machine file: {target}")
    return NO if refuted or (told.issue and told.issue.left_out) else DONE


def _lines(
    told: "MachineFit", checks: "Sequence[LapseCheck]", base: "MachineFile", remarks: dict[str, str]
) -> Iterator[str]:
    from makespan.hardware.sm_fit import VIRTUAL, lower_than

    how = "VIRTUAL, of no GPU" if VIRTUAL in remarks else "measured on"
    yield f"{how}: {'; '.join(f'{key} {value}' for key, value in remarks.items())}"
    width = max((len(".".join(found.key)) for found in told.found), default=0)
    for found in told.found:
        wider = lower_than(base, found)
        less = f"; {base.machine.name} has {wider}" if wider else ""
        yield f"{'.'.join(found.key):<{width}}  {found.seen!s:>8}  {found.samples} samples, {found.note}{less}"
    if told.modulo:
        yield "warps belong to partitions modulo their number, as far as one block shows: --assignment modulo says so"
    yield from (f"stays as it is: {why}" for why in told.stays)
    if told.issue:
        yield _conservation_words(told.issue)
    yield from map(str, checks)
    yield "a most that was seen is no bound"


def _conservation_words(issue: "IssueEvidence") -> str:
    if not issue.waited:
        return f"work conservation: not observed: no ready warp waited in {issue.runs} runs"
    seen = f"{issue.waited} cycles in which a ready warp waited, in {issue.runs} runs"
    if not issue.left_out:
        return f"work conservation: never left out while the slot was free, {seen}"
    run, warps, warp, cycle = issue.left_out[0]
    return (
        f"NOT WORK-CONSERVING: {len(issue.left_out)} of {seen}: left out while the slot was free; the first one: warp"
        f" {warp} of {warps} in cycle {cycle} of run {run}"
    )


def _document(told: "MachineFit", checks: "Sequence[LapseCheck]", remarks: dict[str, str]) -> dict[str, Any]:
    return {
        "schema": "makespan.microbench-sm/1",
        "remarks": remarks,
        "found": [
            {
                "key": ".".join(each.key),
                "least": each.seen.least,
                "most": each.seen.most,
                "samples": each.samples,
                "note": each.note,
            }
            for each in told.found
        ],
        "checks": [
            {
                "key": each.key,
                "about": each.about,
                "least": float(each.least),
                "most": float(each.most),
                "samples": each.samples,
                "said": each.said,
                "refuted": each.is_refuted,
            }
            for each in checks
        ],
        "shared": dict(told.shared),
        "modulo": told.modulo,
        "stays": list(told.stays),
        "issue": told.issue
        and {
            "waited": told.issue.waited,
            "runs": told.issue.runs,
            "left_out": [
                dict(zip(("run", "warps", "warp", "cycle"), each, strict=True)) for each in told.issue.left_out
            ],
        },
    }
