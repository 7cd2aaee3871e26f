"""Groups of commands that list themselves from a table and import only the command that is called."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import PurePath
from types import MappingProxyType
from typing import Any, NamedTuple

import click
from click.shell_completion import CompletionItem

from makespan.host.errors import did_you_mean


class CommandRow(NamedTuple):
    """A row of the table of a group: a command, what it does in a line, its section in the help, and its place.

    Args:
        place: a module, of which `command` is the command, or `module:attribute`.
    """

    name: str
    about: str
    place: str
    section: str = "Commands"


class LazyGroup(click.Group):
    """A group whose commands live in the modules that a table names.

    Args:
        table: the commands in the order of the help; those of a section stand together.
        moved: the words that have taken the place of former commands, by their names.
        opens: the command that a file in the place of a command asks for, if any.
    """

    def __init__(
        self,
        *args: Any,
        table: Sequence[CommandRow],
        moved: Mapping[str, str] = MappingProxyType({}),
        opens: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(*args, **options)
        self._table, self._moved, self._opens = {row.name: row for row in table}, moved, opens

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order of the table."""
        del ctx
        return list(self._table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command from its own module, which is imported now."""
        del ctx
        if cmd_name not in self._table:
            return None
        module, _, attribute = self._table[cmd_name].place.partition(":")
        command: click.Command = getattr(import_module(module), attribute or "command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that is called; refuse an unknown one, and ask whether another one was meant."""
        name = args[0]
        # `makespan kernel.ptx` is a common slip: the file ending in the place of a command names the remedy.
        if name not in self._table and not name.startswith("-"):
            near = did_you_mean(name, self._table)
            if name in self._moved:
                near = f" any more: it is '{ctx.command_path} {self._moved[name]}'"
            elif self._opens and PurePath(name).suffix:
                near = f"; for a file: {ctx.command_path} {self._opens} {name}"
            ctx.fail(f"no such command {name!r}{near}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table of commands without importing any of them."""
        del ctx
        widest = max(map(len, self._table))
        for title in dict.fromkeys(row.section for row in self._table.values()):
            with formatter.section(title):
                rows = [row for row in self._table.values() if row.section == title]
                formatter.write_dl([(f"{row.name:<{widest}}", row.about) for row in rows])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the commands of the table, none of which is imported, and the options of the group."""
        rows = [row for row in self._table.values() if row.name.startswith(incomplete)]
        begun = [CompletionItem(row.name, help=row.about) for row in rows]
        return [*begun, *click.Command.shell_complete(self, ctx, incomplete)]
