"""`makespan simulate`: runs of scheduling policies, beside the worst case of all schedulers."""

from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

import click

from makespan.cli.help_page import HelpCommand, examples, section
from makespan.cli.options import source_options
from makespan.cli.output import (
    QUIET,
    TEXT,
    format_option,
    quiet_option,
    remark,
    render,
    text_form,
)
from makespan.cli.parameters import FILE, SECONDS, OneOf, choice
from makespan.cli.running import DONE, exit_code, interruptible, worst_code
from makespan.cli.source import instances
from makespan.cli.window import ResultFiles, gantt_option, window_options
from makespan.host.errors import InputError
from makespan.host.stopwatch import within
from makespan.model.instance import MAX_WARPS
from makespan.model.simulate.choices import ASSIGNMENTS, GROUP_SIZE, LATENCIES, PATHS, Choices
from makespan.model.simulate.policies import POLICIES
from makespan.model.strings import NamedInstance
from makespan.proof.policy_gap import PolicyGap, enclosing, one_run, runs

ALL = "all"


@click.command(
    "simulate",
    cls=HelpCommand,
    epilog=examples(
        "makespan simulate --string CLLCLL --warps 6", "makespan simulate ptx/vecadd.ptx --block 256 --policy gto"
    ),
)
@source_options
@section(
    "Policy",
    click.option(
        "--policy", type=OneOf([*POLICIES, ALL]), default=ALL, show_default=True, help="who goes first; or a table"
    ),
    choice("--ranges latency", LATENCIES, "which latency, where there is a range"),
    choice("--route path", PATHS, "of every warp, where its kernel leaves a choice"),
    choice("--intervals interval", LATENCIES, "for which ports are held, where there is a range"),
    choice("--assignment", ASSIGNMENTS, "of warps to partitions, where the machine says none"),
    click.option(
        "--group-size",
        type=click.IntRange(1, MAX_WARPS),
        default=GROUP_SIZE,
        show_default=True,
        help="warps in a fetch group of two-level",
    ),
    click.option(
        "--seed", type=click.IntRange(0, 2**64 - 1), default=0, show_default=True, help="of everything that is random"
    ),
)
@section(
    "Effort",
    click.option("--time-limit", type=SECONDS, default=60.0, show_default=True, help="to prove worst and best case"),
)
@format_option("csv")
@gantt_option("one run")
@window_options
@section("Output", click.option("--plot", type=FILE, help="draw the table of all: .png, .svg or .pdf"))
@quiet_option
def command(
    policy: str,
    time_limit: float,
    output: str,
    gantt: tuple[Path, ...],
    first: int | None,
    end: int | None,
    plot: Path | None,
    quiet: bool,
    **options: Any,
) -> int:
    """Run scheduling policies: one with its statistics, or all, between the proven best and worst case.

    A simulated makespan is one run of one policy. It bounds nothing; the worst case, which 'makespan solve' proves,
    holds for every work-conserving scheduler.

    SOURCE is a kernel (.ptx, .cu, .cubin), an instance file (.toml, .jsonl) or '-'.
    """
    choices = Choices(**{field.name: options.pop(field.name) for field in fields(Choices)})
    with within(time_limit) as reading:
        asked = instances(**options)
    files = ResultFiles(gantt, None, first, end)
    _check_pictures(policy, files, plot, len(asked))
    output = text_form(output, quiet=quiet)
    if output == "csv":
        from makespan.report.policy_gap import CSV_HEADER

        click.echo(CSV_HEADER)
    if output in (TEXT, QUIET) and policy != ALL and len(asked) > 1:
        from makespan.report.simulation import run_head

        click.echo(run_head())
    codes = []
    for number, question in enumerate(asked):
        told = partial(_run_all, seconds=time_limit if number else reading.left, plot=plot)
        if policy != ALL:
            told = partial(_run_one, policy=policy, files=files)
        codes.append(told(question, choices, output, many=len(asked) > 1))
    return worst_code(codes)


