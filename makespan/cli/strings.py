"""`makespan strings`: what a kernel becomes, and what is missing for it."""

from collections.abc import Callable
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import click

from makespan.cli.help_page import HelpCommand, examples, section
from makespan.cli.options import kernel_options, machine_option, timing_options
from makespan.cli.output import TEXT, format_option, render
from makespan.cli.parameters import OneOf
from makespan.cli.source import chosen_kernels, kernel_question
from makespan.host.errors import InputError
from makespan.model.machine import Machine, find_machine
from makespan.model.program import BARRIER, Program, merge_groups

if TYPE_CHECKING:
    from makespan.kernels.flow import LoopInfo
    from makespan.kernels.question import LaunchedKernel

_MOST_PATHS = 10**15
_MOST_ROWS = 40
_TEXT_WIDTH = 48


@click.command(
    "strings",
    cls=HelpCommand,
    epilog=examples("makespan strings ptx/divergent.ptx --listing", "makespan strings ptx/fir.ptx --bounds-template"),
)
@click.argument("source")
@section("Source", click.option("--input-format", type=OneOf(["ptx"]), help="format of standard input (SOURCE '-')"))
@machine_option
@kernel_options
@timing_options
@section(
    "Output",
    click.option("--listing", is_flag=True, help="every instruction once, in text order"),
    click.option("--dot", is_flag=True, help="the control flow graph, for Graphviz"),
    click.option("--bounds-template", "template", is_flag=True, help="a file for --loop-bound: fill in the numbers"),
)
@format_option()
def command(
    source: str,
    input_format: str | None,
    machine: str | None,
    listing: bool,
    dot: bool,
    template: bool,
    output: str,
    **options: Any,
) -> None:
    """Show for each kernel of SOURCE its letters, its loops with their bounds, and the choices left open.

    Letters are those of the machine: for machine code, without --machine, the one for its architecture.
    """
    if listing + dot + template > 1:
        raise InputError("--listing, --dot and --bounds-template exclude each other")
    if (dot or template) and output != TEXT:
        raise InputError(f"--{'dot' if dot else 'bounds-template'} prints a format of its own: leave out --format")
    from makespan.kernels.question import LaunchedKernel, bounds_template

    chosen = None if machine is None else find_machine(machine).machine
    asked = kernel_question(source, input_format, **options).compiled_for(chosen, None)
    module = asked.module()
    if template:
        click.echo(bounds_template(asked, module, chosen_kernels(module, asked.entry)), nl=False)
        return
    kernels = [LaunchedKernel(asked, module, kernel) for kernel in chosen_kernels(module, asked.entry)]
    alone = len(kernels) == 1
    if dot:
        for kernel in kernels:
            click.echo(_dot(kernel, alone=alone))
        return
    described = [
        _listing(kernel, chosen) if listing else _description(kernel, chosen, alone=alone) for kernel in kernels
    ]
    lines = _listing_lines if listing else _lines
    for number, shown in enumerate(described):
        if number and output == TEXT:
            click.echo()
        click.echo(_kernel_text(shown, lines, output))


def _kernel_text(shown: dict[str, Any], lines: Callable[[dict[str, Any]], list[str]], output: str) -> str:
    return render(output, text=lambda: "\n".join(lines(shown)), data=lambda: shown)


def _listing(launched: "LaunchedKernel", machine: Machine | None) -> dict[str, Any]:
    from makespan.kernels import ptx, sass

    kernel, classes = launched.kernel, launched.question.classes
    if isinstance(kernel, sass.SassKernel):
        rows = [row._asdict() for row in sass.listing(kernel, machine or launched.default_machine)]
    else:
        listed = ptx.listing(kernel, profile=classes.profile, classes=classes.overrides, unknown=classes.unknown)
        rows = [{"line": row.line, "unit": row.unit, "text": row.text} for row in listed]
    return {"kernel": kernel.name, "letters": "".join(row["unit"] or "" for row in rows), "listing": rows}


