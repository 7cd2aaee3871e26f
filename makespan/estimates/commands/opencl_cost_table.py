"""`makespan estimate --method opencl-cost-table`: what a kernel costs by a measured table, and where to run it."""

import re
from typing import TYPE_CHECKING, Any

import click

from makespan.cli.help_page import HelpCommand, examples
from makespan.cli.output import render
from makespan.cli.parameters import SECONDS, extents
from makespan.estimates.commands.question import LaunchOptions, kernel_options, report_options
from makespan.host.errors import InputError

if TYPE_CHECKING:
    from makespan.estimates.opencl_cost_table.expression import Array, Iteration
    from makespan.estimates.opencl_cost_table.prediction import LaunchWork

DEVICE, CPU = 0, 1
_DIGITS = 12
# Options that a kernel file has no use for.
_ITERATION = ("arrays", "constants", "functions", "wg", "dedupe_reads", "alike")


@click.command(
    "opencl-cost-table",
    cls=HelpCommand,
    epilog=examples(
        "makespan estimate --method opencl-cost-table ptx/vecadd.ptx --block 256 --grid 4096 --table rmbp-gt650m"
    ),
)
@click.argument("source", required=False)
@click.option("--expr", metavar=r"'m.\(x,y){...}'", help="a domain iteration instead of SOURCE")
@click.option("--array", "arrays", multiple=True, metavar="NAME:TYPE:SHAPE", help="such as matrix:float:4096x4096")
@click.option("--const", "constants", multiple=True, metavar="NAME=N", help="a named integer")
@click.option("--func", "functions", multiple=True, metavar="'g(x)=2*x'", help="a function that calls are replaced by")
@click.option("--table", metavar="NAME|FILE.json", help="a shipped cost table, or a measured one")
@click.option("--wg", type=int, metavar="N", help="work-group size, for --expr [default: as the table was measured]")
@click.option(
    "--bytes",
    "moved",
    metavar="auto|none|IN,OUT",
    default="auto",
    show_default=True,
    help="transfers: the arrays that are read and the result (--expr), none, or so many bytes",
)
@click.option("--override", "overrides", multiple=True, metavar="ROW=MICROSECONDS", help="in place of a row's time")
@click.option("--cpu-time", type=SECONDS, help="what the CPU takes: exit code 1 if the device takes no less")
@click.option("--dedupe-reads", is_flag=True, help="count equal reads once (--expr)")
@click.option("--alike", is_flag=True, help="price all global reads alike, without classes (--expr)")
@click.option("--emit-opencl", is_flag=True, help="print the OpenCL kernel of --expr, and nothing else")
@kernel_options
@report_options
def command(
    expr: str | None,
    table: str | None,
    emit_opencl: bool,
    overrides: tuple[str, ...],
    cpu_time: float | None,
    explain: bool,
    output: str,
    **options: Any,
) -> int:
    """Estimate a launch by a measured table of costs (Pöppl, 2014): rows, transfers, total.

    An estimate is not a bound. SOURCE is a kernel (.ptx, .cu) with --block and --grid. With --cpu-time the last line
    says where to run it, and the exit code is 0 for the device and 1 for the CPU.
    """
    from makespan.estimates.opencl_cost_table import opencl_code
    from makespan.estimates.opencl_cost_table.prediction import predict
    from makespan.estimates.opencl_cost_table.table import find
    from makespan.estimates.report import cost_prediction

    asked = LaunchOptions.taken(options)
    if (asked.source is None) == (expr is None):
        raise InputError("give either SOURCE or --expr")
    if emit_opencl and expr is None:
        raise InputError("--emit-opencl is for --expr")
    if expr is not None:
        asked.refuse("--expr is an iteration")
    if emit_opencl:
        click.echo(opencl_code.source(_iteration(str(expr), options)), nl=False)
        return DEVICE
    if table is None:
        raise InputError("--table is missing: a shipped cost table such as rmbp-gt650m, or one of 'microbench opencl'")
    priced = find(table)
    interval = priced.interval_bytes
    work = _of_kernel(asked, interval, options) if expr is None else _of_iteration(expr, interval, options)
    prediction = predict(priced, work, _parse_assignments(overrides, "--override", float))
    said = render(
        output,
        text=lambda: cost_prediction.text(prediction, explain=explain, cpu_seconds=cpu_time),
        data=lambda: cost_prediction.document(prediction, cpu_time),
    )
    click.echo(said)
    return DEVICE if cpu_time is None or prediction.on_device(cpu_time) else CPU


