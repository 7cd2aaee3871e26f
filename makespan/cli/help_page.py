"""The help of a command: its options in sections with titles, and examples below them."""

from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import click

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

_TITLES = WeakKeyDictionary[click.Parameter, str]()
_OTHERS = "Options"
_FEW = 12
"""So many options need no sections."""


def examples(*lines: str) -> str:
    """Commands that stand below the help of a command, as they are."""
    return "\b\n" + "\n".join(["Examples:", *(f"  {line}" for line in lines)])


def stack(*options: Decorator) -> Decorator:
    """Several options as one decorator; the help shows them in this order."""

    def apply(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            function = option(function)
        return function

    return apply


def section(title: str, *options: Decorator) -> Decorator:
    """Several options as one decorator, in a section of the help; those that have one already keep it.

    Sections with the same title are one, and stand where the first option of it does.

    A command with few options shows them in one.
    """

    def apply(function: Callable[..., Any]) -> Callable[..., Any]:
        before = len(getattr(function, "__click_params__", ()))
        for option in reversed(options):
            function = option(function)
        for parameter in getattr(function, "__click_params__", ())[before:]:
            _TITLES.setdefault(parameter, title)
        return function

    return apply


class Command(click.Command):
    """A command whose help shows the sections of its options."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Each section under its title."""
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
