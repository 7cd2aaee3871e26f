"""`makespan solve`: the worst case, its proof, and a picture."""

import json
import shutil
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import click

from makespan.cli import INTERRUPTED
from makespan.cli.parameters import examples
from makespan.cli.source import engine_options, instances, quiet_option, source_options
from makespan.cli.window import check_window, gantt_option, window, window_options
from makespan.engines import Limits, solve
from makespan.errors import InputError
from makespan.report import text
from makespan.report.bundle import check_bundle_path
from makespan.report.bundle import write as write_bundle
from makespan.report.document import deadline_document, document
from makespan.report.explain import explain, explanation_document
from makespan.report.figures import PICTURES
from makespan.report.gantt import Window
from makespan.report.rows import Rows, counts
from makespan.report.schedule_file import check_schedule_path, write_schedule
from makespan.report.timeline import timeline as draw_timeline
from makespan.result import Result, Status
from makespan.schedulability.gate import Deadline, Outcome, read_deadline
from makespan.stopwatch import within
from makespan.strings import NamedInstance
from makespan.wording import pessimistic_name, scope

EXACT, DIFFERS, BOUNDED = 0, 1, 3
_GATE = {Outcome.MET: 0, Outcome.MISSED: 1, Outcome.UNDECIDED: 3}
_SECONDS_PER_PROGRESS_LINE = 2.0
_WIDTH_OF_OUTCOME = 11
QUIET = "quiet"


@click.command(
    "solve",
    epilog=examples(
        "makespan solve ptx/vecadd.ptx --block 256", "makespan solve --string CLLCLL --warps 1..8 --capacity C=2,L=1"
    ),
)
@source_options
@engine_options
@click.option("--best-case", is_flag=True, help="also the shortest work-conserving schedule")
@click.option("--deadline", metavar="TIME|Ncycles", help="is the worst case in time? such as 200ns, or 280cycles")
@click.option("--clock", metavar="FREQUENCY", help="of the SM, at least, such as 1.4GHz: for a deadline in time")
@click.option("--format", "output", type=click.Choice(["text", "json", "csv"]), default="text", show_default=True)
@click.option("--bundle", type=click.Path(path_type=Path), help="leave the evidence, for 'makespan verify'")
@gantt_option("the witness")
@window_options
@click.option("--timeline", is_flag=True, help="the witness as letters, cycle by cycle")
@quiet_option
def command(
    backend: str,
    best_case: bool,
    deadline: str | None,
    clock: str | None,
    time_limit: float,
    memory_limit: int,
    threads: int,
    seed: int,
    output: str,
    gantt: tuple[Path, ...],
    first: int | None,
    end: int | None,
    timeline: bool,
    quiet: bool,
    bundle: Path | None,
    **source: Any,
) -> int:
    """The longest that the warps can take under any work-conserving scheduler, with proof.

    SOURCE is a kernel (.ptx, .cu), an instance file (.toml, .jsonl) or '-'. With --deadline the exit code is that of
    a gate: 0 in time, 1 a schedule is too late, 3 not decided.
    """
    gate = read_deadline(deadline, clock)
    with within(time_limit) as reading:
        asked = instances(**source)
    _check_outputs(gantt, bundle, len(asked))
    check_window(gantt, first, end)
    _check_timeline(timeline, output, len(asked))
    form = _Form(text_form(output, quiet=quiet), gate, _rows(asked, gate, best=best_case) if len(asked) > 1 else None)
    _say(form.head())
    results: list[Result] = []
    for number, question in enumerate(asked):
        seconds = time_limit if number else reading.left
        limits = Limits(seconds, memory_limit, threads, seed, progress=progress(quiet=quiet))
        result = _solve(question, backend, limits, best_case=best_case)
        results.append(result)
        shown = window(result.witness.makespan, first, end) if gantt else None
        drawn = () if shown is None else gantt
        try:
            _leave(result, drawn, bundle, shown)
        finally:  # a file that fails costs nobody the answer
            _say(form.one(question, result))
            if timeline:
                click.echo(_timeline(result))
        for line in () if quiet else _written(drawn, bundle):
            click.echo(line, err=output != "text")
        if limits.short_of_memory and result.status is not Status.EXACT and not quiet:
            click.echo("a search stopped for want of memory: with a larger --memory-limit it may prove more", err=True)
        if result.interrupted:
            break
    _say(form.foot(asked, results))
    if results[-1].interrupted:
        return INTERRUPTED
    codes = [_exit_code(question, result, gate) for question, result in zip(asked, results, strict=True)]
    return next((code for code in (DIFFERS, BOUNDED) if code in codes), EXACT)