def _of_iteration(text: str, interval_bytes: int, options: dict[str, Any]) -> "LaunchWork":
    from makespan.estimates.opencl_cost_table.access import outside_reads
    from makespan.estimates.opencl_cost_table.counting import count
    from makespan.estimates.opencl_cost_table.prediction import LaunchWork

    found = _iteration(text, options)
    counts = count(
        found,
        interval_bytes=interval_bytes,
        dedupe_reads=options["dedupe_reads"],
        classified=not options["alike"],
    )
    moved = options["moved"]
    bytes_in, bytes_out = (found.bytes_in, found.bytes_out) if moved == "auto" else _bytes(moved)
    return LaunchWork(counts, found.work_items, options["wg"], bytes_in, bytes_out, tuple(outside_reads(found)))


def _of_kernel(asked: LaunchOptions, interval_bytes: int, options: dict[str, Any]) -> "LaunchWork":
    from makespan.estimates.opencl_cost_table.from_ptx import work

    for name in _ITERATION:
        if options[name]:
            option = {"arrays": "array", "constants": "const", "functions": "func"}.get(name, name.replace("_", "-"))
            raise InputError(f"--{option} is for --expr; the launch of a kernel is --block and --grid")
    question = asked.question()
    bytes_in, bytes_out = _bytes("none" if options["moved"] == "auto" else options["moved"])
    return work(
        question.kernel,
        question.launch,
        interval_bytes=interval_bytes,
        loop_bounds=question.loop_bounds,
        bytes_in=bytes_in,
        bytes_out=bytes_out,
    )


def _iteration(text: str, options: dict[str, Any]) -> "Iteration":
    from makespan.estimates.opencl_cost_table.language import iteration

    return iteration(
        text,
        arrays=[_array(given) for given in options["arrays"]],
        constants=_parse_assignments(options["constants"], "--const", int),
        functions=options["functions"],
    )


def _array(text: str) -> "Array":
    from makespan.estimates.opencl_cost_table.expression import Array, Type

    name, _, rest = text.partition(":")
    kind, _, shape = rest.partition(":")
    if not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) or kind not in list(Type):
        raise InputError(f"--array {text!r}: give NAME:int|float:SHAPE, such as matrix:float:4096x4096")
    return Array(name, Type(kind), extents(shape, f"--array {name}:"))


def _parse_assignments(texts: tuple[str, ...], option: str, convert: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for text in texts:
        match = re.fullmatch(r"\s*([A-Za-z_]\w*)\s*=\s*(\S{1,40})\s*", text, re.ASCII)
        if match is not None and match[1] in found:
            raise InputError(f"{option} {match[1]} is given twice")
        try:
            if match is None:
                raise ValueError
            found[match[1]] = convert(match[2])
        except ValueError:
            raise InputError(f"{option} {text!r}: give NAME=NUMBER") from None
    return found


def _bytes(text: str) -> tuple[int | None, int | None]:
    if text == "none":
        return None, None
    match = re.fullmatch(rf"(-?\d{{1,{_DIGITS}}}),(-?\d{{1,{_DIGITS}}})", text, re.ASCII)
    if match is None:
        raise InputError(f"--bytes {text!r}: give auto, none, or IN,OUT as numbers of bytes")
    return int(match[1]), int(match[2])
