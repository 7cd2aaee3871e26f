"""`makespan simulate`: runs of scheduling policies, beside the worst case of all schedulers."""

import json
import platform
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from makespan.cli import INTERRUPTED
from makespan.cli.parameters import Seconds, examples
from makespan.cli.solve import QUIET, all_written, interruptible, progress, refuse_twice, text_form, what
from makespan.cli.source import instances, quiet_option, source_options
from makespan.cli.window import check_window, gantt_option, window, window_options
from makespan.errors import BrokenPromiseError, InputError
from makespan.instance import MAX_WARPS, Instance
from makespan.result import Status
from makespan.schedule import Schedule
from makespan.simulate.choices import GROUP_SIZE, LATENCIES, PATHS, Choices
from makespan.simulate.policies import POLICIES
from makespan.stopwatch import within
from makespan.strings import NamedInstance
from makespan.version import __version__

if TYPE_CHECKING:
    from makespan.report.gantt import Window
    from makespan.report.policy_gap import PolicyGap
    from makespan.simulate.statistics import Statistics

EXACT, BOUNDED = 0, 3
ALL = "all"
_COLUMNS = "warps,name,kind,least,most,evidence"


@click.command(
    "simulate",
    epilog=examples(
        "makespan simulate --string CLLCLL --warps 6", "makespan simulate ptx/vecadd.ptx --block 256 --policy gto"
    ),
)
@source_options
@click.option(
    "--policy", type=click.Choice([*POLICIES, ALL]), default=ALL, show_default=True, help="who goes first; or a table"
)
@click.option(
    "--latency", type=click.Choice(LATENCIES), default=LATENCIES[0], show_default=True, help="where there is a range"
)
@click.option(
    "--route",
    type=click.Choice(PATHS),
    default=PATHS[0],
    show_default=True,
    help="of every warp, where its kernel leaves a choice",
)
@click.option(
    "--group-size",
    type=click.IntRange(1, MAX_WARPS),
    default=GROUP_SIZE,
    show_default=True,
    help="warps in a fetch group of two-level",
)
@click.option(
    "--seed", type=click.IntRange(0, 2**64 - 1), default=0, show_default=True, help="of everything that is random"
)
@click.option("--time-limit", type=Seconds(), default=60.0, show_default=True, help="to prove worst and best case")
@click.option("--format", "output", type=click.Choice(["text", "json", "csv"]), default="text", show_default=True)
@gantt_option("one run")
@window_options
@click.option("--plot", type=click.Path(path_type=Path), help="draw the table of all: .png, .svg or .pdf")
@quiet_option
def command(
    policy: str,
    latency: str,
    route: str,
    group_size: int,
    seed: int,
    time_limit: float,
    output: str,
    gantt: tuple[Path, ...],
    first: int | None,
    end: int | None,
    plot: Path | None,
    quiet: bool,
    **source: Any,
) -> int:
    """Run scheduling policies: one with its statistics, or all, between the proven best and worst case.

    A simulated makespan is one run of one policy. It bounds nothing; the worst case, which 'makespan solve' proves,
    holds for every work-conserving scheduler.

    SOURCE is a kernel (.ptx, .cu), an instance file (.toml, .jsonl) or '-'.
    """
    with within(time_limit) as reading:
        asked = instances(**source)
    choices = Choices(latency, route, seed, group_size)
    _check_pictures(policy, gantt, plot, len(asked))
    check_window(gantt, first, end)
    output = text_form(output, quiet=quiet)
    if output == "csv":
        click.echo(_COLUMNS)
    codes = [
        _all(question, choices, time_limit if number else reading.left, output, plot, many=len(asked) > 1)
        if policy == ALL
        else _one(question, policy, choices, output, many=len(asked) > 1, gantt=gantt, first=first, end=end)
        for number, question in enumerate(asked)
    ]
    return next((code for code in (INTERRUPTED, BOUNDED) if code in codes), EXACT)


def _check_pictures(policy: str, gantt: Sequence[Path], plot: Path | None, instances: int) -> None:
    """Refuse before the work what would fail after it."""
    if gantt and policy == ALL:
        raise InputError(f"--gantt draws the run of one policy: give --policy {'|'.join(POLICIES)}")
    if plot is not None and policy != ALL:
        raise InputError("--plot draws the table of --policy all; --gantt draws the run of one policy")
    from makespan.report.plot import check_picture_path
    from makespan.report.schedule_file import check_schedule_path

    for name, paths, check in (
        ("--gantt", gantt, check_schedule_path),
        ("--plot", () if plot is None else (plot,), check_picture_path),
    ):
        for path in paths:
            if instances > 1:
                raise InputError(f"{name} is for one instance; this is a range or a file of several")
            check(path)
    refuse_twice(gantt)