def _check_pictures(policy: str, files: ResultFiles, plot: Path | None, instances: int) -> None:
    """Refuse before the work what would fail after it."""
    if files.gantt and policy == ALL:
        raise InputError(f"--gantt draws the run of one policy: give --policy {'|'.join(POLICIES)}")
    if plot is not None and policy != ALL:
        raise InputError("--plot draws the table of --policy all; --gantt draws the run of one policy")
    if instances > 1 and (files.gantt or plot is not None):
        name = "--gantt" if files.gantt else "--plot"
        raise InputError(f"{name} is for one instance; this is a range or a file of several")
    from makespan.report.pictures import check_picture_path
    from makespan.report.schedule.file import check_schedule_path

    if plot is not None:
        check_picture_path(plot)
    files.check(check_schedule_path)


def _run_one(
    question: NamedInstance, choices: Choices, output: str, *, many: bool, policy: str, files: ResultFiles
) -> int:
    """Run a policy, tell what came of it and draw it; return the exit code."""
    from makespan.model.simulate.statistics import statistics
    from makespan.report import simulation
    from makespan.report.schedule.file import write_schedule
    from makespan.report.schedule.picture import ScheduleView

    instance = question.instance
    schedule = one_run(instance, policy, choices)
    verdict = simulation.simulation_verdict(instance, policy, schedule.makespan)
    brief = simulation.run_row(instance.warps, schedule.makespan, policy, question.name or "")
    said = render(
        output,
        text=lambda: (
            brief if many else simulation.simulation_report(instance, policy, choices, statistics(instance, schedule))
        ),
        quiet=lambda: brief if many else verdict,
        data=lambda: simulation.simulation_document(
            question.name, instance, policy, choices, statistics(instance, schedule)
        ),
        csv=lambda: simulation.run_csv_row(instance, policy, schedule.makespan),
    )
    click.echo(said)
    lines = files.write(
        schedule.makespan,
        lambda path, shown: write_schedule(instance, schedule, path, ScheduleView(verdict, str(instance), shown)),
    )
    for line in lines if output != QUIET else ():
        remark(line, output)
    return DONE


def _run_all(
    question: NamedInstance, choices: Choices, output: str, *, many: bool, seconds: float, plot: Path | None
) -> int:
    """Run all policies, prove the worst and the best case, and tell both; return the exit code."""
    from makespan.proof.engines import Limits, solve
    from makespan.report.policy_gap import draw_policy_gap

    schedules = runs(question.instance, choices)
    limits = Limits(seconds)
    with interruptible(limits, quiet=output == QUIET):
        result = solve(question.instance, best_case=True, limits=limits)
    gap = enclosing(result, schedules)
    click.echo(_run_text(question, gap, choices, output, many=many))
    if plot is not None:
        draw_policy_gap(gap, plot)
        if output != QUIET:
            remark(f"picture: {plot}", output)
    return exit_code(gap.result)


def _run_text(question: NamedInstance, gap: PolicyGap, choices: Choices, output: str, *, many: bool) -> str:
    from makespan.report import policy_gap, simulation
    from makespan.report.lines import assumption_lines, terminal_width
    from makespan.report.result import text

    result = gap.result

    def report() -> str:
        settings = simulation.describe_settings(question.instance, choices)
        lines = [*verdict(), text.subject_line(result), settings, policy_gap.gap_table(gap)]
        return "\n".join([*lines, ""] if many else [*lines, *assumption_lines(result.assumptions, terminal_width())])

    def verdict() -> list[str]:
        return [text.verdict_line(result), policy_gap.gap_summary(gap)]

    return render(
        output,
        text=report,
        quiet=lambda: "\n".join([f"{text.subject_line(result)}:", *verdict()] if many else verdict()),
        data=lambda: policy_gap.gap_document(gap, choices, question.name),
        csv=lambda: policy_gap.csv_rows(gap),
    )
