"""`makespan solve`: the worst case, its proof, and a picture."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click

from makespan.cli import gpu as whole_gpu
from makespan.cli.help_page import HelpCommand, examples, section
from makespan.cli.options import question_options
from makespan.cli.output import (
    QUIET,
    TEXT,
    format_option,
    quiet_option,
    remark,
    render,
    text_form,
)
from makespan.cli.parameters import FILE
from makespan.cli.question import SolveEffort, instance_document, instances_on_sm
from makespan.cli.running import INTERRUPTED, exit_code, interruptible, worst_code
from makespan.cli.window import ResultFiles, gantt_option, window_options
from makespan.host.errors import InputError
from makespan.host.stopwatch import within
from makespan.model.deadline import Deadline, DeadlineOutcome
from makespan.model.result import Result, Status
from makespan.model.strings import NamedInstance
from makespan.model.wording import pessimistic_name, scope_words
from makespan.proof.engines import solve
from makespan.report.gantt.chart import CycleWindow
from makespan.report.lines import terminal_width
from makespan.report.result import text
from makespan.report.result.bundle import write_bundle
from makespan.report.result.text import ResultTable, count_states
from makespan.report.schedule.file import check_schedule_path, write_schedule
from makespan.report.schedule.picture import ScheduleView
from makespan.report.schedule.timeline import timeline_text as draw_timeline

_WIDTH_OF_OUTCOME = 11


@click.command(
    "solve",
    cls=HelpCommand,
    epilog=examples(
        "makespan solve ptx/vecadd.ptx --block 256", "makespan solve --string CLLCLL --warps 1..8 --capacity C=2,L=1"
    ),
)
@question_options
@format_option("csv")
@section(
    "Output",
    click.option("--bundle", type=FILE, help="leave the evidence, for 'makespan verify'"),
)
@gantt_option("the witness")
@window_options
@section("Output", click.option("--timeline", is_flag=True, help="the witness as letters, cycle by cycle"))
@quiet_option
def command(
    output: str,
    gantt: tuple[Path, ...],
    first: int | None,
    end: int | None,
    timeline: bool,
    quiet: bool,
    bundle: Path | None,
    **options: Any,
) -> int:
    """The longest that the warps can take under any work-conserving scheduler, with proof.

    SOURCE is a kernel (.ptx, .cu, .cubin), an instance file (.toml, .jsonl) or '-'. It is about one SM; with --gpu or
    --sms it is about all blocks of a --grid on all SMs, or of several launches in a file (.toml). With --deadline the
    exit code is that of a gate: 0 in time, 1 a schedule is too late, 3 not decided.
    """
    effort, options = SolveEffort.split(options)
    files = ResultFiles(gantt, bundle, first, end)
    if whole_gpu.is_about_gpu(options):
        whole_gpu.refuse_one_sm(output, effort.backend, timeline=timeline)
        files.check(whole_gpu.check_gpu_picture)
        printed = text_form(output, quiet=quiet)
        with within(effort.time_limit) as reading:
            launch = whole_gpu.gpu_launch(**options)
        limits = effort.limits(reading.left)
        return whole_gpu.print_answer(launch, limits, printed, files, best_case=effort.best_case)
    # To read a kernel counts against the time limit of the first instance.
    with within(effort.time_limit) as reading:
        gate, asked = instances_on_sm(**options)
    if len(asked) > 1 and (gantt or bundle):
        raise InputError("--gantt and --bundle are for one instance; this is a range or a file of several")
    files.check(check_schedule_path)
    _check_timeline(timeline, output, len(asked))
    form = _ResultPrinter(
        text_form(output, quiet=quiet), gate, _rows(asked, gate, best=effort.best_case) if len(asked) > 1 else None
    )
    _say(form.head())
    results: list[Result] = []
    for number, question in enumerate(asked):
        limits = effort.limits(effort.time_limit if number else reading.left)
        with interruptible(limits, quiet=quiet):
            result = solve(question.instance, backend=effort.backend, best_case=effort.best_case, limits=limits)
        results.append(result)
        # The witness is the longest schedule that was found: only now its makespan limits the window.
        makespan = result.witness.makespan
        try:
            written = files.write(makespan, partial(_draw, result), partial(write_bundle, result))
        finally:  # a file that fails must not cost the answer
            _say(form.one(question, result))
            if timeline:
                click.echo(_timeline(result))
        for line in () if quiet else written:
            remark(line, output)
        searched = result.without_lapses or result  # no search knows lapses
        if limits.short_of_memory and searched.status is not Status.EXACT and not quiet:
            click.echo("a search stopped for want of memory: with a larger --memory-limit it may prove more", err=True)
        if result.interrupted:
            break
    _say(form.foot(asked, results))
    if results[-1].interrupted:
        return INTERRUPTED
    return worst_code([exit_code(result, question, gate) for question, result in zip(asked, results, strict=True)])


@dataclass(frozen=True, slots=True)
class _ResultPrinter:
    """A printer of results.

    Args:
        rows: the table of several results; None for a single one.
    """

    output: str
    gate: Deadline | None
    rows: ResultTable | None

    def head(self) -> str:
        """Return the lines above the first result."""
        gated = "" if self.gate is None else ",deadline_cycles,deadline"
        csv = f"warps,status,lower,upper,pessimistic,best_case,backend,seconds{gated}"
        return {TEXT: self.rows.head() if self.rows else "", "csv": csv}.get(self.output, "")

    def one(self, question: NamedInstance, result: Result) -> str:
        return render(
            self.output,
            text=lambda: self._text(question, result),
            quiet=lambda: "" if self.rows else self._quiet(question, result),
            data=lambda: instance_document(question, result, self.gate),
            csv=lambda: _csv(result, self.gate),
        )

    def _quiet(self, question: NamedInstance, result: Result) -> str:
        lines = [text.verdict_line(result), *text.best_case_lines(result.best_case), *self._remarks(question, result)]
        return "\n".join(lines)

    def _text(self, question: NamedInstance, result: Result) -> str:
        if self.rows is not None:
            return self._row(self.rows, question, result)
        return text.result_report(result, self._remarks(question, result), width=terminal_width())

    def _remarks(self, question: NamedInstance, result: Result) -> list[str]:
        remarks = [] if question.agrees(result.bounds) else [f"EXPECTED {question.makespan}"]
        gated = [] if self.gate is None else [text.deadline_verdict(self.gate, result.bounds, result.caveats)]
        return [*remarks, *gated]

    def _row(self, rows: ResultTable, question: NamedInstance, result: Result) -> str:
        outcome = "" if self.gate is None else f"{self.gate.outcome(result.bounds):<{_WIDTH_OF_OUTCOME}}"
        wrong = "" if question.agrees(result.bounds) else f"  EXPECTED {question.makespan}"
        remark = f"{outcome}{question.name or ''}{wrong}"
        numbers = (result.instance.warps, result.bounds, result.pessimistic, result.upper_evidence)
        return rows.row(*numbers, best=result.best_case, remark=remark)

    def foot(self, asked: Sequence[NamedInstance], results: Sequence[Result]) -> str:
        """Return the lines below several results: how many are exact, in time and as expected."""
        if self.rows is None or self.output not in (TEXT, QUIET):
            return ""
        caveats = list(dict.fromkeys(caveat for result in results for caveat in result.caveats))
        stopped = " (interrupted)" * results[-1].interrupted
        lines = [
            f"{count_states('result', sorted((result.status for result in results), reverse=True), caveats)}{stopped}"
        ]
        if self.gate is not None:
            lines.append(f"deadline of {self.gate}{scope_words(caveats)}: {_outcomes(self.gate, results)}")
        if wrong := sum(not question.agrees(result.bounds) for question, result in zip(asked, results, strict=False)):
            lines.append(f"{wrong} not as EXPECTED")
        return "\n".join(lines)


def _rows(asked: Sequence[NamedInstance], gate: Deadline | None, *, best: bool) -> ResultTable:
    each = (question.instance for question in asked)
    names = list(dict.fromkeys(pessimistic_name(one.machine, runs_ahead=one.runs_ahead) for one in each))
    remark = "" if gate is None else f"{'deadline':<{_WIDTH_OF_OUTCOME}}"
    remark += "name" if any(question.name for question in asked) else ""
    return ResultTable(names[0] if len(names) == 1 else "pessimistic bound", best, remark)


def _outcomes(gate: Deadline, results: Sequence[Result]) -> str:
    found = [str(gate.outcome(result.bounds)) for result in results]
    return ", ".join(f"{found.count(outcome)} {outcome}" for outcome in map(str, DeadlineOutcome) if outcome in found)


def _say(lines: str) -> None:
    if lines:
        click.echo(lines)


def _csv(result: Result, gate: Deadline | None) -> str:
    best = "" if result.best_case is None else text.interval_text(result.best_case)
    b = result.bounds
    fields = (result.instance.warps, result.status, b.lower, b.upper, result.pessimistic, best, result.backend)
    in_time = () if gate is None else (gate.cycles, gate.outcome(b))
    return ",".join(map(str, (*fields, f"{result.seconds:.3f}", *in_time)))


def _check_timeline(asked: bool, output: str, instances: int) -> None:
    if asked and (output != TEXT or instances > 1):
        raise InputError("--timeline is text about one instance: leave out --format, a range and a file of several")


def _draw(result: Result, path: Path, shown: CycleWindow | None) -> None:
    view = ScheduleView(text.verdict_line(result), text.picture_subtitle(result), shown)
    write_schedule(result.instance, result.witness, path, view)


def _timeline(result: Result) -> str:
    return draw_timeline(result.instance, result.witness, width=shutil.get_terminal_size().columns)