def _one(
    question: NamedInstance,
    policy: str,
    choices: Choices,
    output: str,
    *,
    many: bool,
    gantt: Sequence[Path],
    first: int | None,
    end: int | None,
) -> int:
    from makespan.report import simulation
    from makespan.simulate.statistics import statistics

    instance = question.instance
    schedule = _run(instance, policy, choices)
    if output == "json":
        click.echo(json.dumps(_document(question, policy, choices, statistics(instance, schedule))))
    elif output == "csv":
        click.echo(f"{instance.warps},{policy},run,{schedule.makespan},{schedule.makespan},one run")
    elif many:
        click.echo(f"{instance.warps:>5} warps  {schedule.makespan:>9} cycles  {policy}  one run, not a bound")
    elif output == QUIET:
        click.echo(simulation.verdict(instance, policy, schedule.makespan))
    else:
        click.echo(simulation.report(instance, policy, choices, statistics(instance, schedule)))
    shown = window(schedule.makespan, first, end) if gantt else None
    drawn = () if shown is None else gantt
    if shown is not None:
        _draw(instance, schedule, gantt, shown, simulation.verdict(instance, policy, schedule.makespan))
    for path in drawn if output != QUIET else ():
        click.echo(f"{what(path)}: {path}", err=output != "text")
    return EXACT


def _draw(instance: Instance, schedule: Schedule, paths: Sequence[Path], shown: "Window", title: str) -> None:
    from makespan.report.schedule_file import write_schedule

    how: dict[str, Any] = {"title": title, "subtitle": str(instance), "window": shown}
    all_written(partial(write_schedule, instance, schedule, path, **how) for path in paths)


def _run(instance: Instance, policy: str, choices: Choices) -> Schedule:
    """The schedule of a policy, replayed, and within the bounds that cost nothing."""
    from makespan.bounds import least_possible, pessimistic
    from makespan.simulate import replay, run

    schedule = run(instance, policy, choices)
    least, makespan, most = least_possible(instance), replay(instance, schedule), pessimistic(instance)
    if not least <= makespan <= most:
        raise BrokenPromiseError(f"policy {policy} takes {makespan} cycles, outside of {least}..{most}")
    return schedule


def _document(question: NamedInstance, policy: str, choices: Choices, counts: "Statistics") -> dict[str, Any]:
    instance, ways = question.instance, counts.warps
    return {
        "schema": "makespan.simulation/1",
        "name": question.name,
        "warps": instance.warps,
        "blocks": instance.blocks,
        "machine": instance.machine.name,
        "policy": policy,
        "choices": _settings(choices),
        "makespan": counts.makespan,
        "is_bound": False,
        "cycles_by_issues": {str(issues): cycles for issues, cycles in counts.issues.items()},
        "issue_slots": counts.issue_slots,
        "classes": {
            name: {"instructions": use.instructions, "port_cycles": use.port_cycles, "offered": use.offered}
            for name, use in counts.classes.items()
        },
        "warp_cycles": {
            "issuing": ways.issuing,
            "latency": ways.latency,
            "waiting_for_ports": ways.ports,
            "waiting_for_issue_slot": ways.issue_slot,
            "barrier": ways.barrier,
            "finished": ways.finished,
        },
        "versions": {"makespan": __version__, "python": platform.python_version()},
    }


def _settings(choices: Choices) -> dict[str, Any]:
    return {
        "latency": choices.latency,
        "route": choices.path,
        "seed": choices.seed,
        "group_size": choices.group_size,
    }


def _all(
    question: NamedInstance, choices: Choices, seconds: float, output: str, plot: Path | None, *, many: bool
) -> int:
    from makespan.engines import Limits, solve
    from makespan.report.policy_gap import draw_policy_gap, enclosing

    schedules = {policy: _run(question.instance, policy, choices) for policy in POLICIES}
    limits = Limits(seconds, progress=progress(quiet=output == QUIET))
    with interruptible(limits):
        result = solve(question.instance, best_case=True, limits=limits)
    gap = enclosing(result, schedules)
    click.echo(_rendered(question, gap, choices, output, many=many))
    if plot is not None:
        draw_policy_gap(gap, plot)
        if output != QUIET:
            click.echo(f"picture: {plot}", err=output != "text")
    if result.interrupted:
        return INTERRUPTED
    return EXACT if gap.result.status is Status.EXACT else BOUNDED


def _rendered(question: NamedInstance, gap: "PolicyGap", choices: Choices, output: str, *, many: bool) -> str:
    from makespan.report import simulation, text
    from makespan.report.document import document
    from makespan.report.policy_gap import summary, table

    if output == "json":
        runs = [{"policy": policy, "makespan": makespan, "is_bound": False} for policy, makespan in gap.runs.items()]
        settings = {"choices": _settings(choices), "runs": runs, "result": document(gap.result)}
        return json.dumps({"schema": "makespan.policy-gap/1", "name": question.name, **settings})
    if output == "csv":
        evidence = {"worst case": str(gap.result.upper_evidence)}
        return "\n".join(
            f"{question.instance.warps},{row.name},{row.kind},{row.lower},{row.upper},"
            + ({"run": "one run", "bound": "pessimistic"}.get(row.kind) or evidence.get(row.name, ""))
            for row in gap.rows()
        )
    verdict = [text.verdict(gap.result), summary(gap)]
    if output == QUIET:
        return "\n".join([f"{text.subject(gap.result)}:", *verdict] if many else verdict)
    lines = [*verdict, text.subject(gap.result), simulation.settings(question.instance, choices), table(gap)]
    return "\n".join(
        [*lines, ""] if many else [*lines, *text.assumptions(gap.result.assumptions, text.terminal_width())]
    )