def _solve(question: NamedInstance, backend: str, limits: Limits, *, best_case: bool) -> Result:
    with interruptible(limits):
        return solve(question.instance, backend=backend, best_case=best_case, limits=limits)


@contextmanager
def interruptible(limits: Limits) -> Iterator[None]:
    """The first Ctrl-C asks the engines to stop and keep what they have proven; the second one kills."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        del frame
        limits.interrupt()
        signal.signal(number, signal.default_int_handler)
        click.echo("interrupted: finishing with the bounds so far (again to abort)", err=True)

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def progress(*, quiet: bool = False) -> Callable[[str], None]:
    """A printer of progress on stderr, silent for quick work and at most one line every two seconds."""
    last = time.monotonic()

    def show(line: str) -> None:
        nonlocal last
        if not quiet and time.monotonic() - last >= _SECONDS_PER_PROGRESS_LINE:
            last = time.monotonic()
            click.echo(line, err=True)

    return show


@dataclass(frozen=True, slots=True)
class _Form:
    """How results are printed; `rows` is the table of several, None for a single one."""

    output: str
    gate: Deadline | None
    rows: Rows | None

    def head(self) -> str:
        """What stands above the first result."""
        if self.output == "csv":
            gated = "" if self.gate is None else ",deadline_cycles,deadline"
            return f"warps,status,lower,upper,pessimistic,best_case,backend,seconds{gated}"
        return self.rows.head() if self.rows and self.output == "text" else ""

    def one(self, question: NamedInstance, result: Result) -> str:
        """One result."""
        if self.output == "json":
            return _json(question, result, self.gate)
        if self.output == "csv":
            return _csv(result, self.gate)
        if self.rows is not None:
            return "" if self.output == QUIET else self._row(self.rows, question, result)
        remarks = [] if _agrees(question, result) else [f"EXPECTED {question.makespan}"]
        if self.gate is not None:
            remarks.append(text.deadline(self.gate, result.bounds, result.caveats))
        if self.output == QUIET:
            return "\n".join([text.verdict(result), *remarks])
        return text.report(result, remarks, width=text.terminal_width())

    def _row(self, rows: Rows, question: NamedInstance, result: Result) -> str:
        outcome = "" if self.gate is None else f"{self.gate.outcome(result.bounds):<{_WIDTH_OF_OUTCOME}}"
        wrong = "" if _agrees(question, result) else f"  EXPECTED {question.makespan}"
        remark = f"{outcome}{question.name or ''}{wrong}"
        numbers = (result.instance.warps, result.bounds, result.pessimistic, result.upper_evidence)
        return rows.row(*numbers, best=result.best_case, remark=remark)

    def foot(self, asked: Sequence[NamedInstance], results: Sequence[Result]) -> str:
        """What several results come to."""
        if self.rows is None or self.output not in ("text", QUIET):
            return ""
        caveats = list(dict.fromkeys(caveat for result in results for caveat in result.caveats))
        stopped = " (interrupted)" * results[-1].interrupted
        lines = [f"{counts('result', sorted((result.status for result in results), reverse=True), caveats)}{stopped}"]
        if self.gate is not None:
            lines.append(f"deadline of {self.gate}{scope(caveats)}: {_outcomes(self.gate, results)}")
        if wrong := sum(not _agrees(question, result) for question, result in zip(asked, results, strict=False)):
            lines.append(f"{wrong} not as EXPECTED")
        return "\n".join(lines)


def _rows(asked: Sequence[NamedInstance], gate: Deadline | None, *, best: bool) -> Rows:
    names = list(dict.fromkeys(pessimistic_name(question.instance.machine) for question in asked))
    remark = "" if gate is None else f"{'deadline':<{_WIDTH_OF_OUTCOME}}"
    remark += "name" if any(question.name for question in asked) else ""
    return Rows(names[0] if len(names) == 1 else "pessimistic bound", best, remark)


def _outcomes(gate: Deadline, results: Sequence[Result]) -> str:
    found = [str(gate.outcome(result.bounds)) for result in results]
    return ", ".join(f"{found.count(outcome)} {outcome}" for outcome in map(str, Outcome) if outcome in found)


def _say(lines: str) -> None:
    if lines:
        click.echo(lines)


def _json(question: NamedInstance, result: Result, gate: Deadline | None) -> str:
    named = {"name": question.name} if question.name else {}
    expected = {"expected": question.makespan} if question.makespan is not None else {}
    explained = {"explanation": explanation_document(explain(result.instance, result.witness))}
    gated = {} if gate is None else {"deadline": deadline_document(gate, result.bounds)}
    return json.dumps({**document(result), **explained, **gated, **named, **expected})


def _csv(result: Result, gate: Deadline | None) -> str:
    best = "" if result.best_case is None else text.interval(result.best_case)
    b = result.bounds
    fields = (result.instance.warps, result.status, b.lower, b.upper, result.pessimistic, best, result.backend)
    in_time = () if gate is None else (gate.cycles, gate.outcome(b))
    return ",".join(map(str, (*fields, f"{result.seconds:.3f}", *in_time)))


def _agrees(question: NamedInstance, result: Result) -> bool:
    expected = question.makespan
    return expected is None or result.bounds.lower <= expected <= result.bounds.upper


def _exit_code(question: NamedInstance, result: Result, gate: Deadline | None) -> int:
    if not _agrees(question, result):
        return DIFFERS
    if gate is not None:
        return _GATE[gate.outcome(result.bounds)]
    return EXACT if result.status is Status.EXACT else BOUNDED


def _check_outputs(gantt: Sequence[Path], bundle: Path | None, instances: int) -> None:
    """Refuse before the work what would fail after it."""
    if instances > 1 and (gantt or bundle):
        raise InputError("--gantt and --bundle are for one instance; this is a range or a file of several")
    for path in gantt:
        check_schedule_path(path)
    if bundle is not None:
        check_bundle_path(bundle)
    refuse_twice((*gantt, *((bundle,) if bundle else ())))


def refuse_twice(paths: Sequence[Path]) -> None:
    """Two outputs need two names.

    Raises:
        InputError: they have one.
    """
    seen = set[Path]()
    for path in paths:
        if path.resolve() in seen:
            raise InputError(f"{path}: two outputs have this name")
        seen.add(path.resolve())


def _check_timeline(asked: bool, output: str, instances: int) -> None:
    if asked and (output != "text" or instances > 1):
        raise InputError("--timeline is text about one instance: leave out --format, a range and a file of several")


def text_form(output: str, *, quiet: bool) -> str:
    """The value of `--format`, and `QUIET` for what `--quiet` leaves of a text.

    Raises:
        InputError: both are given.
    """
    if quiet and output != "text":
        raise InputError("--quiet leaves the verdict of a text: leave out --format")
    return QUIET if quiet else output


def _leave(result: Result, gantt: Sequence[Path], bundle: Path | None, shown: Window | None) -> None:
    drawn = [partial(_draw, result, path, shown) for path in gantt]
    all_written([*drawn, partial(write_bundle, result, bundle)] if bundle else drawn)


def all_written(writers: Iterable[Callable[[], None]]) -> None:
    """Write several files, of which one that fails costs no other.

    Raises:
        InputError: the first that failed.
    """
    failed = []
    for write in writers:
        try:
            write()
        except InputError as error:
            failed.append(error)
    if failed:
        raise failed[0]


def _written(gantt: Sequence[Path], bundle: Path | None) -> Iterator[str]:
    yield from (f"{what(path)}: {path}" for path in gantt)
    if bundle is not None:
        yield f"bundle: {bundle}"


def _draw(result: Result, path: Path, shown: Window | None) -> None:
    title, subtitle = text.verdict(result), text.pictured(result)
    write_schedule(result.instance, result.witness, path, title=title, subtitle=subtitle, window=shown)


def what(path: Path) -> str:
    """What a file of a schedule is."""
    return "picture" if path.suffix.lower() in PICTURES else "schedule"


def _timeline(result: Result) -> str:
    return draw_timeline(result.instance, result.witness, width=shutil.get_terminal_size().columns)
