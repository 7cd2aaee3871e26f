r"""The text of domain iterations, such as `matrix.\(x, y){ x + matrix[x, y] }`, and of functions, such as `g(x) = 2*x`.

One pass makes typed expressions of it: names are resolved, constants folded, and calls inlined by reading the text of
the function again, with its arguments in the place of its parameters.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple, NoReturn

from makespan.estimates.opencl_cost_table.expression import (
    Array,
    Iteration,
    IterationExpression,
    Read,
    Variable,
    literal,
    negation,
    operation,
)
from makespan.host.errors import InputError, ParseError

MAX_TEXT = 16 << 10
MAX_DIGITS = 40
MAX_NESTING = 100  # of parentheses, subscripts and calls: reading them recurses
MAX_CALLS = 10_000  # that are inlined: functions that call functions twice each grow exponentially
_WIDTH = 120
_WORDS = """
    auto bool break case char complex const constant continue default do double else enum event_t extern float for
    global goto half if image1d_t image2d_t image3d_t imaginary inline int kernel local long main private quad
    register restrict return sampler_t short signed sizeof size_t static struct switch typedef uchar uint uintptr_t
    ulong union unsigned ushort void volatile while iteration
"""
RESERVED = frozenset(_WORDS.split())  # names that OpenCL C keeps for itself; so are those with two underscores in front
_TOKEN = re.compile(
    r"\s*(?:(?P<real>(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?[fF]?|\d+[eE][+-]?\d+[fF]?|\d+[fF])"
    r"|(?P<integer>\d+)|(?P<name>[A-Za-z_]\w*)|(?P<sign>\S))",
    re.ASCII,
)


def iteration(
    text: str, *, arrays: Iterable[Array], constants: Mapping[str, int] | None = None, functions: Iterable[str] = ()
) -> Iteration:
    r"""Return the domain iteration in `text`, such as `m.\(x,y){ g(x) + m[x,y] }`.

    Args:
        constants: named integers.
        functions: definitions such as `g(x)=2*x`; they may call each other without recursion.

    Raises:
        ParseError: a place in a text that means nothing: unknown or ambiguous names, wrong numbers of subscripts or
            arguments, `%` on floats, a division by a constant zero, literals that do not fit in 32 bits.
        InputError: two arrays, constants or functions of one name, or a text that is too long.
    """
    names = _DeclaredNames.of(arrays, constants or {}, map(_function, functions))
    for function in names.functions.values():  # a function without a caller is checked, too
        probe = Variable("0", 0, 1)
        _Reader(
            function.text, names, dict.fromkeys(function.parameters, probe), (function.name,), function.body
        ).whole()
    source = _SourceText.of(text, "--expr")
    cursor = _Cursor(source)
    name = cursor.name()
    for sign in ".\\":
        cursor.take(sign)
    variables = cursor.names()
    if name.word not in names.arrays:
        source.refuse(_undeclared_message(name.word), 0)
    array = names.arrays[name.word]
    if len(variables) != len(array.shape):
        given = len(variables)
        source.refuse(f"array {array.name} has {len(array.shape)} dimensions, and the iteration {given} variables", 0)
    for variable in variables:
        if variable in names.taken or _is_reserved(variable):
            source.refuse(f"variable {variable} has the name of something else", 0)
    extents = zip(variables, array.shape, strict=True)
    scope = {name: Variable(name, at, extent) for at, (name, extent) in enumerate(extents)}
    cursor.take("{")
    return Iteration(array, variables, _Reader(source, names, scope, (), cursor.place).whole("}"))


class _Token(NamedTuple):
    kind: str
    word: str
    at: int


@dataclass(frozen=True, slots=True)
class _SourceText:
    """A text as tokens, the last of which is its end; `where` is for messages."""

    text: str
    where: str
    tokens: tuple[_Token, ...]

    @classmethod
    def of(cls, text: str, where: str) -> "_SourceText":
        if len(text) > MAX_TEXT:
            raise InputError(f"{where}: longer than {MAX_TEXT} characters; split the expression")
        found = [(match.lastgroup or "", match) for match in _TOKEN.finditer(text)]
        tokens = [_Token(kind, match[kind], match.start(kind)) for kind, match in found]
        return cls(text, where, (*tokens, _Token("end", "", len(text.rstrip()))))

    def refuse(self, message: str, at: int) -> NoReturn:
        """Raise a `ParseError` with line, column, and the line with a caret below the place."""
        start = self.text.rfind("\n", 0, at) + 1
        line, column = self.text[start:].split("\n", 1)[0], at - start
        cut = max(0, column - _WIDTH // 2)
        shown = "".join(letter if letter.isprintable() else " " for letter in line[cut : cut + _WIDTH])
        context = f"{shown}\n{' ' * (column - cut)}^"
        raise ParseError(self.where, self.text.count("\n", 0, at) + 1, column + 1, message, context)


@dataclass(slots=True)
class _Cursor:
    """A place in a text."""

    source: _SourceText
    place: int = 0

    @property
    def next(self) -> _Token:
        return self.source.tokens[self.place]

    def take(self, *words: str) -> _Token:
        """Return the next word, which is one of these, or anything if there are none."""
        found = self.next
        if words and found.word not in words:
            self.expected(" or ".join(sorted(words)))
        self.place += 1
        return found

    def name(self) -> _Token:
        if self.next.kind != "name":
            self.expected("a name")
        return self.take()

    def names(self) -> tuple[str, ...]:
        found = list[str]()
        self.take("(")
        while not found or self.take(",", ")").word == ",":
            name = self.name()
            if name.word in found:
                self.source.refuse(f"{name.word} is named twice", name.at)
            found.append(name.word)
        return tuple(found)

    def expected(self, what: str) -> NoReturn:
        got = repr(self.next.word[:40]) if self.next.word else "the end of the text"
        self.source.refuse(f"expected {what}, got {got}", self.next.at)


class _Function(NamedTuple):
    """A function: its body begins at a word of the text."""

    name: str
    parameters: tuple[str, ...]
    text: _SourceText
    body: int


def _function(text: str) -> _Function:
    cursor = _Cursor(_SourceText.of(text, "--func"))
    name, parameters = cursor.name().word, cursor.names()
    cursor.take("=")
    return _Function(name, parameters, cursor.source, cursor.place)


@dataclass(frozen=True, slots=True)
class _DeclaredNames:
    arrays: Mapping[str, Array]
    constants: Mapping[str, int]
    functions: Mapping[str, _Function]
    calls: Iterator[int] = field(default_factory=lambda: count(1))

    @classmethod
    def of(
        cls, arrays: Iterable[Array], constants: Mapping[str, int], functions: Iterable[_Function]
    ) -> "_DeclaredNames":
        declared, defined = list(arrays), list(functions)
        names = [*(array.name for array in declared), *constants, *(each.name for each in defined)]
        for at, name in enumerate(names):
            if name in names[:at]:
                raise InputError(f"{name} is declared twice: arrays, constants and functions need different names")
            if _is_reserved(name):
                raise InputError(f"{name} is a word of OpenCL C; choose another name")
        return cls({a.name: a for a in declared}, constants, {each.name: each for each in defined})

    @property
    def taken(self) -> set[str]:
        return {*self.arrays, *self.constants, *self.functions}


def _is_reserved(name: str) -> bool:
    return name in RESERVED or name.startswith("__")


def _undeclared_message(name: str) -> str:
    return f"array {name} is not declared; give --array {name}:float:SHAPE"


class _Reader:
    """A reader of an expression, with the meaning of its names, the functions that are being inlined, and the depth."""

    def __init__(
        self,
        source: _SourceText,
        names: _DeclaredNames,
        scope: Mapping[str, IterationExpression],
        inlined: tuple[str, ...],
        place: int,
    ) -> None:
        self.source, self.names, self.scope, self.inlined = source, names, scope, inlined
        self.cursor, self.depth = _Cursor(source, place), len(inlined)

    def whole(self, closing: str = "") -> IterationExpression:
        """Return the expression up to the end of the text, with nothing but `closing` behind it."""
        found = self._sum()
        for word in (closing, "") if closing else ("",):
            if self.cursor.next.word != word:
                self.cursor.expected(word or "the end")
            self.cursor.place += bool(word)
        return found

    def _sum(self) -> IterationExpression:
        self.depth += 1
        if self.depth > MAX_NESTING:
            self.source.refuse(f"nested more than {MAX_NESTING} deep; split the expression", self.cursor.next.at)
        found = self._operations("+-", lambda: self._operations("*/%", self._signed))
        self.depth -= 1
        return found

    def _operations(self, signs: str, operand: Callable[[], IterationExpression]) -> IterationExpression:
        found = operand()
        while self.cursor.next.kind == "sign" and self.cursor.next.word in signs:
            sign = self.cursor.take()
            found = self._built(sign.at, operation, sign.word, found, operand())
        return found

    def _signed(self) -> IterationExpression:
        signs = []
        while self.cursor.next.word == "-":
            signs.append(self.cursor.take())
        found = self._operand()
        for sign in reversed(signs):
            found = self._built(sign.at, negation, found)
        return found

    def _operand(self) -> IterationExpression:
        token = self.cursor.next
        if token.kind not in ("integer", "real", "name") and token.word != "(":
            self.cursor.expected("( or - or a name or a number")
        self.cursor.take()
        if token.word == "(":
            found = self._sum()
            self.cursor.take(")")
            return found
        if token.kind == "real":
            return self._built(token.at, literal, float(token.word.rstrip("fF")))
        if token.kind == "integer":
            if len(token.word) > MAX_DIGITS:
                self.source.refuse(f"an integer of {len(token.word)} digits does not fit in 32 bits", token.at)
            return self._built(token.at, literal, int(token.word))
        if self.cursor.next.word == "[":
            subscripts = self._list("[", "]")
            if token.word not in self.names.arrays:
                self.source.refuse(_undeclared_message(token.word), token.at)
            return self._built(token.at, Read, self.names.arrays[token.word], subscripts)
        if self.cursor.next.word == "(":
            return self._called(token, self._list("(", ")"))
        return self._named(token)

    def _list(self, opening: str, closing: str) -> tuple[IterationExpression, ...]:
        self.cursor.take(opening)
        found = [self._sum()]
        while self.cursor.take(",", closing).word == ",":
            found.append(self._sum())
        return tuple(found)

    def _named(self, token: _Token) -> IterationExpression:
        name = token.word
        if name in self.scope:
            return self.scope[name]
        if name in self.names.constants:
            return self._built(token.at, literal, self.names.constants[name])
        known = ", ".join([*self.scope, *self.names.constants])
        hint = "an array needs subscripts" if name in self.names.arrays else f"known: {known}; or give --const {name}=N"
        return self.source.refuse(f"unknown variable {name}; {hint}", token.at)

    def _called(self, token: _Token, arguments: tuple[IterationExpression, ...]) -> IterationExpression:
        name = token.word
        if name not in self.names.functions:
            self.source.refuse(f"function {name} is not defined; give --func '{name}(...)=...'", token.at)
        called = self.names.functions[name]
        if name in self.inlined:
            self.source.refuse(f"function {name} calls itself; calls are inlined", token.at)
        if next(self.names.calls) > MAX_CALLS:
            self.source.refuse(f"more than {MAX_CALLS} calls to inline; write fewer", token.at)
        wanted, given = len(called.parameters), len(arguments)
        if given != wanted:
            self.source.refuse(f"function {name} takes {wanted} arguments, and {given} are given", token.at)
        scope = dict(zip(called.parameters, arguments, strict=True))
        inner = _Reader(called.text, self.names, scope, (*self.inlined, name), called.body)
        inner.depth = self.depth
        return inner.whole()

    def _built(self, at: int, make: Callable[..., IterationExpression], *parts: object) -> IterationExpression:
        """Return the expression that `make` builds, and refuse at its place what cannot be built."""
        try:
            return make(*parts)
        except InputError as error:
            return self.source.refuse(str(error), at)
