"""The methods of `makespan estimate --method NAME`: their options, and how each is asked."""

import re
from math import prod
from typing import TYPE_CHECKING, Any

import click

from makespan.cli.help_page import HelpCommand, examples, option_name, stack
from makespan.cli.output import TEXT, render
from makespan.cli.parameters import SECONDS, OneOf, choice, extents
from makespan.estimates.commands.question import (
    LaunchOptions,
    described_gpu,
    gpu_options,
    kernel_options,
    report_options,
    resource_options,
    show,
)
from makespan.host.errors import InputError

if TYPE_CHECKING:
    from makespan.estimates import Estimate
    from makespan.estimates.dual_issue import Characteristics
    from makespan.estimates.kleimenov_popova import HitRates, PtxModel
    from makespan.estimates.opencl_cost_table.expression import Array, Iteration
    from makespan.estimates.opencl_cost_table.prediction import LaunchWork
    from makespan.model.machine.gpus import Gpu

NOT_CONVERGED = 3
DEVICE, CPU = 0, 1
_DIGITS = 12
_K20_SMS, _K20_CLOCK = 13, 0.706  # Tesla K20, of which the published table of dual issue is; GHz

source_argument = click.argument("source", required=False)
active_blocks_option = click.option(
    "--active-blocks", type=click.IntRange(1, 4096), help="resident blocks of an SM, whatever fits (hong-kim)"
)
cache_options = stack(
    click.option("--l1pct", type=float, help="part of all accesses that hit L1, 0..1 (kleimenov-popova)"),
    click.option("--l2pct", type=float, help="part of all accesses that hit L2, 0..1 (kleimenov-popova)"),
    click.option("--worst-case-cache", is_flag=True, help="no access hits a cache: l1pct and l2pct are 0"),
)
# The arguments of `read_characteristics`.
table_options = stack(
    click.option("--import", "table", metavar="NAME|FILE.csv", help="measurements, test,key,ops_per_cycle,gap,latency"
                 " [default: tesla-k20, as published]"),
    click.option("--lanes", type=int, help="32-bit lanes of an SM, with --import [default: 192]"),
    click.option("--schedulers", type=int, help="warp schedulers of an SM, with --import [default: 4]"),
    choice("--threshold", "auto patent",
           "a bank conflict: by the largest gap of throughputs, or below 99.5 % of theory"),
)  # fmt: skip


@click.command(
    "hong-kim",
    cls=HelpCommand,
    epilog=examples(
        "makespan estimate --method hong-kim ptx/vecadd.ptx --block 128 --grid 80 --gpu quadro-fx5600 \\",
        "    --set mem_ld=500",
    ),
)
@source_argument
@click.option("--counts", metavar="comp=N,coal=N,...", help="dynamic counts of one thread, in place of SOURCE")
@gpu_options
@kernel_options
@resource_options
@active_blocks_option
@choice("--variant", "isca09 issue-bounded", "as published, or at least the time to issue all instructions")
@choice("--rep", "real ceil", "fillings of an SM: a real number as published, or whole waves")
@choice(
    "--comp-model",
    "uniform throughput",
    "all instructions alike, or by the table of throughputs [default: the table if it has one of the kernel's]",
    default=False,
)
@report_options
def hong_kim(
    counts: str | None,
    gpu: str,
    settings: tuple[str, ...],
    active_blocks: int | None,
    output: str,
    explain: bool,
    **options: Any,
) -> None:
    """Estimate a launch by memory and computation warp parallelism (Hong and Kim, ISCA 2009).

    An estimate is not a bound. SOURCE is a kernel (.ptx, .cu); without one, --counts says what a thread executes.
    """
    from makespan.estimates import question

    asked = LaunchOptions.taken(options)
    if (asked.source is None) == (counts is None):
        raise InputError("give either SOURCE or --counts, such as comp=27,uncoal=6,coal=0,synch=6")
    card = described_gpu(gpu, settings, "hong_kim")
    if counts is None:
        found = question.hong_kim(asked.question(card), card, active_blocks, **options)
    else:
        found = _of_counts(counts, asked, card, active_blocks, options)
    show(found, explain=explain, output=output)


def _of_counts(
    text: str, asked: LaunchOptions, gpu: "Gpu", active_blocks: int | None, variant: dict[str, Any]
) -> "Estimate":
    from makespan.estimates.hong_kim import HongKimKernel
    from makespan.estimates.hong_kim.launch import counts, estimate_launch
    from makespan.kernels import flow

    asked.refuse("--counts says what a thread executes", "block", "grid", "regs", "smem")
    launch = flow.launch(asked.kernel["block"], asked.kernel["grid"], named=option_name)
    if launch.block is None or launch.grid is None:
        raise InputError(f"--{'grid' if launch.block else 'block'} is missing: how large is the launch?")
    found: dict[str, Any] = {"comp_insts": 0, **counts(text, "--counts")}
    kernel = HongKimKernel(
        threads_per_block=prod(launch.block),
        blocks=prod(launch.grid),
        regs_per_thread=asked.resources["regs"],
        smem_per_block=asked.resources["smem"],
        active_blocks_per_sm=active_blocks,
        **found,
    )
    return estimate_launch(gpu, kernel, **variant)


