"""`makespan strings`: what a kernel becomes, and what is missing for it to become a program."""

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import click

from makespan.cli.source import KernelOptions, classification, kernel_options, read_module
from makespan.errors import InputError

if TYPE_CHECKING:
    from makespan.ptx import Kernel, Module


@click.command("strings")
@click.argument("source")
@click.option("--input-format", type=click.Choice(["ptx"]), help="format of standard input (SOURCE '-')")
@kernel_options
@click.option("--listing", is_flag=True, help="every instruction once, in text order")
@click.option("--format", "output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(source: str, input_format: str | None, listing: bool, output: str, **options: Any) -> None:
    """Show for each kernel of SOURCE its letters, its loops with their bounds, and the choices left open."""
    chosen = KernelOptions(**options)
    module = read_module(source, input_format)
    kernels = module.kernels if chosen.kernel is None else (module.kernel(chosen.kernel),)
    if not kernels:
        raise InputError(f"{source}: no kernel in this file: it has no .entry with a body")
    described = [_listing(kernel, chosen) if listing else _description(module, kernel, chosen) for kernel in kernels]
    for number, kernel in enumerate(described):
        if output == "json":
            click.echo(json.dumps(kernel))
        else:
            click.echo(("\n" if number else "") + "\n".join(_listing_lines(kernel) if listing else _lines(kernel)))


def _listing(kernel: "Kernel", options: KernelOptions) -> dict[str, Any]:
    from makespan import ptx

    rows = ptx.listing(kernel, **classification(options))
    return {
        "kernel": kernel.name,
        "letters": "".join(row.unit or "" for row in rows),
        "listing": [{"line": row.line, "unit": row.unit, "text": row.text} for row in rows],
    }


def _listing_lines(kernel: dict[str, Any]) -> list[str]:
    rows = [f"{row['line']:>6}  {row['unit'] or '-'}  {row['text']}" for row in kernel["listing"]]
    return [f"kernel {kernel['kernel']}", *rows, f"letters: {kernel['letters']} ({len(kernel['letters'])})"]


def _description(module: "Module", kernel: "Kernel", options: KernelOptions) -> dict[str, Any]:
    """Letters, or the reason why there are none; loops and branches in any case."""
    from makespan import ptx

    given = ptx.bounds_for(kernel, ptx.loop_bounds(options.loop_bounds), module.kernels)
    loops = ptx.loops(kernel, given)
    found: dict[str, Any] = {
        "kernel": kernel.name,
        "profile": options.profile,
        "loops": [
            {
                "label": loop.label,
                "line": loop.line,
                "source_line": loop.source_line,
                "depth": loop.depth,
                "bound": None if loop.bound is None else loop.bound.maximum,
                "exact": None if loop.bound is None else loop.bound.exact,
                "bound_source": None if loop.bound is None else loop.bound.source,
            }
            for loop in loops
        ],
        "branches": [branch._asdict() for branch in ptx.branches(kernel)],
    }
    try:
        program = ptx.program(
            kernel,
            loop_bounds=given,
            take=ptx.takes(options.take),
            trace=None if options.trace is None else ptx.read_trace(options.trace),
            **classification(options),
        )
    except InputError as refusal:
        return {**found, "string": None, "refused": str(refusal)}
    letters = program.letters or ""
    return {
        **found,
        "string": letters,
        "instructions": len(letters),
        "per_class": dict(sorted(Counter(letters).items())),
        "assumptions": list(program.assumptions),
    }


def _lines(kernel: dict[str, Any]) -> list[str]:
    lines = [f"kernel {kernel['kernel']} (profile {kernel['profile']})"]
    for loop in kernel["loops"]:
        bound = (
            "no bound"
            if loop["bound"] is None
            else f"{'exactly' if loop['exact'] else 'at most'} {loop['bound']} iterations ({loop['bound_source']})"
        )
        source = f", {loop['source_line']}" if loop["source_line"] else ""
        lines.append(f"  loop {loop['label']} at line {loop['line']}{source}, depth {loop['depth']}: {bound}")
    for branch in kernel["branches"]:
        controls = f"controls loop {branch['loop']}" if branch["loop"] else "a choice"
        lines.append(f"  branch at line {branch['line']}: {branch['text']}  ({controls})")
    if kernel["string"] is None:
        return [*lines, f"  no string: {kernel['refused']}"]
    counts = ", ".join(f"{count} {unit}" for unit, count in kernel["per_class"].items())
    lines += [f"  {note}" for note in kernel["assumptions"]]
    return [*lines, f"  {kernel['instructions']} instructions ({counts})", f"  {kernel['string']}"]
