"""Types of command-line parameters: text in, checked value out."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from makespan.cli.help_page import Decorator, section
from makespan.host.errors import InputError, did_you_mean
from makespan.kernels import options
from makespan.kernels.options import OptionForm, QuestionOption

_DIGITS = 12  # longer numbers are refused before they are converted


class OneOf(click.Choice[str]):
    """A parameter that takes one of several words; a wrong word leads to a question where another one was meant."""

    def get_invalid_choice_message(self, value: object, ctx: click.Context | None) -> str:
        """Say which words there are, and which is near."""
        said = super().get_invalid_choice_message(value, ctx).rstrip(".")
        return f"{said}{did_you_mean(str(value), map(str, self.choices))}"

    def get_missing_message(self, param: click.Parameter, ctx: click.Context | None) -> str:
        """Say which words there are, in the line of the message: click itself takes a line for each."""
        del param, ctx
        return f"It is one of {', '.join(map(repr, self.choices))}"


class FormType(click.ParamType[Any]):
    """A parameter that is read as the form of an option says."""

    def __init__(self, form: OptionForm) -> None:
        self.name, self._read = form.name, form.read

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """Return the name of the form as it is: `XxYxZ` has small letters."""
        del param, ctx
        return self.name

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the value of a text; anything else is a value already, such as a default."""
        if not isinstance(value, str):
            return value
        try:
            return self._read(value)
        except InputError as error:
            self.fail(str(error), param, ctx)


WARPS, SECONDS, SIZE = (FormType(form) for form in (options.WARPS, options.SECONDS, options.SIZE))
FILE = click.Path(path_type=Path)


def choice(name: str, among: str | Sequence[str], help: str, *, default: bool = True) -> Callable[[Any], Any]:
    """Return an option that takes one word, of a sequence or a text with spaces; the first is the default, if any.

    The name may be followed by that of the parameter.

    >>> choice("--rep", "real ceil", "fillings of an SM")(click.command("x")(lambda rep: None)).params[0].default
    'real'
    """
    words = among.split() if isinstance(among, str) else among
    return click.option(
        *name.split(), type=OneOf(words), default=words[0] if default else None, show_default=default, help=help
    )


def question_option(option: QuestionOption, title: str = "", **own: Any) -> Decorator:
    """Return an option of a question as a click option, in its section of the help.

    Args:
        title: of the section; empty for that of its group.
        own: what this command says in another way, such as `help`.
    """
    form, words = option.form, [f"--{option.name}", option.keyword]
    if form is options.FLAG:
        taken: dict[str, Any] = {"is_flag": True}
    else:
        taken = {"type": _click_type(form), "metavar": option.metavar or None, "multiple": option.many}
        if option.default is not None:
            taken |= {"default": option.default, "show_default": True}
    title = title or options.OPTION_GROUPS[option.group]
    return section(title, click.option(*words, **{"help": option.help, **taken, **own}))


def _click_type(form: OptionForm) -> click.ParamType[Any]:
    """Return what click has for a form, whose metavars and messages its users know; else the form itself."""
    if form.words:  # completion in a shell knows the words of a Choice
        return OneOf(form.words)
    if form.limits:
        return click.IntRange(*form.limits)
    if form is options.PATH:
        return FILE
    return click.STRING if form is options.TEXT else FormType(form)


def extents(text: str, what: str) -> tuple[int, ...]:
    """Return a shape such as `4096x4096`.

    Raises:
        InputError: the text is no such thing.
    """
    if not re.fullmatch(rf"\d{{1,{_DIGITS}}}(x\d{{1,{_DIGITS}}})*", text, re.ASCII):
        raise InputError(f"{what} {text!r}: a shape is numbers with x between, such as 4096x4096")
    return tuple(map(int, text.split("x")))
