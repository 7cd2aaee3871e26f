"""The reference of the library: what `makespan.__all__` has, from signatures and docstrings."""

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from textwrap import dedent

import makespan

_LINE = 100
_SECTION = re.compile(r"^(Args|Raises|Returns|Source|Attributes|Yields):(.*)$")


def reference() -> str:
    """Functions, then classes, then errors, as Markdown."""
    public = {name: getattr(makespan, name) for name in makespan.__all__}
    functions = {name: value for name, value in public.items() if inspect.isroutine(value)}
    classes = {name: value for name, value in public.items() if inspect.isclass(value)}
    errors = {name: value for name, value in classes.items() if issubclass(value, Exception)}
    values = {name: value for name, value in classes.items() if name not in errors}
    parts = "## Functions", *_all(functions), "## Values", *_all(values), "## Errors", *_all(errors)
    return "\n\n".join(parts)


def _all(members: Mapping[str, object]) -> Iterator[str]:
    for name, value in members.items():
        yield f"### {name}"
        yield from _described(name, value)
        if inspect.isclass(value) and not issubclass(value, Exception):
            yield from _members(value)


def _described(name: str, value: object) -> Iterator[str]:
    if callable(value) and not (inspect.isclass(value) and issubclass(value, Exception)):
        yield f"```python\n{name}{_signature(value)}\n```"
    yield markdown(inspect.getdoc(value) or "")


def _members(value: type) -> Iterator[str]:
    """What a class has that says what it is for: methods and properties with a docstring."""
    for name, raw in vars(value).items():
        if name.startswith("_"):
            continue
        is_value = isinstance(raw, property | cached_property)
        text = inspect.getdoc(raw if is_value else getattr(value, name))
        if text and (is_value or inspect.isroutine(raw)):
            yield f"#### {value.__name__}.{name}"
            if not is_value:
                yield f"```python\n{name}{_signature(getattr(value, name))}\n```"
            yield markdown(text)


def _signature(value: Callable[..., object]) -> str:
    """As in the code, without the modules of names; a value that is long goes by its name."""
    signature = inspect.signature(value)
    signature = signature.replace(parameters=[_short(each) for each in signature.parameters.values()])
    whole = _plain(str(signature)).removesuffix(" -> None")
    if len(whole) < _LINE:
        return whole
    kinds = [parameter.kind for parameter in signature.parameters.values()]
    parts = [_plain(str(parameter)) for parameter in signature.parameters.values()]
    if inspect.Parameter.KEYWORD_ONLY in kinds:
        parts.insert(kinds.index(inspect.Parameter.KEYWORD_ONLY), "*")
    return "(\n" + "".join(f"    {part},\n" for part in parts) + whole[whole.rindex(")") :]


def _short(parameter: inspect.Parameter) -> inspect.Parameter:
    return parameter.replace(default=_Named("PAPER")) if parameter.default is makespan.PAPER else parameter


class _Named(str):
    """A value as its name."""

    __slots__ = ()
    __repr__ = str.__str__


def _plain(text: str) -> str:
    """Annotations without modules and quotes."""
    return re.sub(r"(: |-> )'([^']*)'", r"\1\2", re.sub(r"\b(?:[a-z_]\w*\.)+(\w+)", r"\1", text))


def markdown(docstring: str) -> str:
    """A docstring as Markdown: examples fenced, sections as lists."""
    return "\n\n".join(map(_paragraph, re.split(r"\n\s*\n", docstring)))


def _paragraph(text: str) -> str:
    if text.lstrip().startswith(">>>"):
        return f"```pycon\n{dedent(text)}\n```"
    first, _, rest = text.partition("\n")
    if not (section := _SECTION.match(first)):
        return text
    items = re.sub(r"^(?=\S)", "* ", dedent(rest), flags=re.MULTILINE)
    return f"**{section[1]}.**{section[2]}\n\n{items}"
