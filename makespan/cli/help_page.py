"""The help of a command: its options in sections with titles, and examples below them."""

from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import click

from makespan.host.errors import MissingInputsError
from makespan.kernels.options import option_of_field

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

_WORDS = f"{__name__}.words"
_TITLES = WeakKeyDictionary[click.Parameter, str]()
_OTHERS = "Options"
_FEW = 12
"""So many options need no sections."""


def examples(*lines: str) -> str:
    """Return commands as they stand below the help of a command."""
    return "\b\n" + "\n".join(["Examples:", *(f"  {line}" for line in lines)])


def stack(*options: Decorator) -> Decorator:
    """Return several options as one decorator; the help shows them in this order."""

    def apply(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            function = option(function)
        return function

    return apply


def section(title: str, *options: Decorator) -> Decorator:
    """Return several options as one decorator, in a section of the help.

    Options that have a section keep it. Sections with the same title are one, and stand where its first option does. A
    command with few options shows them in one section.
    """

    def apply(function: Callable[..., Any]) -> Callable[..., Any]:
        # click keeps the options in reverse order: those behind `before` are the new ones.
        before = len(getattr(function, "__click_params__", ()))
        for option in reversed(options):
            function = option(function)
        for parameter in getattr(function, "__click_params__", ())[before:]:
            _TITLES.setdefault(parameter, title)
        return function

    return apply


def option_name(name: str) -> str:
    """Return what a field is called on the command line.

    >>> option_name("blocks_per_sm"), option_name("parameters")
    ('--blocks-per-sm', '--param')
    """
    return f"--{option_of_field(name)}"


class HelpCommand(click.Command):
    """A command with sections in its help, which shows how to give the inputs that it misses."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words as every command does, and keep them for `invoke`."""
        ctx.meta[_WORDS] = [*ctx.command_path.split(), *args]
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; an error about missing inputs gets a command line that gives all of them.

        Raises:
            MissingInputsError: with the command in its second line.
        """
        try:
            return super().invoke(ctx)
        except MissingInputsError as error:
            options = {name for option in self.params for name in option.opts}
            # A command without such an option has no remedy to show.
            if not error.missing or not {option_name(each.field) for each in error.missing} <= options:
                raise
            raise error.with_command(ctx.meta[_WORDS], option_name) from None

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write each section of options under its title."""
        sections: dict[str, list[tuple[str, str]]] = {}
        options = [option for option in self.get_params(ctx) if isinstance(option, click.Option)]
        for option in options:
            if (record := option.get_help_record(ctx)) is not None:
                title = _OTHERS if len(options) <= _FEW else _TITLES.get(option, _OTHERS)
                sections.setdefault(title, []).append(record)
        if others := sections.pop(_OTHERS, None):
            sections[_OTHERS] = others  # --help, as a rule, comes last
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records)