@click.command(
    "kleimenov-popova",
    cls=HelpCommand,
    epilog=examples(
        "makespan estimate --method kleimenov-popova ptx/vecadd.ptx --block 128 --grid 80 --gpu measured.toml \\",
        "    --worst-case-cache",
    ),
)
@click.argument("source")
@kernel_options
@gpu_options
@cache_options
@resource_options
@click.option("--loop", "rule", type=OneOf(["unroll2", "exact"]), default="unroll2", show_default=True,
              help="loops as published, from two iterations; or iteration by iteration")  # fmt: skip
@click.option("--eps", type=float, default=1e-6, show_default=True, help="cycles at which a fixed point is found")
@click.option("--as-printed", is_flag=True, help="the fixed points as the paper prints them, without corrections")
@choice("--sync-unit", "warps threads", "what the size of a block means in the cost of a barrier")
@click.option("--measured", type=float, metavar="SECONDS", help="a measured time, for the relative error")
@click.option("--expr", "with_expressions", is_flag=True, help="the time of a thread and of its loops, by lat")
@report_options
def kleimenov_popova(
    gpu: str, settings: tuple[str, ...], with_expressions: bool, explain: bool, output: str, **options: Any
) -> int:
    """Estimate a launch by dependences, waves and bandwidth fixed points (Kleimenov and Popova, 2021).

    An estimate is not a bound. SOURCE is a kernel (.ptx, .cu). l1pct and l2pct must be given, or --worst-case-cache.
    Exit code 3: a fixed point did not converge.
    """
    from makespan.estimates import question

    asked = LaunchOptions.taken(options)
    rates = hit_rates(options.pop("l1pct"), options.pop("l2pct"), options.pop("worst_case_cache"))
    card = described_gpu(gpu, settings, "kleimenov_popova")
    found, model, result = question.kleimenov_popova(asked.question(card), card, rates, **options)
    expressions = _expressions(model) if with_expressions else {}
    if output == TEXT and expressions:
        click.echo("\n".join(f"{name} = {text}" for name, text in expressions.items()))
    show(found, explain=explain, output=output, **({"expressions": expressions} if with_expressions else {}))
    return 0 if result.is_converged else NOT_CONVERGED


def hit_rates(l1pct: float | None, l2pct: float | None, worst_case_cache: bool) -> "HitRates":
    """Return the hit rates that the options give.

    Raises:
        InputError: nothing, too much, or parts out of range.
    """
    from makespan.estimates.kleimenov_popova.waves import WORST_CASE_CACHE, HitRates

    if worst_case_cache:
        if (l1pct, l2pct) != (None, None):
            raise InputError("--worst-case-cache means that no access hits: no --l1pct or --l2pct beside it")
        return WORST_CASE_CACHE
    if l1pct is None or l2pct is None:
        missing = " and ".join(name for name, value in (("--l1pct", l1pct), ("--l2pct", l2pct)) if value is None)
        raise InputError(
            f"{missing} not given: the part of all accesses that hit the cache, 0..1, which a profiler measures on"
            " similar launches; or --worst-case-cache for none"
        )
    return HitRates(l1pct, l2pct).checked()


def _expressions(model: "PtxModel") -> dict[str, str]:
    from makespan.estimates.kleimenov_popova.thread_time import unrolled_times

    found: dict[str, str] = {}
    for thread in model.threads:
        which = "" if len(model.threads) == 1 else f"[warp {thread.warps[0]}]"
        found[f"time{which}(lat)"] = str(thread.time.cycles)
        if model.rule == "unroll2":
            times = unrolled_times(thread.steps, model.timing)
            found |= {f"T2_{label}{which}(lat)": str(cycles) for label, cycles in times.items()}
    return found


# Options of an iteration, which a kernel file has no use for, by the fields that take them.
_ITERATION = {
    "arrays": "array",
    "constants": "const",
    "functions": "func",
    "wg": "wg",
    "dedupe_reads": "dedupe-reads",
    "alike": "alike",
}


@click.command(
    "opencl-cost-table",
    cls=HelpCommand,
    epilog=examples(
        "makespan estimate --method opencl-cost-table ptx/vecadd.ptx --block 256 --grid 4096 --table rmbp-gt650m"
    ),
)
@source_argument
@click.option("--expr", metavar=r"'m.\(x,y){...}'", help="a domain iteration instead of SOURCE")
@click.option("--array", "arrays", multiple=True, metavar="NAME:TYPE:SHAPE", help="such as matrix:float:4096x4096")
@click.option("--const", "constants", multiple=True, metavar="NAME=N", help="a named integer")
@click.option("--func", "functions", multiple=True, metavar="'g(x)=2*x'", help="a function that calls are replaced by")
@click.option("--table", metavar="NAME|FILE.json", help="a shipped cost table, or a measured one")
@click.option("--wg", type=int, metavar="N", help="work-group size, for --expr [default: as the table was measured]")
@click.option("--bytes", "moved", metavar="auto|none|IN,OUT", default="auto", show_default=True,
              help="transfers: the arrays that are read and the result (--expr), none, or so many bytes")  # fmt: skip
