"""`makespan solve`: the worst case, its proof, and a picture."""

import json
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import click

from makespan.cli import INTERRUPTED
from makespan.cli.source import engine_options, instances, source_options
from makespan.cli.window import check_window, window, window_options
from makespan.errors import InputError
from makespan.report import text
from makespan.report.bundle import write as write_bundle
from makespan.report.document import deadline_document, document
from makespan.report.explain import explain, explanation_document
from makespan.report.figures import PICTURES
from makespan.report.files import check_writable
from makespan.report.schedule_file import check_schedule_path, write_schedule
from makespan.report.timeline import timeline as draw_timeline
from makespan.result import Result, Status
from makespan.schedulability.gate import Deadline, Outcome, read_deadline
from makespan.solve import Limits, solve
from makespan.stopwatch import within
from makespan.strings import NamedInstance

EXACT, DIFFERS, BOUNDED = 0, 1, 3
_GATE = {Outcome.MET: 0, Outcome.MISSED: 1, Outcome.UNDECIDED: 3}
_SECONDS_PER_PROGRESS_LINE = 2.0


@click.command("solve")
@source_options
@engine_options
@click.option("--best-case", is_flag=True, help="also the shortest work-conserving schedule")
@click.option("--deadline", metavar="TIME|Ncycles", help="is the worst case in time? such as 200ns, or 280cycles")
@click.option("--clock", metavar="FREQUENCY", help="of the SM, at least, such as 1.4GHz: for a deadline in time")
@click.option("--format", "output", type=click.Choice(["text", "json", "csv"]), default="text", show_default=True)
@click.option("--bundle", type=click.Path(path_type=Path), help="leave the evidence, for 'makespan verify'")
@click.option("--gantt", type=click.Path(path_type=Path), help="the witness as .png .svg .pdf .json .csv .trace.json")
@window_options
@click.option("--timeline", is_flag=True, help="the witness as letters, cycle by cycle")
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
    gantt: Path | None,
    first: int | None,
    end: int | None,
    timeline: bool,
    bundle: Path | None,
    **source: Any,
) -> int:
    """The longest that the warps can take under any work-conserving scheduler, with proof.

    SOURCE is a kernel (.ptx, .cu), an instance file (.toml, .jsonl) or '-'. With --deadline the exit code is that of
    a gate: 0 in time, 1 a schedule is too late, 3 not decided.
    """
    gate = read_deadline(deadline, clock)
    with within(time_limit):
        asked = instances(**source)
    _check_outputs(gantt, bundle, len(asked))
    check_window(gantt, first, end)
    _check_timeline(timeline, output, len(asked))
    codes = []
    if output == "csv":
        gated = "" if gate is None else ",deadline_cycles,deadline"
        click.echo(f"warps,status,lower,upper,pessimistic,best_case,backend,seconds{gated}")
    for question in asked:
        limits = Limits(time_limit, memory_limit, threads, seed, progress=progress())
        result = _solve(question, backend, limits, best_case=best_case)
        try:
            if gantt is not None:
                _draw(result, gantt, first, end)
            if bundle is not None:
                write_bundle(result, bundle)
        finally:  # neither a file that fails nor a reader that leaves costs the other
            if timeline:
                click.echo(_timeline(result))
            click.echo(_render(question, result, output, gate, many=len(asked) > 1))
        codes.append(_exit_code(question, result, gate))
        for name, path in (("schedule" if _is_data(gantt) else "picture", gantt), ("bundle", bundle)):
            if path is not None:
                click.echo(f"{name}: {path}", err=output != "text")
        if result.interrupted:
            return INTERRUPTED
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


def progress() -> Any:
    """A printer of progress on stderr, silent for quick work and at most one line every two seconds."""
    last = time.monotonic()

    def show(line: str) -> None:
        nonlocal last
        if time.monotonic() - last >= _SECONDS_PER_PROGRESS_LINE:
            last = time.monotonic()
            click.echo(line, err=True)

    return show


def _render(question: NamedInstance, result: Result, output: str, gate: Deadline | None, *, many: bool) -> str:
    if output == "json":
        named = {"name": question.name} if question.name else {}
        expected = {"expected": question.makespan} if question.makespan is not None else {}
        explained = {"explanation": explanation_document(explain(result.instance, result.witness))}
        gated = {} if gate is None else {"deadline": deadline_document(gate, result.bounds)}
        return json.dumps({**document(result), **explained, **gated, **named, **expected})
    if output == "csv":
        best = "" if result.best_case is None else text.interval(result.best_case)
        b = result.bounds
        fields = (result.instance.warps, result.status, b.lower, b.upper, result.pessimistic, best, result.backend)
        in_time = () if gate is None else (gate.cycles, gate.outcome(b))
        return ",".join(map(str, (*fields, f"{result.seconds:.3f}", *in_time)))
    note = "" if _agrees(question, result) else f"EXPECTED {question.makespan}"
    if not many:
        verdict = "" if gate is None else text.deadline(gate, result.bounds, result.assumptions)
        return "\n".join(filter(None, (text.report(result), note, verdict)))
    verdict = "" if gate is None else f"deadline {gate.outcome(result.bounds)}"
    return text.row(result, " ".join(filter(None, (question.name or "", note, verdict))))


def _agrees(question: NamedInstance, result: Result) -> bool:
    expected = question.makespan
    return expected is None or result.bounds.lower <= expected <= result.bounds.upper


def _exit_code(question: NamedInstance, result: Result, gate: Deadline | None) -> int:
    if not _agrees(question, result):
        return DIFFERS
    if gate is not None:
        return _GATE[gate.outcome(result.bounds)]
    return EXACT if result.status is Status.EXACT else BOUNDED


def _check_outputs(gantt: Path | None, bundle: Path | None, instances: int) -> None:
    """Refuse before the work what would fail after it."""
    if instances > 1 and (gantt or bundle):
        raise InputError("--gantt and --bundle are for one instance; this is a range or a file of several")
    if gantt is not None:
        check_schedule_path(gantt)
    if bundle is not None:
        check_writable(bundle, "the bundle")
        if gantt is not None and gantt.resolve() == bundle.resolve():
            raise InputError(f"{bundle}: --gantt and --bundle need two names")


def _check_timeline(asked: bool, output: str, instances: int) -> None:
    if asked and (output != "text" or instances > 1):
        raise InputError("--timeline is text about one instance: leave out --format, a range and a file of several")


def _draw(result: Result, path: Path, first: int | None, end: int | None) -> None:
    title, subtitle, shown = text.verdict(result), text.subject(result), window(result.witness.makespan, first, end)
    write_schedule(result.instance, result.witness, path, title=title, subtitle=subtitle, window=shown)


def _is_data(path: Path | None) -> bool:
    return path is not None and path.suffix.lower() not in PICTURES


def _timeline(result: Result) -> str:
    return draw_timeline(result.instance, result.witness, width=shutil.get_terminal_size().columns)
