"""Groups of commands that list themselves from a table and import only the command that is called."""

from collections.abc import Mapping
from importlib import import_module
from pathlib import PurePath
from types import MappingProxyType
from typing import Any

import click
from click.shell_completion import CompletionItem

from makespan.host.errors import did_you_mean


class LazyGroup(click.Group):
    """A group whose commands live in modules of `package`: `bounds-template` in `bounds_template`, as `command`.

    Args:
        sections: what each command does in a line, by name, below titles, in the order of the help.
        elsewhere: where commands live that have no such module, by name: a module, or `module:attribute`.
        opens: the command that a file in the place of a command asks for, if any.
    """

    def __init__(
        self,
        *args: Any,
        package: str,
        sections: Mapping[str, Mapping[str, str]],
        elsewhere: Mapping[str, str] = MappingProxyType({}),
        opens: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(*args, **options)
        self._package, self._sections, self._elsewhere, self._opens = package, sections, elsewhere, opens
        self._table = {name: what for commands in sections.values() for name, what in commands.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order of the table."""
        del ctx
        return list(self._table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command from its own module, which is imported now."""
        del ctx
        if cmd_name not in self._table:
            return None
        here = f"{self._package}.{cmd_name.replace('-', '_')}"
        module, _, attribute = self._elsewhere.get(cmd_name, here).partition(":")
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
            if self._opens and PurePath(name).suffix:
                near = f"; for a file: {ctx.command_path} {self._opens} {name}"
            ctx.fail(f"no such command {name!r}{near}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table of commands without importing any of them."""
        del ctx
        widest = max(map(len, self._table))
        for title, commands in self._sections.items():
            with formatter.section(title):
                formatter.write_dl([(f"{name:<{widest}}", what) for name, what in commands.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the commands of the table, none of which is imported, and the options of the group."""
        begun = [CompletionItem(name, help=about) for name, about in self._table.items() if name.startswith(incomplete)]
        return [*begun, *click.Command.shell_complete(self, ctx, incomplete)]