@click.option("--override", "overrides", multiple=True, metavar="ROW=MICROSECONDS", help="in place of a row's time")
@click.option("--cpu-time", type=SECONDS, help="what the CPU takes: exit code 1 if the device takes no less")
@click.option("--dedupe-reads", is_flag=True, help="count equal reads once (--expr)")
@click.option("--alike", is_flag=True, help="price all global reads alike, without classes (--expr)")
@click.option("--emit-opencl", is_flag=True, help="print the OpenCL kernel of --expr, and nothing else")
@kernel_options
@report_options
def opencl_cost_table(
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
        click.echo(_iteration(str(expr), options).opencl, nl=False)
        return DEVICE
    if table is None:
        raise InputError("--table is missing: a shipped cost table such as rmbp-gt650m, or one of 'measure opencl'")
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
    from makespan.estimates.opencl_cost_table.counting import count, outside_reads
    from makespan.estimates.opencl_cost_table.prediction import LaunchWork

    found, moved = _iteration(text, options), options["moved"]
    counts = count(
        found,
        interval_bytes=interval_bytes,
        dedupe_reads=options["dedupe_reads"],
        classified=not options["alike"],
    )
    bytes_in, bytes_out = (found.bytes_in, found.bytes_out) if moved == "auto" else _bytes(moved)
    return LaunchWork(counts, found.work_items, options["wg"], bytes_in, bytes_out, tuple(outside_reads(found)))


def _of_kernel(asked: LaunchOptions, interval_bytes: int, options: dict[str, Any]) -> "LaunchWork":
    from makespan.estimates.opencl_cost_table.from_ptx import work

    for field, option in _ITERATION.items():
        if options[field]:
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


@click.command(
    "dual-issue",
    cls=HelpCommand,
    epilog=examples(
        "makespan estimate --method dual-issue --ffma 1e9",
        "makespan estimate --method dual-issue ptx/polynomial.ptx --block 256 --grid 104 --param 3=26624",
    ),
)
@source_argument
@click.option("--ffma", type=float, metavar="N", help="FFMA lane-operations of the launch, in place of SOURCE")
@kernel_options
@table_options
@click.option("--gpu", metavar="NAME|FILE.toml", help="a description with the number of SMs and their clock")
@click.option("--sms", type=int, metavar="N", help=f"SMs of the GPU [default: of tesla-k20 {_K20_SMS}]")
@click.option("--clock-ghz", type=float, metavar="GHZ", help=f"SM clock [default: of tesla-k20 {_K20_CLOCK}]")
@report_options
def dual_issue(
    ffma: float | None,
    gpu: str | None,
    sms: int | None,
    clock_ghz: float | None,
    explain: bool,
    output: str,
    **options: Any,
) -> None:
    """Estimate the time of an FFMA-bound launch: FFMAs over the FFMAs per cycle that an SM was found to sustain.

    An estimate is not a bound. SOURCE is a kernel (.ptx, .cu) whose fma.rn.f32 are counted; without one, --ffma.
    """
    from makespan.estimates.dual_issue import K20, FfmaWork, estimate
    from makespan.model.machine import gpus

    asked = LaunchOptions.taken(options)
    if (asked.source is None) == (ffma is None):
        raise InputError("give either SOURCE or --ffma, the FFMA lane-operations of the launch")
    if ffma is not None:
        asked.refuse("--ffma says how many there are")
    work = FfmaWork.of(asked.question().profile()) if ffma is None else FfmaWork(ffma)
    card = None if gpu is None else gpus.find_gpu(gpu)
    if card is not None:
        if sms is not None or clock_ghz is not None:
            raise InputError("--gpu says the SMs and their clock: no --sms and --clock-ghz beside it")
        sms, clock_ghz = card.whole("sms"), card.number("clock_ghz")
    elif options["table"] in (None, K20):
        sms, clock_ghz = (_K20_SMS if sms is None else sms), (_K20_CLOCK if clock_ghz is None else clock_ghz)
    if sms is None:
        raise InputError("--sms is missing: how many SMs has the GPU that was measured? (or --gpu)")
    found = estimate(read_characteristics(**options), work, sms=sms, clock_ghz=clock_ghz, gpu=card)
    show(found, explain=explain, output=output)


def read_characteristics(
    *, table: str | None, lanes: int | None, schedulers: int | None, threshold: str
) -> "Characteristics":
    """Return the characteristics that a table of measurements gives; None is the published one.

    Raises:
        InputError: no such table, or a size of the SM of the published one.
        MeasurementError: a test whose result would be a guess.
    """
    from makespan.estimates.dual_issue import K20, SmDescription, Threshold, find

    given = {name: number for name, number in (("lanes", lanes), ("schedulers", schedulers)) if number is not None}
    if table is None and given:
        raise InputError("--lanes and --schedulers describe the SM of --import")
    return find(table or K20, SmDescription(**given), Threshold(threshold))
