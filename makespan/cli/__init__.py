"""The command line: a lazy group, so that `--help` loads no command; errors become one line and an exit code.

Exit codes: 0 done, 1 the answer is no, 2 bad usage or input, 3 bounded but not exact, 70 a bug, 130 interrupted.
"""

import json
import os
import sys
import threading
import traceback
from collections.abc import Sequence
from importlib import import_module
from itertools import pairwise
from typing import NoReturn

import click

from makespan.errors import BrokenPromiseError, InputError, ParseError
from makespan.version import __version__

BAD_INPUT, BUG, INTERRUPTED = 2, 70, 130

COMMANDS = {
    "solve": "worst-case makespan with proof",
    "simulate": "what scheduling policies do, beside the worst case of all",
    "compare": "worst case against M^L + M^C, over warps and a quantity of the machine",
    "report": "the worst case, its proof and its assumptions as one HTML file",
    "strings": "what a kernel becomes: letters, loops, choices",
    "bounds-template": "a loop-bounds file to fill in",
    "doctor": "versions, and one-time compilation of the inner loops",
    "export": "an optimisation model of the worst case, as a file",
    "verify": "check a bundle without the code that computed it",
    "machines": "the machines that come with the package, with their sources",
}


class LazyGroup(click.Group):
    """Lists the commands from a table and imports only the one that is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands in the order of the table."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command from its own module."""
        del ctx
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"makespan.cli.{cmd_name.replace('-', '_')}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The table, without importing anything."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(
    cls=LazyGroup,
    no_args_is_help=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.version_option(__version__, prog_name="makespan")
def cli() -> None:
    """Proven worst-case makespan of GPU warps on one streaming multiprocessor."""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code = run(given)
    except Exception:  # noqa: BLE001 - exit code 1, Python's own, would say that the answer is no
        traceback.print_exc()
        click.echo("makespan: this is a bug; please report it with the lines above", err=True)
        code = BUG
    if threading.active_count() > 1:  # a solver that was told to stop still winds up: nobody waits for it
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def run(given: list[str]) -> int:
    """Run the command line and return the exit code; what went wrong is one line on stderr."""
    as_json = "--format=json" in given or ("--format", "json") in pairwise(given)
    try:
        code = cli.main(args=given, prog_name="makespan", standalone_mode=False)
    except click.UsageError as error:
        hint = f" (see '{error.ctx.command_path} --help')" if error.ctx else ""
        return _complain(error.format_message() + hint, as_json, BAD_INPUT)
    except click.ClickException as error:
        return _complain(error.format_message(), as_json, BAD_INPUT)
    except ParseError as error:
        return _complain(str(error), as_json, BAD_INPUT, error.context)
    except InputError as error:
        return _complain(str(error), as_json, BAD_INPUT)
    except BrokenPromiseError as error:
        return _complain(f"internal contradiction, please report it: {error}", as_json, BUG)
    except (KeyboardInterrupt, click.Abort):
        return _complain("interrupted", as_json, INTERRUPTED)
    except BrokenPipeError:
        return 0
    except SystemExit as stop:  # click exits with 1 on a broken pipe, and only then: whoever reads has had enough
        if stop.code != 1:
            raise
        return 0
    return code if isinstance(code, int) else 0


def _complain(message: str, as_json: bool, code: int, context: str = "") -> int:
    line = " ".join(message.split("\n", 1)[0].split())
    if as_json:
        details = [*message.split("\n")[1:], *context.splitlines()]
        text = json.dumps({"error": line, "details": details, "exit_code": code})
    else:
        text = "\n".join(filter(None, (f"makespan: {message}", context)))
    click.echo(text, err=True)
    return code
