"""Reads the text of domain iterations and functions into values that know their place in the text."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NoReturn, cast

from lark import Lark, Token, Transformer
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from makespan.errors import InputError, ParseError

MAX_TEXT = 16 << 10
MAX_DIGITS = 40
_WIDTH = 120


@dataclass(frozen=True, slots=True)
class Number:
    """A literal; `at` is the place in the text."""

    value: int | float
    at: int


@dataclass(frozen=True, slots=True)
class Name:
    """A variable, constant or parameter."""

    name: str
    at: int


@dataclass(frozen=True, slots=True)
class Applied:
    """`array[...]` or, if a call, `function(...)`."""

    name: str
    arguments: tuple["Term", ...]
    is_call: bool
    at: int


@dataclass(frozen=True, slots=True)
class Minus:
    """The unary one."""

    operand: "Term"
    at: int


@dataclass(frozen=True, slots=True)
class Binary:
    """One of + - * / %."""

    operator: str
    left: "Term"
    right: "Term"
    at: int


Term = Number | Name | Applied | Minus | Binary


@dataclass(frozen=True, slots=True)
class Definition:
    """An iteration, whose name is that of its array, or a function; with the text that its places refer to."""

    name: str
    parameters: tuple[str, ...]
    body: Term
    text: str
    where: str

    def refuse(self, message: str, at: int) -> NoReturn:
        """Raise a `ParseError` that shows the place."""
        raise parse_error(self.text, self.where, at, message)


def iteration(text: str, where: str = "--expr") -> Definition:
    r"""The iteration `array.\(v1,...,vD){ body }`; `where` is for messages.

    Raises:
        ParseError: a place that is not understood.
    """
    return _definition(text, where, "iteration")


def function(text: str, where: str = "--func") -> Definition:
    """The function `name(parameter,...)=body`.

    Raises:
        ParseError: a place that is not understood.
    """
    return _definition(text, where, "function")


def parse_error(text: str, where: str, position: int, message: str) -> ParseError:
    """The error with line, column, and the line with a caret below the place."""
    start = text.rfind("\n", 0, position) + 1
    line = text[start:].split("\n", 1)[0]
    column = position - start
    cut = max(0, column - _WIDTH // 2)
    shown = "".join(letter if letter.isprintable() else " " for letter in line[cut : cut + _WIDTH])
    context = f"{shown}\n{' ' * (column - cut)}^"
    return ParseError(where, text.count("\n", 0, position) + 1, column + 1, message, context)


class _RefusedError(Exception):
    def __init__(self, message: str, at: int) -> None:
        super().__init__(message)
        self.at = at


class _Builder(Transformer[Token, object]):
    """One method per rule of the grammar."""

    def iteration(self, parts: Sequence[object]) -> tuple[object, ...]:
        return tuple(parts)

    function = iteration

    def names(self, parts: Sequence[Token]) -> tuple[str, ...]:
        for at, name in enumerate(parts):
            if name in parts[:at]:
                raise _RefusedError(f"{name} is named twice", _place(name))
        return tuple(map(str, parts))

    def list(self, parts: Sequence[Term]) -> tuple[Term, ...]:
        return tuple(parts)

    def integer(self, parts: Sequence[Token]) -> Number:
        (digits,) = parts
        if len(digits) > MAX_DIGITS:
            raise _RefusedError(f"an integer of {len(digits)} digits does not fit in 32 bits", _place(digits))
        return Number(int(digits), _place(digits))

    def real(self, parts: Sequence[Token]) -> Number:
        (digits,) = parts
        return Number(float(digits.rstrip("fF")), _place(digits))

    def name(self, parts: Sequence[Token]) -> Name:
        return Name(str(parts[0]), _place(parts[0]))

    def read(self, parts: tuple[Token, tuple[Term, ...]]) -> Applied:
        return Applied(str(parts[0]), parts[1], is_call=False, at=_place(parts[0]))

    def call(self, parts: tuple[Token, tuple[Term, ...]]) -> Applied:
        return Applied(str(parts[0]), parts[1], is_call=True, at=_place(parts[0]))

    def negation(self, parts: tuple[Token, Term]) -> Minus:
        return Minus(parts[1], _place(parts[0]))

    def operation(self, parts: tuple[Term, Token, Term]) -> Binary:
        left, sign, right = parts
        return Binary(str(sign), left, right, _place(sign))


def _place(token: Token) -> int:
    return token.start_pos or 0


@cache
def _lark() -> Lark:
    grammar = (Path(__file__).parent / "grammar.lark").read_text("utf-8")
    return Lark(grammar, parser="lalr", start=["iteration", "function"], transformer=_Builder())


def _definition(text: str, where: str, start: str) -> Definition:
    if len(text) > MAX_TEXT:
        raise InputError(f"{where}: longer than {MAX_TEXT} characters; split the expression")
    try:
        name, parameters, body = cast(tuple[Token, tuple[str, ...], Term], _lark().parse(text, start=start))
    except _RefusedError as error:
        raise parse_error(text, where, error.at, str(error)) from None
    except UnexpectedInput as error:
        raise _unexpected(error, text, where) from None
    return Definition(str(name), parameters, body, text, where)


_LOOKS = {
    "NAME": "a name",
    "INT": "a number",
    "FLOAT": "a number",
    "ADDITIVE": "+",
    "MULTIPLICATIVE": "* / %",
    "MINUS": "-",
    "$END": "the end",
}


def _unexpected(error: UnexpectedInput, text: str, where: str) -> ParseError:
    at_end = isinstance(error, UnexpectedToken) and error.token.type == "$END"
    position = len(text.rstrip()) if at_end else error.pos_in_stream or 0
    word = re.match(r"\w{1,40}|.", text[position:], re.DOTALL)
    got = "the end of the text" if at_end or word is None else repr(word[0])
    names = error.accepts if isinstance(error, UnexpectedToken) else _allowed(error)
    terminals = {terminal.name: terminal.pattern.value for terminal in _lark().terminals}
    expected = sorted({_LOOKS.get(name, terminals.get(name, name).replace("\\", "", 1)) for name in names})
    return parse_error(text, where, position, f"expected {' or '.join(expected)}, got {got}")


def _allowed(error: UnexpectedInput) -> set[str]:
    return set(error.allowed or ()) if isinstance(error, UnexpectedCharacters) else set()