def _listing_lines(kernel: dict[str, Any]) -> list[str]:
    rows = [_listing_line(**row) for row in kernel["listing"]]
    return [f"kernel {kernel['kernel']}", *rows, f"letters: {kernel['letters']} ({len(kernel['letters'])})"]


def _listing_line(unit: str | None, text: str, line: int = 0, **machine_code: str | None) -> str:
    if not machine_code:
        return f"{line:>6}  {unit or '-'}  {text}"
    address, control, ptx, source = (machine_code[name] or "" for name in ("address", "control", "ptx", "source"))
    return f"{address:>6}  {control}  {unit or '-'}  {text:<{_TEXT_WIDTH}}  {ptx}  {source}".rstrip()


def _description(launched: "LaunchedKernel", machine: Machine | None, *, alone: bool) -> dict[str, Any]:
    """Return the letters of a kernel or why it has none, and its loops and branches where these are understood.

    Raises:
        InputError: options that do not fit; for a kernel `alone`, also control flow that is not understood.
    """
    from makespan.kernels import sass

    kernel, asked = launched.kernel, launched.question
    found: dict[str, Any] = {
        "kernel": kernel.name,
        **({"arch": f"sm_{kernel.sm}"} if isinstance(kernel, sass.SassKernel) else {"profile": asked.classes.profile}),
        "loops": [],
        "branches": [],
    }
    try:
        found["branches"] = [branch._asdict() for branch in launched.branches]
    except InputError as refusal:
        if alone:
            raise
        return {**found, "string": None, "programs": [], "refused": str(refusal)}
    found["loops"] = [_loop(loop) for loop in launched.loops]
    try:
        launch = launched.programs(machine)
        known = merge_groups((program, warps) for program, warps in launch if warps is not None)
        programs = [_program(program, warps) for program, warps in known or launch]
    except InputError as refusal:
        return {**found, "string": None, "programs": [], "refused": str(refusal)}
    return {**found, **(programs[0] if len(programs) == 1 else {"string": None}), "programs": programs}


def _loop(loop: "LoopInfo") -> dict[str, Any]:
    return {
        "label": loop.label,
        "line": loop.line,
        "source_line": loop.source_line,
        "depth": loop.depth,
        "bound": None if loop.bound is None else loop.bound.maximum,
        "exact": None if loop.bound is None else loop.bound.exact,
        "bound_source": None if loop.bound is None else loop.bound.source,
        "hint": loop.hint,
        "against": loop.against,
        **({"origin": loop.origin, "other_bounds": list(map(str, loop.others))} if loop.origin else {}),
    }


def _program(program: "Program", warps: int | None) -> dict[str, Any]:
    """Return the figures of a program that `warps` warps of a block run; it has a string where it has only one path."""
    return {
        "warps": warps,
        "string": program.letters,
        "places": program.end,
        "starts": list(program.starts),
        "edges": sum(len(place.successors) for place in program.places),
        "paths": _paths(program),
        "shortest": program.least(),
        "longest": program.most(),
        "per_class": {unit: [program.least(unit), program.most(unit)] for unit in sorted(program.units)},
        "barriers": sum(place.unit == BARRIER for place in program.places),
        "letters": [
            {
                "unit": place.unit,
                "line": origin.line,
                "source_line": origin.source or None,
                "text": origin.text,
                "successors": list(place.successors),
            }
            for place, origin in zip(program.places, program.origins, strict=True)
        ],
        "assumptions": list(map(str, program.assumptions)),
    }


