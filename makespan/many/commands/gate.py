"""`makespan gate`: deadlines of many kernels, one exit code, and a report that CI systems show."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import click

from makespan.cli.help_page import HelpCommand, examples
from makespan.cli.output import quiet_option
from makespan.cli.parameters import FILE
from makespan.cli.progress import progress
from makespan.cli.question import QuestionData, from_folder, read_question, solve_question
from makespan.cli.running import BAD_INPUT, GATE, worst_code
from makespan.host.errors import BrokenPromiseError, InputError, MakespanError
from makespan.host.output_file import check_writable, write_whole
from makespan.many.spec import read_spec
from makespan.model.deadline import Deadline, DeadlineOutcome
from makespan.model.result import Bounds
from makespan.report.junit import DeadlineCheck, junit_document
from makespan.report.result.text import deadline_verdict as verdict

_UNNAMED = {"source", "deadline", "clock", "time-limit", "memory-limit", "threads", "seed"}


@click.command("gate", cls=HelpCommand, epilog=examples("makespan gate gate.toml --junit makespan.xml"))
@click.argument("spec_path", metavar="SPEC.toml", type=FILE)
@click.option("--junit", "report", type=FILE, metavar="FILE.xml", help="leave a report for CI")
@quiet_option
def command(spec_path: Path, report: Path | None, quiet: bool) -> int:
    """Is the worst case of every kernel in time? What 'solve --deadline' says of one, for all of a file.

    SPEC.toml asks as that of a sweep, and each question has a deadline. Exit code: 0 if all are proven to be in time,
    1 if a schedule of one is too late, 2 if one is refused, whatever the others are, 3 if one is not decided.
    """
    # Every mistake of the spec is told before the first kernel is solved, which may take long.
    questions = _read_questions(spec_path)
    if report is not None:
        check_writable(report, "the report")
    checks = []
    for question in questions:
        checks.append(check := _check(question, spec_path.parent, quiet=quiet))
        if not quiet or check.outcome is not DeadlineOutcome.MET:
            click.echo(f"{check.name}: {check.line}")
    if report is not None:
        write_whole(report, junit_document(str(spec_path), checks), "the report")
    click.echo(_counts_text(checks))
    if any(check.outcome is None for check in checks):  # a kernel that is refused is no answer at all
        return BAD_INPUT
    return worst_code({GATE[check.outcome] for check in checks if check.outcome is not None})


def _read_questions(path: Path) -> tuple[QuestionData, ...]:
    """Return the questions, each of which has a deadline; what the options alone tell is told before the work."""
    questions = tuple(question.ask for question in read_spec(path))
    for question in questions:
        try:
            if read_question(from_folder(question, path.parent))["deadline"] is None:
                raise InputError("no deadline, such as deadline = '280cycles'")
        except InputError as error:
            raise InputError(f"{path}: {_name(question)}: {error}") from None
    return questions


def _check(question: QuestionData, folder: Path, *, quiet: bool) -> DeadlineCheck:
    name = _name(question)
    try:
        with progress(quiet=quiet) as show:
            found = solve_question(from_folder(question, folder), show)
    except BrokenPromiseError:  # a bug must not look like a kernel that is refused
        raise
    except MakespanError as error:
        return DeadlineCheck(name, None, f"refused: {error}".split("\n", 1)[0])
    gate, bounds = _deadline(found.document["deadline"]), Bounds(found.lower, found.upper)
    return DeadlineCheck(name, gate.outcome(bounds), verdict(gate, bounds, found.document["caveats"]), found.seconds)


def _deadline(told: Mapping[str, Any]) -> Deadline:
    """Return the deadline in the document of an answer; its clock may be that of a GPU."""
    seconds, clock = (None if told[key] is None else Fraction(told[key]) for key in ("seconds", "clock_hz"))
    return Deadline(told["cycles"], seconds, clock)


def _name(question: Mapping[str, Any]) -> str:
    """Return the source and what else tells questions apart, as the spec has it."""
    said = (f"{name}={_text(value)}" for name, value in question.items() if name not in _UNNAMED)
    return " ".join([*([str(question["source"])] if "source" in question else []), *said])


def _text(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def _counts_text(checks: Sequence[DeadlineCheck]) -> str:
    words = [str(check.outcome or "refused") for check in checks]
    counts = [f"{words.count(word)} {word}" for word in (*map(str, DeadlineOutcome), "refused") if word in words]
    return f"{len(checks)} deadline{'s' * (len(checks) != 1)}: {', '.join(counts)}"
