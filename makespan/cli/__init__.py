"""The command line: a lazy group, so that `--help` loads no command; errors become one line and an exit code.

Exit codes: 0 done, 1 the answer is no, 2 bad usage or input, 3 bounded but not exact,
4 a measurement failed or its device is missing, 70 a bug, 130 interrupted, 141 the reader of the answer went away,
143 terminated.
"""

import json
import logging
import os
import sys
import threading
import traceback
from collections.abc import Sequence
from contextlib import suppress
from io import TextIOWrapper
from itertools import pairwise
from pathlib import Path
from typing import NoReturn, TextIO

import click

from makespan.cli import output
from makespan.cli.help_page import examples
from makespan.cli.lazy import CommandRow, LazyGroup
from makespan.cli.progress import Notices
from makespan.cli.running import (
    BAD_INPUT,
    BROKEN_PIPE,
    BUG,
    DONE,
    INTERRUPTED,
    NOT_MEASURED,
    interrupted_code,
    stoppable,
)
from makespan.host.errors import BrokenPromiseError, MakespanError, MeasurementError, ParseError, did_you_mean
from makespan.host.text_file import inputs_kept
from makespan.version import __version__

_SOLVING, _DEADLINES, _KERNELS = "Worst cases", "Deadlines", "Kernels, machines and GPUs"
_MANY, _MEASURING, _HERE = "Many questions", "Measurements and estimates", "This installation"
# fmt: off
COMMANDS = (
    CommandRow("solve", "worst-case makespan with proof", "makespan.cli.solve", _SOLVING),
    CommandRow(
        "simulate", "what scheduling policies do, beside the worst case", "makespan.many.commands.simulate", _SOLVING),
    CommandRow(
        "compare", "worst case against M^L + M^C, as a curve", "makespan.many.commands.compare", _SOLVING),
    CommandRow(
        "report", "worst case, proof and assumptions as an HTML page", "makespan.cli.report", _SOLVING),
    CommandRow("verify", "check a bundle without the code that computed it", "makespan.cli.verify", _SOLVING),
    CommandRow("export", "an optimisation model of the worst case, as a file", "makespan.cli.export", _SOLVING),
    CommandRow("serve", "a page in the browser that asks and answers", "makespan.many.commands.serve", _SOLVING),
    CommandRow(
        "schedulability", "do tasks with GPU kernels meet their deadlines?", "makespan.deadlines.command", _DEADLINES),
    CommandRow("gate", "are all kernels of a file in time? for CI", "makespan.many.commands.gate", _DEADLINES),
    CommandRow(
        "strings", "what a kernel becomes: letters, loops, choices", "makespan.cli.strings", _KERNELS),
    CommandRow("machines", "shipped machines and GPUs, with their sources", "makespan.cli.machines", _KERNELS),
    CommandRow("sweep", "many questions to solve, here or on a cluster", "makespan.many.commands.sweep", _MANY),
    CommandRow(
        "benchmark", "a library of instances: run it, compare solvers", "makespan.many.commands.benchmark", _MANY),
    CommandRow(
        "measure", "run kernels on a GPU: against their bounds, or for the numbers of a machine",
        "makespan.hardware.measure", _MEASURING),
    CommandRow(
        "estimate", "what is likely, by published models; never a bound", "makespan.estimates.commands", _MEASURING),
    CommandRow("doctor", "versions, and one-time compilation of inner loops", "makespan.cli.doctor", _HERE),
)
# fmt: on
"""All commands; nothing else of the command line knows a satellite."""

MOVED = {
    "bounds-template": "strings --bounds-template",
    "gpus": "machines --gpus",
    "validate": "measure validate",
    "microbench": "measure",
    "evaluate": "estimate --evaluate",
}
"""The words that have taken the place of former commands."""


