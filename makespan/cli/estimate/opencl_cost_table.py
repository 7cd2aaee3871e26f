"""`makespan estimate --method opencl-cost-table`: what a kernel costs by a measured table, and where to run it."""

import json
import re
from typing import TYPE_CHECKING, Any

import click

from makespan.cli.estimate.options import kernel_options, report_options
from makespan.cli.parameters import Seconds
from makespan.errors import InputError

if TYPE_CHECKING:
    from makespan.estimators.opencl_cost_table.expression import Array, Iteration
    from makespan.estimators.opencl_cost_table.prediction import Work

DEVICE, CPU = 0, 1
_DIGITS = 12
_KERNEL_OPTIONS = ("kernel", "loop_bounds", "block", "grid", "param", "arch", "keep_ptx")


@click.command("opencl-cost-table")
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
@click.option("--cpu-time", type=Seconds(), help="what the CPU takes: exit code 1 if the device takes no less")
@click.option("--dedupe-reads", is_flag=True, help="count equal reads once (--expr)")
@click.option("--alike", is_flag=True, help="price all global reads alike, without classes (--expr)")
@click.option("--emit-opencl", is_flag=True, help="print the OpenCL kernel of --expr, and nothing else")
@kernel_options
@report_options
def command(
    source: str | None,
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
    if (source is None) == (expr is None):
        raise InputError("give either SOURCE or --expr")
    if emit_opencl:
        click.echo(_emitted(expr, options), nl=False)
        return DEVICE
    if table is None:
        raise InputError("--table is missing: a shipped cost table such as rmbp-gt650m, or one of 'microbench opencl'")
    from makespan.estimators.opencl_cost_table.prediction import predict
    from makespan.estimators.opencl_cost_table.table import find
    from makespan.report import cost_prediction

    priced = find(table)
    if expr is None:
        work = _of_kernel(str(source), priced.interval_bytes, options)
    else:
        work = _of_iteration(expr, priced.interval_bytes, options)
    prediction = predict(priced, work, _assigned(overrides, "--override", float))
    if output == "json":
        click.echo(json.dumps(cost_prediction.document(prediction, cpu_time)))
    else:
        click.echo(cost_prediction.text(prediction, explain=explain, cpu_seconds=cpu_time))
    return DEVICE if cpu_time is None or prediction.on_device(cpu_time) else CPU


def extents(text: str, what: str) -> tuple[int, ...]:
    """A shape such as `4096x4096`.

    Raises:
        InputError: no such thing.
    """
    if not re.fullmatch(rf"\d{{1,{_DIGITS}}}(x\d{{1,{_DIGITS}}})*", text, re.ASCII):
        raise InputError(f"{what} {text!r}: a shape is numbers with x between, such as 4096x4096")
    return tuple(map(int, text.split("x")))


def _of_iteration(text: str, interval_bytes: int, options: dict[str, Any]) -> "Work":
    from makespan.estimators.opencl_cost_table.access import outside_reads
    from makespan.estimators.opencl_cost_table.counting import count
    from makespan.estimators.opencl_cost_table.prediction import Work

    iteration = _iteration(text, options)
    counts = count(
        iteration,
        interval_bytes=interval_bytes,
        dedupe_reads=options["dedupe_reads"],
        classified=not options["alike"],
    )
    sizes = iteration.bytes_in, iteration.bytes_out
    bytes_in, bytes_out = sizes if options["moved"] == "auto" else _bytes(options["moved"])
    return Work(counts, iteration.work_items, options["wg"], bytes_in, bytes_out, tuple(outside_reads(iteration)))


def _of_kernel(source: str, interval_bytes: int, options: dict[str, Any]) -> "Work":
    from makespan import ptx
    from makespan.cli.source import read_module
    from makespan.estimators.opencl_cost_table.from_ptx import work

    for name, given in (("--array", "arrays"), ("--const", "constants"), ("--func", "functions"), ("--wg", "wg")):
        if options[given]:
            raise InputError(f"{name} is for --expr; the launch of a kernel is --block and --grid")
    if options["dedupe_reads"] or options["alike"]:
        raise InputError("--dedupe-reads and --alike are for --expr")
    module = read_module(source, arch=options["arch"], keep_ptx=options["keep_ptx"])
    kernel = module.kernel(options["kernel"])
    moved = "none" if options["moved"] == "auto" else options["moved"]
    bytes_in, bytes_out = _bytes(moved)
    return work(
        kernel,
        ptx.launch(options["block"], options["grid"], options["param"]),
        interval_bytes=interval_bytes,
        loop_bounds=ptx.bounds_for(kernel, ptx.loop_bounds(options["loop_bounds"]), module.kernels),
        bytes_in=bytes_in,
        bytes_out=bytes_out,
    )


def _emitted(expr: str | None, options: dict[str, Any]) -> str:
    from makespan.estimators.opencl_cost_table import opencl_code

    if expr is None:
        raise InputError("--emit-opencl is for --expr")
    return opencl_code.source(_iteration(expr, options))


def _iteration(text: str, options: dict[str, Any]) -> "Iteration":
    from makespan.estimators.opencl_cost_table.semantics import iteration

    for name in _KERNEL_OPTIONS:
        if options[name]:
            raise InputError(f"--{name.removesuffix('s').replace('_', '-')} is for SOURCE, a kernel")
    return iteration(
        text,
        arrays=[_array(given) for given in options["arrays"]],
        constants=_assigned(options["constants"], "--const", int),
        functions=options["functions"],
    )


def _array(text: str) -> "Array":
    from makespan.estimators.opencl_cost_table.expression import Array, Type

    name, _, rest = text.partition(":")
    kind, _, shape = rest.partition(":")
    if not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) or kind not in list(Type):
        raise InputError(f"--array {text!r}: give NAME:int|float:SHAPE, such as matrix:float:4096x4096")
    return Array(name, Type(kind), extents(shape, f"--array {name}:"))


def _assigned(texts: tuple[str, ...], option: str, convert: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for text in texts:
        name, value = _assignment(text, option, convert)
        if name in found:
            raise InputError(f"{option} {name} is given twice")
        found[name] = value
    return found


def _assignment(text: str, option: str, convert: Any) -> tuple[str, Any]:
    match = re.fullmatch(r"\s*([A-Za-z_]\w*)\s*=\s*(\S{1,40})\s*", text, re.ASCII)
    try:
        if match is None:
            raise ValueError
        return match[1], convert(match[2])
    except ValueError:
        raise InputError(f"{option} {text!r}: give NAME=NUMBER") from None


def _bytes(text: str) -> tuple[int | None, int | None]:
    """The bytes of both transfers, or none."""
    if text == "none":
        return None, None
    match = re.fullmatch(rf"(-?\d{{1,{_DIGITS}}}),(-?\d{{1,{_DIGITS}}})", text, re.ASCII)
    if match is None:
        raise InputError(f"--bytes {text!r}: give auto, none, or IN,OUT as numbers of bytes")
    return int(match[1]), int(match[2])