def _lines(kernel: dict[str, Any]) -> list[str]:
    language = kernel["arch"] if "arch" in kernel else f"profile {kernel['profile']}"
    lines = [f"kernel {kernel['kernel']} ({language})"]
    for loop in kernel["loops"]:
        bound = (
            (f"no bound; {loop['hint']}" if loop["hint"] else "no bound")
            if loop["bound"] is None
            else f"{'exactly' if loop['exact'] else 'at most'} {loop['bound']} iterations ({loop['bound_source']})"
        ) + (f", but it makes {loop['against']}" if loop["against"] else "")
        bound += "".join(f", or {other}" for other in loop.get("other_bounds", ()))
        source = f", {loop['source_line']}" if loop["source_line"] else ""
        place = "" if "arch" in kernel else f" at line {loop['line']}"
        place += f", {loop['origin']}" if "origin" in loop else ""
        lines.append(f"  loop {loop['label']}{place}{source}, depth {loop['depth']}: {bound}")
    for branch in kernel["branches"]:
        controls = f"controls loop {branch['loop']}" if branch["loop"] else "a choice"
        at = branch["line"] if "arch" in kernel else f"line {branch['line']}"
        lines.append(f"  branch at {at}: {branch['text']}  ({controls})")
    if not kernel["programs"]:
        return [*lines, f"  no program: {kernel['refused']}"]
    for program in kernel["programs"]:
        lines += [f"  {line}" for line in _program_lines(program)]
    return lines


def _program_lines(program: dict[str, Any]) -> list[str]:
    counts = ", ".join(f"{_span(*count)} {unit}" for unit, count in program["per_class"].items())
    warps = "" if program["warps"] is None else f"{program['warps']} warp{'s' * (program['warps'] != 1)}: "
    size = f"{_span(program['shortest'], program['longest'])} instructions ({counts})"
    by_line = groupby(program["letters"], itemgetter("source_line"))
    rows = [f"{line}: {''.join(letter['unit'] for letter in letters)}" for line, letters in by_line if line]
    lines = [*program["assumptions"], f"{warps}{size}", *rows[:_MOST_ROWS]]
    if len(rows) > _MOST_ROWS:
        lines.append(f"({len(rows) - _MOST_ROWS} more stretches of source lines: --format json tells them all)")
    if program["string"] is not None:
        return [*lines, program["string"]]
    paths = f"more than {_MOST_PATHS:.0e}" if program["paths"] is None else program["paths"]
    shape = f"automaton of {program['places']} places, {program['edges']} edges, {paths} paths"
    return [*lines, shape]


def _span(least: int, most: int) -> str:
    return str(most) if least == most else f"{least}..{most}"


def _paths(program: Program) -> int | None:
    """Return how many paths there are; None for more than `_MOST_PATHS`."""
    # Places are in topological order: paths are counted from the end, and cut off where they are too many.
    counts = [0] * program.end + [1]
    for number in range(program.end - 1, -1, -1):
        counts[number] = min(sum(counts[after] for after in program.places[number].successors), _MOST_PATHS + 1)
    found = sum(counts[start] for start in program.starts)
    return None if found > _MOST_PATHS else found


def _dot(launched: "LaunchedKernel", *, alone: bool) -> str:
    """Return the control flow graph in the language of Graphviz: a node for each block, with its lines.

    Raises:
        InputError: of a kernel `alone`, control flow that is not understood; with others, it becomes a comment.
    """
    from makespan.kernels.flow import SIDES

    try:
        found = launched.flow
    except InputError as refusal:
        if alone:
            raise
        return f"// kernel {launched.kernel.name}: {' '.join(str(refusal).split())}"
    lines = [f'digraph "{_escape(launched.kernel.name)}" {{', "  node [shape=box, fontname=monospace];"]
    for number, block in enumerate(found.blocks):
        code = "".join(f"{i.line}: {_escape(str(i))}\\l" for i in (found.code[at] for at in found.numbers(number)))
        lines.append(f'  b{number} [label="{_escape(found.name(number))}\\n{code}"];')
        sides = SIDES if found.is_branch(number) else ("",)
        for side, after in zip(sides, block.successors, strict=True):
            label = f' [label="{side}"]' if side else ""
            lines.append(f"  b{number} -> {'end' if after == found.exit else f'b{after}'}{label};")
    return "\n".join([*lines, "  end [shape=doublecircle, label=end];", "}"])


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