@click.group(
    cls=LazyGroup,
    table=COMMANDS,
    moved=MOVED,
    opens="solve",
    invoke_without_command=True,
    no_args_is_help=False,
    epilog=examples("makespan solve ptx/vecadd.ptx --block 256", "makespan solve --help"),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.version_option(__version__, prog_name="makespan")
@click.pass_context
def cli(context: click.Context) -> int | None:
    """Proven worst-case makespan of GPU warps on one streaming multiprocessor."""
    context.color = output.wants_colours()
    if context.invoked_subcommand is not None:
        return None
    click.echo(context.get_help(), err=True)
    return BAD_INPUT


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if isinstance(sys.stdout, TextIOWrapper):  # what cannot be encoded, as in the name of a file, is no reason to fail
        sys.stdout.reconfigure(errors="backslashreplace")
    _tell_on_stderr()
    try:
        code = run(given)
    except Exception:  # noqa: BLE001 - exit code 1, Python's own, would say that the answer is no
        _tell(_escape_text(f"{traceback.format_exc()}makespan: this is a bug; please report it with the lines above"))
        code = BUG
    if threading.active_count() > 1:  # a solver that was told to stop still winds up: do not wait for it
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def _tell_on_stderr() -> None:
    """Show log messages, such as that a loop is compiled, on stderr; those of matplotlib only if they are errors."""
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    logger = logging.getLogger("makespan")
    logger.addHandler(Notices())
    logger.setLevel(logging.INFO)


def run(given: list[str]) -> int:
    """Run the command line and return the exit code; what went wrong is one line on stderr."""
    # Errors may come before click has read the options, so the words themselves say the format.
    as_json = "--format=json" in given or ("--format", "json") in pairwise(given)
    try:
        with stoppable(), inputs_kept():
            code = cli.main(args=given, prog_name="makespan", standalone_mode=False)
    except click.UsageError as error:
        return _complain(_usage_text(error), as_json, BAD_INPUT)
    except click.ClickException as error:
        return _complain(error.format_message(), as_json, BAD_INPUT)
    except MakespanError as error:
        return _complain_of(error, as_json)
    except (KeyboardInterrupt, click.Abort):
        return _complain("interrupted", as_json, interrupted_code())
    except BrokenPipeError:
        return BROKEN_PIPE
    except MemoryError:
        return _complain("not enough memory for this input", as_json, BAD_INPUT)
    except OSError as error:
        if not _was_printing(error):  # an OSError of anything else is a bug, and has a traceback
            raise
        _silence(sys.stdout)
        return _complain(f"cannot write to standard output: {error.strerror}", as_json, BAD_INPUT)
    except SystemExit as stop:  # click exits with 1 on a broken pipe, and only then: whoever reads has had enough
        if stop.code != 1:
            raise
        return BROKEN_PIPE
    if code == INTERRUPTED:
        return interrupted_code()
    return code if isinstance(code, int) else DONE


def _usage_text(error: click.UsageError) -> str:
    said = error.format_message()
    if isinstance(error, click.NoSuchOption):
        said = f"No such option {error.option_name!r}{did_you_mean(error.option_name, error.possibilities or ())}"
    return f"{said} (see '{error.ctx.command_path} --help')" if error.ctx else said


def _complain_of(error: MakespanError, as_json: bool) -> int:
    # Two proofs contradict each other: no input can be the reason.
    if isinstance(error, BrokenPromiseError):
        return _complain(f"internal contradiction, please report it: {error}", as_json, BUG)
    code = NOT_MEASURED if isinstance(error, MeasurementError) else BAD_INPUT
    return _complain(str(error), as_json, code, error.context if isinstance(error, ParseError) else "")


def _complain(message: str, as_json: bool, code: int, context: str = "") -> int:
    # A log of a CI system shows one line: the first has all that matters, further lines are details.
    line = " ".join(message.split("\n", 1)[0].split())
    if as_json:
        details = [*message.split("\n")[1:], *context.splitlines()]
        text = json.dumps({"error": line, "details": details, "exit_code": code})
    else:
        text = "\n".join(filter(None, (output.paint_error(_escape_text(message)), _escape_text(context))))
    _tell(text)
    return code


def _escape_text(text: str) -> str:
    """Return a text without letters that command a terminal: they become escapes."""
    return "".join(c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode() for c in text)


def _tell(text: str) -> None:
    """Write a line to stderr; where that takes none, the exit code alone says what happened."""
    try:
        click.echo(text, err=True, color=output.wants_colours())
    except OSError:
        _silence(sys.stderr)


def _was_printing(error: OSError) -> bool:
    return any(frame.f_code is click.echo.__code__ for frame, _ in traceback.walk_tb(error.__traceback__))


def _silence(stream: TextIO) -> None:
    """Throw away what a broken stream still holds, or Python would end with an exit code of its own."""
    with suppress(OSError), Path(os.devnull).open("wb") as nowhere:
        os.dup2(nowhere.fileno(), stream.fileno())
