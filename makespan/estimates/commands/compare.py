"""`makespan estimate --compare`: every method that can say something, beside what is proven and simulated."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

from makespan.cli.help_page import HelpCommand, examples, section
from makespan.cli.options import source_options
from makespan.cli.output import format_option, render
from makespan.cli.parameters import SECONDS
from makespan.cli.running import exit_code, interruptible
from makespan.cli.source import instances
from makespan.estimates.commands import METHODS
from makespan.estimates.commands.methods import active_blocks_option, cache_options, hit_rates
from makespan.estimates.commands.question import LaunchOptions, described_gpu, gpu_options, resource_options
from makespan.host.errors import InputError
from makespan.host.stopwatch import within
from makespan.kernels.kernel_file import is_kernel

if TYPE_CHECKING:
    from makespan.estimates import Estimate
    from makespan.estimates.question import LaunchQuestion
    from makespan.model.instance import Instance
    from makespan.model.machine.gpus import Gpu
    from makespan.proof.policy_gap import PolicyGap


@click.command(
    "compare",
    cls=HelpCommand,
    epilog=examples("makespan estimate --compare ptx/vecadd.ptx --block 128 --grid 80 --gpu quadro-fx5600"),
)
@source_options
@gpu_options
@resource_options
@active_blocks_option
@cache_options
@section(
    "Methods",
    click.option("--table", metavar="NAME|FILE.json", help="a cost table, for opencl-cost-table"),
    click.option("--ffma-device", metavar="NAME|FILE.csv", help="measurements of dual issue"),
)
@section(
    "Effort",
    click.option("--time-limit", type=SECONDS, default=60.0, show_default=True, help="to prove worst and best case"),
)
@format_option()
def command(
    gpu: str,
    settings: tuple[str, ...],
    active_blocks: int | None,
    l1pct: float | None,
    l2pct: float | None,
    worst_case_cache: bool,
    table: str | None,
    ffma_device: str | None,
    time_limit: float,
    output: str,
    **options: Any,
) -> int:
    """All methods that can say something of a kernel, beside best case, policies and worst case of one SM.

    What is proven and what is estimated stand apart. An estimate is not a bound. SOURCE is a kernel (.ptx, .cu) with
    --block and --grid; --machine or --capacity and --blocks-per-sm say what SM the proof is about. A method that lacks
    something says what. Exit code 3: the worst case is bounded, but not exact.
    """
    from makespan.estimates.question import hong_kim, kleimenov_popova
    from makespan.estimates.report import comparison as report

    card = described_gpu(gpu, settings)
    asked = LaunchOptions.taken(dict(options))
    question = _question(asked, card)
    if options["machine"] is None:  # both are about one program
        options["arch"] = asked.arch(card)
    methods: Mapping[str, Callable[[], Estimate]] = {
        "hong-kim": lambda: hong_kim(question, card, active_blocks),
        "kleimenov-popova": lambda: kleimenov_popova(question, card, hit_rates(l1pct, l2pct, worst_case_cache))[0],
        "opencl-cost-table": lambda: _opencl_cost_table(question, table),
        "dual-issue": lambda: _dual_issue(question, card, ffma_device),
    }
    found, missing = _answers(methods)
    with within(time_limit) as reading:
        (proof,) = instances(**{name: value for name, value in options.items() if name not in asked.resources})
    gap, said = _proven(proof.instance, reading.left)
    launch = f"{question.kernel.name}, {question.launch}"
    compared = report.Estimates(launch, f"GPU {card.name}", gap, said, found, missing)
    click.echo(render(output, text=lambda: report.report(compared), data=lambda: report.document(compared)))
    return exit_code(gap.result)


def _question(asked: LaunchOptions, gpu: "Gpu") -> "LaunchQuestion":
    from makespan.estimates.profile.launched import Launched

    path = asked.source
    if path is None or (path != "-" and not is_kernel(path)):
        raise InputError("a comparison of estimates needs a kernel: a .ptx or .cu file")
    if path == "-":
        raise InputError("a comparison reads its kernel twice: give a file instead of '-'")
    question = asked.question(gpu)
    Launched.of(question.kernel, question.launch)  # refuses a launch of unknown size, which no method could take
    return question


def _answers(methods: "Mapping[str, Callable[[], Estimate]]") -> "tuple[dict[str, Estimate], dict[str, str]]":
    found, missing = {}, {}
    for name in METHODS:
        try:
            found[name] = methods[name]()
        except InputError as error:
            missing[name] = str(error)
    return found, missing


def _opencl_cost_table(question: "LaunchQuestion", table: str | None) -> "Estimate":
    from makespan.estimates.opencl_cost_table.from_ptx import work
    from makespan.estimates.opencl_cost_table.prediction import estimate, predict
    from makespan.estimates.opencl_cost_table.table import find

    if table is None:
        raise InputError("--table is missing: a shipped cost table such as rmbp-gt650m, or a measured one")
    priced = find(table)
    found = work(
        question.kernel, question.launch, interval_bytes=priced.interval_bytes, loop_bounds=question.loop_bounds
    )
    return estimate(predict(priced, found))


def _dual_issue(question: "LaunchQuestion", gpu: "Gpu", table: str | None) -> "Estimate":
    from makespan.estimates.dual_issue import FfmaWork, estimate, find

    if table is None:
        raise InputError("--ffma-device is missing: a table of measurements of dual issue (.csv)")
    work = FfmaWork.of(question.profile())
    return estimate(find(table), work, sms=gpu.whole("sms"), clock_ghz=gpu.number("clock_ghz"), gpu=gpu)


def _proven(instance: "Instance", seconds: float) -> "tuple[PolicyGap, str]":
    from makespan.model.simulate.choices import GROUP_SIZE, LATENCIES, PATHS, Choices
    from makespan.proof.engines import Limits, solve
    from makespan.proof.policy_gap import enclosing, runs
    from makespan.report import simulation

    choices = Choices(LATENCIES[0], PATHS[0], 0, GROUP_SIZE)
    schedules = runs(instance, choices)
    limits = Limits(seconds)
    with interruptible(limits):
        result = solve(instance, best_case=True, limits=limits)
    return enclosing(result, schedules), simulation.describe_settings(instance, choices)
